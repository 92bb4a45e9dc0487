"""Importances: feature_importances_ beside permutation importance on fresh rows.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.importances
    python -m experiments.importances --data logistic friedman1 --seeds 1

The permutation importance of a feature is the increase of the loss (log loss; in regression the
squared error) of the same forest on fresh rows when the feature is permuted in them. Columns: the
rank correlation (Spearman) of both; the least importance of an informative feature and the
greatest of noise. Noise of dna: shuffled copies of 60 columns. Which of its own 180 columns are
informative is not known, and 1,186 fresh rows cannot rank those that tell little: those count whose
permutation importance exceeds four standard errors, here also in the correlation. (With three, some
of 180 columns count by chance: the shuffled copies reach 2.9.) Seconds are those of the processor:
fit with all splits, and importances.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.datasets import make_friedman1

from experiments.common import (
    CLASSIFICATION,
    parser_of,
    print_header,
    print_row,
    print_verdicts,
    show_progress,
)
from experiments.paper.data import DataError
from onlineforest import OnlineForestClassifier, OnlineForestRegressor

N_REPEATS = 3  # permutations of each feature
N_FRESH = 10_000
LEAST_PROBABILITY = 1e-9
CORRELATION = 0.8  # the target
N_ERRORS = 4  # standard errors of a permutation importance that is not chance

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Rows to learn, fresh rows, features that are noise; whether all others are known to tell."""

    X: Any
    y: NDArray[Any]
    X_fresh: Any
    y_fresh: NDArray[Any]
    is_noise: NDArray[np.bool_]
    others_tell: bool = True


def table_of(X: Any, y: NDArray[Any], n: int, is_informative: Any) -> Table:
    return Table(X[:n], y[:n], X[n:], y[n:], ~np.asarray(is_informative, dtype=bool))


def logistic(seed: int) -> Table:
    """20,000 rows of eight numbers; five of them move the logit, the last one little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000 + N_FRESH, 8))
    weights = np.array([0.5, 0.4, 0.3, 0.2, 0.12, 0.0, 0.0, 0.0])
    y = rng.random(len(X)) < 1 / (1 + np.exp(-X @ weights))
    return table_of(X, y.astype(np.int64), 20_000, weights > 0)


def customers(seed: int) -> Table:
    """10,000 customers who leave or stay: numbers and text, five useful columns of nine."""
    rng = np.random.default_rng(seed)
    n = 10_000 + N_FRESH
    age, tenure = rng.integers(18, 80, n), rng.exponential(4, n)
    income = rng.lognormal(10, 0.5, n)
    plan = rng.choice(["basic", "plus", "pro", "family"], n, p=[0.4, 0.3, 0.2, 0.1])
    region = rng.integers(0, 40, n)
    of_plan = pd.Series(plan).map({"basic": 0.6, "plus": 0, "pro": -0.5, "family": -1})
    of_region = 0.5 * rng.normal(size=40)
    logit = 0.7 + 0.03 * (age - 45) + 0.7 * (np.log(income) - 10) - 0.25 * np.minimum(tenure, 8)
    logit = logit + of_plan.to_numpy() + of_region[region]
    columns = {
        "age": age,
        "shoe size": rng.normal(42, 2, n),
        "income": income,
        "street": [f"street {i}" for i in rng.integers(0, 300, n)],
        "plan": plan,
        "tenure": tenure,
        "colour": rng.choice(["red", "green", "blue", "white", "black"], n),
        "region": [f"region {i}" for i in region],
        "lucky number": rng.integers(0, 1000, n),
    }
    X, useful = pd.DataFrame(columns), {"age", "income", "plan", "tenure", "region"}
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return table_of(X, y.astype(np.int64), 10_000, [name in useful for name in X])


def dna(seed: int) -> Table:
    """Every third column is added again, shuffled: one bit of each of the 60 positions."""
    rng = np.random.default_rng(seed)
    X, y, fresh, y_fresh = CLASSIFICATION["dna"](seed)
    rows, fresh = (np.hstack([each, rng.permuted(each[:, ::3], axis=0)]) for each in (X, fresh))
    return Table(rows, y, fresh, y_fresh, np.arange(rows.shape[1]) >= X.shape[1], False)


def friedman1(seed: int) -> Table:
    """2,000 rows of ten numbers; five of them make y."""
    X, y = make_friedman1(2000 + N_FRESH, 10, noise=1.0, random_state=seed)
    return table_of(X, y, 2000, np.arange(10) < 5)


def random_levels(seed: int) -> Table:
    """5,000 rows: a column of 1,000 random levels, and a binary one that equals y in 70 %."""
    rng = np.random.default_rng(seed)
    n = 5000 + N_FRESH
    binary = rng.integers(0, 2, n)
    y = np.where(rng.random(n) < 0.7, binary, 1 - binary)
    levels = [f"level {i}" for i in rng.integers(0, 1000, n)]
    return table_of(pd.DataFrame({"levels": levels, "binary": binary}), y, 5000, [False, True])


DATA: dict[str, Callable[[int], Table]] = {
    "logistic": logistic,
    "customers": customers,
    "dna": dna,
    "friedman1": friedman1,
    "random levels": random_levels,
}


def losses(forest: Any, X: Any, y: NDArray[Any]) -> Floats:
    """The log loss or the squared error of each row."""
    if isinstance(forest, OnlineForestRegressor):
        return np.square(forest.predict(X) - y)
    probabilities = forest.predict_proba(X)
    of_truth = probabilities[np.arange(len(y)), np.searchsorted(forest.classes_, y)]
    found: Floats = -np.log(np.maximum(of_truth, LEAST_PROBABILITY))
    return found


def permutation_importances(
    forest: Any, X: Any, y: NDArray[Any], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The mean increase of the loss for each feature, and its standard error."""
    frame = pd.DataFrame(X)
    before = losses(forest, X, y)
    means, errors = [], []
    for name in frame:
        increases = np.zeros(len(y))
        for _ in range(N_REPEATS):
            column = frame[name].to_numpy()[rng.permutation(len(y))]
            permuted = frame.assign(**{name: column}) if isinstance(name, str) else X.copy()
            if not isinstance(name, str):
                permuted[:, name] = column
            increases += (losses(forest, permuted, y) - before) / N_REPEATS
        means.append(increases.mean())
        errors.append(increases.std() / np.sqrt(len(y)))
    return np.array(means), np.array(errors)


