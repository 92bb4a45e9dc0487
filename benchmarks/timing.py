"""Time two tasks in turn, so that a slower machine affects both."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

Job = Callable[[], object]
Prepare = Callable[[int], Job]


@dataclass
class Pairs:
    """Seconds of two sides, run in turn; entries of the same index form a pair."""

    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    def ratios(self) -> list[float]:
        """Ours divided by the peer's, for each pair."""
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]

    def times_faster(self) -> list[float]:
        """The peer's divided by ours, for each pair."""
        return [peer / ours for ours, peer in zip(self.ours, self.peer, strict=True)]

    def differences(self) -> list[float]:
        """Ours minus the peer's, for each pair."""
        return [ours - peer for ours, peer in zip(self.ours, self.peer, strict=True)]

    def per(self, n_ours: int, n_peer: int) -> Pairs:
        """Seconds per piece of work."""
        return Pairs([s / n_ours for s in self.ours], [s / n_peer for s in self.peer])

    def medians(self) -> tuple[float, float]:
        """Median seconds of each side."""
        return median(self.ours), median(self.peer)

    def seconds(self) -> dict[str, list[float]]:
        """Every run of both sides."""
        return {"ours": self.ours, "peer": self.peer}


def seconds_of(job: Job) -> float:
    """Time of one call. Its result is freed after the clock has stopped."""
    gc.collect()
    start = time.perf_counter()
    result = job()
    seconds = time.perf_counter() - start
    del result
    return seconds


def alternate(ours: Prepare, peer: Prepare, repeats: int) -> Pairs:
    """Time ours and the peer in turn.

    `ours` and `peer` take the number of the round, prepare a job, and return it to be timed.
    """
    pairs = Pairs()
    for number in range(repeats):
        pairs.ours.append(seconds_of(ours(number)))
        pairs.peer.append(seconds_of(peer(number)))
    return pairs
