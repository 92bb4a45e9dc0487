"""Checks of y: labels of a classifier or numbers of a regressor. Must not know forests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from onlineforest._core import LARGEST_VALUE
from onlineforest._inputs.cells import TIMES, TURN_TIMES, check_not_masked
from onlineforest._inputs.class_codes import (
    check_labels,
    check_no_label_missing,
    exact_labels,
    plain_labels,
)
from onlineforest._inputs.rows import RowFormat, Rows


@dataclass(frozen=True)
class TargetKind:
    """How y is checked.

    Attributes
    ----------
    noun : str
        What one of them is called in messages.
    plain : callable
        Returns y if it is a plain array of valid values, which takes little time, else None.
    before : callable
        Returns y as scikit-learn may check it together with X, or raises.
    after : callable
        Returns y as an array of valid values, or raises.
    options : mapping
        Options of scikit-learn's check.
    """

    noun: str
    plain: Callable[[Any], NDArray[Any] | None]
    before: Callable[[Any], Any]
    after: Callable[[Any], NDArray[Any]]
    options: Mapping[str, Any]

    def check(
        self, estimator: Any, rows: RowFormat, X: Any, y: Any, *, reset: bool, offsets: Any = None
    ) -> tuple[Rows, NDArray[Any], RowFormat]:
        """Rows, targets and the format with new levels; see `RowFormat.check`."""
        if not reset:
            found, target = rows.plain(estimator, X), self.plain(y)
            if found is not None and target is not None and len(found) == len(target):
                return found, target, rows
        y = self.before(y)
        checked, grown = rows.check(estimator, X, y=y, reset=reset, offsets=offsets, **self.options)
        return checked[0], self.after(checked[1]), grown


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


def _labels_before(y: Any) -> Any:
    check_no_label_missing(y)
    return exact_labels(y)


def _numbers_before(y: Any) -> Any:
    check_are_numbers(y)
    return y


LABELS = TargetKind("label", plain_labels, _labels_before, check_labels, {})
NUMBERS = TargetKind(
    "number", plain_values, _numbers_before, check_values, {"y_numeric": True, "multi_output": True}
)
