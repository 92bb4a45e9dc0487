"""What pictures show is what the forest holds and says."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    _extras,
    plot,
)
from onlineforest._inputs.categories import Categories
from onlineforest.plot import calibration as _plot_calibration
from onlineforest.plot import figures as _plot_figures
from onlineforest.plot import points as _plot_points
from onlineforest.plot import trees as _plot_tree
from onlineforest.plot.figures import COLOURS, class_colours

IRIS = load_iris(as_frame=True)
NAMES = IRIS.target_names[IRIS.target]
PETALS = IRIS.data.iloc[:, 2:].to_numpy(dtype=np.float32)
DIABETES = load_diabetes()
CLASSIFIERS = [MondrianForestClassifier, OnlineForestClassifier]
KINDS = [*CLASSIFIERS, OnlineForestRegressor]


@pytest.fixture(scope="module", params=CLASSIFIERS)
def kind(request):
    """Each kind of classifier."""
    return request.param


@pytest.fixture(scope="module")
def petals(kind):
    """A classifier of two features without names, its classes strings."""
    return kind(5, random_state=0).fit(PETALS, NAMES)


@pytest.fixture(scope="module")
def iris(kind):
    """A classifier of four features with names."""
    return kind(5, random_state=0).fit(IRIS.data, NAMES)


@pytest.fixture(scope="module")
def plain_iris(kind):
    """A classifier of four features without names."""
    return kind(5, random_state=0).fit(IRIS.data.to_numpy(), NAMES)


@pytest.fixture(scope="module")
def mondrian_petals():
    """A Mondrian forest of two features."""
    return MondrianForestClassifier(5, random_state=0).fit(PETALS, NAMES)


@pytest.fixture(scope="module")
def mondrian_iris():
    """A Mondrian forest of four features with names."""
    return MondrianForestClassifier(5, random_state=0).fit(IRIS.data, NAMES)


@pytest.fixture(scope="module")
def diabetes():
    """A regressor of two features."""
    X = DIABETES.data[:300, [2, 8]]
    return OnlineForestRegressor(5, random_state=0).fit(X, DIABETES.target[:300])


def legend_texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def only(kind, axes):
    (found,) = [artist for artist in axes.get_children() if type(artist) is kind]
    return found


def rendered(axes):
    """Render the picture: some errors and warnings appear only then."""
    axes.figure.canvas.draw()
    return axes


# Figures


DRAW_ONE = """
import sys
from onlineforest import MondrianForestClassifier, plot
assert not any(name.startswith("matplotlib") for name in sys.modules)
forest = MondrianForestClassifier(1).fit([[0.0, 1.0], [2.0, 3.0]], [0, 1])
axes = plot.partition(forest)
assert axes.figure.canvas.manager is None
assert "matplotlib.pyplot" not in sys.modules
import matplotlib.pyplot as plt
axes = plot.partition(forest)
assert plt.gcf() is axes.figure and plt.gca() is axes
"""


def test_a_new_figure_belongs_to_pyplot_only_if_pyplot_is_imported():
    result = subprocess.run([sys.executable, "-c", DRAW_ONE], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_notebook_is_detected_by_its_shell(monkeypatch):
    for shell, expected in [(None, False), (object(), True)]:
        module = types.SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert _plot_figures._in_ipython() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert _plot_figures._in_ipython() is False


def test_a_notebook_gets_a_figure_of_pyplot(monkeypatch):
    from matplotlib import pyplot

    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    monkeypatch.setattr(_plot_figures, "_in_ipython", lambda: False)
    figure, _ = _plot_figures.new_figure()
    assert figure.canvas.manager is None
    monkeypatch.setattr(_plot_figures, "_in_ipython", lambda: True)
    figure, _ = _plot_figures.new_figure()
    assert figure.number in pyplot.get_fignums()
    pyplot.close(figure)


PICTURES = {
    "partition": lambda f, **o: plot.partition(f, PETALS, NAMES, **o),
    "tree": lambda f, **o: plot.tree(f, **o),
    "decision_surface": lambda f, **o: plot.decision_surface(f, resolution=5, **o),
    "novelty_map": lambda f, **o: plot.novelty_map(f, resolution=5, **o),
    "importances": lambda f, **o: plot.importances(f, **o),
    "learning_curve": lambda f, **o: plot.learning_curve([1, 2], {"a": [0, 1]}, **o),
    "reliability": lambda f, **o: plot.reliability(NAMES, f.predict_proba(PETALS), **o),
}


WITHOUT_NOVELTY = [name for name in PICTURES if name != "novelty_map"]
PICTURES_OF = [
    *((MondrianForestClassifier, name) for name in PICTURES),
    *((OnlineForestClassifier, name) for name in WITHOUT_NOVELTY),
]


@pytest.mark.parametrize(("kind", "name"), PICTURES_OF)
def test_pictures_are_drawn_into_the_given_axes(kind, name):
    petals = kind(5, random_state=0).fit(PETALS, NAMES)
    axes = Figure(dpi=30).add_subplot()
    assert PICTURES[name](petals, ax=axes) is axes
    assert rendered(axes).has_data() or axes.collections or axes.texts
    with pytest.raises(TypeError, match=r"ax must be a matplotlib Axes or None. Got Figure inst"):
        PICTURES[name](petals, ax=Figure())


@pytest.mark.parametrize("name", PICTURES)
def test_the_error_without_matplotlib_names_the_extra(mondrian_petals, name, monkeypatch):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*onlineforest\[plot\]"):
        PICTURES[name](mondrian_petals)


def test_all_pictures_are_documented_with_an_example():
    assert {*PICTURES, "intervals"} == set(plot.__all__)
    for name in plot.__all__:
        document = inspect.getdoc(getattr(plot, name))
        for section in ("Parameters", "Returns", "Examples"):
            assert f"\n{section}\n---" in document, name


FORESTS_NEEDED = [name for name in PICTURES if name not in ("learning_curve", "reliability")]


@pytest.mark.parametrize("name", FORESTS_NEEDED)
def test_anything_but_a_forest_with_samples_is_an_error(kind, name):
    draw = PICTURES[name]
    with pytest.raises(
        TypeError, match=r"must be a forest of this library, such as an OnlineForest.* Got st"
    ):
        draw("forest")
    with pytest.raises(TypeError, match=rf"Got the class {kind.__name__} instead"):
        draw(kind)
    with pytest.raises(NotFittedError):
        draw(kind())
    empty = kind(2).fit(PETALS[:5], NAMES[:5]).keep_latest(0)
    with pytest.raises(ValueError, match=r"has forgotten all its samples"):
        draw(empty)


# The partition


def test_a_partition_has_the_boxes_and_cuts_of_the_tree(mondrian_petals):
    axes = plot.partition(mondrian_petals, tree=2)
    tree = mondrian_petals.trees_[2]
    boxes = [path.vertices for path in only(PolyCollection, axes).get_paths()]
    assert len(boxes) == tree.n_nodes > 10
    drawn = sorted((*b.min(axis=0), *b.max(axis=0)) for b in boxes)
    held = sorted(zip(*tree.lower.T, *tree.upper.T))
    np.testing.assert_allclose(drawn, held)
    cuts = only(LineCollection, axes).get_segments()
    inner = np.flatnonzero(~tree.is_leaf)
    assert len(cuts) == len(inner)
    for j, (start, stop) in zip(inner, cuts):
        d = tree.split_dimension[j]
        assert start[d] == stop[d] == tree.split_location[j]
        assert tree.lower[j, d] <= start[d] <= tree.upper[j, d]
        assert start[1 - d] == tree.lower[j, 1 - d] and stop[1 - d] == tree.upper[j, 1 - d]


def path_conditions(tree, j):
    """Which sides of which cuts lead to a node: feature, location, whether to the left."""
    while tree.parent[j] >= 0:
        j, child = tree.parent[j], j
        yield tree.split_dimension[j], tree.split_location[j], tree.left[j] == child


def test_a_partition_of_an_order_free_tree_has_its_cuts_up_to_those_above():
    forest = OnlineForestClassifier(3, random_state=0).fit(PETALS, NAMES)
    tree = forest.trees_[1]
    axes = rendered(plot.partition(forest, tree=1))
    assert not [artist for artist in axes.get_children() if type(artist) is PolyCollection]
    cuts = only(LineCollection, axes).get_segments()
    inner = np.flatnonzero(~tree.is_leaf)
    assert len(cuts) == len(inner) > 5
    limits = np.array([axes.get_xlim(), axes.get_ylim()])
    assert (limits[:, 0] < PETALS.min(axis=0)).all() and (limits[:, 1] > PETALS.max(axis=0)).all()
    for j, (start, stop) in zip(inner, cuts):
        d = tree.split_dimension[j]
        assert start[d] == stop[d] == tree.split_location[j]
        low, high = limits[1 - d]
        for feature, location, goes_left in path_conditions(tree, j):
            if feature != d:
                low, high = (low, min(high, location)) if goes_left else (max(low, location), high)
        np.testing.assert_allclose([start[1 - d], stop[1 - d]], [low, high])


def test_a_partition_includes_points_outside_the_stored_samples(kind):
    forest = kind(1, random_state=0).fit(PETALS, NAMES)
    axes = plot.partition(forest, [[-10.0, 1.0], [1.0, 50.0]])
    assert axes.get_xlim()[0] < -10 and axes.get_xlim()[1] > PETALS[:, 0].max()
    assert axes.get_ylim()[1] > 50


def test_points_of_a_partition_have_the_colours_of_their_classes(petals):
    axes = rendered(plot.partition(petals, PETALS, NAMES))
    points = only(PathCollection, axes)
    np.testing.assert_array_equal(points.get_offsets(), PETALS)
    colours = np.array([to_rgb(colour) for colour in COLOURS])[IRIS.target]
    np.testing.assert_allclose(points.get_facecolors()[:, :3], colours)
    assert legend_texts(axes) == ["setosa", "versicolor", "virginica"]


def test_points_of_a_partition_have_the_colours_of_their_values(diabetes):
    X, y = DIABETES.data[:50, [2, 8]], DIABETES.target[:50]
    axes = rendered(plot.partition(diabetes, X, y))
    points = only(PathCollection, axes)
    np.testing.assert_array_equal(points.get_array(), y)
    assert points.norm.vmin == y.min() and points.norm.vmax == y.max()
    assert axes.figure.axes[1].get_ylabel() == "y"  # the bar of colours


def test_unknown_labels_have_their_own_marker(petals):
    labels = np.array(NAMES, dtype=object)
    labels[:7] = "lily"
    axes = rendered(plot.partition(petals, PETALS, labels))
    sizes = [len(c.get_offsets()) for c in axes.collections if type(c) is PathCollection]
    assert sizes == [143, 7]
    assert legend_texts(axes)[-1] == "not learned"


def test_names_of_many_classes_are_written_into_the_picture(kind):
    X, y = load_digits(return_X_y=True)
    X = X[:300, [20, 42]]
    forest = kind(1, random_state=0).fit(X, y[:300])
    for axes in (
        plot.partition(forest, X, y[:300]),
        plot.decision_surface(forest, X, y[:300], resolution=40),
    ):
        assert rendered(axes).get_legend() is None
        assert 5 <= len(axes.texts) <= 10
        assert {text.get_text() for text in axes.texts} <= set("0123456789")
    colours = class_colours(18)
    assert len({tuple(colour) for colour in colours}) == 18


def test_a_partition_of_one_box_is_drawn():
    forest = MondrianForestClassifier(1).fit([[1.0, 2.0]] * 3, ["a"] * 3)
    axes = rendered(plot.partition(forest, [[1.0, 2.0]], ["a"]))
    assert len(only(PolyCollection, axes).get_paths()) == 1
    assert axes.get_xlim() == (0.5, 1.5) and axes.get_ylim() == (1.5, 2.5)


def test_bad_arguments_of_a_partition_are_errors(petals, iris, diabetes):
    with pytest.raises(ValueError, match=r"drawn for 2 features. This forest has 4"):
        plot.partition(iris)
    with pytest.raises(IndexError, match=r"There are 5 trees; there is none of index 5"):
        plot.partition(petals, tree=5)
    for index in ("0", 1.0, True, None):
        with pytest.raises(TypeError, match=r"tree must be the index of a tree"):
            plot.partition(petals, tree=index)
    with pytest.raises(ValueError, match=r"y is given, but not X"):
        plot.partition(petals, y=NAMES)
    with pytest.raises(ValueError, match=r"X has 150 samples, but y has 149"):
        plot.partition(petals, PETALS, NAMES[1:])
    with pytest.raises(ValueError, match=r"X has 150 samples, but y has 3"):
        plot.partition(diabetes, PETALS, [1, 2, 3])
    with pytest.raises(ValueError, match=r"X has 4 features, but \w+ForestClassifier is exp"):
        plot.partition(petals, IRIS.data.to_numpy())
    with pytest.raises(ValueError, match=r"y must be a 1d array of labels"):
        plot.partition(petals, PETALS, [[1, 2]] * 150)


# The tree


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
    cuts = [text for text in axes.texts if "≤" in text.get_text()]
    assert len(cuts) == len(inner)
    for text in cuts:
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
    cuts = [text for text in axes.texts if "≤" in text.get_text()]
    written = sorted((text.get_position()[1], text.get_text().replace("\n", " ")) for text in cuts)
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


def test_each_cut_of_a_tree_is_between_the_ends_it_separates(iris):
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
    below = [f"n = {tree.n_points[tree.root]:,.0f}", f"{tree.mean[tree.root]:.4g}"]
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
    (cut,) = [t.get_text() for t in rendered(plot.tree(forest)).texts if "≤" in t.get_text()]
    assert cut.count(r"\$") == cut.count("$") == 27  # none was parted from its backslash


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


# Maps


def grid_of(image, resolution):
    """The middles of the pixels of an image, row by row from below."""
    left, right, below, above = image.get_extent()
    step = np.arange(resolution) + 0.5
    x = left + (right - left) * step / resolution
    y = below + (above - below) * step / resolution
    return np.stack([np.tile(x, resolution), np.repeat(y, resolution)], axis=1)


def test_a_surface_shows_what_the_classifier_predicts(petals):
    axes = rendered(plot.decision_surface(petals, PETALS, NAMES, resolution=30))
    (image,) = axes.images
    assert image.origin == "lower"
    grid = grid_of(image, 30)
    shown = np.asarray(image.get_array()).reshape(-1, 3)
    probabilities = petals.predict_proba(grid)
    sure = (probabilities.max(axis=1) - 1 / 3) / (1 - 1 / 3)
    colours = np.array([to_rgb(colour) for colour in COLOURS])[probabilities.argmax(axis=1)]
    # A place and the middle of its pixel differ by rounding; a cut may lie between.
    right = np.abs(shown - (1 - 0.7 * sure[:, None] * (1 - colours))).max(axis=1) < 1e-3
    assert right.mean() > 0.99
    assert len(np.unique(shown, axis=0)) > 10
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), PETALS)


def test_a_surface_shows_mean_and_deviation_of_a_regressor(diabetes):
    axes = rendered(plot.decision_surface(diabetes, resolution=30))
    (image,) = axes.images
    mean, std = diabetes.predict(grid_of(image, 30), return_std=True)
    right = np.abs(np.asarray(image.get_array()).ravel() - mean) < 1e-3 * np.ptp(mean)
    assert right.mean() > 0.99
    (contours,) = [c for c in axes.collections if isinstance(c, QuadContourSet)]
    inside = [level for level in contours.levels if std.min() < level < std.max()]
    assert len(inside) >= 2


def test_other_features_are_held_at_their_medians(iris, plain_iris):
    by_name = plot.decision_surface(
        iris, IRIS.data, features=("petal width (cm)", "sepal length (cm)"), resolution=10
    )
    by_index = plot.decision_surface(
        plain_iris, IRIS.data.to_numpy(), features=[3, -4], resolution=10
    )
    for axes, forest in ((by_name, plain_iris), (by_index, plain_iris)):
        (image,) = rendered(axes).images
        rows = np.tile(IRIS.data.median().to_numpy(), (100, 1))
        rows[:, [3, 0]] = grid_of(image, 10)
        sure = (forest.predict_proba(rows).max(axis=1) - 1 / 3) / (1 - 1 / 3)
        shown = np.asarray(image.get_array()).reshape(-1, 3)
        darkest = 1 - shown.min(axis=1)  # of the three colours: 1, 1 and 1 less their least part
        colours = class_colours(3)[forest.predict_proba(rows).argmax(axis=1)]
        expected = 0.7 * sure * (1 - colours.min(axis=1))
        assert (np.abs(darkest - expected) < 1e-3).mean() > 0.95
        assert axes.get_title(loc="left") == "the other 2 features at the median"
    assert by_name.get_xlabel() == "petal width (cm)"
    assert by_index.get_ylabel() == "feature 0"


def test_novelty_of_an_order_free_forest_is_an_error_that_names_the_mondrian_forest():
    forest = OnlineForestClassifier(2).fit(PETALS, NAMES)
    message = r"boxes of a Mondrian forest.* an OnlineForestClassifier, .* Fit a MondrianForestCla"
    with pytest.raises(ValueError, match=message):
        plot.novelty_map(forest, PETALS)


def test_a_map_of_novelty_shows_novelty(mondrian_petals):
    axes = rendered(plot.novelty_map(mondrian_petals, PETALS, resolution=30))
    (image,) = axes.images
    novelty = mondrian_petals.novelty(grid_of(image, 30))
    np.testing.assert_allclose(np.asarray(image.get_array()).ravel(), novelty, atol=1e-4)
    assert image.get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), PETALS)
    left, right = axes.get_xlim()
    assert left < PETALS[:, 0].min() and right > PETALS[:, 0].max()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [0, 0]),
        ([[1.0, 2.0], [1.0, 3.0]], [0, 1]),
        ([[-3e38, 2.0], [3e38, 3.0]], [0, 1]),
        ([[1e-30, 1e30], [2e-30, 1e30]], [0, 1]),
    ],
)
def test_maps_of_degenerate_data_are_drawn(X, y):
    for kind in KINDS:
        forest = kind(3, random_state=0).fit(X, y)
        top, bottom = Figure(dpi=30).subplots(2, 2)
        plot.decision_surface(forest, X, y, resolution=5, ax=top[0])
        if kind is MondrianForestClassifier:
            plot.novelty_map(forest, X, resolution=5, ax=top[1])
        plot.partition(forest, X, y, ax=bottom[0])
        rendered(plot.tree(forest, ax=bottom[1]))


@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        *((kind, plot.decision_surface) for kind in CLASSIFIERS),
        (MondrianForestClassifier, plot.novelty_map),
    ],
)
def test_bad_planes_are_errors(kind, draw):
    X = IRIS.data
    petals, iris, plain_iris = (
        kind(2, random_state=0).fit(rows, NAMES) for rows in (PETALS, X, X.to_numpy())
    )
    with pytest.raises(ValueError, match=r"has 4 features: name two to draw, such as features="):
        draw(iris, X)
    with pytest.raises(ValueError, match=r"X is required: this forest has 4 features"):
        draw(iris, features=(0, 1))
    with pytest.raises(ValueError, match=r"no feature 'leaf': it has sepal length"):
        draw(iris, X, features=("leaf", 1))
    with pytest.raises(ValueError, match=r"no feature 'leaf': it has no feature names"):
        draw(plain_iris, X.to_numpy(), features=("leaf", 1))
    with pytest.raises(ValueError, match=r"feature 4 is outside \[0, n_features = 4\)"):
        draw(iris, X, features=(0, 4))
    with pytest.raises(ValueError, match=r"features must be two different features"):
        draw(iris, X, features=(3, -1))
    with pytest.raises(ValueError, match=r"two indices or names. Got 3 of them"):
        draw(iris, X, features=(0, 1, 2))
    for features in ("ab", 1, {0, 1}):
        with pytest.raises(TypeError, match=r"features must be two indices or names. Got"):
            draw(iris, X, features=features)
    for feature in (1.0, True, None):
        with pytest.raises(TypeError, match=r"A feature must be an index or a name. Got"):
            draw(iris, X, features=(0, feature))
    with pytest.raises(ValueError, match=r"A plane needs 2 features. This forest has 1"):
        draw(kind(1).fit([[1.0], [2.0]], [0, 1]))
    for resolution in (1, 2001, 10.0):
        with pytest.raises(ValueError, match=r"resolution must be an integer, 2 to 2000. Got"):
            draw(petals, resolution=resolution)


# Missing values


def with_gaps(X, share=0.3, seed=0):
    """A copy of X that lacks some values."""
    X = np.array(X, dtype=np.float32)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


# Whether a value is missing tells the class: all trees ask for it.
GAPS = np.array([[i, np.nan if i % 2 else i % 7] for i in range(60)], dtype=np.float32)
GAP_LABELS = [str(i % 2) if i < 50 else "rest" for i in range(60)]


@pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
def test_a_cut_that_asks_for_missing_values_is_labelled(kind):
    y = GAP_LABELS if kind is OnlineForestClassifier else np.unique(GAP_LABELS, return_inverse=1)[1]
    forest = kind(4, random_state=0).fit(GAPS, y)
    n_asked = 0
    for i, tree in enumerate(forest.trees_):
        axes = rendered(plot.tree(forest, tree=i, max_depth=100))
        asks = np.isinf(tree.split_location)
        asked = [t.get_text() for t in axes.texts if "missing" in t.get_text()]
        names = [f"feature {feature}\nnot missing" for feature in tree.split_dimension[asks]]
        assert sorted(asked) == sorted(names)
        cuts = [t for t in axes.texts if "≤" in t.get_text()]
        assert len(cuts) == np.isfinite(tree.split_location).sum()
        n_asked += len(asked)
    assert n_asked > 0


def test_a_partition_has_no_line_for_samples_that_lack_a_feature():
    forest = OnlineForestClassifier(6, min_samples_split=2, random_state=0).fit(GAPS, GAP_LABELS)
    n_hidden = 0
    for i, tree in enumerate(forest.trees_):
        drawn = []
        for j in np.flatnonzero(np.isfinite(tree.split_location)):
            above = path_conditions(tree, j)
            if any(np.isinf(location) and not goes_left for _, location, goes_left in above):
                n_hidden += 1
            else:
                drawn.append((tree.split_dimension[j], tree.split_location[j]))
        axes = rendered(plot.partition(forest, GAPS, GAP_LABELS, tree=i))
        segments = only(LineCollection, axes).get_segments()
        places = [(np.ptp(line, axis=0).argmin(), line.min(axis=0)) for line in segments]
        assert sorted((d, start[d]) for d, start in places) == sorted(drawn)
    assert n_hidden > 0
    points = only(PathCollection, axes)
    np.testing.assert_array_equal(points.get_offsets(), GAPS[~np.isnan(GAPS).any(axis=1)])


@pytest.mark.parametrize("estimator", [OnlineForestClassifier, OnlineForestRegressor])
def test_pictures_of_samples_with_gaps_leave_these_out(estimator):
    X = with_gaps(IRIS.data.to_numpy())
    X[:5, :2] = [[100.0, np.nan]] * 5
    y = NAMES if estimator is OnlineForestClassifier else IRIS.target
    forest = estimator(3, random_state=0).fit(X, y)
    axes = rendered(plot.decision_surface(forest, X, y, features=(0, 1), resolution=10))
    (image,) = axes.images
    plain = image.get_array()
    rows = np.tile(np.nanmedian(X, axis=0), (100, 1))
    rows[:, :2] = grid_of(image, 10)
    if estimator is OnlineForestRegressor:
        right = np.abs(plain.ravel() - forest.predict(rows)) < 1e-3
        assert right.mean() > 0.95
    assert axes.get_xlim()[1] > 100  # of a sample without the other feature
    are_drawn = ~np.isnan(X[:, :2]).any(axis=1)
    assert 50 < are_drawn.sum() < 100
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), X[are_drawn, :2])


@pytest.mark.parametrize("estimator", [OnlineForestClassifier, OnlineForestRegressor])
def test_a_feature_that_all_samples_lack_is_drawn(estimator):
    X = np.array([[i, np.nan] for i in range(9)], dtype=np.float32)
    forest = estimator(2, random_state=0).fit([[i, i % 4] for i in range(9)], np.arange(9) % 2)
    for given in (X, None):
        for kind in (forest, estimator(2, random_state=0).fit(X, np.arange(9) % 2)):
            y = None if given is None else np.arange(9) % 2
            axes = rendered(plot.decision_surface(kind, given, y, resolution=5))
            assert not [c for c in axes.collections if type(c) is PathCollection]
            rendered(plot.partition(kind, given, y))
            rendered(plot.tree(kind))


def test_names_of_many_classes_are_written_amid_known_points():
    X, y = load_digits(return_X_y=True)
    X = with_gaps(X[:300, [20, 42]])
    forest = OnlineForestClassifier(1, random_state=0).fit(X, y[:300])
    axes = rendered(plot.partition(forest, X, y[:300]))
    assert 5 <= len(axes.texts) <= 10
    assert np.isfinite([text.get_position() for text in axes.texts]).all()


# Categorical features


CARRIERS = ["AA", "B6", "DL", "UA", "WN", None]
AIRPORTS = [f"K{i:02}" for i in range(40)]


def flights(n=400, seed=0):
    """A table with two categorical and two numeric features, and numbers that depend on all."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "carrier": np.array(CARRIERS, dtype=object)[rng.integers(6, size=n)],
            "distance": rng.integers(100, 3000, size=n).astype(float),
            "origin": np.array(AIRPORTS, dtype=object)[rng.integers(40, size=n)],
            "hour": rng.integers(24, size=n).astype(float),
        }
    )
    late = 10.0 * X.carrier.isin(["AA", "UA"]) + 9.0 * X.origin.isin(AIRPORTS[:15])
    return X, late + 2.0 * (X.hour > 15) + X.distance / 3000


