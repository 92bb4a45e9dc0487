"""The models of the league, each with the settings that its authors recommend, on one thread.

A learner answers for one row at a time. It must not know scores, nor files of results.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import version_of
from benchmarks.memory import forget_the_past, resident_and_peak
from experiments.common import river_rows
from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor

N_TREES = 10

Answer = tuple[float, float]
"""The probability of the label, and whether the guess is right. Of numbers: the number, and 0."""


@dataclass(frozen=True)
class Task:
    """A model on a stream."""

    model: str
    stream: str
    seed: int
    n_samples: int  # at most
    capymoa: str | None = field(default=None, compare=False)  # the folder of its environment


@dataclass(frozen=True)
class Pass:
    """The answers to all samples of a stream, and what they took."""

    answers: NDArray[np.float64]  # (n_samples, 2), see `Answer`; NaN: the model had no answer
    seconds: float  # processor time
    n_bytes: int  # how far the memory of the process rose
    versions: dict[str, str | None]


class Learner(ABC):
    """Predicts each sample, then learns it, in this process."""

    package: str

    @abstractmethod
    def rows(self, X: Any) -> list[Any]:
        """The rows in the form that the model takes; their making is not timed."""

    @abstractmethod
    def answer(self, row: Any, target: Any) -> Answer | None:
        """The answer for a row before its target is learned; None: there is none yet."""

    @abstractmethod
    def learn(self, row: Any, target: Any) -> None:
        """Learn a sample."""

    def go(self, X: Any, y: NDArray[Any]) -> Pass:
        """Take the samples one by one."""
        rows, targets, answers = self.rows(X), y.tolist(), np.full((len(y), 2), np.nan)
        forget_the_past()
        before, _ = resident_and_peak()
        start = time.process_time()
        for i, (row, target) in enumerate(zip(rows, targets, strict=True)):
            answer = self.answer(row, target)
            if answer is not None:
                answers[i] = answer
            self.learn(row, target)
        seconds = time.process_time() - start
        after, peak = resident_and_peak()
        n_bytes = max(after, peak) - before
        return Pass(answers, seconds, n_bytes, {self.package: version_of(self.package)})


class Ours(Learner):
    """One of our forests."""

    package = "onlineforest"

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def rows(self, X: Any) -> list[Any]:
        return list(X) if isinstance(X, np.ndarray) else X.to_dict("records")

    def answer(self, row: Any, target: Hashable) -> Answer | None:
        if not hasattr(self.forest, "classes_"):
            return None
        probabilities = self.forest.predict_proba_one(row)
        classes = self.forest.classes_.tolist()
        of_truth = probabilities[classes.index(target)] if target in classes else 0.0
        return float(of_truth), classes[probabilities.argmax()] == target

    def learn(self, row: Any, target: Any) -> None:
        self.forest.learn_one(row, target)


class OurNumbers(Ours):
    """Our forest for numbers."""

    def answer(self, row: Any, _target: Any) -> Answer | None:
        fitted = hasattr(self.forest, "n_features_in_")
        return (self.forest.predict_one(row), 0.0) if fitted else None


class Rivers(Learner):
    """One of River's models.

    Parameters
    ----------
    name : str
        Its module and class.
    rescale : bool
        It takes numbers between 0 and 1: text is replaced by codes, and River rescales online.
    **parameters
        Of the model.
    """

    package = "river"

    def __init__(self, name: str, rescale: bool = False, **parameters: Any) -> None:
        from river import preprocessing

        module, _, kind = name.rpartition(".")
        model = getattr(import_module(f"river.{module}"), kind)(**parameters)
        self.rescale = rescale
        self.model = preprocessing.MinMaxScaler() | model if rescale else model

    def rows(self, X: Any) -> list[Any]:
        if isinstance(X, np.ndarray):
            return river_rows(X)
        # A value that is missing is absent.
        return river_rows(codes_of(X)[0]) if self.rescale else present(X.to_dict("records"))

    def answer(self, row: Any, target: Hashable) -> Answer | None:
        said = self.model.predict_proba_one(row)
        total = sum(said.values())
        if not total > 0:
            return None
        return said.get(target, 0.0) / total, max(said, key=said.__getitem__) == target

    def learn(self, row: Any, target: Any) -> None:
        self.model.learn_one(row, target)


class RiversNumbers(Rivers):
    """One of River's models of numbers."""

    def answer(self, row: Any, _target: Any) -> Answer | None:
        return self.model.predict_one(row), 0.0


