"""The number of the law of order-free forests in what is saved. Must not know estimators."""

from __future__ import annotations

import reprlib
from importlib.metadata import version
from typing import Any

from onlineforest._core import LAW
from onlineforest._forests.core import CoreKind

VERSION = version("onlineforest")


def law_of(kind: CoreKind[Any]) -> dict[str, int]:
    """The number of the law by which samples become trees, if what is saved has no trees."""
    return {} if kind.has_trees_in_state else {"law": LAW}


def check_law(kind: CoreKind[Any], law: Any, what: str) -> None:
    """Raise if other trees would grow from saved samples: `what` was saved under another law."""
    if law_of(kind) and (type(law) is not int or law != LAW):
        raise ValueError(
            f"{what} has {'no law' if law is None else f'law {reprlib.repr(law)}'}, but this "
            f"version of onlineforest ({VERSION}) has law {LAW}: other trees would grow."
        )