@pytest.fixture(scope="module", params=[OnlineForestClassifier, OnlineForestRegressor])
def delays(request):
    """Each kind of forest that learns categorical features."""
    X, late = flights()
    return request.param(5, random_state=0).fit(X, targets_of(request.param, late))


def targets_of(kind, late):
    return late if kind is OnlineForestRegressor else np.where(late > 11, "late", "on time")


def test_what_a_cut_says_of_levels_is_true_of_the_samples_that_go_left(delays):
    X, _ = flights()
    said = set()
    for index, tree in enumerate(delays.trees_):
        axes = rendered(plot.tree(delays, tree=index, max_depth=100))
        layout = _plot_tree.TreeLayout.of(tree, 100)
        texts = {text.get_position(): text.get_text() for text in axes.texts}
        below = {j: np.zeros(len(X), bool) for j in range(tree.n_nodes)}
        for row, node in enumerate(delays.apply(X)[:, index]):
            while node >= 0:
                below[node][row] = True
                node = tree.parent[node]
        for j in layout.splits:
            name, *words = texts[layout.x[j], layout.height[j]].split("\n")
            at, goes_left = X[below[j]], below[tree.left[j]][below[j]]
            if not name.endswith(":"):
                assert name in ("distance", "hour") and words[0].startswith("≤")
                continue
            levels = ["missing" if pd.isna(level) else level for level in at[name[:-1]]]
            condition = " ".join(words)
            if condition.endswith("levels"):
                n_left, n = map(int, condition.removesuffix(" levels").split(" of "))
                assert n >= len(set(levels)) and min(n_left, n - n_left) > 3
                assert n_left >= len({level for level, left in zip(levels, goes_left) if left})
            else:
                is_left = not condition.startswith("all but ")
                named = condition.removeprefix("all but ").split(", ")
                assert 1 <= len(named) <= 3 and len(words) <= 2
                assert set(named) <= {*AIRPORTS, *CARRIERS[:5], "missing"}
                assert [(level in named) == is_left for level in levels] == list(goes_left)
            said.add((name, condition.split()[0] == "all", condition.endswith("levels")))
    for name in ("carrier:", "origin:"):
        assert {(name, False, False), (name, True, False)} <= said
    assert ("origin:", False, True) in said


