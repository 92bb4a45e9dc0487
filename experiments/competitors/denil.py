"""Online random forest of Denil et al. (2013), compiled. It must not know Mondrian trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from experiments.competitors.estimator import check_at_least
from experiments.competitors.online_forest import (
    NONE,
    OnlineForest,
    add_children,
    count_log,
    enlarge,
    find_leaf,
    give_back,
    make_nodes,
    make_poisson_table,
    make_rows,
    reserve,
    sample_poisson,
    split_gain,
)

STRUCTURE, ESTIMATION = 0, 1  # the two streams


class Settings(NamedTuple):
    """The parameters in the types of the compiled code."""

    min_samples_child: float
    max_samples_leaf: float
    growth: float
    min_gain: float
    max_depth: int


class Pools(NamedTuple):
    """Data of leaves beside the counts of predictions, one row per leaf.

    The candidates are the pairs of a candidate dimension and a *pivot*, one of the leaf's first
    structure points. A leaf has `n_dimensions` rows of locations, the pivots' coordinates.

    The counts are blocks of `1 + n_dimensions` rows, one block for each class that the leaf has
    seen and one for all classes together. The first row counts all points since the pivot came,
    the others those which the candidates of a dimension send left. A row holds the structure
    points by pivot, then the estimation points by pivot. A point so touches two blocks of
    neighbouring numbers, and a class that never comes takes no room.
    """

    dimension: np.ndarray  # (n_leaves, largest n_dimensions)
    n_dimensions: np.ndarray
    n_pivots: np.ndarray
    locations: np.ndarray  # the first row of locations
    n_estimation: np.ndarray  # estimation points since the leaf was created
    n_labels: np.ndarray  # classes seen since then
    labels: np.ndarray  # (n_leaves, n_classes), the first n_labels, in order of arrival
    block: np.ndarray  # (n_leaves, n_classes + 1), the class's first row or NONE; all classes last


@njit(cache=True)
def start_pool(pools, pool, locations, counters, order, poisson_table, generator):
    """Draw candidate dimensions; structure points will give the pivots."""
    n_features = order.shape[0]
    n_dimensions = min(1 + sample_poisson(poisson_table, generator), n_features)
    # The first steps of a shuffle. It may start from any order.
    for i in range(n_dimensions):
        j = i + int(generator.random() * (n_features - i))
        order[i], order[j] = order[j], order[i]
        pools.dimension[pool, i] = order[i]
    pools.n_dimensions[pool] = n_dimensions
    pools.n_pivots[pool] = 0
    pools.n_estimation[pool] = 0
    pools.n_labels[pool] = 0
    for label in range(pools.labels.shape[1]):
        pools.block[pool, label] = NONE
    pools.locations[pool] = reserve(locations, n_dimensions)
    pools.block[pool, -1] = reserve(counters, 1 + n_dimensions)


@njit(cache=True)
def end_pool(pools, pool, locations, counters):
    """Release the memory of a leaf's candidates."""
    n_dimensions = pools.n_dimensions[pool]
    give_back(locations, pools.locations[pool], n_dimensions)
    for label in range(pools.block.shape[1]):
        if pools.block[pool, label] != NONE:
            give_back(counters, pools.block[pool, label], 1 + n_dimensions)


@njit(cache=True)
def count_point(pools, pool, locations, counters, block, x, stream):
    """Count a point in a block, for all candidates there are."""
    max_pivots = locations.values.shape[1]
    first = stream * max_pivots
    n_pivots = pools.n_pivots[pool]
    for pivot in range(n_pivots):
        counters.values[block, first + pivot] += 1
    for i in range(pools.n_dimensions[pool]):
        value = x[pools.dimension[pool, i]]
        places = locations.values[pools.locations[pool] + i]
        counts = counters.values[block + 1 + i]
        for pivot in range(n_pivots):
            counts[first + pivot] += value <= places[pivot]


