"""Assertions that two forests are equal to the last bit."""

from __future__ import annotations

import numpy as np


def assert_same_forest(first, second):
    """Equal states: points, trees, random states."""
    assert_same(first._forest.get_state(), second._forest.get_state())


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert np.array_equal(a[name], b[name]), name