class Result(NamedTuple):
    correlation: float
    least_informative: float
    greatest_noise: float
    fit_seconds: float
    seconds: float


def compare(table: Table, seed: int) -> Result:
    """Both importances of one forest."""
    make = OnlineForestRegressor if table.y.dtype.kind == "f" else OnlineForestClassifier
    start = time.process_time()
    forest = make(random_state=seed).fit(table.X, table.y)
    forest.predict(table.X_fresh)  # makes the splits that fit has left for later
    fitted = time.process_time()
    ours = forest.feature_importances_
    end = time.process_time()
    rng = np.random.default_rng(seed)
    means, errors = permutation_importances(forest, table.X_fresh, table.y_fresh, rng)
    is_informative = is_ranked = ~table.is_noise & (means > N_ERRORS * errors)
    if table.others_tell:
        is_informative, is_ranked = ~table.is_noise, np.full(len(means), True)
    return Result(
        float(spearmanr(ours[is_ranked], means[is_ranked]).statistic),
        float(ours[is_informative].min()),
        float(ours[table.is_noise].max()),
        fitted - start,
        end - fitted,
    )


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser_of(__doc__, 3, DATA).parse_args(argv)
    try:
        tables = {
            name: [DATA[name](seed) for seed in range(arguments.seeds)] for name in arguments.data
        }
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print_header(
        "data", "rank correlation", "least informative", "greatest noise", "fit s", "importances s"
    )
    is_met = True
    for name, of_seeds in tables.items():
        found = []
        for seed, table in enumerate(of_seeds):
            show_progress(f"{name}, seed {seed} …")
            found.append(compare(table, seed))
        correlation = float(np.mean([each.correlation for each in found]))
        least = min(each.least_informative for each in found)
        noise = max(each.greatest_noise for each in found)
        is_met &= correlation >= CORRELATION and noise < least
        times = np.mean([(each.fit_seconds, each.seconds) for each in found], axis=0)
        cells = (f"{correlation:.3f}", f"{least:.4f}", f"{noise:.4f}")
        print_row(name, *cells, *(f"{seconds:.2f}" for seconds in times))
    target = f"rank correlation ≥ {CORRELATION}, noise below every informative feature"
    return print_verdicts([(target, is_met)])


if __name__ == "__main__":
    sys.exit(main())