def levels_at_root(levels, y=None):
    """The text at the root of a tree that knows these levels."""
    X = np.array(levels, dtype=object)[:, None]
    forest = OnlineForestRegressor(1, categorical_features=[0], min_samples_split=2, random_state=0)
    forest.fit(X, np.arange(float(len(levels))) if y is None else y)
    axes = rendered(plot.tree(forest, max_depth=1))
    name, *words = axes.texts[0].get_text().split("\n")
    assert name == "feature 0:"
    return words, forest.trees_[0].split_levels[0]


def test_levels_at_a_cut_are_named_if_few_and_short():
    lines = _plot_tree._level_lines
    few, many = frozenset(["AA", "UA"]), frozenset("abcdefg")
    assert lines(few, many) == ["AA, UA"]
    assert lines(many, few) == ["all but AA, UA"]
    assert lines(few, frozenset(["B6", None])) == ["AA, UA"]
    assert lines(frozenset(["B6", None]), many) == ["B6, missing"]
    assert lines(frozenset(["New York", "San Jose"]), many) == ["New York,", "San Jose"]
    assert lines(many, frozenset(["New York", "San Jose"])) == ["7 of 9 levels"]
    assert lines(many, frozenset(["x" * 99])) == ["all but", "xxxxxx…xxxxx"]
    assert lines(frozenset("hijk"), many) == ["4 of 11 levels"]
    thousands = frozenset(range(5000)), frozenset(range(-70000, 0))
    assert lines(*thousands) == ["5,000 of 75,000", "levels"]
    assert lines(frozenset(), many) == ["0 of 7 levels"]
    words, left = levels_at_root([None, 7])
    assert words == [{None: "missing", 7: "7"}[left[0]]]


