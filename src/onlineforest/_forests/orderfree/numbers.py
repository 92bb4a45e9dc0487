"""The values of an order-free regressor: numbers, which need no names. Must not know estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.core import Floats
from onlineforest._forests.orderfree.digests import NumberDigest
from onlineforest._forests.targets import AreStorable, Targets
from onlineforest._inputs.targets import NUMBERS, check_values


class Numbers(Targets):
    """The numbers of one forest: it stores them as they are."""

    kind = NUMBERS
    declared_labels = np.empty(0)

    def value_of(self, y: Any, core: Any) -> float:  # noqa: ARG002
        if type(y) is float:
            return y
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one number. Got {y!r} instead.")
        return float(check_values([y])[0])

    def values_of(self, target: NDArray[Any]) -> tuple[Floats, AreStorable]:
        return target, np.ones(len(target), dtype=np.bool_)

    def named(self, values: Floats) -> Floats:
        """The numbers themselves."""
        return values

    def prepare(self, core: Any) -> None:
        """Nothing: a core forest learns numbers without names."""

    def digest(self, core: Any) -> NumberDigest:  # noqa: ARG002
        """How numbers enter the digest of the forest."""
        return NumberDigest()

    @classmethod
    def of_file(cls, metadata: Mapping[str, str], core: Any) -> Numbers:  # noqa: ARG003
        return cls()

    def plain(self) -> tuple[Any, ...]:
        return ()

    @classmethod
    def of_plain(cls, *plain: Any) -> Numbers:  # noqa: ARG003
        return cls()
