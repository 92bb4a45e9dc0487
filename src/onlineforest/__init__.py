"""Random forests that learn online.

What is public is imported when it is first asked for: scikit-learn alone takes longer to import
than a process that only learns, a shard or a child of a command, needs to start.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_PLACES = {
    "Checkpoint": "_checkpoints",
    "Checkpointer": "_checkpoints",
    "ClassificationTree": "_trees",
    "MergedForestClassifier": "_merging",
    "MergedForestRegressor": "_merging",
    "ModelFileError": "_container",
    "ModelTooLargeError": "_container",
    "MondrianForestClassifier": "_classifier",
    "MondrianForestRegressor": "_regressor",
    "MondrianTree": "_trees",
    "RegressionTree": "_trees",
    "load": "_load",
    "merge": "_merging",
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
