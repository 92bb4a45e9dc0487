"""Rows out of Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from onlineforest._tables.columns import (
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

_ROWS_AT_ONCE = 1 << 14
_LOOKED_AT = 1000  # rows, to see what a column is


class ParquetTable:
    """A Parquet file: see `onlineforest._tables.columns.Table`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name, self._handle = name, file
        try:
            self._file = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
            schema = self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{name} is no sound Parquet file: {_one_line(error)}") from error
        twice = sorted({each for each in schema.names if schema.names.count(each) > 1})
        if twice:
            raise TableError(f"{name} has more than one column {listed(twice)}.")
        self._first = self._first_rows()
        self.columns = [
            _at_first_sight(field.name, field.type, self._first.column(i))
            for i, field in enumerate(schema)
        ]
        self._n_rows, self._n_read = self._file.metadata.num_rows, 0

    def fraction_read(self) -> float | None:
        """How much of its rows has been read."""
        return self._n_read / self._n_rows if self._n_rows else None

    def first_bytes(self) -> bytes:
        """Its names and first row."""
        return repr((self._first.schema.names, self._first.slice(0, 1).to_pylist())).encode()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._handle.close()

    def read(self, wanted: Mapping[str, Wanted], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """The rows, some thousand at a time."""
        try:
            for batch in self._file.iter_batches(_ROWS_AT_ONCE, columns=list(wanted)):
                columns = {
                    name: _converted(batch.column(name), name, each)
                    for name, each in wanted.items()
                }
                table = pa.table(columns)
                n_before, self._n_read = self._n_read, self._n_read + len(table)
                yield from self._good_rows(table, wanted, n_before, on_bad_row)
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{self.name} cannot be read after row {self._n_read:,}: {_one_line(error)}"
            ) from error

    def _first_rows(self) -> pa.Table:
        try:
            batches = list(islice(self._file.iter_batches(_LOOKED_AT), 1))
            return pa.Table.from_batches(batches, self._file.schema_arrow)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read: {_one_line(error)}") from error

    def _good_rows(
        self, table: pa.Table, wanted: Mapping[str, Wanted], n_before: int, on_bad_row: OnBadRow
    ) -> Iterator[pa.Table]:
        """The good rows; the bad ones are told. If that ends it, those before come."""
        are_bad = {name: _are_bad(table.column(name), each) for name, each in wanted.items()}
        are_good = ~np.logical_or.reduce(list(are_bad.values()))
        for row in np.flatnonzero(~are_good):
            name = next(name for name, bad in are_bad.items() if bad[row])
            reason = _reason(name, table.column(name)[int(row)].as_py())
            try:
                on_bad_row(BadRow(f"{self.name}, row {n_before + row + 1:,}", reason))
            except Exception:
                yield table.slice(0, row).filter(pa.array(are_good[:row]))
                raise
        yield table if are_good.all() else table.filter(pa.array(are_good))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _at_first_sight(name: str, kind: pa.DataType, values: pa.ChunkedArray) -> Column:
    looks = _looks(kind)
    if looks is not Looks.NUMBERS or not pa.types.is_floating(kind):
        return Column(name, looks)
    numbers = values.drop_null().to_numpy()
    numbers = numbers[~np.isnan(numbers)]
    if len(numbers) and np.all(np.isfinite(numbers) & (numbers == np.round(numbers))):
        looks = Looks.WHOLE_NUMBERS  # as pandas writes them where some are missing
    return Column(name, looks, (), len(np.unique(numbers)) / max(len(numbers), 20))


def _looks(kind: pa.DataType) -> Looks:
    types = pa.types
    if types.is_dictionary(kind):
        return _looks(kind.value_type)
    if types.is_boolean(kind):
        return Looks.BOOLS
    if types.is_integer(kind):
        return Looks.WHOLE_NUMBERS
    if types.is_floating(kind) or types.is_decimal(kind):
        return Looks.NUMBERS
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Looks.TEXT
    if types.is_null(kind):
        return Looks.NOTHING
    return Looks.DATES if types.is_temporal(kind) else Looks.OTHER


def _converted(column: Any, name: str, wanted: Wanted) -> pa.ChunkedArray:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if wanted.kind is Kind.TEXT:
            values = pc.cast(column, pa.string())
        elif wanted.kind is Kind.WHOLE:
            if pa.types.is_floating(column.type):
                column = pc.if_else(pc.is_nan(column), None, column)
            values = pc.cast(column, pa.int64())
        elif pa.types.is_boolean(column.type):
            values = pc.cast(pc.cast(column, pa.uint8()), pa.float64())
        else:
            values = pc.cast(column, pa.float64(), safe=False)
    except pa.ArrowException as error:
        raise TableError(
            f"column {name!r} cannot be read as {wanted.kind.value}: {_one_line(error)}"
        ) from error
    return pa.chunked_array([values])


def _are_bad(column: pa.ChunkedArray, wanted: Wanted) -> NDArray[np.bool_]:
    bad = np.zeros(len(column), dtype=np.bool_)
    if wanted.is_needed:
        bad |= pc.is_null(column, nan_is_null=True).to_numpy()
    if wanted.kind is Kind.NUMBER:
        bad |= np.abs(column.to_numpy()) > wanted.largest
    if wanted.kind is Kind.TEXT and wanted.is_needed:
        bad |= pc.fill_null(pc.equal(column, ""), True).to_numpy()
    return bad


def _reason(name: str, value: Any) -> str:
    if value is None or value == "" or value != value:
        return f"column {name!r} is missing"
    return f"column {name!r} holds {printable(str(value))}, which is infinite or too large"