HOSTILE = {
    "": '""',
    " ": '" "',
    "missing": '"missing"',
    "7": '"7"',
    "all but 7": '"all but 7"',
    "a, b": '"a, b"',
    "two\nlines": '"two lines"',
    "$x^{$": r'"\$x^{\$"',
    r"\$\frac": r'"\\$\frac"',
    "$" * 50: f'"{chr(92)}$' + r"\$" * 4 + "…" + r"\$" * 4 + '"',
    "\\": r'"\"',
    "\U0001f333": '"?"',
    "\u4e0a\u6d77": "??",
    "\u202eabc": '" abc"',
    "\ud800": '" "',
    "Zürich": "Zürich",
    "A" * 5000: "AAAAAA…AAAAA",
    -(2**64) + 1: "-18446…51615",
}


@pytest.mark.parametrize("level", HOSTILE)
def test_levels_with_any_name_are_drawn(level):
    words, left = levels_at_root([level, "other"])
    assert words == [HOSTILE[level] if left == (level,) else "other"]
    assert _plot_figures.printable(_plot_figures.level_name(level, 12)) == HOSTILE[level]


def as_array(X):
    return X.to_numpy(dtype=object)


def colours_at(delays, rows):
    """What a surface shows at these rows: colours of classes, or means."""
    if isinstance(delays, OnlineForestRegressor):
        return delays.predict(rows)[:, None]
    probabilities = delays.predict_proba(rows)
    sure = 2 * probabilities.max(axis=1)[:, None] - 1
    return 1 - 0.7 * sure * (1 - class_colours(2)[probabilities.argmax(axis=1)])


