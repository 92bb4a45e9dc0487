"""Predict and learn the rows of a table in batches, from the first row or from a position.

A resumed run ends with the forest of an uninterrupted run, bit for bit. Knows nothing of
terminals, signals or options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from onlineforest._cli.columns import Schema, targets
from onlineforest._cli.forests import Forest, HeldSamples, Position, is_fitted, rejection
from onlineforest._cli.metrics import Metrics, class_metrics, interval_metrics, value_metrics
from onlineforest._cli.options import BATCH_SHARE, FIRST_BATCH_SIZE
from onlineforest._cli.scores import ClassScores
from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.orderfree.calibrated import CalibratedForest
from onlineforest._tables.columns import ColumnSpec, OnBadRow, Table
from onlineforest._tables.tables import rebatch, skip_rows

_SIZE_WITHOUT_LEARNING = 10_000  # rows of a batch that is only predicted


@dataclass(frozen=True)
class _Batch:
    """Samples to learn in one call; `row` holds the features if there is only one sample."""

    X: pa.Table
    y: NDArray[Any]
    ids: list[Any] | None
    row: Any = None


def _batches_of(table: pa.Table, schema: Schema, are_single: bool) -> Iterator[_Batch]:
    """Yield the rows as one batch, or each row as a batch."""
    X, y = table.select(list(schema.features)), targets(table, schema)
    ids = None if schema.id is None else table.column(schema.id).to_pylist()
    if not are_single:
        yield _Batch(X, y, ids)
        return
    for i, row in enumerate(_rows(X)):
        yield _Batch(X.slice(i, 1), y[i : i + 1], None if ids is None else ids[i : i + 1], row)


def _rows(X: pa.Table) -> Iterable[Any]:
    """Each row: an array of numbers, or a tuple if there are categorical columns."""
    are_numbers = [pa.types.is_float64(column.type) for column in X.columns]
    if all(are_numbers):
        return np.stack([column.to_numpy() for column in X.columns], axis=1)
    columns = zip(X.columns, are_numbers, strict=True)
    values = [column.to_numpy() if number else column.to_pylist() for column, number in columns]
    return zip(*values, strict=True)


class Training:
    """Predicts and learns the batches of a table."""

    def __init__(
        self,
        forest: Forest,
        start: Position,
        *,
        evaluate: bool = True,
        coverage: float | None = None,
        learn: bool = True,
        scores: ClassScores | None = None,
        held: HeldSamples | None = None,
    ) -> None:
        self.forest, self._start = forest, start
        self._n_seen_before = _n_seen(forest) - start.rows
        self.metrics, self.batch_metrics = start.metrics, Metrics()
        self._pending: tuple[int, Metrics] | None = None  # rows and metrics after this batch
        self._evaluate, self._coverage, self._learn = evaluate, coverage, learn
        self._scores, self._held, self._n_predicted = scores, held, start.rows
        self._has_same_names = False

    @property
    def n_rows(self) -> int:
        """Number of rows of the table processed so far; exact even after an interrupt."""
        return _n_seen(self.forest) - self._n_seen_before if self._learn else self._n_predicted

    def finish(self) -> None:
        """Calibrate with all samples, so that the forest does not depend on the batches."""
        if isinstance(self.forest, CalibratedForest):
            self.forest.recalibrate()

    def position(self) -> Position:
        """Position after the last stored batch, even if its call was interrupted."""
        self._count_pending()
        return Position(self.n_rows, self._start.batch_size, self._start.source, self.metrics)

    def run(
        self,
        table: Table,
        schema: Schema,
        specs: Mapping[str, ColumnSpec],
        on_bad_row: OnBadRow,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[int]:
        """Learn the rest of the table; yields the number of rows learned after each batch.

        `check` is called before each batch, and may raise to stop.
        """
        rows = skip_rows(table.read(specs, on_bad_row), self._start.rows)
        are_single = self._start.batch_size == 1
        for piece in rows if are_single else rebatch(rows, self._batch_sizes()):
            for batch in _batches_of(piece, schema, are_single):
                check()
                self._step(batch)
                yield self.n_rows

    def _batch_sizes(self) -> Iterator[int]:
        """The number of rows of each batch.

        Batches that grow end at the same rows of the table wherever a run is resumed. A prediction
        after a batch grows the trees again, so with equal batches the cost would be quadratic.
        """
        if self._start.batch_size is not None:
            yield from repeat(self._start.batch_size)
        if not self._learn:
            yield from repeat(_SIZE_WITHOUT_LEARNING)
        forest, end = self.forest, 0
        most_kept = forest.window or forest.reservoir or sys.maxsize
        while True:
            first = max(end, self._start.rows)
            n_kept = min(self._n_seen_before + end, most_kept)
            end += max(FIRST_BATCH_SIZE, int(n_kept * BATCH_SHARE))
            if end > first:
                yield end - first

    def _step(self, batch: _Batch) -> None:
        y, first = batch.y, self.n_rows + 1
        try:
            if self._held is not None:
                self._held.count(batch.X, y)
            self.batch_metrics = self._predict_batch(batch)
            after = self.metrics + self.batch_metrics
            if not self._learn:
                self._n_predicted, self.metrics = self._n_predicted + len(y), after
                return
            self._pending = (self.n_rows + len(y), after)
            self._learn_batch(batch)
        except ValueError as error:
            raise rejection("samples", first, len(y), error) from error
        self._count_pending()

    def _count_pending(self) -> None:
        """Add the metrics of the pending batch once the forest has stored it."""
        if self._pending is not None and self.n_rows == self._pending[0]:
            self.metrics, self._pending = self._pending[1], None

    def _learn_batch(self, batch: _Batch) -> None:
        row = self._single_row(batch)
        # `learn_one` gets neither ids nor new classes: for these, `partial_fit` checks more.
        if row is None or batch.ids is not None or not self._is_known(batch.y):
            self.forest.partial_fit(batch.X, batch.y, ids=batch.ids)
        else:
            self.forest.learn_one(row, batch.y.tolist()[0])

    def _is_known(self, y: NDArray[Any]) -> bool:
        forest = self.forest
        return not isinstance(forest, BaseClassifier) or bool((forest.classes_ == y[0]).any())

    def _single_row(self, batch: _Batch) -> Any:
        """The row of a batch of one if the forest has the same columns in this order, else None.

        The methods for one row are many times faster, but check no names.
        """
        if batch.row is None:
            return None
        if not self._has_same_names and is_fitted(self.forest):
            names = getattr(self.forest, "feature_names_in_", ())
            self._has_same_names = list(names) == batch.X.column_names
        return batch.row if self._has_same_names else None

    def _predict_batch(self, batch: _Batch) -> Metrics:
        """Metrics of the predictions of a batch; empty if it is not predicted."""
        forest, X, y, row = self.forest, batch.X, batch.y, self._single_row(batch)
        if not self._evaluate or not is_fitted(forest) or forest.n_samples_stored_ == 0:
            return Metrics()
        if isinstance(forest, BaseClassifier):
            probabilities = (
                forest.predict_proba(X)
                if row is None
                else forest.predict_proba_one(row)[np.newaxis]
            )
            if self._scores is not None:
                self._scores.add(forest.classes_, probabilities, y)
            return class_metrics(forest.classes_, probabilities, y)
        predicted = forest.predict(X) if row is None else np.array([forest.predict_one(row)])
        metrics = value_metrics(predicted, y)
        if self._coverage is None:
            return metrics
        return metrics + interval_metrics(forest.predict_interval(X, self._coverage), y)


def _n_seen(forest: Forest) -> int:
    return forest.n_samples_seen_ if is_fitted(forest) else 0
