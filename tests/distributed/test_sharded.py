"""A sharded forest equals the local one to the bit, whichever shards are lost and when."""

from __future__ import annotations

import contextlib
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from onlineforest import _core
from onlineforest._core import calibration_by
from onlineforest._distributed import messages
from onlineforest._distributed.errors import MemberLostError, ShardLostError
from onlineforest._distributed.shard import Shard
from onlineforest._distributed.snapshots import Snapshots
from onlineforest._distributed.splitting import join_states
from onlineforest._models.core import GuidedLabelCore, GuidedNumberCore, LabelCore, NumberCore
from support.bits import assert_same
from support.crews import (
    GAUSSIAN_OPTIONS,
    GUIDED_OPTIONS,
    LABEL_OPTIONS,
    LocalCrew,
    plans_of,
    sharded,
)

RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 3)).astype(np.float32)
X[RNG.random(X.shape) < 0.02] = np.nan
LABELS = (np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) > 0).astype(np.int32)
VALUES = np.nan_to_num(X[:, 0]) * 2.0 + RNG.normal(size=600)
UNITS = RNG.integers(1, 3 * 2**16, 600)  # weights
QUERIES = np.ascontiguousarray(X[:40] + np.float32(0.2))
MONDRIAN = {"LabelForest": LABEL_OPTIONS, "GaussianForest": GAUSSIAN_OPTIONS}
GUIDED = {
    "GuidedLabelForest": GUIDED_OPTIONS | {"calibrates": True},
    "GuidedNumberForest": GUIDED_OPTIONS | {"calibrates": True},
}
OPTIONS = MONDRIAN | GUIDED
HASHES, NONE_DECLARED = np.array([11, 12], dtype=np.uint64), np.zeros(2, dtype=np.uint8)


def prepared(core, forest):
    """A forest that knows what it must know before it learns."""
    if core == "GuidedLabelForest":
        forest.set_labels(HASHES, NONE_DECLARED)
    return forest


def local_forest(core, n_trees, options):
    return prepared(core, getattr(_core, core)(n_trees, 3, **options))


def batch_of(core, rows):
    if core == "LabelForest":
        return X[rows], LABELS[rows], 2
    return X[rows], (LABELS if core == "GuidedLabelForest" else VALUES)[rows]


def assert_same_answers(forest, local):
    levels = np.array([0.1, 0.5])
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))
    assert np.array_equal(forest.apply(QUERIES), local.apply(QUERIES))
    assert forest.n_points == local.n_points and forest.n_seen == local.n_seen
    assert np.array_equal(forest.serials, local.serials)
    if hasattr(local, "novelty"):
        assert np.array_equal(forest.novelty(QUERIES), local.novelty(QUERIES))
        assert np.array_equal(forest.relevance(), local.relevance())
    if hasattr(local, "left_out"):
        assert_same_guided_answers(forest, local)
    elif hasattr(local, "quantiles"):
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


def assert_same_guided_answers(forest, local):
    for own, theirs in zip(local.left_out(), forest.left_out(), strict=True):
        assert own.tobytes() == theirs.tobytes() and own.dtype == theirs.dtype
    assert local.importances().tobytes() == forest.importances().tobytes()
    assert np.array_equal(local.values, forest.values)
    assert np.array_equal(local.weights, forest.weights)
    if hasattr(local, "label_weights"):
        assert np.array_equal(local.label_weights, forest.label_weights)
        assert forest.n_labels == local.n_labels
        votes = local.votes()
        n_past = local.n_seen - min(local.n_seen, 50)
        more = np.ascontiguousarray(QUERIES[:20]), np.ascontiguousarray(LABELS[:20]), 1, UNITS[:20]
        for own_votes, their_votes in (
            (votes, forest.votes()),
            (local.votes_at(n_past), forest.votes_at(n_past)),
            (local.votes_after(*more), forest.votes_after(*more)),
        ):
            for own, theirs in zip(own_votes, their_votes, strict=True):
                assert np.array_equal(own, theirs)
        power, _, spread = calibration_by(*votes, local.n_trees)
        found = power, spread
        assert np.array_equal(forest.predict(QUERIES, 1, *found), local.predict(QUERIES, 1, *found))
        out, own = np.empty(local.n_labels), np.empty(local.n_labels)
        assert forest.predict_one(QUERIES[0], out) and local.predict_one(QUERIES[0], own)
        assert np.array_equal(out, own) and not forest.predict_one(QUERIES[0], np.empty(1))
    else:
        assert forest.predict_one(QUERIES[0]) == local.predict_one(QUERIES[0])
    assert forest.are_trees_of_samples()


