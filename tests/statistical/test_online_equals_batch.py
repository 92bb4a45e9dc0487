"""Equation (1) of the paper: the tree has the same distribution however the data arrive.

Every order and partition of the data is compared with one batch, on a set of cases: with and
without pausing, finite and infinite lifetime, weights other than 1, duplicates, many features.

A check fails by chance with probability 1e-6 (`support.statistics`). With 50,000 trees
(--full-size) it finds differences of 0.034 in a distribution function, of 0.02 between frequencies
around 0.1, and of 10 standard errors, about 0.01, in a mean prediction; with 3,000 trees
differences four times as large. `tests/mutation` breaks the core and expects these tests to fail.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from support.core import (
    check_same_predictions,
    check_same_trees,
    core_forest,
    learn,
    tree_statistics,
    wide,
)
from support.examples import thorough_but
from support.statistics import (
    check_distribution,
    check_frequencies,
    check_same_distribution,
    check_same_frequencies,
)


@dataclass(frozen=True)
class Case:
    """Data and parameters of one comparison."""

    X: np.ndarray
    y: np.ndarray
    options: dict = field(default_factory=dict)

    @property
    def weights(self):
        return np.asarray(self.options.get("weights", np.ones(self.X.shape[1])))


FOUR_POINTS = np.array([[0.0, 0.0], [0.25, 1.0], [1.0, 0.5], [0.5, 0.75]])
APART = np.arange(4)  # all labels different: only single points pause

_rng = np.random.default_rng(2014)
CLOUD = _rng.random((12, 3)).round(2)
CLOUD[7] = CLOUD[2]  # a duplicate, with another label
CLOUD[8] = CLOUD[3]  # a duplicate, with the same label
CLOUD_LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 2, 0])


CASES = {
    "four points": Case(FOUR_POINTS, APART),
    "finite lifetime": Case(FOUR_POINTS, APART, {"lifetime": 0.8}),
    "weights": Case(FOUR_POINTS, APART, {"weights": [3.0, 0.4]}),
    "weight 0": Case(FOUR_POINTS, APART, {"weights": [0.0, 2.0]}),
    "pausing": Case(FOUR_POINTS, np.array([0, 1, 1, 0])),
    "pausing, finite lifetime, weights": Case(
        FOUR_POINTS, np.array([0, 1, 1, 1]), {"lifetime": 1.5, "weights": [0.5, 2.0]}
    ),
    "three points": Case(FOUR_POINTS[:3], np.array([0, 1, 2])),
    "cloud": Case(CLOUD, CLOUD_LABELS),
    "cloud, no pausing": Case(CLOUD, np.arange(12)),
    "cloud, min_samples_split": Case(CLOUD, CLOUD_LABELS, {"min_samples_split": 4}),
    "cloud, finite lifetime": Case(CLOUD, CLOUD_LABELS, {"lifetime": 1.2, "weights": [1, 2, 0.5]}),
    # The last two points extend one block each, independently of each other.
    "two sides": Case(np.array([[0.0], [0.1], [0.9], [1.0], [0.2], [0.8]]), np.arange(6)),
    "four points, wide": Case(wide(FOUR_POINTS), APART),
    "cloud, wide": Case(wide(CLOUD), CLOUD_LABELS),
    "cloud, wide, finite lifetime": Case(wide(CLOUD), np.arange(12), {"lifetime": 1.2}),
}

# How n points arrive: their order, and the sizes of the batches.
ARRIVALS = {
    "one by one": lambda n: (np.arange(n), [1] * n),
    "one by one, backwards": lambda n: (np.arange(n)[::-1], [1] * n),
    "one by one, shuffled": lambda n: (np.random.default_rng(1).permutation(n), [1] * n),
    "pairs": lambda n: (np.arange(n), _sizes(n, 2)),
    "pairs, shuffled": lambda n: (np.random.default_rng(2).permutation(n), _sizes(n, 2)),
    "threes, shuffled": lambda n: (np.random.default_rng(3).permutation(n), _sizes(n, 3)),
    "one, then the rest": lambda n: (np.arange(n), [1, n - 1]),
    "one, then the rest, backwards": lambda n: (np.arange(n)[::-1], [1, n - 1]),
    "two last": lambda n: (np.arange(n), [n - 2, 2]),
    "half, then the rest, shuffled": lambda n: (
        np.random.default_rng(4).permutation(n),
        [n // 2, n - n // 2],
    ),
}
FIRST_ARRIVALS = ("one by one, shuffled", "pairs, shuffled", "one, then the rest", "two last")


def _sizes(n, size):
    return [size] * (n // size) + ([n % size] if n % size else [])


def grown(case, order, sizes, n_trees, seed):
    forest = core_forest(n_trees, case.X.shape[1], seed=seed, **case.options)
    n_classes = int(case.y.max()) + 1
    for batch in np.split(order, np.cumsum(sizes)[:-1]):
        learn(forest, case.X[batch], case.y[batch], n_classes)
    return forest


@pytest.fixture(scope="module")
def batch_statistics(n_trees):
    """Statistics of trees grown in one batch, per case, computed once."""
    kept = {}

    def statistics(name):
        if name not in kept:
            case = CASES[name]
            n = len(case.y)
            kept[name] = tree_statistics(grown(case, np.arange(n), [n], n_trees, seed=1))
        return kept[name]

    return statistics


@pytest.mark.parametrize("arrival", thorough_but(*FIRST_ARRIVALS, of=ARRIVALS))
@pytest.mark.parametrize("name", CASES)
def test_online_trees_equal_batch_trees(name, arrival, n_trees, batch_statistics, check_invariants):
    case, batch = CASES[name], batch_statistics(name)
    order, sizes = ARRIVALS[arrival](len(case.y))
    forest = grown(case, order, sizes, n_trees, seed=2)
    online = tree_statistics(forest, point_ids=order)
    check_same_trees(batch, online, case.X)
    check_invariants(forest)


@pytest.mark.parametrize("name", ["four points", "cloud"])
def test_sampling_from_bounds_gives_the_trees_of_the_box(name, batch_statistics):
    narrow, wide_ = batch_statistics(name), batch_statistics(f"{name}, wide")
    check_same_distribution("root split time", narrow.root_time, wide_.root_time)
    check_same_frequencies("root dimension", narrow.root_dimension, wide_.root_dimension)
    check_same_distribution("root location", narrow.root_location, wide_.root_location)
    check_same_frequencies("number of nodes", narrow.n_nodes, wide_.n_nodes)
    check_same_distribution("mean depth", narrow.mean_depth, wide_.mean_depth)


@pytest.mark.parametrize("name", CASES)
def test_batch_follows_the_definition_at_the_root(name, n_trees, batch_statistics):
    case, batch = CASES[name], batch_statistics(name)
    lengths = case.weights * np.ptp(case.X, axis=0)
    lifetime = case.options.get("lifetime", math.inf)
    cut = batch.root_dimension >= 0

    # Time: exponential, truncated at the lifetime.
    p_cut = -math.expm1(-lengths.sum() * lifetime)
    check_frequencies("root is cut", cut.astype(int), [1 - p_cut, p_cut])
    check_distribution(
        "root split time",
        batch.root_time[cut],
        lambda t: -np.expm1(-lengths.sum() * t) / p_cut,
    )
    # Dimension: in proportion to the weighted lengths.
    check_frequencies("root dimension", batch.root_dimension[cut], lengths / lengths.sum())
    # Location: uniform.
    for d in np.flatnonzero(lengths):
        low, high = case.X[:, d].min(), case.X[:, d].max()
        check_distribution(
            f"root location in dimension {d}",
            batch.root_location[batch.root_dimension == d],
            lambda x, low=low, high=high: (x - low) / (high - low),
        )


QUERIES = np.array([[0.25, 0.5], [0.7, 0.7], [0.0, 0.0], [2.0, 0.4], [-0.5, 1.2]])


@pytest.mark.parametrize("arrival", thorough_but(*FIRST_ARRIVALS, of=ARRIVALS))
@pytest.mark.parametrize(
    "name",
    [
        "four points",
        "pausing",
        "pausing, finite lifetime, weights",
        "cloud",
        "cloud, finite lifetime",
    ],
)
def test_online_predictions_equal_batch_predictions(name, arrival, n_trees):
    case = CASES[name]
    n, n_features = case.X.shape
    order, sizes = ARRIVALS[arrival](n)
    queries = np.full((len(QUERIES), n_features), 0.5, dtype=np.float32)
    queries[:, :2] = QUERIES

    # With fixed weights the discount rate follows the range seen at the last refresh. The trees do
    # not depend on it; a comparison of predictions needs it equal.
    rates = [
        grown(case, *a, 1, seed=0).discount_rate for a in ((np.arange(n), [n]), (order, sizes))
    ]
    options = {**case.options, "discount": 10.0 * rates[0] / rates[1]}
    rescaled = dataclasses.replace(case, options=options)

    n_groups = 200

    def predictions(case, order, sizes, seed):
        forests = [
            grown(case, order, sizes, n_trees // n_groups, seed * n_groups + g)
            for g in range(n_groups)
        ]
        assert forests[0].discount_rate == pytest.approx(rates[0])
        return np.stack([forest.predict(queries) for forest in forests])

    batch = predictions(case, np.arange(n), [n], seed=1)
    online = predictions(rescaled, order, sizes, seed=2)
    check_same_predictions(batch, online)


def test_range_weights_give_the_batch_distribution_after_a_refresh(n_trees):
    """With weights computed from the data, a forest equals a batch forest after a refresh."""
    case = CASES["cloud"]
    X = case.X[:8] * [1.0, 100.0, 0.01]
    batch = core_forest(n_trees, 3, weights="range", seed=1)
    learn(batch, X, case.y[:8], 3)
    online = core_forest(n_trees, 3, weights="range", seed=2)
    # The third call doubles the points; the ranges have grown, so a refresh changes the weights.
    for rows in ([0, 1], [2, 3], [4, 5, 6, 7]):
        learn(online, X[rows], case.y[rows], 3)
    stored = X.astype(np.float32).astype(float)
    assert np.array_equal(online.feature_weights, 1 / np.ptp(stored, axis=0))
    first, second = tree_statistics(batch), tree_statistics(online)
    check_same_distribution("root split time", first.root_time, second.root_time)
    check_same_frequencies("root dimension", first.root_dimension, second.root_dimension)
    check_same_frequencies("number of nodes", first.n_nodes, second.n_nodes)
    check_same_distribution("mean depth", first.mean_depth, second.mean_depth)
