"""Measure the memory of learning in a new process; see `benchmarks._memory_child`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.results import NotMeasuredError

ROOT = Path(__file__).resolve().parents[1]


def memory_of_learning(**task: Any) -> dict[str, Any]:
    """Resident bytes after learning, their peak, and the bytes of the model.

    `task` has data, folder, scale, forest (a name in `benchmarks.ours`), way (a name in
    `benchmarks._memory_child`), n_trees and n_batches.
    """
    check_memory_is_reported()
    return answer_of("benchmarks._memory_child", task)


def check_memory_is_reported() -> None:
    """Raise an error if the system does not report the memory of a process."""
    if not Path("/proc/self/status").exists() and find_spec("resource") is None:
        raise NotMeasuredError("this system does not report the memory of a process")


def answer_of(module: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run a module in a new process; task and result are JSON."""
    command = [sys.executable, "-m", module, json.dumps(task)]
    child = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer
