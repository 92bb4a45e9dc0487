"""The base class of all estimators: parameters, the life of the core forest, saving.

Must not know how trees are split, nor what y is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import (
    LOCAL,
    Core,
    CoreKind,
    CoreSource,
    CoreSpec,
    Rows,
    State,
)
from onlineforest._forests.display import ShownInNotebooks, size_of
from onlineforest._forests.law import check_law, law_of
from onlineforest._forests.lessons import Batch, Lesson, Samples
from onlineforest._forests.locking import Guard, guard_of, without_guard
from onlineforest._forests.targets import Targets
from onlineforest._inputs.ids import Id, Ids
from onlineforest._inputs.memory import nbytes_of_array
from onlineforest._inputs.parameters import (
    RANDOM_STATE,
    Constraints,
    check_parameters,
    instance_of,
    interval,
)
from onlineforest._inputs.rows import (
    NumericRows,
    RowFormat,
    first_format,
    format_of_plain,
    plain_format,
)
from onlineforest._inputs.validation import blocks_of
from onlineforest._inputs.weights import check_class_weight

Item = TypeVar("Item", bound=np.generic)


class BaseForest(ShownInNotebooks, Generic[Core]):
    """Base of the estimators, which document the parameters.

    A subclass names the kinds of its parts: `_core_kind` of its core forest, `_targets_type` of
    what its values are, `_numeric_format` of rows without categories. It defines the options of its
    core forest (`_core_options`) and how a batch becomes what the core forest learns (`_lesson`).
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
    # A change of any other parameter requires a new forest.
    _free_parameters = ("n_jobs", "random_state")
    _core_kind: CoreKind[Core]
    _targets_type: ClassVar[type[Targets]]
    _numeric_format: ClassVar[type[NumericRows]] = NumericRows
    # The source of core forests. An instance may get another one: its trees then live elsewhere.
    _core_source: CoreSource = LOCAL
    _saved_as: ClassVar[str]  # the name in model files; not inherited

    _forest: Core
    _built_with: dict[str, Any]
    _rows: RowFormat = NumericRows(0)
    _targets: Any  # its type is `_targets_type`
    _ids: Ids
    _has_warned = False  # about values that float32 does not keep apart; not pickled
    n_estimators: int
    min_samples_split: int
    window: int | None
    reservoir: int | None
    half_life: float | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def _core_options(self) -> dict[str, Any]:
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
        }

    def _lesson(
        self,
        core: Core,
        samples: Samples,
        classes: ArrayLike | None,
        *,
        starts: bool,
        is_whole: bool,
    ) -> Lesson[Core]:
        """Samples as a lesson for a core forest, and classes to declare.

        Its first batch `starts` a forest. It `is_whole` if no other batch is expected.
        """
        raise NotImplementedError

    def _own_metadata(self) -> dict[str, Any]:
        """Metadata of a model file that are specific to this kind of estimator."""
        return dict(self._targets.metadata())

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        """Restore what `_own_metadata` gave, or raise. `_forest` and `_rows` are already set."""
        self._targets = self._targets_type.of_file(metadata, self._forest)

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
        return self._core.n_samples

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
        parts = self._forest, self._ids, self._rows, self._targets
        return sum(part.nbytes for part in parts) + of_names

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
        """Facts that notebooks show about a fitted forest. The lock is held."""
        core, n_categorical = self._forest, len(self._rows.columns)
        of_them = f", {n_categorical:,} of them categorical" if n_categorical else ""
        facts = {
            "samples": f"{core.n_samples:,} held, {core.n_seen:,} seen",
            "features": f"{self.n_features_in_:,}{of_them}",
            "trees": f"{core.n_trees:,}",
            "memory": size_of(self._nbytes()),
        }
        return facts | dict(self._targets.facts(core))

    @contextmanager
    def _refitting(self) -> Iterator[None]:
        """Hold a block that forgets samples, on which more than the trees may depend."""
        yield

    def _drop_unused_names(self) -> None:
        """Drop names of ids, levels and values that no stored sample has. The lock is held."""
        self._drop_unused_ids()
        self._rows = self._rows.without_unused(self._forest)
        self._targets.drop_unused(self._forest)

    def _drop_unused_ids(self) -> None:
        """Drop ids of samples that are no longer stored, once there are many."""
        if len(self._ids) > 100 and len(self._ids) > 2 * self._forest.n_samples + 100:
            self._ids = self._ids.only_of(self._forest.serials)

    def _after_learning(self) -> None:
        """Drop unused names, unless this would wait for trees that live elsewhere."""
        if self._core_source is LOCAL:
            self._drop_unused_names()
        else:
            self._drop_unused_ids()

    def _after_learning_one(self) -> None:
        """Drop unused names after a sample without new ones: samples may have left."""
        if self.window is not None or self.reservoir is not None:
            self._after_learning()

    @property
    def _core(self) -> Core:
        """The core forest; `NotFittedError` if nothing was learned."""
        try:
            return self._forest
        except AttributeError:
            check_is_fitted(self)  # raises
            raise

    def _core_and_targets(self) -> tuple[Core, Any]:
        """The core forest and its targets: `fit` in another thread replaces both."""
        guard: Guard[Batch[Core]] = guard_of(self)
        if guard.pending is not None:
            self._settle_if_left(guard)
        state = vars(self).copy()  # at once
        try:
            return state["_forest"], state["_targets"]
        except KeyError:
            check_is_fitted(self)  # raises
            raise

    def _core_with_samples(self) -> Core:
        """The core forest; an error if it has no samples."""
        core = self._core
        if core.n_samples == 0:
            raise ValueError(
                f"This {type(self).__name__} has forgotten all its samples. Learn some first."
            )
        return core

    def _check_samples(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool = False
    ) -> tuple[Rows, NDArray[Any]]:
        """Rows and targets as valid arrays, or an error; `reset` for those of a new forest."""
        rows = self._rows
        if reset:
            wish = getattr(self, "categorical_features", None)
            rows = first_format(X, wish, self._numeric_format)
        kind, offsets = self._targets_type.kind, getattr(self, "offsets", None)
        # Names of new levels are dropped again if no sample is stored.
        found, target, self._rows = kind.check(self, rows, X, y, reset=reset, offsets=offsets)
        return found, target

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, with every batch recorded that the core forest has stored."""
        with guard_of(self):
            self._settle()
            yield

    def _settle(self) -> None:
        """Record a batch that an interrupted call could not record."""
        guard_of(self).settle(vars(self).get("_forest"), self._record)

    def _settle_if_left(self, guard: Guard[Batch[Core]]) -> None:
        """Record a batch that an interrupted call could not record.

        Does not wait for another thread that is learning.
        """
        if guard.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                guard.lock.release()

    def _record(self, batch: Batch[Core]) -> None:
        """Take up the ids and new names of a batch that its core forest has stored."""
        batch.lesson.finish(batch.core)
        # All at once: other threads may be predicting.
        vars(self).update({**batch.lesson.changes, **batch.start})
        if batch.ids is not None:
            self._ids.add(batch.ids, batch.first_serial)
        self._after_learning()

    def _predict_rows(
        self, predict: Callable[[Rows, int], NDArray[Item]], X: ArrayLike
    ) -> NDArray[Item]:
        """The predictions for X of a method of the core forest: `predict(rows, n_threads)`."""
        answers = [
            predict(self._rows.queries(self, block), self._n_threads()) for block in blocks_of(X)
        ]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _n_threads(self) -> int:
        return int(min(effective_n_jobs(self.n_jobs), 1024))

    def _start(self) -> dict[str, Any]:
        """The attributes of an estimator with an empty core forest of these parameters."""
        options = self._core_options()  # raises before a random number is drawn
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
        return {
            "_forest": self._core_source.new(self._core_spec(int(seed), options)),
            "_built_with": self._built_with_now(),
            "_ids": Ids(),
        }

    def _core_spec(self, seed: int, options: Mapping[str, Any] | None = None) -> CoreSpec[Core]:
        """Which core forest an estimator of these parameters and features needs."""
        options = self._core_options() if options is None else options
        n_trees, n_features = int(self.n_estimators), self.n_features_in_
        return CoreSpec(self._core_kind, n_trees, n_features, {**options, "seed": seed})

    def _spec_of_state(self, state: State) -> CoreSpec[Core]:
        """Which core forest this one, of the given state, was built as."""
        as_built = type(self).__new__(type(self))
        # Parameters may have been changed since, and be invalid now.
        vars(as_built).update(self.get_params(deep=False) | self._built_with)
        as_built._rows, as_built.n_features_in_ = self._rows, self.n_features_in_
        return as_built._core_spec(int(state["options.seed"][0]))

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
        other = type(self).__new__(type(self))
        other.__setstate__(contents)
        other._forest = make_core(self._spec_of_state(state), state)
        return other

    def _built_with_now(self) -> dict[str, Any]:
        """The parameters that must not change during the life of a forest, as copies."""
        return {
            name: copy(value)
            for name, value in self.get_params(deep=False).items()
            if name not in self._free_parameters
        }

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        class_weight = getattr(self, "class_weight", None)
        if isinstance(class_weight, dict):
            check_class_weight(class_weight)

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
        tags.input_tags.allow_nan = self._numeric_format.takes_missing
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Attributes as plain data: a pickle must not name private classes, which may move."""
        with self._locked():
            if hasattr(self, "_forest"):
                self._drop_unused_names()
            state: dict[str, Any] = without_guard(super().__getstate__())
            if "_forest" in state:
                ids = self._ids.only_of(self._forest.serials)
                state["_ids"] = (ids.names(), ids.serials())
                state["_rows"] = plain_format(self._rows)
                state["_targets"] = self._targets.plain()
                state["_forest"] = self._forest.get_state()
        state.pop("_core_source", None)  # a copy is local
        state.pop("_has_warned", None)  # says something about samples that may be forgotten
        return state | law_of(self._core_kind)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        law, core_state = state.pop("law", None), state.pop("_forest", None)
        if core_state is not None:
            check_law(self._core_kind, law, f"The pickled {type(self).__name__}")
        if "_ids" in state:
            state["_ids"] = Ids.of(*state["_ids"])
            state["_rows"] = format_of_plain(self._numeric_format, *state["_rows"])
            state["_targets"] = self._targets_type.of_plain(*state["_targets"])
        super().__setstate__(state)
        if core_state is not None:
            self._forest = self._core_source.restore(self._spec_of_state(core_state), core_state)
