"""Labels of a classifier: their checks, and the code that each class has in the core forest.

Must not know estimators.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from onlineforest._inputs.cells import check_not_masked
from onlineforest._inputs.memory import nbytes_of_dict


def plain_labels(y: Any) -> NDArray[Any] | None:
    """The labels if y is a plain array of integers, bools or strings, else None."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU":
        return y
    return None


def exact_labels(y: Any) -> Any:
    """y, with texts as plain strings that NumPy does not change.

    NumPy takes the name of a member of a string enumeration for its text, and cuts it off. From a
    string that ends with NUL it removes the NUL, unless the array is one of objects.
    """
    is_array = hasattr(y, "__array__")
    labels = np.asarray(y)
    if labels.dtype != object and (is_array or labels.dtype.kind != "U"):
        return y
    objects = np.asarray(y, dtype=object)
    if not any(map(_is_changed, objects.flat)):
        return y
    exact = np.empty(objects.shape, dtype=object)
    for place, label in np.ndenumerate(objects):
        exact[place] = str.__str__(label) if isinstance(label, str) else label
    if is_array or any(isinstance(label, str) and label.endswith("\0") for label in exact.flat):
        return exact
    return exact.tolist()


def _is_changed(label: object) -> bool:
    return isinstance(label, str) and (type(label) is not str or label.endswith("\0"))


def check_no_label_missing(y: Any, name: str = "y") -> None:
    """Raise if a label is masked, None, NaN, NaT or pandas.NA.

    scikit-learn's check fails on pandas.NA, and does not look at masks and NaT.
    """
    check_not_masked(y, name)
    labels = np.asarray(y)
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        raise ValueError(f"Input {name} contains NaT: a label is missing.")
    if labels.dtype == object and labels.ndim > 0 and any(map(_is_missing, labels.flat)):
        raise ValueError(f"Input {name} contains NaN: a label is missing.")


