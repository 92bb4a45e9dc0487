"""Open CSV, JSON lines and Parquet files as tables, and batch, sample or skip their rows.

Knows nothing of forests. Memory does not grow with the file.
"""

from __future__ import annotations

import difflib
import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from io import BufferedReader, RawIOBase
from shutil import copyfileobj
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from onlineforest._tables.columns import ColumnInfo, Table, TableError, join_names, quote
from onlineforest._tables.csv_tables import CsvTable
from onlineforest._tables.json_tables import JsonTable
from onlineforest._tables.parquet_tables import ParquetTable

STDIN = "-"
FORMATS = ("csv", "jsonl", "parquet")
_BLANKS = b"\xef\xbb\xbf \t\r\n"


def open_table(
    path: str, format: str | None = None, delimiter: str | None = None, min_inspected_rows: int = 1
) -> Table:
    """Open a file of CSV or JSON lines, gzipped or not, or of Parquet; "-" is standard input.

    Column types of CSV and JSON lines are inferred from the first rows. For a pipe, this waits
    until `min_inspected_rows` rows have arrived. `format` is one of `FORMATS`; None detects it from
    the ending of the name and the first bytes.
    """
    name = "standard input" if path == STDIN else path
    file = _standard_input() if path == STDIN else open(path, "rb")  # noqa: SIM115
    try:
        size = os.fstat(file.fileno()).st_size if path != STDIN else None
        start = file.peek(64)[:64]
        if format == "parquet" or (format is None and start[:4] == b"PAR1"):
            return ParquetTable(_seekable(file), name)
        is_gzipped = start[:2] == b"\x1f\x8b"
        text = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzipped else file
        has_objects = is_json_name(name) or start.lstrip(_BLANKS)[:1] == b"{"
        fraction_read = partial(_fraction_read, file, size)
        if format == "jsonl" or (format is None and has_objects):
            return JsonTable(text, name, fraction_read, file.close, min_inspected_rows)
        return CsvTable(text, name, delimiter, fraction_read, file.close, min_inspected_rows)
    except BaseException:
        file.close()
        raise


def is_json_name(name: str) -> bool:
    """Whether a file is one of JSON lines by its name."""
    return name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))


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


def rebatch(tables: Iterator[pa.Table], sizes: Iterator[int]) -> Iterator[pa.Table]:
    """Regroup the rows into batches of these sizes; the last one may be smaller."""
    held: list[pa.Table] = []
    n_held, size = 0, next(sizes)
    for table in tables:
        held.append(table)
        n_held += len(table)
        if n_held < size:
            continue
        joined = pa.concat_tables(held)
        while n_held >= size:
            yield joined.slice(len(joined) - n_held, size)
            n_held, size = n_held - size, next(sizes)
        held = [joined.slice(len(joined) - n_held)]
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
