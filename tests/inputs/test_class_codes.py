"""Class codes: the class of each code never changes; labels of different kinds do not mix."""

from __future__ import annotations

import numpy as np
import pytest

from onlineforest._inputs.class_codes import ClassCodes, check_labels


def test_codes_are_sorted_at_first():
    codes = ClassCodes.of(np.array(["b", "a", "b", "c"]))
    assert codes.classes.tolist() == ["a", "b", "c"]
    assert codes.codes.tolist() == [0, 1, 2]
    assert codes.in_order
    assert codes.encode(np.array(["c", "a"])).tolist() == [2, 0]


def test_codes_stay_when_classes_are_added():
    old = ClassCodes.of(np.array([10, 30]))
    new = old.extended(np.array([20, 5, 30]))
    assert new.classes.tolist() == [5, 10, 20, 30]
    assert new.codes.tolist() == [2, 0, 3, 1]
    assert not new.in_order
    assert old.classes.tolist() == [10, 30], "instances never change"
    assert new.encode(np.array([10, 30, 5])).tolist() == [0, 1, 2]
    assert new.extended(np.array([5, 10])) is new


@pytest.mark.parametrize(
    ("known", "more"),
    [
        (["a"], [1]),
        ([1], ["a"]),
        ([True], ["a"]),
        ([1.0], np.array(["a"], dtype=object)),
    ],
)
def test_numbers_and_strings_do_not_mix(known, more):
    with pytest.raises(ValueError, match=r"y has labels that are (numbers|strings)"):
        ClassCodes.of(np.array(known)).extended(np.asarray(more))


@pytest.mark.parametrize(
    ("known", "more", "together"),
    [
        ([0, 1], [2.0], [0, 1, 2]),
        ([False, True], [2], [0, 1, 2]),
        (["a"], np.array(["b"], dtype=object), ["a", "b"]),
    ],
)
def test_labels_of_compatible_kinds_mix(known, more, together):
    assert ClassCodes.of(np.array(known)).extended(np.asarray(more)).classes.tolist() == together


def test_large_numbers_that_become_equal_are_refused():
    codes = ClassCodes.of(np.array([2**60 + 1, 2**60 + 3]))
    with pytest.raises(
        ValueError, match=r"labels of type uint64\. .* classes of type int64 become equal"
    ):
        codes.extended(np.array([7], dtype=np.uint64))
    assert codes.extended(np.array([7])).classes.tolist() == [7, 2**60 + 1, 2**60 + 3]


def test_labels_of_a_small_batch_do_not_warn():
    """scikit-learn warns when more than half of the labels are distinct, as in many a stream."""
    labels = np.arange(100)
    assert np.array_equal(check_labels(labels), labels)
