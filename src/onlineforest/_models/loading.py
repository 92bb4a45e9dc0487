"""Reading any model file."""

from __future__ import annotations

import os
from numbers import Integral
from typing import BinaryIO

from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.saving import Model, read_model

KINDS = {kind._saved_as: kind for kind in (MondrianForestClassifier, MondrianForestRegressor)}


def load(
    file: str | os.PathLike[str] | BinaryIO, *, max_bytes: int | None = None
) -> MondrianForestClassifier | MondrianForestRegressor:
    """Read a forest that `save` wrote.

    It learns on and predicts exactly as the saved one would have, to the last bit. Files need not
    be trusted: everything in them is checked, and nothing in them can run code.

    Parameters
    ----------
    file : str, os.PathLike or binary file
        The file to read.
    max_bytes : int or None, default=None
        Refuse a forest that would take more bytes in memory, roughly; labels and ids not counted.
        Files are smaller than the forests in them, a hundred times and more if someone wants it so:
        set a limit if you do not know who made the file.

    Returns
    -------
    MondrianForestClassifier or MondrianForestRegressor
        The forest.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was written in a newer format. Says which.
    ModelTooLargeError
        If the forest would take more than `max_bytes`.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import onlineforest
    >>> forest = onlineforest.MondrianForestClassifier(random_state=0)
    >>> forest.partial_fit([[0.0], [1.0]], ["no", "yes"]).save("answers.safetensors")
    >>> onlineforest.load("answers.safetensors").predict([[0.9]])
    array(['yes'], dtype='<U3')
    """
    return load_with_position(file, max_bytes=max_bytes).forest  # type: ignore[no-any-return]


load.__module__ = "onlineforest"


def load_with_position(
    file: str | os.PathLike[str] | BinaryIO, *, max_bytes: int | None = None
) -> Model:
    """Read a forest, and the position in its stream that was saved with it, None if none was."""
    if max_bytes is not None and (not isinstance(max_bytes, Integral) or max_bytes < 0):
        raise ValueError(f"max_bytes must be a whole number, at least 0, or None. Got {max_bytes}.")
    limit = None if max_bytes is None else min(int(max_bytes), 2**62)
    return read_model(file, KINDS, limit)
