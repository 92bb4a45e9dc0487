"""Theorems about Mondrian processes, checked on trees of the core."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.core import core_forest, learn, tree_statistics, trees_of
from support.statistics import check_distribution, check_mean


def checkerboard(shape):
    """A grid on the unit cube, neighbours of different labels: no block of two points pauses."""
    axes = [np.linspace(0, 1, n) for n in shape]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))
    y = np.indices(shape).sum(axis=0).reshape(-1) % 2
    return X, y


@pytest.mark.parametrize(
    ("shape", "lifetime"), [((400,), 5.0), ((40, 40), 2.0), ((12, 12, 12), 1.0)], ids=str
)
@pytest.mark.parametrize("online", [False, True], ids=["batch", "two halves"])
def test_the_mean_number_of_leaves_on_a_grid(shape, lifetime, online, n_trees):
    """The mean number of leaves is (1 + lambda)^D on the unit cube, the limit of dense grids.

    On a grid of n_d points per side it is exactly the product over d of
    1 + (n_d - 1) (1 - exp(-lambda / (n_d - 1))): each block has one lowest corner, and a point is a
    lowest corner if in each dimension it is cut from its neighbour below, which happens
    independently, each gap being cut at rate 1 / (n_d - 1).

    The standard error of the mean over 3,000 trees is about 1 % of it; an error of 5 % is found.
    """
    X, y = checkerboard(shape)
    forest = core_forest(n_trees, len(shape), lifetime=lifetime, seed=3)
    if online:
        order = np.random.default_rng(0).permutation(len(y))
        half = len(y) // 2
        learn(forest, X[order[:half]], y[order[:half]], 2)
        learn(forest, X[order[half:]], y[order[half:]], 2)
    else:
        learn(forest, X, y, 2)
    gaps = np.array(shape) - 1
    expected = math.prod(1 + g * -math.expm1(-lifetime / g) for g in gaps)
    limit = (1 + lifetime) ** len(shape)
    assert expected < limit < 1.2 * expected
    check_mean("number of leaves", tree_statistics(forest).n_leaves, expected)


def test_the_split_time_of_two_points_is_exponential(n_trees):
    """The rate of the split time is the weighted distance of the points."""
    weights = np.array([2.0, 0.25])
    forest = core_forest(n_trees, 2, weights=weights, seed=4)
    learn(forest, [[0, 0]], [0], 2)
    learn(forest, [[1, 3]], [1], 2)
    check_distribution(
        "split time", tree_statistics(forest).root_time, lambda t: -np.expm1(-2.75 * t)
    )


def test_the_cuts_of_three_points_on_a_line(n_trees):
    """The first cut of 0, 1 and 3 falls into the longer gap with probability 2/3, in any order of
    arrival. The other gap is cut after an exponential time whose rate is its length."""
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        X, y = np.array([[0.0], [1.0], [3.0]])[order], np.array([0, 1, 2])[order]
        forest = core_forest(n_trees, 1, seed=5)
        for i in range(3):
            learn(forest, X[i : i + 1], y[i : i + 1], 3)
        root = tree_statistics(forest)
        check_mean("first cut in the longer gap", root.root_location >= 1, 2 / 3)
        trees = trees_of(forest)
        is_inner = [np.flatnonzero(t["split_dimension"] == 0) for t in trees]
        assert all(len(nodes) == 2 for nodes in is_inner)
        waits = np.array([np.ptp(t["split_time"][nodes]) for t, nodes in zip(trees, is_inner)])
        in_longer = root.root_location >= 1
        check_distribution("wait for the short gap", waits[in_longer], lambda t: -np.expm1(-t))
        check_distribution("wait for the long gap", waits[~in_longer], lambda t: -np.expm1(-2 * t))
