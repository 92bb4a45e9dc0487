"""Learning curves: in memory, and as CSV files that are extended and read.

Knows nothing of forests.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO

from onlineforest._cli.metrics import Metrics


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
            rows = [row for row in csv.reader(file) if row]
        if not rows or rows[0][0] != "samples":
            raise ValueError("the first column of the header must be 'samples'")
        if len(rows) < 2:
            raise ValueError("it has no rows")
        names, numbers = rows[0], rows[1:]
        samples = [int(row[0]) for row in numbers]
        curves = {name: [float(row[i]) for row in numbers] for i, name in enumerate(names) if i > 0}
    except (csv.Error, ValueError, IndexError) as error:
        raise ValueError(
            f"{os.fspath(path)} is not a learning curve written by `--curve`: {error}."
        ) from error
    return samples, curves


def _rows_before(rows: Iterator[list[str]], n_learned: int) -> Iterator[list[str]]:
    """Yield the header and the rows of fewer samples, without a row that a kill has truncated."""
    header = next(rows, [])
    if header[:1] == ["samples"]:
        yield header
    for row in rows:
        if len(row) == len(header) and row[0].isdecimal() and int(row[0]) < n_learned:
            yield row
