"""A sharded forest equals the local one to the bit, whichever shards are lost and when."""

from __future__ import annotations

import contextlib
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from onlineforest import _core
from onlineforest._core import WEIGHT_OF_ONE, calibration_by
from onlineforest._forests.core import OrderFreeLabelCore, OrderFreeNumberCore
from onlineforest._shards.errors import MemberLostError, ShardLostError
from onlineforest._shards.messages import ArrayQuestion, Operation, nbytes_of
from onlineforest._shards.shard import Shard, Start
from support.bits import assert_same
from support.core import assert_same_answer
from support.crews import KINDS, OPTIONS, LocalCrew, sharded, some_plans

RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 3)).astype(np.float32)
X[RNG.random(X.shape) < 0.02] = np.nan
LABELS = (np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) > 0).astype(np.int32)
VALUES = np.nan_to_num(X[:, 0]) * 2.0 + RNG.normal(size=600)
UNITS = RNG.integers(1, 3 * 2**16, 600)  # weights
STOP = 10 * WEIGHT_OF_ONE
QUERIES = np.ascontiguousarray(X[:40] + np.float32(0.2))
HASHES, NONE_DECLARED = np.array([11, 12], dtype=np.uint64), np.zeros(2, dtype=np.uint8)
each_core = pytest.mark.parametrize("core", KINDS)


def with_labels(core, forest):
    """The forest, with codes for its labels if it is one of labels."""
    if core == "OrderFreeLabelForest":
        forest.set_labels(HASHES, NONE_DECLARED)
    return forest


def local_forest(core, n_trees, options=OPTIONS):
    return with_labels(core, getattr(_core, core)(n_trees, 3, **options))


def sharded_forest(core, n_trees, n_shards, options=OPTIONS, crew=None, **settings):
    plans = some_plans(core, n_trees, options, n_shards)
    return with_labels(core, sharded(crew or LocalCrew(), plans, **settings))


def batch_of(core, rows):
    return X[rows], (LABELS if core == "OrderFreeLabelForest" else VALUES)[rows]


def assert_same_answers(forest, local):
    assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))
    assert np.array_equal(forest.apply(QUERIES), local.apply(QUERIES))
    assert forest.n_samples == local.n_samples and forest.n_seen == local.n_seen
    serials = np.arange(700)
    assert np.array_equal(forest.are_stored(serials), local.are_stored(serials))
    for name in ("serials", "values", "weights", "n_levels"):
        assert np.array_equal(getattr(forest, name), getattr(local, name)), name
    numbers = set(zip(forest.sample_numbers.tolist(), local.sample_numbers.tolist(), strict=True))
    assert len(numbers) == len(dict(numbers)) == len({own for _, own in numbers})
    for own, theirs in zip(local.left_out(), forest.left_out(), strict=True):
        assert own.tobytes() == theirs.tobytes() and own.dtype == theirs.dtype
    assert local.importances().tobytes() == forest.importances().tobytes()
    for index in (0, local.n_trees - 1):
        assert_same(forest.tree(index), local.tree(index))
    assert_same_answer(forest.predict_one(QUERIES[0]), local.predict_one(QUERIES[0]))
    assert_same_votes(forest, local)
    if hasattr(local, "label_weights"):
        assert_same_label_answers(forest, local)
    else:
        assert_same_answer(forest.predict(QUERIES, 1, STOP), local.predict(QUERIES, 1, STOP))
        answers = (each.predict_one(QUERIES[0], STOP) for each in (forest, local))
        assert_same_answer(*answers)
    assert forest.are_trees_of_samples()


