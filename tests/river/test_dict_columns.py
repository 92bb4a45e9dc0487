"""Which column a key has, and what a sample is as a row."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from onlineforest.river.dict_columns import columns_of


def numbers(keys):
    """Columns of numbers."""
    return columns_of(keys, frozenset(), frozenset())


def row_of(columns, x):
    return [None if math.isnan(value) else value for value in columns.row(x)]


def test_keys_have_columns_in_their_order():
    columns = numbers({"b": 1.0, "a": 2.0})
    assert columns.keys == ("a", "b") and columns.width == 2
    assert row_of(columns, {"b": 1.0, "a": 2.0}) == row_of(columns, {"a": 2.0, "b": 1.0}) == [2, 1]
    assert numbers(["z", "b", "Y"]).keys == ("Y", "b", "z")


def test_the_order_of_a_dict_does_not_matter():
    keys = [10, "b", 2, ("x", 1), None, "a", 2.5, True]
    orders = {
        numbers(np.random.default_rng(i).permutation(np.array(keys, object))).keys
        for i in range(20)
    }
    assert len(orders) == 1
    assert [key for key in orders.pop() if isinstance(key, str)] == ["a", "b"]


def test_a_sample_may_lack_keys_and_have_others():
    columns = numbers("abc")
    assert row_of(columns, {"c": 3.0, "z": 9.0}) == [None, None, 3.0]
    assert row_of(columns, {}) == [None, None, None]
    assert columns.knows("cab") and not columns.knows("az")


def test_keys_may_be_sorted_again_with_new_ones():
    columns = numbers("bd")
    found = numbers("bdacb")
    assert found.keys == tuple("abcd") and found.width == 4
    assert found.sources_in(columns) == [-1, 0, -1, 1]
    nothing = numbers({})
    assert numbers("a").sources_in(nothing) == nothing.sources_in(columns) == [-1]


def test_a_sample_without_keys_has_one_column():
    columns = numbers({})
    assert columns.keys == () and columns.width == 1
    assert row_of(columns, {}) == row_of(columns, {"a": 1.0}) == [None]


def test_keys_may_be_anything_hashable():
    columns = numbers([3, "3", (1, "x"), None, frozenset("a"), 2.5])
    x = {key: float(place) for place, key in enumerate(reversed(columns.keys))}
    assert row_of(columns, x) == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (True, 1.0),
        (False, 0.0),
        (np.bool_(True), 1.0),
        (np.float32(1.5), 1.5),
        (np.int8(-3), -3.0),
        (7, 7.0),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (None, None),
        (math.nan, None),
        (np.nan, None),
        (pd.NA, None),
        (pd.NaT, None),
    ],
)
@pytest.mark.parametrize("is_alone", [True, False])
def test_numbers_and_missing_values(value, number, is_alone):
    x = {"a": value} if is_alone else {"b": 2.0, "a": value}
    assert row_of(numbers("ab"), x)[0] == number
    assert row_of(numbers("a"), x) == [number]


@pytest.mark.parametrize("value", ["red", "1.5", b"1", 1j, [1.0], {}, np.ones(2), object])
def test_a_value_that_is_not_a_number_is_an_error_that_names_its_key(value):
    for columns in (numbers(["colour"]), numbers(["height", "colour"])):
        with pytest.raises(TypeError, match=r"Feature 'colour' must be a number.*OneHotEncoder"):
            columns.row({"colour": value})


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3.5e38, 10**400, -(10**400)])
def test_a_value_too_large_for_float32_is_an_error_that_names_its_key(value):
    columns = numbers(["a", "b"])
    row = columns.row({"a": 1.0, "b": value})
    with pytest.raises(ValueError, match=r"Feature 'b' must be finite.* Got "):
        columns.check_finite(row)
    with pytest.raises(ValueError, match=r"Feature 'b'"):
        columns.rows(["a", "b"], np.array([[1.0, 2.0], list(row)]))


def test_the_largest_float32_and_missing_values_are_accepted():
    columns = numbers(["a", "b"])
    columns.check_finite(columns.row({"a": float(np.finfo(np.float32).max)}))


def test_tables_have_the_same_columns_as_rows():
    columns = numbers("abcd")
    samples = [{"d": 1.0, "z": 5.0, "a": 2.0}, {"d": 3.0, "z": 6.0, "a": math.nan}]
    table = columns.rows(["d", "z", "a"], np.array([list(x.values()) for x in samples]))
    assert table.dtype == np.float64  # the estimator subtracts offsets before it rounds
    np.testing.assert_array_equal(table, [columns.row(x) for x in samples])
