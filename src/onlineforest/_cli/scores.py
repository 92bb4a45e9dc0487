"""Scores of predicted classes that need all predictions: AUC, F1 and the confusion matrix.

Knows nothing of forests, nor of the source of the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_HELD = 1 << 25  # probabilities, in 256 MB; with more there is no AUC
_MOST_SHOWN = 12  # classes of a confusion matrix that fit in a terminal

Floats = NDArray[np.float64]


def roc_auc(
    are_positive: NDArray[np.bool_], scores: Floats, weights: Floats | None = None
) -> float:
    """Area under the receiver operating characteristic; NaN if one of the two classes lacks weight.

    The probability that a positive sample has a greater score than a negative one, each drawn by
    its weight; equal scores count one half.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    _, ranks = np.unique(scores, return_inverse=True)
    positive = np.bincount(ranks, np.where(are_positive, weights, 0.0))
    negative = np.bincount(ranks, np.where(are_positive, 0.0, weights))
    pairs = positive.sum() * negative.sum()
    if not pairs:
        return float("nan")
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / pairs)


def f1_scores(confusion: NDArray[Any]) -> Floats:
    """F1 of each class of a confusion matrix; 0 for a class that is never predicted correctly."""
    correct = np.diagonal(confusion).astype(float)
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    scores: Floats = np.divide(2 * correct, both, out=np.zeros(len(correct)), where=both > 0)
    return scores


class ClassScores:
    """Counts of predicted classes, and the probabilities that the AUC compares."""

    def __init__(self, most_held: int = MOST_HELD) -> None:
        self._counts: Counter[tuple[Any, Any]] = Counter()  # true and predicted class
        self._batches: list[tuple[list[Any], Floats, list[Any]]] | None = []
        self._n_left = most_held

    def add(self, classes: NDArray[Any], probabilities: Floats, y: NDArray[Any]) -> None:
        """Add the probabilities of sorted classes, and the true classes."""
        truth = y.tolist()
        self._counts.update(zip(truth, classes[probabilities.argmax(axis=1)].tolist(), strict=True))
        self._n_left -= probabilities.size
        if self._n_left < 0:
            self._batches = None
        elif self._batches is not None:
            self._batches.append((classes.tolist(), probabilities, truth))

    @property
    def classes(self) -> list[Any]:
        """The classes that occur or were predicted, sorted."""
        return sorted({label for pair in self._counts for label in pair})

    def confusion(self) -> NDArray[np.int64]:
        """Number of samples of each true class (row) that were predicted as each class (column)."""
        index = {label: i for i, label in enumerate(self.classes)}
        matrix = np.zeros((len(index), len(index)), dtype=np.int64)
        for (truth, predicted), count in self._counts.items():
            matrix[index[truth], index[predicted]] = count
        return matrix

    def auc(self) -> float | None:
        """With two classes the AUC of the second; with more, the mean of each against the rest.

        None if there were too many probabilities, or if all samples have one class.
        """
        if self._batches is None:
            return None
        known = sorted({label for labels, _, _ in self._batches for label in labels})
        occurring = sorted({label for _, _, truth in self._batches for label in truth})
        if len(occurring) < 2:
            return None
        compared = occurring[1:] if len({*known, *occurring}) == 2 else occurring
        return float(np.mean([self._auc_of(label, self._batches) for label in compared]))

    @staticmethod
    def _auc_of(label: Any, batches: Sequence[tuple[list[Any], Floats, list[Any]]]) -> float:
        are_positive = np.array([each == label for _, _, truth in batches for each in truth])
        scores = [
            # A class that the forest does not know yet has the probability 0.
            of_batch[:, labels.index(label)] if label in labels else np.zeros(len(of_batch))
            for labels, of_batch, _ in batches
        ]
        return roc_auc(are_positive, np.concatenate(scores))

    def as_json(self) -> dict[str, Any]:
        """The scores as JSON values."""
        confusion = self.confusion()
        of_classes = f1_scores(confusion)
        return {
            "auc": self.auc(),
            "f1": float(of_classes.mean()),
            "classes": self.classes,
            "f1_of_classes": of_classes.tolist(),
            "confusion": confusion.tolist(),
        }

    def lines(self) -> list[str]:
        """F1 of each class, and the confusion matrix, for a terminal."""
        confusion = self.confusion()
        names = [
            str(label) if len(str(label)) <= 12 else f"{str(label)[:11]}…" for label in self.classes
        ]
        if len(names) > _MOST_SHOWN:
            return [f"The confusion matrix of {len(names)} classes is in the output of --json."]
        cells = [[f"{count:,}" for count in row] for row in confusion]
        table = [["true class", *names, "F1"]]
        table += [
            [name, *row, f"{score:.4g}"]
            for name, row, score in zip(names, cells, f1_scores(confusion), strict=True)
        ]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        return [
            "  ".join([row[0].ljust(widths[0]), *(map(str.rjust, row[1:], widths[1:]))])
            for row in table
        ]
