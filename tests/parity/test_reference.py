"""The core against the plain reference in the paper's letters (`tests/reference/mondrian.py`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier
from reference.mondrian import MondrianTree as ReferenceTree
from support.core import core_forest, learn, tree_statistics
from support.examples import thorough_but
from support.statistics import check_mean, check_same_distribution, check_same_mean

# Parameters, and the number of classes of the data.
SETTINGS = {
    "paper": ({"feature_weights": None}, 3),
    "range": ({"feature_weights": "range"}, 3),
    "learned": ({"feature_weights": "learned", "leaf_discount": "learned"}, 3),
    "leaf discount": ({"leaf_discount": 0.4, "feature_weights": None}, 3),
    "leaf discount, finite lifetime": ({"leaf_discount": 0.4, "lifetime": 3.0}, 3),
    "weights": ({"feature_weights": [1.0, 0.0, 2.5, 0.3]}, 3),
    "finite lifetime": ({"lifetime": 3.0, "feature_weights": None}, 3),
    "short lifetime": ({"lifetime": 0.2, "feature_weights": None}, 3),
    "min_samples_split": ({"min_samples_split": 12}, 3),
    "lifetime and min_samples_split": ({"lifetime": 2.0, "min_samples_split": 6}, 3),
    "no discount": ({"discount": 0.0}, 3),
    "huge discount": ({"discount": 1e6}, 3),
    "many classes": ({"lifetime": 4.0}, 90),
}
PAPER = {"feature_weights": "range", "leaf_discount": 0.0}


def make_data(n_classes):
    """Blobs with some duplicates, with equal and with different labels."""
    rng = np.random.default_rng(5)
    n = 160
    y = rng.integers(n_classes, size=n)
    centres = rng.normal(size=(n_classes, 4))
    X = (centres[y] + 0.7 * rng.normal(size=(n, 4))).astype(np.float32)
    X[150:155] = X[:5]
    X[155:] = X[:5]
    y[155:] = (y[:5] + 1) % n_classes
    return X, y


@pytest.fixture(params=SETTINGS)
def grown(request):
    """A forest learned in batches of several sizes, its data, and queries at all distances."""
    parameters, n_classes = SETTINGS[request.param]
    X, y = make_data(n_classes)
    forest = MondrianForestClassifier(n_estimators=5, random_state=3, **{**PAPER, **parameters})
    for start, stop in ((0, 40), (40, 41), (41, 42), (42, 100), (100, 160)):
        part = slice(start, stop)
        forest.partial_fit(X[part], y[part], np.arange(n_classes))
    forest._forest.check_invariants()
    rng = np.random.default_rng(6)
    queries = np.vstack(
        [X[::8], X[::8] + 0.1 * rng.normal(size=X[::8].shape), 9 * rng.normal(size=(10, 4))]
    )
    return forest, X, y, queries.astype(np.float32)


def reference_trees(forest):
    return [
        ReferenceTree.from_arrays(
            tree,
            forest.lifetime,
            forest.discount_rate_,
            forest.feature_weights_,
            forest.leaf_discount_,
        )
        for tree in forest.trees_
    ]


def test_predictions_equal_the_reference_on_the_same_trees(grown):
    forest, _, _, queries = grown
    expected = np.mean(
        [[tree.predict(x) for x in queries.astype(float)] for tree in reference_trees(forest)],
        axis=0,
    )
    assert np.abs(forest.predict_proba(queries) - expected).max() < 1e-10
    assert np.ptp(expected, axis=0).max() > 0.05, (
        "all queries have the same prediction: nothing compared"
    )


def test_counts_and_label_sets_equal_a_recount(grown):
    forest, X, y, _ = grown
    n_classes = len(forest.classes_)
    leaves = forest.apply(X)
    for t, tree in enumerate(forest.trees_):
        counts = np.zeros((tree.n_nodes, n_classes))
        np.add.at(counts, (leaves[:, t], y), 1)
        assert (counts[tree.is_leaf].sum(axis=1) > 0).all()
        for j in np.argsort(-tree.depth):
            if not tree.is_leaf[j]:
                below = np.minimum(counts[[tree.left[j], tree.right[j]]], 1)
                counts[j] = below.sum(axis=0)
        assert np.array_equal(tree.count, counts)
        assert np.array_equal(tree.labels, counts > 0)


def test_boxes_equal_a_recount(grown):
    forest, X, _, _ = grown
    leaves = forest.apply(X)
    for t, tree in enumerate(forest.trees_):
        for n, x in enumerate(X):
            j = leaves[n, t]
            while j >= 0:
                assert (tree.lower[j] <= x).all() and (x <= tree.upper[j]).all()
                j = tree.parent[j]
        for j in np.flatnonzero(tree.is_leaf):
            points = X[leaves[:, t] == j]
            assert np.array_equal(points.min(axis=0), tree.lower[j])
            assert np.array_equal(points.max(axis=0), tree.upper[j])


@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
@pytest.mark.parametrize(
    "setting",
    thorough_but(
        "paper",
        "leaf discount, finite lifetime",
        of=[
            "paper",
            "finite lifetime",
            "weights",
            "min_samples_split",
            "leaf discount, finite lifetime",
        ],
    ),
)
@pytest.mark.slow
def test_prediction_is_the_average_over_extensions(setting, n_trees):
    """Algorithm 8 integrates over all extensions of the tree by the query.

    The reference samples such extensions one by one. The standard error of the mean over 3,000
    of them is below 0.01, over 50,000 below 0.0025: 3,000 find an error of 0.1, 50,000 one of
    0.03.
    """
    parameters, n_classes = SETTINGS[setting]
    X, y = make_data(n_classes)
    forest = MondrianForestClassifier(1, random_state=8, **{**PAPER, **parameters}).fit(X, y)
    (tree,) = reference_trees(forest)
    tree.rng = np.random.default_rng(9)
    queries = (np.array([X[20], X[20] + 0.3, X[30] - 0.1, X[0] + [0, 2, 0, 0]])).astype(np.float32)
    predicted = forest.predict_proba(queries)
    varied = False
    for q, x in enumerate(queries.astype(float)):
        sampled = np.array([tree.predict_by_extending(x) for _ in range(n_trees)])
        varied |= sampled.std(axis=0).max() > 0.01
        for k in range(n_classes):
            check_mean(f"query {q}, class {k}", sampled[:, k], predicted[q, k], bounded=True)
    assert varied, "no query lies outside its leaf: nothing was averaged"


@pytest.mark.statistical
@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
@pytest.mark.parametrize("online", [False, True], ids=["batch", "one by one"])
@pytest.mark.parametrize("pausing", [False, True], ids=["no pausing", "pausing"])
@pytest.mark.parametrize("lifetime", thorough_but(1.0, of=[math.inf, 1.0]))
def test_the_reference_and_the_core_draw_from_one_distribution(online, pausing, lifetime):
    """Trees of the reference, sampled by its own random numbers, against trees of the core."""
    X = np.random.default_rng(1).random((7, 2)).astype(np.float32)
    y = np.arange(7) % 2 if pausing else np.arange(7)
    weights = np.array([1.0, 2.0])
    n, n_classes, gamma = (
        1500,
        int(y.max()) + 1,
        10.0 * (weights * np.ptp(X.astype(float), axis=0)).sum(),
    )
    query = np.array([[0.5, 1.1]], dtype=np.float32)

    rng = np.random.default_rng(2)
    times, sizes, predictions = [], [], []
    for _ in range(n):
        tree = ReferenceTree(lifetime, n_classes, gamma, weights, rng=rng)
        if online:
            for x, label in zip(X, y):
                tree.extend_mondrian_tree(x, label)
        else:
            tree.sample_mondrian_tree(X, y)
        times.append(tree.root.tau)
        sizes.append(count_nodes(tree.root))
        predictions.append(tree.predict(query[0]))

    forest = learn(core_forest(n, 2, lifetime=lifetime, weights=weights, seed=3), X, y, n_classes)
    core = tree_statistics(forest)
    check_same_distribution("root split time", times, core.root_time)
    check_same_distribution("number of nodes", sizes, core.n_nodes)
    mean = np.array(
        [
            learn(
                core_forest(30, 2, lifetime=lifetime, weights=weights, seed=100 + i),
                X,
                y,
                n_classes,
            ).predict(query)[0]
            for i in range(n // 30)
        ]
    )
    for k in range(n_classes):
        check_same_mean(f"class {k}", np.array(predictions)[:, k], mean[:, k])


def count_nodes(node):
    return 1 if node.is_leaf else 1 + count_nodes(node.left) + count_nodes(node.right)
