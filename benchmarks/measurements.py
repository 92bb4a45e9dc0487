"""Measure each kind of case: turns a case and the settings into rows of the table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Data, load_stream
from benchmarks.formats import duration, megabytes, number
from benchmarks.memory import memory_of_learning
from benchmarks.ours import core_forest, mondrian, order_free, uncalibrated
from benchmarks.peers import AMF, ARF, ERT_K, Peer
from benchmarks.results import NotMeasuredError, Row
from benchmarks.settings import Case, Measure, Settings
from benchmarks.tasks import (
    Task,
    fitting,
    predict_and_learn,
    row_by_row_ours,
    row_by_row_river,
)
from benchmarks.timing import Job, Pairs, alternate, seconds_of

N_TREES_STREAM = 10
PEAK_TARGET = 1.5

# First and last row of a piece of a stream -> job that takes the rows one by one.
Pieces = Callable[[int, int], Job]
# Number of trees, seed, rows and class codes of a stream -> pieces for a new forest.
OneByOne = Callable[[int, int, NDArray[np.float32], NDArray[np.int64]], Pieces]
# Forest that has learned before, rows and class codes -> job that takes the rows one by one.
RowByRow = Callable[[Any, NDArray[np.float32], NDArray[np.int64]], Job]


def learned(n_trees: int, seed: int, X: NDArray[np.float32], y: NDArray[np.int64]) -> Pieces:
    """A Mondrian core forest learns the rows."""
    forest = core_forest(n_trees, X.shape[1], seed)
    labels, n_classes = y.astype(np.int32), int(y.max()) + 1

    def piece(begin: int, end: int) -> Job:
        rows, codes = X[begin:end], labels[begin:end]
        return lambda: forest.learn(rows, codes, n_classes, n_threads=1, one_by_one=True)

    return piece


def predicted_and_learned(
    n_trees: int, seed: int, X: NDArray[np.float32], y: NDArray[np.int64]
) -> Pieces:
    """An order-free forest predicts each row, so that no cut is put off, and learns it."""
    forest = order_free(n_trees, seed)
    forest.partial_fit(X[:1], y[:1], classes=np.arange(y.max() + 1))

    def piece(begin: int, end: int) -> Job:
        begin = max(begin, 1)
        return predict_and_learn(forest, X[begin:end], y[begin:end])

    return piece


def grown_then_learned(
    n_trees: int, seed: int, X: NDArray[np.float32], y: NDArray[np.int64]
) -> Pieces:
    """An order-free forest learns the first piece at once, and predicts and learns other rows.

    It is the same forest as after learning the first piece one by one, which would take long.
    """
    forest = order_free(n_trees, seed)

    def piece(begin: int, end: int) -> Job:
        rows, labels = X[begin:end], y[begin:end]
        if begin == 0:
            return lambda: forest.fit(rows, labels)
        return predict_and_learn(forest, rows, labels)

    return piece


def side_by_side(
    task: Task,
    peer: Peer,
    peer_task: Task | None = None,
    ours: Callable[[int, int], Any] = order_free,
) -> Measure:
    """Time of our forest relative to a peer, at the same task or at one task each."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        n_trees, n_batches = settings.n_trees, settings.n_batches
        pairs = alternate(
            lambda seed: task(ours(n_trees, seed), data, n_batches),
            lambda seed: (peer_task or task)(peer.new(n_trees, seed), data, n_batches),
            case.runs(settings),
        )
        return [case.ratio_row(settings, pairs, peer.name)]

    return measure


def calibration(task: Task) -> Measure:
    """Time of a task with calibration relative to the time without."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data, n_trees = settings.load(case.data), settings.n_trees
        pairs = alternate(
            lambda seed: task(order_free(n_trees, seed), data, 1),
            lambda seed: task(uncalibrated(n_trees, seed), data, 1),
            case.runs(settings),
        )
        return [case.ratio_row(settings, pairs, "without")]

    return measure


def calibration_of_stream(row_by_row: RowByRow, n_piece: int = 250) -> Measure:
    """Measure the cost of calibration row by row; both forests take turns in a stream."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data, pairs = settings.load(case.data), Pairs()
        starts = range(1, len(data.y), n_piece)

        def pieces(forest: Any) -> Callable[[int], Job]:
            forest.partial_fit(data.X[:1], data.y[:1], classes=data.classes)

            def piece(number: int) -> Job:
                rows = slice(starts[number], starts[number] + n_piece)
                return row_by_row(forest, data.X[rows], data.y[rows])

            return piece

        for seed in range(case.runs(settings)):
            n_trees = settings.size(N_TREES_STREAM)
            sides = (pieces(new(n_trees, seed)) for new in (order_free, uncalibrated))
            turns = alternate(*sides, len(starts))
            pairs.ours.append(sum(turns.ours))
            pairs.peer.append(sum(turns.peer))
        n_rows = len(data.y) - 1
        return [case.ratio_row(settings, pairs.per(n_rows, n_rows), "without")]

    return measure


