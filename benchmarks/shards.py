"""Measure forests on Ray: one shard against a local forest, two shards against one, and costs.

All processes run on one machine, so nothing crosses a network. Weights are fixed, so that no
refresh is timed. The constants of `benchmarks.ray_cost` are fitted, and the predictions of the cost
model for two shards are compared with measured times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.data import Labelled, synthetic
from benchmarks.formats import duration, megabytes
from benchmarks.ray_cost import (
    Constants,
    Growth,
    Line,
    Run,
    batch_bytes,
    learning_seconds,
    prediction_seconds,
    saved,
)
from benchmarks.results import NotMeasuredError, Row
from benchmarks.settings import Case, Settings
from benchmarks.timing import Job, Pairs, alternate, seconds_of
from onlineforest import MondrianForestClassifier
from onlineforest._extras import MissingExtraError, require

NICENESS = "RAY_worker_niceness"  # 15 unless it is set
N_FEATURES, MANY_FEATURES, N_CLASSES = 16, 100, 10
N_KNOWN = 20_000  # rows learned before anything is timed
LEAST = {100: 5, 1_000: 10, 10_000: 20}  # rows of a batch, and the fewest at small scales
LONG = 10_000  # batches from this size get fewer runs
N_SHARDS, MORE_SHARDS = 2, 3
# A shard has a thread of its own; for Ray it takes half a processor, so that three fit.
OPTIONS = {"num_cpus": 0.5}


def local(n_trees: int, n_features: int = N_FEATURES, **parameters: Any) -> Any:
    """A forest of this process with fixed weights, on one thread."""
    fixed: dict[str, Any] = {"feature_weights": np.ones(n_features), "leaf_discount": 0.0}
    return MondrianForestClassifier(n_trees, n_jobs=1, random_state=0, **(fixed | parameters))


@contextmanager
def running_ray() -> Iterator[Any]:
    """Ray on this machine: the one this process already uses, or a new one."""
    try:
        require("ray", "ray")
    except MissingExtraError as error:
        raise NotMeasuredError(str(error)) from error
    import ray

    if ray.is_initialized():
        yield ray
        return
    with alike():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def alike() -> Iterator[None]:
    """Give the workers of Ray the priority of this process: a busy machine slows both sides."""
    before = os.environ.get(NICENESS)
    os.environ[NICENESS] = "0"
    try:
        yield
    finally:
        os.environ.pop(NICENESS)
        if before is not None:
            os.environ[NICENESS] = before


def learn_on(forest: Any, batches: list[Labelled]) -> None:
    """Learn batches that follow those already learned."""
    forest.learn_stream(batches, first=forest.n_batches_)


class Source:
    """Rows of an endless stream."""

    def __init__(self, n_features: int = N_FEATURES) -> None:
        self._n_features = n_features
        self._seed = 0

    def take(self, n_rows: int) -> Labelled:
        """The next rows."""
        self._seed += 1
        return synthetic(n_rows, self._n_features, N_CLASSES, seed=self._seed)


@dataclass(frozen=True)
class Bench:
    """The case and its settings, and the sizes that follow from them."""

    case: Case
    settings: Settings

    @property
    def n_trees(self) -> int:
        """Trees of the forests."""
        return self.settings.size(100, least=4)

    @property
    def n_known(self) -> int:
        """Rows learned before the measurement."""
        return self.settings.size(N_KNOWN, least=100)

    @property
    def sizes(self) -> list[int]:
        """Rows of batches, from small to large."""
        return [self.settings.size(n, least=k) for n, k in LEAST.items()]

    def runs(self, n_rows: int) -> int:
        """Number of pairs of runs."""
        runs = self.case.runs(self.settings)
        return min(runs, 3) if n_rows >= LONG else runs

    def row(self, what: str, **columns: Any) -> Row:
        """A row of the table."""
        return self.case.row(self.settings, case=f"{self.case.name}, {what}", **columns)


def measure(case: Case, settings: Settings) -> Iterator[Row]:
    """All rows about Ray."""
    bench = Bench(case, settings)
    with running_ray() as ray, ExitStack() as stack:
        from onlineforest.ray import RayForest

        source = Source()
        alone = local(bench.n_trees)

        def sharded(n_shards: int) -> Any:
            forest = RayForest(local(bench.n_trees), n_shards=n_shards, actor_options=OPTIONS)
            return stack.enter_context(forest)

        # All forests are grown here: a restored one has another memory layout and is slower.
        one, two = sharded(1), sharded(N_SHARDS)
        known = source.take(bench.n_known)
        for forest in (alone, one, two):
            forest.partial_fit(*known, classes=np.arange(N_CLASSES))
        seen: list[Labelled] = []
        yield from overheads(bench, alone, one, source, seen)
        learn_on(two, seen)
        streams = list(two_by_one(bench, two, one, source))
        for row, *_ in streams:
            yield row
        one.close()
        two.close()
        constants, lines = Calibration(bench, ray, RayForest).constants()
        yield from lines
        n_known = alone.n_samples_seen_
        for _, kind, n_batch, n_rows, n_before, pairs in streams:
            for n_shards, seconds in zip((N_SHARDS, 1), pairs.medians(), strict=True):
                run = Run(
                    n_rows,
                    n_batch,
                    bench.n_trees,
                    N_FEATURES,
                    n_shards=n_shards,
                    n_cores=os.cpu_count() or 1,
                    n_before=n_known + n_before,
                )
                yield foretold(bench, kind, run, constants, seconds)
        yield bench.row(
            "bytes of a batch of 1,000 rows",
            data=f"{N_FEATURES} features",
            values=[batch_bytes(1_000, N_FEATURES)],
            unit="bytes",
            details={"constants": saved(constants)},
        )


def overheads(
    bench: Bench, alone: Any, one: Any, source: Source, seen: list[Labelled]
) -> Iterator[Row]:
    """One shard compared with the local forest: the same batches learned, the same rows predicted.

    The rows learned are added to `seen`.
    """
    times: dict[str, list[tuple[float, float]]] = {"learn": [], "predict": []}
    for n_rows in bench.sizes:
        n_calls = max(min(1_000 // n_rows, 10), 1)

        def learning(batches: list[Labelled]) -> Callable[[Any], Job]:
            seen.extend(batches)
            return lambda forest: lambda: [forest.partial_fit(*batch) for batch in batches]

        def predicting(X: Any, n_calls: int = n_calls) -> Callable[[Any], Job]:
            return lambda forest: lambda: [forest.predict_proba(X) for _ in range(n_calls)]

        tasks: dict[str, Callable[[], Callable[[Any], Job]]] = {
            "learn": lambda n=n_rows, k=n_calls: learning([source.take(n) for _ in range(k)]),
            "predict": lambda n=n_rows: predicting(source.take(n)[0]),
        }
        for what, new_task in tasks.items():
            first = new_task()  # the first call allocates memory and is not timed
            first(one)(), first(alone)()
            rounds = [new_task() for _ in range(bench.runs(n_rows))]
            pairs = alternate(
                lambda i, rounds=rounds: rounds[i](one),
                lambda i, rounds=rounds: rounds[i](alone),
                len(rounds),
            ).per(n_calls, n_calls)
            with_ray, without = pairs.medians()
            times[what].append((n_rows, with_ray))
            more = median(pairs.differences())
            yield bench.row(
                f"overhead of one shard, {what} {n_rows:,} rows",
                ours=f"{duration(with_ray)}, {1e3 * more:+.1f} ms",
                peer=f"local {duration(without)}",
                values=[100 * (ratio - 1) for ratio in pairs.ratios()],
                unit="%",
                seconds=pairs.seconds(),
            )
    for what, points in times.items():
        line = Line.fitted(points)
        yield bench.row(
            f"one shard, {what}: time of a call",
            ours=f"{duration(line.always)} + {duration(line.each)} per row",
            values=[1e3 * line.at(1_000)],
            unit="ms for 1,000",
        )


def two_by_one(bench: Bench, two: Any, one: Any, source: Source) -> Iterator[tuple[Any, ...]]:
    """Two shards compared with one, on the same stream and the same rows to predict.

    Yields each row of the table with its kind, rows per batch, number of rows, rows learned before
    the middle of the runs, and seconds.
    """
    if (os.cpu_count() or 1) < N_SHARDS:
        raise NotMeasuredError("needs two processors")
    learned = 0
    for n_batch in bench.sizes[1:]:
        n_rows = max(bench.sizes[-1] // n_batch, 1) * n_batch
        runs = bench.runs(n_rows)
        streams = [
            [source.take(n_batch) for _ in range(n_rows // n_batch)] for _ in range(runs + 1)
        ]
        learn_on(two, streams[-1]), learn_on(one, streams[-1])
        learned += n_rows
        pairs = alternate(
            lambda i, streams=streams: lambda: learn_on(two, streams[i]),
            lambda i, streams=streams: lambda: learn_on(one, streams[i]),
            runs,
        )
        middle = learned + (runs - 1) * n_rows // 2
        learned += runs * n_rows
        row = _two_row(bench, pairs, f"stream in batches of {n_batch:,}", n_rows)
        yield row, "stream", n_batch, n_rows, middle, pairs
    for n_batch in bench.sizes[1:]:
        X = source.take(n_batch)[0]
        two.predict_proba(X), one.predict_proba(X)
        pairs = alternate(
            lambda _, X=X: lambda: two.predict_proba(X),
            lambda _, X=X: lambda: one.predict_proba(X),
            bench.runs(n_batch),
        )
        row = _two_row(bench, pairs, f"predict {n_batch:,} rows", n_batch)
        yield row, "predict", n_batch, n_batch, learned, pairs


def _two_row(bench: Bench, pairs: Pairs, what: str, n_rows: int) -> Row:
    two, one = pairs.medians()
    return bench.case.faster_row(
        bench.settings,
        pairs,
        case=f"{bench.case.name}, two shards by one, {what}",
        ours=f"two {n_rows / two:,.0f} rows/s",
        peer=f"one {n_rows / one:,.0f} rows/s",
    )


def foretold(bench: Bench, kind: str, run: Run, constants: Constants, seconds: float) -> Row:
    """The time that the cost model predicts, relative to the measured time."""
    if kind == "stream":
        said = learning_seconds(run, constants)
        total, why = said.total, f", decided by {said.dominated_by}"
    else:
        total, why = prediction_seconds(run, constants, N_CLASSES), ""
    return bench.row(
        f"model / measured, {kind} of {run.batch:,}, shards: {run.n_shards}",
        ours=f"model {duration(total)}{why}",
        peer=f"measured {duration(seconds)}",
        values=[total / seconds],
    )


class Calibration:
    """The constants of the cost model, each measured where it dominates.

    Parameters
    ----------
    bench : Bench
        Sizes.
    ray : module
        Ray, running.
    ray_forest : type
        Its forest.
    """

    def __init__(self, bench: Bench, ray: Any, ray_forest: Any) -> None:
        self._bench = bench
        self._ray = ray
        self._ray_forest = ray_forest
        self._lines: list[Row] = []

    def constants(self) -> tuple[Constants, list[Row]]:
        """All constants, and rows of the table for those of Ray."""
        trees = self._trees()
        front, per_shard, call = self._around()
        self._put_and_fetch()
        snapshot, recovery = self._snapshot_and_recovery()
        constants = Constants(
            **trees,
            window=self._window(),
            measure=self._measure(),
            front=front,
            per_shard=per_shard,
            call=call,
            snapshot=snapshot,
            recovery=recovery,
        )
        return constants, self._lines

    def _note(self, what: str, ours: str, value: float, unit: str, **columns: Any) -> None:
        self._lines.append(
            self._bench.row(what, ours=ours, values=[value], unit=unit, data="-", **columns)
        )

    def _size(self, full: int, least: int = 20) -> int:
        return self._bench.settings.size(full, least=least)

    def _trees(self) -> dict[str, Any]:
        """Cost of a row in a tree of a local forest, by rows stored and features."""
        n_trees = self._size(10, least=2)
        batch = self._size(1_000, least=10)
        learn, grow, predict, in_trees, in_samples = [], [], [], [], []
        for n_features, sizes in ((N_FEATURES, (5, 20, 80, 160)), (MANY_FEATURES, (5, 20, 60))):
            source = Source(n_features)
            forest = local(n_trees, n_features)
            known = 0
            for size in sizes:
                n = self._size(size * 1_000, least=10 * size)
                forest.partial_fit(*source.take(n - known), classes=np.arange(N_CLASSES))
                forest.partial_fit(*source.take(batch))  # allocates memory
                batches = [source.take(batch) for _ in range(4)]
                seconds = [
                    seconds_of(lambda b=b, forest=forest: forest.partial_fit(*b)) for b in batches
                ]
                known = n + 5 * batch
                each = batch * n_trees
                learn.append((known - 2 * batch, n_features, median(seconds) / each))
                X = source.take(4 * batch)[0]
                walk = seconds_of(lambda X=X, forest=forest: forest.predict_proba(X))
                predict.append((known, n_features, walk / each / 4))
                X, y = source.take(n)
                fresh = local(n_trees, n_features)
                fit = seconds_of(lambda X=X, y=y, fresh=fresh: fresh.fit(X, y))
                grow.append((n, n_features, fit / n / n_trees))
            small = local(1, n_features).fit(X, y)
            per_tree = (fresh.nbytes_ - small.nbytes_) / (n_trees - 1) / n
            in_trees.append((n_features, per_tree))
            in_samples.append((n_features, max(small.nbytes_ / n - per_tree, 1.0)))
        return {
            "learn": Growth.fitted(learn),
            "grow": Growth.fitted(grow),
            "predict": Growth.fitted(predict),
            "nodes": Line.fitted(in_trees),
            "samples": Line.fitted(in_samples),
        }

    def _window(self) -> float:
        """Cost of a row through a full window, relative to learning a row at that size."""
        n, batch, n_trees = self._size(10_000), self._size(1_000, least=10), self._size(10, least=2)
        source = Source()
        sliding, growing = local(n_trees, window=n), local(n_trees)
        for forest in (sliding, growing):
            forest.partial_fit(*source.take(n), classes=np.arange(N_CLASSES))
            forest.partial_fit(*source.take(batch))
        batches = [source.take(batch) for _ in range(3)]
        pairs = alternate(
            lambda i: lambda: sliding.partial_fit(*batches[i]),
            lambda i: lambda: growing.partial_fit(*batches[i]),
            len(batches),
        )
        return median(pairs.ratios())

    def _measure(self) -> float:
        """Time of a refresh of the weights, with a single tree whose cost is negligible."""
        X, y = Source().take(self._size(40_000))
        forest = local(1, feature_weights="learned", leaf_discount="learned", lifetime=1e-9).fit(
            X, y
        )
        return seconds_of(forest.refresh_weights)

    def _around(self) -> tuple[Line, float, Line]:
        """Overhead of Python, Ray and the messages, measured with trees that never grow."""
        times: dict[int, list[tuple[float, float]]] = {}
        calls: list[tuple[float, float]] = []
        n_rows = self._size(20_000)
        for n_shards in (1, MORE_SHARDS):
            source = Source()
            stump = local(4, lifetime=1e-9).fit(*source.take(n_rows))
            options = {"num_cpus": 0.25}
            with self._ray_forest.scatter(
                stump, n_shards=n_shards, actor_options=options
            ) as forest:
                times[n_shards] = []
                for size in self._bench.sizes:
                    batches = [source.take(size) for _ in range(min(max(n_rows // size, 4), 40))]
                    learn_on(forest, batches[:2])
                    busy = time.process_time()
                    learn_on(forest, batches)
                    busy = time.process_time() - busy  # CPU time of the driver alone
                    times[n_shards].append((size, busy / len(batches)))
                    X = batches[0][0]
                    several = [
                        seconds_of(lambda X=X, forest=forest: forest.predict_proba(X))
                        for _ in range(5)
                    ]
                    if n_shards == 1:
                        calls.append((size, median(several)))
        front, call = Line.fitted(times[1]), Line.fitted(calls)
        both = zip(times[MORE_SHARDS], times[1], strict=True)
        further = [(more - one) / (MORE_SHARDS - 1) for (_, more), (_, one) in both]
        per_shard = max(median(further), 0.0)
        for what, line in (
            ("a batch of a stream, time of the driver", front),
            ("a predict call, beside the trees", call),
        ):
            self._note(
                what,
                f"{duration(line.always)} + {duration(line.each)} per row",
                1e3 * line.at(1_000),
                "ms for 1,000",
            )
        self._note(
            "each further shard, time of the driver per batch",
            duration(per_shard),
            1e3 * per_shard,
            "ms",
        )
        return front, per_shard, call

    def _put_and_fetch(self) -> None:
        rows = Source().take(self._size(10_000))[0]

        def size_of(array: Any) -> int:
            return int(array.size)

        task = self._ray.remote(num_cpus=0.25)(size_of)

        def fetch(array: Any) -> int:
            size: int = self._ray.get(task.remote(array))
            return size

        fetch(rows[:1])
        put = median(seconds_of(lambda: self._ray.put(rows)) for _ in range(5))
        there = self._ray.put(rows)
        got = median(seconds_of(lambda: fetch(there)) for _ in range(5))
        self._note(
            f"put {megabytes(rows.nbytes)}, fetch it elsewhere",
            f"{duration(put)}, {duration(got)}",
            1e3 * (put + got),
            "ms",
        )

    def _snapshot_and_recovery(self) -> tuple[Line, Line]:
        """Snapshot and recovery of a single shard, small and large."""
        snapshots, recoveries = [], []
        for n_rows in (self._size(2_000), self._size(40_000)):
            source = Source()
            forest = local(self._size(20, least=4)).fit(*source.take(n_rows))
            batch = source.take(self._size(100, least=5))
            with (
                TemporaryDirectory() as folder,
                self._ray_forest.scatter(
                    forest, n_shards=1, folder=folder, actor_options=OPTIONS
                ) as on_ray,
            ):
                on_ray.partial_fit(*batch)
                seconds = median(seconds_of(on_ray.take_snapshot) for _ in range(3))
                newest = max(Path(folder).iterdir())
                n_bytes = max(shard.stat().st_size for shard in newest.glob("shard-*"))
                snapshots.append((n_bytes, seconds))
                usual = seconds_of(lambda b=batch, f=on_ray: f.partial_fit(*b))
                self._kill(on_ray._sharded().keeper._crew._actors[0])
                back = seconds_of(lambda b=batch, f=on_ray: f.partial_fit(*b)) - usual
                recoveries.append((n_bytes, back))
            self._note(
                f"snapshot of a shard of {megabytes(n_bytes)}", duration(seconds), seconds, "s"
            )
            self._note(
                f"a shard of {megabytes(n_bytes)} killed: until it has learned the next batch",
                duration(back),
                back,
                "s",
            )
        return Line.fitted(snapshots), Line.fitted(recoveries)

    def _kill(self, actor: Any) -> None:
        """Kill an actor, and wait until it has ended."""
        self._ray.kill(actor)
        while True:
            try:
                self._ray.get(actor.hello.remote(), timeout=10)
            except self._ray.exceptions.RayActorError:
                return
