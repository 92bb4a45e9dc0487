"""Compares our forest with River's on streams: each sample is predicted, then learned.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.streams

Ten trees each. Accuracy and log loss over the whole stream, and the time per sample. River is
slow: by default the first 20,000 samples of the long streams are taken. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from experiments.common import load, print_header, print_row, river_rows, show_progress
from onlineforest import MondrianForestClassifier

N_TREES = 10
STREAMS = {
    "phishing": "phishing_river",
    "bananas": "bananas",
    "elec2": "elec2",
    "covtype": "covtype",
}


class Ours:
    """Our forest with the interface of River's: probabilities by class."""

    def __init__(self, seed, classes, **parameters):
        self.forest = MondrianForestClassifier(N_TREES, random_state=seed, **parameters)
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
    """One of River's forests, on raw features or on features rescaled online to [0, 1]."""

    def __init__(self, name, rescale=False, **parameters):
        from river import forest, preprocessing

        model = getattr(forest, name)(**parameters)
        self.model = preprocessing.MinMaxScaler() | model if rescale else model

    def rows(self, X):
        return river_rows(X)

    def predict(self, row):
        return self.model.predict_proba_one(row)

    def learn(self, row, label):
        self.model.learn_one(row, label)


MODELS = {
    "paper": lambda seed, classes: Ours(seed, classes, feature_weights="range", leaf_discount=0.0),
    "learned": lambda seed, classes: Ours(
        seed, classes, feature_weights="learned", leaf_discount="learned"
    ),
    "River AMF": lambda seed, _: Rivers("AMFClassifier", n_estimators=N_TREES, seed=seed),
    # River's documentation recommends it: its trees cut in proportion to the ranges of features.
    "River AMF, rescaled": lambda seed, _: Rivers(
        "AMFClassifier", rescale=True, n_estimators=N_TREES, seed=seed
    ),
    "River ARF": lambda seed, _: Rivers("ARFClassifier", n_models=N_TREES, seed=seed),
}


def run(model, X, y):
    """Prequential accuracy and log loss, and seconds per sample."""
    rows, labels = model.rows(X), y.tolist()
    n_classes = len(set(labels))
    right, loss = 0, 0.0
    start = time.perf_counter()
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        probabilities = model.predict(row)
        total = sum(probabilities.values())
        p = probabilities.get(label, 0.0) / total if total > 0 else 1 / n_classes
        loss -= np.log(max(p, 1e-15))
        right += total > 0 and max(probabilities, key=probabilities.get) == label
        model.learn(row, label)
        if i % 1000 == 0:
            show_progress(f"{i} of {len(rows)} samples")
    seconds = time.perf_counter() - start
    return right / len(rows), loss / len(rows), seconds / len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=20_000, help="samples of a stream")
    parser.add_argument("--data", nargs="*", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    print_header("stream", "samples", "model", "accuracy", "log loss", "per sample")
    for name in arguments.data:
        X, y = (array[: arguments.limit] for array in load(STREAMS[name], "X", "y"))
        for model in arguments.models:
            results = [
                run(MODELS[model](seed, np.unique(y)), X, y) for seed in range(arguments.seeds)
            ]
            accuracy, loss, seconds = np.mean(results, axis=0)
            print_row(
                name,
                str(len(y)),
                model,
                f"{accuracy:.4f}",
                f"{loss:.4f}",
                f"{seconds * 1e6:.0f} µs",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
