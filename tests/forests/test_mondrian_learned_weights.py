"""Weights and leaf discounts learned from the labels."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from onlineforest import MondrianForestClassifier


def forest_of(n_estimators=25, **parameters):
    return MondrianForestClassifier(n_estimators, random_state=0, **parameters)


def core_of(forest, n_features):
    """The empty core forest of a new estimator."""
    forest.n_features_in_ = n_features
    return forest._start()["_forest"]


def uniform(n, n_features=20, seed=0):
    return np.random.default_rng(seed).random((n, n_features)).astype(np.float32)


def xor(X):
    return (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)


def shares(forest, X):
    return forest.feature_weights_ * np.ptp(X, axis=0)


def scores(forest, X, y):
    probabilities = forest.predict_proba(X)
    loss = log_loss(y, np.maximum(probabilities, 1e-15), labels=forest.classes_)
    return forest.score(X, y), loss


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_features_that_matter_only_jointly_get_weight():
    """XOR: neither feature alone is relevant."""
    X, X_test = uniform(3000), uniform(1000, seed=1)
    learned, by_range = forest_of().fit(X, xor(X)), forest_of(feature_weights="range")
    assert set(np.argsort(learned.feature_weights_)[-2:]) == {0, 1}
    assert shares(learned, X)[2:].max() < 0.2
    assert learned.score(X_test, xor(X_test)) > 0.97
    assert by_range.fit(X, xor(X)).score(X_test, xor(X_test)) < 0.85


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_pure_noise_keeps_the_weights_of_the_range():
    X, rng = uniform(3000), np.random.default_rng(3)
    y, X_test, y_test = (
        rng.integers(2, size=3000),
        uniform(3000, seed=1),
        rng.integers(2, size=3000),
    )
    learned = forest_of().fit(X, y)
    by_range = forest_of(feature_weights="range").fit(X, y)
    np.testing.assert_allclose(learned.feature_weights_, by_range.feature_weights_)
    assert scores(learned, X_test, y_test)[1] < 1.01 * scores(by_range, X_test, y_test)[1]


def test_scales_do_not_matter():
    X = uniform(1000, 6)
    y = X[:, 0] + 0.3 * X[:, 1] > 0.6
    scale = 2.0 ** np.array([0, 20, -20, 3, 0, -5])  # exact in floating point
    one, other = forest_of().fit(X, y), forest_of().fit(X * scale, y)
    np.testing.assert_allclose(other.feature_weights_ * scale, one.feature_weights_, rtol=1e-9)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X * scale))


def test_copies_of_a_feature_share_its_weight():
    X, X_test = uniform(1500, 12), uniform(1000, 12, seed=1)
    X[:, 1], X_test[:, 1] = X[:, 0], X_test[:, 0]
    X[:, 2], X_test[:, 2] = 5 - 3 * X[:, 0], 5 - 3 * X_test[:, 0]
    forest = forest_of().fit(X, X[:, 0] + X[:, 3] > 1)
    assert shares(forest, X)[4:].max() < 0.05
    assert shares(forest, X)[:4].min() > 0.5
    assert forest.score(X_test, X_test[:, 0] + X_test[:, 3] > 1) > 0.95


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_a_feature_that_comes_to_matter_later():
    X = uniform(4000, 10)
    y = np.where(np.arange(4000) < 1000, X[:, 0] > 0.5, X[:, 1] > 0.5)
    forest = forest_of()
    for start in range(0, 4000, 100):
        forest.partial_fit(X[start : start + 100], y[start : start + 100])
        if start == 900:
            assert np.argmax(forest.feature_weights_) == 0
            assert forest.feature_weights_[1] < 0.1 * forest.feature_weights_[0]
    assert np.argmax(forest.feature_weights_) == 1


def test_few_samples_of_many_features():
    X, X_test = uniform(100, 1000), uniform(500, 1000, seed=1)
    forest = forest_of().fit(X, X[:, 7] > 0.5)
    assert np.argmax(forest.feature_weights_) == 7
    assert forest.score(X_test, X_test[:, 7] > 0.5) > 0.85
    few = forest_of().fit(X[:30], X[:30, 7] > 0.5)
    np.testing.assert_allclose(shares(few, X[:30]), 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", ["many classes", "rare class", "constant feature", "one class"])
def test_odd_labels_and_features(kind):
    X = uniform(600, 5)
    y = (X[:, 2] > 0.5).astype(int)
    if kind == "many classes":
        y = (300 * X[:, 2]).astype(int)
    elif kind == "rare class":
        y = (X[:, 2] > 0.98).astype(int)
    elif kind == "constant feature":
        X[:, 4] = 7.0
    else:
        y[:] = 3
    forest = forest_of().fit(X, y)
    forest._forest.check_invariants()
    assert np.isfinite(forest.feature_weights_).all() and (forest.feature_weights_ >= 0).all()
    assert np.allclose(forest.predict_proba(X).sum(axis=1), 1)
    if kind == "constant feature":
        assert forest.feature_weights_[4] == 0
    if kind == "one class":
        assert not forest.feature_importances_.any()
    else:
        assert np.argmax(forest.feature_weights_) == 2
        assert np.argmax(forest.feature_importances_) == 2


def test_schedule():
    """Refreshes come at 1, 2, 3, 5, 8, 12, … samples: whenever half as many are new."""
    X = uniform(400, 4)
    y = X[:, 0] > 0.5
    forest = forest_of(5).partial_fit(X[:1], y[:1], classes=[False, True])
    due, changed = [1], []
    while due[-1] < 400:
        due.append(due[-1] + (due[-1] + 1) // 2)
    for i in range(1, 400):
        before = forest.feature_weights_
        forest.learn_one(X[i], bool(y[i]))
        if not np.array_equal(before, forest.feature_weights_):
            changed.append(i + 1)
    assert set(changed) <= set(due)
    assert max(changed) >= 40, "nothing was learned"


def test_forced_refresh():
    X = uniform(900, 8)
    y = X[:, 3] > 0.5
    y[500:] = X[500:, 5] > 0.5
    forest = forest_of().fit(X[:500], y[:500])
    forest.partial_fit(X[500:700], y[500:700])
    assert forest.feature_weights_[5] < 0.1 * forest.feature_weights_[3]
    assert forest.refresh_weights() is forest
    forest._forest.check_invariants()
    assert forest.feature_weights_[5] > 0.1 * forest.feature_weights_[3]
    again = forest_of().fit(X[:700], y[:700])
    assert np.array_equal(forest.feature_weights_, again.feature_weights_)
    forest.n_estimators = 3
    with pytest.raises(ValueError, match="n_estimators was 25"):
        forest.refresh_weights()


def learned_stream(forest, X, y, batches):
    for start, stop in pairwise(batches):
        forest.partial_fit(X[start:stop], y[start:stop], classes=np.unique(y))
    return forest


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_threads_and_resuming_do_not_matter(copied):
    X, y = load_digits(return_X_y=True)
    batches = [0, 1, 30, 70, 150, 400, 800]
    one = learned_stream(forest_of(8), X, y, batches)
    two = learned_stream(forest_of(8, n_jobs=3), X, y, batches)
    resumed = copied(learned_stream(forest_of(8), X, y, batches[:5]))
    learned_stream(resumed, X, y, batches[4:])
    for other in (two, resumed):
        assert np.array_equal(one.feature_weights_, other.feature_weights_)
        assert one.leaf_discount_ == other.leaf_discount_
        assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
        assert np.array_equal(one.feature_importances_, other.feature_importances_)


def test_rows_one_by_one_in_one_call():
    X, y = load_digits(return_X_y=True)
    rows, labels = X[:300].astype(np.float32), y[:300].astype(np.int32)
    one_call, calls = core_of(forest_of(4), 64), core_of(forest_of(4), 64)
    one_call.learn(rows, labels, 10, 2, one_by_one=True)
    for row, label in zip(rows, labels):
        calls.learn_one(row, int(label), 10)
    assert np.array_equal(one_call.predict(rows), calls.predict(rows))


def test_importances_in_all_modes():
    X = uniform(800, 6)
    y = X[:, 1] + 0.5 * X[:, 4] > 0.75
    for weights in (None, "range", "learned", np.ones(6)):
        importances = forest_of(feature_weights=weights).fit(X, y).feature_importances_
        assert importances.sum() == pytest.approx(1)
        assert np.argsort(importances)[-2:].tolist() == [4, 1]
        assert importances[[0, 2, 3, 5]].max() < 0.05


def test_a_learned_leaf_discount_fits_repeated_samples():
    """Cells of a discrete grid, 10 % of the labels wrong: a leaf must not be certain."""
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(1500, 4)).astype(float)
    y = (X[:, 0] > 1.5) ^ (rng.random(1500) < 0.1)
    train, test = slice(0, 300), slice(300, 1500)
    sure = forest_of(leaf_discount=0.0).fit(X[train], y[train])
    doubting = forest_of().fit(X[train], y[train])
    assert sure.leaf_discount_ == 0.0 and doubting.leaf_discount_ >= 0.3
    assert scores(doubting, X[test], y[test])[1] < 0.7 * scores(sure, X[test], y[test])[1]


def test_leaf_discount_by_hand():
    """Two samples with a leaf each: a leaf gives 1 - d to its label, d to the even parent."""
    forest = forest_of(1, leaf_discount=0.4).fit([[0.0], [1.0]], [0, 1])
    assert forest.predict_proba([[0.0]])[0] == pytest.approx([1 - 0.4 / 2, 0.4 / 2])


def test_an_interrupt_before_the_first_measure_is_harmless():
    """Points are stored before weights are learned; a forest saved in between can continue."""
    X, y = uniform(300, 5), (uniform(300, 5)[:, 0] > 0.5).astype(np.int32)
    through, fresh = core_of(forest_of(4), 5), core_of(forest_of(4), 5)
    empty = fresh.get_state()
    through.learn(X[:299], y[:299], 2)
    state = through.get_state()
    state |= {
        name: empty[name] for name in state if name.startswith(("schedule.", "measure", "trees"))
    }
    stopped = type(through).from_state(state)
    stopped.check_invariants()
    assert np.allclose(stopped.predict(X), 0.5)
    stopped = type(through).from_state(stopped.get_state())
    for forest in (through, stopped):
        forest.learn(X[299:], y[299:], 2)
    assert np.array_equal(stopped.predict(X), through.predict(X))
    grown = {**through.get_state(), "measure": empty["measure"]}
    with pytest.raises(ValueError, match="the forest has no measure"):
        type(through).from_state(grown)


def test_a_constant_feature_that_starts_to_vary_gets_weight():
    X = uniform(2000, 30)
    X[:1000, 7] = 0.5
    y = np.random.default_rng(1).integers(2, size=2000)
    forest = forest_of(5).partial_fit(X[:1000], y[:1000])
    assert forest.feature_weights_[7] == 0
    forest.partial_fit(X[1000:], y[1000:])
    assert forest.feature_weights_[7] > 0


@pytest.mark.heavy_under_sanitizers(reason="learns 3000 samples of 400 features for a score")
def test_many_one_hot_columns_are_learned():
    """Each cut separates one category; greedy trees must not become a thousand levels deep."""
    rng = np.random.default_rng(0)
    category = rng.integers(400, size=3000)
    X = np.eye(400, dtype=np.float32)[category]
    y = rng.permutation(400)[category] % 2
    assert forest_of(3).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    "parameters", [{"leaf_discount": 1.5}, {"leaf_discount": "high"}, {"feature_weights": "best"}]
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        forest_of(**parameters).fit([[0.0]], [0])
