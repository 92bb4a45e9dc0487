"""Bad input of a Mondrian forest gives an error that names the problem and changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from onlineforest import MondrianForestClassifier

X, Y = load_iris(return_X_y=True)


def with_value(value):
    bad = X[:5].copy()
    bad[2, 1] = value
    return bad


BAD_X = {
    "infinity": (with_value(np.inf), "Input X contains infinity"),
    "minus infinity": (with_value(-np.inf), "Input X contains infinity"),
    "too large for float32": (with_value(1e39), "value too large for dtype\\('float32'\\)"),
    "too wide": (np.ones((5, 7)), "X has 7 features, but MondrianForestClassifier is expecting 4"),
    "too narrow": (
        np.ones((5, 3)),
        "X has 3 features, but MondrianForestClassifier is expecting 4",
    ),
    "1-D": (X[0], "Expected 2D array, got 1D array instead"),
    "3-D": (np.ones((5, 4, 1)), "Found array with dim 3"),
    "0-D": (np.float64(3.0), "Expected 2D array, got scalar array instead"),
    "no rows": (np.ones((0, 4)), "Found array with 0 sample\\(s\\)"),
    "no columns": (np.ones((5, 0)), "0 feature\\(s\\)"),
    "complex": (X[:5] + 1j, "Complex data not supported"),
    "strings": (
        np.array([["a", "b", "c", "d"]] * 5),
        "could not convert string to float: .*a.* encoder of scikit-learn",
    ),
    "objects": (
        np.array([[1, 2, 3, {}]] * 5, dtype=object),
        "float\\(\\) argument must be|must be a string or a real number",
    ),
    "sparse, infinity": (
        scipy.sparse.csr_matrix(with_value(np.inf)),
        "Input X contains infinity",
    ),
    "sparse, too wide": (
        scipy.sparse.csr_matrix(np.ones((5, 7))),
        "X has 7 features, but MondrianForestClassifier is expecting 4",
    ),
    "ragged": ([[1, 2, 3, 4], [1, 2]], "inhomogeneous|sequence"),
    "None": (None, "Expected 2D array, got scalar array instead|NoneType"),
}

BAD_Y = {
    "too short": (Y[:4], "inconsistent numbers of samples: \\[5, 4\\]"),
    "continuous": (np.array([0.5, 1.5, 2.5, 0.1, 0.2]), "Unknown label type: continuous"),
    "NaN": (np.array([0, 1, np.nan, 1, 0]), "Input y contains NaN"),
    "None among strings": (
        np.array(["a", None, "b", "a", "b"], dtype=object),
        "contains NaN",
    ),
    "pandas.NA among objects": (
        np.array(["a", pd.NA, "b", "a", "b"], dtype=object),
        "Input y contains NaN: a label is missing",
    ),
    "pandas.NA among strings": (
        pd.Series(["a", pd.NA, "b", "a", "b"], dtype="string"),
        "contains NaN",
    ),
    "NaN among objects": (np.array([1, np.nan, 0, 1, 0], dtype=object), "contains NaN"),
    "two columns": (np.ones((5, 2), dtype=int), "y should be a 1d array"),
    "missing": (None, "requires y to be passed"),
    "unsortable": (
        np.array(["a", 1, "b", 2, "c"], dtype=object),
        "The labels in y cannot be sorted: '<' not supported",
    ),
    "other kind": (
        np.array(["a", "b", "a", "b", "a"]),
        "y has labels that are strings, but this forest was fitted with numbers",
    ),
    "empty": ([], "inconsistent numbers of samples|0 sample"),
}


@pytest.fixture
def forest():
    return MondrianForestClassifier(n_estimators=5, random_state=0).fit(X, Y)


@pytest.fixture
def unchanged(forest):
    """A forest; checks after the test that it is unchanged."""
    state, attributes = (
        forest.predict_proba(X),
        {k: v for k, v in vars(forest).items() if k != "_forest"},
    )
    yield
    after = {k: v for k, v in vars(forest).items() if k != "_forest"}
    assert attributes.keys() == after.keys()
    assert all(np.all(attributes[k] == after[k]) for k in attributes if k != "_targets")
    assert attributes["_targets"] is after["_targets"]
    assert np.array_equal(state, forest.predict_proba(X))
    assert forest.n_samples_seen_ == len(Y)
    forest._forest.check_invariants()
    # It goes on as if nothing had been: the random states have not moved either.
    twin = MondrianForestClassifier(n_estimators=5, random_state=0).fit(X, Y)
    assert np.array_equal(
        forest.partial_fit(X + 1, Y).predict_proba(X), twin.partial_fit(X + 1, Y).predict_proba(X)
    )


@pytest.mark.parametrize("kind", BAD_X)
def test_bad_x(kind, forest, unchanged):
    bad, message = BAD_X[kind]
    for call in (forest.predict, forest.predict_proba, forest.predict_log_proba, forest.apply):
        with pytest.raises((ValueError, TypeError), match=message):
            call(bad)
    with pytest.raises((ValueError, TypeError), match=message):
        forest.partial_fit(bad, Y[:5])
    if "too " not in kind or "large" in kind:  # fit takes any width
        with pytest.raises((ValueError, TypeError), match=message):
            forest.fit(bad, Y[:5])


@pytest.mark.parametrize("kind", BAD_Y)
def test_bad_y(kind, forest, unchanged):
    bad, message = BAD_Y[kind]
    with pytest.raises((ValueError, TypeError), match=message):
        forest.partial_fit(X[:5], bad)
    if kind != "other kind":  # fit starts anew
        with pytest.raises((ValueError, TypeError), match=message):
            forest.fit(X[:5], bad)


def test_other_feature_names(unchanged, forest):
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = MondrianForestClassifier(n_estimators=5, random_state=0).fit(frame, Y)
    assert list(named.feature_names_in_) == list("abcd")
    before = named.predict_proba(frame)
    other = frame.rename(columns={"a": "z"})
    for call in (named.predict, lambda f: named.partial_fit(f, Y)):
        with pytest.raises(
            ValueError, match="feature names should match those that were passed during fit"
        ):
            call(other)
        with pytest.raises(ValueError, match="must be in the same order"):
            call(frame[list("bacd")])
    bad = other.copy()
    bad.iloc[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        named.fit(bad, Y)
    assert list(named.feature_names_in_) == list("abcd")
    assert np.array_equal(before, named.predict_proba(frame))


def test_labels_outside_the_declared_classes(forest, unchanged):
    with pytest.raises(
        ValueError, match=r"label\(s\) \[7\] in y do not exist in the classes \[0 1 2 5\]"
    ):
        forest.partial_fit(X[:2], [0, 7], classes=[0, 1, 2, 5])


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (
            ["a", "b"],
            "classes has labels that are strings, but this forest was fitted with numbers",
        ),
        ([[0, 1], [2, 3]], "classes should be a 1d array"),
        ([0.5, 1.5], "Unknown label type: continuous"),
    ],
)
def test_bad_classes(classes, message, forest, unchanged):
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "apply", "score"]
)
def test_predict_before_fit(method):
    arguments = (X, Y) if method == "score" else (X,)
    with pytest.raises(
        NotFittedError, match="This MondrianForestClassifier instance is not fitted yet"
    ):
        getattr(MondrianForestClassifier(), method)(*arguments)


@pytest.mark.parametrize(
    "attribute", ["classes_", "trees_", "n_samples_seen_", "feature_weights_", "discount_rate_"]
)
def test_no_fitted_attribute_before_fit(attribute):
    assert not hasattr(MondrianForestClassifier(), attribute)


INVALID = {
    "n_estimators": [0, -1, 2.5, "10", None, math.nan],
    "lifetime": [-1.0, math.nan, "long", None, 1j],
    "discount": [-0.1, math.inf, math.nan, "x", None],
    "min_samples_split": [1, 0, -5, 2.5, None, "2", 2**40],
    "feature_weights": ["learned?", 3, 2.5],
    "n_jobs": [1.5, "two"],
    "random_state": [-1, "seed", 1.5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in INVALID.items() for v in values]
)
def test_invalid_parameters(name, value):
    estimator = MondrianForestClassifier(**{name: value})
    for call in (estimator.fit, estimator.partial_fit):
        with pytest.raises(
            ValueError, match=f"The '{name}' parameter of MondrianForestClassifier must be"
        ):
            call(X, Y)
        assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"must have shape \(4,\), one weight per feature. Got shape \(2,\)"),
        (np.ones((4, 1)), r"must have shape \(4,\)"),
        ([1, 1, 1, -1], "must lie between 0 and 1e\\+200"),
        ([0, 0, 0, 0], "not all be 0"),
        ([1, 1, 1, 1e300], "must lie between 0 and 1e\\+200"),
        ([1, 1, 1, np.nan], "Input feature_weights contains NaN"),
        ([1, 1, 1, np.inf], "Input feature_weights contains infinity"),
        (["a", "b", "c", "d"], "could not convert string to float"),
        ({"a": 1}, "must be a string or a real number, not 'dict'"),
    ],
)
def test_invalid_weights(weights, message):
    estimator = MondrianForestClassifier(feature_weights=weights)
    for call in (estimator.fit, estimator.partial_fit):
        with pytest.raises((ValueError, TypeError), match=message):
            call(X, Y)
        assert not hasattr(estimator, "n_features_in_")


def test_no_threads():
    with pytest.raises(ValueError, match="n_jobs == 0"):
        MondrianForestClassifier(n_jobs=0).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 7),
        ("lifetime", 1.0),
        ("discount", 1.0),
        ("min_samples_split", 3),
        ("feature_weights", None),
    ],
)
def test_parameters_changed_after_the_start(name, value, forest, unchanged):
    old = getattr(forest, name)
    forest.set_params(**{name: value})
    with pytest.raises(
        ValueError, match=f"{name} was .* when this forest was started, but is .* now"
    ):
        forest.partial_fit(X, Y)
    forest.set_params(**{name: old})


def test_threads_may_change_after_the_start(forest):
    forest.set_params(n_jobs=2).partial_fit(X, Y)
