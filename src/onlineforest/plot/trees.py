"""Picture of a tree over its split times or, if it has none, over its depth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.trees import (
    MondrianTree,
    OnlineClassificationTree,
    OnlineRegressionTree,
    OnlineTree,
    TreeArrays,
)
from onlineforest._inputs.levels import Level, in_order
from onlineforest._inputs.rows import MixedRows, RowFormat
from onlineforest.plot.checks import (
    Forest,
    check_count,
    check_forest,
    check_tree,
    raw_feature_names,
)
from onlineforest.plot.figures import (
    DARK,
    LIGHT,
    MIDDLE,
    axes_or_new,
    class_colours,
    level_name,
    printable,
    shortened,
)
from onlineforest.plot.points import MAX_CLASSES_IN_LEGEND, name_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ENDS = 10  # ends drawn if `max_depth` is None
MAX_ROWS = 3  # classes listed below an end
MAX_LEVELS, MAX_LEVEL_LINES = 3, 2  # listed at a split; more are counted
SPLIT_WIDTH, LEVEL_WIDTH = 14, 12  # in characters
ROW_HEIGHT = 10.0  # in points

Row = tuple[str, Any]  # a text below an end, and its colour
Levels = frozenset[Level]


def tree(
    forest: Forest,
    *,
    tree: int = 0,
    max_depth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree: the height of a node is its split time or, in an order-free forest, its depth.

    Samples for which the text at a split is true go left: those with a value of at most the split
    location, or all whose feature is not missing. The picture does not show where other splits send
    missing values.

    A split on a categorical feature names the levels that go left, as in "carrier: AA, UA", or, if
    they are fewer, those that go right, as in "carrier: all but AA". If both are many, it counts
    those that go left, as in "carrier: 7 of 16 levels". Only the levels of stored samples that
    reach the split are named or counted; "missing" is the level of missing values. Text that could
    be mistaken for something else is in quotation marks.

    The line of a leaf of a Mondrian forest ends at the lifetime, or continues dotted if that is
    infinite. The line of a leaf of an order-free forest ends at the depth of the leaf; a dotted
    line leads to what is written below.

    Below a leaf or an omitted subtree are the counts of its samples per class or, for a regressor,
    their number n and the mean of y.

    Parameters
    ----------
    forest : OnlineForestClassifier, OnlineForestRegressor or MondrianForestClassifier
        The forest.
    tree : int, default=0
        The index of the tree.
    max_depth : int, default=None
        Maximum depth of the nodes to draw. A triangle marks an omitted subtree, whose samples are
        counted. None chooses the largest depth with at most 10 ends.
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
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = OnlineForestClassifier(1, random_state=0).fit(X, y)
    >>> ax = plot.tree(forest, max_depth=3)
    >>> ax.figure.savefig("tree.png")
    """
    check_forest(forest)
    nodes = check_tree(forest, tree)
    if max_depth is None:
        max_depth = _depth_with_room(nodes)
    else:
        max_depth = check_count(max_depth, "max_depth", 0)
    layout = TreeLayout.of(nodes, max_depth)
    labels = _split_labels(layout, forest)
    if isinstance(nodes, OnlineRegressionTree):
        assert not isinstance(forest, BaseClassifier)
        rows = _means(layout, nodes)
    else:
        assert isinstance(forest, BaseClassifier)
        assert isinstance(nodes, MondrianTree | OnlineClassificationTree)
        rows = _class_counts(layout, nodes, forest.classes_)
    axes = axes_or_new(ax, _tree_size(labels, rows))
    _draw_lines(axes, layout)
    _label_splits(axes, layout, labels)
    _label_ends(axes, layout, rows)
    if isinstance(forest, BaseClassifier) and len(forest.classes_) <= MAX_CLASSES_IN_LEGEND:
        name_classes(axes, forest.classes_, dict, title="samples of class")
    _finish_tree(axes, layout, max(map(len, rows)))
    return axes


