"""The paper's depths and expected accuracies, on its own data if they are installed.

`python -m experiments.paper_table` prints the whole table; the test omits the largest data set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import thorough_but

FOLDER = os.environ.get("ONLINEFOREST_DATA")
ROOT = Path(__file__).resolve().parents[2]


def run_table(*arguments, folder):
    environment = {**os.environ, "ONLINEFOREST_DATA": folder}
    command = [sys.executable, "-m", "experiments.paper_table", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="ONLINEFOREST_DATA names no folder of data sets")
@pytest.mark.parametrize(
    "name", thorough_but("satimages", of=["satimages", "letter", "dna", "dna†"])
)
def test_depth_and_accuracy_agree_with_the_paper(name):
    result = run_table("--data", name, folder=FOLDER)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"| {name}" in result.stdout


@pytest.mark.heavy_under_sanitizers(reason="starts a process that imports the experiments")
def test_the_error_names_a_missing_data_set():
    result = run_table(folder="/nowhere/at/all")
    assert result.returncode == 2
    assert "There is no usps.npz in the folder ONLINEFOREST_DATA names" in result.stderr
