"""Convert CSV fields to numbers, integers and text: one field in Python, or a column with Arrow.

Knows nothing of files. Both conversions must agree: the values of a row must not depend on whether
another row of its block is bad.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onlineforest._tables.columns import (
    FIRST_ROWS,
    MAX_DIGITS,
    MISSING_VALUES,
    BadRow,
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    OnBadRow,
    not_whole,
    out_of_range,
    quote,
)
from onlineforest._tables.dates import EXAMPLES, parts_of

_Row = TypeVar("_Row")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan(?:\(\w*\))?", re.ASCII | re.IGNORECASE)  # spellings that Arrow accepts
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_WHOLE = re.compile(rf"([+-]?\d{{1,{MAX_DIGITS}}})(?:\.0*)?", re.ASCII)  # 7.0 and 007 are 7
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}(?: .*)?|\d\d?:\d\d.*")
_BOOLEANS = {"true": 1.0, "false": 0.0, "True": 1.0, "False": 0.0, "TRUE": 1.0, "FALSE": 0.0}
_BLANKS = " \t"
_ARROW_TYPES = {
    ColumnType.NUMBER: pa.float64(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.CODE: pa.int64(),
    ColumnType.LEVEL: pa.string(),
}


class BadValueError(Exception):
    """Reason why a row is bad."""


def arrow_parse_type(spec: ColumnSpec, inferred: InferredType) -> pa.DataType:
    """Type that Arrow's CSV reader converts a column to, before `convert_column`."""
    if spec.type is ColumnType.NUMBER and spec.time is None:
        return pa.bool_() if inferred is InferredType.BOOLEANS else pa.float64()
    return pa.string()  # integers, too: Arrow would read 0x1F as 31 and 007 as 7


def infer_column(name: str, values: list[str]) -> ColumnInfo:
    """Infer the type of a column from the majority of its first values, one for each row."""
    stripped = [text.strip(_BLANKS) for text in values]
    present = [text for text in stripped if text not in MISSING_VALUES]
    distinct = tuple(dict.fromkeys(present))
    column = ColumnInfo(
        name,
        InferredType.EMPTY,
        distinct[:3],
        len(distinct) / max(len(present), 20),
        len(present),
        bool(present) and all(_parse_whole(text) is not None for text in present),
    )
    if not present:
        return column
    # A majority is not enough for integers: labels and ids keep their type for the whole stream.
    if all(_INTEGER.fullmatch(text) for text in present):
        return replace(column, inferred_type=InferredType.INTEGERS)
    n_numbers = sum(_NUMBER.fullmatch(text) is not None for text in present)
    n_booleans = sum(text in _BOOLEANS for text in present)
    n_dates = sum(_DATE.fullmatch(text) is not None for text in present)
    largest = max(n_numbers, n_booleans, n_dates)
    if 2 * largest <= len(present):
        return replace(column, inferred_type=InferredType.TEXT)
    types = {
        n_dates: InferredType.DATES,
        n_booleans: InferredType.BOOLEANS,
        n_numbers: InferredType.NUMBERS,
    }
    texts = _texts_in(stripped[:FIRST_ROWS]) if largest == n_numbers else ()
    return replace(column, inferred_type=types[largest], texts=texts)


def _texts_in(stripped: list[str]) -> tuple[str, ...]:
    """The first three distinct values that are neither missing nor numbers, true or false."""
    texts = dict.fromkeys(
        text
        for text in stripped
        if text not in MISSING_VALUES and not _NAN.fullmatch(text) and _parse_number(text) is None
    )
    return tuple(texts)[:3]


def make_table(columns: list[list[Any]], specs: Mapping[str, ColumnSpec]) -> pa.Table:
    """Arrow table of columns of converted values."""
    arrays = [
        pa.chunked_array([pa.array(column, _ARROW_TYPES[spec.type])])
        for column, spec in zip(columns, specs.values(), strict=True)
    ]
    return pa.table(arrays, names=list(specs))


def good_rows(
    source: str,
    rows: Iterable[tuple[int, _Row]],
    values_of: Callable[[_Row], list[Any]],
    specs: Mapping[str, ColumnSpec],
    on_bad_row: OnBadRow,
) -> Iterator[pa.Table]:
    """Yield a table of the good rows, which come with their lines, and report the bad ones.

    `values_of` raises `BadValueError` for a bad row. If `on_bad_row` raises, the good rows before
    that row are yielded first.
    """
    columns: list[list[Any]] = [[] for _ in specs]
    for line, row in rows:
        try:
            values = values_of(row)
        except BadValueError as bad:
            try:
                on_bad_row(BadRow(f"{source}, line {line:,}", str(bad)))
            except Exception:
                yield make_table(columns, specs)
                raise
            continue
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    yield make_table(columns, specs)


# Conversion of one field


