"""One row with names: a dict or another mapping, a pandas Series, a data frame of one row."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

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
NAMES = ["width", "height", "depth"]
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(40, 3)), columns=NAMES)
MIXED = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "blue", "green"], size=40),
        "size": RNG.normal(size=40),
        "is_new": RNG.random(40) < 0.5,
    }
)
Y = (NUMBERS.width > 0).astype(int).to_numpy()


def new(kind, **parameters):
    return kind(n_estimators=10, random_state=0, **parameters)


def dict_of(frame, i):
    return {name: frame[name].tolist()[i] for name in frame.columns}


def answers(forest, x):
    """Predictions of all methods of a forest for one row."""
    if hasattr(forest, "predict_proba_one"):
        return [forest.predict_one(x), *forest.predict_proba_one(x)]
    return [forest.predict_one(x), *forest.predict_one(x, return_std=True)]


def answers_of_frame(forest, row):
    if hasattr(forest, "predict_proba"):
        return [forest.predict(row)[0], *forest.predict_proba(row)[0]]
    return [forest.predict(row)[0], *np.array(forest.predict(row, return_std=True))[:, 0]]


def defaults(row):
    made = defaultdict(lambda: 0.0)
    made.update(row)
    return made


MAPPINGS = {
    "dict": dict,
    "reversed": lambda row: dict(reversed(row.items())),
    "OrderedDict": OrderedDict,
    "defaultdict": defaults,
    "proxy": MappingProxyType,
    "Series": lambda row: pd.Series(row, dtype=object),
    "Series, shuffled": lambda row: pd.Series(row, dtype=object)[::-1],
}
FRAMES = {
    "pandas": lambda row: pd.DataFrame([row]),
    "polars": lambda row: pl.DataFrame([row]),
    "pyarrow": lambda row: pa.Table.from_pylist([row]),
}


@each_kind
@pytest.mark.parametrize("form", {**MAPPINGS, **FRAMES})
@pytest.mark.parametrize("frame", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_a_row_is_taken_by_names(kind, form, frame):
    if frame is MIXED and kind not in ORDER_FREE:
        frame = MIXED[["size"]].assign(age=NUMBERS.depth, weight=NUMBERS.width)
    made = {**MAPPINGS, **FRAMES}[form]
    forest, plain = new(kind).fit(frame[:20], Y[:20]), new(kind).fit(frame[:20], Y[:20])
    for i in (20, 21, 22, 39):
        row = dict_of(frame, i)
        assert answers(forest, made(row)) == answers_of_frame(plain, frame[i : i + 1])
        forest.learn_one(made(row), Y[i].item())
        plain.learn_one([row[name] for name in frame.columns], Y[i].item())
    weight = {"sample_weight": 2.0} if kind in ORDER_FREE else {}
    forest.learn_one(made(row), Y[0].item(), id="last", **weight)
    plain.partial_fit(frame[39:], Y[:1], ids=["last"], **weight)
    assert_same(forest._forest.get_state(), plain._forest.get_state())
    assert forest.forget(ids=["last"]).n_samples_stored_ == 24
    if hasattr(forest, "classes_"):
        assert forest.learn_one(made(row), 7).classes_.tolist() == [0, 1, 7]


@pytest.mark.parametrize("kind", ORDER_FREE)
def test_new_levels_and_missing_values_come_by_name(kind):
    forest, plain = new(kind).fit(MIXED, Y), new(kind).fit(MIXED, Y)
    rows = [
        {"colour": "pink", "size": 1.0, "is_new": True},
        {"colour": None, "size": None, "is_new": None},
        {"colour": np.nan, "size": pd.NA, "is_new": True},
        {"colour": "red", "size": pd.NaT, "is_new": np.True_},
        {"colour": "red", "size": np.ma.masked, "is_new": False},
        {"colour": "red", "size": 3, "is_new": 0},
    ]
    for row in rows:
        for x in (row, pd.Series(row, dtype=object)):
            cells = [None if value is np.ma.masked else value for value in row.values()]
            assert answers(forest, x) == answers(plain, cells)
            forest.learn_one(x, 1)
            plain.learn_one(cells, 1)
    assert forest.digest_ == plain.digest_ and None in forest.levels_["colour"]
    assert "pink" in forest.levels_["colour"] and forest.levels_["is_new"] == [0, 1, None]


@each_kind
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": ...}, r"x lacks 'depth' of the 3 features.*None or NaN for a missing value"),
        ({"depth": ..., "width": ...}, r"x lacks 'width', 'depth' of the 3 features"),
        ({"hue": 1.0}, r"x has 'hue', which this forest does not know"),
        ({"depth": ..., "Depth": 1.0}, r"x lacks 'depth' .*; x has 'Depth', which this forest"),
        ({1: 1.0}, r"x has 1, which this forest does not know"),
        ({"depth": "deep"}, r"Feature 'depth' is numeric, but its value is 'deep'"),
        ({"depth": "1.5"}, r"Feature 'depth' is numeric, but its value is '1.5'"),
        ({"depth": [1.0]}, r"Feature 'depth' is numeric, but its value is \[1.0\]"),
        ({"depth": np.datetime64("2020")}, r"Feature 'depth' is numeric, but its value is"),
        ({"depth": -(10**400)}, r"x contains infinity|X contains infinity"),
        ({"depth": np.inf}, r"x contains infinity|X contains infinity"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_wrong_names_and_values_are_named_and_change_nothing(kind, change, message):
    forest = new(kind).fit(NUMBERS, Y)
    row = {**dict_of(NUMBERS, 0), **change}
    row = {name: value for name, value in row.items() if value is not ...}
    before = forest._forest.get_state()
    for x in (row, defaults(row)):
        for call in (
            forest.predict_one,
            getattr(forest, "predict_proba_one", forest.predict_one),
            lambda x: forest.learn_one(x, 1),
            lambda x: forest.learn_one(x, 1, id="a"),
            lambda x: forest.learn_one(x, 9),  # a new class
        ):
            with pytest.raises(ValueError, match=message):
                call(x)
        assert x.keys() == row.keys()  # a defaultdict makes up no value
    assert_same(forest._forest.get_state(), before)
    assert forest.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("kind", ORDER_FREE)
def test_a_value_that_is_no_level_is_named(kind):
    forest = new(kind).fit(MIXED, Y)
    row = {"colour": 1.5, "size": 1.0, "is_new": True}
    for call in (forest.predict_one, lambda x: forest.learn_one(x, 1)):
        with pytest.raises(ValueError, match=r"Feature 'colour' is categorical\. A level must"):
            call(row)


@each_kind
def test_a_forest_without_names_takes_no_names(kind):
    forest = new(kind).fit(NUMBERS.to_numpy(), Y)
    row = dict_of(NUMBERS, 0)
    for x in (row, pd.Series(row)):
        for call in (forest.predict_one, lambda x: forest.learn_one(x, 1)):
            with pytest.raises(ValueError, match="this forest has no feature names: give the val"):
                call(x)
    assert forest.predict_one(pd.Series(list(row.values()))) == forest.predict(NUMBERS[:1].values)
    assert forest.n_samples_seen_ == 40


@each_kind
@pytest.mark.parametrize("form", FRAMES)
def test_a_frame_must_have_one_row_and_the_columns_of_the_forest(kind, form):
    forest = new(kind).fit(NUMBERS, Y)
    made = FRAMES[form](dict_of(NUMBERS, 0))
    calls = (forest.predict_one, lambda x: forest.learn_one(x, 1))
    three = {"pandas": pd.concat, "polars": pl.concat, "pyarrow": pa.concat_tables}[form]
    for x, n in ((three([made] * 3), 3), (made[:0], 0)):
        for call in (*calls, lambda x: new(kind).learn_one(x, 1)):
            with pytest.raises(ValueError, match=f"one sample, but is a data frame with {n} rows"):
                call(x)
    other = FRAMES[form](dict_of(NUMBERS.rename(columns={"depth": "hue"}), 0))
    turned = FRAMES[form](dict_of(NUMBERS[NAMES[::-1]], 0))
    for x in (other, turned):
        for call in (*calls, forest.predict):
            with pytest.raises(ValueError, match="feature names should match those"):
                call(x)
    assert forest.n_samples_seen_ == 40


@each_kind
@pytest.mark.parametrize("form", {**MAPPINGS, **FRAMES})
def test_the_first_row_gives_the_features_their_names(kind, form):
    made = {**MAPPINGS, **FRAMES}[form]
    frame = MIXED if kind in ORDER_FREE else NUMBERS
    turned = form in ("reversed", "Series, shuffled")
    columns = list(frame.columns)[::-1] if turned else list(frame.columns)
    forest = new(kind).learn_one(made(dict_of(frame, 0)), Y[0].item())
    plain = new(kind).partial_fit(frame[columns][:1], Y[:1])
    for i in range(1, 12):
        forest.learn_one(dict_of(frame, i), Y[i].item())
        plain.learn_one([dict_of(frame, i)[name] for name in columns], Y[i].item())
    assert forest.feature_names_in_.tolist() == columns
    assert forest.feature_names_in_.dtype == object
    assert_same(forest._forest.get_state(), plain._forest.get_state())
    assert np.array_equal(forest.predict(frame[columns]), plain.predict(frame[columns]))
    if kind in ORDER_FREE:
        assert forest.levels_ == plain.levels_ and set(forest.levels_) == {"colour", "is_new"}


@pytest.mark.parametrize("kind", ORDER_FREE)
def test_categorical_features_are_found_in_the_first_row(kind):
    row = {"shop": 3, "size": 1.5, "colour": "red"}
    forest = new(kind, categorical_features=["shop"])
    with pytest.raises(ValueError, match="Feature 'colour' is numeric, but its value is 'red'"):
        forest.learn_one(row, 1)
    assert not hasattr(forest, "feature_names_in_") and not hasattr(forest, "_forest")
    forest = new(kind, categorical_features=["shop", "colour"]).learn_one(row, 1)
    assert forest.levels_ == {"shop": [3], "colour": ["red"]}
    missing = new(kind).learn_one({**row, "colour": None}, 1)  # None does not show its kind
    assert missing.levels_ == {}


@each_kind
def test_wrong_first_rows_leave_a_forest_new(kind):
    for x, message in (
        ({1: 1.0, "a": 2.0}, "its keys become the names of the features. .* strings. Got 1"),
        ({}, "one sample without features"),
        ({"a": np.inf}, "infinity"),
        ({"a": [1.0]}, "Feature 'a' is numeric, but its value is"),
        (pd.Series([1.0, 2.0], index=["a", "a"]), "x has more than one value of 'a'"),
    ):
        forest = new(kind)
        with pytest.raises(ValueError, match=message):
            forest.learn_one(x, 1)
        assert not hasattr(forest, "n_features_in_") and not hasattr(forest, "feature_names_in_")
    for x in ({"a": 1.0}, pd.DataFrame({"a": [1.0]})):
        with pytest.raises(NotFittedError):
            new(kind).predict_one(x)


@each_kind
def test_an_array_is_learned_by_a_forest_with_names_without_a_warning(kind):
    forest = new(kind).fit(NUMBERS, Y)
    row = NUMBERS.to_numpy()[0]
    forest.learn_one(row, 1, id="a").learn_one(row, 9)
    assert forest.n_samples_seen_ == 42 and forest.ids_ == {"a"}
    with pytest.raises(ValueError, match="x has 2 features, but this forest has 3"):
        forest.learn_one(row[:2], 1, id="b")
