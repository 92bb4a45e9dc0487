"""Draws `docs/stream.svg`, the picture of the README: digits learned online and by retraining.

``python -m docs.pictures readme`` takes about two minutes and prints the measurements. Runs differ
only in the seconds.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from onlineforest import OnlineForestClassifier, plot

BATCH = 50
ORDERS = 3
PATH = Path(__file__).resolve().parents[1] / "stream.svg"
Curves = dict[str, NDArray[np.float64]]


def stream(seed: int) -> tuple[Curves, Curves]:
    """After each batch but the first: accuracy so far, and processor seconds so far, by method.

    The seconds are those of learning and predicting: the online forest puts cuts off until a
    prediction needs them.
    """
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    models: dict[str, Any] = {
        "onlineforest": OnlineForestClassifier(random_state=seed),
        "random forest, retrained": RandomForestClassifier(random_state=seed),
        "extra-trees, retrained": ExtraTreesClassifier(random_state=seed),
    }
    accuracy, seconds = {}, {}
    for name, model in models.items():
        right: list[bool] = []
        marks = []
        begin = time.process_time()
        for start in range(0, len(X), BATCH):
            rows, labels = X[start : start + BATCH], y[start : start + BATCH]
            if start:
                right.extend(model.predict(rows) == labels)
            if hasattr(model, "partial_fit"):
                model.partial_fit(rows, labels)
            else:
                model.fit(X[: start + BATCH], y[: start + BATCH])
            if start:
                marks.append((np.mean(right), time.process_time() - begin))
        accuracy[name], seconds[name] = np.transpose(marks)
    return accuracy, seconds


def draw(accuracy: Curves, seconds: Curves) -> Figure:
    """Accuracy beside seconds, over the number of digits learned."""
    n_learned = np.minimum(BATCH * np.arange(2, 2 + len(next(iter(accuracy.values())))), 1797)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.learning_curve(n_learned, accuracy, ylabel="accuracy so far", ax=left)
    plot.learning_curve(n_learned, seconds, ylabel="seconds so far", ax=right)
    names = [f"{name}: {curve[-1]:.3f}" for name, curve in accuracy.items()]
    left.legend(left.get_lines(), names, loc="lower right", frameon=False)
    left.set(xlabel="digits learned", xlim=(0, 1800), ylim=(0.85, 0.98))
    right.get_legend().remove()  # one legend is enough
    right.set(xlabel="digits learned", xlim=(0, 2000), xticks=(0, 500, 1000, 1500))
    for line, curve in zip(right.get_lines(), seconds.values(), strict=True):
        right.text(1800, curve[-1], f" {curve[-1]:.0f} s", color=line.get_color(), va="center")
    return figure


def save() -> None:
    """Learn the digits in several orders, draw the mean curves and write the file."""
    accuracies, times = zip(*(stream(seed) for seed in range(ORDERS)), strict=True)
    accuracy: Curves = {name: np.mean([c[name] for c in accuracies], 0) for name in accuracies[0]}
    seconds: Curves = {name: np.mean([c[name] for c in times], 0) for name in times[0]}
    for name in accuracy:
        print(f"{name}: accuracy {accuracy[name][-1]:.3f}, {seconds[name][-1]:.1f} s")
    with mpl.rc_context({"svg.hashsalt": "stream", "font.size": 11.0}):
        draw(accuracy, seconds).savefig(PATH, metadata={"Date": None})
