"""Checks of X and y. Must not know forests.

Each check returns valid arrays or raises before anything has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_X_y, column_or_1d
from sklearn.utils.validation import validate_data

from onlineforest._core import (
    LARGEST_TOTAL_WEIGHT,
    LARGEST_VALUE,
    LARGEST_WEIGHT,
    UNITS_PER_SAMPLE,
)
from onlineforest._inputs.categories import Categories, Table
from onlineforest._inputs.cells import TIMES, TURN_TIMES, check_not_masked, with_masks, with_nan
from onlineforest._inputs.rounding import rounded

# Gives the offset of each feature when the estimator knows the names of its features.
FindOffsets = Callable[[], NDArray[np.float64]]


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
    categories: Categories,
    *,
    hint: str,
    find_offsets: FindOffsets | None = None,
    **options: Any,
) -> tuple[Any, Categories]:
    """Rows of a table with categorical features, with y if it is given, as `check_rows` gives them.

    And the categories with the levels that are new.
    """
    X = with_masks(X)
    table, y, reset = Table.of(X), options.pop("y", None), options.pop("reset")
    if table is X:  # one sample, whose names were checked, or which has none
        if table.n_columns != categories.n_features:
            raise ValueError(
                f"x has {table.n_columns} features, but this forest has {categories.n_features}."
            )
        if reset:
            estimator.n_features_in_ = categories.n_features
            if table.names is not None:
                estimator.feature_names_in_ = np.array(table.names, dtype=object)
    else:
        validate_data(estimator, X, skip_check_array=True, reset=reset)
    numbers = table.numbers(categories.numeric)
    numbers = numeric_frame(numbers, hint) if is_into_dataframe(numbers) else with_nan(numbers)
    if not categories.numeric:
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
        rows = _rounded_finite(rows, find_offsets()[categories.numeric])
    values = [table.values(column) for column in categories.columns]
    rows, grown = categories.rows(rows, values, table.name)
    return (rows if y is None else (rows, y)), grown


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


def plain_rows(estimator: Any, X: Any) -> NDArray[np.float32] | None:
    """The rows if X is a plain array of valid floats, else None.

    The fast path for streams: `check_rows`, which handles everything else, takes longer than
    learning a small batch.
    """
    if (
        type(X) is not np.ndarray
        or X.dtype.char not in "fd"
        or X.ndim != 2
        or len(X) == 0
        or X.shape[1] != estimator.n_features_in_
        or hasattr(estimator, "feature_names_in_")
        or getattr(estimator, "_categories", None) is not None
    ):
        return None
    rows = rounded(X, estimator._offsets)
    is_valid = not np.isinf(rows).any() if estimator._takes_missing else np.isfinite(rows).all()
    return rows if is_valid else None


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


def check_values(y: Any) -> NDArray[np.float64]:
    """A 1d array of numbers small enough to be squared."""
    check_are_numbers(y)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y must be one number per sample, but has shape {values.shape}. For several targets, "
            "wrap the forest in sklearn.multioutput.MultiOutputRegressor."
        )
    values = np.ascontiguousarray(column_or_1d(y, warn=True), dtype=np.float64)
    largest = np.abs(values).max(initial=0.0)
    if not largest <= LARGEST_VALUE:
        raise ValueError(
            f"y must be finite and lie between -{LARGEST_VALUE:g} and {LARGEST_VALUE:g}. "
            f"Got a value of size {largest:g}."
        )
    return values


def check_are_numbers(y: Any) -> None:
    """Raise if y has masked values or times, which NumPy would convert to numbers, NaT too."""
    check_not_masked(y, "y")
    values = np.asarray(y)
    are_times = values.dtype.kind in "mM"
    if are_times or (values.dtype == object and any(isinstance(v, TIMES) for v in values.flat)):
        such = f", such as {values.flat[0]!r}" if values.size else ""
        raise ValueError(f"y holds times ({values.dtype}{such}), but must be numbers. {TURN_TIMES}")


def plain_values(y: Any) -> NDArray[np.float64] | None:
    """The numbers if y is a plain array of valid float64, else None."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.char != "d" or len(y) == 0:
        return None
    values = np.ascontiguousarray(y)
    return values if np.abs(values).max() <= LARGEST_VALUE else None


def check_sample_weight(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """One finite weight per sample, at least 0; None if none are given."""
    if sample_weight is None:
        return None
    check_not_masked(sample_weight, "sample_weight")
    weights = np.asarray(
        check_array(
            sample_weight,
            ensure_2d=False,
            allow_nd=True,
            dtype=np.float64,
            ensure_min_samples=0,
            input_name="sample_weight",
        )
    )
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight per sample. "
            f"Got shape {weights.shape} instead."
        )
    if weights.min(initial=0.0) < 0:
        raise ValueError(f"sample_weight must be at least 0. Got {weights.min():g}.")
    return weights


def units_of(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Weights as core forests need them: rounded to whole units."""
    if not weights.sum() <= LARGEST_TOTAL_WEIGHT:
        raise ValueError(
            f"The sum of sample_weight must be at most {LARGEST_TOTAL_WEIGHT}. "
            f"Got {weights.sum():g}."
        )
    return np.rint(weights * UNITS_PER_SAMPLE).astype(np.int64)


def check_class_weight(class_weight: Mapping[Any, float]) -> None:
    """An error unless all weights of classes are numbers, finite and at least 0."""
    for label, weight in class_weight.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight < math.inf:
            raise ValueError(
                "class_weight must give each class a finite number that is at least 0. "
                f"Got {weight!r} for {label!r}."
            )


def units_of_one(sample_weight: Any, factor: float = 1.0) -> int:
    """The weight of one sample, times a factor, as core forests need it."""
    if type(sample_weight) is not float or not 0 <= sample_weight <= LARGEST_TOTAL_WEIGHT:
        weights = check_sample_weight(sample_weight, 1)
        sample_weight = 1.0 if weights is None else float(weights[0])
    weight: float = factor * sample_weight
    if not weight <= LARGEST_TOTAL_WEIGHT:
        raise ValueError(f"sample_weight must be at most {LARGEST_TOTAL_WEIGHT}. Got {weight:g}.")
    return round(weight * UNITS_PER_SAMPLE)


def check_levels(q: ArrayLike, name: str = "q") -> NDArray[np.float64]:
    """Levels of quantiles: a number or a 1d array of numbers between 0 and 1, both excluded."""
    levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if levels.ndim != 1 or len(levels) == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"{name} must lie between 0 and 1, both excluded. Got {q!r} instead.")
    return np.ascontiguousarray(levels)
