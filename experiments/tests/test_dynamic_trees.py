"""Dynamic trees equal a plain version, and results computed by hand."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.competitors import dynamic_trees
from experiments.competitors.dynamic_trees import GROW, NONE, PRUNE, STAY, DynamicTrees
from experiments.tests.reference.dynamic_trees import Cloud as ReferenceCloud

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.xdist_group("compiled competitors"),  # compiled once
]

FOLDER = os.environ.get("ONLINEFOREST_DATA")
# Under new seeds, each comparison of a mean fails by chance with p_fail = 6e-7, the probability of
# a larger normal deviation. The seeds are fixed, so a test that passes once passes always.
STANDARD_ERRORS = 5


# ---- against the plain version -----------------------------------------------------------------


def tree_of(cloud, node):
    """A compiled tree as nested tuples: of splits, and of sorted points."""
    fields = cloud.nodes[node]
    if fields["left"] != NONE:
        below = (tree_of(cloud, fields["left"]), tree_of(cloud, fields["right"]))
        return (int(fields["split_dimension"]), float(fields["split_location"]), *below)
    points, cell = [], fields["first_cell"]
    while cell != NONE:
        points.append(int(cloud.cells[cell]["point"]))
        cell = cloud.cells[cell]["next"]
    return sorted(points)


def reference_tree_of(node):
    if node.is_leaf:
        return sorted(node.points)
    below = (reference_tree_of(node.left), reference_tree_of(node.right))
    return (node.split_dimension, node.split_location, *below)


def gaussian(rng, n):
    y = rng.integers(3, size=n)
    return y[:, np.newaxis] + 0.8 * rng.normal(size=(n, 4)), y


def repeated_values(rng, n):
    X = rng.integers(3, size=(n, 3)).astype(float)
    return X, ((X[:, 0] > 1) ^ (rng.random(n) < 0.1)).astype(int)


def constant_features(rng, n):
    X, y = gaussian(rng, n)
    X[:, 1:] = 0.5
    return X, y


def noise(rng, n):
    """Splits that further points do not support, so they are pruned."""
    return rng.random((n, 2)), rng.integers(2, size=n)


def drift(rng, n):
    """Labels that stop depending on x: deep trees, then prunes of large subtrees."""
    X = rng.random((n, 2))
    y = (X[:, 0] > 0.5).astype(int)
    y[n // 3 :] = rng.integers(2, size=n - n // 3)
    return X, y


def one_class(rng, n):
    return rng.random((n, 2)), np.zeros(n, dtype=int)


def equal_points(rng, n):
    return np.ones((n, 2)), rng.integers(2, size=n)


# Data, the number of classes (some never seen), particles, alpha and beta. A beta of 0 wants trees
# of any depth.
CASES = {
    "gaussian": (gaussian, 3, 12, 0.95, 2.0),
    "deep": (gaussian, 3, 8, 0.99, 0.0),
    "one particle": (gaussian, 3, 1, 0.95, 2.0),
    "classes not seen": (gaussian, 30, 6, 0.95, 2.0),
    "repeated values": (repeated_values, 2, 10, 0.95, 2.0),
    "constant features": (constant_features, 3, 10, 0.95, 2.0),
    "noise": (noise, 2, 12, 0.95, 0.5),
    "drift": (drift, 2, 12, 0.95, 1.0),
    "one class": (one_class, 1, 5, 0.95, 2.0),
    "one of two classes": (one_class, 2, 5, 0.95, 2.0),
    "equal points": (equal_points, 2, 5, 0.95, 2.0),
}
WITH_ALL_MOVES = {"gaussian", "deep", "repeated values", "noise", "drift"}


def learn_both(case, n=150, n_repeats=1):
    """A compiled and a plain version after the same mini-batches."""
    make, n_classes, n_particles, alpha, beta = CASES[case]
    data_rng = np.random.default_rng(7)
    X, y = make(data_rng, n)
    prior = {"alpha": alpha, "beta": beta}
    trees = DynamicTrees(n_particles, n_repeats=n_repeats, seed=3, **prior)
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(3).spawn(n_repeats)]
    references = [ReferenceCloud(n_particles, n_classes, rng, **prior) for rng in rngs]
    for batch in np.split(np.arange(n), [1, 5, 70, 100]):
        trees.partial_fit(X[batch], y[batch], classes=np.arange(n_classes))
        for repeat, (reference, rng) in enumerate(zip(references, rngs)):
            for i in batch if repeat == 0 else rng.permutation(batch):
                reference.learn(int(i), X[i], int(y[i]))
    return trees, references, np.concatenate([X[:20], data_rng.normal(size=(20, X.shape[1]))])


@pytest.mark.parametrize("case", CASES)
def test_grows_the_same_trees_as_the_plain_version(case):
    trees, (reference,), X_test = learn_both(case)
    (cloud,) = trees._clouds
    for root, expected in zip(cloud.roots, reference.particles, strict=True):
        assert tree_of(cloud, root) == reference_tree_of(expected)
        log_posterior = reference.log_posterior(expected, 0)
        assert cloud.nodes[root]["log_posterior"] == pytest.approx(log_posterior, abs=1e-12)
    np.testing.assert_allclose(
        trees.predict_proba(X_test), reference.predict_proba(X_test), rtol=0, atol=1e-12
    )
    if case in WITH_ALL_MOVES:  # otherwise the case misses its purpose
        assert min(reference.moves.values()) >= 10, reference.moves


def test_each_repeat_is_an_independent_cloud_with_its_own_order():
    trees, references, X_test = learn_both("gaussian", n=90, n_repeats=3)
    expected = np.mean([reference.predict_proba(X_test) for reference in references], axis=0)
    np.testing.assert_allclose(trees.predict_proba(X_test), expected, rtol=0, atol=1e-12)
    first, second, third = trees._clouds
    assert tree_of(first, first.roots[0]) != tree_of(second, second.roots[0])
    assert tree_of(second, second.roots[0]) != tree_of(third, third.roots[0])


@pytest.mark.parametrize("case", CASES)
def test_the_pool_holds_exactly_the_nodes_of_the_particles(case):
    trees, _, _ = learn_both(case)
    (cloud,) = trees._clouds
    references = defaultdict(int)
    stack = []

    def refer_to(node):
        references[node] += 1
        if references[node] == 1:
            stack.append(node)

    for root in cloud.roots:
        refer_to(root)
    n_cells = 0
    while stack:
        node = stack.pop()
        fields = cloud.nodes[node]
        counts = cloud.counts[node]
        assert counts.sum() == fields["n_points"]
        if fields["left"] == NONE:
            points = tree_of(cloud, node)
            n_cells += len(points)
            labels = trees._data.labels[points]
            np.testing.assert_array_equal(counts, np.bincount(labels, minlength=counts.size))
        else:
            np.testing.assert_array_equal(
                counts, cloud.counts[fields["left"]] + cloud.counts[fields["right"]]
            )
            refer_to(fields["left"])
            refer_to(fields["right"])
    assert {node: cloud.nodes[node]["references"] for node in references} == references
    state = cloud.state[0]
    assert state["n_live_nodes"] == len(references)
    free_nodes = list_from(state["free_node"], cloud.nodes["left"])
    assert sorted([*references, *free_nodes]) == list(range(state["n_nodes"]))
    assert n_cells + len(list_from(state["free_cell"], cloud.cells["next"])) == state["n_cells"]


def list_from(first, following):
    found = []
    while first != NONE:
        found.append(first)
        first = following[first]
    return found


# ---- by hand -----------------------------------------------------------------------------------


def test_move_probabilities_of_two_points():
    # Labels 0 and 1 at 0 and 1, so every proposed split separates them. In one leaf:
    # (1 - 0.95) Γ(3/2)² / (Γ(1/2)² Γ(3)) = 0.05 / 8; in two: 0.95 ((1 - 0.95 / 4) / 2)².
    one_leaf, two_leaves = 0.05 / 8, 0.95 * (0.7625 / 2) ** 2
    p = two_leaves / (one_leaf + two_leaves)
    n = 20_000
    trees = DynamicTrees(n, n_repeats=1).partial_fit([[0.0], [1.0]], [0, 1])
    (cloud,) = trees._clouds
    is_split = cloud.nodes["left"][cloud.roots] != NONE
    error = math.sqrt(p * (1 - p) / n)
    assert abs(is_split.mean() - p) <= STANDARD_ERRORS * error, (n, is_split.mean(), error, p)
    split, unsplit = (np.flatnonzero(choice)[0] for choice in (is_split, ~is_split))
    log_posteriors = cloud.nodes["log_posterior"][cloud.roots[[split, unsplit]]]
    np.testing.assert_allclose(np.exp(log_posteriors), [two_leaves, one_leaf], rtol=1e-13)


def test_moves_are_chosen_by_their_probabilities():
    weights = np.array([2.0, 3.0, 5.0])
    for scale in (1e-300, 1.0, 1e300):  # the exponentials themselves would not all fit
        logs = np.log(weights) + 3 * math.log(scale)
        for uniform, move in ((0.199, STAY), (0.201, PRUNE), (0.499, PRUNE), (0.501, GROW)):
            assert dynamic_trees.choose_move(*logs, uniform) == move
    almost_one = 1 - 2**-53
    assert dynamic_trees.choose_move(0.0, -math.inf, 0.0, 0.5) == GROW
    assert dynamic_trees.choose_move(0.0, 0.0, -math.inf, almost_one) == PRUNE
    assert dynamic_trees.choose_move(0.0, -math.inf, -math.inf, almost_one) == STAY


def test_split_is_uniform_over_features_and_range():
    # Three points that agree in feature 1; feature 0 spans [0, 4] and feature 2 spans [-1, 1].
    X = np.array([[0.0, 5.0, -1.0], [3.0, 5.0, 1.0], [4.0, 5.0, 0.0]])
    trees = DynamicTrees(1, n_repeats=1, alpha=1e-12).partial_fit(X, [0, 1, 1])
    (cloud,) = trees._clouds
    rng = np.random.default_rng(2)
    counts = np.zeros(2, np.int32)
    n = 4_000
    draws = []
    for _ in range(n):
        draw = dynamic_trees.propose_split(cloud, cloud.roots[0], trees._data, rng, counts)
        dimension, location, n_left = draw
        assert n_left == (0 if dimension == 1 else (X[:, dimension] <= location).sum())
        if n_left:
            labels = np.array([0, 1, 1])[X[:, dimension] <= location]
            np.testing.assert_array_equal(counts, np.bincount(labels, minlength=2))
        draws.append(draw)
    dimensions, locations, _ = np.array(draws).T
    for dimension, lower, upper in ((0, 0, 4), (2, -1, 1)):
        share = (dimensions == dimension).mean()
        assert abs(share - 1 / 3) <= STANDARD_ERRORS * math.sqrt(2 / 9 / n), (dimension, share)
        seen = locations[dimensions == dimension]
        assert lower <= seen.min() and seen.max() < upper
        error = (upper - lower) / math.sqrt(12 * seen.size)
        assert abs(seen.mean() - (lower + upper) / 2) <= STANDARD_ERRORS * error, seen.mean()


# ---- resampling --------------------------------------------------------------------------------


def test_residual_copies_have_the_right_means():
    weights = np.array([0.04, 0.31, 0.25, 0.0, 0.4])  # times 5: 0.2, 1.55, 1.25, 0, 2
    expected = 5 * weights
    rng = np.random.default_rng(1)
    n = 4_000
    copies = np.array([dynamic_trees.residual_copies(3 * weights, rng) for _ in range(n)])
    assert (copies.sum(axis=1) == 5).all()
    assert (copies >= np.floor(expected + 1e-9)).all()
    assert (copies[:, 3] == 0).all()
    assert (copies[:, 4] == 2).all()
    # One copy is left over, and drawn by the residuals 0.2, 0.55, 0.25.
    residual = expected[:3] - np.floor(expected[:3])
    error = np.sqrt(residual * (1 - residual) / n)
    seen = copies[:, :3].mean(axis=0)
    assert (abs(seen - expected[:3]) <= STANDARD_ERRORS * error).all(), (n, seen, error)


def test_residual_copies_of_whole_numbers_are_exact():
    weights = np.full(4, 0.25)
    weights[:2] += (0.125, -0.125)  # times 4: 1.5, 0.5, 1, 1; the one left over goes to 0 or 1
    rng = np.random.default_rng(4)
    copies = np.array([dynamic_trees.residual_copies(weights, rng) for _ in range(2000)])
    assert {tuple(row) for row in copies} == {(2, 0, 1, 1), (1, 1, 1, 1)}


# ---- the exact distribution -------------------------------------------------------------------


class AllParticles:
    """The exact distribution that a cloud approximates, for one feature and finitely many points.

    Only the gap between neighbouring points matters of a split, so there are finitely many trees:
    a leaf is a frozenset of points, a split is a triple (gap, left, right), where points up to
    number gap in the order of x go left.
    """

    def __init__(self, x, y, n_classes, alpha=0.95, beta=2.0):
        assert sorted(x) == list(x)
        self.x, self.y, self.n_classes, self.alpha, self.beta = x, y, n_classes, alpha, beta
        self.law = {frozenset(): 1.0}

    def leaf_of(self, tree, i):
        while isinstance(tree, tuple):
            tree = tree[1] if i <= tree[0] else tree[2]
        return tree

    def predictive(self, tree, i, label):
        leaf = self.leaf_of(tree, i)
        return (sum(self.y[j] == label for j in leaf) + 1 / self.n_classes) / (len(leaf) + 1)

    def posterior(self, tree, depth):
        p = self.alpha * (1 + depth) ** -self.beta
        if isinstance(tree, tuple):
            return p * self.posterior(tree[1], depth + 1) * self.posterior(tree[2], depth + 1)
        likelihood = 1.0  # multiplied by that of one label after the other
        for seen, label in enumerate(ys := [self.y[j] for j in tree]):
            likelihood *= (ys[:seen].count(label) + 1 / self.n_classes) / (seen + 1)
        return (1 - p) * likelihood

    def with_point(self, tree, i):
        if not isinstance(tree, tuple):
            return tree | {i}
        gap, left, right = tree
        if i <= gap:
            return (gap, self.with_point(left, i), right)
        return (gap, left, self.with_point(right, i))

    def proposals(self, leaf):
        """The splits of a leaf (or None, which is no split) with their probabilities."""
        if len(leaf) < 2:
            return [(None, 1.0)]
        first, last = min(leaf), max(leaf)
        return [
            (
                (
                    gap,
                    frozenset(j for j in leaf if j <= gap),
                    frozenset(j for j in leaf if j > gap),
                ),
                (self.x[gap + 1] - self.x[gap]) / (self.x[last] - self.x[first]),
            )
            for gap in range(first, last)
        ]

    def moves(self, tree, i, depth=0):
        """Trees with their probabilities after the move at the leaf of point i."""
        if not isinstance(tree, tuple):
            for split, p in self.proposals(tree):
                trees = [tree] if split is None else [tree, split]
                yield from self.choice(trees, depth, p)
            return
        gap, left, right = tree

        def with_child(child):
            return (gap, child, right) if i <= gap else (gap, left, child)

        child = left if i <= gap else right
        if isinstance(child, tuple):
            for moved, p in self.moves(child, i, depth + 1):
                yield with_child(moved), p
            return
        for split, p in self.proposals(child):
            trees = [tree, self.points(tree)]
            if split is not None:
                trees.append(with_child(split))
            yield from self.choice(trees, depth, p)

    def choice(self, trees, depth, p):
        posteriors = [self.posterior(tree, depth) for tree in trees]
        for tree, posterior in zip(trees, posteriors):
            yield tree, p * posterior / sum(posteriors)

    def points(self, tree):
        return self.points(tree[1]) | self.points(tree[2]) if isinstance(tree, tuple) else tree

    def learn(self, i):
        reweighted = {t: p * self.predictive(t, i, self.y[i]) for t, p in self.law.items()}
        total = sum(reweighted.values())
        self.law = defaultdict(float)
        for tree, p in reweighted.items():
            for moved, q in self.moves(self.with_point(tree, i), i):
                self.law[moved] += p / total * q

    def predict_proba(self, i):
        return [
            sum(p * self.predictive(tree, i, label) for tree, p in self.law.items())
            for label in range(self.n_classes)
        ]


@pytest.mark.parametrize("order", [(0, 3, 1, 4, 2), (4, 0, 2, 1, 3), (1, 2, 0, 3, 4)], ids=str)
def test_many_particles_follow_the_exact_distribution(order):
    x, y = [0.0, 0.1, 0.5, 0.6, 1.0], [0, 0, 1, 0, 1]
    exact = AllParticles(x, y, 2)
    n = 10_000
    trees = DynamicTrees(n, n_repeats=1, seed=11)
    for i in order:
        exact.learn(i)
        trees.partial_fit([[x[i]]], [y[i]], classes=[0, 1])
    assert sum(exact.law.values()) == pytest.approx(1)
    (cloud,) = trees._clouds
    seen = defaultdict(int)
    for root, times in zip(*np.unique(cloud.roots, return_counts=True)):
        seen[by_gaps(tree_of(cloud, root), x, order)] += times
    assert set(seen) <= set(exact.law)
    # Five steps of resampling and moves add at most as many variances of a multinomial draw.
    for tree, p in exact.law.items():
        error = math.sqrt(5 * p * (1 - p) / n)
        assert abs(seen[tree] / n - p) <= STANDARD_ERRORS * error + 5 / n, (tree, seen[tree] / n, p)
    expected = [exact.predict_proba(i) for i in range(5)]
    seen_proba = trees.predict_proba(np.transpose([x]))
    assert np.abs(seen_proba - expected).max() <= STANDARD_ERRORS * math.sqrt(5 / 4 / n)


def by_gaps(tree, x, order):
    """A nested tuple of locations and learned places as one of gaps and points."""
    if isinstance(tree, list):
        return frozenset(order[place] for place in tree)
    _, location, left, right = tree
    gap = int(np.searchsorted(x, location, side="right")) - 1
    return (gap, by_gaps(left, x, order), by_gaps(right, x, order))


# ---- the estimator -----------------------------------------------------------------------------


def test_no_points_predict_the_prior():
    trees = DynamicTrees(3).partial_fit(np.empty((0, 2)), [], classes=[0, 1, 2, 3])
    np.testing.assert_array_equal(trees.predict_proba([[0.0, 0.0]]), np.full((1, 4), 0.25))


def test_huge_and_tiny_values_are_learned():
    X = np.array([-1e308, 1e308, -1e308, 5e-324, 0.0, 5e-324] * 10)[:, np.newaxis]
    trees = DynamicTrees(10).partial_fit(X, [0, 1, 0, 1, 0, 1] * 10)
    np.testing.assert_allclose(trees.predict_proba(X).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [{"n_particles": 0}, {"n_repeats": 0}, {"alpha": 0.0}, {"alpha": 1.0}, {"beta": -1.0}],
    ids=str,
)
def test_bad_parameters_are_refused(parameters):
    [name] = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of DynamicTrees must"):
        DynamicTrees(**parameters)


# ---- accuracy ----------------------------------------------------------------------------------


def accuracy(n_particles, X, y, X_test, y_test):
    trees = DynamicTrees(n_particles, seed=0)
    for batch in np.array_split(np.random.default_rng(0).permutation(len(X)), 10):
        trees.partial_fit(X[batch], y[batch], classes=np.unique(y))
    return (trees.classes_[trees.predict_proba(X_test).argmax(axis=1)] == y_test).mean()


def test_accuracy_on_digits():
    X, y = load_digits(return_X_y=True)
    # One batch tree of scikit-learn reaches 0.80 here.
    assert accuracy(30, X[:1200], y[:1200], X[1200:], y[1200:]) > 0.7


@pytest.mark.skipif(not FOLDER, reason="ONLINEFOREST_DATA names no folder of data sets")
def test_accuracy_on_dna():
    with np.load(Path(FOLDER) / "dna.npz") as data:
        X, y, X_test, y_test = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    assert X.min() == 0 and X.max() == 1
    assert accuracy(100, X, y, X_test, y_test) > 0.88
