"""Rows out of CSV, by Arrow's reader; a block that it refuses is read again row by row.

Most blocks are fine and quick. In one that is not, each row is looked at, so that the bad ones can
be told with their lines and reasons, and the others are not lost.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from onlineforest._tables.columns import (
    MISSING,
    BadRow,
    Column,
    Kind,
    Looks,
    OnBadRow,
    TableError,
    Wanted,
    listed,
    printable,
)
from onlineforest._tables.csv_blocks import Block, blocks_of

_LOOKED_AT = 1000  # rows, to see what a column is
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan(?:\(\w*\))?", re.ASCII | re.IGNORECASE)  # as Arrow reads it
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}(?: .*)?|\d\d?:\d\d.*")
_BOOLS = {"true": 1.0, "false": 0.0, "True": 1.0, "False": 0.0, "TRUE": 1.0, "FALSE": 0.0}
_TYPES = {Kind.NUMBER: pa.float64(), Kind.WHOLE: pa.int64(), Kind.TEXT: pa.string()}
# Whole numbers are read as text: Arrow would take 0x1F and 007 for 31 and 7.
_READ_AS = {**_TYPES, Kind.WHOLE: pa.string()}
_BLANK = " \t"


class CsvTable:
    """A CSV file with a header: see `onlineforest._tables.columns.Table`."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        delimiter: str | None,
        fraction_read: Callable[[], float | None],
        close: Callable[[], None],
        n_looked_at: int = 1,
    ) -> None:
        """Reads until so many rows have come, to see what the columns are, or all there are."""
        self.name, self._file = name, file
        self.fraction_read, self.close = fraction_read, close
        self._delimiter = delimiter or ""
        blocks = self._blocks()
        # A file may begin with lines that are blank, as many as it likes.
        first = next((block for block in blocks if block.data.strip()), None)
        if first is None:
            raise TableError(f"{name} is empty: a header with the names of the columns was wanted.")
        self.names, rest = self._taken_header(first)
        held, rows = [rest], self._first_rows(rest)
        while len(rows) < n_looked_at and (block := next(blocks, None)) is not None:
            held.append(block)
            rows += self._first_rows(block)
        self._blocks_left = chain(held, blocks)
        self._first_row = rows[0] if rows else []
        self.columns = [
            _at_first_sight(column, [row[i] for row in rows if len(row) > i])
            for i, column in enumerate(self.names)
        ]

    def first_bytes(self) -> bytes:
        """Its header and first row."""
        return repr((self.names, self._first_row)).encode()

    def read(self, wanted: Mapping[str, Wanted], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """The rows, block by block."""
        options = self._arrow_options(wanted)
        for block in self._blocks_left:
            table = self._read_quickly(block, wanted, options)
            if table is None:
                yield from self._read_carefully(block, wanted, on_bad_row)
            elif len(table):
                yield table

    def _blocks(self) -> Iterator[Block]:
        def delimiter(start: bytes) -> str:
            self._delimiter = self._delimiter or _guessed_delimiter(start)
            return self._delimiter

        # What is there now, of a pipe, rather than so and so much.
        read = getattr(self._file, "read1", self._file.read)
        try:
            yield from blocks_of(read, delimiter)
        except TableError as error:
            raise TableError(f"{self.name}, {error}") from error
        except (EOFError, zlib.error) as error:
            raise TableError(f"{self.name} cannot be unpacked: {error}") from error

    def _first_rows(self, block: Block) -> list[list[str]]:
        return [row for _, row in islice(self._records(block), _LOOKED_AT)]

    def _taken_header(self, block: Block) -> tuple[list[str], Block]:
        """The names of the columns, and the block without them."""
        if block.data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in block.data[:1000]:
            raise TableError(
                f"{self.name} is no CSV file in UTF-8 (or ASCII). If it is text, save it as UTF-8."
            )
        data = block.data.removeprefix(b"\xef\xbb\xbf")
        text = io.StringIO(data.decode("latin-1"), newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        try:
            header = next(record for record in reader if record)
            names = [name.encode("latin-1").decode().strip() for name in header]
        except (csv.Error, UnicodeDecodeError, StopIteration) as error:
            raise TableError(f"{self.name}: its header cannot be read: {error}.") from error
        self._check_names(names)
        return names, Block(data[text.tell() :], block.first_line + reader.line_num)

    def _check_names(self, names: list[str]) -> None:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TableError(f"{self.name} has more than one column {listed(twice)}.")

    def _arrow_options(self, wanted: Mapping[str, Wanted]) -> dict[str, Any]:
        looks = {column.name: column.looks for column in self.columns}
        types = {
            name: pa.bool_()
            if each.kind is Kind.NUMBER and looks[name] is Looks.BOOLS
            else _READ_AS[each.kind]
            for name, each in wanted.items()
        }
        return {
            "convert_options": arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(wanted),
                null_values=sorted(MISSING),
                strings_can_be_null=False,
            ),
        }

    def _read_quickly(
        self, block: Block, wanted: Mapping[str, Wanted], options: dict[str, Any]
    ) -> pa.Table | None:
        """The rows of a block if all of them are good; None otherwise."""
        has_quotes = b'"' in block.data
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(block.data),
                read_options=arrow_csv.ReadOptions(
                    column_names=self.names, use_threads=False, block_size=len(block.data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=has_quotes
                ),
                **options,
            )
        except pa.ArrowException:
            return None
        columns = []
        for name, each in wanted.items():
            column = _AS_WANTED[each.kind](table.column(name), each)
            if column is None:
                return None
            columns.append(column)
        return pa.table(columns, names=list(wanted))

    def _read_carefully(
        self, block: Block, wanted: Mapping[str, Wanted], on_bad_row: OnBadRow
    ) -> Iterator[pa.Table]:
        """The good rows of a block; the bad ones are told. If that ends it, those before come."""
        places = [(self.names.index(name), name, each) for name, each in wanted.items()]
        columns: list[list[Any]] = [[] for _ in places]
        for line, row in self._records(block):
            try:
                self._check_length(row)
                values = [_value(row[place], name, each) for place, name, each in places]
            except _BadError as bad:
                try:
                    on_bad_row(BadRow(f"{self.name}, line {line:,}", str(bad)))
                except Exception:
                    yield _as_table(columns, wanted)
                    raise
                continue
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        yield _as_table(columns, wanted)

    def _records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Each record, and the line it begins at."""
        text = io.StringIO(block.data.decode(errors="surrogateescape"), newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        line = block.first_line
        try:
            for record in reader:
                if record:
                    yield line, record
                line = block.first_line + reader.line_num
        except csv.Error as error:
            raise TableError(
                f"{self.name}, line {line:,}: {error}. Is a quote left open?"
            ) from error

    def _check_length(self, row: list[str]) -> None:
        if len(row) != len(self.names):
            fields = "1 field" if len(row) == 1 else f"{len(row):,} fields"
            raise _BadError(f"it has {fields}, but the header has {len(self.names):,}")


class _BadError(Exception):
    """Why a row is bad."""


def _as_table(columns: list[list[Any]], wanted: Mapping[str, Wanted]) -> pa.Table:
    arrays = [
        pa.chunked_array([pa.array(column, _TYPES[each.kind])])
        for column, each in zip(columns, wanted.values(), strict=True)
    ]
    return pa.table(arrays, names=list(wanted))


def _value(text: str, name: str, wanted: Wanted) -> float | int | str | None:
    """A field as what is wanted, None if it is missing; raises if it is bad."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raw = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise _BadError(f"column {name!r} is not UTF-8: {printable(raw)}") from error
    if wanted.kind is Kind.TEXT and not wanted.is_needed:
        return text
    bare = text.strip(_BLANK)
    if bare in MISSING or (wanted.kind is Kind.NUMBER and _NAN.fullmatch(bare)):
        if wanted.is_needed:
            shown = f" ({bare})" if bare else ""
            raise _BadError(f"column {name!r} is missing{shown}")
        return None
    if wanted.kind is Kind.TEXT:
        return text
    if wanted.kind is Kind.WHOLE:
        if not _WHOLE.fullmatch(bare):
            raise _BadError(
                f"column {name!r} holds {printable(text)}, where {wanted.kind.value} was "
                "wanted, as in the rows before"
            )
        return int(bare)
    number = _number(bare)
    if number is None:
        raise _BadError(f"column {name!r} holds {printable(text)}, where a number was wanted")
    if not abs(number) <= wanted.largest:
        raise _BadError(f"column {name!r} holds {printable(text)}, which is infinite or too large")
    return number


def _number(text: str) -> float | None:
    if _NUMBER.fullmatch(text) or _INFINITE.fullmatch(text):
        return float(text)
    return _BOOLS.get(text)


# What Arrow has read as what is wanted; None if there are bad values. Must agree with `_value`:
# what a row holds must not depend on whether others of its block are bad.


def _as_text(column: pa.ChunkedArray, wanted: Wanted) -> pa.ChunkedArray | None:
    if wanted.is_needed and _any(_are_missing(pc.utf8_trim(column, _BLANK))):
        return None
    return column


def _as_whole_numbers(column: pa.ChunkedArray, wanted: Wanted) -> pa.ChunkedArray | None:
    bare = pc.utf8_trim(column, _BLANK)
    if not wanted.is_needed:
        bare = _null_where(_are_missing(bare), bare)
    if _any(pc.invert(pc.match_substring_regex(bare, f"^(?:{_WHOLE.pattern})$"))):
        return None
    return bare.cast(pa.int64())


def _as_numbers(column: pa.ChunkedArray, wanted: Wanted) -> pa.ChunkedArray | None:
    numbers = column.cast(pa.float64())
    are_nan = pc.is_nan(numbers)
    if _any(are_nan):  # other ways to write it than those in MISSING
        numbers = _null_where(are_nan, numbers)
    if wanted.is_needed and numbers.null_count:
        return None
    sizes = np.abs(numbers.to_numpy())
    return numbers if np.all((sizes <= wanted.largest) | np.isnan(sizes)) else None


_AS_WANTED = {Kind.TEXT: _as_text, Kind.WHOLE: _as_whole_numbers, Kind.NUMBER: _as_numbers}


def _any(are_so: pa.ChunkedArray) -> bool:
    return bool(pc.any(are_so).as_py())


def _are_missing(bare: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(bare, pa.array(sorted(MISSING)))


def _null_where(are_so: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(are_so, pa.scalar(None, column.type), column)


def _at_first_sight(name: str, values: list[str]) -> Column:
    """What the first values of a column seem to be: what most of them are."""
    bare = [text.strip(_BLANK) for text in values]
    there = [text for text in bare if text not in MISSING]
    distinct = tuple(dict.fromkeys(there))
    column = Column(name, Looks.NOTHING, distinct[:3], len(distinct) / max(len(there), 20))
    if not there:
        return column
    # Of whole numbers and text all must be so: a label is either for good.
    if all(_WHOLE.fullmatch(text) for text in there):
        return replace(column, looks=Looks.WHOLE_NUMBERS)
    n_numbers = sum(_NUMBER.fullmatch(text) is not None for text in there)
    n_bools = sum(text in _BOOLS for text in there)
    n_dates = sum(_DATE.fullmatch(text) is not None for text in there)
    n_most = max(n_numbers, n_bools, n_dates)
    if 2 * n_most <= len(there):
        return replace(column, looks=Looks.TEXT)
    looks = {n_dates: Looks.DATES, n_bools: Looks.BOOLS, n_numbers: Looks.NUMBERS}
    return replace(column, looks=looks[n_most])


def _guessed_delimiter(start: bytes) -> str:
    """A comma, unless the header has none, but another usual one."""
    header = start.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n")[0]
    return next((each for each in _DELIMITERS if each.encode() in header), ",")
