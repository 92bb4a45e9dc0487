"""The paper's figures 1 and 2, drawn from real trees. Knows no experiment and no record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from onlineforest import MondrianForestClassifier, MondrianTree

N_TREES = 10000  # candidates for a figure

# Colours of Okabe and Ito, which colour-blind readers can distinguish.
COLOURS = ("#D55E00", "#E69F00", "#0072B2", "#56B4E9", "#009E73")
BLOCK, BOX, CUT = "#555555", "0.5", "0.15"

# Two points on the left and three on the right, so that both children of the root have a box.
FIGURE_1 = np.array([[0.08, 0.42], [0.29, 0.90], [0.56, 0.10], [0.92, 0.36], [0.74, 0.84]])
# a and b; then c, far outside their box; then d, outside the box of a and b but inside that of
# a, b and c.
FIGURE_2 = np.array([[0.14, 0.12], [0.40, 0.46], [0.90, 0.84], [0.62, 0.66]])
LETTERS = "abcd"


# Search for trees that suit a figure


def grow(X: NDArray, start: int) -> Iterator[Sequence[MondrianTree]]:
    """Many trees after the first `start` points, then after each further point. Deterministic.

    Every point has its own label, so that no leaf holds more than one point.
    """
    labels = np.arange(len(X))
    forest = MondrianForestClassifier(
        N_TREES, feature_weights=None, leaf_discount=0.0, random_state=0
    ).partial_fit(X[:start], labels[:start], classes=labels)
    yield forest.trees_
    for i in range(start, len(X)):
        yield forest.partial_fit(X[i : i + 1], labels[i : i + 1]).trees_


def readable(tree: MondrianTree, X: NDArray, latest: float) -> bool:
    """Whether split times are early and well apart, and cuts keep a distance from points."""
    inner = np.flatnonzero(~tree.is_leaf)
    times = np.sort(np.append(tree.split_time[inner], 0.0))
    distances = np.abs(X[:, tree.split_dimension[inner]] - tree.split_location[inner])
    return bool(
        np.diff(times).min() > 0.07 * latest and times[-1] < latest and distances.min() > 0.04
    )


def figure_1_shows(tree: MondrianTree) -> bool:
    """Whether the root separates left from right, and both children are cut in x₂."""
    root = tree.root
    left, right = tree.left[root], tree.right[root]
    return bool(
        tree.split_dimension[root] == 0
        and tree.n_points[left] == 2
        and tree.n_points[right] == 3
        and tree.split_dimension[left] == tree.split_dimension[right] == 1
        and tree.n_points[tree.left[right]] == 2
        and tree.split_dimension[tree.left[right]] == 0
        and readable(tree, FIGURE_1, latest=7.0)
    )


@cache
def figure_1_tree() -> MondrianTree:
    """The first tree that suits figure 1."""
    (trees,) = grow(FIGURE_1, start=len(FIGURE_1))
    for tree in trees:
        if figure_1_shows(tree):
            return tree
    raise RuntimeError(f"None of {N_TREES} trees is one that figure 1 can show.")


def same_cut(before: MondrianTree, i: int, after: MondrianTree, j: int) -> bool:
    """Whether nodes of two trees have the same cut at the same time."""
    return bool(
        before.split_dimension[i] == after.split_dimension[j]
        and before.split_location[i] == after.split_location[j]
        and before.split_time[i] == after.split_time[j]
    )


def same_box(before: MondrianTree, i: int, after: MondrianTree, j: int) -> bool:
    """Whether two nodes have the same box."""
    return bool(
        np.array_equal(before.lower[i], after.lower[j])
        and np.array_equal(before.upper[i], after.upper[j])
    )


def shows_iteration_1(first: MondrianTree) -> bool:
    """Whether a cut of x₂ separates a and b."""
    return bool(first.n_nodes == 3 and first.split_dimension[first.root] == 1)


def shows_iteration_2(first: MondrianTree, second: MondrianTree) -> bool:
    """Whether c gets a split of x₁ above the root that has d on its left."""
    old, root = first.root, second.root
    left, right = second.left[root], second.right[root]
    return bool(
        second.split_time[root] < first.split_time[old]
        and second.split_dimension[root] == 0
        and second.split_location[root] > FIGURE_2[3, 0]
        and second.is_leaf[right]
        and same_cut(first, old, second, left)
        and same_box(first, old, second, left)
    )


def shows_iteration_3(second: MondrianTree, third: MondrianTree) -> bool:
    """Whether d, within the root's box, extends the split of a and b and splits the leaf of b."""
    old, new = second.left[second.root], third.left[third.root]
    if not same_cut(second, old, third, new):
        return False
    b, split = second.right[old], third.right[new]
    return bool(
        same_cut(second, second.root, third, third.root)
        and same_box(second, second.root, third, third.root)
        and not same_box(second, old, third, new)
        and third.is_leaf[third.left[new]]
        and second.is_leaf[b]
        and third.n_points[split] == 2
        and third.split_dimension[split] == 0
        and third.is_leaf[third.left[split]]
        and readable(third, FIGURE_2, latest=6.0)
    )


