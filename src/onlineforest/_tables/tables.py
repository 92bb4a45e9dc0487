"""Open CSV and Parquet files as tables, and batch, sample or skip their rows.

Knows nothing of forests. Memory does not grow with the file.
"""

from __future__ import annotations

import difflib
import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from shutil import copyfileobj
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from onlineforest._tables.columns import ColumnInfo, Table, TableError, join_names, quote
from onlineforest._tables.csv_tables import CsvTable
from onlineforest._tables.parquet_tables import ParquetTable

STDIN = "-"


def open_table(
    path: str, format: str | None = None, delimiter: str | None = None, min_inspected_rows: int = 1
) -> Table:
    """Open a CSV file, gzipped or not, or a Parquet file; "-" is standard input.

    Column types of a CSV file are inferred from its first rows. For a pipe, this waits until
    `min_inspected_rows` rows have arrived. `format` is "csv" or "parquet"; None detects it from
    the first bytes.
    """
    name = "standard input" if path == STDIN else path
    file = _standard_input() if path == STDIN else open(path, "rb")  # noqa: SIM115
    try:
        size = os.fstat(file.fileno()).st_size if path != STDIN else None
        start = file.peek(4)[:4]
        if format == "parquet" or (format is None and start == b"PAR1"):
            return ParquetTable(_seekable(file), name)
        is_gzipped = start[:2] == b"\x1f\x8b"
        csv_file = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzipped else file
        return CsvTable(
            csv_file,
            name,
            delimiter,
            lambda: _fraction_read(file, size),
            file.close,
            min_inspected_rows,
        )
    except BaseException:
        file.close()
        raise


def find_column(table: Table, name: str) -> ColumnInfo:
    """The column of this name; raises an error that lists the columns if there is none."""
    for column in table.columns:
        if column.name == name:
            return column
    names = [column.name for column in table.columns]
    hint = ""
    if sum(_is_number(each) for each in names) * 2 >= len(names):
        hint = " The first line must hold the names of the columns. Does it?"
    elif len(names) == 1:
        hint = " Is the delimiter another one?"
    elif close := difflib.get_close_matches(name, names, n=1):
        hint = f" Did you mean {quote(close[0])}?"
    raise TableError(
        f"{table.name} has no column {name!r}. Its columns are {join_names(names)}.{hint}"
    )


def rebatch(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Regroup the rows into batches of `size` rows; the last one may be smaller."""
    held: list[pa.Table] = []
    n_held = 0
    for table in tables:
        held.append(table)
        n_held += len(table)
        if n_held < size:
            continue
        joined = pa.concat_tables(held)
        n_whole = n_held - n_held % size
        for start in range(0, n_whole, size):
            yield joined.slice(start, size)
        held, n_held = [joined.slice(n_whole)], n_held - n_whole
    if n_held:
        yield pa.concat_tables(held)


def sample_rows(tables: Iterator[pa.Table], n: int) -> pa.Table | None:
    """A uniform sample of n rows in their order, with a fixed seed; all rows if there are fewer."""
    rng = np.random.default_rng(0)
    held: pa.Table | None = None
    keys = np.empty(0)  # a random key per held row: the n rows with the smallest keys are kept
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        keys = np.concatenate([keys, rng.random(len(table))])
        if len(keys) > n:
            kept = np.sort(np.argpartition(keys, n - 1)[:n])
            held, keys = held.take(kept), keys[kept]
    return held


def skip_rows(tables: Iterator[pa.Table], n: int) -> Iterator[pa.Table]:
    """All rows but the first n; raises if there are fewer than n."""
    n_left = n
    for table in tables:
        n_skipped = min(n_left, len(table))
        n_left -= n_skipped
        if n_skipped < len(table):
            yield table.slice(n_skipped)
    if n_left:
        raise TableError(f"cannot skip {n:,} rows: the table has only {n - n_left:,}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fraction_read(file: Any, size: int | None) -> float | None:
    if not size:  # a pipe
        return None
    return float(min(1.0, file.tell() / size))


def _standard_input() -> BufferedReader:
    file = sys.stdin.buffer
    return file if isinstance(file, BufferedReader) else BufferedReader(cast(RawIOBase, file))


def _seekable(file: BinaryIO) -> BinaryIO:
    """Copy a pipe to a temporary file: Parquet is read from its end."""
    if file.seekable():
        return file
    copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
    copyfileobj(file, copy)
    copy.seek(0)
    return copy
