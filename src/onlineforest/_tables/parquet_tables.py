"""Read Parquet files in batches of rows. Knows nothing of CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from onlineforest._tables.columns import (
    BadRow,
    ColumnSpec,
    OnBadRow,
    TableError,
    check_names,
    one_line,
)
from onlineforest._tables.parquet_values import Converted, convert, infer_column

_BATCH_ROWS = 1 << 14
_INSPECTED_ROWS = 1000  # rows from which column types are inferred


class ParquetTable:
    """A Parquet file: see `onlineforest._tables.columns.Table`."""

    has_fixed_columns = True

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name, self._handle = name, file
        try:
            self._file = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
            schema = self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{name} is not a valid Parquet file: {one_line(error)}") from error
        check_names(name, schema.names)
        self._first = self._first_rows()
        self.columns = [
            infer_column(field.name, field.type, self._first.column(i))
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
        sources = list(dict.fromkeys(spec.source(name) for name, spec in specs.items()))
        try:
            for batch in self._file.iter_batches(_BATCH_ROWS, columns=sources):
                columns = self._converted(batch, specs)
                n_before, self._n_read = self._n_read, self._n_read + len(batch)
                yield from self._good_rows(columns, n_before, on_bad_row)
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{self.name} cannot be read after row {self._n_read:,}: {one_line(error)}"
            ) from error

    def _first_rows(self) -> pa.Table:
        try:
            batches = list(islice(self._file.iter_batches(_INSPECTED_ROWS), 1))
            return pa.Table.from_batches(batches, self._file.schema_arrow)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read: {one_line(error)}") from error

    def _converted(
        self, batch: pa.RecordBatch, specs: Mapping[str, ColumnSpec]
    ) -> dict[str, Converted]:
        try:
            return {
                name: convert(batch.column(spec.source(name)), name, spec)
                for name, spec in specs.items()
            }
        except TableError as error:
            raise TableError(f"{self.name}, after row {self._n_read:,}: {error}") from error

    def _good_rows(
        self, columns: Mapping[str, Converted], n_before: int, on_bad_row: OnBadRow
    ) -> Iterator[pa.Table]:
        """Yield the good rows and report the bad ones.

        If `on_bad_row` raises, the good rows before that row are yielded first.
        """
        table = pa.table({name: column.values for name, column in columns.items()})
        are_good = np.ones(len(table), dtype=np.bool_)
        for column in columns.values():
            are_good[list(column.reasons)] = False
        for row in np.flatnonzero(~are_good).tolist():
            reason = next(each.reasons[row] for each in columns.values() if row in each.reasons)
            try:
                on_bad_row(BadRow(f"{self.name}, row {n_before + row + 1:,}", reason))
            except Exception:
                yield table.slice(0, row).filter(pa.array(are_good[:row]))
                raise
        yield table if are_good.all() else table.filter(pa.array(are_good))
