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
    spread : float
        Their root mean square.
    """

    scale: float = 1.0
    share: float = 1.0
    means: tuple[float, float] = (0.0, 0.0)
    errors: Floats | None = None
    spread: float = 1.0

    @classmethod
    def of(cls, moments: Floats, n_trees: NDArray[np.int64], values: Floats) -> Calibration:
        """The calibration by left-out samples, of which two trees or more know nothing."""
        are_known = n_trees >= 2
        n = int(are_known.sum())
        if n < _FEWEST:
            return cls()
        moments, n_trees, values = moments[are_known], n_trees[are_known], values[are_known]
        errors = values - moments[:, 0]
        # Exact sums, which do not depend on the order of samples.
        means = math.fsum(moments[:, 1] + moments[:, 2]) / n, math.fsum(moments[:, 2]) / n
        k = int(n_trees.sum()) / n
        share = k / (k + _PRIOR)
        variances, between = cls(share=share, means=means).variances(moments)
        explained = math.fsum(variances)
        if not explained > 0:
            return cls()
        scale = max(math.fsum(errors * errors - between / n_trees) / explained, _LEAST_SCALE)
        deviations = cls(scale, share, means).deviations(moments, n_trees)
        relative = np.sort(errors / deviations)
        spread = math.sqrt(math.fsum(relative * relative) / n)
        return cls(scale, share, means, relative, spread)

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

    def quantile(self, level: float) -> float:
        """Quantile of the errors in predicted standard deviations."""
        normal = NormalDist()
        if self.errors is None:
            return normal.inv_cdf(level)
        n = len(self.errors)
        place = level * (n + 1) - 1
        if 0 <= place <= n - 1:
            below = min(int(place), n - 2)
            share = place - below
            return float(self.errors[below] * (1 - share) + self.errors[below + 1] * share)
        # Beyond the errors seen, the tail is normal.
        last, edge = (self.errors[0], 1) if place < 0 else (self.errors[-1], n)
        beyond = normal.inv_cdf(level) - normal.inv_cdf(edge / (n + 1))
        return float(last + self.spread * beyond)
