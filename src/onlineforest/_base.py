"""What all Mondrian forest estimators share: parameters, the life of the core forest, pickling.

Knows nothing of what y is; subclasses say how it becomes what the core learns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onlineforest._validation import (
    check_feature_weights,
    check_rows,
    plain_rows,
    unchanged_on_error,
)


@dataclass(frozen=True)
class Lesson:
    """What the core is to learn of a batch besides its rows, and what is known once it has."""

    values: tuple[Any, ...]
    known: Mapping[str, Any] = field(default_factory=dict)  # attributes of the estimator


class BaseMondrianForest(BaseEstimator):
    """Base of the estimators; see those for the parameters.

    A subclass says which core forest it is (`_core_forest`), with which options of its own
    (`_own_options`), and how X and y become what the core learns (`_check_batch`, `_lesson`).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "lifetime": [Interval(Real, 0, None, closed="both")],
        "min_samples_split": [Interval(Integral, 2, 2**31 - 1, closed="both")],
        "feature_weights": [StrOptions({"range", "learned"}), "array-like", None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    # Changing another parameter needs a new forest.
    _free_parameters = ("n_jobs", "random_state")
    _core_forest: type[Any]

    _forest: Any
    n_estimators: int
    lifetime: float
    min_samples_split: int
    feature_weights: ArrayLike | str | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def _own_options(self) -> dict[str, Any]:
        """Options of the core forest that only this kind of forest has."""
        raise NotImplementedError

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Rows and targets as they should be, or an error."""
        raise NotImplementedError

    def _lesson(self, target: NDArray[Any], *, starts: bool, **options: Any) -> Lesson:
        """What to learn of the targets of a batch, which may be the first of a forest."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_forest")

    @property
    def n_samples_seen_(self) -> int:
        """Number of samples learned since the last `fit`, or ever."""
        check_is_fitted(self)
        return int(self._forest.n_points)

    @property
    def nbytes_(self) -> int:
        """What the forest takes in memory, the samples it keeps included, in bytes."""
        check_is_fitted(self)
        return int(self._forest.nbytes)

    @property
    def feature_weights_(self) -> NDArray[np.float64]:
        """The weight of each feature now, shape (n_features,)."""
        check_is_fitted(self)
        weights: NDArray[np.float64] = self._forest.feature_weights
        return weights

    @property
    def discount_rate_(self) -> float:
        """The discount per unit of time now: the paper's gamma."""
        check_is_fitted(self)
        return float(self._forest.discount_rate)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each feature tells about the target, shape (n_features,); the sum is 1.

        Measured each time it is asked for, on the stored samples, as for ``"learned"`` in
        `feature_weights`, but always of y itself, without a trend. 0 where there is no evidence;
        all 0 if there is none at all.
        """
        check_is_fitted(self)
        relevance: NDArray[np.float64] = np.maximum(self._forest.relevance(self._n_threads()), 0.0)
        total = relevance.sum()
        return relevance / total if total > 0 else relevance

    def refresh_weights(self) -> Self:
        """Compute anew what is learned or follows the range of the data, whether due or not.

        That is `feature_weights_`, `discount_rate_` and what else the estimator learns about the
        data as a whole. If the weights have changed by more than little (see `feature_weights`),
        all trees are grown afresh from the stored samples; else the old weights stay.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(feature_weights="range", random_state=0)
        >>> forest = forest.partial_fit([[0.0], [2.0]], [0, 1]).partial_fit([[4.0]], [1])
        >>> forest.feature_weights_, forest.refresh_weights().feature_weights_
        (array([0.5]), array([0.25]))
        """
        check_is_fitted(self)
        self._check_parameters_unchanged()
        self._forest.refresh(self._n_threads())
        return self

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """The leaf each sample falls into, in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Indices of nodes, as in ``trees_``. -1 for a tree without nodes, which only an
            interrupted call can leave.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(n_estimators=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [0, 1]).apply([[0.0], [1.0]])
        array([[1, 1],
               [2, 2]], dtype=int32)
        """
        rows = self._check_queries(X)
        leaves: NDArray[np.int32] = self._forest.apply(rows, self._n_threads())
        return leaves

    def _learn_afresh(self, X: ArrayLike, y: ArrayLike) -> None:
        """What `fit` does."""
        with unchanged_on_error(self):
            rows, target = self._check_batch(X, y, reset=True)
            lesson = self._lesson(target, starts=True)
            forest, built_with = self._new_forest(rows.shape[1])
            forest.learn(rows, *lesson.values, self._n_threads())
            self._forest, self._built_with = forest, built_with
            self._note(lesson)

    def _learn_more(self, X: ArrayLike, y: ArrayLike, **options: Any) -> None:
        """What `partial_fit` does."""
        starts = not hasattr(self, "_forest")
        with unchanged_on_error(self) as keep_changes:
            if not starts:
                self._check_parameters_unchanged()
            rows, target = self._check_batch(X, y, reset=starts)
            if starts:
                self._forest, self._built_with = self._new_forest(rows.shape[1])
            lesson = self._lesson(target, starts=starts, **options)
            n_before = self._forest.n_points
            try:
                self._forest.learn(rows, *lesson.values, self._n_threads())
            finally:
                # A call that is interrupted may have stored the batch already: then it counts.
                if self._forest.n_points > n_before:
                    self._note(lesson)
                    keep_changes()

    def _note(self, lesson: Lesson) -> None:
        for name, value in lesson.known.items():
            setattr(self, name, value)

    def _check_queries(self, X: ArrayLike) -> NDArray[np.float32]:
        """Rows to predict, rounded to float32 exactly as the stored ones were."""
        if not hasattr(self, "_forest"):
            check_is_fitted(self)  # raises
        rows = plain_rows(self, X)
        return check_rows(self, X, reset=False) if rows is None else rows

    def _n_threads(self) -> int:
        return int(min(effective_n_jobs(self.n_jobs), 1024))

    def _new_forest(self, n_features: int) -> tuple[Any, dict[str, Any]]:
        """An empty core forest of this estimator's parameters, and those parameters."""
        rule, weights = "unit", None
        if isinstance(self.feature_weights, str):
            rule = self.feature_weights
        elif self.feature_weights is not None:
            rule, weights = "fixed", check_feature_weights(self.feature_weights, n_features)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
        forest = self._core_forest(
            int(self.n_estimators),
            n_features,
            lifetime=float(self.lifetime),
            min_samples_split=int(self.min_samples_split),
            weight_rule=rule,
            weights=weights,
            seed=int(seed),
            **self._own_options(),
        )
        built_with = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in self._free_parameters
        }
        if weights is not None:
            built_with["feature_weights"] = weights
        return forest, built_with

    def _check_parameters_unchanged(self) -> None:
        now = self.__dict__
        for name, old in self._built_with.items():
            new = now[name]
            if new is not old and not np.array_equal(
                np.asarray(old, object), np.asarray(new, object)
            ):
                raise ValueError(
                    f"{name} was {old!r} when this forest was started and is {new!r} now. "
                    "Set it back, or start a new forest with fit."
                )

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__().copy()
        if "_forest" in state:
            state["_forest"] = state["_forest"].get_state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_forest" in state:
            state = {**state, "_forest": self._core_forest.from_state(state["_forest"])}
        super().__setstate__(state)
