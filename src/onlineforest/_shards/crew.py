"""The interface of a crew, which keeps the processes of shards and carries messages.

Must not know what the messages say, or which framework starts the processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from onlineforest._shards.messages import Message
from onlineforest._shards.shard import ShardPlan, Start

Sent = Any
"""A message as a crew sends it: a copy, or a reference to a copy that all shards share."""
Pending = Any
"""A reply that has not arrived yet. Only the crew that made it can look inside."""


class Crew(ABC):
    """Keeps the shards of a forest, each in a process of its own, and carries messages.

    Shards have numbers. A shard handles its messages one after the other, in the order of calls.
    A method raises `MemberLostError` if it cannot reach the process.
    """

    @abstractmethod
    def put(self, message: Message | Start) -> Sent:
        """Copy a message, so that it can be sent to several shards, and again later."""

    @abstractmethod
    def start(self, plan: ShardPlan, start: Sent) -> None:
        """Start the process of a shard; end an older process of the same number."""

    @abstractmethod
    def call(self, shard: int, method: str, *arguments: Any) -> Pending:
        """Call `hello`, `carry_out` or `ask` of a `Shard`."""

    @abstractmethod
    def get(self, pending: Pending, timeout: float | None = None) -> Any:
        """Wait for a reply; raises `MemberLostError`, or `TimeoutError` after `timeout` seconds."""

    @abstractmethod
    def resources(self, n_shards: int) -> str:
        """Describe which resources shards need and which are available."""

    @abstractmethod
    def close(self) -> None:
        """End all processes."""
