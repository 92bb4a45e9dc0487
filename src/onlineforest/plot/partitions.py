"""Picture of the boxes and cuts of a tree of two features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.trees import MondrianTree
from onlineforest.plot.checks import Forest, check_forest, check_tree, feature_names
from onlineforest.plot.figures import COLOUR_MAP, DARK, axes_or_new
from onlineforest.plot.points import (
    Points,
    check_points,
    draw_points,
    medoids,
    name_classes,
    root_box,
    with_margin,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def partition(
    forest: Forest,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    tree: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the partition of the plane by a tree of two features.

    As in figures 1 and 2 of the paper: a grey box around the samples of each node, and a line for
    each cut, which ends at the box. Earlier cuts are thicker.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A forest of two features.
    X : array-like of shape (n_samples, 2), default=None
        Samples to draw as points, such as those the forest has learned.
    y : array-like of shape (n_samples,), default=None
        Their labels or values, which determine their colours.
    tree : int, default=0
        The index of the tree.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(1, random_state=0).fit(X[:, 2:], y)
    >>> ax = plot.partition(forest, X[:, 2:], y)
    >>> ax.figure.savefig("partition.png")
    """
    check_forest(forest)
    if forest.n_features_in_ != 2:
        raise ValueError(
            f"A partition can be drawn for 2 features. This forest has {forest.n_features_in_}."
        )
    nodes = check_tree(forest, tree)
    points = check_points(forest, X, y)
    axes = axes_or_new(ax)
    _draw_boxes(axes, nodes)
    _draw_cuts(axes, nodes)
    names = feature_names(forest)
    axes.set(xlabel=names[0], ylabel=names[1])
    _limit_to(axes, nodes, points)
    if points is not None:
        _draw_samples(axes, points, forest)
    return axes


def _draw_boxes(axes: Axes, tree: MondrianTree) -> None:
    from matplotlib.collections import PolyCollection

    order = np.argsort(tree.depth, kind="stable")
    (x0, y0), (x1, y1) = tree.lower[order].T, tree.upper[order].T
    corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    # Nested boxes add up: the opacity bounds the darkness of the innermost box.
    opacity = min(0.12, 1.0 - 0.5 ** (1.0 / (1 + int(tree.depth.max()))))
    axes.add_collection(
        PolyCollection(
            list(corners),
            facecolors=[(0.4, 0.4, 0.4, opacity)],
            edgecolors=[(0.3, 0.3, 0.3, 0.4)],
            linewidths=0.5,
            linestyles=":",
            zorder=1,
        ),
        autolim=False,
    )


def _draw_cuts(axes: Axes, tree: MondrianTree) -> None:
    from matplotlib.collections import LineCollection

    inner = np.flatnonzero(~tree.is_leaf)
    ends = np.stack([tree.lower[inner], tree.upper[inner]], axis=1)
    ends[np.arange(len(inner)), :, tree.split_dimension[inner]] = tree.split_location[inner, None]
    widths = 0.5 + 1.3 / (1.0 + tree.depth[inner])
    axes.add_collection(
        LineCollection(list(ends), colors=DARK, linewidths=widths, zorder=2, capstyle="butt"),
        autolim=False,
    )


def _limit_to(axes: Axes, tree: MondrianTree, points: Points | None) -> None:
    """Set the limits to include all boxes and points."""
    lower, upper = root_box(tree)
    if points is not None:
        lower = np.minimum(lower, points.rows.min(axis=0))
        upper = np.maximum(upper, points.rows.max(axis=0))
    low, high = with_margin(lower, upper, 0.04)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _draw_samples(axes: Axes, points: Points, forest: Forest) -> None:
    """Draw the points, and a legend of their colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if points.values is not None:
        norm = Normalize(points.values.min(), points.values.max())
        draw_points(axes, points, forest, norm)
        axes.figure.colorbar(ScalarMappable(norm, COLOUR_MAP), ax=axes, label="y")
        return
    draw_points(axes, points, forest)
    if points.codes is not None and isinstance(forest, MondrianForestClassifier):
        shown = np.unique(points.codes)
        name_classes(
            axes,
            forest.classes_,
            lambda: medoids(points),
            shown=shown[shown >= 0],
            unknown=bool((shown < 0).any()),
        )
