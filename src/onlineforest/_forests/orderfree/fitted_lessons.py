"""Batches that an order-free core forest learns, and the fitted part after them.

Must not know estimators, nor what y is.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from numpy.typing import NDArray

from onlineforest._forests.core import OfOrderFree, Rows, Weights
from onlineforest._forests.lessons import Lesson
from onlineforest._forests.orderfree.calibration import Calibration, Votes
from onlineforest._forests.orderfree.fitted import Demand, Fitted


class Fitting(NamedTuple):
    """How the fitted part of a forest follows a batch.

    Attributes
    ----------
    kind : type
        The kind of calibration.
    before : Fitted or None
        The fitted part before the batch; None if there is none.
    is_in_demand : bool
        Whether somebody has asked for it.
    starts : bool
        Whether the batch starts a forest.
    is_whole : bool
        Whether no other batch is expected: the forest is calibrated by this one.
    """

    kind: type[Calibration]
    before: Fitted[Any] | None
    is_in_demand: bool = False
    starts: bool = False
    is_whole: bool = False


class FittedLesson(Lesson[OfOrderFree], Generic[OfOrderFree]):
    """The values of a batch with stored weights.

    Parameters
    ----------
    targets : object
        What the values of the forest are.
    values : ndarray of shape (n_samples,)
        The values as the core forest stores them.
    weights : ndarray of shape (n_samples,) or None
        The stored weights.
    fitting : Fitting or None, default=None
        How the fitted part follows; None if it is dropped, because it is one of all samples then.
    """

    def __init__(
        self,
        targets: Any,
        values: NDArray[Any],
        weights: Weights,
        fitting: Fitting | None = None,
    ) -> None:
        self._targets, self._values, self._weights = targets, values, weights
        self._fitting = fitting
        self.changes: dict[str, Any] = {"_targets": targets}
        if fitting is None or fitting.starts:
            self.changes["_fitted"] = None
        if fitting is not None and fitting.starts:
            self.changes["_demand"] = Demand()

    def teach(self, core: OfOrderFree, rows: Rows, n_threads: int) -> None:
        fitting = self._fitting
        before = None if fitting is None else fitting.before
        if fitting is not None and before is not None:
            self.changes["_fitted"] = self._fitted_after(fitting, before, core, rows, n_threads)
        core.learn(rows, self._values, n_threads, self._weights)
        if fitting is None:
            return
        if before is None:
            if fitting.starts:
                core.grow_all(n_threads)
        elif fitting.is_whole:
            now: Fitted[Any] = Fitted(core.n_seen, core.n_samples, before.capacity)
            found = fitting.kind.of_core(now, core, self._targets, n_threads)
            self.changes["_fitted"] = now.with_found(found)
            core.grow_all(n_threads, found.stop_weight)

    def _fitted_after(
        self,
        fitting: Fitting,
        before: Fitted[Any],
        core: OfOrderFree,
        rows: Rows,
        n_threads: int,
    ) -> Fitted[Any]:
        """The fitted part after the batch, computed if the samples that it needs may leave."""
        kind, n_seen = fitting.kind, core.n_seen
        loses = before.loses(core.n_samples, len(rows))
        later = before.after(n_seen + len(rows))
        if later is not before:
            n_first = later.arrival - n_seen
            if not loses or n_first == len(rows):
                return later
            weights = None if self._weights is None else self._weights[:n_first]

            def ask(least: int, limit: int, _begin: int, _end: int) -> Votes:
                first = rows[:n_first], self._values[:n_first], n_threads, weights
                return core.votes_after(*first, least, limit)

            votes = kind.poll(core).votes(ask)
            return later.with_found(kind.by(votes, core.n_trees, self._targets))
        # The trees of now are those of the arrival, so this is the cheapest moment.
        is_cheap = fitting.is_in_demand and before.arrival == n_seen
        if before.found is None and (loses or is_cheap):
            return before.with_found(kind.of_core(before, core, self._targets, n_threads))
        return before
