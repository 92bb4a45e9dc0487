"""A picture of a partition shows the boxes and splits of its tree."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from sklearn.datasets import load_digits

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    plot,
)
from onlineforest.plot.figures import COLOURS, class_colours
from support.pictures import (
    DIABETES,
    IRIS,
    NAMES,
    PETALS,
    legend_texts,
    only,
    path_conditions,
    rendered,
)


def test_a_partition_has_the_boxes_and_splits_of_the_tree(mondrian_petals):
    axes = plot.partition(mondrian_petals, tree=2)
    tree = mondrian_petals.trees_[2]
    boxes = [path.vertices for path in only(PolyCollection, axes).get_paths()]
    assert len(boxes) == tree.n_nodes > 10
    drawn = sorted((*b.min(axis=0), *b.max(axis=0)) for b in boxes)
    held = sorted(zip(*tree.lower.T, *tree.upper.T))
    np.testing.assert_allclose(drawn, held)
    splits = only(LineCollection, axes).get_segments()
    inner = np.flatnonzero(~tree.is_leaf)
    assert len(splits) == len(inner)
    for j, (start, stop) in zip(inner, splits):
        d = tree.split_dimension[j]
        assert start[d] == stop[d] == tree.split_location[j]
        assert tree.lower[j, d] <= start[d] <= tree.upper[j, d]
        assert start[1 - d] == tree.lower[j, 1 - d] and stop[1 - d] == tree.upper[j, 1 - d]


def test_a_partition_of_an_order_free_tree_has_its_splits_up_to_those_above():
    forest = OnlineForestClassifier(3, random_state=0).fit(PETALS, NAMES)
    tree = forest.trees_[1]
    axes = rendered(plot.partition(forest, tree=1))
    assert not [artist for artist in axes.get_children() if type(artist) is PolyCollection]
    splits = only(LineCollection, axes).get_segments()
    inner = np.flatnonzero(~tree.is_leaf)
    assert len(splits) == len(inner) > 5
    limits = np.array([axes.get_xlim(), axes.get_ylim()])
    assert (limits[:, 0] < PETALS.min(axis=0)).all() and (limits[:, 1] > PETALS.max(axis=0)).all()
    for j, (start, stop) in zip(inner, splits):
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
