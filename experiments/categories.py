"""Categorical features: our forests on text as it is, beside encoders, boosting and River's ARF.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.categories --flights
    python -m experiments.categories --flights --models "ours, 10 trees" "LightGBM, re-trained"
    python -m experiments.categories --tables --folder /path/to/tables
    python -m experiments.categories --tables --rows 2000 --splits 1

Flights: which ones arrive more than 15 minutes late, in time order. Batches of 1,000 are predicted,
then learned. Boosted trees cannot learn online: they are trained again with all rows so far every
30,000 rows, and before that predict the share of late flights. LightGBM needs the extra
`experiments`. River is slow: the first 50,000 rows. Tables: generated ones and the Parquet files of
a folder (labels in column `y`), random stratified splits 70:30. Seconds are those of the processor,
with one thread. A probability below 1e-6 counts as 1e-6 in the log loss. AUC of more than two
classes is the mean over the classes, each against the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from experiments.common import (
    accuracy_and_log_loss,
    area,
    data_folder,
    print_header,
    print_row,
    show_progress,
)
from onlineforest import OnlineForestClassifier

BATCH = 1000
EVERY = 30_000  # rows after which boosted trees are trained again
RIVER_ROWS = 50_000
LEAST_PROBABILITY = 1e-6
MOST_LEVELS = 255  # that HistGradientBoostingClassifier takes
TEXT = ("carrier", "origin", "dest")  # columns of flights with few levels
NOT_INSTALLED = "not installed"

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Fitted = Callable[[pd.DataFrame], Floats]
"""The probabilities of rows."""


def scores_of(probabilities: Floats, y: Labels) -> tuple[float, float, float]:
    """Accuracy, log loss and AUC."""
    classes = np.arange(probabilities.shape[1])
    return (
        *accuracy_and_log_loss(probabilities, classes, y, LEAST_PROBABILITY),
        area(probabilities, y),
    )


# Flights: models that predict and learn the rows from `begin` to `end`.


def flights(n_rows: int | None = None) -> tuple[pd.DataFrame, Labels]:
    """Facts known before departure, and whether the flight arrived more than 15 minutes late."""
    table = pd.read_parquet(data_folder() / "flights.parquet").dropna(subset="arr_delay")
    table = table[:n_rows].reset_index(drop=True)
    late = (table.pop("arr_delay") > 15).to_numpy(dtype=np.int64)
    return table.drop(columns="dep_delay"), late


class Ours:
    """Our forest, on a data frame with text or on an array of codes."""

    def __init__(self, X: Any, y: Labels, n_trees: int) -> None:
        self.X, self.y = X, y
        self.forest = OnlineForestClassifier(n_trees, random_state=0)

    def predict(self, begin: int, end: int) -> Floats:
        if begin == 0:
            return np.full(end, 0.5)
        found: Floats = self.forest.predict_proba(self.X[begin:end])[:, 1]
        return found

    def learn(self, begin: int, end: int) -> None:
        self.forest.partial_fit(self.X[begin:end], self.y[begin:end], classes=[0, 1])

    def memory(self) -> str:
        return f"{self.forest.nbytes_ / 2**20:.0f}"


class Retrained:
    """A batch model that is trained again with all rows so far, now and then."""

    def __init__(
        self, X: pd.DataFrame, y: Labels, fit: Callable[..., Fitted], package: str = "sklearn"
    ) -> None:
        import_module(package)  # an error now if it is not there
        self.X, self.y, self.fit = X, y, fit
        self.fitted: Fitted | None = None

    def predict(self, begin: int, end: int) -> Floats:
        if self.fitted is not None:
            return self.fitted(self.X[begin:end])[:, 1]
        return np.full(end - begin, self.y[:begin].mean() if begin else 0.5)

    def learn(self, begin: int, end: int) -> None:
        if end // EVERY > begin // EVERY and end < len(self.y):
            self.fitted = self.fit(self.X[:end], self.y[:end], 0)

    def memory(self) -> str:
        return "-"


class Rivers:
    """River's adaptive random forest."""

    def __init__(self, X: pd.DataFrame, y: Labels) -> None:
        from river.forest import ARFClassifier

        self.rows = [
            {key: value for key, value in row.items() if pd.notna(value)}
            for row in X.to_dict("records")
        ]
        self.labels = y.tolist()
        self.model = ARFClassifier(seed=0)

    def predict(self, begin: int, end: int) -> Floats:
        found = [self.model.predict_proba_one(row) for row in self.rows[begin:end]]
        return np.array([p.get(1, 0.0) / sum(p.values()) if p else 0.5 for p in found])

    def learn(self, begin: int, end: int) -> None:
        for row, label in zip(self.rows[begin:end], self.labels[begin:end], strict=True):
            self.model.learn_one(row, label)

    def memory(self) -> str:
        return f"{self.model._raw_memory_usage / 2**20:.0f}"


