"""Runs that must agree to the last bit: any number of threads, saved or not, interrupted or not."""

from __future__ import annotations

import copy
import io
import pickle
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from onlineforest import MondrianForestClassifier, OnlineForestRegressor, load
from support.bits import assert_same, assert_same_forest
from support.core import core_forest, learn
from support.estimators import UNLEARNED
from support.examples import thorough_but
from support.interrupts import CtrlC
from support.model_files import saved

X, Y = load_digits(return_X_y=True)


def n_points_of_trees(forest):
    return set(forest._forest.get_state()["trees.next_point.sizes"].tolist())


def streamed(forest, start=0, stop=900):
    """Learn digits in uneven batches, across several refreshes of the weights."""
    edges = [e for e in (0, 10, 11, 12, 50, 51, 300, 500, 777, 900) if start <= e <= stop]
    for a, b in pairwise(edges):
        forest.partial_fit(X[a:b], Y[a:b])
    return forest


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("parameters", [{}, {"lifetime": 2.0, "min_samples_split": 5}], ids=str)
def test_threads_do_not_matter(n_jobs, parameters):
    one = streamed(MondrianForestClassifier(n_estimators=11, random_state=0, **parameters))
    many = streamed(
        MondrianForestClassifier(n_estimators=11, random_state=0, n_jobs=n_jobs, **parameters)
    )
    assert_same_forest(one, many)
    assert np.array_equal(one.predict_proba(X), many.predict_proba(X))
    assert np.array_equal(one.apply(X), many.apply(X))


def test_predictions_do_not_depend_on_threads_or_on_other_rows():
    """Threads take groups of trees and ranges of rows; neither changes the sums."""
    forest = MondrianForestClassifier(n_estimators=37, random_state=0).fit(X[::2], Y[::2])
    rows = X[1::2]
    whole = forest.predict_proba(rows)
    for n_jobs in (2, 3, 16):
        forest.n_jobs = n_jobs
        assert np.array_equal(forest.predict_proba(rows), whole)
        assert np.array_equal(forest.predict_proba(rows[:70]), whole[:70])
    assert np.array_equal([forest.predict_proba_one(row) for row in rows], whole)


def test_a_seed_fixes_the_forest():
    forests = [
        MondrianForestClassifier(n_estimators=3, random_state=s).fit(X, Y) for s in (1, 1, 2)
    ]
    assert_same_forest(forests[0], forests[1])
    assert not np.array_equal(
        forests[0].predict_proba(X[:5] + 1), forests[2].predict_proba(X[:5] + 1)
    )


def test_trees_of_a_forest_differ():
    forest = MondrianForestClassifier(n_estimators=20, random_state=0).fit(X, Y)
    root_times = {tree.split_time[tree.root] for tree in forest.trees_}
    assert len(root_times) == 20


@pytest.mark.parametrize(
    "copied",
    [lambda f: pickle.loads(pickle.dumps(f)), copy.deepcopy, copy.copy],
    ids=["pickle", "deepcopy", "copy"],
)
def test_a_resumed_forest_equals_one_that_never_stopped(copied):
    through = streamed(MondrianForestClassifier(n_estimators=5, random_state=0))
    first_half = streamed(MondrianForestClassifier(n_estimators=5, random_state=0), stop=300)
    resumed = copied(first_half)
    before = first_half.predict_proba(X)
    assert np.array_equal(resumed.predict_proba(X), before)
    assert_same_forest(first_half, resumed)
    assert_same_forest(through, streamed(resumed, start=300))
    assert np.array_equal(before, first_half.predict_proba(X)), "the copy shares state"


def test_clone_starts_empty():
    forest = MondrianForestClassifier(n_estimators=5, random_state=0, feature_weights=[1.0] * 64)
    cloned = clone(forest.fit(X, Y))
    assert not hasattr(cloned, "n_features_in_")
    assert_same_forest(forest, cloned.fit(X, Y))


def big_data(n=60_000, d=20):
    rng = np.random.default_rng(0)
    return rng.random((n, d), dtype=np.float32), rng.integers(5, size=n)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_returns_soon_and_leaves_the_forest_unchanged(n_jobs):
    big, labels = big_data()
    forest = MondrianForestClassifier(n_estimators=2000, random_state=0, n_jobs=n_jobs)
    forest.set_params(n_estimators=5).fit(X[:, :20], Y)
    before = forest.predict_proba(X[:50, :20])
    forest.set_params(n_estimators=2000)
    with CtrlC(0.3, n_jobs) as interrupt, pytest.raises(KeyboardInterrupt):
        forest.fit(big, labels)
    assert interrupt.seconds_to_return < 1.0, "the interrupt was answered late"
    assert np.array_equal(before, forest.predict_proba(X[:50, :20]))
    forest._forest.check_invariants()


