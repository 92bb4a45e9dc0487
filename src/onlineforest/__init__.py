"""Random forests that learn online."""

from importlib.metadata import version

from onlineforest._classifier import MondrianForestClassifier
from onlineforest._regressor import MondrianForestRegressor
from onlineforest._trees import ClassificationTree, MondrianTree, RegressionTree

__all__ = [
    "ClassificationTree",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianTree",
    "RegressionTree",
    "__version__",
]

__version__ = version("onlineforest")
