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

from onlineforest._core import UNITS_PER_SAMPLE, calibration_by, probabilities_by
from onlineforest._forests.core import Floats, Votes
from onlineforest._forests.orderfree.classes import Hashes, LabelTable

LEAST_TREES = 10  # fewer cannot spare some that leave out the samples that calibrate
_POWERS = (0.03125, 128.0)  # that a core forest can find
_MOST = 2048  # samples that calibrate
_SMALL, _LARGE = 32, 128  # of these, of which trees are asked at a time
N_AHEAD = _MOST // _SMALL + _MOST // _LARGE  # the most pieces that are asked ahead


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
    units : ndarray of shape (n_samples,)
        How often each sample counts, in units.
    """

    labels: Hashes
    scores: Floats
    units: NDArray[np.int64]

    @classmethod
    def by(cls, votes: Votes, power: float, spread: float, table: LabelTable) -> SetScores:
        """The scores of the samples that votes are about, which are calibrated like this."""
        held, labels, units, masses, _ = votes
        are_held = np.zeros(masses.shape[1] - 1, dtype=np.bool_)
        are_held[held] = True
        codes = table.codes.only(are_held)
        probabilities = probabilities_by(*votes, power, spread)
        of_classes = masses_above(codes.in_class_order(probabilities))
        scores = of_classes[np.arange(len(labels)), codes.places()[labels]]
        order = np.argsort(scores, kind="stable")
        return cls(table.hashes[labels[order]], scores[order], units[order])

    def threshold(self, coverage: float, label: Any = None) -> float:
        """The least threshold that holds the true classes of enough samples, of a class or all.

        Enough: such a share of these samples and one more, which the new sample may be. `label` is
        the hash of a class.
        """
        which = slice(None) if label is None else self.labels == label
        scores, ends = self.scores[which], np.cumsum(self.units[which] / UNITS_PER_SAMPLE)
        wanted = coverage * ((ends[-1] if len(ends) else 0.0) + 1.0) - 1e-9
        place = int(np.searchsorted(ends, wanted))
        return float(scores[place]) if place < len(scores) else np.inf


def pieces_ahead(n_points: int) -> list[tuple[int, int]]:
    """Ranges of the samples that calibrate, of which trees are asked ahead, the last range first.

    The trees make the cuts that are lacking. At first these are many, so the pieces are small. All
    are asked once more, because cuts change meanwhile.
    """
    n = _most_of(n_points)
    return [(begin, begin + size) for size in (_LARGE, _SMALL) for begin in range(0, n, size)]


def pieces_to_vote(n_points: int) -> list[tuple[int, int]]:
    """Ranges of the samples that calibrate, of which trees are asked in turn, until it takes long.

    Each is as large as those before it: the trees make most of the cuts that are lacking for the
    first ones.
    """
    ends = [_SMALL]
    while ends[-1] < _most_of(n_points):
        ends.append(2 * ends[-1])
    return list(pairwise([0, *ends]))


def _most_of(n_points: int) -> int:
    """An upper limit of the samples that calibrate."""
    return min(n_points // 8 + 1, _MOST)


def joined_votes(pieces: Sequence[Votes]) -> Votes:
    """The votes about several pieces, one after the other."""
    held, *_ = pieces[0]
    _, labels, units, masses, half = zip(*pieces, strict=True)
    arrays = np.concatenate(labels), np.concatenate(units)
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
    """What is found by the votes of trees about samples that they have left out.

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
    def by(cls, votes: Votes, n_trees: int, table: LabelTable) -> LabelCalibration:
        """The calibration by the votes of all trees of a forest of `n_trees`."""
        power, power_of_voters, spread = calibration_by(*votes, n_trees)
        return cls(power, spread, SetScores.by(votes, power_of_voters, spread, table))

    def plain(self) -> dict[str, Any]:
        """The same as values of JSON."""
        return {
            "power": self.power,
            "spread": self.spread,
            "labels": self.scores.labels.tolist(),
            "scores": self.scores.scores.tolist(),
            "units": self.scores.units.tolist(),
        }

    @classmethod
    def from_plain(cls, plain: Any) -> LabelCalibration:
        """What `plain` gave; `ValueError` if it is none."""
        match plain:
            case {
                "power": float(power),
                "spread": float(spread),
                "labels": list(labels),
                "scores": list(scores),
                "units": list(units),
                **others,
            } if not others:
                if not _POWERS[0] <= power <= _POWERS[1]:
                    raise ValueError(f"the power of its calibration is {power}, not in {_POWERS}.")
                if not 0 <= spread <= 1:
                    raise ValueError(f"the spread of its calibration is {spread}, not in [0, 1].")
                if not len(labels) == len(scores) == len(units) <= _MOST:
                    raise ValueError(f"its calibration has {len(scores)} scores, at most {_MOST}.")
                _check_numbers("labels", labels, int, 0, 2**64 - 1)
                _check_numbers("scores", scores, float, 0.0, 2.0)
                _check_numbers("units", units, int, 1, 2**52)
                if scores != sorted(scores):
                    raise ValueError("the scores of its calibration do not increase.")
                arrays = np.array(labels, np.uint64), np.array(scores, float), np.array(units, int)
                return cls(power, spread, SetScores(*arrays))
        raise ValueError("its calibration cannot be read.")


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
