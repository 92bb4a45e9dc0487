"""Metrics of predictions of a stream, each sample predicted before it is learned.

Knows nothing of the source of the stream.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_PROBABILITY = 1e-3
_ROOTS = {"rmse"}  # metrics that are the square root of a mean
_N_BINS = 15  # of the expected calibration error
_GAP = "gap_"  # sums of the bins


@dataclass(frozen=True)
class Metrics:
    """Sums over samples, from which `means` computes the metrics."""

    n: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Metrics) -> Metrics:
        names = self.sums.keys() | other.sums.keys()
        sums = {name: self.sums.get(name, 0.0) + other.sums.get(name, 0.0) for name in names}
        return Metrics(self.n + other.n, dict(sorted(sums.items())))

    def means(self) -> dict[str, float]:
        """Each metric over the samples."""
        means = {
            name: math.sqrt(total / self.n) if name in _ROOTS else total / self.n
            for name, total in self.sums.items()
            if not name.startswith(_GAP)
        }
        gaps = [abs(total) for name, total in self.sums.items() if name.startswith(_GAP)]
        return means | {"ece": math.fsum(gaps) / self.n} if gaps else means

    def as_json(self) -> dict[str, Any]:
        """The sums as JSON values."""
        return {"n": self.n, "sums": dict(self.sums)}

    @classmethod
    def from_json(cls, stored: Any) -> Metrics:
        """Metrics from the result of `as_json`; raises ValueError for any other value."""
        match stored:
            case {"n": int(n), "sums": dict(sums)} if n >= 0:
                if all(isinstance(total, int | float) for total in sums.values()):
                    return cls(n, {str(name): float(total) for name, total in sums.items()})
        raise ValueError(f"metrics cannot be read from {stored!r}.")


def class_metrics(
    classes: NDArray[Any], probabilities: NDArray[np.float64], y: NDArray[Any]
) -> Metrics:
    """Accuracy, log loss and calibration error of probabilities of the sorted `classes`.

    For the log loss, probabilities count as 0.001 at least: otherwise one sample of an unknown
    class, or of a class with probability 0, would make it infinite. The expected calibration error
    puts samples into bins by the probability of the predicted class. It adds up how far the sum of
    these probabilities is from the number of correct predictions in each bin.
    """
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    are_known = classes[codes] == y
    of_truth = np.where(are_known, probabilities[np.arange(len(y)), codes], 0.0)
    correct = classes[probabilities.argmax(axis=1)] == y
    losses = -np.log(np.maximum(of_truth, MIN_PROBABILITY))
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * _N_BINS).astype(np.intp), _N_BINS - 1)
    gaps = np.bincount(bins, correct - confidence, minlength=_N_BINS)
    sums = {"accuracy": float(correct.sum()), "log_loss": float(losses.sum())}
    return Metrics(len(y), sums | {f"{_GAP}{i:02}": float(gap) for i, gap in enumerate(gaps)})


def value_metrics(predicted: NDArray[np.float64], y: NDArray[np.float64]) -> Metrics:
    """Root mean squared error and mean absolute error."""
    errors = predicted - y
    sums = {"mae": float(np.abs(errors).sum()), "rmse": float((errors**2).sum())}
    return Metrics(len(y), sums)


def interval_metrics(interval: NDArray[np.float64], y: NDArray[np.float64]) -> Metrics:
    """Coverage and mean width of intervals; n is 0, so that it can be added to `value_metrics`."""
    lower, upper = interval.T
    inside = (lower <= y) & (y <= upper)
    return Metrics(0, {"coverage": float(inside.sum()), "width": float((upper - lower).sum())})
