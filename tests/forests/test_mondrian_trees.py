"""The trees of a Mondrian forest as read-only tables of nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier, MondrianTree

X = np.array([[0.0, 0.0], [1.0, 0.5], [0.4, 1.0], [0.9, 0.1], [0.2, 0.8]])
Y = ["a", "b", "a", "b", "c"]


@pytest.fixture
def forest():
    return MondrianForestClassifier(n_estimators=4, random_state=0).fit(X, Y)


def test_arrays_describe_a_tree(forest):
    for tree in forest.trees_:
        n = tree.n_nodes
        inner = np.flatnonzero(~tree.is_leaf)
        assert n == 2 * len(inner) + 1
        assert tree.parent[tree.root] == -1
        for j in inner:
            assert tree.parent[tree.left[j]] == tree.parent[tree.right[j]] == j
            d = tree.split_dimension[j]
            assert tree.lower[j, d] <= tree.split_location[j] < tree.upper[j, d]
            for child in (tree.left[j], tree.right[j]):
                assert tree.split_time[child] >= tree.split_time[j]
                assert tree.depth[child] == tree.depth[j] + 1
        assert (tree.left[tree.is_leaf] == -1).all()
        assert (tree.split_time[tree.is_leaf] == math.inf).all()
        assert np.isnan(tree.split_location[tree.is_leaf]).all()
        assert tree.lower.shape == tree.upper.shape == (n, 2)
        assert tree.count.shape == tree.labels.shape == (n, 3)
        assert tree.labels.dtype == bool
        assert tree.count[tree.is_leaf].sum(axis=0).tolist() == [2, 2, 1]


def test_depth_by_hand():
    """Three points far apart, one by one: a chain whose order the cuts decide."""
    forest = MondrianForestClassifier(n_estimators=5, feature_weights=None, random_state=0)
    forest.fit([[0.0], [1.0], [1000.0]], [0, 1, 2])
    for tree in forest.trees_:
        leaf_depths = tree.depth[tree.is_leaf]
        assert sorted(leaf_depths) == [1, 2, 2]
        assert tree.mean_depth == pytest.approx(5 / 3)


def test_tree_arrays_are_read_only_copies(forest):
    tree = forest.trees_[0]
    before = tree.split_time.copy()
    for name in ("parent", "split_time", "lower", "count", "labels"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 0
    with pytest.raises(AttributeError):
        tree.parent = None
    forest.partial_fit(X + 0.01, Y[::-1])
    assert np.array_equal(tree.split_time, before)
    assert forest.trees_[0].n_nodes > tree.n_nodes


def test_the_sequence_shows_the_forest_as_it_is_now(forest):
    trees = forest.trees_
    forest.partial_fit(X, ["0 comes first"] * len(X))
    assert trees[0].count[trees[0].is_leaf].sum(axis=0).tolist() == [5, 2, 2, 1]


def test_a_sequence_of_trees(forest):
    trees = forest.trees_
    assert len(trees) == 4
    assert repr(trees) == "<4 Mondrian trees>"
    assert isinstance(trees[0], MondrianTree)
    assert "n_nodes=" in repr(trees[0])
    assert np.array_equal(trees[-1].parent, trees[3].parent)
    assert len(trees[1:3]) == 2
    assert len(list(trees)) == 4
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"There are 4 trees; there is none of index {index}"):
            trees[index]


def test_a_prediction_can_be_computed_by_hand():
    """At a training point alone in its leaf the label is certain: the leaf's time is infinite."""
    forest = MondrianForestClassifier(n_estimators=4, leaf_discount=0.0, random_state=0).fit(X, Y)
    leaves = forest.apply(X)
    mean = np.mean(
        [tree.count[leaf] / tree.count[leaf].sum() for tree, leaf in zip(forest.trees_, leaves[0])],
        axis=0,
    )
    assert np.allclose(forest.predict_proba(X[:1])[0], mean)
