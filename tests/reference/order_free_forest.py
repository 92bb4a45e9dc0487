"""The order-free forest in plain Python: the seed and the weighted samples define it alone.

The core must give equal trees and equal predictions, to the bit, whatever it learned and forgot.
Here is all that forests of labels and of numbers share, and the forest of labels;
`order_free_numbers` has the rest. A missing value is None. A value of a categorical feature is its
level, a whole number of 60 bits, given as an int; numbers are floats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

Point = tuple[float | int | None, ...]
Surrogate = tuple[int, float | int, bool]  # feature, threshold, is it reversed

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15
MOST_DECIDING = 64  # samples of a block that decide about its cut
MANY_DECIDING = 16  # blocks with at least 16 deciding samples get more proposals
ENOUGH_NEIGHBOURS = 32  # deciding samples, for the scores of labels
MOST_NARROW, MOST_SCREENED = 16, 4  # features: of rows that are not wide, and that a screen finds
ENOUGH_TO_SCREEN = 32  # deciding samples
MOST_SURROGATES = 4
FEATURE_DRAWS = 32  # draws of a feature before the words of all features are compared
SALT_DRAWS = 64  # draws of a salt that separates two levels
MASS_OF_NEIGHBOURS = 2**16  # numbers of neighbours are whole multiples of 1 / 2^16
UNIT = 2**31  # masses are whole multiples of 1 / UNIT
LEAST_SHARE = 2.0**-10  # a walk up ends below this share


def mix(word: int) -> int:
    """SplitMix64's finaliser."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def derive(seed: int, number: int) -> int:
    """The word with this number of a seed. Every use of a hash has a number of its own."""
    return mix((seed + GOLDEN * number) & MASK)


def float_bits(value: float) -> int:
    """The 32 bits of a float32 value."""
    return int(np.float32(value).view(np.uint32))


def bits_of(value: float | int) -> int:
    """The bits of a number, or a level or salt itself."""
    return value if isinstance(value, int) else float_bits(value)


def as_point(x: Sequence[float]) -> Point:
    """The float32 numbers of x, None for NaN; adding 0 turns -0 into 0. Levels stay as they are."""
    return tuple(value if isinstance(value, int) else as_number(value) for value in x)


def as_number(value: float) -> float | None:
    """A float32 number, None for NaN."""
    return None if math.isnan(value) else float(np.float32(value)) + 0.0


def hash_point(point: Point, seed: int) -> int:
    """Hash of the values that are there; each feature has a seed of its own."""
    seeds = [derive(mix(seed), 16 + d) for d in range(len(point))]
    words = (derive(s, bits_of(v)) for s, v in zip(seeds, point) if v is not None)
    return derive(seed + sum(words), 1)


def content(x: Point, word: int) -> tuple[Any, ...]:
    """The content of a sample, which breaks ties of hashes; missing values come last.

    The 30 low bits of a level come before its high ones.
    """
    values = [(v % 2**30, v >> 30) if isinstance(v, int) else (v is None, v or 0.0) for v in x]
    return tuple(values), word


@dataclass(frozen=True)
class Sample:
    """A distinct pair of a point and a value, as one tree ranks it."""

    x: Point
    word: int  # 64-bit hash of the value
    value: Any  # the output column of a label, or a number
    weight: float  # how often it counts
    key: int
    rank: int

    @property
    def place(self) -> int:
        """Place on the circle: the halves of the rank, swapped."""
        return (self.rank >> 32) | ((self.rank << 32) & MASK)


def is_left(value: float | int, threshold: float | int) -> bool:
    """The side of a number, or that of a level: the first bit of a word of both."""
    if isinstance(value, int):
        return derive(value, int(threshold)) >> 63 == 1
    return value <= threshold