def ordinal(X: pd.DataFrame) -> NDArray[np.float32]:
    """Levels as numbers, in the order of their first rows; a missing level is NaN."""
    codes = X.copy()
    for name in X.select_dtypes(exclude="number"):
        codes[name] = pd.Series(pd.factorize(X[name])[0], X.index).replace(-1, np.nan)
    return codes.to_numpy(dtype=np.float32)


def one_hot(X: pd.DataFrame) -> NDArray[np.float32]:
    """A column for each level that the whole table has, without the tail numbers."""
    return pd.get_dummies(X.drop(columns="tailnum"), columns=list(TEXT)).to_numpy(np.float32)


def as_categories(X: pd.DataFrame) -> pd.DataFrame:
    """Text as categories, which boosted trees take, with all levels of the whole table."""
    return X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category"))


FLIGHTS: dict[str, Callable[[pd.DataFrame, Labels], Any]] = {
    "ours, 10 trees": lambda X, y: Ours(X, y, 10),
    "ours, 25 trees": lambda X, y: Ours(X, y, 25),
    "ours, 10 trees, ordinal codes": lambda X, y: Ours(ordinal(X), y, 10),
    "ours, 10 trees, one-hot without tail numbers": lambda X, y: Ours(one_hot(X), y, 10),
    "HistGradientBoosting without tail numbers, re-trained": lambda X, y: Retrained(
        as_categories(X.drop(columns="tailnum")), y, hist_boosting
    ),
    "LightGBM, re-trained": lambda X, y: Retrained(as_categories(X), y, light_gbm, "lightgbm"),
}
FIRST_FLIGHTS: dict[str, Callable[[pd.DataFrame, Labels], Any]] = {
    "ours, 10 trees": FLIGHTS["ours, 10 trees"],
    "River ARF, 10 trees": Rivers,
}


def stream(model: Any, n_rows: int, name: str) -> tuple[Floats, float]:
    """The probability of a late flight in each row, and the seconds of predicting and learning."""
    found = []
    start = time.process_time()
    for begin in range(0, n_rows, BATCH):
        end = min(begin + BATCH, n_rows)
        found.append(model.predict(begin, end))
        model.learn(begin, end)
        show_progress(f"{name}: {end} of {n_rows} rows")
    return np.concatenate(found), time.process_time() - start


def print_flights(n_rows: int | None, chosen: Sequence[str]) -> None:
    X, y = flights(n_rows)
    columns = ("accuracy", "log loss", "AUC")
    later = [f"{column} after {EVERY:,}" for column in columns]
    print_header("model", "rows", *columns, *later, "seconds", "MiB")
    runs = [(name, make, len(y)) for name, make in FLIGHTS.items()]
    runs += [(name, make, min(RIVER_ROWS, len(y))) for name, make in FIRST_FLIGHTS.items()]
    for name, make, n in runs:
        if name not in chosen:
            continue
        try:
            model = make(X[:n], y[:n])
            late, seconds = stream(model, n, name)
        except ImportError:
            print_row(name, str(n), NOT_INSTALLED)
            continue
        p = np.column_stack([1 - late, late])
        cells = [f"{score:.4f}" for score in scores_of(p, y[:n])]
        cells += (
            [f"{score:.4f}" for score in scores_of(p[EVERY:], y[EVERY:n])]
            if n > EVERY
            else ["-"] * len(later)
        )
        print_row(name, str(n), *cells, f"{seconds:.0f}", model.memory())


# Tables: functions that fit a model and return its probabilities.


