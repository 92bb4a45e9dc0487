"""Assertions that two forests are equal to the last bit."""

from __future__ import annotations


def assert_same_forest(first, second):
    """Equal states: points, trees, random states. Of order-free forests, equal digests."""
    if hasattr(type(first), "digest_"):
        assert first.digest_ == second.digest_
        return
    assert_same(first._forest.get_state(), second._forest.get_state())


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes(), name  # NaN equals itself
