"""The same forest on a Ray cluster, bit for bit: sharded by trees, each shard an actor."""

from onlineforest._distributed.keeping import ShardLostError
from onlineforest._distributed.snapshots import SnapshotWarning
from onlineforest.ray.forest import RayForest, StreamReport, load_snapshot

__all__ = ["RayForest", "ShardLostError", "SnapshotWarning", "StreamReport", "load_snapshot"]
