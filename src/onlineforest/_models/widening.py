"""Adds features to a fitted forest and leaves its trees unchanged.

The new features are missing in all stored samples: a feature without values has no range, and its
weight is 0. Must not know arrays of a core forest's state but those with one entry per feature.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from onlineforest._models.core import LOCAL, Core, CoreSpec, State
from onlineforest._models.mondrian import BaseMondrianForest

Forest = TypeVar("Forest", bound=BaseMondrianForest)


def widened(forest: Forest, n_features: int) -> Forest:
    """A copy of a fitted forest with more features, which are missing in the stored samples.

    Its predictions are those of the forest for any values of the new features, up to the rounding
    of sums, which is equal if both numbers of features are multiples of 4. Weights must be
    ``"learned"`` or ``"range"``, and features must have no names.
    """
    if not isinstance(forest.feature_weights, str):
        raise ValueError(
            "Features can be added if feature_weights is 'learned' or 'range', but it is "
            f"{forest.feature_weights!r}."
        )
    if hasattr(forest, "feature_names_in_"):
        raise ValueError("A forest with feature names cannot get features without names.")
    if n_features < forest.n_features_in_:
        raise ValueError(
            f"The forest has {forest.n_features_in_} features, which cannot become {n_features}."
        )
    n_before = forest.n_features_in_

    def wider_core(spec: CoreSpec[Core], state: State) -> Core:
        wider = replace(spec, n_features=n_features)
        return LOCAL.restore(wider, _widened_state(state, n_before, n_features))

    copy = forest._copy_with_core(wider_core)
    copy.n_features_in_ = n_features
    return copy


def _widened_state(state: State, n_before: int, n_after: int) -> State:
    """The state of a core forest with columns of missing values after its own."""
    n_new = n_after - n_before
    rows = np.pad(state["rows"].reshape(-1, n_before), ((0, 0), (0, n_new)))
    n_features = np.full(1, n_after, dtype=np.uint64)
    state = {**state, "rows": rows.reshape(-1), "options.n_features": n_features}
    state |= _lengthened(state, "measures.weights", n_new, mode="constant")
    if "measures.trend_ends" in state:  # a feature without knots ends where the previous one ends
        state |= _lengthened(state, "measures.trend_ends", n_new, mode="edge")
    return state | _with_missing(state, n_before, n_after)


def _with_missing(state: State, n_before: int, n_after: int) -> State:
    """The missing cells, with all cells of new features: one bit per sample, 64 to a word."""
    n_samples = len(state["values"])
    if n_samples == 0:
        return {}
    words = np.full(-(-n_samples // 64), 2**64 - 1, dtype=np.uint64)
    if n_samples % 64:
        words[-1] = 2 ** (n_samples % 64) - 1
    new = np.arange(n_before, n_after, dtype=np.int32)
    return {
        "missing.features": np.concatenate([state["missing.features"], new]),
        "missing.words": np.concatenate([state["missing.words"], np.tile(words, len(new))]),
    }


def _lengthened(state: State, name: str, n_new: int, mode: Any) -> State:
    """An array of all measures, with `n_new` more entries in each measure that has entries.

    A measure whose trend is the mean has none.
    """
    sizes = state[f"{name}.sizes"]
    ends = np.cumsum(sizes).astype(np.intp)
    # The last piece of the split lies behind all measures and is empty.
    fields = [
        np.pad(field, (0, n_new), mode=mode) if len(field) else field
        for field in np.split(state[name], ends)
    ]
    return {name: np.concatenate(fields), f"{name}.sizes": np.where(sizes, sizes + n_new, 0)}
