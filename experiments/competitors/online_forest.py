"""Code that the compiled online forests share: nodes, counters and averaged predictions.

It knows neither when a leaf is split nor by which test: that is what the competitors differ in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from experiments.competitors.estimator import OnlineClassifier, check_at_least

LEAF = -1  # the split dimension of a leaf
NONE = -1  # in place of a row number: no row

# n log2 n of small counts. A gain takes hundreds of these, and a table is several times faster
# than a logarithm.
COUNT_LOGS = np.array([0.0] + [n * math.log2(n) for n in range(1, 2048)])


class Nodes(NamedTuple):
    """The nodes of one tree, a row each; node 0 is the root.

    `left_child` is followed by its sibling, so the right child needs no array. `counts` holds the
    class counts a prediction is made of, `pool` the leaf's place in its competitor's pools.
    """

    split_dimension: np.ndarray
    split_location: np.ndarray
    left_child: np.ndarray
    depth: np.ndarray
    pool: np.ndarray
    counts: np.ndarray  # (n_nodes, n_classes)
    used: np.ndarray  # (1,), the number of nodes


class Rows(NamedTuple):
    """Rows of numbers, allocated as blocks of neighbours and released.

    Blocks that came back wait in one list per size: `first_free[size]` is the newest, and
    `next_free` of a block's first row names the one before.
    """

    values: np.ndarray  # (n_rows, width)
    next_free: np.ndarray
    first_free: np.ndarray
    used: np.ndarray  # (1,), the number of rows ever allocated


def make_nodes(n_classes):
    """A lone root."""
    return Nodes(
        split_dimension=np.full(16, LEAF, np.int32),
        split_location=np.zeros(16),
        left_child=np.zeros(16, np.int32),
        depth=np.zeros(16, np.int32),
        pool=np.zeros(16, np.int64),
        counts=np.zeros((16, n_classes), np.int32),
        used=np.ones(1, np.int64),
    )


def make_rows(width, largest_block, dtype):
    """Rows without blocks, with room for a few."""
    return Rows(
        values=np.zeros((16, width), dtype),
        next_free=np.full(16, NONE, np.int32),
        first_free=np.full(largest_block + 1, NONE, np.int32),
        used=np.zeros(1, np.int64),
    )


def enlarge(part, used, needed):
    """Nodes, rows or pools with room for `needed` more than the `used` ones.

    Arrays grow here, in Python, because that halves the time it takes to compile the rest: the
    compiled code stops when room runs short, and is called again where it stopped.
    """
    while used + needed > len(part[0]):
        part = part._replace(
            **{
                name: np.concatenate([array, np.zeros_like(array)])
                for name, array in part._asdict().items()
                if name not in ("used", "first_free")
            }
        )
    return part


@njit(cache=True)
def reserve(rows, size):
    """Take a block of `size` rows, all zero; return the first. There must be room for it."""
    block = rows.first_free[size]
    if block != NONE:
        rows.first_free[size] = rows.next_free[block]
    else:
        block = rows.used[0]
        rows.used[0] += size
    # A loop, because numba takes seconds longer to compile an assignment of arrays.
    for row in range(block, block + size):
        for column in range(rows.values.shape[1]):
            rows.values[row, column] = 0
    return block


@njit(cache=True)
def give_back(rows, block, size):
    """Release a block for a later `reserve` of this size."""
    rows.next_free[block] = rows.first_free[size]
    rows.first_free[size] = block


@njit(cache=True)
def add_children(nodes, parent, split_dimension, split_location):
    """Make a leaf the parent of two new leaves without counts; return the left one."""
    left = nodes.used[0]
    nodes.used[0] += 2
    nodes.split_dimension[parent] = split_dimension
    nodes.split_location[parent] = split_location
    nodes.left_child[parent] = left
    # The left child takes over the parent's pool. A tree has one leaf more than inner nodes, and
    # every leaf one pool, so the number of the right child's pool follows.
    nodes.pool[left] = nodes.pool[parent]
    nodes.pool[left + 1] = left // 2 + 1
    for child in range(left, left + 2):
        nodes.split_dimension[child] = LEAF
        nodes.depth[child] = nodes.depth[parent] + 1
    return left


@njit(cache=True)
def find_leaf(nodes, x):
    """The leaf of a point: left where `x <= split_location`."""
    node = 0
    while nodes.split_dimension[node] != LEAF:
        right = x[nodes.split_dimension[node]] > nodes.split_location[node]
        node = nodes.left_child[node] + right
    return node


@njit(cache=True)
def add_frequencies(nodes, X, sums):
    """Add the class frequencies of each point's leaf; uniform where the leaf has no counts."""
    n_classes = sums.shape[1]
    for i in range(X.shape[0]):
        counts = nodes.counts[find_leaf(nodes, X[i])]
        total = 0
        for k in range(n_classes):
            total += counts[k]
        for k in range(n_classes):
            sums[i, k] += counts[k] / total if total > 0 else 1.0 / n_classes


@njit(cache=True)
def count_log(n):
    """Return n log2 n, zero for n = 0."""
    if n < COUNT_LOGS.shape[0]:
        return COUNT_LOGS[n]
    return n * math.log2(n)


@njit(cache=True)
def split_gain(n_left, n_right, left_logs, right_logs, all_logs):
    """Information gain of a split, in bits.

    The entropy of n points with class counts c is (n log2 n − Σ c log2 c) / n. The arguments are
    the numbers of points and the sums Σ c log2 c of the left side, the right side and both.
    The two sides enter alike, so that swapping them changes no bit of the result.
    """
    n = n_left + n_right
    if n == 0:
        return 0.0
    sides = (count_log(n_left) - left_logs) + (count_log(n_right) - right_logs)
    return ((count_log(n) - all_logs) - sides) / n


def make_poisson_table(mean):
    """Cumulative probabilities of Poisson(mean), as far as a random double can tell them from 1."""
    probability = total = math.exp(-mean)
    table = [total]
    while probability > 1e-17 or len(table) <= mean:
        probability *= mean / len(table)
        total += probability
        table.append(total)
    return np.array(table)


@njit(cache=True)
def sample_poisson(table, generator):
    """A Poisson number from one uniform number, by inversion."""
    uniform = generator.random()
    n = 0
    while n < table.shape[0] and uniform >= table[n]:
        n += 1
    return n


class OnlineForest(OnlineClassifier):
    """Trees that learn point by point, each from random numbers of its own.

    A competitor says what a tree is: `_make_tree(n_features, n_classes, generator)` returns a
    tuple of arrays, the nodes first, and `_learn_tree(tree, X, y, generator)` returns the tuple
    that has learned the points, in order.
    """

    def __init__(self, n_estimators, seed):
        super().__init__(seed)
        check_at_least(type(self).__name__, "n_estimators", n_estimators, 1)
        self.n_estimators = n_estimators

    def _start(self, n_features, n_classes):
        seeds = np.random.SeedSequence(self.seed).spawn(self.n_estimators)
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._trees = [
            self._make_tree(n_features, n_classes, generator) for generator in self._generators
        ]

    def _learn(self, X, y):
        # Tree by tree, not point by point: one tree fits into the processor's cache.
        for m, generator in enumerate(self._generators):
            self._trees[m] = self._learn_tree(self._trees[m], X, y, generator)

    def _predict(self, X):
        sums = np.zeros((len(X), len(self.classes_)))
        for nodes, *_ in self._trees:
            add_frequencies(nodes, X, sums)
        return sums / self.n_estimators