def present(rows: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Rows without the values that are missing."""
    return [{k: v for k, v in row.items() if v is not None and v == v} for row in rows]


def codes_of(X: Any) -> tuple[NDArray[np.float64], list[int]]:
    """Numbers and codes of text as an array, and the number of levels of each column, 0: a number.

    Codes go by first appearance; a text that is missing is NaN.
    """
    if isinstance(X, np.ndarray):
        return X.astype(np.float64), [0] * X.shape[1]
    columns, n_levels = [], []
    for name in X.columns:
        if X[name].dtype.kind in "biuf":
            columns.append(X[name].to_numpy(dtype=np.float64))
            n_levels.append(0)
        else:
            codes, levels = X[name].factorize()
            columns.append(np.where(codes < 0, np.nan, codes.astype(np.float64)))
            n_levels.append(len(levels))
    return np.column_stack(columns), n_levels


class Boosting(Learner):
    """LightGBM, trained again on the latest samples: when their number has doubled, or each 500."""

    package = "lightgbm"
    WINDOW, FIRST, EACH = 2_000, 32, 500

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.model: Any = None
        self.learned: list[tuple[NDArray[np.float64], Any]] = []
        self.n_seen = 0
        self.categorical: list[int] = []

    def rows(self, X: Any) -> list[Any]:
        table, n_levels = codes_of(X)
        self.categorical = [j for j, n in enumerate(n_levels) if n]
        return list(table)

    def answer(self, row: Any, target: Any) -> Answer | None:
        if self.model is None:
            return None
        of_second = self.model.booster_.predict(row[np.newaxis], num_threads=1)[0]
        several = np.ndim(of_second) > 0
        probabilities = of_second if several else np.array([1 - of_second, of_second])
        classes = self.model.classes_.tolist()
        of_truth = probabilities[classes.index(target)] if target in classes else 0.0
        return float(of_truth), classes[probabilities.argmax()] == target

    def learn(self, row: Any, target: Any) -> None:
        self.learned.append((row, target))
        del self.learned[: -self.WINDOW]
        self.n_seen += 1
        n, power_of_two = self.n_seen, self.n_seen.bit_count() == 1
        if n % self.EACH == 0 or (self.FIRST <= n < self.EACH and power_of_two):
            self.train()

    def train(self) -> None:
        from lightgbm import LGBMClassifier

        X, y = zip(*self.learned, strict=True)
        if len(set(y)) > 1:  # else the model before stays
            model = LGBMClassifier(random_state=self.seed, n_jobs=1, verbose=-1)
            named = {"categorical_feature": self.categorical} if self.categorical else {}
            self.model = model.fit(np.array(X), np.array(y), **named)


Make = Callable[[Task], Any]


@dataclass(frozen=True)
class Model:
    """A model of the league: how to make it for labels and for numbers, None: it has none."""

    about: str
    labels: Make | None = None
    numbers: Make | None = None
    standard: bool = True  # plays unless other models are named
    of_moa: bool = False  # needs the environment of MOA

    def make(self, numbers: bool) -> Make | None:
        return self.numbers if numbers else self.labels


def ours(about: str, **memory: Any) -> Model:
    """The order-free forest with a memory."""
    return Model(
        about,
        lambda task: Ours(OnlineForestClassifier(N_TREES, random_state=task.seed, **memory)),
        lambda task: OurNumbers(OnlineForestRegressor(N_TREES, random_state=task.seed, **memory)),
    )


def mondrian(about: str, **parameters: Any) -> Model:
    def make(task: Task) -> Ours:
        forest = MondrianForestClassifier(N_TREES, random_state=task.seed, **parameters)
        return Ours(forest)

    return Model(about, make, standard=False)


def river(
    name: str, n_trees: str | None = "n_models", rescale: bool = False, standard: bool = True
) -> Model:
    """One of River's classifiers; `n_trees` is its parameter for the number of trees."""

    def make(task: Task) -> Rivers:
        trees = {} if n_trees is None else {n_trees: N_TREES}
        return Rivers(name, rescale=rescale, seed=task.seed, **trees)

    about = f"{name}, {'after MinMaxScaler' if rescale else 'defaults'}"
    return Model(about, make, standard=standard)


def moa(about: str, name: str, n_trees: int = N_TREES) -> Model:
    """One of MOA's classifiers; SGBT has boosting steps instead of trees."""

    def make(task: Task) -> Any:
        from experiments.league.moa import Moa

        return Moa(name, n_trees, task.seed, task.capymoa)

    return Model(about, make, of_moa=True)


def adaptive() -> dict[str, Model]:
    """The forests that adapt their memory, where this version has them."""
    forests = (OnlineForestClassifier, OnlineForestRegressor)
    labels, numbers = ("memory" in inspect.signature(forest).parameters for forest in forests)
    model = ours('memory="adaptive"', memory="adaptive")
    return (
        {"ours, adaptive": replace(model, numbers=model.numbers if numbers else None)}
        if labels
        else {}
    )


MODELS: dict[str, Model] = {
    "ours": ours("defaults: keeps all samples"),
    "ours, window 500": ours("window=500", window=500),
    "ours, window 2000": ours("window=2000", window=2000),
    **adaptive(),
    "River ARF": replace(
        river("forest.ARFClassifier"),
        about="forest.ARFClassifier and forest.ARFRegressor, defaults",
        numbers=lambda task: RiversNumbers("forest.ARFRegressor", n_models=N_TREES, seed=task.seed),
    ),
    "River SRP": river("ensemble.SRPClassifier"),
    "River AMF": river("forest.AMFClassifier", "n_estimators", rescale=True),
    "River HAT": river("tree.HoeffdingAdaptiveTreeClassifier", None),
    "MOA ARF": moa("meta.AdaptiveRandomForest, defaults", "AdaptiveRandomForest"),
    "MOA SRP": moa("meta.StreamingRandomPatches, defaults", "StreamingRandomPatches"),
    "MOA SGBT": moa(
        "meta.StreamingGradientBoostedTrees, defaults: 100 boosting steps",
        "StreamingGradientBoostedTrees",
        100,
    ),
    "LightGBM": Model(
        f"defaults: 100 boosting steps; trained again on the latest {Boosting.WINDOW:,} samples "
        f"after each {Boosting.EACH}",
        lambda task: Boosting(task.seed),
    ),
    "Mondrian": mondrian("MondrianForestClassifier, defaults"),
    "Mondrian, paper": mondrian(
        'MondrianForestClassifier with feature_weights="range", leaf_discount=0.0',
        feature_weights="range",
        leaf_discount=0.0,
    ),
    "River AMF, not rescaled": river("forest.AMFClassifier", "n_estimators", standard=False),
}
OURS = [name for name in MODELS if name.startswith("ours")]
