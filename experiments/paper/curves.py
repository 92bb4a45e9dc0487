"""Means over the seeds: the curves that figures draw and that claims test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.paper.records import Record, select

N_BATCHES = 100  # the paper's mini-batches


@dataclass(frozen=True)
class Curve:
    """A method on a data set, over the fractions of the first pass, then the further passes.

    Every array has an entry per point of the curve; `deviation` is the standard deviation of the
    accuracy over the seeds.
    """

    data: str
    method: str
    fraction: NDArray
    n_passes: NDArray
    n_samples: NDArray
    accuracy: NDArray
    deviation: NDArray
    log_loss: NDArray
    seconds: NDArray  # as in `Record`
    depth: NDArray  # nan where there is none
    n_seeds: int

    def first_pass(self) -> NDArray:
        """Which points belong to the first pass over the data."""
        return self.n_passes == 1

    @property
    def last(self) -> int:
        """Index of the last point: all data, all passes."""
        return len(self.fraction) - 1

    def at(self, fraction: float, n_passes: int = 1) -> int:
        """Index of the point at a fraction of the data in a pass."""
        found = np.flatnonzero(np.isclose(self.fraction, fraction) & (self.n_passes == n_passes))
        if len(found) != 1:
            raise KeyError(f"{self.method} on {self.data} has no point at {fraction}, {n_passes}")
        return int(found[0])


def curve(records: Sequence[Record], data: str, method: str) -> Curve | None:
    """Mean over the seeds; None if the method was not run on the data set."""
    found = select(records, data=data, method=method)
    if not found:
        return None
    places = sorted({(record.n_passes, record.fraction) for record in found})
    groups = [
        [record for record in found if (record.n_passes, record.fraction) == place]
        for place in places
    ]

    def mean(field: str) -> NDArray:
        return np.array(
            [
                np.mean([np.nan if (v := getattr(r, field)) is None else v for r in group])
                for group in groups
            ]
        )

    return Curve(
        data,
        method,
        fraction=np.array([fraction for _, fraction in places]),
        n_passes=np.array([n_passes for n_passes, _ in places]),
        n_samples=mean("n_samples"),
        accuracy=mean("accuracy"),
        deviation=np.array([np.std([r.accuracy for r in group]) for group in groups]),
        log_loss=mean("log_loss"),
        seconds=mean("seconds"),
        depth=mean("depth"),
        n_seeds=max(len(group) for group in groups),
    )


def retrained_seconds(trained: Curve, n_batches: int = N_BATCHES) -> NDArray:
    """Time of a method that is retrained after every mini-batch, up to each point of its curve.

    Only trainings at the curve's fractions were timed; the times between them are interpolated
    linearly in the fraction, starting with 0 at no data.
    """
    steps = np.arange(1, n_batches + 1) / n_batches
    places = np.concatenate([[0.0], trained.fraction])
    times = np.concatenate([[0.0], trained.seconds])
    each = np.interp(steps, places, times)
    total = np.concatenate([[0.0], np.cumsum(each)])
    done = np.floor(trained.fraction * n_batches + 1e-9).astype(int)
    return total[done]


def exponent(n_samples: NDArray, seconds: NDArray, start: float = 0.1) -> float:
    """Slope of log time over log samples, from `start` of the largest number of samples on."""
    large = n_samples >= start * n_samples.max() * (1 - 1e-9)
    return float(np.polyfit(np.log(n_samples[large]), np.log(seconds[large]), 1)[0])


def fit_n_log_n(n_samples: NDArray, seconds: NDArray) -> tuple[float, float]:
    """Least-squares fit of time = fixed + factor n log n: the fixed part, and R²."""
    growth = n_samples * np.log(n_samples)
    _, fixed = np.polyfit(growth, seconds, 1)
    return float(fixed), r_squared(growth, seconds)


def r_squared(x: NDArray, y: NDArray) -> float:
    """Share of the variance of y that a straight line over x explains."""
    if np.ptp(y) == 0:
        return 1.0
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def depth_fit(of: Curve, start: float = 0.05) -> tuple[float, float, float]:
    """Straight line of the depth over log2 of the samples: slope, intercept, R².

    Fractions below `start` are left out: their trees have few nodes.
    """
    some = of.first_pass() & (of.fraction >= start) & np.isfinite(of.depth)
    doublings, depth = np.log2(of.n_samples[some]), of.depth[some]
    slope, intercept = np.polyfit(doublings, depth, 1)
    return float(slope), float(intercept), r_squared(doublings, depth)


def reliability(records: Sequence[Record], data: str, method: str) -> NDArray | None:
    """Number of rows, mean confidence and accuracy, per tenth of the confidence that has rows.

    Pools the last points of all seeds; None if there are none.
    """
    found = select(records, data=data, method=method)
    if not found:
        return None
    last = max((record.n_passes, record.fraction) for record in found)
    rows = [r.reliability for r in found if (r.n_passes, r.fraction) == last]
    n_rows, confidence, right = np.sum(np.array(rows, dtype=float), axis=0).T
    used = n_rows > 0
    return np.array([n_rows[used], confidence[used] / n_rows[used], right[used] / n_rows[used]])


def calibration_error(bins: NDArray) -> float:
    """Expected calibration error: mean distance between accuracy and confidence over the rows."""
    n_rows, confidence, accuracy = bins
    return float((n_rows * np.abs(accuracy - confidence)).sum() / n_rows.sum())
