"""Measure forgetting: its cost relative to learning, and the memory of a long stream.

Both sides are our forest, of the same size: one forgets, the other learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.formats import duration, megabytes
from benchmarks.memory import answer_of
from benchmarks.ours import GrownCore, grown_mondrian, mondrian
from benchmarks.results import NotMeasuredError, Row
from benchmarks.settings import Case, Measure, Settings
from benchmarks.timing import Job, Pairs, alternate

SHARE = 20  # one row in 20 is forgotten
SOAK_TREES, SOAK_WINDOW, SOAK_SAMPLES = 10, 10_000, 1_000_000


def forget_by_learn(
    one_by_one: bool, grow: Callable[..., GrownCore] = grown_mondrian, predicts: bool = False
) -> Measure:
    """Forgetting rows, relative to learning as many with a forest of the same size.

    If `predicts`, both sides predict the rows of a call before it.
    """

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        n = len(data.y) // SHARE
        calls = [slice(i, i + 1) for i in range(n)] if one_by_one else [slice(0, n)]

        def grown(seed: int, n_rows: int) -> GrownCore:
            rows, labels = data.X[:n_rows], data.labels[:n_rows]
            return grow(settings.n_trees, seed, rows, labels, len(data.classes))

        def in_calls(forest: GrownCore, rows: Any, change: Callable[[slice], object]) -> Job:
            def job() -> None:
                for call in calls:
                    if predicts:
                        forest.predict(rows[call])
                    change(call)

            return job

        def forgetting(seed: int) -> Job:
            forest = grown(seed, len(data.y))
            chosen = np.random.default_rng(seed).permutation(len(data.y))[: n + 1].astype(np.int64)
            forest.forget(chosen[n:])  # the first call builds links that are kept
            return in_calls(forest, data.X[chosen], lambda call: forest.forget(chosen[call]))

        def learning(seed: int) -> Job:
            forest = grown(seed, len(data.y) - n)
            rows, labels = data.X[-n:], data.labels[-n:]
            return in_calls(forest, rows, lambda call: forest.learn(rows[call], labels[call]))

        pairs = alternate(forgetting, learning, case.runs(settings)).per(n, n)
        return [row_by_learning(case, settings, pairs, "forget")]

    return measure


def row_by_learning(case: Case, settings: Settings, pairs: Pairs, what: str, **columns: Any) -> Row:
    """A row of seconds per sample, relative to learning."""
    ours, learn = pairs.medians()
    return case.row(
        settings,
        ours=f"{what} {duration(ours)} per sample",
        peer=f"learn {duration(learn)}",
        values=pairs.ratios(),
        seconds=pairs.seconds(),
        **columns,
    )


def window_by_learn(rows_per_batch: int) -> Measure:
    """A full window that slides by its own size, relative to learning rows at that size."""

    def measure(case: Case, settings: Settings) -> list[Row]:
        data = settings.load(case.data)
        size = len(data.y) // 2
        batch = max(1, min(rows_per_batch, size // 8))
        rows = np.resize(np.arange(size, len(data.y)), size)

        def stream(forest: Any, rows: Any) -> Job:
            edges = range(0, len(rows) - batch + 1, batch)
            batches = [(data.X[r], data.y[r]) for r in (rows[i : i + batch] for i in edges)]

            def job() -> None:
                for X, y in batches:
                    forest.partial_fit(X, y)

            return job

        def started(forest: Any) -> Any:
            return forest.partial_fit(data.X[:size], data.y[:size], classes=data.classes)

        def sliding(seed: int) -> Job:
            forest = started(mondrian(settings.n_trees, seed).set_params(window=size))
            stream(forest, rows[:batch])()
            return stream(forest, rows)

        def learning(seed: int) -> Job:
            # Around the size of the window, where no refresh of the weights is due.
            few = rows[: size // 4]
            forest = mondrian(settings.n_trees, seed)
            start = size - len(few) // 2
            forest.partial_fit(data.X[:start], data.y[:start], classes=data.classes)
            return stream(forest, few)

        n_slid, n_learned = (len(part) // batch * batch for part in (rows, rows[: size // 4]))
        pairs = alternate(sliding, learning, case.runs(settings)).per(n_slid, n_learned)
        data_shown = f"{case.data}, window {size:,}"
        return [row_by_learning(case, settings, pairs, "slide", data=data_shown)]

    return measure


def soak(case: Case, settings: Settings) -> Iterable[Row]:
    """A long stream through a window, in a process of its own, and the drift of its memory.

    The drift is that of a straight line through the resident bytes of the last 80 %. The line
    averages out the memory that each refresh of the weights takes for a while.
    """
    if not Path("/proc/self/status").exists():
        raise NotMeasuredError("this system does not report the memory of a process")
    task = {
        "n_trees": settings.size(SOAK_TREES),
        "window": settings.size(SOAK_WINDOW, quick=1_000, least=50),
        "n_samples": settings.size(SOAK_SAMPLES, quick=20_000, least=1_000),
    }
    found = answer_of("benchmarks._soak_child", task)
    late = np.array(found["resident"][len(found["resident"]) // 5 :])  # the last 80 %
    slope = np.polyfit(np.linspace(0, 1, len(late)), late, 1)[0]
    yield case.row(
        settings,
        data=f"{case.data}, {task['n_samples']:,} rows, window {task['window']:,}",
        ours=f"{megabytes(late.mean())}, drift {megabytes(slope)} over the last 80 %",
        peer=f"{megabytes(late.min())} to {megabytes(late.max())}; "
        f"{duration(found['seconds'] / task['n_samples'])} per sample",
        values=[100 * abs(slope) / late.mean()],
        unit="%",
        details=found,
    )
