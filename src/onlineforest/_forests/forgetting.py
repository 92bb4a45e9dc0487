"""The steps of `forget` and `keep_latest`. Must not know what y is, nor how trees are split."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import LOCAL
from onlineforest._inputs.ids import Id, check_ids


def forget(
    forest: BaseForest[Any], X: ArrayLike | None, y: ArrayLike | None, ids: Iterable[Id] | None
) -> None:
    """Forget samples by rows and targets, or by ids."""
    check_is_fitted(forest)
    if ids is not None and (X is not None or y is not None):
        raise ValueError("forget needs X and y, or ids, but not both.")
    if ids is None and (X is None or y is None):
        raise ValueError("forget needs X and y, or ids.")
    with _forgetting(forest):
        if ids is not None:
            _forget_ids(forest, check_ids(ids))
        else:
            _forget_rows(forest, X, y)


def keep_latest(forest: BaseForest[Any], n_samples: int) -> None:
    """Forget all but the latest samples."""
    check_is_fitted(forest)
    forest._check_parameters_unchanged()
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 0:
        raise ValueError(f"n_samples must be a whole number, at least 0. Got {n_samples!r}.")
    with _forgetting(forest):
        forest._forest.keep_latest(min(int(n_samples), sys.maxsize // 2), forest._n_threads())


@contextmanager
def _forgetting(forest: BaseForest[Any]) -> Iterator[None]:
    """Hold the lock for a block that forgets samples; then drop names that are not used any more.

    An interrupted block may have forgotten samples, too.
    """
    with forest._locked():
        forest._check_parameters_unchanged()
        try:
            with forest._refitting():
                yield
        except BaseException:
            if forest._core_source is LOCAL:  # others would have to be waited for
                forest._drop_unused_names()
            raise
        forest._drop_unused_names()


def _forget_ids(forest: BaseForest[Any], ids: list[Id]) -> None:
    serials = forest._ids.serials_of(ids, forest._forest.are_stored)
    try:
        forest._forest.forget(serials, forest._n_threads())
    finally:
        # An interrupted call may already have forgotten them.
        if len(ids) and not forest._forest.are_stored(serials).any():
            forest._ids.drop(ids)


def _forget_rows(forest: BaseForest[Any], X: Any, y: Any) -> None:
    rows, target = forest._check_samples(X, y)
    values, are_storable = forest._targets.values_of(target)
    missing = np.flatnonzero(~are_storable)
    if len(missing) == 0:
        missing = forest._forest.forget_rows(rows, values, forest._n_threads())
    if len(missing):
        shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise ValueError(
            f"{len(missing)} of {len(rows)} samples are not stored, or not as often as "
            f"given: rows {shown}. Nothing was forgotten."
        )
    if len(forest._ids):
        forest._ids = forest._ids.only_of(forest._forest.serials)
