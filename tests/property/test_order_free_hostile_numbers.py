"""Numbers that would take an order-free forest much time, or precision.

No test looks at a clock: a blow-up would make it take minutes. See test_order_free_hostile.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from onlineforest import OnlineForestRegressor
from onlineforest._core import OrderFreeNumberForest
from support.bits import assert_same

pytestmark = pytest.mark.slow

LEAST = 5e-324


def forest_of(n_features, n_trees=2, **options):
    return OrderFreeNumberForest(n_trees, n_features, seed=3, **options)


def as_samples(X, y):
    return np.ascontiguousarray(X, dtype=np.float32), np.ascontiguousarray(y, dtype=np.float64)


def learn_one_by_one(forest, X, y):
    """Predict before learning, as in a stream."""
    for i in range(len(X)):
        forest.predict(X[i : i + 1])
        forest.learn(X[i : i + 1], y[i : i + 1])


def check_equals_fresh(forest, X, y, **options):
    """Check that the forest is one that learned the samples at once, backwards."""
    fresh = forest_of(forest.n_features, forest.n_trees, **options)
    fresh.learn(*as_samples(X[::-1], y[::-1]))
    for i in range(forest.n_trees):
        assert_same(forest.tree(i), fresh.tree(i))
    assert np.array_equal(forest.predict(X[:9]), fresh.predict(X[:9]))
    assert np.isfinite(forest.predict(X[:9])).all()


SPREADS = {
    "normal": lambda n: np.random.default_rng(0).normal(size=n),
    "close": lambda n: 1e15 + np.arange(n) / 8,
    "large": lambda n: np.linspace(-1e150, 1e150, n),
    "of all sizes": lambda n: np.geomspace(1e-320, 1e150, n) * (-1) ** np.arange(n),
    "denormal": lambda n: np.arange(n) * LEAST,
}


@pytest.mark.parametrize("spread", SPREADS)
def test_identical_rows_with_different_numbers(spread):
    """A leaf of 100,000 distinct samples, then one row that differs and cuts it."""
    n = 100_000
    X, y = as_samples(np.ones((n, 2)), SPREADS[spread](n))
    assert len(set(y)) == n
    forest = forest_of(2, n_trees=1)
    forest.learn(X[:-20], y[:-20])
    learn_one_by_one(forest, X[-20:], y[-20:])
    assert forest.tree(0)["weight"].tolist() == [n]
    mean, variance, _ = forest.predict(X[:1])[0]
    assert mean == math.fsum(y) / n
    scale = np.abs(y).max()
    relative = (y - mean) / scale
    assert math.isclose(variance / scale / scale, np.mean(relative * relative), rel_tol=1e-6) or (
        spread == "denormal" and variance == 0
    )
    other = np.full((1, 2), 2, dtype=np.float32)
    forest.learn(other, y[:1])
    assert sorted(forest.tree(0)["weight"].tolist()) == [1, n, n + 1]
    forest.forget(np.array([n]))
    for serial in range(20):
        forest.forget(np.array([serial]))
        forest.predict(X[:1])
    check_equals_fresh(forest, X[20:], y[20:])


def test_one_sample_a_hundred_thousand_times():
    X, y = as_samples(np.ones((100_000, 2)), np.full(100_000, 1e150))
    X[::2] = 0
    y[::2] = -1e150
    forest = forest_of(2)
    forest.learn(X[:-100], y[:-100])
    learn_one_by_one(forest, X[-100:], y[-100:])
    assert forest.predict(X[:2]).tolist() == [[-1e150, 0.0, 0.0], [1e150, 0.0, 0.0]]
    check_equals_fresh(forest, X, y)
    single = forest_of(2, min_samples_split=10**6)
    single.learn(X, y)
    assert single.predict(X[:1])[0].tolist() == [0.0, pytest.approx(1e300), 0.0]


EXTREMES = {
    "large": [1e150, -1e150],
    "large and small": [1e150, -1e150, 1.0, 0.0, -LEAST],
    "denormal": [LEAST, -LEAST, 3 * LEAST, 0.0, 1e-310],
    "neighbours": [1e150, np.nextafter(1e150, 0), -1e150],
}


@pytest.mark.parametrize("calibrates", [False, True])
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_numbers(name, calibrates):
    rng = np.random.default_rng(1)
    X, y = as_samples(rng.integers(0, 30, (1500, 2)), rng.choice(EXTREMES[name], 1500))
    forest = forest_of(2, calibrates=calibrates)
    forest.learn(X[:1000], y[:1000])
    learn_one_by_one(forest, X[1000:], y[1000:])
    for serial in range(0, 600, 2):
        forest.forget(np.array([serial]))
    rest = forest.serials
    check_equals_fresh(forest, X[rest], y[rest], calibrates=calibrates)


@pytest.mark.parametrize("name", EXTREMES)
def test_distributions_of_extreme_numbers(name):
    """Quantiles rise with the level, and none is NaN."""
    rng = np.random.default_rng(2)
    X, y = as_samples(rng.random((400, 3)), rng.choice(EXTREMES[name], 400))
    for parameters in ({}, {"calibrate": False}, {"max_samples": 0.6}):
        forest = OnlineForestRegressor(10, random_state=0, **parameters).fit(X, y)
        quantiles = forest.predict_quantiles(X, [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()
        mean, std = forest.predict(X, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()
        assert not np.isnan(forest.log_density(X, y)).any()
        assert np.isfinite(forest.feature_importances_).all()
        shuffled = OnlineForestRegressor(10, random_state=0, **parameters).fit(X[::-1], y[::-1])
        assert np.array_equal(shuffled.predict_quantiles(X, [0.1, 0.9]), quantiles[:, [1, 3]])


@pytest.mark.parametrize("one_row", [True, False])
def test_equal_numbers_then_one_other(one_row):
    """The root is a leaf, is cut, and is a leaf again."""
    rng = np.random.default_rng(3)
    X, y = as_samples(np.zeros((3000, 2)) if one_row else rng.random((3000, 2)), np.full(3000, 0.1))
    forest = forest_of(2)
    forest.learn(X, y)
    assert forest.tree(0)["weight"].tolist() == [3000]
    assert (forest.predict(X[:5]) == [0.1, 0.0, 0.0]).all()
    for step in range(20):
        x, number = as_samples(rng.random((1, 2)), [[7.0], [-1e150], [0.1 + 1e-16]][step % 3])
        forest.learn(x, number)
        assert (len(forest.tree(0)["weight"]) > 1) == (number[0] != 0.1)
        if step % 5 == 0:
            check_equals_fresh(forest, np.vstack([X, x]), np.append(y, number))
        forest.forget(np.array([3000 + step]))
        assert forest.tree(0)["weight"].tolist() == [3000]
        assert (forest.predict(X[:5]) == [0.1, 0.0, 0.0]).all()
    check_equals_fresh(forest, X, y)


def test_the_number_that_others_are_compared_with_comes_and_goes():
    """A block compares its numbers with one of them. Whichever that is, it is taken away."""
    rng = np.random.default_rng(4)
    X, y = as_samples(rng.random((400, 2)), np.arange(400) % 4)
    forest = forest_of(2)
    forest.learn(X, y)
    held = np.ones(400, dtype=bool)
    for number in (0.0, 1.0, 2.0):
        for serial in np.flatnonzero(y == number):
            forest.forget(np.array([serial]))
            held[serial] = False
            if serial % 40 == number:
                forest.predict(X[:3])
                check_equals_fresh(forest, X[held], y[held])
    assert forest.tree(0)["weight"].tolist() == [100], "all numbers are equal now"
    for i in np.flatnonzero(~held)[:80]:
        forest.learn(X[i : i + 1], y[i : i + 1])
        forest.predict(X[i : i + 1])
        held[i] = True
    check_equals_fresh(forest, X[held], y[held])
    for _ in range(50):  # one sample again and again
        forest.learn(X[:1] + 5, np.array([9.0]))
        assert len(forest.forget_rows(X[:1] + 5, np.array([9.0]))) == 0
    check_equals_fresh(forest, X[held], y[held])


def test_a_sorted_stream_of_rising_numbers():
    X, y = as_samples(np.arange(2000)[:, np.newaxis], np.arange(2000))
    forest = forest_of(1, calibrates=True)
    learn_one_by_one(forest, X, y)
    check_equals_fresh(forest, X, y, calibrates=True)
    for serial in range(1500):  # from the same end
        forest.forget(np.array([serial]))
        forest.predict(X[serial : serial + 1])
    check_equals_fresh(forest, X[1500:], y[1500:], calibrates=True)