@njit(cache=True)
def find_best_candidate(pools, pool, counters, min_samples):
    """Dimension, pivot and gain of the first best candidate; a gain of -1 if there is none.

    Only those with at least `min_samples` estimation points in each child may be chosen.
    """
    max_pivots = counters.values.shape[1] // 2
    total = pools.block[pool, -1]
    labels = pools.labels[pool, : pools.n_labels[pool]]
    best_dimension, best_pivot, best_gain = 0, 0, -1.0
    for i in range(pools.n_dimensions[pool]):
        for pivot in range(pools.n_pivots[pool]):
            n_left = counters.values[total + 1 + i, max_pivots + pivot]
            n_right = counters.values[total, max_pivots + pivot] - n_left
            if n_left < min_samples or n_right < min_samples:
                continue
            left_logs = right_logs = all_logs = 0.0
            for label in labels:
                block = pools.block[pool, label]
                n_all = counters.values[block, pivot]
                n_left = counters.values[block + 1 + i, pivot]
                left_logs += count_log(n_left)
                right_logs += count_log(n_all - n_left)
                all_logs += count_log(n_all)
            n_left = counters.values[total + 1 + i, pivot]
            n_right = counters.values[total, pivot] - n_left
            gain = split_gain(n_left, n_right, left_logs, right_logs, all_logs)
            # Rounding may make a gain of 0 slightly negative; a forced split must still happen.
            gain = max(gain, 0.0)
            if gain > best_gain:
                best_dimension, best_pivot, best_gain = i, pivot, gain
    return best_dimension, best_pivot, best_gain


@njit(cache=True)
def split(nodes, pools, locations, counters, leaf, i, pivot, order, poisson_table, generator):
    """Split a leaf; the children start with the estimation points of the candidate's two sides."""
    pool = nodes.pool[leaf]
    estimation = counters.values.shape[1] // 2 + pivot
    location = locations.values[pools.locations[pool] + i, pivot]
    left = add_children(nodes, leaf, pools.dimension[pool, i], location)
    for label in pools.labels[pool, : pools.n_labels[pool]]:
        block = pools.block[pool, label]
        n_left = counters.values[block + 1 + i, estimation]
        nodes.counts[left, label] = n_left
        nodes.counts[left + 1, label] = counters.values[block, estimation] - n_left
    end_pool(pools, pool, locations, counters)
    for child in range(left, left + 2):
        start_pool(pools, nodes.pool[child], locations, counters, order, poisson_table, generator)


@njit(cache=True)
def learn(
    nodes, pools, locations, counters, order, X, y, start, settings, poisson_table, generator
):
    """Learn points from `start` on while there is room; return the first that was not learned."""
    max_pivots = locations.values.shape[1]
    most = 2 * (1 + pools.dimension.shape[1])  # rows that two new leaves may take
    for i in range(start, X.shape[0]):
        if (
            nodes.used[0] + 2 > nodes.depth.shape[0]
            or nodes.used[0] // 2 + 2 > pools.n_pivots.shape[0]
            or locations.used[0] + most > locations.values.shape[0]
            or counters.used[0] + most + most > counters.values.shape[0]
        ):
            return i
        x = X[i]
        label = y[i]
        leaf = find_leaf(nodes, x)
        pool = nodes.pool[leaf]
        stream = STRUCTURE if generator.random() < 0.5 else ESTIMATION
        if stream == ESTIMATION:
            nodes.counts[leaf, label] += 1
            pools.n_estimation[pool] += 1
        elif pools.n_pivots[pool] < max_pivots:
            pivot = pools.n_pivots[pool]
            for k in range(pools.n_dimensions[pool]):
                place = x[pools.dimension[pool, k]]
                locations.values[pools.locations[pool] + k, pivot] = place
            pools.n_pivots[pool] += 1
        if pools.block[pool, label] == NONE:
            pools.block[pool, label] = reserve(counters, 1 + pools.n_dimensions[pool])
            pools.labels[pool, pools.n_labels[pool]] = label
            pools.n_labels[pool] += 1
        count_point(pools, pool, locations, counters, pools.block[pool, label], x, stream)
        count_point(pools, pool, locations, counters, pools.block[pool, -1], x, stream)

        depth = nodes.depth[leaf]
        scale = settings.growth**depth
        min_samples = settings.min_samples_child * scale
        if depth >= settings.max_depth or pools.n_estimation[pool] < 2 * min_samples:
            continue
        n_held = 0
        for k in range(nodes.counts.shape[1]):
            n_held += nodes.counts[leaf, k]
        forced = n_held >= settings.max_samples_leaf * scale
        if pools.n_labels[pool] == 1 and not forced:
            continue  # no candidate can have a gain
        dimension, pivot, gain = find_best_candidate(pools, pool, counters, min_samples)
        if gain > settings.min_gain or (forced and gain >= 0.0):
            split(
                nodes, pools, locations, counters, leaf, dimension, pivot,
                order, poisson_table, generator,
            )  # fmt: skip
    return X.shape[0]


