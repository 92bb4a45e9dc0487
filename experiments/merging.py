"""Compares merged forests of parts of the data with one forest of all data.

    python -m experiments.merging [data set ...] [--classes]

The rows are divided at random, or by the range of the most relevant feature, or (--classes) by
class. There are 100 trees in all, or 100 for each part. `merge` weighs forests by their stored
samples and by the novelty of a row; "by samples" ignores novelty. The tables show accuracy / log
loss for classes (probabilities of at least 0.001), and for numbers the root mean squared error in
standard deviations of y / the log density of the normal distribution with the predicted moments.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.base import is_classifier
from sklearn.datasets import load_digits

from experiments.common import load, print_header, print_row
from onlineforest import MondrianForestClassifier, MondrianForestRegressor, merge

CLASSIFICATION = ("digits", "satimages", "letter", "dna", "elec2", "covtype", "bananas", "usps")
DEFAULT = ("digits", "satimages", "letter", "bananas", "kin8nm", "power_plant", "california")
N_SAMPLES = 6000  # at most; a third of them is predicted
N_TREES = 100
N_PARTS = (2, 4, 16)
LEAST_PROBABILITY = 1e-3
COLUMNS = ("merged", "by samples", "one part alone", "the forest of all")


def data_of(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name in ("satimages", "letter", "dna", "usps"):
        X, y = load(name, "X_train", "y_train")
    else:
        X, y = load(name, "X", "y")
    order = np.random.default_rng(seed).permutation(len(y))[:N_SAMPLES]
    return X[order].astype(float), y[order]


def parts_of(how: str, n_parts: int, X, y, feature: int, seed: int = 0) -> list[np.ndarray]:
    """The rows of each part; equal values are divided at random."""
    chance = np.random.default_rng([seed, 1]).random(len(y))
    by = {"random": chance, "range": X[:, feature], "class": y}[how]
    return np.array_split(np.lexsort((chance, by)), n_parts)


def answers(forest, X, classes) -> np.ndarray:
    """Probabilities of all classes; or means and deviations."""
    if not is_classifier(forest):
        return np.column_stack(forest.predict(X, return_std=True))
    probabilities = np.zeros((len(X), len(classes)))
    probabilities[:, np.searchsorted(classes, forest.classes_)] = forest.predict_proba(X)
    return probabilities


def by_samples(forests, X, classes) -> np.ndarray:
    """The prediction of `merge` without weights by novelty."""
    sizes = np.array([forest.n_samples_stored_ for forest in forests], dtype=float)
    each = np.stack([answers(forest, X, classes) for forest in forests])
    if is_classifier(forests[0]):
        return np.average(each, axis=0, weights=sizes)
    mean = np.average(each[..., 0], axis=0, weights=sizes)
    square = np.average(each[..., 1] ** 2 + (each[..., 0] - mean) ** 2, axis=0, weights=sizes)
    return np.column_stack([mean, np.sqrt(square)])


def score(answer, y, classes) -> tuple[float, float]:
    """Accuracy and log loss; or the error in standard deviations and the log density."""
    if classes is None:
        error, variance = answer[:, 0] - y, answer[:, 1] ** 2
        density = -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)
        return np.sqrt(np.mean(error**2)) / y.std(), density.mean()
    places = np.searchsorted(classes, y)
    of_truth = np.maximum(answer[np.arange(len(y)), places], LEAST_PROBABILITY)
    return (answer.argmax(axis=1) == places).mean(), -np.log(of_truth).mean()


def tables(name: str, hows: tuple[str, ...]):
    """For each division: its name, parts, trees of a part, and the scores of each column."""
    X, y = data_of(name)
    learned, asked = np.split(np.arange(len(y)), [len(y) * 2 // 3])
    classes = np.unique(y) if name in CLASSIFICATION else None
    kind = MondrianForestClassifier if name in CLASSIFICATION else MondrianForestRegressor

    def score_of(answer) -> tuple[float, float]:
        return score(answer, y[asked], classes)

    whole = kind(N_TREES, random_state=0).fit(X[learned], y[learned])
    feature = int(whole.feature_importances_.argmax())
    exact = score_of(answers(whole, X[asked], classes))
    for how in hows:
        for n_parts in N_PARTS:
            parts = parts_of(how, n_parts, X[learned], y[learned], feature)
            for n_trees in (max(N_TREES // n_parts, 1), N_TREES):
                forests = [
                    kind(n_trees, random_state=i).fit(X[part], y[part])
                    for i, part in enumerate(parts)
                ]
                yield (
                    (how, n_parts, n_trees),
                    score_of(answers(merge(forests), X[asked], classes)),
                    score_of(by_samples(forests, X[asked], classes)),
                    np.mean([score_of(answers(f, X[asked], classes)) for f in forests], axis=0),
                    exact,
                )


def main(arguments: list[str]) -> None:
    hows = ("random", "range", "class") if "--classes" in arguments else ("random", "range")
    print_header("data", "parts", "trees each", *COLUMNS)
    for name in [word for word in arguments if not word.startswith("--")] or DEFAULT:
        for (how, n_parts, n_trees), *scores in tables(name, hows):
            cells = [f"{first:.3f} / {second:.2f}" for first, second in scores]
            print_row(name, f"{n_parts}, {how}", str(n_trees), *cells)


if __name__ == "__main__":
    main(sys.argv[1:])
