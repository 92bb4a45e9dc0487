"""Tables as users give them, and which of their columns are categorical. Must not know forests."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import NDArray
from scipy.sparse import issparse

from onlineforest._inputs.one_row import number_of

FROM_DTYPE = "from_dtype"


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
