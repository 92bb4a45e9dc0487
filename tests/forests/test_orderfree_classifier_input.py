"""The order-free classifier refuses bad input and parameters, and is unchanged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from support.iris import DIGIT, DIGITS, NAMES, WHOLE, X, Y, fitted, small


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("starts", [False, True])
def test_infinite_values_are_errors(bad, starts):
    rows = X.copy()
    rows[3, 2] = bad
    forest = small() if starts else fitted()
    for call in (
        lambda: forest.partial_fit(rows, Y),
        lambda: forest.partial_fit(pd.DataFrame(rows), Y),
        lambda: forest.learn_one(rows[3], 0),
    ):
        with pytest.raises(ValueError, match=r"inf|finite|too large"):
            call()
    if starts:
        assert not hasattr(forest, "n_features_in_")
        with pytest.raises(ValueError, match="infinity"):
            forest.fit(rows, Y)
        return
    for call in (
        lambda: forest.predict(rows),
        lambda: forest.predict_one(rows[3]),
        lambda: forest.forget(rows[3:4], Y[3:4]),
    ):
        with pytest.raises(ValueError, match=r"inf|finite|too large"):
            call()
    assert forest.digest_ == WHOLE and forest.n_samples_seen_ == 150


def test_bad_input_changes_nothing():
    forest = fitted()
    bad_calls = [
        (ValueError, "features", lambda: forest.partial_fit(X[:, :3], Y)),
        (ValueError, "strings", lambda: forest.partial_fit(X, NAMES[Y])),
        (ValueError, "inconsistent", lambda: forest.partial_fit(X[:3], Y[:2])),
        (ValueError, "continuous", lambda: forest.partial_fit(X[:2], [0.5, 1.5])),
        (ValueError, "missing", lambda: forest.partial_fit(X[:2], [0, None])),
        (ValueError, "do not exist", lambda: forest.partial_fit(X[:2], [0, 9], classes=[5])),
        (ValueError, "1d array", lambda: forest.partial_fit(X[:2], [0, 1], classes=[[5]])),
        (ValueError, "strings", lambda: forest.partial_fit(X[:2], [0, 1], classes=["a"])),
        (ValueError, "distinct", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 1])),
        (ValueError, "3 ids", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 2, 3])),
        (ValueError, "one label", lambda: forest.learn_one(X[0], [0, 1])),
        (ValueError, "1d array", lambda: forest.learn_one(X[:1], 0)),
        (TypeError, "numbers", lambda: forest.learn_one(["a"] * 4, 0)),
        (ValueError, "feature", lambda: forest.learn_one(X[0, :3], 0)),
        (ValueError, "needs X and y, or ids", lambda: forest.forget(X)),
        (ValueError, "not both", lambda: forest.forget(X, Y, ids=[1])),
        (ValueError, "at least 0", lambda: forest.keep_latest(-1)),
        (ValueError, "features", lambda: forest.predict(X[:, :3])),
        (ValueError, "0 feature", lambda: forest.fit(X[:, :0], Y)),
    ]
    for error, message, call in bad_calls:
        with pytest.raises(error, match=rf"(?i){message}"):
            call()
        assert forest.classes_.tolist() == [0, 1, 2], message
        assert forest.n_samples_seen_ == 150
    assert forest.digest_ == WHOLE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("min_samples_split", 1),
        ("max_samples", 0.0),
        ("max_samples", 1.5),
        ("smoothing", -0.1),
        ("smoothing", 1.1),
        ("window", 0),
        ("reservoir", 0),
        ("half_life", 0.5),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OnlineForestClassifier must"):
        small(**{name: value}).fit(X, Y)


def test_parameters_of_keeping_exclude_each_other():
    with pytest.raises(ValueError, match="window and reservoir"):
        fitted(window=5, reservoir=5)
    with pytest.raises(ValueError, match="half_life needs a reservoir"):
        fitted(half_life=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 6),
        ("min_samples_split", 3),
        ("max_samples", 0.5),
        ("smoothing", 0.0),
        ("window", 5),
    ],
)
def test_a_parameter_that_changes_needs_a_new_forest(name, value):
    forest = fitted().set_params(**{name: value})
    for call in (
        lambda: forest.partial_fit(X, Y),
        lambda: forest.learn_one(X[0], 0),
        lambda: forest.forget(X, Y),
        lambda: forest.keep_latest(3),
    ):
        with pytest.raises(ValueError, match=f"{name} was .* when this forest was started"):
            call()
    assert forest.digest_ == WHOLE, "the digest is that of the parameters it was built with"
    assert forest.fit(X, Y).digest_ != WHOLE
    forest = fitted().set_params(n_jobs=2, random_state=5)
    assert forest.partial_fit(X, Y).keep_latest(150).digest_ == WHOLE


def test_sparse_rows_are_dense_rows():
    rows = np.where(DIGITS[:200] > 8, DIGITS[:200], 0)
    dense = small().fit(rows, DIGIT[:200])
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        forest = small().fit(kind(rows), DIGIT[:200])
        assert forest.digest_ == dense.digest_
        assert np.array_equal(forest.predict_proba(kind(rows)), dense.predict_proba(rows))


def test_data_frames():
    frame = pd.DataFrame(X, columns=list("abcd"))
    forest = small().fit(frame, Y)
    assert forest.digest_ == WHOLE
    assert forest.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        forest.predict(frame[list("bacd")])
