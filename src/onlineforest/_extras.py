"""Check optional dependencies, with an error that names the extra to install."""

from __future__ import annotations

from importlib.util import find_spec


class MissingExtraError(ImportError):
    """A package that only some features need is not installed."""


def require(package: str, extra: str) -> None:
    """Raise `MissingExtraError` if a package of an extra is not installed."""
    if find_spec(package) is None:
        raise MissingExtraError(
            f"This needs {package}, which is not installed. "
            f"Install it with: pip install 'onlineforest[{extra}]'"
        )
