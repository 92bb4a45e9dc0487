"""A forest on a Ray cluster, bit for bit the local one: the public methods.

Thin: an estimator does the work, and its core forest is a sharded one that `starting` starts.
"""

from __future__ import annotations

import errno
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, BinaryIO, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import LOCAL
from onlineforest._forests.locking import guard_of, without_guard
from onlineforest._forests.orderfree.base import BaseOnlineForest
from onlineforest._forests.saving import check_can_be_saved, read_model, write_model
from onlineforest._inputs.parameters import Constraints, check_parameters, instance_of, interval
from onlineforest._shards.keeper import Settings
from onlineforest._shards.sharded import ShardedForest
from onlineforest._store.loading import ESTIMATORS
from onlineforest.ray.starting import RayCores, StartParameters
from onlineforest.ray.streams import (
    StreamReport,
    StreamTally,
    check_first,
    check_pair,
    is_dataset,
    new_batches,
)

_CHANGES = frozenset({"forget", "keep_latest", "learn_one", "recalibrate"})
_CORES = "_started_cores"  # attribute made when it is first needed


class RayForest(MetaEstimatorMixin, BaseEstimator):
    """An order-free forest whose trees are spread over a Ray cluster, the same to the last bit.

    Trees do not depend on each other. Each shard, a Ray actor, holds some of the trees and receives
    every sample. A prediction combines what the shards send in the order in which a local forest
    combines its trees. So the forest equals the local one, for any number of shards, threads
    and nodes.

    A `RayForest` has all methods and attributes of its estimator: `predict`, `learn_one`, `forget`,
    `keep_latest`, `recalibrate`, `classes_`, `trees_`, `digest_` and so on.

    Parameters
    ----------
    estimator : OnlineForestClassifier or OnlineForestRegressor
        The kind of forest and its parameters; `n_jobs` is ignored. It is not fitted itself. For an
        estimator that is fitted already, see `scatter`.
    n_shards : int or None, default=None
        Number of shards, at most the number of trees. None: one per node of the cluster, with all
        its processors but one; or, if ``num_cpus`` is given, as many as the cluster has room for.
    actor_options : mapping or None, default=None
        Options of Ray for each shard, as of ``ray.remote``: ``num_cpus`` (1 by default, if
        `n_shards` is given; also the number of threads), ``memory``, ``resources``,
        ``scheduling_strategy`` ("SPREAD" by default: over the nodes), ``runtime_env`` and so on.
    file : str, os.PathLike or None, default=None
        The model file, which this process writes after the first batch, then after every
        `save_every`, and at the end of a ``with`` block. `resume` continues from it if all shards,
        or this process, were lost. It must not exist.
    save_every : int, default=100
        Number of batches (and other changes) between two times that the model file is written.
    max_in_flight : int, default=4
        Number of batches of a stream that may be in progress before `learn_stream` waits for the
        slowest shard.
    recovery_timeout : float, default=120.0
        Seconds that the start of a shard may take before it is an error.

    Notes
    -----
    Ray is started on this machine unless ``ray.init`` was called, or a cluster is running here, or
    ``RAY_ADDRESS`` names one.

    Every shard holds all samples. If one is lost, a new one gets them from another and grows its
    trees again, whatever batch is in progress.

    `fit` and the first `partial_fit` start the shards. `close`, or leaving a ``with`` block, ends
    them. If an interrupt (Ctrl-C) comes while a batch is in progress, the shards learn the batch
    nevertheless: see `n_samples_seen_`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import OnlineForestClassifier
    >>> from onlineforest.ray import RayForest
    >>> X, y = load_digits(return_X_y=True)
    >>> local = OnlineForestClassifier(n_estimators=10, random_state=0)
    >>> with RayForest(local, n_shards=2) as forest:
    ...     for start in range(0, 1500, 500):
    ...         forest = forest.partial_fit(X[start : start + 500], y[start : start + 500])
    ...     probabilities, digest = forest.recalibrate().predict_proba(X[1500:]), forest.digest_
    >>> local = local.fit(X[:1500], y[:1500])
    >>> bool((probabilities == local.predict_proba(X[1500:])).all()), digest == local.digest_
    (True, True)
    """

    __module__ = "onlineforest.ray"

    _constraints: ClassVar[Constraints] = {
        "estimator": [
            instance_of(BaseOnlineForest, "an OnlineForestClassifier or OnlineForestRegressor")
        ],
        "n_shards": [interval(Integral, 1, math.inf, "[)"), None],
        "actor_options": [instance_of(Mapping, "a mapping"), None],
        "file": [instance_of(str, "a string"), instance_of(os.PathLike, "a path"), None],
        "save_every": [interval(Integral, 1, math.inf, "[)")],
        "max_in_flight": [interval(Integral, 1, math.inf, "[)")],
        "recovery_timeout": [interval(Real, 0, math.inf, "()")],
    }
    _estimator: BaseOnlineForest[Any]  # its core forest is a sharded one
    _n_batches = 0
    _own_file: str | None = None  # that this forest wrote, or that it was resumed from
    _saved_position = -1  # the number of operations in that file
    _next_save = 0  # the number of operations after which it is written again

    def __init__(
        self,
        estimator: BaseOnlineForest[Any],
        *,
        n_shards: int | None = None,
        actor_options: Mapping[str, Any] | None = None,
        file: str | os.PathLike[str] | None = None,
        save_every: int = 100,
        max_in_flight: int = 4,
        recovery_timeout: float = 120.0,
    ) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.actor_options = actor_options
        self.file = file
        self.save_every = save_every
        self.max_in_flight = max_in_flight
        self.recovery_timeout = recovery_timeout

    # Learning and forgetting.

    def fit(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Learn a forest from these samples alone.

        If the forest is fitted already, its shards are ended as soon as X and y are validated:
        unlike a local forest, it is lost if `fit` is then interrupted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes or values.
        **options : sample_weight, ids
            Those of the estimator's `fit`.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.fit([[0.0], [1.0]], [10.0, 20.0]).n_samples_seen_
        2
        """
        self._check_parameters()
        with guard_of(self):
            estimator = self._new_estimator()
            try:
                estimator.fit(X, y, **options)
            except BaseException:
                self._cores.close_unless(getattr(self.__dict__.get("_estimator"), "_forest", None))
                raise
            self._estimator = estimator
            self._n_batches = 1
            self._saved_position, self._next_save = -1, 0
            self._save_if_due()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Learn more samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes or values.
        **options : classes, sample_weight, ids
            Those of the estimator's `partial_fit`.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.partial_fit([[0.0], [1.0]], ["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        with self._changing() as estimator:
            estimator.partial_fit(X, y, **options)
        return self

    def learn_from(self, *forests: Any) -> Self:
        """Learn all samples of other forests, as the estimator's `learn_from` does.

        Each shard learns the samples with its own trees. The trees of the other forests do not
        travel: of a `RayForest`, one shard sends the samples.

        Parameters
        ----------
        *forests : RayForest, or estimators of the class of the estimator
            Fitted forests with the seed, parameters and features of this one, and other ids.

        Returns
        -------
        RayForest
            The forest itself: exactly that of the samples of all forests.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestRegressor(n_estimators=4, random_state=0)
        >>> other = OnlineForestRegressor(n_estimators=4, random_state=0).fit([[2.0]], [30.0])
        >>> with RayForest(local, n_shards=1) as forest:
        ...     digest = forest.fit([[0.0], [1.0]], [10.0, 20.0]).learn_from(other).digest_
        >>> digest == local.fit([[0.0], [1.0], [2.0]], [10.0, 20.0, 30.0]).digest_
        True
        """
        check_is_fitted(self)
        others = []
        for forest in forests:
            if isinstance(forest, RayForest):
                check_is_fitted(forest)
            others.append(forest._estimator if isinstance(forest, RayForest) else forest)
        with self._changing() as estimator:
            estimator.learn_from(*others)
        return self

    def learn_stream(
        self,
        batches: Any,
        *,
        target: str | None = None,
        batch_size: int = 1000,
        first: int | None = None,
        progress: Callable[[StreamReport], object] | None = None,
    ) -> StreamReport:
        """Learn a stream of batches; the next batch is sent while shards learn.

        The result is that of `partial_fit` with one batch after the other. At most `max_in_flight`
        batches are in progress: a stream that is faster than the slowest shard waits.

        Parameters
        ----------
        batches : iterable of (X, y), or ray.data.Dataset
            The batches. The order of a dataset's blocks varies unless Ray is set to preserve it.
        target : str or None, default=None
            For a dataset: the name of the column of y. All other columns are X.
        batch_size : int, default=1000
            For a dataset: rows per batch.
        first : int or None, default=None
            The number of the first batch, counted over all batches the forest has learned (see
            `n_batches_`), if parts of the stream were learned before: batches that were learned are
            skipped, and missing batches are an error. 0 for a stream from its beginning. None: all
            batches are new.
        progress : callable or None, default=None
            Called with a `StreamReport` after each batch is sent; up to `max_in_flight` batches are
            still in progress then.

        Returns
        -------
        StreamReport
            Number of batches learned, and the throughput.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import OnlineForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> X, y = load_digits(return_X_y=True)
        >>> batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 1500, 500)]
        >>> local = OnlineForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.learn_stream(batches).n_rows
        1500
        """
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be a function or None. Got {progress!r}.")
        n_before = self._n_batches if self.__sklearn_is_fitted__() else 0
        n_skipped = n_before - check_first(first, n_before)
        tally = StreamTally(n_before, lambda: self._cores.starting_seconds)

        def learn(batch: Any) -> None:
            X, y = check_pair(batch)
            try:
                self.partial_fit(X, y)
            except (ValueError, TypeError) as error:
                error.add_note(f"This was batch {tally.next_batch}, counted from 0.")
                raise
            tally.add(len(y))
            if progress is not None:
                progress(tally.report(self._n_recoveries()))

        source = new_batches(batches, target, batch_size, n_skipped)
        if n_before == 0:  # the first batch starts the shards
            for batch in source:
                learn(batch)
                break
        if self.__sklearn_is_fitted__():
            if is_dataset(batches):
                self._cores.warn_if_no_processor_is_left()
            with self._sharded().keeper.pipelined():
                for batch in source:
                    learn(batch)
        return tally.report(self._n_recoveries())

    # Between this process, shards and files.

    @classmethod
    def scatter(cls, estimator: BaseOnlineForest[Any], **parameters: Any) -> RayForest:
        """Spread a fitted forest of this process over shards.

        Parameters
        ----------
        estimator : OnlineForestClassifier or OnlineForestRegressor
            The fitted forest. It is copied and does not change.
        **parameters : n_shards, file, ...
            Parameters of the class.

        Returns
        -------
        RayForest
            The forest. It learns more exactly as the local one would.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestRegressor(n_estimators=4, random_state=0)
        >>> local = local.fit([[0.0], [1.0]], [10.0, 20.0])
        >>> with RayForest.scatter(local, n_shards=1) as forest:
        ...     bool(forest.predict([[0.3]]) == local.predict([[0.3]]))
        True
        """
        if not isinstance(estimator, BaseOnlineForest):
            raise TypeError(
                "scatter needs an OnlineForestClassifier or an OnlineForestRegressor. Got "
                f"{estimator!r} instead."
            )
        check_is_fitted(estimator)
        forest = cls(clone(estimator), **parameters)
        forest._spread(estimator)
        forest._save_if_due()
        return forest

    def _spread(self, estimator: BaseOnlineForest[Any]) -> None:
        """Start with the samples of a fitted forest."""
        self._check_parameters()
        self._estimator = estimator._copy_with_core(self._configured_cores().restore)

    def gather(self) -> BaseOnlineForest[Any]:
        """Copy the forest into an estimator of this process.

        Returns
        -------
        OnlineForestClassifier or OnlineForestRegressor
            The copy. It learns more and predicts exactly as this forest.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     local = forest.fit([[0.0], [1.0]], ["no", "yes"]).gather()
        >>> local.classes_
        array(['no', 'yes'], dtype='<U3')
        """
        check_is_fitted(self)
        return self._estimator._copy_with_core(LOCAL.restore)

    def save(self, file: str | os.PathLike[str] | BinaryIO | None = None) -> None:
        """Write a model file. `onlineforest.load` makes a local forest of it, `resume` this one.

        Parameters
        ----------
        file : str, os.PathLike, binary file or None, default=None
            The file to write. None: the model file of this forest.

        Examples
        --------
        >>> import onlineforest
        >>> from onlineforest.ray import RayForest
        >>> local = onlineforest.OnlineForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.fit([[0.0], [1.0]], [3.0, 7.0]).save("sevens.safetensors")
        >>> onlineforest.load("sevens.safetensors").n_samples_seen_
        2
        """
        check_is_fitted(self)
        own = self._cores.parameters.settings.file
        target = own if file is None else file
        if target is None:
            raise ValueError("save needs a file: save(file), or RayForest(..., file=...).")
        with guard_of(self):
            write_model(self._estimator, target, {"n_batches": self._n_batches})
            if file is None:
                self._own_file = own
                self._saved_position = self._sharded().keeper.position

    @classmethod
    def resume(cls, file: str | os.PathLike[str], **parameters: Any) -> RayForest:
        """Continue from a model file that a `RayForest` wrote, with any number of shards.

        Parameters
        ----------
        file : str or os.PathLike
            The model file. It is written again, after `save_every` batches.
        **parameters : n_shards, actor_options, save_every, ...
            Parameters of the class; the file stores those of the estimator.

        Returns
        -------
        RayForest
            The forest. `n_batches_` is the number of batches it has learned.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = OnlineForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1, file="run.safetensors") as forest:
        ...     forest = forest.fit([[0.0], [1.0]], [3.0, 7.0])
        >>> with RayForest.resume("run.safetensors", n_shards=2) as forest:
        ...     forest.partial_fit([[2.0]], [9.0]).n_samples_seen_
        3
        """
        model = read_model(file, ESTIMATORS, None)
        match model.position:
            case {"n_batches": int(n_batches)} if n_batches >= 0:
                forest = cls(clone(model.forest), file=file, **parameters)
            case _:
                raise ValueError(
                    f"{os.fspath(file)!r} was not written by a RayForest. Use "
                    "RayForest.scatter(onlineforest.load(file), ...)."
                )
        forest._own_file = os.path.abspath(file)
        forest._spread(model.forest)
        forest._n_batches = n_batches
        forest._saved_position, forest._next_save = 0, int(forest.save_every)
        return forest

    def close(self) -> None:
        """End the shards; everything that was not saved or gathered is lost.

        Leaving a ``with`` block without an error writes the model file first, if there is one.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> forest = RayForest(OnlineForestRegressor(n_estimators=4), n_shards=1)
        >>> forest.fit([[0.0], [1.0]], [3.0, 7.0]).close()
        """
        if _CORES in self.__dict__:
            self._cores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None and self.__sklearn_is_fitted__():
                keeper = self._sharded().keeper
                if not keeper.is_closed and keeper.position != self._saved_position:
                    self._save_or_warn()
        finally:
            self.close()

    @property
    def n_batches_(self) -> int:
        """Number of batches learned since the last `fit`."""
        check_is_fitted(self)
        return self._n_batches

    @property
    def n_shards_(self) -> int:
        """Number of shards."""
        return self._sharded().n_shards

    @property
    def n_recoveries_(self) -> int:
        """How often a lost shard was made anew."""
        return self._sharded().keeper.n_recoveries

    # All other methods and attributes are those of the estimator.

    def __getattr__(self, name: str) -> Any:
        estimator = self.__dict__.get("estimator")
        if name.startswith("_") or not isinstance(estimator, BaseOnlineForest):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # An unfitted clone raises NotFittedError when the method is called.
        found = getattr(self.__dict__.get("_estimator") or clone(estimator), name)
        return partial(self._change, name) if name in _CHANGES else found

    def _change(self, method: str, *arguments: Any, **options: Any) -> Self:
        """Call a method of the estimator that changes the forest."""
        if method != "learn_one":
            check_is_fitted(self)
        with self._changing() as estimator:
            getattr(estimator, method)(*arguments, **options)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_estimator" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            raise TypeError(
                "A fitted RayForest cannot be pickled: its trees live in other processes. Pickle "
                "what gather() returns, or save() it."
            )
        state = without_guard(super().__getstate__())
        return {name: value for name, value in state.items() if name != _CORES}

    # The estimator and its shards.

    @property
    def _cores(self) -> RayCores:
        """The source of this forest's core forests; it must not know this object.

        So the last reference to a `RayForest` ends its actors, without a garbage collection.
        """
        cores: RayCores | None = self.__dict__.get(_CORES)
        if cores is None:
            cores = self.__dict__.setdefault(_CORES, RayCores())
        return cores

    def _configured_cores(self) -> RayCores:
        """The source of core forests, with the current parameters, which are valid."""
        file = None if self.file is None else os.path.abspath(self.file)
        if file is not None:
            self._check_file(file)
        self._cores.parameters = StartParameters(
            n_shards=self.n_shards,
            actor_options=dict(self.actor_options or {}),
            settings=Settings(
                max_in_flight=int(self.max_in_flight),
                recovery_timeout=float(self.recovery_timeout),
                file=file,
            ),
        )
        return self._cores

    def _check_file(self, file: str) -> None:
        """Raise if this forest may not, or cannot, write the file."""
        check_can_be_saved(type(self.estimator))
        if file != self._own_file and os.path.exists(file):
            raise ValueError(
                f"{file!r} exists. Continue its forest with RayForest.resume, or choose another "
                "file."
            )
        if not os.path.isdir(os.path.dirname(file)):
            message = "The model file needs a folder, but there is none"
            raise NotADirectoryError(errno.ENOTDIR, message, os.path.dirname(file))

    def _sharded(self) -> ShardedForest:
        check_is_fitted(self)
        forest: ShardedForest = self._estimator._forest
        return forest

    def _n_recoveries(self) -> int:
        return self.n_recoveries_ if self.__sklearn_is_fitted__() else 0

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """The estimator, for a call that changes the forest; then it is saved if that is due."""
        with guard_of(self):
            estimator = self.__dict__.get("_estimator")
            if estimator is None:
                self._check_parameters()
                estimator = self._new_estimator()
            else:
                self._check_parameters_unchanged()
            n_before = _n_seen_by(estimator)
            try:
                yield estimator
            except BaseException:
                self._cores.close_unless(getattr(estimator, "_forest", None))
                raise
            finally:
                # A batch counts from the moment it is sent, even if an interrupt comes then.
                if hasattr(estimator, "_forest"):
                    self._estimator = estimator
                    self._n_batches += _n_seen_by(estimator) > n_before
            self._save_if_due()

    def _save_if_due(self) -> None:
        """Write the model file if enough batches came since the last time.

        The first time is after the first batch, which shows whether the file can be written.
        """
        position = self._sharded().keeper.position
        if position >= self._next_save:
            self._next_save = position + int(self.save_every)
            self._save_or_warn()

    def _save_or_warn(self) -> None:
        if self._cores.parameters.settings.file is None:
            return
        try:
            self.save()
        except OSError as error:
            warnings.warn(
                f"The model file could not be written; the one before stays: {error}",
                RuntimeWarning,
                stacklevel=6,
            )

    def _new_estimator(self) -> BaseOnlineForest[Any]:
        """An unfitted copy of the estimator whose core forest will be a sharded one."""
        estimator: BaseOnlineForest[Any] = clone(self.estimator)
        estimator._core_source = self._configured_cores()
        return estimator

    def _check_parameters_unchanged(self) -> None:
        """Raise if parameters of the estimator have changed since the forest was started."""
        if type(self.estimator) is not type(self._estimator):
            raise ValueError(
                f"This forest was started with a {type(self._estimator).__name__}, but estimator "
                f"is {self.estimator!r} now. Set it back, or start a new forest with fit."
            )
        now = clone(self.estimator)
        now._built_with = self._estimator._built_with
        now._check_parameters_unchanged()

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)


def _n_seen_by(estimator: BaseOnlineForest[Any]) -> int:
    return int(estimator._forest.n_seen) if hasattr(estimator, "_forest") else 0
