"""The kinds of estimator, for tests of what holds for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from onlineforest import (
    MondrianForestClassifier,
    MondrianForestRegressor,
    OnlineForestClassifier,
    OnlineForestRegressor,
)


@dataclass(frozen=True)
class Kind:
    """An estimator, its predictions for rows as one array, and those for one row."""

    estimator: Callable[..., Any]
    predict: Callable[[Any, np.ndarray], np.ndarray]
    predict_one: Callable[[Any, np.ndarray], np.ndarray]
    unlearned: dict[str, Any]  # parameters: nothing is learned about the data as a whole


def _moments(forest, X):
    return np.column_stack(forest.predict(X, return_std=True))


KINDS = {
    "classifier": Kind(
        MondrianForestClassifier,
        lambda forest, X: forest.predict_proba(X),
        lambda forest, x: forest.predict_proba_one(x),
        {"feature_weights": None, "leaf_discount": 0.0},
    ),
    "regressor": Kind(
        MondrianForestRegressor,
        _moments,
        lambda forest, x: np.array(forest.predict_one(x, return_std=True)),
        {
            "feature_weights": None,
            "discount": 0.02,
            "noise": 0.01,
            "trend": None,
            "calibrate": False,
        },
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())

# Those above are Mondrian forests; these are all.
ALL_KINDS = {
    **KINDS,
    "online classifier": Kind(
        OnlineForestClassifier,
        lambda forest, X: forest.predict_proba(X),
        lambda forest, x: forest.predict_proba_one(x),
        {},
    ),
    "online regressor": Kind(
        OnlineForestRegressor,
        _moments,
        lambda forest, x: np.array(forest.predict_one(x, return_std=True)),
        {},
    ),
}
each_of_all_kinds = pytest.mark.parametrize("kind", ALL_KINDS.values(), ids=ALL_KINDS.keys())
