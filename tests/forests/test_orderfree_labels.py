"""Labels of the order-free classifier: equal by value, and known while declared or held."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from onlineforest._forests.orderfree import classes as label_hashes
from onlineforest._forests.orderfree.classes import label_hash
from support.iris import NAMES, WHOLE, X, Y, small

# printf 'number 1' | sha256sum | cut -c1-16
SHA_OF_ONE = "47273fa2b04d4be6"


def test_a_hash_is_the_start_of_a_sha256():
    assert label_hash(1) == int.from_bytes(bytes.fromhex(SHA_OF_ONE), "little")


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
