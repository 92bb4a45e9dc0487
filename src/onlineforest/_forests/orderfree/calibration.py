"""The calibration of an order-free forest, with its stop weight, by left-out samples.

Trees that leave out the calibrators predict them with several stop weights: they vote. A poll finds
the stop weight of least loss. Must not know estimators, when they calibrate, nor what y is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any, ClassVar, Self, TypeAlias

from onlineforest._core import MOST_CALIBRATORS, WEIGHT_OF_ONE
from onlineforest._forests.core import MOST_STOP_WEIGHT, Floats, OfOrderFree, StopWeights
from onlineforest._forests.orderfree.fitted import Fitted

_SMALL, _LARGE = 32, 128  # calibrators on which trees vote at a time
N_AHEAD = (
    MOST_CALIBRATORS // _SMALL + MOST_CALIBRATORS // _LARGE
)  # the most pieces that are asked ahead
_LARGE_STOP = 64 * WEIGHT_OF_ONE  # lists of lighter nodes grow twigs, which takes most time
_LEAST_STOP = 8 * WEIGHT_OF_ONE  # between 0 and all other stop weights
ALL_CALIBRATORS = (0, 2**62)

Votes: TypeAlias = tuple[Any, ...]
"""Votes of a core forest, as its `votes` gives them; what they are depends on the target."""
Ask = Callable[[int, int, int, int], Votes]
"""Asks trees with the stop weights [least, limit) about the calibrators [begin, end)."""


class Calibration(ABC):
    """A calibration by the votes of trees on left-out samples. Subclasses know what y is.

    Attributes
    ----------
    stop_weight : int
        The trees predict with this stop weight, a stored weight: they enter no lighter node.
    """

    fewest_trees: ClassVar[int]  # a forest of fewer trees calibrates nothing
    samples_per_calibrator: ClassVar[int]  # in a small forest

    stop_weight: int

    @staticmethod
    @abstractmethod
    def stops_of(votes: Votes) -> StopWeights:
        """The stop weights that votes are about."""

    @staticmethod
    @abstractmethod
    def joined(pieces: Sequence[Votes]) -> Votes:
        """The votes about several pieces of the calibrators, one after the other."""

    @staticmethod
    @abstractmethod
    def with_one_stop(votes: Votes, k: int) -> Votes:
        """The votes with the k-th stop weight alone, copied."""

    @staticmethod
    @abstractmethod
    def losses(votes: Votes) -> Floats:
        """The loss of each stop weight."""

    @classmethod
    @abstractmethod
    def by(cls, votes: Votes, n_trees: int, targets: Any) -> Self:
        """The calibration of a forest of `n_trees` by joined votes with one stop weight."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """The calibration as values of JSON."""

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Any) -> Self:
        """The calibration that `plain` gave; `ValueError` if it is none."""

    @classmethod
    def poll(cls, core: Any, pieces: Sequence[tuple[int, int]] = (ALL_CALIBRATORS,)) -> Poll:  # noqa: ARG003
        """A poll of the trees of a core forest."""
        return Poll(cls, pieces)

    @classmethod
    def of_core(cls, fitted: Fitted[Any], core: OfOrderFree, targets: Any, n_threads: int) -> Self:
        """The calibration by the samples that a core forest held at an arrival and still holds."""

        def ask(least: int, limit: int, begin: int, end: int) -> Votes:
            if fitted.arrival == core.n_seen:
                return core.votes(n_threads, least, limit, begin, end)
            return core.votes_at(fitted.arrival, n_threads, least, limit)

        return cls.by(cls.poll(core).votes(ask), core.n_trees, targets)


def pieces_ahead(n_calibrators: int) -> list[tuple[int, int]]:
    """Ranges of calibrators on which trees vote ahead of time, the last range first.

    The trees make the splits that are lacking. At first these are many, so the pieces are small.
    All are asked once more, because splits change meanwhile.
    """
    sizes = _LARGE, _SMALL
    return [(i, i + size) for size in sizes for i in range(0, n_calibrators, size)]


def pieces_to_vote(n_calibrators: int) -> list[tuple[int, int]]:
    """Ranges of calibrators on which trees vote in turn, until it takes too long.

    Each is as large as those before it: the trees make most of the splits that are lacking for the
    first ones.
    """
    ends = [_SMALL]
    while ends[-1] < n_calibrators:
        ends.append(2 * ends[-1])
    return list(pairwise([0, *ends]))


def most_calibrators(n_samples: int, kind: type[Calibration]) -> int:
    """An upper limit of the number of calibrators of a forest."""
    return min(n_samples // kind.samples_per_calibrator + 1, MOST_CALIBRATORS)


class Poll:
    """Asks trees with several stop weights, and keeps the votes with the best one.

    First those of at least 64 samples, and the others only if the least of these is the best of
    them, or if there is none. The best one is a function of the votes: neither the pieces nor
    the time that it takes have an influence.

    Parameters
    ----------
    kind : type
        The kind of calibration that the votes are for.
    pieces : list of tuple
        Ranges of calibrators that are asked about in turn.
    is_stepwise : bool, default=False
        Whether stop weights are asked about one by one, so that votes take less memory.

    Attributes
    ----------
    is_done : bool
        Whether the best one is known.
    """

    def __init__(
        self,
        kind: type[Calibration],
        pieces: Sequence[tuple[int, int]] = (ALL_CALIBRATORS,),
        *,
        is_stepwise: bool = False,
    ) -> None:
        self._kind, self._is_stepwise = kind, is_stepwise
        self._pieces, self._answers = pieces, list[Votes]()
        self._least = _LARGE_STOP
        self._least_large: int | None = None  # the least large stop weight that there is
        self._best: tuple[float, int, Votes] | None = None
        self.is_done = False

    def votes(self, ask: Ask) -> Votes:
        """The votes with the best stop weight."""
        self.go_on(ask)
        assert self._best is not None  # 0 can always be chosen
        return self._best[2]

    def go_on(self, ask: Ask, seconds: float = math.inf) -> None:
        """Ask what is left to ask, until that takes longer."""
        end = perf_counter() + seconds
        while not self.is_done and perf_counter() <= end:
            self._answers.append(ask(self._least, self._limit(), *self._pieces[len(self._answers)]))
            stops = self._kind.stops_of(self._answers[0]).tolist()
            if len(self._answers) == len(self._pieces) or not stops:
                self._compare(self._kind.joined(self._answers), stops)
                self._advance(stops)
                self._answers.clear()

    def _limit(self) -> int:
        """The end of the range of stop weights; there is one in it if it goes step by step."""
        if self._is_stepwise:
            return max(2 * self._least, _LEAST_STOP)
        return _LARGE_STOP if self._least < _LARGE_STOP else MOST_STOP_WEIGHT

    def _compare(self, votes: Votes, stops: Sequence[int]) -> None:
        for k, loss in enumerate(self._kind.losses(votes).tolist()):
            if self._best is None or (loss, stops[k]) < self._best[:2]:
                self._best = loss, stops[k], self._kind.with_one_stop(votes, k)

    def _advance(self, stops: list[int]) -> None:
        """Go on to the next range, after the one that has these stop weights."""
        limit = self._limit()
        if self._least < _LARGE_STOP:
            self._least, self.is_done = limit, limit >= _LARGE_STOP
            return
        if self._least_large is None and stops:
            self._least_large = stops[0]
        if self._is_stepwise and stops:
            self._least = limit
            return
        self._least = 0
        self.is_done = self._best is not None and self._best[1] != self._least_large


def range_ahead(stop_weight: int) -> tuple[int, int]:
    """The stop weight that is asked about ahead of time, as a range: the least that may be needed.

    Given the one in force. To ask about one makes the splits that all larger ones need.
    """
    if stop_weight >= 2 * _LARGE_STOP:
        return _LARGE_STOP, 2 * _LARGE_STOP
    return 0, _LEAST_STOP


def check_number(name: str, number: float, least: float, most: float) -> None:
    """Raise `ValueError` unless a number of a calibration is in a range."""
    if not least <= number <= most:
        raise ValueError(
            f"the {name} of its calibration is {number}, which is not in [{least}, {most}]."
        )


def check_numbers(name: str, numbers: list[Any], kind: type, least: Any, most: Any) -> None:
    """Raise `ValueError` unless these numbers of a calibration are of a type and in a range."""
    for number in numbers:
        if type(number) is not kind or not least <= number <= most:
            raise ValueError(
                f"the {name} of its calibration hold {number!r}, which is not in [{least}, {most}]."
            )
