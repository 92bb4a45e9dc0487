"""The same forest on a Ray cluster, bit for bit: sharded by trees, each shard an actor."""

from onlineforest._extras import require

try:
    import ray as _ray  # noqa: F401
except ImportError:
    require("ray", "ray")  # its error says how to install Ray
    raise

from onlineforest._distributed.errors import ShardLostError, SnapshotWarning
from onlineforest.ray.forest import RayForest, load_snapshot
from onlineforest.ray.streams import StreamReport

__all__ = ["RayForest", "ShardLostError", "SnapshotWarning", "StreamReport", "load_snapshot"]
