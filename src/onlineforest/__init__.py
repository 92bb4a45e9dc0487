"""Random forests that learn online."""

from importlib.metadata import version

from onlineforest import plot
from onlineforest._checkpoints import Checkpoint, Checkpointer
from onlineforest._classifier import MondrianForestClassifier
from onlineforest._container import ModelFileError, ModelTooLargeError
from onlineforest._load import load
from onlineforest._merging import MergedForestClassifier, MergedForestRegressor, merge
from onlineforest._regressor import MondrianForestRegressor
from onlineforest._trees import ClassificationTree, MondrianTree, RegressionTree

__all__ = [
    "Checkpoint",
    "Checkpointer",
    "ClassificationTree",
    "MergedForestClassifier",
    "MergedForestRegressor",
    "ModelFileError",
    "ModelTooLargeError",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianTree",
    "RegressionTree",
    "__version__",
    "load",
    "merge",
    "plot",
]

__version__ = version("onlineforest")
