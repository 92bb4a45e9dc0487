"""Intervals, quantiles and densities of the order-free regressor, and their calibration."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from onlineforest import OnlineForestRegressor
from onlineforest._forests.orderfree.number_calibration import NumberCalibration, r2_of
from support.diabetes import LEVELS, X, Y, fitted, friedman, small


def test_one_level_gives_one_column():
    forest = fitted()
    median = forest.predict_quantiles(X[:4], 0.5)
    assert median.shape == (4,)
    assert np.array_equal(median, forest.predict_quantiles(X[:4], [0.5])[:, 0])
    assert forest.predict_quantiles(X[:4]).shape == (4, 3)
    interval = forest.predict_interval(X[:4], 0.8)
    assert np.array_equal(interval, forest.predict_quantiles(X[:4], [(1 - 0.8) / 2, (1 + 0.8) / 2]))


def test_quantiles_rise_with_the_level():
    for forest in (fitted(n_estimators=20), fitted(calibrate=False), fitted(slice(30))):
        quantiles = forest.predict_quantiles(X, LEVELS)
        assert quantiles.shape == (300, 30)
        assert (np.diff(quantiles, axis=1) >= 0).all() and (
            quantiles[:, 0] < quantiles[:, -1]
        ).any()
        one = forest.predict_quantiles(X, 0.01)
        assert np.array_equal(one, quantiles[:, 0])
        widths = [np.ptp(forest.predict_interval(X, c), axis=1) for c in (0.5, 0.9, 0.999)]
        assert (widths[0] <= widths[1]).all() and (widths[1] <= widths[2]).all()


def test_without_calibration_the_distribution_is_normal():
    forest = fitted(calibrate=False)
    mean, std = forest.predict(X, return_std=True)
    z = NormalDist().inv_cdf(0.95)
    np.testing.assert_allclose(forest.predict_interval(X, 0.9)[:, 1], mean + z * std, rtol=1e-12)
    there = std > 0
    assert there.sum() > 200
    relative = (Y[there] - mean[there]) / std[there]
    density = -0.5 * relative**2 - np.log(std[there] * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(forest.log_density(X, Y)[there], density, rtol=1e-9)


@pytest.mark.heavy_under_sanitizers(reason="learns six forests for a statistic")
@pytest.mark.parametrize("n_trees", [10, 60, 120])
def test_intervals_hold(n_trees):
    """Six sources of 1000 samples each, 250 of which calibrate.

    Whether a sample lies in an interval of 0.9 has the variance 0.9 * 0.1 of a binomial. So the
    share of 1000 new samples has the standard error sqrt(0.09 / 250 + 0.09 / 1000) = 0.021 for one
    source, because 250 samples set the ends of intervals, and 0.0087 for six. With 5 of these,
    0.043, p_fail is 6e-7. Measured: 0.001, -0.005 and -0.006 away from 0.9.
    """
    bound = 5 * math.sqrt((0.09 / 250 + 0.09 / 1000) / 6)
    inside = []
    for seed in range(6):
        rows, numbers = friedman(2000, seed)
        forest = OnlineForestRegressor(n_trees, random_state=seed).fit(rows[:1000], numbers[:1000])
        low, high = forest.predict_interval(rows[1000:], 0.9).T
        inside.append(np.mean((low <= numbers[1000:]) & (numbers[1000:] <= high)))
    assert abs(np.mean(inside) - 0.9) < bound, inside


@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("noise", ["normal", "skewed", "growing"])
@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_intervals_hold_for_errors_of_any_shape(coverage, noise):
    """Over 1500 new samples; a chance of 1e-6 each to miss by five standard errors.

    Errors come from 1500 new samples and the 150 that calibrate: one standard error of the coverage
    is sqrt(c (1 - c) (1 / 1500 + 1 / 150)), 0.043 at 0.5.
    """
    rng = np.random.default_rng(3)
    rows = rng.random((2100, 4)).astype(np.float32)
    error = {
        "normal": rng.normal(size=2100),
        "skewed": rng.exponential(size=2100) ** 1.5,
        "growing": rng.normal(size=2100) * 3 * rows[:, 3],
    }[noise]
    y = 4 * np.sin(4 * rows[:, 0] * rows[:, 1]) + error
    forest = small(n_estimators=30)
    for part in np.array_split(np.arange(600), 6):
        forest.partial_fit(rows[part], y[part])
    low, high = forest.predict_interval(rows[600:], coverage).T
    inside = np.mean((low <= y[600:]) & (y[600:] <= high))
    standard_error = np.sqrt(coverage * (1 - coverage) * (1 / 1500 + 1 / 150))
    assert abs(inside - coverage) < 5 * standard_error
    assert (high - low).mean() < 3 * np.ptp(
        np.quantile(error, [(1 - coverage) / 2, 0.5 + coverage / 2])
    )


@pytest.mark.slow
@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_coverage_with_few_samples_for_the_features():
    inside = []
    for seed in range(8):
        rows, y = make_friedman1(1200, noise=1.0, random_state=seed)
        forest = OnlineForestRegressor(n_estimators=20, random_state=seed)
        low, high = forest.fit(rows[:200], y[:200]).predict_interval(rows[200:]).T
        inside.append(np.mean((low <= y[200:]) & (y[200:] <= high)))
    # With 50 calibrators, the standard error of one share is 0.042, that of the mean 0.015.
    assert 0.84 < np.mean(inside) < 0.96


def test_pure_noise_is_predicted_by_its_mean():
    rng = np.random.default_rng(0)
    rows, y = rng.random((1500, 5)).astype(np.float32), rng.normal(size=1500)
    forest = small(n_estimators=50).fit(rows[:1000], y[:1000])
    assert np.mean((y[1000:] - forest.predict(rows[1000:])) ** 2) < 1.3 * y[1000:].var()
    assert -forest.log_density(rows[1000:], y[1000:]).mean() < 1.6  # 1.419 is the truth


def test_calibrated_densities_are_better_than_those_of_a_constant():
    rows, numbers = friedman(2000)
    forest = OnlineForestRegressor(50, random_state=0).fit(rows[:1000], numbers[:1000])
    density = forest.log_density(rows[1000:], numbers[1000:]).mean()
    constant = NormalDist(numbers[:1000].mean(), numbers[:1000].std())
    assert density > np.mean([math.log(constant.pdf(y)) for y in numbers[1000:]]) + 0.5
    mean, std = forest.predict(rows[1000:], return_std=True)
    relative = ((numbers[1000:] - mean) / std) ** 2
    assert 0.7 < relative.mean() < 1.4


def test_a_constant_is_predicted_without_deviation_until_it_changes():
    for parameters in ({}, {"calibrate": False}, {"max_samples": 0.5}):
        forest = small(**parameters).fit(X, np.full(300, 0.1))
        assert (forest.predict(X) == 0.1).all()
        assert (forest.predict(X, return_std=True)[1] == 0).all()
        assert (forest.predict_interval(X) == 0.1).all()
        assert (forest.log_density(X[:2], [0.1, 0.2]) == [np.inf, -np.inf]).all()
        forest.partial_fit(X[:3] + 1, [7.0, 8.0, 9.0])
        assert forest.predict(X[:1] + 1)[0] > 1
        assert forest.forget(X[:3] + 1, [7.0, 8.0, 9.0]).predict(X[:1] + 1)[0] == 0.1


def test_calibration_does_not_depend_on_the_order():
    levels = [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6]
    expected = None
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(300)
        forest = small(n_estimators=9)
        for part in np.array_split(order, seed + 1):
            forest.partial_fit(X[part], Y[part])
        forest.recalibrate()
        found = np.column_stack(
            [forest.predict_quantiles(X, levels), *forest.predict(X, return_std=True)]
        )
        expected = found if expected is None else expected
        assert np.array_equal(found, expected)
    one_by_one = small(n_estimators=9).fit(X[:100], Y[:100])
    for x, y in zip(X[100:], Y[100:]):
        one_by_one.learn_one(x, y)
        one_by_one.predict_one(x, return_std=True)
    one_by_one.recalibrate()
    assert np.array_equal(one_by_one.predict_quantiles(X, levels), expected[:, :5])


def test_the_calibration_of_errors():
    moments = np.column_stack([np.zeros(100), np.full(100, 4.0), np.zeros(100)])
    errors = np.random.default_rng(0).normal(size=100)
    calibration = NumberCalibration.of(moments, np.full(100, 10), errors, np.ones(100))
    deviation = calibration.spread * calibration.deviations(moments, 10)
    np.testing.assert_allclose(deviation, np.sqrt(np.mean(errors**2)), rtol=1e-12)
    places = [calibration.quantile(level) for level in LEVELS]
    assert np.all(np.diff(places) > 0)
    inside = np.sort(errors)[:, np.newaxis] <= calibration.deviations(moments, 10)[0] * np.array(
        places
    )
    assert np.abs(inside.mean(axis=0) - LEVELS).max() <= 0.011
    assert calibration.quantile(1e-9) < calibration.errors[0] < calibration.quantile(0.011)
    few = NumberCalibration.of(moments[:19], np.full(19, 10), errors[:19], np.ones(19))
    assert few == NumberCalibration()
    assert few == NumberCalibration.of(moments, np.ones(100, np.int64), errors, np.ones(100))
    assert math.isclose(few.quantile(0.975), 1.959964, rel_tol=1e-6)
    exact = NumberCalibration.of(moments * 0, np.full(100, 10), errors * 0, np.ones(100))
    assert exact == NumberCalibration()


def test_a_calibration_needs_twenty_samples_that_weigh_as_much():
    moments = np.column_stack([np.zeros(100), np.full(100, 4.0), np.zeros(100)])
    errors, n_trees = np.random.default_rng(0).normal(size=100), np.full(100, 10)
    for n, weight, is_enough in [
        (20, 1.0, True),
        (19, 1.0, False),
        (19, 1000.0, False),
        (80, 0.25, True),
        (100, 0.125, False),
    ]:
        found = NumberCalibration.of(moments[:n], n_trees[:n], errors[:n], np.full(n, weight))
        assert (found.errors is not None) == is_enough, (n, weight)


def test_few_samples_do_not_calibrate_however_heavy_they_are():
    rows, y = friedman(60)
    plain = small(n_estimators=20).fit(rows, y)
    heavy = small(n_estimators=20).fit(rows, y, sample_weight=np.full(60, 10.0))
    copies = small(n_estimators=20).fit(np.repeat(rows, 10, axis=0), np.repeat(y, 10))
    for forest in (plain, heavy, copies):
        assert forest._calibration() == NumberCalibration()
    assert np.array_equal(heavy.predict_interval(rows), copies.predict_interval(rows))
    many = small(n_estimators=20).fit(*friedman(80))
    assert many._calibration().errors is not None


def test_quantiles_do_not_fall_and_intervals_do_not_cross():
    """Errors that are equal, or nearly so, as those of heavy samples: roundings must not show."""
    rng = np.random.default_rng(1)
    levels = np.linspace(0.001, 0.999, 2000)
    for _ in range(20):
        errors = np.sort(np.repeat(rng.normal(size=10), 10) * (1 + 2.0**-52 * rng.integers(3)))
        ends = np.cumsum(rng.choice([1.0, 0.7, 2000.0], 100))
        calibration = NumberCalibration(errors=errors, ends=ends)
        quantiles = np.array([calibration.quantile(level) for level in levels])
        assert (np.diff(quantiles) >= 0).all()
        inside = quantiles[(levels * (ends[-1] + 1) >= 1) & (levels * (ends[-1] + 1) <= ends[-1])]
        assert np.isin(inside, errors).mean() > 0.5, "an error lies where it weighs most"
        assert errors[0] <= inside.min() and inside.max() <= errors[-1]


@pytest.mark.parametrize("parameters", [{}, {"max_samples": 0.5}, {"calibrate": False}])
@pytest.mark.parametrize("weight", [1.0, 1000.0, 2.0**26])
def test_numbers_of_any_size_get_finite_answers(parameters, weight):
    rng = np.random.default_rng(18)
    rows = rng.integers(0, 10, (200, 3)).astype(float)
    outliers = rng.normal(size=200)
    outliers[:3] = 1e100
    cases = {
        "outliers": outliers,
        "large": rng.choice([1e150, -1e150], 200),
        "of a feature": np.where(rows[:, 1] > 4, 1e150, -1e150) * rng.uniform(0.5, 1, 200),
        "tiny and large": np.where(rng.random(200) < 0.02, 1e150, 1e-160 * outliers),
    }
    for name, y in cases.items():
        forest = small(n_estimators=12, **parameters)
        forest.fit(rows, np.clip(y, -1e150, 1e150), sample_weight=np.full(200, weight))
        mean, std = forest.predict(rows, return_std=True)
        quantiles = forest.predict_quantiles(rows, [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
        variances = np.concatenate([tree.variance for tree in forest.trees_])
        for answer in (mean, std, quantiles, variances, forest.feature_importances_):
            assert np.isfinite(answer).all(), name
        assert (np.diff(quantiles, axis=1) >= 0).all() and (std >= 0).all(), name
        assert (variances >= 0).all(), name
        assert not np.isnan(forest.log_density(rows, y)).any(), name
        assert forest.oob_score_ <= 1 or "calibrate" in parameters, name
        if name == "of a feature":
            assert forest.feature_importances_.argmax() == 1, "cuts have seen the numbers"
            assert forest.score(rows, y) > 0.5


def test_a_power_of_two_in_y_changes_no_bit_of_a_calibration():
    """Large numbers are scaled where sums of their squares would not be finite."""
    rng = np.random.default_rng(3)
    moments = np.column_stack([rng.normal(size=50), rng.random(50), rng.random(50)])
    n_trees, values, weights = rng.integers(2, 9, 50), rng.normal(size=50), np.full(50, 2.0**30)
    plain = NumberCalibration.of(moments, n_trees, values, weights)
    factor = 2.0**495
    large = NumberCalibration.of(
        moments * [factor, factor**2, factor**2], n_trees, values * factor, weights
    )
    assert plain.errors is not None and np.array_equal(large.errors, plain.errors)
    assert (large.scale, large.share, large.spread) == (plain.scale, plain.share, plain.spread)
    predictions = moments[:, 0]
    score = r2_of(predictions, values, weights)
    assert r2_of(predictions * factor, values * factor, weights) == score
    assert math.isclose(score, r2_score(values, predictions), rel_tol=1e-12)
