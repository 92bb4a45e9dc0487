"""The order-free classifier beside other threads, and after an interrupt at any moment."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from onlineforest._forests.base import BaseForest
from support.examples import thorough_but
from support.interrupts import Signal, interrupted_in_the_middle
from support.iris import NAMES, X, Y, fitted, small


def test_threads_may_learn_and_predict_at_once():
    forest = small().fit(X[:10], NAMES[Y[:10]])
    errors = []

    def predict():
        try:
            while forest.n_samples_seen_ < 150:
                proba = forest.predict_proba(X[:20])
                assert np.allclose(proba.sum(axis=1), 1)
                assert forest.predict_one(X[0]) in NAMES
                len(forest.trees_[0].count)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(10, 150):
        forest.learn_one(X[i], NAMES[Y[i]])
        if i % 10 == 0:
            forest.forget(X[i : i + 1], NAMES[Y[i : i + 1]])
            forest.partial_fit(X[i : i + 1], NAMES[Y[i : i + 1]])
            forest.forget(X[i - 1 : i], NAMES[Y[i - 1 : i]])
            forest.learn_one(X[i - 1], NAMES[Y[i - 1]])
    for thread in threads:
        thread.join()
    assert not errors
    assert forest.digest_ == small().fit(X, NAMES[Y]).digest_


def test_a_label_that_leaves_when_the_core_has_answered_keeps_its_column():
    class Changing:
        """A core forest that forgets a label when it has just predicted."""

        def __init__(self, core):
            self._core = core

        def __getattr__(self, name):
            return getattr(self._core, name)

        def predict(self, *arguments):
            answer = self._core.predict(*arguments)
            self._forget()
            return answer

        def predict_one(self, *arguments):
            answer = self._core.predict_one(*arguments)
            self._forget()
            return answer

        def _forget(self):
            if 2 in forest.classes_:
                forest.forget(X[100:], Y[100:])

    whole = fitted()
    forest = fitted()
    forest._forest = Changing(forest._forest)
    assert np.array_equal(forest.predict_proba(X), whole.predict_proba(X))
    assert forest._targets._last.classes.tolist() == [0, 1], "the name is not kept"
    assert forest.classes_.tolist() == [0, 1]
    forest = fitted()
    forest._forest = Changing(forest._forest)
    assert np.array_equal(forest.predict_proba_one(X[0]), whole.predict_proba_one(X[0]))
    forest = fitted()
    forest._forest = Changing(forest._forest)
    assert np.array_equal(forest.predict(X), whole.predict(X)), "2 is among them"


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_interrupt_when_the_core_has_just_returned(monkeypatch):
    """The batch is stored: its classes and ids are known, whatever is called next."""

    def interrupted():
        forest = small().fit(X[:50], Y[:50])
        with monkeypatch.context() as patch:
            patch.setattr(BaseForest, "_record", interrupt)
            with pytest.raises(KeyboardInterrupt):
                forest.partial_fit(X[50:], Y[50:], classes=[0, 1, 2, 8], ids=range(50, 150))
        return forest

    whole = small().partial_fit(X, Y, classes=[0, 1, 2, 8])
    assert interrupted().classes_.tolist() == [0, 1, 2, 8]
    assert interrupted().predict_proba(X).shape == (150, 4)
    assert interrupted().predict_one(X[0]) == 0
    assert interrupted().ids_ == frozenset(range(50, 150))
    assert interrupted().digest_ == whole.digest_
    assert copy.deepcopy(interrupted()).digest_ == whole.digest_
    forest = interrupted().forget(ids=[149])
    assert forest.learn_one(X[149], Y[149]).digest_ == whole.digest_


@pytest.mark.parametrize("name", ["set_labels", "learn"])
def test_an_interrupt_before_the_core_has_stored_the_batch(name):
    """New labels are taken back, and their codes do not stand in the way of others."""

    class Interrupted:
        def __init__(self, core):
            self._core = core

        def __getattr__(self, name):
            return getattr(self._core, name)

    setattr(Interrupted, name, interrupt)
    forest = small().fit(X[:100], NAMES[Y[:100]])
    core = forest._forest
    before, proba = forest.digest_, forest.predict_proba(X)
    forest._forest = Interrupted(core)
    with pytest.raises(KeyboardInterrupt):
        forest.partial_fit(X[:1], ["daisy"], classes=["daisy", "rose"])
    forest._forest = core
    assert forest.classes_.tolist() == NAMES[:2].tolist()
    assert np.array_equal(forest.predict_proba(X), proba)
    assert forest.predict_one(X[0]) == "setosa"
    assert forest.digest_ == before and forest.verify()
    assert pickle.loads(pickle.dumps(forest)).digest_ == before
    with pytest.raises(ValueError, match="not stored"):
        forest.forget(X[:1], ["daisy"])
    forest.learn_one(X[0], "rose").forget(X[:1], ["rose"])
    forest.partial_fit(X[100:], NAMES[Y[100:]])
    assert forest.digest_ == small().fit(X, NAMES[Y]).digest_


N_BIG = 8_000


def big_data():
    rng = np.random.default_rng(0)
    return rng.random((N_BIG, 10), dtype=np.float32), rng.integers(5, size=N_BIG)


def test_an_interrupted_fit_leaves_the_forest_unchanged():
    rows, labels = big_data()
    forest = small().fit(rows[:100], labels[:100])
    before = forest.digest_
    forest.set_params(n_estimators=400)
    with Signal(0.2), pytest.raises(KeyboardInterrupt):
        forest.fit(rows, labels)
    assert forest.n_samples_seen_ == 100
    assert forest.set_params(n_estimators=5).digest_ == before
    unfitted = small(n_estimators=400)
    with Signal(0.2), pytest.raises(KeyboardInterrupt):
        unfitted.fit(rows, labels)
    assert not hasattr(unfitted, "n_features_in_")


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", thorough_but(2, of=[1, 2]))
def test_an_interrupted_partial_fit_is_finished_when_it_is_needed(n_jobs):
    rows, labels = big_data()
    half = N_BIG // 2
    forest = interrupted_in_the_middle(
        lambda: small(n_estimators=20, n_jobs=n_jobs).fit(rows[:half], labels[:half]),
        lambda forest: forest.partial_fit(rows[half:], labels[half:], ids=range(half, N_BIG)),
        lambda forest: forest.n_samples_seen_ == N_BIG,
    )
    whole = small(n_estimators=20, n_jobs=2).fit(rows, labels)
    assert forest.n_samples_stored_ == N_BIG
    assert forest.ids_ == frozenset(range(half, N_BIG))
    assert copy.deepcopy(forest).digest_ == whole.digest_
    uninterrupted = small(n_estimators=20, n_jobs=2).fit(rows[:half], labels[:half])
    uninterrupted.partial_fit(rows[half:], labels[half:])
    assert np.array_equal(forest.predict_proba(rows[:50]), uninterrupted.predict_proba(rows[:50]))
    assert forest.digest_ == whole.digest_
    forest.recalibrate()
    assert np.array_equal(forest.predict_proba(rows[:50]), whole.predict_proba(rows[:50]))


@pytest.mark.slow
def test_an_interrupted_first_partial_fit_is_finished_when_it_is_needed():
    rows, labels = big_data()
    forest = interrupted_in_the_middle(
        lambda: small(n_estimators=20, n_jobs=2),
        lambda forest: forest.partial_fit(rows, labels, classes=range(7)),
        lambda forest: hasattr(forest, "n_features_in_"),
    )
    assert forest.n_samples_seen_ == N_BIG
    assert forest.classes_.tolist() == [*range(7)]
    twin = small(n_estimators=20).partial_fit(rows[::-1], labels[::-1], classes=range(7))
    assert forest.digest_ == twin.digest_


@pytest.mark.slow
def test_an_interrupted_forget_is_finished_when_it_is_needed():
    rows, labels = big_data()
    some = range(0, N_BIG, 3)
    rest = np.setdiff1d(np.arange(N_BIG), some)
    forest = interrupted_in_the_middle(
        lambda: small(n_estimators=20, n_jobs=2).fit(rows, labels, ids=range(N_BIG)),
        lambda forest: forest.forget(ids=some),
        lambda forest: forest.n_samples_stored_ < N_BIG,
    )
    assert forest.ids_ == frozenset(rest.tolist())
    assert forest.digest_ == small(n_estimators=20).fit(rows[rest], labels[rest]).digest_
