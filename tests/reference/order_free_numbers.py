"""The order-free forest of numbers in plain Python. See `order_free_forest`."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from reference.order_free_forest import (
    MANY_DECIDING,
    MOST_DECIDING,
    Cut,
    Sample,
    along,
    as_point,
    circle,
    grow_trees,
    path_of,
    split,
    total_weights,
    weight,
)


class NumberJudge:
    """Which proposal is best for numbers: the best cut, or one on the feature that tells most."""

    few = 6  # proposals
    finalists = 32  # all of them

    def __init__(self, deciding: list[Sample]) -> None:
        self.deciding, self.total = deciding, weight(deciding)
        self.many = min(max(4 * len(deciding[0].x), 16), 32)
        self.mean = summed(s.weight * s.value for s in deciding) / self.total
        self.unit = 1.0  # deviations are divided by it
        self.squares = self.summed_squares()
        if not math.isfinite(self.squares * self.total * self.total):
            self.unit = 2.0**128
            self.squares = self.summed_squares()

    def summed_squares(self) -> float:
        deviations = ((s.weight, (s.value - self.mean) / self.unit) for s in self.deciding)
        return summed(weight * squared(deviation) for weight, deviation in deviations)

    def contrast(self) -> list[list[Sample]]:
        """Samples up to the mean of their numbers, and above it."""
        mean = summed(s.value for s in self.deciding) / len(self.deciding)
        above = [s for s in self.deciding if s.value > mean]
        return [[s for s in self.deciding if not s.value > mean], above]

    def gain(self, cut: Cut) -> float:
        """The share of the variance that a cut explains.

        Deviations are summed in the order of the circle if few decide or the cut is one of levels,
        which have no order, else in that of the feature.
        """
        if len(self.deciding) < MANY_DECIDING or cut.is_of_levels:
            left = split(self.deciding, cut)[0]
            return self.share(summed(self.deviation(s) for s in left), weight(left))
        ordered = along(self.deciding, cut.feature)
        missing = [s for s in ordered if s.x[cut.feature] is None]
        there = ordered[: len(ordered) - len(missing)]
        left = [s for s in there if s.x[cut.feature] <= cut.threshold]
        sums = [0.0]
        for s in ordered:
            sums.append(sums[-1] + self.deviation(s))
        if not cut.missing_left:
            return self.share(sums[len(left)], weight(left))
        sum_missing = sums[-1] - sums[len(there)]
        return self.share(sums[len(left)] + sum_missing, weight(left) + weight(missing))

    def deviation(self, sample: Sample) -> float:
        return sample.weight * ((sample.value - self.mean) / self.unit)

    def share(self, left: float, n: int) -> float:
        """The share for deviations of this sum and weight on the left."""
        if not self.squares > 0:
            return 0.0
        return left * left * self.total / (float(n) * float(self.total - n)) / self.squares

    def neighbours(self, feature: int) -> float:
        """The share of the variance that neighbours in the order of a feature have in common."""
        n = float(len(self.deciding))
        mean = summed(s.value for s in self.deciding) / n
        squares = summed(squared(s.value - mean) for s in self.deciding)
        values = [s.value for s in along(self.deciding, feature)]
        differences = summed(squared(b - a) for a, b in pairwise(values))
        return 1.0 - n * differences / (2.0 * squares * (n - 1.0)) if squares > 0 else 0.0

    def score(self, cut: Cut) -> float:
        """The greater of both, if many decide and the feature has an order."""
        if not self.squares > 0:
            return 0.0
        if len(self.deciding) < MANY_DECIDING or cut.is_of_levels:
            return self.gain(cut)
        return max(self.gain(cut), self.neighbours(cut.feature))


def summed(values) -> float:
    """A sum from left to right."""
    total = 0.0
    for value in values:
        total += value
    return total


def squared(value):
    """A square by one multiplication; a power may be rounded otherwise."""
    return value * value


def leaf_of(block: list[Sample]) -> tuple[float, float]:
    """Mean and variance of the numbers of a leaf; those of a large leaf are exact."""
    if len({s.word for s in block}) == 1:
        return block[0].value, 0.0
    total = weight(block)
    if len(block) <= MOST_DECIDING:
        mean = summed(s.weight * s.value for s in circle(block)) / total
        squares = summed(s.weight * squared(s.value - mean) for s in circle(block))
        return mean, squares / total
    weights = [Fraction(s.weight) for s in block]
    exact = sum(w * Fraction(s.value) for w, s in zip(weights, block))
    mean = exact / Fraction(total)
    squares = sum(w * squared(Fraction(s.value) - mean) for w, s in zip(weights, block))
    return float(exact) / total, float(squares / Fraction(total))


def moments(leaves: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Mean, mean variance within leaves and variance between leaves."""
    n, means = len(leaves), [mean for mean, _ in leaves]
    mean = means[0] if len(set(means)) == 1 else summed(means) / n
    between = summed(squared(m - mean) for m in means) / (n - 1) if n > 1 else 0.0
    return mean, summed(variance for _, variance in leaves) / n, between


class OrderFreeNumbers:
    """A forest of samples (x, number)."""

    def __init__(
        self, samples: Sequence[tuple[Sequence[float], float]], *, n_trees: int, seed: int,
        min_samples_split: int = 2, max_samples: float = 1.0, calibrates: bool = False,
        key_bits: int = 64, weights: Sequence[float] | None = None) -> None:  # fmt: skip
        numbers = [(as_point(x), y + 0.0) for x, y in samples]
        points = [(x, struct.unpack("<Q", struct.pack("<d", y))[0], y) for x, y in numbers]
        self.trees, self.left_out = grow_trees(
            total_weights(points, weights), NumberJudge, n_trees=n_trees, seed=seed,
            min_samples_split=min_samples_split, max_samples=max_samples, calibrates=calibrates,
            key_bits=key_bits, one_of=4, leaves_out=lambda tree: tree % 4 == 0)  # fmt: skip

    def predict(self, x: Sequence[float]) -> tuple[float, float, float]:
        """Moments of all trees that have samples."""
        point = as_point(x)
        return moments([leaf_of(path_of(root, point)[-1].block) for root in self.trees if root])

    def predict_left_out(self, x: Sequence[float], y: float) -> tuple[float, float, float, int]:
        """Moments of the trees that have left out a sample, and their number."""
        word = struct.unpack("<Q", struct.pack("<d", y + 0.0))[0]
        point = as_point(x)
        leaves = [
            leaf_of(path_of(root, point)[-1].block)
            for root, others in zip(self.trees, self.left_out)
            if root and (point, word) in others
        ]
        return (*moments(leaves), len(leaves)) if leaves else (math.nan, math.nan, math.nan, 0)
