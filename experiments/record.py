"""A record of the accuracy of the default estimators on all data sets, and a page of its tables.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.record --out record.json
    python -m experiments.record --page docs/record.md --from docs/record/2f3eea0.json

Results are written after each data set: a run that is interrupted goes on where it stopped. The
file must not hold times, so that two runs of one commit on one platform give equal figures.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import onlineforest
from experiments import regression, streams
from experiments.common import accuracy_and_log_loss, data_folder, load, split
from experiments.paper.data import raw
from onlineforest import MondrianForestClassifier, MondrianForestRegressor

ROOT = Path(__file__).resolve().parents[1]
SEEDS = (0, 1)
TEST_SHARE = 0.3
COVTYPE_SAMPLES = 50_000
STREAM_SAMPLES = 20_000
FLIGHTS_TRAIN, FLIGHTS_TEST = 40_000, 20_000
FLIGHTS_COLUMNS = (  # dep_delay is left out: it is known only when the flight has left
    "month",
    "day",
    "sched_dep_time",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "distance",
    "sched_arr_time",
)
LATE = 15  # minutes

CLASSIFICATION, REGRESSION, STREAM = "classification", "regression", "stream"
REFERENCE_TREES = 100
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "MondrianForestClassifier": lambda seed: MondrianForestClassifier(random_state=seed, n_jobs=-1),
    "RandomForestClassifier": lambda seed: RandomForestClassifier(
        REFERENCE_TREES, random_state=seed, n_jobs=-1
    ),
    "ExtraTreesClassifier": lambda seed: ExtraTreesClassifier(
        REFERENCE_TREES, random_state=seed, n_jobs=-1
    ),
}
REGRESSORS: dict[str, Callable[[int], Any]] = {
    "MondrianForestRegressor": lambda seed: MondrianForestRegressor(random_state=seed, n_jobs=-1),
    "RandomForestRegressor": lambda seed: RandomForestRegressor(
        REFERENCE_TREES, random_state=seed, n_jobs=-1
    ),
    "ExtraTreesRegressor": lambda seed: ExtraTreesRegressor(
        REFERENCE_TREES, random_state=seed, n_jobs=-1
    ),
}
STREAM_LEARNERS: dict[str, Callable[[int, NDArray], streams.Ours]] = {
    "MondrianForestClassifier": lambda seed, classes: streams.Ours(
        MondrianForestClassifier(streams.N_TREES, random_state=seed), classes
    ),
}

# Train and test: X, y, X_test, y_test. A stream has no test set.
Arrays = tuple[NDArray, ...]
Scores = dict[str, dict[str, list[float]]]  # model -> metric -> one value per seed
Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One data set, what is predicted on it, and how samples are chosen, in words."""

    data: str
    kind: str
    samples: str
    load: Callable[[int], Arrays]  # of a seed


def paper_split(name: str) -> Task:
    return Task(name, CLASSIFICATION, "the file's own split, as in the paper", lambda _: raw(name))


def random_split(name: str, arrays: Callable[[], Arrays], n_samples: int | None = None) -> Task:
    """Seed s splits the samples, or a random subset of `n_samples`, 70:30."""

    def of_seed(seed: int) -> Arrays:
        rng = np.random.default_rng(seed)
        X, y = arrays()
        if n_samples is not None and n_samples < len(y):
            some = rng.permutation(len(y))[:n_samples]
            X, y = X[some], y[some]
        return split(X, y, rng, n_test=round(len(y) * TEST_SHARE))

    said = "random 70:30 split by seed"
    if n_samples is not None:
        said = f"{n_samples:,} random samples, {said}"
    return Task(name, CLASSIFICATION, said, of_seed)


def digits() -> Arrays:
    X, y = load_digits(return_X_y=True)
    return X, y


def ordinal_codes(column: Any) -> NDArray[np.float64]:
    """A pyarrow column as numbers: texts by order of appearance, missing values as NaN."""
    import pyarrow as pa

    column = column.combine_chunks()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode().indices
    return column.cast(pa.float64()).to_numpy(zero_copy_only=False)


