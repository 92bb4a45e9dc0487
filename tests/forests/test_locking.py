"""A guard records each stored batch, whatever an interrupt separates."""

from __future__ import annotations

import io
import os
import pickle
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    load,
)
from onlineforest._forests.locking import guard_of, without_guard
from onlineforest._forests.mondrian.classifier import MondrianLesson
from onlineforest._forests.orderfree.fitted_lessons import FittedLesson
from onlineforest._forests.orderfree.label_lessons import LabelLesson
from support.model_files import saved


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


def in_another_thread(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize("classifier", [MondrianForestClassifier, OnlineForestClassifier])
def test_other_threads_see_a_forest_only_with_its_classes(classifier, monkeypatch):
    """They predict just before a batch that is stored is recorded."""
    X, seen = [[0.0], [1.0]], []
    forest = classifier(2, min_samples_split=2, random_state=0)

    def finish(lesson, core):
        if core is not vars(forest).get("_forest"):
            seen.append(in_another_thread(lambda: predictions(forest, X)))
        finish_of[type(lesson)](lesson, core)

    def predictions(forest, X):
        try:
            return forest.predict(X).tolist()
        except NotFittedError:
            return None

    lessons = FittedLesson, LabelLesson, MondrianLesson
    finish_of = {lesson: lesson.finish for lesson in lessons}
    for lesson in lessons:
        monkeypatch.setattr(lesson, "finish", finish)
    forest.partial_fit(X, ["a", "b"])
    forest.fit(X, ["c", "d"])
    assert seen == [None, ["a", "b"]]
    assert forest.predict(X).tolist() == ["c", "d"]


@pytest.mark.parametrize("classifier", [MondrianForestClassifier, OnlineForestClassifier])
def test_a_prediction_does_not_mix_the_forests_before_and_after_a_fit(classifier, monkeypatch):
    """Another thread calls `fit` after the core forest and its classes were read."""
    X = [[0.0], [1.0]]
    forest = classifier(2, min_samples_split=2, random_state=0).fit(X, ["a", "b"])
    core_and_targets, n_reads = classifier._core_and_targets, 0

    def then_fit(self):
        nonlocal n_reads
        n_reads += 1
        found = core_and_targets(self)
        if n_reads == 1:
            in_another_thread(lambda: forest.fit(X, ["d", "c"]))
        return found

    monkeypatch.setattr(classifier, "_core_and_targets", then_fit)
    assert forest.predict(X).tolist() == ["a", "b"]
    assert forest.predict(X).tolist() == ["d", "c"]


def test_the_memory_can_be_asked_while_predictions_cut_trees():
    """Without a lock on each tree, a run may crash; the sanitizers find it more surely."""
    rows = np.random.default_rng(1).normal(size=(20_000, 10)).astype(np.float32)
    y = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    forest = OnlineForestRegressor(n_estimators=4, random_state=0).fit(rows, y)

    def predict():
        for _ in range(3):
            forest.keep_latest(2000).partial_fit(rows[:-2000], y[:-2000])
            for row in rows[:1000]:
                forest.predict_one(row)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(predict)
        while not future.done():
            assert forest.nbytes_ > 0
        future.result()


def test_copies_made_beside_other_threads_are_states_that_existed():
    """Threads learn, forget, predict, pickle and save at once. Each copy loads.

    The states are those of a twin that makes the same changes alone. A file holds all of a state:
    samples, ids, labels and calibration.
    """
    seconds = float(os.environ.get("ONLINEFOREST_SECONDS", "2"))
    forest, stop = OnlineForestClassifier(12, window=300, random_state=3), threading.Event()
    changes_of(forest, 0)  # starts the forest
    copies, counts = [], {"learn": 1, "predict": 0, "pickle": 0, "save": 0}
    queries = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)

    def learn():
        changes_of(forest, counts["learn"])
        counts["learn"] += 1

    def predict():
        probabilities = forest.predict_proba(queries)
        assert np.allclose(probabilities.sum(axis=1), 1.0)
        forest.predict_proba_one(queries[0])
        assert forest.predict_set(queries, per_class=bool(counts["predict"] % 2)).any(axis=1).all()
        counts["predict"] += 1

    def copy_by(name, made):
        def copy():
            data = made()
            counts[name] += 1
            if len(copies) < 2000:
                copies.append((name, data))

        return copy

    def repeat(work):
        while not stop.is_set():
            work()

    works = [
        *(learn, predict, predict),
        copy_by("pickle", lambda: pickle.dumps(forest)),
        copy_by("save", lambda: saved(forest)),
    ]
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(repeat, work) for work in works]
        wait(running, timeout=seconds, return_when=FIRST_EXCEPTION)
        stop.set()
        for each in running:
            each.result()
    assert min(counts.values()) >= 2, counts
    twin, states = OnlineForestClassifier(12, window=300, random_state=3), set()
    for i in range(counts["learn"]):
        changes_of(twin, i, lambda: states.add(saved(twin)))
    for name, data in copies:
        copy = load(io.BytesIO(data)) if name == "save" else pickle.loads(data)
        assert saved(copy) in states, name
    assert saved(forest) in states


def changes_of(forest, i, use=lambda: None):
    """Change `i` of a stream, in one step or several; calls `use` after each."""
    rng = np.random.default_rng(i)
    n = 200 if i == 0 else int(rng.integers(1, 30))
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", rng.choice(["no", "maybe", f"{i}"], n))
    if i % 3 < 2:
        forest.partial_fit(X, y, ids=[f"{i} {k}" for k in range(n)])
        use()
    else:
        for x, label in zip(X[:8], y[:8].tolist(), strict=True):
            forest.learn_one(x, label)
            use()
    if i % 4 == 3:
        forest.forget(ids=sorted(forest.ids_)[: 1 + i % 5])
        use()
    if i % 50 == 49:
        forest.keep_latest(150)
        use()