def test_a_surface_holds_categorical_features_at_their_most_frequent_level(delays):
    X, late = flights()
    y = targets_of(type(delays), late)
    plain = type(delays)(5, categorical_features=[0, 2], random_state=0).fit(as_array(X), y)
    most, pictures = X.origin.mode()[0], []
    for carrier, chosen in [("UA", X.carrier == "UA"), (None, X.carrier.isna())]:
        given = X[chosen]
        origin = given.origin.mode()[0]
        assert carrier != "UA" or origin != most  # of the given rows, not of all
        for axes in (
            plot.decision_surface(delays, given, y[chosen], resolution=20),
            plot.decision_surface(delays, given, resolution=20, features=("distance", 3)),
            plot.decision_surface(plain, as_array(given), resolution=20),
        ):
            (image,) = rendered(axes).images
            x, y_axis = grid_of(image, 20).T
            rows = pd.DataFrame(
                {"carrier": carrier, "distance": x, "origin": origin, "hour": y_axis}
            ).astype({"carrier": object})
            shown = np.asarray(image.get_array()).reshape(400, -1)
            right = np.abs(shown - colours_at(delays, rows)).max(axis=1) < 1e-3
            assert right.mean() > 0.95
            pictures.append(shown)
            np.testing.assert_array_equal(
                only(PathCollection, axes).get_offsets(), given[["distance", "hour"]]
            )
            names = X.columns if axes.get_xlabel() == "distance" else ["feature 0", "", "feature 2"]
            held = f"{names[0]}: {carrier or 'missing'}, {names[2]}: {origin}"
            assert axes.get_title(loc="left") == held
    assert len(np.unique(pictures[0], axis=0)) > 5
    assert (pictures[0] != pictures[-1]).mean() > 0.5
    swapped = rendered(plot.decision_surface(delays, X, features=("hour", 1), resolution=5))
    assert swapped.get_xlabel() == "hour" and swapped.get_ylabel() == "distance"


