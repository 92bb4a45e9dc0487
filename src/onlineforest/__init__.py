"""Random forests that learn online.

What is public is imported when it is first asked for: scikit-learn alone takes longer to import
than a process that only learns, a shard or a child of a command, needs to start.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineforest import plot
    from onlineforest._files.container import ModelFileError, ModelTooLargeError
    from onlineforest._models.checkpoints import Checkpoint, Checkpointer
    from onlineforest._models.classifier import MondrianForestClassifier
    from onlineforest._models.loading import load
    from onlineforest._models.merging import MergedForestClassifier, MergedForestRegressor, merge
    from onlineforest._models.regressor import MondrianForestRegressor
    from onlineforest._models.trees import ClassificationTree, MondrianTree, RegressionTree

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

_PLACES = {
    "Checkpoint": "_models.checkpoints",
    "Checkpointer": "_models.checkpoints",
    "ClassificationTree": "_models.trees",
    "MergedForestClassifier": "_models.merging",
    "MergedForestRegressor": "_models.merging",
    "ModelFileError": "_files.container",
    "ModelTooLargeError": "_files.container",
    "MondrianForestClassifier": "_models.classifier",
    "MondrianForestRegressor": "_models.regressor",
    "MondrianTree": "_models.trees",
    "RegressionTree": "_models.trees",
    "load": "_models.loading",
    "merge": "_models.merging",
}


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("onlineforest.plot")
    if name not in _PLACES:
        raise AttributeError(f"module 'onlineforest' has no attribute {name!r}")
    value = getattr(import_module(f"onlineforest.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *(name for name in __all__ if name not in globals())]
