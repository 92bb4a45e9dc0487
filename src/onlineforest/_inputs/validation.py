"""Checks of X and y. Must not know forests.

Each check returns valid arrays or raises before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data

from onlineforest._core import (
    LARGEST_WEIGHT,
)
from onlineforest._inputs.cells import TURN_TIMES, with_masks, with_nan
from onlineforest._inputs.rounding import rounded
from onlineforest._inputs.tables import Table

# Gives the offset of each feature when the estimator knows the names of its features.
FindOffsets = Callable[[], Any]


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[Callable[[], None]]:
    """Restore the attributes of an estimator if the block raises.

    scikit-learn's validation sets attributes, such as feature names, before it has checked
    everything; a rejected call must leave no trace. The block gets a function: after its call,
    changes are kept even if the block raises.
    """
    saved: dict[str, Any] | None = dict(vars(estimator))

    def keep() -> None:
        nonlocal saved
        saved = None

    try:
        yield keep
    except BaseException:
        if saved is not None:
            for name in vars(estimator).keys() - saved.keys():
                delattr(estimator, name)
            vars(estimator).update(saved)
        raise


def check_rows(
    estimator: Any,
    X: Any,
    *,
    hint: str = "",
    find_offsets: FindOffsets | None = None,
    **options: Any,
) -> Any:
    """scikit-learn's `validate_data`, with rows as the core needs them: C-ordered float32.

    NaN marks a missing value, and stays; a masked cell becomes NaN. A sparse matrix becomes dense.
    `hint` is what the error about columns that are not numbers says to users. Offsets are
    subtracted before the rounding.
    """
    X = numeric_frame(X, hint) if is_into_dataframe(X) else with_nan(X)
    # A value too large for float32 becomes infinite, and infinite values are rejected.
    with np.errstate(over="ignore"):
        try:
            checked = validate_data(
                estimator,
                X,
                dtype=np.float32 if find_offsets is None else np.float64,
                order="C",
                accept_sparse="csr",
                ensure_all_finite="allow-nan",
                **options,
            )
        except (ValueError, TypeError) as error:
            if "could not convert string to float" in str(error):
                raise ValueError(f"{error}. {hint}") from error
            raise
    rows = checked[0] if isinstance(checked, tuple) else checked
    rows = _dense(rows) if issparse(rows) else rows
    if find_offsets is not None:
        rows = _rounded_finite(rows, find_offsets())
    return (rows, *checked[1:]) if isinstance(checked, tuple) else rows


def check_table(
    estimator: Any,
    X: Any,
    numeric: Sequence[int],
    n_features: int,
    *,
    hint: str,
    find_offsets: FindOffsets | None = None,
    reset: bool,
    y: Any = None,
    **options: Any,
) -> tuple[NDArray[np.float32], Any, Table]:
    """The numeric columns of a table as `check_rows` gives them, y if it is given, and the table.

    `numeric` are the numeric ones of its `n_features` columns.
    """
    X = with_masks(X)
    table = Table.of(X)
    if table is X:  # one sample, whose names were checked, or which has none
        _check_table_of_one(estimator, table, n_features, reset=reset)
    else:
        validate_data(estimator, X, skip_check_array=True, reset=reset)
    numbers = table.numbers(numeric)
    numbers = numeric_frame(numbers, hint) if is_into_dataframe(numbers) else with_nan(numbers)
    if not numeric:
        numbers = np.empty((len(table), 0), dtype=np.float32)
    how: dict[str, Any] = {
        "dtype": np.float32 if find_offsets is None else np.float64,
        "order": "C",
        "ensure_all_finite": "allow-nan",
        "ensure_min_features": 0,
        "estimator": estimator,
    }
    with np.errstate(over="ignore"):
        try:
            if y is None:
                rows = check_array(numbers, input_name="X", **how)
            else:
                rows, y = check_X_y(numbers, y, **how, **options)
        except (ValueError, TypeError) as error:
            if "could not convert string to float" in str(error):
                raise ValueError(f"{error}. {hint}") from error
            raise
    if find_offsets is not None:
        rows = _rounded_finite(rows, find_offsets()[list(numeric)])
    return rows, y, table


def _check_table_of_one(estimator: Any, table: Table, n_features: int, *, reset: bool) -> None:
    """Raise unless one sample has this number of features; it may give them their names."""
    if table.n_columns != n_features:
        raise ValueError(f"x has {table.n_columns} features, but this forest has {n_features}.")
    if reset:
        estimator.n_features_in_ = n_features
        if table.names is not None:
            estimator.feature_names_in_ = np.array(table.names, dtype=object)


def _rounded_finite(
    numbers: NDArray[np.float64], offsets: NDArray[np.float64]
) -> NDArray[np.float32]:
    rows = rounded(numbers, offsets)
    if np.isinf(rows).any():
        raise ValueError(
            "Input X contains infinity or, less the offsets, a value too large for "
            "dtype('float32')."
        )
    return rows


def numeric_frame(X: Any, hint: str) -> Any:
    """A data frame whose columns can become numbers.

    An error names the columns of text, categories, times and the like.
    """
    frame = nw.from_native(X)
    # Objects of unknown type are accepted here: their conversion to numbers checks them.
    numbers = (nw.Boolean, nw.Object, nw.Unknown)
    others = {
        name: dtype
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype in numbers[:1])
    }
    bad = [
        f"{name!r} ({dtype})"
        for name, dtype in others.items()
        if dtype not in numbers and frame[name].null_count() < len(frame)
    ]
    if bad:
        shown = ", ".join(bad[:5]) + (", …" if len(bad) > 5 else "")
        times = any(others[name].is_temporal() for name in others)
        raise ValueError(
            f"X has columns that are not numbers: {shown}. "
            + (f"{TURN_TIMES} " if times else "")
            + hint
        )
    # numpy cannot convert pandas.NA to a number.
    return X.astype(object).where(X.notna(), np.nan) if others and hasattr(X, "notna") else X


def _dense(X: Any, n_numbers: int = 2**20) -> NDArray[Any]:
    """A sparse matrix as a dense array, converted in chunks to avoid a second copy."""
    rows = np.empty(X.shape, dtype=X.dtype)
    step = max(n_numbers // X.shape[1], 1)
    for start in range(0, len(rows), step):
        rows[start : start + step] = X[start : start + step].toarray()
    return rows


def numbers_in(X: Any, columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """Some columns of a table whose rows are valid, as they were given: without rounding."""
    if issparse(X):
        chosen = X.tocsc()[:, columns].toarray()
    elif is_into_dataframe(X):
        chosen = numeric_frame(Table.of(X).numbers(columns.tolist()), "")
    else:
        chosen = np.asarray(X)[:, columns]
        if chosen.dtype.kind in "fiu":  # the usual case, without the checks of scikit-learn
            return chosen.astype(np.float64)
    numbers: NDArray[np.float64] = check_array(chosen, dtype=np.float64, ensure_all_finite=False)
    return numbers


def blocks_of(X: Any, n_numbers: int = 2**24) -> Iterator[Any]:
    """X itself, or a large sparse matrix in chunks that take little memory when dense."""
    n = X.shape[0] if issparse(X) and X.ndim == 2 else 0
    if n == 0 or n * X.shape[1] <= n_numbers:
        yield X
        return
    rows, step = X.tocsr(), max(n_numbers // X.shape[1], 1)
    for start in range(0, n, step):
        yield rows[start : start + step]


def check_row(x: Any, offsets: NDArray[np.float64] | None = None) -> NDArray[np.float32]:
    """One row of float32, less the offsets. The core checks its length and infinite values."""
    array = check_numbers(x)
    return rounded(array, offsets if offsets is None or len(array) == len(offsets) else None)


def check_numbers(x: Any) -> NDArray[Any]:
    """One row as an array of numbers of any type."""
    array = np.asarray(x)
    if array.ndim != 1:
        raise ValueError(f"x must be one sample, a 1d array. Got an array of shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"x must hold numbers. Got an array of dtype {array.dtype}.")
    return array


def check_feature_weights(weights: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """One finite, non-negative weight per feature, at least one of them positive."""
    array = check_array(
        weights, ensure_2d=False, dtype=np.float64, input_name="feature_weights", copy=True
    )
    if array.shape != (n_features,):
        raise ValueError(
            f"feature_weights must have shape ({n_features},), one weight per feature. "
            f"Got shape {array.shape} instead."
        )
    if array.min() < 0 or array.max() > LARGEST_WEIGHT or array.max() == 0:
        raise ValueError(
            f"feature_weights must lie between 0 and {LARGEST_WEIGHT:g}, and not all be 0. "
            f"Got values from {array.min():g} to {array.max():g} instead."
        )
    return np.ascontiguousarray(array)


def check_levels(q: ArrayLike, name: str = "q") -> NDArray[np.float64]:
    """Levels of quantiles: a number or a 1d array of numbers between 0 and 1, both excluded."""
    levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if levels.ndim != 1 or len(levels) == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"{name} must lie between 0 and 1, both excluded. Got {q!r} instead.")
    return np.ascontiguousarray(levels)