def stream(one_by_one: OneByOne) -> Measure:
    """All rows one by one, relative to one fit of ERT-k."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data, n_trees = settings.load(case.data), settings.n_trees
        pairs = alternate(
            lambda seed: one_by_one(n_trees, seed, data.X, data.y)(0, len(data.y)),
            lambda seed: fitting(ERT_K.new(n_trees, seed), data, 1),
            case.runs(settings),
        )
        return [case.ratio_row(settings, pairs, "one ERT-k fit")]

    return measure


def threads(n_threads: int, task: Task, ours: Callable[[int, int, int], Any]) -> Measure:
    """Speed-up of our forest by several threads. Batches have about 1,000 rows."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        if (os.cpu_count() or 1) < n_threads:
            raise NotMeasuredError(f"needs {n_threads} processors")
        n_batches = max(len(data.y) // 1_000, 2)

        def with_threads(n_jobs: int) -> Callable[[int], Job]:
            return lambda seed: task(ours(settings.n_trees, seed, n_jobs), data, n_batches)

        pairs = alternate(with_threads(n_threads), with_threads(1), case.runs(settings))
        many, one = pairs.medians()
        sides = {
            "ours": f"{n_threads} threads {duration(many)}",
            "peer": f"one thread {duration(one)}",
        }
        return [case.faster_row(settings, pairs, **sides)]

    return measure


def one_row(ours: Callable[[int, int], Any], learn: float, predict: float) -> Measure:
    """Microseconds of a call with one row, late in a stream, with their targets.

    Rows are predicted first by a forest that stays as it is, then each one before it is learned.
    """

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        n_rows = min(settings.size(1_000, least=10), len(data.y) // 2)
        rows, labels = list(data.X[-n_rows:]), data.y[-n_rows:].tolist()
        medians: dict[str, list[float]] = {}
        tails: dict[str, list[float]] = {}
        for seed in range(case.runs(settings)):
            forest = ours(settings.n_trees, seed).fit(data.X[:-n_rows], data.y[:-n_rows])
            for row in rows:  # makes the splits that were put off, so that they are not timed
                forest.predict_proba_one(row)
            seconds = {
                "predict, nothing learned": [
                    seconds_of_call(forest.predict_proba_one, row) for row in rows
                ]
            }
            pairs = [
                (
                    seconds_of_call(forest.predict_proba_one, row),
                    seconds_of_call(forest.learn_one, row, label),
                )
                for row, label in zip(rows, labels, strict=True)
            ]
            seconds["predict, after each learn"], seconds["learn"] = map(
                list, zip(*pairs, strict=True)
            )
            for way, each in seconds.items():
                medians.setdefault(way, []).append(1e6 * float(np.median(each)))
                tails.setdefault(way, []).append(float(np.quantile(each, 0.99)))
        return [
            case.row(
                settings,
                case=f"{case.name}, {way}",
                target=learn if way == "learn" else predict,
                ours=f"99 % within {duration(float(np.median(tails[way])))}",
                values=values,
                unit="µs",
            )
            for way, values in medians.items()
        ]

    return measure


def seconds_of_call(call: Callable[..., object], *arguments: object) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def one_sample(
    peer: Peer,
    ours: Callable[[int, int], Any] = order_free,
    task: Callable[[Any, Data], Job] = row_by_row_ours,
    n_rows: int = 2_000,
    peer_task: Callable[[Any, Data], Job] = row_by_row_river,
) -> Measure:
    """Predict and learn row by row from Python: speed relative to River or MOA."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data).head(settings.size(n_rows, quick=300, least=20))
        n_trees = settings.size(N_TREES_STREAM)
        peer.new(n_trees, 0)  # raises before anything is timed if it is missing
        pairs = alternate(
            lambda seed: task(ours(n_trees, seed), data),
            lambda seed: peer_task(peer.new(n_trees, seed), data),
            case.runs(settings),
        )
        own, other = (seconds / (len(data.y) - 1) for seconds in pairs.medians())
        row = case.faster_row(
            settings,
            pairs,
            data=f"{case.data}, {len(data.y)} rows",
            ours=f"{duration(own)} per row",
            peer=f"{peer.name} {duration(other)} per row",
        )
        return [row]

    return measure


def one_river_sample(peer: Peer, ours: Callable[[int, int], Any]) -> Measure:
    """Predict and learn row by row with our models for River, which take dicts."""
    return one_sample(peer, ours, row_by_row_river, n_rows=5_000)


def learning_overhead(case: Case, settings: Settings) -> list[Row]:
    """Overhead of a call of `learn_one` with one tree: a loop of calls minus one batch call."""
    data = settings.load(case.data)
    rows, labels = list(data.X[1:]), data.y[1:].tolist()
    core_labels, n_classes = data.labels, len(data.classes)

    def loop(seed: int) -> Job:
        forest = mondrian(1, seed)
        forest.partial_fit(data.X[:1], data.y[:1], classes=data.classes)

        def job() -> None:
            for row, label in zip(rows, labels, strict=True):
                forest.learn_one(row, label)

        return job

    def core(seed: int) -> Job:
        forest = core_forest(1, data.X.shape[1], seed)
        forest.learn(data.X[:1], core_labels[:1], n_classes, n_threads=1)
        X, y = data.X[1:], core_labels[1:]
        return lambda: forest.learn(X, y, n_classes, n_threads=1, one_by_one=True)

    return [overhead_row(case, settings, alternate(loop, core, case.runs(settings)), len(rows))]


def predicting_overhead(case: Case, settings: Settings) -> list[Row]:
    """Overhead of a call of `predict_proba_one`: a loop of calls minus one batch call."""
    data = settings.load(case.data)
    rows = list(data.X_test)

    def loop(seed: int) -> Job:
        forest = mondrian(1, seed).fit(data.X, data.y)

        def job() -> None:
            for row in rows:
                forest.predict_proba_one(row)

        return job

    def core(seed: int) -> Job:
        forest = mondrian(1, seed).fit(data.X, data.y)._forest
        return lambda: forest.predict(data.X_test, 1)

    return [overhead_row(case, settings, alternate(loop, core, case.runs(settings)), len(rows))]


def overhead_row(case: Case, settings: Settings, pairs: Pairs, n_rows: int) -> Row:
    """A row of the microseconds per row by which the loop exceeds the core."""
    loop, core = (seconds / n_rows for seconds in pairs.medians())
    return case.row(
        settings,
        ours=f"{duration(loop)} per call",
        peer=f"core {duration(core)} per row",
        values=[1e6 * difference / n_rows for difference in pairs.differences()],
        unit="µs",
        seconds=pairs.seconds(),
    )


def long_stream(one_by_one: OneByOne, n_late: int = 4_000, n_quick: int = 100_000) -> Measure:
    """Cost per sample late in a stream relative to the cost early in it.

    Pieces of `n_late` rows of one long stream are timed in turn with the same piece of the start of
    a new forest. A quick stream has `n_quick` rows.
    """

    def measure(case: Case, settings: Settings) -> list[Row]:
        runs = case.runs(settings)
        late = settings.size(1_000_000, quick=n_quick)
        early = settings.size(10_000, quick=n_quick // 10)
        width, late_width = (settings.size(n, quick=n_quick // 25) for n in (4_000, n_late))
        n_trees = settings.size(N_TREES_STREAM)
        start = late - runs * late_width // 2
        X, y = load_stream(case.data, settings.folder, start + runs * late_width)
        old = one_by_one(n_trees, 0, X, y)
        old(0, start)()

        def at_late(number: int) -> Job:
            return old(start + number * late_width, start + (number + 1) * late_width)

        def at_early(number: int) -> Job:
            young = one_by_one(n_trees, number, X, y)
            young(0, early - width // 2)()
            return young(early - width // 2, early + width // 2)

        pairs = alternate(at_late, at_early, runs).per(late_width, 2 * (width // 2))
        after_many, after_few = pairs.medians()
        row = case.row(
            settings,
            ours=f"at {late:,}: {duration(after_many)} per sample",
            peer=f"at {early:,}: {duration(after_few)}",
            values=pairs.ratios(),
            seconds=pairs.seconds(),
        )
        return [row]

    return measure


def longest_call(case: Case, settings: Settings) -> list[Row]:
    """The longest call of a stream that an order-free forest predicts and learns one by one.

    Every run does the same work, so the time of a call is its least over the runs: pauses that
    other processes cause do not count.
    """
    n_rows = settings.size(100_000, quick=2_000, least=20)
    X, y = load_stream(case.data, settings.folder, n_rows)
    rows, labels = list(X), y.tolist()

    def seconds_of_calls() -> NDArray[np.float64]:
        """Seconds of predicting and of learning each row but the first, shape (n_rows - 1, 2)."""
        forest = order_free(settings.size(N_TREES_STREAM), 0)
        forest.partial_fit(X[:1], y[:1], classes=np.arange(y.max() + 1))
        seconds = np.empty((n_rows - 1, 2))
        for i in range(1, n_rows):
            seconds[i - 1] = (
                seconds_of_call(forest.predict_proba_one, rows[i]),
                seconds_of_call(forest.learn_one, rows[i], labels[i]),
            )
        return seconds

    seconds = np.min([seconds_of_calls() for _ in range(case.runs(settings))], axis=0)
    row = case.row(
        settings,
        data=f"{case.data}, {n_rows:,} rows",
        ours=", ".join(
            f"{call} {duration(longest)} (row {row + 2:,})"
            for call, longest, row in zip(
                ("predict", "learn"), seconds.max(axis=0), seconds.argmax(axis=0), strict=True
            )
        ),
        peer=f"mean of predict and learn {duration(seconds.sum(axis=1).mean())}",
        values=[1e3 * seconds.max()],
        unit="ms",
    )
    return [row]


def batch_stream(ours: Callable[[int, int], Any]) -> Measure:
    """Samples per second in batches, each predicted before it is learned, relative to River."""

    def measure(case: Case, settings: Settings) -> Iterable[Row]:
        n_rows, batch = (
            settings.size(100_000, quick=20_000, least=40),
            settings.size(1_000, least=10),
        )
        X, y = load_stream(case.data, settings.folder, n_rows)
        n_trees, n_river = settings.size(N_TREES_STREAM), settings.size(1_000, quick=200, least=20)
        forest = ours(n_trees, 0).partial_fit(X[:batch], y[:batch])
        n_right = 0

        def job() -> None:
            nonlocal n_right
            for start in range(batch, n_rows, batch):
                rows, classes = X[start : start + batch], y[start : start + batch]
                n_right += int((forest.predict(rows) == classes).sum())
                forest.partial_fit(rows, classes)

        seconds = seconds_of(job)
        rate, accuracy = (n_rows - batch) / seconds, n_right / (n_rows - batch)
        head = Data(X[:n_river], y[:n_river], X[:0])
        for peer in (AMF, ARF):
            columns: dict[str, Any] = {
                "case": f"{case.name} / {peer.name}",
                "data": f"{case.data}, {n_rows:,} rows",
                "ours": f"{rate:,.0f} samples/s, accuracy {accuracy:.3f}",
                "unit": "×",
                "better": "higher",
            }
            try:
                river = seconds_of(row_by_row_river(peer.new(n_trees, 0), head))
            except NotMeasuredError as error:
                yield case.row(settings, **columns, note=f"not measured: {error}")
                continue
            river_rate = (n_river - 1) / river
            yield case.row(
                settings,
                **columns,
                peer=f"{peer.name} {river_rate:,.0f} samples/s (first {n_river} rows)",
                values=[rate / river_rate],
                seconds={"ours": [seconds], "peer": [river]},
                details={"accuracy": accuracy},
            )

    return measure


def memory(way: str, forest: str = "order-free", beside_rows: bool = False) -> Measure:
    """Bytes per sample and tree, and the peak while learning, in a process of its own.

    If `beside_rows`, the stored rows do not count: 4 bytes per sample and feature.
    """

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        n_parts = len(data.y) * settings.n_trees
        in_rows = data.X.nbytes if beside_rows else 0
        found = memory_of_learning(
            data=case.data,
            folder=str(settings.folder) if settings.folder else None,
            scale=settings.scale,
            forest=forest,
            way=way,
            n_trees=settings.n_trees,
            n_batches=settings.n_batches,
        )
        resident, peak, model = found["resident"], found["peak"], found["model"]
        says = f", {megabytes(in_rows)} of it rows" if beside_rows else ""
        if model is not None:
            says += f"; model {number((model - in_rows) / n_parts)} bytes by nbytes_"
        rows = [
            case.row(
                settings,
                ours=f"{megabytes(resident)}{says}",
                values=[(resident - in_rows) / n_parts],
                unit="bytes",
                details=found,
            )
        ]
        if peak is not None and resident > 0:
            row = case.row(
                settings,
                case=f"{case.name}, peak / resident",
                ours=f"peak {megabytes(peak)}",
                values=[peak / resident],
                target=PEAK_TARGET,
            )
            rows.append(row)
        return rows

    return measure
