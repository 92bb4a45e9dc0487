"""The base class of all estimators: parameters, the life of the core forest, pickling.

Must not know how trees are cut, what y is, nor files: subclasses turn y into what the core forest
learns.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import LOCAL, Core, CoreKind, CoreSource, CoreSpec, Rows, State
from onlineforest._forests.display import ShownInNotebooks, size_of
from onlineforest._forests.locking import Guard, guard_of, without_guard
from onlineforest._inputs.categories import Categories, Table
from onlineforest._inputs.cells import with_nan
from onlineforest._inputs.ids import Id, Ids, check_ids
from onlineforest._inputs.memory import nbytes_of_array
from onlineforest._inputs.one_row import (
    PLAIN_ROWS,
    check_first_names,
    is_frame,
    mapping_in,
    values_by_name,
)
from onlineforest._inputs.parameters import (
    RANDOM_STATE,
    Constraints,
    check_parameters,
    instance_of,
    interval,
)
from onlineforest._inputs.rounding import Loss, RoundingWarning, losses_of, suspects
from onlineforest._inputs.validation import (
    blocks_of,
    check_numbers,
    check_rows,
    check_sample_weight,
    check_table,
    numbers_in,
    plain_rows,
    unchanged_on_error,
    units_of,
)

Item = TypeVar("Item", bound=np.generic)


def shares_of(importances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Importances with sum 1, negative ones as 0; all 0 if none is positive."""
    positive: NDArray[np.float64] = np.maximum(importances, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else positive


class Lesson(ABC, Generic[Core]):
    """The targets of a batch in the form that the core forest learns.

    `changes` are attributes of the estimator that follow from the batch once it is stored.
    """

    changes: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def teach(self, core: Core, rows: Rows, n_threads: int) -> None:
        """Let a core forest learn the batch."""

    def finish(self, core: Core) -> None:
        """Change what else follows from the batch, which is stored. May be called twice."""


@dataclass(frozen=True)
class Batch(Generic[Core]):
    """A batch that a core forest learns: its targets, its ids, and the serial of its first row.

    `start` are attributes that it brings besides: those of a new forest if this is its first batch,
    and what the cells of its rows are.
    """

    core: Core
    lesson: Lesson[Core]
    ids: Sequence[Id | None] | None
    first_serial: int
    start: Mapping[str, Any]


class BaseForest(ShownInNotebooks, Generic[Core]):
    """Base of the estimators, which document the parameters.

    A subclass defines its kind of core forest (`_core_kind`) with its own options (`_own_options`),
    and how X and y become what the core forest learns (`_check_batch`, `_lesson`).
    """

    _constraints: ClassVar[Constraints] = {
        "n_estimators": [interval(Integral, 1, 2**31 - 1)],
        "min_samples_split": [interval(Integral, 2, 2**31 - 1)],
        "window": [interval(Integral, 1, 2**31 - 1), None],
        "reservoir": [interval(Integral, 1, 2**31 - 1), None],
        "half_life": [interval(Real, 1, math.inf, "[)"), None],
        "n_jobs": [instance_of(Integral, "an int"), None],
        "random_state": RANDOM_STATE,
    }
    _takes_missing: ClassVar[bool] = True  # whether X may have missing values
    # A change of any other parameter requires a new forest.
    _free_parameters = ("n_jobs", "random_state")
    _core_kind: CoreKind[Core]
    # The source of core forests. An instance may get another one: its trees then live elsewhere.
    _core_source: CoreSource = LOCAL
    _saved_as: ClassVar[str]  # the name in model files; not inherited

    _forest: Core
    _built_with: dict[str, Any]
    _ids: Ids
    _has_warned = False  # of values that float32 does not keep apart; not pickled
    # Subtracted from the features before they are rounded, if the estimator has the parameter.
    _offsets: NDArray[np.float64] | None = None
    n_estimators: int
    min_samples_split: int
    window: int | None
    reservoir: int | None
    half_life: float | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def _own_options(self) -> dict[str, Any]:
        """Options of the core forest that not all estimators have."""
        raise NotImplementedError

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Rows and targets as valid arrays, or an error."""
        raise NotImplementedError

    def _check_rows(self, X: Any, *, reset: bool, **options: Any) -> Any:
        """Rows, and y if it is given, as valid arrays, or an error."""
        if isinstance(X, Table):
            numeric = Categories.of(X.n_columns if reset else self.n_features_in_, ())
            return check_table(self, X, numeric, reset=reset, hint=self._not_numbers, **options)[0]
        return check_rows(self, X, reset=reset, hint=self._not_numbers, **options)

    # What users are told if X has columns that are not numbers.
    _not_numbers: ClassVar[str]

    def _row(self, x: Any, *, may_be_new: bool) -> Any:
        """One sample as a core forest may take it; `check_row` makes a row of what it refuses.

        None if the sample has a level that no stored sample has, unless `may_be_new`, and for a
        data frame that is to be learned.
        """
        if type(x) in PLAIN_ROWS:
            return x
        if is_frame(x):
            return self._row_of_frame(x) if may_be_new else None
        return self._values_in_order(x)

    def _row_of_frame(self, x: Any) -> NDArray[np.float32]:
        """A data frame of one row as the core forest takes it, checked as `predict` does."""
        check_is_fitted(self)
        row: NDArray[np.float32] = self._check_queries(x)[0]
        return row

    def _values_in_order(self, x: Any) -> Any:
        """The values of one sample in the order of the features, by name if they have names."""
        named = mapping_in(x)
        if named is None:
            return with_nan(x, "x")
        check_is_fitted(self)
        return values_by_name(named, self._feature_names(), self._categorical_columns())

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _categorical_columns(self) -> tuple[int, ...]:
        """The indices of categorical features."""
        return ()

    def _table_of_one(self, x: Any) -> Any:
        """One sample as `partial_fit` takes it."""
        if type(x) in PLAIN_ROWS:
            return self._table_of_values(x)
        if is_frame(x):
            return x
        named = mapping_in(x)
        if named is None:
            return self._table_of_values(with_nan(x, "x"))
        if not hasattr(self, "_forest"):
            return Table.of_one(named.values(), check_first_names(named))
        return Table.of_one(self._values_in_order(named), self._feature_names())

    def _table_of_values(self, x: Any) -> Any:
        """Values without names as `partial_fit` takes them; names are not asked for."""
        rows = check_numbers(x)[np.newaxis]
        return Table.of_rows(rows) if hasattr(self, "feature_names_in_") else rows

    def _described_layout(self) -> dict[str, Any]:
        """The same as values of JSON."""
        return {}

    def _take_layout(self, n_features: int, described: dict[str, Any]) -> None:  # noqa: ARG002
        """Restore what `_described_layout` gave, or raise."""
        if described:
            raise ValueError("its features cannot be read.")

    def _layout(self) -> dict[str, Any]:
        """Attributes that say what the cells of a row are, besides the number of features."""
        return {}

    def _drop_stale_names(self) -> None:
        """Drop names that no stored sample has any more."""
        self._drop_stale_ids()

    def _after_learning(self) -> None:
        """Drop such names, unless this would wait for trees that live elsewhere."""
        if self._core_source is LOCAL:
            self._drop_stale_names()
        else:
            self._drop_stale_ids()

    def _after_learning_one(self) -> None:
        """The same after a sample without new names: others lose theirs if samples leave."""
        if self.window is not None or self.reservoir is not None:
            self._after_learning()

    def _lesson(self, target: NDArray[Any], *, starts: bool, **options: Any) -> Lesson[Core]:
        """The targets of a batch as a lesson; `starts` is true for the first batch of a forest.

        The option `is_whole` says that no other batch is expected, `classes` which ones to declare,
        and `units` are the weights of samples, if some are given.
        """
        raise NotImplementedError

    def _stored_values(self, target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Targets as the core forest stores them, and which of them it may have stored."""
        raise NotImplementedError

    def _own_metadata(self) -> dict[str, Any]:
        """Metadata of a model file that are specific to this kind of estimator."""
        return {}

    def _in_file_order(self, state: State) -> tuple[State, dict[str, Any]]:
        """The state of the core forest as it is saved, and the metadata that change with it.

        Equal forests must have equal files, in whatever order their names got codes.
        """
        return state, {}

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        """Restore what `_own_metadata` gave, or raise. `_forest` is already set."""

    def _check_trees(self) -> None:
        """Raise if the trees are not what the stored samples make them."""
        raise NotImplementedError

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
        """Memory of the forest in bytes: samples, trees, ids, names of classes and levels."""
        check_is_fitted(self)
        with self._locked():  # ids must not change while they are counted
            return self._nbytes()

    def _nbytes(self) -> int:
        """Memory of the forest in bytes. The lock is held."""
        names = getattr(self, "feature_names_in_", None)
        of_names = 0 if names is None else nbytes_of_array(names)
        return self._forest.nbytes + self._ids.nbytes + of_names

    def _facts(self) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return {}
        guard: Guard[Batch[Core]] = guard_of(self)
        if not guard.lock.acquire(blocking=False):  # a display must not wait for a long batch
            return {"now": "learning in another thread"}
        try:
            self._settle()
            return self._facts_of_samples()
        finally:
            guard.lock.release()

    def _facts_of_samples(self) -> dict[str, str]:
        """What notebooks show of a fitted forest. The lock is held."""
        core = self._forest
        return {
            "samples": f"{core.n_points:,} held, {core.n_seen:,} seen",
            "features": f"{self.n_features_in_:,}",
            "trees": f"{core.n_trees:,}",
            "memory": size_of(self._nbytes()),
        }

    def _forget(self, X: ArrayLike | None, y: ArrayLike | None, ids: Iterable[Id] | None) -> None:
        """Implement `forget`."""
        check_is_fitted(self)
        if ids is not None and (X is not None or y is not None):
            raise ValueError("forget needs X and y, or ids, but not both.")
        if ids is None and (X is None or y is None):
            raise ValueError("forget needs X and y, or ids.")
        with self._locked(), self._forgetting(), self._dropping_names():
            self._check_parameters_unchanged()
            if ids is not None:
                self._forget_ids(check_ids(ids))
            else:
                self._forget_rows(X, y)

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
        with self._locked(), self._forgetting(), self._dropping_names():
            self._forest.keep_latest(min(int(n_samples), sys.maxsize // 2), self._n_threads())
        return self

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """What must be done when samples are forgotten, besides."""
        yield

    @contextmanager
    def _dropping_names(self) -> Iterator[None]:
        """Drop names after the block. An interrupted block may have forgotten samples, too."""
        try:
            yield
        except BaseException:
            if self._core_source is LOCAL:  # others would have to be waited for
                self._drop_stale_names()
            raise
        self._drop_stale_names()

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
        if len(self._ids) > 100 and len(self._ids) > 2 * self._forest.n_points + 100:
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

    def _learn_from_scratch(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: Iterable[Id] | None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Implement `fit`."""
        self._check_parameters()
        with self._locked(), unchanged_on_error(self):
            rows, target, names, weighing = self._samples_in(X, y, ids, sample_weight, reset=True)
            self._warn_of_rounding(X, rows, starts=True)
            lesson = self._lesson(target, starts=True, is_whole=True, **weighing)
            start = self._start(self.n_features_in_)
            core: Core = start["_forest"]
            lesson.teach(core, rows, self._n_threads())
            self._record(Batch(core, lesson, names, 0, start))

    def _learn_more(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: Iterable[Id] | None,
        sample_weight: ArrayLike | None = None,
        *,
        columns: Sequence[Any] | None = None,
        **options: Any,
    ) -> None:
        """Implement `partial_fit`.

        `columns` are the names of columns in messages, if the features have others or none.
        """
        with self._locked(), unchanged_on_error(self) as keep_changes:
            starts = not hasattr(self, "_forest")
            if starts:
                self._check_parameters()
            else:
                self._check_parameters_unchanged()
            rows, target, names, weighing = self._samples_in(X, y, ids, sample_weight, reset=starts)
            self._warn_of_rounding(X, rows, columns, starts=starts)
            start = self._start(self.n_features_in_) if starts else {}
            core: Core = start["_forest"] if starts else self._forest
            if names is not None and not starts:
                self._ids.check_new(names, core.are_stored)
            lesson = self._lesson(target, starts=starts, **options, **weighing)
            batch = Batch(core, lesson, names, core.n_seen, start | self._layout())
            if len(rows):
                self._learn_batch(batch, rows, keep_changes)
            else:  # nothing has a weight, but classes may be declared
                self._record(batch)

    def _units_of(self, target: NDArray[Any], sample_weight: Any) -> NDArray[np.int64] | None:
        """The weights of samples as core forests need them; None if each counts once."""
        weights = check_sample_weight(sample_weight, len(target))
        return None if weights is None else units_of(weights)

    def _samples_in(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: Iterable[Id] | None,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[NDArray[np.float32], NDArray[Any], list[Id] | None, dict[str, Any]]:
        """Rows, targets, ids, and the option of `_lesson` for weights, if some are given.

        Samples of weight 0 are checked and then left out.
        """
        rows, target = self._check_batch(X, y, reset=reset)
        names = None if ids is None else check_ids(ids, len(rows))
        units = self._units_of(target, sample_weight)
        if units is None:
            return rows, target, names, {}
        if not units.all():
            places = np.flatnonzero(units)
            if reset and len(places) == 0:
                raise ValueError("sample_weight must not be zero for all samples.")
            rows, target, units = rows[places], target[places], units[places]
            names = None if names is None else [names[place] for place in places.tolist()]
        return rows, target, names, {"units": units}

    def _warn_of_rounding(
        self, X: Any, rows: Rows, names: Sequence[Any] | None = None, *, starts: bool
    ) -> None:
        """Warn, once per forest, of columns with distinct values that became equal in float32."""
        if starts and self._has_warned:
            self._has_warned = False
        is_exact = isinstance(X, np.ndarray) and np.can_cast(X.dtype, np.float32)
        if self._has_warned or is_exact or len(rows) < 2:
            return
        numeric = self._numeric_columns()
        places = suspects(rows[:, : len(numeric)])
        if len(places) == 0:
            return
        columns = np.asarray(numeric)[places]
        offsets = None if self._offsets is None else self._offsets[columns]
        found = losses_of(numbers_in(X, columns), offsets)
        own = getattr(self, "feature_names_in_", range(self.n_features_in_))
        known = own if names is None else names
        losses = {known[columns[place]]: loss for place, loss in found.items()}
        if losses:
            counts = "; ".join(
                f"{loss.n_distinct:,} became {loss.n_kept:,} in column {name!r}"
                for name, loss in losses.items()
            )
            warnings.warn(
                "Rows are stored as float32, which does not keep distinct values of X apart: "
                f"{counts}. {self._advice_on_rounding(losses)}",
                RoundingWarning,
                stacklevel=4,  # the caller of `fit` or `partial_fit`
            )
            self._has_warned = True  # not before: the warning may be an error

    def _numeric_columns(self) -> Sequence[int]:
        """The columns of the first cells of a row."""
        return range(self.n_features_in_)

    def _advice_on_rounding(self, losses: Mapping[Any, Loss]) -> str:
        numbers = ", ".join(f"{loss.offset} from column {name!r}" for name, loss in losses.items())
        return f"Before learning and before predicting, subtract a number near them: {numbers}."

    def _learn_batch(
        self, batch: Batch[Core], rows: Rows, keep_changes: Callable[[], None]
    ) -> None:
        """Let the core forest learn a batch, and record it."""

        def record(batch: Batch[Core]) -> None:
            self._record(batch)
            keep_changes()

        guard: Guard[Batch[Core]] = guard_of(self)
        guard.begin(batch)
        try:
            batch.lesson.teach(batch.core, rows, self._n_threads())
        finally:
            # An interrupted call may have stored the batch. A signal handler that uses this
            # estimator settles, too: if it came before the batch was stored, it dropped it.
            guard.begin(batch)
            guard.settle(batch.core, record)

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
        """Take up the ids and new classes of a batch that its core forest has stored."""
        batch.lesson.finish(batch.core)
        # All at once: other threads may be predicting.
        vars(self).update({**batch.lesson.changes, **batch.start})
        if batch.ids is not None:
            self._ids.add(batch.ids, batch.first_serial)
        self._after_learning()

    def _check_queries(self, X: ArrayLike) -> NDArray[np.float32]:
        """Queries, rounded to float32 exactly as stored rows are."""
        rows = plain_rows(self, X)
        if rows is not None:
            return rows
        checked: Rows = self._check_rows(X, reset=False)
        return checked

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

    def _start(self, n_features: int) -> dict[str, Any]:
        """The attributes of an estimator with an empty core forest of these parameters."""
        options = self._core_options(n_features)  # raises before a random number is drawn
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
        spec = self._core_spec(n_features, int(seed), options)
        return {
            "_forest": self._core_source.new(spec),
            "_built_with": self._built_with_now(n_features),
            "_ids": Ids(),
        }

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
        vars(as_built).update(self.get_params(deep=False) | self._built_with | self._layout())
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

    def _core_options(self, n_features: int) -> dict[str, Any]:  # noqa: ARG002
        """The options of a core forest of this estimator's parameters, without the seed."""
        if self.window is not None and self.reservoir is not None:
            raise ValueError("window and reservoir exclude each other: set one of them to None.")
        if self.half_life is not None and self.reservoir is None:
            raise ValueError("half_life needs a reservoir: set reservoir, too.")
        return {
            "min_samples_split": int(self.min_samples_split),
            "window": int(self.window or 0),
            "reservoir": int(self.reservoir or 0),
            "half_life": math.inf if self.half_life is None else float(self.half_life),
            **self._own_options(),
        }

    def _built_with_now(self, n_features: int) -> dict[str, Any]:  # noqa: ARG002
        """The parameters that must not change during the life of a forest."""
        return {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in self._free_parameters
        }

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)

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
        tags.input_tags.allow_nan = self._takes_missing
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Attributes as plain data: a pickle must not name private classes, which may move."""
        with self._locked():
            if hasattr(self, "_forest"):
                self._drop_stale_names()
            state: dict[str, Any] = without_guard(super().__getstate__())
            if "_forest" in state:
                ids = self._ids.only_of(self._forest.serials)
                state["_ids"] = (ids.names(), ids.serials())
                state["_forest"] = self._forest.get_state()
        state.pop("_core_source", None)  # a copy is local
        state.pop("_has_warned", None)  # says something about samples that may be forgotten
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        core_state: State | None = state.get("_forest")
        super().__setstate__({name: state[name] for name in state if name != "_forest"})
        if "_ids" in state:
            self._ids = Ids.of(*state["_ids"])
        if core_state is not None:
            self._forest = self._core_source.restore(self._spec_of_state(core_state), core_state)