def _depth_with_room(tree: TreeArrays) -> int:
    """The largest depth at which the tree has at most `MAX_ENDS` ends."""
    depth, is_leaf = tree.depth, tree.is_leaf
    for limit in range(1, int(depth.max()) + 1):
        n_ends = np.count_nonzero((depth == limit) | (is_leaf & (depth < limit)))
        if n_ends > MAX_ENDS:
            return limit - 1
    return int(depth.max())


@dataclass(frozen=True)
class TreeLayout:
    """The upper part of a tree and its layout: a column per end, time or depth downwards."""

    tree: MondrianTree | OnlineTree
    splits: list[int]  # nodes drawn with their split
    ends: list[int]  # other nodes drawn, from left to right
    owner: NDArray[np.intp]  # the end above each omitted node; otherwise the node itself
    x: NDArray[np.float64]
    height: NDArray[np.float64]  # where the line of each node ends
    axis: HeightAxis

    @classmethod
    def of(cls, tree: MondrianTree | OnlineTree, max_depth: int) -> Self:
        """Layout of the nodes down to a depth."""
        depth, is_leaf = tree.depth, tree.is_leaf
        order, waiting = [], [tree.root]
        while waiting:
            j = waiting.pop()
            order.append(j)
            if depth[j] < max_depth and not is_leaf[j]:
                waiting += [int(tree.right[j]), int(tree.left[j])]
        is_end = is_leaf | (depth >= max_depth)
        splits, ends = [j for j in order if not is_end[j]], [j for j in order if is_end[j]]
        x = np.full(tree.n_nodes, np.nan)
        x[ends] = np.arange(len(ends))
        first_end = dict(zip(ends, range(len(ends)), strict=True))
        for j in reversed(splits):  # children come before their parents
            # Halfway between the ends to its left and right, so that no two splits share a place.
            x[j] = first_end[int(tree.right[j])] - 0.5
            first_end[j] = first_end[int(tree.left[j])]
        owner = np.where(depth > max_depth, tree.parent, np.arange(tree.n_nodes))
        while (depth[owner] > max_depth).any():
            owner = owner[owner]  # doubles the number of levels climbed
        if isinstance(tree, OnlineTree):
            height = depth.astype(np.float64)
            axis = HeightAxis("depth", -0.6, float(depth[order].max()) + 0.6)
        else:
            times = tree.split_time[[j for j in order if not is_leaf[j]]]
            last, axis = _time_axis(times, tree.split_time[is_leaf][0])
            height = np.where(is_leaf, last if axis.is_open else axis.bottom, tree.split_time)
        return cls(tree, splits, ends, owner, x, height, axis)

    @property
    def n_left_out(self) -> int:
        """Number of nodes that are not drawn."""
        return self.tree.n_nodes - len(self.splits) - len(self.ends)

    @property
    def hidden(self) -> list[int]:
        """The ends whose subtrees are omitted."""
        return [j for j in self.ends if self.tree.split_dimension[j] >= 0]


@dataclass(frozen=True)
class HeightAxis:
    """The vertical axis of a tree."""

    label: str
    top: float
    bottom: float
    is_open: bool = True  # the bottom ends the picture, not the lives of leaves
    is_log: bool = False


def _time_axis(times: NDArray[np.float64], lifetime: float) -> tuple[float, HeightAxis]:
    """The latest split time, or where the line of an open leaf ends, and the axis."""
    label = "split time"
    if len(times) == 0:
        is_open = not 0 < lifetime < math.inf
        return 0.8, HeightAxis(label, 0.0, 1.0 if is_open else lifetime, is_open)
    first, last = float(times.min()), float(times.max())
    is_open = lifetime > 100.0 * last
    stop = last if is_open else float(lifetime)
    if first > 0 and stop > 8.0 * first:  # split times grow by factors as boxes shrink
        bottom = last * (last / first) ** 0.1 if is_open else stop
        return last, HeightAxis(label, first / 1.5, bottom, is_open, is_log=True)
    return last, HeightAxis(label, 0.0, 1.1 * last if is_open else stop, is_open)


