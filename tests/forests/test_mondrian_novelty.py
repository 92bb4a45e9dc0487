"""Novelty: computed by hand, and where it must be 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from onlineforest import MondrianForestClassifier

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(scope="module")
def forests():
    return {}


def fitted(forests, **parameters):
    key = tuple(parameters.items())
    if key not in forests:
        forest = MondrianForestClassifier(n_estimators=15, random_state=0, **parameters)
        forests[key] = forest.partial_fit(X[:700], Y[:700]).partial_fit(X[700:1000], Y[700:1000])
    return forests[key]


def novelty_by_hand(tree, x, weights):
    """1 minus the probability to reach a leaf without separation at a node of the path."""
    j, birth, stays = 0, 0.0, 1.0
    while tree.split_dimension[j] >= 0:
        outside = np.maximum(x - tree.upper[j], 0) + np.maximum(tree.lower[j] - x, 0)
        stays *= np.exp(-(tree.split_time[j] - birth) * (weights * outside).sum())
        birth = tree.split_time[j]
        goes_left = x[tree.split_dimension[j]] <= tree.split_location[j]
        j = tree.left[j] if goes_left else tree.right[j]
    return 1 - stays


@pytest.mark.parametrize(
    "parameters", [{}, {"lifetime": 3.0}, {"feature_weights": "range"}], ids=str
)
def test_novelty_is_the_probability_of_separation_before_the_leaf(parameters, forests):
    forest = fitted(forests, **parameters)
    weights = forest.feature_weights_
    rows = np.vstack([X[1000:1010], X[1000:1005] + 3, 40 * X[:2]]).astype(np.float32)
    by_hand = [
        np.mean([novelty_by_hand(tree, x.astype(float), weights) for tree in forest.trees_])
        for x in rows
    ]
    assert forest.novelty(rows) == pytest.approx(by_hand, abs=1e-12)
    assert forest.novelty(rows[3:4]) == pytest.approx(by_hand[3], abs=1e-12)


def test_novelty_is_0_at_learned_samples_and_large_far_away(forests):
    forest = fitted(forests)
    assert np.array_equal(forest.novelty(X[:1000]), np.zeros(1000))
    assert forest.novelty(X[:50] + 1000) == pytest.approx(1.0)
    outwards = [forest.novelty(X[1200:1210] + step) for step in (0, 5, 20, 100)]
    assert (np.diff(outwards, axis=0) >= 0).all() and (outwards[-1] > outwards[0]).all()
    usual = forest.novelty(X[1000:])
    assert 0 < usual.mean() < 0.3


def test_threads_do_not_matter(forests):
    forest = fitted(forests)
    one = forest.novelty(X)
    for n_jobs in (2, 3):
        assert np.array_equal(forest.set_params(n_jobs=n_jobs).novelty(X), one)
    forest.set_params(n_jobs=None)


def test_a_forest_without_cuts_or_samples():
    forest = MondrianForestClassifier(n_estimators=3, random_state=0).fit(X[:50], np.ones(50, int))
    assert np.array_equal(forest.novelty(X + 100), np.zeros(len(X)))
    with pytest.raises(ValueError, match="forgotten all its samples"):
        forest.keep_latest(0).novelty(X)
    with pytest.raises(ValueError, match="features"):
        forest.fit(X, Y).novelty(X[:, :5])


def test_outliers_are_found(forests):
    """Pixels of different digits, mixed: each value is usual, but not their combination."""
    forest = fitted(forests)
    rng = np.random.default_rng(0)
    usual = X[1000:]
    odd = rng.permuted(usual, axis=0)
    is_odd = np.repeat([0, 1], len(usual))
    both = np.vstack([usual, odd])
    peer = IsolationForest(random_state=0).fit(X[:1000])
    area, peers = (
        roc_auc_score(is_odd, s) for s in (forest.novelty(both), -peer.score_samples(both))
    )
    assert area > 0.88 and area > peers + 0.1, (area, peers)
