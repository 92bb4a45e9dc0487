"""A Mondrian forest refuses missing values, names the forest that takes them, and is unchanged.

Missing values in order-free forests: `test_orderfree_missing`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from onlineforest import MondrianForestClassifier
from support.bits import assert_same

NAMES = ["age", "size", "mass"]
X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
GAPS = X[:4].copy()
GAPS[2, 1] = np.nan
MASKED = np.ma.array(X[:4], mask=np.isnan(GAPS))
TABLES = {
    "float64": GAPS,
    "float32": GAPS.astype(np.float32),
    "list": GAPS.tolist(),
    "objects": GAPS.astype(object),
    "masked": MASKED,
    "masked integers": np.ma.array(X[:4].round().astype(int), mask=np.isnan(GAPS)),
    "None": np.where(np.isnan(GAPS), None, GAPS.astype(object)),
    "sparse": scipy.sparse.csr_array(GAPS),
}
FRAMES = {
    "pandas": pd.DataFrame(GAPS, columns=NAMES),
    "pandas.NA": pd.DataFrame(GAPS, columns=NAMES).convert_dtypes(),
    "polars": pl.DataFrame(GAPS, schema=NAMES, nan_to_null=True),
    "pyarrow": pa.table({n: pa.array(c, from_pandas=True) for n, c in zip(NAMES, GAPS.T)}),
}
ROW = GAPS[2]
ROWS = {
    "float64": ROW,
    "float32": ROW.astype(np.float32),
    "strided": np.repeat(ROW, 2)[::2],
    "list": ROW.tolist(),
    "tuple": tuple(ROW),
    "masked": MASKED[2],
}
NAMED_ROWS = {
    "dict": dict(zip(NAMES, ROW)),
    "None": {**dict(zip(NAMES, ROW)), "size": None},
    "Series": pd.Series(ROW, index=NAMES),
    "frame": pd.DataFrame([ROW], columns=NAMES),
}
ONE_METHODS = ("predict_one", "predict_proba_one")
METHODS = ("predict", "predict_proba", "predict_log_proba", "novelty", "apply")


def new():
    return MondrianForestClassifier(n_estimators=5, random_state=0)


@pytest.fixture(params=["plain", "named"])
def forest(request):
    """A forest; checks after the test that it is unchanged."""
    named = request.param == "named"
    rows = pd.DataFrame(X, columns=NAMES) if named else X
    forest = new().fit(rows, Y, ids=range(60))
    attributes = {name: value for name, value in vars(forest).items() if name != "_forest"}
    state = forest._forest.get_state()
    yield forest
    assert_same(forest._forest.get_state(), state)
    assert {name: vars(forest)[name] for name in attributes} == attributes
    assert forest.classes_.tolist() == [0, 1] and forest.ids_ == set(range(60))


def refusal(place):
    return pytest.raises(
        ValueError,
        match=rf"Input [xX] contains NaN, {place}\. MondrianForestClassifier learns complete rows "
        r"only\. OnlineForestClassifier learns rows with missing values\.",
    )


def tables_of(forest):
    return FRAMES if hasattr(forest, "feature_names_in_") else TABLES


def test_tables_are_refused(forest):
    place = "in column 'size'" if hasattr(forest, "feature_names_in_") else "in column 1"
    for table in tables_of(forest).values():
        for learn in (new().fit, new().partial_fit, forest.fit, forest.partial_fit):
            with refusal(place):
                learn(table, [0, 1, 0, 1])
        with refusal(place):
            forest.partial_fit(table, [0, 1, 0, 7], ids=["a", "b", "c", "d"])
        with refusal(place):
            forest.forget(table, [0, 1, 0, 1])
        with refusal(place):
            forest.score(table, [0, 1, 0, 1])
        for method in METHODS:
            with refusal(place):
                getattr(forest, method)(table)


def test_a_refused_first_table_leaves_a_forest_new():
    for table in (*TABLES.values(), *FRAMES.values()):
        for learn in ("fit", "partial_fit"):
            forest = new()
            with pytest.raises(ValueError, match="OnlineForestClassifier"):
                getattr(forest, learn)(table, [0, 1, 0, 1])
            assert vars(forest).keys() - {"_guard"} == vars(new()).keys()


def test_single_rows_are_refused(forest):
    rows = NAMED_ROWS if hasattr(forest, "feature_names_in_") else ROWS
    place = r"(at feature 1|in column (1|'size'))"
    for row in rows.values():
        for y, options in ((0, {}), (7, {}), (0, {"id": "new"})):
            with refusal(place):
                forest.learn_one(row, y, **options)
        with refusal(place):
            new().learn_one(row, 0)
        for method in ONE_METHODS:
            with refusal(place):
                getattr(forest, method)(row)


def test_tags():
    tags = new().__sklearn_tags__().input_tags
    assert not tags.allow_nan and tags.sparse