def flights() -> Arrays:
    """The first flights with a known arrival delay, in order of time."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder() / "flights.parquet")
    table = table.filter(table["arr_delay"].is_valid()).slice(0, FLIGHTS_TRAIN + FLIGHTS_TEST)
    X = np.column_stack([ordinal_codes(table[name]) for name in FLIGHTS_COLUMNS])
    y = (table["arr_delay"].to_numpy() > LATE).astype(np.int64)
    n = FLIGHTS_TRAIN
    return X[:n], y[:n], X[n:], y[n:]


def stream(name: str) -> Task:
    def in_order(_: int) -> Arrays:
        X, y = load(streams.STREAMS[name], "X", "y")
        return X[:STREAM_SAMPLES], y[:STREAM_SAMPLES]

    return Task(name, STREAM, f"the first {STREAM_SAMPLES:,} at most, in order", in_order)


def standard_split(name: str) -> Task:
    random = name == "california"
    said = "random 90:10 split by seed" if random else "standard 90:10 split of the seed's number"
    return Task(name, REGRESSION, said, lambda seed: regression.load_split(name, seed))


TASKS = (
    *map(paper_split, ("dna", "letter", "satimages", "usps")),
    random_split("digits", digits),
    random_split("phishing", lambda: load("phishing_river", "X", "y")),
    random_split("bananas", lambda: load("bananas", "X", "y")),
    random_split("elec2", lambda: load("elec2", "X", "y")),
    random_split("covtype", lambda: load("covtype", "X", "y"), COVTYPE_SAMPLES),
    Task(
        "flights",
        CLASSIFICATION,
        f"arrival more than {LATE} minutes late: trained on the first {FLIGHTS_TRAIN:,} flights "
        f"that arrived, tested on the next {FLIGHTS_TEST:,}; texts as codes by appearance",
        lambda _: flights(),
    ),
    *map(standard_split, regression.SEEDS),
    *map(stream, streams.STREAMS),
)


def classifier_scores(
    data: Arrays, seed: int, models: dict[str, Callable[[int], Any]], least: float = 1e-15
) -> dict[str, dict[str, float]]:
    """Scores of models of a seed; a probability below `least` counts as `least`."""
    X, y, X_test, y_test = data
    scores = {}
    for name, model in models.items():
        forest = model(seed).fit(X, y)
        accuracy, loss = accuracy_and_log_loss(
            forest.predict_proba(X_test), forest.classes_, y_test, least
        )
        scores[name] = {"accuracy": accuracy, "log_loss": loss}
    return scores


def classification_scores(data: Arrays, seed: int) -> dict[str, dict[str, float]]:
    _, y, _, y_test = data
    scores = classifier_scores(data, seed, CLASSIFIERS)
    labels, counts = np.unique(y, return_counts=True)
    scores["most frequent class"] = {"accuracy": float((y_test == labels[counts.argmax()]).mean())}
    return scores


def regression_scores(data: Arrays, seed: int) -> dict[str, dict[str, float]]:
    X, y, X_test, y_test = data
    scores = {}
    for name, model in REGRESSORS.items():
        forest = model(seed).fit(X, y)
        found = regression.score(
            regression.Prediction(
                seconds=np.nan,
                mean=forest.predict(X_test),
                interval=forest.predict_interval(X_test, regression.COVERAGE)
                if hasattr(forest, "predict_interval")
                else None,
                log_density=forest.log_density(X_test, y_test)
                if hasattr(forest, "log_density")
                else None,
            ),
            y_test,
        )
        metrics = {
            "rmse": found.rmse,
            "negative_log_density": found.nlpd,
            "coverage_90": found.coverage,
        }
        scores[name] = {key: float(value) for key, value in metrics.items() if np.isfinite(value)}
    return scores


def stream_scores(data: Arrays, seed: int) -> dict[str, dict[str, float]]:
    X, y = data
    scores = {}
    for name, learner in STREAM_LEARNERS.items():
        accuracy, loss, _ = streams.run(learner(seed, np.unique(y)), X, y)
        scores[name] = {"accuracy": float(accuracy), "log_loss": float(loss)}
    no_change = np.concatenate([[False], y[1:] == y[:-1]])
    scores["class of the sample before"] = {"accuracy": float(no_change.mean())}
    return scores


SCORERS = {
    CLASSIFICATION: classification_scores,
    REGRESSION: regression_scores,
    STREAM: stream_scores,
}


def measure(task: Task, seeds: Iterable[int] = SEEDS) -> Row:
    """The row of a task: sizes, and every metric of every model, one value per seed."""
    seeds = list(seeds)
    metrics: Scores = {}
    for seed in seeds:
        data = task.load(seed)
        X, y = data[0].astype(np.float32), data[1]
        rest = (data[2].astype(np.float32), data[3]) if len(data) == 4 else ()
        for model, found in SCORERS[task.kind]((X, y, *rest), seed).items():
            for metric, value in found.items():
                metrics.setdefault(model, {}).setdefault(metric, []).append(value)
    return {
        "data": task.data,
        "task": task.kind,
        "samples": task.samples,
        "n_train": len(y),
        "n_test": len(rest[1]) if rest else len(y),
        "n_features": X.shape[1],
        "n_classes": None if task.kind == REGRESSION else len(np.unique(y)),
        "seeds": seeds,
        "metrics": metrics,
    }


def full_commit(revision: str) -> str:
    command = ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{revision} is no commit of this repository: {done.stderr.strip()}")
    return done.stdout.strip()


def circumstances(commit: str) -> Row:
    """What the figures depend on besides code and data."""
    return {
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "versions": {
            "onlineforest": onlineforest.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "machine": platform.machine(),
    }


def started_record(path: Path, commit: str) -> Row:
    """The record in a file, to go on with, or an empty one."""
    if not path.exists():
        return {**circumstances(commit), "rows": []}
    record = json.loads(path.read_text())
    if record["commit"] != commit:
        raise SystemExit(
            f"{path} is a record of commit {record['commit']}, this run is of {commit}: "
            "name another file."
        )
    return record


def write_record(record: Row, path: Path) -> None:
    """Replace the file whole, so that an interrupt leaves the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(path)


