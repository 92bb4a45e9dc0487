"""One shard of a forest: operations once and in order, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from onlineforest._core import OrderFreeNumberForest
from onlineforest._shards import shard as module
from onlineforest._shards.errors import GapError
from onlineforest._shards.messages import ArrayQuestion, NamedArraysQuestion, Operation
from onlineforest._shards.shard import Shard, Start, fingerprint
from support.bits import assert_same
from support.crews import OPTIONS, some_plans

X = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
Y = X[:, 0].astype(np.float64)
LEAVES = ArrayQuestion("leaves", {"rows": X})
STATE = NamedArraysQuestion("get_state")
FORGET = Operation("forget", {"serials": np.array([99])})


def new_shard(number=0, start=None):
    return Shard(some_plans("OrderFreeNumberForest", 5, OPTIONS, 2)[number], start or Start())


def learning(rows=slice(0, 30)):
    return Operation("learn", {"rows": X[rows], "values": Y[rows]}, n_new=len(X[rows]))


def state_of(shard, position):
    return shard.ask(STATE, position).answer


def test_a_repeat_changes_nothing_and_a_gap_is_an_error():
    shard, once = new_shard(), new_shard()
    once.carry_out(1, learning())
    first = shard.carry_out(1, learning())
    assert shard.carry_out(1, learning()) == first  # the driver was interrupted
    assert_same(state_of(shard, 1), state_of(once, 1))
    for number in (0, 3):
        with pytest.raises(GapError, match=f"carried out 1 operations, .* operation {number}"):
            shard.carry_out(number, learning())
    assert_same(state_of(shard, 1), state_of(once, 1))


def test_a_question_about_another_position_is_an_error():
    shard = new_shard()
    shard.carry_out(1, learning())
    assert shard.ask(LEAVES, 1).answer is not None
    for position in (0, 2):
        with pytest.raises(GapError, match=f"has carried out 1 operations, not {position}"):
            shard.ask(LEAVES, position)


def test_a_refused_operation_counts_but_changes_nothing():
    shard = new_shard()
    shard.carry_out(1, learning())
    before = state_of(shard, 1)
    assert "not stored" in shard.carry_out(2, FORGET).refusal
    assert_same(state_of(shard, 2), before)
    assert shard.ask(ArrayQuestion("leaves", {"rows": X[:, :2].copy()}), 2).refusal


@pytest.mark.parametrize("message", [STATE, LEAVES, "learn", "__class__", None])
def test_only_operations_are_carried_out(message):
    shard = new_shard()
    with pytest.raises(TypeError, match="is not an operation"):
        shard.carry_out(1, message)
    assert shard.ask(LEAVES, 0).refusal is None


@pytest.mark.parametrize("message", [learning(), FORGET, "learn", "__class__", None])
def test_only_questions_are_answered(message):
    shard = new_shard()
    before = state_of(shard, 0)
    with pytest.raises(TypeError, match="is not a question"):
        shard.ask(message, 0)
    assert_same(state_of(shard, 0), before)


def test_a_shard_has_trees_of_the_whole_forest():
    whole = OrderFreeNumberForest(5, 3, **OPTIONS)
    whole.learn(X, Y)
    for number, (begin, end) in enumerate([(0, 2), (2, 5)]):
        shard = new_shard(number)
        shard.carry_out(1, learning(slice(0, 90)))
        for i in range(begin, end):
            tree = shard.ask(NamedArraysQuestion("tree", {"index": i - begin}), 1).answer
            assert_same(tree, whole.tree(i))


def test_a_shard_starts_from_the_state_of_another():
    """Then it has its own trees, and continues after the operations of the other."""
    donor, own = new_shard(0), new_shard(1)
    for shard in (donor, own):
        shard.carry_out(1, learning())
    again = new_shard(1, Start(1, state_of(donor, 1)))
    assert again.hello().status == own.hello().status
    for number in (2, 3):
        operation = learning(slice(number * 25, number * 25 + 20))
        assert again.carry_out(number, operation) == own.carry_out(number, operation)
    assert again.ask(LEAVES, 3).answer.tobytes() == own.ask(LEAVES, 3).answer.tobytes()
    assert_same(state_of(again, 3), state_of(own, 3))


def test_the_fingerprint_depends_on_the_forests(monkeypatch):
    own = fingerprint()
    assert fingerprint.__wrapped__() == own
    rows = np.nextafter(module._fixed_rows(), np.float32(9))
    monkeypatch.setattr(module, "_fixed_rows", lambda: rows)
    assert fingerprint.__wrapped__() != own
