"""The order of keys and the labels of an estimator follow from values alone."""

from __future__ import annotations

import itertools
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest

from onlineforest.river.names import plain_labels, sorted_keys, text_of


class Colour(StrEnum):
    """A string whose `repr` is not that of its value."""

    RED = "red"


class Mute:
    """Objects that are different and have the same text."""

    def __repr__(self):
        return "mute"


def test_keys_are_numbers_by_value_then_strings_then_others_by_text():
    keys = ["b", ("x", 2), 10, None, "B", 2, -1.5, ("x", 10), "10", float("inf"), True]
    expected = (-1.5, True, 2, 10, "10", "B", "b", ("x", 10), ("x", 2), None, float("inf"))
    assert sorted_keys(keys) == expected
    for order in itertools.islice(itertools.permutations(keys), 0, 10**6, 9973):
        assert sorted_keys(order) == expected


@pytest.mark.parametrize(
    "values",
    [
        [1, True, 1.0, np.int8(1), np.float32(1), np.bool_(True), Fraction(1), Decimal(1)],
        [0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5)],
        ["red", np.str_("red"), Colour.RED],
        [("a", 1), ("a", True), (np.str_("a"), 1.0)],
        [frozenset([8, 0]), frozenset([0, 8]), frozenset([0.0, 8.0])],
    ],
    ids=str,
)
def test_equal_values_have_one_text_and_one_place(values):
    assert len({text_of(value) for value in values}) == 1
    for value in values:
        assert sorted_keys([value, 0.75, "m", ("m",)]) == sorted_keys(
            [("m",), "m", 0.75, values[0]]
        )


def test_different_values_have_different_texts():
    values = [1, "1", ("1",), (1,), ((1,),), frozenset([1]), 1.5, "1.5", None, "None", (1, 2)]
    values += [0.1, Fraction(1, 10), Decimal("0.1"), "(1,)", "", (), frozenset()]
    assert len({text_of(value) for value in values}) == len(values) - 1  # 1/10 is written twice


def test_different_keys_or_labels_of_one_text_are_an_error():
    with pytest.raises(ValueError, match=r"The keys mute and mute are different, but have the sa"):
        sorted_keys([Mute(), "a", Mute()])
    with pytest.raises(ValueError, match=r"The labels mute and mute are different, but have the"):
        plain_labels([Mute(), "a", Mute()])


@pytest.mark.parametrize(
    ("labels", "plain"),
    [
        (["b", np.str_("a")], ["b", "a"]),
        ([Colour.RED, "green"], ["red", "green"]),
        ([3, np.int8(-7), 2.0], [3, -7, 2]),
        ([True, np.bool_(False)], [True, False]),
        (["b", 1, True], ["'b'", "1"]),
        ([0.5, 1.0], ["0.5", "1"]),
        ([("a", 1)], ["('a', 1)"]),
        ([2**63, 1], [str(2**63), "1"]),
        (["a\0", "a"], ["'a\\x00'", "'a'"]),
    ],
    ids=str,
)
def test_labels_of_one_kind_stay_and_all_others_become_texts(labels, plain):
    found = plain_labels(labels)
    assert list(found) == list(dict.fromkeys(labels)) and list(found.values()) == plain
    assert len({type(label) for label in found.values()}) == 1
    assert plain_labels(reversed(labels)) == found
    assert plain_labels([]) == {}
