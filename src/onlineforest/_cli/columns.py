"""Decide which columns of a table are target, features and ids, and how to read them.

A new forest takes this from the first rows and from the options; a fitted forest knows it. Knows
nothing of terminals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from onlineforest._cli.commands import OptionError
from onlineforest._cli.forests import Forest, TrainingError, is_fitted, learns_categories
from onlineforest._core import LARGEST_VALUE
from onlineforest._forests.classification import BaseClassifier
from onlineforest._inputs.class_codes import exact_labels
from onlineforest._tables.columns import (
    CATEGORICAL,
    FIRST_ROWS,
    PARTS_OF_TIMES,
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    Table,
    TableError,
    TimePart,
    join_names,
    quote,
)
from onlineforest._tables.tables import find_column

_MIN_VALUES = 100  # fewer values do not tell whether a column holds names of samples
_MAX_DISTINCT = 0.9  # largest share of distinct values without a warning
_NUMBER = ColumnSpec(ColumnType.NUMBER)
_REQUIRED_NUMBER = ColumnSpec(
    ColumnType.NUMBER,
    is_required=True,
    hint="; a Mondrian forest takes complete rows of numbers, an order-free forest (--forest "
    "order-free of `train`) takes text and missing values, too",
)


# The roles of columns


@dataclass(frozen=True)
class Schema:
    """Names of the target, the features and the ids."""

    target: str
    features: tuple[str, ...]
    id: str | None = None


def schema_of(
    table: Table,
    target: str,
    drop: Iterable[str] = (),
    id: str | None = None,
    dates: Iterable[str] = (),
) -> Schema:
    """The schema of a table; raises if a column does not exist or has two roles.

    Adds to the table the numbers that are made from the columns `dates`.
    """
    roles = [target, *set(drop), *([] if id is None else [id]), *dict.fromkeys(dates)]
    for name in roles:
        find_column(table, name)
        if roles.count(name) > 1:
            raise TableError(
                f"column {name!r} has two roles: only one of --target, --id, --drop and --date may "
                "name it."
            )
    for name in dict.fromkeys(dates):
        _add_parts(table, name)
    features = [column for column in table.columns if column.name not in roles]
    if not features:
        raise TableError(f"{table.name} has no columns to learn from besides {target!r}.")
    _check_named(table, features)
    return Schema(target, tuple(column.name for column in features), id)


def features_in(table: Table, forest: Forest, ignored: tuple[str, ...] = ()) -> list[str]:
    """Names of the feature columns: those the forest knows, or all that are not ignored."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        found = [column.name for column in table.columns if column.name not in ignored]
        if len(found) != forest.n_features_in_:
            raise TableError(
                f"{table.name} has {len(found)} columns {join_names(found)}, but the model, which "
                f"has no feature names, has {forest.n_features_in_} features. "
                "Columns named with --keep do not count."
            )
    else:
        found = [str(name) for name in names]
        missing = _add_missing(table, found)
        if missing:
            raise TableError(
                f"{table.name} lacks {len(missing)} of the {len(found)} columns the model was "
                f"learned from: {join_names(missing)}."
            )
    _check_named(table, [find_column(table, name) for name in found])
    return found


def dates_in(names: Iterable[str]) -> list[str]:
    """The columns of dates or times whose parts are among the names of features."""
    given = set(names)
    suffix = f" ({PARTS_OF_TIMES[0]})"
    columns = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    return [each for each in columns if given.issuperset(part.name for part in _parts(each))]


def _parts(column: str) -> list[TimePart]:
    return [TimePart(column, part) for part in PARTS_OF_TIMES]


def _add_parts(table: Table, date: str) -> None:
    """Add columns of the numbers that are made from the dates or times of a column."""
    existing = {column.name for column in table.columns}
    for part in _parts(date):
        if part.name in existing:
            raise TableError(
                f"{table.name} has a column {part.name!r}, which --date {quote(date)} would make."
            )
        table.columns.append(ColumnInfo(part.name, InferredType.NUMBERS, time=part))


