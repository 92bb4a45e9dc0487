"""Denil's forest against a plain twin (`reference/denil.py`), by hand, and on data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]

from experiments.competitors.denil import OnlineForestDenil
from experiments.competitors.online_forest import LEAF
from experiments.tests.online_forests import (
    DATA,
    assert_batches_equal_one_by_one,
    assert_equals_twins,
    make_data,
)
from experiments.tests.reference.denil import DenilTree

pytestmark = pytest.mark.xdist_group("compiled competitors")  # compiled once

N_TREES = 3
USUAL = {
    "n_dimensions": 1.5,
    "n_pivots": 4,
    "min_samples_child": 3.0,
    "max_samples_leaf": 1000.0,
    "growth": 1.00001,
    "min_gain": 0.1,
    "max_depth": 1000,
}
SETTINGS = {
    "usual": {},
    "all dimensions": {"n_dimensions": 30.0},
    "one candidate": {"n_dimensions": 0.0, "n_pivots": 1},
    "no gain needed": {"min_gain": 0.0, "min_samples_child": 1.0},
    "no sample needed": {"min_samples_child": 0.0},
    "only forced splits": {"min_gain": 10.0, "max_samples_leaf": 20.0},
    "harder with depth": {"growth": 1.5, "max_samples_leaf": 30.0},
    "shallow": {"max_depth": 2},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", DATA)
def test_the_forest_equals_its_plain_twin(kind, settings):
    settings = USUAL | settings
    *_, classes = make_data(kind)
    forest = OnlineForestDenil(N_TREES, seed=4, **settings)
    twins = [
        DenilTree(4, len(classes), np.random.default_rng(seed), settings)
        for seed in np.random.SeedSequence(4).spawn(N_TREES)
    ]
    assert_equals_twins(forest, twins, kind)
    if kind in ("clean", "noisy") and settings["n_pivots"] > 1:
        assert all(nodes.used[0] >= 5 for nodes, *_ in forest._trees)  # the trees are not trivial


def test_batches_equal_one_by_one():
    assert_batches_equal_one_by_one(lambda: OnlineForestDenil(N_TREES, **USUAL))


def learn_until_split(X, y, **options):
    """A tree that has just split its root, and the streams of the points it took."""
    forest = OnlineForestDenil(1, seed=0, **options)
    structure = []
    for i in range(len(X)):
        before = 0 if i == 0 else forest._trees[0][0].counts.sum()
        forest.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        nodes = forest._trees[0][0]
        if nodes.split_dimension[0] != LEAF:
            structure.append(nodes.counts[0].sum() == before)
            return forest, np.array(structure)
        structure.append(nodes.counts.sum() == before)
    raise AssertionError("the root was never split")


def test_a_split_computed_by_hand():
    """Two values, a class each, and one pivot, on the lower value since that comes first."""
    X = np.vstack([np.full((20, 1), 0.25), np.tile([[0.25], [0.75]], (40, 1))])
    y = (X[:, 0] > 0.5).astype(int)
    forest, structure = learn_until_split(X, y, n_pivots=1, min_samples_child=5, min_gain=0.5)
    nodes = forest._trees[0][0]
    assert nodes.split_location[0] == 0.25
    # The children start with the estimation points since the pivot, the first structure point.
    pivot = structure.argmax()
    assert 0 < pivot < 20
    labels = y[pivot : len(structure)][~structure[pivot:]]
    assert nodes.counts[1].tolist() == [(labels == 0).sum(), 0]
    assert nodes.counts[2].tolist() == [0, (labels == 1).sum()]
    assert min(nodes.counts[1, 0], nodes.counts[2, 1]) == 5  # split as soon as it was allowed
    assert forest.predict_proba([[0.0], [1.0]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_forced_split_computed_by_hand():
    """Labels without any gain: the root is split when it holds 30 estimation points."""
    X = np.repeat(np.tile([[0.25], [0.75]], (60, 1)), 2, axis=0)
    y = np.tile([0, 1], 120)
    forest, structure = learn_until_split(X, y, max_samples_leaf=30, min_gain=0.9)
    assert (~structure).sum() == 30
    assert forest._trees[0][0].counts[0].sum() == 30


def test_structure_points_do_not_predict():
    """A tree predicts from the estimation points alone, about half of all points."""
    X, y, classes = make_data("clean")
    forest = OnlineForestDenil(100, max_depth=0).partial_fit(X, y, classes)
    n_estimation = np.array([nodes.counts.sum() for nodes, *_ in forest._trees])
    assert (n_estimation < 300).all()
    # Each of 30000 points tosses a coin: within 6 standard deviations of a half (p_fail < 1e-8).
    assert abs(n_estimation.sum() - 15000) < 6 * np.sqrt(30000 / 4)


def count_free(rows):
    """The number of released rows."""
    n_rows = 0
    for size, block in enumerate(rows.first_free):
        while block != -1:
            n_rows, block = n_rows + size, rows.next_free[block]
    return n_rows


def test_memory_of_split_leaves_is_used_again():
    X, y, classes = make_data("noisy")
    forest = OnlineForestDenil(1, **USUAL | {"min_gain": 0.0}).partial_fit(X, y, classes)
    nodes, pools, locations, counters, _ = forest._trees[0]
    n_leaves = nodes.used[0] // 2 + 1
    assert n_leaves > 10
    used = [range(b, b + n) for b, n in zip(pools.locations[:n_leaves], pools.n_dimensions)]
    held = np.concatenate(used)
    assert len(np.unique(held)) == len(held)  # no two leaves share a row
    assert count_free(locations) + len(held) == locations.used[0]  # and none is lost
    held = np.concatenate(
        [
            range(block, block + 1 + pools.n_dimensions[leaf])
            for leaf in range(n_leaves)
            for block in pools.block[leaf]
            if block != -1
        ]
    )
    assert len(np.unique(held)) == len(held)
    assert count_free(counters) + len(held) == counters.used[0]


def test_the_candidate_dimensions_of_a_leaf_differ():
    X = np.random.default_rng(0).random((500, 12))
    y = (X[:, 3] > 0.5).astype(int)
    forest = OnlineForestDenil(30, n_dimensions=5.0).partial_fit(X, y)
    numbers = []
    for nodes, pools, *_ in forest._trees:
        for leaf in range(nodes.used[0] // 2 + 1):
            dimensions = pools.dimension[leaf, : pools.n_dimensions[leaf]]
            assert len(set(dimensions.tolist())) == len(dimensions) <= 12
            assert ((dimensions >= 0) & (dimensions < 12)).all()
            numbers.append(len(dimensions))
    assert 1 < np.mean(numbers) < 12 and len(set(numbers)) > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_dimensions": -1.0}, "'n_dimensions' parameter of OnlineForestDenil must be a number"),
        ({"n_pivots": 0}, "'n_pivots' .* Got 0 instead"),
        ({"min_samples_child": -0.1}, "'min_samples_child'"),
        ({"max_samples_leaf": "many"}, "'max_samples_leaf'"),
        ({"growth": 0.9}, "'growth'"),
        ({"min_gain": -0.1}, "'min_gain'"),
        ({"max_depth": 2.5}, "'max_depth'"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        OnlineForestDenil(**options)


def test_accuracy_on_digits():
    X, y = load_digits(return_X_y=True)
    forest = OnlineForestDenil(20)
    for _ in range(5):
        forest.partial_fit(X[:1200] / 16, y[:1200])
    assert (forest.predict(X[1200:] / 16) == y[1200:]).mean() > 0.85
