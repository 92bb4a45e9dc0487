"""Divide a stream of bytes into blocks of whole CSV records that know their first line.

Knows nothing of columns. Blocks bound the memory, and a block with a bad row can be parsed a second
time, row by row.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlineforest._tables.columns import TableError

BLOCK_BYTES = 1 << 17  # small, so that small files show progress, too
MAX_RECORD_BYTES = 1 << 24
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Block:
    """Whole records, and the number of their first line in the file, from 1."""

    data: bytes
    first_line: int


def read_blocks(read: Callable[[int], bytes], delimiter: Callable[[bytes], str]) -> Iterator[Block]:
    """Yield blocks that end at record ends until `read` returns no bytes.

    `delimiter` is called once, with the first bytes, and returns the field separator.
    """
    rest, line, separator = b"", 1, ""
    while chunk := read(BLOCK_BYTES):
        buffer = rest + chunk
        separator = separator or delimiter(buffer)
        end = end_of_last_record(buffer, separator)
        if end == 0 and len(buffer) > MAX_RECORD_BYTES:
            raise TableError(
                f"line {line:,}: the row is longer than {MAX_RECORD_BYTES >> 20} MB. Is a quote "
                "not closed, or is this not a CSV file?"
            )
        data, rest = buffer[:end], buffer[end:]
        if data:
            yield Block(data, line)
            line += count_lines(data)
    if rest:
        _check_quotes(Block(rest, line), separator)
        yield Block(rest, line)


def _check_quotes(last: Block, delimiter: str) -> None:
    """Raise if a quote that is open at the end of the file encloses more than its own line.

    A quote that is open in the last line alone is an ordinary bad row: the line may be truncated.
    """
    # Inside quotes the added line joins the last field; otherwise it is a record of its own.
    data = last.data.rstrip(b"\r\n") + b"\nx"
    text = io.StringIO(data.decode("latin-1"), newline="")
    try:
        records = deque(csv.reader(text, delimiter=delimiter), maxlen=1)
    except csv.Error:  # a field is too long: reported when the block is parsed
        return
    n_enclosed = count_lines(records[0][-1].encode("latin-1")) - 1
    if n_enclosed > 0:
        line = last.first_line + count_lines(data) - 1 - n_enclosed
        raise TableError(
            f"line {line:,}: the quote opened in this line is never closed, so the lines after it "
            "cannot be read."
        )


def count_lines(data: bytes) -> int:
    """Number of line ends: a newline, a carriage return, or both."""
    n = data.count(b"\n")
    return n + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else n


def end_of_last_record(buffer: bytes, delimiter: str) -> int:
    """Position after the last newline outside quotes, 0 if there is none."""
    if b'"' not in buffer:
        return buffer.rfind(b"\n") + 1
    codes = np.frombuffer(buffer, dtype=np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    if not _all_enclose_fields(codes, quotes, delimiter):
        return _end_by_parsing(buffer, delimiter)
    newlines = np.flatnonzero(codes == _NEWLINE)
    are_outside = np.searchsorted(quotes, newlines) % 2 == 0
    outside = newlines[are_outside]
    return int(outside[-1]) + 1 if len(outside) else 0


def _all_enclose_fields(codes: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: str) -> bool:
    """Whether quotes open and close in turn, at the starts and ends of fields.

    Quotes elsewhere are ordinary characters (5" or O"Hara), so counting quotes would fail.
    """
    borders = np.array([_NEWLINE, _RETURN, _QUOTE, ord(delimiter)], dtype=np.uint8)
    padded = np.concatenate([borders[:1], codes, borders[:1]])  # index i + 1 is code i
    before_opening, after_closing = padded[quotes[::2]], padded[quotes[1::2] + 2]
    return bool(np.isin(before_opening, borders).all() and np.isin(after_closing, borders).all())


def _end_by_parsing(buffer: bytes, delimiter: str) -> int:
    """End of the last but one record: more bytes may extend the last one."""
    text = io.StringIO(buffer.decode("latin-1"), newline="")  # one character per byte
    end = last = 0
    try:
        for _ in csv.reader(text, delimiter=delimiter):
            end, last = last, text.tell()
    except csv.Error:  # a field is too long: reported when the block is parsed
        end = last
    return end
