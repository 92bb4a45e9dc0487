"""A forest in parts is the local one to the bit, whatever is lost and when."""

from __future__ import annotations

import contextlib
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from onlineforest import _core
from onlineforest._distributed.keeping import MemberLostError, ShardLostError
from onlineforest._distributed.shard import Shard
from onlineforest._distributed.shares import join_states
from onlineforest._distributed.snapshots import Snapshots
from support.bits import assert_same
from support.crews import GAUSSIAN_OPTIONS, LABEL_OPTIONS, LocalCrew, plans_of, sharded

RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 3)).astype(np.float32)
X[RNG.random(X.shape) < 0.02] = np.nan
LABELS = (np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) > 0).astype(np.int32)
VALUES = np.nan_to_num(X[:, 0]) * 2.0 + RNG.normal(size=600)
QUERIES = np.ascontiguousarray(X[:40] + np.float32(0.2))
KINDS = {"LabelForest": LABEL_OPTIONS, "GaussianForest": GAUSSIAN_OPTIONS}


def lesson(core, rows):
    return (X[rows], LABELS[rows], 2) if core == "LabelForest" else (X[rows], VALUES[rows])


def assert_same_answers(forest, local):
    levels = np.array([0.1, 0.5])
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))
    assert np.array_equal(forest.novelty(QUERIES), local.novelty(QUERIES))
    assert np.array_equal(forest.apply(QUERIES), local.apply(QUERIES))
    assert np.array_equal(forest.relevance(), local.relevance())
    assert forest.n_points == local.n_points and forest.n_seen == local.n_seen
    if hasattr(local, "quantiles"):
        assert np.array_equal(forest.quantiles(QUERIES, levels), local.quantiles(QUERIES, levels))
        values = np.linspace(-3, 3, len(QUERIES))
        assert np.array_equal(
            forest.log_density(QUERIES, values), local.log_density(QUERIES, values)
        )
    else:
        assert forest.n_classes == local.n_classes
    for index in (0, local.n_trees - 1):
        tree, own = forest.tree(index), local.tree(index)
        assert {name: array.tobytes() for name, array in tree.items()} == {
            name: array.tobytes() for name, array in own.items()
        }


