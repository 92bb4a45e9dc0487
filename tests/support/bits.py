"""Whether two forests are the same, to the last bit."""

from __future__ import annotations

import numpy as np


def assert_same_forest(first, second):
    """Equal states: points, trees, random states."""
    assert_same(first._forest.get_state(), second._forest.get_state())


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y)
    else:
        assert np.array_equal(a, b)
