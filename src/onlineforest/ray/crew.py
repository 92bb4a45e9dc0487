"""Parts of a forest as Ray actors. The only file that talks to Ray about actors."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ray
from onlineforest._distributed.keeping import MemberLostError, ShardLostError
from onlineforest._distributed.shard import PartPlan, Shard, Start
from ray import exceptions

_SMALL = 2**16  # bytes: what is smaller goes with each call rather than into the object store
_BETWEEN_SIGNALS = 0.2  # seconds of waiting before a Ctrl-C is heeded


class RayCrew:
    """Keeps the parts of a forest as Ray actors.

    Parameters
    ----------
    actor_options : mapping
        Options of Ray for each actor.
    """

    def __init__(self, actor_options: Mapping[str, Any]) -> None:
        # Lost actors are started anew by whoever knows what they missed, not by Ray. And they do
        # one thing after the other.
        own = {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": 1}
        self._options = {**actor_options, **own}
        self._actor_class = ray.remote(Shard)
        self._actors: dict[int, Any] = {}
        self._ray = _this_ray()

    def start(self, plan: PartPlan, start: Start) -> None:
        """Start an actor, in place of one that was there."""
        self._check_ray()
        self._end(plan.number)
        try:
            self._actors[plan.number] = self._actor_class.options(**self._options).remote(
                plan, start
            )
        except exceptions.RayError as error:
            raise MemberLostError(_first_lines(error)) from error

    def put(self, value: Any) -> Any:
        """A copy of a value, or where it is in the object store: there once for all actors.

        What is given may change afterwards, but may be sent again.
        """
        self._check_ray()
        arrays = value if isinstance(value, tuple) else (value,)
        n_bytes = sum(getattr(array, "nbytes", 0) for array in arrays)
        return copy.deepcopy(value) if n_bytes < _SMALL else ray.put(value)

    def call(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of an actor; Ray keeps the order of calls."""
        self._check_ray()
        try:
            return getattr(self._actors[number], method).remote(*arguments)
        except exceptions.RayError as error:
            raise MemberLostError(_first_lines(error)) from error

    def get(self, handle: Any, timeout: float | None = None) -> Any:
        """What a method returned; waits as long as the actor lives, unless a timeout is given."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _BETWEEN_SIGNALS
            if deadline is not None:
                wait = min(wait, max(deadline - time.monotonic(), 0.0))
            self._check_ray()
            try:
                return ray.get(handle, timeout=wait)
            except exceptions.GetTimeoutError:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError from None
            except (exceptions.RayError, MemoryError) as error:
                raise MemberLostError(_first_lines(error)) from error

    def resources(self, n_parts: int) -> str:
        """What actors need and what there is, in words."""
        needed = {"CPU": self._options.get("num_cpus", 1)} | (self._options.get("resources") or {})
        there, free = ray.cluster_resources(), ray.available_resources()
        return " ".join(
            f"{n_parts} shards of {amount:g} {name} need {n_parts * amount:g}; the cluster has "
            f"{there.get(name, 0):g}, of which {free.get(name, 0):g} are free now."
            for name, amount in needed.items()
        )

    def close(self) -> None:
        """End all actors."""
        for number in list(self._actors):
            self._end(number)

    def _check_ray(self) -> None:
        """Raise if Ray was shut down: it would start another, where other things have our names."""
        if _this_ray() != self._ray:
            raise ShardLostError(
                "Ray was shut down, and the shards with it. fit starts new ones, and "
                "RayForest.resume goes on with the last snapshot, if there is a folder of them."
            )

    def _end(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None and _this_ray() == self._ray:
            with suppress(exceptions.RayError, ValueError):
                ray.kill(actor)


def _this_ray() -> tuple[str, str] | None:
    """Tells a Ray from one that is started, or connected to, later; None if there is none."""
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()


def _first_lines(error: BaseException) -> str:
    """What an error of Ray says, without the addresses and stacks of other machines."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = " ".join(lines[:3])
    return f"{type(cause).__name__}: {text[:400]}"
