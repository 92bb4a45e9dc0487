"""How many random examples a test tries, and which cases."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest


def examples(n):
    """The share of `n` that ONLINEFOREST_EXAMPLES says, by default a tenth; at least one.

    A later step of .ci/run tries half of them, the nightly run all.
    """
    return max(1, round(n * float(os.environ.get("ONLINEFOREST_EXAMPLES", "0.1"))))


def thorough_but(*first: object, of: Iterable[object]) -> list:
    """Cases as parameters of a test, of which all but `first` are thorough."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else [case]),
            marks=() if case in first else pytest.mark.thorough,
        )
        for case in of
    ]
