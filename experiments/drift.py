"""Compares memories on streams that drift with River's ARF: predict each sample, then learn it.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.drift
    python -m experiments.drift --quick

All methods take one sample at a time, on one thread, with ten trees unless their name says more. A
class that a method does not return has probability 0; a probability below 1e-6 counts as 1e-6. The
seconds include predicting and learning. --quick runs 2,000 samples of the generated streams
with three trees and needs no data folder. Needs the extra `experiments`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.common import print_header, print_row, river_rows, show_progress
from experiments.league import streams
from onlineforest import MondrianForestClassifier
from onlineforest._extras import MissingExtraError, require

LEAST_PROBABILITY = 1e-6
N_SAMPLES, N_QUICK = 20_000, 2_000
N_TREES, N_QUICK_TREES = 10, 3
WINDOW, HALF_LIFE, SHORT_WINDOW = 2_000, 1_000, 200

Probabilities = dict[int, float]

OWN = ("steady", "abrupt", "gradual", "recurring", "agrawal", "sea")  # generated
STREAMS = (*OWN, "elec2", "elec2-no-date", "covtype")


class Watch:
    """Decides from the losses of a stream when to forget, and how much to keep.

    It has two detectors with the thresholds of River's ARF. The sensitive one warns that the loss
    may have risen; the other raises the alarm. Samples from before the warning are out of date.

    Parameters
    ----------
    since_warning : bool
        Keep the samples since the latest warning; otherwise the window of the alarm's detector.
    """

    def __init__(self, since_warning: bool = True) -> None:
        from river.drift import ADWIN

        self.warning, self.alarm = ADWIN(delta=0.01), ADWIN(delta=0.001)
        self.since_warning = since_warning
        self.n_losses, self.warned = 0, 0

    def n_to_keep(self, loss: float) -> int | None:
        """Number of latest samples to keep, including this one; None: all."""
        self.n_losses += 1
        if rises(self.warning, loss):
            self.warned = self.n_losses
        if not rises(self.alarm, loss):
            return None
        width = int(self.alarm.width)
        return min(width, self.n_losses - self.warned + 1) if self.since_warning else width


def rises(detector: Any, loss: float) -> bool:
    """Give the detector a loss; return whether it detects that losses have risen."""
    before = detector.estimation
    detector.update(loss)
    return detector.drift_detected and detector.estimation > before


class Forest:
    """Our forest with probabilities by class; a watch, if given, makes it forget."""

    def __init__(self, n_trees: int, seed: int, watch: Watch | None = None, **memory: Any) -> None:
        self.forest = MondrianForestClassifier(n_trees, random_state=seed, **memory)
        self.watch = watch
        self.n_shrunk = None if watch is None else 0
        self.guess: int | None = None

    def rows(self, X: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        return list(X)

    def predict(self, row: NDArray[np.float32]) -> Probabilities:
        if not hasattr(self.forest, "classes_"):
            return {}
        probabilities = self.forest.predict_proba_one(row)
        classes = self.forest.classes_.tolist()
        self.guess = classes[probabilities.argmax()]
        return dict(zip(classes, probabilities.tolist(), strict=True))

    def learn(self, row: NDArray[np.float32], label: int) -> None:
        """Learn the sample that was just predicted."""
        self.forest.learn_one(row, label)
        if self.watch is None:
            return
        n = self.watch.n_to_keep(float(self.guess != label))
        if n is not None and n < self.forest.n_samples_stored_:
            self.forest.keep_latest(n)
            self.n_shrunk += 1


class TwoMemories:
    """A forest with a watch and one with a short window, mixed.

    The weight of each is the probability it gave to the latest labels. With each further sample,
    the logarithm of an older probability counts 0.98 times as much.
    """

    def __init__(self, n_trees: int, seed: int) -> None:
        self.watched = Forest(n_trees, seed, watch=Watch())
        self.forests = (self.watched, Forest(n_trees, seed, window=SHORT_WINDOW))
        self.log_weights = np.zeros(2)
        self.said: list[Probabilities] = []

    @property
    def n_shrunk(self) -> int | None:
        return self.watched.n_shrunk

    def rows(self, X: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        return list(X)

    def predict(self, row: NDArray[np.float32]) -> Probabilities:
        self.said = [forest.predict(row) for forest in self.forests]
        weights = np.exp(self.log_weights - self.log_weights.max())
        long, short = (weights / weights.sum()).tolist()
        return {
            label: long * self.said[0][label] + short * self.said[1][label]
            for label in self.said[0]
        }

    def learn(self, row: NDArray[np.float32], label: int) -> None:
        logs = [math.log(max(said.get(label, 0.0), LEAST_PROBABILITY)) for said in self.said]
        self.log_weights = 0.98 * self.log_weights + logs
        for forest in self.forests:
            forest.learn(row, label)


class NoChange:
    """Predicts the previous label with its accuracy so far; other classes share the rest."""

    n_shrunk = None

    def __init__(self) -> None:
        self.classes: set[int] = set()
        self.last: int | None = None
        self.n_right, self.n_seen = 1, 2

    def rows(self, X: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        return list(X)

    def predict(self, _row: NDArray[np.float32]) -> Probabilities:
        others = self.classes - {self.last}
        right = self.n_right / self.n_seen
        known = {} if self.last is None else {self.last: right}
        return known | {label: (1 - right) / len(others) for label in others}

    def learn(self, _row: NDArray[np.float32], label: int) -> None:
        if self.last is not None:
            self.n_right += label == self.last
            self.n_seen += 1
        self.classes.add(label)
        self.last = label


class RiverARF:
    """River's adaptive random forest with its default parameters."""

    n_shrunk = None

    def __init__(self, n_trees: int, seed: int) -> None:
        from river.forest import ARFClassifier

        self.model = ARFClassifier(n_models=n_trees, seed=seed)

    def rows(self, X: NDArray[np.float32]) -> list[dict[int, float]]:
        return river_rows(X)

    def predict(self, row: dict[int, float]) -> Probabilities:
        return self.model.predict_proba_one(row)

    def learn(self, row: dict[int, float], label: int) -> None:
        self.model.learn_one(row, label)


