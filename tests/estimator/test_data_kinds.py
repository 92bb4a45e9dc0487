"""X in every form users have it; never kept by reference, never changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier

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
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(kind):
    data = KINDS[kind]()
    expected = np.asarray(data).astype(np.float32)
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).fit(data, Y)
    twin = MondrianForestClassifier(n_estimators=5, random_state=0).fit(expected, Y)
    assert np.array_equal(forest._forest.get_state()["rows"], expected.ravel())
    assert np.array_equal(forest.predict_proba(data), twin.predict_proba(expected))
    forest.partial_fit(data, Y)
    assert forest.n_samples_seen_ == 2 * len(Y)
    if kind.startswith(("pandas", "polars")):
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