def assert_same_votes(forest, local):
    """Votes, and whatever else depends on a stop weight."""
    n_past = local.n_seen - min(local.n_seen, 50)
    values = LABELS if hasattr(local, "label_weights") else VALUES
    more = np.ascontiguousarray(QUERIES[:20]), np.ascontiguousarray(values[:20]), 1, UNITS[:20]
    for own_votes, their_votes in (
        (local.votes(1, 0, 1), forest.votes(1, 0, 1)),
        (local.votes(), forest.votes()),
        (local.votes(1, STOP, 4 * STOP, 3, 9), forest.votes(1, STOP, 4 * STOP, 3, 9)),
        (local.votes_at(n_past), forest.votes_at(n_past)),
        (local.votes_at(n_past, 1, 1, STOP), forest.votes_at(n_past, 1, 1, STOP)),
        (local.votes_after(*more), forest.votes_after(*more)),
        (local.votes_after(*more, 1, STOP), forest.votes_after(*more, 1, STOP)),
    ):
        for own, theirs in zip(own_votes, their_votes, strict=True):
            assert own.dtype == theirs.dtype and np.array_equal(own, theirs)
    for name in ("importances", "left_out"):
        own, theirs = (getattr(each, name)(1, STOP) for each in (local, forest))
        assert np.array_equal(own[0], theirs[0], equal_nan=True), name
    assert np.array_equal(local.apply(QUERIES, 1, STOP), forest.apply(QUERIES, 1, STOP))
    forest.grow_all(1, STOP)


def assert_same_label_answers(forest, local):
    assert np.array_equal(local.label_weights, forest.label_weights)
    assert forest.n_labels == local.n_labels
    assert_same_answer(forest.known_labels, local.known_labels)
    power, _, spread, _ = calibration_by(*local.votes(1, 0, 1), local.n_trees)
    found = power, spread, STOP, 0.7
    assert_same_answer(forest.predict(QUERIES, 1, *found), local.predict(QUERIES, 1, *found))
    assert_same_answer(
        forest.predict_one(QUERIES[0], *found), local.predict_one(QUERIES[0], *found)
    )


HISTORIES = {
    "batches": ({}, []),
    "window": ({"window": 200}, []),
    "reservoir": ({"reservoir": 150, "half_life": 300.0}, []),
    "forgetting": (
        {},
        [
            lambda f, core: f.forget(np.arange(3, 90, 4)),
            lambda f, core: f.forget_rows(*batch_of(core, slice(120, 140))),
            lambda f, core: f.keep_latest(250),
        ],
    ),
    "grown": ({}, [lambda f, _: f.grow_all()] * 3),
    "all forgotten": ({}, [lambda f, core: f.keep_latest(0)]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(
    ("n_trees", "n_shards"), [(1, 1), (10, 1), (10, 2), (40, 3), (9, 4), (13, 5)]
)
@each_core
def test_a_sharded_forest_equals_the_local_forest(core, n_trees, n_shards, history):
    keep, others = HISTORIES[history]
    options = OPTIONS | keep
    local = local_forest(core, n_trees, options)
    forest = sharded_forest(core, n_trees, n_shards, options)
    others = list(others)
    for begin in range(0, 600, 75):
        batch = slice(begin, begin + 75)
        more = [1, UNITS[batch]] if begin >= 300 else []
        for each in (local, forest):
            each.learn(*batch_of(core, batch), *more)
        if others and begin >= 150:
            change = others.pop(0)
            change(local, core)
            change(forest, core)
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)


def test_sums_of_levels_are_those_of_one_forest():
    core, options = "OrderFreeNumberForest", OPTIONS | {"n_categorical": 1}
    local, forest = local_forest(core, 12, options), sharded_forest(core, 12, 3, options)
    levels = RNG.integers(0, 9, 600)
    cells = (np.array([levels, levels + 5]).T + 0x00800000).astype(np.uint32).view(np.float32)
    rows = np.column_stack([X[:, :2], cells])
    for each in (local, forest):
        each.learn(rows, VALUES + levels)
        each.forget(np.arange(100))
    votes = local.votes(1, 0, 1)
    for own, theirs in zip(votes, forest.votes(1, 0, 1), strict=True):
        assert np.array_equal(own, theirs)
    strengths = votes[-1]
    assert len(strengths) == 1 and strengths[0] > 0
    found = [each.level_deviations(rows[:50], strengths) for each in (local, forest)]
    assert np.array_equal(*found) and found[0].any()


def test_levels_count_in_shards_as_in_one_forest(monkeypatch):
    """The shard that finishes a prediction counts the samples of each level."""
    core, options = "OrderFreeLabelForest", OPTIONS | {"n_categorical": 1}
    local = local_forest(core, 12, options)
    forest = sharded_forest(core, 12, 3, options)
    levels = RNG.integers(0, 9, 600)
    cells = (np.array([levels, levels + 5]).T + 0x00800000).astype(np.uint32).view(np.float32)
    rows = np.column_stack([X[:, :2], cells])
    labels = np.where(RNG.random(600) < 0.2, LABELS, levels % 2).astype(np.int32)
    for each in (local, forest):
        each.learn(rows, labels)
        each.forget(np.arange(100))
    votes = local.votes(1, 0, 1)
    for own, theirs in zip(votes, forest.votes(1, 0, 1), strict=True):
        assert np.array_equal(own, theirs)
    assert votes[-1].max() > 0.5
    queries = np.ascontiguousarray(rows[:40])
    how = 1.5, 0.01, STOP, 1.2
    assert_same_answer(forest.predict(queries, 1, *how), local.predict(queries, 1, *how))
    monkeypatch.setattr("onlineforest._shards.sharded._MAX_NUMBERS", 64)
    assert_same_answer(forest.predict(queries, 1, *how), local.predict(queries, 1, *how))
    assert_same_answer(forest.predict_one(queries[0], *how), local.predict_one(queries[0], *how))


@each_core
def test_rows_asked_in_pieces_get_the_same_answers(core, monkeypatch):
    local, forest = local_forest(core, 9), sharded_forest(core, 9, 2)
    for each in (local, forest):
        each.learn(*batch_of(core, slice(0, 300)))
    monkeypatch.setattr("onlineforest._shards.sharded._MAX_NUMBERS", 64)
    assert_same_answers(forest, local)
    assert_same_answer(forest.predict(QUERIES[:0]), local.predict(QUERIES[:0]))


@each_core
def test_shards_start_from_the_samples_of_any_forest(core):
    local = local_forest(core, 9)
    local.learn(*batch_of(core, slice(0, 200)))
    plans = some_plans(core, 9, OPTIONS, 4)
    forest = sharded(LocalCrew(), plans, Start(state=local.get_state()))
    for each in (local, forest):
        each.learn(*batch_of(core, slice(200, 300)))
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    with pytest.raises(IndexError, match=r"tree 9 is outside \[0, n_trees = 9\)"):
        forest.tree(9)


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (np.zeros(2), ValueError, "x has 2 features, but this forest has 3"),
        (np.array([0.0, 1e39, 2.0]), ValueError, r"too large for float32: 1e\+39 at feature 1"),
        (np.array([0.0, 1.0, -np.inf]), ValueError, "x contains infinity .*: -inf at feature 2"),
        ([0.0, 1.0, 2.0], TypeError, "must be a one-dimensional array of numbers"),
    ],
)
@each_core
def test_a_bad_row_is_named_with_its_value(core, row, error, words):
    forest = sharded_forest(core, 4, 2)
    with pytest.raises(error, match=words):
        forest.learn_one(row, 0)
    assert forest.n_seen == 0


class Fate:
    """Loses shards at random, before or after they handle a message; one always lives."""

    def __init__(self, crew, seed, rate):
        self.crew, self.random, self.rate = crew, random.Random(seed), rate

    def __call__(self, number, method):
        if len(self.crew.shards) < 2 or self.random.random() > self.rate:
            return None
        return self.random.choice(["before", "after"])


