"""The compared methods: how to construct each, and whether it learns online or is retrained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import onlineforest
from experiments.paper.names import (
    AMF_10,
    ARF_10,
    AT_ONCE,
    BREIMAN,
    DENIL,
    DYNAMIC_TREES,
    ERT_1,
    ERT_K,
    FEW_TREES,
    LEARNED,
    LEARNED_10,
    MF,
    MF_10,
    SAFFARI,
    SAFFARI_TUNED,
)
from onlineforest import MondrianForestClassifier
from onlineforest._extras import require

EXTRA = "experiments"
PAPER_MODEL = {"feature_weights": None, "leaf_discount": 0.0}


@dataclass(frozen=True)
class Method:
    """A model under its name.

    Attributes
    ----------
    new : callable
        Makes an untrained model from the number of trees, a seed and the number of training rows.
        It has `predict_proba` and `classes_`, and `partial_fit` with `classes` if it learns online,
        else `fit`.
    settings : str
        Its settings, as a text for the report.
    code : tuple of Path
        The files its results depend on.
    packages : tuple of str
        The packages they depend on.
    online : bool
        Whether it learns mini-batch after mini-batch; if not, it is retrained on all data so far.
    point_by_point : bool
        Whether the division into mini-batches does not matter. Such a method gets all rows up to
        the next test in one call, so that the overhead of calls is not measured.
    many_passes : bool
        Whether it makes further passes over the data.
    few_rows : bool
        Whether it belongs to the comparison with River: few trees, row by row.
    cost : float
        Rough duration relative to a Mondrian forest; for the estimate of the time left.
    """

    new: Callable[[int, int, int], Any]
    settings: str
    code: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()
    online: bool = True
    point_by_point: bool = False
    many_passes: bool = False
    few_rows: bool = False
    cost: float = 1.0

    def depends_on(self) -> dict[str, str]:
        """Versions and a hash of the code: all dependencies of a result besides the task."""
        packages = ("numpy", *self.packages)
        return {"code": code_of((*SHARED, *self.code)), **{p: version(p) for p in packages}}


@lru_cache
def code_of(paths: tuple[Path, ...]) -> str:
    """A hash of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


HERE = Path(__file__).parent
SHARED = tuple(HERE / f"{name}.py" for name in ("methods", "names", "tasks"))
# The whole library, the compiled part included.
LIBRARY = tuple(
    sorted(
        path
        for path in Path(onlineforest.__file__).parent.rglob("*")
        if path.suffix in {".py", ".so", ".pyd"}
    )
)


def competitor(*modules: str) -> tuple[Path, ...]:
    """The files of a competitor."""
    return tuple(HERE.parent / "competitors" / f"{module}.py" for module in modules)


def ours(parameters: dict[str, Any]) -> Callable[[int, int, int], Any]:
    def new(n_trees: int, seed: int, _n_rows: int) -> MondrianForestClassifier:
        return MondrianForestClassifier(n_trees, random_state=seed, **parameters)

    return new


class RowByRow:
    """A Mondrian forest that learns one row at a time, as in a stream."""

    def __init__(self, forest: MondrianForestClassifier) -> None:
        self.forest = forest

    @property
    def classes_(self) -> NDArray:
        """The labels, sorted."""
        return self.forest.classes_

    def partial_fit(self, X: NDArray, y: NDArray, classes: NDArray) -> RowByRow:
        """Learn rows one after the other; the first call announces the classes."""
        if not hasattr(self.forest, "classes_"):
            self.forest.partial_fit(X[:1], y[:1], classes=classes)
            X, y = X[1:], y[1:]
        for row, label in zip(X, y.tolist(), strict=True):
            self.forest.learn_one(row, label)
        return self

    def predict_proba(self, X: NDArray) -> NDArray:
        """Probabilities of the classes."""
        return self.forest.predict_proba(X)


def ours_row_by_row(parameters: dict[str, Any]) -> Callable[[int, int, int], Any]:
    new = ours(parameters)
    return lambda _n_trees, seed, n_rows: RowByRow(new(FEW_TREES, seed, n_rows))


