"""Draws the figures of `paper.md` from the numbers in `paper/results.json`.

``python -m experiments.paper --docs docs`` measures these numbers. This module measures nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/paper/results.json"
sys.path.insert(0, str(ROOT))  # experiments are run from a checkout and never installed

from experiments.paper import curves, drawings, figures, results  # noqa: E402

SOURCES = (RESULTS, *(Path(module.__file__) for module in (curves, drawings, figures, results)))


@cache
def measured() -> results.Results:
    """The results of the latest full run."""
    return results.read(RESULTS)


def measured_figure(name: str) -> Figure:
    """A figure of the paper that shows measurements."""
    _, draw = figures.FIGURES[name]
    figure = draw(measured())
    if figure is None:
        raise ValueError(f"{RESULTS.name} has no results for {name}.")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    **{name: draw for name, (_, draw) in drawings.DRAWINGS.items()},
    **{name: partial(measured_figure, name) for name in figures.FIGURES},
}