def _add_missing(table: Table, names: list[str]) -> list[str]:
    """Add columns that are made from dates, or that rows may lack; names those still missing."""
    existing = {column.name for column in table.columns}
    missing = [name for name in names if name not in existing]
    for date in dates_in(missing):
        if date in existing or not table.has_fixed_columns:
            _add_parts(table, date)
    existing = {column.name for column in table.columns}
    missing = [name for name in names if name not in existing]
    if table.has_fixed_columns or len(missing) == len(names):
        return missing
    table.columns.extend(ColumnInfo(name, InferredType.EMPTY) for name in missing)
    return []


def _check_named(table: Table, columns: Iterable[ColumnInfo]) -> None:
    """Raise if a column has no name."""
    for column in columns:
        if not column.name.strip():
            number = table.columns.index(column) + 1
            raise TableError(
                f"{table.name}: column {number} is without a name, perhaps row numbers. Drop it "
                'with --drop "", or give it a name.'
            )


def fingerprint(table: Table, schema: Schema) -> str:
    """Hash of header, first row and schema: equal for a table and a longer version of it."""
    names = repr((schema.target, schema.features, schema.id)).encode()
    return hashlib.sha256(table.first_bytes() + names).hexdigest()[:16]


def targets(batch: pa.Table, schema: Schema) -> NDArray[Any]:
    """The targets of a batch: an array of labels or numbers."""
    values: NDArray[Any] = batch.column(schema.target).to_numpy()
    return np.asarray(exact_labels(values.tolist())) if values.dtype == object else values


def rows_for(forest: Forest, features: pa.Table) -> Any:
    """The features as a table if the forest has feature names, otherwise as an array."""
    if hasattr(forest, "feature_names_in_"):
        return features
    return np.column_stack(
        [
            column.to_numpy()
            if pa.types.is_float64(column.type)
            else np.array(column.to_pylist(), dtype=object)
            for column in features.columns
        ]
    )


# Types of target and ids