class Cut(NamedTuple):
    """A cut. With an infinite threshold it asks whether the feature is missing.

    For a categorical feature, the threshold is a salt, given as an int.
    """

    feature: int = -1
    threshold: float | int = 0.0
    missing_left: bool = False
    surrogates: tuple[Surrogate, ...] = ()

    @property
    def is_of_levels(self) -> bool:
        return isinstance(self.threshold, int)

    def sends_left(self, x: Point) -> bool:
        value = x[self.feature]
        if value is not None:
            return is_left(value, self.threshold)
        for feature, threshold, is_reversed in self.surrogates:
            other = x[feature]
            if other is not None:
                return is_left(other, threshold) != is_reversed
        return self.missing_left


@dataclass(eq=False, repr=False)
class Node:
    """A node of a tree: a leaf if it has no children."""

    block: list[Sample]
    line: Any = None  # that predictions follow at or below the node; only of numbers
    cut: Cut = field(default_factory=Cut)
    left: Node | None = None
    right: Node | None = None


def weight(block: list[Sample]) -> float:
    """How often samples count together; weights are multiples of 2^-16, so the sum is exact."""
    return sum(sample.weight for sample in block)


def weigh(block: list[Sample]) -> dict[int, float]:
    """Weight of each label code of a block."""
    weights: dict[int, float] = {}
    for sample in block:
        weights[sample.value] = weights.get(sample.value, 0) + sample.weight
    return weights


def split(block: list[Sample], cut: Cut) -> tuple[list[Sample], list[Sample]]:
    """The left and the right part of a block; both keep its order."""
    parts: tuple[list[Sample], list[Sample]] = [], []
    for sample in block:
        parts[0 if cut.sends_left(sample.x) else 1].append(sample)
    return parts


def circle(samples: list[Sample]) -> list[Sample]:
    """Samples in the order of their places; content breaks ties."""
    return sorted(samples, key=lambda s: (s.place, content(s.x, s.word)))


def first(samples: list[Sample], start: int) -> Sample:
    """The first sample at or after a start; the samples are in the order of the circle."""
    return next((s for s in samples if s.place >= start), samples[0])


def choose_threshold(word: int, low: float, high: float) -> float:
    """A drawn float32 value with low <= value < high."""
    drawn = low + (derive(word, 3) >> 11) * 2.0**-53 * (high - low)
    drawn = drawn if drawn < high else low
    nearest = np.float32(drawn)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return float(nearest) if float(nearest) <= drawn else float(below)  # compared as doubles


def choose_salt(word: int, one: int, other: int) -> int:
    """The first drawn salt that separates two levels; the last one if none does."""
    for t in range(SALT_DRAWS):
        salt = derive(word, MASK - t) >> 34
        if is_left(one, salt) != is_left(other, salt):
            break
    return salt


def screen(groups: list[list[Sample]]) -> list[int]:
    """The numeric features of a wide row whose values the groups explain best.

    The score of a feature is the share of its variance that lies between groups, in float32.
    """
    rows = [[s.x for s in group] for group in groups]
    one_row = next(x for group in rows for x in group)
    numeric = [d for d, value in enumerate(one_row) if not isinstance(value, int)]
    if len(numeric) <= MOST_NARROW:
        return []
    zero, one = np.zeros(len(numeric), np.float32), np.float32(1)
    values = [
        np.array([[x[d] for d in numeric] for x in group], np.float32).reshape(-1, len(numeric))
        for group in rows
    ]
    low, high = np.fmin.reduce(np.vstack(values)), np.fmax.reduce(np.vstack(values))
    with np.errstate(all="ignore"):
        scale = one / (high - low)
        total, squares, n, between = zero, zero, zero, zero
        for group in values:
            of_group, n_here = zero, zero
            for x in group:
                scaled = np.where(np.isnan(x), zero, (x - low) * scale)
                n_here = n_here + np.where(np.isnan(x), zero, one)
                of_group, squares = of_group + scaled, squares + scaled * scaled
            total, n = total + of_group, n + n_here
            between = between + of_group * of_group / np.maximum(n_here, one)
        of_mean = total * total / np.maximum(n, one)
        scores = (between - of_mean) / (squares - of_mean)
    assert scores.dtype == np.float32
    found = sorted((-float(score), d) for score, d in zip(scores, numeric) if score > 0)
    return [d for _, d in found[:MOST_SCREENED]]