def test_a_surface_says_how_many_features_it_holds():
    X, y = flights(60)
    X = X.assign(day=np.arange(60.0), plane=list("ab") * 30, is_full=[True, False, True] * 20)
    forest = OnlineForestRegressor(2, random_state=0).fit(X, y)
    axes = rendered(plot.decision_surface(forest, X, features=("hour", "distance"), resolution=5))
    assert axes.get_title(loc="left") == (
        "the other numeric feature at the median\n"
        "the 4 categorical features at the most frequent level"
    )
    names = ["hour", "distance", "is_full"]
    forest = OnlineForestRegressor(2, random_state=0).fit(X[names], y)
    axes = rendered(plot.decision_surface(forest, X[names].assign(is_full="never seen$")))
    assert axes.get_title(loc="left") == r'is_full: "never seen\$"'


def test_typical_levels_are_the_most_frequent_whatever_their_type():
    levels = _plot_points.typical_levels
    one = Categories.of(1, [0])
    for values, level in [
        (["b", "a", "b", "a", "c"], "a"),
        ([None, np.nan, float("nan"), "a", "a"], None),
        ([1.0, True, np.int64(1), "1", "1"], 1),
        (["a", None], "a"),
    ]:
        assert levels(np.array(values, dtype=object)[:, None], one) == {0: level}


def test_a_categorical_feature_is_no_axis(delays):
    X, _ = flights()
    message = (
        r"^Feature 'carrier' is categorical and cannot be an axis: its levels have no order. Name "
        r"two of the 2 numeric features.$"
    )
    for features in (["hour", "carrier"], (0, 1), (-4, 1)):
        with pytest.raises(ValueError, match=message):
            plot.decision_surface(delays, X, features=features)
    with pytest.raises(
        ValueError, match=r"X is required: this forest has 4 features.* or their most frequent lev"
    ):
        plot.decision_surface(delays)
    with pytest.raises(
        ValueError,
        match=r"^A partition can be drawn for 2 numeric features. This forest has 4, of which "
        r"these are categorical: 'carrier', 'origin'.$",
    ):
        plot.partition(delays, X)


