"""Probabilities and sets of classes, calibrated by samples that some trees have left out.

Must not know estimators, nor when they calibrate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import (
    LARGEST_POWER,
    LARGEST_SPREAD,
    LEAST_POWER,
    MOST_CALIBRATORS,
    SAMPLES_PER_CALIBRATOR_OF_LABELS,
    WEIGHT_OF_ONE,
    calibration_by,
    probabilities_by,
)
from onlineforest._forests.core import Floats, Hashes, Votes
from onlineforest._forests.orderfree.classes import Classes

_SMALL, _LARGE = 32, 128  # calibrators on which trees vote at a time
N_AHEAD = (
    MOST_CALIBRATORS // _SMALL + MOST_CALIBRATORS // _LARGE
)  # the most pieces that are asked ahead


@dataclass(frozen=True)
class SetScores:
    """How improbable the true classes of left-out samples are, for sets of classes.

    The score of a class is the probability of all classes that are more probable. A set holds the
    classes whose score is at most a threshold, so the most probable class is always in it.

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
    def by(cls, votes: Votes, power: float, spread: float, classes: Classes) -> SetScores:
        """The scores of the samples that votes are about, which are calibrated like this."""
        held, labels, weights, masses, _ = votes
        are_held = np.zeros(masses.shape[1] - 1, dtype=np.bool_)
        are_held[held] = True
        codes = classes.codes.only(are_held)
        probabilities = probabilities_by(*votes, power, spread)
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
    held, *_ = pieces[0]
    _, labels, weights, masses, half = zip(*pieces, strict=True)
    arrays = np.concatenate(labels), np.concatenate(weights)
    return held, *arrays, np.concatenate(masses), np.concatenate(half)


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
    scores : SetScores
        For sets of classes.
    """

    power: float
    spread: float
    scores: SetScores

    @classmethod
    def by(cls, votes: Votes, n_trees: int, classes: Classes) -> LabelCalibration:
        """The calibration by the votes of all trees of a forest of `n_trees`."""
        power, power_of_voters, spread = calibration_by(*votes, n_trees)
        return cls(power, spread, SetScores.by(votes, power_of_voters, spread, classes))

    def plain(self) -> dict[str, Any]:
        """The calibration as values of JSON."""
        return {
            "power": self.power,
            "spread": self.spread,
            "labels": self.scores.labels.tolist(),
            "scores": self.scores.scores.tolist(),
            "units": self.scores.weights.tolist(),
        }

    @classmethod
    def from_plain(cls, plain: Any) -> LabelCalibration:
        """The calibration that `plain` gave; `ValueError` if it is none."""
        match plain:
            case {
                "power": float(power),
                "spread": float(spread),
                "labels": list(labels),
                "scores": list(scores),
                "units": list(weights),
                **others,
            } if not others:
                _check_number("power", power, LEAST_POWER, LARGEST_POWER)
                _check_number("spread", spread, 0.0, LARGEST_SPREAD)
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
                return cls(power, spread, SetScores(*arrays))
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
