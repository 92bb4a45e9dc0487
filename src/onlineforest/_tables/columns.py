"""What columns of a table are, what is wanted of them, and what is said of rows that are bad.

Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa


class TableError(ValueError):
    """A table cannot be read, or not as was asked; says what and where."""


LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "Null", "null"]
) | {"None", "none", "?"}


class Kind(Enum):
    """What the values of a column are read as."""

    NUMBER = "a number"  # float64; true and false are 1 and 0
    WHOLE = "a whole number"  # int64
    TEXT = "text"


class Looks(Enum):
    """What the values of a column seem to be."""

    NUMBERS = "numbers"
    WHOLE_NUMBERS = "whole numbers"
    BOOLS = "true or false"
    TEXT = "text"
    DATES = "dates or times"
    NOTHING = "nothing"
    OTHER = "values that are neither numbers nor text"


@dataclass(frozen=True)
class Wanted:
    """How to read a column, and which of its values make a row bad."""

    kind: Kind
    is_needed: bool = False  # a missing value makes the row bad; otherwise it is NaN or ""
    largest: float = LARGEST_FLOAT32  # in size, for numbers


@dataclass(frozen=True)
class Column:
    """A column at first sight."""

    name: str
    looks: Looks
    examples: tuple[str, ...] = ()
    share_distinct: float = 0.0  # of its first values; small where there are few


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: where it is ("line 17"), and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


OnBadRow = Callable[[BadRow], None]


class Table(Protocol):
    """A table in a file, to be read once."""

    name: str
    columns: list[Column]

    def read(self, wanted: Mapping[str, Wanted], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """The rows, some at a time, with these columns in this order."""

    @property
    def fraction_read(self) -> Callable[[], float | None]:
        """How much of the file has been read, 0 to 1; None if nobody knows."""

    def first_bytes(self) -> bytes:
        """Something that tells this table from others: its names and a first row."""

    @property
    def close(self) -> Callable[[], None]:
        """Closes the file."""


def listed(names: list[str], most: int = 12) -> str:
    """Some names, for a message."""
    shown = ", ".join(printable(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def printable(text: str, most: int = 40) -> str:
    """Text of a file in quotes, short, with nothing that could move the cursor of a terminal."""
    return repr(text if len(text) <= most else f"{text[:most]}…")
