"""The order-free forest in plain Python: the seed and the weighted samples define it alone.

The core must give equal trees and equal predictions, to the bit, whatever it learned and forgot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15
MOST_DECIDING = 64  # samples of a block that decide about its cut
FEW_PROPOSALS, MANY_PROPOSALS = 4, 16  # many if at least so many samples decide
FEATURE_DRAWS = 32  # draws of a feature before the words of all features are compared
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


def as_point(x: Sequence[float]) -> tuple[float, ...]:
    """The float32 values of x; adding 0 turns -0 into 0."""
    return tuple(float(np.float32(value)) + 0.0 for value in x)


def hash_point(point: tuple[float, ...], seed: int) -> int:
    """Hash of a point; each feature has a seed of its own."""
    seeds = [derive(mix(seed), 16 + d) for d in range(len(point))]
    return derive(seed + sum(derive(s, float_bits(v)) for s, v in zip(seeds, point)), 1)


@dataclass(frozen=True)
class Sample:
    """A distinct pair of a point and a label, as one tree ranks it."""

    x: tuple[float, ...]
    label: int  # 64-bit hash of the label
    code: int  # output column of the label
    weight: int  # how many times it is held
    rank: int

    @property
    def place(self) -> int:
        """Place on the circle: the halves of the rank, swapped."""
        return (self.rank >> 32) | ((self.rank << 32) & MASK)


@dataclass(eq=False, repr=False)
class Node:
    """A node of a tree: a leaf if its feature is -1."""

    counts: dict[int, int]  # weight of each label code
    feature: int = -1
    threshold: float = 0.0
    left: Node | None = None  # x[feature] <= threshold
    right: Node | None = None


def weigh(block: list[Sample]) -> dict[int, int]:
    """Weight of each label code of a block."""
    codes = {sample.code for sample in block}
    return {code: sum(s.weight for s in block if s.code == code) for code in codes}


def split(block: list[Sample], feature: int, threshold: float) -> tuple[list[Sample], list[Sample]]:
    """The left and the right part of a block; both keep its order."""
    left = [sample for sample in block if sample.x[feature] <= threshold]
    return left, [sample for sample in block if sample.x[feature] > threshold]


def first(samples: list[Sample], start: int) -> Sample:
    """The first sample at or after a start on the circle; content breaks ties."""
    return min(samples, key=lambda s: (s.place < start, s.place, s.x, s.label))


def choose_threshold(word: int, low: float, high: float) -> float:
    """A drawn float32 value with low <= value < high."""
    drawn = low + (derive(word, 3) >> 11) * 2.0**-53 * (high - low)
    drawn = drawn if drawn < high else low
    nearest = np.float32(drawn)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return float(nearest) if float(nearest) <= drawn else float(below)  # compared as doubles


def propose(deciding: list[Sample], word: int, pair: bool) -> tuple[int, float]:
    """A cut between the two samples of a drawn pair, or in the range of all deciding samples."""
    pool = deciding
    if pair:
        one = first(deciding, derive(word, 1))
        others = [sample for sample in deciding if sample.x != one.x]
        rivals = [sample for sample in others if sample.label != one.label]
        pool = [one, first(rivals or others, derive(word, 2))]
    n_features = len(pool[0].x)
    varying = [d for d in range(n_features) if len({sample.x[d] for sample in pool}) > 1]
    draws = [(derive(word, 16 + t) >> 32) * n_features >> 32 for t in range(FEATURE_DRAWS)]
    least = min(varying, key=lambda d: (derive(word, 64 + d), d))
    feature = next((d for d in draws if d in varying), least)
    values = [sample.x[feature] for sample in pool]
    return feature, choose_threshold(word, min(values), max(values))


def score(deciding: list[Sample], cut: tuple[int, float]) -> float:
    """Sum over both sides of the squared label weights divided by the weight."""
    sides = [weigh(side).values() for side in split(deciding, *cut)]
    left, right = (float(sum(w * w for w in side)) / float(sum(side)) for side in sides)
    return left + right


def choose_cut(block: list[Sample], seed: int) -> tuple[int, float]:
    """The proposal of greatest score; `max` keeps the first one on ties."""
    deciding = block[:MOST_DECIDING]
    if all(sample.x == deciding[0].x for sample in deciding):
        deciding[-1] = next(sample for sample in block if sample.x != deciding[0].x)
    n_proposals = MANY_PROPOSALS if len(deciding) >= MANY_PROPOSALS else FEW_PROPOSALS
    cuts = [propose(deciding, derive(seed, 8 + q), pair=q % 2 == 0) for q in range(n_proposals)]
    return max(cuts, key=lambda cut: score(deciding, cut))


def grow(block: list[Sample], seed: int, min_samples_split: int) -> Node | None:
    """The tree of a block in rank order; None if the block is empty."""
    root = Node(weigh(block))
    stack = [(root, block, seed)]
    while stack:
        node, block, seed = stack.pop()
        light = sum(node.counts.values()) < min_samples_split
        if light or len(node.counts) < 2 or len({sample.x for sample in block}) == 1:
            continue
        node.feature, node.threshold = choose_cut(block, seed)
        left, right = split(block, node.feature, node.threshold)
        node.left, node.right = Node(weigh(left)), Node(weigh(right))
        stack += [(node.left, left, derive(seed, 1)), (node.right, right, derive(seed, 2))]
    return root if root.counts else None


class OrderFreeForest:
    """A forest of samples (x, label hash, label code); `declared` codes are known without any."""

    def __init__(
        self, samples: Sequence[tuple[Sequence[float], int, int]], *, n_trees: int, seed: int,
        n_codes: int, declared: Collection[int] = (), min_samples_split: int = 2,
        max_samples: float = 1.0, discount: float = 0.2, key_bits: int = 64) -> None:  # fmt: skip
        self.discount, self.n_codes, self.trees = discount, n_codes, []
        weights = Counter((as_point(x), label, code) for x, label, code in samples)
        self.known = {code for _, _, code in weights} | set(declared)
        x_hashes = {x: hash_point(x, seed) for x, _, _ in weights}
        for tree_seed in (derive(mix(seed ^ GOLDEN), number) for number in range(n_trees)):
            block = []
            for (x, label, code), weight in weights.items():
                key = derive(x_hashes[x] ^ mix(seed ^ label), 2) & (2**key_bits - 1)
                rank = mix(key ^ derive(tree_seed, 1))
                if mix(x_hashes[x] ^ derive(tree_seed, 2)) < math.floor(max_samples * 2.0**64):
                    block.append(Sample(x, label, code, weight, rank))
            block.sort(key=lambda sample: (sample.rank, sample.x, sample.label))
            self.trees.append(grow(block, derive(tree_seed, 3), min_samples_split))

    def masses(self, x: Sequence[float]) -> tuple[list[int], int]:
        """Mass of each label code and the rest, added over the trees."""
        point, masses, rest = as_point(x), [0] * self.n_codes, 0
        for node in self.trees:
            path, share = [], 1.0
            while node is not None:  # a leaf has no children
                path.append(node)
                node = node.left if point[node.feature] <= node.threshold else node.right
            for node in reversed(path):
                total = sum(node.counts.values())
                for code, weight in node.counts.items():
                    mass = share * ((weight - self.discount) / total)
                    masses[code] += math.floor(mass * UNIT + 0.5)
                share = share * (self.discount * len(node.counts) / total)
                if share < LEAST_SHARE:
                    break
            rest += math.floor(share * UNIT + 0.5)
        return masses, rest

    def predict_proba(self, x: Sequence[float]) -> list[float]:
        """Probability of each label code: 0 where the label is neither held nor declared."""
        masses, rest = self.masses(x)
        proba = [(mass + rest / len(self.known)) / (sum(masses) + rest) for mass in masses]
        return [p if code in self.known else 0.0 for code, p in enumerate(proba)]
