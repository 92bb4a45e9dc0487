"""The forest measured. Imports no peers: they would count in the memory of a fresh process."""

from __future__ import annotations

from typing import Any

from onlineforest import MondrianForestClassifier


def mondrian(n_trees: int, seed: int, n_jobs: int = 1) -> MondrianForestClassifier:
    """The forest measured: the paper's model with weights by range, all else at its default."""
    return MondrianForestClassifier(
        n_trees, feature_weights="range", leaf_discount=0.0, n_jobs=n_jobs, random_state=seed
    )


def core_forest(n_trees: int, n_features: int, seed: int) -> Any:
    """The compiled forest alone, empty, as `mondrian` would make it."""
    return mondrian(n_trees, seed)._new_forest(n_features)[0]
