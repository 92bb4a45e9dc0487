"""The hashes of the order-free forest behave like independent uniform numbers.

They are fixed functions, so each check is one of `support.statistics` on inputs that are as regular
as those of a forest: consecutive trees, nodes, proposals, features and small whole numbers. Under
truly random words each check would fail with probability 1e-6; there are about 1,100 of them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from onlineforest._core import OrderFreeLabelForest
from reference import order_free_forest as reference
from support.statistics import check_distribution, check_frequencies

N_PROPOSALS = 16
SEEDS = [0, 1, 2**63, 0x123456789ABCDEF]
GOLDEN = np.uint64(reference.GOLDEN)


def mix(word):
    """`reference.mix` of an array; products of scalars would warn of their overflow."""
    word = np.atleast_1d(word)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def derive(seed, number):
    """`reference.derive` of arrays."""
    return mix(np.asarray(seed, np.uint64) + GOLDEN * np.asarray(number, np.uint64))


def tree_seeds(seed, n):
    """Seeds of the first trees of a forest."""
    return derive(np.full(n, reference.mix(seed ^ reference.GOLDEN), np.uint64), np.arange(n))


def x_hashes(seed, X):
    """`reference.hash_point` of the rows of a float32 array."""
    numbers = 16 + np.arange(X.shape[1])
    features = derive(np.full(len(numbers), reference.mix(seed), np.uint64), numbers)
    words = derive(features, X.view(np.uint32))
    return derive(np.uint64(seed) + words.sum(axis=1, dtype=np.uint64), 1)


def keys(seed, x_hash, label):
    """Keys of samples, given the hashes of their points and labels."""
    return derive(x_hash ^ mix(np.uint64(seed) ^ np.asarray(label, np.uint64)), 2)


def ranks(key, tree_seed):
    """Ranks of samples, one row per tree."""
    return mix(np.asarray(key, np.uint64) ^ derive(tree_seed, 1)[:, None])


def bins(word, n):
    """One of n equal parts of the range of words, by the highest 32 bits."""
    return ((word >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)


def check_uniform(name, values, n):
    check_frequencies(name, np.ravel(values), np.full(n, 1 / n))


def check_independent(name, first, second, n=16):
    """Two words are uniform and independent, by their highest and by their lowest bits."""
    check_uniform(name, bins(first, n) * n + bins(second, n), n * n)
    low = (first % np.uint64(n) * np.uint64(n) + second % np.uint64(n)).astype(np.int64)
    check_uniform(f"{name}, low bits", low, n * n)


def node_seeds(seed, n_trees):
    """Seeds of the nodes of the first levels, by level: trees x nodes, left children first."""
    levels = [derive(tree_seeds(seed, n_trees), 3)[:, None]]
    for _ in range(4):
        children = [derive(levels[-1], 1), derive(levels[-1], 2)]
        levels.append(np.stack(children, axis=2).reshape(n_trees, -1))
    return levels


@pytest.fixture(params=SEEDS, ids=hex)
def seed(request):
    return request.param


def test_the_functions_here_are_those_of_the_definition(seed):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, 50, dtype=np.uint64)
    assert mix(words).tolist() == [reference.mix(int(w)) for w in words]
    assert derive(words, 9).tolist() == [reference.derive(int(w), 9) for w in words]
    X = rng.normal(size=(20, 3)).astype(np.float32)
    expected = [reference.hash_point(reference.as_point(x), seed) for x in X]
    assert x_hashes(seed, X).tolist() == expected
    key = [reference.derive(h ^ reference.mix(seed ^ 7), 2) for h in expected]
    assert keys(seed, x_hashes(seed, X), 7).tolist() == key
    trees = [reference.derive(reference.mix(seed ^ reference.GOLDEN), m) for m in range(3)]
    rank = [[reference.mix(k ^ reference.derive(tree, 1)) for k in key] for tree in trees]
    assert ranks(key, tree_seeds(seed, 3)).tolist() == rank


def test_positions_and_features_are_uniform_at_all_nodes(seed, n_trees):
    nodes = np.concatenate([level.ravel() for level in node_seeds(seed, n_trees)])
    for q in (0, 1, 7, 15):
        proposal = derive(nodes, 8 + q)
        check_uniform(f"position of proposal {q}", bins(derive(proposal, 3), 256), 256)
        for n_features in (3, 784):
            for t in (0, 1, 31):
                feature = bins(derive(proposal, 16 + t), n_features)
                check_uniform(f"feature {t} of {n_features}, proposal {q}", feature, n_features)
        check_independent("feature and position", derive(proposal, 16), derive(proposal, 3))
        check_independent("both samples", derive(proposal, 1), derive(proposal, 2))
        check_independent("sample and position", derive(proposal, 1), derive(proposal, 3))
        check_independent("two drawn features", derive(proposal, 16), derive(proposal, 17))


def test_proposals_of_a_node_are_independent(seed, n_trees):
    root = node_seeds(seed, n_trees * 10)[0].ravel()
    for q, other in [(0, 1), (0, 2), (1, 3), (0, 15), (7, 8), (14, 15)]:
        one, two = derive(root, 8 + q), derive(root, 8 + other)
        for number in (1, 3, 16):
            check_independent(f"{number}, {q}, {other}", derive(one, number), derive(two, number))


def test_parents_children_and_siblings_are_independent(seed, n_trees):
    levels = node_seeds(seed, n_trees)
    parent, children = levels[-2].ravel(), levels[-1].reshape(-1, 2).T
    pairs = {
        "left child": (parent, children[0]),
        "right child": (parent, children[1]),
        "siblings": (children[0], children[1]),
        "grandchild": (levels[-3].ravel(), levels[-1][:, ::4].ravel()),
    }
    for name, (one, two) in pairs.items():
        for q, other in [(0, 0), (0, 1), (1, 0)]:
            for number in (1, 3):
                first, second = (
                    derive(derive(node, 8 + p), number) for node, p in ((one, q), (two, other))
                )
                check_independent(f"{name}, proposals {q} and {other}", first, second)


def test_trees_are_independent(seed, n_trees):
    root = node_seeds(seed, n_trees * 10)[0].ravel()
    position = derive(derive(root, 8), 3)
    for distance in (1, 2, 64):
        check_independent(f"distance {distance}", position[:-distance], position[distance:])


def test_forests_of_consecutive_seeds_are_independent(n_trees):
    seeds = range(10 * n_trees)
    root = np.array([reference.derive(reference.mix(s ^ reference.GOLDEN), 0) for s in seeds])
    position = derive(derive(derive(root.astype(np.uint64), 3), 8), 3)
    check_independent("consecutive seeds", position[:-1], position[1:])


POINTS = {
    "whole numbers": np.arange(4, dtype=np.float32)[:, None],
    "neighbouring floats": (1 + np.arange(4) * 2.0**-23).astype(np.float32)[:, None],
    "one feature of many": np.eye(4, 50, dtype=np.float32),
}


@pytest.mark.parametrize("points", POINTS)
def test_ranks_are_uniform_and_independent_between_samples_and_trees(points, seed, n_trees):
    """All orders of four samples are equally likely, in a tree and in the next."""
    key = keys(seed, x_hashes(seed, POINTS[points]), np.arange(4))
    rank = ranks(key, tree_seeds(seed, 20 * n_trees))
    for i, j in itertools.combinations(range(4), 2):
        check_independent(f"ranks of samples {i} and {j}", rank[:, i], rank[:, j])
    check_independent("one sample in two trees", rank[:-1, 0], rank[1:, 0])
    check_independent("rank and place", rank[:, 0], place_of(rank[:, 0]))
    order = np.argsort(rank, axis=1) @ [64, 16, 4, 1]
    number = np.searchsorted(np.unique(order), order)
    check_uniform("order", number, 24)
    check_uniform("order in two trees", number[:-1] * 24 + number[1:], 24 * 24)
    check_uniform("order of ranks and first of places", number * 4 + first_of(rank), 24 * 4)


def place_of(rank):
    return (rank >> np.uint64(32)) | (rank << np.uint64(32))


def first_of(rank):
    return np.argmin(place_of(rank), axis=1)


@pytest.mark.parametrize("points", POINTS)
def test_the_samples_of_a_pair_are_uniform(points, seed, n_trees):
    """All ordered pairs of four samples with different labels are equally likely."""
    trees = tree_seeds(seed, 20 * n_trees)
    place = place_of(ranks(keys(seed, x_hashes(seed, POINTS[points]), np.arange(4)), trees))
    pairs = {}
    for q in (0, 2):
        proposal = derive(derive(trees, 3), 8 + q)
        first = np.argmin(place - derive(proposal, 1)[:, None], axis=1)  # modulo 2**64
        after = place - derive(proposal, 2)[:, None]
        after[np.arange(len(trees)), first] = 2**64 - 1
        second = np.argmin(after, axis=1)
        check_uniform(f"first sample, proposal {q}", first, 4)
        pairs[q] = first * 3 + second - (second > first)
        check_uniform(f"pair, proposal {q}", pairs[q], 12)
    # The places on the circle are common to all proposals of a tree: pairs of one tree are
    # dependent, those of consecutive trees are not.
    check_uniform("pairs of two trees", pairs[0][:-1] * 12 + pairs[2][1:], 144)


def test_hashes_of_points_and_keys_are_uniform(seed):
    grid = np.stack(np.meshgrid(np.arange(400), np.arange(400)), axis=2).reshape(-1, 2)
    x_hash = x_hashes(seed, grid.astype(np.float32))
    assert len(np.unique(x_hash)) == len(grid)
    check_independent("neighbours", x_hash[:-1], x_hash[1:])
    check_independent("below", x_hash[:-400], x_hash[400:])
    one, two = keys(seed, x_hash, 1), keys(seed, x_hash, 2)
    check_independent("labels", one, two)
    check_independent("point and key", x_hash, one)
    check_independent("label and row swapped", keys(seed, x_hash[:1000], 7), x_hash[1000:2000], 4)


def test_membership_is_uniform_and_independent_of_ranks(seed, n_trees):
    """A point is in a tree with probability `max_samples`, whatever its rank and other trees."""
    x_hash = x_hashes(seed, np.arange(40, dtype=np.float32)[:, None])
    trees = tree_seeds(seed, n_trees)
    word = mix(x_hash ^ derive(trees, 2)[:, None])
    check_independent("membership and rank", word.ravel(), ranks(x_hash, trees).ravel())
    check_independent("consecutive trees", word[:-1].ravel(), word[1:].ravel())
    check_independent("consecutive points", word[:, :-1].ravel(), word[:, 1:].ravel())
    share = (word < np.uint64(int(0.6 * 2**64))).astype(int)
    check_frequencies("membership", share.ravel(), [0.4, 0.6])


def test_every_bit_of_a_value_changes_every_bit_of_a_key_half_the_time(seed):
    X = np.random.default_rng(1).normal(size=(20_000, 2)).astype(np.float32)
    before = keys(seed, x_hashes(seed, X), 5)
    for bit in range(32):
        changed = X.copy()
        changed[:, 1] = (X[:, 1].view(np.uint32) ^ np.uint32(1 << bit)).view(np.float32)
        flipped = before ^ keys(seed, x_hashes(seed, changed), 5)
        shares = np.unpackbits(flipped.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        # 2048 shares with standard error 1 / (2 sqrt(n)): 6.5 of them have probability 2e-7.
        assert np.abs(shares - 0.5).max() < 6.5 / (2 * len(X) ** 0.5), bit


def test_root_cuts_of_the_core_are_uniform_and_independent(seed, n_trees):
    """Two samples of two labels: all proposals are as good, so the first cuts.

    Its feature is any, its threshold anywhere between the samples, independent of other trees.
    """
    n_features = 12
    forest = OrderFreeLabelForest(n_trees, n_features, seed=seed)
    forest.set_labels(np.arange(2, dtype=np.uint64), np.zeros(2, dtype=np.uint8))
    X = np.zeros((2, n_features), dtype=np.float32)
    X[1] = 2.0**20
    forest.learn(X, np.array([0, 1], dtype=np.int32))
    roots = [forest.tree(i) for i in range(n_trees)]
    feature = np.array([tree["feature"][0] for tree in roots])
    position = np.array([tree["threshold"][0] for tree in roots], dtype=float) / 2.0**20
    check_uniform("feature", feature, n_features)
    check_distribution("position", position, lambda x: np.clip(x, 0, 1))
    part = (position * 4).astype(int)
    check_uniform("feature and position", feature * 4 + part, 4 * n_features)
    check_uniform("features of two trees", feature[:-1] * n_features + feature[1:], n_features**2)
    check_uniform("positions of two trees", part[:-1] * 4 + part[1:], 16)


def test_roots_and_children_of_the_core_are_independent(n_trees):
    """Three samples on a diagonal with three labels: the root and its child cut anywhere."""
    forest = OrderFreeLabelForest(n_trees, 5, seed=11)
    forest.set_labels(np.arange(3, dtype=np.uint64), np.zeros(3, dtype=np.uint8))
    forest.learn(np.arange(3, dtype=np.float32)[:, None].repeat(5, 1), np.arange(3, dtype=np.int32))
    features = []
    for i in range(n_trees):
        tree = forest.tree(i)
        features.append(tree["feature"][tree["feature"] >= 0].tolist())
    root, child = np.array(features).T
    check_uniform("features of the root and its child", root * 5 + child, 25)
