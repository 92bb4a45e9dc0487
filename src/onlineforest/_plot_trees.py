"""Pictures of one tree: the boxes and cuts in the plane, and the cuts on the axis of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._classifier import MondrianForestClassifier
from onlineforest._plot_base import (
    DARK,
    LIGHT,
    MIDDLE,
    MOST_IN_LEGEND,
    VALUES,
    Points,
    axes_or_new,
    check_count,
    check_forest,
    check_points,
    check_tree,
    class_colours,
    draw_points,
    feature_names,
    medoids,
    name_classes,
    printable,
    root_box,
    with_margin,
)
from onlineforest._regressor import MondrianForestRegressor
from onlineforest._trees import ClassificationTree, MondrianTree, RegressionTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onlineforest._plot_base import Forest

MOST_ENDS = 16  # of a tree whose depth nobody limited
MOST_ROWS = 3  # classes named below an end
ROW_HEIGHT = 10.0  # points


# The partition


def partition(
    forest: Forest,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    tree: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw how a tree of two features parts the plane.

    As in the paper's figures 1 and 2: a grey box around the samples of each node, and a line for
    each cut, which ends at the box. Earlier cuts are thicker.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A forest of two features.
    X : array-like of shape (n_samples, 2), default=None
        Samples to draw as points, such as those the forest has learned.
    y : array-like of shape (n_samples,), default=None
        Their labels or values, which give them colours.
    tree : int, default=0
        The index of the tree.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

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
    # Boxes lie within boxes: the innermost of the deepest tree is still not too dark.
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
    """Show all boxes and all points."""
    lower, upper = root_box(tree)
    if points is not None:
        lower = np.minimum(lower, points.rows.min(axis=0))
        upper = np.maximum(upper, points.rows.max(axis=0))
    low, high = with_margin(lower, upper, 0.04)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _draw_samples(axes: Axes, points: Points, forest: Forest) -> None:
    """The points, and what their colours mean."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if points.values is not None:
        norm = Normalize(points.values.min(), points.values.max())
        draw_points(axes, points, forest, norm)
        axes.figure.colorbar(ScalarMappable(norm, VALUES), ax=axes, label="y")
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


# The tree