def check_labels(y: Any, name: str = "y") -> NDArray[Any]:
    """A one-dimensional array of class labels of one sortable kind."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    try:
        np.unique(labels)
    except TypeError as error:
        raise TypeError(f"The labels in {name} cannot be sorted: {error}.") from error
    # scikit-learn's check_classification_targets would warn about a batch with many classes for its
    # size, but small batches of a stream with many classes are valid.
    kind = type_of_target(labels, input_name=name, raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. Maybe you are trying to fit a classifier, which expects "
            "discrete classes on a regression target with continuous values."
        )
    return labels


def _is_missing(label: object) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def kind_of_labels(labels: NDArray[Any]) -> str:
    """The kind of the labels, in a word for error messages."""
    if labels.dtype.kind in "biuf":
        return "numbers"
    if labels.dtype.kind in "UT" or all(isinstance(label, str) for label in labels):
        return "strings"
    return f"objects ({type(labels.flat[0]).__name__})"


class ClassCodes:
    """The known classes, sorted, and the class code of each.

    A class keeps its code, while its index among the sorted classes shifts when new classes appear.
    Instances are immutable; `extended` makes a new one. There may be more codes than classes:
    `n_codes`, by default as many.
    """

    def __init__(
        self, classes: NDArray[Any], codes: NDArray[np.int32], n_codes: int | None = None
    ) -> None:
        labels = classes.tolist()
        if classes.dtype.kind == "U":  # as wide as the longest of them needs
            classes = np.array(labels, dtype=np.str_)
        self.classes = classes
        self.codes = codes
        self.n_classes = len(classes)
        self.n_codes = self.n_classes if n_codes is None else n_codes
        # True if each code equals the index among the sorted classes.
        self.in_order = self.n_codes == self.n_classes and bool(np.all(codes[1:] > codes[:-1]))
        self._code_of = dict(zip(labels, codes.tolist(), strict=True))

    @cached_property
    def nbytes(self) -> int:
        """Memory of the classes and codes in bytes. The dict holds the objects of the array."""
        return self.classes.nbytes + self.codes.nbytes + nbytes_of_dict(self._code_of)

    @classmethod
    def of(cls, labels: NDArray[Any]) -> ClassCodes:
        """Codes for the distinct labels, in sorted order."""
        classes = np.unique(labels)
        return cls(classes, np.arange(len(classes), dtype=np.int32))

    @classmethod
    def checked(
        cls, classes: NDArray[Any], codes: list[Any], n_codes: int | None = None
    ) -> ClassCodes:
        """Codes for sorted classes; raise unless they are distinct, of 0, 1, … `n_codes` - 1.

        By default there are as many codes as classes.
        """
        most = len(classes) if n_codes is None else n_codes
        are_codes = all(type(code) is int and 0 <= code < most for code in codes)
        if not are_codes or not len(set(codes)) == len(codes) == len(classes):
            raise ValueError(f"its {len(classes)} classes do not have a code each.")
        return cls(classes, np.array(codes, dtype=np.int32), most)

    def extended(self, labels: NDArray[Any], name: str = "y") -> ClassCodes:
        """Codes that also cover `labels`; new classes get the first free codes, in sorted order."""
        self.check_kind(labels, name)
        if self._are_known(labels).all():
            return self
        new = np.unique(labels)
        new = new[~self._are_known(new)]
        classes = np.concatenate([self.classes, new]) if self.n_classes else new
        free = np.setdiff1d(np.arange(self.n_codes + len(new)), self.codes)[: len(new)]
        codes = np.concatenate([self.codes, free.astype(np.int32)])
        order = np.argsort(classes)
        if np.any(classes[order][1:] == classes[order][:-1]):
            raise ValueError(
                f"{name} has labels of type {labels.dtype}. Converted to a common type with these, "
                f"some classes of type {self.classes.dtype} become equal."
            )
        return ClassCodes(classes[order], codes[order], max(self.n_codes, int(codes.max()) + 1))

    def places(self) -> NDArray[np.int32]:
        """For each code the index of its class among the sorted classes, -1 if there is none."""
        places = np.full(self.n_codes, -1, dtype=np.int32)
        places[self.codes] = np.arange(self.n_classes, dtype=np.int32)
        return places

    def only(self, are_known: NDArray[np.bool_]) -> ClassCodes:
        """The classes whose codes are known; `are_known` has an entry for each code in use."""
        kept = np.append(are_known, np.zeros(self.n_codes - len(are_known), dtype=np.bool_))
        chosen = kept[self.codes]
        return ClassCodes(self.classes[chosen], self.codes[chosen], len(are_known))

    def first(self, n_codes: int) -> ClassCodes:
        """The classes whose codes are below a number."""
        if n_codes == self.n_codes:
            return self
        chosen = self.codes < n_codes
        return ClassCodes(self.classes[chosen], self.codes[chosen], n_codes)

    def encode_known(self, labels: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The code of each label, -1 if it is unknown, and which labels are known."""
        self.check_kind(labels, "y")
        are_known = self._are_known(labels)
        codes = np.full(len(labels), -1, dtype=np.int32)
        codes[are_known] = self.encode(labels[are_known])
        return codes, are_known

    def check_kind(self, labels: NDArray[Any], name: str) -> None:
        """Raise if labels are of another kind, such as strings instead of numbers."""
        ours, theirs = kind_of_labels(self.classes), kind_of_labels(labels)
        if ours != theirs:
            raise ValueError(
                f"{name} has labels that are {theirs}, but this forest was fitted with {ours}."
            )

    def _are_known(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        if self.n_classes == 0:
            return np.zeros(len(labels), dtype=np.bool_)
        places = np.searchsorted(self.classes, labels)
        known: NDArray[np.bool_] = self.classes[np.minimum(places, self.n_classes - 1)] == labels
        return known

    def code_of(self, label: Any) -> int | None:
        """The code of one label; None if it is unknown or not a label."""
        try:
            return self._code_of.get(label)
        except TypeError:  # not hashable
            return None

    def in_class_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values in the order of codes, along the last axis, reordered to that of the classes."""
        return values if self.in_order else values[..., self.codes]

    def encode(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """The code of each label; every label must be known."""
        return self.codes[np.searchsorted(self.classes, labels)]


def check_classes(classes: ArrayLike) -> NDArray[Any]:
    """The labels that a user declares."""
    check_not_masked(classes, "classes")
    array = np.asarray(exact_labels(classes))
    if array.ndim != 1:
        raise ValueError(
            f"classes should be a 1d array, got an array of shape {array.shape} instead."
        )
    check_no_label_missing(array, "classes")
    return check_labels(array, "classes")


def check_declared(labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise if a label is not among the classes."""
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(
            f"The target label(s) {unknown} in y do not exist in the classes "
            f"{classes} that were declared or seen before."
        )


def codes_with(known: ClassCodes | None, labels: NDArray[Any], name: str = "y") -> ClassCodes:
    """The codes after `labels` have appeared."""
    return ClassCodes.of(labels) if known is None else known.extended(labels, name)
