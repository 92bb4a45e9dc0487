"""Errors and warnings of sharded forests."""

from __future__ import annotations


class ShardLostError(RuntimeError):
    """A shard was lost and could not be restored; the message says what to do.

    Everything learned up to the last snapshot is safe: `load_snapshot` reads it. The next call
    tries to restore the shard again.

    Examples
    --------
    >>> from onlineforest.ray import ShardLostError
    >>> issubclass(ShardLostError, RuntimeError)
    True
    """

    __module__ = "onlineforest.ray"


class ShardUnreadableError(ShardLostError):
    """A shard cannot start from its snapshot."""


class SnapshotWarning(UserWarning):
    """A snapshot could not be written or read.

    Examples
    --------
    >>> import warnings
    >>> from onlineforest.ray import SnapshotWarning
    >>> warnings.simplefilter("error", SnapshotWarning)  # stop instead
    >>> warnings.simplefilter("default", SnapshotWarning)
    """

    __module__ = "onlineforest.ray"


class MemberLostError(Exception):
    """A crew cannot reach the process of a shard. The driver restores the shard or gives up."""


class GapError(RuntimeError):
    """A shard missed an operation: its position is not the one that the driver assumes."""
