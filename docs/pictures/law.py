"""How an order-free tree of labels comes to the cut of its root, step by step, for the pictures.

A short form of what `docs/order-free.md` defines, for rows that differ and lack nothing. The cut
must be that of the library: `docs/tests/test_how_it_works.py` compares them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15
MOST_DECIDING = 64
ENOUGH_NEIGHBOURS = 32  # deciding samples, for neighbours to count
N_FINALISTS = 8


def mix(word: int) -> int:
    """SplitMix64's finaliser."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def derive(state: int, number: int) -> int:
    """The word with this number of a state."""
    return mix((state + GOLDEN * number) & MASK)


def seed_of(random_state: int) -> int:
    """The seed that a forest draws from its `random_state`."""
    most = np.iinfo(np.int64).max
    return int(np.random.RandomState(random_state).randint(most, dtype=np.int64))


@dataclass(frozen=True)
class Sample:
    """A sample as one tree sees it."""

    index: int  # its row in X
    x: tuple[float, ...]
    label: int
    rank: int

    @property
    def place(self) -> int:
        """The place on the circle: the halves of the rank, swapped."""
        return (self.rank >> 32) | ((self.rank << 32) & MASK)


@dataclass(frozen=True)
class Proposal:
    """A proposed cut, and the two samples that it separates, if it was drawn from a pair."""

    feature: int
    threshold: float
    pair: tuple[Sample, Sample] | None
    starts: tuple[int, int]  # places of the pair on the circle
    gain: float  # decrease of the Gini impurity, as a share of it
    neighbours: float  # how much more often neighbours along the feature agree than at random

    @property
    def score(self) -> float:
        """The gain and half of the neighbour share: the greatest of the finalists wins."""
        return self.gain + 0.5 * self.neighbours


def ranked(X: NDArray[np.float64], y: NDArray[np.int64], random_state: int) -> list[Sample]:
    """The samples in the order of their ranks in the first tree."""
    seed = seed_of(random_state)
    rank_seed = derive(derive(mix(seed ^ GOLDEN), 0), 1)
    result = []
    for index, (x, label) in enumerate(zip(X.astype(np.float32), y.tolist(), strict=True)):
        words = (
            derive(derive(mix(seed), 16 + d), int(bits)) for d, bits in enumerate(x.view(np.uint32))
        )
        digest = hashlib.sha256(b"number %d" % label).digest()
        of_label = mix(seed ^ int.from_bytes(digest[:8], "little"))
        key = derive(derive(seed + sum(words), 1) ^ of_label, 2)
        result.append(Sample(index, tuple(x.tolist()), label, mix(key ^ rank_seed)))
    return sorted(result, key=lambda sample: sample.rank)


def first(samples: list[Sample], start: int) -> Sample:
    """The first sample at or after a start; the samples are in the order of the circle."""
    return next((s for s in samples if s.place >= start), samples[0])


def gini(samples: list[Sample]) -> float:
    """The Gini impurity times the number of samples."""
    counts = np.bincount([sample.label for sample in samples], minlength=1)
    return float(counts.sum() - (counts**2).sum() / counts.sum())


def proposals(samples: list[Sample], random_state: int) -> list[Proposal]:
    """The 16 proposals for the root of the first tree, from samples in the order of their ranks."""
    root_seed = derive(derive(mix(seed_of(random_state) ^ GOLDEN), 0), 3)
    circle = sorted(samples[:MOST_DECIDING], key=lambda sample: sample.place)
    n_features, result = len(circle[0].x), []
    for q in range(16):
        word = derive(root_seed, 8 + q)
        starts = derive(word, 1), derive(word, 2)
        one = first(circle, starts[0])
        other = first([s for s in circle if s.label != one.label], starts[1])
        between = q % 2 == 0
        values = np.array([s.x for s in ([one, other] if between else circle)])
        low, high = values.min(axis=0), values.max(axis=0)
        draws = [(derive(word, 16 + t) >> 32) * n_features >> 32 for t in range(32)]
        feature = next(d for d in draws if low[d] < high[d])
        way = (derive(word, 3) >> 11) * 2.0**-53
        drawn = float(low[feature]) + way * (float(high[feature]) - float(low[feature]))
        threshold = np.float32(drawn)
        if float(threshold) > drawn:
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        left = [s for s in circle if s.x[feature] <= threshold]
        right = [s for s in circle if s.x[feature] > threshold]
        gain = 1.0 - (gini(left) + gini(right)) / gini(circle)
        pair = (one, other) if between else None
        share = neighbour_share(circle, feature)
        result.append(Proposal(feature, float(threshold), pair, starts, gain, share))
    return result


def neighbour_share(samples: list[Sample], feature: int) -> float:
    """1 minus the differing neighbours as a share of those in a random order. No value is twice."""
    labels = [sample.label for sample in sorted(samples, key=lambda sample: sample.x[feature])]
    n_differing = sum(one != other for one, other in pairwise(labels))
    return 1.0 - n_differing / gini(samples)


def winner(proposals: list[Proposal], n_deciding: int) -> int:
    """The number of the proposal that wins."""
    finalists = sorted(range(len(proposals)), key=lambda q: -proposals[q].gain)[:N_FINALISTS]
    if n_deciding < ENOUGH_NEIGHBOURS:
        return finalists[0]
    return max(finalists, key=lambda q: proposals[q].score)
