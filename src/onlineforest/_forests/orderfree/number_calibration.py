"""How the numbers of samples spread around predictions of trees that have not learned them.

Must not know estimators, nor when they calibrate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import (
    LEAST_CALIBRATORS,
    LEAST_TREES_TO_CALIBRATE_NUMBERS,
    MOST_CALIBRATORS,
    SAMPLES_PER_CALIBRATOR_OF_NUMBERS,
    WEIGHT_OF_ONE,
    moments_of_leaves,
)
from onlineforest._forests.core import MOST_STOP_WEIGHT, Floats, NumberVotes, StopWeights
from onlineforest._forests.orderfree.calibration import Calibration, check_number, check_numbers

_PRIOR = 10  # weight of the mean of all samples, in trees
# Penalty of every positive stop weight, divided by the square of the number of calibrators: where
# they are few, a positive one must be much better than 0.
_PRIOR_OF_STOP = 64
_LEAST_SCALE = 0.05
_LARGEST_SHARE = 2.0  # limit of the share of deviations of levels
_LEAST_GAIN = 2.0  # log likelihood that they must add to count, as of two samples
_LARGEST = sys.float_info.max
_LARGE = 2.0**400  # numbers below it can be squared and added up, whatever their weights are


@dataclass(frozen=True)
class NumberCalibration(Calibration):
    """From what trees say about a row to the distribution of its number.

    The trees disagree, and the samples in their leaves differ. Both variances add up to one that is
    right up to a factor. Few trees know them badly, so both are drawn towards their mean over all
    left-out samples. The mean of k trees has an error of its own, which falls with k.

    Attributes
    ----------
    scale : float
        The variance of a number around the mean of many trees is `scale` times the variance.
    share : float
        The share of the variances of a row; the rest is that of the means.
    means : tuple of float
        The mean of both variances together and that of the variance between trees.
    errors : ndarray, sorted, or None
        The errors of left-out samples in predicted standard deviations. None: normal.
    ends : ndarray
        The weight of the errors up to each one.
    spread : float
        Their root mean square.
    stop_weight : int
        The trees predict with this stop weight, a stored weight: they enter no lighter node.
    level_share : float
        This share of how far the levels of a row deviate is added to the mean of the trees.
    strengths : tuple of float
        For each categorical feature, the number of samples at which a level counts half; 0 if it
        never counts.
    """

    fewest_trees: ClassVar[int] = LEAST_TREES_TO_CALIBRATE_NUMBERS
    samples_per_calibrator: ClassVar[int] = SAMPLES_PER_CALIBRATOR_OF_NUMBERS

    scale: float = 1.0
    share: float = 1.0
    means: tuple[float, float] = (0.0, 0.0)
    errors: Floats | None = None
    ends: Floats | None = None
    spread: float = 1.0
    stop_weight: int = 0
    level_share: float = 0.0
    strengths: tuple[float, ...] = ()

    @staticmethod
    def stops_of(votes: NumberVotes) -> StopWeights:
        return votes[2]

    @staticmethod
    def joined(pieces: Sequence[NumberVotes]) -> NumberVotes:
        numbers, weights, stops, leaves, deviations, strengths = zip(*pieces, strict=True)
        own = np.concatenate(numbers), np.concatenate(weights), stops[0], np.concatenate(leaves, 1)
        return *own, np.concatenate(deviations), strengths[0]

    @staticmethod
    def with_one_stop(votes: NumberVotes, k: int) -> NumberVotes:
        numbers, weights, stops, leaves, deviations, strengths = votes
        own = stops[k : k + 1], leaves[k : k + 1].copy()
        return numbers, weights, *own, deviations, strengths

    @staticmethod
    def losses(votes: NumberVotes) -> Floats:
        numbers, weights, stops, leaves, deviations, _ = votes
        counts = weights / WEIGHT_OF_ONE
        result = []
        for stop, of_stop in zip(stops.tolist(), leaves, strict=True):
            moments, n_trees = moments_of_leaves(of_stop)
            if not _are_many(counts, len(numbers)) or not n_trees.all():
                result.append(float(stop > 0))
                continue
            errors = numbers - moments[:, 0]
            errors -= _level_share(errors, deviations, counts) * deviations
            loss = root_mean_square(errors, counts)
            result.append(loss * (1.0 if stop == 0 else 1.0 + _PRIOR_OF_STOP / len(numbers) ** 2))
        return np.array(result)

    @classmethod
    def by(cls, votes: NumberVotes, n_trees: int, targets: Any) -> NumberCalibration:  # noqa: ARG003
        numbers, weights, stops, leaves, deviations, strengths = votes
        counts = weights / WEIGHT_OF_ONE
        moments, n_voters = moments_of_leaves(leaves[0])
        share = 0.0
        if _are_many(counts, len(numbers)) and n_voters.all():
            share = _level_share(numbers - moments[:, 0], deviations, counts)
        moments[:, 0] += share * deviations
        found = cls.of(moments, n_voters, numbers, counts)
        own = tuple(strengths.tolist()) if share > 0 else ()
        return replace(found, stop_weight=int(stops[0]), level_share=share, strengths=own)

    def plain(self) -> dict[str, Any]:
        ends = np.empty(0) if self.ends is None else self.ends
        units = np.diff(ends, prepend=0.0) * WEIGHT_OF_ONE
        return {
            "stop_weight": self.stop_weight,
            "scale": self.scale,
            "share": self.share,
            "means": list(self.means),
            "errors": [] if self.errors is None else self.errors.tolist(),
            "units": units.astype(np.int64).tolist(),
            "level_share": self.level_share,
            "strengths": list(self.strengths),
        }

    @classmethod
    def from_plain(cls, plain: Any) -> NumberCalibration:
        match plain:
            case {
                "stop_weight": int(stop_weight),
                "scale": float(scale),
                "share": float(share),
                "means": [float(together), float(apart)],
                "errors": list(errors),
                "units": list(units),
                "level_share": float(level_share),
                "strengths": list(strengths),
                **others,
            } if not others:
                check_number("level share", level_share, 0.0, _LARGEST_SHARE)
                check_numbers("strengths", strengths, float, 0.0, _LARGEST)
                check_numbers("stop weight", [stop_weight], int, 0, MOST_STOP_WEIGHT)
                check_number("scale", scale, _LEAST_SCALE, _LARGEST)
                check_number("share", share, 0.0, 1.0)
                check_numbers("means", [together, apart], float, 0.0, _LARGEST)
                if len(errors) != len(units) or len(errors) > MOST_CALIBRATORS:
                    raise ValueError(
                        f"its calibration has {len(errors)} errors and {len(units)} weights, must "
                        f"have as many of each, at most {MOST_CALIBRATORS}."
                    )
                check_numbers("errors", errors, float, -_LARGEST, _LARGEST)
                check_numbers("units", units, int, 1, 2**52)
                if errors != sorted(errors):
                    raise ValueError("the errors of its calibration do not increase.")
                levels = level_share, tuple(strengths)
                if not errors:
                    return cls(1.0, 1.0, (0.0, 0.0), None, None, 1.0, stop_weight, *levels)
                relative, weights = np.array(errors), np.array(units) / WEIGHT_OF_ONE
                spread = root_mean_square(relative, weights)
                means = together, apart
                ends = np.cumsum(weights)
                return cls(scale, share, means, relative, ends, spread, stop_weight, *levels)
        raise ValueError("its calibration cannot be read.")

    @classmethod
    def of(
        cls,
        moments: Floats,
        n_trees: NDArray[np.int64],
        values: Floats,
        weights: Floats,
    ) -> NumberCalibration:
        """The calibration by distinct left-out samples, of which two trees or more know nothing.

        A great weight does not make a sample many.
        """
        are_known = n_trees >= 2
        moments, n_trees, values = moments[are_known], n_trees[are_known], values[are_known]
        weights = weights[are_known]
        n = float(weights.sum())
        if not _are_many(weights, len(values)):
            return cls()
        errors = values - moments[:, 0]
        variances, between = moments[:, 1] + moments[:, 2], moments[:, 2]
        unit = _unit_of(errors, np.sqrt(variances))
        means = mean_of(variances, weights, unit * unit), mean_of(between, weights, unit * unit)
        k = exact_sum(n_trees.astype(np.float64), weights) / n
        share = k / (k + _PRIOR)
        variances, between = cls(share=share, means=means).variances(moments)
        explained = exact_sum(variances / unit / unit, weights)
        if not 0 < explained < math.inf:
            return cls()
        scaled = errors / unit
        unexplained = exact_sum(scaled * scaled - between / unit / unit / n_trees, weights)
        scale = min(max(unexplained / explained, _LEAST_SCALE), _LARGEST)
        deviations = cls(scale, share, means).deviations(moments, n_trees)
        if not deviations.all():  # the numbers are so small that their squares are 0
            return cls()
        relative = errors / deviations
        order = np.argsort(relative)
        relative, ends = relative[order], np.cumsum(weights[order])
        return cls(scale, share, means, relative, ends, root_mean_square(relative, weights[order]))

    def variances(self, moments: Floats) -> tuple[Floats, Floats]:
        """The variance of each row, and that between trees."""
        variances, between = moments[:, 1] + moments[:, 2], moments[:, 2]
        together, apart = self.means
        return (
            self.share * variances + (1 - self.share) * together,
            self.share * between + (1 - self.share) * apart,
        )

    def deviations(self, moments: Floats, n_trees: int | NDArray[np.int64]) -> Floats:
        """Predicted standard deviation of each number, before the errors are looked at."""
        variances, between = self.variances(moments)
        between = between / n_trees
        with np.errstate(over="ignore"):
            squares: Floats = self.scale * variances + between
        deviations = np.sqrt(squares)
        beyond = np.isinf(squares)
        if beyond.any():  # though their roots may be numbers
            explained = math.sqrt(self.scale) * np.sqrt(variances[beyond])
            deviations[beyond] = np.hypot(explained, np.sqrt(between[beyond]))
        return deviations

    @cached_property
    def how(self) -> tuple[int, float, Floats | None]:
        """How the core forest predicts: stop weight, share of levels, strengths."""
        strengths = np.array(self.strengths) if self.level_share > 0 else None
        return self.stop_weight, self.level_share, strengths

    @property
    def nbytes(self) -> int:
        """Memory of the errors in bytes."""
        return sum(0 if array is None else array.nbytes for array in (self.errors, self.ends))

    def std(self, moments: Floats, n_trees: int) -> Floats:
        """Standard deviation of each number."""
        with np.errstate(over="ignore"):
            return finite(self.spread * self.deviations(moments, n_trees))

    def quantile(self, level: float) -> float:
        """Quantile of the errors in predicted standard deviations."""
        normal = NormalDist()
        if self.errors is None or self.ends is None:
            return normal.inv_cdf(level)
        # As if each error were there as often as it counts.
        n = float(self.ends[-1])
        place = level * (n + 1) - 1
        if 0 <= place <= n - 1:
            below = min(int(place), max(math.ceil(n) - 2, 0))
            share = place - below
            at = np.searchsorted(self.ends, [below, below + 1], side="right")
            low, high = self.errors[np.minimum(at, len(self.errors) - 1)].tolist()
            return interpolated(low, high, share)
        # Beyond the errors seen, the tail is normal.
        is_below = place < 0
        last, edge = (self.errors[0], 1) if is_below else (self.errors[-1], n)
        beyond = normal.inv_cdf(level) - normal.inv_cdf(edge / (n + 1))
        beyond = min(beyond, 0.0) if is_below else max(beyond, 0.0)  # not by a rounding
        return max(-_LARGEST, min(float(last + self.spread * beyond), _LARGEST))


def _are_many(weights: Floats, n_distinct: int) -> bool:
    """Whether samples of these weights are enough for a calibration."""
    return min(float(weights.sum()), n_distinct) >= LEAST_CALIBRATORS


def _level_share(errors: Floats, deviations: Floats, weights: Floats) -> float:
    """The share of deviations that leaves the least squared error; 0 if the error falls too little.

    It must fall as much as the likelihood of two samples, as for labels.
    """
    if not deviations.any():
        return 0.0
    unit = _unit_of(errors, deviations)
    errors, deviations = errors / unit, deviations / unit
    squares = exact_sum(deviations * deviations, weights)
    if not squares > 0:
        return 0.0
    share = min(exact_sum(errors * deviations, weights) / squares, _LARGEST_SHARE)
    rests = errors - share * deviations
    before, after = (exact_sum(each * each, weights) for each in (errors, rests))
    falls = after * (1.0 + 2.0 * _LEAST_GAIN / len(errors)) < before
    return share if share > 0 and falls else 0.0


def interpolated(low: float, high: float, share: float) -> float:
    """The number that lies this share of the way from `low` to `high`.

    Never falls with the share, and stays between the two: roundings of ``low * (1 - share) + high *
    share`` do neither.
    """
    return min(low + (high - low) * share, high)


def finite(values: Floats) -> Floats:
    """Values with the largest numbers there are in place of infinities."""
    clipped: Floats = np.clip(values, -_LARGEST, _LARGEST)
    return clipped


def mean_of(values: Floats, weights: Floats, unit: float = 1.0) -> float:
    """The weighted mean of values that have finite sums if they are divided by the unit."""
    return exact_sum(values / unit, weights) / float(weights.sum()) * unit


def root_mean_square(values: Floats, weights: Floats) -> float:
    """The root of the weighted mean of squares."""
    unit = _unit_of(values)
    scaled = values / unit
    return math.sqrt(mean_of(scaled * scaled, weights)) * unit


def r2_of(predictions: Floats, values: Floats, weights: Floats) -> float:
    """R² of predictions, the same for a sample of weight 2 and for two copies, in any order.

    As scikit-learn's `r2_score`: if all values are equal, 1 if all predictions are right, else 0.
    """
    unit = _unit_of(predictions, values)
    values, errors = values / unit, (values - predictions) / unit
    deviations = values - mean_of(values, weights)
    unexplained = exact_sum(errors * errors, weights)
    total = exact_sum(deviations * deviations, weights)
    if total == 0:
        return float(unexplained == 0)
    return 1.0 - unexplained / total


def _unit_of(*arrays: Floats) -> float:
    """A power of two: squares of the numbers over it, times any weights, have a finite sum.

    1 unless some are large: a division by a power of two changes no bit of the significand.
    """
    largest = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    return 1.0 if largest < _LARGE else 2.0 ** min(math.frexp(largest)[1], 1023)


def exact_sum(values: Floats, weights: Floats) -> float:
    """The sum of values times weights, rounded once: it does not depend on the order.

    Weights have at most 52 bits. Halves of values and weights have exact products.
    """
    if (weights == 1).all():
        return math.fsum(values)
    high = (values.view(np.uint64) & np.uint64(0xFFFFFFFFFC000000)).view(np.float64)
    low = values - high
    top = np.floor(weights / 2.0**10) * 2.0**10  # weights are multiples of 2^-16
    rest = weights - top
    return math.fsum(np.concatenate([high * top, high * rest, low * top, low * rest]))
