"""Regression on a Mondrian tree by dense linear algebra: no messages, no closed forms.

Given the tree, the means of its leaves are jointly normal: two of them share the increments above
their lowest common ancestor. So the values are a Gaussian process whose kernel follows from the
tree, and so is the value at a query, given where and when the query branches off. onlineforest
computes by messages what is one system of linear equations here, and in closed form what is a
quadrature of many points, or sampled, here.

All in units of the prior: y is the residual of the trend divided by its scale.
"""

from __future__ import annotations

import math

import numpy as np

from reference.mondrian import Node


def quadrature(p):
    """Points and weights on [0, p], denser towards the ends, where integrands may be steep."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    halves = p * 2.0 ** -np.arange(1.0, 40.0)
    edges = [0.0, *halves[::-1], *(p - halves[1:]), p]
    low, width = np.array(edges[:-1])[:, np.newaxis], np.diff(edges)[:, np.newaxis]
    return (low + width * (nodes + 1) / 2).ravel(), (width * weights / 2).ravel()


class GaussianTree:
    """A tree, its data and its prior."""

    def __init__(self, root, X, y, *, lam, gamma, w, noise, trend_variance=0.0, weights=None):
        self.root, self.X, self.y = root, np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        # A value of weight 2 is known as well as the mean of two.
        self.noises = noise / (np.ones(len(y)) if weights is None else np.asarray(weights))
        self.lam, self.gamma, self.w = lam, gamma, np.asarray(w, dtype=float)
        self.noise, self.trend_variance = noise, trend_variance
        self.times = self.common_times()
        self.precision = None  # of the values of all points; computed when first needed

    # ---- the prior -----------------------------------------------------------------------------

    def fade(self, t):
        """The fraction of the prior variance that is added after time t."""
        return np.exp(-self.gamma * np.asarray(t)) if self.gamma > 0 else np.ones(np.shape(t))

    def covariance(self, t):
        """Covariance of two means that share all increments until time t."""
        return (1 - self.noise) * (1 - self.fade(t))

    def common_times(self):
        """Until when each pair of points shares means: tau of their lowest common ancestor."""
        times = np.full((len(self.y), len(self.y)), self.lam)

        def visit(j):
            if j.is_leaf:
                return
            times[np.ix_(j.left.N, j.right.N)] = j.tau
            times[np.ix_(j.right.N, j.left.N)] = j.tau
            visit(j.left)
            visit(j.right)

        visit(self.root)
        return times

    def sample_values(self, rng):
        """Values of all points, from the prior."""
        covariance = self.covariance(self.times) + np.diag(self.noises)
        return rng.multivariate_normal(np.zeros(len(self.y)), covariance)

    # ---- the posterior -------------------------------------------------------------------------

    def belief_from_below(self, j):
        """Mean and variance of the mean of j given only the values below it: least squares."""
        here = self.covariance(j.tau)
        covariance = self.covariance(self.times[np.ix_(j.N, j.N)]) - here
        weights = np.linalg.solve(covariance + np.diag(self.noises[j.N]), np.ones(len(j.N)))
        return weights @ self.y[j.N] / weights.sum(), 1 / weights.sum()

    def distribution(self, shared, is_beyond=False):
        """Mean and variance of the value at a query, or at several.

        Until time `shared[..., n]` the query shares its means with point n. `is_beyond`: it
        branches off above the root.
        """
        N = self.root.N
        if self.precision is None:
            K = self.covariance(self.times[np.ix_(N, N)]) + np.diag(self.noises[N])
            self.precision = np.linalg.inv(K)
        k = self.covariance(shared[..., N])
        weights = k @ self.precision
        own = self.covariance(self.lam) + self.noise
        if is_beyond:
            own += self.trend_variance
        return weights @ self.y[N], own - (weights * k).sum(axis=-1)

    def shared(self, path, t):
        """Until when a query that leaves this path at time t shares its means with each point."""
        shared = np.zeros((*np.shape(t), len(self.y)))
        for j, below in zip(path, [*path[1:], None]):
            if below is None:
                shared[..., j.N] = np.asarray(t)[..., np.newaxis]
            else:
                shared[..., (j.left if below is j.right else j.right).N] = j.tau
        return shared

    # ---- prediction ----------------------------------------------------------------------------

    def eta(self, j, x):
        return float((self.w * (np.maximum(x - j.u, 0) + np.maximum(j.l - x, 0))).sum())

    def components(self, x):
        """(mass, mean, variance) for each place and time where x may branch off, and for none."""
        path, mass = [], 1.0
        j = self.root
        while True:
            path.append(j)
            eta, Delta = self.eta(j, x), j.tau - j.tau_parent
            p = -math.expm1(-Delta * eta) if eta > 0 else 0.0
            if p > 0:
                u, weights = quadrature(p)
                t = j.tau_parent - np.log1p(-u) / eta
                moments = self.distribution(self.shared(path, t), j is self.root)
                yield from zip(mass * weights, *moments)
            mass *= 1 - p
            if j.is_leaf:
                yield mass, *self.distribution(self.shared(path, self.lam))
                return
            j = j.left if x[j.delta] <= j.xi else j.right

    def predict(self, x):
        """Mean and variance."""
        mass, mean, variance = np.array(list(self.components(x))).T
        assert abs(mass.sum() - 1) < 1e-12
        expected = mass @ mean
        return expected, mass @ (variance + (mean - expected) ** 2)

    def sample_extension(self, x, rng):
        """Mean and variance in one extension of the tree by x, sampled."""
        path = []
        j = self.root
        while True:
            path.append(j)
            eta = self.eta(j, x)
            t = j.tau_parent + (rng.exponential(1 / eta) if eta > 0 else math.inf)
            if t < j.tau:
                return self.distribution(self.shared(path, t), j is self.root)
            if j.is_leaf:
                return self.distribution(self.shared(path, self.lam))
            j = j.left if x[j.delta] <= j.xi else j.right

    def without(self, n):
        """The tree restricted to all points but n and those equal to it."""
        gone = (self.X[n] == self.X).all(axis=1) & (self.y == self.y[n])

        def restricted(j):
            N = [m for m in j.N if not gone[m]]
            if not N:
                return None
            if not j.is_leaf:
                left, right = restricted(j.left), restricted(j.right)
                if left is None or right is None:
                    return left or right
            node = Node(delta=j.delta, xi=j.xi, tau=j.tau, N=N)
            node.l, node.u = self.X[N].min(axis=0), self.X[N].max(axis=0)
            if not j.is_leaf:
                node.left, node.right = left, right
                left.parent = right.parent = node
            return node

        rest = object.__new__(GaussianTree)
        rest.__dict__.update(self.__dict__, root=restricted(self.root), precision=None)
        return rest

    # ---- reading the library's trees -----------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays, leaves, X, y, **prior):
        """The tree of an `onlineforest.RegressionTree`; `leaves` are those of the points."""
        nodes = [Node() for _ in range(arrays.n_nodes)]
        for i, j in enumerate(nodes):
            j.parent = nodes[arrays.parent[i]] if arrays.parent[i] >= 0 else None
            j.tau = float(arrays.split_time[i])
            j.l, j.u = arrays.lower[i].astype(float), arrays.upper[i].astype(float)
            if arrays.left[i] >= 0:
                j.left, j.right = nodes[arrays.left[i]], nodes[arrays.right[i]]
                j.delta, j.xi = int(arrays.split_dimension[i]), float(arrays.split_location[i])
        for n, i in enumerate(leaves):
            j = nodes[i]
            while j is not None:
                j.N.append(n)
                j = j.parent
        tree = cls(nodes[arrays.root], X, y, **prior)
        tree.nodes = nodes
        return tree
