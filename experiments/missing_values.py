"""Compares forests on data with missing values.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.missing_values

A share of all cells is removed at random, from samples to learn and to predict. Our forest and
scikit-learn's take missing values as they are; ours also runs with the median filled in. Accuracy /
log loss, mean over the seeds. Exits with 1 if the order-free forest is less accurate, in the mean
over all rows of a share, than a forest of scikit-learn or its own with the median filled in.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from experiments.common import load, parser_of, print_header, print_row, print_verdicts
from onlineforest import OnlineForestClassifier

DATA = ("digits", "satimages", "letter", "usps", "dna")
N_SAMPLES = 6000  # at most; a third of them is predicted
N_TREES = 100
LEAST_PROBABILITY = 1e-3


def methods(seed: int) -> dict:
    forest = {"n_estimators": N_TREES, "random_state": seed}
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    return {
        "order-free": OnlineForestClassifier(**forest),
        "order-free, median": make_pipeline(median, OnlineForestClassifier(**forest)),
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


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser_of(__doc__, 3, DATA).parse_args(argv)
    names, n_seeds = arguments.data, arguments.seeds
    warnings.simplefilter("ignore")  # about columns without any value
    print_header("data", "missing", *methods(0))
    accuracies = np.empty((3, len(names), len(methods(0))))
    for i, name in enumerate(names):
        for j, share in enumerate((0.1, 0.3, 0.5)):
            runs = [scores(name, share, seed) for seed in range(n_seeds)]
            means = [np.mean([run[method] for run in runs], axis=0) for method in runs[0]]
            cells = (f"{accuracy:.3f} / {loss:.2f}" for accuracy, loss in means)
            print_row(name, f"{share:.0%}", *cells)
            accuracies[j, i] = [accuracy for accuracy, _ in means]
    of_shares = accuracies.mean(axis=1)
    ok = bool((of_shares[:, :1] >= of_shares[:, 1:]).all())
    target = "most accurate at every share, in the mean over the data sets"
    return print_verdicts([(target, ok)])


if __name__ == "__main__":
    sys.exit(main())
