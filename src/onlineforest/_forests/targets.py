"""The base of the meanings of values: labels with their codes, or numbers.

Must not know estimators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.encoding import decode_labels, from_json
from onlineforest._forests.core import State
from onlineforest._forests.display import some_of
from onlineforest._inputs.class_codes import ClassCodes
from onlineforest._inputs.targets import TargetKind

AreStorable = NDArray[np.bool_]


class Targets(ABC):
    """Meaning of the values in one core forest. `fit` replaces both together."""

    kind: ClassVar[TargetKind]

    @property
    def nbytes(self) -> int:
        """Memory of the names of values in bytes."""
        return 0

    @abstractmethod
    def value_of(self, y: Any, core: Any) -> Any:
        """The value of one target that the core forest can learn at once; None for all others."""

    @abstractmethod
    def values_of(self, target: NDArray[Any]) -> tuple[NDArray[Any], AreStorable]:
        """Targets as the core forest stores them, and which of them it may have stored."""

    def drop_unused(self, core: Any) -> None:  # noqa: B027
        """Drop names of values that no stored sample has."""

    def facts(self, core: Any) -> dict[str, str]:  # noqa: ARG002
        """Facts that notebooks show."""
        return {}

    def metadata(self) -> dict[str, Any]:
        """Metadata of a model file."""
        return {}

    def in_file_order(self, state: State) -> tuple[State, dict[str, Any]]:
        """The state of the core forest as it is saved, and the metadata that change with it.

        Equal forests have equal files, in whatever order their names got codes.
        """
        return state, {}

    @classmethod
    @abstractmethod
    def of_file(cls, metadata: Mapping[str, str], core: Any) -> Targets:
        """The targets of a core forest that was read from a file with these metadata, or raise."""

    @abstractmethod
    def plain(self) -> tuple[Any, ...]:
        """Plain values, for pickles."""

    @classmethod
    @abstractmethod
    def of_plain(cls, *plain: Any) -> Targets:
        """The targets that `plain` gave."""


def codes_in(metadata: Mapping[str, str], n_codes: int | None = None) -> ClassCodes:
    """The codes in the metadata of a model file, after their check.

    With `n_codes` codes, of which any number may have no class.
    """
    classes = decode_labels(from_json(metadata, "classes"), n_least=int(n_codes is None))
    return ClassCodes.checked(classes, from_json(metadata, "class_codes", list), n_codes)


def facts_of(classes: NDArray[Any]) -> dict[str, str]:
    """The classes in a table for notebooks."""
    names = f": {some_of(classes)}" if len(classes) else ""
    return {"classes": f"{len(classes):,}{names}"}
