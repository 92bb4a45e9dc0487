"""Fits classifiers to data sets of several seeds, many at a time, and scores them on test rows.

Each fit has one thread, so that all cores are in use and no model gains from another's threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from experiments.common import (
    Arrays,
    accuracy_and_log_loss,
    area,
    calibration_error,
    print_header,
    print_row,
    show_progress,
)
from onlineforest._extras import require

ACCURACY, AUC = "accuracy", "AUC"
LOG_LOSS, POWERED = "log loss", "log loss, power"
ECE, COVERAGE, SECONDS = "ECE", "coverage of .9 sets", "seconds"
METRICS = (ACCURACY, AUC, LOG_LOSS, POWERED, ECE, COVERAGE, SECONDS)
TEST_ROWS = "test rows"  # a figure that is not printed
SIGNS = {ACCURACY: 1, AUC: 1, LOG_LOSS: -1, POWERED: -1}  # 1 where more is better
LEAST_PROBABILITY = 1e-6
POWERS = (0.03, 30.0)

Floats = NDArray[np.float64]
Figures = dict[str, float]
"""Figures of a model by their names; NaN if the model has no such figure."""


def light_gbm(seed: int) -> Any:
    """LightGBM with its defaults."""
    require("lightgbm", "experiments")
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


def loss_with_power(logs: Floats, places: NDArray[np.intp], power: float) -> Floats:
    """The loss of each row if its probabilities are raised to a power and normalised."""
    logs = power * logs
    of_truth: Floats = logs[np.arange(len(logs)), places]
    losses: Floats = logsumexp(logs, axis=1) - of_truth
    return losses


def powered_log_loss(probabilities: Floats, places: NDArray[np.intp], seed: int) -> float:
    """Log loss of each random half of the rows with the power that is best for the other half.

    `places` holds the column of the label of each row.
    """
    logs = np.log(np.maximum(probabilities, LEAST_PROBABILITY))
    order = np.random.default_rng(seed).permutation(len(places))
    halves = order[::2], order[1::2]
    losses = []
    for fitted, judged in (halves, halves[::-1]):
        of_half = partial(mean_loss, logs[fitted], places[fitted])
        best = minimize_scalar(of_half, bounds=np.log(POWERS), method="bounded").x
        losses.append(loss_with_power(logs[judged], places[judged], np.exp(best)))
    return float(np.minimum(np.concatenate(losses), -np.log(LEAST_PROBABILITY)).mean())


def mean_loss(logs: Floats, places: NDArray[np.intp], log_power: float) -> float:
    """Mean loss with a power, given by its logarithm."""
    return float(loss_with_power(logs, places, np.exp(log_power)).mean())


def figures_of(model: Any, data: Arrays, seed: int) -> Figures:
    """The figures of a model that is fitted to training rows, on test rows."""
    # Arrays are float32, as the forests take them; tables stay as they are.
    X, y, X_test, y_test = (
        part.astype(np.float32) if isinstance(part, np.ndarray) and part.ndim == 2 else part
        for part in data
    )
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X, y)
        probabilities = np.asarray(model.predict_proba(X_test), dtype=float)
        seconds = time.process_time() - start
        sets = model.predict_set(X_test, 0.9) if hasattr(model, "predict_set") else None
    classes = model.classes_
    places = np.searchsorted(classes, y_test)
    accuracy, loss = accuracy_and_log_loss(probabilities, classes, y_test, LEAST_PROBABILITY)
    return {
        ACCURACY: accuracy,
        AUC: area(probabilities, places),
        LOG_LOSS: loss,
        POWERED: powered_log_loss(probabilities, places, seed),
        ECE: calibration_error(probabilities, classes, y_test),
        COVERAGE: np.nan if sets is None else float(sets[np.arange(len(sets)), places].mean()),
        SECONDS: seconds,
        TEST_ROWS: len(y_test),
    }


def compare(
    data: Mapping[str, Callable[[int], Arrays]],
    models: Mapping[str, Callable[[int], Any]],
    n_seeds: int,
    n_jobs: int,
) -> Iterator[tuple[str, dict[str, Figures]]]:
    """The mean figures of all models over the seeds, for each data set in turn.

    Data are loaded and models are made before the first fit, so that what is missing is an error
    at once.
    """
    fits = []
    for name, load in data.items():
        for seed in range(n_seeds):
            show_progress(f"loading {name}, seed {seed + 1} of {n_seeds} …")
            arrays = load(seed)
            fits += [(make(seed), arrays, seed) for make in models.values()]
    # Without memory maps: models get arrays that they may write to, and data are small.
    found = Parallel(n_jobs, return_as="generator", max_nbytes=None)(
        delayed(figures_of)(*fit) for fit in fits
    )
    done = 0
    for name in data:
        by_model: dict[str, list[Figures]] = {model: [] for model in models}
        for _ in range(n_seeds):
            for of_model in by_model.values():
                show_progress(f"{name}: {done} of {len(fits)} fits done …")
                of_model.append(next(found))
                done += 1
        yield name, {model: mean_figures(each) for model, each in by_model.items()}


def mean_figures(found: list[Figures]) -> Figures:
    """The mean of each figure."""
    return {key: float(np.mean([each[key] for each in found])) for key in found[0]}


def behind_best(of_data: Mapping[str, Figures], ours: str, metric: str) -> float:
    """How much better the best of the other models is; negative if ours is the best."""
    others = [SIGNS[metric] * each[metric] for name, each in of_data.items() if name != ours]
    return max(others) - SIGNS[metric] * of_data[ours][metric]


def print_comparison(
    found: Iterator[tuple[str, dict[str, Figures]]], models: Mapping[str, Any], ours: str
) -> dict[str, dict[str, Figures]]:
    """Print the rows of each data set as soon as it is done, and of the mean over data sets."""
    print_header("data", "figure", *models, "behind the best other")
    figures = {}
    for name, of_data in found:
        figures[name] = of_data
        print_rows(name, of_data, ours)
    print_rows("mean", mean_over_data(figures), ours)
    return figures


def mean_over_data(figures: Mapping[str, dict[str, Figures]]) -> dict[str, Figures]:
    """The mean figures of each model over the data sets."""
    models = next(iter(figures.values()))
    return {model: mean_figures([each[model] for each in figures.values()]) for model in models}


def print_rows(name: str, of_data: dict[str, Figures], ours: str) -> None:
    """A row for each metric."""
    for metric in METRICS:
        digits = 1 if metric == SECONDS else 4
        values = [each[metric] for each in of_data.values()]
        cells = ["-" if np.isnan(value) else f"{value:.{digits}f}" for value in values]
        behind = f"{behind_best(of_data, ours, metric):+.4f}" if metric in SIGNS else "-"
        print_row(name, metric, *cells, behind)
