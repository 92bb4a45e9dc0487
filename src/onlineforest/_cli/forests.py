"""The forests that commands learn: two kinds, each with an estimator for each of its tasks.

Knows nothing of options or terminals.
"""

from __future__ import annotations

from collections.abc import Mapping

from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._forests.orderfree.classifier import OnlineForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor
from onlineforest._store.loading import AnyForest as Forest

__all__ = [
    "FORESTS",
    "Forest",
    "is_fitted",
    "is_of",
    "kind_of",
    "learns_categories",
]

FORESTS: Mapping[str, Mapping[str, type[Forest]]] = {
    "order-free": {"classify": OnlineForestClassifier, "regress": OnlineForestRegressor},
    "mondrian": {"classify": MondrianForestClassifier},
}


def kind_of(forest: Forest) -> str:
    """The kind of a forest."""
    return next(kind for kind, tasks in FORESTS.items() if type(forest) in tasks.values())


def learns_categories(forest: Forest) -> bool:
    """Whether a forest has categorical features and missing values, not numbers alone."""
    return kind_of(forest) == "order-free"


def is_fitted(forest: Forest) -> bool:
    """Whether the forest has learned anything."""
    return bool(forest.__sklearn_is_fitted__())


def is_of(forest: Forest, task: str) -> bool:
    """Whether a forest is for this task."""
    return type(forest) is FORESTS[kind_of(forest)].get(task)