KEEPING = [{}, {"window": 250}, {"reservoir": 150, "half_life": 300.0}]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_pipelined", [False, True])
@each_core
def test_lost_shards_are_made_anew_to_the_bit(core, is_pipelined, seed):
    n_shards = 2 + seed % 4
    options = OPTIONS | KEEPING[seed % 3]
    local = local_forest(core, 11, options)
    crew = LocalCrew()
    forest = sharded_forest(core, 11, n_shards, options, crew, max_in_flight=3, max_tries=20)
    crew.loses = Fate(crew, seed, 0.15)

    def learn_some(numbers):
        for i in numbers:
            rows = slice(25 * i, 25 * i + 25)
            local.learn(*batch_of(core, rows))
            forest.learn(*batch_of(core, rows))

    with forest.keeper.pipelined() if is_pipelined else contextlib.nullcontext():
        learn_some(range(12))
    serials = local.serials[::9].copy()
    local.forget(serials)
    forest.forget(serials)
    learn_some(range(12, 24))
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    assert crew.n_lost >= 3 and forest.keeper.n_recoveries >= crew.n_lost / 2
    assert crew.n_started >= n_shards + forest.keeper.n_recoveries


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("n_more", [0, 1, 2, 3])
@each_core
def test_a_shard_lost_in_any_call_gets_the_samples_of_another(core, n_more, moment):
    """So does a shard that is lost `n_more` calls later, unless no other lives."""
    local = local_forest(core, 5)
    for begin in range(0, 240, 40):
        local.learn(*batch_of(core, slice(begin, begin + 40)))
    n_calls, n_recoveries = 0, 0
    while True:
        crew, doomed, n_done = LocalCrew(), {n_calls, n_calls + n_more}, 0

        def fate(number, method, crew=crew, doomed=doomed):
            nonlocal n_done
            n_done += 1
            return moment if n_done - 1 in doomed and len(crew.shards) > 1 else None

        forest = sharded_forest(core, 5, 3, crew=crew, max_in_flight=3)
        crew.loses = fate
        with forest.keeper.pipelined():
            for begin in range(0, 240, 40):
                forest.learn(*batch_of(core, slice(begin, begin + 40)))
        n_recoveries += forest.keeper.n_recoveries
        crew.loses = lambda number, method: None
        assert_same(forest.get_state(), local.get_state())
        assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))
        n_calls += 1
        if n_done < n_calls:
            break
    assert n_calls > 15 and n_recoveries >= n_calls - 3


@pytest.mark.parametrize(
    ("core", "protocol"),
    [("OrderFreeLabelForest", OrderFreeLabelCore), ("OrderFreeNumberForest", OrderFreeNumberCore)],
)
def test_a_sharded_forest_has_the_interface_of_a_core_forest(core, protocol):
    forest = sharded_forest(core, 4, 2)
    forest.learn(*batch_of(core, slice(0, 90)))
    assert isinstance(forest, protocol) and forest.nbytes > 0


def test_messages_count_the_bytes_of_their_arrays():
    masses = {"sums": np.zeros((5, 2), dtype=np.uint64), "power": 1.0}
    assert nbytes_of(Operation("keep_latest", {"n": 3})) == 0
    assert nbytes_of(ArrayQuestion("apply", {"rows": X[:8]})) == X[:8].nbytes
    assert nbytes_of(ArrayQuestion("finish", masses)) == 80
    assert nbytes_of(Start(7, {"rows": X, "values": VALUES})) == X.nbytes + VALUES.nbytes
    assert nbytes_of(Start()) == 0


def some_forest(crew=None, n_shards=2, **settings):
    return sharded_forest("OrderFreeLabelForest", 6, n_shards, crew=crew, **settings)


def some_local_forest():
    return local_forest("OrderFreeLabelForest", 6)


def test_at_most_max_in_flight_batches_are_in_progress():
    forest = some_forest(max_in_flight=3)
    most = 0
    with forest.keeper.pipelined():
        for begin in range(0, 600, 20):
            forest.learn(X[begin : begin + 20], LABELS[begin : begin + 20])
            most = max(most, forest.keeper.position - forest.keeper._n_done)
            assert len(forest.keeper._in_progress) <= 3
    assert most == 3
    assert forest.keeper._n_done == forest.keeper.position == 31
    assert not forest.keeper._in_progress  # operations that are done are not stored
    assert not any(member.outcomes or member.pending for member in forest.keeper._members)


@pytest.mark.parametrize("n_shards", [1, 2])
def test_if_no_shard_lives_the_error_names_the_model_file(n_shards, tmp_path):
    file = tmp_path / "run.safetensors"
    crew = LocalCrew()
    forest = some_forest(crew, n_shards, file=str(file))
    forest.learn(X, LABELS)
    crew.shards.clear()
    lost = "The last living shard was lost, after operation 2"
    with pytest.raises(ShardLostError, match=rf"{lost}\. There is no model file\."):
        forest.predict(QUERIES)
    file.touch()
    for use in (forest.predict, forest.apply, lambda X: forest.learn(X, LABELS[:40])):
        with pytest.raises(ShardLostError, match=rf"{lost}.*'{file}': RayForest.resume reads it"):
            use(QUERIES)  # and remains an error
    assert forest.n_seen == 640