def levels(rng: np.random.Generator, n_rows: int, n_levels: int) -> NDArray[Any]:
    return rng.integers(n_levels, size=n_rows)


def frame_of(codes: Sequence[NDArray[Any]], numbers: Sequence[Floats] = ()) -> pd.DataFrame:
    """Codes as columns of categories, which are text."""
    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(numbers)}
    for i, column in enumerate(codes):
        columns[f"c{i}"] = pd.Categorical([f"level {code}" for code in column])
    return pd.DataFrame(columns)


def rates(rng: np.random.Generator) -> tuple[pd.DataFrame, Labels]:
    """One column of 1,000 levels, each with its own rate, and five columns of noise."""
    n = 20_000
    column = levels(rng, n, 1000)
    y = rng.random(n) < rng.beta(2, 2, 1000)[column]
    return frame_of([column], rng.normal(size=(5, n))), y.astype(np.int64)


def interaction(rng: np.random.Generator) -> tuple[pd.DataFrame, Labels]:
    """Eight columns of six levels: three of them decide together, and 10 % of labels are wrong."""
    n = 10_000
    columns = [levels(rng, n, 6) for _ in range(8)]
    y = rng.integers(2, size=(6, 6, 6))[tuple(columns[:3])]
    return frame_of(columns), np.where(rng.random(n) < 0.1, 1 - y, y)


def mixed(rng: np.random.Generator) -> tuple[pd.DataFrame, Labels]:
    """Four smooth numbers and columns of 5, 40 and 300 levels add up; three columns are noise."""
    n = 20_000
    numbers = rng.uniform(-1, 1, size=(4, n))
    columns = [levels(rng, n, size) for size in (5, 40, 300, 100, 100, 100)]
    logit = numbers[0] + np.sin(3 * numbers[1]) + 2 * numbers[2] ** 2 - np.abs(numbers[3])
    for size, column in zip((5, 40, 300), columns[:3], strict=True):
        logit = logit + rng.normal(size=size)[column]
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return frame_of(columns, numbers), y.astype(np.int64)


def four_classes(rng: np.random.Generator) -> tuple[pd.DataFrame, Labels]:
    """Six columns of 20 levels, whose effects on four classes add up."""
    n = 10_000
    columns = [levels(rng, n, 20) for _ in range(6)]
    logits = sum(rng.normal(size=(20, 4))[column] for column in columns)
    return frame_of(columns), np.argmax(logits + rng.gumbel(size=(n, 4)), axis=1)


GENERATED = {
    "1,000 rates": rates,
    "interaction of three": interaction,
    "mixed, additive": mixed,
    "four classes": four_classes,
}


def ours(X: pd.DataFrame, y: Labels, seed: int) -> Fitted:
    return OnlineForestClassifier(random_state=seed).fit(X, y).predict_proba


def random_forest(X: pd.DataFrame, y: Labels, seed: int) -> Fitted:
    """One-hot codes, and the median for missing numbers: sparse tables must have all values."""
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        remainder=SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
    )
    fitted = make_pipeline(encoder, RandomForestClassifier(random_state=seed)).fit(X, y)
    predict: Fitted = fitted.predict_proba
    return predict


def hist_boosting(X: pd.DataFrame, y: Labels, seed: int) -> Fitted:
    """Columns of more levels than it takes are codes."""
    large = [name for name in categorical(X) if len(X[name].cat.categories) > MOST_LEVELS]

    def coded(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{name: table[name].cat.codes for name in large})

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)
    model.fit(coded(X), y)
    return lambda table: model.predict_proba(coded(table))


def light_gbm(X: pd.DataFrame, y: Labels, seed: int) -> Fitted:
    from lightgbm import LGBMClassifier

    def plain(table: pd.DataFrame) -> pd.DataFrame:  # it takes no names such as "a:b"
        return table.set_axis([f"x{i}" for i in range(table.shape[1])], axis=1)

    model = LGBMClassifier(verbose=-1, n_jobs=1, random_state=seed).fit(plain(X), y)
    return lambda table: model.predict_proba(plain(table))


