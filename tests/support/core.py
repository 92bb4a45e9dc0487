"""Core forests for tests: built with short names, summarised without a loop over the trees."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlineforest import _core


def core_forest(n_trees, n_features, **options):
    """An empty forest over labels. `weights`: None, "range" or an array."""
    return _built(_core.LabelForest, n_trees, n_features, {"discount": 10.0, **options})


def gaussian_forest(n_trees, n_features, **options):
    """An empty forest over numbers that learns nothing about the data as a whole."""
    plain = {"discount": 0.1, "noise": 0.1, "trend": False, "calibrate": False}
    return _built(_core.GaussianForest, n_trees, n_features, {**plain, **options})


def _built(kind, n_trees, n_features, options):
    weights = options.pop("weights", None)
    rule = "unit" if weights is None else weights if isinstance(weights, str) else "fixed"
    return kind(
        n_trees,
        n_features,
        weight_rule=rule,
        weights=np.asarray(weights, dtype=float) if rule == "fixed" else None,
        **{"lifetime": math.inf, "min_samples_split": 2, "seed": 0, **options},
    )


def learn(forest, X, y, n_classes=None, n_threads=2):
    """Learn rows of any type as the core wants them."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    if isinstance(forest, _core.GaussianForest):
        forest.learn(X, np.ascontiguousarray(y, dtype=np.float64), n_threads)
        return forest
    y = np.ascontiguousarray(y, dtype=np.int32)
    n_classes = max(forest.n_classes, int(y.max()) + 1) if n_classes is None else n_classes
    forest.learn(X, y, n_classes, n_threads)
    return forest


@dataclass
class TreeStatistics:
    """One entry per tree."""

    root_time: np.ndarray
    root_dimension: np.ndarray  # -1: the root is a leaf
    root_location: np.ndarray
    n_nodes: np.ndarray
    n_leaves: np.ndarray
    mean_depth: np.ndarray  # over the points
    shape: np.ndarray  # equal where the same points are cut apart in the same dimensions


def tree_statistics(forest, point_ids=None):
    """Summaries of all trees. `point_ids[i]` names the i-th point learned; up to 62 points."""
    trees = forest.get_state()["trees"]
    n_points = len(trees[0]["next_point"])
    point_ids = np.arange(n_points) if point_ids is None else np.asarray(point_ids)
    sizes = np.array([len(tree["left"]) for tree in trees])
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    joined = {
        name: np.concatenate([tree[name] for tree in trees])
        for name in ("left", "right", "split_dimension", "split_location", "split_time")
    }
    tree_of = np.repeat(np.arange(len(trees)), sizes)
    is_leaf = joined["split_dimension"] == -1
    root = offsets
    n_at_leaf = np.where(is_leaf, joined["right"], 0)

    # Level by level down, to get depths and an order with parents first.
    depth = np.zeros(len(tree_of), dtype=np.int64)
    levels, nodes = [], root
    while len(nodes):
        depth[nodes] = len(levels)
        levels.append(nodes)
        inner = nodes[~is_leaf[nodes]]
        base = offsets[tree_of[inner]]
        nodes = np.concatenate([base + joined["left"][inner], base + joined["right"][inner]])

    # Up again, with the set of points below each node as bits.
    bits = np.zeros(len(tree_of), dtype=np.int64)
    if n_points <= 62:
        next_point = np.stack([tree["next_point"] for tree in trees])
        leaves = np.flatnonzero(is_leaf)
        slot = joined["left"][leaves]
        while len(leaves):
            bits[leaves] |= np.int64(1) << point_ids[slot]
            slot = next_point[tree_of[leaves], slot]
            leaves, slot = leaves[slot >= 0], slot[slot >= 0]
        for nodes in reversed(levels):
            inner = nodes[~is_leaf[nodes]]
            base = offsets[tree_of[inner]]
            bits[inner] = bits[base + joined["left"][inner]] | bits[base + joined["right"][inner]]
    signature = _scramble(
        bits.astype(np.uint64) * np.uint64(1009) + (joined["split_dimension"] + 2).astype(np.uint64)
    )
    shape = np.zeros(len(trees), dtype=np.uint64)
    np.add.at(shape, tree_of, signature)

    return TreeStatistics(
        root_time=joined["split_time"][root],
        root_dimension=joined["split_dimension"][root],
        root_location=joined["split_location"][root],
        n_nodes=sizes,
        n_leaves=np.bincount(tree_of, weights=is_leaf, minlength=len(trees)),
        mean_depth=np.bincount(tree_of, weights=depth * n_at_leaf, minlength=len(trees)) / n_points,
        shape=shape,
    )


def _scramble(x):
    """A hash of 64 bits (the finaliser of MurmurHash3)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))
