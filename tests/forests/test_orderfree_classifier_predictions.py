"""Predictions, left-out predictions, importances and trees of the order-free classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from onlineforest import OnlineForestClassifier, OnlineTree
from support.iris import DIGIT, DIGITS, NAMES, SHUFFLED, X, Y, fitted, small

# Predictions


def test_one_row_is_predicted_as_many_are():
    forest = small().fit(X, NAMES[Y]).partial_fit(X[:5], ["daisy"] * 5)
    proba, labels = forest.predict_proba(X), forest.predict(X)
    for i in range(0, 150, 10):
        assert np.array_equal(forest.predict_proba_one(X[i]), proba[i])
        assert forest.predict_one(X[i].tolist()) == labels[i]
    assert np.array_equal(forest.predict_log_proba(X), np.log(proba))


def test_it_predicts_digits_well():
    forest = OnlineForestClassifier(30, random_state=0, n_jobs=2).fit(DIGITS[:1200], DIGIT[:1200])
    assert forest.score(DIGITS[1200:], DIGIT[1200:]) > 0.9


def test_left_out_samples_are_scored_like_new_ones():
    """Standard error of the difference about 0.01: a distance of 0.05 does not come by chance."""
    chosen = np.random.default_rng(0).permutation(len(DIGIT))
    old, new = chosen[:900], chosen[900:]
    forest = OnlineForestClassifier(60, max_samples=0.6, random_state=0, n_jobs=2)
    forest.fit(DIGITS[old], DIGIT[old])
    assert abs(forest.oob_score_ - forest.score(DIGITS[new], DIGIT[new])) < 0.05
    assert forest.oob_score_ < forest.score(DIGITS[old], DIGIT[old])
    proba = forest.oob_decision_function_
    assert proba.shape == (900, 10)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.mean(forest.classes_[proba.argmax(axis=1)] == DIGIT[old]) == forest.oob_score_


def test_left_out_predictions_are_in_the_order_of_arrival():
    whole = small(max_samples=0.5).fit(X, NAMES[Y])
    forest = small(max_samples=0.5).fit(X[:20], NAMES[Y[:20]])
    for part in np.array_split(SHUFFLED, 4):
        forest.partial_fit(X[part], NAMES[Y[part]])
    forest.keep_latest(150)
    expected = whole.oob_decision_function_[SHUFFLED]
    assert np.array_equal(forest.oob_decision_function_, expected, equal_nan=True)
    assert forest.oob_score_ == whole.oob_score_


def test_samples_that_every_tree_has_learned_have_no_left_out_prediction():
    forest = OnlineForestClassifier(2, max_samples=0.7, random_state=0).fit(X, NAMES[Y])
    proba = forest.oob_decision_function_
    is_missing = np.isnan(proba).all(axis=1)
    assert 0 < is_missing.sum() < len(Y)
    assert np.array_equal(np.isnan(proba).any(axis=1), is_missing)
    best = forest.classes_[proba[~is_missing].argmax(axis=1)]
    assert forest.oob_score_ == np.mean(best == NAMES[Y[~is_missing]])
    assert np.isnan(small(max_samples=0.9999).fit(X[:2], Y[:2]).oob_score_)


@pytest.mark.parametrize("name", ["oob_score_", "oob_decision_function_"])
def test_without_left_out_samples_there_is_no_score(name):
    with pytest.raises(AttributeError, match=rf"{name} needs .* max_samples is 1\.0"):
        getattr(fitted(), name)
    assert not hasattr(fitted(), name)
    with pytest.raises(NotFittedError):
        getattr(small(), name)


@pytest.mark.parametrize("max_samples", [1.0, 0.7])
def test_importances_do_not_depend_on_the_order_of_classes(max_samples):
    """Squares of such weights are rounded as doubles: their sums must not be."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
        weights = rng.choice([0.5, 1.0, 1000.1], 200)
        found = []
        for order in ([0, 1, 2, 3], [2, 3, 1, 0]):
            forest = small(min_samples_split=2, calibrate=False, max_samples=max_samples)
            for label in order:
                here = y == label
                forest.partial_fit(rows[here], y[here], sample_weight=weights[here])
            found.append(forest.feature_importances_)
        assert np.array_equal(*found), seed


