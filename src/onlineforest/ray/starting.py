"""Starts the shards of a forest on Ray: how many, with which resources, and from what.

Must not know estimators: it is a source of core forests for them.
"""

from __future__ import annotations

import math
import os
import secrets
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import ray
from onlineforest._distributed.keeper import Settings, ShardKeeper
from onlineforest._distributed.shard import ShardPlan, Start, hello_from_here
from onlineforest._distributed.sharded import SHARDED_FORESTS, split_state
from onlineforest._distributed.sharded_base import ShardedForest
from onlineforest._distributed.snapshots import Snapshot, Snapshots, Summary, positions_in
from onlineforest._distributed.splitting import split_trees
from onlineforest._models.core import Core, CoreSpec, State
from onlineforest.ray.crew import RayCrew
from onlineforest.ray.schedule import SnapshotSchedule

_LOG_FACTOR = 4  # operations stored without a snapshot, in units of `snapshot_every`

StartsOf = Callable[[list[ShardPlan], Snapshots | None], list[Start]]


@dataclass(frozen=True)
class StartParameters:
    """The parameters of a `RayForest` that decide how its shards start."""

    n_shards: int | None
    actor_options: Mapping[str, Any]
    folder: str | os.PathLike[str] | None
    snapshot_every: int
    max_in_flight: int
    recovery_timeout: float


class RayCores:
    """A source of core forests whose trees live in Ray actors. It keeps one forest at a time.

    Attributes
    ----------
    parameters : StartParameters
        How shards start. Must be set before a forest is started.
    current : ShardedForest or None
        The latest forest. Its shards may be closed.
    schedule : SnapshotSchedule or None
        Takes the snapshots of the latest forest.
    starting_seconds : float
        Total time spent on starting shards.
    """

    parameters: StartParameters

    def __init__(self) -> None:
        self.current: ShardedForest | None = None
        self.schedule: SnapshotSchedule | None = None
        self.starting_seconds = 0.0
        self._n_cpus = 1.0  # of each shard
        self._runs: frozenset[str] = frozenset()  # whose snapshots may be replaced

    def new(self, spec: CoreSpec[Core]) -> Core:
        """An empty forest."""
        return cast(Core, self._start(spec, _start_empty, n_seen=0))

    def restore(self, spec: CoreSpec[Core], state: State) -> Core:
        """The forest of this state."""

        def from_state(plans: list[ShardPlan], _: Snapshots | None) -> list[Start]:
            return [Start(state=shard) for shard in split_state(state, plans)]

        return cast(Core, self._start(spec, from_state, n_seen=int(state["n_seen"][0])))

    def resume(self, spec: CoreSpec[Any], summary: Summary) -> ShardedForest:
        """The forest of a snapshot; each shard reads its own file."""

        def from_snapshot(plans: list[ShardPlan], snapshots: Snapshots | None) -> list[Start]:
            assert snapshots is not None
            files = [snapshots.shard_file(summary.position, plan.number) for plan in plans]
            return [Start(summary.position, snapshot=file) for file in files]

        forest = self._start(spec, from_snapshot, summary.n_seen, resumed_run=summary.run)
        forest.keeper.check_agreement()
        return forest

    def close(self) -> None:
        """End the shards of the forest."""
        if self.current is not None:
            self.current.keeper.close()

    def close_unless(self, used: object) -> None:
        """End the shards of the forest, unless it is the one in use."""
        if self.current is not used:
            self.close()

    def warn_if_no_processor_is_left(self) -> None:
        """Warn if a Ray dataset cannot compute anything while the shards run."""
        if self.current is None:
            return
        taken = self.current.n_shards * self._n_cpus
        total = ray.cluster_resources().get("CPU", 0)
        if taken > 0 and total - taken < 1:
            warnings.warn(
                f"The shards hold {taken:g} of {total:g} processors: a dataset that has something "
                "to compute would wait forever. Use fewer or smaller shards.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _start(
        self,
        spec: CoreSpec[Any],
        starts_of: StartsOf,
        n_seen: int,
        resumed_run: str | None = None,
    ) -> ShardedForest:
        began = time.monotonic()
        parameters = self.parameters
        n_shards, n_cpus = self._allocate(spec.n_trees)
        run = secrets.token_hex(8) if resumed_run is None else resumed_run
        snapshots = self._snapshots_of(run, is_resumed=resumed_run is not None)
        held = split_trees(spec.n_trees, n_shards)
        n_threads = max(int(n_cpus), 1)
        plans = [ShardPlan(spec, i, n_shards, held[i], n_threads, run) for i in range(n_shards)]
        starts = starts_of(plans, snapshots)
        settings = Settings(
            max_in_flight=parameters.max_in_flight,
            recovery_timeout=parameters.recovery_timeout,
            snapshots=snapshots,
            max_log=_LOG_FACTOR * parameters.snapshot_every,
        )
        actor_options = {
            "scheduling_strategy": "SPREAD", **parameters.actor_options, "num_cpus": n_cpus
        }  # fmt: skip
        crew = RayCrew(actor_options)
        self.close()  # the cluster may not have room for both forests
        keeper = ShardKeeper(crew, plans, starts, hello_from_here(), settings, n_seen)
        forest = SHARDED_FORESTS[spec.kind.name](keeper)
        self.current = forest
        self._n_cpus = n_cpus
        self.starting_seconds += time.monotonic() - began
        self._runs |= {run}
        first_wait = 0 if resumed_run is None else parameters.snapshot_every
        self.schedule = SnapshotSchedule(forest, snapshots, keeper.position + first_wait)
        return forest

    def _allocate(self, n_trees: int) -> tuple[int, float]:
        """Start Ray if necessary; the number of shards, and the processors of each."""
        starts_ray = not ray.is_initialized()
        if starts_ray:
            ray.init()
        n_shards, n_cpus = shards_and_processors(
            self.parameters.n_shards, self.parameters.actor_options.get("num_cpus"), n_trees
        )
        if starts_ray:
            _check_room(n_shards, n_cpus)
        return n_shards, n_cpus

    def _snapshots_of(self, run: str, *, is_resumed: bool) -> Snapshots | None:
        folder = self.parameters.folder
        if folder is None:
            return None
        for position in [] if is_resumed else positions_in(folder):
            if Snapshot(folder, position).summary.run not in self._runs:
                raise ValueError(
                    f"{os.fspath(folder)!r} holds snapshots of another forest. Continue it with "
                    "RayForest.resume, or choose another folder."
                )
        return Snapshots(folder, run)


