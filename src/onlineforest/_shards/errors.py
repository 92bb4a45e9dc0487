"""Errors of sharded forests."""

from __future__ import annotations


class ShardLostError(RuntimeError):
    """A shard was lost and could not be made anew; the message says what to do.

    If other shards live, the next call tries again. If none does, the model file, if there is one,
    holds the forest as it was saved last: `RayForest.resume` continues from it.

    Examples
    --------
    >>> from onlineforest.ray import ShardLostError
    >>> issubclass(ShardLostError, RuntimeError)
    True
    """

    __module__ = "onlineforest.ray"


class MemberLostError(Exception):
    """A crew cannot reach the process of a shard. The driver makes it anew or gives up."""


class GapError(RuntimeError):
    """A shard missed an operation: its position is not the one that the driver assumes."""
