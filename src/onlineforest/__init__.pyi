from . import plot
from ._files.errors import ModelFileError, ModelTooLargeError
from ._models.checkpoints import Checkpoint, Checkpointer
from ._models.classifier import MondrianForestClassifier
from ._models.loading import load
from ._models.merging import merge
from ._models.online_classifier import OnlineForestClassifier
from ._models.online_regressor import OnlineForestRegressor
from ._models.trees import (
    MondrianTree,
    OnlineClassificationTree,
    OnlineRegressionTree,
    OnlineTree,
)

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