METHODS: dict[str, Callable[[int, int], Any]] = {
    "no change": lambda *_: NoChange(),
    "all": Forest,
    "window 500": lambda *who: Forest(*who, window=500),
    "window 2000": lambda *who: Forest(*who, window=WINDOW),
    "half-life 1000": lambda *who: Forest(*who, reservoir=WINDOW, half_life=HALF_LIFE),
    "recipe": lambda *who: Forest(*who, watch=Watch()),
    "recipe, ADWIN's width": lambda *who: Forest(*who, watch=Watch(since_warning=False)),
    "recipe and window 2000": lambda *who: Forest(*who, watch=Watch(), window=WINDOW),
    "River ARF": RiverARF,
    "two memories, twice the trees": TwoMemories,
    "recipe, five times the trees": lambda n, seed: Forest(5 * n, seed, watch=Watch()),
}


@dataclass(frozen=True)
class Scores:
    """Scores of one method on one stream."""

    accuracy: float
    log_loss: float
    seconds: float
    n_shrunk: int | None  # number of alarms after which it forgot; None: it has no watch


def evaluate(model: Any, X: NDArray[np.float32], y: NDArray[np.int64], name: str = "") -> Scores:
    """Predict each sample, then learn it."""
    rows, labels = model.rows(X), y.tolist()
    n_right, loss = 0, 0.0
    start = time.perf_counter()
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        probabilities = model.predict(row)
        total = sum(probabilities.values())
        if total > 0:
            n_right += max(probabilities, key=probabilities.__getitem__) == label
            loss -= math.log(max(probabilities.get(label, 0.0) / total, LEAST_PROBABILITY))
        else:
            loss -= math.log(LEAST_PROBABILITY)
        model.learn(row, label)
        if i % 1000 == 0:
            show_progress(f"{name}: {i} of {len(rows)} samples")
    seconds = time.perf_counter() - start
    return Scores(n_right / len(rows), loss / len(rows), seconds, model.n_shrunk)


def print_summary(title: str, cells: dict[tuple[str, str], str]) -> None:
    """A table of one measure: methods down, streams across."""
    streams, methods = (list(dict.fromkeys(keys)) for keys in zip(*cells, strict=True))
    print(f"\n{title}\n")
    print_header("method", *streams)
    for method in methods:
        print_row(method, *(cells[stream, method] for stream in streams))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short streams and few trees")
    parser.add_argument("--streams", nargs="+", choices=STREAMS, help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seed", type=int, default=0, help="of generated streams and forests")
    arguments = parser.parse_args(argv)
    try:
        require("river", "experiments")
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return 2
    quick = arguments.quick
    n_samples, n_trees = (N_QUICK, N_QUICK_TREES) if quick else (N_SAMPLES, N_TREES)

    print_header("stream", "samples", "method", "accuracy", "log loss", "seconds", "shrunk")
    results = {}
    for name in arguments.streams or (OWN if quick else STREAMS):
        stream = streams.STREAMS[name]
        n = n_samples if name in OWN else stream.n_samples
        X, y = stream.draw(n, arguments.seed)
        for method in arguments.methods:
            model = METHODS[method](n_trees, arguments.seed)
            scores = results[name, method] = evaluate(model, X, y, f"{name}, {method}")
            print_row(
                name,
                str(len(y)),
                method,
                f"{scores.accuracy:.4f}",
                f"{scores.log_loss:.4f}",
                f"{scores.seconds:.1f}",
                "-" if scores.n_shrunk is None else str(scores.n_shrunk),
            )
    for title, form in (
        ("Accuracy", lambda scores: f"{scores.accuracy:.3f}"),
        ("Log loss", lambda scores: f"{scores.log_loss:.3f}"),
        ("Seconds", lambda scores: f"{scores.seconds:.0f}"),
    ):
        print_summary(title, {key: form(scores) for key, scores in results.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
