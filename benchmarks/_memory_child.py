"""Memory of learning one forest, measured in a process of its own: prints one line of JSON.

Its argument is JSON as well, see `benchmarks.memory`. Bytes are counted after the data are
loaded and every library has run once, so that they are those of the forest alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.data import load
from benchmarks.ours import CLASSIFIERS
from benchmarks.tasks import built_mini_batches, fitting, mini_batches

STATUS = Path("/proc/self/status")
WAYS = {
    "fit": fitting,
    "mini-batches": mini_batches,
    "mini-batches, built at the end": built_mini_batches,
}


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


def measure(task: dict[str, Any]) -> dict[str, float | None]:
    """Bytes of the forest after learning, and the peak while learning."""
    folder = Path(task["folder"]) if task["folder"] else None
    data = load(task["data"], folder, task["scale"])
    learning, new = WAYS[task["way"]], CLASSIFIERS[task["forest"]]
    learning(new(2, 0), data.head(50), 5)()
    forget_the_past()
    before, _ = resident_and_peak()
    forest = new(task["n_trees"], 0)
    learning(forest, data, task["n_batches"])()
    after, peak = resident_and_peak()
    return {
        "resident": after - before,
        "peak": max(peak, after) - before if STATUS.exists() else None,
        "model": getattr(forest, "nbytes_", None),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    except KeyboardInterrupt:
        sys.exit(130)
