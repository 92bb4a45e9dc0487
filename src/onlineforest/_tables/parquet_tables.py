"""Read Parquet files in batches of rows. Knows nothing of CSV."""

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
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    OnBadRow,
    TableError,
    check_names,
    out_of_range,
)

_BATCH_ROWS = 1 << 14
_INSPECTED_ROWS = 1000  # to infer the types of the columns


class ParquetTable:
    """A Parquet file: see `onlineforest._tables.columns.Table`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name, self._handle = name, file
        try:
            self._file = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
            schema = self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{name} is not a valid Parquet file: {_one_line(error)}") from error
        check_names(name, schema.names)
        self._first = self._first_rows()
        self.columns = [
            _infer_column(field.name, field.type, self._first.column(i))
            for i, field in enumerate(schema)
        ]
        self._n_rows, self._n_read = self._file.metadata.num_rows, 0

    def fraction_read(self) -> float | None:
        """Fraction of the rows read so far."""
        return self._n_read / self._n_rows if self._n_rows else None

    def first_bytes(self) -> bytes:
        """Column names and first row."""
        return repr((self._first.schema.names, self._first.slice(0, 1).to_pylist())).encode()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._handle.close()

    def read(self, specs: Mapping[str, ColumnSpec], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """Yield the good rows of each batch."""
        try:
            for batch in self._file.iter_batches(_BATCH_ROWS, columns=list(specs)):
                columns = {
                    name: _convert(batch.column(name), name, spec) for name, spec in specs.items()
                }
                table = pa.table(columns)
                n_before, self._n_read = self._n_read, self._n_read + len(table)
                yield from self._good_rows(table, specs, n_before, on_bad_row)
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{self.name} cannot be read after row {self._n_read:,}: {_one_line(error)}"
            ) from error

    def _first_rows(self) -> pa.Table:
        try:
            batches = list(islice(self._file.iter_batches(_INSPECTED_ROWS), 1))
            return pa.Table.from_batches(batches, self._file.schema_arrow)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read: {_one_line(error)}") from error

    def _good_rows(
        self, table: pa.Table, specs: Mapping[str, ColumnSpec], n_before: int, on_bad_row: OnBadRow
    ) -> Iterator[pa.Table]:
        """Yield the good rows and report the bad ones.

        If `on_bad_row` raises, the good rows before that row are yielded first.
        """
        are_bad = {name: _are_bad(table.column(name), spec) for name, spec in specs.items()}
        are_good = ~np.logical_or.reduce(list(are_bad.values()))
        for row in np.flatnonzero(~are_good):
            name = next(name for name, bad in are_bad.items() if bad[row])
            reason = _reason(name, table.column(name)[int(row)].as_py(), specs[name])
            try:
                on_bad_row(BadRow(f"{self.name}, row {n_before + row + 1:,}", reason))
            except Exception:
                yield table.slice(0, row).filter(pa.array(are_good[:row]))
                raise
        yield table if are_good.all() else table.filter(pa.array(are_good))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _infer_column(name: str, arrow_type: pa.DataType, values: pa.ChunkedArray) -> ColumnInfo:
    inferred = _inferred_type(arrow_type)
    if inferred is not InferredType.NUMBERS or not pa.types.is_floating(arrow_type):
        return ColumnInfo(name, inferred)
    numbers = values.drop_null().to_numpy()
    numbers = numbers[~np.isnan(numbers)]
    if len(numbers) and np.all(np.isfinite(numbers) & (numbers == np.round(numbers))):
        inferred = InferredType.INTEGERS  # pandas writes integers as floats if some are missing
    return ColumnInfo(name, inferred, (), len(np.unique(numbers)) / max(len(numbers), 20))


def _inferred_type(arrow_type: pa.DataType) -> InferredType:
    types = pa.types
    if types.is_dictionary(arrow_type):
        return _inferred_type(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return InferredType.BOOLEANS
    if types.is_integer(arrow_type):
        return InferredType.INTEGERS
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return InferredType.NUMBERS
    if (
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    ):
        return InferredType.TEXT
    if types.is_null(arrow_type):
        return InferredType.EMPTY
    return InferredType.DATES if types.is_temporal(arrow_type) else InferredType.OTHER


def _convert(column: Any, name: str, spec: ColumnSpec) -> pa.ChunkedArray:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if spec.type is ColumnType.TEXT:
            values = pc.cast(column, pa.string())
        elif spec.type is ColumnType.INTEGER:
            if pa.types.is_floating(column.type):
                column = pc.if_else(pc.is_nan(column), None, column)
            values = pc.cast(column, pa.int64())
        elif pa.types.is_boolean(column.type):
            values = pc.cast(pc.cast(column, pa.uint8()), pa.float64())
        else:
            values = pc.cast(column, pa.float64(), safe=False)
    except pa.ArrowException as error:
        raise TableError(
            f"column {name!r} cannot be read as {spec.type.value}: {_one_line(error)}"
        ) from error
    return pa.chunked_array([values])


def _are_bad(column: pa.ChunkedArray, spec: ColumnSpec) -> NDArray[np.bool_]:
    bad = np.zeros(len(column), dtype=np.bool_)
    if spec.is_required:
        bad |= pc.is_null(column, nan_is_null=True).to_numpy()
    if spec.type is ColumnType.NUMBER:
        bad |= np.abs(column.to_numpy()) > spec.max_abs
    if spec.type is ColumnType.TEXT and spec.is_required:
        bad |= pc.fill_null(pc.equal(column, ""), True).to_numpy()
    return bad


def _reason(name: str, value: Any, spec: ColumnSpec) -> str:
    if value is None or value == "" or value != value:
        return f"the value of column {name!r} is missing"
    return out_of_range(name, str(value), spec.max_abs)
