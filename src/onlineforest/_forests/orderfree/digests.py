"""The digest of an order-free forest: a SHA-256 of its law, its samples and its trees.

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

from onlineforest._core import LAW, WEIGHT_OF_ONE
from onlineforest._forests.core import OrderFreeCore, State
from onlineforest._inputs.canonical import canonical_bytes
from onlineforest._inputs.class_codes import ClassCodes

if TYPE_CHECKING:
    from hashlib import _Hash

_VERSION = b"onlineforest order-free forest, digest version 2"

_OF_LINES = "low", "high", "centre", "slope", "base", "least", "most"

TreeArrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Samples:
    """The distinct samples of a core forest.

    Attributes
    ----------
    rows : ndarray of shape (n_distinct, n_features), float32
        The row of each sample.
    values : ndarray of shape (n_distinct,), int32 or float64
        The code of its label, or its number.
    weights : ndarray of shape (n_distinct,), float64
        How often it counts, with all its arrivals.
    """

    rows: NDArray[np.float32]
    values: NDArray[Any]
    weights: NDArray[np.float64]


def samples_of(state: State, n_features: int) -> Samples:
    """The samples in the state of a core forest."""
    values, stored = state["values"], state.get("weights")
    of_arrivals = None if stored is None else stored / WEIGHT_OF_ONE
    # Sums are exact: they have at most 52 bits.
    weights = np.bincount(state["sample_of"], weights=of_arrivals, minlength=len(values))
    return Samples(
        state["rows"].reshape(-1, n_features), values, weights.astype(np.float64, copy=False)
    )


class LabelDigest:
    """Adds labels, which are known by class codes, in the order of the classes."""

    def __init__(self, classes: ClassCodes) -> None:
        self._classes, self._places = classes.classes, classes.places()

    def add_all(self, sha: _Hash) -> None:
        """Add what the forest knows of its values besides the samples: its classes."""
        for label in self._classes:
            _add_bytes(sha, "class", canonical_bytes(label))

    def of_samples(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The value of each sample in a form that depends on its content alone."""
        places: NDArray[Any] = self._places[codes]
        return places.astype("<i4")

    def add_nodes(self, sha: _Hash, tree: TreeArrays) -> None:
        """Add the counts of all nodes."""
        n_labels = np.diff(tree["counts_end"], prepend=0)
        of_entry = self._places[tree["label"]]
        order = np.lexsort((of_entry, np.repeat(np.arange(len(n_labels)), n_labels)))
        _add_array(sha, "labels per node", n_labels, "<i8")
        _add_array(sha, "labels", of_entry[order], "<i4")
        _add_weights(sha, "counts", tree["count"][order])


class NumberDigest:
    """Adds numbers."""

    def add_all(self, sha: _Hash) -> None:
        """Nothing but the samples is known."""

    def of_samples(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers in one order of bytes."""
        return numbers.astype("<f8")

    def add_nodes(self, sha: _Hash, tree: TreeArrays) -> None:
        """Add weights and means of all nodes, lines, and what leaves add to them."""
        _add_weights(sha, "weights", tree["weight"])
        _add_array(sha, "means", tree["mean"], "<f8")
        _add_array(sha, "lines of nodes", tree["line"], "<i4")
        _add_array(sha, "rests", tree["rest"][tree["feature"] < 0], "<f8")
        _add_array(sha, "features of lines", tree["line_feature"], "<i4")
        for name in _OF_LINES:
            _add_array(sha, name, tree[f"line_{name}"], "<f8")


def forest_digest(
    core: OrderFreeCore,
    samples: Samples,
    values: LabelDigest | NumberDigest,
    settings: Mapping[str, int | float | bool],
) -> str:
    """The digest in hexadecimal.

    Parameters
    ----------
    core : OrderFreeCore
        The core forest, whose trees are taken.
    samples : Samples
        Its samples.
    values : LabelDigest or NumberDigest
        How values enter.
    settings : mapping
        The seed, the number of features and the parameters that define the forest.
    """
    sha = hashlib.sha256()
    _add_bytes(sha, "version", _VERSION)
    _add_bytes(sha, "law", str(LAW).encode())
    for name in sorted(settings):
        value = settings[name]
        text = value.hex() if isinstance(value, float) else str(value)
        _add_bytes(sha, name, text.encode())
    values.add_all(sha)
    _add_samples(sha, samples, values.of_samples(samples.values))
    for index in range(core.n_trees):
        tree = core.tree(index)
        _add_cuts(sha, tree)
        values.add_nodes(sha, tree)
    return sha.hexdigest()


def _add_bytes(sha: _Hash, name: str, data: bytes) -> None:
    """Add a name, a length and data: no two sequences of calls add the same bytes."""
    sha.update(f"{name} {len(data)}\n".encode())
    sha.update(data)


def _add_array(sha: _Hash, name: str, array: NDArray[Any], dtype: str) -> None:
    """Add an array in the given type, which says the order of bytes."""
    _add_bytes(sha, name, np.ascontiguousarray(array, dtype=dtype).tobytes())


def _add_weights(sha: _Hash, name: str, weights: NDArray[np.float64]) -> None:
    """Add weights as whole numbers: of samples, or of units if one of them is not whole."""
    if (weights % 1 == 0).all():
        _add_array(sha, name, weights, "<i8")
    else:
        _add_array(sha, f"{name} in units", weights * WEIGHT_OF_ONE, "<i8")


def _add_samples(sha: _Hash, samples: Samples, values: NDArray[Any]) -> None:
    """Add the samples in the order of the bytes of their rows and values."""
    rows = np.ascontiguousarray(samples.rows, dtype="<f4").view(np.uint8)
    of_values = np.ascontiguousarray(values)[:, np.newaxis].view(np.uint8)
    records = np.ascontiguousarray(np.hstack([rows, of_values]))
    order = np.argsort(records.view(f"V{records.shape[1]}")[:, 0])
    _add_array(sha, "samples", records[order], "|u1")
    _add_weights(sha, "weights", samples.weights[order])


def _add_cuts(sha: _Hash, tree: TreeArrays) -> None:
    """Add the cuts. Nodes are in preorder, so the features tell which nodes are below."""
    features = tree["feature"]
    are_cut = features >= 0
    _add_array(sha, "features", features, "<i4")
    _add_array(sha, "thresholds", tree["threshold"][are_cut], "<f4")
    _add_array(sha, "sides of missing values", tree["missing_left"][are_cut], "|u1")
    n_surrogates = np.diff(tree["surrogates_end"], prepend=0)[are_cut]
    if n_surrogates.any():
        _add_array(sha, "surrogates per cut", n_surrogates, "<i8")
        _add_array(sha, "features of surrogates", tree["surrogate_feature"], "<i4")
        _add_array(sha, "thresholds of surrogates", tree["surrogate_threshold"], "<f4")
        _add_array(sha, "reversed surrogates", tree["surrogate_reversed"], "|u1")
