"""Masked cells and NaT are missing values; times, and targets that are missing, are errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)
from support.bits import assert_same

KINDS = [
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
]
ORDER_FREE = KINDS[1:]
each_kind = pytest.mark.parametrize("kind", KINDS)
X = np.random.default_rng(0).integers(1, 6, size=(40, 3)).astype(float)
ARE_MASKED = np.random.default_rng(1).random(X.shape) < 0.2
WITH_NAN = np.where(ARE_MASKED, np.nan, X)
Y = np.arange(40) % 2


def new(kind, **parameters):
    return kind(n_estimators=10, random_state=0, **parameters)


def masked_rows(dtype):
    cells = X.astype(dtype)
    cells[ARE_MASKED] = 7  # 7 would be learned if the mask were ignored
    return np.ma.array(cells, mask=ARE_MASKED)


ROWS = {
    **{dtype: lambda dtype=dtype: masked_rows(dtype) for dtype in ("f8", "f4", "i8", "u1", "O")},
    "list of masked rows": lambda: list(masked_rows("f8")),
    "objects": lambda: np.where(ARE_MASKED, None, X.astype(object)),
    "objects with NaT": lambda: np.where(ARE_MASKED, pd.NaT, X.astype(object)),
    "objects with NumPy's NaT": lambda: _with(np.datetime64("NaT", "s")),
    "objects with masked": lambda: _with(np.ma.masked),
    "nothing masked": lambda: np.ma.array(WITH_NAN),
}


def _with(value):
    rows = X.astype(object)
    for place in np.argwhere(ARE_MASKED):
        rows[tuple(place)] = value
    return rows


@pytest.mark.parametrize("kind", ORDER_FREE)
@pytest.mark.parametrize("form", ROWS)
def test_masked_cells_and_nat_are_missing_values(kind, form):
    rows = ROWS[form]()
    plain = new(kind).fit(WITH_NAN, Y)
    forest = new(kind).fit(rows, Y)
    assert_same(forest._forest.get_state(), plain._forest.get_state())
    assert np.array_equal(forest.predict(rows), plain.predict(WITH_NAN))
    parts = [new(kind).partial_fit(WITH_NAN[:20], Y[:20]) for _ in range(2)]
    parts[0].partial_fit(rows[20:], Y[20:])
    parts[1].partial_fit(WITH_NAN[20:], Y[20:])
    assert np.array_equal(parts[0].predict(rows), parts[1].predict(WITH_NAN))
    forest.forget(rows[:10], Y[:10])
    assert forest.n_samples_stored_ == 30


@pytest.mark.parametrize("kind", ORDER_FREE)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_masked_cells_of_one_row_are_missing_values(kind, dtype):
    rows = masked_rows(dtype)
    forest, plain = new(kind), new(kind)
    for x, with_nan, y in zip(rows, WITH_NAN, Y.tolist(), strict=True):
        forest.learn_one(x, y)
        plain.learn_one(with_nan, y)
    assert_same(forest._forest.get_state(), plain._forest.get_state())
    for x, with_nan in zip(rows, WITH_NAN, strict=True):
        assert forest.predict_one(x) == plain.predict_one(with_nan)
        if hasattr(forest, "predict_proba_one"):
            assert np.array_equal(forest.predict_proba_one(x), plain.predict_proba_one(with_nan))


@pytest.mark.parametrize("kind", ORDER_FREE)
@pytest.mark.parametrize("form", ROWS)
def test_masked_cells_of_tables_with_categories_are_missing_values(kind, form):
    rows, choice = ROWS[form](), {"categorical_features": [1]}
    plain = new(kind, **choice).fit(WITH_NAN, Y)
    forest = new(kind, **choice).fit(rows, Y)
    assert forest.digest_ == plain.digest_
    assert forest.levels_ == {1: [1, 2, 3, 4, 5, None]}
    assert np.array_equal(forest.predict(rows), plain.predict(WITH_NAN))
    stream = new(kind, **choice)
    for x, y in zip(rows, Y.tolist(), strict=True):
        stream.learn_one(x, y)
    assert stream.digest_ == plain.digest_
    assert [stream.predict_one(x) for x in rows] == plain.predict(WITH_NAN).tolist()
    assert stream.forget(rows[:5], Y[:5]).n_samples_stored_ == 35


DATES = np.array(["2020-01-01", "NaT", "2021-01-01"] * 40, dtype="M8[s]").reshape(40, 3)
TIMES = {
    "dates": lambda: DATES,
    "dates in nanoseconds": lambda: DATES.astype("M8[ns]"),
    "durations": lambda: DATES - DATES[0, 0],
    "masked dates": lambda: np.ma.array(DATES, mask=np.isnat(DATES)),
    "list of lists": lambda: [list(row) for row in DATES],
    "list of arrays": lambda: list(DATES),
    "objects": lambda: _with(np.datetime64("2020-01-01", "s")),
    "objects, durations": lambda: _with(np.timedelta64(3, "s")),
}


@each_kind
@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("chosen", [None, [1]])
def test_times_are_refused(kind, form, chosen):
    choice = {"categorical_features": chosen} if chosen and kind in ORDER_FREE else {}
    forest = new(kind, **choice).fit(X, Y)
    before = forest._forest.get_state()
    rows = TIMES[form]()
    for call in (
        lambda: new(kind, **choice).fit(rows, Y),
        lambda: new(kind, **choice).partial_fit(rows, Y),
        lambda: forest.partial_fit(rows, Y),
        lambda: forest.predict(rows),
        lambda: forest.forget(rows, Y),
    ):
        with pytest.raises(ValueError, match=r"X holds times.* Turn times into numbers, such as"):
            call()
    index = int(np.flatnonzero(ARE_MASKED.any(axis=1))[0])
    for call in (forest.predict_one, lambda x: forest.learn_one(x, 1)):
        with pytest.raises((ValueError, TypeError), match=r"x holds times|must hold numbers|value"):
            call(rows[index])
    assert_same(forest._forest.get_state(), before)


@each_kind
def test_structured_arrays_are_refused(kind):
    rows = np.zeros(40, dtype=[("a", "f4"), ("b", "f4")])
    for X in (rows, rows[:, np.newaxis], rows[["a"]][:, np.newaxis], np.ma.array(rows)):
        forest = new(kind)
        with pytest.raises(ValueError, match=r"array with the fields a.*but must be a plain"):
            forest.fit(X, Y)
        assert not hasattr(forest, "_forest")


MISSING_TARGETS = {
    "masked": lambda: np.ma.array(Y, mask=np.arange(40) == 3),
    "masked floats": lambda: np.ma.array(Y.astype(float), mask=np.arange(40) == 3),
    "masked, column": lambda: np.ma.array(Y, mask=np.arange(40) == 3)[:, np.newaxis],
    "list with masked": lambda: [*Y[:3].tolist(), np.ma.masked, *Y[4:].tolist()],
    "dates": lambda: np.where(np.arange(40) == 3, np.datetime64("NaT"), np.datetime64("2020")),
    "durations": lambda: np.where(np.arange(40) == 3, np.timedelta64("NaT"), np.timedelta64(5)),
    "objects": lambda: np.array(
        [*Y[:3].tolist(), np.datetime64("NaT", "s"), *Y[4:].tolist()], dtype=object
    ),
}


@each_kind
@pytest.mark.parametrize("form", MISSING_TARGETS)
def test_a_target_that_is_masked_or_nat_is_an_error(kind, form):
    y = MISSING_TARGETS[form]()
    forest = new(kind).fit(X, Y)
    before = forest._forest.get_state()
    message = "y has masked values, the first at index 3|y contains Na[NT]|y holds times"
    for call in (
        lambda: new(kind).fit(X, y),
        lambda: new(kind).partial_fit(X, y),
        lambda: forest.partial_fit(X, y),
        lambda: forest.forget(X, y),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for target in (np.ma.masked, np.ma.array(5.0, mask=True), np.datetime64("NaT", "s")):
        with pytest.raises(ValueError, match="y "):
            forest.learn_one(X[0], target)
        with pytest.raises(ValueError, match="y "):
            new(kind).learn_one(X[0], target)
    assert_same(forest._forest.get_state(), before)


def test_declared_classes_and_weights_must_not_be_masked():
    weights = np.ma.array(np.ones(40), mask=np.arange(40) == 3)
    for kind in ORDER_FREE:
        with pytest.raises(ValueError, match="sample_weight has masked values, the first at index"):
            new(kind).fit(X, Y, sample_weight=weights)
    for kind in (MondrianForestClassifier, OnlineForestClassifier):
        for classes in (np.ma.array([0, 1, 2], mask=[0, 0, 1]), [0, 1, np.ma.masked]):
            with pytest.raises(ValueError, match="classes has masked values, the first at index 2"):
                new(kind).partial_fit(X, Y, classes=classes)
        with pytest.raises(ValueError, match="classes contains NaT"):
            new(kind).partial_fit(X, Y, classes=np.array(["2020", "NaT"], "M8[D]"))


@each_kind
def test_a_masked_target_without_masked_values_is_learned(kind):
    forest, plain = new(kind).fit(X, np.ma.array(Y)), new(kind).fit(X, Y)
    assert_same(forest._forest.get_state(), plain._forest.get_state())


def test_a_regressor_learns_no_times():
    dates = np.arange(40).astype("M8[D]")
    for y in (dates, dates.astype("M8[ns]"), dates - dates[0], list(dates)):
        with pytest.raises(ValueError, match=r"y holds times \(.*, such as .*must be numbers"):
            new(OnlineForestRegressor).fit(X, y)
    with pytest.raises(ValueError, match="y holds times"):
        new(OnlineForestRegressor).fit(X, Y).log_density(X, dates)
    with pytest.raises(ValueError, match="y holds times"):
        new(OnlineForestRegressor).learn_one(X[0], np.timedelta64(3, "s"))
