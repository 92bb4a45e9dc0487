"""Data for the tests of online forests, and a comparison of compiled trees with plain twins."""

from __future__ import annotations

import numpy as np

LEAF = -1  # the split dimension of a leaf
DATA = ["clean", "noisy", "ties", "constant features", "one class", "many classes"]


def make_data(kind, seed=8):
    """Features, labels and classes."""
    rng = np.random.default_rng(seed)
    X = rng.random((300, 4))
    y = (X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.4)
    if kind == "noisy":
        y = np.where(rng.random(300) < 0.2, rng.integers(0, 4, 300), y)
    elif kind == "ties":  # many equal values and, by symmetry, many equal gains
        X = rng.integers(0, 3, (300, 4)) / 2
        y = rng.integers(0, 3, 300)
    elif kind == "constant features":
        X[:, 1:] = 0.5
        y = (X[:, 0] > 0.5).astype(int)
    elif kind == "one class":
        y = np.full(300, 2)
    elif kind == "many classes":
        y = rng.integers(0, 20, 300)
    return X, y, np.arange(25 if kind == "many classes" else 4)


def assert_same_tree(nodes, place, twin):
    """The compiled tree from node `place` on equals the twin's."""
    assert nodes.depth[place] == twin.depth
    if twin.children is None:
        assert nodes.split_dimension[place] == LEAF
        assert nodes.counts[place].tolist() == twin.counts
        return
    assert nodes.split_dimension[place] == twin.dimension
    assert nodes.split_location[place] == twin.location
    for side in (0, 1):
        assert_same_tree(nodes, nodes.left_child[place] + side, twin.children[side])


def assert_equals_twins(forest, twins, kind):
    """A forest and its plain twins learn data twice: their trees and predictions are equal."""
    X, y, classes = make_data(kind)
    for _ in range(2):
        forest.partial_fit(X, y, classes)
        for twin in twins:
            for x, label in zip(X, y):
                twin.learn(x, label)
    for (nodes, *_), twin in zip(forest._trees, twins):
        assert_same_tree(nodes, 0, twin.root)
    points = np.vstack([X[:50], np.random.default_rng(1).random((50, 4))])
    expected = [np.mean([twin.root.frequencies(x) for twin in twins], axis=0) for x in points]
    np.testing.assert_allclose(forest.predict_proba(points), expected, rtol=0, atol=1e-12)


def assert_batches_equal_one_by_one(new):
    """Forests that `new` makes are equal, whether rows come at once, in batches or singly."""
    X, y, classes = make_data("noisy")
    whole, batches, single = new().partial_fit(X, y, classes), new(), new()
    for i in range(0, 300, 37):
        batches.partial_fit(X[i : i + 37], y[i : i + 37], classes)
    for i in range(300):
        single.partial_fit(X[i : i + 1], y[i : i + 1], classes)
    expected = whole.predict_proba(X)
    assert len(np.unique(expected, axis=0)) > 10
    assert np.array_equal(batches.predict_proba(X), expected)
    assert np.array_equal(single.predict_proba(X), expected)
