"""Metrics and learning curves of a stream whose samples are predicted before they are learned.

A curve is held in memory, or in a CSV file that is extended and read. Knows nothing of forests, nor
of the source of the stream.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

METRIC_LABELS = {
    "log_loss": "log loss",
    "ece": "expected calibration error",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "width": "mean width of intervals",
}
_MIN_PROBABILITY = 1e-3  # in the log loss
_ROOTS = {"rmse"}  # metrics that are the square root of a mean
_N_BINS = 15  # bins of the expected calibration error
_GAP = "gap_"  # first part of the names of the sums of the bins


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
    losses = -np.log(np.maximum(of_truth, _MIN_PROBABILITY))
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
    """Coverage and mean width of intervals, to be added to `value_metrics`: their n is 0."""
    lower, upper = interval.T
    inside = (lower <= y) & (y <= upper)
    return Metrics(0, {"coverage": float(inside.sum()), "width": float((upper - lower).sum())})


def format_metrics(means: dict[str, float], max_metrics: int = 1) -> str:
    """Text of the first metrics; accuracy and RMSE come before others."""
    first = [name for name in ("accuracy", "rmse") if name in means]
    names = [*first, *(name for name in means if name not in first)][:max_metrics]
    return "".join(f", {METRIC_LABELS.get(name, name)} {means[name]:.4g}" for name in names)


@dataclass
class LearningCurve:
    """A learning curve in memory."""

    samples: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, n_learned: int, so_far: Metrics, _batch: Metrics) -> None:
        """Add a point."""
        self.samples.append(n_learned)
        for name, value in so_far.means().items():
            self.values.setdefault(name, []).append(value)


class CurveFile:
    """A learning curve in a CSV file; each line is flushed before `add` returns.

    The column `samples` is the number of samples learned before the batch. Then follows each metric
    over all samples so far, and over the batch alone.
    """

    def __init__(self, path: str | os.PathLike[str], n_learned: int = 0) -> None:
        """Start a file, or continue one after its lines of fewer than `n_learned` samples."""
        kept: list[list[str]] = []
        if n_learned:
            with suppress(FileNotFoundError), open(path, newline="", encoding="utf-8") as file:
                kept = list(_rows_before(csv.reader(file), n_learned))
        self._file: TextIO = open(path, "w", newline="", encoding="utf-8")  # noqa: SIM115
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerows(kept)
        self._file.flush()
        self._has_header = bool(kept)

    def add(self, n_learned: int, so_far: Metrics, batch: Metrics) -> None:
        """Add a line."""
        all_means, means = so_far.means(), batch.means()
        if not self._has_header:
            names = [*all_means, *(f"batch_{name}" for name in means)]
            self._writer.writerow(["samples", *names])
            self._has_header = True
        values = [*all_means.values(), *means.values()]
        self._writer.writerow([n_learned, *(f"{value:.6g}" for value in values)])
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_curve(path: str | os.PathLike[str]) -> tuple[list[int], dict[str, list[float]]]:
    """Read the numbers of samples and the metrics of a file that `CurveFile` wrote."""
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[""]]
        if header[0] != "samples":
            raise ValueError(f"the first column must be 'samples', but it is {header[0]!r}")
        if not rows:
            raise ValueError("it has no rows after the header")
        samples = [int(value) for value in _column(rows, 0, "samples", int)]
        curves = {name: _column(rows, i, name) for i, name in enumerate(header) if i > 0}
    except (csv.Error, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} is not a learning curve written by `--curve`: {error}."
        ) from error
    return samples, curves


def _column(
    rows: list[list[str]], column: int, name: str, parse: Callable[[str], float] = float
) -> list[float]:
    values = []
    for i, row in enumerate(rows, 1):
        try:
            values.append(parse(row[column]))
        except (ValueError, IndexError):
            cell = repr(row[column]) if column < len(row) else "nothing"
            raise ValueError(f"row {i:,}, column {name!r} holds {cell}, not a number") from None
    return values


def _rows_before(rows: Iterator[list[str]], n_learned: int) -> Iterator[list[str]]:
    """Yield the header and the rows of fewer samples, without a row that was partly written."""
    header = next(rows, [])
    if header[:1] == ["samples"]:
        yield header
    for row in rows:
        if len(row) == len(header) and row[0].isdecimal() and int(row[0]) < n_learned:
            yield row
