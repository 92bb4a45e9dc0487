"""Types of table columns, how to read them, and reports of bad rows.

Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa

FIRST_ROWS = 100  # a column with text in one of these rows does not hold numbers
MAX_DIGITS = 18  # largest number of digits of a category that is a whole number
MAX_FLOAT32 = float(np.finfo(np.float32).max)
MISSING_VALUES = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "Null", "null"]
) | {"None", "none", "?"}


class TableError(ValueError):
    """A table cannot be read as requested; the message names the table and the place."""


class ColumnType(Enum):
    """Type that the values of a column are converted to."""

    NUMBER = "a number"  # float64; true and false are 1 and 0
    INTEGER = "an integer"  # int64
    TEXT = "text"
    CODE = "a whole number"  # int64, or null; true and false are 1 and 0
    LEVEL = "a category"  # text, or null if it is empty


CATEGORICAL = frozenset({ColumnType.CODE, ColumnType.LEVEL})


class InferredType(Enum):
    """Type that the first values of a column seem to have."""

    NUMBERS = "numbers"
    INTEGERS = "integers"
    BOOLEANS = "true or false"
    TEXT = "text"
    DATES = "dates or times"
    EMPTY = "no values"
    OTHER = "values that are neither numbers nor text"


# Days since 1970-01-01, with the time as a fraction; hour with its fraction; 0 is Monday; 1 to 12.
PARTS_OF_TIMES = ("days", "hour", "weekday", "month")


@dataclass(frozen=True)
class TimePart:
    """A number that is made from the dates or times of a column."""

    column: str
    part: str  # one of `PARTS_OF_TIMES`

    @property
    def name(self) -> str:
        """Name of the column of numbers. Model files hold it, so its form must not change."""
        return f"{self.column} ({self.part})"


@dataclass(frozen=True)
class ColumnSpec:
    """How to read a column, and which of its values make a row bad."""

    type: ColumnType
    is_required: bool = False  # a missing value makes the row bad; otherwise it is NaN or ""
    max_abs: float = MAX_FLOAT32  # largest absolute value of a number
    hint: str = ""  # end of the message about a value that is missing or of another type
    time: TimePart | None = None  # a number is made from a date or time

    def source(self, name: str) -> str:
        """Name of the column of the file that is read for the column `name`."""
        return name if self.time is None else self.time.column


@dataclass(frozen=True)
class ColumnInfo:
    """Name of a column, and what its first values show."""

    name: str
    inferred_type: InferredType
    examples: tuple[str, ...] = ()
    distinct_share: float = 0.0  # distinct among the first values; small if there are few values
    n_values: int = 0  # number of the first values, without missing ones
    are_whole: bool = False  # all of them are whole numbers, or true or false
    texts: tuple[str, ...] = ()  # text among the first rows of a CSV column of mostly numbers
    time: TimePart | None = None  # its numbers are made from the dates or times of another column


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: its place ("line 17") and the reason."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


OnBadRow = Callable[[BadRow], None]


class Table(Protocol):
    """A table in a file that is read once."""

    name: str
    columns: list[ColumnInfo]

    @property
    def has_fixed_columns(self) -> bool:
        """Whether every row has all columns, so that there are no others than `columns`."""

    def read(self, specs: Mapping[str, ColumnSpec], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """Yield the good rows in pieces, with the columns of `specs` in their order."""

    @property
    def fraction_read(self) -> Callable[[], float | None]:
        """Returns the fraction of the file read so far, 0 to 1; None if its size is unknown."""

    def first_bytes(self) -> bytes:
        """Column names and first row, which distinguish this table from others."""

    @property
    def close(self) -> Callable[[], None]:
        """Closes the file."""


def check_names(table_name: str, names: list[str]) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"{table_name} has more than one column {join_names(repeated)}.")


def out_of_range(name: str, text: str, max_abs: float) -> str:
    """Reason why a row with this number is bad."""
    return f"column {name!r} holds {quote(text)}, which is outside ±{max_abs:.4g}"


def not_whole(name: str, text: str, hint: str = "") -> str:
    """Reason why a row is bad if its category should be a whole number and is not."""
    return (
        f"column {name!r} holds {quote(text)}, but its categories are whole numbers of at most "
        f"{MAX_DIGITS} digits{hint}"
    )


def one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())


def join_names(names: list[str], max_names: int = 12) -> str:
    """The first names, quoted, for an error message."""
    shown = ", ".join(quote(name) for name in names[:max_names])
    return shown + (f" and {len(names) - max_names} more" if len(names) > max_names else "")


def quote(text: str, max_length: int = 40) -> str:
    """Quoted and shortened text of a file, with control characters escaped for terminals."""
    return repr(text if len(text) <= max_length else f"{text[:max_length]}…")