def run(tasks: Iterable[Task], path: Path, commit: str) -> None:
    """Measure the tasks that the file does not hold yet; write it after each."""
    record = started_record(path, commit)
    done = {(row["data"], row["task"]) for row in record["rows"]}
    for task in tasks:
        if (task.data, task.kind) in done:
            print(f"{task.data}, {task.kind}: recorded already", flush=True)
            continue
        start = time.perf_counter()
        row = measure(task)
        record["rows"].append(row)
        write_record(record, path)
        seconds = time.perf_counter() - start
        own = next(iter(row["metrics"].values()))
        figures = ", ".join(f"{metric} {np.mean(values):.4f}" for metric, values in own.items())
        print(f"{task.data}, {task.kind}: {figures} ({seconds:.0f} s)", flush=True)


@dataclass(frozen=True)
class Column:
    """A metric of a model in a table, the mean over the seeds."""

    heading: str
    model: str
    metric: str
    decimals: int = 4

    def cell(self, row: Row) -> str:
        values = row["metrics"].get(self.model, {}).get(self.metric)
        return "–" if values is None else f"{np.mean(values):.{self.decimals}f}"


def columns_of(models: dict[str, str], metric: str, said: str) -> list[Column]:
    return [Column(f"{said}, {short}", model, metric) for model, short in models.items()]


CLASSIFIER_NAMES = {
    "MondrianForestClassifier": "Mondrian",
    "RandomForestClassifier": "random forest",
    "ExtraTreesClassifier": "extra trees",
}
REGRESSOR_NAMES = {
    "MondrianForestRegressor": "Mondrian",
    "RandomForestRegressor": "random forest",
    "ExtraTreesRegressor": "extra trees",
}
TABLES = {
    CLASSIFICATION: [
        *columns_of(CLASSIFIER_NAMES, "accuracy", "accuracy"),
        Column("accuracy, most frequent class", "most frequent class", "accuracy"),
        *columns_of(CLASSIFIER_NAMES, "log_loss", "log loss"),
    ],
    REGRESSION: [
        *columns_of(REGRESSOR_NAMES, "rmse", "RMSE"),
        Column("negative log density", "MondrianForestRegressor", "negative_log_density"),
        Column("coverage of 90 %", "MondrianForestRegressor", "coverage_90", 3),
    ],
    STREAM: [
        Column("accuracy", "MondrianForestClassifier", "accuracy"),
        Column("accuracy, class of the sample before", "class of the sample before", "accuracy"),
        Column("log loss", "MondrianForestClassifier", "log_loss"),
    ],
}
SECTIONS = {
    CLASSIFICATION: (
        "Classification",
        "A probability of 0 for the true class, which batch forests often give, counts as\n"
        "1e-15 in the log loss.",
    ),
    REGRESSION: (
        "Regression",
        "Negative log density and coverage of the 90 % interval are means over the test set.",
    ),
    STREAM: (
        "Streams",
        f"{streams.N_TREES} trees. Each sample is predicted, then learned.",
    ),
}


