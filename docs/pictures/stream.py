"""Draws `docs/stream.svg`, the picture of the README: digits learned online and by retraining.

``python -m docs.pictures readme`` takes ten to twenty seconds and prints the measurements. The file
differs between runs only in the seconds of its legend.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from onlineforest import MondrianForestClassifier, plot

BATCH = 50
PATH = Path(__file__).resolve().parents[1] / "stream.svg"


def stream() -> tuple[list[int], dict[str, list[float]], dict[str, float]]:
    """Numbers of samples, accuracy of each method up to there, and its seconds of learning."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    models: dict[str, Any] = {
        "onlineforest, learns each digit once": MondrianForestClassifier(random_state=0),
        "extra-trees, trained afresh each time": ExtraTreesClassifier(random_state=0),
    }
    right: dict[str, list[bool]] = {name: [] for name in models}
    seconds = dict.fromkeys(models, 0.0)
    for start in range(0, len(X), BATCH):
        rows, labels = X[start : start + BATCH], y[start : start + BATCH]
        for name, model in models.items():
            if start:
                right[name].extend(model.predict(rows) == labels)
            begin = time.process_time()
            if hasattr(model, "partial_fit"):
                model.partial_fit(rows, labels)
            else:
                model.fit(X[: start + BATCH], y[: start + BATCH])
            seconds[name] += time.process_time() - begin
    n_predicted = list(range(BATCH, len(X) - BATCH + 1, BATCH))
    curves = {name: [float(np.mean(hits[:n])) for n in n_predicted] for name, hits in right.items()}
    return n_predicted, curves, seconds


def save() -> None:
    """Learn the digits, draw both curves and write the file."""
    n_samples, curves, seconds = stream()
    named = {f"{name}: {seconds[name]:.1f} s": curve for name, curve in curves.items()}
    for name, curve in named.items():
        print(f"{name}, accuracy {curve[-1]:.3f}")
    with mpl.rc_context({"svg.hashsalt": "stream", "font.size": 11.0}):
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        axes = figure.subplots()
        plot.learning_curve(n_samples, named, ylabel="accuracy so far", ax=axes)
        axes.legend(axes.get_lines(), list(named), loc="lower right", frameon=False)
        axes.set(xlabel="digits learned", xlim=(0, 1800))
        figure.savefig(PATH, metadata={"Date": None})
