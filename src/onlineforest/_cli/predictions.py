"""Predict the rows of a table, and write the predictions as CSV or Parquet.

Knows nothing of options or terminals.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from onlineforest._cli.features import check_named, feature_specs
from onlineforest._cli.forests import Forest
from onlineforest._cli.schema import TrainingError
from onlineforest._cli.training import first_line
from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._tables.columns import (
    ColumnSpec,
    ColumnType,
    InferredType,
    OnBadRow,
    Table,
    TableError,
    join_names,
)
from onlineforest._tables.tables import find_column, rebatch


@dataclass(frozen=True)
class PredictionRequest:
    """Which columns to predict, and which columns of the table to copy."""

    probabilities: bool = False
    coverage: float | None = None
    std: bool = False
    novelty: bool = False
    keep: tuple[str, ...] = ()

    def check(self, forest: Forest) -> None:
        """Raise if this forest cannot predict the requested columns."""
        if self.probabilities and not isinstance(forest, BaseClassifier):
            raise TrainingError("--probabilities are for classes, but the model predicts numbers.")
        for_numbers = self.std or self.coverage is not None
        if for_numbers and isinstance(forest, BaseClassifier):
            raise TrainingError(
                "--intervals and --std are for numbers, but the model predicts classes."
            )
        if self.novelty and not isinstance(forest, MondrianForestClassifier):
            raise TrainingError(
                f"--novelty is for Mondrian forests, but the model is an {type(forest).__name__}. "
                "`train --forest mondrian` learns one."
            )


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
        existing = {column.name for column in table.columns}
        missing = [name for name in found if name not in existing]
        if missing:
            raise TableError(
                f"{table.name} lacks {len(missing)} of the {len(found)} columns the model was "
                f"learned from: {join_names(missing)}."
            )
    check_named(table, [find_column(table, name) for name in found])
    return found


def predictions(
    forest: Forest, table: Table, request: PredictionRequest, batch_size: int, on_bad_row: OnBadRow
) -> Iterator[pa.Table]:
    """Yield, for each batch of rows, the copied columns and the predictions.

    A table without rows yields one empty batch, which has the names of the columns.
    """
    request.check(forest)
    features = features_in(table, forest, request.keep)
    specs = feature_specs(table, features, forest)
    for name in request.keep:
        inferred = find_column(table, name).inferred_type
        is_integer = inferred is InferredType.INTEGERS
        type = ColumnType.INTEGER if is_integer else ColumnType.TEXT
        specs.setdefault(name, ColumnSpec(type))
    n_rows = 0
    for batch in rebatch(table.read(specs, on_bad_row), batch_size):
        rows = rows_for(forest, batch.select(features))
        try:
            columns = _predict(forest, rows, request)
        except ValueError as error:
            place = f"rows {n_rows + 1:,} to {n_rows + len(batch):,}"
            raise TrainingError(f"{place}: {first_line(error)}") from error
        n_rows += len(batch)
        yield _with_kept_columns(batch, request, columns)
    if n_rows == 0:
        empty = pa.table({name: pa.array([], pa.string()) for name in specs})
        zeros = pa.table({name: [0.0] for name in features})
        example = _predict(forest, rows_for(forest, zeros), request)
        yield _with_kept_columns(
            empty, request, {name: values[:0] for name, values in example.items()}
        )


def rows_for(forest: Forest, features: pa.Table) -> Any:
    """The features as a table if the forest has feature names, otherwise as an array."""
    if hasattr(forest, "feature_names_in_"):
        return features
    return np.column_stack([_array_of(column) for column in features.columns])


def _array_of(column: pa.ChunkedArray) -> NDArray[Any]:
    """Numbers as floats, categories as they are."""
    if pa.types.is_float64(column.type):
        return np.asarray(column.to_numpy())
    return np.array(column.to_pylist(), dtype=object)


def _with_kept_columns(
    batch: pa.Table, request: PredictionRequest, columns: dict[str, Any]
) -> pa.Table:
    both = [name for name in request.keep if name in columns]
    if both:
        raise TableError(
            f"--keep cannot copy {join_names(both)}: a column of predictions has the same name."
        )
    kept = {name: batch.column(name) for name in request.keep}
    return pa.table({**kept, **{name: pa.array(values) for name, values in columns.items()}})


def _predict(forest: Forest, rows: Any, request: PredictionRequest) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if isinstance(forest, BaseClassifier):
        probabilities, classes = forest.predict_proba(rows), forest.classes_
        columns["prediction"] = classes[probabilities.argmax(axis=1)]
        if request.probabilities:
            for i, label in enumerate(classes):
                columns[f"probability_{label}"] = probabilities[:, i]
    else:
        # A standard deviation takes longer than the mean alone.
        mean, std = forest.predict(rows, True) if request.std else (forest.predict(rows), None)
        columns["prediction"] = mean
        if request.coverage is not None:
            columns["lower"], columns["upper"] = forest.predict_interval(rows, request.coverage).T
        if request.std:
            columns["std"] = std
    if request.novelty:
        assert isinstance(forest, MondrianForestClassifier)
        columns["novelty"] = forest.novelty(rows)
    return columns


class CsvWriter:
    """Writes tables one after the other as CSV, and flushes each."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._has_header = file, False

    def write(self, table: pa.Table) -> None:
        """Write more rows."""
        if not self._has_header:
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(table.column_names)
            self._file.write(header.getvalue().encode())
            self._has_header = True
        try:
            data = _csv_rows(table, "none")
        except pa.ArrowInvalid:  # a text needs quotes
            data = _csv_rows(table, "needed")
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        """Do nothing: all rows are written."""


def _csv_rows(table: pa.Table, quoting: str) -> Any:
    sink = pa.BufferOutputStream()
    options = arrow_csv.WriteOptions(include_header=False, quoting_style=quoting)
    arrow_csv.write_csv(table, sink, options)
    return sink.getvalue()


class ParquetWriter:
    """Writes tables one after the other as Parquet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write more rows."""
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()
