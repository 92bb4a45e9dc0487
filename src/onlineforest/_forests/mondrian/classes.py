"""The classes of a Mondrian forest: names and codes of labels. Must not know estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import MondrianForest
from onlineforest._files.encoding import encode_labels
from onlineforest._forests.targets import AreStorable, Targets, codes_in, facts_of
from onlineforest._inputs.class_codes import ClassCodes
from onlineforest._inputs.targets import LABELS


class MondrianClasses(Targets):
    """The labels of one forest. A label stays known, with the code that it had first.

    Parameters
    ----------
    codes : ClassCodes or None, default=None
        The labels and their codes; None for a new forest.
    """

    kind = LABELS
    codes: ClassCodes

    def __init__(self, codes: ClassCodes | None = None) -> None:
        if codes is not None:
            self.codes = codes

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    def known_classes(self, _core: MondrianForest) -> NDArray[Any]:
        """The classes, sorted."""
        return self.codes.classes

    def value_of(self, y: Any, core: Any) -> int | None:  # noqa: ARG002
        return self.codes.code_of(y)

    def values_of(self, target: NDArray[Any]) -> tuple[NDArray[np.int32], AreStorable]:
        return self.codes.encode_known(target)

    def facts(self, core: Any) -> dict[str, str]:  # noqa: ARG002
        return facts_of(self.codes.classes)

    def metadata(self) -> dict[str, Any]:
        classes = encode_labels(self.codes.classes)
        return {"classes": classes, "class_codes": self.codes.codes.tolist()}

    @classmethod
    def of_file(cls, metadata: Mapping[str, str], core: MondrianForest) -> MondrianClasses:
        codes = codes_in(metadata)
        if codes.n_classes != core.n_classes:
            raise ValueError(
                f"it has {codes.n_classes} classes, but its forest has {core.n_classes}."
            )
        return cls(codes)

    def plain(self) -> tuple[Any, ...]:
        return self.codes.classes, self.codes.codes

    @classmethod
    def of_plain(cls, *plain: Any) -> MondrianClasses:
        return cls(ClassCodes(*plain))
