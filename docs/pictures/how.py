"""Draws the pictures of `how-it-works.md`, with `onlineforest.plot` where it can.

Those of order-free forests are in `pairs.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from onlineforest import MondrianForestClassifier, plot

from . import law, pairs, panels
from .panels import BLUE, GREEN, ORANGE, Floats, draw_points, ring, tidy

N_TREES = 2000  # per curve, where distributions are compared


def one_tree(X: Floats, y: Any, seed: int, **parameters: Any) -> MondrianForestClassifier:
    """A forest of one tree with even weights."""
    parameters = {"feature_weights": None, "leaf_discount": 0.0, **parameters}
    return MondrianForestClassifier(1, random_state=seed, **parameters).fit(X, y)


def tree_picture() -> Figure:
    """A partition of the plane and its tree."""
    X, y = draw_points(12)
    forest = one_tree(X, y, seed=13)
    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.partition(forest, X, y, ax=left)
    tidy(left, "the cuts in the plane")
    plot.tree(forest, ax=right)
    right.set_title("the same cuts as a tree", fontsize="medium")
    return figure


def online_picture() -> Figure:
    """A tree that learns three more points, one after the other."""
    X, y = draw_points(9)
    more = np.array([[0.501, 0.164], [0.95, 0.95], [0.374, 0.585]])
    labels = [1, 2, 2]
    figure = Figure(figsize=(11.0, 3.2), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    forest = one_tree(X, y, seed=20)
    titles = ["nine points", "inside: no cut", "far outside: a new root", "between: a new block"]
    for i, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        plot.partition(forest, np.vstack([X, more[:i]]), [*y, *labels[:i]], ax=axes)
        if i:
            ring(axes, more[i - 1])
        tidy(axes, title)
        if i < len(more):
            forest.partial_fit(more[i : i + 1], labels[i : i + 1])
    panels[0].set(xlim=(0.0, 1.02), ylim=(0.0, 1.05))
    return figure


def distribution_picture() -> Figure:
    """Distributions of first split time and number of leaves, for three orders of learning."""
    X, y = draw_points(30)
    schedules: dict[str, dict[str, Any]] = {
        "one by one": {"order": range(30), "step": 1},
        "one by one, backwards": {"order": range(29, -1, -1), "step": 1},
        "at once": {"order": range(30), "step": 30},
    }
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for seed, ((name, schedule), colour) in enumerate(
        zip(schedules.items(), (BLUE, GREEN, ORANGE), strict=True)
    ):
        order = list(schedule["order"])
        forest = MondrianForestClassifier(
            N_TREES, feature_weights=None, leaf_discount=0.0, random_state=seed
        )
        for start in range(0, 30, schedule["step"]):
            rows = order[start : start + schedule["step"]]
            forest.partial_fit(X[rows], y[rows], classes=[0, 1, 2] if start == 0 else None)
        trees = list(forest.trees_)
        times = np.sort([tree.split_time[tree.root] for tree in trees])
        left.plot(times, np.linspace(0, 1, N_TREES), color=colour, lw=1.6, label=name)
        n_leaves = np.bincount([int(tree.is_leaf.sum()) for tree in trees], minlength=20)
        right.plot(n_leaves / N_TREES, ".-", color=colour, lw=1.2, ms=7)
    left.set(xlabel="time of the first cut", ylabel="share of trees", xlim=(0, 4))
    right.set(xlabel="number of leaves", ylabel="share of trees", xlim=(2, 19), ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, loc="lower right")
    return figure


def smoothing_picture() -> Figure:
    """Probabilities and novelty along a line, for one tree and for a forest."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(-3.2, -0.8, 40), rng.uniform(0.8, 3.2, 40)])[:, np.newaxis]
    y = (np.floor(X[:, 0] + 2.0) % 4 < 2).astype(
        int
    )  # the class changes in the middle of each cloud
    x = np.linspace(-6.0, 6.0, 601)
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for n_trees, colour, name in ((1, "0.65", "one tree"), (200, BLUE, "a forest")):
        forest = MondrianForestClassifier(n_trees, feature_weights="range", random_state=1)
        forest.fit(X, y)
        above.plot(x, forest.predict_proba(x[:, np.newaxis])[:, 1], color=colour, label=name)
        below.plot(x, forest.novelty(x[:, np.newaxis]), color=colour)
    for label, colour in ((0, GREEN), (1, ORANGE)):
        where = X[y == label, 0]
        above.plot(where, np.full(len(where), 0.03 + 0.94 * label), "|", color=colour, ms=9)
    above.axhline(0.5, color="0.8", lw=1, zorder=0)
    above.set(ylabel="probability of class 1", ylim=(0, 1))
    below.set(ylabel="novelty", xlabel="x", ylim=(0, 1), xlim=(-6, 6))
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    above.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.72))
    return figure


def weights_picture() -> Figure:
    """Partitions with even and with learned weights, where the second feature is irrelevant."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (400, 2))
    y = np.sin(9 * X[:, 0]) > 0
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, weights in zip(panels, ("range", "learned"), strict=True):
        forest = one_tree(X, y, seed=4, feature_weights=weights)
        plot.partition(forest, X, y, ax=axes)
        share = forest.feature_weights_ / forest.feature_weights_.sum()
        tidy(axes, f'"{weights}": {share[0]:.1%} of the cuts are across x')
    return figure


def forget_picture() -> Figure:
    """A tree before and after it forgets a point."""
    X, y = draw_points(12)
    X, y = np.vstack([X, [[0.95, 0.95]]]), np.append(y, 2)
    forest = one_tree(X, y, seed=4)
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    before, after = figure.subplots(1, 2, sharex=True, sharey=True)
    plot.partition(forest, X, y, ax=before)
    ring(before, X[-1])
    tidy(before, "with the point in the corner")
    forest.forget(X[-1:], y[-1:])
    plot.partition(forest, X[:-1], y[:-1], ax=after)
    tidy(after, "forgotten")
    before.set(xlim=(0.0, 1.02), ylim=(0.0, 1.05))
    return figure


PICTURES = {
    **pairs.PICTURES,
    "tree": tree_picture,
    "online": online_picture,
    "distribution": distribution_picture,
    "smoothing": smoothing_picture,
    "weights": weights_picture,
    "forget": forget_picture,
}
SOURCES = tuple(Path(module.__file__) for module in (law, pairs, panels))
