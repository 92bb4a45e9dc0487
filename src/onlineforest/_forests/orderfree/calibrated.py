"""The base class of order-free forests that left-out samples calibrate.

The calibration, and the stop weight of the trees with it, is a function of the samples at one
arrival (`fitted`). It is computed when somebody asks for it, or when these samples leave. Must not
know what y is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.utils.validation import check_is_fitted

from onlineforest._files.encoding import from_json
from onlineforest._forests.core import OfOrderFree
from onlineforest._forests.orderfree.base import BaseOnlineForest
from onlineforest._forests.orderfree.calibration import (
    N_AHEAD,
    Calibration,
    Votes,
    most_calibrators,
    pieces_ahead,
    pieces_to_vote,
    range_ahead,
)
from onlineforest._forests.orderfree.fitted import Demand, Fitted, check_fitted
from onlineforest._forests.orderfree.fitted_lessons import Fitting
from onlineforest._inputs.parameters import BOOLEAN, Constraints

Found = TypeVar("Found", bound=Calibration)

_SECONDS_TO_VOTE = 0.008  # in one call; what the votes are does not depend on it


class CalibratedForest(BaseOnlineForest[OfOrderFree], Generic[Found, OfOrderFree]):
    """Base of the order-free forests, which say how they are calibrated (`_calibration_type`)."""

    _constraints: ClassVar[Constraints] = {
        **BaseOnlineForest._constraints,
        "calibrate": [BOOLEAN],
    }
    _calibration_type: type[Found]

    calibrate: bool
    # The calibration, if there is one. None: of the samples that are stored now, which is noted
    # before others come.
    _fitted: Fitted[Found] | None = None
    _demand: Demand  # for the calibration, with the votes of one that is not found yet

    def _core_options(self) -> dict[str, Any]:
        return super()._core_options() | {"calibrates": self._would_calibrate(vars(self))}

    def recalibrate(self) -> Self:
        """Calibrate, and choose the stop weight, by the samples that are stored now.

        Only needed in a stream, where the calibration, and the stop weight with it, may lag: after
        `fit`, `forget` and `keep_latest` it never does. Takes as long as the prediction of the
        calibrators (see Notes of the class), at most 2048, by about a quarter of the trees.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import OnlineForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = OnlineForestClassifier(n_estimators=10, random_state=0)
        >>> forest = forest.fit(X[:1000], y[:1000]).partial_fit(X[1000:1010], y[1000:1010])
        >>> other = OnlineForestClassifier(n_estimators=10, random_state=0).fit(X[:1010], y[:1010])
        >>> probabilities = forest.recalibrate().predict_proba(X[1010:])
        >>> (probabilities == other.predict_proba(X[1010:])).all()
        np.True_
        """
        check_is_fitted(self)
        with self._locked():
            if self._calibrates():
                self._fitted = self._fitted_now()
                self._calibrated()
        return self

    def _would_calibrate(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a forest of these parameters is calibrated."""
        n_trees = parameters["n_estimators"]
        return bool(parameters["calibrate"] and n_trees >= self._calibration_type.fewest_trees)

    def _calibrates(self) -> bool:
        return self._would_calibrate(self._built_with)

    def _fitted_now(self) -> Fitted[Found]:
        """A calibration by the samples that are stored now, which is not computed yet."""
        core, built = self._forest, self._built_with
        return Fitted(core.n_seen, core.n_samples, built["window"] or built["reservoir"])

    def _noted(self) -> Fitted[Found]:
        """The calibration in force, computed or not. The lock is held."""
        # An interrupted call may not have noted that another one was due.
        fitted = self._fitted_now() if self._fitted is None else self._fitted
        self._fitted = fitted.after(self._forest.n_seen)
        return self._fitted

    def _calibrated(self) -> Fitted[Found]:
        """The calibration in force, computed. The lock is held."""
        fitted = self._noted()
        if fitted.found is None:
            core, kind = self._forest, self._calibration_type
            ahead = self._demand.ahead
            if ahead is not None and ahead[0] is fitted and fitted.arrival == core.n_seen:
                found = kind.by(ahead[1].votes(self._ask), core.n_trees, self._targets)
            else:
                found = kind.of_core(fitted, core, self._targets, self._n_threads())
            self._fitted = fitted = fitted.with_found(found)
            self._demand.ahead, self._demand.is_present = None, False
        return fitted

    def _calibration(self) -> Found:
        """The calibration in force, for somebody who asks for it. Only if there is one."""
        fitted, self._demand.is_present = self._fitted, True
        if fitted is None or fitted.found is None or fitted.due <= self._core.n_seen:
            with self._locked():
                fitted = self._calibrated()
                self._demand.is_present = True
        assert fitted.found is not None
        return fitted.found

    def _stop_weight(self) -> int:
        return self._calibration().stop_weight if self._calibrates() else 0

    def _fitting(self, *, starts: bool, is_whole: bool) -> Fitting:
        """How the calibration follows a batch, which may start a forest."""
        before: Fitted[Found] | None = None
        if starts and self._would_calibrate(vars(self)):
            before = Fitted(0, 0, self.window or self.reservoir)
        elif not starts and self._calibrates():
            before = self._noted()
        is_in_demand = not starts and self._demand.is_present
        return Fitting(self._calibration_type, before, is_in_demand, starts, is_whole)

    def _learn_row(self, row: Any, value: Any, weight: int) -> None:
        core, fitted = self._forest, self._fitted
        if fitted is None:
            is_near = self._calibrates()
        else:
            is_near = fitted.found is None or fitted.due - core.n_seen <= N_AHEAD + 1
        if is_near:
            self._calibrate_before_one()
        core.learn_one(row, value, weight)
        if is_near:
            self._vote_if_due()

    # No call of a stream shall take long. So a calibration that somebody will ask for is found by
    # several calls: the last ones before it is due make the splits that its samples need, the one
    # at which it is due asks the trees, and the next one finds the calibration by their votes. If a
    # split near a root has changed just then, the next one asks the trees about the rest, too.

    def _calibrate_before_one(self) -> None:
        """Do what must be done, or is cheapest, before the next sample comes."""
        core, fitted = self._forest, self._noted()
        is_cheap = self._demand.is_present and fitted.arrival == core.n_seen
        if fitted.found is None and (is_cheap or fitted.loses(core.n_samples, 1)):
            self._calibrated()
        n_left = fitted.due - core.n_seen
        if self._demand.is_present and 1 < n_left <= N_AHEAD + 1:
            pieces = pieces_ahead(self._most_calibrators())
            if n_left <= len(pieces) + 1:
                stop_weight = fitted.found.stop_weight if fitted.found else 0
                core.votes(1, *range_ahead(stop_weight), *pieces[n_left - 2])

    def _vote_if_due(self) -> None:
        fitted = self._noted()
        is_due = fitted.found is None and fitted.arrival == self._forest.n_seen
        if is_due and self._demand.is_present:
            pieces = pieces_to_vote(self._most_calibrators())
            poll = self._calibration_type.poll(self._forest, pieces)
            self._demand.ahead = fitted, poll
            poll.go_on(self._ask, _SECONDS_TO_VOTE)

    def _most_calibrators(self) -> int:
        return most_calibrators(self._forest.n_samples, self._calibration_type)

    def _ask(self, least: int, limit: int, begin: int, end: int) -> Votes:
        return self._forest.votes(self._n_threads(), least, limit, begin, end)

    @contextmanager
    def _refitting(self) -> Iterator[None]:
        n_samples = self._forest.n_samples
        before, self._fitted = self._fitted, None  # though the call may be interrupted
        self._demand.ahead = None  # votes about samples that may leave
        try:
            yield
        except BaseException:
            if self._forest.n_samples == n_samples:  # nothing was forgotten
                self._fitted = before
            raise
        finally:
            if self._calibrates():
                self._noted()

    def _plain_fitted(self) -> dict[str, Any] | None:
        """The calibration in force as values of JSON; None if it is that of the stored samples.

        That one is computed again: forests of equal samples have equal files. The lock is held.
        """
        if not self._calibrates():
            return None
        fitted, now = self._noted(), self._fitted_now()
        if (fitted.arrival, fitted.n_held) == (now.arrival, now.n_held):
            return None
        found = self._calibrated().found
        assert found is not None
        return {"arrival": fitted.arrival, "held": fitted.n_held, **found.plain()}

    def _fitted_of(self, plain: Any) -> Fitted[Found]:
        """The fitted part that `_plain_fitted` gave, or `ValueError`."""
        match plain:
            case {"arrival": int(arrival), "held": int(n_held), **found}:
                built = self._built_with
                capacity = built["window"] or built["reservoir"]
                return Fitted(arrival, n_held, capacity, self._calibration_type.from_plain(found))
        raise ValueError("its calibration cannot be read.")

    def _own_metadata(self) -> dict[str, Any]:
        return super()._own_metadata() | {"calibration": self._plain_fitted()}

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        super()._take_own_metadata(metadata)
        self._demand = Demand()
        plain = from_json(metadata, "calibration")
        if plain is not None:
            if not self._calibrates():
                raise ValueError("it has a calibration, although its parameters allow none.")
            self._fitted = self._fitted_of(plain)
            check_fitted(self._fitted, self._forest.n_seen)

    def __getstate__(self) -> dict[str, Any]:
        with self._locked():
            fitted = self._plain_fitted() if hasattr(self, "_forest") else None
            state = super().__getstate__()
        state.pop("_demand", None)
        return state | {"_fitted": fitted}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: state[name] for name in state if name != "_fitted"})
        self._demand = Demand()
        if state.get("_fitted") is not None:
            self._fitted = self._fitted_of(state["_fitted"])
