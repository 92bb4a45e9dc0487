"""The interface of a crew, which keeps the processes of shards and carries messages.

Must not know what the messages say, or which framework starts the processes.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from onlineforest._distributed.messages import Message
from onlineforest._distributed.shard import Hello, Outcome, ShardPlan, Start

Sent = Any
"""A message as a crew sends it: a copy, or a reference to a copy that all shards share."""
Reply = TypeVar("Reply", Hello, Outcome)
Reply_co = TypeVar("Reply_co", covariant=True)


class Pending(Protocol[Reply_co]):
    """A reply that has not arrived yet. Only the crew that made it can look inside."""


class Crew(Protocol):
    """Keeps the shards of a forest, each in a process of its own, and carries messages.

    Shards have numbers. A shard handles its messages one after the other, in the order of calls.
    A method raises `MemberLostError` if it cannot reach the process.
    """

    def start(self, plan: ShardPlan, start: Start) -> None:
        """Start the process of a shard; end an older process of the same number."""

    def put(self, message: Message) -> Sent:
        """Copy a message, so that it can be sent to several shards, and again later."""

    def hello(self, shard: int) -> Pending[Hello]:
        """Call `Shard.hello`."""

    def carry_out(self, shard: int, number: int, operation: Sent) -> Pending[Outcome]:
        """Call `Shard.carry_out`."""

    def ask(self, shard: int, question: Sent, position: int) -> Pending[Outcome]:
        """Call `Shard.ask`."""

    def snapshot(self, shard: int, path: str, position: int) -> Pending[Outcome]:
        """Call `Shard.snapshot`."""

    def get(self, pending: Pending[Reply], timeout: float | None = None) -> Reply:
        """Wait for a reply; raises `MemberLostError`, or `TimeoutError` after `timeout` seconds."""

    def resources(self, n_shards: int) -> str:
        """Describe which resources shards need and which are available."""

    def close(self) -> None:
        """End all processes."""
