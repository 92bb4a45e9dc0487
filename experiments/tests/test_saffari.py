"""Saffari's forest against a plain twin (`reference/saffari.py`), by hand, and on data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]

from experiments.competitors.online_forest import (
    LEAF,
    count_log,
    make_poisson_table,
    sample_poisson,
    split_gain,
)
from experiments.competitors.saffari import OnlineForestSaffari
from experiments.tests.online_forests import (
    DATA,
    assert_batches_equal_one_by_one,
    assert_equals_twins,
    make_data,
)
from experiments.tests.reference import saffari as reference
from experiments.tests.reference.saffari import SaffariTree

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.xdist_group("compiled competitors"),  # compiled once
]

FOLDER = os.environ.get("ONLINEFOREST_DATA")
N_TREES = 3
SETTINGS = {
    "usual": {"n_tests": 5, "min_samples_split": 10, "max_depth": 50, "min_gain": 0.1},
    "one test": {"n_tests": 1, "min_samples_split": 6, "max_depth": 50, "min_gain": 0.05},
    "splits at once": {"n_tests": 4, "min_samples_split": 1, "max_depth": 50, "min_gain": 0.0},
    "shallow": {"n_tests": 5, "min_samples_split": 5, "max_depth": 2, "min_gain": 0.0},
    "never splits": {"n_tests": 5, "min_samples_split": 5, "max_depth": 0, "min_gain": 0.0},
    "other range": {
        "n_tests": 9,
        "min_samples_split": 8,
        "max_depth": 50,
        "min_gain": 0.01,
        "feature_range": (-1.0, 3.0),
    },
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", DATA)
def test_the_forest_equals_its_plain_twin(kind, settings):
    *_, classes = make_data(kind)
    forest = OnlineForestSaffari(N_TREES, seed=4, **settings)
    twins = [
        SaffariTree(4, len(classes), np.random.default_rng(s), {"feature_range": (0, 1)} | settings)
        for s in np.random.SeedSequence(4).spawn(N_TREES)
    ]
    assert_equals_twins(forest, twins, kind)
    if kind in ("clean", "noisy") and settings["max_depth"] == 50 and settings["n_tests"] > 1:
        assert all(nodes.used[0] >= 7 for nodes, *_ in forest._trees)  # the trees are not trivial


def test_batches_equal_one_by_one():
    assert_batches_equal_one_by_one(
        lambda: OnlineForestSaffari(N_TREES, min_samples_split=5, seed=3)
    )


def test_a_split_computed_by_hand():
    """One feature, and every test separates the two classes: split at the twentieth point."""
    forest = OnlineForestSaffari(
        1, n_tests=1, min_samples_split=20, min_gain=0.5, feature_range=(0.4, 0.6), seed=1
    )
    X = np.tile([[0.3], [0.7]], (30, 1))
    y = np.tile([7, -2], 30)
    seen = []
    for i in range(60):
        forest.partial_fit(X[i : i + 1], y[i : i + 1], classes=[7, -2])
        nodes, pools, _ = forest._trees[0]
        if nodes.split_dimension[0] != LEAF:
            break
        seen.append(int(pools.n_seen[0]))
    assert seen[-1] < 20
    assert nodes.counts[0].sum() == 20  # the root no longer counts, even if the point is repeated
    assert nodes.used[0] == 3
    assert 0.4 <= nodes.split_location[0] <= 0.6
    proba = forest.predict_proba([[0.1], [0.9]])
    assert forest.classes_.tolist() == [-2, 7]
    assert proba.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert forest.predict([[0.1], [0.9]]).tolist() == [7, -2]


def test_a_leaf_keeps_counting_while_no_test_is_good_enough():
    """A gain of 0.9 bits is out of reach for labels that are right only four times in five."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 1))
    y = (X[:, 0] > 0.5) ^ (rng.random(400) < 0.2)
    forest = OnlineForestSaffari(1, min_gain=0.9).partial_fit(X, y.astype(int))
    nodes, pools, _ = forest._trees[0]
    assert nodes.used[0] == 1
    assert pools.n_seen[0] == nodes.counts[0].sum() > 300
    easier = OnlineForestSaffari(1, min_gain=0.1).partial_fit(X, y.astype(int))
    assert easier._trees[0][0].used[0] > 1


def test_counters_of_split_leaves_are_used_again():
    X, y, classes = make_data("noisy")
    forest = OnlineForestSaffari(1, min_samples_split=5, min_gain=0.01).partial_fit(X, y, classes)
    nodes, pools, counters = forest._trees[0]
    n_leaves = nodes.used[0] // 2 + 1
    assert n_leaves > 20
    held = pools.row[:n_leaves]
    held = held[held >= 0]
    assert len(np.unique(held)) == len(held)  # no two leaves share a row
    n_free, row = 0, counters.first_free[1]
    while row != -1:
        n_free, row = n_free + 1, counters.next_free[row]
    assert n_free + len(held) == counters.used[0]  # and none is lost


@pytest.mark.parametrize("seed", range(5))
def test_gain_is_the_drop_of_entropy(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, [[5], [3000]], (2, 6))
    both = left + right
    expected = entropy(both, base=2) - sum(
        side.sum() / both.sum() * entropy(side, base=2) for side in (left, right)
    )
    logs = [sum(count_log(int(c)) for c in side) for side in (left, right, both)]
    assert split_gain(left.sum(), right.sum(), *logs) == pytest.approx(expected, abs=1e-12)
    assert reference.information_gain(left.tolist(), right.tolist()) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("mean", [0.0, 1.0, 10.0])
def test_poisson_numbers_have_their_mean_and_variance(mean):
    """Mean and variance within 6 standard errors (p_fail < 1e-8 each), and the twin's numbers."""
    table = make_poisson_table(mean)
    rng, twin = np.random.default_rng(2), np.random.default_rng(2)
    numbers = np.array([sample_poisson(table, rng) for _ in range(4000)])
    assert numbers[:500].tolist() == [reference.sample_poisson(mean, twin) for _ in range(500)]
    assert abs(numbers.mean() - mean) <= 6 * np.sqrt(mean / 4000)
    assert abs(numbers.var() - mean) <= 6 * np.sqrt((mean + 2 * mean**2) / 4000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "'n_estimators' parameter of OnlineForestSaffari must be an integer"),
        ({"n_tests": 1.5}, "'n_tests' .* Got 1.5 instead"),
        ({"min_samples_split": 0}, "'min_samples_split'"),
        ({"max_depth": -1}, "'max_depth'"),
        ({"min_gain": float("nan")}, "'min_gain' .* must be a number"),
        ({"feature_range": (1.0, 1.0)}, "'feature_range'"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        OnlineForestSaffari(**options)


def test_accuracy_on_digits():
    X, y = load_digits(return_X_y=True)
    forest = OnlineForestSaffari(20)
    for _ in range(3):
        forest.partial_fit(X[:1200] / 16, y[:1200])
    assert (forest.predict(X[1200:] / 16) == y[1200:]).mean() > 0.85


@pytest.mark.skipif(not FOLDER, reason="ONLINEFOREST_DATA names no folder of data sets")
def test_accuracy_on_letter():
    with np.load(Path(FOLDER) / "letter.npz") as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    forest = OnlineForestSaffari(10)
    for _ in range(4):
        forest.partial_fit(X / 15, y)
    assert (forest.predict(X_test / 15) == y_test).mean() > 0.88
