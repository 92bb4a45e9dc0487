"""The base class of the estimators: parameters, the life of the core forest, pickling.

Must not know what y is, nor files: subclasses turn y into what the core forest learns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onlineforest._models.core import LOCAL, Core, CoreKind, CoreSource, CoreSpec, Rows, State
from onlineforest._models.ids import Id, Ids, check_ids
from onlineforest._models.locking import Guard, guard_of, without_guard
from onlineforest._models.validation import (
    blocks_of,
    check_feature_weights,
    check_rows,
    plain_rows,
    unchanged_on_error,
)

Item = TypeVar("Item", bound=np.generic)


class Lesson(ABC, Generic[Core]):
    """The targets of a batch in the form that the core forest learns.

    `changes` are attributes of the estimator that follow from the batch once it is stored.
    """

    changes: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def teach(self, core: Core, rows: Rows, n_threads: int, one_by_one: bool = False) -> None:
        """Let a core forest learn the batch; one by one, as if each row came in its own call."""


@dataclass(frozen=True)
class Batch(Generic[Core]):
    """A batch that a core forest learns: its targets, its ids, and the serial of its first row."""

    core: Core
    lesson: Lesson[Core]
    ids: list[Id] | None
    first_serial: int


class BaseMondrianForest(BaseEstimator, Generic[Core]):
    """Base of the estimators, which document the parameters.

    A subclass defines its kind of core forest (`_core_kind`) with its own options (`_own_options`),
    and how X and y become what the core forest learns (`_check_batch`, `_lesson`).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "lifetime": [Interval(Real, 0, None, closed="both")],
        "min_samples_split": [Interval(Integral, 2, 2**31 - 1, closed="both")],
        "feature_weights": [StrOptions({"range", "learned"}), "array-like", None],
        "window": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
        "reservoir": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
        "half_life": [Interval(Real, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    # A change of any other parameter requires a new forest.
    _free_parameters = ("n_jobs", "random_state")
    _core_kind: CoreKind[Core]
    # The source of core forests. An instance may get another one: its trees then live elsewhere.
    _core_source: CoreSource = LOCAL
    _saved_as: ClassVar[str]  # the name in model files; not inherited

    _forest: Core
    _built_with: dict[str, Any]
    _ids: Ids
    n_estimators: int
    lifetime: float
    min_samples_split: int
    feature_weights: ArrayLike | str | None
    window: int | None
    reservoir: int | None
    half_life: float | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def _own_options(self) -> dict[str, Any]:
        """Options of the core forest that are specific to this kind of estimator."""
        raise NotImplementedError

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Rows and targets as valid arrays, or an error."""
        raise NotImplementedError

    def _lesson(self, target: NDArray[Any], *, starts: bool, **options: Any) -> Lesson[Core]:
        """The targets of a batch as a lesson; `starts` is true for the first batch of a forest."""
        raise NotImplementedError

    def _stored_values(self, target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Targets as the core forest stores them, and which of them it may have stored."""
        raise NotImplementedError

    def _own_metadata(self) -> dict[str, Any]:
        """Metadata of a model file that are specific to this kind of estimator."""
        return {}

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        """Restore what `_own_metadata` gave, or raise. `_forest` is already set."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_forest")

    @property
    def n_samples_seen_(self) -> int:
        """Number of samples learned since the last `fit`, or ever, forgotten ones included."""
        return self._core.n_seen

    @property
    def n_samples_stored_(self) -> int:
        """Number of stored samples."""
        return self._core.n_points

    @property
    def ids_(self) -> frozenset[Id]:
        """The ids of the stored samples that have one."""
        check_is_fitted(self)
        with self._locked():
            return frozenset(self._ids.only_of(self._forest.serials).names())

    @property
    def nbytes_(self) -> int:
        """Memory of the forest in bytes, its stored samples included."""
        return self._core.nbytes

    @property
    def feature_weights_(self) -> NDArray[np.float64]:
        """The current weight of each feature, shape (n_features,)."""
        return self._core_with_samples().feature_weights

    @property
    def discount_rate_(self) -> float:
        """The current discount per unit of time: gamma in the paper."""
        return self._core_with_samples().discount_rate

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The relevance of each feature for the target, shape (n_features,); the sum is 1.

        Estimated at each access from the stored samples, as for ``"learned"`` in
        `feature_weights`, but always of y itself, without a trend. 0 for a feature without
        evidence; all 0 if no feature has any.
        """
        core = self._core_with_samples()
        relevance: NDArray[np.float64] = np.maximum(core.relevance(self._n_threads()), 0.0)
        total = relevance.sum()
        return relevance / total if total > 0 else relevance

    def refresh_weights(self) -> Self:
        """Refresh all that is learned about the data as a whole, whether due or not.

        That is `feature_weights_`, `discount_rate_` and whatever else the estimator learns about
        the data as a whole. All of it is recomputed from the stored samples, so no trace of
        forgotten samples remains. If the weights change, all trees are grown again from the stored
        samples.

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
        core = self._core
        self._check_parameters_unchanged()
        core.refresh(self._n_threads())
        return self

    def forget(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Unlearn samples: the forest becomes one that never saw them.

        This is exact: given what is learned about the data as a whole (see Notes), the forest has
        the distribution of one learned from the other samples alone. Either all samples are
        forgotten, or an error names those that are not stored, and nothing has changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The samples as they were learned. Of several equal samples the oldest is forgotten; a
            sample given twice is forgotten twice.
        y : array-like of shape (n_samples,), default=None
            Their targets as they were learned.
        ids : iterable of int or str, default=None
            The ids of the samples, instead of X and y.

        Returns
        -------
        object
            The estimator itself.

        Notes
        -----
        Forgetting takes about as long as learning the samples; a regressor takes longer where very
        many equal values of y lie together. If more than a fifth of the samples are forgotten, all
        trees are grown again. Do not choose samples by looking at the trees, for example the
        deepest ones: the remaining forest would be biased.

        Nothing of the samples remains in the stored data, the trees or a saved forest. But they
        also contributed to the weights of the features and to whatever else is learned about the
        data as a whole. That contribution remains, mixed with all others, until the next refresh.
        A refresh comes in due time, sooner if few samples are left, or with `refresh_weights`.
        Features and classes stay known. A forest without samples behaves like a new one.

        After an interrupt (Ctrl-C), either nothing has changed, or all samples are forgotten and
        the next call grows some trees again.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> people = ["Ada", "Grace", "Emmy"]
        >>> forest = forest.partial_fit([[0.0], [1.0], [2.0]], ["a", "b", "a"], ids=people)
        >>> forest.forget(ids=["Grace"]).n_samples_stored_
        2
        >>> forest.forget([[2.0]], ["a"]).ids_
        frozenset({'Ada'})
        """
        check_is_fitted(self)
        if ids is not None and (X is not None or y is not None):
            raise ValueError("forget needs X and y, or ids, but not both.")
        if ids is None and (X is None or y is None):
            raise ValueError("forget needs X and y, or ids.")
        with self._locked():
            self._check_parameters_unchanged()
            if ids is not None:
                self._forget_ids(check_ids(ids))
            else:
                self._forget_rows(X, y)
        return self

    def keep_latest(self, n_samples: int) -> Self:
        """Forget all but the latest samples, for example after a change in the data.

        Parameters
        ----------
        n_samples : int
            Number of stored samples to keep; 0 forgets all.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], ["old", "new", "new"])
        >>> forest.keep_latest(2).predict([[0.0]])
        array(['new'], dtype='<U3')
        """
        check_is_fitted(self)
        self._check_parameters_unchanged()
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 0:
            raise ValueError(f"n_samples must be a whole number, at least 0. Got {n_samples!r}.")
        with self._locked():
            self._forest.keep_latest(min(int(n_samples), 2**62), self._n_threads())
            self._drop_stale_ids()
        return self

    def _forget_ids(self, ids: list[Id]) -> None:
        serials = self._ids.serials_of(ids, self._forest.are_stored)
        try:
            self._forest.forget(serials, self._n_threads())
        finally:
            # An interrupted call may already have forgotten them.
            if len(ids) and not self._forest.are_stored(serials).any():
                self._ids.drop(ids)

    def _forget_rows(self, X: Any, y: Any) -> None:
        rows, target = self._check_batch(X, y, reset=False)
        values, are_possible = self._stored_values(target)
        missing = np.flatnonzero(~are_possible)
        if len(missing) == 0:
            missing = self._forest.forget_rows(rows, values, self._n_threads())
        if len(missing):
            shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise ValueError(
                f"{len(missing)} of {len(rows)} samples are not stored, or not as often as "
                f"given: rows {shown}. Nothing was forgotten."
            )
        if len(self._ids):
            self._ids = self._ids.only_of(self._forest.serials)

    def _drop_stale_ids(self) -> None:
        """Drop ids of samples that are no longer stored, once there are many."""
        if len(self._ids) > 2 * self._forest.n_points + 100:
            self._ids = self._ids.only_of(self._forest.serials)

    @property
    def _core(self) -> Core:
        """The core forest; `NotFittedError` if nothing was learned."""
        try:
            return self._forest
        except AttributeError:
            check_is_fitted(self)  # raises
            raise

    def _core_with_samples(self) -> Core:
        """The core forest; an error if it has no samples."""
        core = self._core
        if core.n_points == 0:
            raise ValueError(
                f"This {type(self).__name__} has forgotten all its samples. Learn some first."
            )
        return core

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """The leaf of each sample in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Indices of nodes, as in ``trees_``. -1 for a tree without nodes, which occurs only after
            an interrupted call.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(n_estimators=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [0, 1]).apply([[0.0], [1.0]])
        array([[1, 1],
               [2, 2]], dtype=int32)
        """
        return self._predict_rows(self._core.apply, X)

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """How far each sample is from all samples learned, 0 to 1.

        The probability that a tree separates the sample from all samples learned before it reaches
        a leaf, averaged over the trees. 0 for samples that were learned, small for samples like
        them, near 1 far from all of them. Features with a small weight, which are hardly relevant
        for y, count little.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The novelty of each sample. A useful threshold depends on the data: look at the novelty
            of samples that are like the learned ones but were not learned.

        Notes
        -----
        A block whose values of y are all equal is not cut. So a forest that has seen only one
        class, or one value of y, has no cuts, and the novelty is 0 everywhere. Without labels, let
        a regressor learn distinct numbers as y.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import MondrianForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = MondrianForestClassifier(n_estimators=20, random_state=0)
        >>> forest = forest.fit(X[:1500], y[:1500])
        >>> usual = forest.novelty(X[1500:])
        >>> inverted = forest.novelty(16 - X[1500:])  # white on black
        >>> usual.mean().round(1), inverted.mean().round(1)
        (np.float64(0.1), np.float64(0.5))
        """
        return self._predict_rows(self._core_with_samples().novelty, X)

    def _learn_from_scratch(self, X: ArrayLike, y: ArrayLike, ids: Iterable[Id] | None) -> None:
        """Implement `fit`."""
        with self._locked(), unchanged_on_error(self):
            rows, target = self._check_batch(X, y, reset=True)
            names = None if ids is None else check_ids(ids, len(rows))
            lesson = self._lesson(target, starts=True)
            core, built_with = self._new_forest(rows.shape[1])
            lesson.teach(core, rows, self._n_threads())
            self._forest, self._built_with, self._ids = core, built_with, Ids()
            self._record(Batch(core, lesson, names, 0))

    def _learn_more(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: Iterable[Id] | None,
        *,
        one_by_one: bool = False,
        **options: Any,
    ) -> None:
        """Implement `partial_fit`; one by one, as if each row came in its own call."""
        with self._locked(), unchanged_on_error(self) as keep_changes:
            starts = not hasattr(self, "_forest")
            if not starts:
                self._check_parameters_unchanged()
            rows, target = self._check_batch(X, y, reset=starts)
            names = None if ids is None else check_ids(ids, len(rows))
            if starts:
                self._forest, self._built_with = self._new_forest(rows.shape[1])
                self._ids = Ids()
            elif names is not None:
                self._ids.check_new(names, self._forest.are_stored)
            lesson = self._lesson(target, starts=starts, **options)

            def record(batch: Batch[Core]) -> None:
                self._record(batch)
                keep_changes()

            guard: Guard[Batch[Core]] = guard_of(self)
            batch = Batch(self._forest, lesson, names, self._forest.n_seen)
            guard.begin(batch)
            try:
                lesson.teach(self._forest, rows, self._n_threads(), one_by_one)
            finally:
                # An interrupted call may have stored the batch. A signal handler that uses this
                # estimator settles, too: if it came before the batch was stored, it dropped it.
                guard.begin(batch)
                guard.settle(self._forest, record)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, with every batch recorded that the core forest has stored."""
        with guard_of(self):
            self._settle()
            yield

    def _settle(self) -> None:
        """Record a batch that an interrupted call could not record."""
        guard_of(self).settle(vars(self).get("_forest"), self._record)

    def _record(self, batch: Batch[Core]) -> None:
        """Take up the ids and new classes of a batch that the core forest has stored."""
        for name, value in batch.lesson.changes.items():
            setattr(self, name, value)
        if batch.ids is not None:
            self._ids.add(batch.ids, batch.first_serial)
            self._drop_stale_ids()

    def _check_queries(self, X: ArrayLike) -> NDArray[np.float32]:
        """Queries, rounded to float32 exactly as stored rows are."""
        rows = plain_rows(self, X)
        return check_rows(self, X, reset=False) if rows is None else rows

    def _predict_rows(
        self, predict: Callable[[Rows, int], NDArray[Item]], X: ArrayLike
    ) -> NDArray[Item]:
        """The predictions for X of a method of the core forest: `predict(rows, n_threads)`."""
        while True:
            answers = [
                predict(self._check_queries(block), self._n_threads()) for block in blocks_of(X)
            ]
            if len(answers) == 1:
                return answers[0]
            if len({answer.shape[1:] for answer in answers}) == 1:
                return np.concatenate(answers)
            # Another thread has learned a new class meanwhile: predict again.

    def _n_threads(self) -> int:
        return int(min(effective_n_jobs(self.n_jobs), 1024))

    def _new_forest(self, n_features: int) -> tuple[Core, dict[str, Any]]:
        """An empty core forest of this estimator's parameters, and those parameters."""
        options = self._core_options(n_features)  # raises before a random number is drawn
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
        spec = self._core_spec(n_features, int(seed), options)
        return self._core_source.new(spec), self._built_with_now(n_features)

    def _core_spec(
        self, n_features: int, seed: int, options: Mapping[str, Any] | None = None
    ) -> CoreSpec[Core]:
        """Which core forest an estimator of these parameters needs."""
        options = self._core_options(n_features) if options is None else options
        return CoreSpec(
            self._core_kind, int(self.n_estimators), n_features, {**options, "seed": seed}
        )

    def _spec_of_state(self, state: State) -> CoreSpec[Core]:
        """Which core forest this one, of the given state, was built as."""
        as_built = type(self).__new__(type(self))
        # Parameters may have been changed since, and be invalid now.
        vars(as_built).update(self.get_params(deep=False) | self._built_with)
        return as_built._core_spec(self.n_features_in_, int(state["options.seed"][0]))

    def _copy_with_core(self, make_core: Callable[[CoreSpec[Core], State], Core]) -> Self:
        """A copy of this fitted estimator around another core forest.

        Parameters
        ----------
        make_core : callable
            Called with the spec and the state of this estimator's core forest; returns the core
            forest of the copy. `CoreSource.restore` is such a function. Its result must hold the
            same samples.
        """
        contents = self.__getstate__()
        state: State = contents.pop("_forest")
        copy = type(self).__new__(type(self))
        copy.__setstate__(contents)
        copy._forest = make_core(self._spec_of_state(state), state)
        return copy

    def _core_options(self, n_features: int) -> dict[str, Any]:
        """The options of a core forest of this estimator's parameters, without the seed."""
        if self.window is not None and self.reservoir is not None:
            raise ValueError("window and reservoir exclude each other: set one of them to None.")
        if self.half_life is not None and self.reservoir is None:
            raise ValueError("half_life needs a reservoir: set reservoir, too.")
        rule, weights = "unit", None
        if isinstance(self.feature_weights, str):
            rule = self.feature_weights
        elif self.feature_weights is not None:
            rule, weights = "fixed", check_feature_weights(self.feature_weights, n_features)
        return {
            "lifetime": float(self.lifetime),
            "min_samples_split": int(self.min_samples_split),
            "weight_rule": rule,
            "weights": weights,
            "window": int(self.window or 0),
            "reservoir": int(self.reservoir or 0),
            "half_life": math.inf if self.half_life is None else float(self.half_life),
            **self._own_options(),
        }

    def _built_with_now(self, n_features: int) -> dict[str, Any]:
        """The parameters that must not change during the life of a forest."""
        built_with = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in self._free_parameters
        }
        weights = self.feature_weights
        if weights is not None and not isinstance(weights, str):
            built_with["feature_weights"] = check_feature_weights(weights, n_features)
        return built_with

    def _check_parameters_unchanged(self) -> None:
        now = self.__dict__
        for name, old in self._built_with.items():
            new = now[name]
            if new is not old and not np.array_equal(
                np.asarray(old, object), np.asarray(new, object)
            ):
                raise ValueError(
                    f"{name} was {old!r} when this forest was started, but is {new!r} now. "
                    "Set it back, or start a new forest with fit."
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Attributes as plain data: a pickle must not name private classes, which may move."""
        with self._locked():
            state: dict[str, Any] = without_guard(super().__getstate__())
            if "_forest" in state:
                ids = self._ids.only_of(self._forest.serials)
                state["_ids"] = (ids.names(), ids.serials())
                state["_forest"] = self._forest.get_state()
        state.pop("_core_source", None)  # a copy is local
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        core_state: State | None = state.get("_forest")
        super().__setstate__({name: state[name] for name in state if name != "_forest"})
        if "_ids" in state:
            self._ids = Ids.of(*state["_ids"])
        if core_state is not None:
            self._forest = self._core_source.restore(self._spec_of_state(core_state), core_state)
