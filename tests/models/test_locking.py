"""A guard records each stored batch, whatever an interrupt separates."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from onlineforest import MondrianForestClassifier
from onlineforest._models.locking import guard_of, without_guard


@dataclass
class Core:
    n_seen: int = 0


@dataclass(frozen=True)
class Batch:
    core: Core
    first_serial: int = 0


class Owner:
    pass


def test_a_stored_batch_is_recorded_once():
    guard, core, recorded = guard_of(Owner()), Core(), []
    batch = Batch(core)
    guard.begin(batch)
    core.n_seen = 3
    guard.settle(core, recorded.append)
    guard.settle(core, recorded.append)
    assert recorded == [batch] and guard.pending is None


def test_a_batch_that_was_not_stored_is_dropped():
    guard, core, recorded = guard_of(Owner()), Core(n_seen=3), []
    guard.begin(Batch(core, first_serial=3))
    guard.settle(core, recorded.append)
    core.n_seen = 9
    guard.settle(core, recorded.append)
    assert recorded == []


@pytest.mark.parametrize("now", [None, Core(n_seen=3)])
def test_a_batch_of_another_core_forest_is_dropped(now):
    guard, recorded = guard_of(Owner()), []
    guard.begin(Batch(Core(n_seen=3)))
    guard.settle(now, recorded.append)
    assert recorded == [] and guard.pending is None


def test_a_batch_stays_pending_if_recording_it_is_interrupted():
    guard, core, recorded = guard_of(Owner()), Core(n_seen=3), []
    batch = Batch(core)

    def interrupted(_):
        raise KeyboardInterrupt

    guard.begin(batch)
    with pytest.raises(KeyboardInterrupt):
        guard.settle(core, interrupted)
    assert guard.pending is batch
    guard.settle(core, recorded.append)
    assert recorded == [batch]


def test_an_owner_has_one_guard_which_is_not_copied():
    owner = Owner()
    guards = []
    threads = [threading.Thread(target=lambda: guards.append(guard_of(owner))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(guard) for guard in guards} == {id(guard_of(owner))}
    assert without_guard({**vars(owner), "other": 1}) == {"other": 1}


def test_the_lock_is_reentrant_and_keeps_other_threads_out():
    guard, order = guard_of(Owner()), []

    def enter():
        with guard:
            order.append("other")

    with guard, guard:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(timeout=0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_a_signal_handler_that_looks_at_the_forest_does_not_lose_the_batch():
    forest = MondrianForestClassifier(2, random_state=0).fit([[0.0], [1.0]], ["a", "b"])

    class Interrupted:
        """A core forest during whose `learn`, before anything is stored, a handler runs."""

        def __init__(self, core):
            self._core = core

        def __getattr__(self, name):
            return getattr(self._core, name)

        def learn(self, *arguments):
            assert forest.ids_ == frozenset()
            self._core.learn(*arguments)

    forest._forest = Interrupted(forest._forest)
    forest.partial_fit([[2.0]], ["c"], ids=["new"])
    assert forest.classes_.tolist() == ["a", "b", "c"]
    assert forest.ids_ == {"new"}