def test_a_shard_that_cannot_start_is_an_error_until_it_can():
    crew = LocalCrew()
    forest, local = some_forest(crew), some_local_forest()
    for each in (forest, local):
        each.learn(X[:300], LABELS[:300])
    crew.shards.pop(0)
    crew.can_start = False
    with pytest.raises(ShardLostError) as caught:
        forest.predict(QUERIES)
    assert "shard 0 of 2 could not be started within 5 s. 2 shards need 2." in str(caught.value)
    with pytest.raises(ShardLostError, match="could not be started"):
        forest.learn(X[300:], LABELS[300:])  # shard 1 has learned it: the batch counts
    local.learn(X[300:], LABELS[300:])
    crew.can_start = True
    assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))
    assert_same(forest.get_state(), local.get_state())


def test_a_shard_that_is_lost_repeatedly_is_an_error():
    crew = LocalCrew()
    forest = some_forest(crew, max_tries=3)
    crew.loses = lambda number, method: "before" if number == 1 else None
    with pytest.raises(ShardLostError, match="shard 1 of 2 was lost 3 times in a row"):
        forest.learn(X, LABELS)
    assert crew.n_lost == 3
    assert forest.n_seen == 600  # the batch is in progress
    crew.loses = lambda number, method: None
    assert forest.n_samples == 600


def test_a_shard_that_ran_out_of_memory_is_made_anew():
    """It did not carry out the operation: its successor gets the samples of the other shard."""
    crew = LocalCrew()
    forest, local = some_forest(crew), some_local_forest()

    def fail(*_, **__):
        crew.shards[1]._forest = healthy
        raise MemoryError

    forest.learn(X[:300], LABELS[:300])
    healthy = crew.shards[1]._forest
    crew.shards[1]._forest = SimpleNamespace(learn=fail)
    forest.learn(X[300:], LABELS[300:])
    for rows in (slice(0, 300), slice(300, 600)):
        local.learn(X[rows], LABELS[rows])
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    assert forest.keeper.n_recoveries == 1


def test_shards_that_do_not_agree_are_an_error():
    crew = LocalCrew()
    forest = some_forest(crew)
    forest.learn(X[:300], LABELS[:300])
    crew.shards[1]._forest.forget(np.arange(5))  # without the driver
    with pytest.raises(ShardLostError, match="shard 1 of 2 does not agree with others"):
        forest.learn(X[300:], LABELS[300:])


def test_shards_that_do_not_agree_at_the_start_are_an_error(monkeypatch):
    real = Shard.__init__

    def with_another_sample(self, plan, start):
        real(self, plan, start)
        if plan.number == 1:
            self._forest.learn(X[:1], VALUES[:1])

    monkeypatch.setattr(Shard, "__init__", with_another_sample)
    crew = LocalCrew()
    with pytest.raises(ShardLostError, match=r"The shards do not agree: .*=0.*n_samples=1"):
        sharded(crew, some_plans("OrderFreeNumberForest", 6, OPTIONS, 2))
    assert not crew.shards  # they were ended


def test_a_shard_that_is_lost_at_the_start_is_an_error():
    crew = LocalCrew(lambda number, method: "before" if number == 1 else None)
    with pytest.raises(ShardLostError, match="A shard could not be started"):
        some_forest(crew)
    assert not crew.shards  # the others are ended


def test_a_shard_with_another_fingerprint_is_refused(monkeypatch):
    monkeypatch.setattr("onlineforest._shards.shard.fingerprint", lambda: "of another kind")
    crew = LocalCrew()
    monkeypatch.setattr(
        "support.crews.hello_from_here",
        lambda: SimpleNamespace(
            version=__import__("onlineforest").__version__, fingerprint="own", machine="mine"
        ),
    )
    with pytest.raises(ShardLostError, match="its fingerprint is of another kind"):
        some_forest(crew)
    assert not crew.shards  # they were ended


