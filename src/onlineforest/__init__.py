"""Random forests that learn online."""

from importlib.metadata import version

from onlineforest._classifier import MondrianForestClassifier
from onlineforest._trees import MondrianTree

__all__ = ["MondrianForestClassifier", "MondrianTree", "__version__"]

__version__ = version("onlineforest")
