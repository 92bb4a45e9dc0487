"""A forest with added features predicts as before."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from onlineforest import MondrianForestClassifier, MondrianForestRegressor
from onlineforest._models.widening import widened
from support.bits import assert_same, assert_same_forest

N_LEARNED, N_IN_ALL = 300, 450
KINDS = [MondrianForestClassifier, MondrianForestRegressor]


def draw(n_features):
    """Samples with integers as targets, which serve as classes and as numbers."""
    X = np.random.default_rng(n_features).normal(size=(N_IN_ALL, n_features))
    return X, np.floor(2 * np.abs(X[:, 0]) + X[:, -1])


def learn(kind, X, y, **parameters):
    return kind(8, random_state=0, **parameters).partial_fit(X[:N_LEARNED], y[:N_LEARNED])


def predictions(forest, X):
    if isinstance(forest, MondrianForestClassifier):
        return forest.predict_proba(X)
    return np.column_stack([*forest.predict(X, return_std=True), forest.predict_interval(X)])


def with_columns(X, n_features, value=np.nan):
    return np.pad(X, ((0, 0), (0, n_features - X.shape[1])), constant_values=value)


@pytest.mark.parametrize("weights", ["learned", "range"])
@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 20), (32, 36)])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_same_to_the_last_bit(kind, before, after, weights):
    X, y = draw(before)
    forest = learn(kind, X, y, feature_weights=weights)
    wider = widened(forest, after)
    assert wider.n_features_in_ == after and forest.n_features_in_ == before
    wider._forest.check_invariants()
    for value in (0.0, 5.0):  # a feature that was never seen to vary tells nothing
        queries = with_columns(1.5 * X, after, value)
        assert np.array_equal(predictions(wider, queries), predictions(forest, 1.5 * X))
        assert np.array_equal(wider.novelty(queries), forest.novelty(1.5 * X))
    assert np.array_equal(wider.feature_weights_[:before], forest.feature_weights_)
    assert not wider.feature_weights_[before:].any()


@pytest.mark.parametrize(("before", "after"), [(1, 2), (5, 9), (7, 8), (33, 41)])
@pytest.mark.parametrize("kind", KINDS)
def test_with_other_widths_sums_are_rounded_differently_and_trees_are_the_same(kind, before, after):
    X, y = draw(before)
    forest = learn(kind, X, y)
    wider = widened(forest, after)
    # 1e-13: some thousand roundings of 1e-16.
    np.testing.assert_allclose(
        predictions(wider, with_columns(X, after)), predictions(forest, X), rtol=1e-13, atol=1e-13
    )
    old, new = forest._forest.get_state(), wider._forest.get_state()
    trees = [name for name in old if name.startswith("trees.")]
    assert len(trees) > 10
    assert_same({name: old[name] for name in trees}, {name: new[name] for name in trees})


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_later_is_the_same(kind):
    """With weights by range, also after a refresh; learned weights depend on random draws."""
    X, y = draw(4)
    options = {"feature_weights": "range"}
    if kind is MondrianForestRegressor:
        options |= {"trend": None}  # which has fewer knots where there are more features
    forest = learn(kind, X, y, **options)
    wider = widened(forest, 12)
    from_the_start = learn(kind, with_columns(X, 12), y, **options)
    assert_same_forest(wider, from_the_start)
    for x, value in zip(X[N_LEARNED:], y[N_LEARNED:]):
        forest.learn_one(x, value)
        wider.learn_one(with_columns(x[np.newaxis], 12)[0], value)
    assert np.array_equal(predictions(wider, with_columns(X, 12)), predictions(forest, X))
    many = np.tile(X, (2, 1)) + np.arange(2 * len(X))[:, np.newaxis] / 100  # wider ranges
    forest.partial_fit(many, np.tile(y, 2))
    wider.partial_fit(with_columns(many, 12), np.tile(y, 2))
    assert forest._forest.get_state()["schedule.n_refreshes"][0] > 1
    assert np.array_equal(predictions(wider, with_columns(X, 12)), predictions(forest, X))


@pytest.mark.parametrize("kind", KINDS)
def test_until_the_next_refresh_new_features_change_nothing(kind):
    X, y = draw(4)
    forest = learn(kind, X, y)
    wider = widened(forest, 8)
    until = N_LEARNED + N_LEARNED // 2 - 1
    forest.partial_fit(X[N_LEARNED:until], y[N_LEARNED:until])
    wider.partial_fit(with_columns(X, 8)[N_LEARNED:until], y[N_LEARNED:until])
    assert np.array_equal(predictions(wider, with_columns(X, 8)), predictions(forest, X))


@pytest.mark.parametrize("kind", KINDS)
def test_new_features_are_learned(kind):
    X, _ = draw(4)
    y = np.floor(X[:, 0])
    wider = widened(learn(kind, X, y), 8)
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.normal(size=(2000, 4)), 2 * (rng.random((2000, 4)) > 0.5)])
    values = np.floor(10 * rows[:, 4])
    wider.partial_fit(rows[:1500], values[:1500])
    assert (np.abs(wider.predict(rows[1500:]) - values[1500:]) < 5).mean() > 0.9
    assert wider.feature_importances_.argmax() == 4


def test_the_old_forest_stays_as_it_is_and_shares_nothing():
    X, y = draw(4)
    forest = learn(MondrianForestClassifier, X, y)
    forest.partial_fit(X[-2:], y[-2:], ids=["a", "b"])
    twin = copy.deepcopy(forest)
    wider = widened(forest, 6)
    wider.forget(ids=["a"]).partial_fit(with_columns(X, 6)[:5], y[:5], ids=range(5))
    assert_same_forest(forest, twin)
    assert forest.ids_ == {"a", "b"} and wider.ids_ == {"b", *range(5)}


def test_windows_and_reservoirs_continue():
    X, y = draw(4)
    wider = widened(learn(MondrianForestClassifier, X, y, window=100), 8)
    wider.partial_fit(with_columns(X, 8)[:50], y[:50])
    assert wider.n_samples_stored_ == 100 and wider.n_samples_seen_ == N_LEARNED + 50
    wider._forest.check_invariants()


def test_a_forest_without_samples_can_be_widened():
    X, y = draw(4)
    wider = widened(learn(MondrianForestClassifier, X, y).keep_latest(0), 6)
    assert wider.partial_fit(with_columns(X, 6), y).n_samples_stored_ == N_IN_ALL


def test_forests_that_cannot_be_widened_are_refused():
    X, y = draw(4)
    with pytest.raises(ValueError, match="feature_weights is 'learned' or 'range', but it is None"):
        widened(learn(MondrianForestClassifier, X, y, feature_weights=None), 6)
    with pytest.raises(ValueError, match="has 4 features, which cannot become 3"):
        widened(learn(MondrianForestClassifier, X, y), 3)
    named = MondrianForestClassifier(2).fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="A forest with feature names"):
        widened(named, 6)
