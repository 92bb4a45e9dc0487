"""Dynamic trees by plain objects, deep copies and recursion: for reading and comparing.

Every particle owns its tree, and every posterior is summed up anew from the points. Random numbers
are drawn in the same order as by the compiled version, so both must grow the same trees.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(eq=False)
class Node:
    points: list = field(default_factory=list)  # at a leaf
    split_dimension: int = -1
    split_location: float = math.nan
    left: Node | None = None
    right: Node | None = None

    @property
    def is_leaf(self):
        return self.left is None

    def all_points(self):
        if self.is_leaf:
            return self.points
        return self.left.all_points() + self.right.all_points()

    def path(self, x):
        """The nodes from here to the leaf of x."""
        if self.is_leaf:
            return [self]
        goes_left = x[self.split_dimension] <= self.split_location
        return [self, *(self.left if goes_left else self.right).path(x)]


def residual_copies(weights, rng):
    total = 0.0
    for weight in weights:
        total += weight
    expected = [len(weights) * (weight / total) for weight in weights]
    copies = [math.floor(e) for e in expected]
    cumulated = list(accumulate(e - math.floor(e) for e in expected))
    for _ in range(len(weights) - sum(copies)):
        copies[bisect_right(cumulated, rng.random() * cumulated[-1])] += 1
    return copies


class Cloud:
    """Particles over points (X, y) with labels 0, ..., K - 1, learned one by one."""

    def __init__(self, n_particles, n_classes, rng, *, alpha=0.95, beta=2.0):
        self.n_classes, self.rng, self.alpha, self.beta = n_classes, rng, alpha, beta
        self.particles = [Node() for _ in range(n_particles)]
        self.X, self.y = {}, {}
        self.moves = {"stay": 0, "prune": 0, "grow": 0}

    # ---- the model -----------------------------------------------------------------------------

    def counts(self, points):
        result = [0] * self.n_classes
        for i in points:
            result[self.y[i]] += 1
        return result

    def predictive(self, root, x):
        counts = self.counts(root.path(x)[-1].points)
        return [(c + 1 / self.n_classes) / (sum(counts) + 1) for c in counts]

    def log_posterior(self, node, depth):
        """Prior and marginal likelihood of the subtree at this node."""
        p_split = self.alpha * (1 + depth) ** -self.beta
        if not node.is_leaf:
            left = self.log_posterior(node.left, depth + 1)
            right = self.log_posterior(node.right, depth + 1)
            return math.log(p_split) + left + right
        prior = 1 / self.n_classes
        total = 0.0
        for c in self.counts(node.points):
            total += math.lgamma(c + prior) - math.lgamma(prior)
        return math.log(1 - p_split) + (total - math.lgamma(len(node.points) + 1))

    # ---- the particle filter -------------------------------------------------------------------

    def learn(self, i, x, y):
        """Learn the point with number i."""
        self.resample(x, y)
        self.X[i], self.y[i] = x, y
        for number, root in enumerate(self.particles):
            root.path(x)[-1].points.append(i)
            self.particles[number] = self.propagate(root, x)

    def resample(self, x, y):
        weights = [self.predictive(root, x)[y] for root in self.particles]
        if min(weights) == max(weights):
            return
        copies = residual_copies(weights, self.rng)
        self.particles = [
            copy.deepcopy(root) for root, times in zip(self.particles, copies) for _ in range(times)
        ]

    def propagate(self, root, x):
        """The tree after its move at the leaf of x."""
        path = root.path(x)
        depth = max(len(path) - 2, 0)  # where the subtree begins that may change
        here = path[depth]
        trees = {"stay": here}
        if len(path) > 1:
            trees["prune"] = Node(here.all_points())
        grown = self.grown(path[-1])
        if grown is not None:
            trees["grow"] = copy.deepcopy(here)
            self.replace(trees["grow"].path(x)[-1], grown)
        if len(trees) == 1:
            return root
        logs = [
            self.log_posterior(trees[move], depth) if move in trees else -math.inf
            for move in ("stay", "prune", "grow")
        ]
        stay, prune, grow = (math.exp(log - max(logs)) for log in logs)
        threshold = self.rng.random() * (stay + prune + grow)
        move = "stay" if threshold < stay else "prune" if threshold < stay + prune else "grow"
        self.moves[move] += 1
        if move != "stay":
            self.replace(here, trees[move])
        return root

    def grown(self, leaf):
        """The leaf with a random split, or None if there is none."""
        if len(leaf.points) < 2:
            return None
        dimension = int(self.rng.random() * len(self.X[leaf.points[0]]))
        values = [self.X[i][dimension] for i in leaf.points]
        if min(values) == max(values):
            return None
        location = min(values) + self.rng.random() * (max(values) - min(values))
        left = [i for i, value in zip(leaf.points, values) if value <= location]
        right = [i for i, value in zip(leaf.points, values) if value > location]
        if not right:
            return None
        return Node([], dimension, location, Node(left), Node(right))

    @staticmethod
    def replace(node, other):
        """Copy another node into this one, in place."""
        vars(node).update(vars(other))

    def predict_proba(self, X):
        means = []
        for x in X:
            total = [0.0] * self.n_classes
            for root in self.particles:
                total = [t + p for t, p in zip(total, self.predictive(root, x))]
            means.append([t / len(self.particles) for t in total])
        return means
