"""Probabilities and sets of classes, calibrated by samples that some trees have left out.

Must not know estimators, nor when they calibrate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import (
    LARGEST_LEVEL_POWER,
    LARGEST_POWER,
    LARGEST_SPREAD,
    LEAST_POWER,
    MOST_CALIBRATORS,
    SAMPLES_PER_CALIBRATOR_OF_LABELS,
    WEIGHT_OF_ONE,
    calibration_by,
    losses_of_stops,
    probabilities_by,
)
from onlineforest._forests.core import MOST_STOP_WEIGHT, Floats, Hashes, Votes
from onlineforest._forests.orderfree.classes import Classes

_SMALL, _LARGE = 32, 128  # calibrators on which trees vote at a time
N_AHEAD = (
    MOST_CALIBRATORS // _SMALL + MOST_CALIBRATORS // _LARGE
)  # the most pieces that are asked ahead
_LARGE_STOP = 64 * WEIGHT_OF_ONE  # lists of lighter nodes grow twigs, which takes most time
_LEAST_STOP = 8 * WEIGHT_OF_ONE  # between 0 and all other stop weights
_MANY_LABELS = 500  # stop weights are asked about one by one, so that votes take less memory
ALL_CALIBRATORS = (0, 2**62)

Ask = Callable[[int, int, int, int], Votes]
"""Asks trees with the stop weights [least, limit) about the calibrators [begin, end)."""


@dataclass(frozen=True)
class SetScores:
    """How improbable the true classes of left-out samples are, for sets of classes.

    Every second left-out sample has one: the others choose the stop weight. The score of a class is
    the probability of all classes that are more probable. A set holds the classes whose score is at
    most a threshold, so the most probable class is always in it.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The hashes of the true classes. Codes may belong to other classes later.
    scores : ndarray of shape (n_samples,)
        Their scores, in increasing order.
    weights : ndarray of shape (n_samples,)
        The stored weight of each sample.
    """

    labels: Hashes
    scores: Floats
    weights: NDArray[np.int64]

    @classmethod
    def by(
        cls, votes: Votes, power: float, spread: float, level_power: float, classes: Classes
    ) -> SetScores:
        """The scores by votes with one stop weight, which are calibrated like this."""
        votes = _every_second(votes)
        held, labels, weights, _, masses, *_ = votes
        are_held = np.zeros(masses.shape[2] - 1, dtype=np.bool_)
        are_held[held] = True
        codes = classes.codes.only(are_held)
        probabilities = probabilities_by(*votes, power, spread, level_power)
        of_classes = masses_above(codes.in_class_order(probabilities))
        scores = of_classes[np.arange(len(labels)), codes.places()[labels]]
        order = np.argsort(scores, kind="stable")
        return cls(classes.hashes[labels[order]], scores[order], weights[order])

    def threshold(self, coverage: float, label: Any = None) -> float:
        """The least threshold that holds the true classes of enough samples, of a class or all.

        Enough: such a share of these samples and one more, which the new sample may be. `label` is
        the hash of a class.
        """
        which = slice(None) if label is None else self.labels == label
        scores, ends = self.scores[which], np.cumsum(self.weights[which] / WEIGHT_OF_ONE)
        wanted = coverage * ((ends[-1] if len(ends) else 0.0) + 1.0) - 1e-9
        place = int(np.searchsorted(ends, wanted))
        return float(scores[place]) if place < len(scores) else np.inf


def pieces_ahead(n_samples: int) -> list[tuple[int, int]]:
    """Ranges of calibrators on which trees vote ahead of time, the last range first.

    The trees make the splits that are lacking. At first these are many, so the pieces are small.
    All are asked once more, because splits change meanwhile.
    """
    n = _most_of(n_samples)
    return [(begin, begin + size) for size in (_LARGE, _SMALL) for begin in range(0, n, size)]


def pieces_to_vote(n_samples: int) -> list[tuple[int, int]]:
    """Ranges of calibrators on which trees vote in turn, until it takes too long.

    Each is as large as those before it: the trees make most of the splits that are lacking for the
    first ones.
    """
    ends = [_SMALL]
    while ends[-1] < _most_of(n_samples):
        ends.append(2 * ends[-1])
    return list(pairwise([0, *ends]))


def _most_of(n_samples: int) -> int:
    """An upper limit of the number of calibrators."""
    return min(n_samples // SAMPLES_PER_CALIBRATOR_OF_LABELS + 1, MOST_CALIBRATORS)


def joined_votes(pieces: Sequence[Votes]) -> Votes:
    """The votes about several pieces, one after the other."""
    held, _, _, stops, *_ = pieces[0]
    _, labels, weights, _, masses, half, evidence = zip(*pieces, strict=True)
    arrays = np.concatenate(labels), np.concatenate(weights), stops
    sums = np.concatenate(masses, axis=1), np.concatenate(half, axis=1)
    return held, *arrays, *sums, np.concatenate(evidence)


def _every_second(votes: Votes) -> Votes:
    """The votes about the calibrators that do not choose the stop weight."""
    held, labels, weights, stops, masses, half, evidence = votes
    return (
        held,
        labels[1::2].copy(),
        weights[1::2].copy(),
        stops,
        masses[:, 1::2].copy(),
        half[:, 1::2].copy(),
        evidence[1::2].copy(),
    )


class Poll:
    """Asks trees with several stop weights, and keeps the votes with the best one.

    First those of at least 64 samples, and the others only if the least of these is the best of
    them, or if there is none. The best one is a function of the votes: neither the pieces nor
    the time that it takes have an influence.

    Parameters
    ----------
    n_labels : int
        Number of labels that a vote is about.
    pieces : list of tuple
        Ranges of calibrators that are asked about in turn.

    Attributes
    ----------
    is_done : bool
        Whether the best one is known.
    """

    def __init__(
        self, n_labels: int, pieces: Sequence[tuple[int, int]] = (ALL_CALIBRATORS,)
    ) -> None:
        self._is_stepwise = n_labels > _MANY_LABELS
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
            has_stops = len(self._answers[0][3]) > 0
            if len(self._answers) == len(self._pieces) or not has_stops:
                self._compare(joined_votes(self._answers))
                self._advance(self._answers[0][3].tolist())
                self._answers.clear()

    def _limit(self) -> int:
        """The end of the range of stop weights; there is one in it if it goes step by step."""
        if self._is_stepwise:
            return max(2 * self._least, _LEAST_STOP)
        return _LARGE_STOP if self._least < _LARGE_STOP else MOST_STOP_WEIGHT

    def _compare(self, votes: Votes) -> None:
        held, labels, weights, stops, masses, half, evidence = votes
        for k, loss in enumerate(losses_of_stops(*votes).tolist()):
            if self._best is None or (loss, stops[k]) < self._best[:2]:
                own = stops[k : k + 1], masses[k : k + 1].copy(), half[k : k + 1].copy()
                self._best = loss, int(stops[k]), (held, labels, weights, *own, evidence)

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


def masses_above(probabilities: Floats) -> Floats:
    """For each class of each row, the probability of all classes that are more probable.

    Of equally probable classes the first one counts as more probable.
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=1)
    above = np.cumsum(ordered, axis=1) - ordered
    above[:, :1] = 0.0  # a forest may know no class
    result = np.empty_like(above)
    np.put_along_axis(result, order, above, axis=1)
    return result


