"""Importances of features. Must not know how they are measured."""

from __future__ import annotations

import numpy as np

from onlineforest._forests.core import Floats


def shares_of(importances: Floats) -> Floats:
    """Importances with sum 1, negative ones as 0; all 0 if none is positive."""
    positive: Floats = np.maximum(importances, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else positive