@cache
def figure_2_trees() -> tuple[MondrianTree, MondrianTree, MondrianTree]:
    """The tree after each iteration: the first tree whose iterations suit figure 2."""
    iterations = grow(FIGURE_2, start=2)
    first = {i: tree for i, tree in enumerate(next(iterations)) if shows_iteration_1(tree)}
    trees = next(iterations)
    second = {i: tree for i in first if shows_iteration_2(first[i], tree := trees[i])}
    trees = next(iterations)
    for i in second:
        if shows_iteration_3(second[i], third := trees[i]):
            return first[i], second[i], third
    raise RuntimeError(f"None of {N_TREES} trees went through the iterations of figure 2.")


def blocks(tree: MondrianTree) -> tuple[NDArray, NDArray]:
    """Lower and upper corners of the block of each node: the unit square, cut by its ancestors."""
    lower, upper = np.zeros(tree.lower.shape), np.ones(tree.upper.shape)
    for j in np.argsort(tree.depth, kind="stable"):
        if tree.is_leaf[j]:
            continue
        d, left, right = tree.split_dimension[j], tree.left[j], tree.right[j]
        for child in (left, right):
            lower[child], upper[child] = lower[j], upper[j]
        upper[left, d] = lower[right, d] = tree.split_location[j]
    return lower, upper


def leaf_of_point(tree: MondrianTree, X: NDArray) -> dict[int, int]:
    """The point that each leaf holds."""
    found = {}
    for i, x in enumerate(X.astype(np.float32)):
        j = tree.root
        while not tree.is_leaf[j]:
            right = x[tree.split_dimension[j]] > tree.split_location[j]
            j = int(tree.right[j] if right else tree.left[j])
        found[j] = i
    return found


# Parts of figures


def cut_text(tree: MondrianTree, j: int) -> str:
    """A cut in the paper's notation."""
    return f"$x_{tree.split_dimension[j] + 1} > {tree.split_location[j]:.2f}$"


def unit_square(axes: Axes) -> None:
    """Axes of a partition."""
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1], aspect="equal")
    axes.set_xlabel("$x_1$", labelpad=-9)
    axes.set_ylabel("$x_2$", labelpad=-4, rotation=0, ha="right", va="center")
    axes.tick_params(labelsize=8, length=2)


def draw_box(axes: Axes, lower: NDArray, upper: NDArray, new: bool = False) -> None:
    """Draw a grey box; a box that was just extended has a dashed edge."""
    place = (lower[0], lower[1]), upper[0] - lower[0], upper[1] - lower[1]
    axes.add_patch(Rectangle(*place, facecolor=BOX, alpha=0.18, lw=0))
    edge = {"ec": "0.25", "lw": 1.1, "ls": (0, (3, 2))} if new else {"ec": "0.6", "lw": 0.7}
    axes.add_patch(Rectangle(*place, fill=False, **edge))


def draw_cut(
    axes: Axes,
    tree: MondrianTree,
    j: int,
    lower: NDArray,
    upper: NDArray,
    label: bool = True,
    **style: object,
) -> None:
    """Draw the cut of a node across a rectangle, with its label."""
    d, location = tree.split_dimension[j], tree.split_location[j]
    ends = [lower[1 - d], upper[1 - d]]
    along = ([location, location], ends) if d == 0 else (ends, [location, location])
    axes.plot(*along, **{"color": CUT, "lw": 1.6, "solid_capstyle": "butt", **style})
    if label and d == 0:
        place, shift = (location, ends[0]), (3, 6)
        turned = {"rotation": 90, "ha": "left", "va": "bottom"}
    elif label:
        place, shift = (sum(ends) / 2, location), (0, 3)
        turned = {"ha": "center", "va": "bottom"}
    if label:
        axes.annotate(
            cut_text(tree, j), place, shift, textcoords="offset points", fontsize=9, **turned
        )


