"""Weights of samples in order-free forests: a weight is a number of copies, or a part of one.

Shards: tests/shards. River: tests/river.
"""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

from onlineforest import (
    ModelFileError,
    OnlineForestClassifier,
    OnlineForestRegressor,
    load,
    merge,
)
from onlineforest._forests.orderfree.number_calibration import NumberCalibration, exact_sum
from support.model_files import changed, saved

RNG = np.random.default_rng(11)
N = 400
X = RNG.integers(0, 12, (N, 3)).astype(float)
X[RNG.random(X.shape) < 0.05] = np.nan
LABELS = np.array(["low", "high", "rare"])[
    np.where(RNG.random(N) < 0.05, 2, np.nan_to_num(X).sum(axis=1) > 17)
]
VALUES = np.nan_to_num(X) @ [1.0, -2.0, 0.5] + RNG.normal(size=N)
COPIES = RNG.integers(0, 4, N)
PARTS = RNG.random(N) * 3
KINDS = {"labels": (OnlineForestClassifier, LABELS), "numbers": (OnlineForestRegressor, VALUES)}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def new(cls, **parameters):
    return cls(n_estimators=12, random_state=3, **parameters)


def answers(forest):
    """All that a forest says about rows."""
    if isinstance(forest, OnlineForestClassifier):
        return forest.predict_proba(X[:50]).tolist(), forest.predict(X[:50]).tolist()
    levels = [0.05, 0.5, 0.9]
    return forest.predict(X[:50]).tolist(), forest.predict_quantiles(X[:50], levels).tolist()


def assert_same(one, other):
    assert one.digest_ == other.digest_
    assert answers(one) == answers(other)


def test_a_whole_weight_is_a_number_of_copies(kind):
    cls, y = kind
    copied = new(cls).fit(np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES))
    weighted = new(cls).fit(X, y, COPIES)
    assert weighted.n_samples_seen_ == np.count_nonzero(COPIES)
    assert_same(weighted, copied)
    assert weighted.oob_score_ == pytest.approx(copied.oob_score_, rel=1e-12)
    assert weighted.feature_importances_.tolist() == copied.feature_importances_.tolist()
    for tree, other in zip(weighted.trees_, copied.trees_, strict=True):
        assert tree.weight.tolist() == other.weight.tolist()


@pytest.mark.parametrize("weights", [COPIES, PARTS], ids=["copies", "parts"])
def test_the_way_has_no_influence(kind, weights):
    cls, y = kind
    at_once = new(cls).fit(X, y, sample_weight=weights)
    in_batches, one_by_one = new(cls), new(cls)
    order = RNG.permutation(N)
    for part in np.array_split(order, 30):
        in_batches.partial_fit(X[part], y[part], sample_weight=weights[part])
        in_batches.predict(X[:3])
    one_by_one.partial_fit(X[:5], y[:5], sample_weight=weights[:5])
    for i in range(5, N):
        one_by_one.learn_one(X[i], y[i], sample_weight=weights[i])
    for forest in (in_batches, one_by_one):
        assert_same(forest.recalibrate(), at_once)
        assert forest.verify()


def test_a_weight_that_comes_in_parts_is_their_sum(kind):
    cls, y = kind
    whole = new(cls).fit(X, y, PARTS + 0.25)
    in_parts = new(cls).partial_fit(X, y, sample_weight=PARTS)
    in_parts.partial_fit(X, y, sample_weight=np.full(N, 0.25))
    assert_same(in_parts.recalibrate(), whole)
    assert in_parts.n_samples_stored_ == 2 * N


def test_a_sample_of_weight_0_is_not_there(kind):
    cls, y = kind
    there = PARTS > 1
    ids = np.arange(N)
    forest = new(cls).fit(X, y, np.where(there, PARTS, 0), ids=ids)
    assert_same(forest, new(cls).fit(X[there], y[there], PARTS[there]))
    assert forest.ids_ == set(ids[there].tolist())
    before = forest.digest_
    forest.partial_fit(X[:3], y[:3], sample_weight=[0, 0, 0], ids=["a", "b", "c"])
    forest.learn_one(X[0], y[0], sample_weight=0.0)
    assert forest.digest_ == before
    assert forest.n_samples_seen_ == np.count_nonzero(there)
    tiny = np.full(N, 2.0**-18)  # is rounded to 0
    with pytest.raises(ValueError, match="must not be zero for all"):
        new(cls).fit(X, y, tiny)
    with pytest.raises(ValueError, match="must not be zero for all"):
        new(cls).partial_fit(X, y, sample_weight=tiny)


