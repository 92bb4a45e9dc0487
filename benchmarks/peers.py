"""The models to compare with. River and MOA are optional."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

from benchmarks.results import NotMeasuredError


@dataclass(frozen=True)
class Peer:
    """A model under its short name; `new` takes the number of trees and the seed."""

    name: str
    new: Callable[[int, int], Any]


def river_forests() -> Any:
    """The module `river.forest`."""
    try:
        from river import forest
    except ImportError as error:
        raise NotMeasuredError("needs river (pip install 'onlineforest[bench]')") from error
    return forest


def moa_forest(n_trees: int, seed: int) -> Callable[[Any], Any]:
    """MOA's adaptive random forest, as a function of the schema of its stream."""
    try:
        from capymoa.classifier import AdaptiveRandomForestClassifier
    except (ImportError, RuntimeError) as error:  # RuntimeError: no Java
        raise NotMeasuredError("needs capymoa (pip install capymoa) and a Java runtime") from error
    return lambda schema: AdaptiveRandomForestClassifier(
        schema, ensemble_size=n_trees, random_seed=seed
    )


ERT_K = Peer("ERT-k", lambda n, seed: ExtraTreesClassifier(n, n_jobs=1, random_state=seed))
ERT_1 = Peer(
    "ERT-1", lambda n, seed: ExtraTreesClassifier(n, max_features=1, n_jobs=1, random_state=seed)
)
ERT = Peer("ERT", lambda n, seed: ExtraTreesRegressor(n, n_jobs=1, random_state=seed))
RF = Peer("RF", lambda n, seed: RandomForestClassifier(n, n_jobs=1, random_state=seed))
AMF = Peer("River AMF", lambda n, seed: river_forests().AMFClassifier(n_estimators=n, seed=seed))
ARF = Peer("River ARF", lambda n, seed: river_forests().ARFClassifier(n_models=n, seed=seed))
MOA_ARF = Peer("MOA ARF", moa_forest)
AMF_REGRESSOR = Peer(
    "River AMF", lambda n, seed: river_forests().AMFRegressor(n_estimators=n, seed=seed)
)
