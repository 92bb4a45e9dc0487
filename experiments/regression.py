"""Compares the regressor with batch models and River's: error, density, intervals and time.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.regression

Our forest and the batch models learn nine tenths of the samples at once and predict the others. If
the data set has standard splits, seed s takes split s; otherwise the split is random and equal for
all methods. Mean over the seeds, ± standard deviation. Needs the extra `bench` for all rows of the
tables. Exits with 1 if a target is missed: the RMSE of the order-free forest is at most 1.01 times
the better of the random forest and extra trees, and its 90 % intervals hold 88 to 92 % of the
values.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from experiments.common import (
    load,
    mean_and_deviation,
    print_header,
    print_row,
    river_rows,
    show_progress,
    split,
)
from onlineforest import OnlineForestRegressor
from onlineforest._extras import MissingExtraError, require

COVERAGE = 0.9
# River takes a tenth of a millisecond and more per row and tree.
RIVER_TREES, RIVER_ROWS = 10, 2_000

# Train and test: X, y, X_test, y_test.
Data = tuple[NDArray, NDArray, NDArray, NDArray]


LARGEST_RATIO = 1.01  # RMSE relative to the best of the forests beside it
LEAST_COVERAGE, MOST_COVERAGE = 0.88, 0.92
SEEDS = {"kin8nm": 5, "power_plant": 5, "concrete": 20, "california": 5}  # single splits differ


@dataclass(frozen=True)
class Prediction:
    """Predictions for the test set, and seconds of learning; None: the method predicts none."""

    seconds: float
    mean: NDArray
    interval: NDArray | None = None
    log_density: NDArray | None = None


@dataclass(frozen=True)
class Scores:
    """One run, or the mean of several; nan for what a method does not predict."""

    rmse: float
    nlpd: float  # negative log predictive density
    coverage: float
    width: float
    seconds: float


def seconds_of(learn: Callable[[], object]) -> float:
    start = time.perf_counter()
    learn()
    return time.perf_counter() - start


def ours(data: Data, seed: int, n_trees: int, n_jobs: int) -> Prediction:
    X, y, X_test, y_test = data
    forest = OnlineForestRegressor(n_trees, n_jobs=n_jobs, random_state=seed)
    return Prediction(
        seconds_of(lambda: forest.fit(X, y)),
        forest.predict(X_test),
        forest.predict_interval(X_test, COVERAGE),
        forest.log_density(X_test, y_test),
    )


def scikit_learn(estimator: type):
    def run(data: Data, seed: int, n_trees: int, n_jobs: int) -> Prediction:
        X, y, X_test, _ = data
        forest = estimator(n_trees, n_jobs=n_jobs, random_state=seed)
        return Prediction(seconds_of(lambda: forest.fit(X, y)), forest.predict(X_test))

    return run


def boosting(data: Data, seed: int, _n_trees: int, n_jobs: int) -> Prediction:
    X, y, X_test, _ = data
    model = HistGradientBoostingRegressor(random_state=seed)
    with threadpool_limits(n_jobs):
        return Prediction(seconds_of(lambda: model.fit(X, y)), model.predict(X_test))


def quantile_forest(data: Data, seed: int, n_trees: int, n_jobs: int) -> Prediction:
    require("quantile_forest", "bench")
    from quantile_forest import RandomForestQuantileRegressor

    X, y, X_test, _ = data
    forest = RandomForestQuantileRegressor(n_trees, n_jobs=n_jobs, random_state=seed)
    levels = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    return Prediction(
        seconds_of(lambda: forest.fit(X, y)),
        forest.predict(X_test, quantiles="mean"),
        forest.predict(X_test, quantiles=levels),
    )


def river_amf(data: Data, seed: int, _n_trees: int, _n_jobs: int) -> Prediction:
    require("river", "bench")
    from river import forest

    X, y, X_test, _ = data
    some = np.random.default_rng(seed).permutation(len(y))[:RIVER_ROWS]
    rows, values = river_rows(X[some]), y[some].tolist()
    model = forest.AMFRegressor(n_estimators=RIVER_TREES, seed=seed)

    def learn() -> None:
        for row, value in zip(rows, values, strict=True):
            model.learn_one(row, value)

    seconds = seconds_of(learn)
    return Prediction(seconds, np.array([model.predict_one(row) for row in river_rows(X_test)]))


OURS, BOOSTING = "order-free", "gradient boosting"
RIVALS = ("random forest", "extra trees")
METHODS = {
    OURS: ours,
    "random forest": scikit_learn(RandomForestRegressor),
    "extra trees": scikit_learn(ExtraTreesRegressor),
    BOOSTING: boosting,
    "quantile forest": quantile_forest,
    "River AMF": river_amf,
}


def load_split(name: str, seed: int) -> Data:
    """Train and test data of one seed."""
    if name == "california":
        X, y = load(name, "X", "y")
        data = split(X, y, np.random.default_rng(seed), n_test=len(y) // 10)
    else:
        X, y, masks = load(name, "X", "y", "test_mask")
        test = masks[seed % len(masks)]
        data = X[~test], y[~test], X[test], y[test]
    X, y, X_test, y_test = data
    return X, y.astype(np.float64), X_test, y_test.astype(np.float64)


def score(prediction: Prediction, y: NDArray) -> Scores:
    """Scores of one run."""
    nlpd = coverage = width = np.nan
    if prediction.log_density is not None:
        nlpd = -prediction.log_density.mean()
    if prediction.interval is not None:
        lower, upper = prediction.interval.T
        coverage = ((lower <= y) & (y <= upper)).mean()
        width = (upper - lower).mean()
    rmse = np.sqrt(((prediction.mean - y) ** 2).mean())
    return Scores(rmse, nlpd, coverage, width, prediction.seconds)


def run(name: str, n_seeds: int, n_trees: int, n_jobs: int) -> dict[str, Scores]:
    """Print the table of a data set; mean scores by method."""
    means = {}
    for method, predict in METHODS.items():
        runs = []
        try:
            for seed in range(n_seeds):
                show_progress(f"{name}, {method}, seed {seed + 1} of {n_seeds} …")
                data = load_split(name, seed)
                *_, y_test = data
                runs.append(score(predict(data, seed, n_trees, n_jobs), y_test))
        except MissingExtraError as error:
            print_row(method, str(error), "-", "-", "-", "-")
            continue
        table = np.array([astuple(scores) for scores in runs])
        means[method] = Scores(*table.mean(axis=0))
        rmse, nlpd, coverage, width, seconds = table.T
        print_row(
            method,
            mean_and_deviation(rmse),
            cell(f"{nlpd.mean():.3f}"),
            cell(mean_and_deviation(coverage, digits=3)),
            cell(f"{width.mean():.3f}"),
            f"{seconds.mean():.2f}",
        )
    return means


def cell(text: str) -> str:
    """A number, or - if a method has none and the mean is nan."""
    return "-" if "nan" in text else text


def verdict(means: dict[str, Scores]) -> tuple[bool, str]:
    """Whether the order-free forest meets its targets, and a sentence with the result."""
    found, best = means[OURS], min(RIVALS, key=lambda method: means[method].rmse)
    ratio = found.rmse / means[best].rmse
    ok = ratio <= LARGEST_RATIO and LEAST_COVERAGE <= found.coverage <= MOST_COVERAGE
    return ok, (
        f"RMSE / {best}: {ratio:.3f} (target: at most {LARGEST_RATIO}), coverage "
        f"{found.coverage:.3f} (target: {LEAST_COVERAGE} to {MOST_COVERAGE}); met: "
        f"{'yes' if ok else 'NO'}. RMSE / {BOOSTING}: {found.rmse / means[BOOSTING].rmse:.3f}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="default: 5, and 20 for concrete")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1, help="threads of all but River's")
    arguments = parser.parse_args(argv)
    all_ok = True
    for name in arguments.only:
        n_seeds = arguments.seeds or SEEDS[name]
        n_train, n_features = load_split(name, 0)[0].shape
        print(f"\n{name}: {n_train} samples of {n_features} features to learn, {n_seeds} seeds\n")
        percent = f"{COVERAGE:.0%}"
        print_header(
            "method", "RMSE", "NLPD", f"coverage of {percent}", "mean width", "seconds to learn"
        )
        means = run(name, n_seeds, arguments.trees, arguments.jobs)
        ok, sentence = verdict(means)
        all_ok &= bool(ok)
        print(
            f"\n{arguments.trees} trees, threads: {arguments.jobs}; River, which is slow: "
            f"{RIVER_TREES} trees, one thread, {min(RIVER_ROWS, n_train)} of the samples, one by "
            f"one.\n{sentence}",
            flush=True,
        )
    return 0 if all_ok else 1


if __name__ == "__main__":
    sys.exit(main())
