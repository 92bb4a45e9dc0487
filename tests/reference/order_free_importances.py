"""Importances of the order-free forest in plain Python. See `order_free_forest`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.order_free_forest import MOST_DECIDING, Node, Point, path_of

Vector = NDArray[np.float64]


def last_rank(block: list[Any]) -> int:
    """The greatest rank of a sample that decides the cut of a block."""
    deciding = block[:MOST_DECIDING]
    if all(sample.x == deciding[0].x for sample in deciding):
        deciding[-1] = next(sample for sample in block if sample.x != deciding[0].x)
    return int(deciding[-1].rank)


def credits_of(
    root: Node | None,
    stored: dict[tuple[Point, int, Any], float],
    vector: Callable[[Any], Vector],
    n_features: int,
) -> Vector:
    """The credit of each feature in one tree.

    `stored` has the weights of all samples (x, word, value). `vector` turns a value into a vector.
    """
    credits = np.zeros(n_features)
    if root is None:
        return credits
    learned = {(sample.x, sample.word): sample for sample in root.block}

    def mean_of(node: Node, without: tuple[Point, int]) -> Vector | None:
        others = [s for s in node.block if (s.x, s.word) != without]
        if not others:
            return None
        return np.average([vector(s.value) for s in others], axis=0, weights=weights_of(others))

    for (x, word, value), weight in stored.items():
        for node, child in pairwise(path_of(root, x)):
            sample = learned.get((x, word))
            if sample is not None and sample.rank <= last_rank(node.block):
                continue
            mean, mean_of_child = mean_of(node, (x, word)), mean_of(child, (x, word))
            if mean is None or mean_of_child is None:
                continue
            credit = (mean_of_child - mean) @ (vector(value) - mean)
            credits[node.cut.feature] += weight * credit
    return credits / sum(stored.values())


def weights_of(block: list[Any]) -> list[float]:
    return [sample.weight for sample in block]
