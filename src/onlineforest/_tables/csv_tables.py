"""Read CSV files with Arrow; parse a block that contains a bad row a second time, row by row.

Most blocks contain good rows only, and Arrow parses them fast. The second pass reports each bad row
with its line and reason, and keeps the other rows of the block.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv as arrow_csv

from onlineforest._tables.columns import (
    MISSING_VALUES,
    ColumnSpec,
    OnBadRow,
    TableError,
    check_names,
)
from onlineforest._tables.csv_blocks import Block, read_blocks
from onlineforest._tables.csv_values import (
    BadValueError,
    arrow_parse_type,
    convert_column,
    convert_field,
    good_rows,
    infer_column,
)

_MAX_INSPECTED_ROWS = 1000  # rows of a block from which column types are inferred
_DELIMITERS = ",;\t|"


class CsvTable:
    """A CSV file with a header: see `onlineforest._tables.columns.Table`."""

    has_fixed_columns = True

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        delimiter: str | None,
        fraction_read: Callable[[], float | None],
        close: Callable[[], None],
        min_inspected_rows: int = 1,
    ) -> None:
        """Read at least `min_inspected_rows` rows, if there are as many, to infer column types."""
        self.name, self._file = name, file
        self.fraction_read, self.close = fraction_read, close
        self._delimiter = delimiter or ""
        blocks = self._blocks()
        # A file may begin with any number of blank lines.
        first = next((block for block in blocks if block.data.strip()), None)
        if first is None:
            raise TableError(f"{name} is empty: the first line must hold the names of the columns.")
        self.names, rest = self._split_header(first)
        held, rows = [rest], self._first_rows(rest)
        while len(rows) < min_inspected_rows and (block := next(blocks, None)) is not None:
            held.append(block)
            rows += self._first_rows(block)
        self._blocks_left = chain(held, blocks)
        self._first_row = rows[0] if rows else []
        self.columns = [
            infer_column(column, [row[i] for row in rows if len(row) > i])
            for i, column in enumerate(self.names)
        ]

    def first_bytes(self) -> bytes:
        """Header and first row."""
        return repr((self.names, self._first_row)).encode()

    def read(self, specs: Mapping[str, ColumnSpec], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """Yield the good rows of each block."""
        convert_options = self._convert_options(specs)
        for block in self._blocks_left:
            table = self._read_fast(block, specs, convert_options)
            if table is None:
                yield from self._read_by_rows(block, specs, on_bad_row)
            elif len(table):
                yield table

    def _blocks(self) -> Iterator[Block]:
        def delimiter(start: bytes) -> str:
            self._delimiter = self._delimiter or _guess_delimiter(start)
            return self._delimiter

        # `read1` returns the bytes that a pipe holds now; `read` would wait for a full block.
        read = getattr(self._file, "read1", self._file.read)
        try:
            yield from read_blocks(read, delimiter)
        except TableError as error:
            raise TableError(f"{self.name}, {error}") from error
        except (EOFError, zlib.error) as error:
            raise TableError(f"{self.name} cannot be decompressed: {error}") from error

    def _first_rows(self, block: Block) -> list[list[str]]:
        return [row for _, row in islice(self._records(block), _MAX_INSPECTED_ROWS)]

    def _split_header(self, block: Block) -> tuple[list[str], Block]:
        """Names of the columns, and the block after the header."""
        if block.data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in block.data[:1000]:
            raise TableError(
                f"{self.name} is not a CSV file in UTF-8 or ASCII. If it is text, save it as UTF-8."
            )
        data = block.data.removeprefix(b"\xef\xbb\xbf")
        text = io.StringIO(data.decode("latin-1"), newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        try:
            header = next(record for record in reader if record)
            names = [name.encode("latin-1").decode().strip() for name in header]
        except (csv.Error, UnicodeDecodeError, StopIteration) as error:
            raise TableError(f"{self.name}: the header cannot be read: {error}.") from error
        check_names(self.name, names)
        return names, Block(data[text.tell() :], block.first_line + reader.line_num)

    def _convert_options(self, specs: Mapping[str, ColumnSpec]) -> arrow_csv.ConvertOptions:
        inferred = {column.name: column.inferred_type for column in self.columns}
        return arrow_csv.ConvertOptions(
            column_types={
                spec.source(name): arrow_parse_type(spec, inferred[spec.source(name)])
                for name, spec in specs.items()
            },
            include_columns=list(dict.fromkeys(spec.source(name) for name, spec in specs.items())),
            null_values=sorted(MISSING_VALUES),
            strings_can_be_null=False,
        )

    def _read_fast(
        self, block: Block, specs: Mapping[str, ColumnSpec], convert_options: Any
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
                convert_options=convert_options,
            )
        except pa.ArrowException:
            return None
        columns = []
        for name, spec in specs.items():
            column = convert_column(table.column(spec.source(name)), spec)
            if column is None:
                return None
            columns.append(column)
        return pa.table(columns, names=list(specs))

    def _read_by_rows(
        self, block: Block, specs: Mapping[str, ColumnSpec], on_bad_row: OnBadRow
    ) -> Iterator[pa.Table]:
        """Yield the good rows of a block and report the bad ones."""
        fields = [(self.names.index(spec.source(name)), name, spec) for name, spec in specs.items()]

        def values_of(row: list[str]) -> list[Any]:
            self._check_length(row)
            return [convert_field(row[index], name, spec) for index, name, spec in fields]

        yield from good_rows(self.name, self._records(block), values_of, specs, on_bad_row)

    def _records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Yield each record with the number of its first line."""
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
                f"{self.name}, line {line:,}: {error}. Is a quote not closed?"
            ) from error

    def _check_length(self, row: list[str]) -> None:
        if len(row) != len(self.names):
            fields = "1 field" if len(row) == 1 else f"{len(row):,} fields"
            raise BadValueError(f"the row has {fields}, but the header has {len(self.names):,}")


def _guess_delimiter(start: bytes) -> str:
    """The first of the usual delimiters that the header contains; a comma if it contains none."""
    header = start.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n")[0]
    return next((each for each in _DELIMITERS if each.encode() in header), ",")
