"""Runs tasks in processes, shows progress with an estimate of the time left, stores outcomes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import describe_machine
from experiments.paper.records import Record, Store
from experiments.paper.tasks import Task, run


class Progress:
    """A bar on a terminal; elsewhere a line every 30 seconds."""

    def __init__(self, todo: Sequence[Task], n_tasks: int) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self.total, self.done = sum(task.cost() for task in todo), 0.0
        self.n_tasks, self.n_done = n_tasks, n_tasks - len(todo)
        self.start = self.last_line = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console

            columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
            self.bar = Progress(*columns, console=Console(stderr=True))
            self.bar_task = self.bar.add_task("starting …", total=self.total)
            self.bar.start()

    def advance(self, task: Task) -> None:
        """Show that a task is done."""
        self.done += task.cost()
        self.n_done += 1
        now = time.monotonic()
        left = (now - self.start) / self.done * (self.total - self.done)
        text = (
            f"{self.n_done} of {self.n_tasks}, about {clock(left)} left: "
            f"{task.method} on {task.data}, seed {task.seed}"
        )
        if self.bar is not None:
            self.bar.update(self.bar_task, completed=self.done, description=text)
        elif now - self.last_line > 30:
            self.last_line = now
            print(text, file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@dataclass(frozen=True)
class Outcome:
    """The records of a task, with its machine and its duration in seconds of wall time."""

    records: list[Record]
    about: dict[str, Any]


class TaskError(Exception):
    """Some tasks failed; the others are done and stored."""


def run_one(task: Task) -> Outcome:
    """Run a task and describe the machine."""
    start = time.monotonic()
    records = run(task)
    # The load is left out: the experiment itself causes it.
    machine = {name: value for name, value in describe_machine().items() if name != "load"}
    return Outcome(records, {"machine": machine, "wall_seconds": time.monotonic() - start})


def run_all(tasks: Sequence[Task], store: Store, n_jobs: int) -> list[Outcome]:
    """Outcomes of all tasks; computes and stores those that are not in the store."""
    keys = {task: task.key() for task in tasks}
    stored = {task: store.load(key) for task, key in keys.items()}
    found = {task: Outcome(*content) for task, content in stored.items() if content is not None}
    todo = [task for task in tasks if task not in found]
    if todo:
        compute(todo, keys, found, store, n_jobs, Progress(todo, len(tasks)))
    return [found[task] for task in tasks]


def compute(
    todo: list[Task],
    keys: dict[Task, dict],
    found: dict[Task, Outcome],
    store: Store,
    n_jobs: int,
    progress: Progress,
) -> None:
    """Run tasks and store their outcomes; a failing task does not stop the others."""
    # The longest tasks first, so that all processes finish at about the same time.
    todo = sorted(todo, key=Task.cost, reverse=True)
    failures: list[tuple[Task, Exception]] = []
    try:
        with processes(n_jobs) as executor:
            running = {executor.submit(run_one, task): task for task in todo}
            for done in as_completed(running):
                task = running[done]
                try:
                    found[task] = done.result()
                except BrokenExecutor:
                    raise  # a process was killed: the pool cannot run further tasks
                except Exception as error:
                    failures.append((task, error))
                else:
                    store.save(keys[task], found[task].records, found[task].about)
                progress.advance(task)
    finally:
        progress.stop()
    if failures:
        task, error = failures[0]
        raise TaskError(
            f"{len(failures)} of {len(todo)} tasks failed, the others are done and kept. The first "
            f"was {task.method} on {task.data}, seed {task.seed}: {error!r}"
        ) from error


@contextmanager
def processes(n_jobs: int):
    """Processes of one thread each; an exception terminates them at once."""
    # Spawned, not forked: forking would copy the state of compiled competitors and of threads.
    context = multiprocessing.get_context("spawn")
    one_thread = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    before = {name: os.environ.get(name) for name in one_thread}
    os.environ.update(one_thread)
    try:
        executor = ProcessPoolExecutor(n_jobs, context, initializer=ignore_interrupts)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        executor.shutdown()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
