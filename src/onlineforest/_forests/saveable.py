"""The base class of estimators that can be saved: in files and in pickles.

Puts `base`, which knows no files, and `saving`, which writes estimators, together.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import Core
from onlineforest._forests.saving import check_law, law_of, write_model


class SaveableForest(BaseForest[Core]):
    """An estimator with the method `save`. A pickle has the law of its trees, too."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Save the forest to a file, which `onlineforest.load` reads.

        The file holds the whole forest: parameters, stored samples, classes, ids, and the state of
        a window or reservoir. A loaded forest continues to learn and predicts as this one would, to
        the last bit. The format is safetensors, which other tools can read, too.

        The file of a Mondrian forest also holds its trees and random states. That of an order-free
        forest does not: its trees follow from the samples, and are grown again when they are first
        needed, which takes about as long as `fit`.

        Parameters
        ----------
        file : str, os.PathLike or binary file
            The file to write. An existing file is replaced only when the new one is safely on the
            disk: a crash leaves one or the other. An open file is written from its current
            position.

        Examples
        --------
        >>> import onlineforest
        >>> forest = onlineforest.OnlineForestRegressor(random_state=0)
        >>> forest.fit([[0.0], [1.0]], [3.0, 7.0]).save("sevens.safetensors")
        >>> onlineforest.load("sevens.safetensors").digest_ == forest.digest_
        True
        """
        write_model(self, file)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | law_of(type(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, plain = type(self), dict(state)
        law = plain.pop("law", None)
        if "_forest" in plain:
            check_law(kind, law, f"The pickled {kind.__name__}")
        super().__setstate__(plain)
