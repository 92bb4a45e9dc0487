"""Read files of JSON lines: an object per line. Knows nothing of other formats.

Values are converted as the fields of CSV files are, so that equal tables make equal forests.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

import pyarrow as pa

from onlineforest._tables.columns import (
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    OnBadRow,
    TableError,
)
from onlineforest._tables.csv_blocks import BLOCK_BYTES, MAX_RECORD_BYTES
from onlineforest._tables.csv_values import (
    BadValueError,
    convert_field,
    good_rows,
    infer_column,
)

_MAX_INSPECTED_ROWS = 1000  # rows of a block from which columns and their types are inferred
_KINDS = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    type(None): "null",
}
_Lines = list[tuple[int, bytes]]  # lines that are not blank, with their numbers from 1


class JsonTable:
    """A file of JSON lines: see `onlineforest._tables.columns.Table`.

    Its columns are the keys in the first rows. A key that a row lacks is a missing value.
    """

    has_fixed_columns = False

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        fraction_read: Callable[[], float | None],
        close: Callable[[], None],
        min_inspected_rows: int = 1,
    ) -> None:
        """Read at least `min_inspected_rows` rows, if there are as many, to infer column types."""
        self.name, self._file = name, file
        self.fraction_read, self.close = fraction_read, close
        blocks, held = self._blocks(), []
        rows: list[dict[str, Any]] = []
        n_lines, first_reason = 0, ""
        while n_lines < min_inspected_rows and (block := next(blocks, None)) is not None:
            held.append(block)
            n_lines += len(block)
            for line, data in block[:_MAX_INSPECTED_ROWS]:
                try:
                    rows.append(_object_of(data))
                except BadValueError as bad:
                    first_reason = first_reason or f", line {line:,}: {bad}"
        if not any(rows):
            reason = first_reason or " is empty: each line must hold a JSON object"
            raise TableError(f"{name}{reason}.")
        self._blocks_left, self._first_row = chain(held, blocks), held[0][0][1].strip()
        names = dict.fromkeys(key for row in rows for key in row)
        self.columns = [_infer(key, [row.get(key) for row in rows]) for key in names]

    def first_bytes(self) -> bytes:
        """The first row, which has the names of its columns."""
        return self._first_row

    def read(self, specs: Mapping[str, ColumnSpec], on_bad_row: OnBadRow) -> Iterator[pa.Table]:
        """Yield the good rows of each block."""

        def values_of(line: bytes) -> list[Any]:
            row = _object_of(line)
            return [
                _converted(row.get(spec.source(name)), name, spec) for name, spec in specs.items()
            ]

        for block in self._blocks_left:
            yield from good_rows(self.name, block, values_of, specs, on_bad_row)

    def _blocks(self) -> Iterator[_Lines]:
        """Yield the lines that have arrived: the reader of a pipe does not wait for more."""
        read = getattr(self._file, "read1", self._file.read)
        rest, n_before = b"", 0
        try:
            while chunk := read(BLOCK_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > MAX_RECORD_BYTES:
                    raise TableError(
                        f"{self.name}, line {n_before + len(whole) + 1:,}: the line is longer than "
                        f"{MAX_RECORD_BYTES >> 20} MB. Is this a file of JSON lines?"
                    )
                block = [(n_before + i, data) for i, data in enumerate(whole, 1) if data.strip()]
                n_before += len(whole)
                if block:
                    yield block
        except (EOFError, zlib.error) as error:
            raise TableError(f"{self.name} cannot be decompressed: {error}") from error
        if rest.strip():
            yield [(n_before + 1, rest)]


def _object_of(line: bytes) -> dict[str, Any]:
    """The object in a line; raises `BadValueError` if there is no valid one."""
    try:
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode())
        if b"\\u" in line:  # may be half of a pair of surrogates
            json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadValueError(
            f"the line is not valid JSON: {error.msg} at character {error.pos + 1:,}"
        ) from None
    except UnicodeError:
        raise BadValueError("the line is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # an integer is too long, or arrays too deep
        raise BadValueError(f"the line cannot be read: {error}") from None
    if not isinstance(row, dict):
        found = _KINDS.get(type(row), "a number")
        raise BadValueError(f"the line holds {found}, not a JSON object")
    return row


def _infer(name: str, values: list[Any]) -> ColumnInfo:
    """Infer the type of a column. Text in quotes is text, though it may look like numbers."""
    present = [value for value in values if value not in (None, "")]
    if any(isinstance(value, dict | list) for value in present):
        return ColumnInfo(name, InferredType.OTHER)
    column = infer_column(name, [_text_of(value, name) for value in values])
    are_text = bool(present) and all(isinstance(value, str) for value in present)
    if not are_text or column.inferred_type is InferredType.DATES:
        return column
    return replace(column, inferred_type=InferredType.TEXT, are_whole=False, texts=())


def _text_of(value: Any, name: str) -> str:
    """The field of a CSV file for a value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise BadValueError(
            f"column {name!r} holds {_KINDS[type(value)]}, which is neither a number nor text"
        )
    return json.dumps(value)


def _converted(value: Any, name: str, spec: ColumnSpec) -> float | int | str | None:
    """The value as `spec` says; most values need no conversion."""
    kind = type(value)
    if spec.type is ColumnType.NUMBER and spec.time is None:
        if kind in (float, int) and abs(value) <= spec.max_abs:
            return float(value)
    elif spec.type is ColumnType.LEVEL and kind is str and value:
        return str(value)
    return convert_field(_text_of(value, spec.source(name)), name, spec)
