"""Public methods of all estimators. Must not know how trees are split, nor what y is."""

from __future__ import annotations

import os
from typing import BinaryIO, Self

from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import Core
from onlineforest._forests.forgetting import keep_latest
from onlineforest._forests.saving import write_model


class Forest(BaseForest[Core]):
    """An estimator that can keep its latest samples only, and can be saved."""

    def keep_latest(self, n_samples: int) -> Self:
        """Forget all but the latest samples, for example after a change in the data.

        Parameters
        ----------
        n_samples : int
            Number of stored samples to keep; 0 forgets all.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], ["old", "new", "new"])
        >>> forest.keep_latest(2).predict([[0.0]])
        array(['new'], dtype='<U3')
        """
        keep_latest(self, n_samples)
        return self

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