def column_specs(
    table: Table, schema: Schema, forest: Forest, requested: RequestedTypes | None = None
) -> dict[str, ColumnSpec]:
    """How to read the columns of a schema.

    Labels and ids are integers if their first values are. A fitted forest fixes their type.
    """
    specs = feature_specs(table, schema.features, forest, requested)
    target = find_column(table, schema.target)
    if isinstance(forest, BaseClassifier):
        specs[schema.target] = ColumnSpec(_label_type(target, forest), is_required=True)
    else:
        _check_types(
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


def integers_or_text(column: ColumnInfo) -> ColumnType:
    """Integers if the first values of the column are integers, otherwise text."""
    return _integer_or_text(column.inferred_type is InferredType.INTEGERS)


def _integer_or_text(is_integer: bool) -> ColumnType:
    return ColumnType.INTEGER if is_integer else ColumnType.TEXT


def _id_type(column: ColumnInfo, forest: Forest) -> ColumnType:
    ids = forest.ids_ if is_fitted(forest) else frozenset()
    if not ids:
        return integers_or_text(column)
    # 3 and "3" are different ids: with another type, a sample that is already stored would be
    # learned twice.
    return _integer_or_text(all(isinstance(id, int) for id in ids))


def _label_type(column: ColumnInfo, forest: BaseClassifier) -> ColumnType:
    if column.inferred_type is InferredType.NUMBERS and column.distinct_share > 0.5:
        raise TableError(
            f"column {column.name!r} holds numbers, and {column.distinct_share:.0%} of its first "
            "values are distinct (at most 50% may be), so they are not classes: --task regress "
            "learns numbers."
        )
    if not is_fitted(forest):
        return integers_or_text(column)
    if forest.classes_.dtype.kind == "b":
        raise TrainingError(
            "the classes of the model are bools, which cannot be learned from a table."
        )
    return _integer_or_text(forest.classes_.dtype.kind in "iu")


# Types of features


@dataclass(frozen=True)
class RequestedTypes:
    """The features that --categorical and --numeric name."""

    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()

    def check(self, table: Table, features: Sequence[str]) -> None:
        """Raise if a name is not one of the features, or is given to both options."""
        for option, names in (("--categorical", self.categorical), ("--numeric", self.numeric)):
            for name in names:
                find_column(table, name)
                if name not in features:
                    raise OptionError(
                        f"{option} names {quote(name)}, which is not a feature: the features are "
                        f"{join_names(list(features))}."
                    )
                if option == "--categorical" and find_column(table, name).time is not None:
                    raise OptionError(f"--categorical names {quote(name)}, which --date makes.")
        both = [name for name in self.categorical if name in self.numeric]
        if both:
            raise OptionError(f"--categorical and --numeric both name {join_names(both)}.")


def feature_specs(
    table: Table, features: Sequence[str], forest: Forest, requested: RequestedTypes | None = None
) -> dict[str, ColumnSpec]:
    """How to read the features of a table; raises if one of them cannot be used."""
    requested = requested or RequestedTypes()
    requested.check(table, features)
    columns = [find_column(table, name) for name in features]
    find = _specs_of_fitted if is_fitted(forest) else _specs_of_new
    specs = find(table, columns, forest, requested)
    return {column.name: replace(specs[column.name], time=column.time) for column in columns}


def categorical_in(specs: dict[str, ColumnSpec], features: Iterable[str]) -> list[str]:
    """The features that are categorical."""
    return [name for name in features if specs[name].type in CATEGORICAL]


def _specs_of_new(
    table: Table, columns: list[ColumnInfo], forest: Forest, requested: RequestedTypes
) -> dict[str, ColumnSpec]:
    takes_categories = learns_categories(forest)
    if requested.categorical and not takes_categories:
        raise OptionError(
            f"--categorical names {join_names(list(requested.categorical))}, but a Mondrian forest "
            "learns numbers only: --forest order-free learns categories, too."
        )
    undecided = [column for column in columns if column.name not in requested.categorical]
    _check_types(
        table,
        undecided,
        {InferredType.DATES},
        "which a forest cannot learn as they are. Turn them into numbers, such as the day of the "
        "week and the hour, with --date COLUMN; "
        + ("learn them as categories with --categorical COLUMN; " if takes_categories else "")
        + "or leave them out with --drop COLUMN",
    )
    _check_types(
        table,
        columns,
        {InferredType.OTHER},
        "which a forest cannot learn. Leave them out with --drop COLUMN",
    )
    if not takes_categories:
        _check_types(
            table,
            [column for column in undecided if column.name not in requested.numeric],
            {InferredType.TEXT},
            "which a Mondrian forest cannot learn. --forest order-free learns text as categories. "
            "Or leave the columns out with --drop COLUMN, encode them as numbers, or, if one "
            "holds the names of the samples, give it as --id COLUMN",
        )
        return {column.name: _REQUIRED_NUMBER for column in columns}
    return {column.name: _spec_of_new(column, requested) for column in columns}


def _spec_of_new(column: ColumnInfo, requested: RequestedTypes) -> ColumnSpec:
    if column.name in requested.numeric:
        return _NUMBER
    is_by_type = column.inferred_type in {InferredType.TEXT, InferredType.BOOLEANS}
    if column.name in requested.categorical or is_by_type or column.texts:
        hint = ", as in the first rows; with such a row among these, all would be text"
        return replace(_categorical(column), hint=hint)
    hint = f"; if its values are categories, give --categorical {quote(column.name)}"
    return ColumnSpec(ColumnType.NUMBER, hint=hint)


def _categorical(column: ColumnInfo) -> ColumnSpec:
    return ColumnSpec(ColumnType.CODE if column.are_whole else ColumnType.LEVEL)


def _specs_of_fitted(
    table: Table, columns: list[ColumnInfo], forest: Forest, requested: RequestedTypes
) -> dict[str, ColumnSpec]:
    levels = _levels_of(forest, columns)
    for option, names, are_categorical in (
        ("--categorical", requested.categorical, True),
        ("--numeric", requested.numeric, False),
    ):
        wrong = [name for name in names if (name in levels) != are_categorical]
        if wrong:
            kind = "numbers" if are_categorical else "categories"
            raise OptionError(
                f"{option} names {join_names(wrong)}, but the model has learned {kind} there, "
                "which cannot be changed: learn a new model."
            )
    not_numbers = [
        column
        for column in columns
        if column.name not in levels and column.name not in requested.numeric
    ]
    wrong_types = {InferredType.TEXT, InferredType.DATES}
    _check_types(table, not_numbers, wrong_types, "but the model has learned numbers there")
    _check_types(table, columns, {InferredType.OTHER}, "which a forest cannot learn")
    number = _NUMBER if learns_categories(forest) else _REQUIRED_NUMBER
    return {
        column.name: _spec_of_levels(column, levels[column.name])
        if column.name in levels
        else number
        for column in columns
    }


def _levels_of(forest: Forest, columns: list[ColumnInfo]) -> dict[str, list[Any]]:
    """The levels of each categorical feature of a fitted forest; `columns` are all features."""
    levels = getattr(forest, "levels_", {})
    if hasattr(forest, "feature_names_in_"):
        return {str(name): of_feature for name, of_feature in levels.items()}
    return {columns[index].name: of_feature for index, of_feature in levels.items()}


def _spec_of_levels(column: ColumnInfo, levels: list[Any]) -> ColumnSpec:
    are_whole = {isinstance(level, int) for level in levels if level is not None}
    if not are_whole:  # nothing but missing values
        return _categorical(column)
    if len(are_whole) == 2:
        raise TableError(
            f"the levels of {quote(column.name)} in the model are both text and whole numbers, "
            "which the values of a column cannot be."
        )
    return ColumnSpec(ColumnType.CODE if are_whole == {True} else ColumnType.LEVEL)


def _check_types(
    table: Table, columns: list[ColumnInfo], rejected: set[InferredType], advice: str
) -> None:
    """Raise if columns are of rejected types; the message names them and gives the advice."""
    found = [column for column in columns if column.inferred_type in rejected]
    if found:
        examples = found[0].examples
        such = f" (such as {join_names(list(examples))})" if examples else ""
        names = join_names([column.name for column in found])
        raise TableError(
            f"{table.name}: {found[0].inferred_type.value} in {names}{such}, {advice}."
        )


# Advice


def advice_about(
    table: Table, schema: Schema, specs: dict[str, ColumnSpec], requested: RequestedTypes
) -> str:
    """Sentences about features that users may want to learn in another way; may be empty."""
    columns = [find_column(table, name) for name in schema.features]
    categorical = [each for each in columns if specs[each.name].type in CATEGORICAL]
    mixed = [each for each in categorical if each.texts and each.name not in requested.categorical]
    distinct = [
        column
        for column in categorical
        if column.n_values >= _MIN_VALUES and column.distinct_share > _MAX_DISTINCT
    ]
    empty = [
        column
        for column in columns
        if column.inferred_type is InferredType.EMPTY
        and column.name not in (*requested.numeric, *requested.categorical)
        and not specs[column.name].is_required
    ]
    sentences = [
        mixed
        and f"Warning: the first {FIRST_ROWS} rows have both numbers and text (such as "
        f"{quote(mixed[0].texts[0])}) in {_names(mixed)}, learned as categories. If they are "
        "numbers, give --numeric COLUMN: rows with text are bad then.",
        distinct
        and f"Warning: nearly all values differ in {_names(distinct)}, from which a forest "
        "learns little. Leave such columns out with --drop COLUMN; `train` can name the "
        "samples by one of them with --id COLUMN.",
        empty
        and f"Warning: the first rows have no values in {_names(empty)}: later ones must be "
        "numbers. If they are categories, give --categorical COLUMN.",
    ]
    return "\n".join(each for each in sentences if each)


def _names(columns: list[ColumnInfo]) -> str:
    return join_names([column.name for column in columns])
