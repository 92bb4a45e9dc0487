"""The experiments run as their docstrings say; what they find is theirs to judge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(module, *arguments, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "ONLINEFOREST_DATA"}
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{module}", *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_learned_weights_without_a_data_folder():
    done = run("learned_weights", "--data", "iris", "noise", "--seeds", "1", "--trees", "3")
    assert done.returncode in (0, 1), done.stderr
    header, _, *rows = done.stdout.splitlines()
    assert "log loss" in header
    assert [row.split(" | ")[0] for row in rows] == ["| iris", "| noise"]
    assert all(row.count("|") == header.count("|") for row in rows)


@pytest.mark.parametrize("module", ["learned_weights", "paper_table"])
def test_a_missing_data_folder_is_named(module):
    done = run(module, "--data", "dna")
    assert done.returncode == 2
    assert "ONLINEFOREST_DATA" in done.stderr


def test_streams_of_ours(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    np.savez(tmp_path / "bananas.npz", X=X, y=(X[:, 0] > 0.5).astype(int))
    done = run(
        "streams",
        "--data", "bananas",
        "--models", "paper", "learned",
        ONLINEFOREST_DATA=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("| bananas |") == 2
