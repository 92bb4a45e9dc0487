"""Streams of batches: where batches come from, which are skipped, and reports.

Must not know how a forest learns a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import Any


@dataclass(frozen=True)
class StreamReport:
    """How much of a stream was learned, and how fast.

    Attributes
    ----------
    n_batches : int
        Number of batches learned. Skipped batches do not count.
    n_rows : int
        Number of rows in these batches.
    seconds : float
        Time taken, without the start of shards.
    n_recoveries : int
        How often a lost shard was made anew.

    Examples
    --------
    >>> from onlineforest.ray import StreamReport
    >>> StreamReport(n_batches=2, n_rows=3000, seconds=1.5, n_recoveries=0).rows_per_second
    2000.0
    """

    __module__ = "onlineforest.ray"

    n_batches: int
    n_rows: int
    seconds: float
    n_recoveries: int

    @property
    def rows_per_second(self) -> float:
        """The throughput."""
        return self.n_rows / self.seconds if self.seconds > 0 else 0.0


class StreamTally:
    """Counts the batches that one call of `learn_stream` has sent.

    Parameters
    ----------
    n_before : int
        Number of batches that the forest learned before.
    starting_seconds : callable
        Total time the forest has spent on starting shards, which does not count.
    """

    def __init__(self, n_before: int, starting_seconds: Callable[[], float]) -> None:
        self._n_before = n_before
        self._starting_seconds = starting_seconds
        self._began = time.monotonic() - starting_seconds()
        self.n_batches = 0
        self.n_rows = 0

    @property
    def next_batch(self) -> int:
        """The number of the next batch, counted over all batches the forest has learned."""
        return self._n_before + self.n_batches

    def add(self, n_rows: int) -> None:
        """Count a batch."""
        self.n_batches += 1
        self.n_rows += n_rows

    def report(self, n_recoveries: int) -> StreamReport:
        """The report at this moment."""
        seconds = time.monotonic() - self._starting_seconds() - self._began
        return StreamReport(self.n_batches, self.n_rows, seconds, n_recoveries)


def check_first(first: int | None, n_learned: int) -> int:
    """The number of the first batch of a stream, which must not leave a gap."""
    if first is None:
        return n_learned
    if not isinstance(first, Integral) or isinstance(first, bool) or first < 0:
        raise ValueError(f"first must be a whole number, at least 0, or None. Got {first!r}.")
    if first > n_learned:
        raise ValueError(
            f"The stream begins with batch {first}, but only {n_learned} batches were learned: "
            f"batches {n_learned} to {first - 1} are missing."
        )
    return int(first)


def new_batches(
    batches: Any, target: str | None, batch_size: int, n_skipped: int
) -> Iterator[tuple[Any, Any]]:
    """Pairs of X and y from an iterable of pairs or a Ray dataset, without the first ones."""
    return islice(_pairs_of(batches, target, batch_size), n_skipped, None)


def is_dataset(batches: Any) -> bool:
    """Whether a stream is a Ray dataset."""
    return hasattr(batches, "iter_batches")


def check_pair(batch: Any) -> tuple[Any, Any]:
    """X and y of a batch."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"A batch must be a pair of X and y. Got one of {type(batch)} instead.")
    return batch[0], batch[1]


def _pairs_of(batches: Any, target: str | None, batch_size: int) -> Iterator[tuple[Any, Any]]:
    if not is_dataset(batches):
        if target is not None:
            raise ValueError("target is for a Ray dataset. Other batches are pairs of X and y.")
        yield from batches
        return
    if not isinstance(batch_size, Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number, at least 1. Got {batch_size!r}.")
    if target is None:
        raise ValueError("A Ray dataset needs a target: the name of the column of y.")
    for table in batches.iter_batches(batch_size=batch_size, batch_format="pyarrow"):
        if target not in table.column_names:
            raise ValueError(f"The dataset has no column {target!r}, only {table.column_names}.")
        yield table.drop_columns([target]), table.column(target).to_numpy()
