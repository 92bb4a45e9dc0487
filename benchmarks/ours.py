"""The forests to measure. Imports no peers: they would add to the memory of a new process."""

from __future__ import annotations

from typing import Any

from onlineforest import MondrianForestClassifier, MondrianForestRegressor

# Only the trees are learned, no weights or discounts.
PLAIN: dict[str, Any] = {"feature_weights": "range", "leaf_discount": 0.0}
PLAIN_REGRESSION: dict[str, Any] = {
    "feature_weights": "range",
    "discount": 0.02,
    "noise": 0.01,
    "trend": None,
    "calibrate": False,
}


def mondrian(n_trees: int, seed: int, n_jobs: int = 1) -> MondrianForestClassifier:
    """A classifier: the model of the paper with weights by range, other parameters default."""
    return MondrianForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed, **PLAIN)


def regressor(n_trees: int, seed: int, **parameters: Any) -> MondrianForestRegressor:
    """A regressor with default parameters, unless others are given."""
    return MondrianForestRegressor(n_trees, n_jobs=1, random_state=seed, **parameters)


def plain_regressor(n_trees: int, seed: int) -> MondrianForestRegressor:
    """A regressor that only learns trees, like a batch forest."""
    return regressor(n_trees, seed, **PLAIN_REGRESSION)


def river_classifier(n_trees: int, seed: int, **parameters: Any) -> Any:
    """Our classifier for River with default parameters, unless others are given."""
    from onlineforest.river import MondrianForestClassifier  # needs River, which is also a peer

    return MondrianForestClassifier(n_trees, seed=seed, **parameters)


def plain_river_classifier(n_trees: int, seed: int) -> Any:
    """Our classifier for River that only learns trees."""
    return river_classifier(n_trees, seed, **PLAIN)


def river_regressor(n_trees: int, seed: int, **parameters: Any) -> Any:
    """Our regressor for River with default parameters, unless others are given."""
    from onlineforest.river import MondrianForestRegressor

    return MondrianForestRegressor(n_trees, seed=seed, **parameters)


def plain_river_regressor(n_trees: int, seed: int) -> Any:
    """Our regressor for River that only learns trees."""
    return river_regressor(n_trees, seed, **PLAIN_REGRESSION)


def core_forest(n_trees: int, n_features: int, seed: int) -> Any:
    """An empty core forest, with the options of `mondrian`."""
    return mondrian(n_trees, seed)._new_forest(n_features)[0]
