"""X may have many forms; it is neither kept by reference nor changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from onlineforest._inputs import validation as _validation

X, Y = load_iris(return_X_y=True)
X32 = X.astype(np.float32)


def read_only():
    array = X.copy()
    array.flags.writeable = False
    return array


def strided():
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    return wide[::2, ::3]


KINDS = {
    "float64": lambda: X,
    "float32": lambda: X32,
    "float16": lambda: X.astype(np.float16),
    "Fortran order": lambda: np.asfortranarray(X),
    "big endian": lambda: X.astype(">f8"),
    "read-only": read_only,
    "strided view": strided,
    "reversed view": lambda: X[::-1][::-1],
    "list": lambda: X.tolist(),
    "ints": lambda: (X * 10).round().astype(int),
    "bools": lambda: X.mean(axis=0) < X,
    "pandas": lambda: pd.DataFrame(X, columns=list("abcd")),
    "pandas, mixed dtypes": lambda: pd.DataFrame(
        {"a": X32[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3]}
    ),
    "polars": lambda: pl.DataFrame(X, schema=list("abcd")),
    "pyarrow": lambda: pa.table(dict(zip("abcd", X.T))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_all_kinds_give_the_same_forest(kind):
    data = KINDS[kind]()
    expected = np.asarray(data).astype(np.float32)
    if kind == "pyarrow":
        expected = X32
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).fit(data, Y)
    twin = MondrianForestClassifier(n_estimators=5, random_state=0).fit(expected, Y)
    state = forest._forest.get_state()  # has equal samples once
    rows = state["rows"].reshape(-1, 4)
    assert np.array_equal(rows[state.get("sample_of", np.arange(len(rows)))], expected)
    assert np.array_equal(forest.predict_proba(data), twin.predict_proba(expected))
    forest.partial_fit(data, Y)
    assert forest.n_samples_seen_ == 2 * len(Y)
    if kind.startswith(("pandas", "polars", "pyarrow")):
        assert forest.feature_names_in_.tolist() == list("abcd")
    else:
        assert not hasattr(forest, "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_neither_kept_nor_changed(dtype):
    mine, labels, weights = X.astype(dtype), Y.copy(), np.ones(4)
    copy = mine.copy()
    forest = MondrianForestClassifier(n_estimators=5, random_state=0, feature_weights=weights)
    forest.fit(mine, labels)
    assert np.array_equal(mine, copy)
    before = forest.predict_proba(copy)
    mine[:], labels[:], weights[:] = 0, 0, 1e9
    assert np.array_equal(before, forest.predict_proba(copy))
    forest._forest.check_invariants()
    forest.set_params(feature_weights=np.ones(4)).partial_fit(copy, Y)


def test_training_points_are_rounded_like_queries():
    """0.1 is not a float32: without rounding, a point would lie outside its own box."""
    data = np.array([[0.1], [0.2], [0.3]])
    forest = MondrianForestClassifier(n_estimators=20, random_state=0).fit(data, [0, 1, 2])
    single = MondrianForestClassifier(n_estimators=20, random_state=0).fit(
        data.astype(np.float32), [0, 1, 2]
    )
    assert np.array_equal(forest.predict_proba(data), single.predict_proba(data.astype(np.float32)))
    for tree, leaves in zip(forest.trees_, forest.apply(data).T):
        assert (tree.lower[leaves] == tree.upper[leaves]).all()
        assert np.array_equal(tree.lower[leaves], data.astype(np.float32))


SPARSE = [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array]


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_is_the_same_as_dense(kind, monkeypatch):
    monkeypatch.setattr(_validation._dense, "__defaults__", (20,))
    monkeypatch.setattr(_validation.blocks_of, "__defaults__", (24,))  # six rows at a time
    dense = np.where(X > 2, X, 0.0)
    sparse = kind(dense)
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).fit(sparse, Y)
    twin = MondrianForestClassifier(n_estimators=5, random_state=0).fit(dense, Y)
    forest.partial_fit(sparse, Y)
    twin.partial_fit(dense, Y)
    for method in ("predict", "predict_proba", "novelty", "apply"):
        assert np.array_equal(getattr(forest, method)(sparse), getattr(twin, method)(dense))
    regressor = OnlineForestRegressor(n_estimators=5, random_state=0).fit(sparse, X[:, 0])
    for method in ("predict", "predict_interval"):
        assert np.array_equal(getattr(regressor, method)(sparse), getattr(regressor, method)(dense))


def test_a_large_sparse_matrix_is_predicted_by_blocks(monkeypatch):
    """Only a bounded number of values is dense at a time."""
    sizes = []
    dense = _validation._dense
    monkeypatch.setattr(_validation.blocks_of, "__defaults__", (2**14,))
    monkeypatch.setattr(_validation, "_dense", lambda X: sizes.append(X.shape) or dense(X))
    rows = scipy.sparse.random(40, 2**10, density=1e-3, random_state=0, format="csr")
    forest = MondrianForestClassifier(n_estimators=1, feature_weights="range", leaf_discount=0.0)
    forest.fit(rows[:5], [0, 1, 0, 1, 0])
    assert forest.predict(rows).shape == (40,)
    assert sizes == [(5, 2**10), (16, 2**10), (16, 2**10), (8, 2**10)]


TEXT = ["red", "green", "blue"] * 50
NOT_NUMBERS = {
    "pandas, text": lambda: pd.DataFrame({"size": X[:, 0], "colour": TEXT}),
    "pandas, categories": lambda: pd.DataFrame({"size": X[:, 0], "colour": pd.Categorical(TEXT)}),
    "pandas, dates": lambda: pd.DataFrame({"colour": pd.date_range("2020", periods=150)}),
    "polars, text": lambda: pl.DataFrame({"size": X[:, 0], "colour": TEXT}),
    "pyarrow, text": lambda: pa.table({"size": X[:, 0], "colour": TEXT}),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_columns_that_are_not_numbers_are_named(kind):
    message = "X has columns that are not numbers: 'colour' .*encoder of scikit-learn"
    with pytest.raises(ValueError, match=message):
        MondrianForestClassifier().fit(NOT_NUMBERS[kind](), Y)
    other = KINDS["pandas"]()
    forest = MondrianForestClassifier(n_estimators=2).fit(other, Y)
    with pytest.raises(ValueError, match="'d' "):
        forest.predict(other.assign(d=TEXT))


def test_a_column_may_be_missing_in_a_whole_batch():
    forest = OnlineForestClassifier(n_estimators=5, random_state=0)
    forest.partial_fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), [0, 1])
    no_text = pd.Series(["text", None, None])[1:].array
    for nothing in ([None, None], [pd.NA, pd.NA], [np.nan, np.nan], no_text):
        forest.partial_fit(pd.DataFrame({"a": [3.0, 4.0], "b": nothing}), [0, 1])
    forest.partial_fit(pd.DataFrame({"a": [1, pd.NA], "b": [None, 5.0]}, dtype=object), [0, 1])
    forest.partial_fit(pl.DataFrame({"a": [3.0, 4.0], "b": [None, None]}), [0, 1])
    assert forest.n_samples_seen_ == 14
    rows = forest._forest.get_state()["rows"].reshape(-1, 2)
    assert set(rows[~np.isnan(rows[:, 1]), 1]) == {3.0, 4.0, 5.0}


def test_missing_values_of_frames():
    gaps = np.where(X < 1, np.nan, X)
    forest = OnlineForestClassifier(n_estimators=5, random_state=0).fit(gaps, Y)
    frames = [
        pd.DataFrame(gaps),
        pd.DataFrame(gaps).convert_dtypes(),
        pl.DataFrame(gaps, schema=list("abcd"), nan_to_null=True),
        pa.table({name: pa.array(c, from_pandas=True) for name, c in zip("abcd", gaps.T)}),
    ]
    for frame in frames:
        twin = OnlineForestClassifier(n_estimators=5, random_state=0).fit(frame, Y)
        assert np.array_equal(twin.predict_proba(frame), forest.predict_proba(gaps))