HISTORIES = {
    "batches": ({}, []),
    "window": ({"window": 200}, []),
    "reservoir": ({"reservoir": 150, "half_life": 300.0}, []),
    "forgetting": (
        {},
        [
            lambda f, core: f.forget(np.arange(3, 90, 4)),
            lambda f, core: f.forget_rows(*lesson(core, slice(120, 140))[:2]),
            lambda f, core: f.keep_latest(250),
        ],
    ),
    "refresh": ({}, [lambda f, core: f.refresh()] * 3),
    "all forgotten": ({}, [lambda f, core: f.keep_latest(0)]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(("n_trees", "n_parts"), [(1, 1), (10, 1), (10, 2), (13, 5), (40, 3)])
@pytest.mark.parametrize("core", KINDS)
def test_it_is_the_local_forest(core, n_trees, n_parts, history):
    keep, others = HISTORIES[history]
    options = KINDS[core] | keep
    local = getattr(_core, core)(n_trees, 3, **options)
    forest = sharded(LocalCrew(), plans_of(core, n_trees, 3, options, n_parts))
    others = list(others)
    for begin in range(0, 600, 75):
        for each in (local, forest):
            each.learn(*lesson(core, slice(begin, begin + 75)), 1, begin == 300)
        if others and begin >= 150:
            change = others.pop(0)
            change(local, core)
            change(forest, core)
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    forest.check_invariants()


@pytest.mark.parametrize("core", KINDS)
def test_rows_in_pieces_are_answered_alike(core, monkeypatch):
    local = getattr(_core, core)(9, 3, **KINDS[core])
    forest = sharded(LocalCrew(), plans_of(core, 9, 3, KINDS[core], 2))
    for each in (local, forest):
        each.learn(*lesson(core, slice(0, 300)))
    monkeypatch.setattr("onlineforest._distributed.sharded._MOST_NUMBERS", 64)
    assert_same_answers(forest, local)
    assert forest.predict(QUERIES[:0]).shape == local.predict(QUERIES[:0]).shape


class Fate:
    """Loses members now and then, before or after they have done what was asked."""

    def __init__(self, seed, rate):
        self.random = random.Random(seed)
        self.rate = rate
        self.has_begun = False

    def __call__(self, number, method):
        if not self.has_begun or self.random.random() > self.rate:
            return None
        return self.random.choice(["before", "after"])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_pipelined", [False, True])
@pytest.mark.parametrize("core", KINDS)
def test_lost_members_come_back_the_same(core, is_pipelined, seed, tmp_path):
    options = KINDS[core] | ({"window": 250} if seed % 2 else {})
    local = getattr(_core, core)(11, 3, **options)
    crew = LocalCrew(fate := Fate(seed, 0.06))
    snapshots = Snapshots(tmp_path, "a run")
    forest = sharded(
        crew, plans_of(core, 11, 3, options, 3), snapshots, max_in_flight=3, max_tries=20
    )
    fate.has_begun = True

    def take_snapshot():
        forest.rely_on_snapshot(forest.write_parts())

    def learn_some(numbers):
        for i in numbers:
            rows = slice(25 * i, 25 * i + 25)
            local.learn(*lesson(core, rows))
            forest.learn(*lesson(core, rows))
            if i % 5 == 4:
                take_snapshot()

    if is_pipelined:
        with forest.pipelined():
            learn_some(range(12))
    else:
        learn_some(range(12))
    local.forget(np.arange(200, 220))
    forest.forget(np.arange(200, 220))
    learn_some(range(12, 24))
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    assert crew.n_lost >= 3 and forest.n_recoveries >= crew.n_lost - 3
    assert crew.n_started == 3 + forest.n_recoveries or crew.n_lost > forest.n_recoveries


def some_forest(crew=None, snapshots=None, **settings):
    crew = crew or LocalCrew()
    return sharded(crew, plans_of("LabelForest", 6, 3, LABEL_OPTIONS, 2), snapshots, **settings)


def test_no_more_than_allowed_is_under_way():
    forest = some_forest(max_in_flight=3)
    most = 0
    with forest.pipelined():
        for begin in range(0, 600, 20):
            forest.learn(*lesson("LabelForest", slice(begin, begin + 20)))
            most = max(most, forest._tip.number - forest._completed)
    assert most == 3
    assert forest._completed == forest._tip.number == 30
    assert not forest._log  # nothing is kept that is not needed


def test_without_a_folder_a_loss_is_an_error():
    crew = LocalCrew()
    forest = some_forest(crew)
    forest.learn(X, LABELS, 2)
    crew.shards.clear()
    for use in (forest.predict, forest.predict, forest.apply):  # and stays one
        with pytest.raises(ShardLostError, match="shard 0 of 2 was lost, and no folder"):
            use(QUERIES)


def test_what_cannot_come_back_is_told_and_can_be_tried_again(tmp_path):
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    local = _core.LabelForest(6, 3, **LABEL_OPTIONS)
    local.learn(X[:300], LABELS[:300], 2)
    forest.learn(X[:300], LABELS[:300], 2)
    crew.shards.pop(1)
    crew.can_start = False
    with pytest.raises(ShardLostError) as caught:
        forest.predict(QUERIES)
    assert "shard 1 of 2 could not be started within 5 s. 2 shards need 2." in str(caught.value)
    assert "up to operation 0 is safe" in str(caught.value)
    crew.can_start = True
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))


def test_a_member_that_is_lost_each_time_is_given_up(tmp_path):
    crew = LocalCrew(lambda number, method: number == 1 and method == "carry_out" and "before")
    forest = some_forest(crew, Snapshots(tmp_path, "a run"), max_tries=3)
    with pytest.raises(ShardLostError, match="shard 1 of 2 was lost 3 times at the same place"):
        forest.learn(X, LABELS, 2)
    assert crew.n_lost == 3
    assert forest.n_seen == 600  # the batch is on its way
    crew.loses = lambda number, method: None
    assert forest.n_points == 600


def test_a_member_without_memory_is_built_anew(tmp_path, monkeypatch):
    """It has not done what it was told; so it begins with its snapshot and does it again."""
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    local = _core.LabelForest(6, 3, **LABEL_OPTIONS)

    def fail(*_, **__):
        crew.shards[1]._forest = healthy
        raise MemoryError

    forest.learn(X[:300], LABELS[:300], 2)
    healthy = crew.shards[1]._forest
    crew.shards[1]._forest = SimpleNamespace(learn=fail)
    forest.learn(X[300:], LABELS[300:], 2)
    for rows in (slice(0, 300), slice(300, 600)):
        local.learn(X[rows], LABELS[rows], 2)
    assert_same(forest.get_state(), local.get_state())
    assert forest.n_recoveries == 1


