"""Row formats: what each cell of a row is, and how tables and single samples become rows.

A row holds the numeric features first, then two cells for each categorical feature. Must not know
forests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import NDArray

from onlineforest._inputs.cells import with_nan
from onlineforest._inputs.levels import (
    Level,
    LevelNames,
    Words,
    cells_of,
    go_left,
    in_order,
)
from onlineforest._inputs.one_row import (
    PLAIN_ROWS,
    check_first_names,
    is_frame,
    mapping_in,
    number_of,
    values_by_name,
)
from onlineforest._inputs.rounding import Loss, offsets_of_features, rounded
from onlineforest._inputs.tables import FROM_DTYPE, Table, chosen_columns, named_columns
from onlineforest._inputs.validation import (
    check_numbers,
    check_row,
    check_rows,
    check_table,
)

Rows = NDArray[np.float32]
Floats = NDArray[np.float64]
_NONE = type(None)


def names_of(estimator: Any) -> list[str] | None:
    """The names of an estimator's features; None if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


@dataclass(frozen=True, eq=False)
class RowFormat(ABC):
    """Meaning of the cells in the rows of one forest. Immutable: new levels make a new format.

    Attributes
    ----------
    n_features : int
        Number of columns of a table.
    offsets : ndarray of shape (n_features,) or None
        Numbers that are subtracted from the features before these are rounded to float32.
    """

    # How the error about columns that are not numbers ends.
    not_numbers: ClassVar[str] = (
        "Columns that were numbers when the forest was started must stay numbers. Columns of text "
        "in a data frame are categorical if they are there from the start; for an array, "
        "categorical_features names the columns."
    )

    n_features: int
    offsets: Floats | None = None

    @property
    @abstractmethod
    def columns(self) -> tuple[int, ...]:
        """The categorical columns, in order."""

    @property
    @abstractmethod
    def numeric(self) -> Sequence[int]:
        """The columns that are not categorical, in order: those of the first cells."""

    @property
    def order(self) -> NDArray[np.intp]:
        """The column of each feature of the core forest."""
        return np.array([*self.numeric, *self.columns], dtype=np.intp)

    @property
    def nbytes(self) -> int:
        """Memory of the names of levels in bytes."""
        return 0

    def check(
        self, estimator: Any, X: Any, *, reset: bool = False, offsets: Any = None, **options: Any
    ) -> tuple[Any, Self]:
        """Rows of a table, or an error; and the format with the levels that are new.

        Parameters
        ----------
        estimator : object
            It gets the names and the number of features if `reset`, and must match them if not.
        X : array-like of shape (n_samples, n_features)
            The table.
        reset : bool, default=False
            Whether this is the first table of a forest.
        offsets : array-like, dict or None, default=None
            The parameter `offsets`, for a first table.
        **options : dict
            Those of scikit-learn's validation. With `y`, the rows come as a pair with it.
        """
        first = self

        def find_offsets() -> Floats | None:
            nonlocal first
            if reset:  # the number and the names of features are known only now
                sized = replace(self, n_features=int(estimator.n_features_in_))
                first = sized.with_offsets(offsets, names_of(estimator))
            return first.offsets

        has_offsets = (offsets if reset else self.offsets) is not None
        how = options | {"find_offsets": find_offsets if has_offsets else None}
        checked, grown = self._checked(estimator, X, reset=reset, **how)
        if reset:
            n_features, found = int(estimator.n_features_in_), find_offsets()
            grown = replace(grown, n_features=n_features, offsets=found)
        return checked, grown

    def with_offsets(self, offsets: Any, names: list[str] | None) -> Self:
        """The format with the offsets that the parameter gives features of these names."""
        if offsets is None:
            return self
        found = offsets_of_features(offsets, self.n_features, names, self.columns)
        return replace(self, offsets=found)

    @abstractmethod
    def _checked(self, estimator: Any, X: Any, **options: Any) -> tuple[Any, Self]:
        """Rows, and y if it is among the options, and the format with the levels that are new."""

    def queries(self, estimator: Any, X: Any) -> Rows:
        """Rows to predict, rounded exactly as stored rows are."""
        rows = self.plain(estimator, X)
        if rows is None:
            rows, _ = self.check(estimator, X)
        return rows

    def plain(self, estimator: Any, X: Any) -> Rows | None:  # noqa: ARG002
        """The rows if X is a plain array of valid floats, which takes little time, else None."""
        return None

    def row(self, estimator: Any, x: Any, *, may_be_new: bool) -> Any:
        """One sample as a core forest may take it; `check_row` makes a row of what it refuses.

        None for a data frame that is to be learned, and for a sample with a level that no stored
        sample has, unless it `may_be_new`.
        """
        names = None
        if type(x) not in PLAIN_ROWS:
            if is_frame(x):
                return self.queries(estimator, x)[0] if may_be_new else None
            x, names = self._values_in_order(estimator, x), names_of(estimator)
        return self._row_of_values(x, names, may_be_new)

    @abstractmethod
    def _row_of_values(self, x: Any, names: list[str] | None, may_be_new: bool) -> Any:
        """One sample whose values are in the order of the features."""

    def _values_in_order(self, estimator: Any, x: Any) -> Any:
        named = mapping_in(x)
        if named is None:
            return with_nan(x, "x")
        return values_by_name(named, names_of(estimator), self.columns)

    def table_of_one(self, estimator: Any, x: Any) -> Any:
        """One sample as `partial_fit` of a forest with samples takes it."""
        if type(x) in PLAIN_ROWS:
            return self._table_of_values(estimator, x)
        if is_frame(x):
            return x
        named = mapping_in(x)
        if named is None:
            return self._table_of_values(estimator, with_nan(x, "x"))
        return Table.of_one(self._values_in_order(estimator, named), names_of(estimator))

    @abstractmethod
    def _table_of_values(self, estimator: Any, x: Any) -> Any:
        """Values without names as a table; names are not asked for."""

    def without_unused(self, core: Any) -> Self:  # noqa: ARG002
        """The format without levels that no sample of the core forest has."""
        return self

    def described(self) -> dict[str, Any]:
        """Values of JSON that `restored_format` needs besides the number of features."""
        return {}

    def in_columns(self, rows: Rows) -> NDArray[np.floating]:
        """Rows in the order of columns and the units of a table, with NaN for levels."""
        found = rows
        if self.columns:
            found = np.full((len(rows), self.n_features), np.nan, dtype=np.float32)
            found[:, self.numeric] = rows[:, : len(self.numeric)]
        return found if self.offsets is None else found + self.offsets

    def offset_list(self) -> list[float] | None:
        """The offset of each feature; None if all are 0."""
        return None if self.offsets is None or not self.offsets.any() else self.offsets.tolist()

    def advice_on_rounding(self, losses: Mapping[Any, Loss]) -> str:
        """A way out for columns that lose distinct values when they are rounded."""
        numbers = ", ".join(f"{name!r}: {loss.offset}" for name, loss in losses.items())
        return (
            "Subtract a number near them: the parameter offsets does it, before the rounding, in "
            f"learning and in predicting. Start a new forest with offsets={{{numbers}}}."
        )