HISTORIES = {
    "batches": ({}, []),
    "window": ({"window": 200}, []),
    "reservoir": ({"reservoir": 150, "half_life": 300.0}, []),
    "forgetting": (
        {},
        [
            lambda f, core: f.forget(np.arange(3, 90, 4)),
            lambda f, core: f.forget_rows(*batch_of(core, slice(120, 140))[:2]),
            lambda f, core: f.keep_latest(250),
        ],
    ),
    "refresh": ({}, [lambda f, core: f.refresh() if core in MONDRIAN else f.complete()] * 3),
    "all forgotten": ({}, [lambda f, core: f.keep_latest(0)]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(
    ("n_trees", "n_shards"), [(1, 1), (10, 1), (10, 2), (40, 3), (9, 4), (13, 5)]
)
@pytest.mark.parametrize("core", OPTIONS)
def test_a_sharded_forest_equals_the_local_forest(core, n_trees, n_shards, history):
    keep, others = HISTORIES[history]
    options = OPTIONS[core] | keep
    local = local_forest(core, n_trees, options)
    forest = prepared(core, sharded(LocalCrew(), plans_of(core, n_trees, 3, options, n_shards)))
    others = list(others)
    for begin in range(0, 600, 75):
        batch = slice(begin, begin + 75)
        one_by_one = [begin == 300] if core in MONDRIAN else []
        more = [1, *one_by_one, UNITS[batch]] if begin >= 300 else []
        for each in (local, forest):
            each.learn(*batch_of(core, batch), *more)
        if others and begin >= 150:
            change = others.pop(0)
            change(local, core)
            change(forest, core)
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    if core in MONDRIAN:
        forest.check_invariants()


@pytest.mark.parametrize("core", OPTIONS)
def test_rows_asked_in_pieces_get_the_same_answers(core, monkeypatch):
    local = local_forest(core, 9, OPTIONS[core])
    forest = prepared(core, sharded(LocalCrew(), plans_of(core, 9, 3, OPTIONS[core], 2)))
    for each in (local, forest):
        each.learn(*batch_of(core, slice(0, 300)))
    monkeypatch.setattr("onlineforest._distributed.sharded_base._MAX_NUMBERS", 64)
    assert_same_answers(forest, local)
    assert forest.predict(QUERIES[:0]).shape == local.predict(QUERIES[:0]).shape


class Fate:
    """Loses shards at random, before or after they handle a message."""

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
@pytest.mark.parametrize("core", OPTIONS)
def test_lost_shards_are_restored_to_the_bit(core, is_pipelined, seed, tmp_path):
    n_shards = 5 - seed % 5
    options = OPTIONS[core] | ({"window": 250} if seed % 2 else {})
    local = local_forest(core, 11, options)
    crew = LocalCrew(fate := Fate(seed, max(0.06, 0.12 / n_shards)))
    snapshots = Snapshots(tmp_path, "a run")
    plans = plans_of(core, 11, 3, options, n_shards)
    forest = sharded(crew, plans, snapshots, max_in_flight=3, max_tries=20)
    fate.has_begun = True
    prepared(core, forest)

    def take_snapshot():
        forest.keeper.rely_on_snapshot(forest.keeper.write_shards())

    def learn_some(numbers):
        for i in numbers:
            rows = slice(25 * i, 25 * i + 25)
            local.learn(*batch_of(core, rows))
            forest.learn(*batch_of(core, rows))
            if i % 5 == 4:
                take_snapshot()

    if is_pipelined:
        with forest.keeper.pipelined():
            learn_some(range(12))
    else:
        learn_some(range(12))
    local.forget(np.arange(200, 220))
    forest.forget(np.arange(200, 220))
    learn_some(range(12, 24))
    assert_same(forest.get_state(), local.get_state())
    assert_same_answers(forest, local)
    n_recoveries = forest.keeper.n_recoveries
    assert crew.n_lost >= 3 and n_recoveries >= crew.n_lost - 3
    assert crew.n_started == n_shards + n_recoveries or crew.n_lost > n_recoveries


@pytest.mark.parametrize(
    ("core", "protocol"),
    [
        ("LabelForest", LabelCore),
        ("GaussianForest", NumberCore),
        ("GuidedLabelForest", GuidedLabelCore),
        ("GuidedNumberForest", GuidedNumberCore),
    ],
)
def test_a_sharded_forest_has_the_interface_of_a_core_forest(core, protocol):
    forest = prepared(core, sharded(LocalCrew(), plans_of(core, 4, 3, OPTIONS[core], 2)))
    forest.learn(*batch_of(core, slice(0, 90)))
    assert isinstance(forest, protocol)


@pytest.mark.parametrize("n_shards", [1, 2])
def test_the_tuning_of_a_sharded_forest_is_that_of_the_local_forest(n_shards):
    for core in MONDRIAN:
        local = getattr(_core, core)(4, 3, **OPTIONS[core])
        forest = sharded(LocalCrew(), plans_of(core, 4, 3, OPTIONS[core], n_shards))
        for each in (local, forest):
            each.learn(*batch_of(core, slice(0, 300)))
        assert np.array_equal(forest.feature_weights, local.feature_weights)
        assert np.array_equal(forest.serials, local.serials)
        assert np.array_equal(forest.are_stored(np.arange(400)), local.are_stored(np.arange(400)))
        assert forest.discount_rate == local.discount_rate
        assert forest.nbytes > 0
        if core == "LabelForest":
            assert forest.leaf_discount == local.leaf_discount
        else:
            assert forest.noise == local.noise and forest.scale == local.scale
            assert np.array_equal(forest.trend(QUERIES), local.trend(QUERIES))
        with pytest.raises(IndexError, match=r"tree 4 is outside \[0, n_trees = 4\)"):
            forest.tree(4)


def test_messages_count_the_bytes_of_their_arrays():
    rows, levels = X[:8], np.array([0.1, 0.9])
    mixtures = {"means": np.zeros(5), "ends": np.zeros(8, dtype=np.uint64)}
    assert messages.Refresh().nbytes == 0
    assert messages.Predict(rows).nbytes == rows.nbytes
    assert messages.Quantiles(rows, levels, mixtures).nbytes == rows.nbytes + 16 + 40 + 64


def some_forest(crew=None, snapshots=None, **settings):
    crew = crew or LocalCrew()
    return sharded(crew, plans_of("LabelForest", 6, 3, LABEL_OPTIONS, 2), snapshots, **settings)


def test_at_most_max_in_flight_batches_are_in_progress():
    forest = some_forest(max_in_flight=3)
    most = 0
    with forest.keeper.pipelined():
        for begin in range(0, 600, 20):
            forest.learn(*batch_of("LabelForest", slice(begin, begin + 20)))
            most = max(most, forest.keeper._tip.number - forest.keeper._completed)
    assert most == 3
    assert forest.keeper._completed == forest.keeper._tip.number == 30
    assert not forest.keeper._log  # without snapshots no operation is stored


def test_without_a_folder_a_lost_shard_is_an_error():
    crew = LocalCrew()
    forest = some_forest(crew)
    forest.learn(X, LABELS, 2)
    crew.shards.clear()
    for use in (forest.predict, forest.predict, forest.apply):  # and remains one
        with pytest.raises(ShardLostError, match=r"shard 0 of 2 was lost\. Without a folder"):
            use(QUERIES)


def test_a_shard_that_cannot_start_is_an_error_until_it_can(tmp_path):
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
    assert "Everything up to operation 0 is safe" in str(caught.value)
    crew.can_start = True
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))


