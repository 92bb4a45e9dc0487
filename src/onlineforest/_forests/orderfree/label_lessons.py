"""Batches of labels in the form that an order-free core forest learns. Must not know estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._forests.core import OrderFreeLabelCore, Rows, Weights
from onlineforest._forests.orderfree.classes import Classes
from onlineforest._forests.orderfree.fitted_lessons import FittedLesson, Fitting
from onlineforest._forests.orderfree.holdings import Holdings, joined_weights
from onlineforest._inputs.class_codes import check_classes, check_declared


class LabelLesson(FittedLesson[OrderFreeLabelCore]):
    """The class codes of a batch, and the labels that are declared with it.

    The core forest gets the hashes of new labels first: a label without samples changes nothing.
    Declared labels change predictions, so they are declared after the batch is stored.

    Parameters
    ----------
    classes : Classes
        The classes of the forest, with those of the batch.
    labels : ndarray of shape (n_samples,), int32
        The codes of the labels.
    weights : ndarray of shape (n_samples,) or None
        The stored weights.
    new : set of int
        The codes of the labels that are declared.
    fitting : Fitting or None, default=None
        How the fitted part follows.
    """

    def __init__(
        self,
        classes: Classes,
        labels: NDArray[np.int32],
        weights: Weights,
        new: frozenset[int] = frozenset(),
        fitting: Fitting | None = None,
    ) -> None:
        super().__init__(classes, labels, weights, fitting)
        self._classes, self._declared = classes, classes.declared | new

    def teach(self, core: OrderFreeLabelCore, rows: Rows, n_threads: int) -> None:
        classes = self._classes
        if core.n_labels < len(classes.hashes) or classes.has_reused:
            classes.set_labels(core, classes.declared)
            classes.has_reused = False
        super().teach(core, rows, n_threads)

    def finish(self, core: OrderFreeLabelCore) -> None:
        if self._declared != self._classes.declared:
            self._classes.set_labels(core, self._declared)
            self._classes.declared = self._declared


def declared_codes(
    classes: Classes,
    target: NDArray[Any],
    declared: ArrayLike | None,
    core: OrderFreeLabelCore | None,
) -> frozenset[int]:
    """Give codes to the labels of a batch and to declared ones; return the codes of these.

    If some are declared, raise unless each label of the batch is among them or known to the core
    forest, if there is one.
    """
    if declared is None:
        classes.extend(target)
        return frozenset()
    labels = check_classes(declared)
    classes.check_kind(labels, "classes")
    known = labels if core is None else np.union1d(classes.known(core).classes, labels)
    check_declared(target, known)
    classes.extend(target, labels)
    return frozenset(classes.codes.encode(np.unique(labels)).tolist())


def merged_lesson(classes: Classes, others: Sequence[Holdings]) -> LabelLesson:
    """The samples of other forests, and the labels that are declared there."""
    for each in others:
        for labels in (each.target, each.declared):
            if len(labels):
                classes.check_kind(labels, each.profile.name)
    codes: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    declared: set[int] = set()
    for each in others:
        if len(each.target):
            classes.extend(each.target)
            codes.append(classes.codes.encode(each.target))
        if len(each.declared):
            classes.extend(each.declared)
            declared.update(classes.codes.encode(each.declared).tolist())
    weights = joined_weights(others)
    return LabelLesson(classes, np.concatenate(codes), weights, frozenset(declared))
