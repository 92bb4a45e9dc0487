"""A long stream through a window, in a process of its own: prints one line of JSON.

Its argument is JSON as well, see `benchmarks.forgetting`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.memory import resident_and_peak
from onlineforest import MondrianForestClassifier

N_FEATURES, N_CLASSES, BATCH, N_LOOKS = 16, 5, 100, 100


def batch_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose classes are sectors around a slowly moving centre."""
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(BATCH, N_FEATURES)).astype(np.float32)
    rows[:, 0] += np.sin(number / 500)
    angle = np.arctan2(rows[:, 1] - np.cos(number / 700), rows[:, 0]) / (2 * np.pi) + 0.5
    return rows, np.minimum((angle * N_CLASSES).astype(np.int64), N_CLASSES - 1)


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Resident bytes at equal steps, and the total seconds."""
    forest = MondrianForestClassifier(task["n_trees"], window=task["window"], random_state=0)
    n_batches = task["n_samples"] // BATCH
    looks = set(np.linspace(0, n_batches - 1, min(N_LOOKS, n_batches)).astype(int).tolist())
    resident, seconds = [], 0.0
    for number in range(n_batches):
        rows, labels = batch_of(number)
        start = time.perf_counter()
        forest.partial_fit(rows, labels, classes=np.arange(N_CLASSES) if number == 0 else None)
        seconds += time.perf_counter() - start
        if number in looks:
            resident.append(resident_and_peak()[0])
    forest._forest.check_invariants()
    return {"resident": resident, "seconds": seconds, "model": forest.nbytes_}


if __name__ == "__main__":
    try:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    except KeyboardInterrupt:
        sys.exit(130)
