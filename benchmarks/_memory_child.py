"""Memory of learning one forest, measured in a process of its own: prints one line of JSON.

Its argument is JSON as well, see `benchmarks.memory`. Bytes are counted after the data are
loaded and every library has run once, so that they are those of the forest alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.data import load
from benchmarks.memory import STATUS, forget_the_past, resident_and_peak
from benchmarks.ours import CLASSIFIERS
from benchmarks.tasks import built_mini_batches, fitting, mini_batches

WAYS = {
    "fit": fitting,
    "mini-batches": mini_batches,
    "mini-batches, built at the end": built_mini_batches,
}


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
