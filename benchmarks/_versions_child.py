"""One version of the package, for `benchmarks.versions`: measures what standard input names.

It uses the public interface alone, because the other version may be arranged differently.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import onlineforest
from benchmarks.memory import forget_the_past, resident_and_peak
from benchmarks.timing import seconds_of
from benchmarks.versions import LARGE
from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor

N_LEARNED = 3000
NOISY_ROWS, NOISY_FEATURES, NOISY_TREES = 100_000, 20, 100


def make_tasks() -> dict[str, Callable[[], object]]:
    """The tasks by name: each takes between a millisecond and a tenth of a second."""
    digits, classes = load_digits(return_X_y=True)
    digits = digits.astype(np.float32)
    rng = np.random.default_rng(0)
    rows = rng.random((4000, 12)).astype(np.float32)
    labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0.7).astype(int)
    numbers = 3.0 * rows[:, 0] + rng.normal(0, 0.1, len(rows))
    gaps = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
    queries = rows[N_LEARNED:]
    common: dict[str, Any] = {"n_estimators": 10, "random_state": 1, "n_jobs": 1}

    def mondrian(**given: Any) -> MondrianForestClassifier:
        return MondrianForestClassifier(**common, feature_weights="range", **given)

    def classifier(**given: Any) -> OnlineForestClassifier:
        return OnlineForestClassifier(**common, **given)

    def regressor() -> OnlineForestRegressor:
        return OnlineForestRegressor(**common)

    def stream(forest: Any, X: Any, y: Any) -> None:
        for row, value in zip(X, y, strict=True):
            forest.learn_one(row, value)

    def predicted_stream(forest: Any, X: Any, y: Any) -> None:
        for row, value in zip(X, y, strict=True):
            forest.learn_one(row, value)
            forest.predict_one(row)

    def batches(forest: Any, size: int) -> None:
        for start in range(0, 1000, size):
            forest.partial_fit(
                digits[start : start + size], classes[start : start + size], classes=np.arange(10)
            )

    # Forests that predict are learned when they are first asked.
    on_digits = cache(lambda: mondrian().fit(digits[:1200], classes[:1200]))
    on_rows = cache(lambda: mondrian().fit(rows[:N_LEARNED], labels[:N_LEARNED]))
    labelled = cache(lambda: classifier().fit(rows[:N_LEARNED], labels[:N_LEARNED]))
    with_gaps = cache(lambda: classifier().fit(gaps[:N_LEARNED], labels[:N_LEARNED]))
    numbered = cache(lambda: regressor().fit(rows[:N_LEARNED], numbers[:N_LEARNED]))
    return {
        "fit digits": lambda: classifier().fit(digits[:800], classes[:800]),
        "fit synthetic": lambda: classifier().fit(rows[:1500], labels[:1500]),
        "fit missing values": lambda: classifier().fit(gaps[:800], labels[:800]),
        "fit numbers": lambda: regressor().fit(rows[:1000], numbers[:1000]),
        "one by one": lambda: stream(classifier(), rows[:800], labels[:800]),
        "one by one, predicted": lambda: predicted_stream(classifier(), rows[:200], labels[:200]),
        "one by one, numbers": lambda: stream(regressor(), rows[:300], numbers[:300]),
        "mini-batches": lambda: batches(classifier(), 50),
        "window": lambda: batches(classifier(window=300), 100),
        "forget": lambda: classifier().fit(digits[:600], classes[:600]).keep_latest(200),
        "predict": lambda: labelled().predict_proba(queries),
        "predict one": lambda: [labelled().predict_one(row) for row in queries[:500]],
        "predict missing values": lambda: with_gaps().predict_proba(gaps[N_LEARNED:]),
        "predict numbers": lambda: numbered().predict(rows),
        "predict intervals": lambda: numbered().predict_interval(rows),
        "Mondrian: fit digits": lambda: mondrian().fit(digits[:800], classes[:800]),
        "Mondrian: fit synthetic": lambda: mondrian().fit(rows[:1500], labels[:1500]),
        "Mondrian: fit learned weights": lambda: MondrianForestClassifier(**common).fit(
            digits[:300], classes[:300]
        ),
        "Mondrian: one by one digits": lambda: stream(mondrian(), digits[:600], classes[:600]),
        "Mondrian: one by one synthetic": lambda: stream(mondrian(), rows[:800], labels[:800]),
        "Mondrian: mini-batches": lambda: batches(mondrian(), 50),
        "Mondrian: window": lambda: batches(mondrian(window=300), 20),
        "Mondrian: forget": lambda: mondrian().fit(digits[:600], classes[:600]).keep_latest(200),
        "Mondrian: predict digits": lambda: on_digits().predict_proba(digits[1200:]),
        "Mondrian: predict synthetic": lambda: on_rows().predict_proba(queries),
        "Mondrian: predict one": lambda: [on_rows().predict_one(row) for row in queries[:500]],
        "Mondrian: novelty": lambda: on_rows().novelty(queries[:400]),
    }


def large_tasks() -> dict[str, Callable[[], float]]:
    """Measurements by name, with all cores: seconds or bytes of learning a noisy table.

    Six features have weak effects on the labels. Trees may be grown as late as the first
    prediction, so two of the three measurements include it.
    """

    @cache
    def table() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(NOISY_ROWS, NOISY_FEATURES)).astype(np.float32)
        chance = 1 / (1 + np.exp(-0.25 * X[:, :6].sum(axis=1)))
        return X, (rng.random(NOISY_ROWS) < chance).astype(int)

    def fitted() -> OnlineForestClassifier:
        return OnlineForestClassifier(NOISY_TREES, random_state=1, n_jobs=-1).fit(*table())

    def predicted() -> OnlineForestClassifier:
        forest = fitted()
        forest.predict_proba(table()[0][:1000])
        return forest

    def resident() -> float:
        table()
        forget_the_past()
        before, _ = resident_and_peak()
        forest = predicted()
        forget_the_past()
        after, _ = resident_and_peak()
        del forest
        return float(after - before)

    def seconds(job: Callable[[], object]) -> float:
        table()
        return seconds_of(job)

    return {
        f"{LARGE} noisy table, fit": lambda: seconds(fitted),
        f"{LARGE} noisy table, first answer": lambda: seconds(predicted),
        f"{LARGE} noisy table, memory": resident,
    }


def measurements() -> dict[str, Callable[[], float]]:
    """All tasks by name, each with what it measures. Both versions use the same core."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

    def on(some: set[int], measure: Callable[[], float]) -> float:
        if some:
            os.sched_setaffinity(0, some)
        return measure()

    one = {max(cores)} if cores else cores
    return {
        **{
            name: lambda task=task: on(one, lambda: seconds_of(task))
            for name, task in make_tasks().items()
        },
        **{name: lambda task=task: on(cores, task) for name, task in large_tasks().items()},
    }


def main(folder: str) -> None:
    """Print the names of the tasks, then what each task measures that is named."""
    if not Path(onlineforest.__file__).is_relative_to(folder):
        raise SystemExit(f"imported {onlineforest.__file__}, which is not in {folder}")
    warnings.simplefilter("ignore")
    tasks = measurements()
    print("\t".join(tasks), flush=True)
    for line in sys.stdin:
        print(tasks[line.rstrip("\n")](), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