def test_a_shard_that_is_lost_repeatedly_is_an_error(tmp_path):
    crew = LocalCrew(lambda number, method: number == 1 and method == "carry_out" and "before")
    forest = some_forest(crew, Snapshots(tmp_path, "a run"), max_tries=3)
    with pytest.raises(ShardLostError, match="shard 1 of 2 was lost 3 times in a row"):
        forest.learn(X, LABELS, 2)
    assert crew.n_lost == 3
    assert forest.n_seen == 600  # the batch is in progress
    crew.loses = lambda number, method: None
    assert forest.n_points == 600


def test_a_shard_that_ran_out_of_memory_is_restored(tmp_path, monkeypatch):
    """It did not carry out the operation: it starts from its snapshot and repeats it."""
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
    assert forest.keeper.n_recoveries == 1


def test_shards_that_do_not_agree_are_an_error():
    crew = LocalCrew()
    forest = some_forest(crew)
    forest.learn(X[:300], LABELS[:300], 2)
    crew.shards[1]._forest.forget(np.arange(5))  # without the driver
    with pytest.raises(RuntimeError, match="Shards 0 and 1 of a forest do not agree on"):
        forest.get_state()
    forest.keeper._status = None
    with pytest.raises(ShardLostError, match="The shards do not agree"):
        _ = forest.n_points
    with pytest.raises(ShardLostError, match="shard 1 of 2 does not agree with shard 0"):
        forest.learn(X[300:], LABELS[300:], 2)


