"""The forests measured. Imports no peers: they would count in the memory of a fresh process."""

from __future__ import annotations

from typing import Any

from onlineforest import MondrianForestClassifier, MondrianForestRegressor

# Nothing is learned but the trees.
PLAIN: dict[str, Any] = {"feature_weights": "range", "leaf_discount": 0.0}
PLAIN_REGRESSION: dict[str, Any] = {
    "feature_weights": "range",
    "discount": 0.02,
    "noise": 0.01,
    "trend": None,
    "calibrate": False,
}


def mondrian(n_trees: int, seed: int, n_jobs: int = 1) -> MondrianForestClassifier:
    """The forest measured: the paper's model with weights by range, all else at its default."""
    return MondrianForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed, **PLAIN)


def regressor(n_trees: int, seed: int, **parameters: Any) -> MondrianForestRegressor:
    """The forest for numbers; without parameters, with all it learns by default."""
    return MondrianForestRegressor(n_trees, n_jobs=1, random_state=seed, **parameters)


def plain_regressor(n_trees: int, seed: int) -> MondrianForestRegressor:
    """The same with nothing to learn but the trees, as a batch forest has."""
    return regressor(n_trees, seed, **PLAIN_REGRESSION)


def river_classifier(n_trees: int, seed: int, **parameters: Any) -> Any:
    """The model of River; without parameters, with all it learns by default."""
    from onlineforest.river import MondrianForestClassifier  # needs River, which is a peer, too

    return MondrianForestClassifier(n_trees, seed=seed, **parameters)


def plain_river_classifier(n_trees: int, seed: int) -> Any:
    """The same with nothing to learn but the trees: `mondrian` for River."""
    return river_classifier(n_trees, seed, **PLAIN)


def river_regressor(n_trees: int, seed: int, **parameters: Any) -> Any:
    """The model of River for numbers; without parameters, with all it learns by default."""
    from onlineforest.river import MondrianForestRegressor

    return MondrianForestRegressor(n_trees, seed=seed, **parameters)


def plain_river_regressor(n_trees: int, seed: int) -> Any:
    """The same with nothing to learn but the trees."""
    return river_regressor(n_trees, seed, **PLAIN_REGRESSION)


def core_forest(n_trees: int, n_features: int, seed: int) -> Any:
    """The compiled forest alone, empty, as `mondrian` would make it."""
    return mondrian(n_trees, seed)._new_forest(n_features)[0]
