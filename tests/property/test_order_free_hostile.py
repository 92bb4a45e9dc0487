"""Data that would take an order-free forest quadratic time, deep recursion or much memory.

No test looks at a clock: a blow-up would make it take minutes. Bounds on the work of one changed
sample, in a tree of depth h that holds n distinct samples of D features and T labels:

- on the way down: h comparisons, and h updates of counts, which cost T each at worst;
- a block that decides again: 16 proposals of at most 64 samples, each of which looks at D features
  if 32 drawn ones are constant;
- a cut that changes: the blocks below it are cut again when a prediction asks for them, at worst
  all n samples at each of h levels.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from onlineforest._core import OrderFreeLabelForest
from support.bits import assert_same

pytestmark = pytest.mark.slow

N_TREES = 2


def empty_forest(n_features, n_labels, n_trees=N_TREES):
    forest = OrderFreeLabelForest(n_trees, n_features, seed=3)
    forest.set_labels(hashes_of(n_labels), np.zeros(n_labels, dtype=np.uint8))
    return forest


def hashes_of(n_labels):
    return np.random.default_rng(0).integers(0, 2**64, n_labels, dtype=np.uint64)


def as_samples(X, y):
    return np.ascontiguousarray(X, dtype=np.float32), np.ascontiguousarray(y, dtype=np.int32)


def learn_one_by_one(forest, X, y):
    """Predict before learning, as in a stream."""
    for i in range(len(X)):
        forest.predict(X[i : i + 1])
        forest.learn(X[i : i + 1], y[i : i + 1])


def check_equals_fresh(forest, X, y):
    """Check that the forest has the trees of one that learned the samples at once, backwards."""
    fresh = empty_forest(forest.n_features, forest.n_labels, forest.n_trees)
    fresh.learn(*as_samples(X[::-1], y[::-1]))
    for i in range(forest.n_trees):
        assert_same(forest.tree(i), fresh.tree(i))


def depth_of(tree):
    """Number of cuts above the deepest leaf."""
    depth = np.zeros(len(tree["parent"]), dtype=int)
    for i, parent in enumerate(tree["parent"].tolist()):
        depth[i] = depth[parent] + 1 if parent >= 0 else 0
    return depth.max()


def on_a_line(values, n_labels):
    return as_samples(np.reshape(values, (-1, 1)), np.arange(len(values)) % n_labels)


LINES = {
    "sorted": lambda n: np.arange(n),
    "sorted downwards": lambda n: -np.arange(n),
    "from the ends to the middle": lambda n: np.arange(n) * (-1) ** np.arange(n),
    "exponentially spaced": lambda n: np.geomspace(1e-44, 3e38, n),
    "exponentially spaced, both signs": lambda n: np.concatenate(
        [-np.geomspace(1e-44, 3e38, n // 2)[::-1], np.geomspace(1e-44, 3e38, n - n // 2)]
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_sorted_stream(line):
    X, y = on_a_line(LINES[line](2000), 3)
    forest = empty_forest(1, 3)
    learn_one_by_one(forest, X, y)
    check_equals_fresh(forest, X, y)
    for serial in range(1500):  # from the same end
        forest.forget(np.array([serial]))
        forest.predict(X[serial : serial + 1])
    check_equals_fresh(forest, X[1500:], y[1500:])


@pytest.mark.parametrize("line", LINES)
def test_a_long_sorted_batch(line):
    X, y = on_a_line(LINES[line](100_000), 2)
    forest = empty_forest(1, 2, n_trees=1)
    forest.learn(X, y)
    tree = forest.tree(0)
    assert depth_of(tree) < 200
    assert tree["weight"][0] == len(X)


@pytest.mark.parametrize("n_labels", [1, 3])
def test_identical_samples(n_labels):
    X, y = as_samples(np.ones((100_000, 2)), np.arange(100_000) % n_labels)
    forest = empty_forest(2, n_labels)
    forest.learn(X[:-3000], y[:-3000])
    learn_one_by_one(forest, X[-3000:], y[-3000:])
    assert forest.tree(0)["weight"].tolist() == [len(X)]
    check_equals_fresh(forest, X, y)
    for serial in range(1000):
        forest.forget(np.array([serial]))
    check_equals_fresh(forest, X[1000:], y[1000:])


@pytest.mark.slow
def test_identical_rows_with_different_labels():
    """A leaf of 100,000 distinct samples, then one row that differs and cuts it."""
    n = 100_000
    X, y = as_samples(np.ones((n, 2)), np.arange(n))
    forest = empty_forest(2, n, n_trees=1)
    forest.learn(X[:-20], y[:-20])
    learn_one_by_one(forest, X[-20:], y[-20:])
    assert forest.tree(0)["weight"].tolist() == [n]
    other = np.full((1, 2), 2, dtype=np.float32)
    forest.learn(other, y[:1])
    assert sorted(forest.tree(0)["weight"].tolist()) == [1, n, n + 1]
    forest.forget(np.array([n]))
    for serial in range(20):
        forest.forget(np.array([serial]))
    check_equals_fresh(forest, X[20:], y[20:])


def test_identical_rows_and_few_others():
    """The deciding samples of the root are equal but one, which must be found among all."""
    n = 3000
    X, y = as_samples(np.ones((n, 2)), np.arange(n) % 1500)
    X[:5] = np.arange(10).reshape(5, 2)
    forest = empty_forest(2, 1500)
    learn_one_by_one(forest, X, y)
    check_equals_fresh(forest, X, y)
    for serial in range(n - 1, 4, -40):
        forest.forget(np.array([serial]))
        forest.predict(X[:1])
    forest.forget(np.arange(5))
    rest = forest.serials
    check_equals_fresh(forest, X[rest], y[rest])


def test_two_samples_that_flip_the_root_at_every_step():
    """Who knows the seed finds samples that change the root when they come and when they go.

    Each step costs as much as growing the tree, whose blocks are cut when they are asked for.
    """
    rng = np.random.default_rng(1)
    X, y = as_samples(rng.normal(size=(1000, 3)), rng.integers(0, 3, 1000))
    forest = empty_forest(3, 3, n_trees=1)
    forest.learn(X, y)

    def root():
        tree = forest.tree(0)
        return tree["feature"][0], tree["threshold"][0]

    def finds_flip(count):
        """Samples that each change the root."""
        before, found = root(), []
        while len(found) < count:
            x, label = as_samples(rng.normal(size=(1, 3)), rng.integers(0, 3, 1))
            forest.learn(x, label)
            if root() != before:
                found.append((x, label))
            assert len(forest.forget_rows(x, label)) == 0
        assert root() == before
        return found

    flips = finds_flip(2)
    without = root()
    for step in range(300):
        x, label = flips[step % 2]
        forest.learn(x, label)
        forest.predict(X[:3])
        if step % 50 == 0:
            assert root() != without
            check_equals_fresh(forest, np.vstack([X, x]), np.append(y, label))
        assert len(forest.forget_rows(x, label)) == 0
        forest.predict(X[:3])
    assert root() == without
    check_equals_fresh(forest, X, y)


def test_ten_thousand_labels():
    rng = np.random.default_rng(2)
    X, y = as_samples(rng.normal(size=(20_000, 5)), rng.integers(0, 10_000, 20_000))
    forest = empty_forest(5, 10_000)
    forest.learn(X[:-1000], y[:-1000])
    learn_one_by_one(forest, X[-1000:], y[-1000:])
    for serial in range(500):
        forest.forget(np.array([serial]))
    check_equals_fresh(forest, X[500:], y[500:])
    labels, probabilities = forest.predict(X[:20])
    assert np.array_equal(labels, hashes_of(10_000)[np.unique(y[500:])])
    assert probabilities.shape == (20, len(labels)) and (probabilities > 0).all()
    assert np.allclose(probabilities.sum(axis=1), 1)


WIDE = {
    "all vary": lambda rng, n, d: rng.normal(size=(n, d)),
    "one varies": lambda rng, n, d: np.arange(n)[:, None] * (np.arange(d) == 77),
    "one hot": lambda rng, n, d: np.eye(n, d),
}


@pytest.mark.parametrize("world", WIDE)
def test_ten_thousand_features(world):
    """If nearly all features are constant, so are the drawn ones, and all words are compared."""
    rng = np.random.default_rng(3)
    X, y = as_samples(WIDE[world](rng, 70, 10_000), rng.integers(0, 2, 70))
    forest = empty_forest(10_000, 2, n_trees=1)
    forest.learn(X[:66], y[:66])
    learn_one_by_one(forest, X[66:], y[66:])
    for serial in range(4):
        forest.forget(np.array([serial]))
        forest.predict(X[:1])
    check_equals_fresh(forest, X[4:], y[4:])


def test_a_tree_as_deep_as_it_has_samples_fits_a_small_stack():
    """Each split of one-hot rows splits off one. Recursion would overflow a stack of 256 kB."""
    script = textwrap.dedent(
        """
        import threading
        import numpy as np
        from onlineforest._core import OrderFreeLabelForest

        def body():
            n = 1000
            X, y = np.eye(n, dtype=np.float32), np.arange(n, dtype=np.int32) % 2
            forest = OrderFreeLabelForest(1, n, seed=3)
            forest.set_labels(np.arange(2, dtype=np.uint64), np.zeros(2, dtype=np.uint8))
            forest.learn(X[:-9], y[:-9])
            forest.predict(X[:5])
            forest.learn(X[-9:], y[-9:])
            tree = forest.tree(0)
            depth = np.zeros(len(tree["parent"]), dtype=int)
            for i in range(1, len(depth)):
                depth[i] = depth[tree["parent"][i]] + 1
            assert depth.max() > 0.9 * n, depth.max()
            forest.forget(np.arange(9))
            forest.predict(X)
            forest = OrderFreeLabelForest.from_state(forest.get_state())
            forest.apply(X[:5])
            done.append(True)

        done = []
        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        assert done, "the thread failed"
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr
