"""Order-free forests of the same samples with other columns or other labels.

Such a forest has other trees, which are grown when they are next used, and other calibrators. It
keeps seed, parameters, ids and the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import LOCAL, Core, CoreSpec, State
from onlineforest._forests.orderfree.classes import Classes
from onlineforest._inputs.class_codes import ClassCodes
from onlineforest._inputs.levels import LevelNames, cells_of
from onlineforest._inputs.rows import MixedRows, NumericRows, as_mixed

Forest = TypeVar("Forest", bound=BaseForest[Any])


def with_columns(
    forest: Forest,
    sources: Sequence[int],
    categorical: Sequence[int] = (),
    offsets: list[float] | None = None,
) -> Forest:
    """A copy of a fitted forest whose feature i is the feature `sources[i]` of the forest.

    A feature with source -1 is missing in all stored samples. A feature that is categorical in the
    copy alone must be missing in all stored samples. `offsets` has one number for each feature of
    the copy, which is that of its source.
    """
    before = as_mixed(forest._rows)
    after = MixedRows.of(len(sources), categorical)
    missing = LevelNames([None])
    names = [
        before.levels[before.columns.index(source)] if source in before.columns else missing
        for source in (sources[column] for column in after.columns)
    ]
    after = replace(after, levels=tuple(names))

    def core_of_columns(spec: CoreSpec[Core], state: State) -> Core:
        rows = state["rows"].reshape(-1, spec.width)
        cells: list[NDArray[np.float32]] = []
        for column in after.numeric:
            source = sources[column]
            nothing = np.full((len(rows), 1), np.nan, dtype=np.float32)
            cells.append(nothing if source < 0 else rows[:, before.cells(source)])
        for column in after.columns:
            source = sources[column]
            if source in before.columns:
                cells.append(rows[:, before.cells(source)])
            else:
                cells.append(np.repeat(cells_of(missing.words), len(rows), axis=0))
        found = np.ascontiguousarray(np.concatenate(cells, axis=1))
        sizes = {"n_features": len(sources), "n_categorical": len(after.columns)}
        changes = {f"options.{name}": np.array([n], np.uint64) for name, n in sizes.items()}
        options = {**spec.options, "n_categorical": len(after.columns)}
        spec = replace(spec, n_features=len(sources), options=options)
        return LOCAL.restore(spec, {**state, **changes, "rows": found.reshape(-1)})

    copy = forest._copy_with_core(core_of_columns)
    copy.n_features_in_ = len(sources)
    copy._rows = after if after.columns else NumericRows(len(sources))
    if after.columns:
        copy.categorical_features = list(after.columns)
        copy._built_with = copy._built_with | {"categorical_features": copy.categorical_features}
        copy._drop_unused_names()
    if offsets is not None:
        copy.offsets, copy._rows = offsets, copy._rows.with_offsets(offsets, None)
        copy._built_with = copy._built_with | {"offsets": np.array(offsets)}
    copy._fitted = None
    return copy


def relabelled(forest: Forest, text_of: Callable[[Any], str]) -> Forest:
    """A copy of a fitted classifier whose labels are the texts of its labels."""
    before: ClassCodes = forest._targets.codes
    texts = np.array([text_of(label) for label in before.classes.tolist()], dtype=np.str_)
    order = np.argsort(texts)
    classes = Classes(
        ClassCodes(texts[order], before.codes[order], before.n_codes), forest._targets.declared
    )

    def core_of_labels(spec: CoreSpec[Core], state: State) -> Core:
        n_labels = len(state["label_hashes"])  # there may be more names, without samples yet
        return LOCAL.restore(spec, {**state, "label_hashes": classes.hashes[:n_labels]})

    copy = forest._copy_with_core(core_of_labels)
    copy._targets = classes
    copy._fitted = None
    return copy
