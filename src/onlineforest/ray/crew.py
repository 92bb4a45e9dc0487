"""A crew of Ray actors. The only file that talks to Ray about actors."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import ray
from onlineforest._shards.crew import Crew, Pending, Sent
from onlineforest._shards.errors import MemberLostError, ShardLostError
from onlineforest._shards.messages import Message, nbytes_of
from onlineforest._shards.shard import Shard, ShardPlan, Start
from ray import exceptions

_SMALL = 2**16  # bytes: smaller messages travel with each call, not through the object store
_POLL_SECONDS = 0.2  # longest wait before a Ctrl-C is handled


class RayCrew(Crew):
    """Keeps the shards of a forest as Ray actors.

    Parameters
    ----------
    actor_options : mapping
        Options of Ray for each actor.
    """

    def __init__(self, actor_options: Mapping[str, Any]) -> None:
        # The driver starts lost actors anew, since Ray does not know what they had learned.
        # An actor handles one message at a time.
        fixed = {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": 1}
        self._options = {**actor_options, **fixed}
        self._actor_class = ray.remote(Shard)
        self._actors: dict[int, Any] = {}
        self._ray = _this_ray()

    def put(self, message: Message | Start) -> Sent:
        """Copy a message; a large one into the object store, where all actors can read it.

        The caller may overwrite the arrays afterwards, and the message may be sent again.
        """
        self._check_ray()
        return copy.deepcopy(message) if nbytes_of(message) < _SMALL else ray.put(message)

    def start(self, plan: ShardPlan, start: Sent) -> None:
        """Start an actor; end an older one of the same number."""
        self._check_ray()
        self._end(plan.number)
        with _losses():
            actor_class = self._actor_class.options(**self._options)
            self._actors[plan.number] = actor_class.remote(plan, start)

    def call(self, shard: int, method: str, *arguments: Any) -> Pending:
        """Call a method of a `Shard`. Ray keeps the order of calls."""
        self._check_ray()
        with _losses():
            return getattr(self._actors[shard], method).remote(*arguments)

    def get(self, pending: Pending, timeout: float | None = None) -> Any:
        """Wait for a reply, as long as the actor lives or `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _POLL_SECONDS
            if deadline is not None:
                wait = min(wait, max(deadline - time.monotonic(), 0.0))
            self._check_ray()
            try:
                return ray.get(pending, timeout=wait)
            except exceptions.GetTimeoutError:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError from None
            except (exceptions.RayError, MemoryError) as error:
                raise MemberLostError(_first_lines(error)) from error

    def resources(self, n_shards: int) -> str:
        """Describe which resources the actors need and which the cluster has."""
        needed = {"CPU": self._options.get("num_cpus", 1)} | (self._options.get("resources") or {})
        total, free = ray.cluster_resources(), ray.available_resources()
        return " ".join(
            f"{n_shards} shards of {amount:g} {name} need {n_shards * amount:g}; the cluster has "
            f"{total.get(name, 0):g}, {free.get(name, 0):g} of them free."
            for name, amount in needed.items()
        )

    def close(self) -> None:
        """End all actors."""
        for number in list(self._actors):
            self._end(number)

    def _check_ray(self) -> None:
        """Raise if Ray was shut down: a call would start a new Ray, which lacks our actors."""
        if _this_ray() != self._ray:
            raise ShardLostError(
                "Ray was shut down, and the shards with it. fit starts new ones; "
                "RayForest.resume continues from the model file, if there is one."
            )

    def _end(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None and _this_ray() == self._ray:
            with suppress(exceptions.RayError, ValueError):
                ray.kill(actor)


@contextmanager
def _losses() -> Iterator[None]:
    """Turns errors of Ray into `MemberLostError`."""
    try:
        yield
    except exceptions.RayError as error:
        raise MemberLostError(_first_lines(error)) from error


def _this_ray() -> tuple[str, str] | None:
    """Identifies the running Ray; None if none runs. A Ray started later gives another value."""
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()


def _first_lines(error: BaseException) -> str:
    """The text of an error of Ray, without the stacks and addresses of other machines."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = " ".join(lines[:3])
    return f"{type(cause).__name__}: {text[:400]}"
