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
