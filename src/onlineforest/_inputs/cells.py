"""Cells of arrays that users give: masked ones, times, and missing values among objects.

NumPy would convert all of them to numbers without a word. Must not know forests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TIMES = (np.datetime64, np.timedelta64)
TURN_TIMES = "Turn times into numbers, such as seconds, weekdays and hours."
_USUAL = {float, int, bool, str, type(None)}


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, masked or the like."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has the comparison of an array
        return False


def with_masks(X: Any, name: str = "X") -> Any:
    """X, as an array if it is a list of masked rows; an error if it holds times or has fields."""
    if isinstance(X, list | tuple):
        if any(isinstance(row, np.ma.MaskedArray) for row in X):
            X = np.ma.array(X)  # np.asarray would drop the masks
        elif any(_may_hold_times(row) for row in X):
            X = np.asarray(X)
    if not isinstance(X, np.ndarray):
        return X
    if X.dtype.names is not None:
        raise ValueError(
            f"{name} is a structured array with the fields {', '.join(X.dtype.names)}, but must be "
            "a plain array: numpy.lib.recfunctions.structured_to_unstructured makes one."
        )
    if X.dtype.kind in "mM":
        raise ValueError(f"{name} holds times ({X.dtype}). {TURN_TIMES}")
    return X


def with_nan(X: Any, name: str = "X") -> Any:
    """Cells as `with_masks` gives them, with NaN for those that are masked, None or NaT."""
    X = with_masks(X, name)
    if isinstance(X, np.ma.MaskedArray):
        cells = np.ma.getdata(X)
        if cells.dtype.kind in "iub":
            cells = cells.astype(np.float64)
        elif cells.dtype.kind not in "fc":
            cells = cells.astype(object)
        X = np.where(np.ma.getmaskarray(X), cells.dtype.type(np.nan), cells)
    if isinstance(X, np.ndarray) and X.dtype == object and not set(map(type, X.flat)) <= _USUAL:
        X = X.copy()
        for place, value in np.ndenumerate(X):
            if is_missing(value):
                X[place] = np.nan
            elif isinstance(value, TIMES):
                raise ValueError(f"{name} holds times, such as {value!r}. {TURN_TIMES}")
    return X


def check_not_masked(values: Any, name: str) -> None:
    """Raise if targets or weights have a masked value."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(values)).tolist()
    elif isinstance(values, list | tuple):
        masked = [place for place, value in enumerate(values) if _is_masked(value)]
    else:
        return
    if masked:
        raise ValueError(
            f"{name} has masked values, the first at index {masked[0]}, but must not have missing "
            "values."
        )


def _is_masked(value: Any) -> bool:
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def _may_hold_times(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        return row.dtype.kind in "mMOV"
    return isinstance(row, list | tuple) and any(isinstance(value, TIMES) for value in row)
