"""The same forest on a Ray cluster, bit for bit: sharded by trees, each shard an actor.

Thin: `_keeping` keeps the shards in step, `_sharded` makes a core forest of them, and the
estimators do all else.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, BinaryIO, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from onlineforest._distributed.keeping import PartUnreadableError, Settings, ShardLostError
from onlineforest._distributed.shard import PartPlan, Start, hello_from_here
from onlineforest._distributed.sharded import KINDS, ShardedForest, parts_of
from onlineforest._distributed.shares import State, split_trees
from onlineforest._distributed.snapshots import (
    Snapshot,
    Snapshots,
    SnapshotWarning,
    newest_snapshot,
    positions_in,
)
from onlineforest._extras import require
from onlineforest._files.container import ModelFileError
from onlineforest._models.base import BaseMondrianForest
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.ids import Id
from onlineforest._models.loading import KINDS as ESTIMATORS
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.saving import check_can_be_saved, estimator_around

try:
    import ray
except ImportError:
    require("ray", "ray")  # says how to get it
    raise

from onlineforest.ray.crew import RayCrew

__all__ = ["RayForest", "ShardLostError", "SnapshotWarning", "StreamReport", "load_snapshot"]

_LOG_FACTOR = (
    4  # so many times `snapshot_every` operations are kept when no snapshot can be written
)


@dataclass(frozen=True)
class StreamReport:
    """How far a stream has come.

    Attributes
    ----------
    n_batches : int
        Batches learned, those that were skipped not counted.
    n_rows : int
        Their rows.
    seconds : float
        How long it took, but for the start of shards.
    n_recoveries : int
        How often a shard was brought back.

    Examples
    --------
    >>> from onlineforest.ray import StreamReport
    >>> StreamReport(n_batches=2, n_rows=3000, seconds=1.5, n_recoveries=0).rows_per_second
    2000.0
    """

    n_batches: int
    n_rows: int
    seconds: float
    n_recoveries: int

    @property
    def rows_per_second(self) -> float:
        """The throughput."""
        return self.n_rows / self.seconds if self.seconds > 0 else 0.0


class RayForest(MetaEstimatorMixin, BaseEstimator):
    """A forest whose trees are spread over a Ray cluster, the same to the last bit.

    Trees never talk to each other. So each shard, a Ray actor, holds some of the trees, sees every
    sample, and a prediction adds up what the shards say, in the order in which the trees of a local
    forest are added up. Whatever the number of shards, threads and nodes: the forest is the one
    that the estimator would have been in this process.

    All methods and attributes of the estimator are here, too: `predict`, `predict_proba`,
    `predict_interval`, `novelty`, `classes_`, `trees_` and so on.

    Parameters
    ----------
    estimator : MondrianForestClassifier or MondrianForestRegressor
        The forest to be; only its parameters are looked at, `n_jobs` is not. See `scatter` for one
        that has learned something already.
    n_shards : int or None, default=None
        Number of shards, at most as many as trees. None: one per node of the cluster, with all its
        processors but one; or, if ``num_cpus`` is given, as many as there is room for.
    actor_options : mapping or None, default=None
        Options of Ray for each shard, as of ``ray.remote``: ``num_cpus`` (1 by default, if
        `n_shards` is given; a shard uses so many threads), ``memory``, ``resources``,
        ``scheduling_strategy`` ("SPREAD" by default: over the nodes), ``runtime_env`` and so on.
    folder : str, os.PathLike or None, default=None
        Where shards write snapshots. All nodes must see it under this path. Needed to bring back
        shards that are lost; None: a lost shard is an error.
    snapshot_every : int, default=100
        So many batches (and other changes) may come between two snapshots. They are kept, in Ray's
        object store, to be learned again by a shard that is brought back.
    max_in_flight : int, default=4
        So many batches of a stream may be under way before `learn_stream` waits for the slowest
        shard.
    recovery_timeout : float, default=120.0
        So many seconds a shard may take to start, or to come back, before there is an error.

    Notes
    -----
    Ray is started on this machine unless ``ray.init`` was called, or a cluster is running here, or
    ``RAY_ADDRESS`` names one.

    `fit` and the first `partial_fit` start the shards. `close`, or leaving a ``with`` block, ends
    them. When an interrupt (Ctrl-C) comes while a batch is being learned, the batch is learned all
    the same: `n_samples_seen_` tells.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import MondrianForestClassifier
    >>> from onlineforest.ray import RayForest
    >>> X, y = load_digits(return_X_y=True)
    >>> local = MondrianForestClassifier(n_estimators=10, random_state=0)
    >>> with RayForest(local, n_shards=2) as forest:
    ...     for start in range(0, 1500, 500):
    ...         forest = forest.partial_fit(X[start : start + 500], y[start : start + 500])
    ...     probabilities = forest.predict_proba(X[1500:])
    >>> for start in range(0, 1500, 500):
    ...     local = local.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool((probabilities == local.predict_proba(X[1500:])).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [BaseMondrianForest],
        "n_shards": [Interval(Integral, 1, None, closed="left"), None],
        "actor_options": [Mapping, None],
        "folder": [str, os.PathLike, None],
        "snapshot_every": [Interval(Integral, 1, None, closed="left")],
        "max_in_flight": [Interval(Integral, 1, None, closed="left")],
        "recovery_timeout": [Interval(Real, 0, None, closed="neither")],
    }
    _estimator: BaseMondrianForest
    _current: ShardedForest | None = None  # the shards there are
    _snapshots: Snapshots | None = None
    _runs: frozenset[str] = frozenset()  # whose snapshots may be replaced
    _n_batches = 0
    _n_cpus = 1.0  # of each shard
    _seconds_of_starting = 0.0
    _next_snapshot = 0

    def __init__(
        self,
        estimator: BaseMondrianForest,
        *,
        n_shards: int | None = None,
        actor_options: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        snapshot_every: int = 100,
        max_in_flight: int = 4,
        recovery_timeout: float = 120.0,
    ) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.actor_options = actor_options
        self.folder = folder
        self.snapshot_every = snapshot_every
        self.max_in_flight = max_in_flight
        self.recovery_timeout = recovery_timeout

    # Learning and forgetting.

    def fit(self, X: ArrayLike, y: ArrayLike, ids: Iterable[Id] | None = None) -> Self:
        """Learn a forest from these samples alone.

        The shards of a forest that was there are ended first, when X and y are sound: unlike with
        a local estimator, it is gone if `fit` is then interrupted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes or values.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` can find the samples.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     float(forest.fit([[0.0], [1.0]], [10.0, 20.0]).predict([[1.0]])[0].round())
        20.0
        """
        self._validate_params()
        with self._own_lock():
            estimator = self._new_estimator()
            try:
                estimator.fit(X, y, ids=ids)
            except BaseException:
                self._close_unless_used_by(self.__dict__.get("_estimator"))
                raise
            self._use(estimator)
            self._n_batches = 1
            if self._snapshots is not None:  # those of the forest that was there before
                self._snapshots.drop_all()
            self._take_snapshot_if_due()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Learn more samples; on a new forest, the first ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes or values.
        **options : classes, ids
            As those of the estimator's `partial_fit`.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.partial_fit([[0.0], [1.0]], ["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        self._change("partial_fit", X, y, **options)
        return self

    def learn_one(self, x: ArrayLike, y: Any, id: Id | None = None) -> Self:
        """Learn one more sample. For tests and the like: batches of 1,000 are for Ray.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The sample.
        y : str, int, bool or float
            Its class or value.
        id : int or str, default=None
            A name by which `forget` can find the sample.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.learn_one([0.0], "no").n_samples_seen_
        1
        """
        self._change("learn_one", x, y, id=id)
        return self

    def forget(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Forget samples, as if they had never been learned; as the estimator's `forget`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The samples, with `y`.
        y : array-like of shape (n_samples,), default=None
            Their classes or values.
        ids : iterable of int or str, default=None
            Or their ids.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest = forest.fit([[0.0], [1.0]], ["no", "yes"], ids=["a", "b"])
        ...     forest.forget(ids=["a"]).n_samples_stored_
        1
        """
        check_is_fitted(self)
        self._change("forget", X, y, ids=ids)
        return self

    def keep_latest(self, n_samples: int) -> Self:
        """Forget all but the latest samples; as the estimator's `keep_latest`.

        Parameters
        ----------
        n_samples : int
            How many to keep.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest.fit([[0.0], [1.0]], ["old", "new"]).keep_latest(1).n_samples_stored_
        1
        """
        check_is_fitted(self)
        self._change("keep_latest", n_samples)
        return self

    def refresh_weights(self) -> Self:
        """Compute the weights of the features anew; as the estimator's `refresh_weights`.

        Returns
        -------
        RayForest
            The forest itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(feature_weights="range", random_state=0)
        >>> with RayForest(local, n_shards=1) as forest:
        ...     forest = forest.partial_fit([[0.0], [2.0]], [0, 1]).partial_fit([[4.0]], [1])
        ...     forest.refresh_weights().feature_weights_
        array([0.25])
        """
        check_is_fitted(self)
        self._change("refresh_weights")
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
        """Learn a stream of batches, while the next ones are on their way.

        The result is that of `partial_fit` of one batch after the other. At most `max_in_flight`
        batches are under way: a stream that is quicker than the slowest shard has to wait.

        Parameters
        ----------
        batches : iterable of (X, y), or ray.data.Dataset
            The batches. Of a dataset, `target` is the column of y, all others are X. Its blocks
            come in an order of their own unless Ray is told to preserve it.
        target : str or None, default=None
            For a dataset.
        batch_size : int, default=1000
            For a dataset: rows per batch.
        first : int or None, default=None
            The number of the first batch, counted over all batches the forest has learned (see
            `n_batches_`), if the stream is one that was begun before: what was learned is skipped,
            and if batches between are missing, nothing is learned. 0 for a stream that is begun
            anew. None: all batches are new.
        progress : callable or None, default=None
            Called with a `StreamReport` after each batch was sent; up to `max_in_flight` of them
            are still being learned then.

        Returns
        -------
        StreamReport
            How many batches were learned, and how quickly.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> X, y = load_digits(return_X_y=True)
        >>> batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 1500, 500)]
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=2) as forest:
        ...     forest.learn_stream(batches).n_rows
        1500
        """
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be a function or None. Got {progress!r}.")
        done = self.n_batches_ if self.__sklearn_is_fitted__() else 0
        first = done if first is None else first
        if not isinstance(first, Integral) or isinstance(first, bool) or first < 0:
            raise ValueError(f"first must be a whole number, at least 0, or None. Got {first!r}.")
        if first > done:
            raise ValueError(
                f"The stream begins with batch {first}, but only {done} batches were learned: "
                f"batches {done} to {first - 1} are missing."
            )
        started = time.monotonic() - self._seconds_of_starting
        n_batches = n_rows = 0

        def report() -> StreamReport:
            seconds = time.monotonic() - self._seconds_of_starting - started
            return StreamReport(n_batches, n_rows, seconds, self._n_recoveries())

        def learn(batch: Any) -> None:
            nonlocal n_batches, n_rows
            X, y = _pair(batch)
            try:
                self.partial_fit(X, y)
            except (ValueError, TypeError) as error:
                error.add_note(f"This was batch {done + n_batches}, counted from 0.")
                raise
            n_batches += 1
            n_rows += len(y)
            if progress is not None:
                progress(report())

        source = iter(_batches_of(batches, target, batch_size))
        for _ in range(done - first):
            next(source, None)
        if done == 0:  # the first batch starts the shards
            for batch in source:
                learn(batch)
                break
        if self.__sklearn_is_fitted__():
            if hasattr(batches, "iter_batches"):
                self._warn_if_no_processor_is_left()
            with self._sharded().pipelined():
                for batch in source:
                    learn(batch)
        return report()

    def _warn_if_no_processor_is_left(self) -> None:
        taken = self.n_shards_ * self._n_cpus
        there = ray.cluster_resources().get("CPU", 0)
        if taken > 0 and there - taken < 1:
            warnings.warn(
                f"The shards hold {taken:g} of {there:g} processors: a dataset that has something "
                "to compute will wait for ever. Take fewer shards, or smaller ones.",
                RuntimeWarning,
                stacklevel=3,
            )

    # Here and there.

    @classmethod
    def scatter(cls, estimator: BaseMondrianForest, **parameters: Any) -> RayForest:
        """Spread a fitted forest of this process over shards.

        Parameters
        ----------
        estimator : MondrianForestClassifier or MondrianForestRegressor
            The forest, which stays as it is.
        **parameters : n_shards, folder, ...
            As those of the class.

        Returns
        -------
        RayForest
            The forest, learning on exactly as the local one would.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestRegressor(n_estimators=4, random_state=0)
        >>> local = local.fit([[0.0], [1.0]], [10.0, 20.0])
        >>> with RayForest.scatter(local, n_shards=2) as forest:
        ...     bool(forest.predict([[0.3]]) == local.predict([[0.3]]))
        True
        """
        if not isinstance(estimator, BaseMondrianForest):
            raise TypeError(f"A forest of onlineforest was wanted. Got {estimator!r} instead.")
        check_is_fitted(estimator)
        forest = cls(clone(estimator), **parameters)
        forest._validate_params()
        forest._check_can_be_saved()
        contents = estimator.__getstate__()
        state: State = contents.pop("_forest")
        twin = type(estimator).__new__(type(estimator))
        twin.__setstate__(contents)
        twin._own_lock()
        twin._forest = forest._started(
            type(estimator)._core_forest,
            int(twin.n_estimators),
            twin.n_features_in_,
            twin._core_options(twin.n_features_in_) | {"seed": int(state["options.seed"][0])},
            state=state,
        )
        forest._estimator, forest._n_batches = twin, 0
        forest._take_snapshot_if_due()
        return forest

    def gather(self) -> MondrianForestClassifier | MondrianForestRegressor:
        """The forest as a plain estimator of this process.

        Returns
        -------
        MondrianForestClassifier or MondrianForestRegressor
            A copy, which learns on and predicts exactly as this one.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestClassifier(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=2) as forest:
        ...     local = forest.fit([[0.0], [1.0]], ["no", "yes"]).gather()
        >>> local.predict([[0.9]])
        array(['yes'], dtype='<U3')
        """
        check_is_fitted(self)
        contents = self._estimator.__getstate__()
        local = type(self._estimator).__new__(type(self._estimator))
        local.__setstate__(contents)
        return local

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Save the forest to a file, from which `onlineforest.load` gets a local one.

        Parameters
        ----------
        file : str, os.PathLike or binary file
            Where to save it.

        Examples
        --------
        >>> import onlineforest
        >>> from onlineforest.ray import RayForest
        >>> local = onlineforest.MondrianForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=2) as forest:
        ...     forest.fit([[0.0], [1.0]], [3.0, 7.0]).save("sevens.safetensors")
        >>> round(onlineforest.load("sevens.safetensors").predict_one([1.0]))
        7
        """
        check_is_fitted(self)
        self._estimator.save(file)

    def take_snapshot(self) -> None:
        """Let all shards write a snapshot now; `OSError` if one cannot.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> from onlineforest.ray import RayForest, load_snapshot
        >>> local = MondrianForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=2, folder="snapshots-1") as forest:
        ...     forest.fit([[0.0], [1.0]], [3.0, 7.0]).take_snapshot()
        >>> round(load_snapshot("snapshots-1").predict_one([1.0]))
        7
        """
        check_is_fitted(self)
        if self.folder is None:
            raise ValueError("take_snapshot needs a folder: RayForest(..., folder=...).")
        self._take_snapshot()

    @classmethod
    def resume(cls, folder: str | os.PathLike[str], **parameters: Any) -> RayForest:
        """Go on from the newest snapshot in a folder, with as many shards as it has.

        Each shard reads its own part: the forest need not fit into this process.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder of snapshots. More are written there.
        **parameters : actor_options, snapshot_every, ...
            As those of the class, but `n_shards`. `snapshot_every` is by default what it was; the
            others are to be given again.

        Returns
        -------
        RayForest
            The forest. `n_batches_` tells how many batches it has learned.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> local = MondrianForestRegressor(n_estimators=4, random_state=0)
        >>> with RayForest(local, n_shards=2, folder="snapshots-2") as forest:
        ...     forest.fit([[0.0], [1.0]], [3.0, 7.0]).take_snapshot()
        >>> with RayForest.resume("snapshots-2") as forest:
        ...     forest.partial_fit([[2.0]], [9.0]).n_samples_seen_
        3
        """
        if "n_shards" in parameters:
            raise TypeError(
                "A snapshot has a part for each of its shards, so n_shards cannot be chosen. For "
                "another number: RayForest.scatter(load_snapshot(folder), n_shards=...)."
            )

        def from_snapshot(snapshot: Snapshot) -> RayForest:
            contents, plan = snapshot.beside_core(), snapshot.plan
            parameters.setdefault("snapshot_every", plan["snapshot_every"])
            kind = ESTIMATORS.get(contents.metadata.get("estimator", ""))
            if kind is None:
                raise ModelFileError("The snapshot holds an estimator that is not known.")
            forest = cls(kind(), folder=folder, n_shards=plan["n_parts"], **parameters)
            forest._validate_params()

            def core_of(estimator: BaseMondrianForest, n_features: int, seed: int) -> ShardedForest:
                options = estimator._core_options(n_features) | {"seed": seed}
                n_trees = int(estimator.n_estimators)
                core = kind._core_forest
                sharded = forest._started(core, n_trees, n_features, options, resume=plan)
                sharded.check_agreement()
                return sharded

            try:
                estimator = estimator_around(kind, contents, core_of)
            except BaseException as error:
                forest.close()  # or there may be no room for those of an older snapshot
                if not isinstance(error, KeyError | ValueError | TypeError | OverflowError):
                    raise
                raise ModelFileError(f"The snapshot is not a valid one: {error}") from error
            forest.estimator = clone(estimator)
            forest._estimator, forest._n_batches = estimator, plan["batches"]
            return forest

        resumed: RayForest = newest_snapshot(folder, from_snapshot, PartUnreadableError)
        return resumed

    def close(self) -> None:
        """End the shards; what was learned since the last snapshot, or `gather`, is gone.

        Leaving a ``with`` block, but by an error, takes a last snapshot first if there is a folder.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> from onlineforest.ray import RayForest
        >>> forest = RayForest(MondrianForestRegressor(n_estimators=4), n_shards=1)
        >>> forest.fit([[0.0], [1.0]], [3.0, 7.0]).close()
        """
        if self._current is not None:
            self._current.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self._take_last_snapshot()
        finally:
            self.close()

    @property
    def n_batches_(self) -> int:
        """Number of batches learned, since the last `fit` or ever."""
        check_is_fitted(self)
        return self._n_batches

    @property
    def n_shards_(self) -> int:
        """Number of shards there are."""
        return len(self._sharded()._members)

    @property
    def n_recoveries_(self) -> int:
        """How often a shard was lost and brought back."""
        check_is_fitted(self)
        return self._n_recoveries()

    # All else is the estimator's.

    def __getattr__(self, name: str) -> Any:
        estimator = self.__dict__.get("estimator")
        if name.startswith("_") or not isinstance(estimator, BaseMondrianForest):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # Before anything is learned: what says so when it is called.
        return getattr(self.__dict__.get("_estimator") or clone(estimator), name)

    def __sklearn_is_fitted__(self) -> bool:
        return "_estimator" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            raise TypeError(
                "A RayForest that has learned something cannot be pickled: its trees are "
                "elsewhere. Pickle gather(), or save() it."
            )
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_lock"}

    def _own_lock(self) -> AbstractContextManager[bool]:
        """What keeps threads apart that change the forest, so that snapshots and counts are right.

        An estimator keeps those apart that go to the same one, but the first starts it.
        """
        lock: AbstractContextManager[bool] = self.__dict__.setdefault("_lock", threading.RLock())
        return lock

    def _sharded(self) -> ShardedForest:
        check_is_fitted(self)
        forest: ShardedForest = self._estimator._forest
        return forest

    def _n_recoveries(self) -> int:
        return self._sharded().n_recoveries if self.__sklearn_is_fitted__() else 0

    def _change(self, method: str, *arguments: Any, **keywords: Any) -> None:
        """Call a method of the estimator that changes the forest."""
        with self._own_lock():
            estimator = self.__dict__.get("_estimator")
            if estimator is None:
                self._validate_params()
                estimator = self._new_estimator()
            else:
                self._check_parameters_unchanged()
                if self._sharded().is_log_full:
                    self._take_snapshot_or_refuse()
            n_before = self._n_seen_by(estimator)
            try:
                getattr(estimator, method)(*arguments, **keywords)
            except BaseException:
                self._close_unless_used_by(estimator)
                raise
            finally:
                # An interrupt may come when the batch is on its way already: then it counts.
                if hasattr(estimator, "_forest"):
                    self._use(estimator)
                    self._n_batches += self._n_seen_by(estimator) > n_before
            self._take_snapshot_if_due()

    def _use(self, estimator: BaseMondrianForest) -> None:
        """From now on this is the forest."""
        self._estimator = estimator
        # It knows this object: nobody else may, and then its actors are to end at once.
        estimator.__dict__.pop("_core_forest", None)

    def _check_parameters_unchanged(self) -> None:
        """What the estimator itself would say if its parameters had changed."""
        if type(self.estimator) is not type(self._estimator):
            raise ValueError(
                f"This forest was started with a {type(self._estimator).__name__}, and estimator "
                f"is {self.estimator!r} now. Set it back, or start a new forest with fit."
            )
        now = clone(self.estimator)
        now._built_with = self._estimator._built_with
        now._check_parameters_unchanged()

    def _check_can_be_saved(self) -> None:
        if self.folder is not None:
            check_can_be_saved(type(self.estimator))

    @staticmethod
    def _n_seen_by(estimator: BaseMondrianForest) -> int:
        return int(estimator._forest.n_seen) if hasattr(estimator, "_forest") else 0

    def _new_estimator(self) -> BaseMondrianForest:
        """An estimator of the same parameters that starts shards in place of a core forest."""
        self._check_can_be_saved()
        estimator: BaseMondrianForest = clone(self.estimator)
        kind = type(estimator)._core_forest

        def start(n_trees: int, n_features: int, **options: Any) -> ShardedForest:
            return self._started(kind, n_trees, n_features, options)

        estimator._core_forest = start  # type: ignore[assignment]
        return estimator

    def _close_unless_used_by(self, estimator: BaseMondrianForest | None) -> None:
        """End shards that were started for a forest that is not to be."""
        if self._current is not None and getattr(estimator, "_forest", None) is not self._current:
            self._current.close()

    def _started(
        self,
        core: type[Any],
        n_trees: int,
        n_features: int,
        options: Mapping[str, Any],
        *,
        state: State | None = None,
        resume: Mapping[str, Any] | None = None,
    ) -> ShardedForest:
        """Shards of a new forest, of one whose state is given, or of one that was interrupted."""
        began = time.monotonic()
        starts_ray = not ray.is_initialized()
        if starts_ray:
            ray.init()
        given = dict(self.actor_options or {})
        n_shards, n_cpus = _shards_and_processors(self.n_shards, given.get("num_cpus"), n_trees)
        actor_options = {"scheduling_strategy": "SPREAD", **given, "num_cpus": n_cpus}
        n_threads = max(int(n_cpus), 1)
        if starts_ray:
            _check_room(n_shards, n_cpus)
        run = secrets.token_hex(8) if resume is None else str(resume["run"])
        snapshots = None if self.folder is None else self._snapshots_of(run, resume is not None)
        held = split_trees(n_trees, n_shards)
        plans = [
            PartPlan(
                core.__name__, n_trees, n_features, options, i, n_shards, held[i], n_threads, run
            )
            for i in range(n_shards)
        ]
        starts, n_seen = [Start()] * n_shards, 0
        if state is not None:
            n_seen = int(state["n_seen"][0])
            starts = [Start(state=part) for part in parts_of(state, core, plans)]
        elif resume is not None and snapshots is not None:
            position, n_seen = resume["position"], resume["n_seen"]
            files = [snapshots.part_file(position, plan.number) for plan in plans]
            starts = [Start(position, snapshot=file) for file in files]
        settings = Settings(
            max_in_flight=int(self.max_in_flight),
            recovery_timeout=float(self.recovery_timeout),
            snapshots=snapshots,
            max_log=_LOG_FACTOR * int(self.snapshot_every),
        )
        crew = RayCrew(actor_options)
        self.close()  # those of a forest that is replaced: there may be no room for both
        kind = KINDS[core.__name__]
        self._current = kind(crew, plans, starts, hello_from_here(), settings, n_seen)
        self._n_cpus = n_cpus
        self._seconds_of_starting += time.monotonic() - began
        self._runs, self._snapshots = self._runs | {run}, snapshots
        self._next_snapshot = self._current.position + (resume is not None) * self.snapshot_every
        return self._current

    def _snapshots_of(self, run: str, is_resumed: bool) -> Snapshots:
        assert self.folder is not None
        for position in [] if is_resumed else positions_in(self.folder):
            if Snapshot(self.folder, position).plan["run"] not in self._runs:
                raise ValueError(
                    f"{os.fspath(self.folder)!r} holds snapshots of another forest. Go on with it "
                    "(RayForest.resume), or choose another folder."
                )
        return Snapshots(self.folder, run)

    def _take_snapshot(self) -> None:
        forest = self._sharded()
        assert self._snapshots is not None
        with self._own_lock():
            position = forest.write_parts()
            plan = {
                "n_parts": self.n_shards_,
                "n_seen": forest.n_seen,
                "seed": forest.seed,
                "batches": self._n_batches,
                "snapshot_every": int(self.snapshot_every),
            }
            try:
                self._snapshots.finish(position, self._estimator, plan)
            except OSError:
                forest.give_up_snapshot(position)
                raise
            forest.rely_on_snapshot(position)
            self._snapshots.drop_old()

    def _take_last_snapshot(self) -> None:
        if self._snapshots is None or not self.__sklearn_is_fitted__():
            return
        forest = self._sharded()
        if not forest.is_closed and forest.n_since_snapshot > 0:
            self._take_snapshot_or_warn()

    def _take_snapshot_or_refuse(self) -> None:
        try:
            self._take_snapshot()
        except OSError as error:
            raise OSError(
                f"{error}. {self._sharded().n_since_snapshot} batches and other changes are kept "
                "since the last snapshot; no more are taken until one can be written. Nothing has "
                "changed."
            ) from error

    def _take_snapshot_if_due(self) -> None:
        """The first one comes after the first batch, so that it is known whether it can be done."""
        if self._snapshots is None:
            return
        position = self._sharded().position
        if position < self._next_snapshot:
            return
        self._next_snapshot = position + self.snapshot_every
        self._take_snapshot_or_warn()

    def _take_snapshot_or_warn(self) -> None:
        try:
            self._take_snapshot()
        except OSError as error:
            warnings.warn(
                f"No snapshot could be written, the one before stays: {error}",
                SnapshotWarning,
                stacklevel=5,
            )


