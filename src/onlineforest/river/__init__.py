"""The forests as models of River: samples are dicts, learned one at a time or in mini-batches."""

from onlineforest._extras import require

try:
    import river as _river  # noqa: F401
except ImportError:
    require("river", "river")  # its error says how to install River
    raise

from onlineforest.river.classifier import OnlineForestClassifier
from onlineforest.river.regressor import OnlineForestRegressor

__all__ = [
    "OnlineForestClassifier",
    "OnlineForestRegressor",
]