def draw_points(
    axes: Axes,
    X: NDArray,
    colours: Sequence[str],
    letters: str = "",
    places: Sequence[tuple[float, float]] = (),
) -> None:
    """Draw points as circles, with letters beside them."""
    axes.scatter(*X.T, s=42, c=list(colours), edgecolors="white", linewidths=0.8, zorder=3)
    for x, letter, shift in zip(X, letters, places, strict=False):
        axes.annotate(
            f"${letter}$",
            x,
            shift,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=10,
        )


def draw_committed(axes: Axes, tree: MondrianTree, nodes: Iterable[int] | None = None) -> None:
    """Draw the boxes of a Mondrian tree, and its cuts within them."""
    inner = np.flatnonzero(~tree.is_leaf) if nodes is None else nodes
    for j in inner:
        draw_box(axes, tree.lower[j], tree.upper[j])
    for j in inner:
        draw_cut(axes, tree, j, tree.lower[j], tree.upper[j], label=False)


def across(tree: MondrianTree) -> NDArray:
    """Horizontal position of each node: leaves one apart, parents in the middle."""
    place = np.zeros(tree.n_nodes)
    next_leaf = 0

    def visit(j: int) -> None:
        nonlocal next_leaf
        if tree.is_leaf[j]:
            place[j] = next_leaf
            next_leaf += 1
            return
        visit(tree.left[j])
        visit(tree.right[j])
        place[j] = (place[tree.left[j]] + place[tree.right[j]]) / 2

    visit(tree.root)
    return place