def test_a_shard_that_is_lost_at_the_start_is_an_error():
    crew = LocalCrew(lambda number, method: number == 1 and "before")
    with pytest.raises(ShardLostError, match="A shard could not be started"):
        some_forest(crew)
    assert not crew.shards  # the others are ended


def test_a_shard_with_another_fingerprint_is_refused(monkeypatch):
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


def test_errors_are_those_of_the_local_forest():
    forest, local = some_forest(), _core.LabelForest(6, 3, **LABEL_OPTIONS)
    for each in (forest, local):
        each.learn(X, LABELS, 2)
        with pytest.raises(ValueError, match="the point with serial 1000 is not stored"):
            each.forget(np.array([1000]))
        with pytest.raises(ValueError, match="n_classes is 1, but the forest knows 2"):
            each.learn(X[:1], LABELS[:1] * 0, 1)
        assert list(each.forget_rows(X[:1] + 100, LABELS[:1])) == [0]
        assert each.n_seen == 600
    assert_same(forest.get_state(), local.get_state())


def test_operations_are_refused_when_the_log_is_full(tmp_path):
    forest = some_forest(None, Snapshots(tmp_path, "a run"), max_log=4)
    for begin in range(0, 80, 20):
        forest.learn(*batch_of("LabelForest", slice(begin, begin + 20)))
    before = forest.get_state()
    with pytest.raises(ShardLostError, match="No snapshot could be written since operation 0"):
        forest.learn(*batch_of("LabelForest", slice(80, 100)))
    assert_same(forest.get_state(), before)
    forest.keeper.rely_on_snapshot(forest.keeper.write_shards())
    forest.learn(*batch_of("LabelForest", slice(80, 100)))
    assert forest.n_points == 100


def test_a_folder_that_is_not_shared_is_an_error(tmp_path, monkeypatch):
    forest = some_forest(None, Snapshots(tmp_path, "a run"))
    forest.learn(X, LABELS, 2)
    monkeypatch.setattr(
        "onlineforest._distributed.shard.write_shard", lambda *_: None
    )  # on another machine
    with pytest.raises(
        OSError, match=r"shard 0 of 2: the driver does not see .* all nodes must share the folder"
    ):
        forest.keeper.write_shards()


def test_a_closed_forest_refuses_every_call():
    forest = some_forest()
    forest.learn(X, LABELS, 2)
    forest.keeper.close()
    for use in (lambda: forest.predict(QUERIES), lambda: forest.n_points, forest.refresh):
        with pytest.raises(RuntimeError, match="were closed"):
            use()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["put", "carry_out", "get"])