def test_an_interrupted_first_partial_fit_can_be_used_and_finished():
    big, labels = big_data()
    forest = MondrianForestClassifier(n_estimators=400, random_state=0)
    with CtrlC(0.3), pytest.raises(KeyboardInterrupt):
        forest.partial_fit(big, labels, classes=[9, 0, 1, 2, 3, 4])
    assert forest.n_samples_seen_ == len(labels)
    assert forest.classes_.tolist() == [0, 1, 2, 3, 4, 9]
    assert np.allclose(forest.predict_proba(big[:5]).sum(axis=1), 1)
    forest._forest.check_invariants()
    trees = list(forest.trees_)
    assert len(trees) == 400, "a tree without nodes ends the iteration"
    assert trees[-1].n_nodes == 0, "all trees were grown: nothing tested"
    assert trees[-1].root == -1 and np.isnan(trees[-1].mean_depth) and len(trees[-1].depth) == 0
    assert trees[-1].count.shape == (0, 6)
    assert (forest.apply(big[:5])[:, -1] == -1).all()


def test_a_signal_handler_cannot_use_the_forest_it_interrupts():
    """A call in the handler would deadlock. It raises instead, and the error reaches the caller."""
    big, labels = big_data()
    forest = MondrianForestClassifier(n_estimators=300, random_state=0).fit(big[:100], labels[:100])
    before = signal.signal(signal.SIGINT, lambda *_: forest.predict(big[:1]))
    try:
        with CtrlC(0.2), pytest.raises(RuntimeError, match="in the middle of a call"):
            forest.partial_fit(big, labels)
    finally:
        signal.signal(signal.SIGINT, before)
    forest.predict(big[:1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_jobs", "learns"),
    thorough_but((2, False), of=[(1, False), (2, False), (2, True)]),
    ids=["one_thread", "two_threads", "learning"],
)
def test_an_interrupted_partial_fit_is_finished_by_the_next(n_jobs, learns):
    big, labels = big_data()
    parameters = {"n_estimators": 30, "random_state": 0, "n_jobs": n_jobs}
    if not learns:
        parameters |= UNLEARNED

    def start():
        return MondrianForestClassifier(**parameters).partial_fit(big[:1000], labels[:1000])

    forest = start()
    with CtrlC(0.2), pytest.raises(KeyboardInterrupt):
        forest.partial_fit(big[1000:-1], labels[1000:-1])
    sizes = n_points_of_trees(forest)
    assert min(sizes) < len(labels) - 1, "not interrupted: nothing tested"
    forest._forest.check_invariants()
    assert forest.n_samples_seen_ == len(labels) - 1
    assert np.isfinite(forest.predict_proba(big[:100])).all()
    saved = copy.deepcopy(forest)
    assert np.array_equal(saved.predict_proba(big[:100]), forest.predict_proba(big[:100]))

    forest.partial_fit(big[-1:], labels[-1:])
    undisturbed = start()
    undisturbed.partial_fit(big[1000:-1], labels[1000:-1]).partial_fit(big[-1:], labels[-1:])
    assert_same_forest(undisturbed, forest)


@pytest.mark.slow
def test_an_interrupted_forget_leaves_trees_empty_or_up_to_date():
    big, labels = big_data(10_000)
    forest = MondrianForestClassifier(n_estimators=400, random_state=0, n_jobs=2, **UNLEARNED)
    forest.fit(big, labels, ids=range(len(big)))
    with CtrlC(0.05, forest.n_jobs) as interrupt, pytest.raises(KeyboardInterrupt):
        forest.forget(ids=range(1800))
    assert interrupt.seconds_to_return < 1.0, "the interrupt was answered late"
    forest._forest.check_invariants()
    assert forest.n_samples_stored_ == 8_200
    assert forest.ids_ == frozenset(range(1800, 10_000))
    sizes = n_points_of_trees(forest)
    assert sizes == {0, 8_200}, "not interrupted: nothing tested"
    assert np.isfinite(forest.predict_proba(big[:100])).all()
    forest = copy.deepcopy(forest).forget(ids=[1800])
    assert n_points_of_trees(forest) == {8_199}


@pytest.mark.slow
def test_loading_can_be_interrupted():
    big, labels = big_data(10_000)
    forest = MondrianForestClassifier(n_estimators=200, random_state=0, n_jobs=2, **UNLEARNED)
    data = saved(forest.fit(big, labels))
    start = time.process_time()
    whole = load(io.BytesIO(data))
    seconds = time.process_time() - start
    assert_same_forest(whole, forest)
    with CtrlC(0.1 * seconds) as interrupt, pytest.raises(KeyboardInterrupt):
        load(io.BytesIO(data))
    assert interrupt.seconds_to_return < 0.6 * seconds, "the interrupt was answered late"


@pytest.mark.slow
@pytest.mark.thorough
def test_an_interrupted_partial_fit_with_a_window_has_stored_the_batch():
    big, labels = big_data(11_800)
    forest = MondrianForestClassifier(n_estimators=400, random_state=0, n_jobs=2, window=10_000)
    forest.set_params(**UNLEARNED).fit(big[:10_000], labels[:10_000])
    with CtrlC(0.05), pytest.raises(KeyboardInterrupt):
        forest.partial_fit(big[10_000:], labels[10_000:])
    forest._forest.check_invariants()
    assert forest.n_samples_seen_ == 11_800
    assert sorted(forest._forest.serials) == list(range(1800, 11_800))
    assert np.isfinite(forest.predict_proba(big[:100])).all()
    forest.partial_fit(big[:1], labels[:1])
    assert n_points_of_trees(forest) == {10_000}


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_a_class_learned_during_a_prediction_is_part_of_the_answer(method):
    """Another thread may learn a class during the call: the answer then has all classes."""
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).partial_fit(X[:5], [7] * 5)

    class LearnsMeanwhile:
        def __init__(self, core):
            self.core = core

        def __getattr__(self, name):
            return getattr(self.core, name)

        def predict(self, *arguments):
            forest._forest = self.core
            forest.partial_fit(X[5:10], [3] * 5)
            return self.core.predict(*arguments)

    twin = copy.deepcopy(forest).partial_fit(X[5:10], [3] * 5)
    forest._forest = LearnsMeanwhile(forest._forest)
    assert np.array_equal(getattr(forest, method)(X[:20]), getattr(twin, method)(X[:20]))
    assert forest.classes_.tolist() == [3, 7]


