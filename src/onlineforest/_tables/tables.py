"""Rows out of a table in a file, CSV or Parquet, as Arrow tables with the columns asked for.

Knows nothing of forests. Memory does not grow with the file. A row that is not as it should be is
told with its place, and is left out.
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

from onlineforest._tables.columns import Column, Table, TableError, listed, printable
from onlineforest._tables.csv_tables import CsvTable
from onlineforest._tables.parquet_tables import ParquetTable

STDIN = "-"


def open_table(
    path: str, kind: str | None = None, delimiter: str | None = None, n_looked_at: int = 1
) -> Table:
    """Open a CSV file, gzipped or not, or a Parquet file; "-" is the standard input.

    What the columns are is seen from the first rows, of which so many are waited for, if they come
    through a pipe.
    `kind` is "csv" or "parquet"; without one, it is seen from the first bytes.
    """
    name = "standard input" if path == STDIN else path
    file = _standard_input() if path == STDIN else open(path, "rb")  # noqa: SIM115
    try:
        size = os.fstat(file.fileno()).st_size if path != STDIN else None
        start = file.peek(4)[:4]
        if kind == "parquet" or (kind is None and start == b"PAR1"):
            return ParquetTable(_seekable(file), name)
        is_packed = start[:2] == b"\x1f\x8b"
        unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_packed else file
        return CsvTable(
            unpacked, name, delimiter, lambda: _fraction(file, size), file.close, n_looked_at
        )
    except BaseException:
        file.close()
        raise


def named(table: Table, name: str) -> Column:
    """The column of this name; an error that names all there are, if there is none."""
    for column in table.columns:
        if column.name == name:
            return column
    names = [column.name for column in table.columns]
    hint = ""
    if sum(_is_number(each) for each in names) * 2 >= len(names):
        hint = " The first line must be a header: is it one?"
    elif len(names) == 1:
        hint = " Is another delimiter meant?"
    elif close := difflib.get_close_matches(name, names, n=1):
        hint = f" Did you mean {printable(close[0])}?"
    raise TableError(f"{table.name} has no column {name!r}. Its columns are {listed(names)}.{hint}")


def in_batches(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows, always `size` of them together but for the last."""
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


def sampled(tables: Iterator[pa.Table], n: int) -> pa.Table | None:
    """A random n of all rows, in their order, always the same; all if there are fewer."""
    rng = np.random.default_rng(0)
    held: pa.Table | None = None
    keys = np.empty(0)  # of those held: the smallest of all, and any n are as likely to have these
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        keys = np.concatenate([keys, rng.random(len(table))])
        if len(keys) > n:
            kept = np.sort(np.argpartition(keys, n - 1)[:n])
            held, keys = held.take(kept), keys[kept]
    return held


def without_first(tables: Iterator[pa.Table], n: int) -> Iterator[pa.Table]:
    """All rows but the first n; an error if there are fewer."""
    n_left = n
    for table in tables:
        n_skipped = min(n_left, len(table))
        n_left -= n_skipped
        if n_skipped < len(table):
            yield table.slice(n_skipped)
    if n_left:
        raise TableError(f"{n:,} rows were to be skipped, but there are only {n - n_left:,}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fraction(file: Any, size: int | None) -> float | None:
    if not size:  # a pipe has none
        return None
    return float(min(1.0, file.tell() / size))


def _standard_input() -> BufferedReader:
    file = sys.stdin.buffer
    return file if isinstance(file, BufferedReader) else BufferedReader(cast(RawIOBase, file))


def _seekable(file: BinaryIO) -> BinaryIO:
    """Parquet is read from its end: what comes through a pipe is laid down first."""
    if file.seekable():
        return file
    copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
    copyfileobj(file, copy)
    copy.seek(0)
    return copy
