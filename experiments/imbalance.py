"""A rare class: average precision and recall beside balanced batch forests and River's ARF.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.imbalance
    python -m experiments.imbalance --data generated --seeds 1

One sample of about 200 is of the rare class. Batch: 100 trees, 70:30 by seed. Stream: ten trees,
each sample is predicted, then learned; the first half is not counted. Average precision goes by
the predicted probability of the rare class; recall and precision by the predicted class.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, precision_score, recall_score

from experiments.common import (
    load,
    mean_and_deviation,
    parser_of,
    print_header,
    print_row,
    show_progress,
)
from experiments.common import split as split_rows
from experiments.league.models import Ours, Rivers
from onlineforest import OnlineForestClassifier

N_SAMPLES = 20_000
RARE = 0.005  # share of the rare class
HEAVY = 50  # weight of the rare class where it gets one
VARIANTS: dict[str, dict[str, Any]] = {
    "order-free": {},
    'order-free, "balanced"': {"class_weight": "balanced"},
    f"order-free, {{1: {HEAVY}}}": {"class_weight": {1: HEAVY}},
}
BATCH = {
    "random forest": lambda seed: RandomForestClassifier(random_state=seed, n_jobs=-1),
    "random forest, balanced": lambda seed: RandomForestClassifier(
        class_weight="balanced", random_state=seed, n_jobs=-1
    ),
    "random forest, balanced subsamples": lambda seed: RandomForestClassifier(
        class_weight="balanced_subsample", random_state=seed, n_jobs=-1
    ),
    "ERT-k, balanced": lambda seed: ExtraTreesClassifier(
        class_weight="balanced", random_state=seed, n_jobs=-1
    ),
}

Arrays = tuple[NDArray[np.float32], NDArray[np.int64]]


def generated(seed: int, n_samples: int) -> Arrays:
    """Two clusters of each class in eight of twenty features, and a little noise."""
    X, y = make_classification(
        n_samples,
        20,
        n_informative=8,
        n_redundant=0,
        n_clusters_per_class=2,
        weights=[1 - RARE],
        flip_y=0.001,
        class_sep=2.0,
        random_state=seed,
    )
    return X.astype(np.float32), y


def covtype(seed: int, n_samples: int) -> Arrays:
    """The rarest cover type, one tree of 211, against the others."""
    X, y = load("covtype", "X", "y")
    chosen = np.random.default_rng(seed).permutation(len(y))[:n_samples]
    rarest = np.bincount(y).argmin()
    return X[chosen].astype(np.float32), (y[chosen] == rarest).astype(np.int64)


DATA = {"generated": generated, "covtype": covtype}


def scores_of(p: NDArray[np.float64], guess: NDArray[Any], y: NDArray[Any]) -> list[float]:
    """Average precision, recall and precision."""
    return [
        float(average_precision_score(y, p)),
        float(recall_score(y, guess)),
        float(precision_score(y, guess, zero_division=0)),
    ]


def batch_scores(X: NDArray[Any], y: NDArray[Any], seed: int) -> dict[str, list[float]]:
    """Scores of forests that learn 70 % of the samples at once."""
    X, y, X_test, y_test = split_rows(X, y, np.random.default_rng(seed), int(0.3 * len(y)))
    ours = {
        name: OnlineForestClassifier(random_state=seed, n_jobs=-1, **parameters)
        for name, parameters in VARIANTS.items()
    }
    found = {}
    for name, model in (ours | {name: make(seed) for name, make in BATCH.items()}).items():
        show_progress(f"seed {seed}, {name} …")
        model.fit(X, y)
        found[name] = scores_of(model.predict_proba(X_test)[:, 1], model.predict(X_test), y_test)
    return found


def stream_scores(X: NDArray[Any], y: NDArray[Any], seed: int) -> dict[str, list[float]]:
    """Scores of forests that predict each sample and then learn it."""
    models: dict[str, Any] = {
        name: Ours(OnlineForestClassifier(10, random_state=seed, **parameters))
        for name, parameters in VARIANTS.items()
    }
    models["River ARF"] = Rivers("forest.ARFClassifier", n_models=10, seed=seed)
    found = {}
    for name, model in models.items():
        show_progress(f"seed {seed}, stream, {name} …")
        p = np.zeros(len(y))
        for i, (row, label) in enumerate(zip(model.rows(X), y.tolist(), strict=True)):
            answer = model.answer(row, 1)
            p[i] = 0.0 if answer is None else answer[0]
            model.learn(row, label)
        half = len(y) // 2
        found[f"{name}, stream"] = scores_of(p[half:], p[half:] > 0.5, y[half:])
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__, 3, DATA)
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="of each data set")
    arguments = parser.parse_args(argv)
    print_header("data", "model", "average precision", "recall", "precision")
    for name in arguments.data:
        by_seed = []
        for seed in range(arguments.seeds):
            X, y = DATA[name](seed, arguments.samples)
            by_seed.append(batch_scores(X, y, seed) | stream_scores(X, y, seed))
        for model in by_seed[0]:
            cells = np.array([each[model] for each in by_seed]).T
            print_row(name, model, *(mean_and_deviation(cell, 3) for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
