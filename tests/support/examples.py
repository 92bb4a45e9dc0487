"""How many random examples a test tries."""

from __future__ import annotations

import os


def examples(n):
    """The share of `n` that ONLINEFOREST_EXAMPLES says, by default all; at least one.

    The quick tests and the sanitizers, which are ten times slower, try fewer.
    """
    return max(1, round(n * float(os.environ.get("ONLINEFOREST_EXAMPLES", "1"))))
