"""A stream of bytes as blocks of whole CSV records, and the line each block begins at.

Knows nothing of columns. Blocks are what keeps memory fixed, and what can be read again, slowly,
when something in one of them is wrong.
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

BLOCK_BYTES = 1 << 17  # so that progress can be seen in small files, too
LARGEST_RECORD = 1 << 24  # bytes; more without an end is no table
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Block:
    """Whole records, and the number of the first line of them in the file, from 1."""

    data: bytes
    first_line: int


def blocks_of(read: Callable[[int], bytes], delimiter: Callable[[bytes], str]) -> Iterator[Block]:
    """Cut what `read` gives, until it gives nothing, after the ends of records.

    `delimiter` is asked what separates fields, once, when the first bytes are there.
    """
    rest, line, separator = b"", 1, ""
    while chunk := read(BLOCK_BYTES):
        buffer = rest + chunk
        separator = separator or delimiter(buffer)
        end = end_of_last_record(buffer, separator)
        if end == 0 and len(buffer) > LARGEST_RECORD:
            raise TableError(
                f"line {line:,}: no row ends within {LARGEST_RECORD >> 20} MB. Is a quote left "
                "open, or is it no CSV file?"
            )
        data, rest = buffer[:end], buffer[end:]
        if data:
            yield Block(data, line)
            line += n_lines(data)
    if rest:
        _check_quotes(Block(rest, line), separator)
        yield Block(rest, line)


def _check_quotes(last: Block, delimiter: str) -> None:
    """Raise if a quote that is open at the end has made many lines one field of one row.

    If it is in the last line, that was cut off, perhaps, and is judged as others are.
    """
    # In quotes, what is added is a part of the last field; otherwise it is a record.
    data = last.data.rstrip(b"\r\n") + b"\nx"
    text = io.StringIO(data.decode("latin-1"), newline="")
    try:
        records = deque(csv.reader(text, delimiter=delimiter), maxlen=1)
    except csv.Error:  # a field too long: found, and said, when the block is read
        return
    n_swallowed = n_lines(records[0][-1].encode("latin-1")) - 1
    if n_swallowed > 0:
        line = last.first_line + n_lines(data) - 1 - n_swallowed
        raise TableError(
            f"line {line:,}: a quote that is opened in this line is never closed, so that "
            "none of the lines after it can be read."
        )


def n_lines(data: bytes) -> int:
    """How many lines end, by a newline, a carriage return or both."""
    n = data.count(b"\n")
    return n + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else n


def end_of_last_record(buffer: bytes, delimiter: str) -> int:
    """Where the last whole record ends, 0 if none does: after a newline that is not in quotes."""
    if b'"' not in buffer:
        return buffer.rfind(b"\n") + 1
    codes = np.frombuffer(buffer, dtype=np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    if not _all_enclose_fields(codes, quotes, delimiter):
        return _end_by_reading(buffer, delimiter)
    newlines = np.flatnonzero(codes == _NEWLINE)
    are_outside = np.searchsorted(quotes, newlines) % 2 == 0
    outside = newlines[are_outside]
    return int(outside[-1]) + 1 if len(outside) else 0


def _all_enclose_fields(codes: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: str) -> bool:
    """Whether quotes open and close in turn, where fields begin and end.

    Elsewhere they are letters like others (as in 5" or O"Hara), and counting them misleads.
    """
    borders = np.array([_NEWLINE, _RETURN, _QUOTE, ord(delimiter)], dtype=np.uint8)
    padded = np.concatenate([borders[:1], codes, borders[:1]])  # index i + 1 is code i
    before_opening, after_closing = padded[quotes[::2]], padded[quotes[1::2] + 2]
    return bool(np.isin(before_opening, borders).all() and np.isin(after_closing, borders).all())


def _end_by_reading(buffer: bytes, delimiter: str) -> int:
    """The same, record by record; the last one may go on, so it is left for later."""
    text = io.StringIO(buffer.decode("latin-1"), newline="")  # a letter for each byte
    end = last = 0
    try:
        for _ in csv.reader(text, delimiter=delimiter):
            end, last = last, text.tell()
    except csv.Error:  # a field too long: found, and said, when the block is read
        end = last
    return end
