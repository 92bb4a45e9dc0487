"""Save pictures to files, and draw learning curves. Knows no single command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onlineforest import plot
from onlineforest._cli.progress import METRIC_LABELS
from onlineforest._files.atomic import replacing
from onlineforest.plot.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def saved_picture(path: Path) -> Iterator[Axes]:
    """Yield axes to draw into, then save them to a file."""
    figure, axes = new_figure()
    yield axes
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
    click.echo(f"Saved {path}", err=True)


def draw_curve(
    axes: Axes,
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
    plot.learning_curve(samples, curves, ylabel=label, ax=axes)
    axes.set_title("Predicted before learned")