def _draw_lines(axes: Axes, layout: TreeLayout) -> None:
    """Draw lines down to splits and ends, lines across at splits, triangles at omitted subtrees."""
    from matplotlib.collections import LineCollection

    tree, x, height, axis = layout.tree, layout.x, layout.height, layout.axis
    solid, dotted = [], []
    for j, is_end in [(j, False) for j in layout.splits] + [(j, True) for j in layout.ends]:
        start = axis.top if tree.parent[j] < 0 else float(height[tree.parent[j]])
        stop = float(height[j])
        solid.append([(x[j], start), (x[j], stop)])
        if is_end and stop < axis.bottom:
            dotted.append([(x[j], stop), (x[j], axis.bottom)])
    for j in layout.splits:
        across = float(height[j])
        solid.append([(x[tree.left[j]], across), (x[tree.right[j]], across)])
    axes.add_collection(LineCollection(solid, colors=DARK, linewidths=1.0), autolim=False)
    axes.add_collection(
        LineCollection(dotted, colors=MIDDLE, linewidths=1.0, linestyles=":"), autolim=False
    )
    hidden = layout.hidden
    axes.plot(x[hidden], height[hidden], "v", mfc="white", mec=DARK, ms=8, zorder=3)


def _split_labels(layout: TreeLayout, forest: Forest) -> list[str]:
    """The condition for going left at each split, in lines short enough for a column."""
    tree, names = layout.tree, raw_feature_names(forest)
    sides = _levels_at_cuts(layout, forest._rows)
    offsets = forest._rows.offset_list() or [0.0] * len(names)
    labels = []
    for j in layout.splits:
        name = wrap(shortened(names[tree.split_dimension[j]]), SPLIT_WIDTH)
        location, offset = float(tree.split_location[j]), offsets[tree.split_dimension[j]]
        if j in sides:
            name[-1:] = [f"{name[-1]}:" if name else ":"]
            condition = _level_lines(*sides[j])
        else:
            condition = [
                f"≤ {_short(location, offset)}" if math.isfinite(location) else "not missing"
            ]
        labels.append("\n".join([*map(printable, name), *map(printable, condition)]))
    return labels


def _levels_at_cuts(layout: TreeLayout, rows: RowFormat) -> dict[int, tuple[Levels, Levels]]:
    """For each cut on a categorical feature the levels that reach it and go left, and right."""
    tree = layout.tree
    if not isinstance(rows, MixedRows) or not isinstance(tree, OnlineTree):
        return {}
    known = {
        column: frozenset(levels.names())
        for column, levels in zip(rows.columns, rows.levels, strict=True)
    }
    reaching = {tree.root: known}
    sides = {}
    for j in layout.splits:  # parents come first
        here, feature = reaching.pop(j), int(tree.split_dimension[j])
        at_left = at_right = here
        if feature in here:
            left = here[feature].intersection(tree.split_levels[j])
            right = here[feature] - left
            sides[j] = left, right
            at_left, at_right = here | {feature: left}, here | {feature: right}
        reaching[int(tree.left[j])], reaching[int(tree.right[j])] = at_left, at_right
    return sides


def _level_lines(left: Levels, right: Levels) -> list[str]:
    """Names of the levels that go left, or of those that go right; numbers if both are many."""
    is_left = len(left) <= len(right)
    named = left if is_left else right
    if 1 <= len(named) <= MAX_LEVELS:
        words = [level_name(level, LEVEL_WIDTH) for level in in_order(named)]
        words[:-1] = [f"{word}," for word in words[:-1]]
        lines = _lines_of(words if is_left else ["all but", *words])
        if len(lines) <= MAX_LEVEL_LINES:
            return lines
    n_levels = len(left) + len(right)
    return _lines_of([f"{len(left):,} of {n_levels:,}", "levels"])


def _lines_of(words: list[str]) -> list[str]:
    """Words in lines. Unlike `wrap`, never breaks a word that contains spaces."""
    lines = words[:1]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= SPLIT_WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _short(number: float, offset: float = 0.0) -> str:
    """A number with four digits, or an integer if that is as short as a power of ten.

    A number with an offset has more digits, so that four digits of the difference are shown.
    """
    if offset:
        digits = 4 + math.ceil(max(0.0, math.log10(abs(offset) / abs(number - offset or 1.0))))
        return f"{number:,.{digits}g}"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e7 else f"{number:.4g}"


