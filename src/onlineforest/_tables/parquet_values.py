"""Infer and convert the columns of Parquet files. Text is converted as the fields of CSV files are.

Knows nothing of files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from onlineforest._tables.columns import (
    MAX_DIGITS,
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    TableError,
    not_whole,
    one_line,
    out_of_range,
)
from onlineforest._tables.csv_values import BadValueError, convert_field

_LARGEST_CODE = 10**MAX_DIGITS - 1


def infer_column(name: str, arrow_type: pa.DataType, values: pa.ChunkedArray) -> ColumnInfo:
    """Infer the type of a column from its Arrow type and its first values."""
    inferred = _inferred_type(arrow_type)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    values = values.drop_null().combine_chunks()
    if inferred is InferredType.TEXT:
        distinct = tuple(dict.fromkeys(values.to_pylist()))
        share = len(distinct) / max(len(values), 20)
        return ColumnInfo(name, inferred, distinct[:3], share, len(values))
    if inferred is InferredType.BOOLEANS:
        return ColumnInfo(name, inferred, n_values=len(values), are_whole=True)
    if inferred not in (InferredType.NUMBERS, InferredType.INTEGERS):
        return ColumnInfo(name, inferred)
    numbers = values.cast(pa.float64(), safe=False).to_numpy()
    numbers = numbers[~np.isnan(numbers)]
    are_whole = len(numbers) > 0 and not _are_no_codes(values).any()
    is_float = inferred is InferredType.NUMBERS and pa.types.is_floating(values.type)
    if is_float and len(numbers) and np.all(np.isfinite(numbers) & (numbers == np.round(numbers))):
        inferred = InferredType.INTEGERS  # pandas writes integers as floats if some are missing
    share = len(np.unique(numbers)) / max(len(numbers), 20)
    return ColumnInfo(name, inferred, (), share, len(numbers), are_whole)


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
    if _is_text(arrow_type):
        return InferredType.TEXT
    if types.is_null(arrow_type):
        return InferredType.EMPTY
    return InferredType.DATES if types.is_temporal(arrow_type) else InferredType.OTHER


def _is_text(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    )


def _are_no_codes(numbers: Any) -> NDArray[np.bool_]:
    """Which numbers of a column are not whole, or have more than `MAX_DIGITS` digits."""
    if pa.types.is_integer(numbers.type):
        is_large = pa.types.is_uint64(numbers.type)
        wide = numbers if is_large else pc.cast(numbers, pa.int64())
        above = pc.greater(wide, pa.scalar(_LARGEST_CODE, wide.type))
        bad = above if is_large else pc.or_(above, pc.less(wide, -_LARGEST_CODE))
        return np.asarray(pc.fill_null(bad, False).to_numpy(zero_copy_only=False))
    floats = pc.cast(numbers, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    are_codes = (np.abs(floats) < 10.0**MAX_DIGITS) & (floats == np.round(floats))
    return np.asarray(~are_codes & ~np.isnan(floats))


@dataclass
class Converted:
    """The values of a column, and the reason for each row that is bad."""

    values: pa.ChunkedArray
    reasons: dict[int, str] = field(default_factory=dict)


def convert(column: Any, name: str, spec: ColumnSpec) -> Converted:
    """Values of a column as `spec` says."""
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        convert_values = _CONVERTERS[spec.type] if spec.time is None else _times
        converted = convert_values(column, name, spec)
    except pa.ArrowException as error:
        raise TableError(
            f"column {spec.source(name)!r} cannot be read as {spec.type.value}: {one_line(error)}"
        ) from error
    if spec.is_required:
        missing = pc.is_null(converted.values, nan_is_null=True).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(missing).tolist():
            reason = f"the value of column {spec.source(name)!r} is missing{spec.hint}"
            converted.reasons.setdefault(row, reason)
    return converted


def _numbers(column: Any, name: str, spec: ColumnSpec) -> Converted:
    if _is_text(column.type):
        return _from_text(column, name, spec)
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    values = pc.cast(column, pa.float64(), safe=False)
    sizes = np.abs(values.to_numpy(zero_copy_only=False))
    rows = np.flatnonzero(sizes > spec.max_abs).tolist()
    return Converted(
        values, {row: out_of_range(name, str(values[row].as_py()), spec.max_abs) for row in rows}
    )


def _times(column: Any, name: str, spec: ColumnSpec) -> Converted:
    return _from_text(pc.cast(column, pa.string()), name, spec)


def _integers(column: Any, name: str, spec: ColumnSpec) -> Converted:
    if _is_text(column.type):
        return _from_text(column, name, spec)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    return Converted(pc.cast(column, pa.int64()))


def _text(column: Any, _: str, spec: ColumnSpec) -> Converted:
    values = pc.cast(column, pa.string())
    return Converted(_without_empty(values) if spec.is_required else values)


def _levels(column: Any, name: str, spec: ColumnSpec) -> Converted:
    reasons = {}
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        whole = _codes(column, name, spec)
        column, reasons = whole.values, whole.reasons
    is_time = pa.types.is_temporal(column.type)
    values = pc.cast(column, pa.string())
    if is_time:  # the text must be equal in all time resolutions
        values = pc.replace_substring_regex(values, r"\.0+(Z?)$", r"\1")
    return Converted(_without_empty(values), reasons)


def _codes(column: Any, name: str, spec: ColumnSpec) -> Converted:
    if _is_text(column.type):
        return _from_text(column, name, spec)
    if pa.types.is_boolean(column.type):
        return Converted(pc.cast(column, pa.int64()))
    are_bad = _are_no_codes(column)
    shown = {row: str(column[row].as_py()) for row in np.flatnonzero(are_bad).tolist()}
    # NaN compares unequal to itself.
    mask = pc.or_(pa.array(are_bad), pc.fill_null(pc.not_equal(column, column), True))
    whole = pc.if_else(mask, pa.scalar(None, column.type), column)
    values = pc.cast(whole, pa.int64())
    return Converted(values, {row: not_whole(name, text, spec.hint) for row, text in shown.items()})


def _from_text(column: Any, name: str, spec: ColumnSpec) -> Converted:
    """Convert text to numbers, integers or codes."""
    values, reasons = [], {}
    for row, text in enumerate(column.to_pylist()):
        value = None
        try:
            value = convert_field(text or "", name, spec)
        except BadValueError as bad:
            reasons[row] = str(bad)
        values.append(value)
    is_number = spec.type is ColumnType.NUMBER
    return Converted(pa.array(values, pa.float64() if is_number else pa.int64()), reasons)


def _without_empty(values: Any) -> Any:
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


_CONVERTERS = {
    ColumnType.NUMBER: _numbers,
    ColumnType.INTEGER: _integers,
    ColumnType.TEXT: _text,
    ColumnType.CODE: _codes,
    ColumnType.LEVEL: _levels,
}
