"""Batches of labels in the form that an order-free core forest learns. Must not know estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._forests.core import OrderFreeLabelCore, Rows, Votes, Weights
from onlineforest._forests.lessons import Lesson
from onlineforest._forests.orderfree.classes import Classes
from onlineforest._forests.orderfree.fitted import Fitted
from onlineforest._forests.orderfree.holdings import Holdings, joined_weights
from onlineforest._forests.orderfree.label_calibration import LabelCalibration, Poll
from onlineforest._inputs.class_codes import check_classes, check_declared


def calibration_at(
    fitted: Fitted[LabelCalibration], core: OrderFreeLabelCore, classes: Classes, n_threads: int
) -> LabelCalibration:
    """The calibration by the samples that a core forest held at an arrival, and still holds."""

    def ask(least: int, limit: int, begin: int, end: int) -> Votes:
        if fitted.arrival == core.n_seen:
            return core.votes(n_threads, least, limit, begin, end)
        return core.votes_at(fitted.arrival, n_threads, least, limit)

    return LabelCalibration.by(Poll(core.n_labels).votes(ask), core.n_trees, classes)


class LabelLesson(Lesson[OrderFreeLabelCore]):
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
    fitted : Fitted or None, default=None
        The fitted part before the batch; None if there is none.
    grows : bool, default=False
        Whether the trees are grown at once. Not if a calibration will say how far.
    is_in_demand : bool, default=False
        Whether somebody has asked for the fitted part.
    """

    def __init__(
        self,
        classes: Classes,
        labels: NDArray[np.int32],
        weights: Weights,
        new: frozenset[int] = frozenset(),
        fitted: Fitted[LabelCalibration] | None = None,
        *,
        grows: bool = False,
        is_in_demand: bool = False,
    ) -> None:
        self._classes, self._labels, self._weights = classes, labels, weights
        self._declared = classes.declared | new
        self._fitted, self._grows, self._is_in_demand = fitted, grows, is_in_demand
        self.changes: dict[str, Any] = {"_targets": classes}

    def teach(self, core: OrderFreeLabelCore, rows: Rows, n_threads: int) -> None:
        classes = self._classes
        if core.n_labels < len(classes.hashes) or classes.has_reused:
            classes.set_labels(core, classes.declared)
            classes.has_reused = False
        if self._fitted is not None:
            self.changes["_fitted"] = self._fitted_after(self._fitted, core, rows, n_threads)
        core.learn(rows, self._labels, n_threads, self._weights)
        if self._grows:
            core.grow_all(n_threads)

    def _fitted_after(
        self, fitted: Fitted[LabelCalibration], core: OrderFreeLabelCore, rows: Rows, n_threads: int
    ) -> Fitted[LabelCalibration]:
        """The fitted part after the batch, computed if the samples that it needs may leave."""
        n_seen = core.n_seen
        loses = fitted.loses(core.n_samples, len(rows))
        later = fitted.after(n_seen + len(rows))
        if later is not fitted:
            n_first = later.arrival - n_seen
            if not loses or n_first == len(rows):
                return later
            weights = None if self._weights is None else self._weights[:n_first]

            def ask(least: int, limit: int, _begin: int, _end: int) -> Votes:
                labels = self._labels[:n_first]
                return core.votes_after(rows[:n_first], labels, n_threads, weights, least, limit)

            votes = Poll(core.n_labels).votes(ask)
            return later.with_found(LabelCalibration.by(votes, core.n_trees, self._classes))
        # The trees of now are those of the arrival, so this is the cheapest moment.
        is_cheap = self._is_in_demand and fitted.arrival == n_seen
        if fitted.found is None and (loses or is_cheap):
            return fitted.with_found(calibration_at(fitted, core, self._classes, n_threads))
        return fitted

    def finish(self, core: OrderFreeLabelCore) -> None:
        if self._declared != self._classes.declared:
            self._classes.set_labels(core, self._declared)
            self._classes.declared = self._declared


class WholeLesson(LabelLesson):
    """All samples of a new forest, which is calibrated by them."""

    def teach(self, core: OrderFreeLabelCore, rows: Rows, n_threads: int) -> None:
        super().teach(core, rows, n_threads)
        if self._fitted is not None:
            capacity = self._fitted.capacity
            now: Fitted[LabelCalibration] = Fitted(core.n_seen, core.n_samples, capacity)
            found = calibration_at(now, core, self._classes, n_threads)
            self.changes["_fitted"] = now.with_found(found)
            core.grow_all(n_threads, found.stop_weight)


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
    lesson = LabelLesson(classes, np.concatenate(codes), weights, frozenset(declared))
    lesson.changes |= {"_fitted": None}  # a function of all samples
    return lesson
