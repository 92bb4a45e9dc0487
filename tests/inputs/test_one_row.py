"""The fast path for one row refuses bad input as `partial_fit` does, and changes nothing."""

from __future__ import annotations

import copy
from array import array

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from onlineforest import MondrianForestClassifier

X, Y = load_iris(return_X_y=True)
ROW = X[0]


def changed(value, dtype=np.float64):
    row = ROW.astype(dtype)
    row[2] = value
    return row


BAD_ROWS = {
    "infinity": (changed(-np.inf), ValueError, "x contains infinity .*: -inf at feature 2"),
    "infinity, float32": (
        changed(np.inf, np.float32),
        ValueError,
        "x contains infinity .*: inf at feature 2",
    ),
    "too large for float32": (
        changed(1e39),
        ValueError,
        r"too large for float32: 1e\+39 at feature",
    ),
    "infinity in a list": (
        [1.0, 2.0, np.inf, 3.0],
        ValueError,
        "x contains infinity .*: inf at feature 2",
    ),
    "too large, whole number": ([10**39, 1, 2, 3], TypeError, "numbers"),
    "too long": (np.ones(5), ValueError, "x has 5 features, but this forest has 4"),
    "too short": (np.ones(3, np.float32), ValueError, "x has 3 features, but this forest has 4"),
    "empty": ([], ValueError, "x has 0 features, but this forest has 4"),
    "2-D": (X[:1], ValueError, r"one sample, a 1d array. Got an array of shape \(1, 4\)"),
    "0-D": (np.float64(1.0), ValueError, r"Got an array of shape \(\)"),
    "strings": (["a", "b", "c", "d"], TypeError, "must hold numbers"),
    "numbers as strings": (["1", "2", "3", "4"], TypeError, "must hold numbers"),
    "complex": (ROW + 1j, TypeError, "must hold numbers. Got an array of dtype complex128"),
    "objects": (np.array([1, 2, 3, {}], dtype=object), TypeError, "must hold numbers"),
    "None": (None, ValueError, "one sample"),
    "a dict": ({"a": 1.0}, ValueError, "one sample"),
    "text": (b"abcd", ValueError, "one sample"),
    "dates": (np.array(["2020-01-01"] * 4, "M8[D]"), TypeError, "must hold numbers"),
}


def state_of(forest):
    return forest.n_samples_seen_, forest.classes_.tolist(), forest.predict_proba(X).tolist()


@pytest.fixture(scope="module")
def fitted():
    return MondrianForestClassifier(n_estimators=5, random_state=0).fit(X, Y)


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_row(name, fitted):
    row, error, message = BAD_ROWS[name]
    before = state_of(fitted)
    for call in (
        fitted.predict_proba_one,
        fitted.predict_one,
        lambda x: fitted.learn_one(x, 1),
        lambda x: fitted.learn_one(x, 7),  # a new class
    ):
        with pytest.raises(error, match=r"x |X |feature"):
            call(row)
    with pytest.raises(error, match=message):
        fitted.predict_proba_one(row)
    assert state_of(fitted) == before


@pytest.mark.parametrize("label", [None, np.nan, "one", [1], {}, 0.5, 1 + 1j], ids=repr)
def test_bad_label(label, fitted):
    before = state_of(fitted)
    with pytest.raises((ValueError, TypeError)):
        fitted.learn_one(ROW, label)
    assert state_of(fitted) == before


def test_not_fitted():
    forest = MondrianForestClassifier()
    for call in (forest.predict_proba_one, forest.predict_one):
        with pytest.raises(NotFittedError):
            call(ROW)


def test_changed_parameters_are_named():
    forest = MondrianForestClassifier(n_estimators=3).learn_one(ROW, 0)
    forest.n_estimators = 4
    with pytest.raises(ValueError, match="n_estimators was 3"):
        forest.learn_one(ROW, 0)
    assert forest.n_samples_seen_ == 1


ROW_KINDS = {
    **{
        dtype: np.arange(4, dtype=dtype)
        for dtype in (
            "f2",
            "f4",
            "f8",
            "i1",
            "u1",
            "i2",
            "u2",
            "i4",
            "u4",
            "i8",
            "u8",
            ">f8",
            ">i4",
        )
    },
    "list": [0, 1, 2, 3],
    "array": array("i", [0, 1, 2, 3]),
    "memoryview": memoryview(np.arange(4.0)),
    "every other": np.arange(0, 4, 0.5)[::2],
    "reversed": np.arange(4.0)[::-1][::-1],
    "not aligned": np.frombuffer(b"." + np.arange(4.0).tobytes(), dtype=np.uint8)[1:].view("f8"),
    "read-only": np.broadcast_to(np.arange(4.0), (2, 4))[1],
    "series": pd.Series([0, 1, 2, 3]),
}


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_kinds_of_rows(kind, fitted):
    assert np.array_equal(
        fitted.predict_proba_one(ROW_KINDS[kind]), fitted.predict_proba_one(np.arange(4.0))
    )


def test_kinds_of_rows_and_labels():
    """Rows of any number type, labels of any scalar type that equals a class."""
    forest = MondrianForestClassifier(n_estimators=3, random_state=0)
    forest.learn_one(np.arange(4), 0).learn_one([1, 2, 3, 5], np.int8(1)).learn_one(
        pd.Series([0.5, 1.0, 2.0, 2.0]), True
    )
    forest.learn_one(np.array([1, 2, 3, 4], dtype=">f4"), 1.0)
    forest.learn_one(np.array([1, 2, 3, 4], dtype=np.float16), 0)
    assert forest.n_samples_seen_ == 5
    assert forest.classes_.tolist() == [0, 1]
    assert forest.predict_one((1, 2, 3, 5)) in (0, 1)


def test_classes_that_come_out_of_order():
    forest = MondrianForestClassifier(n_estimators=5, random_state=0)
    for i, label in enumerate(["pear", "apple", "quince", "apple", "pear", "fig"] * 3):
        forest.learn_one(X[7 * i], label)
    assert forest.classes_.tolist() == ["apple", "fig", "pear", "quince"]
    assert np.array_equal(forest.predict_proba_one(ROW), forest.predict_proba([ROW])[0])
    assert forest.predict_one(ROW) == forest.predict([ROW])[0]
    assert type(forest.predict_one(ROW)) is str


def test_the_row_is_copied():
    forest = MondrianForestClassifier(n_estimators=3, random_state=0)
    row = ROW.astype(np.float32)
    forest.learn_one(row, 0).learn_one(row + 1, 1)
    twin = copy.deepcopy(forest)
    row[:] = 99.0
    assert np.array_equal(forest.predict_proba(X), twin.predict_proba(X))


def test_nbytes_grows_with_the_samples(fitted):
    small = MondrianForestClassifier(n_estimators=5, random_state=0).fit(X[:10], Y[:10])
    assert 0 < small.nbytes_ < fitted.nbytes_
    assert fitted.nbytes_ > X.size * 4
