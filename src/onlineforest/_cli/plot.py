"""The commands `plot …`: pictures of a model, or of a learning curve, in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlineforest import plot as pictures
from onlineforest._cli.base import BadRows, Command, Group, checked_file, examples, option, options
from onlineforest._cli.predictions import features_in, rows_for
from onlineforest._cli.prequential import read_curve
from onlineforest._cli.training import Forest, Roles, target_of, wanted_of
from onlineforest._extras import require
from onlineforest._files.atomic import replacing
from onlineforest._models.loading import load
from onlineforest._tables.columns import Kind, Wanted
from onlineforest._tables.tables import open_table, sampled
from onlineforest.plot.base import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PICTURE = "The picture"
_POINTS = "Points in it"
_FORMATS = (".png", ".svg", ".pdf")
_NAMES = {"log_loss": "log loss", "rmse": "RMSE", "mae": "mean absolute error"}


def _checked_output(context: click.Context, option: click.Parameter, path: Path) -> Path | None:
    if path.suffix.lower() not in _FORMATS:
        raise click.BadParameter(f"{path} must end in .png, .svg or .pdf.")
    return checked_file(context, option, path)


_output = option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    callback=_checked_output,
    section=_PICTURE,
    help="Where to save it: .png, .svg or .pdf.",
)
_model = click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
_tree = option(
    "--tree",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    section=_PICTURE,
    help="Which tree, from 0.",
)
_features = option(
    "--features",
    nargs=2,
    metavar="X Y",
    section=_PICTURE,
    help="Which two features, by name (or number, from 0, if the model knows no names). Default: "
    "the two that tell most.",
)
_resolution = option(
    "--resolution",
    type=click.IntRange(2, 2000),
    default=200,
    show_default=True,
    metavar="N",
    section=_PICTURE,
    help="Places looked at along each side.",
)
_points = options(
    option("--data", metavar="FILE", section=_POINTS, help="CSV or Parquet: points to draw."),
    option(
        "--target",
        metavar="COLUMN",
        section=_POINTS,
        help="The column of --data that the model predicts, for the points' colours.",
    ),
    option(
        "--rows",
        type=click.IntRange(1),
        default=1000,
        show_default=True,
        metavar="N",
        section=_POINTS,
        help="How many rows: a random sample of all of --data, always the same.",
    ),
)


@click.group(cls=Group, short_help="Draw a model, or a learning curve.")
def plot() -> None:
    """Draw pictures of a model file, or of the learning curve of `train` or `evaluate`.

    Needs matplotlib: pip install 'onlineforest[plot]'.
    """
    require("matplotlib", "plot")


def _command(name: str, short_help: str, *commands: str) -> Callable[[Any], click.Command]:
    return click.command(name, cls=Command, short_help=short_help, epilog=examples(*commands))


@_command(
    "partition",
    "The cuts of one tree, for two features.",
    "onlineforest train flowers.csv --target species --task classify --drop sepal_length \\\n"
    "      --drop sepal_width -o petals.safetensors",
    "onlineforest plot partition petals.safetensors -o cuts.png --data flowers.csv",
)
@_model
@_tree
@_output
@_points
def partition(model: Path, output: Path, tree: int, **points: Any) -> None:
    """Draw how one tree of a model cuts up the plane. For models of two features."""
    forest = load(model)
    X, y = _read_points(forest, **points)
    with saved_picture(output) as axes:
        pictures.partition(forest, X, y, tree=tree, ax=axes)


@_command(
    "tree",
    "One tree, node by node.",
    "onlineforest plot tree flowers.safetensors -o tree.svg --max-depth 4",
)
@_model
@_tree
@option(
    "--max-depth",
    type=click.IntRange(0),
    metavar="N",
    section=_PICTURE,
    help="How many cuts deep. Default: as many as fit.",
)
@_output
def draw_tree(model: Path, output: Path, tree: int, max_depth: int | None) -> None:
    """Draw one tree of a model: its cuts and leaves."""
    with saved_picture(output) as axes:
        pictures.tree(load(model), tree=tree, max_depth=max_depth, ax=axes)


@_command(
    "surface",
    "What is predicted, over two features.",
    "onlineforest plot surface flowers.safetensors -o surface.png --data flowers.csv \\\n"
    "      --target species",
)
@_model
@_features
@_resolution
@_output
@_points
def surface(
    model: Path, output: Path, features: tuple[str, str], resolution: int, **points: Any
) -> None:
    """Draw what a model predicts over the plane of two features."""
    _draw_map(pictures.decision_surface, model, output, features, resolution, points)


@_command(
    "novelty",
    "How new each place would be, over two features.",
    "onlineforest plot novelty flowers.safetensors -o novelty.png --data flowers.csv",
)
@_model
@_features
@_resolution
@_output
@_points
def novelty(
    model: Path, output: Path, features: tuple[str, str], resolution: int, **points: Any
) -> None:
    """Draw how far the places of a plane are from everything the model has learned."""
    _draw_map(pictures.novelty_map, model, output, features, resolution, points)


@_command(
    "importances",
    "How much each feature tells.",
    "onlineforest plot importances flowers.safetensors -o importances.png",
)
@_model
@option(
    "--max-features",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    section=_PICTURE,
    help="How many features, from the one that tells most.",
)
@_output
def importances(model: Path, output: Path, max_features: int) -> None:
    """Draw how much each feature of a model tells about the target."""
    with saved_picture(output) as axes:
        pictures.importances(load(model), max_features=max_features, ax=axes)


@_command(
    "curve",
    "A learning curve.",
    "onlineforest train flowers.csv --target species --task classify --curve curve.csv \\\n"
    "      -o flowers.safetensors",
    "onlineforest plot curve curve.csv -o curve.png",
)
@click.argument("curve_file", metavar="CURVE", type=click.Path(path_type=Path, dir_okay=False))
@option(
    "--measure",
    metavar="NAME",
    section=_PICTURE,
    help="Which measure: accuracy, log_loss, rmse, mae, coverage or width (these two "
    "only in the curve of `evaluate`). Default: accuracy or rmse.",
)
@_output
def curve(curve_file: Path, output: Path, measure: str | None) -> None:
    """Draw the learning curve that `train` or `evaluate` wrote with --curve."""
    samples, values = read_curve(curve_file)
    with saved_picture(output) as axes:
        draw_curve(axes, samples, values, measure)


for _each in (partition, draw_tree, surface, novelty, importances, curve):
    plot.add_command(_each)
plot.sections = {
    "Of a model": (partition, draw_tree, surface, novelty, importances),
    "Of a curve": (curve,),
}


def draw_curve(
    axes: Axes,
    samples: Sequence[int],
    values: Mapping[str, Sequence[float]],
    measure: str | None = None,
) -> None:
    """A measure over all samples so far and, where it is known, over each batch."""
    if measure is None:
        measure = next((name for name in ("accuracy", "rmse") if name in values), None)
    if measure is None or measure not in values:
        raise ValueError(f"the curve has no {measure}, but {', '.join(values)}.")
    curves = {"all samples so far": values[measure]}
    if f"batch_{measure}" in values:
        curves = {"each batch": values[f"batch_{measure}"], **curves}
    pictures.learning_curve(samples, curves, ylabel=_NAMES.get(measure, measure), ax=axes)
    axes.set_title("Predicted before learned")


@contextmanager
def saved_picture(path: Path) -> Iterator[Axes]:
    """Axes to draw into; at the end they are in the file."""
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
    points: Mapping[str, Any],
) -> None:
    forest = load(model)
    if points["data"] is None and forest.n_features_in_ > 2:
        raise click.UsageError(
            f"{model} has {forest.n_features_in_} features: name data with --data, at whose "
            "medians those that are not drawn are held."
        )
    X, y = _read_points(forest, **points)
    chosen = _named_features(forest, features) if features else _telling_features(forest)
    arguments = (forest, X, y) if draw is pictures.decision_surface else (forest, X)
    with saved_picture(output) as axes:
        draw(*arguments, features=chosen, resolution=resolution, ax=axes)


def _telling_features(forest: Forest) -> list[int] | None:
    """The two that tell most, in their order; None if there are no more."""
    if forest.n_features_in_ <= 2:
        return None
    return sorted(int(i) for i in forest.feature_importances_.argsort()[-2:])


def _named_features(forest: Forest, features: tuple[str, str]) -> list[str] | list[int]:
    if hasattr(forest, "feature_names_in_"):
        return list(features)
    try:
        return [int(name) for name in features]
    except ValueError as error:
        raise ValueError("the model knows no names of features: give two numbers.") from error


def _read_points(
    forest: Forest, data: str | None, target: str | None, rows: int
) -> tuple[Any, Any]:
    """Rows of a table for a forest, and what they are labelled with, if anything."""
    if data is None:
        if target is not None:
            raise click.UsageError("--target is a column of --data: give that, too.")
        return None, None
    with closing(open_table(data)) as table:
        features = tuple(features_in(table, forest, () if target is None else (target,)))
        wanted = {name: Wanted(Kind.NUMBER) for name in features}
        if target is not None:
            roles = Roles(target, features)
            wanted = wanted_of(table, roles, forest)
        # A bad row, wherever it is, need not spoil a picture.
        bad_rows = BadRows(skip=True)
        batch = sampled(table.read(wanted, bad_rows), rows)
    if not batch:
        raise ValueError(f"{data} has no rows to draw.{bad_rows.words(' ')}")
    if bad_rows.n:
        click.echo(bad_rows.words(), err=True)
    X = rows_for(forest, batch.select(list(features)))
    return X, None if target is None else target_of(batch, roles)
