"""Equal samples in a Mondrian forest: one point, which counts as often as it has arrived.

References: tests/parity. Any history: tests/property.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier, load
from support.bits import assert_same
from support.interrupts import CtrlC
from support.model_files import saved

RNG = np.random.default_rng(11)
N = 300
X = RNG.integers(0, 12, (N, 3)).astype(float)
Y = np.array(["low", "high", "rare"])[np.where(RNG.random(N) < 0.05, 2, X.sum(axis=1) > 17)]
COPIES = RNG.integers(1, 4, N)
COPIED = np.repeat(np.arange(N), COPIES)
ARRIVALS = {
    "serials",
    "sample_of",
    "n_seen",
}  # arrays of a state that depend on the order of samples


def new(**parameters):
    return MondrianForestClassifier(n_estimators=7, random_state=3, **parameters)


def fixed():
    """A forest whose cuts depend on the distinct samples alone."""
    return new(feature_weights=None, leaf_discount=0.2)


def answers(forest):
    queries = X[:50] + 0.25
    return {
        "novelty": forest.novelty(queries),
        "leaves": forest.apply(queries),
        "probabilities": forest.predict_proba(queries),
    }


def points_of(forest):
    """The state of a forest without its arrivals: distinct samples, trees, measures."""
    state = forest._forest.get_state()
    return {name: array for name, array in state.items() if name not in ARRIVALS}


def counts_of(forest):
    """How often each distinct sample counts."""
    state = forest._forest.get_state()
    return np.bincount(state.get("sample_of", np.arange(len(state["serials"]))))


def assert_equal(one, other):
    one._forest.check_invariants()
    assert_same(points_of(one), points_of(other))
    assert np.array_equal(counts_of(one), counts_of(other))
    assert_same(answers(one), answers(other))


def test_copies_may_come_anywhere_in_a_batch():
    """The order in which samples first come is that of the forest."""
    more = RNG.permutation(np.repeat(np.arange(N), COPIES - 1))
    places = np.concatenate([np.arange(N), more])
    assert_equal(new().fit(X[places], Y[places]), new().fit(X[COPIED], Y[COPIED]))


def test_a_copy_adds_no_point():
    forest = new().fit(X[COPIED], Y[COPIED])
    distinct = len(np.unique(np.column_stack([X, np.unique(Y, return_inverse=True)[1]]), axis=0))
    assert forest.n_samples_stored_ == len(COPIED)
    assert forest._forest.n_samples == len(COPIED)
    assert len(counts_of(forest)) == distinct


def test_copies_in_a_batch_and_one_by_one():
    """Cuts do not see copies: the forest has the cuts of the distinct samples."""
    once, batch, single = fixed().fit(X, Y), fixed().fit(X[COPIED], Y[COPIED]), fixed().fit(X, Y)
    for i in np.repeat(np.arange(N), COPIES - 1):
        single.learn_one(X[i], Y[i])
    assert_equal(single, batch)
    assert_same({"": single.apply(X)}, {"": once.apply(X)})


def test_forgetting_removes_one_copy():
    forest = fixed().fit(X, Y)
    expected = copy.deepcopy(forest)
    forest.partial_fit(X[:60], Y[:60], ids=range(60))
    assert counts_of(forest).sum() == N + 60
    assert_equal(forest.forget(ids=range(60)), expected)
    # The oldest of equal samples leaves.
    pair = fixed().fit([[1.0], [1.0]], ["a", "a"], ids=["old", "young"])
    assert pair.forget([[1.0]], ["a"]).ids_ == {"young"}
    assert counts_of(pair).tolist() == [1]
    assert pair.forget([[1.0]], ["a"]).n_samples_stored_ == 0


def test_forgetting_is_the_same_however_samples_leave():
    gone, rest = np.arange(100), np.arange(100, len(COPIED))
    rows, y = X[COPIED], Y[COPIED]
    by_id = fixed().fit(rows, y, ids=range(len(rows))).forget(ids=gone.tolist())
    kept = fixed().fit(rows, y).keep_latest(len(rest))
    window = fixed().set_params(window=len(rest)).fit(rows, y)
    for forest in (by_id, kept, window):
        forest._forest.check_invariants()
        assert counts_of(forest).sum() == len(rest)
    assert_same(answers(by_id), answers(kept))


def test_a_window_that_fills_with_copies_learns_about_them():
    """The weights of features are refreshed though no more distinct samples come."""
    rng = np.random.default_rng(4)
    rows = rng.random((200, 2))
    forest = new(window=200).fit(rows, rows[:, 0] > 0.5)
    few = np.array([[0.2, 50.0], [0.7, 90.0], [0.4, 10.0], [0.1, 70.0]])
    for i in range(300):
        forest.learn_one(few[i % 4], bool(i % 2))
    assert len(counts_of(forest)) == 4
    assert forest.feature_weights_[1] < 1 / 79  # the range of the few
    forest._forest.check_invariants()


def test_copies_move_predictions():
    x, y = [[0.0]] * 12, ["a"] * 3 + ["b"] * 9
    forest = new(discount=1e9, leaf_discount=0.0, feature_weights=None).fit(x, y)
    assert forest.predict_proba([[0.0]]) == pytest.approx(np.array([[0.25, 0.75]]))


def test_copies_say_which_features_matter():
    """In one half of the samples y follows the first feature, in the other half the second."""
    rng = np.random.default_rng(2)
    rows = rng.random((1600, 2))
    is_first = np.arange(1600) < 800
    y = np.where(is_first, rows[:, 0], rows[:, 1]) > 0.5
    first, second = (
        np.repeat(np.arange(1600), np.where(half, 20, 1)) for half in (is_first, ~is_first)
    )
    by_first, by_second = (new().fit(rows[which], y[which]) for which in (first, second))
    assert by_first.feature_weights_[0] > 5 * by_first.feature_weights_[1]
    assert by_second.feature_weights_[1] > 5 * by_second.feature_weights_[0]


def test_what_is_learned_about_the_data_is_that_of_their_shares():
    """A sample that comes twice as often as all others is not heavier if all come twice."""
    once, twice = (
        new().fit(X[COPIED], Y[COPIED]),
        new().fit(*(np.repeat(a[COPIED], 2, axis=0) for a in (X, Y))),
    )
    assert once.feature_importances_ == pytest.approx(twice.feature_importances_, rel=1e-9)


def test_copies_of_a_forest_keep_counts():
    forest = new().fit(X[COPIED], Y[COPIED], ids=range(len(COPIED)))
    expected = copy.deepcopy(forest).partial_fit(X[100:], Y[100:])
    for twin in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert_same(twin._forest.get_state(), forest._forest.get_state())
        assert_same(answers(twin), answers(forest))
        twin.partial_fit(X[100:], Y[100:])
        assert_same(twin._forest.get_state(), expected._forest.get_state())
        twin.forget(ids=range(50))._forest.check_invariants()


def test_a_forest_without_copies_has_no_array_for_them():
    codes = np.unique(Y, return_inverse=True)[1]
    first = np.unique(np.column_stack([X, codes]), axis=0, return_index=True)[1]
    forest = new().fit(X[first], Y[first])
    assert "sample_of" not in forest._forest.get_state()
    forest.partial_fit(X[first[:5]], Y[first[:5]], ids=range(5)).forget(ids=range(5))
    assert "sample_of" not in forest._forest.get_state()


@pytest.mark.heavy_under_sanitizers(reason="a call must take long enough to be interrupted")
def test_an_interrupt_while_counts_change_leaves_the_forest_valid():
    """The samples count twice; the next call grows the trees again that could not follow."""
    rows = np.random.default_rng(1).random((3000, 3))
    y = rows.sum(axis=1) > 1.5
    forest = fixed().set_params(n_estimators=300).fit(rows, y)
    with pytest.raises(KeyboardInterrupt), CtrlC(0.01) as ctrl_c:
        forest.partial_fit(rows, y)
    assert ctrl_c.seconds_to_return < 1
    forest._forest.check_invariants()
    assert forest.n_samples_stored_ == 6000
    assert (counts_of(forest) == 2).all()
    assert min(tree.n_nodes for tree in forest.trees_) == 0
    forest.learn_one(rows[0], y[0])._forest.check_invariants()
    assert min(tree.n_nodes for tree in forest.trees_) > 500
