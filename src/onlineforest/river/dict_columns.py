"""Turns samples that are dicts into rows: which column each key has. Must not know forests.

Keys are sorted, so that neither their order in a dict nor that of their arrival matters. A row has
NaN for a key that the sample lacks. Without any key there is one column, since a forest needs one.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._inputs.cells import is_missing
from onlineforest.river.names import sorted_keys

_LARGEST = float(np.finfo(np.float32).max)


class Columns:
    """The column of each key. Immutable."""

    def __init__(self, keys: tuple[Hashable, ...]) -> None:
        self.keys = keys
        self.width = max(len(keys), 1)
        self._column_of = {key: column for column, key in enumerate(keys)}
        self._in_order = itemgetter(*keys) if len(keys) > 1 else None
        self._blank = array("d", [math.nan]) * self.width

    categorical: frozenset[Hashable] = frozenset()
    undecided: frozenset[Hashable] = frozenset()

    def plain(self) -> tuple[Any, ...]:
        """The arguments of `from_plain`, for pickles."""
        return (self.keys,)

    @staticmethod
    def from_plain(keys: tuple[Hashable, ...], *others: Any) -> Columns:
        """Columns with the values that `plain` returned."""
        return MixedColumns(keys, *others) if others else Columns(keys)

    def categorical_places(self) -> list[int]:
        """The columns of categorical keys."""
        return []

    def knows(self, keys: Iterable[Hashable]) -> bool:
        """Whether each of these keys has a column."""
        return all(map(self._column_of.__contains__, keys))

    def sources_in(self, other: Columns) -> list[int]:
        """For each column the one that its key has in other columns, or -1."""
        return [other._column_of.get(key, -1) for key in self.keys] or [-1]

    def row(self, x: Mapping[Hashable, Any]) -> array[float]:
        """A sample as a row. Keys without a column are ignored."""
        row = self.whole_row(x)
        if row is not None:
            return row
        try:
            return self._scattered(x.items())
        except (TypeError, OverflowError):  # None, or not a number
            return self._scattered((key, number_of(key, value)) for key, value in x.items())

    def whole_row(self, x: Mapping[Hashable, Any]) -> array[float] | None:
        """The row of a sample with all keys, no others, and only numbers: the common case.

        None for other samples, which `row` handles more slowly.
        """
        if len(x) != len(self.keys) or self._in_order is None:
            return None
        if type(x) is not dict and hasattr(x, "__missing__"):  # invents missing keys
            return None
        try:
            return array("d", self._in_order(x))
        except (KeyError, TypeError, OverflowError):
            return None

    def _scattered(self, items: Iterable[tuple[Hashable, Any]]) -> array[float]:
        row, column_of = self._blank[:], self._column_of
        for key, value in items:
            column = column_of.get(key)
            if column is not None:
                row[column] = value
        return row

    def rows(self, keys: Sequence[Hashable], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Samples as rows, from an array with one column for each key in `keys`."""
        rows = np.empty((len(values), self.width))
        rows[:] = self._blank
        known = [place for place, key in enumerate(keys) if key in self._column_of]
        rows[:, [self._column_of[keys[place]] for place in known]] = values[:, known]
        self.check_finite(rows)
        return rows

    def check_finite(self, rows: Any) -> None:
        """Raise if a row, or one of several, has a value that float32 cannot represent."""
        table = np.atleast_2d(np.asarray(rows))
        too_large = np.argwhere(np.abs(table) > _LARGEST)
        if len(too_large):
            row, column = too_large[0]
            raise ValueError(
                f"Feature {self.keys[column]!r} must be finite and at most {_LARGEST:.3g} in size, "
                f"as float32 is. Got {table[row, column]} instead."
            )


class MixedColumns(Columns):
    """Columns that are not all of numbers: a row is a list of the values themselves.

    Some keys are categorical. Others are undecided: they have had no value yet, and count as
    numbers that are missing.
    """

    def __init__(
        self,
        keys: tuple[Hashable, ...],
        categorical: frozenset[Hashable],
        undecided: frozenset[Hashable],
    ) -> None:
        super().__init__(keys)
        self.categorical = categorical
        self.undecided = undecided

    def plain(self) -> tuple[Any, ...]:
        """The arguments of `from_plain`, for pickles."""
        return self.keys, self.categorical, self.undecided

    def categorical_places(self) -> list[int]:
        """The columns of categorical keys."""
        return [place for place, key in enumerate(self.keys) if key in self.categorical]

    def row(self, x: Mapping[Hashable, Any]) -> list[Any]:  # type: ignore[override]
        """A sample as a row, None for a key that it lacks. Keys without a column are ignored."""
        values = dict(x)  # does not invent missing keys
        return [self._cell(key, values.get(key)) for key in self.keys]

    def whole_row(self, x: Mapping[Hashable, Any]) -> list[Any] | None:  # type: ignore[override]
        """The row of a sample without other keys, if it decides nothing."""
        if not self.knows(x) or any(not is_missing(x.get(key)) for key in self.undecided):
            return None
        return self.row(x)

    def _cell(self, key: Hashable, value: Any) -> Any:
        if key in self.categorical:
            return None if is_missing(value) else value
        if key in self.undecided:
            return math.nan
        return value if type(value) is float else number_of(key, value)

    def rows(  # type: ignore[override]
        self, keys: Sequence[Hashable], values: Sequence[Sequence[Any]]
    ) -> NDArray[np.object_]:
        """Samples as rows, from the values of each key in `keys`."""
        rows = np.full((len(values[0]) if len(values) else 0, self.width), None, dtype=object)
        for key, of_key in zip(keys, values, strict=True):
            if key in self._column_of:
                rows[:, self._column_of[key]] = [self._cell(key, value) for value in of_key]
        self.check_finite(rows)
        return rows

    def check_finite(self, rows: Any) -> None:
        """Raise if a number in a row, or in one of several, is too large for float32."""
        table = np.atleast_2d(np.array(rows, dtype=object))
        for place, key in enumerate(self.keys):
            if key not in self.categorical:
                numbers = [[number_of(key, value)] for value in table[:, place]]
                Columns((key,)).check_finite(np.array(numbers))


def columns_of(
    keys: Iterable[Hashable], categorical: frozenset[Hashable], undecided: frozenset[Hashable]
) -> Columns:
    """Columns for these keys, in an order that follows from their set."""
    if not categorical and not undecided:
        return Columns(sorted_keys(keys))
    return MixedColumns(sorted_keys(keys), categorical, undecided)


def number_of(key: Hashable, value: Any) -> float:
    """A value as a number, NaN if it is missing; raises an error that names its key."""
    if is_missing(value):
        return math.nan
    try:
        number: float = array("d", [value])[0]
        return number
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except TypeError as error:
        raise TypeError(
            f"Feature {key!r} must be a number. Got {value!r} instead. Text is learned as "
            "categories if the first value of a feature is text; else encode it, for example with "
            "river.preprocessing.OneHotEncoder."
        ) from error