def test_classes_of_weight_0_are_unknown_unless_declared():
    forest = new(OnlineForestClassifier).fit(X, LABELS, LABELS != "rare")
    assert forest.classes_.tolist() == ["high", "low"]
    forest.partial_fit(X[:2], ["low", "new"], ["new", "low"], sample_weight=[0, 0])
    assert forest.classes_.tolist() == ["high", "low", "new"]
    assert forest.predict_proba(X[:1]).shape == (1, 3)


def test_forgetting_removes_the_weight_that_a_sample_came_with(kind):
    cls, y = kind
    rest = np.arange(N) >= 150
    expected = new(cls).fit(X[rest], y[rest], PARTS[rest])
    by_id = new(cls).fit(X, y, PARTS, ids=range(N)).forget(ids=range(150))
    latest = new(cls).fit(X, y, PARTS).keep_latest(250)
    window = new(cls, window=250).partial_fit(X, y, sample_weight=PARTS)
    assert_same(by_id, expected)
    assert_same(latest, expected)
    assert window.digest_ == expected.digest_
    # The oldest of equal samples is forgotten, with its weight.
    one, other = X[rest][:1], y[rest][:1]
    again = new(cls).fit(one, other, [7.5]).partial_fit(X[rest], y[rest], sample_weight=PARTS[rest])
    assert again.forget(one, other).digest_ == expected.digest_
    again = by_id.keep_latest(0).partial_fit(X[rest], y[rest], sample_weight=PARTS[rest])
    assert_same(again.recalibrate(), expected)


def test_copies_keep_weights(kind):
    cls, y = kind
    forest = new(cls).fit(X, y, PARTS, ids=range(N))
    for copied in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert_same(copied, forest)
        assert_same(copied.forget(ids=[0]), new(cls).fit(X[1:], y[1:], PARTS[1:]))
    halves = new(cls).fit(X[:90], y[:90], PARTS[:90]), new(cls).fit(X[90:], y[90:])
    together = new(cls).fit(X, y, np.where(np.arange(N) < 90, PARTS, 1))
    assert_same(merge(halves), together)
    assert_same(merge(halves[::-1]), together)


def test_a_file_is_that_of_the_samples_held(kind):
    """Weights that were forgotten leave no trace."""
    cls, y = kind
    plain = new(cls).fit(X, y)
    other = new(cls).fit(X[:5], y[:5], PARTS[:5]).partial_fit(X, y).keep_latest(N)
    assert other.digest_ == plain.digest_
    assert "weights" not in other._forest.get_state()


def test_weights_move_predictions():
    x = [[0.0]] * 4
    forest = new(OnlineForestClassifier, smoothing=0.0).fit(x, ["a", "a", "a", "b"], [1, 1, 1, 9])
    assert forest.predict_proba([[0.0]]).tolist() == [[0.25, 0.75]]
    forest = new(OnlineForestRegressor).fit(x, [1, 1, 1, 5], [0.5, 0.25, 0.25, 3])
    assert forest.predict([[0.0]]).tolist() == [4.0]


def test_labels_that_weigh_less_than_the_discount_are_smoothed_away():
    """The whole probability of such a node is that of its parent; no share is negative."""
    for weight in (2.0**-16, 0.1, 0.19, 0.2, 0.5):
        forest = new(OnlineForestClassifier, min_samples_split=2).fit(X, LABELS, np.full(N, weight))
        probabilities = forest.predict_proba(X)
        assert (probabilities > 0).all()
        assert probabilities.sum(axis=1) == pytest.approx(1)


def test_weights_are_rounded(kind):
    cls, y = kind
    weights = RNG.integers(1, 2**18, N) * 2.0**-16
    assert_same(new(cls).fit(X, y, weights + 2.0**-18), new(cls).fit(X, y, weights))
    assert new(cls).fit(X, y, weights + 2.0**-16).digest_ != new(cls).fit(X, y, weights).digest_