def _start_empty(plans: list[ShardPlan], _: Snapshots | None) -> list[Start]:
    return [Start()] * len(plans)


def shards_and_processors(n_shards: int | None, n_cpus: Any, n_trees: int) -> tuple[int, float]:
    """The number of shards, and the number of processors of each.

    Parameters
    ----------
    n_shards : int or None
        The parameter of `RayForest`.
    n_cpus : object
        The actor option ``num_cpus``, None if it was not given.
    n_trees : int
        Number of trees.
    """
    is_number = isinstance(n_cpus, Real) and not isinstance(n_cpus, bool)
    if n_cpus is not None and not (is_number and 0 <= n_cpus < math.inf):
        raise ValueError(f"num_cpus of actor_options must be a number, at least 0. Got {n_cpus!r}.")
    if n_shards is None:
        nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        nodes = [n for n in nodes if n > 0] or [1]
        if n_cpus is None:  # one processor is left for everything else on the node
            n_shards, n_cpus = len(nodes), max(min(nodes) - 1, 1)
        else:
            n_shards = sum(int(n // (n_cpus or 1)) for n in nodes)
    return min(max(int(n_shards), 1), n_trees), 1.0 if n_cpus is None else float(n_cpus)


def _check_room(n_shards: int, n_cpus: float) -> None:
    """Raise if the shards do not fit on this machine and no other node is there."""
    total = ray.cluster_resources().get("CPU", 0)
    if len(ray.nodes()) == 1 and n_shards * n_cpus > total:
        raise ValueError(
            f"{n_shards} shards of {n_cpus:g} processors need {n_shards * n_cpus:g}, but this "
            f"machine, on which Ray was started, has {total:g}: enough for "
            f"{int(total // n_cpus)} shards of that size. Use fewer (n_shards) or smaller shards "
            "(actor_options={'num_cpus': ...})."
        )