def test_probabilities_sum_to_1_while_another_thread_learns_classes():
    """Probabilities have one column per class at any moment."""
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).partial_fit(X[:1], [500])
    failures, stop = [], threading.Event()

    def predict():
        try:
            while not stop.is_set():
                assert np.allclose(forest.predict_proba(X[:3]).sum(axis=1), 1)
                forest.predict(X[:3])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(300):
        forest.partial_fit(X[i : i + 1], [i if i % 2 else 1000 + i])
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_learning_and_predicting_from_several_python_threads():
    """Calls wait for each other: nothing crashes, and no state is half written."""
    forest = core_forest(8, 64, weights="range", seed=1)
    rows = X.astype(np.float32)
    learn(forest, rows[:10], Y[:10], 10)
    failures = []

    def predict():
        try:
            for _ in range(20):
                probabilities = forest.predict(rows[:40], 2)
                assert np.allclose(probabilities.sum(axis=1), 1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(10, 400, 10):
        learn(forest, rows[i : i + 10], Y[i : i + 10], 10)
    for thread in threads:
        thread.join()
    assert not failures
    forest.check_invariants()


def test_labels_learned_one_by_one_in_one_call_equal_separate_calls():
    """Includes refreshes of the weights, new classes and a forest that has learned before."""
    one_call, many_calls = (core_forest(4, 64, weights="range") for _ in range(2))
    rows, labels = X[:400].astype(np.float32), Y[:400].astype(np.int32)
    for forest in (one_call, many_calls):
        forest.learn(rows[:7], labels[:7], 10)
    one_call.learn(rows[7:], labels[7:], 10, 2, one_by_one=True)
    for i in range(7, 400):
        many_calls.learn(rows[i : i + 1], labels[i : i + 1], 10)
    one_call.check_invariants()
    assert one_call.n_samples == 400
    assert_same(one_call.get_state(), many_calls.get_state())


def test_learn_one_equals_partial_fit_of_one_row():
    rows, many = (MondrianForestClassifier(n_estimators=3, random_state=0) for _ in range(2))
    names = np.array(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    )
    for x, y in zip(X[:200], names[Y[:200]]):
        rows.learn_one(x, y)
        many.partial_fit(x[np.newaxis], [y])
    assert_same_forest(rows, many)
    expected = many.predict_proba(X[200:250])
    # Rows of any type are rounded to float32, as in `predict_proba`.
    for convert in (np.asarray, np.float32, list, tuple, lambda x: np.asfortranarray(x)[::1]):
        one = np.array([rows.predict_proba_one(convert(x)) for x in X[200:250]])
        assert np.array_equal(one, expected)
    assert [rows.predict_one(x) for x in X[200:250]] == many.predict(X[200:250]).tolist()
    strided = np.repeat(X[200], 3)[::3]
    assert np.array_equal(rows.predict_proba_one(strided), expected[0])


def test_learn_one_of_a_number_equals_partial_fit_of_one_row():
    rows, many = (OnlineForestRegressor(n_estimators=3, random_state=0) for _ in range(2))
    for i, (x, y) in enumerate(zip(X[:200], Y[:200])):
        rows.learn_one(x, float(y) if i % 2 else y)
        many.partial_fit(x[np.newaxis], [y])
    assert rows.digest_ == many.digest_
    expected = np.column_stack(many.predict(X[200:250], return_std=True))
    for convert in (np.asarray, np.float32, list, tuple):
        one = np.array([rows.predict_one(convert(x), return_std=True) for x in X[200:250]])
        assert np.array_equal(one, expected)
    assert rows.predict_one(X[200]) == expected[0, 0]
