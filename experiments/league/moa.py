"""MOA's models, which run in a process and an environment of their own.

The environment holds CapyMOA's package for its `moa.jar`, without the packages that CapyMOA's
Python needs: NumPy and JPype are enough to call MOA. It must not know scores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.league.models import Pass, codes_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("capymoa>=0.10", "jpype1>=1.5", "numpy>=2", "packaging")
PROBE = "import jpype, numpy; from importlib.metadata import version; version('capymoa')"


class AbsentError(Exception):
    """MOA cannot run here; the message says why."""


def python_of(folder: str | Path) -> Path:
    """The interpreter of an environment."""
    inside = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return Path(folder).resolve().joinpath(*inside)


def prepare(folder: str | None) -> None:
    """Make the environment, unless it is there; raise `AbsentError` if MOA cannot run."""
    if folder is None:
        raise AbsentError("not asked for: --capymoa FOLDER makes an environment for it")
    if shutil.which("java") is None:
        raise AbsentError("needs Java, and there is no `java` on the path")
    python = python_of(folder)
    if python.exists() and problem_of([str(python), "-E", "-c", PROBE]) is None:
        return
    packages = [str(python), "-E", "-m", "pip", "install", "--no-deps", *PACKAGES]
    for command in ([sys.executable, "-m", "venv", str(Path(folder).resolve())], packages):
        problem = problem_of(command)
        if problem is not None:
            raise AbsentError(f"CapyMOA could not be installed: {problem}")


def problem_of(command: list[str]) -> str | None:
    """Run a command; return None, or the last line of what it printed if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1] if done.returncode else None


class Moa:
    """One of MOA's classifiers: its class, number of trees and seed, and the environment."""

    def __init__(self, name: str, n_trees: int, seed: int, folder: str | None) -> None:
        if folder is None:
            raise AbsentError("MOA needs the folder of its environment")
        self.task = {"name": name, "n_trees": n_trees, "seed": seed}
        self.python = python_of(folder)

    def go(self, X: Any, y: NDArray[Any]) -> Pass:
        """Take the samples one by one, in another process."""
        table, n_levels = codes_of(X)
        classes, codes = np.unique(y, return_inverse=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "stream.npz")
            np.savez(file, X=table, y=codes)
            task = {**self.task, "file": str(file), "n_levels": n_levels, "n_classes": len(classes)}
            said = self.said(task)
        said["answers"] = np.array(said["answers"], dtype=np.float64)
        return Pass(**said)

    def said(self, task: dict[str, Any]) -> dict[str, Any]:
        """The answer of the process to a task; it ends when its input is closed."""
        command = [str(self.python), "-E", "-m", "experiments.league._moa_child", json.dumps(task)]
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": STDOUT}
        with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
            *_, last = ["", *process.stdout.read().splitlines()]
            if process.wait():
                raise RuntimeError(last or f"exit code {process.returncode}")
        answer: dict[str, Any] = json.loads(last)
        return answer
