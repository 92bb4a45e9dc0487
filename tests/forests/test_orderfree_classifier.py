"""The order-free forest classifier: equal samples give equal forests, to the last bit.

The trees themselves are compared with a plain twin in tests/parity. Here, digests are compared.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlineforest import OnlineForestClassifier
from onlineforest._forests.core import ORDER_FREE_LABELS
from support.iris import DIGIT, DIGITS, NAMES, SHUFFLED, WHOLE, X, Y, fitted, small

# Write it again if a commit is meant to change the law or the digest, and say so.
KNOWN_DIGEST = "d20dc7f611cb2132c9aac45c2e4feb7582318466b68e56550d4045415c3f0c80"


# Equal samples, equal digests


def test_a_digest_is_a_sha256_and_says_something():
    assert len(WHOLE) == 64 and int(WHOLE, 16) > 0
    others = [
        fitted(slice(1, None)),
        fitted(random_state=1),
        fitted(n_estimators=6),
        fitted(min_samples_split=3),
        fitted(max_samples=0.9),
        fitted(smoothing=0.3),
        small().fit(X, Y + 1),
        small().fit(X, NAMES[Y]),
        small().fit(X, Y.astype(str)),
        small().fit(X[:, :3], Y),
        small().partial_fit(X, Y, classes=[0, 1, 2, 3]),
        small().fit(np.vstack([X, X[:1]]), np.append(Y, Y[0])),
    ]
    assert len({WHOLE, *(forest.digest_ for forest in others)}) == len(others) + 1


def test_a_digest_covers_cuts_and_counts():
    forest = fitted()
    for name in ("feature", "threshold", "count"):
        tampered = copy.deepcopy(forest)
        tampered._forest = Tampered(tampered._forest, name)
        assert tampered.digest_ != forest.digest_, name


def test_digests_of_the_same_forest_on_other_days():
    """A change of the digest's definition, of the hash or of the law is noticed here."""
    forest = small(n_estimators=3, min_samples_split=2)
    forest.fit([[0, 1], [1, 0], [2, 2], [2, 2]], ["a", "b", "a", "b"])
    assert forest.digest_ == KNOWN_DIGEST


@pytest.mark.parametrize("n_batches", [1, 2, 7, 150])
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
        forest.learn_one(X[i], Y[i])
        if predicts:  # which cuts what is pending
            forest.predict_one(X[i])
    assert forest.digest_ == WHOLE
    assert np.array_equal(forest.predict_proba(X), fitted().predict_proba(X))


def test_what_was_learned_and_forgotten_leaves_no_trace():
    forest = small().fit(X[::2] + 1, 2 - Y[::2])
    forest.partial_fit(X[SHUFFLED[:100]], Y[SHUFFLED[:100]], ids=range(100))
    forest.forget(X[::2] + 1, 2 - Y[::2])
    forest.forget(ids=range(40))
    forest.predict(X)
    forest.partial_fit(X[SHUFFLED[100:]], Y[SHUFFLED[100:]])
    forest.partial_fit(X[SHUFFLED[:40]], Y[SHUFFLED[:40]], ids=range(40))
    assert forest.digest_ == WHOLE
    forest.partial_fit(X, Y).keep_latest(len(Y))
    assert forest.digest_ == WHOLE
    forest.keep_latest(0)
    assert forest.n_samples_stored_ == 0
    assert forest.partial_fit(X, Y).digest_ == WHOLE


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 4])
def test_any_number_of_threads(n_jobs):
    assert fitted(n_jobs=n_jobs).digest_ == WHOLE
    forest = small(n_jobs=n_jobs)
    for part in np.array_split(SHUFFLED, 5):
        forest.partial_fit(X[part], Y[part])
    assert forest.digest_ == WHOLE
    assert np.array_equal(forest.predict_proba(X), fitted().predict_proba(X))


def test_rows_asked_alone_or_together_get_the_same_answers():
    """For many rows a tree is cut whole, for one row only on its way."""
    alone, together = small(), small(n_jobs=3)
    for part in np.array_split(np.arange(len(DIGIT[:600])), 4):
        for forest in alone, together:
            forest.partial_fit(DIGITS[:600][part], DIGIT[:600][part])
        expected = together.predict_proba(DIGITS[:600])
        assert np.array_equal([alone.predict_proba(row[None])[0] for row in DIGITS[:600]], expected)
    assert alone.digest_ == together.digest_


def test_one_row_asks_trees_that_are_cut_whole_and_others():
    forest, whole = (
        small(n_estimators=37).partial_fit(DIGITS[:600], DIGIT[:600]) for _ in range(2)
    )
    expected = whole.predict_proba(DIGITS[:600][:50])
    for tree in 3, 4, 20, 36:
        assert forest.trees_[tree].n_nodes > 0  # which cuts the tree whole
    assert np.array_equal([forest.predict_proba_one(row) for row in DIGITS[:600][:50]], expected)


def test_windows_and_reservoirs_hold_a_forest_of_what_they_hold():
    stream, labels = np.vstack([X + 1, X]), np.append(2 - Y, Y)
    windowed = small(window=len(Y))
    for part in np.array_split(np.arange(len(labels)), 9):
        windowed.partial_fit(stream[part], labels[part])
    assert windowed.digest_ == WHOLE

    kept = small(reservoir=50, half_life=100.0)
    kept.fit(stream, labels, ids=range(len(labels)))
    assert kept.n_samples_stored_ == 50 and kept.n_samples_seen_ == 300
    rows = sorted(kept.ids_)
    assert kept.digest_ == small().fit(stream[rows], labels[rows]).digest_


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda forest: pickle.loads(pickle.dumps(forest))]
)
def test_copies_in_the_middle_continue(copied):
    forest = small(window=500).partial_fit(X[:60], Y[:60], classes=[0, 1, 7], ids=range(60))
    twin = copied(forest.partial_fit(X[60:90], Y[60:90]))
    assert twin.digest_ == forest.digest_
    assert twin.ids_ == forest.ids_ and twin.n_samples_seen_ == 90
    assert twin.classes_.tolist() == [0, 1, 7]
    for each in (forest, twin):
        each.forget(ids=range(10)).partial_fit(X[90:], Y[90:]).learn_one(X[0], 9)
    assert twin.digest_ == forest.digest_
    assert twin.classes_.tolist() == [0, 1, 2, 7, 9]
    assert np.array_equal(twin.predict_proba(X), forest.predict_proba(X))


def test_a_pickle_names_no_private_class():
    names = []

    class Finder(pickle.Unpickler):
        def find_class(self, module, name):
            names.append(f"{module}.{name}")
            return super().find_class(module, name)

    pickled = pickle.dumps(small().partial_fit(X, NAMES[Y], classes=[*NAMES, "lupin"]))
    assert Finder(io.BytesIO(pickled)).load().verify()
    assert [name for name in names if name.startswith("onlineforest")] == [
        "onlineforest.OnlineForestClassifier"
    ]


def test_a_clone_starts_empty():
    cloned = clone(fitted())
    with pytest.raises(NotFittedError):
        cloned.digest_  # noqa: B018
    assert cloned.fit(X, Y).digest_ == WHOLE


def test_an_unknown_seed_is_drawn_anew():
    assert fitted(random_state=None).digest_ != fitted(random_state=None).digest_


# Verification


class Tampered:
    """A core forest whose first tree was changed."""

    def __init__(self, core, name):
        self._core, self._name = core, name

    def __getattr__(self, name):
        return getattr(self._core, name)

    def tree(self, index):
        table = self._core.tree(index)
        if index == 0:
            table[self._name][0] += 1
        return table


def test_forests_verify_after_any_history():
    forest = small(window=100).partial_fit(X, NAMES[Y], classes=[*NAMES, "lupin"])
    assert forest.verify() is True
    forest.forget(X[-3:], NAMES[Y[-3:]]).learn_one(X[0], "daisy")
    assert forest.verify()
    assert forest.keep_latest(0).verify()
    assert small(max_samples=0.5, n_jobs=2).fit(X, Y).verify()


def test_a_changed_forest_does_not_verify():
    for name in ("feature", "threshold", "count"):
        forest = fitted()
        forest._forest = Tampered(forest._forest, name)
        assert forest.verify() is False, name
    forest = small().fit(X, NAMES[Y])
    forest._targets.codes.classes[1] = "tulip"  # whose hash is another one
    assert forest.verify() is False


def test_what_is_verified_is_not_changed():
    forest = fitted(window=200)
    before = forest._forest.get_state()
    forest.verify()
    after = forest._forest.get_state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert (forest.n_samples_seen_, forest.n_samples_stored_) == (150, 150)


# Forgetting, ids, counts


def test_counts_and_ids():
    forest = small().fit(X, Y, ids=[f"row {i}" for i in range(150)])
    assert (forest.n_samples_seen_, forest.n_samples_stored_, len(forest.ids_)) == (150, 150, 150)
    assert forest.nbytes_ > X.size * 4
    forest.forget(ids=["row 3", "row 149"]).learn_one(X[3], Y[3], id="again")
    assert (forest.n_samples_seen_, forest.n_samples_stored_) == (151, 149)
    assert "row 3" not in forest.ids_ and "again" in forest.ids_
    with pytest.raises(ValueError, match="'row 3'"):
        forest.forget(ids=["row 4", "row 3"])
    with pytest.raises(ValueError, match="row 4"):
        forest.partial_fit(X[:1], Y[:1], ids=["row 4"])
    assert forest.n_samples_stored_ == 149


def test_a_fitted_forest_keeps_no_memory_of_growing():
    """On digits it takes 71 bytes per sample and tree; with what growing needs, 94."""
    forest = OnlineForestClassifier(20, min_samples_split=5, random_state=0).fit(DIGITS, DIGIT)
    assert forest.nbytes_ - DIGITS.size * 4 < 80 * 20 * len(DIGITS)


@pytest.mark.parametrize("calibrate", [True, False])
def test_trees_wait_for_a_prediction(calibrate):
    """Samples come and leave, but a tree holds none of them until it is asked."""

    def learned(n_estimators):
        forest = small(n_estimators=n_estimators, calibrate=calibrate)
        for i in range(1100):
            forest.learn_one(DIGITS[i], DIGIT[i])
        return forest.keep_latest(900)

    few, many = learned(10), learned(30)
    assert many.nbytes_ - few.nbytes_ < 20 * 2000
    held = small(n_estimators=10, calibrate=calibrate).fit(DIGITS[200:1100], DIGIT[200:1100])
    assert (few.predict_proba(DIGITS) == held.predict_proba(DIGITS)).all()


def test_looking_at_a_fitted_forest_takes_no_memory():
    forest = small().fit(X, Y)
    before = forest.nbytes_
    assert forest.digest_ and all(tree.n_nodes > 1 for tree in forest.trees_)
    assert forest.apply(X).shape == (150, forest.n_estimators)
    assert forest.nbytes_ == before


def test_a_sample_that_is_not_stored_cannot_be_forgotten():
    forest = fitted()
    for rows, labels in [(X[:2], [0, 1]), (X[:2] + 9, [0, 0]), (X[[0, 0]], [0, 0]), (X[:1], [8])]:
        with pytest.raises(ValueError, match="not stored"):
            forest.forget(rows, labels)
    assert forest.digest_ == WHOLE


def test_equal_samples_count_each():
    once, twice = small().fit([[0.0], [1.0]], [0, 1]), small().fit([[0.0], [1.0], [1]], [0, 1, 1])
    assert once.digest_ != twice.digest_
    assert twice.trees_[0].weight[0] == 3
    assert twice.forget([[1.0]], [1]).digest_ == once.digest_


def test_negative_zero_is_zero():
    rows = np.array([[0.0, 1.0], [1.0, -0.0], [2.0, 0.0]])
    assert small().fit(rows, [0, 1, 0]).digest_ == small().fit(np.abs(rows), [0, 1, 0]).digest_


def test_a_forest_without_samples():
    forest = fitted().keep_latest(0)
    assert forest.classes_.tolist() == []
    assert (forest.apply(X[:2]) == -1).all()
    assert forest.trees_[0].n_nodes == 0 and forest.trees_[0].root == -1
    assert forest.feature_importances_.tolist() == [0.0] * 4
    assert len(forest.digest_) == 64
    for predict in (forest.predict, forest.predict_proba):
        with pytest.raises(ValueError, match="knows no class"):
            predict(X)
    with pytest.raises(ValueError, match="knows no class"):
        forest.predict_one(X[0])
    with pytest.raises(ValueError, match="labels that are strings"):  # the kind stays
        forest.partial_fit(X, NAMES[Y])
    assert forest.partial_fit(X, Y).digest_ == WHOLE
    assert forest.fit(X, NAMES[Y]).classes_.tolist() == NAMES.tolist()


# The core


def test_the_kind_of_the_core_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(ORDER_FREE_LABELS)) is ORDER_FREE_LABELS
