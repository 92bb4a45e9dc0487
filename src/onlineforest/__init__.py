"""Random forests that learn online.

Public names are imported on first use: importing scikit-learn takes longer than a process that only
learns, such as a shard, needs to start. `__init__.pyi` lists them, for type checkers and for
`lazy_loader`.
"""

from importlib.metadata import version

import lazy_loader

__version__ = version("onlineforest")

__getattr__, _list_names, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return [*_list_names(), "__version__"]
