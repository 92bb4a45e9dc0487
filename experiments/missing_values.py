"""Compares forests on data with missing values: python -m experiments.missing_values [data set ...]

A share of all cells is removed at random, from samples to learn and to predict. Our forest and
scikit-learn's take missing values as they are; ours also runs with the median filled in.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from experiments.common import load
from onlineforest import MondrianForestClassifier

N_SAMPLES = 6000  # at most; a third of them is predicted
N_TREES = 100
LEAST_PROBABILITY = 1e-3


def methods(seed: int) -> dict:
    forest = {"n_estimators": N_TREES, "random_state": seed}
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    return {
        "ours": MondrianForestClassifier(**forest),
        "ours, the median filled in": make_pipeline(median, MondrianForestClassifier(**forest)),
        "random forest": RandomForestClassifier(**forest),
        "ExtraTrees": ExtraTreesClassifier(**forest),
    }


def data_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = load(name, "X_train", "y_train")
    order = np.random.default_rng(seed).permutation(len(y))[:N_SAMPLES]
    return X[order].astype(float), y[order]


def scores(name: str, share: float, seed: int) -> dict[str, tuple[float, float]]:
    X, y = data_of(name, seed)
    X[np.random.default_rng([seed, 1]).random(X.shape) < share] = np.nan
    n = len(y) * 2 // 3
    result = {}
    for method, model in methods(seed).items():
        p = np.maximum(model.fit(X[:n], y[:n]).predict_proba(X[n:]), LEAST_PROBABILITY)
        p /= p.sum(axis=1, keepdims=True)
        right = model.classes_[p.argmax(axis=1)] == y[n:]
        result[method] = right.mean(), log_loss(y[n:], p, labels=model.classes_)
    return result


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")  # about columns without any value
    print("| data | missing | " + " | ".join(methods(0)) + " |")
    print("|---|---|" + "---|" * len(methods(0)))
    for name in names or ["digits", "satimages", "letter"]:
        for share in (0.1, 0.3, 0.5):
            runs = [scores(name, share, seed) for seed in range(2)]
            means = [np.mean([run[method] for run in runs], axis=0) for method in runs[0]]
            cells = " | ".join(f"{accuracy:.3f} / {loss:.2f}" for accuracy, loss in means)
            print(f"| {name} | {share:.0%} | {cells} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
