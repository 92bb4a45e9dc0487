"""How well a stream is predicted, each sample before it is learned: running means, and their curve.

Knows nothing of where the stream comes from.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

LEAST_PROBABILITY = 1e-3
_ROOTS = {"rmse"}  # the root of a mean, that is


@dataclass(frozen=True)
class Measures:
    """Sums over samples, from which the measures come. Never changes."""

    n: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Measures) -> Measures:
        names = self.sums.keys() | other.sums.keys()
        sums = {name: self.sums.get(name, 0.0) + other.sums.get(name, 0.0) for name in names}
        return Measures(self.n + other.n, dict(sorted(sums.items())))

    def means(self) -> dict[str, float]:
        """Each measure over the samples."""
        return {
            name: math.sqrt(total / self.n) if name in _ROOTS else total / self.n
            for name, total in self.sums.items()
        }

    def as_json(self) -> dict[str, Any]:
        """All of it, to be stored."""
        return {"n": self.n, "sums": dict(self.sums)}

    @classmethod
    def from_json(cls, stored: Any) -> Measures:
        """What `as_json` gave; raises ValueError if it is anything else."""
        match stored:
            case {"n": int(n), "sums": dict(sums)} if n >= 0:
                if all(isinstance(total, int | float) for total in sums.values()):
                    return cls(n, {str(name): float(total) for name, total in sums.items()})
        raise ValueError(f"measures cannot be read from {stored!r}.")


def measure_classes(
    classes: NDArray[Any], probabilities: NDArray[np.float64], y: NDArray[Any]
) -> Measures:
    """Accuracy and log loss of probabilities of `classes`, which are sorted.

    Probabilities count as 0.001 at least, so that one sample of a class not seen yet, or ruled out
    for sure, does not decide the log loss.
    """
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    are_known = classes[places] == y
    of_truth = np.where(are_known, probabilities[np.arange(len(y)), places], 0.0)
    correct = classes[probabilities.argmax(axis=1)] == y
    losses = -np.log(np.maximum(of_truth, LEAST_PROBABILITY))
    return Measures(len(y), {"accuracy": float(correct.sum()), "log_loss": float(losses.sum())})


def measure_values(predicted: NDArray[np.float64], y: NDArray[np.float64]) -> Measures:
    """Root mean squared and mean absolute error."""
    errors = predicted - y
    sums = {"mae": float(np.abs(errors).sum()), "rmse": float((errors**2).sum())}
    return Measures(len(y), sums)


def measure_intervals(interval: NDArray[np.float64], y: NDArray[np.float64]) -> Measures:
    """How many values fall into their interval, and how wide it is; counts no samples itself."""
    lower, upper = interval.T
    inside = (lower <= y) & (y <= upper)
    return Measures(0, {"coverage": float(inside.sum()), "width": float((upper - lower).sum())})


class CurveFile:
    """A learning curve as CSV, written as it comes; each line is on its way when `add` returns.

    `samples` is how many had been learned; then each measure over all samples so far, and over the
    last batch alone.
    """

    def __init__(self, path: str | os.PathLike[str], n_learned: int = 0) -> None:
        """Begin a file, or go on with one up to the line of so many samples."""
        kept: list[list[str]] = []
        if n_learned:
            with suppress(FileNotFoundError), open(path, newline="") as file:
                kept = list(_rows_before(csv.reader(file), n_learned))
        self._file: TextIO = open(path, "w", newline="")  # noqa: SIM115
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerows(kept)
        self._file.flush()
        self._has_header = bool(kept)

    def add(self, n_learned: int, so_far: Measures, batch: Measures) -> None:
        """A line more."""
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
    """The numbers of samples and the measures in a file that `CurveFile` wrote, or an error."""
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        rows = list(_rows_of(file, Path(path)))
    names, numbers = rows[0], rows[1:]
    try:
        samples = [int(row[0]) for row in numbers]
        curves = {name: [float(row[i]) for row in numbers] for i, name in enumerate(names) if i > 0}
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path} is no learning curve of `--curve`: {error}.") from error
    return samples, curves


def _rows_of(file: TextIO, path: Path) -> Iterator[list[str]]:
    try:
        rows = [row for row in csv.reader(file) if row]
    except csv.Error as error:
        raise ValueError(f"{path} is no learning curve of `--curve`: {error}.") from error
    if not rows or rows[0][0] != "samples" or len(rows) < 2:
        raise ValueError(
            f"{path} is no learning curve: lines of `samples` and measures were wanted, as "
            "`--curve` writes them."
        )
    yield from rows


def _rows_before(rows: Iterator[list[str]], n_learned: int) -> Iterator[list[str]]:
    """The header, and the rows until then; one that was cut off by a kill is none."""
    header = next(rows, [])
    if header[:1] == ["samples"]:
        yield header
    for row in rows:
        if len(row) == len(header) and row[0].isdecimal() and int(row[0]) < n_learned:
            yield row