def convert_field(text: str, name: str, spec: ColumnSpec) -> float | int | str | None:
    """Value of a field, None if it is missing; raises `BadValueError` if it is bad."""
    name = spec.source(name)
    _check_utf8(text, name)
    if spec.type is ColumnType.TEXT and not spec.is_required:
        return text
    if spec.type is ColumnType.LEVEL and text:
        return text
    stripped = text.strip(_BLANKS)
    is_number = spec.type in (ColumnType.NUMBER, ColumnType.CODE)
    if stripped in MISSING_VALUES or (is_number and _NAN.fullmatch(stripped)):
        if spec.is_required:
            shown = f" ({stripped})" if stripped else ""
            raise BadValueError(f"the value of column {name!r} is missing{shown}{spec.hint}")
        return None
    if spec.type is ColumnType.TEXT:
        return text
    if spec.time is not None:
        parts = parts_of(stripped)
        if parts is None:
            raise BadValueError(
                f"column {name!r} holds {quote(text)}, which is not a date or time such as "
                f"{EXAMPLES}"
            )
        return parts[spec.time.part]
    if spec.type is ColumnType.CODE:
        code = _parse_whole(stripped)
        if code is None:
            raise BadValueError(not_whole(name, text, spec.hint))
        return code
    if spec.type is ColumnType.INTEGER:
        if not _INTEGER.fullmatch(stripped):
            raise BadValueError(
                f"column {name!r} holds {quote(text)}, but its first values are integers"
            )
        return int(stripped)
    number = _parse_number(stripped)
    if number is None:
        raise BadValueError(
            f"column {name!r} holds {quote(text)}, which is not a number{spec.hint}"
        )
    if not abs(number) <= spec.max_abs:
        raise BadValueError(out_of_range(name, text, spec.max_abs))
    return number


def _check_utf8(text: str, name: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raw = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
        raise BadValueError(f"column {name!r} is not UTF-8: {quote(raw)}") from error


def _parse_number(text: str) -> float | None:
    if _NUMBER.fullmatch(text) or _INFINITE.fullmatch(text):
        return float(text)
    return _BOOLEANS.get(text)


def _parse_whole(text: str) -> int | None:
    if match := _WHOLE.fullmatch(text):
        return int(match[1])
    return int(_BOOLEANS[text]) if text in _BOOLEANS else None


# Conversion of a column


def convert_column(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    """Values of a column that Arrow has parsed; None if some of them are bad."""
    if spec.time is not None:
        return _convert_distinct(column, spec, pa.float64())
    return _CONVERTERS[spec.type](column, spec)


def _convert_text(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    if spec.is_required and _any(_are_missing(pc.utf8_trim(column, _BLANKS))):
        return None
    return column


def _convert_integers(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    stripped = pc.utf8_trim(column, _BLANKS)
    if not spec.is_required:
        stripped = _null_where(_are_missing(stripped), stripped)
    if _any(pc.invert(pc.match_substring_regex(stripped, f"^(?:{_INTEGER.pattern})$"))):
        return None
    return stripped.cast(pa.int64())


def _convert_levels(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    levels = _null_where(pc.equal(column, ""), column)
    return None if spec.is_required and levels.null_count else levels


def _convert_codes(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    return _convert_distinct(column, spec, pa.int64())


def _convert_distinct(
    column: pa.ChunkedArray, spec: ColumnSpec, type: pa.DataType
) -> pa.ChunkedArray | None:
    """Convert each distinct value as a field: there are often few of them."""
    stripped = pc.utf8_trim(column, _BLANKS)
    distinct = stripped.unique()
    try:
        values = [convert_field(text, "", spec) for text in distinct.to_pylist()]
    except BadValueError:
        return None
    return pc.take(pa.chunked_array([values], type), pc.index_in(stripped, distinct))


def _convert_numbers(column: pa.ChunkedArray, spec: ColumnSpec) -> pa.ChunkedArray | None:
    numbers = column.cast(pa.float64())
    are_nan = pc.is_nan(numbers)
    if _any(are_nan):  # spellings of NaN that are not in MISSING_VALUES
        numbers = _null_where(are_nan, numbers)
    if spec.is_required and numbers.null_count:
        return None
    sizes = np.abs(numbers.to_numpy())
    return numbers if np.all((sizes <= spec.max_abs) | np.isnan(sizes)) else None


_CONVERTERS = {
    ColumnType.TEXT: _convert_text,
    ColumnType.INTEGER: _convert_integers,
    ColumnType.NUMBER: _convert_numbers,
    ColumnType.CODE: _convert_codes,
    ColumnType.LEVEL: _convert_levels,
}


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _are_missing(stripped: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(stripped, pa.array(sorted(MISSING_VALUES)))


def _null_where(mask: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(mask, pa.scalar(None, column.type), column)