def tree(
    forest: Forest,
    *,
    tree: int = 0,
    max_depth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree on its axis of time: the height of a node is when it is cut.

    Left of a cut is what is not larger. A leaf is never cut: its line ends at the lifetime, or is
    dotted on if that is infinite. Below it stand the numbers of its samples per class; of a
    regressor, its mean (in the middle of its box, the trend included) and their number.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        The forest.
    tree : int, default=0
        The index of the tree.
    max_depth : int, default=None
        How many cuts to draw below one another. What is below is left out, marked by a triangle,
        and summed up. None draws as many as there is room for, with 16 ends at most.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = MondrianForestClassifier(1, random_state=0).fit(X, y)
    >>> ax = plot.tree(forest, max_depth=3)
    >>> ax.figure.savefig("tree.png")
    """
    check_forest(forest)
    nodes = check_tree(forest, tree)
    if max_depth is None:
        max_depth = _depth_with_room(nodes)
    else:
        max_depth = check_count(max_depth, "max_depth", 0)
    sketch = Sketch.of(nodes, max_depth)
    labels = _cut_labels(sketch, feature_names(forest))
    axes = axes_or_new(ax, _tree_size(len(sketch.ends), labels))
    _draw_lines(axes, sketch)
    _label_cuts(axes, sketch, labels)
    if isinstance(forest, MondrianForestClassifier):
        assert isinstance(nodes, ClassificationTree)
        n_rows = _write_class_counts(axes, sketch, nodes, forest)
    else:
        assert isinstance(nodes, RegressionTree)
        n_rows = _write_means(axes, sketch, nodes, forest)
    _finish_tree(axes, sketch, n_rows)
    return axes


def _depth_with_room(tree: MondrianTree) -> int:
    """The largest depth at which the tree has no more than so many ends."""
    depth, is_leaf = tree.depth, tree.is_leaf
    for limit in range(1, int(depth.max()) + 1):
        n_ends = np.count_nonzero((depth == limit) | (is_leaf & (depth < limit)))
        if n_ends > MOST_ENDS:
            return limit - 1
    return int(depth.max())


@dataclass(frozen=True)
class Sketch:
    """The upper part of a tree and where to draw it: a column per end, times downwards."""

    tree: MondrianTree
    cuts: list[int]  # the nodes that are drawn with their cut
    ends: list[int]  # the others, from left to right
    owner: NDArray[np.intp]  # of each node below an end: that end; of each other, itself
    x: NDArray[np.float64]
    top: float  # of the axis of time
    last: float  # the latest time that is drawn, besides a lifetime
    bottom: float
    is_open: bool  # whether leaves go on after the bottom
    is_log: bool

    @classmethod
    def of(cls, tree: MondrianTree, max_depth: int) -> Self:
        """The nodes down to a depth."""
        depth, is_leaf = tree.depth, tree.is_leaf
        order, waiting = [], [tree.root]
        while waiting:
            j = waiting.pop()
            order.append(j)
            if depth[j] < max_depth and not is_leaf[j]:
                waiting += [int(tree.right[j]), int(tree.left[j])]
        is_end = is_leaf | (depth >= max_depth)
        cuts, ends = [j for j in order if not is_end[j]], [j for j in order if is_end[j]]
        x = np.full(tree.n_nodes, np.nan)
        x[ends] = np.arange(len(ends))
        first_end = dict(zip(ends, range(len(ends)), strict=True))
        for j in reversed(cuts):  # children come before their parents
            # Between the two ends that the cut parts, so that each cut has a place of its own.
            x[j] = first_end[int(tree.right[j])] - 0.5
            first_end[j] = first_end[int(tree.left[j])]
        owner = np.where(depth > max_depth, tree.parent, np.arange(tree.n_nodes))
        while (depth[owner] > max_depth).any():
            owner = owner[owner]  # twice as far up
        times = tree.split_time[[j for j in order if not is_leaf[j]]]
        return cls(tree, cuts, ends, owner, x, *_time_axis(times, tree.split_time[is_leaf][0]))

    @property
    def n_left_out(self) -> int:
        """Number of nodes that are not drawn."""
        return self.tree.n_nodes - len(self.cuts) - len(self.ends)

    @property
    def hidden(self) -> list[int]:
        """The ends that are cut, which is not drawn."""
        return [j for j in self.ends if self.tree.split_dimension[j] >= 0]


def _time_axis(
    times: NDArray[np.float64], lifetime: float
) -> tuple[float, float, float, bool, bool]:
    """Top, latest time, bottom, whether it is open there, whether it is logarithmic."""
    if len(times) == 0:
        is_open = not 0 < lifetime < math.inf
        return 0.0, 0.8, 1.0 if is_open else lifetime, is_open, False
    first, last = float(times.min()), float(times.max())
    is_open = lifetime > 100.0 * last
    stop = last if is_open else float(lifetime)
    if first > 0 and stop > 8.0 * first:  # boxes, and with them times, change by factors
        return first / 1.5, last, (last * (last / first) ** 0.1 if is_open else stop), is_open, True
    return 0.0, last, (1.1 * last if is_open else stop), is_open, False


def _draw_lines(axes: Axes, sketch: Sketch) -> None:
    """A line down to each cut or end, a line across for each cut, a triangle for what is hidden."""
    from matplotlib.collections import LineCollection

    tree, x = sketch.tree, sketch.x
    solid, dotted = [], []
    for j, is_end in [(j, False) for j in sketch.cuts] + [(j, True) for j in sketch.ends]:
        start = sketch.top if tree.parent[j] < 0 else float(tree.split_time[tree.parent[j]])
        if tree.split_dimension[j] >= 0:
            stop = float(tree.split_time[j])
        else:
            stop = sketch.last if sketch.is_open else sketch.bottom
        solid.append([(x[j], start), (x[j], stop)])
        if is_end and stop < sketch.bottom:
            dotted.append([(x[j], stop), (x[j], sketch.bottom)])
    for j in sketch.cuts:
        time = float(tree.split_time[j])
        solid.append([(x[tree.left[j]], time), (x[tree.right[j]], time)])
    axes.add_collection(LineCollection(solid, colors=DARK, linewidths=1.0), autolim=False)
    axes.add_collection(
        LineCollection(dotted, colors=MIDDLE, linewidths=1.0, linestyles=":"), autolim=False
    )
    hidden = sketch.hidden
    axes.plot(x[hidden], tree.split_time[hidden], "v", mfc="white", mec=DARK, ms=8, zorder=3)


def _cut_labels(sketch: Sketch, names: list[str]) -> list[str]:
    """What each cut is, in lines short enough for a column."""
    tree = sketch.tree
    labels = []
    for j in sketch.cuts:
        name = wrap(names[tree.split_dimension[j]], 14, max_lines=2, placeholder="…")
        labels.append("\n".join([*name, f"≤ {tree.split_location[j]:.4g}"]))
    return labels


def _tree_size(n_ends: int, labels: list[str]) -> tuple[float, float]:
    """Width and height in inches that give each column room for its label."""
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    return min(max(5.0, 2.0 + n_ends * max(0.5, 0.07 * longest)), 60.0), 5.5


def _label_cuts(axes: Axes, sketch: Sketch, labels: list[str]) -> None:
    for j, label in zip(sketch.cuts, labels, strict=True):
        axes.text(
            sketch.x[j],
            sketch.tree.split_time[j],
            label,
            ha="center",
            va="center",
            fontsize=7,
            linespacing=1.1,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": LIGHT, "lw": 0.5},
            zorder=4,
        )


def _write_class_counts(
    axes: Axes, sketch: Sketch, tree: ClassificationTree, forest: MondrianForestClassifier
) -> int:
    """Below each end, how many samples of which class it has; returns the rows this takes."""
    classes = forest.classes_
    colours = class_colours(len(classes))
    leaves = np.flatnonzero(tree.is_leaf)
    counts = np.zeros((tree.n_nodes, len(classes)), dtype=np.int64)
    np.add.at(counts, sketch.owner[leaves], tree.count[leaves])
    in_legend = len(classes) <= MOST_IN_LEGEND
    n_rows = 1
    for j in sketch.ends:
        codes = np.argsort(-counts[j], kind="stable")[: np.count_nonzero(counts[j])]
        for row, code in enumerate(codes[:MOST_ROWS]):
            name = "" if in_legend else f"{printable(classes[code], 8)}: "
            _write_below(axes, sketch.x[j], row, f"{name}{counts[j, code]}", 0.75 * colours[code])
        if len(codes) > MOST_ROWS:
            _write_below(axes, sketch.x[j], MOST_ROWS, f"+{len(codes) - MOST_ROWS} classes", MIDDLE)
        n_rows = max(n_rows, min(len(codes), MOST_ROWS + 1))
    if in_legend:
        shown = np.flatnonzero(tree.labels[tree.root])
        name_classes(axes, classes, dict, shown=shown, title="samples of class")
    return n_rows


def _write_means(
    axes: Axes, sketch: Sketch, tree: RegressionTree, forest: MondrianForestRegressor
) -> int:
    """Below each end, its mean and how many samples it has; returns the rows this takes."""
    ends = sketch.ends
    middles = np.ascontiguousarray(0.5 * tree.lower[ends] + 0.5 * tree.upper[ends])
    means = forest._forest.trend(middles) + forest._forest.scale * tree.mean[ends]
    for j, mean in zip(ends, means, strict=True):
        _write_below(axes, sketch.x[j], 0, f"{mean:.4g}", DARK)
        _write_below(axes, sketch.x[j], 1, f"n = {tree.n_points[j]}", MIDDLE)
    return 2


def _write_below(axes: Axes, x: float, row: int, text: str, colour: Any) -> None:
    axes.annotate(
        text,
        (x, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(0.0, -4.0 - ROW_HEIGHT * row),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=8,
        color=colour,
        annotation_clip=False,
    )


def _finish_tree(axes: Axes, sketch: Sketch, n_rows: int) -> None:
    if sketch.is_log:
        axes.set_yscale("log")
        _plain_ticks(axes, sketch.bottom / sketch.top)
    elif not sketch.cuts and sketch.is_open:
        axes.set_yticks([0.0])  # nothing has a time
    axes.set(
        xlim=(-0.7, len(sketch.ends) - 0.3), ylim=(sketch.bottom, sketch.top), ylabel="time of cut"
    )
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    if not sketch.is_open:
        axes.axhline(sketch.bottom, color=DARK, lw=1.5, clip_on=False)
    if sketch.n_left_out:
        axes.set_xlabel(
            f"triangles: {sketch.n_left_out:,} of {sketch.tree.n_nodes:,} nodes left out",
            fontsize=8,
            labelpad=6.0 + ROW_HEIGHT * n_rows,
        )


def _plain_ticks(axes: Axes, ratio: float) -> None:
    """Times as numbers, not as powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 1000.0 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda time, _: f"{time:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