def test_an_interrupt_in_the_crew_leaves_shards_in_step(place, error, tmp_path):
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
            forest.learn(*batch_of("LabelForest", rows))
        setattr(crew, place, real)
        if forest.n_seen > n_before:
            local.learn(*batch_of("LabelForest", rows))
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


@pytest.mark.parametrize("has_folder", [False, True])
def test_an_interrupt_at_any_line_leaves_shards_in_step(has_folder, tmp_path):
    """Calibrations included: the driver sends one after a batch."""
    n, n_interrupts = 1, 0
    while n_interrupts == (n - 1) // 5:
        local = _core.GaussianForest(3, 3, **GAUSSIAN_OPTIONS)
        plans = plans_of("GaussianForest", 3, 3, GAUSSIAN_OPTIONS, 2)
        crew = LocalCrew()
        forest = sharded(crew, plans, Snapshots(tmp_path, "a run") if has_folder else None)
        interrupt, before = InterruptAt(n), sys.gettrace()
        for i in range(4):
            batch = batch_of("GaussianForest", slice(30 * i, 30 * i + 30))
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


def test_a_calibration_comes_before_the_next_change():
    """The next batch is in progress when the driver learns that one needs a calibration."""
    options = GAUSSIAN_OPTIONS | {"window": 60}
    local = _core.GaussianForest(4, 3, **options)
    forest = sharded(LocalCrew(), plans_of("GaussianForest", 4, 3, options, 2))
    with forest.keeper.pipelined():
        for i in range(6):
            rows = slice(60 * i, 60 * i + 60)
            values = VALUES[rows] * (i % 2 == 0)  # equal values have no calibration
            for each in (forest, local):
                each.learn(X[rows], values)
    assert_same(forest.get_state(), local.get_state())
    with contextlib.suppress(ZeroDivisionError), forest.keeper.pipelined():
        for rows in (slice(0, 60), slice(60, 120)):
            for each in (forest, local):
                each.learn(X[rows], VALUES[rows])
        raise ZeroDivisionError
    for each in (forest, local):
        each.keep_latest(20)
        each.refresh()
    assert_same(forest.get_state(), local.get_state())


def test_a_restored_shard_that_fails_to_catch_up_is_restored_again(tmp_path, monkeypatch):
    """The driver does not wait for operations that the lost shard had carried out."""
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    local = _core.LabelForest(6, 3, **LABEL_OPTIONS)
    for begin in range(0, 600, 100):
        for each in (forest, local):
            each.learn(*batch_of("LabelForest", slice(begin, begin + 100)))
    real, failures = Shard.carry_out, []

    def carry_out(self, number, *arguments):
        if number == 3 and not failures:
            failures.append(number)
            raise MemoryError
        return real(self, number, *arguments)

    monkeypatch.setattr(Shard, "carry_out", carry_out)
    crew.shards.pop(1)
    assert np.array_equal(forest.predict(QUERIES), local.predict(QUERIES))
    assert failures and forest.keeper.n_recoveries == 2


def test_a_complete_snapshot_survives_a_failed_attempt(tmp_path, monkeypatch):
    snapshots = Snapshots(tmp_path, "a run")
    forest = some_forest(None, snapshots)
    forest.learn(X, LABELS, 2)
    forest.keeper.rely_on_snapshot(forest.keeper.write_shards())

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("onlineforest._distributed.shard.write_shard", fail)
    with pytest.raises(OSError, match="No space left"):
        forest.keeper.write_shards()
    forest.keeper._crew.shards.pop(0)
    assert forest.predict(QUERIES).shape == (40, 2)


def test_a_call_that_fails_at_once_is_a_lost_shard(tmp_path):
    crew = LocalCrew()
    forest = some_forest(crew, Snapshots(tmp_path, "a run"))
    real = crew.carry_out

    def carry_out(number, *arguments):
        if number not in crew.shards:
            raise MemberLostError("It is gone.")
        return real(number, *arguments)

    crew.carry_out = carry_out
    crew.shards.pop(1)
    forest.learn(X, LABELS, 2)
    assert forest.keeper.n_recoveries == 1
