"""The order-free forest regressor: equal samples give equal forests, to the last bit.

The trees themselves are compared with a plain twin in tests/parity. Here, digests are compared.
"""

from __future__ import annotations

import copy
import io
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlineforest import load
from onlineforest._forests.core import ORDER_FREE_NUMBERS
from support.diabetes import LEVELS, SHUFFLED, WHOLE, X, Y, fitted, small
from support.model_files import saved

# Write it again if a commit is meant to change the law or the digest, and say so.
KNOWN_DIGEST = "e45e81b8ad0d9a347e62a590e23ac04949abd94022b8e66d67058dc877fc284f"


# Equal samples, equal digests


def test_a_digest_says_something():
    assert len(WHOLE) == 64 and int(WHOLE, 16) > 0
    others = [
        fitted(slice(1, None)),
        fitted(random_state=1),
        fitted(n_estimators=6),
        fitted(min_samples_split=4),
        fitted(max_samples=0.9),
        fitted(calibrate=False),
        small().fit(X, Y + 1),
        small().fit(X, np.append(Y[:-1], np.nextafter(Y[-1], 0))),
        small().fit(X[:, :3], Y),
        small().fit(np.vstack([X, X[:1]]), np.append(Y, Y[0])),
    ]
    assert len({WHOLE, *(forest.digest_ for forest in others)}) == len(others) + 1


def test_a_digest_covers_cuts_and_numbers():
    class Tampered:
        def __init__(self, core, name):
            self._core, self._name = core, name

        def __getattr__(self, name):
            return getattr(self._core, name)

        def tree(self, index):
            table = self._core.tree(index)
            if index == 0:
                table[self._name][0] += 1
            return table

    for name in ("feature", "threshold", "missing_left", "mean"):
        forest = fitted()
        forest._forest = Tampered(forest._forest, name)
        assert forest.digest_ != WHOLE, name
        assert forest.verify() is False, name


def test_digests_of_the_same_forest_on_other_days():
    """A change of the digest's definition, of the hash or of the law is noticed here."""
    forest = small(n_estimators=3, min_samples_split=2)
    forest.fit([[0, 1], [1, np.nan], [2, 2], [2, 2]], [0.5, -1.0, 1e100, 2.0])
    assert forest.digest_ == KNOWN_DIGEST


@pytest.mark.parametrize("n_batches", [1, 2, 7, 300])
@pytest.mark.parametrize("order", [np.arange(len(Y)), SHUFFLED, np.argsort(-Y)])
def test_batches_in_any_order(order, n_batches):
    forest = small()
    for part in np.array_split(order, n_batches):
        forest.partial_fit(X[part], Y[part])
    assert forest.digest_ == WHOLE


@pytest.mark.parametrize("predicts", [False, True])
def test_samples_one_by_one(predicts):
    forest = small()
    for i in SHUFFLED:
        forest.learn_one(X[i], float(Y[i]))
        if predicts:  # which cuts what is pending
            forest.predict_one(X[i])
    assert forest.digest_ == WHOLE
    assert np.array_equal(forest.recalibrate().predict(X), fitted().predict(X))


def test_what_was_learned_and_forgotten_leaves_no_trace():
    forest = small().fit(X[::2] + 1, -Y[::2])
    forest.partial_fit(X[SHUFFLED[:200]], Y[SHUFFLED[:200]], ids=range(200))
    forest.forget(X[::2] + 1, -Y[::2])
    forest.forget(ids=range(40))
    forest.predict(X)
    forest.partial_fit(X[SHUFFLED[200:]], Y[SHUFFLED[200:]])
    forest.partial_fit(X[SHUFFLED[:40]], Y[SHUFFLED[:40]], ids=range(40))
    assert forest.digest_ == WHOLE and forest.verify()
    forest.partial_fit(X, Y).keep_latest(len(Y))
    assert forest.digest_ == WHOLE
    forest.keep_latest(0)
    assert forest.n_samples_stored_ == 0
    assert forest.partial_fit(X, Y).digest_ == WHOLE


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_any_number_of_threads(n_jobs):
    assert fitted(n_jobs=n_jobs).digest_ == WHOLE
    forest = small(n_jobs=n_jobs)
    for part in np.array_split(SHUFFLED, 5):
        forest.partial_fit(X[part], Y[part])
    assert forest.digest_ == WHOLE
    expected = fitted().predict_quantiles(X, LEVELS)
    assert np.array_equal(forest.recalibrate().predict_quantiles(X, LEVELS), expected)


def test_rows_asked_alone_or_together_get_the_same_answers():
    """For many rows a tree is cut whole, for one row only on its way."""
    alone, together = small(), small(n_jobs=3)
    for part in np.array_split(np.arange(len(Y)), 4):
        for forest in alone, together:
            forest.partial_fit(X[part], Y[part])
        expected = together.predict(X)
        assert np.array_equal([alone.predict(row[None])[0] for row in X], expected)
    assert alone.digest_ == together.digest_


def test_one_row_asks_trees_that_are_cut_whole_and_others():
    forest, whole = (small(n_estimators=37).partial_fit(X, Y) for _ in range(2))
    expected = whole.predict(X[:50])
    for tree in 3, 4, 20, 36:
        assert forest.trees_[tree].n_nodes > 0  # which cuts the tree whole
    assert np.array_equal([forest.predict_one(row) for row in X[:50]], expected)


def test_windows_and_reservoirs_hold_a_forest_of_what_they_hold():
    stream, numbers = np.vstack([X + 1, X]), np.append(-Y, Y)
    windowed = small(window=len(Y))
    for part in np.array_split(np.arange(len(numbers)), 9):
        windowed.partial_fit(stream[part], numbers[part])
    assert windowed.digest_ == WHOLE
    kept = small(reservoir=50, half_life=100.0)
    kept.fit(stream, numbers, ids=range(len(numbers)))
    assert kept.n_samples_stored_ == 50 and kept.n_samples_seen_ == 600
    rows = sorted(kept.ids_)
    assert kept.digest_ == small().fit(stream[rows], numbers[rows]).digest_


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        copy.copy,
        lambda forest: pickle.loads(pickle.dumps(forest)),
        lambda forest: load(io.BytesIO(saved(forest))),
    ],
    ids=["deepcopy", "copy", "pickle", "file"],
)
def test_copies_in_the_middle_continue(copied):
    forest = small(window=500).partial_fit(X[:60], Y[:60], ids=range(60))
    forest.partial_fit(X[60:200], Y[60:200])
    forest.predict_interval(X)  # the calibration is no part of a copy
    twin = copied(forest)
    assert twin.digest_ == forest.digest_
    assert twin.ids_ == forest.ids_ and twin.n_samples_seen_ == 200
    for each in (forest, twin):
        each.forget(ids=range(10)).partial_fit(X[200:], Y[200:]).learn_one(X[0], 9.0)
    assert twin.digest_ == forest.digest_
    assert np.array_equal(twin.predict_interval(X), forest.predict_interval(X))


def test_a_clone_starts_empty():
    cloned = clone(fitted())
    with pytest.raises(NotFittedError):
        cloned.digest_  # noqa: B018
    assert cloned.fit(X, Y).digest_ == WHOLE


# Forgetting, ids, counts


def test_counts_and_ids():
    forest = small().fit(X, Y, ids=[f"row {i}" for i in range(300)])
    assert (forest.n_samples_seen_, forest.n_samples_stored_, len(forest.ids_)) == (300, 300, 300)
    assert forest.nbytes_ > X.size * 4
    forest.forget(ids=["row 3", "row 299"]).learn_one(X[3], Y[3], id="again")
    assert (forest.n_samples_seen_, forest.n_samples_stored_) == (301, 299)
    assert "row 3" not in forest.ids_ and "again" in forest.ids_
    with pytest.raises(ValueError, match="'row 3'"):
        forest.forget(ids=["row 4", "row 3"])
    with pytest.raises(ValueError, match="row 4"):
        forest.partial_fit(X[:1], Y[:1], ids=["row 4"])
    assert forest.n_samples_stored_ == 299


def test_a_sample_that_is_not_stored_cannot_be_forgotten():
    forest = fitted()
    for rows, numbers in [
        (X[:1], Y[:1] + 1e-9),
        (X[:2] + 9, Y[:2]),
        (X[[0, 0]], Y[[0, 0]]),
        (X[:1], [-Y[0]]),
    ]:
        with pytest.raises(ValueError, match="not stored"):
            forest.forget(rows, numbers)
    assert forest.digest_ == WHOLE


def test_negative_zero_is_zero():
    rows, numbers = np.array([[0.0, 1.0], [1.0, -0.0], [2.0, 0.0]]), np.array([0.0, -0.0, 1.0])
    forest = small().fit(rows, numbers)
    assert forest.digest_ == small().fit(np.abs(rows), np.abs(numbers)).digest_
    assert forest.forget([[-0.0, 1.0]], [-0.0]).n_samples_stored_ == 2


def test_a_forest_without_samples():
    forest = fitted().keep_latest(0)
    assert (forest.apply(X[:2]) == -1).all()
    assert forest.trees_[0].n_nodes == 0
    assert forest.feature_importances_.tolist() == [0.0] * 10
    assert len(forest.oob_prediction_) == 0 and math.isnan(forest.oob_score_)
    for call in (
        lambda: forest.predict(X),
        lambda: forest.predict(X, return_std=True),
        lambda: forest.predict_one(X[0]),
        lambda: forest.predict_quantiles(X),
        lambda: forest.log_density(X, Y),
    ):
        with pytest.raises(ValueError, match="forgotten all"):
            call()
    assert forest.partial_fit(X, Y).digest_ == WHOLE


# The core


def test_the_kind_of_the_core_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(ORDER_FREE_NUMBERS)) is ORDER_FREE_NUMBERS


def test_memory_counts_the_exact_sums_of_large_leaves():
    rows = np.zeros((100, 1))
    one, different = (
        small(n_estimators=10, calibrate=False).fit(rows, y).nbytes_
        for y in (np.full(100, 2.0), np.arange(100.0))
    )
    assert different - one > 10 * 2 * 2176 / 8