def _tree_size(labels: list[str], rows: list[list[Row]]) -> tuple[float, float]:
    """Width and height in inches so that the labels fit the columns."""
    above = max((len(line) for label in labels for line in label.split("\n")), default=0)
    below = max(len(text) for of_end in rows for text, _ in of_end)
    column = max(0.5, 0.1 + 0.07 * above, 0.1 + 0.085 * below)
    return min(max(5.0, 2.0 + column * len(rows)), 60.0), 5.5


def _label_splits(axes: Axes, layout: TreeLayout, labels: list[str]) -> None:
    for j, label in zip(layout.splits, labels, strict=True):
        axes.text(
            layout.x[j],
            layout.height[j],
            label,
            ha="center",
            va="center",
            fontsize=7,
            linespacing=1.1,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": LIGHT, "lw": 0.5},
            zorder=4,
        )


def _class_counts(
    layout: TreeLayout, tree: MondrianTree | OnlineClassificationTree, classes: NDArray[Any]
) -> list[list[Row]]:
    """For each end, the counts of its samples per class."""
    colours = 0.75 * class_colours(len(classes))  # dark enough for text
    leaves = np.flatnonzero(tree.is_leaf)
    counts = np.zeros((len(layout.ends), len(classes)))
    np.add.at(counts, np.rint(layout.x[layout.owner[leaves]]).astype(np.intp), tree.count[leaves])
    in_legend = len(classes) <= MAX_CLASSES_IN_LEGEND
    rows: list[list[Row]] = []
    for of_end in counts:
        codes = np.argsort(-of_end, kind="stable")[: np.count_nonzero(of_end)]
        names = ["" if in_legend else f"{printable(classes[code], 8)}: " for code in codes]
        rows.append(
            [
                (f"{name}{of_end[code]:.10g}", colours[code])
                for name, code in zip(names[:MAX_ROWS], codes, strict=False)
            ]
        )
        if len(codes) > MAX_ROWS:
            rows[-1].append((f"+{len(codes) - MAX_ROWS} classes", MIDDLE))
    return rows


def _means(layout: TreeLayout, tree: OnlineRegressionTree) -> list[list[Row]]:
    """For each end, the number of its samples and their mean."""
    return [
        [(f"n = {tree.weight[j]:,.10g}", MIDDLE), (_short(float(tree.mean[j])), DARK)]
        for j in layout.ends
    ]


def _label_ends(axes: Axes, layout: TreeLayout, rows: list[list[Row]]) -> None:
    for j, of_end in zip(layout.ends, rows, strict=True):
        for i, (text, colour) in enumerate(of_end):
            axes.annotate(
                text,
                (layout.x[j], 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(0.0, -4.0 - ROW_HEIGHT * i),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=8,
                color=colour,
                annotation_clip=False,
            )


def _finish_tree(axes: Axes, layout: TreeLayout, n_rows: int) -> None:
    axis = layout.axis
    if axis.is_log:
        axes.set_yscale("log")
        _plain_ticks(axes, axis.bottom / axis.top)
    elif not layout.splits and axis.is_open:
        axes.set_yticks([0.0])  # no node has a split time
    elif isinstance(layout.tree, OnlineTree):
        axes.locator_params(axis="y", integer=True)
    axes.set(xlim=(-0.7, len(layout.ends) - 0.3), ylim=(axis.bottom, axis.top), ylabel=axis.label)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    if not axis.is_open:
        axes.axhline(axis.bottom, color=DARK, lw=1.5, clip_on=False)
    if layout.n_left_out:
        axes.set_xlabel(
            f"triangles: {layout.n_left_out:,} of {layout.tree.n_nodes:,} nodes left out",
            fontsize=8,
            labelpad=6.0 + ROW_HEIGHT * n_rows,
        )


def _plain_ticks(axes: Axes, ratio: float) -> None:
    """Write times as numbers, not as powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 1000.0 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda time, _: f"{time:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
