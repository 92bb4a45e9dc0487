"""How many random examples a test tries."""

from __future__ import annotations

import os


def examples(n):
    """The share of `n` that ONLINEFOREST_EXAMPLES says, by default a quarter; at least one.

    A later step of .ci/run tries all. The sanitizers, which are ten times slower, try fewer.
    """
    return max(1, round(n * float(os.environ.get("ONLINEFOREST_EXAMPLES", "0.25"))))