def draw_tree(
    axes: Axes,
    tree: MondrianTree,
    height: NDArray,
    points: dict[int, int],
    colours: Sequence[str],
    letters: str = "",
    top: float | None = None,
    new: Iterable[int] = (),
) -> None:
    """Draw a tree with its nodes at the given heights and its leaves in their points' colours.

    With `top`, a line connects the root with this height. Nodes in `new` have the colour of a new
    split.
    """
    place = across(tree)
    new = set(new)
    line = {"color": "0.35", "lw": 1.2, "zorder": 1}
    if top is not None:
        axes.plot([place[0], place[0]], [top, height[0]], **line)
    for j in range(tree.n_nodes):
        if tree.is_leaf[j]:
            axes.scatter(
                place[j],
                height[j],
                s=60,
                c=colours[points[j]],
                edgecolors="white",
                linewidths=0.8,
                zorder=3,
                clip_on=False,
            )
            if letters:
                axes.annotate(
                    f"${letters[points[j]]}$",
                    (place[j], height[j]),
                    (0, -11),
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=10,
                )
            continue
        for child in (tree.left[j], tree.right[j]):
            axes.plot([place[j], place[child]], [height[j], height[j]], **line)
            axes.plot([place[child], place[child]], [height[j], height[child]], **line)
        axes.scatter(place[j], height[j], s=16, color=CUT, zorder=3)
        axes.annotate(
            cut_text(tree, j),
            (place[j], height[j]),
            (0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            color=COLOURS[0] if j in new else "black",
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
            zorder=2,
        )
    axes.set_xlim(-0.6, tree.is_leaf.sum() - 0.4)


def time_axis(axes: Axes, times: Sequence[float], end: float) -> None:
    """Make the y axis one of time, downwards, with a tick at each split and infinity at the end."""
    axes.set_ylim(end, 0)
    axes.set_yticks([0, *times, end], ["0", *(f"{time:.2f}" for time in times), r"$\infty$"])
    axes.grid(axis="y", color="0.8", lw=0.6, ls=":")
    axes.set_axisbelow(True)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(labelsize=9, length=3)


def heights_of_times(tree: MondrianTree, end: float) -> NDArray:
    """Split times; those of leaves are at the end of the axis."""
    return np.where(tree.is_leaf, end, tree.split_time)


# Figures


def figure_1() -> Figure:
    """A decision tree and a Mondrian tree with the same cuts."""
    tree = figure_1_tree()
    lower, upper = blocks(tree)
    points = leaf_of_point(tree, FIGURE_1)
    inner = np.flatnonzero(~tree.is_leaf)
    j = tree.left[tree.root]
    figure = Figure(figsize=(10.0, 7.0), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1, wspace=0.04, hspace=0.04)
    (tree_axes, full_axes), (time_axes, box_axes) = figure.subplots(
        2, 2, gridspec_kw={"width_ratios": [1.25, 1]}
    )

    draw_tree(tree_axes, tree, -tree.depth.astype(float), points, COLOURS)
    tree_axes.set_ylim(-tree.depth.max() - 0.2, 0.45)
    tree_axes.set_axis_off()
    tree_axes.set_title("(a) Decision tree", loc="left", fontsize=11)
    place, first = across(tree), 0
    for child, text, side in (
        (tree.left[first], "no", "right"),
        (tree.right[first], "yes", "left"),
    ):
        tree_axes.annotate(
            text,
            (place[child], -0.25),
            (-5 if side == "right" else 5, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=9,
            style="italic",
            color="0.35",
        )
    for node in inner:
        draw_cut(full_axes, tree, node, lower[node], upper[node])
    draw_points(full_axes, FIGURE_1, COLOURS)
    unit_square(full_axes)

    end = 1.2 * tree.split_time[inner].max()
    times = sorted(tree.split_time[inner])
    draw_tree(time_axes, tree, heights_of_times(tree, end), points, COLOURS, top=0.0)
    time_axis(time_axes, times, end)
    time_axes.set_ylabel("time")
    time_axes.set_title("(b) Mondrian tree", loc="left", fontsize=11)
    time_axes.annotate(
        "$j$",
        (across(tree)[j], tree.split_time[j]),
        (-7, -7),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=11,
    )
    draw_committed(box_axes, tree)
    block = (lower[j, 0], lower[j, 1]), upper[j, 0] - lower[j, 0], upper[j, 1] - lower[j, 1]
    box_axes.add_patch(
        Rectangle(*block, fill=False, ec=COLOURS[0], lw=1.4, ls=(0, (4, 3)), clip_on=False)
    )
    box_axes.text(lower[j, 0] + 0.03, 0.04, "$B_j$", color=COLOURS[0], fontsize=12)
    corner = tree.lower[j]
    box_axes.annotate(
        "$B_j^x$", corner, (0, -3), textcoords="offset points", va="top", fontsize=12, color="0.3"
    )
    draw_points(box_axes, FIGURE_1, COLOURS)
    unit_square(box_axes)
    return figure


def figure_2() -> Figure:
    """Online learning step by step: a and b, then c, then d."""
    first, second, third = figure_2_trees()
    X = FIGURE_2
    a_b = second.left[second.root]  # the inner node of a and b, once c is there
    extended = third.left[third.root]  # and the same with d
    b_d = third.right[extended]  # the leaf of b, split by d
    colours = [COLOURS[2]] * len(X)
    places = [(9, -6), (-8, 6), (0, 8), (9, 3)]
    figure = Figure(figsize=(10.0, 6.2))
    sides = {"left": 0.065, "right": 0.99}
    panels = figure.add_gridspec(1, 6, **sides, top=0.96, bottom=0.7, wspace=0.14).subplots()
    trees_axes = figure.add_gridspec(1, 3, **sides, top=0.49, bottom=0.05, wspace=0.05).subplots(
        sharey=True
    )

    def rate(lower: NDArray, upper: NDArray, x: NDArray) -> float:
        return float((np.maximum(lower - x, 0) + np.maximum(x - upper, 0)).sum())

    def finish(index: int, n_points: int, title: str, text: str) -> None:
        axes = panels[index]
        newest = [COLOURS[0] if i == n_points - 1 and index else colours[i] for i in range(4)]
        draw_points(axes, X[:n_points], newest[:n_points], LETTERS, places)
        unit_square(axes)
        if index:
            axes.set(xticklabels=[], yticklabels=[], xlabel="", ylabel="")
        axes.set_title(title, fontsize=10, loc="left")
        axes.text(0.0, -0.2, text, transform=axes.transAxes, fontsize=8, va="top", linespacing=1.35)

    root_1, root_2 = first.root, second.root
    time_1, time_2 = first.split_time[root_1], second.split_time[root_2]
    time_3 = third.split_time[b_d]
    born = round(float(third.split_time[extended]), 2)
    # Times are rounded first, so that the sum in the text is right as it stands there.
    waited = round(float(time_3), 2) - born

    draw_committed(panels[0], first)
    finish(
        0,
        2,
        "Iteration 1",
        f"$a$ and $b$ are parted by\n{cut_text(first, root_1)} at time {time_1:.2f},\n"
        "within their box only.",
    )

    draw_committed(panels[1], first)
    draw_box(panels[1], second.lower[root_2], second.upper[root_2], new=True)
    outside = rate(first.lower[root_1], first.upper[root_1], X[2])
    finish(
        1,
        3,
        "$c$ arrives",
        "$c$ is outside the root's\nbox, which must grow by\n"
        f"{outside:.2f} in all: the rate of\nthe time $E$ to a new split.",
    )

    draw_committed(panels[2], second)
    highlight = {"color": COLOURS[0], "lw": 2.2}
    draw_cut(
        panels[2],
        second,
        root_2,
        second.lower[root_2],
        second.upper[root_2],
        label=False,
        **highlight,
    )
    finish(
        2,
        3,
        "Iteration 2",
        f"$E = {time_2:.2f} \\leq {time_1:.2f}$:\n{cut_text(second, root_2)} is new,\n"
        "above the old root and\noutside its box.",
    )

    draw_committed(panels[3], second)
    draw_box(panels[3], third.lower[extended], third.upper[extended], new=True)
    further = rate(second.lower[a_b], second.upper[a_b], X[3])
    finish(
        3,
        4,
        "$d$ arrives",
        "$d$ is within the root's box\nand goes left. The box of\n$a$ and $b$ must grow by\n"
        f"{further:.2f} in all.",
    )

    draw_committed(panels[4], third, [third.root, extended])
    old_end = second.upper[a_b]
    axis = 1 - third.split_dimension[extended]
    start = third.lower[extended].copy()
    start[axis] = old_end[axis]
    draw_cut(panels[4], third, extended, start, third.upper[extended], label=False, **highlight)
    draw_box(panels[4], third.lower[b_d], third.upper[b_d], new=True)
    finish(
        4,
        4,
        "Split extended",
        f"A new split would have\ncome after time {born:.2f}: so\n"
        f"{cut_text(third, extended)} is extended;\n$d$ goes on to the leaf of $b$.",
    )

    draw_committed(panels[5], third)
    draw_cut(panels[5], third, b_d, third.lower[b_d], third.upper[b_d], label=False, **highlight)
    finish(
        5,
        4,
        "Iteration 3",
        f"$E = {waited:.2f}$, and ${born:.2f} + {waited:.2f}$\n"
        f"$= {time_3:.2f} < \\infty$: the leaf\nis split by {cut_text(third, b_d)}.",
    )

    times = sorted({float(t) for tree in (first, second, third) for t in tree.split_time})
    times = [time for time in times if np.isfinite(time)]
    end = 1.2 * times[-1]
    new_nodes = ([], [root_2], [b_d])
    for k, (axes, tree) in enumerate(zip(trees_axes, (first, second, third), strict=True)):
        n_points = k + 2
        newest = [COLOURS[0] if i == n_points - 1 and k else colours[i] for i in range(4)]
        draw_tree(
            axes,
            tree,
            heights_of_times(tree, end),
            leaf_of_point(tree, X[:n_points]),
            newest,
            LETTERS,
            top=0.0,
            new=new_nodes[k],
        )
        time_axis(axes, times, end)
        axes.set_title(f"Tree after iteration {k + 1}", fontsize=10)
        axes.set_xlim(-0.9, n_points - 0.1)
        if k:
            axes.spines["left"].set_visible(False)
            axes.tick_params(length=0)
    trees_axes[0].set_ylabel("time")
    return figure


DRAWINGS: dict[str, tuple[str, Callable[[], Figure]]] = {
    "figure_1": (
        "The same cuts as a decision tree (a) and as a Mondrian tree (b). The decision tree cuts "
        "whole blocks. Each node of the Mondrian tree has a time of split, and its cut is "
        "committed only within the box around its training points (grey): for the left child j of "
        "the root, the block B_j is dashed and the box B_j^x lies within it.",
        figure_1,
    ),
    "figure_2": (
        "Online learning, one point at a time: partitions with the steps in between (above), and "
        "the trees after each iteration on a shared axis of time (below). The newest point and the "
        "newest cut are orange, a box that was just extended is dashed. c gets a new split above "
        "the root; d extends an existing split, then splits a leaf.",
        figure_2,
    ),
}
