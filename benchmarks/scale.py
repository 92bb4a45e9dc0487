"""Measure one long run of a forest: time, memory and accuracy along a generated stream.

    python -m benchmarks.scale [--forest NAME] [--rows N] [--features N] [--threads N] …

The stream is generated batch by batch, so that memory is that of the forest. Every batch is
learned. Some are predicted before, and again at once: an order-free forest puts off its cuts until
a prediction needs them, so only the second prediction has the cost of predicting alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.__main__ import positive
from benchmarks.data import synthetic
from benchmarks.formats import duration, megabytes, number
from benchmarks.machine import describe_machine
from benchmarks.memory import check_memory_is_reported, forget_the_past, resident_and_peak
from benchmarks.results import NotMeasuredError
from onlineforest import MondrianForestClassifier, OnlineForestClassifier

FORESTS = {"order-free": OnlineForestClassifier, "mondrian": MondrianForestClassifier}
N_CLASSES, NOISE = 4, 0.2  # the best possible accuracy is 0.85
COLUMNS = (
    *("rows", "seconds", "learn, µs per row", "predict, µs per row", "predict again"),
    *("longest call", "memory", "peak", "bytes per row", "accuracy"),
)


@dataclass
class Stretch:
    """The batches between two lines of the table: seconds of each call, and the state after it."""

    batch: int
    learn: list[float] = field(default_factory=list)
    predict: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    rows: int = 0  # since the start, as all that follows
    seconds: float = 0.0
    memory: int = 0
    peak: int = 0
    model: int = 0  # bytes, as counted by the forest

    @property
    def bytes_per_row(self) -> float:
        """Resident bytes per learned row."""
        return self.memory / self.rows

    def cells(self) -> tuple[str, ...]:
        """The columns as text."""
        costs = [
            number(fmean(calls) / self.batch * 1e6) if calls else "-"
            for calls in (self.learn, self.predict, self.again)
        ]
        return (
            *(f"{self.rows:,}", number(self.seconds), *costs),
            duration(max(self.learn + self.predict)),
            *(megabytes(self.memory), megabytes(self.peak), number(self.bytes_per_row)),
            f"{fmean(self.accuracy):.3f}" if self.accuracy else "-",
        )


def line_ends(batch: int, n_rows: int) -> list[int]:
    """Rows after which a line is shown: 1, 2 and 5 times powers of ten, and the last."""
    steps = {step * 10**power for power in range(len(str(n_rows))) for step in (1, 2, 5)}
    return sorted({n for n in steps if n <= n_rows and n % batch == 0} | {n_rows})


def timed(seconds: list[float], call: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """The result of a call, whose seconds are appended."""
    start = time.perf_counter()
    result = call(*values, **named)
    seconds.append(time.perf_counter() - start)
    return result


def measure(forest: Any, n_rows: int, n_features: int, batch: int, every: int) -> Iterator[Stretch]:
    """Learn a stream; predict a batch after each `every` batches and at the end of a line."""
    ends, stretch = set(line_ends(batch, n_rows)), Stretch(batch)
    forget_the_past()
    (before, _), start = resident_and_peak(), time.perf_counter()
    for count, end in enumerate(range(batch, n_rows + 1, batch)):
        X, y = synthetic(batch, n_features, N_CLASSES, seed=count, noise=NOISE)
        if count and (count % every == 0 or end in ends):
            found = timed(stretch.predict, forest.predict, X)
            timed(stretch.again, forest.predict, X)
            stretch.accuracy.append(float((found == y).mean()))
        timed(stretch.learn, forest.partial_fit, X, y, classes=np.arange(N_CLASSES))
        if sys.stderr.isatty():
            print(f"\r\033[K{end:,} of {n_rows:,} rows", end="", file=sys.stderr, flush=True)
        if end in ends:
            stretch.rows, stretch.seconds = end, time.perf_counter() - start
            resident, peak = resident_and_peak()
            stretch.memory, stretch.peak = resident - before, max(resident, peak) - before
            stretch.model = forest.nbytes_
            yield stretch
            stretch = Stretch(batch)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one forest. Returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.rows % arguments.batch:
        parser.error(f"--rows must be a multiple of --batch, {arguments.batch:,}")
    settings = {key: value for key, value in vars(arguments).items() if key != "out"}
    figures: dict[str, Any] = {"machine": describe_machine(), "settings": settings, "lines": []}
    path = arguments.out / f"scale-{arguments.forest}-{arguments.rows}.json"
    kind = FORESTS[arguments.forest]
    sizes = (arguments.features, arguments.batch, arguments.every)
    line = None
    try:
        check_memory_is_reported()
        path.parent.mkdir(parents=True, exist_ok=True)
        warm = kind(2, n_jobs=1, random_state=0)  # every library has run once
        list(measure(warm, 2 * arguments.batch, *sizes))
        del warm
        print_cells(COLUMNS)
        print_cells(["---"] * len(COLUMNS))
        forest = kind(arguments.trees, n_jobs=arguments.threads, random_state=0)
        for line in measure(forest, arguments.rows, *sizes):
            print_cells(line.cells())
            figures["lines"].append(asdict(line))
            path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    except (NotMeasuredError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
    if line is not None:
        millions = number(2**30 / line.bytes_per_row / 1e6)
        print(f"\nA GiB holds {millions} million rows of {arguments.features} features.")
    return 0 if line is not None and line.rows == arguments.rows else 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description="Measure time, memory and accuracy along one long generated stream.",
    )
    parser.add_argument("--forest", choices=FORESTS, default="order-free")
    for name, default, text in (
        ("--rows", 1_000_000, "rows of the stream"),
        ("--features", 20, "features; two of them decide the class"),
        ("--batch", 10_000, "rows of a mini-batch"),
        ("--every", 10, "every so many batches one is predicted"),
        ("--trees", 10, "trees of the forest"),
        ("--threads", 1, "threads of the forest"),
    ):
        text += " (default: %(default)s)"
        parser.add_argument(name, type=positive, default=default, metavar="N", help=text)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results"),
        help="folder for the JSON file (default: %(default)s)",
    )
    return parser


def print_cells(cells: Sequence[str]) -> None:
    """Print a line of the table at once, over the line of progress."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
