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
        return {
            name: math.sqrt(total / self.n) if name in _ROOTS else total / self.n
            for name, total in self.sums.items()
        }

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
    """Accuracy and log loss of probabilities of the sorted `classes`.

    Probabilities count as 0.001 at least: otherwise one sample of an unknown class, or of a class
    with probability 0, would make the log loss infinite.
    """
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    are_known = classes[codes] == y
    of_truth = np.where(are_known, probabilities[np.arange(len(y)), codes], 0.0)
    correct = classes[probabilities.argmax(axis=1)] == y
    losses = -np.log(np.maximum(of_truth, MIN_PROBABILITY))
    return Metrics(len(y), {"accuracy": float(correct.sum()), "log_loss": float(losses.sum())})


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
