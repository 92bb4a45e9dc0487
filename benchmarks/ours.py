"""The forests to measure. Imports no peers: they would add to the memory of a new process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)

# Only the trees are learned, no weights or discounts.
PLAIN: dict[str, Any] = {"feature_weights": "range", "leaf_discount": 0.0}


def mondrian(n_trees: int, seed: int, n_jobs: int = 1) -> MondrianForestClassifier:
    """A classifier: the model of the paper with weights by range, other parameters default."""
    return MondrianForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed, **PLAIN)


def order_free(n_trees: int, seed: int, n_jobs: int = 1) -> OnlineForestClassifier:
    """An order-free classifier with default parameters."""
    return OnlineForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed)


def uncalibrated(n_trees: int, seed: int) -> OnlineForestClassifier:
    """An order-free classifier whose trees all learn all samples."""
    return OnlineForestClassifier(n_trees, calibrate=False, n_jobs=1, random_state=seed)


def order_free_regressor(n_trees: int, seed: int) -> OnlineForestRegressor:
    """An order-free regressor with default parameters."""
    return OnlineForestRegressor(n_trees, n_jobs=1, random_state=seed)


# By name, for measurements in a process of its own.
CLASSIFIERS: dict[str, Callable[[int, int], Any]] = {
    "Mondrian": mondrian,
    "order-free": order_free,
}


def river_order_free(n_trees: int, seed: int) -> Any:
    """The order-free classifier for River with default parameters."""
    from onlineforest.river import OnlineForestClassifier  # needs River, which is also a peer

    return OnlineForestClassifier(n_trees, seed=seed)


def river_order_free_regressor(n_trees: int, seed: int) -> Any:
    """The order-free regressor for River with default parameters."""
    from onlineforest.river import OnlineForestRegressor

    return OnlineForestRegressor(n_trees, seed=seed)


def core_forest(n_trees: int, n_features: int, seed: int) -> Any:
    """An empty core forest, with the options of `mondrian`."""
    forest = mondrian(n_trees, seed)
    forest.n_features_in_ = n_features
    return forest._start()["_forest"]


@dataclass(frozen=True)
class GrownCore:
    """A core forest that has learned rows. Learns more with class codes, forgets by serials."""

    learn: Callable[[NDArray[np.float32], NDArray[np.int32]], object]
    forget: Callable[[NDArray[np.int64]], object]
    predict: Callable[[NDArray[np.float32]], object]


def grown_mondrian(
    n_trees: int, seed: int, X: NDArray[np.float32], labels: NDArray[np.int32], n_classes: int
) -> GrownCore:
    """A core forest with the options of `mondrian` that has learned rows in one call."""
    core = core_forest(n_trees, X.shape[1], seed)
    core.learn(X, labels, n_classes)
    return GrownCore(
        lambda rows, codes: core.learn(rows, codes, n_classes), core.forget, core.predict
    )


def grown_order_free(
    n_trees: int, seed: int, X: NDArray[np.float32], labels: NDArray[np.int32], n_classes: int
) -> GrownCore:
    """The core forest of an order-free classifier that has learned rows in one call."""
    # The class codes of declared classes are their places.
    forest = order_free(n_trees, seed).partial_fit(X, labels, classes=np.arange(n_classes))
    core = forest._forest
    return GrownCore(core.learn, core.forget, core.predict)
