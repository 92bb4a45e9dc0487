"""Carries out trials, one after the other, and keeps each result in a file of its own.

It must not know what scores mean.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.league.lengths import GROWTH, Cost, chosen_lengths
from experiments.league.models import Task
from experiments.league.trial import SECONDS

ROOT = Path(__file__).resolve().parents[2]
PREFIX = 300  # samples whose time is measured, for a budget
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Result = dict[str, Any]
"""What `experiments.league.trial` prints, or a task with an error."""


class OutOfTimeError(Exception):
    """The budget is used up."""


def in_a_process(task: Task, seconds: float | None) -> Result:
    """Carry out a trial; its result, with the seconds that passed."""
    command = [sys.executable, "-m", "experiments.league.trial", json.dumps(asdict(task))]
    start = time.perf_counter()
    if seconds is not None and seconds <= 0:
        raise OutOfTimeError
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OutOfTimeError from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        result: Result = {"task": asdict(task), "error": last}
    else:
        result = json.loads(done.stdout.splitlines()[-1])
    return {**result, "elapsed": time.perf_counter() - start}


class Archive:
    """The results in a folder, one file for each trial. Trials that failed are tried again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, task: Task) -> Path:
        names = (task.stream, task.model, str(task.seed))
        return self.folder / ("--".join(re.sub(r"\W+", "-", name) for name in names) + ".json")

    def get(self, task: Task) -> Result | None:
        """The result of just this task, if there is one."""
        try:
            result: Result = json.loads(self.path(task).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        known = Task(**result["task"]) == task and "error" not in result
        return result if known else None

    def put(self, task: Task, result: Result) -> None:
        """Keep a result; an interrupt leaves the file whole, or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(task)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        new.replace(path)


@dataclass
class Clock:
    """A budget of seconds, None: no limit, and how much of it the results so far have taken."""

    budget: float | None
    spent: float = 0.0

    def left(self) -> float | None:
        return None if self.budget is None else self.budget - self.spent


def carry_out(tasks: Sequence[Task], archive: Archive, clock: Clock, what: str) -> Iterator[Result]:
    """Yield the results of tasks, until the budget is used up; those in the archive are done."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"), *columns, console=console, speed_estimate_period=3600
    ) as progress:
        bar = progress.add_task(what, total=len(tasks))
        for task in tasks:
            progress.update(bar, description=f"{what}: {task.stream}, {task.model}")
            result = archive.get(task)
            if result is None:
                try:
                    result = in_a_process(task, clock.left())
                except OutOfTimeError:
                    break
                archive.put(task, result)
            clock.spent += result.get("elapsed", 0.0)
            if "error" in result:
                progress.print(f"{task.stream}, {task.model}: {result['error']}")
            yield result
            progress.advance(bar)


def cost_of(result: Result) -> Cost:
    """Seconds that a trial as long as a prefix took, divided into its start and its samples."""
    if "error" in result:
        return Cost(0.0, 0.0)
    seconds = result["scores"][SECONDS]
    return Cost(result["elapsed"] - seconds, GROWTH * seconds / result["n_samples"])


def plan(tasks: Sequence[Task], folder: Path, clock: Clock) -> dict[str, int]:
    """The lengths of the streams of tasks, chosen by trials on prefixes, within a budget."""
    longest = {task.stream: task.n_samples for task in tasks}
    if clock.budget is None:
        return longest
    pairs = dict.fromkeys((task.model, task.stream) for task in tasks)
    first = {(task.model, task.stream): task for task in reversed(tasks)}
    prefixes = [
        replace(first[pair], n_samples=min(PREFIX, first[pair].n_samples)) for pair in pairs
    ]
    costs = {name: Cost(0.0, 0.0) for name in longest}
    for result in carry_out(prefixes, Archive(folder), clock, "prefixes"):
        name, model = result["task"]["stream"], result["task"]["model"]
        n_trials = sum((task.stream, task.model) == (name, model) for task in tasks)
        one = cost_of(result)
        costs[name] += Cost(n_trials * one.start, n_trials * one.each)
    return chosen_lengths(longest, costs, clock.left() or 0.0)
