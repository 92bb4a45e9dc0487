"""Draws the picture of `regression.md`: intervals of a forest in a gap between its samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from onlineforest import MondrianForestRegressor

Floats = NDArray[np.float64]

CLOUDS = ((-4.0, -1.0), (1.0, 4.0))  # the intervals that hold samples
PLACES = {  # a little away from the borders of the clouds
    "among the samples": ((-3.8, -1.2), (1.2, 3.8)),
    "in the gap": ((-0.6, 0.6),),
    "beyond the samples": ((-8.0, -5.0), (5.0, 8.0)),
}
FORESTS: dict[str, dict[str, Any]] = {
    "Default parameters": {},
    "Plain model": {
        "feature_weights": "range",
        "trend": None,
        "calibrate": False,
        "noise": 0.01,
        "discount": 0.05,
    },
}
DATA_SEED, FOREST_SEED = 0, 0  # not chosen: a test checks other seeds too


def true_function(x: Floats) -> Floats:
    """The function that the samples follow, without their noise."""
    return np.sin(1.5 * x) + 0.4 * x


def draw_samples(seed: int = DATA_SEED, n_per_cloud: int = 100) -> tuple[Floats, Floats]:
    """Samples from two clouds; their targets have noise of standard deviation 0.15."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(low, high, n_per_cloud) for low, high in CLOUDS])
    return x[:, np.newaxis], true_function(x) + rng.normal(0.0, 0.15, len(x))


def learn(name: str, X: Floats, y: Floats, seed: int = FOREST_SEED) -> MondrianForestRegressor:
    """Fit the forest of one panel."""
    return MondrianForestRegressor(200, random_state=seed, **FORESTS[name]).fit(X, y)


def mean_widths(forest: MondrianForestRegressor, coverage: float = 0.9) -> dict[str, float]:
    """The mean width of the interval at each kind of place."""
    widths = {}
    for place, parts in PLACES.items():
        x = np.concatenate([np.linspace(low, high, 100) for low, high in parts])
        interval = forest.predict_interval(x[:, np.newaxis], coverage)
        widths[place] = float(np.ptp(interval, axis=1).mean())
    return widths


def draw_panel(axes: Any, forest: MondrianForestRegressor, X: Floats, y: Floats) -> None:
    """Draw true function, samples, mean and intervals, far beyond the samples on both sides."""
    x = np.linspace(-8.0, 8.0, 257)
    levels = [0.05, 0.25, 0.75, 0.95]
    lowest, low, high, highest = forest.predict_quantiles(x[:, np.newaxis], levels).T
    axes.fill_between(x, lowest, highest, color="#d3e3f3", lw=0, label="90 % interval")
    axes.fill_between(x, low, high, color="#9cc2e5", lw=0, label="50 % interval")
    axes.plot(x, true_function(x), "--", color="#c1440e", lw=1.2, label="true function")
    axes.plot(X[:, 0], y, ".", color="0.15", ms=3.2, mew=0.0, label="samples")
    axes.plot(x, forest.predict(x[:, np.newaxis]), color="#1f5a93", lw=1.6, label="predicted mean")
    axes.set(xlim=(-8.0, 8.0), ylim=(-3.6, 3.6), xlabel="x", xticks=range(-8, 9, 2))
    axes.spines[["top", "right"]].set_visible(False)


def gap_picture() -> Figure:
    """Both forests side by side."""
    X, y = draw_samples()
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, FORESTS, strict=True):
        forest = learn(name, X, y)
        draw_panel(axes, forest, X, y)
        axes.set_title(name, fontsize="medium")
    panels[0].set_ylabel("y")
    handles, labels = panels[0].get_legend_handles_labels()
    order = [3, 2, 4, 1, 0]  # samples and truth first; the panels draw from back to front
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


PICTURES = {"gap": gap_picture}
SOURCES = ()
