"""A learner that is killed many times, at random moments, ends with the forest of one that was not.

ONLINEFOREST_KILLS=200 pytest -n 0 -s tests/property/test_kills.py kills more often and prints when.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlineforest._store.checkpoints import Checkpointer
from support.bits import assert_same_forest
from support.checkpointing_child import Report, digest, learn_batch, new_forest
from support.estimators import ALL_KINDS
from support.examples import thorough_but

N_KILLS = int(os.environ.get("ONLINEFOREST_KILLS", "12"))
TESTS = Path(__file__).resolve().parents[1]

# Libraries must start no threads, because a forked child would miss them. scikit-learn imports
# pandas, pandas imports Arrow, and Arrow's allocator starts one.
ONE_THREAD = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def killed_many_times(kind, folder, seed):
    command = [sys.executable, "-m", "support.checkpointing_child"]
    command += [kind, str(folder), str(N_KILLS), str(seed)]
    finished = subprocess.run(
        command,
        cwd=TESTS,
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        timeout=60 + 2 * N_KILLS,
    )
    assert finished.returncode == 0, finished.stderr
    return Report(**json.loads(finished.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("kind", thorough_but("online classifier", of=ALL_KINDS))
def test_a_killed_learner_ends_with_the_forest_of_one_that_was_not(kind, tmp_path):
    report = killed_many_times(kind, tmp_path / "checkpoints", seed=N_KILLS)
    print(
        f"\n{kind}: {report.n_kills} kills, {report.n_in_a_write} of them in a write, "
        f"{report.n_without_progress} before a checkpoint, {report.end} samples, "
        f"{report.seconds:.1f} s"
    )
    assert report.n_without_progress < report.n_kills, "no life made progress: nothing tested"

    forest, position = new_forest(kind), 0
    expected = dict(report.newest)
    while position < report.end:
        position = learn_batch(kind, forest, position)
        if position in expected:
            assert digest(forest) == expected.pop(position), f"another forest at {position}"
    assert not expected, "checkpoints where no batch ends"

    checkpoint = Checkpointer(tmp_path / "checkpoints").open()
    assert checkpoint.position == {"next": position} and position == report.end
    assert_same_forest(checkpoint.forest, forest)
    assert digest(checkpoint.forest) == digest(forest)
    rows = np.random.default_rng(1).normal(size=(200, 5))
    predict = ALL_KINDS[kind].predict
    assert np.array_equal(predict(checkpoint.forest, rows), predict(forest, rows))
    forest._check_trees()
    assert list((tmp_path / "checkpoints").iterdir()) == [checkpoint.path]
