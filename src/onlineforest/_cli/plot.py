"""The commands `plot …`: save pictures of a model or of a learning curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from onlineforest import plot as pictures
from onlineforest._cli.columns import (
    Schema,
    column_specs,
    feature_specs,
    features_in,
    rows_for,
    targets,
)
from onlineforest._cli.commands import SUMMARIES, Group, command, option, options
from onlineforest._cli.forests import Forest
from onlineforest._cli.metrics import METRIC_LABELS, read_curve
from onlineforest._cli.options import FILE, BadRows, check_output_file
from onlineforest._extras import require
from onlineforest._files.atomic import replacing
from onlineforest._store.loading import load
from onlineforest._tables.tables import open_table, sample_rows
from onlineforest.plot.checks import numeric_features
from onlineforest.plot.figures import new_figure
from onlineforest.plot.maps import check_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PICTURE = "The picture"
_POINTS = "Points in the picture"
_FORMATS = (".png", ".svg", ".pdf")


def _check_format(context: click.Context, option: click.Parameter, path: Path) -> Path | None:
    if path.suffix.lower() not in _FORMATS:
        raise click.BadParameter(f"{path} must end in .png, .svg or .pdf.")
    return check_output_file(context, option, path)


def _number_option(
    name: str, type: click.IntRange, default: int, help: str, section: str = _PICTURE
) -> Callable[[Any], Any]:
    return option(
        name,
        type=type,
        default=default,
        show_default=True,
        metavar="N",
        section=section,
        help=help,
    )


_output = option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    callback=_check_format,
    section=_PICTURE,
    help="Where to save the picture: .png, .svg or .pdf.",
)
_model = click.argument("model", type=FILE)
_tree = _number_option("--tree", click.IntRange(0), 0, "Index of the tree, from 0.")
_features = option(
    "--features",
    nargs=2,
    metavar="X Y",
    section=_PICTURE,
    help="The two features, by name (or by index, from 0, if the model has no feature names). "
    "They must be numbers. Default: the two most important ones.",
)
_resolution = _number_option(
    "--resolution", click.IntRange(2, 2000), 200, "Number of grid points along each axis."
)
_points = options(
    option("--data", metavar="FILE", section=_POINTS, help="CSV or Parquet: points to draw."),
    option(
        "--target",
        metavar="COLUMN",
        section=_POINTS,
        help="The column of --data that holds the targets, for the colours of the points.",
    ),
    _number_option(
        "--rows",
        click.IntRange(1),
        1000,
        "Number of rows to draw: a random sample of --data with a fixed seed.",
        _POINTS,
    ),
)
_map_options = options(_model, _features, _resolution, _output, _points)


@click.group(cls=Group, short_help=SUMMARIES["plot"])
def plot() -> None:
    """Draw a model file, or the learning curve of `train` or `evaluate`.

    Needs matplotlib: pip install 'onlineforest[plot]'.
    """
    require("matplotlib", "plot")


@command(
    "partition",
    "onlineforest train flowers.csv --target species --task classify --drop sepal_length \\\n"
    "      --drop sepal_width -o petals.safetensors",
    "onlineforest plot partition petals.safetensors -o splits.png --data flowers.csv",
    summary="The splits of one tree, for two features.",
)
@_model
@_tree
@_output
@_points
def partition(model: Path, output: Path, tree: int, **points: Any) -> None:
    """Draw the partition of the plane by one tree. For models of two numeric features."""
    forest = load(model)
    X, y = _read_points(forest, **points)
    with _saved_picture(output) as axes:
        pictures.partition(forest, X, y, tree=tree, ax=axes)


@command(
    "tree",
    "onlineforest plot tree flowers.safetensors -o tree.svg --max-depth 4",
    summary="The nodes of one tree.",
)
@_model
@_tree
@option(
    "--max-depth",
    type=click.IntRange(0),
    metavar="N",
    section=_PICTURE,
    help="Maximum depth to draw. Default: as deep as fits.",
)
@_output
def draw_tree(model: Path, output: Path, tree: int, max_depth: int | None) -> None:
    """Draw one tree of a model: its splits and leaves."""
    with _saved_picture(output) as axes:
        pictures.tree(load(model), tree=tree, max_depth=max_depth, ax=axes)


@command(
    "surface",
    "onlineforest plot surface flowers.safetensors -o surface.png --data flowers.csv \\\n"
    "      --target species",
    summary="Predictions over two features.",
)
@_map_options
def surface(**given: Any) -> None:
    """Draw the predictions of a model over the plane of two features."""
    _draw_map(pictures.decision_surface, **given)


@command(
    "novelty",
    "onlineforest plot novelty mondrian.safetensors -o novelty.png --data flowers.csv",
    summary="Novelty over two features.",
)
@_map_options
def novelty(**given: Any) -> None:
    """Draw the novelty over the plane of two features: the distance from all samples learned.

    For Mondrian forests.
    """
    _draw_map(pictures.novelty_map, **given)


@command(
    "importances",
    "onlineforest plot importances flowers.safetensors -o importances.png",
    summary="Importance of each feature.",
)
@_model
@_number_option(
    "--max-features",
    click.IntRange(1),
    20,
    "Number of features to draw, the most important first.",
)
@_output
def importances(model: Path, output: Path, max_features: int) -> None:
    """Draw the importances of the features of a model."""
    with _saved_picture(output) as axes:
        pictures.importances(load(model), max_features=max_features, ax=axes)


@command(
    "curve",
    "onlineforest train flowers.csv --target species --task classify --curve curve.csv \\\n"
    "      -o flowers.safetensors",
    "onlineforest plot curve curve.csv -o curve.png",
    summary="A learning curve.",
)
@click.argument("curve_file", metavar="CURVE", type=FILE)
@option(
    "--measure",
    "metric",
    metavar="NAME",
    section=_PICTURE,
    help="Metric to draw: accuracy, log_loss, ece, rmse, mae, coverage or width (the last "
    "two only in curves of `evaluate`). Default: accuracy or rmse.",
)
@_output
def curve(curve_file: Path, output: Path, metric: str | None) -> None:
    """Draw the learning curve that `train` or `evaluate` wrote with --curve."""
    save_curve(output, *read_curve(curve_file), metric)


plot.sections = {
    heading: {each.name or "": each.get_short_help_str(70) for each in commands}
    for heading, commands in {
        "Pictures of a model": (partition, draw_tree, surface, novelty, importances),
        "Pictures of a learning curve": (curve,),
    }.items()
}
for _each in (partition, draw_tree, surface, novelty, importances, curve):
    plot.add_command(_each)


def save_curve(
    path: Path,
    samples: Sequence[int],
    values: Mapping[str, Sequence[float]],
    metric: str | None = None,
) -> None:
    """Draw a metric over all samples so far and, if the curve has it, over each batch."""
    if metric is None:
        metric = next((name for name in ("accuracy", "rmse") if name in values), None)
    if metric is None or metric not in values:
        raise ValueError(f"the curve has no metric {metric}; it has {', '.join(values)}.")
    curves = {"all samples so far": values[metric]}
    if f"batch_{metric}" in values:
        curves = {"each batch": values[f"batch_{metric}"], **curves}
    label = metric if metric == "width" else METRIC_LABELS.get(metric, metric)
    with _saved_picture(path) as axes:
        pictures.learning_curve(samples, curves, ylabel=label, ax=axes)
        axes.set_title("Predicted before learned")


@contextmanager
def _saved_picture(path: Path) -> Iterator[Axes]:
    """Yield axes to draw into, then save them to a file."""
    figure, axes = new_figure()
    yield axes
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
    click.echo(f"Saved {path}", err=True)


def _draw_map(
    draw: Callable[..., Any],
    model: Path,
    output: Path,
    features: tuple[str, str] | None,
    resolution: int,
    **points: Any,
) -> None:
    forest = load(model)
    chosen = _named_features(forest, features) if features else _most_important(forest)
    check_features(forest, chosen)
    if points["data"] is None and forest.n_features_in_ > 2:
        raise click.UsageError(
            f"{model} has {forest.n_features_in_} features: name data with --data. The features "
            "that are not drawn are held at the medians of these data, categorical ones at their "
            "most frequent level."
        )
    X, y = _read_points(forest, **points)
    arguments = (forest, X, y) if draw is pictures.decision_surface else (forest, X)
    with _saved_picture(output) as axes:
        draw(*arguments, features=chosen, resolution=resolution, ax=axes)


def _most_important(forest: Forest) -> list[int] | None:
    """Indices of the two most important numeric features; None if there are no more."""
    numeric = np.array(numeric_features(forest), dtype=np.intp)
    if len(numeric) <= 2:
        return None
    chosen = np.argsort(forest.feature_importances_[numeric], kind="stable")[-2:]
    return sorted(numeric[chosen].tolist())


def _named_features(forest: Forest, features: tuple[str, str]) -> list[str] | list[int]:
    if hasattr(forest, "feature_names_in_"):
        return list(features)
    try:
        return [int(name) for name in features]
    except ValueError as error:
        raise ValueError(
            f"the model has no feature names: --features must be two indices, not {features}."
        ) from error


def _read_points(
    forest: Forest, data: str | None, target: str | None, rows: int
) -> tuple[Any, Any]:
    """Rows of a table, and their targets if `target` names them; None without `data`."""
    if data is None:
        if target is not None:
            raise click.UsageError("--target is a column of --data: give --data, too.")
        return None, None
    with closing(open_table(data)) as table:
        features = tuple(features_in(table, forest, () if target is None else (target,)))
        if target is None:
            specs = feature_specs(table, features, forest)
        else:
            schema = Schema(target, features)
            specs = column_specs(table, schema, forest)
        # A picture does not need every row.
        bad_rows = BadRows(skip=True)
        batch = sample_rows(table.read(specs, bad_rows), rows)
    if not batch:
        raise ValueError(f"{data} has no rows to draw.{bad_rows.summary(' ')}")
    if bad_rows.n:
        click.echo(bad_rows.summary(), err=True)
    X = rows_for(forest, batch.select(list(features)))
    return X, None if target is None else targets(batch, schema)
