"""Order-free forests of the same samples with other columns or other labels.

Such a forest has other trees, which are grown when they are next used, and other samples calibrate
it. It keeps seed, parameters, ids and the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from onlineforest._models.base import BaseForest
from onlineforest._models.class_codes import ClassCodes
from onlineforest._models.core import LOCAL, Core, CoreSpec, State
from onlineforest._models.label_hashes import LabelTable

Forest = TypeVar("Forest", bound=BaseForest[Any])


def with_columns(forest: Forest, sources: Sequence[int]) -> Forest:
    """A copy of a fitted forest whose feature i is the feature `sources[i]` of the forest.

    A feature with source -1 is missing in all stored samples.
    """
    chosen = np.array(sources, dtype=np.intp)

    def core_of_columns(spec: CoreSpec[Core], state: State) -> Core:
        rows = state["rows"].reshape(-1, spec.n_features)
        found = np.full((len(rows), len(chosen)), np.nan, dtype=np.float32)
        found[:, chosen >= 0] = rows[:, chosen[chosen >= 0]]
        width = np.array([len(chosen)], dtype=state["options.n_features"].dtype)
        changes = {"rows": found.reshape(-1), "options.n_features": width}
        return LOCAL.restore(replace(spec, n_features=len(chosen)), state | changes)

    copy = forest._copy_with_core(core_of_columns)
    copy.n_features_in_ = len(chosen)
    copy._calibrated = copy._refresh = None
    return copy


def relabelled(forest: Forest, text_of: Callable[[Any], str]) -> Forest:
    """A copy of a fitted classifier whose labels are the texts of its labels."""
    before: ClassCodes = forest._labels.codes
    texts = np.array([text_of(label) for label in before.classes.tolist()], dtype=np.str_)
    order = np.argsort(texts)
    table = LabelTable(ClassCodes(texts[order], before.codes[order], before.n_codes))

    def core_of_labels(spec: CoreSpec[Core], state: State) -> Core:
        n_labels = len(state["label_hashes"])  # the table may have more, which have no samples yet
        return LOCAL.restore(spec, {**state, "label_hashes": table.hashes[:n_labels]})

    copy = forest._copy_with_core(core_of_labels)
    copy._labels = table
    copy._calibrated = copy._refresh = None
    return copy
