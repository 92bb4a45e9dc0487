"""The kinds of estimator, for tests of what holds for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)


@dataclass(frozen=True)
class Kind:
    """An estimator, its predictions for rows as one array, and those for one row."""

    estimator: Callable[..., Any]
    predict: Callable[[Any, np.ndarray], np.ndarray]
    predict_one: Callable[[Any, np.ndarray], np.ndarray]


def _probabilities(forest, X):
    return forest.predict_proba(X)


def _probabilities_of_one(forest, x):
    return forest.predict_proba_one(x)


def _moments(forest, X):
    return np.column_stack(forest.predict(X, return_std=True))


def _moments_of_one(forest, x):
    return np.array(forest.predict_one(x, return_std=True))


ALL_KINDS = {
    "classifier": Kind(MondrianForestClassifier, _probabilities, _probabilities_of_one),
    "online classifier": Kind(OnlineForestClassifier, _probabilities, _probabilities_of_one),
    "online regressor": Kind(OnlineForestRegressor, _moments, _moments_of_one),
}
each_of_all_kinds = pytest.mark.parametrize("kind", ALL_KINDS.values(), ids=ALL_KINDS.keys())
# Parameters of a Mondrian forest that learns nothing about the data as a whole.
UNLEARNED = {"feature_weights": None, "leaf_discount": 0.0}
