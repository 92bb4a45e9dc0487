"""The digest of an order-free forest: a SHA-256 of its samples and of its trees.

Everything is put in an order that follows from its content. So slots, serials, class codes and
threads leave no trace. Must not know estimators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._models.class_codes import ClassCodes
from onlineforest._models.core import GuidedCore, State
from onlineforest._models.label_hashes import label_bytes

if TYPE_CHECKING:
    from hashlib import _Hash

_VERSION = b"onlineforest order-free forest, digest version 1"


@dataclass(frozen=True)
class Samples:
    """The distinct samples of a core forest.

    Attributes
    ----------
    rows : ndarray of shape (n_distinct, n_features), float32
        The row of each sample.
    codes : ndarray of shape (n_distinct,), int32
        The code of its label.
    weights : ndarray of shape (n_distinct,), int64
        How often it is stored.
    """

    rows: NDArray[np.float32]
    codes: NDArray[np.int32]
    weights: NDArray[np.int64]


def samples_of(state: State, n_features: int) -> Samples:
    """The samples in the state of a core forest."""
    codes = state["labels"]
    weights = np.bincount(state["sample_of"], minlength=len(codes)).astype(np.int64)
    return Samples(state["rows"].reshape(-1, n_features), codes, weights)


def arrival_codes(state: State) -> NDArray[np.int32]:
    """The code of the label of each stored sample, equal ones repeated, in the order of serials."""
    codes: NDArray[np.int32] = state["labels"][state["sample_of"]]
    return codes


def forest_digest(
    core: GuidedCore, samples: Samples, classes: ClassCodes, settings: Mapping[str, int | float]
) -> str:
    """The digest in hexadecimal.

    Parameters
    ----------
    core : GuidedCore
        The core forest, whose trees are taken.
    samples : Samples
        Its samples.
    classes : ClassCodes
        The known labels, and their codes in the core forest and in `samples`.
    settings : mapping
        The seed, the number of features and the parameters that define the forest.
    """
    sha = hashlib.sha256()
    _add_bytes(sha, "version", _VERSION)
    for name in sorted(settings):
        value = settings[name]
        text = value.hex() if isinstance(value, float) else str(value)
        _add_bytes(sha, name, text.encode())
    for label in classes.classes:
        _add_bytes(sha, "class", label_bytes(label))
    places = classes.places()
    _add_samples(sha, samples, places)
    for index in range(core.n_trees):
        _add_tree(sha, core.tree(index), places)
    return sha.hexdigest()


def _add_bytes(sha: _Hash, name: str, data: bytes) -> None:
    """Add a name, a length and data: no two sequences of calls add the same bytes."""
    sha.update(f"{name} {len(data)}\n".encode())
    sha.update(data)


def _add_array(sha: _Hash, name: str, array: NDArray[Any], dtype: str) -> None:
    """Add an array in the given type, which says the order of bytes."""
    _add_bytes(sha, name, np.ascontiguousarray(array, dtype=dtype).tobytes())


def _add_samples(sha: _Hash, samples: Samples, places: NDArray[np.int32]) -> None:
    """Add the samples in the order of the bytes of their rows and labels."""
    n_features = samples.rows.shape[1]
    records = np.empty((len(samples.rows), 4 * (n_features + 1)), dtype=np.uint8)
    records[:, :-4] = np.ascontiguousarray(samples.rows, dtype="<f4").view(np.uint8)
    records[:, -4:] = places[samples.codes].astype("<i4")[:, np.newaxis].view(np.uint8)
    order = np.argsort(records.view(f"V{records.shape[1]}")[:, 0])
    _add_array(sha, "samples", records[order], "|u1")
    _add_array(sha, "weights", samples.weights[order], "<i8")


def _add_tree(sha: _Hash, tree: dict[str, NDArray[Any]], places: NDArray[np.int32]) -> None:
    """Add cuts and counts. Nodes are in preorder, so the features tell which nodes are below."""
    features, n_labels = tree["feature"], np.diff(tree["counts_end"], prepend=0)
    _add_array(sha, "features", features, "<i4")
    _add_array(sha, "thresholds", tree["threshold"][features >= 0], "<f4")
    of_entry, nodes = places[tree["label"]], np.repeat(np.arange(len(features)), n_labels)
    order = np.lexsort((of_entry, nodes))
    _add_array(sha, "labels per node", n_labels, "<i8")
    _add_array(sha, "labels", of_entry[order], "<i4")
    _add_array(sha, "counts", tree["count"][order], "<i8")
