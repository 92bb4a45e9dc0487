"""The tasks of an experiment, and how one task runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.common import batch_edges
from experiments.paper.curves import N_BATCHES
from experiments.paper.data import DAGGER, DIGITS, Data, load
from experiments.paper.methods import METHODS, warm_up
from experiments.paper.names import AMF_10, ARF_10, AT_ONCE, ERT_1, LEARNED, MF
from experiments.paper.records import Record

N_BINS = 10  # in a reliability diagram


@dataclass(frozen=True)
class Settings:
    """The size of an experiment.

    Attributes
    ----------
    fractions : tuple of float
        Shares of the training data at which models are tested; multiples of a mini-batch. Dense
        where the curves bend, and few enough that all retrainings take minutes, not hours.
    n_passes : int
        Number of passes over the data, for methods that make several.
    few_rows : tuple of int
        Numbers of rows in the comparison with River.
    n_test_rows : int
        Number of test rows in that comparison: River predicts as slowly as it learns.
    """

    data: tuple[str, ...]
    methods: tuple[str, ...] = tuple(METHODS)
    n_seeds: int = 5
    n_trees: int = 100
    fractions: tuple[float, ...] = (
        0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    )  # fmt: skip
    n_passes: int = 20
    few_rows: tuple[int, ...] = (100, 250, 500, 1000, 2000)
    n_test_rows: int = 500
    n_river_seeds: int = 1


FULL = Settings(data=("usps", "satimages", "letter", "dna", DAGGER))
QUICK = Settings(
    data=(DIGITS,),
    n_seeds=2,
    n_trees=30,
    fractions=(0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
    n_passes=5,
    few_rows=(50, 100, 200),
    n_test_rows=100,
)


@dataclass(frozen=True)
class Task:
    """A model to train and test: online models at all fractions, others at a single one."""

    data: str
    method: str
    seed: int
    n_trees: int
    fractions: tuple[float, ...]
    n_passes: int = 1
    few_rows: tuple[int, ...] = ()
    n_test_rows: int | None = None

    def key(self) -> dict[str, Any]:
        """Everything the records depend on."""
        return {
            **asdict(self),
            "data_fingerprint": load(self.data).fingerprint,
            **METHODS[self.method].depends_on(),
        }

    def cost(self) -> float:
        """Rough duration in seconds; only ratios matter."""
        data, method = load(self.data), METHODS[self.method]
        n_rows = max(self.few_rows, default=len(data.y) * max(self.fractions, default=1))
        width = 1 + data.X.shape[1] / (10 if method.few_rows else 100)
        trees = 0.1 if method.few_rows else self.n_trees / 100
        return 0.05 + 1e-4 * n_rows * width * trees * method.cost * self.n_passes


def tasks_of(settings: Settings) -> Iterator[Task]:
    """All tasks of an experiment."""
    for data in settings.data:
        for name in settings.methods:
            method = METHODS[name]
            if data == DAGGER and name not in (MF, ERT_1, LEARNED):
                continue  # the paper uses † only for methods whose cuts ignore labels
            is_slow = name in (AMF_10, ARF_10)
            for seed in range(settings.n_river_seeds if is_slow else settings.n_seeds):
                task = Task(data, name, seed, settings.n_trees, settings.fractions)
                if method.few_rows:
                    n_train = len(load(data).y)
                    rows = tuple(n for n in settings.few_rows if n <= n_train)
                    yield replace(
                        task, fractions=(), few_rows=rows, n_test_rows=settings.n_test_rows
                    )
                elif method.online:
                    n_passes = settings.n_passes if method.many_passes else 1
                    yield replace(task, n_passes=n_passes)
                else:
                    at_once = name == AT_ONCE
                    for fraction in (1.0,) if at_once else settings.fractions:
                        yield replace(task, fractions=(fraction,))


def run(task: Task) -> list[Record]:
    """Train and test a model; only the seed decides the order of the rows."""
    warm_up(task.method)
    method, data = METHODS[task.method], load(task.data)
    rng = np.random.default_rng(task.seed)
    order = rng.permutation(len(data.y))
    test = rng.permutation(len(data.y_test))[: task.n_test_rows]
    model = method.new(task.n_trees, task.seed, len(data.y))
    if method.few_rows:
        stops = {n: n / len(order) for n in task.few_rows}
        edges = [0, *stops]
    else:
        edges = batch_edges(len(order), N_BATCHES)
        stops = {edges[round(f * N_BATCHES)]: f for f in task.fractions}
        if method.point_by_point:
            edges = [0, *stops]

    def record(n_samples: int, fraction: float, seconds: float, n_passes: int = 1) -> Record:
        scores = measure(model, data, test, rng)
        return Record(
            task.data, task.method, task.seed, fraction, n_passes, n_samples, seconds, **scores
        )

    if not method.online:
        [(n_samples, fraction)] = stops.items()
        seconds = seconds_to_learn(model.fit, data, order[:n_samples])
        return [record(n_samples, fraction, seconds)]

    learn = partial(model.partial_fit, classes=data.classes)
    records, seconds = [], 0.0
    for begin, end in pairwise(edges):
        seconds += seconds_to_learn(learn, data, order[begin:end])
        if end in stops:
            records.append(record(end, stops[end], seconds))
    for n_passes in range(2, task.n_passes + 1):
        seconds += seconds_to_learn(learn, data, rng.permutation(len(order)))
        records.append(record(len(order), 1.0, seconds, n_passes))
    return records


def seconds_to_learn(learn: Callable[[NDArray, NDArray], Any], data: Data, rows: NDArray) -> float:
    """Processor time of learning some rows."""
    X, y = data.X[rows], data.y[rows]
    start = time.process_time()
    learn(X, y)
    return time.process_time() - start


def measure(model: Any, data: Data, test: NDArray, rng: np.random.Generator) -> dict[str, Any]:
    """Scores on the test rows; ties between classes are broken at random, as in the paper."""
    y = data.y_test[test]
    probabilities = np.zeros((len(test), len(data.classes)))
    # A batch forest knows the classes of its rows only.
    probabilities[:, np.searchsorted(data.classes, model.classes_)] = model.predict_proba(
        data.X_test[test]
    )
    places = np.searchsorted(data.classes, y)
    confidence = probabilities.max(axis=1)
    ties = probabilities == confidence[:, np.newaxis]
    right = (ties * rng.random(ties.shape)).argmax(axis=1) == places
    of_truth = probabilities[np.arange(len(y)), places]
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(np.maximum(of_truth, 1e-15)).mean()),
        "reliability": tuple(
            (
                int((bins == b).sum()),
                float(confidence[bins == b].sum()),
                int(right[bins == b].sum()),
            )
            for b in range(N_BINS)
        ),
        "depth": mean_depth(model),
    }


def mean_depth(model: Any) -> float | None:
    """Mean over the trees of a Mondrian forest; None for others."""
    trees = getattr(model, "trees_", None)
    return None if trees is None else float(np.mean([tree.mean_depth for tree in trees]))
