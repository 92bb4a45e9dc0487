"""The order-free forest of numbers in plain Python. See `order_free_forest`."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reference.order_free_forest import (
    MANY_DECIDING,
    MOST_DECIDING,
    MOST_NARROW,
    Cut,
    Node,
    Point,
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

MOST_TERMS = 8  # features of a line
STRENGTH = 0.1  # strength of the ridge, for features of variance 1
MOST_DEVIATIONS = 2.0  # a feature is moved to within this distance of its mean


class Term(NamedTuple):
    """The part of a feature in a line."""

    feature: int
    low: float
    high: float
    centre: float
    slope: float


@dataclass(frozen=True)
class Line:
    """A linear function of some features, each moved into a range."""

    base: float
    least: float
    most: float
    terms: list[Term]

    def at(self, x: Point) -> float:
        """The value at a point; a missing value adds nothing."""
        total = self.base
        for feature, low, high, centre, slope in self.terms:
            value = x[feature]
            if value is not None:
                total += slope * (min(max(value, low), high) - centre)
        return min(max(total, self.least), self.most)


class Described(NamedTuple):
    """A feature of the samples that have it, and how well it goes with the numbers."""

    score: float
    feature: int
    mean: float
    deviation: float
    low: float
    high: float
    n: float


def describe(feature: int, deciding: list[Sample], deviations: list[float]) -> Described | None:
    """A numeric feature that varies and goes with the numbers."""
    pairs = [
        (float(s.weight), s.x[feature], deviation)
        for s, deviation in zip(deciding, deviations)
        if s.x[feature] is not None
    ]
    values = [x for _, x, _ in pairs]
    if len(set(values)) < 2:
        return None
    n = summed(w for w, _, _ in pairs)
    mean = summed(w * x for w, x, _ in pairs) / n
    squares = summed(w * squared(x - mean) for w, x, _ in pairs)
    products = summed(w * ((x - mean) * deviation) for w, x, deviation in pairs)
    score = products * products / squares
    if not score > 0:
        return None
    deviation = math.sqrt(squares / n)
    low = float(np.float32(max(min(values), mean - MOST_DEVIATIONS * deviation)))
    high = float(np.float32(min(max(values), mean + MOST_DEVIATIONS * deviation)))
    return Described(score, feature, mean, deviation, low, high, n)


def fit_line(deciding: list[Sample]) -> Line | None:
    """The ridge regression of the numbers, unless their mean predicts left-out ones as well."""
    least, most = min(s.value for s in deciding), max(s.value for s in deciding)
    if not most - least > 0:
        return None
    weights = [float(s.weight) for s in deciding]
    total = summed(weights)
    above = summed(w * (s.value - least) for w, s in zip(weights, deciding)) / total
    deviations = [(s.value - least - above) / (most - least) for s in deciding]
    numeric = [d for d, value in enumerate(deciding[0].x) if not isinstance(value, int)]
    described = [f for d in numeric if (f := describe(d, deciding, deviations))]
    chosen = sorted(described, key=lambda f: (-f.score, f.feature))[:MOST_TERMS]
    if not chosen:
        return None
    columns, centres = [], []
    for f in chosen:
        inside = [
            None if s.x[f.feature] is None else min(max(s.x[f.feature], f.low), f.high)
            for s in deciding
        ]
        centre = summed(w * x for w, x in zip(weights, inside) if x is not None) / f.n
        columns.append([0.0 if x is None else (x - centre) / f.deviation for x in inside])
        centres.append(centre)
    slopes, losses = ridge(columns, deviations, weights, total)
    plain = [d / (1.0 - w / total) for w, d in zip(weights, deviations)]
    if not losses < summed(w * squared(error) for w, error in zip(weights, plain)):
        return None
    terms = [
        Term(f.feature, f.low, f.high, centre, slope / f.deviation * (most - least))
        for f, centre, slope in zip(chosen, centres, slopes)
    ]
    return Line(least + above, least, most, terms)


def ridge(
    columns: list[list[float]], targets: list[float], weights: list[float], total: float
) -> tuple[list[float], float]:
    """The slopes, and the weighted sum of the squared errors of left-out samples."""
    n = len(columns)
    weighted = [[w * x for w, x in zip(weights, column)] for column in columns]
    right = [summed(x * y for x, y in zip(column, targets)) for column in weighted]
    factor = [
        [summed(x * y for x, y in zip(weighted[a], columns[b])) for b in range(n)] for a in range(n)
    ]
    for i in range(n):
        factor[i][i] += STRENGTH * total
        for j in range(i + 1):
            rest = subtracted(factor[i][j], (factor[i][k] * factor[j][k] for k in range(j)))
            factor[i][j] = math.sqrt(rest) if i == j else rest / factor[j][j]
    slopes = [0.0] * n
    for i in range(n):
        rest = subtracted(right[i], (factor[i][k] * slopes[k] for k in range(i)))
        slopes[i] = rest / factor[i][i]
    for i in reversed(range(n)):
        rest = subtracted(slopes[i], (factor[k][i] * slopes[k] for k in range(i + 1, n)))
        slopes[i] = rest / factor[i][i]
    loss = 0.0
    for i, (target, w) in enumerate(zip(targets, weights)):
        half: list[float] = []
        for k in range(n):
            rest = subtracted(columns[k][i], (factor[k][j] * half[j] for j in range(k)))
            half.append(rest / factor[k][k])
        error = subtracted(target, (slopes[k] * columns[k][i] for k in range(n)))
        leverage = summed(x * x for x in half)
        error = error / (1.0 - w * (1.0 / total + leverage))
        loss += w * (error * error)
    return slopes, loss


def subtracted(value: float, others) -> float:
    """A value less others, from left to right."""
    for other in others:
        value -= other
    return value


def rest_of(sample: Sample, line: Line | None) -> float:
    """The number of a sample less a line."""
    return sample.value if line is None else sample.value - line.at(sample.x)


def splits_rests(number: int, n_numeric: int) -> bool:
    """Whether the splits of a tree explain what lines leave of the numbers."""
    return (number + number // 4) % 2 == 1 and n_numeric <= MOST_NARROW


class NumberJudge:
    """Which proposal is best for numbers: the best cut, or one on the feature that tells most.

    A node of more than 64 samples gets a line. `number` is that of the tree.
    """

    few = 6  # proposals
    finalists = 32  # all of them

    def __init__(self, deciding: list[Sample], node: Node, *, number: int) -> None:
        if len(node.block) > MOST_DECIDING:
            node.line = fit_line(deciding)
        n_numeric = sum(not isinstance(value, int) for value in deciding[0].x)
        if splits_rests(number, n_numeric):
            deciding = [replace(s, value=rest_of(s, node.line)) for s in deciding]
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


def leaf_of(node: Node, point: Point) -> tuple[float, float]:
    """The mean at a point where a walk ends, and the variance.

    A node of more than 64 samples has a line of its own, others have that of their parent. Several
    samples of one number predict it. Other nodes add the mean of the rests to the line.
    """
    if has_no_line(node):
        return node.block[0].value, 0.0
    mean, variance = rests_of(node)
    return (mean if node.line is None else mean + node.line.at(point)), variance


def has_no_line(node: Node) -> bool:
    """Whether a leaf is of several samples of one number."""
    return len(node.block) > 1 and len({s.word for s in node.block}) == 1


def rests_of(node: Node) -> tuple[float, float]:
    """Mean and variance of what the line leaves of the numbers of a leaf."""
    if has_no_line(node):
        return node.block[0].value, 0.0
    return moments_of([replace(s, value=rest_of(s, node.line)) for s in node.block])


def moments_of(block: list[Sample]) -> tuple[float, float]:
    """Mean and variance of the values of a block; those of a large block are exact."""
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


def loss_of_stop(stop: float, rows: Sequence[tuple[float, float, float]]) -> float:
    """The loss of a stop weight: the root mean squared error.

    Given the number, the mean of the trees that leave it out, and the weight of each calibrator. A
    positive stop weight costs more, the fewer calibrators there are.
    """
    total = math.fsum(w for *_, w in rows)
    if min(len(rows), total) < 20:
        return float(stop > 0)
    mean_square = math.fsum(w * squared(y - mean) for y, mean, w in rows) / total
    return math.sqrt(mean_square) * (1.0 + (64 / len(rows) ** 2 if stop > 0 else 0.0))


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
            total_weights(points, weights),
            lambda number: partial(NumberJudge, number=number), n_trees=n_trees,
            seed=seed, min_samples_split=min_samples_split, max_samples=max_samples,
            calibrates=calibrates, key_bits=key_bits, one_of=4,
            leaves_out=lambda tree: tree % 4 == 0)  # fmt: skip

    def leaves(self, x: Sequence[float], stop: float = 0.0) -> list[tuple[float, float]]:
        """The mean and variance at the node where each tree ends that has samples."""
        point = as_point(x)
        return [leaf_of(path_of(root, point, stop)[-1], point) for root in self.trees if root]

    def predict(self, x: Sequence[float], stop: float = 0.0) -> tuple[float, float, float]:
        """Moments of all trees that have samples."""
        return moments(self.leaves(x, stop))

    def predict_left_out(
        self, x: Sequence[float], y: float, stop: float = 0.0
    ) -> tuple[float, float, float, int]:
        """Moments of the trees that have left out a sample, and their number."""
        word = struct.unpack("<Q", struct.pack("<d", y + 0.0))[0]
        point = as_point(x)
        leaves = [
            leaf_of(path_of(root, point, stop)[-1], point)
            for root, others in zip(self.trees, self.left_out)
            if root and (point, word) in others
        ]
        return (*moments(leaves), len(leaves)) if leaves else (math.nan, math.nan, math.nan, 0)