def propose(deciding: list[Sample], word: int, pair: bool, screened: Sequence[int] = ()) -> Cut:
    """A cut between the two samples of a drawn pair, or in the range of all deciding samples.

    Levels have no range: there, two of them are drawn as the samples of a pair are. If features
    are screened, one of them is drawn.
    """
    pool = deciding
    if pair:
        one = first(deciding, derive(word, 1))
        others = [sample for sample in deciding if sample.x != one.x]
        rivals = [sample for sample in others if sample.word != one.word]
        pool = [one, first(rivals or others, derive(word, 2))]
    n_features = len(pool[0].x)
    known = [{sample.x[d] for sample in pool} for d in range(n_features)]
    varying = [d for d in range(n_features) if len(known[d]) > 1]
    if pair:  # a feature that both have, if there is one
        varying = [d for d in varying if None not in known[d]] or varying
    draws = ((derive(word, 16 + t) >> 32) * n_features >> 32 for t in range(FEATURE_DRAWS))
    feature = -1 if screened else next((d for d in draws if d in varying), -1)
    if feature < 0:
        feature = min(screened or varying, key=lambda d: (derive(word, 64 + d), d))
    if isinstance(pool[0].x[feature], int):
        level = first(pool, derive(word, 1)).x[feature]
        other = first([s for s in pool if s.x[feature] != level], derive(word, 2)).x[feature]
        return Cut(feature, choose_salt(word, level, other))
    values = known[feature] - {None}
    asks = None in known[feature] and not pair and derive(word, 4) >> 61 == 0
    if len(values) == 1 or asks:
        return Cut(feature, math.inf)
    return Cut(feature, choose_threshold(word, min(values), max(values)))


