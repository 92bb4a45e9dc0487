"""Picture of the splits of a tree of two features, and of its boxes if it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.trees import MondrianTree, OnlineTree
from onlineforest.plot.checks import (
    Forest,
    categorical_names,
    check_forest,
    check_tree,
    feature_names,
    numeric_features,
)
from onlineforest.plot.figures import COLOUR_MAP, DARK, axes_or_new
from onlineforest.plot.points import (
    Points,
    check_points,
    draw_points,
    limits_of,
    medoids,
    name_classes,
    sample_box,
    with_margin,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Corners = NDArray[np.floating[Any]]


def partition(
    forest: Forest,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    tree: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the partition of the plane by a tree of two numeric features.

    For a Mondrian forest, the picture is as in figures 1 and 2 of the paper: a grey box around the
    samples of each node, and a line for each split, which ends at the box. The nodes of an
    order-free forest have no boxes: each line ends at the splits above it. Splits nearer to the
    root are thicker. A split that asks whether a feature is missing has no line, nor have the
    splits below it that only samples without the feature reach.

    Parameters
    ----------
    forest : OnlineForestClassifier, OnlineForestRegressor or MondrianForestClassifier
        A forest of two features, neither of which is categorical.
    X : array-like of shape (n_samples, 2), default=None
        Samples to draw as points, such as those the forest has learned. Those with a missing value
        are not drawn.
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
    >>> from onlineforest import OnlineForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OnlineForestClassifier(1, random_state=0).fit(X[:, 2:], y)
    >>> ax = plot.partition(forest, X[:, 2:], y)
    >>> ax.figure.savefig("partition.png")
    """
    check_forest(forest)
    if forest.n_features_in_ != 2 or len(numeric_features(forest)) != 2:
        categorical = categorical_names(forest)
        raise ValueError(
            f"A partition can be drawn for 2 {'numeric ' if categorical else ''}features. This "
            f"forest has {forest.n_features_in_}"
            + (f", of which these are categorical: {categorical}." if categorical else ".")
        )
    nodes = check_tree(forest, tree)
    points = check_points(forest, X, y)
    axes = axes_or_new(ax)
    low, high = _limits(forest, points)
    lower: Corners
    upper: Corners
    splits = np.flatnonzero(~nodes.is_leaf)
    if isinstance(nodes, OnlineTree):
        lower, upper, are_in_plane = _cells(nodes, low, high)
        splits = splits[are_in_plane[splits] & np.isfinite(nodes.split_location[splits])]
    else:
        lower, upper = nodes.lower, nodes.upper
        _draw_boxes(axes, nodes)
    _draw_splits(axes, nodes, splits, lower, upper)
    names = feature_names(forest)
    axes.set(xlabel=names[0], ylabel=names[1], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    if points is not None:
        _draw_samples(axes, points.in_plane([0, 1]), forest)
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


def _cells(
    tree: OnlineTree, low: Corners, high: Corners
) -> tuple[Corners, Corners, NDArray[np.bool_]]:
    """Lower and upper corners of the part of a rectangle that belongs to each node.

    The third array marks the nodes that have one: the others hold only samples that lack a feature.
    """
    lower, upper = np.tile(low, (tree.n_nodes, 1)), np.tile(high, (tree.n_nodes, 1))
    are_in_plane = np.ones(tree.n_nodes, dtype=np.bool_)
    for j in np.flatnonzero(~tree.is_leaf):  # parents come first
        left, right, d = tree.left[j], tree.right[j], tree.split_dimension[j]
        lower[[left, right]], upper[[left, right]] = lower[j], upper[j]
        are_in_plane[[left, right]] = are_in_plane[j]
        if np.isfinite(tree.split_location[j]):
            upper[left, d] = lower[right, d] = tree.split_location[j]
        else:  # all samples that have the feature go left
            are_in_plane[right] = False
    return lower, upper, are_in_plane


def _draw_splits(
    axes: Axes,
    tree: MondrianTree | OnlineTree,
    splits: NDArray[np.intp],
    lower: Corners,
    upper: Corners,
) -> None:
    """Draw the lines of some splits; each ends at the given rectangle of its node."""
    from matplotlib.collections import LineCollection

    ends = np.stack([lower[splits], upper[splits]], axis=1)
    ends[np.arange(len(splits)), :, tree.split_dimension[splits]] = tree.split_location[
        splits, None
    ]
    widths = 0.5 + 1.3 / (1.0 + tree.depth[splits])
    axes.add_collection(
        LineCollection(list(ends), colors=DARK, linewidths=widths, zorder=2, capstyle="butt"),
        autolim=False,
    )


def _limits(forest: Forest, points: Points | None) -> tuple[Corners, Corners]:
    """Lower and upper corner of the picture, which includes all stored samples and points."""
    lower, upper = sample_box(forest)
    if points is not None:
        lowest, highest = limits_of(points.rows)
        lower, upper = np.fmin(lower, lowest), np.fmax(upper, highest)
    return with_margin(lower, upper, 0.04)


def _draw_samples(axes: Axes, points: Points | None, forest: Forest) -> None:
    """Draw the points, and a legend of their colours."""
    if points is None:
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if points.values is not None:
        norm = Normalize(points.values.min(), points.values.max())
        draw_points(axes, points, forest, norm)
        axes.figure.colorbar(ScalarMappable(norm, COLOUR_MAP), ax=axes, label="y")
        return
    draw_points(axes, points, forest)
    if points.codes is not None and isinstance(forest, BaseClassifier):
        shown = np.unique(points.codes)
        name_classes(
            axes,
            forest.classes_,
            lambda: medoids(points),
            shown=shown[shown >= 0],
            unknown=bool((shown < 0).any()),
        )
