"""Cases and settings of a measurement. Knows no single case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.data import Data, load
from benchmarks.formats import duration
from benchmarks.results import Row
from benchmarks.timing import Pairs

N_TREES = 100
N_BATCHES = 100

load_once = lru_cache(maxsize=4)(load)


@dataclass(frozen=True)
class Settings:
    """Number and size of the runs. `scale` multiplies all sizes, for tests."""

    repeats: int
    quick: bool = False
    scale: float = 1.0
    folder: Path | None = None

    def load(self, name: str) -> Data:
        """A data set at this scale."""
        return load_once(name, self.folder, self.scale)

    def size(self, full: int, quick: int | None = None, least: int = 2) -> int:
        """A number of rows, trees or batches at this scale."""
        size = quick if self.quick and quick is not None else full
        return max(least, round(size * self.scale))

    @property
    def n_trees(self) -> int:
        """Trees of a forest."""
        return self.size(N_TREES)

    @property
    def n_batches(self) -> int:
        """Number of mini-batches of the training set; few if quick, as a peer is trained anew."""
        return self.size(N_BATCHES, quick=N_BATCHES // 5)


Measure = Callable[["Case", Settings], Iterable[Row]]


@dataclass(frozen=True)
class Case:
    """A name, a data set and how to measure it."""

    name: str
    data: str
    measure: Measure
    target: float | None = None
    # Targets hold for the full data sets, except those that hold for any data.
    any_data: bool = False
    # Slow peers get fewer runs.
    most_runs: int | None = None

    def runs(self, settings: Settings) -> int:
        """Number of pairs of runs."""
        return min(settings.repeats, self.most_runs or settings.repeats)

    def row(self, settings: Settings, **columns: Any) -> Row:
        """A row of this case, with its target where that applies."""
        columns = {"case": self.name, "data": self.data, "target": self.target, **columns}
        if not self.any_data and (settings.quick or settings.scale != 1):
            columns["target"] = None
        return Row(**columns)

    def ratio_row(self, settings: Settings, pairs: Pairs, peer: str) -> Row:
        """A row of our seconds relative to those of the peer."""
        ours, other = pairs.medians()
        return self.row(
            settings,
            ours=duration(ours),
            peer=f"{peer} {duration(other)}",
            values=pairs.ratios(),
            seconds=pairs.seconds(),
        )

    def faster_row(self, settings: Settings, pairs: Pairs, **columns: Any) -> Row:
        """A row of the factor by which our forest is faster."""
        return self.row(
            settings,
            values=pairs.times_faster(),
            unit="×",
            better="higher",
            seconds=pairs.seconds(),
            **columns,
        )