class NumericRows(RowFormat):
    """Rows of numeric features, one cell each. NaN is a missing value."""

    takes_missing: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[int, ...]:
        return ()

    @property
    def numeric(self) -> Sequence[int]:
        return range(self.n_features)

    def plain(self, estimator: Any, X: Any) -> Rows | None:
        if (
            type(X) is not np.ndarray
            or X.dtype.char not in "fd"
            or X.ndim != 2
            or len(X) == 0
            or X.shape[1] != estimator.n_features_in_
            or hasattr(estimator, "feature_names_in_")
        ):
            return None
        rows = rounded(X, self.offsets)
        return rows if self._are_valid(rows) else None

    def _are_valid(self, rows: Rows) -> bool:
        return not np.isinf(rows).any()

    def row(self, estimator: Any, x: Any, *, may_be_new: bool) -> Any:
        if self.offsets is None and type(x) in PLAIN_ROWS:  # without a further call, for speed
            return x
        return super().row(estimator, x, may_be_new=may_be_new)

    def _checked(self, estimator: Any, X: Any, **options: Any) -> tuple[Any, Self]:
        if not isinstance(X, Table):
            return check_rows(estimator, X, hint=self.not_numbers, **options), self
        n = X.n_columns if options["reset"] else estimator.n_features_in_
        rows, y, _ = check_table(estimator, X, range(n), n, hint=self.not_numbers, **options)
        return (rows if y is None else (rows, y)), self

    def _row_of_values(self, x: Any, names: list[str] | None, may_be_new: bool) -> Any:  # noqa: ARG002
        return x if self.offsets is None else check_row(x, self.offsets)

    def _table_of_values(self, estimator: Any, x: Any) -> Any:
        return numbers_of_one(estimator, x)