def saffari(n_trees: int, seed: int, n_rows: int) -> Any:
    """ORF-Saffari with the settings of its article, which need the number of rows in advance."""
    require("numba", EXTRA)
    from experiments.competitors.saffari import OnlineForestSaffari

    settings = {"n_tests": 10, "max_depth": 10, "min_samples_split": max(1, n_rows // 10)}
    return OnlineForestSaffari(n_trees, seed=seed, **settings)


def saffari_tuned(n_trees: int, seed: int, _n_rows: int) -> Any:
    require("numba", EXTRA)
    from experiments.competitors.saffari import OnlineForestSaffari

    return OnlineForestSaffari(n_trees, seed=seed)


def denil(n_trees: int, seed: int, _n_rows: int) -> Any:
    require("numba", EXTRA)
    from experiments.competitors.denil import OnlineForestDenil

    return OnlineForestDenil(n_trees, seed=seed)


def dynamic_trees(n_trees: int, seed: int, _n_rows: int) -> Any:
    require("numba", EXTRA)
    from experiments.competitors.dynamic_trees import DynamicTrees

    return DynamicTrees(n_trees, seed=seed)


def river(name: str, trees: str) -> Callable[[int, int, int], Any]:
    def new(_n_trees: int, seed: int, _n_rows: int) -> Any:
        require("river", EXTRA)
        from experiments.competitors.river_forests import RiverForest

        return RiverForest(name, **{trees: FEW_TREES, "seed": seed})

    return new


OURS = {"code": LIBRARY, "packages": ("onlineforest",)}
BATCH = {"packages": ("scikit-learn",), "online": False}
COMPILED = {"packages": ("numba",), "point_by_point": True, "many_passes": True}
ONLINE_FORESTS = ("online_forest", "estimator")
RIVER = {"code": competitor("river_forests"), "packages": ("river",), "few_rows": True, "cost": 100}
PAPER_SETTINGS = "infinite lifetime, gamma = 10 D, no feature weights, no leaf discount"
LEARNED_SETTINGS = "the library's defaults: feature weights and leaf discount are learned"

METHODS = {
    MF: Method(ours(PAPER_MODEL), PAPER_SETTINGS, **OURS),
    LEARNED: Method(ours({}), LEARNED_SETTINGS, cost=2, **OURS),
    AT_ONCE: Method(ours(PAPER_MODEL), f"{PAPER_SETTINGS}; one `fit`", online=False, **OURS),
    BREIMAN: Method(
        lambda n_trees, seed, _: RandomForestClassifier(n_trees, random_state=seed),
        "scikit-learn's RandomForestClassifier, its defaults",
        cost=4,
        **BATCH,
    ),
    ERT_K: Method(
        lambda n_trees, seed, _: ExtraTreesClassifier(n_trees, random_state=seed),
        "scikit-learn's ExtraTreesClassifier, its defaults (k = √D)",
        cost=3,
        **BATCH,
    ),
    ERT_1: Method(
        lambda n_trees, seed, _: ExtraTreesClassifier(n_trees, max_features=1, random_state=seed),
        "scikit-learn's ExtraTreesClassifier, max_features = 1",
        cost=3,
        **BATCH,
    ),
    SAFFARI: Method(
        saffari,
        "as in its article: 10 random tests per leaf, a split after N / 10 samples at a gain of "
        "0.1 bits; depth 10, of its program",
        code=competitor("saffari", *ONLINE_FORESTS),
        **COMPILED,
    ),
    SAFFARI_TUNED: Method(
        saffari_tuned,
        "as in Denil's comparison: 100 random tests per leaf, a split after 50 samples at a gain "
        "of 0.1 bits, depth 50",
        code=competitor("saffari", *ONLINE_FORESTS),
        cost=1.5,
        **COMPILED,
    ),
    DENIL: Method(
        denil,
        "as in its article on usps: 1 + Poisson(10) features and 10 locations each per leaf, a "
        "split at 10 estimation samples per child and a gain of 0.1, forced at 10,000",
        code=competitor("denil", *ONLINE_FORESTS),
        **COMPILED,
    ),
    DYNAMIC_TREES: Method(
        dynamic_trees,
        "as the R package dynaTree: as many particles as trees elsewhere, two repeats, alpha 0.95, "
        "beta 2, leaves of one sample and more",
        code=competitor("dynamic_trees", "estimator"),
        packages=("numba",),
        cost=20,
    ),
    MF_10: Method(ours_row_by_row(PAPER_MODEL), PAPER_SETTINGS, few_rows=True, cost=0.2, **OURS),
    LEARNED_10: Method(ours_row_by_row({}), LEARNED_SETTINGS, few_rows=True, cost=0.5, **OURS),
    AMF_10: Method(
        river("AMFClassifier", "n_estimators"), "River's AMFClassifier, its defaults", **RIVER
    ),
    ARF_10: Method(
        river("ARFClassifier", "n_models"), "River's ARFClassifier, its defaults", **RIVER
    ),
}


@lru_cache
def warm_up(name: str) -> None:
    """Learn and predict a few rows once, so that times exclude compilation and imports."""
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 3)), np.arange(20) % 2
    model = METHODS[name].new(2, 0, 20)
    if METHODS[name].online:
        model.partial_fit(X, y, classes=np.array([0, 1]))
    else:
        model.fit(X, y)
    model.predict_proba(X)
