"""How the numbers of samples spread around predictions of trees that have not learned them.

A calibration is a function of a forest: it is computed when it is first needed and has no state of
its own. Must not know estimators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from onlineforest._models.core import Floats

LEAST_TREES = 5  # so that two of them leave out the samples that calibrate
_FEWEST = 20  # left-out samples
_PRIOR = 10  # the mean of all samples counts as much as so many trees
_LEAST_SCALE = 0.05


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
        cls, moments: Floats, n_trees: NDArray[np.int64], values: Floats, weights: Floats
    ) -> Calibration:
        """The calibration by left-out samples, of which two trees or more know nothing."""
        are_known = n_trees >= 2
        moments, n_trees, values = moments[are_known], n_trees[are_known], values[are_known]
        weights = weights[are_known]
        n = float(weights.sum())
        if n < _FEWEST:
            return cls()
        errors = values - moments[:, 0]
        variances, between = moments[:, 1] + moments[:, 2], moments[:, 2]
        means = exact_sum(variances, weights) / n, exact_sum(between, weights) / n
        k = exact_sum(n_trees.astype(np.float64), weights) / n
        share = k / (k + _PRIOR)
        variances, between = cls(share=share, means=means).variances(moments)
        explained = exact_sum(variances, weights)
        if not 0 < explained < math.inf:
            return cls()
        unexplained = exact_sum(errors * errors - between / n_trees, weights)
        scale = max(unexplained / explained, _LEAST_SCALE)
        relative = errors / cls(scale, share, means).deviations(moments, n_trees)
        order = np.argsort(relative)
        relative, ends = relative[order], np.cumsum(weights[order])
        spread = math.sqrt(exact_sum(relative * relative, weights[order]) / n)
        return cls(scale, share, means, relative, ends, spread)

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
        return np.sqrt(self.scale * variances + between / n_trees)

    @property
    def nbytes(self) -> int:
        """Memory of the errors in bytes."""
        return sum(0 if array is None else array.nbytes for array in (self.errors, self.ends))

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
            low, high = self.errors[np.minimum(at, len(self.errors) - 1)]
            return float(low * (1 - share) + high * share)
        # Beyond the errors seen, the tail is normal.
        last, edge = (self.errors[0], 1) if place < 0 else (self.errors[-1], n)
        beyond = normal.inv_cdf(level) - normal.inv_cdf(edge / (n + 1))
        return float(last + self.spread * beyond)


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
