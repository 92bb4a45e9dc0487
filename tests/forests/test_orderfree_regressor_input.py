"""The order-free regressor refuses bad input and parameters, and takes any table of numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.multioutput import MultiOutputRegressor

from onlineforest import OnlineForestRegressor
from support.diabetes import WHOLE, X, Y, fitted, small


def test_bad_input_changes_nothing():
    forest = fitted()
    bad_calls = [
        (ValueError, "features", lambda: forest.partial_fit(X[:, :3], Y)),
        (ValueError, "inconsistent", lambda: forest.partial_fit(X[:3], Y[:2])),
        (ValueError, "NaN", lambda: forest.partial_fit(X[:2], [0, np.nan])),
        (ValueError, "infinity", lambda: forest.partial_fit(X[:2], [0, np.inf])),
        (ValueError, "1e", lambda: forest.partial_fit(X[:2], [0, 1.1e150])),
        (ValueError, "1e", lambda: forest.learn_one(X[0], -1.1e150)),
        (ValueError, "one number", lambda: forest.partial_fit(X[:2], np.ones((2, 2)))),
        (ValueError, "convert", lambda: forest.partial_fit(X[:2], ["a", "b"])),
        (ValueError, "distinct", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 1])),
        (ValueError, "3 ids", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 2, 3])),
        (ValueError, "one number", lambda: forest.learn_one(X[0], [0, 1])),
        (ValueError, "1d array", lambda: forest.learn_one(X[:1], 0)),
        (TypeError, "numbers", lambda: forest.learn_one(["a"] * 10, 0)),
        (ValueError, "feature", lambda: forest.learn_one(X[0, :3], 0)),
        (ValueError, "infinity", lambda: forest.learn_one(np.full(10, np.inf), 0.0)),
        (ValueError, "infinity", lambda: forest.predict(np.full((1, 10), np.inf))),
        (ValueError, "needs X and y, or ids", lambda: forest.forget(X)),
        (ValueError, "at least 0", lambda: forest.keep_latest(-1)),
        (ValueError, "features", lambda: forest.predict(X[:, :3])),
        (ValueError, "between 0 and 1", lambda: forest.predict_quantiles(X, 1.0)),
        (ValueError, "coverage", lambda: forest.predict_interval(X, 0.0)),
        (ValueError, "300 samples, but y has 2", lambda: forest.log_density(X, Y[:2])),
    ]
    for error, message, call in bad_calls:
        with pytest.raises(error, match=rf"(?i){message}"):
            call()
        assert forest.n_samples_seen_ == 300, message
    assert forest.digest_ == WHOLE


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
def test_bad_targets_change_nothing(name):
    y, message = BAD_TARGETS[name]
    forest = fitted()
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(forest, method)(X[:3], y)
    assert forest.n_samples_seen_ == 300 and forest.digest_ == WHOLE


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan, [0.5, 2.0], [[0.5]], []])
def test_bad_levels(q):
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        fitted().predict_quantiles(X[:3], q)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, np.nan, [0.5, 0.9]])
def test_bad_coverage(coverage):
    with pytest.raises(ValueError, match="coverage must"):
        fitted().predict_interval(X[:3], coverage)


def test_a_density_is_not_asked_for_at_nan():
    with pytest.raises(ValueError, match="finite"):
        fitted().log_density(X[:1], [np.nan])


@pytest.mark.parametrize("y", [np.nan, np.inf, -np.inf, 1e151])
def test_bad_values_one_by_one_change_nothing(y):
    forest = fitted()
    for value in (y, np.float64(y)):
        with pytest.raises(ValueError, match="1e"):
            forest.learn_one(X[0], value)
    assert forest.digest_ == WHOLE


def test_not_fitted():
    forest = OnlineForestRegressor()
    for ask in (
        lambda: forest.predict([[0.0]]),
        lambda: forest.predict_one([0.0]),
        lambda: forest.predict_quantiles([[0.0]]),
        lambda: forest.log_density([[0.0]], [0.0]),
        lambda: forest.feature_importances_,
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("min_samples_split", 1),
        ("max_samples", 0.0),
        ("calibrate", "yes"),
        ("window", 0),
        ("half_life", 0.5),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OnlineForestRegressor must"):
        fitted(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_estimators", 6), ("max_samples", 0.5), ("calibrate", False), ("window", 5)],
)
def test_a_parameter_that_changes_needs_a_new_forest(name, value):
    forest = fitted().set_params(**{name: value})
    before = fitted().predict_interval(X)
    for call in (
        lambda: forest.partial_fit(X, Y),
        lambda: forest.learn_one(X[0], 0.0),
        lambda: forest.forget(X, Y),
    ):
        with pytest.raises(ValueError, match=f"{name} was .* when this forest was started"):
            call()
    assert np.array_equal(forest.predict_interval(X), before)
    assert forest.digest_ == WHOLE, "the digest is that of the parameters it was built with"
    assert forest.fit(X, Y).digest_ != WHOLE or name == "window"


def test_other_kinds_of_tables():
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(10)])
    assert small().fit(frame, pd.Series(Y)).digest_ == WHOLE
    rows = np.where(X > 0, X, 0)
    assert small().fit(sparse.csr_matrix(rows), Y).digest_ == small().fit(rows, Y).digest_
    assert small().fit(X, Y.tolist()).digest_ == WHOLE
    whole = np.round(Y).astype(np.int16)
    assert small().fit(X, whole).digest_ == small().fit(X, np.round(Y)).digest_


def test_a_column_is_taken_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning):
        forest = small().fit(X, Y[:, None])
    assert forest.digest_ == WHOLE


def test_several_targets_through_scikit_learn():
    forest = MultiOutputRegressor(small()).fit(X[:60], np.column_stack([Y[:60], -Y[:60]]))
    assert forest.predict(X[:3]).shape == (3, 2)


def test_series_and_whole_numbers_are_targets():
    assert small().fit(X, pd.Series(Y)).digest_ == WHOLE
    assert np.isfinite(small().fit(X, np.arange(300)).predict(X)).all()


def test_one_sample_is_enough():
    forest = OnlineForestRegressor(n_estimators=3).fit([[1.0, 2.0]], [5.0])
    assert forest.predict([[1.0, 2.0], [7.0, 7.0]]).tolist() == [5.0, 5.0]


def test_outliers_in_features_and_values():
    rows, y = X.copy(), Y.copy()
    rows[0, 0], rows[1, 0], y[2] = 3e38, -3e38, 1e100
    forest = small().fit(rows, y)
    assert forest.verify() and np.isfinite(forest.predict(rows, return_std=True)).all()
