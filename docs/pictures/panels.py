"""Colours, samples and the style of small panels, which pictures of `how-it-works.md` share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
CLASS_COLOURS = (BLUE, ORANGE, GREEN)  # as in `onlineforest.plot`


def draw_points(n: int = 24, seed: int = 3, spread: float = 0.09) -> tuple[Floats, Labels]:
    """Points of three clouds in the unit square, the clouds as classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.array([[0.2, 0.25], [0.75, 0.3], [0.45, 0.8]])
    return centres[y] + rng.normal(0.0, spread, (n, 2)), y


def tidy(axes: Any, title: str) -> None:
    """Give a small panel its title; remove legend, ticks and labels."""
    if axes.get_legend():
        axes.get_legend().remove()
    axes.set_title(title, fontsize="medium")
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")


def ring(axes: Any, x: Any) -> None:
    """Mark a point by a ring."""
    axes.plot(*x, "o", ms=13, mfc="none", mec=RED, mew=1.8, zorder=6)
