"""The paper's Algorithms 1 to 10, one by one, in its own letters: for reading and comparing.

Slow and recursive on purpose. It adds to the paper: weights w of the features (w = 1 is the paper),
the pausing rule of onlineforest (labels all equal, or fewer than `min_samples_split` points), and
reading a tree of the library through its arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class Node:
    """j: a node of the tree T."""

    parent: Node | None = None
    left: Node | None = None
    right: Node | None = None
    delta: int = -1  # split dimension
    xi: float = math.nan  # split location
    tau: float = math.inf  # split time
    l: np.ndarray | None = None
    u: np.ndarray | None = None  # upper bounds of B_j^x
    N: list = field(default_factory=list)  # indices of the points, at a leaf
    c: np.ndarray | None = None  # customers per label
    tab: np.ndarray | None = None  # tables per label

    @property
    def is_leaf(self):
        return self.left is None

    @property
    def tau_parent(self):
        return 0.0 if self.parent is None else self.parent.tau


class MondrianTree:
    """T, with the data it was grown from."""

    def __init__(self, lam, K, gamma, w, min_samples_split=2, rng=None, leaf_discount=0.0):
        self.lam, self.K, self.gamma = lam, K, gamma
        self.leaf_discount = leaf_discount  # not in the paper
        self.w = np.asarray(w, dtype=float)
        self.min_samples_split = min_samples_split
        self.rng = rng
        self.root = None
        self.X, self.Y = np.empty((0, len(self.w))), np.empty(0, dtype=int)

    # ---- growing -------------------------------------------------------------------------------

    def sample_mondrian_tree(self, X, Y):
        """Algorithm 1."""
        self.X, self.Y = np.asarray(X, dtype=float), np.asarray(Y)
        self.root = Node()
        self.sample_mondrian_block(self.root, list(range(len(X))))

    def paused(self, N):
        return len(N) < self.min_samples_split or len(set(self.Y[N])) == 1

    def sample_mondrian_block(self, j, N):
        """Algorithm 2, and its version with pausing, Algorithm 9."""
        j.l, j.u = self.X[N].min(axis=0), self.X[N].max(axis=0)
        j.left = j.right = None
        if self.paused(N):
            j.tau = self.lam
        else:
            rate = (self.w * (j.u - j.l)).sum()
            E = self.rng.exponential(1 / rate) if rate > 0 else math.inf
            j.tau = j.tau_parent + E
        if j.tau < self.lam:
            p = self.w * (j.u - j.l)
            j.delta = self.rng.choice(len(p), p=p / p.sum())
            j.xi = self.rng.uniform(j.l[j.delta], j.u[j.delta])
            j.N = []
            j.left, j.right = Node(parent=j), Node(parent=j)
            self.sample_mondrian_block(j.left, [n for n in N if self.X[n, j.delta] <= j.xi])
            self.sample_mondrian_block(j.right, [n for n in N if self.X[n, j.delta] > j.xi])
        else:
            j.tau, j.N = self.lam, N
            self.initialize_posterior_counts(j)

    def extend_mondrian_tree(self, x, y):
        """Algorithm 3."""
        self.X, self.Y = np.vstack([self.X, x]), np.append(self.Y, y)
        n = len(self.Y) - 1
        if self.root is None:
            self.root = Node()
            self.sample_mondrian_block(self.root, [n])
        else:
            self.extend_mondrian_block(self.root, n)

    def extend_mondrian_block(self, j, n):
        """Algorithm 4, and its version with pausing, Algorithm 10."""
        x, y = self.X[n], self.Y[n]
        if j.is_leaf and self.paused(j.N):
            j.N = [*j.N, n]
            if self.paused(j.N):
                j.l, j.u = np.minimum(j.l, x), np.maximum(j.u, x)
                self.update_posterior_counts(j, y)
            else:
                self.sample_mondrian_block(j, j.N)
            return
        e_l, e_u = np.maximum(j.l - x, 0), np.maximum(x - j.u, 0)
        rate = (self.w * (e_l + e_u)).sum()
        E = self.rng.exponential(1 / rate) if rate > 0 else math.inf
        if j.tau_parent + E < j.tau:
            p = self.w * (e_l + e_u)
            delta = self.rng.choice(len(p), p=p / p.sum())
            if x[delta] > j.u[delta]:
                xi = self.rng.uniform(j.u[delta], x[delta])
            else:
                xi = self.rng.uniform(x[delta], j.l[delta])
            j_new = Node(parent=j.parent, delta=delta, xi=xi, tau=j.tau_parent + E)
            j_new.l, j_new.u = np.minimum(j.l, x), np.maximum(j.u, x)
            if j.parent is None:
                self.root = j_new
            elif j.parent.left is j:
                j.parent.left = j_new
            else:
                j.parent.right = j_new
            j.parent = j_new
            child = Node(parent=j_new)
            j_new.left, j_new.right = (child, j) if x[delta] <= xi else (j, child)
            self.sample_mondrian_block(child, [n])
        else:
            j.l, j.u = np.minimum(j.l, x), np.maximum(j.u, x)
            if j.is_leaf:
                j.N = [*j.N, n]
                self.update_posterior_counts(j, y)
            else:
                self.extend_mondrian_block(j.left if x[j.delta] <= j.xi else j.right, n)

    # ---- labels --------------------------------------------------------------------------------

    def initialize_posterior_counts(self, j):
        """Algorithm 5."""
        j.c = np.bincount(self.Y[j.N], minlength=self.K)
        while True:
            if not j.is_leaf:
                tabs = [child.tab for child in (j.left, j.right) if child.tab is not None]
                j.c = np.sum(tabs, axis=0)
            j.tab = np.minimum(j.c, 1)
            if j.parent is None:
                return
            j = j.parent

    def update_posterior_counts(self, j, y):
        """Algorithm 6."""
        j.c[y] += 1
        while True:
            if j.tab[y] == 1:
                return
            if not j.is_leaf:
                j.c[y] = j.left.tab[y] + j.right.tab[y]
            j.tab[y] = min(j.c[y], 1)
            if j.parent is None:
                return
            j = j.parent

    def posterior_mean(self, j):
        """G-bar of j by equation (6), the recursion of Algorithm 7."""
        if j is None:
            return np.full(self.K, 1 / self.K)
        d = self.discount(j.tau - j.tau_parent)
        if j.is_leaf:
            d = max(d, self.leaf_discount)
        return self.smoothed(j.c, j.tab, d, j.parent)

    def smoothed(self, c, tab, d, parent):
        return (c - d * tab + d * tab.sum() * self.posterior_mean(parent)) / c.sum()

    def discount(self, duration):
        return math.exp(-self.gamma * duration) if self.gamma > 0 else 1.0

    # ---- prediction ----------------------------------------------------------------------------

    def predict(self, x):
        """Algorithm 8."""
        j, p_not_separated_yet, s = self.root, 1.0, np.zeros(self.K)
        while True:
            Delta, eta = j.tau - j.tau_parent, self.eta(j, x)
            p = 1 - math.exp(-Delta * eta) if eta > 0 else 0.0
            if p > 0:
                d_bar = self.expected_discount(eta, Delta)
                tab = np.minimum(j.c, 1)
                s += p_not_separated_yet * p * self.smoothed(tab, tab, d_bar, j.parent)
            if j.is_leaf:
                return s + p_not_separated_yet * (1 - p) * self.posterior_mean(j)
            p_not_separated_yet *= 1 - p
            j = j.left if x[j.delta] <= j.xi else j.right

    def eta(self, j, x):
        return float((self.w * (np.maximum(x - j.u, 0) + np.maximum(j.l - x, 0))).sum())

    def expected_discount(self, eta, Delta):
        """E[exp(-gamma T)], T exponential with rate eta truncated to [0, Delta]."""
        if self.gamma == 0:
            return 1.0
        rate = eta + self.gamma
        return eta / rate * math.expm1(-rate * Delta) / math.expm1(-eta * Delta)

    def predict_by_extending(self, x):
        """The prediction at x in one extension of the tree by x, sampled from MTx(lambda, T, x).

        x has no label: where it branches off, its own leaf has no customers, so that its mean is
        that of its new parent.
        """
        j = self.root
        while True:
            eta = self.eta(j, x)
            E = self.rng.exponential(1 / eta) if eta > 0 else math.inf
            if j.tau_parent + E < j.tau:
                tab = np.minimum(j.c, 1)
                return self.smoothed(tab, tab, self.discount(E), j.parent)
            if j.is_leaf:
                return self.posterior_mean(j)
            j = j.left if x[j.delta] <= j.xi else j.right

    # ---- reading the library's trees -----------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays, lam, gamma, w, leaf_discount=0.0):
        """The reference tree with the nodes of an `onlineforest.MondrianTree`."""
        tree = cls(lam, arrays.count.shape[1], gamma, w, leaf_discount=leaf_discount)
        nodes = [Node() for _ in range(arrays.n_nodes)]
        for i, j in enumerate(nodes):
            j.parent = nodes[arrays.parent[i]] if arrays.parent[i] >= 0 else None
            j.tau = float(arrays.split_time[i])
            j.l, j.u = arrays.lower[i].astype(float), arrays.upper[i].astype(float)
            j.c, j.tab = arrays.count[i], np.minimum(arrays.count[i], 1)
            if arrays.left[i] >= 0:
                j.left, j.right = nodes[arrays.left[i]], nodes[arrays.right[i]]
                j.delta, j.xi = int(arrays.split_dimension[i]), float(arrays.split_location[i])
        tree.root = nodes[arrays.root]
        return tree