class OnlineForestDenil(OnlineForest):
    """Denil's online random forest: some points shape a tree, the others make its predictions.

    In every tree, each point goes by the toss of a coin to the structure or to the estimation
    stream; there is no bagging. A new leaf picks min(1 + Poisson(n_dimensions), n_features)
    different dimensions, and its first `n_pivots` structure points, its *pivots*, give the
    locations: each dimension and pivot make a candidate split. From the moment it exists
    (and with the pivot itself), a candidate counts the classes of both streams on both sides.

    After each point, a leaf at depth d considers the candidates with at least
    `min_samples_child` · `growth` ** d estimation points on each side. It is split by the one
    whose gain, by structure points, is largest, if that gain is above `min_gain` or if the leaf
    predicts with at least `max_samples_leaf` · `growth` ** d estimation points. If no candidate
    will do, the leaf keeps them and goes on counting. The children start with the estimation
    points of the candidate's sides, and with no candidates.

    The defaults are those the authors used on usps.

    Parameters
    ----------
    n_estimators : int
    n_dimensions : float
        λ of the article.
    n_pivots : int
        m of the article.
    min_samples_child, max_samples_leaf, growth : float
        α(d) = min_samples_child · growth ** d and β(d) = max_samples_leaf · growth ** d.
    min_gain : float
        τ of the article, in bits.
    max_depth : int
    seed : int

    References
    ----------
    Denil, Matheson, de Freitas. Consistency of online random forests. ICML 2013.
    """

    def __init__(
        self,
        n_estimators=100,
        *,
        n_dimensions=10.0,
        n_pivots=10,
        min_samples_child=10.0,
        max_samples_leaf=10000.0,
        growth=1.00001,
        min_gain=0.1,
        max_depth=1000,
        seed=0,
    ):
        super().__init__(n_estimators, seed)
        owner = type(self).__name__
        check_at_least(owner, "n_dimensions", n_dimensions, 0.0)
        check_at_least(owner, "n_pivots", n_pivots, 1)
        check_at_least(owner, "min_samples_child", min_samples_child, 0.0)
        check_at_least(owner, "max_samples_leaf", max_samples_leaf, 0.0)
        check_at_least(owner, "growth", growth, 1.0)
        check_at_least(owner, "min_gain", min_gain, 0.0)
        check_at_least(owner, "max_depth", max_depth, 0)
        self.n_pivots = n_pivots
        self._poisson_table = make_poisson_table(float(n_dimensions))
        self._settings = Settings(
            float(min_samples_child),
            float(max_samples_leaf),
            float(growth),
            float(min_gain),
            int(max_depth),
        )

    def _make_tree(self, n_features, n_classes, generator):
        most = min(1 + len(self._poisson_table), n_features)
        pools = Pools(
            dimension=np.zeros((8, most), np.int32),
            n_dimensions=np.zeros(8, np.int32),
            n_pivots=np.zeros(8, np.int32),
            locations=np.zeros(8, np.int32),
            n_estimation=np.zeros(8, np.int32),
            n_labels=np.zeros(8, np.int32),
            labels=np.zeros((8, n_classes), np.int32),
            block=np.full((8, n_classes + 1), NONE, np.int32),
        )
        locations = enlarge(make_rows(self.n_pivots, most, np.float64), 0, most)
        counters = enlarge(make_rows(2 * self.n_pivots, 1 + most, np.int32), 0, 1 + most)
        order = np.arange(n_features)
        start_pool(pools, 0, locations, counters, order, self._poisson_table, generator)
        return make_nodes(n_classes), pools, locations, counters, order

    def _learn_tree(self, tree, X, y, generator):
        nodes, pools, locations, counters, order = tree
        most = 2 * (1 + pools.dimension.shape[1])
        start = 0
        while start < len(X):
            nodes = enlarge(nodes, nodes.used[0], 2)
            pools = enlarge(pools, nodes.used[0] // 2 + 1, 1)
            locations = enlarge(locations, locations.used[0], most)
            counters = enlarge(counters, counters.used[0], 2 * most)
            start = learn(
                *(nodes, pools, locations, counters, order, X, y, start),
                *(self._settings, self._poisson_table, generator),
            )
        return nodes, pools, locations, counters, order