def test_a_forest_without_two_numeric_features_has_no_plane():
    X, y = flights(60)
    three = X.assign(day=1.0)
    forest = OnlineForestRegressor(2, random_state=0).fit(three, y)
    with pytest.raises(
        ValueError, match=r"forest has 3 numeric features: name two .* features=\(1, 3\)"
    ):
        plot.decision_surface(forest, three)
    for names, n, listed in [
        (["hour", "carrier"], 1, "'carrier'"),
        (["carrier", "origin"], 0, "'carrier', 'origin'"),
    ]:
        forest = OnlineForestRegressor(2, random_state=0).fit(X[names], y)
        for features in (None, names):
            with pytest.raises(
                ValueError,
                match=rf"^A plane needs 2 numeric features. This forest has {n}: these are "
                rf"categorical: {listed}.$",
            ):
                plot.decision_surface(forest, X[names], features=features)
        with pytest.raises(ValueError, match=rf"has 2, of which these are categorical: {listed}"):
            plot.partition(forest, X[names])
        rendered(plot.tree(forest))
    many = pd.DataFrame([list("abcdefghijklm")] * 2, columns=list("abcdefghijklm"))
    forest = OnlineForestRegressor(2, random_state=0).fit(many, [0, 1])
    with pytest.raises(ValueError, match=r"categorical: 'a', .*, 'j', and 3 more\.$"):
        plot.partition(forest)


def test_importances_of_categorical_features_have_their_names(delays):
    axes = rendered(plot.importances(delays))
    order = np.argsort(-delays.feature_importances_, kind="stable")
    assert order[0] in (0, 2)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [delays.feature_names_in_[i] for i in order]


@pytest.mark.parametrize("names", [["carrier"], ["hour"], ["carrier", "hour", "origin"]])
def test_intervals_of_categorical_features_are_drawn(names):
    X, y = flights()
    X = X[names]
    forest = OnlineForestRegressor(5, random_state=0).fit(X[:300], y[:300])
    axes = rendered(plot.intervals(forest, X[300:], y[300:]))
    assert axes.get_xlabel() == ("hour" if names == ["hour"] else "samples, by predicted mean")
    mean = forest.predict(X[300:])
    np.testing.assert_array_equal(np.sort(axes.lines[0].get_ydata()), np.sort(mean))


# Scores


def test_bars_are_the_importances_sorted(iris):
    axes = rendered(plot.importances(iris))
    values = iris.feature_importances_
    order = np.argsort(-values)
    assert [bar.get_width() for bar in axes.patches] == list(values[order])
    assert [text.get_text() for text in axes.get_yticklabels()] == list(IRIS.data.columns[order])
    assert axes.yaxis_inverted()  # the first is at the top
    few = rendered(plot.importances(iris, max_features=1))
    assert len(few.patches) == 1
    rest = np.sort(values)[:3].sum()
    assert few.get_title(loc="left") == f"the other 3 features: {rest:.3f} together"
    with pytest.raises(ValueError, match=r"max_features must be an integer, at least 1. Got 0"):
        plot.importances(iris, max_features=0)


def test_learning_curves_are_lines_with_names():
    axes = plot.learning_curve([10, 20], {"one": [0.5, np.nan], "two": (0.1, 0.2)}, ylabel="loss")
    one, two = rendered(axes).lines
    np.testing.assert_array_equal(one.get_xydata(), [[10, 0.5], [20, np.nan]])
    np.testing.assert_array_equal(two.get_ydata(), [0.1, 0.2])
    assert legend_texts(axes) == ["one", "two"]
    assert axes.get_ylabel() == "loss" and axes.get_xlabel() == "samples learned"
    assert plot.learning_curve([1, 2], {"alone": [0, 1]}).get_legend() is None
    many = plot.learning_curve([1, 2], {str(i): [0, 1] for i in range(20)})
    inside = [
        of.get_legend().get_window_extent().x0 < of.bbox.x1 for of in map(rendered, [axes, many])
    ]
    assert inside == [True, False]  # many would cover the lines
    assert len({(line.get_color(), line.get_linestyle()) for line in many.lines}) == 20
    with pytest.raises(ValueError, match=r"curves\['one'\] has 1 scores for 2 n_samples"):
        plot.learning_curve([1, 2], {"one": [1]})
    for curves in ([1, 2], {}):
        with pytest.raises(TypeError, match=r"curves must be a mapping of at least one name"):
            plot.learning_curve([1, 2], curves)
    with pytest.raises(TypeError, match=r"curves\['a'\] must hold numbers. Got 'x'"):
        plot.learning_curve([1, 2], {"a": "x"})
    with pytest.raises(ValueError, match=r"n_samples must be a 1d array. Got an array of shape"):
        plot.learning_curve([[1, 2]], {"a": [1, 2]})


def test_reliability_equals_a_calculation_by_hand():
    y = ["a", "b", "b", "a"]
    sure = [[0.95, 0.05], [0.91, 0.09], [0.39, 0.61], [0.69, 0.31]]
    axes = rendered(plot.reliability(y, sure, n_bins=10))
    _, line = axes.lines
    # In the bin from 0.9 one of two is right, in that from 0.6 both are.
    np.testing.assert_allclose(line.get_xydata(), [[0.65, 1.0], [0.93, 0.5]])
    error = 0.5 * 0.35 + 0.5 * 0.43
    assert legend_texts(axes) == ["as said", f"ECE {error:.3f}", "share of samples"]
    np.testing.assert_allclose(only(StepPatch, axes).get_data().values, [0] * 6 + [0.5, 0, 0, 0.5])


def test_the_bin_of_a_probability_holds_its_lower_end():
    bins = _plot_calibration.Bins.of(
        np.array([0, 0, 0]), np.array([[0.5, 0.5], [1.0, 0.0], [0.75, 0.25]]), np.array([0, 1]), 4
    )
    np.testing.assert_array_equal(bins.share, [0, 0, 1 / 3, 2 / 3])
    assert bins.error == pytest.approx(0.5 / 3 + 2 / 3 * 0.125)


def test_reliability_of_several_methods_and_of_unknown_classes():
    proba = np.array([[0.2, 0.8], [0.2, 0.8]])
    axes = rendered(
        plot.reliability([1, 7], {0: proba, "B": proba[:, ::-1]}, classes=[0, 1], n_bins=5)
    )
    # The first predicts 1 twice, once rightly; B predicts 0, always wrongly.
    assert legend_texts(axes)[1:3] == ["0 (ECE 0.300)", "B (ECE 0.800)"]


