"""The regressor: calibrated distributions, helpful errors, and uncertainty far from data."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from sklearn.datasets import make_friedman1
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import mean_squared_error
from sklearn.multioutput import MultiOutputRegressor

from onlineforest import MondrianForestRegressor

PLAIN = {"discount": 0.05, "noise": 0.05, "trend": None, "calibrate": False}


def friedman(n=1200, seed=0):
    X, y = make_friedman1(n, n_features=7, noise=1.0, random_state=seed)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def fitted():
    X, y = friedman()
    return MondrianForestRegressor(n_estimators=50, random_state=0).fit(X[:900], y[:900])


# ---- the predicted law ---------------------------------------------------------------------------


def test_predictions_are_better_than_the_mean_and_than_the_trend(fitted):
    X, y = friedman()
    error = mean_squared_error(y[900:], fitted.predict(X[900:]))
    trend = mean_squared_error(y[900:], fitted._forest.trend(X[900:]))
    mean = DummyRegressor().fit(X[:900], y[:900]).predict(X[900:])
    assert error < 0.75 * trend < 0.4 * mean_squared_error(y[900:], mean)
    assert fitted.score(X[900:], y[900:]) > 0.8


def test_quantiles_invert_the_distribution(fitted):
    """The density, integrated up to a quantile, gives its calibrated level; to 1 in all."""
    X, y = friedman()
    rows = X[900:903]
    levels = np.array([0.02, 0.1, 0.5, 0.8, 0.98])
    quantiles = fitted.predict_quantiles(rows, levels)
    assert (np.diff(quantiles, axis=1) > 0).all()
    state = fitted._forest.get_state()
    known = np.concatenate([[0], state["calibration.levels"], [1]])
    raw_levels = np.interp(levels, np.linspace(0, 1, len(known)), known)
    for row, at in zip(rows, quantiles):
        mean, std = (float(m[0]) for m in fitted.predict(row[None], return_std=True))
        y = np.linspace(mean - 15 * std, mean + 15 * std, 6001)
        density = np.exp(fitted.log_density(np.repeat(row[None], len(y), axis=0), y))
        assert abs(trapezoid(density, y) - 1) < 1e-6
        assert abs(trapezoid(y * density, y) - mean) < 1e-6
        assert abs(trapezoid((y - mean) ** 2 * density, y) - std**2) < 1e-5
        below = [trapezoid(np.where(y <= q, density, 0), y) for q in at]
        assert np.abs(below - raw_levels).max() < 0.01
        assert np.ptp(raw_levels) > 0.5


def test_one_level_gives_one_column(fitted):
    X, _ = friedman()
    median = fitted.predict_quantiles(X[:4], 0.5)
    assert median.shape == (4,)
    assert np.array_equal(median, fitted.predict_quantiles(X[:4], [0.5])[:, 0])
    assert fitted.predict_quantiles(X[:4]).shape == (4, 3)
    interval = fitted.predict_interval(X[:4], 0.8)
    assert np.array_equal(interval, fitted.predict_quantiles(X[:4], [0.1, 0.9]))


@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("noise", ["normal", "skewed", "growing"])
@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_intervals_hold(coverage, noise):
    """Over 1500 new samples; a chance of 1e-6 each to miss by five standard errors.

    Errors come from 1500 new and 600 samples left out: one standard error of the coverage is
    sqrt(c (1 - c) (1 / 1500 + 1 / 600)), 0.024 at 0.5.
    """
    rng = np.random.default_rng(3)
    X = rng.random((2100, 4)).astype(np.float32)
    error = {
        "normal": rng.normal(size=2100),
        "skewed": rng.exponential(size=2100) ** 1.5,
        "growing": rng.normal(size=2100) * 3 * X[:, 3],
    }[noise]
    y = 4 * np.sin(4 * X[:, 0] * X[:, 1]) + error
    forest = MondrianForestRegressor(n_estimators=30, random_state=0)
    for part in np.array_split(np.arange(600), 6):
        forest.partial_fit(X[part], y[part])
    forest.refresh_weights()  # the calibration, too: from all 600
    low, high = forest.predict_interval(X[600:], coverage).T
    inside = np.mean((low <= y[600:]) & (y[600:] <= high))
    standard_error = np.sqrt(coverage * (1 - coverage) * (1 / 1500 + 1 / 600))
    assert abs(inside - coverage) < 5 * standard_error
    assert (high - low).mean() < 3 * np.ptp(
        np.quantile(error, [(1 - coverage) / 2, 0.5 + coverage / 2])
    )


def test_without_calibration_intervals_are_the_models_own():
    X, y = friedman()
    plain = MondrianForestRegressor(n_estimators=20, random_state=0, calibrate=False)
    plain.fit(X[:600], y[:600])
    state = plain._forest.get_state()
    assert state["calibration.scale"] == 1 and len(state["calibration.levels"]) == 0
    calibrated = MondrianForestRegressor(n_estimators=20, random_state=0).fit(X[:600], y[:600])
    assert np.array_equal(plain.predict(X[600:]), calibrated.predict(X[600:]))
    assert not np.allclose(plain.predict_interval(X[600:]), calibrated.predict_interval(X[600:]))


@pytest.mark.parametrize("parameters", [PLAIN, {}], ids=["plain", "learned"])
def test_far_from_the_data_the_prior_returns(parameters):
    X, y = friedman()
    forest = MondrianForestRegressor(n_estimators=30, random_state=0, **parameters)
    forest.fit(X, y)
    near, far = X[:50], X[:50] + np.float32(1e6)
    mean, std = forest.predict(far, return_std=True)
    assert np.allclose(mean, forest._forest.trend(far), atol=1e-3 * y.std())
    near_std = forest.predict(near, return_std=True)[1]
    assert std.min() > 1.5 * near_std.max()
    assert (np.ptp(forest.predict_interval(far), axis=1) > 1.5 * 3 * near_std).all()
    if parameters:
        assert np.allclose(mean, y.mean(), atol=1e-3 * y.std())
        assert np.allclose(std, y.std(), rtol=1e-3)


def test_predictions_in_a_gap_are_wide():
    """Between two clusters of samples on a curve the interval widens."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 0.35, 150), rng.uniform(0.65, 1, 150)])
    y = np.sin(8 * x) + 0.05 * rng.normal(size=300)
    forest = MondrianForestRegressor(n_estimators=50, random_state=0).fit(x[:, None], y)
    inside, gap = np.linspace(0.05, 0.3, 20), np.linspace(0.45, 0.55, 20)
    widths = [np.ptp(forest.predict_interval(at[:, None]), axis=1).mean() for at in (inside, gap)]
    assert widths[1] > 2 * widths[0]


