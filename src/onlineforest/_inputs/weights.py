"""Weights of samples: as users give them, and as core forests store them.

A stored weight is a whole multiple of 2^-16: `WEIGHT_OF_ONE` is that of a sample that counts once.
Must not know forests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from onlineforest._core import LARGEST_TOTAL_WEIGHT, WEIGHT_OF_ONE
from onlineforest._inputs.cells import check_not_masked

Weights = NDArray[np.int64]
"""Stored weights."""


def check_sample_weight(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """One finite weight per sample, at least 0; None if none are given."""
    if sample_weight is None:
        return None
    check_not_masked(sample_weight, "sample_weight")
    weights = np.asarray(
        check_array(
            sample_weight,
            ensure_2d=False,
            allow_nd=True,
            dtype=np.float64,
            ensure_min_samples=0,
            input_name="sample_weight",
        )
    )
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight per sample. "
            f"Got shape {weights.shape} instead."
        )
    if weights.min(initial=0.0) < 0:
        raise ValueError(f"sample_weight must be at least 0. Got {weights.min():g}.")
    return weights


def stored_weights(
    sample_weight: Any, target: NDArray[Any], class_weight: Any = None
) -> Weights | None:
    """The stored weight of each sample; None if each counts once.

    If `class_weight` is a dict, the weight of its class is a factor; 1 if it has none.
    """
    weights = check_sample_weight(sample_weight, len(target))
    if isinstance(class_weight, dict):
        labels, places = np.unique(target, return_inverse=True)
        of_labels = np.array([class_weight.get(label, 1.0) for label in labels], dtype=float)
        weights = of_labels[places] * (1.0 if weights is None else weights)
    if weights is None:
        return None
    if not weights.sum() <= LARGEST_TOTAL_WEIGHT:
        raise ValueError(
            f"The sum of sample_weight must be at most {LARGEST_TOTAL_WEIGHT}. "
            f"Got {weights.sum():g}."
        )
    return np.rint(weights * WEIGHT_OF_ONE).astype(np.int64)


def stored_weight_of_one(sample_weight: Any, label: Any = None, class_weight: Any = None) -> int:
    """The stored weight of one sample, with the factor of its class."""
    if type(sample_weight) is float and sample_weight == 1.0 and class_weight is None:
        return WEIGHT_OF_ONE
    if type(sample_weight) is not float or not 0 <= sample_weight <= LARGEST_TOTAL_WEIGHT:
        weights = check_sample_weight(sample_weight, 1)
        sample_weight = 1.0 if weights is None else float(weights[0])
    weight: float = sample_weight
    if isinstance(class_weight, dict):
        with suppress(TypeError):  # it is no label, which is found later
            weight *= float(class_weight.get(label, 1.0))
    if not weight <= LARGEST_TOTAL_WEIGHT:
        raise ValueError(f"sample_weight must be at most {LARGEST_TOTAL_WEIGHT}. Got {weight:g}.")
    return round(weight * WEIGHT_OF_ONE)


def check_class_weight(class_weight: Mapping[Any, float]) -> None:
    """An error unless all weights of classes are numbers, finite and at least 0."""
    for label, weight in class_weight.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight < math.inf:
            raise ValueError(
                "class_weight must give each class a finite number that is at least 0. "
                f"Got {weight!r} for {label!r}."
            )
