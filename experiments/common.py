"""Helpers that the experiments share: data, one pass in mini-batches, scores, tables."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from experiments.paper.data import raw

TEST_SHARE = 0.3
COVTYPE_SAMPLES = 50_000
N_BINS = 15  # bins of the expected calibration error

# Train and test: X, y, X_test, y_test.
Arrays = tuple[NDArray, ...]


def data_folder() -> Path:
    """The folder of the data sets; if there is none, print how to set it and exit with 2."""
    folder = os.environ.get("ONLINEFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        print(
            "Set ONLINEFOREST_DATA to the folder of the data sets (usps.npz, …).", file=sys.stderr
        )
        raise SystemExit(2)
    return Path(folder)


def load(name: str, *keys: str) -> tuple[np.ndarray, ...]:
    """Arrays of a data set's file."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
        return tuple(data[key] for key in keys)


def split(X, y, rng, n_test: int):
    """Rows to train and rows to test, both in random order."""
    order = rng.permutation(len(y))
    test, train = order[:n_test], order[n_test:]
    return X[train], y[train], X[test], y[test]


def random_split(arrays: Callable[[], Arrays], n_samples: int | None = None):
    """Samples of a seed, or `n_samples` random ones, split 70:30."""

    def of_seed(seed: int) -> Arrays:
        rng = np.random.default_rng(seed)
        X, y = arrays()
        if n_samples is not None and n_samples < len(y):
            some = rng.permutation(len(y))[:n_samples]
            X, y = X[some], y[some]
        return split(X, y, rng, n_test=round(len(y) * TEST_SHARE))

    return of_seed


# Train and test of a seed, by the name of the data. The first four have the paper's own split.
CLASSIFICATION: dict[str, Callable[[int], Arrays]] = {
    "letter": lambda _: raw("letter"),
    "usps": lambda _: raw("usps"),
    "satimages": lambda _: raw("satimages"),
    "dna": lambda _: raw("dna"),
    "digits": random_split(lambda: load_digits(return_X_y=True)),
    "elec2": random_split(lambda: load("elec2", "X", "y")),
    "covtype": random_split(lambda: load("covtype", "X", "y"), COVTYPE_SAMPLES),
    "phishing": random_split(lambda: load("phishing_river", "X", "y")),
    "bananas": random_split(lambda: load("bananas", "X", "y")),
}


def river_rows(X) -> list[dict[int, float]]:
    """Rows as the dicts that River takes."""
    return [dict(enumerate(row)) for row in X.tolist()]


def batch_edges(n_rows: int, n_batches: int) -> list[int]:
    """Where mini-batches of equal size begin and end; the last takes the remainder."""
    n_batches = min(n_batches, n_rows)
    size = n_rows // n_batches
    return [*range(0, size * n_batches, size), n_rows]


def learn_in_batches(forest, X, y, order, n_batches: int = 100) -> float:
    """One online pass over the rows in `order`; returns the seconds it took."""
    edges = batch_edges(len(order), n_batches)
    known = {"classes": np.unique(y)} if is_classifier(forest) else {}
    start = time.perf_counter()
    for begin, end in pairwise(edges):
        batch = order[begin:end]
        forest.partial_fit(X[batch], y[batch], **known)
    return time.perf_counter() - start


def accuracy_and_log_loss(probabilities, classes, y, least: float = 1e-15) -> tuple[float, float]:
    """Both from one matrix of probabilities; a probability below `least` counts as `least`."""
    places = np.searchsorted(classes, y)
    of_truth = probabilities[np.arange(len(y)), places]
    accuracy = (probabilities.argmax(axis=1) == places).mean()
    return float(accuracy), float(-np.log(np.maximum(of_truth, least)).mean())


def area(probabilities, y) -> float:
    """The area under the ROC curve, the mean over the classes if there are more than two.

    `y` holds the columns of the labels.
    """
    classes = [1] if probabilities.shape[1] == 2 else np.unique(y)
    return float(np.mean([roc_auc_score(y == c, probabilities[:, c]) for c in classes]))


def calibration_error(probabilities, classes, y) -> float:
    """Expected calibration error of the most probable class, with bins of equal width."""
    sure = probabilities.max(axis=1)
    right = classes[probabilities.argmax(axis=1)] == y
    bins = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    gaps = [np.abs(np.sum(right[bins == b] - sure[bins == b])) for b in range(N_BINS)]
    return float(np.sum(gaps) / len(y))


def mean_and_deviation(values, digits: int = 4) -> str:
    """Mean and standard deviation over the seeds, as a cell of a table."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def parser_of(module: str | None, n_seeds: int, data: Iterable[str]) -> argparse.ArgumentParser:
    """A parser of the options `--seeds` and `--data`, under the first line of a docstring."""
    assert module is not None
    names = list(data)
    parser = argparse.ArgumentParser(description=module.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=n_seeds)
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    return parser


def print_verdicts(verdicts: list[tuple[str, bool]]) -> int:
    """Print each target and whether it is met; the exit code: 1 if one is missed."""
    print()
    for target, is_met in verdicts:
        print(f"- {target}: {'yes' if is_met else 'NO'}")
    return 0 if all(is_met for _, is_met in verdicts) else 1


def show_progress(text: str) -> None:
    """Overwrite one line of a terminal; print nothing to a file."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def print_header(*columns: str) -> None:
    print(f"| {' | '.join(columns)} |")
    print(f"|{'|'.join('---' for _ in columns)}|", flush=True)


def print_row(*cells: str) -> None:
    show_progress("")
    print(f"| {' | '.join(cells)} |", flush=True)