def _shards_and_processors(n_shards: int | None, n_cpus: Any, n_trees: int) -> tuple[int, float]:
    """How many shards there are to be, and how many processors each is to have."""
    is_number = isinstance(n_cpus, Real) and not isinstance(n_cpus, bool)
    if n_cpus is not None and not (is_number and 0 <= n_cpus < math.inf):
        raise ValueError(f"num_cpus of actor_options must be a number, at least 0. Got {n_cpus!r}.")
    if n_shards is None:
        nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        nodes = [n for n in nodes if n > 0] or [1]
        if n_cpus is None:  # one is left for whatever else goes on there
            n_shards, n_cpus = len(nodes), max(min(nodes) - 1, 1)
        else:
            n_shards = sum(int(n // (n_cpus or 1)) for n in nodes)
    return min(max(int(n_shards), 1), n_trees), 1.0 if n_cpus is None else float(n_cpus)


def _check_room(n_shards: int, n_cpus: float) -> None:
    """Raise if there is no room for shards, and will be none: on this machine alone."""
    there = ray.cluster_resources().get("CPU", 0)
    if len(ray.nodes()) == 1 and n_shards * n_cpus > there:
        raise ValueError(
            f"{n_shards} shards of {n_cpus:g} processors would need {n_shards * n_cpus:g}, but "
            f"this machine, on which Ray was started, has {there:g}: room for "
            f"{int(there // n_cpus)} of that size. Take fewer (n_shards), or smaller ones "
            "(actor_options={'num_cpus': ...})."
        )


def load_snapshot(
    folder: str | os.PathLike[str], *, max_bytes: int | None = None
) -> MondrianForestClassifier | MondrianForestRegressor:
    """The newest snapshot of a `RayForest` as a plain estimator of this process. Ray need not run.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder of snapshots.
    max_bytes : int or None, default=None
        Refuse a forest that would take more bytes in memory, as in `onlineforest.load`.

    Returns
    -------
    MondrianForestClassifier or MondrianForestRegressor
        The forest.

    Examples
    --------
    >>> from onlineforest import MondrianForestRegressor
    >>> from onlineforest.ray import RayForest, load_snapshot
    >>> local = MondrianForestRegressor(n_estimators=4, random_state=0)
    >>> with RayForest(local, n_shards=2, folder="snapshots-3") as forest:
    ...     forest.fit([[0.0], [1.0]], [3.0, 7.0]).take_snapshot()
    >>> load_snapshot("snapshots-3").n_samples_seen_
    2
    """
    forest: MondrianForestClassifier | MondrianForestRegressor = newest_snapshot(
        folder, lambda snapshot: snapshot.estimator(ESTIMATORS, max_bytes)
    )
    return forest


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"A batch must be a pair of X and y. Got one of {type(batch)} instead.")
    return batch[0], batch[1]


def _batches_of(batches: Any, target: str | None, batch_size: int) -> Iterable[tuple[Any, Any]]:
    """Pairs of X and y, of an iterable of such or of a dataset of Ray."""
    if not hasattr(batches, "iter_batches"):
        if target is not None:
            raise ValueError("target is for a dataset of Ray; batches are pairs of X and y.")
        yield from batches
        return
    if not isinstance(batch_size, Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number, at least 1. Got {batch_size!r}.")
    if target is None:
        raise ValueError("Which column of the dataset is y? Give target.")
    for table in batches.iter_batches(batch_size=batch_size, batch_format="pyarrow"):
        if target not in table.column_names:
            raise ValueError(f"The dataset has no column {target!r}, only {table.column_names}.")
        yield table.drop_columns([target]), table.column(target).to_numpy()
