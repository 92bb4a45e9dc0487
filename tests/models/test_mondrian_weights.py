"""Weights of samples in Mondrian forests: a weight is a number of copies, or a part of one.

References with weights: tests/parity. Any history: tests/property. Shards: tests/distributed.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier, MondrianForestRegressor, load
from onlineforest._core import UNITS_PER_SAMPLE
from support.bits import assert_same
from support.interrupts import CtrlC
from support.model_files import saved

RNG = np.random.default_rng(11)
N = 300
X = RNG.integers(0, 12, (N, 3)).astype(float)
X[RNG.random(X.shape) < 0.05] = np.nan
LABELS = np.array(["low", "high", "rare"])[
    np.where(RNG.random(N) < 0.05, 2, np.nan_to_num(X).sum(axis=1) > 17)
]
VALUES = np.nan_to_num(X) @ [1.0, -2.0, 0.5] + RNG.normal(size=N).round(1)
COPIES = RNG.integers(0, 4, N)
PARTS = RNG.integers(1, 24, N) / 8
KINDS = {
    "labels": (MondrianForestClassifier, LABELS),
    "numbers": (MondrianForestRegressor, VALUES),
}
ARRIVALS = {"serials", "sample_of", "weights", "n_seen"}  # of a state


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def new(cls, **parameters):
    return cls(n_estimators=7, random_state=3, **parameters)


def fixed(cls):
    """A forest whose cuts depend on the samples alone; a refresh makes all else so, too."""
    own = {"leaf_discount": 0.2} if cls is MondrianForestClassifier else {"trend": None}
    return new(cls, feature_weights=None, **own)


def answers(forest):
    """All that a forest says about rows."""
    queries = np.nan_to_num(X[:50]) + 0.25
    found = {"novelty": forest.novelty(queries), "leaves": forest.apply(queries)}
    if isinstance(forest, MondrianForestClassifier):
        return found | {"probabilities": forest.predict_proba(queries)}
    mean, std = forest.predict(queries, return_std=True)
    return found | {"mean": mean, "std": std, "q": forest.predict_quantiles(queries, [0.05, 0.9])}


def points_of(forest):
    """The state of a forest without its arrivals: distinct samples, trees, measures."""
    state = forest._forest.get_state()
    return {name: array for name, array in state.items() if name not in ARRIVALS}


def weights_of(forest):
    """The weight of each distinct sample."""
    state = forest._forest.get_state()
    points = state.get("sample_of", np.arange(len(state["serials"])))
    units = state.get("weights", np.full(len(points), UNITS_PER_SAMPLE))
    return np.bincount(points, units) / UNITS_PER_SAMPLE


def assert_equal(one, other):
    one._forest.check_invariants()
    assert_same(points_of(one), points_of(other))
    assert np.array_equal(weights_of(one), weights_of(other))
    assert_same(answers(one), answers(other))


def test_a_whole_weight_is_a_number_of_copies(kind):
    cls, y = kind
    copied = new(cls).fit(np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES))
    weighted = new(cls).fit(X, y, COPIES)
    assert weighted.n_samples_seen_ == np.count_nonzero(COPIES)
    assert_equal(weighted, copied)
    assert_same({"": weighted.feature_importances_}, {"": copied.feature_importances_})


def test_copies_may_come_anywhere_in_a_batch(kind):
    """The order in which samples first come is that of the forest."""
    cls, y = kind
    there = np.flatnonzero(COPIES)
    more = RNG.permutation(np.repeat(there, COPIES[there] - 1))
    places = np.concatenate([there, more])
    assert_equal(new(cls).fit(X[places], y[places]), new(cls).fit(X, y, COPIES))


@pytest.mark.parametrize("step", [1, 40])
def test_batches_and_single_samples(kind, step):
    cls, y = kind
    copied, weighted, single = new(cls), new(cls), new(cls)
    for begin in range(0, N, step):
        part = slice(begin, begin + step)
        if not COPIES[part].any():
            continue
        weighted.partial_fit(X[part], y[part], sample_weight=COPIES[part])
        copied.partial_fit(
            np.repeat(X[part], COPIES[part], axis=0), np.repeat(y[part], COPIES[part])
        )
    assert_equal(weighted, copied)
    if step > 1:
        return
    for x, value, copies in zip(X, y, COPIES):
        single.learn_one(x, value, sample_weight=copies)
    assert_equal(single, weighted)


def test_a_sample_of_weight_0_is_not_there(kind):
    cls, y = kind
    there = PARTS > 1
    forest = new(cls).fit(X, y, np.where(there, PARTS, 0), ids=range(N))
    assert_equal(forest, new(cls).fit(X[there], y[there], PARTS[there]))
    assert forest.ids_ == set(np.flatnonzero(there).tolist())
    before = forest._forest.get_state()
    forest.partial_fit(X[:3], y[:3], sample_weight=[0, 0, 0], ids=["a", "b", "c"])
    forest.learn_one(X[0], y[0], sample_weight=0.0)
    assert_same(forest._forest.get_state(), before)
    with pytest.raises(ValueError, match="must not be zero for all"):
        new(cls).fit(X, y, np.zeros(N))


def test_forgetting_removes_the_weight_that_a_sample_came_with(kind):
    cls, y = kind
    gone, rest = np.arange(N) < 100, np.arange(N) >= 100
    expected = fixed(cls).fit(X[rest], y[rest], PARTS[rest])
    again = fixed(cls).fit(X[rest], y[rest], PARTS[rest])
    again.partial_fit(X[rest][:60], y[rest][:60], sample_weight=PARTS[:60], ids=range(60))
    assert again.n_samples_stored_ == 260
    again._forest.check_invariants()
    assert np.array_equal(weights_of(again.forget(ids=range(60))), weights_of(expected))
    assert_equal(again.refresh_weights(), expected.refresh_weights())
    # Of equal samples the oldest leaves, with its weight.
    one, other = X[rest][:1], y[rest][:1]
    light = fixed(cls).fit(one, other, [0.5]).partial_fit(one, other, sample_weight=[3])
    assert weights_of(light).tolist() == [3.5]
    assert weights_of(light.forget(one, other)).tolist() == [3]
    assert light.forget(one, other).n_samples_stored_ == 0
    # However samples leave, what stays is the same.
    by_id = fixed(cls).fit(X, y, PARTS, ids=range(N)).forget(ids=np.flatnonzero(gone).tolist())
    window = fixed(cls).set_params(window=200).fit(X, y, PARTS)
    for forest in (by_id, window, fixed(cls).fit(X, y, PARTS).keep_latest(200)):
        forest._forest.check_invariants()
        assert forest.n_samples_stored_ == 200
        assert weights_of(forest).sum() == PARTS[rest].sum()


def test_a_window_that_fills_with_copies_learns_about_them():
    """What is learned about the data is refreshed though no more distinct samples come."""
    rng = np.random.default_rng(4)
    rows = rng.random((200, 2))
    forest = new(MondrianForestClassifier, window=200).fit(rows, rows[:, 0] > 0.5)
    few = np.array([[0.2, 50.0], [0.7, 90.0], [0.4, 10.0], [0.1, 70.0]])
    for i in range(300):
        forest.learn_one(few[i % 4], bool(i % 2))
    assert len(forest._forest.get_state()["values"]) == 4
    assert forest.feature_weights_[1] < 1 / 79  # the range of the few
    forest._forest.check_invariants()


def test_weights_move_predictions():
    x = [[0.0]] * 4
    plain = {"discount": 1e9, "leaf_discount": 0.0, "feature_weights": None}
    forest = new(MondrianForestClassifier, **plain).fit(x, ["a", "a", "a", "b"], [1, 1, 1, 9])
    assert forest.predict_proba([[0.0]]) == pytest.approx(np.array([[0.25, 0.75]]))
    numbers = {"trend": None, "noise": 0.01, "discount": 1e9, "calibrate": False}
    forest = new(MondrianForestRegressor, **numbers).fit(x, [1, 1, 1, 5], [0.5, 0.25, 0.25, 3])
    assert forest.predict([[0.0]]) == pytest.approx([4.0], rel=0.01)


def test_labels_that_weigh_less_than_the_discount_are_smoothed_away():
    """No share is negative."""
    for weight in (2.0**-16, 0.1, 0.29, 0.31, 0.9):
        forest = new(MondrianForestClassifier, leaf_discount=0.3).fit(X, LABELS, np.full(N, weight))
        probabilities = forest.predict_proba(X)
        assert (probabilities > 0).all()
        assert probabilities.sum(axis=1) == pytest.approx(1)


def test_heavy_samples_say_which_features_matter(kind):
    """In one half of the samples y follows the first feature, in the other half the second."""
    cls, _ = kind
    rng = np.random.default_rng(2)
    rows = rng.random((1600, 2))
    values = np.where(np.arange(1600) < 800, rows[:, 0], rows[:, 1])
    y = values > 0.5 if cls is MondrianForestClassifier else values
    first = np.where(np.arange(1600) < 800, 1.0, 0.01)
    own = {} if cls is MondrianForestClassifier else {"trend": None}
    by_first, by_second = (
        new(cls, **own).fit(rows, y, weights) for weights in (first, first[::-1])
    )
    assert by_first.feature_weights_[0] > 5 * by_first.feature_weights_[1]
    assert by_second.feature_weights_[1] > 5 * by_second.feature_weights_[0]


def test_the_unit_of_weights_does_not_decide_what_is_learned_about_the_data(kind):
    cls, y = kind
    one, other = new(cls).fit(X, y, PARTS), new(cls).fit(X, y, 1024 * PARTS)
    assert one.feature_weights_ == pytest.approx(other.feature_weights_, rel=1e-9)
    assert one.feature_importances_ == pytest.approx(other.feature_importances_, rel=1e-9)


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_weights_say_which_samples_to_believe(kind):
    """Samples with wrong targets do little harm if they are light and not alone in their leaves."""
    cls, _ = kind
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, (2000, 3)).astype(float)
    y = rows.sum(axis=1) if cls is MondrianForestRegressor else rows.sum(axis=1) > 7.5
    is_wrong = rng.random(2000) < 0.4
    wrong = np.where(is_wrong, rng.permutation(y), y)
    weights = np.where(is_wrong, 0.05, 1.0)
    plain = new(cls).fit(rows[:1500], wrong[:1500])
    weighted = new(cls).fit(rows[:1500], wrong[:1500], weights[:1500])
    scores = [each.score(rows[1500:], y[1500:]) for each in (plain, weighted)]
    assert scores[1] > max(scores[0] + 0.02, 0.97)


def test_copies_of_a_forest_keep_weights(kind):
    cls, y = kind
    forest = new(cls).fit(X[:200], y[:200], PARTS[:200], ids=range(200))
    expected = copy.deepcopy(forest).partial_fit(X[100:], y[100:], sample_weight=PARTS[100:])
    for twin in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert_same(twin._forest.get_state(), forest._forest.get_state())
        assert_same(answers(twin), answers(forest))
        twin.partial_fit(X[100:], y[100:], sample_weight=PARTS[100:])
        assert_same(twin._forest.get_state(), expected._forest.get_state())
        twin.forget(ids=range(50))._forest.check_invariants()


def test_a_forest_without_weights_and_copies_has_no_arrays_for_them(kind):
    cls, y = kind
    codes = np.unique(y, return_inverse=True)[1]
    samples = np.column_stack([np.nan_to_num(X, nan=-1), codes])
    first = np.unique(samples, axis=0, return_index=True)[1]
    forest = new(cls).fit(X[first], y[first], np.ones(len(first)))
    assert not {"sample_of", "weights"} & forest._forest.get_state().keys()
    forest.partial_fit(X[:5], y[:5], sample_weight=PARTS[:5], ids=range(5)).forget(ids=range(5))
    assert not {"sample_of", "weights"} & forest._forest.get_state().keys()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N), "at least 0. Got -1"),
        (np.where(np.arange(N) == 7, np.nan, 1), "sample_weight contains NaN"),
        (np.ones(N - 1), r"must have shape \(300,\).* Got shape \(299,\)"),
        (np.full(N, 1e9), "at most 68719476736. Got 3e"),
    ],
)
def test_bad_weights_change_nothing(kind, weights, message):
    cls, y = kind
    forest = new(cls).fit(X[:50], y[:50])
    before = forest._forest.get_state()
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        forest.fit(X, y, weights)
    with pytest.raises(ValueError, match="sample_weight"):
        forest.learn_one(X[0], y[0], sample_weight=weights)
    assert_same(forest._forest.get_state(), before)


def test_the_total_weight_has_a_bound(kind):
    cls, y = kind
    forest = new(cls).fit(X[:50], y[:50], np.full(50, 1e9))
    before = forest._forest.get_state()
    with pytest.raises(ValueError, match="cannot have a total weight of 90000000000; at most 687"):
        forest.partial_fit(X[:40], y[:40], sample_weight=np.full(40, 1e9))
    assert_same(forest._forest.get_state(), before)
    forest.keep_latest(10).partial_fit(X[:40], y[:40], sample_weight=np.full(40, 1e9))
    forest._forest.check_invariants()


@pytest.mark.heavy_under_sanitizers(reason="a call must take long enough to be interrupted")
def test_an_interrupt_while_weights_change_leaves_the_forest_valid(kind):
    """The samples count twice; the next call grows the trees again that could not follow."""
    cls, _ = kind
    rng = np.random.default_rng(1)
    rows = rng.random((3000, 3))
    y = rows.sum(axis=1) > 1.5 if cls is MondrianForestClassifier else rows.sum(axis=1)
    forest = fixed(cls).set_params(n_estimators=300).fit(rows, y)
    with pytest.raises(KeyboardInterrupt), CtrlC(0.01) as ctrl_c:
        forest.partial_fit(rows, y)
    assert ctrl_c.seconds_to_return < 1
    forest._forest.check_invariants()
    assert forest.n_samples_stored_ == 6000
    assert (weights_of(forest) == 2).all()
    assert min(tree.n_nodes for tree in forest.trees_) == 0
    forest.learn_one(rows[0], y[0])._forest.check_invariants()
    assert min(tree.n_nodes for tree in forest.trees_) > 500
