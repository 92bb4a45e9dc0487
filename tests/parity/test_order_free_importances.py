"""Importances of the core against their definition in `tests/reference`."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from onlineforest._core import WEIGHT_OF_ONE, OrderFreeLabelForest, OrderFreeNumberForest
from reference.order_free_forest import OrderFreeForest, as_point, derive, total_weights
from reference.order_free_importances import credits_of
from reference.order_free_numbers import OrderFreeNumbers

N_SAMPLES, N_FEATURES, N_LABELS = 150, 3, 3
HASHES = np.array([derive(12345, code) for code in range(N_LABELS)], dtype=np.uint64)
FORESTS = {
    "defaults": {},
    "calibrators": {"calibrates": True},
    "left out": {"max_samples": 0.6},
    "large leaves": {"min_samples_split": 30},
    "equal ranks": {"key_bits": 3},
}


def rows_and_weights(rng):
    """Rows of which nine in ten are equal in two features, and some lack a number."""
    X = np.where(rng.random((N_SAMPLES, 1)) < 0.9, 0.0, rng.normal(size=(N_SAMPLES, N_FEATURES)))
    X[:, 0] = rng.normal(size=N_SAMPLES)
    X[rng.random(X.shape) < 0.05] = np.nan
    weights = rng.integers(1, 3 * WEIGHT_OF_ONE, N_SAMPLES)
    weights[0] = 1000 * WEIGHT_OF_ONE
    return X.astype(np.float32), weights


@pytest.mark.parametrize("name", FORESTS)
def test_importances_of_labels(name):
    rng = np.random.default_rng(1)
    X, weights = rows_and_weights(rng)
    codes = np.where(rng.random(N_SAMPLES) < 0.3, 0, (X[:, 0] > 0) + 1).astype(np.int32)
    core = OrderFreeLabelForest(4, N_FEATURES, seed=5, **FORESTS[name])
    core.set_labels(HASHES, np.zeros(N_LABELS, dtype=np.uint8))
    core.learn(X, codes, 1, weights)
    samples = [(row, int(HASHES[c]), int(c)) for row, c in zip(X, codes, strict=True)]
    times = (weights / WEIGHT_OF_ONE).tolist()
    plain = OrderFreeForest(
        samples, n_trees=4, seed=5, n_codes=N_LABELS, weights=times, **FORESTS[name]
    )
    points = [(as_point(row), label, code) for row, label, code in samples]
    check(core, plain.trees, total_weights(points, times), lambda code: np.eye(N_LABELS)[code])


@pytest.mark.parametrize("name", FORESTS)
def test_importances_of_numbers(name):
    rng = np.random.default_rng(2)
    X, weights = rows_and_weights(rng)
    y = np.nan_to_num(X[:, 0]) + rng.normal(size=N_SAMPLES)
    core = OrderFreeNumberForest(4, N_FEATURES, seed=5, **FORESTS[name])
    core.learn(X, y, 1, weights)
    times = (weights / WEIGHT_OF_ONE).tolist()
    plain = OrderFreeNumbers(
        list(zip(X, y.tolist(), strict=True)), n_trees=4, seed=5, weights=times, **FORESTS[name]
    )
    points = [
        (as_point(row), struct.unpack("<Q", struct.pack("<d", number))[0], number)
        for row, number in zip(X, y.tolist(), strict=True)
    ]
    check(core, plain.trees, total_weights(points, times), lambda number: np.array([number]))


def check(core, trees, stored, vector):
    expected = [credits_of(root, stored, vector, N_FEATURES) for root in trees]
    found = core.importances(1)
    assert np.abs(found).max(axis=1).min() > 0, "each tree gives credit"
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
