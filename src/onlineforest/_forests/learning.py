"""The steps of `fit`, `partial_fit` and `learn_one`: check, teach the core forest, record.

Must not know what y is, nor how trees are split.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlineforest._core import WEIGHT_OF_ONE
from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import Rows
from onlineforest._forests.lessons import Batch, Samples
from onlineforest._forests.locking import Guard, guard_of
from onlineforest._inputs.ids import Id, check_ids
from onlineforest._inputs.rounding import RoundingWarning, losses_of, suspects
from onlineforest._inputs.rows import first_table_of_one, names_of
from onlineforest._inputs.validation import check_row, numbers_in, unchanged_on_error
from onlineforest._inputs.weights import stored_weights


def learn(
    forest: BaseForest[Any],
    X: ArrayLike,
    y: ArrayLike,
    ids: Iterable[Id] | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    afresh: bool = False,
    columns: Sequence[Any] | None = None,
    classes: ArrayLike | None = None,
) -> None:
    """Learn samples: the first ones of a new forest if `afresh` or if there is no forest yet.

    `columns` are the names of columns in messages, if the features have others or none. `classes`
    are declared.
    """
    with forest._locked(), unchanged_on_error(forest) as keep_changes:
        starts = afresh or not hasattr(forest, "_forest")
        if starts:
            forest._check_parameters()
        else:
            forest._check_parameters_unchanged()
        samples = _samples_in(forest, X, y, ids, sample_weight, starts=starts)
        if starts and len(samples.rows) == 0:
            raise ValueError("sample_weight must not be zero for all samples.")
        _warn_of_rounding(forest, X, samples.rows, columns, starts=starts)
        start = forest._start() if starts else {}
        core = start["_forest"] if starts else forest._forest
        if samples.ids is not None and not starts:
            forest._ids.check_new(samples.ids, core.are_stored)
        lesson = forest._lesson(core, samples, classes, starts=starts, is_whole=afresh)
        batch = Batch(core, lesson, samples.ids, core.n_seen, start | {"_rows": forest._rows})
        if afresh:
            lesson.teach(core, samples.rows, forest._n_threads())
            forest._record(batch)
        elif len(samples.rows):
            teach(forest, batch, samples.rows, keep_changes)
        else:  # nothing has a weight, but classes may be declared
            forest._record(batch)


def _samples_in(
    forest: BaseForest[Any],
    X: ArrayLike,
    y: ArrayLike,
    ids: Iterable[Id] | None,
    sample_weight: ArrayLike | None,
    *,
    starts: bool,
) -> Samples:
    """Samples after all checks, with the format of their rows as the estimator's.

    Samples of weight 0 are checked and then left out. The names of new levels are dropped again if
    no sample is stored.
    """
    rows, target = forest._check_samples(X, y, reset=starts)
    names = None if ids is None else check_ids(ids, len(rows))
    weights = stored_weights(sample_weight, target, getattr(forest, "class_weight", None))
    return Samples(rows, target, names, weights).with_weight()


def _warn_of_rounding(
    forest: BaseForest[Any],
    X: Any,
    rows: Rows,
    names: Sequence[Any] | None,
    *,
    starts: bool,
) -> None:
    """Warn, once per forest, of columns with distinct values that became equal in float32."""
    if starts and forest._has_warned:
        forest._has_warned = False
    is_exact = isinstance(X, np.ndarray) and np.can_cast(X.dtype, np.float32)
    if forest._has_warned or is_exact or len(rows) < 2:
        return
    row_format = forest._rows
    numeric = row_format.numeric
    places = suspects(rows[:, : len(numeric)])
    if len(places) == 0:
        return
    columns = np.asarray(numeric)[places]
    offsets = None if row_format.offsets is None else row_format.offsets[columns]
    found = losses_of(numbers_in(X, columns), offsets)
    known = names or names_of(forest) or range(forest.n_features_in_)
    losses = {known[columns[place]]: loss for place, loss in found.items()}
    if losses:
        counts = "; ".join(
            f"{loss.n_distinct:,} became {loss.n_kept:,} in column {name!r}"
            for name, loss in losses.items()
        )
        warnings.warn(
            "Rows are stored as float32, which does not keep distinct values of X apart: "
            f"{counts}. {row_format.advice_on_rounding(losses)}",
            RoundingWarning,
            stacklevel=4,  # the caller of `fit` or `partial_fit`
        )
        forest._has_warned = True  # not before: the warning may be an error


def teach(
    forest: BaseForest[Any], batch: Batch[Any], rows: Rows, keep_changes: Callable[[], None]
) -> None:
    """Let the core forest learn a batch, and record it."""

    def record(batch: Batch[Any]) -> None:
        forest._record(batch)
        keep_changes()

    guard: Guard[Batch[Any]] = guard_of(forest)
    guard.begin(batch)
    try:
        batch.lesson.teach(batch.core, rows, forest._n_threads())
    finally:
        # An interrupted call may have stored the batch. A signal handler that uses this
        # estimator settles, too: if it came before the batch was stored, it dropped it.
        guard.begin(batch)
        guard.settle(batch.core, record)


def learn_one(
    forest: BaseForest[Any],
    x: Any,
    y: Any,
    id: Id | None,
    learn_row: Callable[[Any, Any, int], None],
    weight: int = WEIGHT_OF_ONE,
    sample_weight: Any = None,
) -> None:
    """Learn one sample of this stored weight, which is `sample_weight` as the user gave it.

    `learn_row` gives a row, a value and the weight to the core forest. It raises a TypeError for a
    row that must be converted.
    """
    guard: Guard[Batch[Any]] = guard_of(forest)
    with guard.lock:
        if guard.pending is not None:
            forest._settle()
        if id is None and weight and hasattr(forest, "_forest"):
            value = forest._targets.value_of(y, forest._forest)
            row = None if value is None else forest._rows.row(forest, x, may_be_new=False)
            if row is not None:
                forest._check_parameters_unchanged()
                try:
                    learn_row(row, value, weight)
                except TypeError:
                    learn_row(check_row(row), value, weight)
                forest._after_learning_one()
                return
        _learn_table_of_one(forest, x, y, id, sample_weight)


def _learn_table_of_one(
    forest: BaseForest[Any], x: Any, y: Any, id: Id | None, sample_weight: Any
) -> None:
    """Learn one sample as a batch: the first one, or one with an id, a new name or no weight."""
    if np.ndim(y) != 0:
        raise ValueError(f"y must be one {forest._targets_type.kind.noun}. Got {y!r} instead.")
    if hasattr(forest, "_forest"):
        table = forest._rows.table_of_one(forest, x)
    else:
        table = first_table_of_one(forest, x, getattr(forest, "categorical_features", None))
    names = None if id is None else [id]
    learn(forest, table, [y], names, None if sample_weight is None else [sample_weight])
