"""Probabilities and sets of classes, calibrated by samples that some trees have left out.

Must not know estimators, nor when they calibrate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import (
    LARGEST_LEVEL_POWER,
    LARGEST_POWER,
    LARGEST_SPREAD,
    LEAST_POWER,
    LEAST_TREES_TO_CALIBRATE_LABELS,
    MOST_CALIBRATORS,
    SAMPLES_PER_CALIBRATOR_OF_LABELS,
    WEIGHT_OF_ONE,
    calibration_by,
    losses_of_stops,
    probabilities_by,
)
from onlineforest._forests.core import (
    MOST_STOP_WEIGHT,
    Floats,
    Hashes,
    LabelVotes,
    OrderFreeLabelCore,
    StopWeights,
)
from onlineforest._forests.orderfree.calibration import (
    ALL_CALIBRATORS,
    Calibration,
    Poll,
    check_number,
    check_numbers,
)
from onlineforest._forests.orderfree.classes import Classes

_MANY_LABELS = 500  # stop weights are asked about one by one


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
        cls, votes: LabelVotes, power: float, spread: float, level_power: float, classes: Classes
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


def _every_second(votes: LabelVotes) -> LabelVotes:
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
class LabelCalibration(Calibration):
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

    fewest_trees: ClassVar[int] = LEAST_TREES_TO_CALIBRATE_LABELS
    samples_per_calibrator: ClassVar[int] = SAMPLES_PER_CALIBRATOR_OF_LABELS

    @staticmethod
    def stops_of(votes: LabelVotes) -> StopWeights:
        return votes[3]

    @staticmethod
    def joined(pieces: Sequence[LabelVotes]) -> LabelVotes:
        held, _, _, stops, *_ = pieces[0]
        _, labels, weights, _, masses, half, evidence = zip(*pieces, strict=True)
        arrays = np.concatenate(labels), np.concatenate(weights), stops
        sums = np.concatenate(masses, axis=1), np.concatenate(half, axis=1)
        return held, *arrays, *sums, np.concatenate(evidence)

    @staticmethod
    def with_one_stop(votes: LabelVotes, k: int) -> LabelVotes:
        held, labels, weights, stops, masses, half, evidence = votes
        own = stops[k : k + 1], masses[k : k + 1].copy(), half[k : k + 1].copy()
        return held, labels, weights, *own, evidence

    @staticmethod
    def losses(votes: LabelVotes) -> Floats:
        return losses_of_stops(*votes)

    @classmethod
    def by(cls, votes: LabelVotes, n_trees: int, targets: Classes) -> LabelCalibration:
        power, power_of_voters, spread, level_power = calibration_by(*votes, n_trees)
        scores = SetScores.by(votes, power_of_voters, spread, level_power, targets)
        return cls(power, spread, int(votes[3][0]), level_power, scores)

    @classmethod
    def poll(
        cls, core: OrderFreeLabelCore, pieces: Sequence[tuple[int, int]] = (ALL_CALIBRATORS,)
    ) -> Poll:
        return Poll(cls, pieces, is_stepwise=core.n_labels > _MANY_LABELS)

    def plain(self) -> dict[str, Any]:
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
                check_number("power", power, LEAST_POWER, LARGEST_POWER)
                check_number("spread", spread, 0.0, LARGEST_SPREAD)
                level_power: Any = others.get("level_power", 0.0)
                check_numbers("level power", [level_power], float, 0.0, LARGEST_LEVEL_POWER)
                check_numbers("stop weight", [stop_weight], int, 0, MOST_STOP_WEIGHT)
                if not len(labels) == len(scores) == len(weights) <= MOST_CALIBRATORS:
                    raise ValueError(
                        f"its calibration has {len(scores)} scores of {len(labels)} labels and "
                        f"{len(weights)} weights, must have as many of each, at most "
                        f"{MOST_CALIBRATORS}."
                    )
                check_numbers("labels", labels, int, 0, 2**64 - 1)
                check_numbers("scores", scores, float, 0.0, 2.0)
                check_numbers("units", weights, int, 1, 2**52)
                if scores != sorted(scores):
                    raise ValueError("the scores of its calibration do not increase.")
                arrays = (
                    np.array(labels, np.uint64),
                    np.array(scores, float),
                    np.array(weights, int),
                )
                return cls(power, spread, stop_weight, level_power, SetScores(*arrays))
        raise ValueError("its calibration cannot be read.")


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
