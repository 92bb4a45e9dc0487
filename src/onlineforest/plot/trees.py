"""The picture of a tree on its axis of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.trees import ClassificationTree, MondrianTree, RegressionTree
from onlineforest.plot.base import (
    DARK,
    LIGHT,
    MIDDLE,
    MOST_IN_LEGEND,
    axes_or_new,
    check_count,
    check_forest,
    check_tree,
    class_colours,
    name_classes,
    printable,
    raw_feature_names,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onlineforest.plot.base import Forest

MOST_ENDS = 10  # of a tree whose depth nobody limited
MOST_ROWS = 3  # classes told of below an end
ROW_HEIGHT = 10.0  # points

Row = tuple[str, Any]  # a text below an end, and its colour


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
    regressor, their number n and what the leaf predicts in the middle of its box. (Of what is left
    out n alone: a trend is part of each prediction, and in a wide box its middle tells little.)

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        The forest.
    tree : int, default=0
        The index of the tree.
    max_depth : int, default=None
        How many cuts to draw below one another. What is below is left out, marked by a triangle,
        and summed up. None draws as many as there is room for, with 10 ends at most.
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
    labels = _cut_labels(sketch, raw_feature_names(forest))
    if isinstance(nodes, ClassificationTree):
        assert isinstance(forest, MondrianForestClassifier)
        rows = _class_counts(sketch, nodes, forest.classes_)
    else:
        assert isinstance(forest, MondrianForestRegressor)
        rows = _means(sketch, nodes, forest)
    axes = axes_or_new(ax, _tree_size(labels, rows))
    _draw_lines(axes, sketch)
    _label_cuts(axes, sketch, labels)
    _label_ends(axes, sketch, rows)
    if isinstance(forest, MondrianForestClassifier) and len(forest.classes_) <= MOST_IN_LEGEND:
        name_classes(axes, forest.classes_, dict, title="samples of class")
    _finish_tree(axes, sketch, max(map(len, rows)))
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
        name = wrap(shortened(names[tree.split_dimension[j]]), 14)
        lines = [*map(printable, name), f"≤ {_short(tree.split_location[j])}"]
        labels.append("\n".join(lines))
    return labels


def _short(number: float) -> str:
    """Four digits, and no power of ten where whole numbers are as short."""
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e7 else f"{number:.4g}"


def _tree_size(labels: list[str], rows: list[list[Row]]) -> tuple[float, float]:
    """Width and height in inches that give each column room for its label."""
    above = max((len(line) for label in labels for line in label.split("\n")), default=0)
    below = max(len(text) for of_end in rows for text, _ in of_end)
    column = max(0.5, 0.1 + 0.07 * above, 0.1 + 0.085 * below)
    return min(max(5.0, 2.0 + column * len(rows)), 60.0), 5.5


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


def _class_counts(
    sketch: Sketch, tree: ClassificationTree, classes: NDArray[Any]
) -> list[list[Row]]:
    """For each end, how many samples of which class it has."""
    colours = 0.75 * class_colours(len(classes))  # dark enough for letters
    leaves = np.flatnonzero(tree.is_leaf)
    counts = np.zeros((len(sketch.ends), len(classes)), dtype=np.int64)
    np.add.at(counts, np.rint(sketch.x[sketch.owner[leaves]]).astype(np.intp), tree.count[leaves])
    in_legend = len(classes) <= MOST_IN_LEGEND
    rows: list[list[Row]] = []
    for of_end in counts:
        codes = np.argsort(-of_end, kind="stable")[: np.count_nonzero(of_end)]
        names = ["" if in_legend else f"{printable(classes[code], 8)}: " for code in codes]
        rows.append(
            [
                (f"{name}{of_end[code]}", colours[code])
                for name, code in zip(names[:MOST_ROWS], codes, strict=False)
            ]
        )
        if len(codes) > MOST_ROWS:
            rows[-1].append((f"+{len(codes) - MOST_ROWS} classes", MIDDLE))
    return rows


def _means(
    sketch: Sketch, tree: RegressionTree, forest: MondrianForestRegressor
) -> list[list[Row]]:
    """For each end, how many samples it has, and of leaves the mean."""
    ends = sketch.ends
    middles = np.ascontiguousarray(0.5 * tree.lower[ends] + 0.5 * tree.upper[ends])
    means = forest._forest.trend(middles) + forest._forest.scale * tree.mean[ends]
    rows: list[list[Row]] = [[(f"n = {n_points:,}", MIDDLE)] for n_points in tree.n_points[ends]]
    for row, mean, is_leaf in zip(rows, means, tree.is_leaf[ends], strict=True):
        # Below others the trend varies with the samples, and its middle is not their mean.
        if is_leaf:
            row.append((_short(mean), DARK))
    return rows


def _label_ends(axes: Axes, sketch: Sketch, rows: list[list[Row]]) -> None:
    for j, of_end in zip(sketch.ends, rows, strict=True):
        for i, (text, colour) in enumerate(of_end):
            axes.annotate(
                text,
                (sketch.x[j], 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(0.0, -4.0 - ROW_HEIGHT * i),
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
