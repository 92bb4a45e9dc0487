"""A picture of a tree shows its nodes, splits and leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    plot,
)
from onlineforest.plot import figures as _plot_figures
from onlineforest.plot import trees as _plot_tree
from support.pictures import (
    IRIS,
    NAMES,
    legend_texts,
    rendered,
)


def lines_of(axes):
    """Across, down, and dotted lines of a tree."""
    solid, dotted = (c.get_segments() for c in axes.collections if type(c) is LineCollection)
    across = [line for line in solid if line[0][0] != line[1][0]]
    down = [line for line in solid if line[0][0] == line[1][0]]
    return across, down, dotted


def test_a_tree_is_drawn_at_its_split_times(mondrian_iris):
    tree = mondrian_iris.trees_[1]
    axes = rendered(plot.tree(mondrian_iris, tree=1, max_depth=100))
    across, down, dotted = lines_of(axes)
    inner = np.flatnonzero(~tree.is_leaf)
    assert len(across) == len(inner) and len(down) == tree.n_nodes
    np.testing.assert_allclose(
        sorted(line[0][1] for line in across), sorted(tree.split_time[inner])
    )
    splits = [text for text in axes.texts if "≤" in text.get_text()]
    assert len(splits) == len(inner)
    for text in splits:
        (j,) = [j for j in inner if tree.split_time[j] == text.get_position()[1]]
        name = IRIS.data.columns[tree.split_dimension[j]]
        words = text.get_text().replace("\n", " ")
        assert words == f"{name} ≤ {tree.split_location[j]:.4g}"
    # Nothing is below a leaf but its open end, for the lifetime is infinite.
    assert len(dotted) == tree.is_leaf.sum()
    assert axes.get_xlabel() == ""
    assert axes.yaxis_inverted()


def test_an_order_free_tree_is_drawn_at_its_depths():
    forest = OnlineForestClassifier(3, random_state=0).fit(IRIS.data, NAMES)
    tree = forest.trees_[1]
    axes = rendered(plot.tree(forest, tree=1, max_depth=100))
    across, down, dotted = lines_of(axes)
    inner, depth = ~tree.is_leaf, tree.depth
    assert sorted(line[0][1] for line in across) == sorted(depth[inner])
    assert sorted(line[1][1] for line in down) == sorted(depth)  # leaves, too, end at their depth
    splits = [text for text in axes.texts if "≤" in text.get_text()]
    written = sorted(
        (text.get_position()[1], text.get_text().replace("\n", " ")) for text in splits
    )
    assert written == sorted(
        (depth[j], f"{IRIS.data.columns[tree.split_dimension[j]]} ≤ {tree.split_location[j]:.4g}")
        for j in np.flatnonzero(inner)
    )
    # A dotted line leads from each leaf to the counts below it.
    bottom, top = axes.get_ylim()
    assert top < 0 and bottom > depth.max()
    assert sorted(line[0][1] for line in dotted) == sorted(depth[tree.is_leaf])
    assert {line[1][1] for line in dotted} == {bottom}
    assert axes.get_ylabel() == "depth" and axes.get_xlabel() == ""
    assert (
        set(np.arange(3.0)) <= set(plot.tree(forest, max_depth=2).get_yticks()) <= {*range(-1, 4)}
    )
    assert counts_below(axes) == 150


def test_each_split_of_a_tree_is_between_the_ends_it_separates(iris):
    layout = _plot_tree.TreeLayout.of(iris.trees_[0], 100)
    tree = layout.tree
    places = [layout.x[j] for j in layout.splits]
    assert len(set(places)) == len(places)
    for j in layout.splits:
        below = {tree.left[j]: [], tree.right[j]: []}
        for end in layout.ends:
            i = end
            while i not in below and i != tree.root:
                i = tree.parent[i]
            if i in below:
                below[i].append(layout.x[end])
        assert max(below[tree.left[j]]) < layout.x[j] < min(below[tree.right[j]])


def counts_below(axes):
    """Sum of the numbers written below a tree."""
    words = [text.get_text() for text in axes.texts if "≤" not in text.get_text()]
    return sum(int(word) for word in words)


@pytest.mark.parametrize("max_depth", [0, 2, 4, None])
def test_a_tree_limited_in_depth_counts_its_omitted_nodes(kind, max_depth):
    noise = np.random.default_rng(0).permutation(NAMES)  # so that trees are deep
    forest = kind(1, random_state=0).fit(IRIS.data, noise)
    tree = forest.trees_[0]
    axes = rendered(plot.tree(forest, max_depth=max_depth))
    across, down, _ = lines_of(axes)
    if max_depth is not None:
        assert len(down) == np.sum(tree.depth <= max_depth)
    else:
        assert len(down) - len(across) <= 10
    n_left_out = tree.n_nodes - len(down)
    assert n_left_out > 0
    assert axes.get_xlabel() == f"triangles: {n_left_out:,} of {tree.n_nodes:,} nodes left out"
    assert counts_below(axes) == 150  # counts include the samples of omitted subtrees
    (triangles,) = [line for line in axes.lines if line.get_marker() == "v"]
    if max_depth is not None:
        hidden = (tree.depth == max_depth) & ~tree.is_leaf
        height = getattr(tree, "split_time", tree.depth)
        np.testing.assert_allclose(np.sort(triangles.get_ydata()), np.sort(height[hidden]))


def test_leaves_of_a_regressor_show_their_mean():
    X, y = [[0.0], [1.0], [2.0], [10.0]], [5.0, 7.0, 7.0, 400.0]
    forest = OnlineForestRegressor(1, min_samples_split=2, calibrate=False, random_state=0)
    forest.fit(X, y)
    axes = rendered(plot.tree(forest))
    below = [text.get_text() for text in axes.texts if "≤" not in text.get_text()]
    leaves = forest.trees_[0].is_leaf.sum()
    assert len(below) == 2 * leaves
    # A leaf of one sample is sure of its value.
    assert "400" in below and "5" in below
    assert sum(int(text[4:]) for text in below if text.startswith("n = ")) == 4


def test_omitted_subtrees_show_their_count_and_their_mean(diabetes):
    tree = diabetes.trees_[0]
    axes = rendered(plot.tree(diabetes, max_depth=0))
    below = [f"n = {tree.weight[tree.root]:,.0f}", f"{tree.mean[tree.root]:.4g}"]
    assert [text.get_text() for text in axes.texts] == below


def test_labels_of_a_tree_do_not_overlap_in_axes_of_usual_size():
    X = np.random.default_rng(0).normal(size=(3000, 8))
    y = 1e3 * X[:, 0] - 1e3 * X[:, 1]
    forest = OnlineForestRegressor(1, random_state=0).fit(X, y)
    axes = rendered(plot.tree(forest, ax=Figure(layout="constrained").subplots()))
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) > 12
    assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])


def test_leaves_end_at_a_finite_lifetime():
    forest = MondrianForestClassifier(1, lifetime=2.0, random_state=0).fit(IRIS.data, NAMES)
    axes = rendered(plot.tree(forest))
    tree = forest.trees_[0]
    _, down, dotted = lines_of(axes)
    assert tree.n_nodes > 3 and dotted == []
    assert np.sum([line[1][1] == 2.0 for line in down]) == tree.is_leaf.sum()
    assert axes.get_ylim() == (2.0, 0.0) and counts_below(axes) == 150


@pytest.mark.parametrize("lifetime", [0.0, 3.0, np.inf])
def test_a_tree_of_one_node_is_drawn(lifetime):
    forest = MondrianForestClassifier(1, lifetime=lifetime, random_state=0).fit(
        [[1.0], [1.0]], [3, 3]
    )
    across, down, _ = lines_of(rendered(plot.tree(forest)))
    assert len(across) == 0 and len(down) == 1


@pytest.mark.parametrize(
    ("kind", "below"), [(OnlineForestClassifier, ["2"]), (OnlineForestRegressor, ["n = 2", "3"])]
)
def test_an_order_free_tree_of_one_node_is_drawn(kind, below):
    forest = kind(1, random_state=0).fit([[1.0], [1.0]], [3, 3])
    axes = rendered(plot.tree(forest))
    across, down, dotted = lines_of(axes)
    assert len(across) == 0 and len(down) == len(dotted) == 1
    assert axes.get_yticks().tolist() == [0.0]
    assert [text.get_text() for text in axes.texts] == below


def test_a_tree_without_samples_is_an_error():
    forest = OnlineForestClassifier(20, max_samples=0.1, random_state=0).fit([[1.0, 2.0]], ["a"])
    (without, *_) = [i for i, tree in enumerate(forest.trees_) if tree.n_nodes == 0]
    for draw in (plot.tree, plot.partition):
        with pytest.raises(ValueError, match=rf"Tree {without} has no nodes: it has learned no s"):
            draw(forest, tree=without)


def test_a_tree_as_deep_as_its_number_of_points_is_drawn():
    X = 2.0 ** np.arange(0, 120)[:, None]
    forest = MondrianForestClassifier(1, random_state=0).fit(X, np.arange(120) % 9)
    assert forest.trees_[0].depth.max() > 60
    assert counts_of_layout(forest, 3) == 120
    assert len(lines_of(plot.tree(forest, max_depth=10**6))[1]) == forest.trees_[0].n_nodes


def counts_of_layout(forest, max_depth):
    layout = _plot_tree.TreeLayout.of(forest.trees_[0], max_depth)
    assert set(layout.owner[forest.trees_[0].is_leaf]) == set(layout.ends)
    return layout.tree.n_points[layout.ends].sum()


def test_names_with_dollars_or_underscores_are_drawn_as_text():
    X = pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], columns=["$x^{", "_hidden"])
    forest = MondrianForestClassifier(1, random_state=0).fit(X, ["_a", "$b^$"])
    axes = rendered(plot.partition(forest, X, ["_a", "$b^$"]))
    assert legend_texts(axes) == [r"\$b^\$", "_a"]
    assert axes.get_xlabel() == r"\$x^{"
    rendered(plot.tree(forest))
    rendered(plot.importances(forest))
    rendered(plot.learning_curve([1], {"_a$^$": [1]}))


def test_long_names_are_shortened_in_the_middle():
    assert _plot_figures.shortened("short") == "short"
    assert _plot_figures.shortened("class number 12345", 11) == "class…12345"
    assert _plot_figures.shortened("a\nb\x1b") == "a b "
    X = pd.DataFrame([[0.0], [1.0]], columns=["$" * 60])
    forest = MondrianForestClassifier(1, random_state=0).fit(X, [0, 1])
    (split,) = [t.get_text() for t in rendered(plot.tree(forest)).texts if "≤" in t.get_text()]
    assert split.count(r"\$") == split.count("$") == 27  # none was parted from its backslash


def test_characters_without_a_glyph_are_drawn_as_question_marks():
    import matplotlib

    printable = _plot_figures.printable
    assert printable("Zürich ≤ \U0001f333\u4e0a\ud800$") == r"Zürich ≤ ?? \$"
    X = pd.DataFrame({"\u4e0a\u6d77": [0.0, 1.0], "\U0002a6d6": [1.0, 0.0]})
    forest = OnlineForestClassifier(1, min_samples_split=2, random_state=0)
    forest.fit(X, ["\U0001f333", "b"])
    rendered(plot.tree(forest))
    rendered(plot.importances(forest))
    assert legend_texts(rendered(plot.partition(forest, X, ["\U0001f333", "b"]))) == ["b", "?"]
    # The fonts are those that matplotlib will use.
    with matplotlib.rc_context({"font.family": ["no such font", "DejaVu Sans", "cmsy10"]}):
        assert printable("ü\u4e0a") == "ü?"
    with matplotlib.rc_context({"font.family": "cmsy10"}):
        assert printable("éé") == "??"
    with matplotlib.rc_context({"font.family": "no such font"}):
        assert printable("ü\u4e0a") == "ü?"


def test_numbers_are_written_with_few_digits():
    numbers = [0.00012345, 12.3456, -59690.4, 1234567.0, 3.21e20]
    short = ["0.0001234", "12.35", "-59,690", "1,234,567", "3.21e+20"]
    assert [_plot_tree._short(number) for number in numbers] == short


def test_trees_of_many_classes_name_them(kind):
    X, y = load_digits(return_X_y=True)
    forest = kind(1, random_state=0).fit(X, y)
    axes = rendered(plot.tree(forest, max_depth=0))
    counts = np.bincount(y)
    most = np.argsort(-counts, kind="stable")[:3]
    below = [f"{label}: {counts[label]}" for label in most]
    assert [text.get_text() for text in axes.texts] == [*below, "+7 classes"]
    assert axes.get_legend() is None


@pytest.mark.parametrize("max_depth", [-1, 1.5, "2", True])
def test_a_bad_depth_is_an_error(petals, max_depth):
    with pytest.raises(ValueError, match=r"max_depth must be an integer, at least 0. Got"):
        plot.tree(petals, max_depth=max_depth)
