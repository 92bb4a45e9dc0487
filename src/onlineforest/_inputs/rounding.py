"""Rounds numbers to float32, less the offsets of features, and finds columns that lose by it.

Must not know forests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Float64 values that differ by less than this share of their size differ by rounding errors.
_NOISE = 2.0**-44
# With this number of distinct values, a column of measurements has lost nothing that matters.
_ENOUGH = 4096


class RoundingWarning(UserWarning):
    """Distinct values of a column became equal when they were rounded to float32."""


def rounded(
    numbers: NDArray[Any], offsets: NDArray[np.float64] | None = None
) -> NDArray[np.float32]:
    """Numbers less the offsets of their columns, subtracted in float64, as C-ordered float32.

    A number that is too large becomes infinite.
    """
    with np.errstate(over="ignore"):
        if offsets is not None:
            numbers = numbers.astype(np.float64, copy=False) - offsets
        return np.ascontiguousarray(numbers, dtype=np.float32)


def offsets_of_features(
    offsets: Any,
    n_features: int,
    names: Sequence[Any] | None,
    categorical: Sequence[int] = (),
) -> NDArray[np.float64]:
    """One offset for each feature, from an array or a dict; raises unless all are finite.

    The keys of a dict are names of features, or indices if there are no names.
    """
    places: list[Any] = list(range(n_features)) if names is None else list(names)
    found = np.zeros(n_features)
    for place, value in _items_of(offsets, places):
        number = _finite(value)
        if number is None:
            raise ValueError(
                f"offsets must be finite numbers. Got {value!r} for feature {places[place]!r}."
            )
        if number != 0 and place in categorical:
            raise ValueError(
                f"offsets has {number!r} for feature {places[place]!r}, which is categorical: only "
                "numeric features have an offset."
            )
        found[place] = number
    return found + 0.0  # without negative zeros


def _items_of(offsets: Any, places: list[Any]) -> Iterator[tuple[int, Any]]:
    if isinstance(offsets, Mapping):
        for key, value in offsets.items():
            if isinstance(key, bool) or not isinstance(key, str | Integral) or key not in places:
                known = ", ".join(map(repr, places[:10])) + (", …" if len(places) > 10 else "")
                raise ValueError(
                    f"offsets names the feature {key!r}, but the features are {known}."
                )
            yield places.index(key), value
        return
    array = np.asarray(offsets, dtype=object)
    if array.shape != (len(places),):
        raise ValueError(
            f"offsets must have shape ({len(places)},), one number per feature, or be a dict. "
            f"Got shape {array.shape} instead."
        )
    yield from enumerate(array.tolist())


def _finite(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def suspects(rows: NDArray[np.float32]) -> NDArray[np.intp]:
    """The columns of rows that may have lost distinct values: those of a narrow range.

    Narrow is less than an eighth of the largest magnitude M: at most 2^21 steps of float32. All
    values then have at least 7/8 M, so any rows differ by less than a seventh of their largest: a
    few rows exclude nearly all columns of ordinary data, in a time that does not grow with rows.
    """
    places = np.flatnonzero(_are_narrow(rows[:: len(rows) // 8 + 1], 7))
    return places[_are_narrow(rows[:, places], 8)] if len(places) else places


def _are_narrow(rows: NDArray[np.float32], part: int) -> NDArray[np.bool_]:
    """Whether the range of a column, the sum of its ends, is less than a part of the larger."""
    ends = -np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    # The sum itself might overflow.
    are_wide: NDArray[np.bool_] = np.minimum(*ends) >= np.maximum(*ends) * (1 / part - 1)
    return ~are_wide  # also if all values are missing


@dataclass(frozen=True)
class Loss:
    """The distinct values of a column, how many of them float32 keeps, and a remedy."""

    n_distinct: int
    n_kept: int
    remedy: float  # a round number among the values, to subtract

    @property
    def offset(self) -> str:
        """The remedy as users write it."""
        return f"{self.remedy:.0f}" if self.remedy.is_integer() else repr(self.remedy)


def losses_of(
    columns: NDArray[np.float64], offsets: NDArray[np.float64] | None = None
) -> dict[int, Loss]:
    """The columns that lose values that matter when they are rounded less their offsets.

    That is, if less than two thirds of the distinct values are kept, and fewer than 4096 unless all
    are whole numbers. Values that differ by rounding errors of float64 count once.
    """
    shift = np.zeros(columns.shape[1]) if offsets is None else offsets
    are_changed = np.abs(rounded(columns, shift) - (columns - shift)) > 0  # not if one is missing
    places = np.flatnonzero(are_changed.any(axis=0))
    if len(places) == 0:
        return {}
    # A row for each column, with missing values at its end.
    values = np.sort(np.ascontiguousarray(columns[:, places].T))
    low, high = values[:, :1], np.fmax.reduce(values, axis=1, keepdims=True)
    noise = _NOISE * np.maximum(-low, high)
    n_distinct = 1 + np.count_nonzero(np.diff(values) > noise, axis=1)
    n_kept = 1 + np.count_nonzero(np.diff(rounded(values, shift[places, np.newaxis])) > 0, axis=1)
    found = {}
    for i in np.flatnonzero(3 * n_kept < 2 * n_distinct).tolist():
        known = values[i][~np.isnan(values[i])]
        if n_kept[i] < _ENOUGH or (known == np.rint(known)).all():
            remedy = _round_number(float(known[0]), float(known[-1]))
            found[int(places[i])] = Loss(int(n_distinct[i]), int(n_kept[i]), remedy)
    return found


def _round_number(low: float, high: float) -> float:
    """The number between two others that is a multiple of the largest power of ten."""
    top = math.floor(math.log10(max(-low, high)))
    for power in range(top, top - 16, -1):
        unit = 10.0**power
        number = round(math.ceil(low / unit) * unit, max(-power, 0))
        if low <= number <= high:
            return number
    return low
