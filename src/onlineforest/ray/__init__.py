"""An order-free forest on a Ray cluster, equal to the local one: its shards are Ray actors."""

from onlineforest._extras import require

try:
    import ray as _ray  # noqa: F401
except ImportError:
    require("ray", "ray")  # its error says how to install Ray
    raise

from onlineforest._shards.errors import ShardLostError
from onlineforest.ray.forest import RayForest
from onlineforest.ray.streams import StreamReport

__all__ = ["RayForest", "ShardLostError", "StreamReport"]
