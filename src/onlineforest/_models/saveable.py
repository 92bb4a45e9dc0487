"""The base class of estimators that can be saved.

Puts `base`, which knows no files, and `saving`, which writes estimators, together.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from onlineforest._models.base import BaseMondrianForest
from onlineforest._models.core import Core
from onlineforest._models.saving import write_model


class SaveableForest(BaseMondrianForest[Core]):
    """An estimator with the method `save`."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Save the forest to a file, from which `onlineforest.load` gets it back.

        The file holds all that the forest is: parameters, stored samples, trees, random states,
        classes, ids. A forest that is loaded learns on and predicts as this one would have, to the
        last bit. It is a safetensors file, which other tools can read, too.

        Parameters
        ----------
        file : str, os.PathLike or binary file
            Where to save it. A file of that name is replaced when the new one is safely on the
            disk, or stays as it is: a crash leaves one or the other. If it is an open file, the
            forest is written to it from where it stands.

        Examples
        --------
        >>> import onlineforest
        >>> forest = onlineforest.MondrianForestRegressor(random_state=0)
        >>> forest.fit([[0.0], [1.0]], [3.0, 7.0]).save("sevens.safetensors")
        >>> round(onlineforest.load("sevens.safetensors").predict_one([1.0]))
        7
        """
        write_model(self, file)