@dataclass(frozen=True)
class LabelCalibration:
    """The calibration that votes of trees on left-out samples give.

    Attributes
    ----------
    power, spread : float
        Probabilities are raised to this power; this share is spread evenly over the classes.
    stop_weight : int
        The trees predict with this stop weight, a stored weight: they enter no lighter node.
    level_power : float
        How much the evidence of levels counts; 0 if not at all.
    scores : SetScores
        For sets of classes.
    """

    power: float
    spread: float
    stop_weight: int
    level_power: float
    scores: SetScores

    @classmethod
    def by(cls, votes: Votes, n_trees: int, classes: Classes) -> LabelCalibration:
        """The calibration by votes with one stop weight of all trees of a forest of `n_trees`."""
        power, power_of_voters, spread, level_power = calibration_by(*votes, n_trees)
        scores = SetScores.by(votes, power_of_voters, spread, level_power, classes)
        return cls(power, spread, int(votes[3][0]), level_power, scores)

    def plain(self) -> dict[str, Any]:
        """The calibration as values of JSON."""
        return {
            "power": self.power,
            "spread": self.spread,
            "stop_weight": self.stop_weight,
            "labels": self.scores.labels.tolist(),
            "scores": self.scores.scores.tolist(),
            "units": self.scores.weights.tolist(),
            **({"level_power": self.level_power} if self.level_power > 0 else {}),
        }

    @classmethod
    def from_plain(cls, plain: Any) -> LabelCalibration:
        """The calibration that `plain` gave; `ValueError` if it is none."""
        match plain:
            case {
                "power": float(power),
                "spread": float(spread),
                "stop_weight": int(stop_weight),
                "labels": list(labels),
                "scores": list(scores),
                "units": list(weights),
                **others,
            } if others.keys() <= {"level_power"}:
                _check_number("power", power, LEAST_POWER, LARGEST_POWER)
                _check_number("spread", spread, 0.0, LARGEST_SPREAD)
                level_power: Any = others.get("level_power", 0.0)
                _check_numbers("level power", [level_power], float, 0.0, LARGEST_LEVEL_POWER)
                _check_numbers("stop weight", [stop_weight], int, 0, MOST_STOP_WEIGHT)
                if not len(labels) == len(scores) == len(weights) <= MOST_CALIBRATORS:
                    raise ValueError(
                        f"its calibration has {len(scores)} scores of {len(labels)} labels and "
                        f"{len(weights)} weights, must have as many of each, at most "
                        f"{MOST_CALIBRATORS}."
                    )
                _check_numbers("labels", labels, int, 0, 2**64 - 1)
                _check_numbers("scores", scores, float, 0.0, 2.0)
                _check_numbers("units", weights, int, 1, 2**52)
                if scores != sorted(scores):
                    raise ValueError("the scores of its calibration do not increase.")
                arrays = (
                    np.array(labels, np.uint64),
                    np.array(scores, float),
                    np.array(weights, int),
                )
                return cls(power, spread, stop_weight, level_power, SetScores(*arrays))
        raise ValueError("its calibration cannot be read.")


def _check_number(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise ValueError(
            f"the {name} of its calibration is {number}, which is not in [{least}, {most}]."
        )


def _check_numbers(name: str, numbers: list[Any], kind: type, least: Any, most: Any) -> None:
    for number in numbers:
        if type(number) is not kind or not least <= number <= most:
            raise ValueError(
                f"the {name} of its calibration hold {number!r}, which is not in [{least}, {most}]."
            )


def balanced(probabilities: Floats, weights: Floats) -> Floats:
    """Probabilities as if all classes were equally frequent, given the weights of their samples.

    A class without samples counts as one of mean weight.
    """
    are_held = weights > 0
    mean = weights.sum() / max(np.count_nonzero(are_held), 1)
    product = probabilities * np.where(are_held, mean / np.where(are_held, weights, 1.0), 1.0)
    total = np.zeros(len(product))
    for column in product.T:  # in a fixed order, whatever np.sum would do
        total += column
    shares: Floats = product / total[:, np.newaxis]
    return shares
