"""Random forests that learn online.

Public names are imported on first use: importing scikit-learn takes longer than a process that only
learns, such as a shard, needs to start. Type checkers read them in `__init__.pyi`.
"""

from importlib import import_module

# The public names of each module.
_NAMES = {
    "_files.errors": ("ModelFileError", "ModelTooLargeError"),
    "_store.checkpoints": ("Checkpoint", "Checkpointer"),
    "_forests.mondrian.classifier": ("MondrianForestClassifier",),
    "_store.loading": ("load",),
    "_forests.orderfree.merging": ("merge",),
    "_forests.orderfree.classifier": ("OnlineForestClassifier",),
    "_forests.orderfree.regressor": ("OnlineForestRegressor",),
    "_forests.trees": (
        "MondrianTree",
        "OnlineClassificationTree",
        "OnlineRegressionTree",
        "OnlineTree",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULE_OF, "__version__", "plot"])


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    elif name == "plot":
        value = import_module(f"{__name__}.plot")
    elif name == "__version__":
        value = import_module("importlib.metadata").version(__name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # found there from now on
    return value


def __dir__() -> list[str]:
    return __all__