def test_bad_probabilities_are_errors():
    y, good = [0, 1], [[0.2, 0.8], [0.5, 0.5]]
    for bad, words in [
        ([[0.2, 0.3, 0.5]] * 2, "probabilities have 3 columns for 2 classes. Give the classes"),
        ([[0.2, 0.8]], r"shape \(2, n_classes\), as y has 2 labels. Got an array of shape \(1, 2"),
        ([0.2, 0.8], r"Got an array of shape \(2,\)"),
        ([[0.2, 1.8]] * 2, "must lie between 0 and 1"),
        ([[0.2, np.nan]] * 2, "must lie between 0 and 1"),
        ({}, "nothing to draw"),
    ]:
        with pytest.raises(ValueError, match=words):
            plot.reliability(y, bad)
    with pytest.raises(TypeError, match=r"probabilities must be numbers. Got 'x'"):
        plot.reliability(y, "x")
    with pytest.raises(ValueError, match=r"nothing to draw"):
        plot.reliability([], np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"n_bins must be an integer, 1 to 1000. Got 0"):
        plot.reliability(y, good, n_bins=0)


def points_of(axes):
    return [np.asarray(c.get_offsets()) for c in axes.collections if type(c) is PathCollection]


def test_intervals_are_sorted_by_prediction(diabetes):
    X, y = DIABETES.data[300:, [2, 8]], DIABETES.target[300:]
    axes = rendered(plot.intervals(diabetes, X, y, coverage=0.6))
    mean, ends = diabetes.predict(X), diabetes.predict_interval(X, 0.6)
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_ydata(), np.sort(mean))
    is_inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    inside, outside = points_of(axes)
    assert 0 < len(outside) == np.sum(~is_inside)
    order = np.argsort(mean, kind="stable")
    np.testing.assert_array_equal(inside[:, 1], y[order][is_inside[order]])
    np.testing.assert_array_equal(outside[:, 0], np.flatnonzero(~is_inside[order]))
    assert legend_texts(axes)[1:3] == ["interval of 0.6", f"inside: {is_inside.mean():.3f}"]
    (band,) = [c for c in axes.collections if isinstance(c, PolyCollection)]
    corners = band.get_paths()[0].vertices
    assert set(np.round(ends.ravel(), 6)) <= set(np.round(corners[:, 1], 6))


def test_intervals_of_one_feature_are_drawn_over_its_values():
    X, y = DIABETES.data[:200, [2]], DIABETES.target[:200]
    forest = OnlineForestRegressor(5, random_state=0)
    forest.fit(pd.DataFrame(X[:100], columns=["bmi"]), y[:100])
    axes = rendered(plot.intervals(forest, pd.DataFrame(X[100:], columns=["bmi"]), y[100:]))
    assert axes.get_xlabel() == "bmi"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), np.sort(X[100:, 0]), rtol=1e-6)
    at = np.concatenate(points_of(axes))[:, 0]
    np.testing.assert_allclose(np.sort(at), np.sort(X[100:, 0]), rtol=1e-6)
    X[150] = np.nan  # has a rank, but no place on the axis of the feature
    axes = rendered(plot.intervals(forest, pd.DataFrame(X[100:], columns=["bmi"]), y[100:]))
    assert axes.get_xlabel() == "samples, by predicted mean"
    assert sum(map(len, points_of(axes))) == 100


def test_bad_arguments_of_intervals_are_errors(petals, diabetes):
    X, y = DIABETES.data[:10, [2, 8]], DIABETES.target[:10]
    message = r"must be a regressor, such as an OnlineForestRegressor. Got \w+Classifier"
    with pytest.raises(TypeError, match=message):
        plot.intervals(petals, PETALS, NAMES)
    with pytest.raises(NotFittedError):
        plot.intervals(OnlineForestRegressor(), X, y)
    with pytest.raises(ValueError, match=r"coverage must"):
        plot.intervals(diabetes, X, y, coverage=[0.5, 0.9])
    with pytest.raises(ValueError, match=r"coverage"):
        plot.intervals(diabetes, X, y, coverage=1.5)
    with pytest.raises(ValueError, match=r"intervals needs X and y"):
        plot.intervals(diabetes, X, None)
    with pytest.raises(ValueError, match=r"X has 10 samples, but y has 9"):
        plot.intervals(diabetes, X, y[1:])


def test_pictures_of_a_forest_with_offsets_are_in_the_units_of_users():
    """Moved by the offset, everything that is drawn is that of the forest without it."""
    start, y = 1_700_000_000, np.arange(300) % 7
    near = np.column_stack([np.random.default_rng(1).integers(0, 3600, 300), np.arange(300) % 50])
    X = near + [start, 0.0]  # noqa: RUF005
    forest = OnlineForestRegressor(2, random_state=0, offsets={0: start}).fit(X, y)
    plain = OnlineForestRegressor(2, random_state=0).fit(near, y)
    for draw in (
        lambda forest, rows: plot.partition(forest, rows, y),
        lambda forest, rows: plot.partition(forest),
        lambda forest, rows: plot.decision_surface(forest, rows, y, resolution=30),
        lambda forest, rows: plot.decision_surface(forest, resolution=30),
    ):
        axes, other = draw(forest, X), draw(plain, near.astype(float))
        assert np.allclose(np.array(axes.get_xlim()) - start, other.get_xlim(), atol=0.01)
        assert np.allclose(axes.get_ylim(), other.get_ylim())
        for one, two in zip(axes.collections, other.collections, strict=True):
            if isinstance(one, PathCollection):
                assert np.array_equal(one.get_offsets() - [start, 0.0], two.get_offsets())
            if isinstance(one, LineCollection):
                lines = np.array(one.get_segments()) - [start, 0.0]
                assert np.allclose(lines, np.array(two.get_segments()), atol=0.01)
        for one, two in zip(axes.images, other.images, strict=True):
            assert (np.asarray(one.get_array()) == np.asarray(two.get_array())).mean() > 0.98
    labels = [text.get_text() for text in plot.tree(forest).texts if "≤" in text.get_text()]
    times = {text.split("≤ ")[1] for text in labels if text.startswith("feature 0")}
    cuts = forest.trees_[0]
    known = cuts.split_location[cuts.split_dimension == 0]
    assert len(times) > 1, "cuts of one feature have labels that differ"
    for text in times:
        assert np.abs(known - float(text.replace(",", ""))).min() < 1
