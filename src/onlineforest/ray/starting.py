"""Starts the shards of a forest on Ray: how many, with which resources, and from which state.

Must not know estimators: it is a source of core forests for them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import ray
from onlineforest._forests.core import Core, CoreSource, CoreSpec, OrderFreeCore, State
from onlineforest._shards.keeper import Settings, ShardKeeper
from onlineforest._shards.shard import Start, hello_from_here, plans_of
from onlineforest._shards.sharded import SHARDED_FORESTS, ShardedForest
from onlineforest.ray.crew import RayCrew


@dataclass(frozen=True)
class StartParameters:
    """The parameters of a `RayForest` that decide how its shards start."""

    n_shards: int | None
    actor_options: Mapping[str, Any]
    settings: Settings


class RayCores(CoreSource):
    """A source of core forests whose trees live in Ray actors. It keeps one forest at a time.

    Attributes
    ----------
    parameters : StartParameters
        How shards start. Must be set before a forest is started.
    current : ShardedForest or None
        The latest forest. Its shards may be closed.
    starting_seconds : float
        Total time spent on starting shards.
    """

    parameters: StartParameters

    def __init__(self) -> None:
        self.current: ShardedForest | None = None
        self.starting_seconds = 0.0
        self._n_cpus = 1.0  # processors of each shard

    def new(self, spec: CoreSpec[Core]) -> Core:
        """An empty forest."""
        return cast(Core, self._start(spec, Start()))

    def restore(self, spec: CoreSpec[Core], state: State) -> Core:
        """The forest of this state."""
        return cast(Core, self._start(spec, Start(state=state)))

    def are_trees_of_samples(self, core: OrderFreeCore) -> bool:
        """Whether each shard grows the trees that it has from its samples again."""
        return cast(ShardedForest, core).are_trees_of_samples()

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

    def _start(self, spec: CoreSpec[Any], start: Start) -> ShardedForest:
        began = time.monotonic()
        n_shards, n_cpus = self._allocate(spec.n_trees)
        actor_options = {
            "scheduling_strategy": "SPREAD", **self.parameters.actor_options, "num_cpus": n_cpus
        }  # fmt: skip
        crew = RayCrew(actor_options)
        self.close()  # the cluster may not have room for both forests
        plans = plans_of(spec, n_shards, n_threads=max(int(n_cpus), 1))
        keeper = ShardKeeper(crew, plans, start, hello_from_here(), self.parameters.settings)
        forest = SHARDED_FORESTS[spec.kind.name](keeper)
        self.current = forest
        self._n_cpus = n_cpus
        self.starting_seconds += time.monotonic() - began
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
