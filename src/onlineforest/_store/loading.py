"""Reads model files of all estimators. Must not know what is in them."""

from __future__ import annotations

import os
import sys
from numbers import Integral
from typing import Any, BinaryIO, get_args

from onlineforest._forests.base import BaseForest
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._forests.orderfree.classifier import OnlineForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor
from onlineforest._forests.saving import Model, read_model

AnyForest = MondrianForestClassifier | OnlineForestClassifier | OnlineForestRegressor
_KINDS: tuple[type[BaseForest[Any]], ...] = get_args(AnyForest)
ESTIMATORS: dict[str, type[BaseForest[Any]]] = {kind._saved_as: kind for kind in _KINDS}


def load(file: str | os.PathLike[str] | BinaryIO, *, max_bytes: int | None = None) -> AnyForest:
    """Read a forest that `save` wrote.

    It continues to learn and predicts as the saved one would, to the last bit. Files need not be
    trusted: their contents are checked and cannot run code.

    The file of an order-free forest holds samples, but no trees. Loading checks the samples, which
    is quick. The trees are grown when they are first needed, by a prediction for example, which
    takes about as long as `fit`.

    Parameters
    ----------
    file : str, os.PathLike or binary file
        The file to read.
    max_bytes : int or None, default=None
        Largest memory of the forest in bytes, approximately, without labels and ids. None: the
        memory of this machine. The memory of an order-free forest is estimated as if its trees were
        grown; with very many classes, it can be several times as large. A Mondrian forest can be
        larger than its file by a factor of a hundred and more, an order-free forest by any factor:
        set a limit for files of unknown origin.

    Returns
    -------
    estimator
        The forest, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or has another format or law.
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
    """Read a forest and the position saved with it, None if there is none."""
    if max_bytes is not None and (not isinstance(max_bytes, Integral) or max_bytes < 0):
        raise ValueError(f"max_bytes must be an integer, at least 0, or None. Got {max_bytes}.")
    limit = _memory_of_machine() if max_bytes is None else int(max_bytes)
    return read_model(file, ESTIMATORS, min(limit, sys.maxsize // 2))


def _memory_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
