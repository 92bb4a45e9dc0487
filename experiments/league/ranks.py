"""Mean ranks of models over streams, and which differences chance may explain (Demšar, 2006)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, studentized_range

LEVEL = 0.05


def mean_ranks(losses: ArrayLike) -> NDArray[np.float64]:
    """The mean rank of each column over the rows, 1: the least loss. NaN: failed, so last."""
    table = np.asarray(losses, dtype=np.float64)
    ranks = rankdata(np.where(np.isnan(table), np.inf, table), axis=1)
    return np.asarray(ranks.mean(axis=0))


def critical_difference(n_models: int, n_streams: int, level: float = LEVEL) -> float:
    """The difference of mean ranks that Nemenyi's test calls significant."""
    q = studentized_range.ppf(1 - level, n_models, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_models * (n_models + 1) / (6 * n_streams)))


def groups(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """First and last of each largest group of models that do not differ; ranks must be sorted."""
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
