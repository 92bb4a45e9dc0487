"""How the numbers of samples spread around predictions of trees that have not learned them.

A calibration is a function of a forest: it is computed when it is first needed and has no state of
its own. Must not know estimators.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import LEAST_CALIBRATORS
from onlineforest._forests.core import Floats

_PRIOR = 10  # weight of the mean of all samples, in trees
_LEAST_SCALE = 0.05
_LARGEST = sys.float_info.max
_LARGE = 2.0**400  # numbers below it can be squared and added up, whatever their weights are


@dataclass(frozen=True)
class Calibration:
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
    """

    scale: float = 1.0
    share: float = 1.0
    means: tuple[float, float] = (0.0, 0.0)
    errors: Floats | None = None
    ends: Floats | None = None
    spread: float = 1.0

    @classmethod
    def of(
        cls,
        moments: Floats,
        n_trees: NDArray[np.int64],
        values: Floats,
        weights: Floats,
        numbers: NDArray[np.int32],
    ) -> Calibration:
        """The calibration by left-out samples, of which two trees or more know nothing.

        `numbers` are those of the samples, equal for equal ones: many copies or a great weight do
        not make a sample many.
        """
        are_known = n_trees >= 2
        moments, n_trees, values = moments[are_known], n_trees[are_known], values[are_known]
        weights = weights[are_known]
        n = float(weights.sum())
        if min(n, len(np.unique(numbers[are_known]))) < LEAST_CALIBRATORS:
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
