"""Compare the speed of two versions of the package, each in a process of its own.

    python -m benchmarks.versions OLD NEW [--only NAME] [--repeats N]
    python -m benchmarks.versions OLD NEW --only large

OLD and NEW are folders that hold the package `onlineforest`, such as the `site-packages` of two
environments. The two processes take turns, task by task and on the same core, so that a slower
machine affects both. A line shows the median of the ratios NEW / OLD and its quartiles. Time and
memory of a large noisy table use all cores and take minutes: they are measured only if NAME begins
with `large`, with three pairs each at most.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

from benchmarks.timing import Pairs

ROOT = Path(__file__).resolve().parents[1]
LARGE = "large"  # begins the names of tasks that take long
LARGE_PAIRS = 3


class Side:
    """A process that holds one version, and measures the tasks it is asked for."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "onlineforest").is_dir():
            raise SystemExit(f"{folder} holds no folder onlineforest")
        paths = [str(folder.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._versions_child", str(folder.resolve())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tasks = self._answer().split("\t")

    def seconds(self, task: str) -> float:
        """Time of one run of a task, or its bytes if it measures memory."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{task}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a process ended with exit code {self._process.wait()}")
        return line.rstrip("\n")


def ratios(old: Side, new: Side, task: str, repeats: int) -> list[float]:
    """NEW / OLD for each pair of runs, after one pair to warm up. Each side is first in turn."""
    pairs = Pairs()
    sides = [(new, pairs.ours), (old, pairs.peer)]
    for _ in range(repeats + 1):
        for side, seconds in sides:
            seconds.append(side.seconds(task))
        sides.reverse()
    return pairs.ratios()[1:]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare two versions. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versions", description="Compare two versions."
    )
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("--only", default="", metavar="NAME", help="tasks whose name contains NAME")
    parser.add_argument(
        "--repeats", type=int, default=41, metavar="N", help="pairs of runs per task"
    )
    arguments = parser.parse_args(argv)
    if arguments.repeats < 2:
        parser.error(f"--repeats must be at least 2, got {arguments.repeats}")
    old, new = Side(arguments.old), Side(arguments.new)
    medians = []
    large = arguments.only.startswith(LARGE)
    repeats = min(arguments.repeats, LARGE_PAIRS) if large else arguments.repeats
    shared = [name for name in old.tasks if name in new.tasks and arguments.only in name]
    for task in (name for name in shared if name.startswith(LARGE) == large):
        low, median, high = quantiles(ratios(old, new, task, repeats), method="inclusive")
        medians.append(median)
        print(f"{task:32s} {median:.3f}  [{low:.3f}, {high:.3f}]", flush=True)
    old.close()
    new.close()
    if not medians:
        parser.error(f"no task has a name with {arguments.only}")
    print(f"{'geometric mean':32s} {math.exp(sum(map(math.log, medians)) / len(medians)):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