def test_parts_that_do_not_agree_are_told():
    crew = LocalCrew()
    forest = some_forest(crew)
    forest.learn(X[:300], LABELS[:300], 2)
    crew.shards[1]._forest.forget(np.arange(5))  # behind its back
    with pytest.raises(RuntimeError, match="Parts 0 and 1 of a forest do not agree on"):
        forest.get_state()
    forest._status = None
    with pytest.raises(ShardLostError, match="The shards do not agree"):
        _ = forest.n_points
    with pytest.raises(ShardLostError, match="shard 1 of 2 does not agree with shard 0"):
        forest.learn(X[300:], LABELS[300:], 2)


def test_a_member_that_is_lost_at_once_is_told():
    crew = LocalCrew(lambda number, method: number == 1 and "before")
    with pytest.raises(ShardLostError, match="A shard could not be started"):
        some_forest(crew)
    assert not crew.shards  # those that were started are ended


def test_a_part_on_another_kind_of_machine_is_refused(monkeypatch):
    monkeypatch.setattr("onlineforest._distributed.shard.fingerprint", lambda: "of another kind")
    plans = plans_of("LabelForest", 6, 3, LABEL_OPTIONS, 2)
    crew = LocalCrew()
    monkeypatch.setattr(
        "support.crews.hello_from_here",
        lambda: SimpleNamespace(
            version=__import__("onlineforest").__version__, fingerprint="own", machine="mine"
        ),
    )
    with pytest.raises(ShardLostError, match="its fingerprint is of another kind"):
        sharded(crew, plans)
    assert not crew.shards  # they were ended


def test_a_refusal_is_that_of_the_local_forest():
    forest, local = some_forest(), _core.LabelForest(6, 3, **LABEL_OPTIONS)
    for each in (forest, local):
        each.learn(X, LABELS, 2)
        with pytest.raises(ValueError, match="a point to be forgotten is not stored"):
            each.forget(np.array([1000]))
        with pytest.raises(ValueError, match="the number of classes cannot shrink"):
            each.learn(X[:1], LABELS[:1] * 0, 1)
        assert list(each.forget_rows(X[:1] + 100, LABELS[:1])) == [0]
        assert each.n_seen == 600
    assert_same(forest.get_state(), local.get_state())


def test_when_no_snapshot_can_be_written_it_takes_no_more_than_it_can_keep(tmp_path):
    forest = some_forest(None, Snapshots(tmp_path, "a run"), max_log=4)
    for begin in range(0, 80, 20):
        forest.learn(*lesson("LabelForest", slice(begin, begin + 20)))
    before = forest.get_state()
    with pytest.raises(ShardLostError, match="No snapshot could be written since operation 0"):
        forest.learn(*lesson("LabelForest", slice(80, 100)))
    assert_same(forest.get_state(), before)
    forest.rely_on_snapshot(forest.write_parts())
    forest.learn(*lesson("LabelForest", slice(80, 100)))
    assert forest.n_points == 100


def test_a_folder_that_is_not_shared_is_told(tmp_path, monkeypatch):
    forest = some_forest(None, Snapshots(tmp_path, "a run"))
    forest.learn(X, LABELS, 2)
    monkeypatch.setattr(
        "onlineforest._distributed.shard.write_part", lambda *_: None
    )  # on another machine
    with pytest.raises(OSError, match=r"shard 0 of 2: it wrote .* all nodes must share it"):
        forest.write_parts()


def test_closed_is_closed():
    forest = some_forest()
    forest.learn(X, LABELS, 2)
    forest.close()
    for use in (lambda: forest.predict(QUERIES), lambda: forest.n_points, forest.refresh):
        with pytest.raises(RuntimeError, match="were closed"):
            use()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["put", "call", "get"])
def test_an_interrupt_anywhere_leaves_it_in_step(place, error, tmp_path):
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    local = _core.LabelForest(6, 3, **LABEL_OPTIONS)
    for i in range(24):
        rows = slice(25 * i, 25 * i + 25)
        real, countdown = getattr(crew, place), i % 4

        def interrupting(*arguments, real=real):
            nonlocal countdown
            countdown -= 1
            if countdown == 0:
                raise error
            return real(*arguments)

        setattr(crew, place, interrupting)
        n_before = forest.n_seen
        with contextlib.suppress(error):
            forest.learn(*lesson("LabelForest", rows))
        setattr(crew, place, real)
        if forest.n_seen > n_before:
            local.learn(*lesson("LabelForest", rows))
    assert_same(forest.get_state(), local.get_state())
    assert 300 < local.n_points <= 600


def test_joined_states_must_agree():
    first = {"values": np.arange(3), "trees.left": np.arange(2)}
    assert_same(
        join_states([first, first]),
        {"values": np.arange(3), "trees.left": np.array([0, 1, 0, 1])},
    )
    with pytest.raises(RuntimeError, match="do not agree on 'values'"):
        join_states([first, first | {"values": np.arange(1, 4)}])