def table(rows: Sequence[Row], kind: str) -> str:
    """The rows of one kind of task in Markdown."""
    columns = TABLES[kind]
    sizes = ["samples"] if kind == STREAM else ["train", "test"]
    headings = ["data", *sizes, "features", *(column.heading for column in columns)]
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        counts = [row["n_train"]] if kind == STREAM else [row["n_train"], row["n_test"]]
        counts.append(row["n_features"])
        lines.append([row["data"], *map(str, counts), *(column.cell(row) for column in columns)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(record: Row, source: str) -> str:
    """The page of a record; `source` is the path of its file from the page."""
    commit, versions = record["commit"][:7], record["versions"]
    parts = [
        "# Accuracy on record",
        f"Accuracy of the default estimators at commit {commit}, beside scikit-learn's forests of "
        f"{REFERENCE_TREES} trees. Later\nchanges are compared with this record. Figures are means "
        f"over the seeds; [the file]({source})\nholds each seed's.",
        f"With the package built from commit {commit}, in the root of a checkout that has "
        "`experiments/record.py`:",
        f"```sh\nONLINEFOREST_DATA=… python -m experiments.record --commit {commit} --out x.json\n"
        f"python -m experiments.record --page docs/record.md --from docs/{source}\n```",
        f"Made on {record['date']} with NumPy {versions['numpy']} and scikit-learn "
        f"{versions['scikit-learn']} on {record['machine']}. The page is generated.",
        "Speed of the same commit, by `python -m benchmarks --quick` on an x86-64 machine that was "
        f"not idle:\n[table](record/{commit}-benchmarks.txt).",
    ]
    for kind, (heading, note) in SECTIONS.items():
        rows = [row for row in record["rows"] if row["task"] == kind]
        if not rows:
            continue
        parts += [f"## {heading}", note, table(rows, kind), samples_list(rows)]
    return "\n\n".join(parts) + "\n"


def samples_list(rows: Sequence[Row]) -> str:
    """How samples were chosen; data sets treated alike share a line."""
    names: dict[str, list[str]] = {}
    for row in rows:
        seeds = ", ".join(map(str, row["seeds"]))
        names.setdefault(f"{row['samples']}; seeds {seeds}", []).append(row["data"])
    return "\n".join(f"- {', '.join(data)}: {said}." for said, data in names.items())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file to write results to, or to go on with")
    parser.add_argument(
        "--only", nargs="+", choices=sorted({task.data for task in TASKS}), metavar="NAME"
    )
    parser.add_argument(
        "--commit", default="HEAD", help="commit that the installed package was built from"
    )
    parser.add_argument("--page", type=Path, help="page to write the tables to")
    parser.add_argument("--from", dest="source", type=Path, help="record of the page")
    arguments = parser.parse_args(argv)
    if (arguments.page is None) != (arguments.source is None):
        parser.error("--page and --from need each other")
    if (arguments.page is None) == (arguments.out is None):
        parser.error("give either --out, or --page and --from")
    if arguments.page is not None:
        source = arguments.source.resolve().relative_to(arguments.page.resolve().parent)
        record = json.loads(arguments.source.read_text())
        arguments.page.write_text(page(record, source.as_posix()), encoding="utf-8")
        return 0
    tasks = [task for task in TASKS if not arguments.only or task.data in arguments.only]
    run(tasks, arguments.out, full_commit(arguments.commit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
