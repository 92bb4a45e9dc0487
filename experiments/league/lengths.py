"""Shortens streams so that a league takes no longer than a budget. It measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST = 1_000  # samples that a stream keeps, if it has as many
GROWTH = 1.5  # later samples take longer than those of the prefix: a guess on the safe side


@dataclass(frozen=True)
class Cost:
    """Seconds of all trials on a stream: of their start, and of each sample."""

    start: float
    each: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.start + other.start, self.each + other.each)

    def seconds(self, n_samples: int) -> float:
        return self.start + self.each * n_samples


def chosen_lengths(
    longest: Mapping[str, int], costs: Mapping[str, Cost], budget: float
) -> dict[str, int]:
    """The length of each stream such that all take the budget at most, if that is possible.

    Streams share one limit of seconds: those that take longer are shortened to it, those that
    take less are whole. No stream gets shorter than `LEAST`.
    """

    def lengths(limit: float) -> dict[str, int]:
        found = {}
        for name, most in longest.items():
            cost = costs[name]
            n = most if cost.seconds(most) <= limit else int((limit - cost.start) / cost.each)
            found[name] = min(most, max(n, LEAST))
        return found

    def total(limit: float) -> float:
        return sum(costs[name].seconds(n) for name, n in lengths(limit).items())

    low, high = 0.0, max((costs[name].seconds(n) for name, n in longest.items()), default=0.0)
    if total(high) <= budget:
        return lengths(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= budget else (low, middle)
    return lengths(low)
