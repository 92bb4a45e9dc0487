"""Test-then-train run over a stream of digits, and example data sets.

Knows nothing of terminals or files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier

from onlineforest._cli.defaults import DEFAULT_KIND, NAMES
from onlineforest._cli.forests import FORESTS, Forest
from onlineforest._cli.metrics import class_metrics


@dataclass
class Score:
    """Scores of one method so far."""

    name: str
    correct: list[float] = field(default_factory=list)  # accuracy per batch
    loss: list[float] = field(default_factory=list)  # mean log loss per batch
    seconds: float = 0.0  # of predicting and learning

    def add(self, model: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
        """Score the predictions of a batch."""
        with self.timed():
            probabilities = model.predict_proba(X)
        means = class_metrics(model.classes_, probabilities, y).means()
        self.correct.append(means["accuracy"])
        self.loss.append(means["log_loss"])

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of a block to the seconds."""
        clock = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - clock


@dataclass
class Demo:
    """A test-then-train run over scikit-learn's bundled digits.

    Each batch is first predicted, then learned. The online forest learns only the batch; a batch
    forest (extremely randomised trees) is trained again on all samples so far. Times include the
    predictions, because an order-free forest makes some of its cuts when it predicts.
    """

    batch_size: int = 60
    n_estimators: int = 100
    seed: int = 0
    kind: str = DEFAULT_KIND

    def __post_init__(self) -> None:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(self.seed).permutation(len(y))
        self.X, self.y = X[order], y[order]
        self.n_samples = len(y)
        self.online = Score(f"{NAMES[self.kind]} forest, online")
        self.batch = Score("ExtraTrees, re-trained")
        self.learned: list[int] = []

    def run(self) -> Iterator[int]:
        """Process the stream; yields the number of samples learned after each batch."""
        forest = FORESTS[self.kind]["classify"](self.n_estimators, random_state=self.seed)
        retrained: ExtraTreesClassifier | None = None
        for start in range(0, self.n_samples, self.batch_size):
            stop = min(start + self.batch_size, self.n_samples)
            X, y = self.X[start:stop], self.y[start:stop]
            if retrained is not None:
                self.online.add(forest, X, y)
                self.batch.add(retrained, X, y)
                self.learned.append(start)
            with self.online.timed():
                forest.partial_fit(X, y)
            with self.batch.timed():
                retrained = ExtraTreesClassifier(self.n_estimators, random_state=self.seed)
                retrained.fit(self.X[:stop], self.y[:stop])
            yield stop

    def recent(self, values: list[float], n_batches: int = 5) -> float:
        """Mean over the last batches."""
        return float(np.mean(values[-n_batches:]))


def demo_partition(kind: str, seed: int) -> tuple[Forest, NDArray[np.float32], NDArray[Any]]:
    """A forest of one tree on two principal components of 60 digits, and its samples."""
    X, y = load_digits(n_class=3, return_X_y=True)
    plane = PCA(2, random_state=seed).fit_transform(X)[:60].astype(np.float32)
    forest = FORESTS[kind]["classify"](1, random_state=seed).fit(plane, y[:60])
    return forest, plane, y[:60]


def example_files() -> dict[str, list[str]]:
    """Small data sets of scikit-learn as lines of CSV, in random order."""
    irises, diabetes = load_iris(), load_diabetes(scaled=False)
    flowers = [
        [*map(str, row), str(irises.target_names[species])]
        for row, species in zip(irises.data, irises.target, strict=True)
    ]
    patients = [
        [f"P{i:03d}", *map(str, row), str(value)]
        for i, (row, value) in enumerate(zip(diabetes.data, diabetes.target, strict=True))
    ]
    parts = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    flower_lines = _csv_lines([*parts, "species"], flowers)
    patient_lines = _csv_lines(["patient", *diabetes.feature_names, "progression"], patients)
    return {
        "flowers.csv": flower_lines[:-30],
        "new-flowers.csv": [flower_lines[0], *flower_lines[-30:]],
        "patients.csv": patient_lines,
    }


def _csv_lines(names: list[str], rows: list[list[str]]) -> list[str]:
    order = np.random.default_rng(0).permutation(len(rows))
    return [",".join(row) + "\n" for row in [names, *(rows[i] for i in order)]]