def test_errors_are_those_of_the_local_forest():
    forest, local = some_forest(), some_local_forest()
    for each in (forest, local):
        each.learn(X, LABELS)
        with pytest.raises(ValueError, match="1000 is not stored"):
            each.forget(np.array([1000]))
        with pytest.raises(ValueError, match="label"):
            each.learn(X[:1], LABELS[:1] + 2)
        assert list(each.forget_rows(X[:1] + 100, LABELS[:1])) == [0]
        assert each.n_seen == 600
    assert_same(forest.get_state(), local.get_state())


def test_a_refused_batch_of_a_stream_is_not_counted():
    forest, local = some_forest(), some_local_forest()
    local.learn(X[:300], LABELS[:300])
    forest.learn(X[:300], LABELS[:300])
    with pytest.raises(ValueError, match="label"), forest.keeper.pipelined():
        forest.learn(X[300:], LABELS[300:] + 2)
    assert forest.n_seen == 300
    assert_same(forest.get_state(), local.get_state())


def test_a_closed_forest_refuses_every_call():
    forest = some_forest()
    forest.learn(X, LABELS)
    forest.keeper.close()
    for use in (lambda: forest.predict(QUERIES), lambda: forest.n_samples, forest.grow_all):
        with pytest.raises(RuntimeError, match="were closed"):
            use()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["put", "call", "get"])
def test_an_interrupt_in_the_crew_leaves_shards_in_step(place, error):
    crew = LocalCrew()
    forest, local = some_forest(crew), some_local_forest()
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
            forest.learn(X[rows], LABELS[rows])
        setattr(crew, place, real)
        if forest.n_seen > n_before:
            local.learn(X[rows], LABELS[rows])
    assert_same(forest.get_state(), local.get_state())
    assert 300 < local.n_samples <= 600


class InterruptAt:
    """Raises `KeyboardInterrupt` at the nth line of the driver's code."""

    def __init__(self, n):
        self.n_left = n

    def __call__(self, frame, event, argument):
        if event == "call":
            is_driver = frame.f_code.co_filename.endswith(("/keeper.py", "/sharded.py"))
            return self if is_driver else None
        if event == "line":
            self.n_left -= 1
            if self.n_left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_interrupt_at_any_line_leaves_shards_in_step(is_lost):
    n, n_interrupts = 1, 0
    while n_interrupts == (n - 1) // 5:
        crew = LocalCrew()
        local, forest = some_local_forest(), some_forest(crew)
        interrupt, before = InterruptAt(n), sys.gettrace()
        for i in range(4):
            batch = X[30 * i : 30 * i + 30], LABELS[30 * i : 30 * i + 30]
            n_before = forest.n_seen
            if is_lost and i > 0:
                crew.shards.pop(i % 2)
            sys.settrace(interrupt)
            try:
                forest.learn(*batch)
            except KeyboardInterrupt:
                n_interrupts += 1
            finally:
                sys.settrace(before)
            if forest.n_seen > n_before:
                local.learn(*batch)
            if is_lost:
                assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))  # both live
        assert_same(forest.get_state(), local.get_state())
        assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))
        assert forest.n_samples == local.n_samples and forest.n_seen == local.n_seen
        n += 5
    assert n_interrupts > 60


def test_a_new_shard_that_fails_at_once_is_made_anew_again(monkeypatch):
    crew = LocalCrew()
    forest, local = some_forest(crew), some_local_forest()
    for each in (forest, local):
        each.learn(X, LABELS)
    real, failures = Shard.ask, []

    def ask(self, question, position):
        if question.name == "masses" and self._plan.number == 1 and len(failures) < 2:
            failures.append(position)
            raise MemoryError
        return real(self, question, position)

    monkeypatch.setattr(Shard, "ask", ask)
    assert_same_answer(forest.predict(QUERIES), local.predict(QUERIES))
    assert failures == [2, 2] and forest.keeper.n_recoveries == 2


def test_a_call_that_fails_at_once_is_a_lost_shard():
    crew = LocalCrew()
    forest = some_forest(crew)
    real = crew.call

    def call(number, *arguments):
        if number not in crew.shards:
            raise MemberLostError("It is gone.")
        return real(number, *arguments)

    crew.call = call
    crew.shards.pop(1)
    forest.learn(X, LABELS)
    assert forest.keeper.n_recoveries == 1
