"""Core forests for tests: built with default options, compared, summarised by statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlineforest import _core
from support.statistics import check_same_distribution, check_same_frequencies, check_same_mean


def core_forest(n_trees, n_features, **options):
    """An empty forest over labels. `weights`: None, "range" or an array."""
    weights = options.pop("weights", None)
    rule = "unit" if weights is None else weights if isinstance(weights, str) else "fixed"
    return _core.MondrianForest(
        n_trees,
        n_features,
        weight_rule=rule,
        weights=np.asarray(weights, dtype=float) if rule == "fixed" else None,
        **{"lifetime": math.inf, "discount": 10.0, "min_samples_split": 2, "seed": 0, **options},
    )


def learn(forest, X, y, n_classes=None, n_threads=2):
    """Learn rows and labels of any type, converted to the types of the core."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    y = np.ascontiguousarray(y, dtype=np.int32)
    n_classes = max(forest.n_classes, int(y.max()) + 1) if n_classes is None else n_classes
    forest.learn(X, y, n_classes, n_threads)
    return forest


def forget(forest, serials, n_threads=1):
    """Forget the points with these serials in one call."""
    forest.forget(np.asarray(serials, dtype=np.int64), n_threads)


def wide(X, n_features=130):
    """Rows with constant features added: equal trees, but sampled from bounds, not from the box."""
    return np.hstack([X, np.full((len(X), n_features - X.shape[1]), 0.5)])


def assert_same_answer(first, second):
    """Equal to the bit: arrays, or tuples such as known labels and their probabilities."""
    assert isinstance(first, tuple) == isinstance(second, tuple)
    if not isinstance(first, tuple):
        first, second = (first,), (second,)
    for one, other in zip(map(np.asarray, first), map(np.asarray, second), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()  # NaN equals itself


def by_code(answer, hashes):
    """The probabilities of all labels, whose hashes are in the order of codes; 0 if unknown.

    `answer`: the hashes of the known labels, and probabilities with a column for each of them.
    """
    known, probabilities = answer
    codes = np.flatnonzero(np.isin(hashes, known))
    assert known.dtype == np.uint64 and known.tolist() == hashes[codes].tolist()
    assert probabilities.shape[-1] == len(known)
    found = np.zeros((*probabilities.shape[:-1], len(hashes)))
    found[..., codes] = probabilities
    return found


@dataclass
class TreeStatistics:
    """One entry per tree."""

    root_time: np.ndarray
    root_dimension: np.ndarray  # -1: the root is a leaf
    root_location: np.ndarray
    n_nodes: np.ndarray
    n_leaves: np.ndarray
    mean_depth: np.ndarray  # over the points
    mean_time: np.ndarray  # over the cuts; -1 if there are none
    shape: np.ndarray  # equal if equal sets of points are cut in equal dimensions


def tree_statistics(forest, point_ids=None):
    """Summaries of all trees. `point_ids[i]`, below 62, names the i-th arrival that is stored: the
    i-th learned if none was forgotten. A point has the least name of its arrivals."""
    state = forest.get_state()
    arrivals = np.arange(len(state["serials"]))
    names = np.full(len(state["values"]), len(arrivals) if point_ids is None else 62)
    ids = arrivals if point_ids is None else point_ids
    np.minimum.at(names, state.get("sample_of", arrivals), ids)
    return statistics_of(trees_of(forest), names)


def trees_of(forest):
    """The arrays of each tree in the state of a core forest, by name."""
    state = forest.get_state()
    rng = state["trees.rng"].reshape(-1, 4)
    trees = [{"rng": words} for words in rng]
    for name in state:
        if name.startswith("trees.") and f"{name}.sizes" in state:
            ends = np.cumsum(state[f"{name}.sizes"]).tolist()
            for tree, begin, end in zip(trees, [0, *ends], ends):
                tree[name.removeprefix("trees.")] = state[name][begin:end]
    return trees


def statistics_of(trees, point_ids=None):
    """Summaries of trees, given as arrays of a state, that hold equally many points."""
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

    # Downwards by level: depths, and an order with parents first.
    depth = np.zeros(len(tree_of), dtype=np.int64)
    levels, nodes = [], root
    while len(nodes):
        depth[nodes] = len(levels)
        levels.append(nodes)
        inner = nodes[~is_leaf[nodes]]
        base = offsets[tree_of[inner]]
        nodes = np.concatenate([base + joined["left"][inner], base + joined["right"][inner]])

    # Upwards: the set of points below each node, as bits.
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

    n_cuts = np.bincount(tree_of, weights=~is_leaf, minlength=len(trees))
    times = np.where(is_leaf, 0.0, joined["split_time"])
    total_time = np.bincount(tree_of, weights=times, minlength=len(trees))

    return TreeStatistics(
        root_time=joined["split_time"][root],
        root_dimension=joined["split_dimension"][root],
        root_location=joined["split_location"][root],
        n_nodes=sizes,
        n_leaves=np.bincount(tree_of, weights=is_leaf, minlength=len(trees)),
        mean_depth=np.bincount(tree_of, weights=depth * n_at_leaf, minlength=len(trees)) / n_points,
        mean_time=np.where(n_cuts > 0, total_time / np.maximum(n_cuts, 1), -1.0),
        shape=shape,
    )


def check_same_trees(first, second, X):
    """Check that two equally large sets of trees on the points X have equal distributions."""
    check_same_distribution("root split time", first.root_time, second.root_time)
    check_same_frequencies("root dimension", first.root_dimension, second.root_dimension)
    for d in np.flatnonzero(np.ptp(X, axis=0)):
        # The location within this dimension; 0 if another dimension was cut.
        a, b = (
            np.where(s.root_dimension == d, s.root_location - X[:, d].min() + 1, 0.0)
            for s in (first, second)
        )
        check_same_distribution(f"root location in dimension {d}", a, b)
    check_same_frequencies("number of nodes", first.n_nodes, second.n_nodes)
    check_same_distribution("mean depth", first.mean_depth, second.mean_depth)
    check_same_distribution("mean time", first.mean_time, second.mean_time)
    if len(X) <= 6:
        check_same_frequencies("shape of the tree", first.shape, second.shape)


def check_same_predictions(first, second):
    """Predictions of two sets of forests, forests x queries x numbers, have the same means."""
    assert first.shape[1:] == second.shape[1:]
    for q, k in np.ndindex(first.shape[1:]):
        check_same_mean(f"prediction {k} at query {q}", first[:, q, k], second[:, q, k])


def _scramble(x):
    """A hash of 64 bits (the finaliser of MurmurHash3)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))
