"""Probabilities and sets of classes, calibrated by samples that some trees have left out.

Must not know estimators, nor when they calibrate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import UNITS_PER_SAMPLE
from onlineforest._models.class_codes import ClassCodes
from onlineforest._models.core import Floats, GuidedLabelCore, Votes

LEAST_TREES = 10  # fewer cannot spare some that leave out the samples that calibrate
_LAG = 8  # a calibration is out of date when this share of the samples is new
_POWERS = (0.03125, 128.0)  # that a core forest can find
_PIECE = 32  # samples that calibrate, of which trees are asked in one prediction of a stream


@dataclass(frozen=True)
class SetScores:
    """How improbable the true classes of left-out samples are, for sets of classes.

    The score of a class is the probability of all classes that are more probable. A set holds the
    classes whose score is at most a threshold, so the most probable class is always in it.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The codes of the true classes.
    scores : ndarray of shape (n_samples,)
        Their scores, in increasing order.
    weights : ndarray of shape (n_samples,)
        How often each sample counts.
    """

    codes: NDArray[np.int32]
    scores: Floats
    weights: Floats

    @classmethod
    def of(
        cls, probabilities: Floats, labels: NDArray[np.int32], units: Any, codes: ClassCodes
    ) -> SetScores:
        """The scores of samples with these probabilities and labels, in the order of codes."""
        of_classes = masses_above(codes.in_class_order(probabilities))
        scores = of_classes[np.arange(len(labels)), codes.places()[labels]]
        order = np.argsort(scores, kind="stable")
        return cls(labels[order], scores[order], units[order] / UNITS_PER_SAMPLE)

    def threshold(self, coverage: float, code: int | None = None) -> float:
        """The least threshold that holds the true classes of enough samples, of a class or all.

        Enough: such a share of these samples and one more, which the new sample may be.
        """
        which = slice(None) if code is None else self.codes == code
        scores, ends = self.scores[which], np.cumsum(self.weights[which])
        wanted = coverage * ((ends[-1] if len(ends) else 0.0) + 1.0) - 1e-9
        place = int(np.searchsorted(ends, wanted))
        return float(scores[place]) if place < len(scores) else np.inf


def masses_above(probabilities: Floats) -> Floats:
    """For each class of each row, the probability of all classes that are more probable.

    Of equally probable classes the first one counts as more probable.
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=1)
    above = np.cumsum(ordered, axis=1) - ordered
    above[:, 0] = 0.0
    result = np.empty_like(above)
    np.put_along_axis(result, order, above, axis=1)
    return result


@dataclass(frozen=True)
class LabelCalibration:
    """A calibration, and when it was found.

    Attributes
    ----------
    n_seen : int
        Number of samples that the core forest had seen.
    power, spread : float
        Probabilities are raised to this power; this share is spread evenly over the classes.
    scores : SetScores or None
        For sets of classes; None if nobody has asked for one.
    """

    n_seen: int
    power: float
    spread: float
    scores: SetScores | None = None

    @classmethod
    def of(
        cls, core: GuidedLabelCore, n_threads: int, codes: ClassCodes | None = None
    ) -> LabelCalibration:
        """The calibration of the samples stored now; with scores if codes are given."""
        votes = core.votes(n_threads)
        found = core.calibration_by(*votes, core.n_trees)
        scores = None
        if codes is not None:
            probabilities = core.probabilities_by(*votes, core.n_trees)
            scores = SetScores.of(probabilities, *votes[:2], codes)
        return cls(core.n_seen, *found, scores)

    @classmethod
    def in_file(cls, numbers: Any, n_seen: int) -> LabelCalibration | None:
        """That of a model file, whose forest has seen `n_seen`; `ValueError` if it is none."""
        match numbers:
            case None:
                return None
            case [int(seen), float(power), float(spread)] if (
                not isinstance(seen, bool)
                and 0 <= seen < n_seen
                and _POWERS[0] <= power <= _POWERS[1]
                and 0 <= spread <= 1
            ):
                return cls(seen, power, spread)
        raise ValueError(f"its calibration is {numbers!r}.")

    def numbers(self) -> list[Any]:
        """What `in_file` reads."""
        return [self.n_seen, self.power, self.spread]

    def is_current(self, core: GuidedLabelCore) -> bool:
        """Whether few of the samples have come since."""
        return core.n_seen - self.n_seen <= core.n_points // _LAG


class Refresh:
    """A calibration that is found in pieces, so that no prediction of a stream takes long.

    Samples may come between two pieces. They must not be forgotten.
    """

    def __init__(self) -> None:
        self._pieces: list[Votes] = []
        self._n = 0

    def advance(self, core: GuidedLabelCore) -> LabelCalibration | None:
        """Ask the trees about some more samples; the calibration if these were the last."""
        piece = core.votes(1, self._n, self._n + _PIECE)
        if self._pieces and piece[2].shape != (len(piece[0]), self._pieces[0][2].shape[1]):
            self._pieces, self._n = [], 0  # a label is new: begin again
            return None
        self._pieces.append(piece)
        self._n += _PIECE
        if len(piece[0]) == _PIECE:
            return None
        labels, units, votes, half = (
            np.concatenate(parts) for parts in zip(*self._pieces, strict=True)
        )
        found = core.calibration_by(labels, units, votes, half, core.n_trees)
        return LabelCalibration(core.n_seen, *found)


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
