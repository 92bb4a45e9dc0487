"""Measure memory: of this process, or of learning in a new one (`benchmarks._memory_child`)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.results import NotMeasuredError

ROOT = Path(__file__).resolve().parents[1]
STATUS = Path("/proc/self/status")


def resident_and_peak() -> tuple[int, int]:
    """Resident bytes now and their peak; without /proc, the peak for both."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        resident, peak = (int(fields[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
        return resident, peak
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    return peak, peak


def forget_the_past() -> None:
    """Return free memory to the system and reset the peak, where supported."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory_of_learning(**task: Any) -> dict[str, Any]:
    """Resident bytes after learning, their peak, and the bytes of the model.

    `task` has data, folder, scale, forest (a name in `benchmarks.ours`), way (a name in
    `benchmarks._memory_child`), n_trees and n_batches.
    """
    check_memory_is_reported()
    return answer_of("benchmarks._memory_child", task)


def check_memory_is_reported() -> None:
    """Raise an error if the system does not report the memory of a process."""
    if not STATUS.exists() and find_spec("resource") is None:
        raise NotMeasuredError("this system does not report the memory of a process")


def answer_of(module: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run a module in a new process; task and result are JSON."""
    command = [sys.executable, "-m", module, json.dumps(task)]
    child = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer
