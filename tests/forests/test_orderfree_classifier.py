"""The order-free forest classifier: equal samples give equal forests, to the last bit.

The trees themselves are compared with a plain twin in tests/parity. Here, digests are compared.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError

from onlineforest import OnlineForestClassifier, OnlineTree
from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import ORDER_FREE_LABELS
from onlineforest._forests.orderfree import classes as label_hashes
from onlineforest._forests.orderfree.classes import label_hash
from onlineforest._inputs.canonical import canonical_bytes
from support.examples import thorough_but
from support.interrupts import Signal, interrupted_in_the_middle

X, Y = load_iris(return_X_y=True)  # has duplicates
NAMES = np.array(["setosa", "versicolor", "virginica"])
RNG = np.random.default_rng(0)
SHUFFLED = RNG.permutation(len(Y))
DIGITS, DIGIT = load_digits(return_X_y=True)


def small(**parameters):
    return OnlineForestClassifier(**{"n_estimators": 5, "random_state": 0, **parameters})


def fitted(rows=slice(None), **parameters):
    return small(**parameters).fit(X[rows], Y[rows])


WHOLE = fitted().digest_
# Write it again if a commit is meant to change the law or the digest, and say so.
KNOWN_DIGEST = "1d78235c012a61a4e9fae4adc47a9ceaaa152be6c02386d8cb672c7158ad458d"
# printf 'number 1' | sha256sum | cut -c1-16
SHA_OF_ONE = "47273fa2b04d4be6"


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


# Labels


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([1, True, 1.0, np.int8(1), np.uint64(1), np.float32(1), np.bool_(True)], b"number 1"),
        ([-3, -3.0, np.int64(-3)], b"number -3"),
        ([2**63, np.uint64(2**63), 2.0**63], b"number 9223372036854775808"),
        ([0, -0.0, False], b"number 0"),
        (["1", np.str_("1")], b"text 1"),
        (["ä\ud800"], "text ä".encode() + b"\xed\xa0\x80"),
        (
            [np.datetime64("1970-01-02"), np.datetime64("1970-01-02T00", "ns")],
            b"date 86400000000000000000000",
        ),
        ([np.datetime64("1970-01"), np.datetime64("1970")], b"date 0"),
        ([np.timedelta64(1, "s"), np.timedelta64(1000, "ms")], b"duration 1000000000000000000"),
        ([np.timedelta64(1, "Y"), np.timedelta64(12, "M")], b"months 12"),
    ],
)
def test_equal_labels_have_equal_bytes(labels, text):
    assert {canonical_bytes(label) for label in labels} == {text}


def test_a_hash_is_the_start_of_a_sha256():
    assert label_hash(1) == int.from_bytes(bytes.fromhex(SHA_OF_ONE), "little")


@pytest.mark.parametrize("label", [1.5, None, np.datetime64("NaT", "s"), (1, 2), b"1", 1j])
def test_what_has_no_value_is_no_label(label):
    with pytest.raises(ValueError, match="label"):
        canonical_bytes(label)


@pytest.mark.parametrize(
    "typed",
    [
        Y.astype(np.int8),
        Y.astype(np.uint64),
        Y.astype(float),
        Y.astype(">i4"),
        Y.tolist(),
        pd.Series(Y),
    ],
)
def test_labels_of_other_types_with_equal_values(typed):
    assert small().fit(X, typed).digest_ == WHOLE
    mixed = small().partial_fit(X[:70], Y[:70])
    assert mixed.partial_fit(X[70:], np.asarray(typed)[70:]).digest_ == WHOLE


def test_bools_are_the_numbers_0_and_1():
    two, numbers, bools = X[Y < 2], Y[Y < 2], Y[Y < 2] == 1
    forest = small().fit(two, bools)
    assert forest.classes_.dtype == bool and forest.predict(two).dtype == bool
    assert forest.digest_ == small().fit(two, numbers).digest_
    one_by_one = small()
    for x, label in zip(two, bools.tolist(), strict=True):
        one_by_one.learn_one(x, float(label))
    assert one_by_one.digest_ == forest.digest_


def test_strings_of_other_types():
    whole = small().fit(X, NAMES[Y]).digest_
    for typed in (NAMES.astype(object)[Y], NAMES.astype("U40")[Y], pd.Series(NAMES[Y])):
        assert small().fit(X, typed).digest_ == whole


def test_new_classes_in_any_order():
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        forest = small()
        for k in order:
            forest.partial_fit(X[k == Y], NAMES[Y[k == Y]])
        assert forest.classes_.tolist() == NAMES.tolist()
        assert forest.digest_ == small().fit(X, NAMES[Y]).digest_
        assert np.array_equal(forest.predict_proba(X), small().fit(X, NAMES[Y]).predict_proba(X))
        assert np.array_equal(forest.predict(X), small().fit(X, NAMES[Y]).predict(X))
        ours, theirs = forest.trees_[1], small().fit(X, NAMES[Y]).trees_[1]
        assert np.array_equal(ours.count, theirs.count)


def test_a_label_leaves_with_its_last_sample_unless_it_was_declared():
    is_last = Y == 2
    with pytest.raises(ValueError, match="virginica"):
        small().partial_fit(X, NAMES[Y], classes=NAMES[:2])
    forest = small().partial_fit(X[:50], NAMES[Y[:50]], classes=NAMES[:1])
    forest.partial_fit(X[50:100], NAMES[Y[50:100]])
    forest.partial_fit(X[is_last], NAMES[Y[is_last]])
    assert forest.classes_.tolist() == NAMES.tolist()
    forest.forget(X[is_last], NAMES[Y[is_last]])
    assert forest.classes_.tolist() == ["setosa", "versicolor"]
    assert forest.classes_.dtype == "<U10"
    assert forest.predict_proba(X).shape == (150, 2)
    assert np.allclose(forest.predict_proba(X).sum(axis=1), 1)
    forest.forget(X[Y < 2], NAMES[Y[Y < 2]])
    assert forest.classes_.tolist() == ["setosa"]
    assert forest.classes_.dtype == "<U6", "the length of a label that has left is still known"
    assert forest.predict_proba(X[:2]).tolist() == [[1.0], [1.0]]
    twin = small().partial_fit(X[:1], NAMES[:1], classes=NAMES[:1]).keep_latest(0)
    assert forest.digest_ == twin.digest_
    with pytest.raises(ValueError, match="virginica"):  # no longer known
        forest.partial_fit(X[is_last], NAMES[Y[is_last]], classes=["setosa"])
    assert forest.learn_one(X[-1], "virginica").classes_.tolist() == ["setosa", "virginica"]


def test_a_window_drops_labels():
    forest = small(window=10)
    for i in range(60):
        forest.learn_one(X[i], NAMES[Y[i]])
        assert forest.classes_.tolist() == sorted(set(NAMES[Y[max(i - 9, 0) : i + 1]]))
    assert forest.predict_proba_one(X[0]).tolist() == [1.0]


def test_declared_labels_are_part_of_the_prior():
    forest = small().partial_fit([[0.0], [1.0]], ["a", "b"])
    without = forest.digest_
    forest.partial_fit([[0.0]], ["a"], classes=["c", "b", "a"])
    proba = forest.predict_proba([[0.0]])
    assert proba.shape == (1, 3) and proba[0, 2] > 0
    assert np.isclose(proba.sum(), 1)
    assert forest.forget([[0.0]], ["a"]).digest_ != without
    assert forest.verify()


def test_two_labels_with_the_same_hash_are_an_error(monkeypatch):
    forest = small().partial_fit(X[:3], ["a", "b", "a"])
    before = forest.digest_
    monkeypatch.setattr(label_hashes, "label_hash", lambda label: len(str(label)))
    with pytest.raises(ValueError, match=r"'a' and 'b' have the same 64-bit hash"):
        small().fit(X[:3], ["a", "b", "a"])
    with pytest.raises(ValueError, match="have the same 64-bit hash"):
        forest.partial_fit(X[:2], ["c", "d"])
    monkeypatch.undo()
    assert forest.digest_ == before
    assert forest.partial_fit(X[:1], ["c"]).verify()


def test_labels_that_a_common_type_would_change_are_an_error():
    large = 2**53 + 1
    forest = small().fit(X[:2], np.array([large, 5]))
    before = forest.digest_
    with pytest.raises(ValueError, match="change their values"):
        forest.partial_fit(X[:1], np.array([7], dtype=np.uint64))
    forest.learn_one(X[2], large)
    assert forest.forget(X[2:3], [large]).digest_ == before


def test_ties_go_to_the_first_class():
    for labels in (["b", "a"], ["a", "b"]):
        forest = small().fit([[0.0], [0.0]], labels)
        assert forest.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]
        assert forest.predict([[0.0]]).tolist() == ["a"]
        assert forest.predict_one([0.0]) == "a"
    forest = small().partial_fit([[0.0]], [5]).partial_fit([[0.0]], [3])
    assert forest.predict([[0.0]]).tolist() == [3]


# Predictions


def test_one_row_is_predicted_as_many_are():
    forest = small().fit(X, NAMES[Y]).partial_fit(X[:5], ["daisy"] * 5)
    proba, labels = forest.predict_proba(X), forest.predict(X)
    for i in range(0, 150, 10):
        assert np.array_equal(forest.predict_proba_one(X[i]), proba[i])
        assert forest.predict_one(X[i].tolist()) == labels[i]
    assert np.array_equal(forest.predict_log_proba(X), np.log(proba))


def test_it_predicts_digits_well():
    forest = OnlineForestClassifier(30, random_state=0, n_jobs=2).fit(DIGITS[:1200], DIGIT[:1200])
    assert forest.score(DIGITS[1200:], DIGIT[1200:]) > 0.9


def test_left_out_samples_are_scored_like_new_ones():
    """Standard error of the difference about 0.01: a distance of 0.05 does not come by chance."""
    chosen = np.random.default_rng(0).permutation(len(DIGIT))
    old, new = chosen[:900], chosen[900:]
    forest = OnlineForestClassifier(60, max_samples=0.6, random_state=0, n_jobs=2)
    forest.fit(DIGITS[old], DIGIT[old])
    assert abs(forest.oob_score_ - forest.score(DIGITS[new], DIGIT[new])) < 0.05
    assert forest.oob_score_ < forest.score(DIGITS[old], DIGIT[old])
    proba = forest.oob_decision_function_
    assert proba.shape == (900, 10)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.mean(forest.classes_[proba.argmax(axis=1)] == DIGIT[old]) == forest.oob_score_


def test_left_out_predictions_are_in_the_order_of_arrival():
    whole = small(max_samples=0.5).fit(X, NAMES[Y])
    forest = small(max_samples=0.5).fit(X[:20], NAMES[Y[:20]])
    for part in np.array_split(SHUFFLED, 4):
        forest.partial_fit(X[part], NAMES[Y[part]])
    forest.keep_latest(150)
    expected = whole.oob_decision_function_[SHUFFLED]
    assert np.array_equal(forest.oob_decision_function_, expected, equal_nan=True)
    assert forest.oob_score_ == whole.oob_score_


def test_samples_that_every_tree_has_learned_have_no_left_out_prediction():
    forest = OnlineForestClassifier(2, max_samples=0.7, random_state=0).fit(X, NAMES[Y])
    proba = forest.oob_decision_function_
    is_missing = np.isnan(proba).all(axis=1)
    assert 0 < is_missing.sum() < len(Y)
    assert np.array_equal(np.isnan(proba).any(axis=1), is_missing)
    best = forest.classes_[proba[~is_missing].argmax(axis=1)]
    assert forest.oob_score_ == np.mean(best == NAMES[Y[~is_missing]])
    assert np.isnan(small(max_samples=0.9999).fit(X[:2], Y[:2]).oob_score_)


@pytest.mark.parametrize("name", ["oob_score_", "oob_decision_function_"])
def test_without_left_out_samples_there_is_no_score(name):
    with pytest.raises(AttributeError, match=rf"{name} needs .* max_samples is 1\.0"):
        getattr(fitted(), name)
    assert not hasattr(fitted(), name)
    with pytest.raises(NotFittedError):
        getattr(small(), name)


@pytest.mark.parametrize("max_samples", [1.0, 0.7])
def test_importances_do_not_depend_on_the_order_of_classes(max_samples):
    """Squares of such weights are rounded as doubles: their sums must not be."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
        weights = rng.choice([0.5, 1.0, 1000.1], 200)
        found = []
        for order in ([0, 1, 2, 3], [2, 3, 1, 0]):
            forest = small(min_samples_split=2, calibrate=False, max_samples=max_samples)
            for label in order:
                here = y == label
                forest.partial_fit(rows[here], y[here], sample_weight=weights[here])
            found.append(forest.feature_importances_)
        assert np.array_equal(*found), seed


@pytest.mark.parametrize("max_samples", [1.0, 0.6])
def test_importances(max_samples):
    rng = np.random.default_rng(0)
    rows = rng.random((500, 4))
    forest = small(n_estimators=20, max_samples=max_samples).fit(rows, rows[:, 2] > 0.5)
    importances = forest.feature_importances_
    assert importances.argmax() == 2 and importances[2] > 0.8
    assert np.isclose(importances.sum(), 1) and importances.min() >= 0
    assert small().fit(rows, np.ones(500)).feature_importances_.tolist() == [0.0] * 4


# Trees


def test_trees_are_read_only_tables_of_the_samples():
    forest = small().fit(X, NAMES[Y])
    assert len(forest.trees_) == 5 and repr(forest.trees_) == "<5 order-free trees>"
    for index, tree in enumerate(forest.trees_):
        assert isinstance(tree, OnlineTree)
        assert tree.weight[tree.root] == 150
        assert np.array_equal(tree.count[tree.root], np.bincount(Y))
        assert np.array_equal(tree.count.sum(axis=1), tree.weight)
        inner = ~tree.is_leaf
        below = tree.count[tree.left[inner]] + tree.count[tree.right[inner]]
        assert np.array_equal(below, tree.count[inner])
        assert np.isnan(tree.split_location[tree.is_leaf]).all()
        leaves = forest.apply(X)[:, index]
        assert tree.is_leaf[leaves].all()
        assert np.array_equal(
            np.bincount(leaves, minlength=tree.n_nodes)[tree.is_leaf], tree.weight[tree.is_leaf]
        )
        assert 0 < tree.mean_depth <= tree.depth.max()
        with pytest.raises(ValueError, match="read-only"):
            tree.count[0] = 0
    assert forest.trees_[0].split_dimension.dtype == np.int32


def test_columns_of_counts_are_those_of_classes():
    forest = small().partial_fit(X[100:], NAMES[Y[100:]]).partial_fit(X[:100], NAMES[Y[:100]])
    forest.forget(X[:10], NAMES[Y[:10]])
    assert forest.trees_[0].count[0].tolist() == [40, 50, 50]
    forest.forget(X[50:100], NAMES[Y[50:100]])
    assert forest.trees_[0].count[0].tolist() == [40, 50]


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_a_predicted_date_is_a_label_that_can_be_learned(kind, unit):
    labels = np.array([3, 5, 8]).astype(f"{kind}[{unit}]")
    forest = small().fit(X, labels[Y % 3])
    for x in X[:3]:
        label = forest.predict_one(x)
        assert label in labels
        forest.learn_one(x, label)
    assert forest.classes_.tolist() == labels[np.unique(Y % 3)].tolist()


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
    """On digits it takes 61 bytes per sample and tree; with what growing needs, 79."""
    forest = OnlineForestClassifier(n_estimators=20, random_state=0).fit(DIGITS, DIGIT)
    assert forest.nbytes_ - DIGITS.size * 4 < 70 * 20 * len(DIGITS)


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


# Input


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("starts", [False, True])
def test_infinite_values_are_errors(bad, starts):
    rows = X.copy()
    rows[3, 2] = bad
    forest = small() if starts else fitted()
    for call in (
        lambda: forest.partial_fit(rows, Y),
        lambda: forest.partial_fit(pd.DataFrame(rows), Y),
        lambda: forest.learn_one(rows[3], 0),
    ):
        with pytest.raises(ValueError, match=r"inf|finite|too large"):
            call()
    if starts:
        assert not hasattr(forest, "n_features_in_")
        with pytest.raises(ValueError, match="infinity"):
            forest.fit(rows, Y)
        return
    for call in (
        lambda: forest.predict(rows),
        lambda: forest.predict_one(rows[3]),
        lambda: forest.forget(rows[3:4], Y[3:4]),
    ):
        with pytest.raises(ValueError, match=r"inf|finite|too large"):
            call()
    assert forest.digest_ == WHOLE and forest.n_samples_seen_ == 150


def test_bad_input_changes_nothing():
    forest = fitted()
    bad_calls = [
        (ValueError, "features", lambda: forest.partial_fit(X[:, :3], Y)),
        (ValueError, "strings", lambda: forest.partial_fit(X, NAMES[Y])),
        (ValueError, "inconsistent", lambda: forest.partial_fit(X[:3], Y[:2])),
        (ValueError, "continuous", lambda: forest.partial_fit(X[:2], [0.5, 1.5])),
        (ValueError, "missing", lambda: forest.partial_fit(X[:2], [0, None])),
        (ValueError, "do not exist", lambda: forest.partial_fit(X[:2], [0, 9], classes=[5])),
        (ValueError, "1d array", lambda: forest.partial_fit(X[:2], [0, 1], classes=[[5]])),
        (ValueError, "strings", lambda: forest.partial_fit(X[:2], [0, 1], classes=["a"])),
        (ValueError, "distinct", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 1])),
        (ValueError, "3 ids", lambda: forest.partial_fit(X[:2], [0, 8], ids=[1, 2, 3])),
        (ValueError, "one label", lambda: forest.learn_one(X[0], [0, 1])),
        (ValueError, "1d array", lambda: forest.learn_one(X[:1], 0)),
        (TypeError, "numbers", lambda: forest.learn_one(["a"] * 4, 0)),
        (ValueError, "feature", lambda: forest.learn_one(X[0, :3], 0)),
        (ValueError, "needs X and y, or ids", lambda: forest.forget(X)),
        (ValueError, "not both", lambda: forest.forget(X, Y, ids=[1])),
        (ValueError, "at least 0", lambda: forest.keep_latest(-1)),
        (ValueError, "features", lambda: forest.predict(X[:, :3])),
        (ValueError, "0 feature", lambda: forest.fit(X[:, :0], Y)),
    ]
    for error, message, call in bad_calls:
        with pytest.raises(error, match=rf"(?i){message}"):
            call()
        assert forest.classes_.tolist() == [0, 1, 2], message
        assert forest.n_samples_seen_ == 150
    assert forest.digest_ == WHOLE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("min_samples_split", 1),
        ("max_samples", 0.0),
        ("max_samples", 1.5),
        ("smoothing", -0.1),
        ("smoothing", 1.1),
        ("window", 0),
        ("reservoir", 0),
        ("half_life", 0.5),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OnlineForestClassifier must"):
        small(**{name: value}).fit(X, Y)


def test_parameters_of_keeping_exclude_each_other():
    with pytest.raises(ValueError, match="window and reservoir"):
        fitted(window=5, reservoir=5)
    with pytest.raises(ValueError, match="half_life needs a reservoir"):
        fitted(half_life=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 6),
        ("min_samples_split", 3),
        ("max_samples", 0.5),
        ("smoothing", 0.0),
        ("window", 5),
    ],
)
def test_a_parameter_that_changes_needs_a_new_forest(name, value):
    forest = fitted().set_params(**{name: value})
    for call in (
        lambda: forest.partial_fit(X, Y),
        lambda: forest.learn_one(X[0], 0),
        lambda: forest.forget(X, Y),
        lambda: forest.keep_latest(3),
    ):
        with pytest.raises(ValueError, match=f"{name} was .* when this forest was started"):
            call()
    assert forest.digest_ == WHOLE, "the digest is that of the parameters it was built with"
    assert forest.fit(X, Y).digest_ != WHOLE
    forest = fitted().set_params(n_jobs=2, random_state=5)
    assert forest.partial_fit(X, Y).keep_latest(150).digest_ == WHOLE


def test_sparse_rows_are_dense_rows():
    rows = np.where(DIGITS[:200] > 8, DIGITS[:200], 0)
    dense = small().fit(rows, DIGIT[:200])
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        forest = small().fit(kind(rows), DIGIT[:200])
        assert forest.digest_ == dense.digest_
        assert np.array_equal(forest.predict_proba(kind(rows)), dense.predict_proba(rows))


def test_data_frames():
    frame = pd.DataFrame(X, columns=list("abcd"))
    forest = small().fit(frame, Y)
    assert forest.digest_ == WHOLE
    assert forest.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        forest.predict(frame[list("bacd")])


# The core, threads and interrupts


def test_the_kind_of_the_core_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(ORDER_FREE_LABELS)) is ORDER_FREE_LABELS


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


def test_the_known_labels_change_with_them_alone():
    forest = small().partial_fit([[0.0], [1.0]], ["a", "b"])
    first = forest._forest.known_labels
    forest.learn_one([2.0], "b").forget([[1.0]], ["b"])
    assert forest._forest.known_labels is first, "it is not made again"
    assert first.tolist() == [label_hash("a"), label_hash("b")]
    forest.learn_one([2.0], "c")
    assert forest._forest.known_labels.tolist() == [*first, label_hash("c")]
    forest.forget([[2.0]], ["c"])
    assert forest._forest.known_labels.tolist() == first.tolist()


def test_a_label_is_hashed_when_it_is_new_not_again(monkeypatch):
    hashed = []

    def counting(label):
        hashed.append(label)
        return label_hash(label)

    monkeypatch.setattr(label_hashes, "label_hash", counting)
    forest = small()
    for label in range(40):
        forest.learn_one([float(label)], label)
    assert len(hashed) < 3 * 40
    assert sorted(forest.classes_) == list(range(40))
    assert forest.verify()