class CompleteRows(NumericRows):
    """Rows of numeric features, none of them missing."""

    takes_missing = False

    not_numbers = (
        "A Mondrian forest learns numbers only. Take OnlineForestClassifier, which learns "
        "categories as they are, or turn categories into numbers with an encoder of scikit-learn."
    )

    def _are_valid(self, rows: Rows) -> bool:
        return bool(np.isfinite(rows).all())

    def _checked(self, estimator: Any, X: Any, **options: Any) -> tuple[Any, Self]:
        checked, grown = super()._checked(estimator, X, **options)
        rows = checked[0] if isinstance(checked, tuple) else checked
        lacking = np.isnan(rows).any(axis=0)
        if lacking.any():
            names = names_of(estimator) or range(estimator.n_features_in_)
            raise ValueError(
                f"Input X contains NaN, in column {names[lacking.argmax()]!r}. "
                f"{type(estimator).__name__} learns complete rows only. OnlineForestClassifier "
                "learns rows with missing values."
            )
        return checked, grown

    def advice_on_rounding(self, losses: Mapping[Any, Loss]) -> str:
        numbers = ", ".join(f"{loss.offset} from column {name!r}" for name, loss in losses.items())
        return f"Before learning and before predicting, subtract a number near them: {numbers}."


@dataclass(frozen=True, eq=False)
class MixedRows(RowFormat):
    """Rows with categorical features: two cells for each, after the numeric features.

    Attributes
    ----------
    categorical : tuple of int
        The categorical columns, in order.
    levels : tuple of LevelNames
        The levels of each that stored samples have.
    """

    categorical: tuple[int, ...] = ()
    levels: tuple[LevelNames, ...] = ()

    @classmethod
    def of(cls, n_features: int, columns: Iterable[int]) -> Self:
        """A format without levels."""
        found = tuple(sorted(columns))
        return cls(n_features, None, found, tuple(LevelNames() for _ in found))

    @property
    def columns(self) -> tuple[int, ...]:
        return self.categorical

    @cached_property
    def numeric(self) -> Sequence[int]:
        return [column for column in range(self.n_features) if column not in self.categorical]

    @property
    def nbytes(self) -> int:
        return sum(names.nbytes for names in self.levels)

    def cells(self, column: int) -> list[int]:
        """The cells of a column in a row."""
        if column not in self.columns:
            return [list(self.numeric).index(column)]
        first = len(self.numeric) + 2 * self.columns.index(column)
        return [first, first + 1]

    def _checked(self, estimator: Any, X: Any, **options: Any) -> tuple[Any, Self]:
        numbers, y, table = check_table(
            estimator, X, self.numeric, self.n_features, hint=self.not_numbers, **options
        )
        values = [table.values(column) for column in self.columns]
        rows, grown = self._rows(numbers, values, table.name)
        return (rows if y is None else (rows, y)), grown

    def _rows(
        self, numbers: Rows, values: Sequence[Sequence[Any]], name: Callable[[int], str]
    ) -> tuple[Rows, Self]:
        """Rows of numeric columns and the values of each categorical one; `name` names a column."""
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

    def _row_of_values(self, x: Any, names: list[str] | None, may_be_new: bool) -> Any:
        values = [None if value is np.ma.masked else value for value in x]
        if len(values) != self.n_features:
            raise ValueError(
                f"x has {len(values)} features, but this forest has {self.n_features}."
            )
        named = range(len(values)) if names is None else names
        numeric = self.numeric
        numbers = _numbers([values[k] for k in numeric])
        if numbers is None:
            found = [_number(values[k], named[k]) for k in numeric]
            numbers = np.array([found], dtype=np.float64)
        cells = rounded(numbers, None if self.offsets is None else self.offsets[numeric])
        of_levels = [[values[k]] for k in self.columns]
        rows, grown = self._rows(cells, of_levels, lambda column: f"Feature {named[column]!r}")
        return rows[0] if may_be_new or grown is self else None

    def _table_of_values(self, estimator: Any, x: Any) -> Any:  # noqa: ARG002
        return Table.of_one(x)

    def without_unused(self, core: Any) -> Self:
        n_held = core.n_levels.tolist()
        if all(len(names) == n for names, n in zip(self.levels, n_held, strict=True)):
            return self
        kept = [
            names if len(names) == n else names.only(core.levels(place))
            for place, (names, n) in enumerate(zip(self.levels, n_held, strict=True))
        ]
        return replace(self, levels=tuple(kept))

    def described(self) -> dict[str, Any]:
        return {"categorical": list(self.columns)}

    def named(self, levels: list[Any], held: Callable[[int], Words]) -> Self:
        """The format with the names of levels in a file, which must be those that samples have."""
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

    def with_levels_of(self, others: Iterable[RowFormat]) -> Self:
        """The format with the levels of others of the same columns."""
        levels = list(self.levels)
        for other in others:
            assert isinstance(other, MixedRows)
            for place, names in enumerate(other.levels):
                levels[place] = levels[place].encode(names.names())[1]
        return replace(self, levels=tuple(levels))

    def left_levels(
        self, features: NDArray[np.int32], thresholds: NDArray[np.float32]
    ) -> NDArray[np.object_]:
        """For each split on a categorical feature the levels that it sends left, else None."""
        n_numeric = self.n_features - len(self.columns)
        found = np.full(len(features), None, dtype=object)
        for node in np.flatnonzero(features >= n_numeric).tolist():
            names = self.levels[features[node] - n_numeric]
            are_left = go_left(names.words, thresholds[node])
            chosen = (name for name, left in zip(names.names(), are_left, strict=True) if left)
            found[node] = tuple(in_order(chosen))
        return found