# ---- what is learned -----------------------------------------------------------------------------


def test_noise_gets_no_weight_and_no_importance():
    X, y = friedman()
    forest = MondrianForestRegressor(n_estimators=20, random_state=0).fit(X, y)
    weights = forest.feature_weights_ * np.ptp(X, axis=0)
    # Of the five that matter, the fourth and the fifth are linear: the trend has them.
    assert weights[5:].max() < 0.3 * weights[:2].min()
    importances = forest.feature_importances_
    assert importances[5:].max() < 0.2 * importances[:5].min()
    assert np.isclose(importances.sum(), 1)


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_learned_weights_find_pure_interactions():
    """An interaction of two of ten features, which neither a trend nor one feature shows."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 10)).astype(np.float32)
    y = np.sign(X[:, 2] - 0.5) * np.sign(X[:, 7] - 0.5) + 0.1 * rng.normal(size=3000)
    errors = [
        mean_squared_error(
            y[2500:],
            MondrianForestRegressor(30, feature_weights=weights, random_state=0)
            .fit(X[:2500], y[:2500])
            .predict(X[2500:]),
        )
        for weights in ("learned", "range")
    ]
    assert errors[0] < 0.25 * errors[1]


def test_pure_noise_is_predicted_by_its_mean():
    rng = np.random.default_rng(0)
    X, y = rng.random((1500, 5)).astype(np.float32), rng.normal(size=1500)
    forest = MondrianForestRegressor(n_estimators=50, random_state=0).fit(X[:1000], y[:1000])
    assert forest.noise_ >= 0.25
    assert mean_squared_error(y[1000:], forest.predict(X[1000:])) < 1.1 * y[1000:].var()
    assert -forest.log_density(X[1000:], y[1000:]).mean() < 1.5  # 1.419 is the truth


def test_the_trend_is_chosen_on_evidence():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3)).astype(np.float32)
    shapes = {
        "flat": np.zeros(400),
        "linear": 3 * X[:, 0] - X[:, 2],
        "additive": np.exp(3 * X[:, 0]) / 4 + np.abs(X[:, 1] - 0.5) * 6,
    }
    n_knots = {}
    for name, shape in shapes.items():
        y = shape + 0.1 * rng.normal(size=400)
        forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, y)
        n_knots[name] = len(forest._forest.get_state()["measures.trend_knots"])
        assert np.sqrt(np.mean((forest._forest.trend(X) - shape) ** 2)) < 0.06
    assert n_knots["flat"] == 0 and n_knots["linear"] in (6, 12) and n_knots["additive"] == 48
    none = MondrianForestRegressor(n_estimators=5, trend=None).fit(X, shapes["linear"])
    assert np.ptp(none._forest.trend(X)) == 0


def test_fixed_parameters_stay_what_they_are():
    X, y = friedman(300)
    forest = MondrianForestRegressor(5, noise=0.3, discount=0.5, feature_weights="range").fit(X, y)
    assert forest.noise_ == 0.3
    assert np.isclose(forest.discount_rate_, 0.5 * 7)
    assert np.allclose(forest.feature_weights_, 1 / np.ptp(X.astype(float), axis=0))


# ---- values that are hard to take ----------------------------------------------------------------


def test_a_constant_is_predicted_without_deviation_until_it_changes():
    X, _ = friedman(100)
    forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, np.full(100, 3.0))
    mean, std = forest.predict(X, return_std=True)
    assert (mean == 3).all() and (std == 0).all()
    assert (forest.predict_interval(X) == 3).all()
    assert forest.log_density(X[:2], [3.0, 3.1]).tolist() == [np.inf, -np.inf]
    forest.learn_one(X[0] + 5, 10.0)
    assert forest.predict_one(X[0] + 5) > 6
    assert forest.predict_one(X[0] + 5, return_std=True)[1] > 0
    forest._forest.check_invariants()


def test_one_sample_is_enough():
    forest = MondrianForestRegressor(n_estimators=3).fit([[1.0, 2.0]], [5.0])
    assert forest.predict([[1.0, 2.0], [7.0, 7.0]]).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e150])
def test_extreme_values(size):
    X, y = friedman(200)
    y = (y / np.abs(y).max()) * size
    forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X[:150], y[:150])
    with np.errstate(over="ignore"):
        mean, std = forest.predict(X[150:], return_std=True)
    assert np.abs(mean / size - y[150:] / size).mean() < 0.15
    assert (std / size > 0).all() and (std / size < 10).all()
    assert np.isfinite(forest.predict_interval(X[150:]) / size).all()
    assert np.isfinite(forest.log_density(X[150:], y[150:])).all()


def test_rare_values_are_not_overlooked():
    """The measure is computed from a few thousand samples, among which rare values matter."""
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 2)).astype(np.float32)
    y = np.zeros(20_000)
    y[[5, 900, 19_000]] = 100.0
    for seed in range(3):
        forest = MondrianForestRegressor(n_estimators=3, random_state=seed).fit(X, y)
        mean, std = forest.predict(X[[5, 900, 19_000]], return_std=True)
        assert (mean > 5).all() and (std > 0).all()
        assert np.isfinite(forest.log_density(X[:100], y[:100])).all()


@pytest.mark.parametrize("step", [1e-10, 1e-200])
def test_a_value_far_beyond_the_scale_gives_finite_predictions(step):
    """A value far beyond the scale comes between two refreshes."""
    X, _ = friedman(4)
    forest = MondrianForestRegressor(n_estimators=3, random_state=0)
    forest.fit(X[:3], [0.0, step, 2 * step]).partial_fit(X[3:], [1e150])
    forest._forest.check_invariants()
    mean, std = forest.predict(X, return_std=True)
    assert np.isfinite(mean).all() and (std > 1e140).all()
    assert np.isfinite(pickle.loads(pickle.dumps(forest)).predict_interval(X)).all()


def test_a_perfect_trend_still_gives_positive_deviations():
    X, _ = friedman(200)
    y = 2.0 * X[:, 0].astype(float)
    forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X[:150], y[:150])
    assert np.abs(forest.predict(X[150:]) - y[150:]).max() < 0.05
    assert (forest.predict(X[150:], return_std=True)[1] > 0).all()


@pytest.mark.slow
@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_coverage_with_few_samples_for_the_features():
    """The trend is also fitted to the left-out samples; its leverage corrects for that."""
    inside = []
    for seed in range(8):
        X, y = make_friedman1(1200, noise=1.0, random_state=seed)
        forest = MondrianForestRegressor(n_estimators=20, random_state=seed)
        low, high = forest.fit(X[:200], y[:200]).predict_interval(X[200:]).T
        inside.append(np.mean((low <= y[200:]) & (y[200:] <= high)))
    # One standard error of a seed is about 0.023, of the mean 0.008.
    assert 0.86 < np.mean(inside) < 0.94


def test_outliers_in_features_and_values():
    X, y = friedman(300)
    X[0] = 3e38
    X[1] = -3e38
    y[2] = 1e100
    forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    forest._forest.check_invariants()
    assert np.isfinite(forest.predict(X, return_std=True)).all()


# ---- errors --------------------------------------------------------------------------------------

BAD_TARGETS = {
    "NaN": ([1.0, np.nan, 2.0], "NaN"),
    "infinity": ([1.0, np.inf, 2.0], "infinity"),
    "too large": ([1.0, 1e200, 2.0], "between -1e\\+150 and 1e\\+150"),
    "strings": (["a", "b", "c"], "could not convert string to float|dtype"),
    "too many": ([1.0, 2.0, 3.0, 4.0], "inconsistent numbers of samples"),
    "two columns": (
        np.ones((3, 2)),
        "one number per sample, but has shape \\(3, 2\\).*MultiOutput",
    ),
    "none": (None, "requires y to be passed"),
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets_change_nothing(name, fitted):
    y, message = BAD_TARGETS[name]
    X, _ = friedman()
    forest = copy.deepcopy(fitted)
    before = forest.predict(X[:20])
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(forest, method)(X[:3], y)
    assert forest.n_samples_seen_ == 900
    assert np.array_equal(forest.predict(X[:20]), before)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan, [0.5, 2.0], [[0.5]], []])
def test_bad_levels(q, fitted):
    X, _ = friedman()
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        fitted.predict_quantiles(X[:3], q)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, np.nan, [0.5, 0.9]])
def test_bad_coverage(coverage, fitted):
    X, _ = friedman()
    with pytest.raises(ValueError, match="coverage must"):
        fitted.predict_interval(X[:3], coverage)


def test_bad_densities(fitted):
    X, y = friedman()
    with pytest.raises(ValueError, match="X has 3 samples, but y has 2 values"):
        fitted.log_density(X[:3], y[:2])
    with pytest.raises(ValueError, match="finite"):
        fitted.log_density(X[:1], [np.nan])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": 0.0}, "noise"),
        ({"noise": 1.5}, "noise"),
        ({"discount": -1.0}, "discount"),
        ({"discount": 0.0}, "discount"),
        ({"discount": "leanred"}, "discount"),
        ({"trend": "linear"}, "trend"),
        ({"calibrate": "yes"}, "calibrate"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"The '{message}' parameter of MondrianForestRegressor"):
        MondrianForestRegressor(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("y", [np.nan, np.inf, -np.inf, 1e151])
def test_bad_values_one_by_one_change_nothing(y, fitted):
    X, _ = friedman()
    forest = copy.deepcopy(fitted)
    for value in (y, np.float64(y)):
        with pytest.raises(ValueError, match="1e"):
            forest.learn_one(X[0], value)
    with pytest.raises(ValueError, match="one number"):
        forest.learn_one(X[0], [1.0])
    with pytest.raises(ValueError, match="infinity"):
        forest.learn_one(X[0] * np.inf, 1.0)
    assert forest.n_samples_seen_ == 900


def test_not_fitted():
    forest = MondrianForestRegressor()
    for ask in (
        lambda: forest.predict([[0.0]]),
        lambda: forest.predict_one([0.0]),
        lambda: forest.predict_quantiles([[0.0]]),
        lambda: forest.log_density([[0.0]], [0.0]),
        lambda: forest.noise_,
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_parameters_cannot_change_in_the_middle(fitted):
    X, y = friedman()
    forest = copy.deepcopy(fitted).set_params(noise=0.5)
    with pytest.raises(ValueError, match="noise was 'learned' when this forest was started"):
        forest.partial_fit(X[:5], y[:5])


# ---- at home in scikit-learn and pandas ----------------------------------------------------------


def test_a_column_is_taken_with_scikit_learns_warning():
    X, y = friedman(60)
    with pytest.warns(DataConversionWarning):
        forest = MondrianForestRegressor(5, random_state=0).fit(X, y[:, None])
    assert np.array_equal(
        forest.predict(X), MondrianForestRegressor(5, random_state=0).fit(X, y).predict(X)
    )


def test_several_targets_through_scikit_learn():
    X, y = friedman(60)
    forest = MultiOutputRegressor(MondrianForestRegressor(5)).fit(X, np.column_stack([y, -y]))
    assert forest.predict(X[:3]).shape == (3, 2)


def test_frames_and_series():
    X, y = friedman(80)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    forest = MondrianForestRegressor(5, random_state=0).fit(frame, pd.Series(y))
    assert forest.feature_names_in_.tolist() == list("abcdefg")
    plain = MondrianForestRegressor(5, random_state=0).fit(X, y)
    assert np.array_equal(forest.predict(frame), plain.predict(X))
    integers = MondrianForestRegressor(5, random_state=0).fit(X, np.arange(80))
    assert np.isfinite(integers.predict(X)).all()


def test_trees_agree_with_the_forest(fitted):
    X, _ = friedman()
    tree = fitted.trees_[3]
    assert len(fitted.trees_) == 50 and repr(tree).startswith("RegressionTree(n_nodes=")
    assert tree.n_points[tree.root] == 900
    leaves = fitted.apply(X[:900])[:, 3]
    assert np.array_equal(
        np.bincount(leaves, minlength=tree.n_nodes)[tree.is_leaf], tree.n_points[tree.is_leaf]
    )
    assert (tree.variance > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        tree.mean[0] = 1.0
