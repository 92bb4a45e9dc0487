"""Helpers that the experiments share: data, one pass in mini-batches, scores, tables."""

from __future__ import annotations

import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier


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


def mean_and_deviation(values, digits: int = 4) -> str:
    """Mean and standard deviation over the seeds, as a cell of a table."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


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