def as_mixed(rows: RowFormat) -> MixedRows:
    """The format as one with categorical columns, of which there may be none."""
    return rows if isinstance(rows, MixedRows) else MixedRows.of(rows.n_features, ())


def first_format(
    X: Any, categorical_features: Any, numeric: type[NumericRows] = NumericRows
) -> RowFormat:
    """The format that the first table of a forest and the parameter choose.

    `numeric` is that of a table without categorical columns.
    """
    wish = categorical_features
    is_by_type = isinstance(wish, str) and wish == FROM_DTYPE
    has_types = isinstance(X, Table) or is_into_dataframe(X)
    if wish is None or (is_by_type and not has_types):
        return numeric(0)
    table = Table.of(X)
    columns = chosen_columns(wish, table)
    return MixedRows.of(table.n_columns, columns) if columns else numeric(0)


def first_table_of_one(estimator: Any, x: Any, categorical_features: Any) -> Any:
    """The first sample of a forest as `partial_fit` takes it."""
    if type(x) not in PLAIN_ROWS:
        if is_frame(x):
            return x
        named = mapping_in(x)
        if named is not None:
            return Table.of_one(named.values(), check_first_names(named))
        x = with_nan(x, "x")
    wish = categorical_features
    if wish is None or (isinstance(wish, str) and wish == FROM_DTYPE):
        return numbers_of_one(estimator, x)
    return Table.of_one(x)


def numbers_of_one(estimator: Any, x: Any) -> Any:
    """Numbers without names as a table of one row; their names are not asked for."""
    rows = check_numbers(x)[np.newaxis]
    return Table.of_rows(rows) if hasattr(estimator, "feature_names_in_") else rows


def restored_format(
    estimator: Any,
    described: dict[str, Any],
    categorical_features: Any,
    numeric: type[NumericRows] = NumericRows,
) -> RowFormat:
    """The format of an estimator with these features that `described` describes, or an error."""
    n_features: int = estimator.n_features_in_
    match described:
        case {"categorical": list(columns), **others} if columns and not others:
            if not all(type(column) is int and 0 <= column < n_features for column in columns):
                raise ValueError("its features cannot be read.")
            if sorted(set(columns)) != columns:
                raise ValueError("its categorical columns are not distinct and in order.")
        case {}:
            if described:
                raise ValueError("its features cannot be read.")
            columns = []
    wish = categorical_features
    if not (isinstance(wish, str) and wish == FROM_DTYPE):  # it depended on the first table
        chosen = [] if wish is None else named_columns(wish, n_features, names_of(estimator))
        if chosen != columns:
            raise ValueError(
                f"its categorical columns are {columns}, but its categorical_features chooses "
                f"{chosen}."
            )
    return MixedRows.of(n_features, columns) if columns else numeric(n_features)


def plain_format(rows: RowFormat) -> tuple[Any, ...]:
    """A format as plain values, for pickles."""
    levels = [names.names() for names in rows.levels] if isinstance(rows, MixedRows) else []
    return rows.n_features, rows.offsets, rows.columns, levels


def format_of_plain(
    numeric: type[NumericRows],
    n_features: int,
    offsets: Floats | None,
    columns: tuple[int, ...],
    levels: Sequence[Iterable[Level]],
) -> RowFormat:
    """The format that `plain_format` was given; `numeric` if no column is categorical."""
    if not columns:
        return numeric(n_features, offsets)
    return MixedRows(n_features, offsets, columns, tuple(LevelNames(names) for names in levels))


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
