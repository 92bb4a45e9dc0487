"""When a forest on Ray takes snapshots, and what happens if it cannot."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from onlineforest._distributed.errors import SnapshotWarning
from onlineforest._distributed.sharded_base import ShardedForest
from onlineforest._distributed.snapshots import Snapshots, Summary
from onlineforest._models.base import BaseForest


@dataclass(frozen=True)
class Moment:
    """What a snapshot stores besides the shards."""

    estimator: BaseForest[Any]
    n_batches: int
    snapshot_every: int


class SnapshotSchedule:
    """Takes the snapshots of one sharded forest.

    Parameters
    ----------
    forest : ShardedForest
        The forest.
    snapshots : Snapshots or None
        Where snapshots are written; None: none are taken.
    next_position : int
        The number of operations after which the next snapshot is due.
    """

    def __init__(
        self, forest: ShardedForest, snapshots: Snapshots | None, next_position: int
    ) -> None:
        self._forest = forest
        self._snapshots = snapshots
        self._next_position = next_position

    def take(self, moment: Moment) -> None:
        """Take a snapshot now; `OSError` if it cannot be written."""
        keeper = self._forest.keeper
        position = keeper.write_shards()
        assert self._snapshots is not None  # or write_shards would have raised
        summary = Summary(
            run=self._snapshots.run,
            position=position,
            n_shards=self._forest.n_shards,
            n_seen=self._forest.n_seen,
            seed=self._forest.seed,
            n_batches=moment.n_batches,
            snapshot_every=moment.snapshot_every,
        )
        try:
            self._snapshots.finish(moment.estimator, summary)
        except OSError:
            keeper.give_up_snapshot(position)
            raise
        keeper.rely_on_snapshot(position)
        self._snapshots.drop_old()

    def take_if_due(self, moment: Moment) -> None:
        """Take a snapshot if enough operations came since the last; warn if it cannot be written.

        The first snapshot is due after the first batch, which shows whether the folder works.
        """
        position = self._forest.keeper.position
        if self._snapshots is None or position < self._next_position:
            return
        self._next_position = position + moment.snapshot_every
        self._take_or_warn(moment)

    def take_last(self, moment: Moment) -> None:
        """Take a snapshot if anything changed since the last; warn if it cannot be written."""
        keeper = self._forest.keeper
        if self._snapshots is None or keeper.is_closed or keeper.n_since_snapshot == 0:
            return
        self._take_or_warn(moment)

    def make_room(self, moment: Moment) -> None:
        """Take a snapshot if no more operations can be stored without one; raise if it fails."""
        if not self._forest.keeper.is_log_full:
            return
        try:
            self.take(moment)
        except OSError as error:
            raise OSError(
                f"{error}. {self._forest.keeper.n_since_snapshot} batches and other changes are "
                "stored since the last snapshot. No more are accepted until one can be written. "
                "Nothing has changed."
            ) from error

    def drop_all(self) -> None:
        """Remove all snapshots in the folder."""
        if self._snapshots is not None:
            self._snapshots.drop_all()

    def _take_or_warn(self, moment: Moment) -> None:
        try:
            self.take(moment)
        except OSError as error:
            warnings.warn(
                f"No snapshot could be written; the one before stays: {error}",
                SnapshotWarning,
                stacklevel=6,
            )
