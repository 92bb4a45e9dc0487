"""What a forest predicts of the rows of a table, as columns of another.

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
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from onlineforest._cli.training import Forest, TrainingError, check_are_numbers, first_line
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._tables.columns import Kind, Looks, OnBadRow, Table, TableError, Wanted, listed
from onlineforest._tables.tables import in_batches, named


@dataclass(frozen=True)
class Question:
    """What is to be predicted, and which columns are to be passed through."""

    probabilities: bool = False
    coverage: float | None = None
    std: bool = False
    novelty: bool = False
    keep: tuple[str, ...] = ()

    def check(self, forest: Forest) -> None:
        """Raise if this forest cannot answer it."""
        if self.probabilities and not isinstance(forest, MondrianForestClassifier):
            raise TrainingError("probabilities are for classes, but the model predicts numbers.")
        for_numbers = self.std or self.coverage is not None
        if for_numbers and not isinstance(forest, MondrianForestRegressor):
            raise TrainingError(
                "intervals and standard deviations are for numbers, but the model predicts classes."
            )


def features_in(table: Table, forest: Forest, ignored: tuple[str, ...] = ()) -> list[str]:
    """The columns a forest wants, by name; in their order, if it was learned without names."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        found = [column.name for column in table.columns if column.name not in ignored]
        if len(found) != forest.n_features_in_:
            raise TableError(
                f"{table.name} has {len(found)} columns {listed(found)}, but the model, which "
                f"knows no names, was learned from {forest.n_features_in_}. "
                "Columns named with --keep do not count."
            )
    else:
        found = [str(name) for name in names]
        there = {column.name for column in table.columns}
        missing = [name for name in found if name not in there]
        if missing:
            raise TableError(
                f"{table.name} lacks {len(missing)} of the {len(found)} columns the model was "
                f"learned from: {listed(missing)}."
            )
    check_are_numbers(table, [named(table, name) for name in found])
    return found


def predictions(
    forest: Forest, table: Table, question: Question, batch_size: int, on_bad_row: OnBadRow
) -> Iterator[pa.Table]:
    """For each batch of rows, the columns kept and what is predicted; at least one, if empty."""
    question.check(forest)
    features = features_in(table, forest, question.keep)
    wanted = {name: Wanted(Kind.NUMBER) for name in features}
    for name in question.keep:
        looks = named(table, name).looks
        wanted.setdefault(name, Wanted(Kind.WHOLE if looks is Looks.WHOLE_NUMBERS else Kind.TEXT))
    n_rows = 0
    for batch in in_batches(table.read(wanted, on_bad_row), batch_size):
        rows = rows_for(forest, batch.select(features))
        try:
            answers = _answers(forest, rows, question)
        except ValueError as error:
            where = f"rows {n_rows + 1:,} to {n_rows + len(batch):,}"
            raise TrainingError(f"{where}: {first_line(error)}") from error
        n_rows += len(batch)
        yield _joined(batch, question, answers)
    if n_rows == 0:
        empty = pa.table({name: pa.array([], pa.string()) for name in wanted})
        zeros = pa.table({name: [0.0] for name in features})
        some = _answers(forest, rows_for(forest, zeros), question)
        yield _joined(empty, question, {name: values[:0] for name, values in some.items()})


def rows_for(forest: Forest, features: pa.Table) -> Any:
    """Rows with the names of their columns if the forest knows them; otherwise without."""
    if hasattr(forest, "feature_names_in_"):
        return features
    return np.column_stack([column.to_numpy() for column in features.columns])


def _joined(batch: pa.Table, question: Question, answers: dict[str, Any]) -> pa.Table:
    both = [name for name in question.keep if name in answers]
    if both:
        raise TableError(f"{listed(both)} cannot be kept: so a column of predictions is called.")
    kept = {name: batch.column(name) for name in question.keep}
    return pa.table({**kept, **{name: pa.array(values) for name, values in answers.items()}})


def _answers(forest: Forest, rows: Any, question: Question) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    if isinstance(forest, MondrianForestClassifier):
        probabilities, classes = forest.predict_proba(rows), forest.classes_
        answers["prediction"] = classes[probabilities.argmax(axis=1)]
        if question.probabilities:
            for i, label in enumerate(classes):
                answers[f"probability_{label}"] = probabilities[:, i]
    else:
        mean, std = forest.predict(rows, return_std=True)
        answers["prediction"] = mean
        if question.coverage is not None:
            answers["lower"], answers["upper"] = forest.predict_interval(rows, question.coverage).T
        if question.std:
            answers["std"] = std
    if question.novelty:
        answers["novelty"] = forest.novelty(rows)
    return answers


class CsvWriter:
    """Writes tables one after the other as CSV; what is written is on its way."""

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
        except pa.ArrowInvalid:  # a text with a comma or so
            data = _csv_rows(table, "needed")
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        """Nothing is left to write."""


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
        """Write the end."""
        if self._writer is not None:
            self._writer.close()
