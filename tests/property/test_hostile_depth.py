"""Data that would overflow a stack or take quadratic time: trees as deep as they have points.

The deepest tree is grown in a process of its own on a thread with a stack of 256 kB, which any
recursion along the tree would overflow.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier
from support.examples import thorough_but


def run_on_a_small_stack(body):
    script = "import threading\ndef body():\n" + textwrap.indent(textwrap.dedent(body), "    ")
    script += textwrap.dedent(
        """
        done = []
        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=lambda: done.append(body()))
        thread.start()
        thread.join()
        assert done, "the thread failed"
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.thorough
def test_a_tree_with_a_depth_of_40_000_fits_a_small_stack():
    """100,000 points in 400 directions, distances doubling along each direction.

    float32 has 277 powers of two, so one direction cannot make a deep tree. The points come in
    order of distance: each is cut off near the root, and growing takes linear time.
    """
    run_on_a_small_stack(
        """
        import pickle
        import numpy as np
        from onlineforest import MondrianForestClassifier

        n, d = 100_000, 400
        exponents = np.arange(n) // d - 125
        X = np.zeros((n, d), dtype=np.float32)
        X[np.arange(n), np.arange(n) % d] = np.ldexp(1.0, exponents)
        y = np.arange(n) % 2
        forest = MondrianForestClassifier(n_estimators=1, feature_weights=None, random_state=0)
        for start in range(0, n, 100):
            forest.partial_fit(X[start : start + 100], y[start : start + 100])
        tree = forest.trees_[0]
        assert tree.depth.max() > 0.4 * n, tree.depth.max()
        queries = np.vstack([X[[0, 1, n // 2, n - 1]], np.zeros((1, d), np.float32)])
        before = forest.predict_proba(queries)
        assert np.allclose(before.sum(axis=1), 1)
        forest._forest.check_invariants()
        forest = pickle.loads(pickle.dumps(forest))
        assert np.array_equal(before, forest.predict_proba(queries))
        forest.apply(queries)
        del forest
        """
    )


@pytest.mark.parametrize("one_by_one", [False, True])
def test_exponentially_spaced_points_on_a_line_are_learned(one_by_one):
    n = 3_000 if one_by_one else 100_000
    X = np.geomspace(1e-44, 3e38, n).reshape(-1, 1)
    check_grows(X, np.arange(n) % 2, one_by_one)


@pytest.mark.parametrize("one_by_one", thorough_but(False, of=[False, True]))
def test_sorted_points_are_learned(one_by_one):
    n = 3_000 if one_by_one else 100_000
    check_grows(np.arange(n).reshape(-1, 1), np.arange(n) % 3, one_by_one)


@pytest.mark.parametrize("one_by_one", thorough_but(False, of=[False, True]))
@pytest.mark.parametrize("n_classes", [3, 3000])
def test_identical_points_with_different_labels_share_a_leaf(n_classes, one_by_one):
    n = 3_000 if one_by_one else 100_000
    forest = check_grows(np.ones((n, 2)), np.arange(n) % n_classes, one_by_one)
    assert np.allclose(forest.predict_proba([[1.0, 1.0]]), 1 / n_classes, atol=1e-3)
    assert forest.trees_[0].n_nodes == 1


def test_identical_points_and_one_other_are_learned():
    X = np.ones((50_000, 2))
    X[-1] = 2
    check_grows(X, np.arange(len(X)) % 2, False)


def test_a_late_class_cuts_a_large_paused_leaf():
    """50,000 points of one class are one paused leaf; a point of another class cuts it."""
    rng = np.random.default_rng(0)
    X = rng.random((50_001, 2))
    y = np.zeros(len(X), dtype=int)
    y[-1] = 1
    forest = MondrianForestClassifier(n_estimators=2, random_state=0).partial_fit(X[:-1], y[:-1])
    assert forest.trees_[0].n_nodes == 1
    forest.partial_fit(X[-1:], y[-1:])
    assert forest.trees_[0].n_nodes > 1
    forest._forest.check_invariants()


def check_grows(X, y, one_by_one):
    forest = MondrianForestClassifier(n_estimators=2, random_state=0)
    if one_by_one:
        for i in range(len(y)):
            forest.partial_fit(X[i : i + 1], y[i : i + 1])
    else:
        forest.fit(X, y)
    forest._forest.check_invariants()
    before = forest.predict_proba(X[::1000])
    assert np.allclose(before.sum(axis=1), 1)
    forest = pickle.loads(pickle.dumps(forest))
    assert np.array_equal(before, forest.predict_proba(X[::1000]))
    return forest
