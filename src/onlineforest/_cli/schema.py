"""Decide which columns of a table are target, features and ids, and how to read them.

Knows nothing of terminals or options.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from onlineforest._cli.features import Said, check_named, check_types, feature_specs
from onlineforest._cli.forests import Forest, is_fitted
from onlineforest._core import LARGEST_VALUE
from onlineforest._forests.classification import BaseClassifier
from onlineforest._inputs.class_codes import exact_labels
from onlineforest._tables.columns import (
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    Table,
    TableError,
)
from onlineforest._tables.tables import find_column


class TrainingError(ValueError):
    """The forest rejects rows, or does not match the table."""


@dataclass(frozen=True)
class Schema:
    """Names of the target, the features and the ids."""

    target: str
    features: tuple[str, ...]
    id: str | None = None


def schema_of(
    table: Table, target: str, drop: tuple[str, ...] = (), id: str | None = None
) -> Schema:
    """The schema of a table; raises if a column does not exist or has two roles."""
    find_column(table, target)
    others = [*drop, *([] if id is None else [id])]
    for name in others:
        find_column(table, name)
    if target in others or id in drop:
        both = target if target in others else id
        raise TableError(
            f"column {both!r} has two roles: only one of --target, --id and --drop may name it."
        )
    taken = {target, *others}
    features = [column for column in table.columns if column.name not in taken]
    if not features:
        raise TableError(f"{table.name} has no columns to learn from besides {target!r}.")
    check_named(table, features)
    return Schema(target, tuple(column.name for column in features), id)


def column_specs(
    table: Table, schema: Schema, forest: Forest, said: Said | None = None
) -> dict[str, ColumnSpec]:
    """How to read the columns of a schema.

    Labels and ids are integers if their first values are. A fitted forest fixes their type.
    """
    specs = feature_specs(table, schema.features, forest, said)
    target = find_column(table, schema.target)
    if isinstance(forest, BaseClassifier):
        specs[schema.target] = ColumnSpec(_label_type(target, forest), is_required=True)
    else:
        check_types(
            table,
            [target],
            {InferredType.TEXT},
            "but --task regress learns numbers: --task classify learns classes",
        )
        specs[schema.target] = ColumnSpec(
            ColumnType.NUMBER, is_required=True, max_abs=LARGEST_VALUE
        )
    if schema.id is not None:
        id_type = _id_type(find_column(table, schema.id), forest)
        specs[schema.id] = ColumnSpec(id_type, is_required=True)
    return specs


def _integer_or_text(is_integer: bool) -> ColumnType:
    return ColumnType.INTEGER if is_integer else ColumnType.TEXT


def _id_type(column: ColumnInfo, forest: Forest) -> ColumnType:
    ids = forest.ids_ if is_fitted(forest) else frozenset()
    if not ids:
        return _integer_or_text(column.inferred_type is InferredType.INTEGERS)
    # 3 and "3" are different ids: with another type, a sample that is already stored would be
    # learned twice.
    return _integer_or_text(all(isinstance(id, int) for id in ids))


def _label_type(column: ColumnInfo, forest: BaseClassifier[Any]) -> ColumnType:
    if column.inferred_type is InferredType.NUMBERS and column.distinct_share > 0.5:
        raise TableError(
            f"column {column.name!r} holds numbers, more than half of them distinct, so they are "
            "not classes: --task regress learns numbers."
        )
    if not is_fitted(forest):
        return _integer_or_text(column.inferred_type is InferredType.INTEGERS)
    if forest.classes_.dtype.kind == "b":
        raise TrainingError(
            "the classes of the model are bools, which cannot be learned from a table."
        )
    return _integer_or_text(forest.classes_.dtype.kind in "iu")


def fingerprint(table: Table, schema: Schema) -> str:
    """Hash of header, first row and schema: equal for a table and a longer version of it."""
    names = repr((schema.target, schema.features, schema.id)).encode()
    return hashlib.sha256(table.first_bytes() + names).hexdigest()[:16]


def targets(batch: pa.Table, schema: Schema) -> NDArray[Any]:
    """The targets of a batch: an array of labels or numbers."""
    column = batch.column(schema.target)
    values: NDArray[Any] = column.to_numpy()
    return np.asarray(exact_labels(values.tolist())) if values.dtype == object else values
