"""The evidence of levels by its definition, in plain Python. Weights are in units."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

UNIT = 2**16
LEAST_STRENGTH = 0.25


class LevelSample(NamedTuple):
    """A sample: its level of each categorical feature, its label and its weight."""

    levels: Sequence[int]
    label: int
    weight: int


def weigh(samples: Sequence[LevelSample]) -> Counter[int]:
    """The weight of each label."""
    weights: Counter[int] = Counter()
    for sample in samples:
        weights[sample.label] += sample.weight
    return weights


def agreement(weights: Counter[int]) -> int:
    """How probable it is that two samples agree in the label, times their weight, rounded."""
    total = sum(weights.values())
    if total < 2 * UNIT:
        return 0
    terms = (
        weight * ((weight / UNIT - 1) / (total / UNIT - 1))
        for weight in weights.values()
        if weight > UNIT
    )
    return sum(math.floor(term) for term in terms)


def strength(samples: Sequence[LevelSample], feature: int) -> float:
    """The number of samples at which a level counts half; infinite if levels tell nothing."""
    totals = weigh(samples)
    by_level: dict[int, list[LevelSample]] = {}
    for sample in samples:
        by_level.setdefault(sample.levels[feature], []).append(sample)
    blocks = [weigh(block) for block in by_level.values()]
    paired = sum(sum(block.values()) for block in blocks if sum(block.values()) >= 2 * UNIT)
    if paired == 0:
        return math.inf
    within = sum(map(agreement, blocks)) / paired
    among_all = agreement(totals) / sum(totals.values())
    if within <= among_all:
        return math.inf
    return max((1 - within) / (within - among_all), LEAST_STRENGTH)


def evidence(
    levels: Sequence[int], samples: Sequence[LevelSample], own: LevelSample | None = None
) -> dict[int, float]:
    """The evidence of levels for each label; the sample `own` is left out of their counts."""
    totals = weigh(samples)
    found = dict.fromkeys(totals, 0.0)
    for feature, level in enumerate(levels):
        half = strength(samples, feature)
        counts = weigh([each for each in samples if each.levels[feature] == level])
        weight_of_all = sum(totals.values())
        times = math.log2(weight_of_all / sum(counts.values())) / 4 if counts else 0.0
        if own is not None:
            counts[own.label] -= own.weight
        for label, weight in counts.items():
            rarity = weight_of_all / totals[label]
            found[label] += times * math.log2(1 + weight / UNIT * rarity / half)
    return found


def with_levels(
    probabilities: Sequence[float], evidence: Sequence[float], power: float, level_power: float,
    spread: float,
) -> list[float]:  # fmt: skip
    """Calibrated probabilities, given the evidence for each label."""
    raised = [p**power * 2 ** (level_power * e) for p, e in zip(probabilities, evidence)]
    return [(1 - spread) * r / sum(raised) + spread / len(raised) for r in raised]


def mean_of(samples: Sequence[LevelSample]) -> Fraction:
    """The mean of numbers, which take the place of labels."""
    total = sum(sample.weight for sample in samples)
    return sum(Fraction(s.label) * s.weight for s in samples) / total


def squares_of(samples: Sequence[LevelSample]) -> Fraction:
    """The sum of the squared deviations of numbers from their mean, in units."""
    mean = mean_of(samples)
    return sum((Fraction(s.label) - mean) * (Fraction(s.label) - mean) * s.weight for s in samples)


def strength_of_numbers(samples: Sequence[LevelSample], feature: int) -> float:
    """The number of samples at which a level of numbers counts half; 0 if levels tell nothing."""
    by_level: dict[int, list[LevelSample]] = {}
    for sample in samples:
        by_level.setdefault(sample.levels[feature], []).append(sample)
    heavy = [b for b in by_level.values() if sum(s.weight for s in b) >= 2 * UNIT]
    total = sum(sample.weight for sample in samples)
    degrees = sum(sum(s.weight for s in block) - UNIT for block in heavy)
    if degrees == 0:
        return 0.0
    within = sum(map(squares_of, by_level.values())) / degrees
    among_all = squares_of(samples) / (total - UNIT)
    if within >= among_all:
        return 0.0
    return max(float(within / (among_all - within)), LEAST_STRENGTH)


def deviation_of_numbers(
    samples: Sequence[LevelSample],
    levels: Sequence[int],
    strengths: Sequence[float],
    own: LevelSample | None = None,
) -> float:
    """How far levels lie above the mean of all numbers; `own` does not count in its levels."""
    total = 0.0
    for feature, strength in enumerate(strengths):
        block = [s for s in samples if s.levels[feature] == levels[feature]]
        if own is not None:
            block.remove(own)
        if block and strength > 0:
            n = sum(s.weight for s in block) / UNIT
            total += float(mean_of(block) - mean_of(samples)) * n / (n + strength)
    return total


def level_share(rows: Sequence[tuple[float, float, float]]) -> float:
    """The share of deviations in predictions, given errors, deviations and weights."""
    squares = math.fsum(w * d * d for _, d, w in rows)
    if squares == 0:
        return 0.0
    share = min(math.fsum(w * e * d for e, d, w in rows) / squares, 2.0)
    before = math.fsum(w * e * e for e, _, w in rows)
    after = math.fsum(w * (e - share * d) * (e - share * d) for e, d, w in rows)
    return share if share > 0 and after * (1 + 4 / len(rows)) < before else 0.0
