"""Feature weights: their effect on trees, and when they are refreshed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32).astype(float)


def forest_of(**parameters):
    return MondrianForestClassifier(n_estimators=10, random_state=0, **parameters)


def test_fit_with_range_equals_rescaling_to_the_unit_cube():
    low, high = X.min(axis=0), X.max(axis=0)
    by_range = forest_of(feature_weights="range").fit(X, Y)
    assert np.array_equal(by_range.feature_weights_, 1 / (high - low))
    assert by_range.discount_rate_ == pytest.approx(10 * 4)
    rescaled = forest_of(feature_weights=None).fit((X - low) / (high - low), Y)
    assert rescaled.discount_rate_ == 10 * 4
    for first, second in zip(by_range.trees_, rescaled.trees_):
        assert np.array_equal(first.split_dimension, second.split_dimension)
        assert np.array_equal(first.count, second.count)
        assert np.allclose(first.split_time, second.split_time, rtol=1e-4)
    queries = X + 0.05
    assert np.allclose(
        by_range.predict_proba(queries),
        rescaled.predict_proba((queries - low) / (high - low)),
        atol=1e-3,
    )


def test_weight_0_leaves_a_feature_out():
    weights = np.array([1.0, 0.0, 2.0, 0.0])
    rows = X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)  # distinct in any feature
    some = forest_of(feature_weights=weights).fit(rows, Y)
    alone = forest_of(feature_weights=[1.0, 2.0]).fit(rows[:, [0, 2]], Y)
    # Both have equal trees, but add up the features in another order.
    np.testing.assert_allclose(
        some.predict_proba(X + 0.1), alone.predict_proba(X[:, [0, 2]] + 0.1), atol=1e-9
    )
    assert all(set(tree.split_dimension) <= {-1, 0, 2} for tree in some.trees_)


def test_extreme_weights_give_numbers():
    """Rates that differ by 300 powers of ten give finite predictions."""
    forest = forest_of(feature_weights=[1e200, 1e-110]).fit([[0, 0], [1, 0]], [0, 1])
    for query in ([0.5, 1.0], [0.0, 3e38], [1e-45, 1.0]):
        assert forest.predict_proba([query]).sum() == pytest.approx(1)


def test_discount_rate():
    ranges = np.ptp(X, axis=0)
    assert forest_of(feature_weights=None, discount=3.0).fit(X, Y).discount_rate_ == 3.0 * 4
    weights = [1.0, 0.5, 0.0, 2.0]
    weighted = forest_of(feature_weights=weights).fit(X, Y)
    assert weighted.discount_rate_ == pytest.approx(10 * (ranges * weights).sum())
    constant = forest_of().fit(np.ones((5, 4)), [0, 1, 0, 1, 0])
    assert np.array_equal(constant.feature_weights_, np.zeros(4))
    assert constant.discount_rate_ == 10 * 4


def test_a_refresh_comes_when_the_number_of_samples_has_doubled():
    """Weights change at 1, 2, 4, 8, … samples, and only if the range grew by enough."""
    values = np.cumsum(np.arange(1.0, 34.0)).reshape(-1, 1)  # the range always grows
    forest = forest_of(feature_weights="range")
    changes = []
    for i, value in enumerate(values):
        before = forest.feature_weights_ if i else None
        forest.partial_fit([value], [i % 2])
        if i and not np.array_equal(before, forest.feature_weights_):
            changes.append(i + 1)
            assert forest.feature_weights_[0] == 1 / (value[0] - values[0, 0])
        forest._forest.check_invariants()
    assert changes == [2, 4, 8, 16, 32]


def test_a_small_change_is_not_worth_a_refresh():
    forest = forest_of().fit([[0.0], [100.0]], [0, 1])
    trees = forest.trees_[:]
    forest.partial_fit([[108.0], [50.0]], [0, 1])
    assert forest.feature_weights_[0] == 1 / 100
    assert all(set(old.split_time) <= set(new.split_time) for old, new in zip(trees, forest.trees_))
    # The schedule runs on: the next look comes at 8 samples.
    forest.partial_fit([[112.0], [50.0], [51.0], [52.0]], [0, 1, 0, 1])
    assert forest.feature_weights_[0] == 1 / 112


def test_a_constant_feature_counts_once_it_varies():
    data = np.column_stack([np.arange(8.0), np.ones(8)])
    forest = forest_of().partial_fit(data, np.arange(8) % 2)
    assert forest.feature_weights_.tolist() == [1 / 7, 0.0]
    data[:, 1] = np.arange(8.0)
    forest.partial_fit(data, np.arange(8) % 2)
    assert forest.feature_weights_.tolist() == [1 / 7, 1 / 7]
    assert any((tree.split_dimension == 1).any() for tree in forest.trees_)


def test_fixed_weights_refresh_the_discount_rate_only():
    forest = forest_of(feature_weights=[2.0]).partial_fit([[0.0], [1.0]], [0, 1])
    assert forest.discount_rate_ == 20.0
    times = [set(tree.split_time) for tree in forest.trees_]
    forest.partial_fit([[3.0], [2.0]], [0, 1])
    assert forest.discount_rate_ == 60.0
    assert forest.feature_weights_.tolist() == [2.0]
    assert all(old <= set(tree.split_time) for old, tree in zip(times, forest.trees_))
