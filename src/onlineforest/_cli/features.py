"""Decide which features of a table are numbers and which are categorical, and how to read them.

A new forest takes this from the first rows and from what users say; a fitted forest knows it. Knows
nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onlineforest._cli.errors import OptionError
from onlineforest._cli.forests import Forest, is_fitted, learns_categories
from onlineforest._tables.columns import (
    CATEGORICAL,
    FIRST_ROWS,
    ColumnInfo,
    ColumnSpec,
    ColumnType,
    InferredType,
    Table,
    TableError,
    join_names,
    quote,
)
from onlineforest._tables.tables import find_column

_MIN_VALUES = 100  # before a column is said to hold names of samples
_MAX_DISTINCT = 0.9
_NUMBER = ColumnSpec(ColumnType.NUMBER)
_NUMBER_IN_EACH_ROW = ColumnSpec(
    ColumnType.NUMBER,
    is_required=True,
    hint="; a Mondrian forest takes complete rows of numbers, an order-free forest (--forest "
    "order-free of `train`) takes text and missing values, too",
)


class FeatureError(OptionError):
    """What is said about features contradicts itself, or the forest."""


@dataclass(frozen=True)
class Said:
    """What users say about features: the names of categorical and of numeric ones."""

    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()

    def check(self, table: Table, features: Sequence[str]) -> None:
        """Raise if a name is not one of the features, or said to be both."""
        for option, names in (("--categorical", self.categorical), ("--numeric", self.numeric)):
            for name in names:
                find_column(table, name)
                if name not in features:
                    raise FeatureError(
                        f"{option} names {quote(name)}, which is not a feature: the features are "
                        f"{join_names(list(features))}."
                    )
        both = [name for name in self.categorical if name in self.numeric]
        if both:
            raise FeatureError(f"--categorical and --numeric both name {join_names(both)}.")


def feature_specs(
    table: Table, features: Sequence[str], forest: Forest, said: Said | None = None
) -> dict[str, ColumnSpec]:
    """How to read the features of a table; raises if one of them cannot be used."""
    said = said or Said()
    said.check(table, features)
    columns = [find_column(table, name) for name in features]
    if is_fitted(forest):
        return _specs_of_fitted(table, columns, forest, said)
    return _specs_of_new(table, columns, forest, said)


def categorical_in(specs: dict[str, ColumnSpec], features: Iterable[str]) -> list[str]:
    """The features that are categorical."""
    return [name for name in features if specs[name].type in CATEGORICAL]


# A new forest


def _specs_of_new(
    table: Table, columns: list[ColumnInfo], forest: Forest, said: Said
) -> dict[str, ColumnSpec]:
    takes_categories = learns_categories(forest)
    if said.categorical and not takes_categories:
        raise FeatureError(
            f"--categorical names {join_names(list(said.categorical))}, but a Mondrian forest "
            "learns numbers only: --forest order-free learns categories, too."
        )
    undecided = [column for column in columns if column.name not in said.categorical]
    check_types(
        table,
        undecided,
        {InferredType.DATES},
        "which a forest cannot learn as they are. Turn them into numbers, such as the day of the "
        "week and the hour; "
        + ("learn them as categories with --categorical COLUMN; " if takes_categories else "")
        + "or leave them out with --drop COLUMN",
    )
    check_types(
        table,
        columns,
        {InferredType.OTHER},
        "which a forest cannot learn. Leave them out with --drop COLUMN",
    )
    if not takes_categories:
        check_types(
            table,
            [column for column in undecided if column.name not in said.numeric],
            {InferredType.TEXT},
            "which a Mondrian forest cannot learn. --forest order-free learns text as categories. "
            "Or leave the columns out with --drop COLUMN, encode them as numbers, or, if one "
            "holds the names of the samples, give it as --id COLUMN",
        )
    return {column.name: _spec_of_new(column, takes_categories, said) for column in columns}


def _spec_of_new(column: ColumnInfo, takes_categories: bool, said: Said) -> ColumnSpec:
    if not takes_categories:
        return _NUMBER_IN_EACH_ROW
    if column.name in said.numeric:
        return _NUMBER
    is_by_type = column.inferred_type in {InferredType.TEXT, InferredType.BOOLEANS}
    if column.name in said.categorical or is_by_type or column.texts:
        hint = ", as in the first rows; with such a row among these, all would be text"
        return replace(_categorical(column), hint=hint)
    hint = f"; if its values are categories, give --categorical {quote(column.name)}"
    return ColumnSpec(ColumnType.NUMBER, hint=hint)


def _categorical(column: ColumnInfo) -> ColumnSpec:
    return ColumnSpec(ColumnType.CODE if column.are_whole else ColumnType.LEVEL)


def advice_about(
    table: Table, features: Sequence[str], specs: dict[str, ColumnSpec], said: Said
) -> str:
    """Sentences about columns that users may want to be used in another way; may be empty."""
    columns = [find_column(table, name) for name in features]
    categorical = [each for each in columns if specs[each.name].type in CATEGORICAL]
    names = [
        column.name
        for column in categorical
        if column.n_values >= _MIN_VALUES and column.distinct_share > _MAX_DISTINCT
    ]
    empty = [
        column.name
        for column in columns
        if column.inferred_type is InferredType.EMPTY
        and column.name not in (*said.numeric, *said.categorical)
        and specs[column.name].type is ColumnType.NUMBER
        and not specs[column.name].is_required
    ]
    mixed = [
        column for column in categorical if column.texts and column.name not in said.categorical
    ]
    sentences = []
    if mixed:
        such = quote(mixed[0].texts[0])
        sentences.append(
            f"Warning: the first {FIRST_ROWS} rows have both numbers and text (such as {such}) in "
            f"{join_names([column.name for column in mixed])}, learned as categories. If they are "
            "numbers, give --numeric COLUMN: rows with text are bad then."
        )
    if names:
        sentences.append(
            f"Warning: nearly all values differ in {join_names(names)}, from which a forest "
            "learns little. Leave such columns out with --drop COLUMN; `train` can name the "
            "samples by one of them with --id COLUMN."
        )
    if empty:
        sentences.append(
            f"Warning: the first rows have no values in {join_names(empty)}: later ones must be "
            "numbers. If they are categories, give --categorical COLUMN."
        )
    return "\n".join(sentences)


# A fitted forest


def _specs_of_fitted(
    table: Table, columns: list[ColumnInfo], forest: Forest, said: Said
) -> dict[str, ColumnSpec]:
    levels = levels_of(forest, [column.name for column in columns])
    for option, names, are_categorical in (
        ("--categorical", said.categorical, True),
        ("--numeric", said.numeric, False),
    ):
        wrong = [name for name in names if (name in levels) != are_categorical]
        if wrong:
            kind = "numbers" if are_categorical else "categories"
            raise FeatureError(
                f"{option} names {join_names(wrong)}, but the model has learned {kind} there, "
                "which cannot be changed: learn a new model."
            )
    numeric = [column for column in columns if column.name not in levels]
    wrong_types = {InferredType.TEXT, InferredType.DATES}
    not_numbers = [column for column in numeric if column.name not in said.numeric]
    check_types(table, not_numbers, wrong_types, "but the model has learned numbers there")
    check_types(table, columns, {InferredType.OTHER}, "which a forest cannot learn")
    number = _NUMBER if learns_categories(forest) else _NUMBER_IN_EACH_ROW
    return {
        column.name: _spec_of_levels(column, levels[column.name])
        if column.name in levels
        else number
        for column in columns
    }


def levels_of(forest: Forest, features: Sequence[str]) -> dict[str, list[Any]]:
    """The levels of each categorical feature of a fitted forest; `features` are all names."""
    levels = getattr(forest, "levels_", {})
    if hasattr(forest, "feature_names_in_"):
        return {str(name): of_feature for name, of_feature in levels.items()}
    return {features[place]: of_feature for place, of_feature in levels.items()}


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


# Both


def check_types(
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


def check_named(table: Table, columns: Iterable[ColumnInfo]) -> None:
    """Raise if a column has no name."""
    if not all(column.name.strip() for column in columns):
        raise TableError(
            f"{table.name} has a column without a name, perhaps row numbers. Drop it with "
            '--drop "", or give it a name.'
        )