@pytest.mark.parametrize("max_samples", [1.0, 0.6])
def test_importances(max_samples):
    rng = np.random.default_rng(0)
    rows = rng.random((500, 4))
    forest = small(n_estimators=20, max_samples=max_samples).fit(rows, rows[:, 2] > 0.5)
    importances = forest.feature_importances_
    assert importances.argmax() == 2 and importances[2] > 0.8
    assert np.isclose(importances.sum(), 1) and importances.min() >= 0
    assert small().fit(rows, np.ones(500)).feature_importances_.tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "parameters", [{}, {"calibrate": False}, {"max_samples": 0.6}, {"min_samples_split": 2}]
)
def test_noise_has_less_importance_than_a_weak_effect(parameters):
    """In 60 seeds noise had 0.02 ± 0.02 of the weakest effect (0.07 ± 0.03 with max_samples).

    So a third is eight deviations away, a probability of failing by chance far below 1e-6.
    """
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4000, 6))
    logit = rows @ [0.8, 0.6, 0.4, 0, 0, 0]
    y = rng.random(4000) < 1 / (1 + np.exp(-logit))
    importances = small(n_estimators=40, **parameters).fit(rows, y).feature_importances_
    assert importances[3:].max() < importances[2] / 3
    assert importances[0] > importances[1] > importances[2]


@pytest.mark.parametrize("calibrate", [False, True])
def test_random_levels_have_no_importance(calibrate):
    """Their splits decrease the impurity on the samples that chose them."""
    rng = np.random.default_rng(4)
    binary = rng.integers(0, 2, 2000)
    y = np.where(rng.random(2000) < 0.7, binary, 1 - binary)
    rows = np.column_stack([rng.integers(0, 1000, 2000), binary])
    forest = small(n_estimators=20, categorical_features=[0], calibrate=calibrate).fit(rows, y)
    assert forest.feature_importances_.tolist() == [0.0, 1.0]


def test_importances_of_a_few_samples_come_from_samples_that_trees_leave_out():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(64, 2))
    y = rows[:, 1] > 0
    for parameters in ({"calibrate": True}, {"calibrate": False, "max_samples": 0.6}):
        assert small(n_estimators=20, **parameters).fit(rows, y).feature_importances_[1] > 0.8
    forest = small(n_estimators=20, calibrate=False).fit(rows, y)
    assert forest.feature_importances_.tolist() == [0.0, 0.0]


# Trees


def test_trees_are_read_only_tables_of_the_samples():
    forest = small().fit(X, NAMES[Y])
    assert len(forest.trees_) == 5 and repr(forest.trees_) == "<5 order-free trees>"
    for index, tree in enumerate(forest.trees_):
        assert isinstance(tree, OnlineTree)
        assert tree.weight[tree.root] == 150
        assert np.array_equal(tree.count[tree.root], np.bincount(Y))
        assert np.array_equal(tree.count.sum(axis=1), tree.weight)
        inner = ~tree.is_leaf
        below = tree.count[tree.left[inner]] + tree.count[tree.right[inner]]
        assert np.array_equal(below, tree.count[inner])
        assert np.isnan(tree.split_location[tree.is_leaf]).all()
        leaves = forest.apply(X)[:, index]
        assert tree.is_leaf[leaves].all()
        assert np.array_equal(
            np.bincount(leaves, minlength=tree.n_nodes)[tree.is_leaf], tree.weight[tree.is_leaf]
        )
        assert 0 < tree.mean_depth <= tree.depth.max()
        with pytest.raises(ValueError, match="read-only"):
            tree.count[0] = 0
    assert forest.trees_[0].split_dimension.dtype == np.int32


def test_columns_of_counts_are_those_of_classes():
    forest = small().partial_fit(X[100:], NAMES[Y[100:]]).partial_fit(X[:100], NAMES[Y[:100]])
    forest.forget(X[:10], NAMES[Y[:10]])
    assert forest.trees_[0].count[0].tolist() == [40, 50, 50]
    forest.forget(X[50:100], NAMES[Y[50:100]])
    assert forest.trees_[0].count[0].tolist() == [40, 50]


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_a_predicted_date_is_a_label_that_can_be_learned(kind, unit):
    labels = np.array([3, 5, 8]).astype(f"{kind}[{unit}]")
    forest = small().fit(X, labels[Y % 3])
    for x in X[:3]:
        label = forest.predict_one(x)
        assert label in labels
        forest.learn_one(x, label)
    assert forest.classes_.tolist() == labels[np.unique(Y % 3)].tolist()