class InterruptAt:
    """Raises `KeyboardInterrupt` at the nth line that is run of the front."""

    def __init__(self, n):
        self.n_left = n

    def __call__(self, frame, event, argument):
        if event == "call":
            return (
                self if frame.f_code.co_filename.endswith(("_keeping.py", "_sharded.py")) else None
            )
        if event == "line":
            self.n_left -= 1
            if self.n_left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("has_folder", [False, True])
def test_an_interrupt_at_any_line_leaves_it_in_step(has_folder, tmp_path):
    """Calibrations, too: they are sent by the front when a batch has been learned."""
    n, n_interrupts = 1, 0
    while n_interrupts == (n - 1) // 5:
        local = _core.GaussianForest(3, 3, **GAUSSIAN_OPTIONS)
        plans = plans_of("GaussianForest", 3, 3, GAUSSIAN_OPTIONS, 2)
        crew = LocalCrew()
        forest = sharded(crew, plans, Snapshots(tmp_path, "a run") if has_folder else None)
        interrupt, before = InterruptAt(n), sys.gettrace()
        for i in range(4):
            batch = lesson("GaussianForest", slice(30 * i, 30 * i + 30))
            n_before = forest.n_seen
            if has_folder and i == 2:
                crew.shards.pop(1)
            sys.settrace(interrupt)
            try:
                forest.learn(*batch)
            except KeyboardInterrupt:
                n_interrupts += 1
            finally:
                sys.settrace(before)
            if forest.n_seen > n_before:
                local.learn(*batch)
        assert_same(forest.get_state(), local.get_state())
        assert forest.n_points == local.n_points and forest.n_seen == local.n_seen
        n += 5
    assert n_interrupts > 100


def test_a_calibration_does_not_come_after_what_undid_it():
    """A batch is on its way when the one before is found to need a calibration."""
    options = GAUSSIAN_OPTIONS | {"window": 60}
    local = _core.GaussianForest(4, 3, **options)
    forest = sharded(LocalCrew(), plans_of("GaussianForest", 4, 3, options, 2))
    with forest.pipelined():
        for i in range(6):
            rows = slice(60 * i, 60 * i + 60)
            values = VALUES[rows] * (i % 2 == 0)  # of equal values there is none
            for each in (forest, local):
                each.learn(X[rows], values)
    assert_same(forest.get_state(), local.get_state())
    with contextlib.suppress(ZeroDivisionError), forest.pipelined():
        for rows in (slice(0, 60), slice(60, 120)):
            for each in (forest, local):
                each.learn(X[rows], VALUES[rows])
        raise ZeroDivisionError
    for each in (forest, local):
        each.keep_latest(20)
        each.refresh()
    assert_same(forest.get_state(), local.get_state())


def test_a_member_that_fails_to_catch_up_does_not_answer(tmp_path, monkeypatch):
    """What it failed at was carried out before by the member it replaces: no one waits for it."""
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    local = _core.LabelForest(6, 3, **LABEL_OPTIONS)
    for begin in range(0, 600, 100):
        for each in (forest, local):
            each.learn(*lesson("LabelForest", slice(begin, begin + 100)))
    real, failures = Shard.carry_out, []

    def carry_out(self, number, *arguments):
        if number == 3 and not failures:
            failures.append(number)
            raise MemoryError
        return real(self, number, *arguments)

    monkeypatch.setattr(Shard, "carry_out", carry_out)
    crew.shards.pop(1)
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))
    assert failures and forest.n_recoveries == 2


def test_a_snapshot_that_is_there_outlives_another_attempt(tmp_path, monkeypatch):
    snapshots = Snapshots(tmp_path, "a run")
    forest = some_forest(None, snapshots)
    forest.learn(X, LABELS, 2)
    forest.rely_on_snapshot(forest.write_parts())

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("onlineforest._distributed.shard.write_part", fail)
    with pytest.raises(OSError, match="No space left"):
        forest.write_parts()
    forest._crew.shards.pop(0)
    assert forest.predict(QUERIES).shape == (40, 2)


def test_a_call_that_cannot_be_made_is_a_loss(tmp_path):
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    real = crew.call

    def call(number, method, *arguments):
        if number not in crew.shards:
            raise MemberLostError("It is gone.")
        return real(number, method, *arguments)

    crew.call = call
    crew.shards.pop(1)
    forest.learn(X, LABELS, 2)
    assert forest.n_recoveries == 1
