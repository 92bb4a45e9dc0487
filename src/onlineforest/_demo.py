"""The demonstration: a stream of digits, learned and predicted as it comes.

Knows nothing of terminals or files; the command line shows what comes out of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import log_loss

from onlineforest._classifier import MondrianForestClassifier


@dataclass
class Score:
    """How one method did so far."""

    name: str
    correct: list[float] = field(default_factory=list)  # per batch: share of right guesses
    loss: list[float] = field(default_factory=list)  # per batch: mean log loss
    seconds: float = 0.0  # spent learning

    def add(self, model: Any, X: NDArray[Any], y: NDArray[Any], n_classes: int) -> None:
        """Test on a batch.

        Probabilities are at least 0.001, so that one digit of a class not seen yet, or ruled out
        for sure, does not decide the log loss.
        """
        probabilities = np.zeros((len(y), n_classes))
        probabilities[:, model.classes_] = model.predict_proba(X)
        probabilities = np.maximum(probabilities, 1e-3)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        self.correct.append(float((probabilities.argmax(axis=1) == y).mean()))
        self.loss.append(float(log_loss(y, probabilities, labels=np.arange(n_classes))))


@dataclass
class Demo:
    """A test-then-train run over scikit-learn's bundled digits.

    Each batch is first predicted, then learned. Beside the forest, which learns just the batch, a
    batch forest (extremely randomised trees) is trained afresh on all samples so far.
    """

    batch_size: int = 50
    n_estimators: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(self.seed).permutation(len(y))
        self.X, self.y = X[order], y[order]
        self.n_samples = len(y)
        self.online = Score("Mondrian forest, online")
        self.batch = Score("ExtraTrees, re-trained")
        self.learned: list[int] = []

    def run(self) -> Iterator[int]:
        """Run through the stream; yields the number of samples learned after each batch."""
        forest = MondrianForestClassifier(self.n_estimators, random_state=self.seed)
        n_classes = len(np.unique(self.y))
        retrained: ExtraTreesClassifier | None = None
        for start in range(0, self.n_samples, self.batch_size):
            stop = min(start + self.batch_size, self.n_samples)
            X, y = self.X[start:stop], self.y[start:stop]
            if retrained is not None:
                self.online.add(forest, X, y, n_classes)
                self.batch.add(retrained, X, y, n_classes)
                self.learned.append(start)
            clock = time.perf_counter()
            forest.partial_fit(X, y)
            self.online.seconds += time.perf_counter() - clock
            clock = time.perf_counter()
            retrained = ExtraTreesClassifier(self.n_estimators, random_state=self.seed)
            retrained.fit(self.X[:stop], self.y[:stop])
            self.batch.seconds += time.perf_counter() - clock
            yield stop

    def recent(self, values: list[float], n_batches: int = 6) -> float:
        """Mean over the last batches."""
        return float(np.mean(values[-n_batches:]))


def demo_partition(
    seed: int = 0,
) -> tuple[MondrianForestClassifier, NDArray[np.float32], NDArray[Any]]:
    """A forest of one tree on two principal components of a few digits, and its samples."""
    X, y = load_digits(n_class=3, return_X_y=True)
    plane = PCA(2, random_state=seed).fit_transform(X)[:60].astype(np.float32)
    forest = MondrianForestClassifier(1, random_state=seed).fit(plane, y[:60])
    return forest, plane, y[:60]
