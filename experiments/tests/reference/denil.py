"""Denil's online random forest in plain Python: slow, obvious, and not part of the library.

It draws the same random numbers in the same order as `experiments/competitors/denil.py`, so
trees and predictions must be equal.
"""

from __future__ import annotations

from experiments.tests.reference.saffari import Node, information_gain, sample_poisson


class Candidate:
    """A possible split with the class counts of both streams on both sides."""

    def __init__(self, dimension, location, n_classes):
        self.dimension, self.location = dimension, location
        self.structure = [0] * n_classes, [0] * n_classes
        self.estimation = [0] * n_classes, [0] * n_classes

    def gain(self, labels):
        left, right = self.structure
        return max(information_gain([left[k] for k in labels], [right[k] for k in labels]), 0.0)


class DenilTree:
    def __init__(self, n_features, n_classes, rng, settings):
        self.n_features, self.n_classes, self.rng = n_features, n_classes, rng
        self.settings = settings
        self.order = list(range(n_features))
        self.root = self.make_leaf([0] * n_classes, depth=0)

    def make_leaf(self, counts, depth):
        leaf = Node(counts, depth)
        n_dimensions = 1 + sample_poisson(self.settings["n_dimensions"], self.rng)
        n_dimensions = min(n_dimensions, self.n_features)
        for i in range(n_dimensions):
            j = i + int(self.rng.random() * (self.n_features - i))
            self.order[i], self.order[j] = self.order[j], self.order[i]
        leaf.candidates = {dimension: [] for dimension in self.order[:n_dimensions]}
        leaf.labels = []  # seen since it was created
        return leaf

    def learn(self, x, label):
        leaf = self.root.find_leaf(x)
        structure = self.rng.random() < 0.5
        if not structure:
            leaf.counts[label] += 1
        if label not in leaf.labels:
            leaf.labels.append(label)
        for dimension, candidates in leaf.candidates.items():
            if structure and len(candidates) < self.settings["n_pivots"]:
                candidates.append(Candidate(dimension, x[dimension], self.n_classes))
            for candidate in candidates:
                sides = candidate.structure if structure else candidate.estimation
                sides[int(x[dimension] > candidate.location)][label] += 1
        self.split_if_due(leaf)

    def split_if_due(self, leaf):
        scale = self.settings["growth"] ** leaf.depth
        alpha = self.settings["min_samples_child"] * scale
        beta = self.settings["max_samples_leaf"] * scale
        eligible = [
            candidate
            for candidates in leaf.candidates.values()
            for candidate in candidates
            if all(sum(side) >= alpha for side in candidate.estimation)
        ]
        if not eligible or leaf.depth >= self.settings["max_depth"]:
            return
        gains = [candidate.gain(leaf.labels) for candidate in eligible]
        if max(gains) > self.settings["min_gain"] or sum(leaf.counts) >= beta:
            best = eligible[gains.index(max(gains))]
            leaf.dimension, leaf.location = best.dimension, best.location
            leaf.children = [self.make_leaf(side, leaf.depth + 1) for side in best.estimation]
