from . import plot
from ._files.errors import ModelFileError, ModelTooLargeError
from ._forests.mondrian.classifier import MondrianForestClassifier
from ._forests.orderfree.classifier import OnlineForestClassifier
from ._forests.orderfree.merging import merge
from ._forests.orderfree.regressor import OnlineForestRegressor
from ._forests.trees import (
    MondrianTree,
    OnlineClassificationTree,
    OnlineRegressionTree,
    OnlineTree,
)
from ._store.checkpoints import Checkpoint, Checkpointer
from ._store.loading import load

__all__ = [
    "Checkpoint",
    "Checkpointer",
    "ModelFileError",
    "ModelTooLargeError",
    "MondrianForestClassifier",
    "MondrianTree",
    "OnlineClassificationTree",
    "OnlineForestClassifier",
    "OnlineForestRegressor",
    "OnlineRegressionTree",
    "OnlineTree",
    "__version__",
    "load",
    "merge",
    "plot",
]

__version__: str
