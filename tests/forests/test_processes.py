"""Forests in processes that are copies of others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.examples import thorough_but

CHILD = """
import os
import warnings
import numpy as np
import onlineforest

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
forest = getattr(onlineforest, {name!r})(10, n_jobs=4, random_state=0)
forest.fit(X, X[:, 0] > 0)
expected = forest.predict_proba(X)
child = os.fork()
if child == 0:
    answers = forest.predict_proba(X)
    forest.partial_fit(X[:50], X[:50, 1] > 0)
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if forest.predict_proba(X).shape == (400, 2) else 1)
    status = os.waitpid(grandchild, 0)[1]
    os._exit(0 if status == 0 and np.array_equal(answers, expected) else 1)
assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(forest.predict_proba(X), expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system copies no processes")
@pytest.mark.parametrize(
    "name",
    thorough_but(
        "OnlineForestClassifier", of=["OnlineForestClassifier", "MondrianForestClassifier"]
    ),
)
def test_a_copy_of_a_process_has_threads_of_its_own(name):
    """The threads that wait between calls do not exist in a copy, which must not wait for them."""
    subprocess.run([sys.executable, "-c", CHILD.format(name=name)], check=True, timeout=120)
