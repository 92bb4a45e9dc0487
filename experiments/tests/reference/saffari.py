"""Saffari's online random forest in plain Python: slow, obvious, and not part of the library.

It draws the same random numbers in the same order as `experiments/competitors/saffari.py`, so
trees and predictions must be equal.
"""

from __future__ import annotations

import math

import numpy as np


def sample_poisson(mean, rng):
    """Walk up the probabilities until they pass one uniform number."""
    uniform = rng.random()
    n = 0
    probability = total = math.exp(-mean)
    while uniform >= total:
        n += 1
        probability *= mean / n
        total += probability
    return n


def scaled_entropy(counts):
    """The number of points times their entropy in bits."""
    logs = 0.0
    for c in counts:  # not sum(), whose rounding differs between versions of Python
        logs += c * math.log2(c) if c else 0.0
    n = sum(counts)
    return (n * math.log2(n) if n else 0.0) - logs


def information_gain(left, right):
    both = [l + r for l, r in zip(left, right)]
    if sum(both) == 0:
        return 0.0
    sides = scaled_entropy(left) + scaled_entropy(right)
    return (scaled_entropy(both) - sides) / sum(both)


class Node:
    """Split while it has children, else a leaf."""

    def __init__(self, counts, depth):
        self.counts = counts  # the points that predict, per class
        self.depth = depth
        self.children = None
        self.dimension = self.location = None

    def find_leaf(self, x):
        if self.children is None:
            return self
        return self.children[int(x[self.dimension] > self.location)].find_leaf(x)

    def frequencies(self, x):
        counts = np.array(self.find_leaf(x).counts)
        if counts.sum() == 0:
            return np.full(len(counts), 1 / len(counts))
        return counts / counts.sum()


class Test:
    def __init__(self, dimension, location):
        self.dimension, self.location = dimension, location
        self.left, self.right = {}, {}

    def count(self, x, label):
        side = self.left if x[self.dimension] <= self.location else self.right
        side[label] = side.get(label, 0) + 1


class SaffariTree:
    def __init__(self, n_features, n_classes, rng, settings):
        self.n_features, self.n_classes, self.rng = n_features, n_classes, rng
        self.settings = settings
        self.root = self.make_leaf([0] * n_classes, depth=0)

    def make_leaf(self, counts, depth):
        leaf = Node(counts, depth)
        low, high = self.settings["feature_range"]
        leaf.tests = []
        for _ in range(self.settings["n_tests"]):
            dimension = int(self.rng.random() * self.n_features)
            leaf.tests.append(Test(dimension, low + self.rng.random() * (high - low)))
        leaf.seen = []  # labels since it was created
        return leaf

    def learn(self, x, label):
        for _ in range(sample_poisson(1.0, self.rng)):
            self.learn_once(x, label)

    def learn_once(self, x, label):
        leaf = self.root.find_leaf(x)
        leaf.counts[label] += 1
        leaf.seen.append(label)
        for test in leaf.tests:
            test.count(x, label)
        if len(leaf.seen) < self.settings["min_samples_split"]:
            return
        if len(set(leaf.seen)) == 1 or leaf.depth >= self.settings["max_depth"]:
            return
        labels = list(dict.fromkeys(leaf.seen))
        gains = [
            information_gain(
                [test.left.get(k, 0) for k in labels], [test.right.get(k, 0) for k in labels]
            )
            for test in leaf.tests
        ]
        best = max(gains)
        if best > 0 and best >= self.settings["min_gain"]:
            test = leaf.tests[gains.index(best)]
            leaf.dimension, leaf.location = test.dimension, test.location
            leaf.children = [
                self.make_leaf([side.get(k, 0) for k in range(self.n_classes)], leaf.depth + 1)
                for side in (test.left, test.right)
            ]