class LabelJudge:
    """Which proposal is best for labels: the score adds a share of its gain and of its feature.

    The first is the share of the impurity that the cut removes. The second tells how much more
    often neighbours in the order of the feature have equal labels than in a random order.
    """

    few = 4  # proposals
    finalists = 8  # proposals of greatest gain

    def __init__(self, deciding: list[Sample], node: Node) -> None:
        self.deciding = deciding
        lacks_value = any(None in sample.x for sample in deciding)
        has_levels = any(isinstance(value, int) for value in deciding[0].x)
        self.many = 64 if lacks_value else 32 if has_levels else 16
        self.n = len(deciding)
        self.n_squares = sum(n * n for n in Counter(s.value for s in deciding).values())

    def contrast(self) -> list[list[Sample]]:
        """Groups of samples that cuts should tell apart."""
        labels = dict.fromkeys(s.value for s in self.deciding)
        return [[s for s in self.deciding if s.value == label] for label in labels]

    def gain(self, cut: Cut) -> float:
        """Sum over both sides of the squared label weights divided by the weight."""
        sides = [weigh(side).values() for side in split(self.deciding, cut)]
        left, right = (float(sum(w * w for w in side)) / float(sum(side)) for side in sides)
        return left + right

    def neighbours(self, feature: int) -> float:
        """1 minus the differing neighbours as a share of those in a random order."""
        differing = self.differing(feature) / MASS_OF_NEIGHBOURS
        return 1.0 - differing * self.n / (self.n * self.n - self.n_squares)

    def differing(self, feature: int) -> int:
        """The expected number of differing neighbours, each part rounded down.

        Equal values are in random order. Levels are, too, and are independent of each other.
        """
        runs = [
            Counter(s.value for s in run)
            for _, run in groupby(along(self.deciding, feature), lambda s: s.x[feature])
        ]
        within = [
            (n * n - sum(c * c for c in run.values()), n) for run in runs if (n := run.total())
        ]
        if isinstance(self.deciding[0].x[feature], int):
            between = [(self.n * self.n - self.n_squares, self.n * (self.n - 1))] * (len(runs) - 1)
        else:
            between = [
                (one.total() * other.total() - sum(one[k] * other[k] for k in one),
                 one.total() * other.total())
                for one, other in pairwise(runs)
            ]  # fmt: skip
        return sum(part * (2**32 // whole) >> 16 for part, whole in within + between)

    def score(self, cut: Cut) -> float:
        """The share of the gain and half the share of the neighbours, if many decide."""
        if self.n < ENOUGH_NEIGHBOURS or self.n_squares == self.n**2:
            return 0.0
        total = float(weight(self.deciding))
        squares = float(sum(w * w for w in weigh(self.deciding).values()))
        gain = (self.gain(cut) * total - squares) / (total * total - squares)
        return gain + 0.5 * self.neighbours(cut.feature)


def along(block: list[Sample], feature: int) -> list[Sample]:
    """Samples by their value of a feature; ties as they are, missing values last."""
    return sorted(block, key=lambda s: (s.x[feature] is None, s.x[feature] or 0.0))


def choose_cut(node: Node, seed: int, judges: Any) -> Cut:
    """The finalist of greatest score; of equal ones that of greatest gain, then the first one."""
    block = node.block
    deciding = block[:MOST_DECIDING]
    if all(sample.x == deciding[0].x for sample in deciding):
        deciding[-1] = next(sample for sample in block if sample.x != deciding[0].x)
    deciding = circle(deciding)
    judge = judges(deciding, node)
    n_proposals = judge.many if len(deciding) >= MANY_DECIDING else judge.few
    screened = screen(judge.contrast()) if len(deciding) >= ENOUGH_TO_SCREEN else []
    cuts = [
        propose(deciding, derive(seed, 8 + q), q % 2 == 0, screened if q % 4 == 1 else [])
        for q in range(n_proposals)
    ]
    cuts = [with_side(deciding, cut, judge) for cut in cuts]
    finalists = sorted(cuts, key=judge.gain, reverse=True)[: judge.finalists]  # stable
    best = max(finalists, key=judge.score)
    if best.threshold == math.inf:
        return best
    if any(s.x[best.feature] is None for s in deciding):
        return best._replace(surrogates=choose_surrogates(deciding, cuts, best))
    larger = 2 * weight(split(deciding, best)[0]) >= weight(deciding)
    return best._replace(missing_left=larger)


def choose_surrogates(deciding: list[Sample], cuts: list[Cut], best: Cut) -> tuple[Surrogate, ...]:
    """The proposals on other features that agree most with the best one, or disagree most.

    Four more samples count for each, of which it sends two the right way.
    """
    known = [s for s in deciding if s.x[best.feature] is not None]
    n_left = sum(best.sends_left(s.x) for s in known)
    larger = Fraction(max(n_left, len(known) - n_left), len(known))
    found: list[tuple[Fraction, Surrogate]] = []
    for cut in cuts:
        if cut.feature == best.feature or cut.threshold == math.inf:
            continue
        both = [s for s in deciding if None not in (s.x[cut.feature], s.x[best.feature])]
        n_same = sum(best.sends_left(s.x) == cut.sends_left(s.x) for s in both)
        share = Fraction(max(n_same, len(both) - n_same) + 2, len(both) + 4)
        if share > larger:
            surrogate = (cut.feature, cut.threshold, n_same < len(both) - n_same)
            found.append((share, surrogate))
    chosen: list[Surrogate] = []
    for _, surrogate in sorted(found, key=lambda pair: -pair[0]):  # stable
        if len(chosen) < MOST_SURROGATES and surrogate[0] not in [s[0] for s in chosen]:
            chosen.append(surrogate)
    return tuple(chosen)


def with_side(deciding: list[Sample], cut: Cut, judge: Any) -> Cut:
    """The cut with samples that lack its feature on the better side, on a tie left."""
    if cut.threshold == math.inf or all(s.x[cut.feature] is not None for s in deciding):
        return cut
    with_left = cut._replace(missing_left=True)
    return with_left if judge.gain(with_left) >= judge.gain(cut) else cut


def grow(block: list[Sample], seed: int, min_samples_split: int, judges: Any) -> Node | None:
    """The tree of a block in rank order; None if the block is empty."""
    root = Node(block)
    stack = [(root, seed)]
    while stack:
        node, seed = stack.pop()
        block = node.block
        light = weight(block) < min_samples_split
        if light or len({s.word for s in block}) < 2 or len({s.x for s in block}) == 1:
            continue
        node.cut = choose_cut(node, seed, judges)
        node.left, node.right = (Node(part, node.line) for part in split(block, node.cut))
        stack += [(node.left, derive(seed, 1)), (node.right, derive(seed, 2))]
    return root if root.block else None


def path_of(root: Node | None, point: Point, stop: float = 0.0) -> list[Node]:
    """The nodes from the root to the leaf of a point; the first lighter than `stop` ends it."""
    path, node = [], root
    while node is not None:  # a leaf has no children
        path.append(node)
        node = node.left if node.left is None or node.cut.sends_left(point) else node.right
        if node is not None and weight(node.block) < stop:
            break
    return path


def total_weights(
    samples: Sequence[tuple[Point, int, Any]], weights: Sequence[float] | None
) -> dict[tuple[Point, int, Any], float]:
    """The weight of each distinct sample: that of all equal ones."""
    totals: Counter[tuple[Point, int, Any]] = Counter()
    for sample, times in zip(samples, [1] * len(samples) if weights is None else weights):
        totals[sample] += times
    return dict(totals)


def grow_trees(
    weights: dict[tuple[Point, int, Any], float], judges: Any, *, n_trees: int, seed: int,
    min_samples_split: int, max_samples: float, calibrates: bool, key_bits: int, one_of: int,
    leaves_out: Callable[[int], bool]
) -> tuple[list[Node | None], list[set[tuple[Point, int]]]]:  # fmt: skip
    """The trees of samples (x, word, value), and the samples that each tree leaves out.

    One of `one_of` samples calibrates, while they are few; trees that leave them out are told by
    their numbers. `judges(number)` makes the judges of a tree.
    """
    x_hashes = {x: hash_point(x, seed) for x, _, _ in weights}
    keys = {
        (x, word): derive(x_hashes[x] ^ mix(seed ^ word), 2) & (2**key_bits - 1)
        for x, word, _ in weights
    }
    n = min(len(keys) // one_of, 256 + len(keys) // 32, 2048) if calibrates else 0
    calibrating = set(sorted(keys, key=lambda sample: (keys[sample], content(*sample)))[:n])
    trees, left_out = [], []
    for number in range(n_trees):
        tree_seed = derive(mix(seed ^ GOLDEN), number)
        block, others = [], set()
        for (x, word, value), times in weights.items():
            key = keys[x, word]
            is_out = mix(x_hashes[x] ^ derive(tree_seed, 2)) >= math.floor(max_samples * 2.0**64)
            if is_out or (leaves_out(number) and (x, word) in calibrating):
                others.add((x, word))
            else:
                rank = mix(key ^ derive(tree_seed, 1))
                block.append(Sample(x, word, value, times, key, rank))
        block.sort(key=lambda sample: (sample.rank, content(sample.x, sample.word)))
        trees.append(grow(block, derive(tree_seed, 3), min_samples_split, judges(number)))
        left_out.append(others)
    return trees, left_out


def is_left_out_voter(number: int) -> bool:
    """Whether a tree of labels leaves out the calibrators."""
    return number % 2 == 0 if number < 10 else number % 4 == 0


class OrderFreeForest:
    """A forest of samples (x, label hash, label code); `declared` codes are known without any."""

    def __init__(
        self, samples: Sequence[tuple[Sequence[float], int, int]], *, n_trees: int, seed: int,
        n_codes: int, declared: Collection[int] = (), min_samples_split: int = 2,
        max_samples: float = 1.0, calibrates: bool = False, discount: float = 0.2,
        key_bits: int = 64, weights: Sequence[float] | None = None) -> None:  # fmt: skip
        self.discount, self.n_codes = discount, n_codes
        points = [(as_point(x), label, code) for x, label, code in samples]
        self.known = {code for _, _, code in points} | set(declared)
        self.trees, self.left_out = grow_trees(
            total_weights(points, weights), lambda _: LabelJudge, n_trees=n_trees, seed=seed,
            min_samples_split=min_samples_split,
            max_samples=max_samples, calibrates=calibrates, key_bits=key_bits, one_of=8,
            leaves_out=is_left_out_voter)  # fmt: skip

    def masses(
        self,
        x: Sequence[float],
        trees: Sequence[Node | None] | None = None,
        stop: float = 0.0,
    ) -> tuple[list[int], int]:
        """Mass of each label code and the rest, added over all trees or some."""
        point, masses, rest = as_point(x), [0] * self.n_codes, 0
        for root in self.trees if trees is None else trees:
            share = 1.0
            for node in reversed(path_of(root, point, stop)):
                counts = weigh(node.block)
                total = sum(counts.values())
                for code, weight in counts.items():
                    mass = share * (max(weight - self.discount, 0.0) / total)
                    masses[code] += math.floor(mass * UNIT + 0.5)
                light = [weight for weight in counts.values() if weight < self.discount]
                taken = self.discount * (len(counts) - len(light)) + sum(light)
                share = share * (taken / total)
                if share < LEAST_SHARE:
                    break
            rest += math.floor(share * UNIT + 0.5)
        return masses, rest

    def predict_proba(self, x: Sequence[float], stop: float = 0.0) -> list[float]:
        """Probability of each label code: 0 where the label is neither held nor declared."""
        masses, rest = self.masses(x, stop=stop)
        proba = [(mass + rest / len(self.known)) / (sum(masses) + rest) for mass in masses]
        return [p if code in self.known else 0.0 for code, p in enumerate(proba)]


def calibrated(proba: Sequence[float], power: float, spread: float) -> list[float]:
    """Probabilities raised to a power; a share is spread evenly over the labels."""
    raised = [p**power for p in proba]
    return [(1 - spread) * r / sum(raised) + spread / len(raised) for r in raised]


Rows = Sequence[tuple[Sequence[float], int, float]]  # probabilities, the true place, weight


def loss_of(power: float, rows: Rows, spread: float) -> float:
    """The log loss of calibrated rows, and a penalty that draws the power towards 1."""
    losses = (
        -weight * math.log(calibrated(proba, power, spread)[true]) for proba, true, weight in rows
    )
    return math.fsum(losses) + 4 * math.log(power) ** 2 / 2


def best_power(rows: Rows, spread: float, n: int = 64) -> float:
    """The power of least loss on rows, among many: `n` from one number to its double."""
    powers = (2 ** (step / n) for step in range(-3 * n, 5 * n + 1))
    return min(powers, key=lambda power: loss_of(power, rows, spread))


def stop_weights(total: float) -> list[float]:
    """The stop weights that a forest of this total weight may choose."""
    weights = [0.0]
    while 10 * 2 ** (len(weights) - 1) <= total / 10:
        weights.append(10.0 * 2 ** (len(weights) - 1))
    return weights


def loss_of_stop(stop: float, rows: Rows) -> float:
    """The loss of a stop weight, given all calibrators in the order of keys.

    Every second one counts. A positive stop weight costs more, the fewer count. If fewer than 4
    have other labels than the most frequent one, nothing else counts.
    """
    labels = Counter(true for _, true, _ in rows[::2])
    if labels.total() - max(labels.values()) < 4:
        return 256 / len(rows[::2]) if stop > 0 else 0.0
    spread = 1 / (len(rows) + 2)
    penalty = 256 / len(rows[::2]) if stop > 0 else 0.0
    return penalty + loss_of(best_power(rows[::2], spread, 8), rows[::2], spread)


def best_stop(stops: Sequence[float], losses: Sequence[float]) -> float:
    """The best of at least 64, unless this is the least of these: then the best of all."""
    large = [(loss, stop) for loss, stop in zip(losses, stops) if stop >= 64]
    if large and min(large) != large[0]:
        return min(large)[1]
    return min(zip(losses, stops))[1]
