"""Predictions, left-out predictions, importances and trees of the order-free regressor."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from onlineforest import OnlineForestRegressor, OnlineTree
from support.diabetes import SHUFFLED, X, Y, fitted, friedman, small


def test_it_predicts_better_than_the_mean():
    rows, numbers = friedman(1200)
    forest = OnlineForestRegressor(50, random_state=0).fit(rows[:900], numbers[:900])
    assert forest.score(rows[900:], numbers[900:]) > 0.75
    mean = DummyRegressor().fit(rows[:900], numbers[:900])
    assert mean.score(rows[900:], numbers[900:]) < 0.01


def test_one_row_is_predicted_as_many_are():
    forest = fitted()
    means, deviations = forest.predict(X, return_std=True)
    assert np.array_equal(means, forest.predict(X))
    for i in range(0, 300, 20):
        assert forest.predict_one(X[i].tolist()) == means[i]
        assert forest.predict_one(X[i], return_std=True) == (means[i], deviations[i])


def lines_at(tree, leaves, rows):
    """The value of the line of each leaf at its row; 0 where there is no line."""
    values = np.zeros(len(rows))
    for i, (line, row) in enumerate(zip(tree.line[leaves], np.nan_to_num(rows, nan=np.inf))):
        if line < 0:
            continue
        low, high = tree.line_clip[line].T
        x = row.astype(np.float32)[tree.line_dimension[line]]
        inside = np.where(np.isinf(x), tree.line_center[line], np.clip(x, low, high))
        terms = tree.line_slope[line] * (inside - tree.line_center[line])
        values[i] = np.clip(tree.line_base[line] + terms.sum(), *tree.line_range[line])
    return values


def test_trees_give_the_mean():
    forest = fitted(n_estimators=3)
    leaves = forest.apply(X)
    for index, tree in enumerate(forest.trees_):
        assert isinstance(tree, OnlineTree)
        inner = ~tree.is_leaf
        assert np.array_equal(
            tree.weight[tree.left[inner]] + tree.weight[tree.right[inner]], tree.weight[inner]
        )
        goes_left = X[:, tree.split_dimension[0]].astype(np.float32) <= tree.split_location[0]
        below = np.isin(leaves[:, index], range(tree.left[0], tree.right[0]))
        assert np.array_equal(below, goes_left)
    means = [
        tree.rest[leaves[:, i]] + lines_at(tree, leaves[:, i], X)
        for i, tree in enumerate(forest.trees_)
    ]
    np.testing.assert_allclose(forest.predict(X), np.mean(means, axis=0), rtol=1e-12)
    assert all(len(tree.line_base) > 0 for tree in forest.trees_)
    plain = fitted(n_estimators=1, calibrate=False).trees_[0]
    assert plain.weight[0] == 300
    assert math.isclose(plain.mean[0], Y.mean()) and math.isclose(plain.variance[0], Y.var())


def test_lines_of_trees_are_in_the_units_and_columns_of_the_rows():
    rng = np.random.default_rng(4)
    numbers = rng.normal(size=(300, 2))
    words = rng.choice(["a", "b", "c"], 300)
    table = pd.DataFrame({"word": words, "high": numbers[:, 0] + 1000.0, "low": numbers[:, 1]})
    y = 3.0 * numbers[:, 0] - numbers[:, 1] + (words == "a")
    forest = small(n_estimators=3, offsets={"high": 1000.0}).fit(table, y)
    leaves = forest.apply(table)
    rows = np.column_stack([np.zeros(300), table[["high", "low"]].to_numpy()])
    means = []
    for i, tree in enumerate(forest.trees_):
        assert set(np.unique(tree.line_dimension)) == {-1, 1, 2}
        means.append(tree.rest[leaves[:, i]] + lines_at(tree, leaves[:, i], rows))
    np.testing.assert_allclose(forest.predict(table), np.mean(means, axis=0), atol=1e-3)


def test_importances():
    rows = np.random.default_rng(0).random((500, 4))
    for parameters in ({}, {"calibrate": False}, {"max_samples": 0.6}):
        forest = small(n_estimators=20, **parameters).fit(rows, 5 * rows[:, 2])
        importances = forest.feature_importances_
        assert importances.argmax() == 2 and importances[2] > 0.8, parameters
        assert np.isclose(importances.sum(), 1) and importances.min() >= 0
    assert small().fit(rows, np.ones(500)).feature_importances_.tolist() == [0.0] * 4


@pytest.mark.parametrize("parameters", [{"max_samples": 0.6}, {"max_samples": 0.5}])
def test_left_out_samples_are_scored_like_new_ones(parameters):
    """R² of 900 samples has a standard error of about 0.015, so 0.1 does not come by chance."""
    rows, numbers = friedman(1800)
    forest = OnlineForestRegressor(60, random_state=0, **parameters)
    forest.fit(rows[:900], numbers[:900])
    predictions = forest.oob_prediction_
    assert predictions.shape == (900,) and not np.isnan(predictions).any()
    assert forest.oob_score_ == r2_score(numbers[:900], predictions)
    assert abs(forest.oob_score_ - forest.score(rows[900:], numbers[900:])) < 0.1
    assert forest.oob_score_ < forest.score(rows[:900], numbers[:900])


def test_samples_that_calibrate_have_left_out_predictions():
    predictions = fitted(n_estimators=20).oob_prediction_
    assert (~np.isnan(predictions)).sum() == 300 // 4
    assert np.isnan(fitted(calibrate=False).oob_prediction_).all()
    assert math.isnan(fitted(calibrate=False).oob_score_)
    with pytest.raises(NotFittedError):
        small().oob_score_  # noqa: B018


def test_left_out_predictions_are_in_the_order_of_arrival():
    whole = fitted(max_samples=0.5)
    forest = small(max_samples=0.5).fit(X[:20], Y[:20])
    for part in np.array_split(SHUFFLED, 4):
        forest.partial_fit(X[part], Y[part])
    forest.keep_latest(300)
    expected = whole.oob_prediction_[SHUFFLED]
    assert np.array_equal(forest.oob_prediction_, expected, equal_nan=True)


def test_the_score_of_left_out_samples_counts_weights_as_copies():
    rng = np.random.default_rng(2)
    is_nan = set()
    for seed in range(60):
        n = int(rng.integers(2, 30))
        rows, y = rng.normal(size=(n, 1)), rng.normal(size=n)
        copies = rng.integers(1, 4, n)
        weighted = small(max_samples=0.5, random_state=seed).fit(rows, y, sample_weight=copies)
        repeated = small(max_samples=0.5, random_state=seed)
        order = rng.permutation(copies.sum())
        repeated.fit(np.repeat(rows, copies, axis=0)[order], np.repeat(y, copies)[order])
        assert weighted.digest_ == repeated.digest_
        np.testing.assert_equal(weighted.oob_score_, repeated.oob_score_)
        is_nan.add(math.isnan(weighted.oob_score_))
    assert False in is_nan
    for seed in range(20):  # at most one distinct sample is left out by a tree
        one = small(max_samples=0.99, random_state=seed).fit([[0.0], [0.0], [1.0]], [1.0, 1.0, 2.0])
        known = np.unique(one.oob_prediction_[~np.isnan(one.oob_prediction_)])
        assert math.isnan(one.oob_score_) or len(known) > 1


def test_fewer_than_five_trees_leave_nothing_out():
    """Nothing is gained unless at least two trees leave out the calibrators."""
    few, enough = small(n_estimators=4).fit(X, Y), small(n_estimators=5).fit(X, Y)
    assert np.isnan(few.oob_prediction_).all()
    assert np.isfinite(enough.oob_prediction_).sum() == len(Y) // 4