def cat_boost(X: pd.DataFrame, y: Labels, seed: int) -> Fitted:
    """300 trees, as the default of 1,000 takes long."""
    from catboost import CatBoostClassifier

    names = categorical(X)

    def text(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{name: table[name].astype(object).map(str) for name in names})

    model = CatBoostClassifier(
        iterations=300,
        cat_features=names,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(text(X), y)
    return lambda table: model.predict_proba(text(table))


MODELS: dict[str, Callable[..., Fitted]] = {
    "ours": ours,
    "random forest, one-hot": random_forest,
    "HistGradientBoosting": hist_boosting,
    "LightGBM": light_gbm,
    "CatBoost": cat_boost,
}


def categorical(X: pd.DataFrame) -> list[str]:
    return list(X.select_dtypes("category"))


def tables(folder: Path | None, n_rows: int | None) -> Iterator[tuple[str, pd.DataFrame, Labels]]:
    """Names, features and class codes; random rows if a table has more than `n_rows`."""
    found: dict[str, Callable[[], tuple[pd.DataFrame, Labels]]] = {
        name: lambda make=make: make(np.random.default_rng(0)) for name, make in GENERATED.items()
    }
    for path in sorted(folder.glob("*.parquet")) if folder else ():
        found[path.stem] = lambda path=path: read(path)
    for name, make in found.items():
        X, y = make()
        if n_rows is not None and n_rows < len(y):
            chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
            X, y = X.iloc[chosen], y[chosen]
            frequent = np.bincount(y)[y] >= 4  # so that both sides of a split have the class
            X, y = X[frequent], np.unique(y[frequent], return_inverse=True)[1]
        yield name, X, y


def read(path: Path) -> tuple[pd.DataFrame, Labels]:
    table = pd.read_parquet(path)
    y = np.unique(table.pop("y").to_numpy(), return_inverse=True)[1]
    return table, y


def split_scores(
    fit: Callable[..., Fitted], X: pd.DataFrame, y: Labels, seed: int
) -> tuple[float, ...]:
    """Accuracy, log loss, AUC and the seconds of learning and predicting."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    start = time.process_time()
    probabilities = fit(X.iloc[train], y[train], seed)(X.iloc[test])
    seconds = time.process_time() - start
    return (*scores_of(probabilities, y[test]), seconds)


def print_tables(folder: Path | None, n_rows: int | None, n_splits: int) -> None:
    print_header("table", "rows", "model", "accuracy", "log loss", "AUC", "seconds")
    by_model: dict[str, list[Floats]] = {name: [] for name in MODELS}
    for table, X, y in tables(folder, n_rows):
        for name, fit in MODELS.items():
            show_progress(f"{table}, {name} …")
            try:
                found = [split_scores(fit, X, y, seed) for seed in range(n_splits)]
            except ImportError:
                print_row(table, str(len(y)), name, NOT_INSTALLED)
                continue
            by_model[name].append(np.mean(found, axis=0))
            print_row(table, str(len(y)), name, *cells_of(by_model[name][-1]))
    for name, of_tables in by_model.items():
        if of_tables:
            print_row(f"mean of {len(of_tables)}", "", name, *cells_of(np.mean(of_tables, axis=0)))


def cells_of(scores: Floats) -> list[str]:
    *of_rows, seconds = scores.tolist()
    return [*(f"{score:.4f}" for score in of_rows), f"{seconds:.1f}"]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", action="store_true", help="the stream of flights")
    parser.add_argument("--tables", action="store_true", help="tables at once")
    parser.add_argument("--rows", type=int, help="rows of each data set, at most")
    parser.add_argument("--splits", type=int, default=3, help="random splits of each table")
    parser.add_argument("--folder", type=Path, help="of more tables, *.parquet")
    models = [*FLIGHTS, *(name for name in FIRST_FLIGHTS if name not in FLIGHTS)]
    parser.add_argument("--models", nargs="+", choices=models, default=models, help="of the stream")
    arguments = parser.parse_args(argv)
    if not arguments.flights and not arguments.tables:
        parser.error("choose --flights or --tables")
    with threadpool_limits(1):
        if arguments.flights:
            print_flights(arguments.rows, arguments.models)
        if arguments.tables:
            print_tables(arguments.folder, arguments.rows, arguments.splits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
