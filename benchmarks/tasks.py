"""Tasks to time. A function prepares a job and returns it: only the job is timed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.data import Data
from benchmarks.timing import Job

# Model, data, number of batches -> job.
Task = Callable[[Any, Data, int], Job]


def fitting(model: Any, data: Data, _n_batches: int) -> Job:
    """Learn all rows at once."""
    return lambda: model.fit(data.X, data.y)


def mini_batches(model: Any, data: Data, n_batches: int, predicts: bool = False) -> Job:
    """Learn all rows, batch by batch; if `predicts`, predict each batch but the first before."""

    def job() -> None:
        for start, end in pairwise(batch_edges(data, n_batches)):
            rows = data.X[start:end]
            if predicts and start > 0:
                model.predict_proba(rows)
            classes = data.classes if start == 0 else None
            model.partial_fit(rows, data.y[start:end], classes=classes)

    return job


def predicted_mini_batches(model: Any, data: Data, n_batches: int) -> Job:
    """Predict each batch but the first, then learn it."""
    return mini_batches(model, data, n_batches, predicts=True)


def built_mini_batches(model: Any, data: Data, n_batches: int) -> Job:
    """Learn all rows, batch by batch, then predict them: an order-free forest makes all cuts."""
    learn = mini_batches(model, data, n_batches)

    def job() -> None:
        learn()
        model.predict_proba(data.X)

    return job


def retraining(model: Any, data: Data, n_batches: int) -> Job:
    """Learn all rows so far again at each batch, for a model without `partial_fit`."""

    def job() -> None:
        for end in batch_edges(data, n_batches)[1:]:
            clone(model).fit(data.X[:end], data.y[:end])

    return job


def predicting(model: Any, data: Data, _n_batches: int) -> Job:
    """Predict the test set."""
    model.fit(data.X, data.y)
    return lambda: model.predict_proba(data.X_test)


def predicting_numbers(model: Any, data: Data, _n_batches: int) -> Job:
    """Predict the test set of a regression."""
    model.fit(data.X, data.y)
    return lambda: model.predict(data.X_test)


def batch_edges(data: Data, n_batches: int) -> list[int]:
    """Starts of the batches, and the end of the last one."""
    return [len(data.y) * number // n_batches for number in range(n_batches + 1)]


def row_by_row_ours(forest: Any, data: Data) -> Job:
    """Predict and learn each row; the first is learned beforehand."""
    forest.partial_fit(data.X[:1], data.y[:1], classes=data.classes)
    return predict_and_learn(forest, data.X[1:], data.y[1:])


def predict_and_learn(forest: Any, X: NDArray[np.float32], y: NDArray[np.int64]) -> Job:
    """Predict and learn each row with a forest that has learned before."""
    rows, labels = list(X), y.tolist()

    def job() -> None:
        for row, label in zip(rows, labels, strict=True):
            forest.predict_proba_one(row)
            forest.learn_one(row, label)

    return job


def learn_alone(forest: Any, X: NDArray[np.float32], y: NDArray[np.int64]) -> Job:
    """Learn each row with a forest that has learned before."""
    rows, labels = list(X), y.tolist()

    def job() -> None:
        for row, label in zip(rows, labels, strict=True):
            forest.learn_one(row, label)

    return job


def row_by_row_river(model: Any, data: Data) -> Job:
    """Predict and learn each row with a model for River, which takes dicts."""
    rows, labels = river_rows(data.X), data.y.tolist()
    model.learn_one(rows[0], labels[0])
    predict = getattr(model, "predict_proba_one", model.predict_one)  # regressors have the latter

    def job() -> None:
        for row, label in zip(rows[1:], labels[1:], strict=True):
            predict(row)
            model.learn_one(row, label)

    return job


def row_by_row_moa(new: Callable[[Any], Any], data: Data) -> Job:
    """Predict and learn each row with a model of MOA, in its own loop."""
    from capymoa.evaluation import prequential_evaluation
    from capymoa.stream import NumpyStream

    stream = NumpyStream(data.X, data.y, target_type="categorical")
    model = new(stream.get_schema())
    return lambda: prequential_evaluation(stream, model, optimise=True)


def river_rows(X: NDArray[np.float32]) -> list[dict[int, float]]:
    """Rows as River takes them."""
    return [dict(enumerate(row)) for row in X.tolist()]
