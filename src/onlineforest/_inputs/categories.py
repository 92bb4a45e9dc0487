"""The categorical features of a forest: which columns of a table they are, and how rows are made.

A row of the core forest has the numeric features first, then two cells for each categorical one.
Must not know forests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import NDArray
from scipy.sparse import issparse

from onlineforest._inputs.levels import (
    Level,
    LevelNames,
    Words,
    cells_of,
    go_left,
    in_order,
)
from onlineforest._inputs.one_row import number_of
from onlineforest._inputs.rounding import rounded

FROM_DTYPE = "from_dtype"
_NONE = type(None)


@dataclass(frozen=True)
class Categories:
    """The categorical columns of a table, and the names of the levels of each.

    Attributes
    ----------
    n_features : int
        Number of columns.
    columns : tuple of int
        The categorical ones, in order.
    levels : tuple of LevelNames
        The levels of each that stored samples have.
    """

    n_features: int
    columns: tuple[int, ...]
    levels: tuple[LevelNames, ...]

    @classmethod
    def of(cls, n_features: int, columns: Iterable[int]) -> Categories:
        """Without levels."""
        found = tuple(sorted(columns))
        return cls(n_features, found, tuple(LevelNames() for _ in found))

    @property
    def numeric(self) -> list[int]:
        """The columns that are not categorical, in order."""
        chosen = set(self.columns)
        return [column for column in range(self.n_features) if column not in chosen]

    @property
    def order(self) -> NDArray[np.intp]:
        """The column of each feature of the core forest."""
        return np.array([*self.numeric, *self.columns], dtype=np.intp)

    def cells(self, column: int) -> list[int]:
        """The cells of a column in a row of the core forest."""
        if column not in self.columns:
            return [self.numeric.index(column)]
        first = len(self.numeric) + 2 * self.columns.index(column)
        return [first, first + 1]

    def plain(self) -> tuple[Any, ...]:
        """The same as plain values, for pickles."""
        return self.n_features, self.columns, [names.names() for names in self.levels]

    @classmethod
    def from_plain(
        cls, n_features: int, columns: tuple[int, ...], levels: Sequence[Iterable[Level]]
    ) -> Categories:
        """What `plain` gave."""
        return cls(n_features, columns, tuple(LevelNames(names) for names in levels))

    def named(self, levels: list[Any], held: Callable[[int], Words]) -> Categories:
        """With the names of levels in a file, which must be those that samples have."""
        if len(levels) != len(self.columns):
            raise ValueError(f"it has {len(levels)} lists of levels, not {len(self.columns)}.")
        found = []
        for place, names in enumerate(levels):
            if type(names) is not list or any(type(n) not in (str, int, _NONE) for n in names):
                raise ValueError("its levels are not lists of texts, whole numbers and null.")
            if any(isinstance(name, int) and abs(name) >= 2**64 for name in names):
                raise ValueError("one of its levels is not within ±2^64.")
            if len(set(names)) != len(names):
                raise ValueError("its levels are not distinct.")
            found.append(LevelNames(names))
            if not np.array_equal(found[-1].words, held(place)):
                raise ValueError("its levels are not those of its samples.")
        return replace(self, levels=tuple(found))

    def with_levels_of(self, others: Iterable[Categories]) -> Categories:
        """With the levels of other tables of the same columns."""
        levels = list(self.levels)
        for other in others:
            for place, names in enumerate(other.levels):
                levels[place] = levels[place].encode(names.names())[1]
        return replace(self, levels=tuple(levels))

    def left_levels(
        self, features: NDArray[np.int32], thresholds: NDArray[np.float32]
    ) -> NDArray[np.object_]:
        """For each cut on a categorical feature the levels that it sends left, else None."""
        n_numeric = self.n_features - len(self.columns)
        found = np.full(len(features), None, dtype=object)
        for node in np.flatnonzero(features >= n_numeric).tolist():
            names = self.levels[features[node] - n_numeric]
            are_left = go_left(names.words, thresholds[node])
            chosen = (name for name, left in zip(names.names(), are_left, strict=True) if left)
            found[node] = tuple(in_order(chosen))
        return found

    def rows(
        self,
        numbers: NDArray[np.float32],
        values: Sequence[Sequence[Any]],
        name: Callable[[int], str],
    ) -> tuple[NDArray[np.float32], Categories]:
        """Rows of the core forest, and the categories with the levels that are new.

        Parameters
        ----------
        numbers : ndarray of shape (n, n_numeric), float32
            The numeric columns.
        values : sequence of sequences
            The values of each categorical column.
        name : callable
            The name of a column in messages.
        """
        parts, levels = [numbers], []
        for column, names, of_column in zip(self.columns, self.levels, values, strict=True):
            try:
                words, grown = names.encode(of_column)
            except ValueError as error:
                raise ValueError(f"{name(column)} is categorical. {error}") from error
            parts.append(cells_of(words))
            levels.append(grown)
        rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
        if all(new is old for new, old in zip(levels, self.levels, strict=True)):
            return rows, self
        return rows, replace(self, levels=tuple(levels))

    def without(self, n_held: Sequence[int], held: Callable[[int], Any]) -> Categories:
        """The categories without levels that no sample has.

        Parameters
        ----------
        n_held : sequence of int
            The number of levels of each categorical feature that samples have.
        held : callable
            The numbers of these levels, by the number of the feature.
        """
        if all(len(names) == n for names, n in zip(self.levels, n_held, strict=True)):
            return self
        kept = [
            names if len(names) == n else names.only(held(place))
            for place, (names, n) in enumerate(zip(self.levels, n_held, strict=True))
        ]
        return replace(self, levels=tuple(kept))


class Table:
    """A table that users give: a data frame, or an array of two dimensions."""

    def __init__(self, frame: Any, array: Any, names: list[Any] | None = None) -> None:
        self._frame, self._array, self._names = frame, array, names

    @classmethod
    def of(cls, X: Any) -> Table:
        """The table of a data frame, an array or a list of rows."""
        if isinstance(X, Table):
            return X
        if is_into_dataframe(X):
            return cls(nw.from_native(X), None)
        if issparse(X):
            raise ValueError("X is sparse, which a table with categorical features cannot be.")
        array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(f"Expected 2D array, got {array.ndim}D array instead: X has no rows.")
        return cls(None, array)

    @classmethod
    def of_rows(cls, rows: NDArray[Any]) -> Table:
        """The table of rows whose columns need no names."""
        return cls(None, rows)

    @classmethod
    def of_one(cls, x: Any, names: list[Any] | None = None) -> Table:
        """The table of one sample, whose values may have names."""
        values = list(x)
        array = np.empty((1, len(values)), dtype=object)
        for place, value in enumerate(values):
            array[0, place] = value
        return cls(None, array, names)

    def __len__(self) -> int:
        return len(self._frame) if self._frame is not None else len(self._array)

    @property
    def names(self) -> list[Any] | None:
        """The names of the columns, if they have some."""
        return self._names if self._frame is None else list(self._frame.columns)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self._frame.columns) if self._frame is not None else int(self._array.shape[1])

    def categorical_by_type(self) -> list[int]:
        """The columns of a data frame, or the named values, that are text, categories or bools."""
        if self._frame is None:
            named = [] if self._names is None else self._array[0].tolist()
            return [k for k, value in enumerate(named) if isinstance(value, str | bool | np.bool_)]
        kinds = (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
        return [
            place
            for place, (name, kind) in enumerate(self._frame.schema.items())
            if kind in kinds or (kind == nw.Object and _holds_text(self._frame[name].to_list()))
        ]

    def numbers(self, columns: Sequence[int]) -> Any:
        """The table of some columns."""
        if self._names is not None:
            values = self._array[0].tolist()
            return np.array([[number_of(values[k], self._names[k]) for k in columns]])
        if self._frame is None:
            return self._array[:, columns]
        names = self._frame.columns
        return self._frame.select([names[column] for column in columns]).to_native()

    def values(self, column: int) -> list[Any]:
        """The values of a column."""
        if self._frame is None:
            return self._array[:, column].tolist()  # type: ignore[no-any-return]
        return self._frame[self._frame.columns[column]].to_list()  # type: ignore[no-any-return]

    def name(self, column: int) -> str:
        """A column in messages."""
        names = self.names
        return f"Column {column}" if names is None else f"Column {names[column]!r}"


def _holds_text(values: list[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def chosen_columns(categorical_features: Any, table: Table) -> list[int]:
    """The columns that `categorical_features` says: indices, names, a mask or by type."""
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str) and categorical_features == FROM_DTYPE:
        return table.categorical_by_type()
    return named_columns(categorical_features, table.n_columns, table.names)


def named_columns(categorical_features: Any, n: int, names: list[Any] | None) -> list[int]:
    """The columns that indices, names or a mask choose of `n` columns, which may have names."""
    is_name = isinstance(categorical_features, str)
    chosen = [categorical_features] if is_name else list(categorical_features)
    if all(isinstance(each, bool | np.bool_) for each in chosen) and chosen:
        if len(chosen) != n:
            raise ValueError(
                f"categorical_features is a mask of {len(chosen)} entries, but X has {n} columns."
            )
        return [place for place, each in enumerate(chosen) if each]
    columns = []
    for each in chosen:
        if isinstance(each, str):
            if names is None or each not in names:
                raise ValueError(
                    f"categorical_features names {each!r}, but X has no column of that name."
                )
            columns.append(names.index(each))
        elif isinstance(each, Integral) and not isinstance(each, bool):
            if not 0 <= int(each) < n:
                raise ValueError(
                    f"categorical_features has the index {each}, but X has {n} columns: indices "
                    f"are in [0, {n})."
                )
            columns.append(int(each))
        else:
            raise ValueError(
                "categorical_features must be 'from_dtype', or hold indices, names, or a bool for "
                f"each column. Got {each!r}."
            )
    return sorted(set(columns))


def row_of(
    x: Any,
    categories: Categories,
    offsets: NDArray[np.float64] | None = None,
    names: Sequence[Any] | None = None,
) -> tuple[NDArray[np.float32], Categories]:
    """One sample as a row of the core forest, and the categories with levels that are new.

    `names` are those of the features in messages; None: their indices.
    """
    values = [None if value is np.ma.masked else value for value in x]
    if len(values) != categories.n_features:
        raise ValueError(
            f"x has {len(values)} features, but this forest has {categories.n_features}."
        )
    named = range(len(values)) if names is None else names
    numbers = _numbers([values[k] for k in categories.numeric])
    if numbers is None:
        found = [_number(values[k], named[k]) for k in categories.numeric]
        numbers = np.array([found], dtype=np.float64)
    cells = rounded(numbers, None if offsets is None else offsets[categories.numeric])
    of_levels = [[values[k]] for k in categories.columns]
    rows, grown = categories.rows(cells, of_levels, lambda column: f"Feature {named[column]!r}")
    return rows[0], grown


def _numbers(values: list[Any]) -> NDArray[Any] | None:
    """The values as an array of one row if all of them are numbers, else None."""
    try:
        array = np.array([values])
    except ValueError:  # one of them is a list
        return None
    return array if array.dtype.kind in "fiub" else None


def _number(value: Any, name: Any) -> float:
    if isinstance(value, str):  # an array of objects may hold numbers as text, too
        with suppress(ValueError):
            return float(value)
    return number_of(value, name)