@pytest.mark.parametrize("scalar", [2, 2.0, np.float32(2), np.array(2)])
def test_a_number_is_the_weight_of_all(kind, scalar):
    cls, y = kind
    assert_same(new(cls).fit(X, y, scalar), new(cls).fit(X, y, np.full(N, 2)))
    assert_same(new(cls).fit(X, y, 1), new(cls).fit(X, y))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N), "at least 0. Got -1"),
        (np.where(np.arange(N) == 7, np.nan, 1), "sample_weight contains NaN"),
        (np.where(np.arange(N) == 7, np.inf, 1), "sample_weight contains infinity"),
        (np.ones(N - 1), r"must have shape \(400,\).* Got shape \(399,\)"),
        (np.ones((N, 1)), r"Got shape \(400, 1\)"),
        (np.full(N, 1e9), "at most 68719476736. Got 4e"),
        (["heavy"] * N, "could not convert string"),
    ],
)
def test_bad_weights_change_nothing(kind, weights, message):
    cls, y = kind
    forest = new(cls).fit(X[:50], y[:50])
    before = forest.digest_
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        forest.fit(X, y, weights)
    with pytest.raises(ValueError, match=r"sample_weight|string"):
        forest.learn_one(X[0], y[0], sample_weight=weights)
    assert forest.digest_ == before
    assert forest.n_samples_seen_ == 50


def test_the_total_weight_has_a_bound(kind):
    cls, y = kind
    forest = new(cls).fit(X[:50], y[:50], np.full(50, 1e9))
    before = forest.digest_
    with pytest.raises(ValueError, match="cannot have a total weight of 90000000000; at most 687"):
        forest.partial_fit(X[:40], y[:40], sample_weight=np.full(40, 1e9))
    assert forest.digest_ == before
    forest.keep_latest(10).partial_fit(X[:40], y[:40], sample_weight=np.full(40, 1e9))
    assert forest.verify()


def test_a_score_knows_weights(kind):
    cls, y = kind
    forest = new(cls).fit(X[:200], y[:200])
    copied = forest.score(np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES))
    assert forest.score(X, y, sample_weight=COPIES) == pytest.approx(copied)


def test_exact_sums_do_not_depend_on_the_order():
    values = RNG.normal(size=300) * np.exp2(RNG.integers(-40, 40, 300))
    weights = np.floor(np.exp2(RNG.uniform(0, 44, 300))) * 2.0**-16
    order = RNG.permutation(300)
    total = exact_sum(values, weights)
    assert exact_sum(values[order], weights[order]) == total
    small = RNG.integers(1, 5, 300).astype(float)
    repeated = np.repeat(values, small.astype(int))
    assert exact_sum(values, small) == exact_sum(repeated, np.ones(len(repeated)))


def test_quantiles_of_weighted_errors_are_those_of_copies():
    moments = np.column_stack([RNG.normal(size=60), RNG.random(60), RNG.random(60)])
    n_trees, values = RNG.integers(2, 9, 60), RNG.normal(size=60)
    copies = RNG.integers(1, 5, 60)
    weighted = NumberCalibration.of(moments, n_trees, values, copies.astype(float))
    repeated = NumberCalibration.of(
        *(np.repeat(each, copies, axis=0) for each in (moments, n_trees, values)),
        np.ones(copies.sum()),
    )
    for level in (0.001, 0.01, 0.05, 0.3, 0.5, 0.77, 0.95, 0.99, 0.999):
        assert weighted.quantile(level) == repeated.quantile(level)
    assert weighted.spread == repeated.spread


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(N, np.int64), "weights must be positive"),
        (np.full(N, -5), "weights must be positive"),
        (np.ones(N - 1, np.int64), "400 arrivals, but 399 weights"),
        (np.full(N, 2**50), "their sum at most"),
        (np.full(N, 2**62), "their sum at most"),
        (np.ones(N), "'weights' is not a contiguous one-dimensional array of int64"),
        (np.ones((N, 1), np.int64), r"its 'weights' has shape \(400, 1\)"),
    ],
)
def test_bad_weights_in_a_file_are_refused(kind, weights, message):
    cls, y = kind
    data = saved(new(cls).fit(X, y, PARTS + 0.1))
    with pytest.raises(ModelFileError, match=message):
        load(io.BytesIO(changed(data, arrays={"weights": weights})))
    plain = load(io.BytesIO(changed(data, arrays={"weights": None})))
    assert plain.digest_ == new(cls).fit(X, y).digest_
    with pytest.raises(ModelFileError, match="unexpected array 'wages'"):
        load(io.BytesIO(changed(data, arrays={"wages": np.ones(N)})))
