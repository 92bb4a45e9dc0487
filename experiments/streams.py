"""Compares our forests with River's on streams: each sample is predicted, then learned.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.streams
    python -m experiments.streams --data agrawal sea --models order-free learned --trees 10 50

Ten trees each, unless `--trees` names other numbers. Accuracy and log loss over the whole stream,
and the time. River is slow: by default the first 20,000 samples of the long streams are taken.
Streams that River generates need no data folder. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module

import numpy as np

from experiments import drift
from experiments.common import load, print_header, print_row, river_rows, show_progress
from experiments.drift import NOISE, river_stream
from onlineforest import MondrianForestClassifier, OnlineForestClassifier

N_TREES = 10
STREAMS = {
    "phishing": "phishing_river",
    "bananas": "bananas",
    "elec2": "elec2",
    "covtype": "covtype",
}
GENERATED = {
    # Three concepts, one after the other.
    **{name: drift.GENERATED[name] for name in ("agrawal", "sea")},
    # A plane that turns slowly.
    "hyperplane": river_stream("Hyperplane", "n_drift_features", (2,), mag_change=0.001),
    # One concept.
    "LED": river_stream("LED", "noise_percentage", (NOISE,), irrelevant_features=True),
    "waveform": river_stream("Waveform", "has_noise", (True,)),
}
DATA = [*STREAMS, *GENERATED]


class Ours:
    """One of our forests with the interface of River's: probabilities by class."""

    def __init__(self, forest, classes):
        self.forest = forest
        self.classes = classes

    def rows(self, X):
        return list(X.astype(np.float32))

    def predict(self, row):
        if not hasattr(self.forest, "classes_"):
            return {}
        return dict(
            zip(self.forest.classes_.tolist(), self.forest.predict_proba_one(row), strict=True)
        )

    def learn(self, row, label):
        if hasattr(self.forest, "classes_"):
            self.forest.learn_one(row, label)
        else:
            self.forest.partial_fit([row], [label], classes=self.classes)


class Rivers:
    """One of River's models, on raw features or on features rescaled online to [0, 1]."""

    def __init__(self, name, rescale=False, **parameters):
        from river import preprocessing

        module, _, kind = name.rpartition(".")
        model = getattr(import_module(f"river.{module}"), kind)(**parameters)
        self.model = preprocessing.MinMaxScaler() | model if rescale else model

    def rows(self, X):
        return river_rows(X)

    def predict(self, row):
        return self.model.predict_proba_one(row)

    def learn(self, row, label):
        self.model.learn_one(row, label)


def mondrian(**parameters):
    return lambda n_trees, seed, classes: Ours(
        MondrianForestClassifier(n_trees, random_state=seed, **parameters), classes
    )


def river(name, n_trees="n_models", **parameters):
    """One of River's models; `n_trees` is its parameter for the number of trees."""
    return lambda n, seed, _: Rivers(name, **{n_trees: n}, seed=seed, **parameters)


MODELS = {
    "order-free": lambda n_trees, seed, classes: Ours(
        OnlineForestClassifier(n_trees, random_state=seed), classes
    ),
    "paper": mondrian(feature_weights="range", leaf_discount=0.0),
    "learned": mondrian(feature_weights="learned", leaf_discount="learned"),  # the default
    "River AMF": river("forest.AMFClassifier", "n_estimators"),
    # River's documentation recommends it: its trees cut in proportion to the ranges of features.
    "River AMF, rescaled": river("forest.AMFClassifier", "n_estimators", rescale=True),
    "River ARF": river("forest.ARFClassifier"),
    "River SRP": river("ensemble.SRPClassifier"),
}


def samples_of(name, limit: int):
    """The first samples of a stream, `limit` at most."""
    if name in GENERATED:
        return GENERATED[name](limit, 0)
    X, y = load(STREAMS[name], "X", "y")
    return X[:limit], y[:limit]


def run(model, X, y, least: float = 1e-15):
    """Prequential accuracy and log loss, and seconds per sample.

    A probability below `least` counts as `least` in the log loss.
    """
    rows, labels = model.rows(X), y.tolist()
    n_classes = len(set(labels))
    right, loss = 0, 0.0
    start = time.perf_counter()
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        probabilities = model.predict(row)
        total = sum(probabilities.values())
        p = probabilities.get(label, 0.0) / total if total > 0 else 1 / n_classes
        loss -= np.log(max(p, least))
        right += total > 0 and max(probabilities, key=probabilities.get) == label
        model.learn(row, label)
        if i % 1000 == 0:
            show_progress(f"{i} of {len(rows)} samples")
    seconds = time.perf_counter() - start
    return right / len(rows), loss / len(rows), seconds / len(rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=20_000, help="samples of a stream")
    parser.add_argument("--trees", type=int, nargs="+", default=[N_TREES], help="of each model")
    parser.add_argument(
        "--least", type=float, default=1e-15, help="least probability in the log loss"
    )
    parser.add_argument("--data", nargs="*", choices=DATA, default=DATA)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args(argv)
    print_header(
        "stream", "samples", "trees", "model", "accuracy", "log loss", "per sample", "seconds"
    )
    for name in arguments.data:
        X, y = samples_of(name, arguments.limit)
        for n_trees in arguments.trees:
            for model in arguments.models:
                results = [
                    run(MODELS[model](n_trees, seed, np.unique(y)), X, y, arguments.least)
                    for seed in range(arguments.seeds)
                ]
                accuracy, loss, seconds = np.mean(results, axis=0)
                print_row(
                    name,
                    str(len(y)),
                    str(n_trees),
                    model,
                    f"{accuracy:.4f}",
                    f"{loss:.4f}",
                    f"{seconds * 1e6:.0f} µs",
                    f"{seconds * len(y):.1f}",
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
