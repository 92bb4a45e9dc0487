"""Checks on what users hand in. Knows nothing of forests.

Everything here either returns clean arrays or raises before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from onlineforest._core import LARGEST_VALUE, LARGEST_WEIGHT


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[Callable[[], None]]:
    """Puts an estimator's attributes back if the block raises.

    scikit-learn's validation sets attributes (feature names, for one) before it has looked at
    everything; a rejected call must leave no trace. The block gets a function to call once its
    changes are to stay, whatever happens after.
    """
    saved: dict[str, Any] | None = dict(vars(estimator))

    def keep() -> None:
        nonlocal saved
        saved = None

    try:
        yield keep
    except BaseException:
        if saved is not None:
            for name in vars(estimator).keys() - saved.keys():
                delattr(estimator, name)
            vars(estimator).update(saved)
        raise


def check_rows(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`, with rows as the core wants them: C-ordered float32.

    NaN stays, for a value that is missing. A sparse matrix is made dense.
    """
    if is_into_dataframe(X):
        X = _columns_of_numbers(X)
    # A value too large for float32 becomes infinite, and is then rejected as such.
    with np.errstate(over="ignore"):
        try:
            checked = validate_data(
                estimator,
                X,
                dtype=np.float32,
                order="C",
                accept_sparse="csr",
                ensure_all_finite="allow-nan",
                **options,
            )
        except (ValueError, TypeError) as error:
            if "could not convert string to float" in str(error):
                raise ValueError(f"{error}. {_ENCODE}") from error
            raise
    rows = checked[0] if isinstance(checked, tuple) else checked
    rows = _dense(rows) if issparse(rows) else rows
    return (rows, *checked[1:]) if isinstance(checked, tuple) else rows


_ENCODE = (
    "A forest learns numbers only: turn categories into numbers first, with an encoder of "
    "scikit-learn in a pipeline. The guide on data has a section on categorical columns."
)


def _columns_of_numbers(X: Any) -> Any:
    """A data frame whose columns can become numbers.

    Raises if some are text, categories, times or the like, and names them.
    """
    frame = nw.from_native(X)
    # What kind of objects there are in a column turns out when they are to become numbers.
    numbers = (nw.Boolean, nw.Object, nw.Unknown)
    others = {
        name: dtype
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype in numbers[:1])
    }
    bad = [
        f"{name!r} ({dtype})"
        for name, dtype in others.items()
        if dtype not in numbers and frame[name].null_count() < len(frame)
    ]
    if bad:
        shown = ", ".join(bad[:5]) + (", …" if len(bad) > 5 else "")
        raise ValueError(f"X has columns that are not numbers: {shown}. {_ENCODE}")
    # NA of pandas among objects does not become a number by itself.
    return X.astype(object).where(X.notna(), np.nan) if others and hasattr(X, "notna") else X


def _dense(X: Any, n_numbers: int = 2**20) -> NDArray[np.float32]:
    """A sparse matrix as an array, by blocks of rows, so that there are never two of it."""
    rows = np.empty(X.shape, dtype=np.float32)
    step = max(n_numbers // X.shape[1], 1)
    for start in range(0, len(rows), step):
        rows[start : start + step] = X[start : start + step].toarray()
    return rows


def blocks_of(X: Any, n_numbers: int = 2**24) -> Iterator[Any]:
    """X itself; a sparse matrix by blocks of rows, which do not take much memory when dense."""
    n = X.shape[0] if issparse(X) and X.ndim == 2 else 0
    if n == 0 or n * X.shape[1] <= n_numbers:
        yield X
        return
    rows, step = X.tocsr(), max(n_numbers // X.shape[1], 1)
    for start in range(0, n, step):
        yield rows[start : start + step]


def plain_rows(estimator: Any, X: Any) -> NDArray[np.float32] | None:
    """The rows, if they are what most batches of a stream are: a plain array in good order.

    None otherwise. Then `check_rows` has to look, which takes longer than learning a small batch,
    or says what is wrong.
    """
    if (
        type(X) is not np.ndarray
        or X.dtype.char not in "fd"
        or X.ndim != 2
        or len(X) == 0
        or X.shape[1] != estimator.n_features_in_
        or hasattr(estimator, "feature_names_in_")
    ):
        return None
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(X, dtype=np.float32)
    return None if np.isinf(rows).any() else rows


def plain_labels(y: Any) -> NDArray[Any] | None:
    """The labels, if they are a plain array of whole numbers, bools or strings; None otherwise."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU":
        return y
    return None


def check_row(x: Any) -> NDArray[np.float32]:
    """One sample as the core wants it: a row of float32. The core looks for what is infinite."""
    array = np.asarray(x)
    if array.ndim != 1:
        raise ValueError(f"x must be one sample, a 1d array. Got an array of shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"x must hold numbers. Got an array of dtype {array.dtype}.")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def check_feature_weights(weights: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """One finite, non-negative weight per feature, at least one of them positive."""
    array = check_array(
        weights, ensure_2d=False, dtype=np.float64, input_name="feature_weights", copy=True
    )
    if array.shape != (n_features,):
        raise ValueError(
            f"feature_weights must have shape ({n_features},), one weight per feature. "
            f"Got shape {array.shape} instead."
        )
    if array.min() < 0 or array.max() > LARGEST_WEIGHT or array.max() == 0:
        raise ValueError(
            f"feature_weights must lie between 0 and {LARGEST_WEIGHT:g}, and not all be 0. "
            f"Got values from {array.min():g} to {array.max():g} instead."
        )
    return np.ascontiguousarray(array)


def check_no_label_missing(y: Any, name: str = "y") -> None:
    """Raise if a label is None, NaN or pandas.NA; scikit-learn's own check trips over the last."""
    labels = np.asarray(y)
    if labels.dtype == object and labels.ndim > 0 and any(map(_is_missing, labels.flat)):
        raise ValueError(f"Input {name} contains NaN: a label is missing.")


def check_labels(y: Any, name: str = "y") -> NDArray[Any]:
    """A one-dimensional array of class labels of one sortable kind."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    try:
        np.unique(labels)
    except TypeError as error:
        raise TypeError(f"The labels in {name} cannot be sorted: {error}.") from error
    # Not scikit-learn's check_classification_targets: that warns when a batch has many classes for
    # its size, which is what a small batch of a stream with many classes looks like.
    kind = type_of_target(labels, input_name=name, raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. Maybe you are trying to fit a classifier, which expects "
            "discrete classes on a regression target with continuous values."
        )
    return labels


def check_values(y: Any) -> NDArray[np.float64]:
    """A one-dimensional array of numbers small enough to be squared."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y must be one number per sample, but has shape {values.shape}. For several targets, "
            "wrap the forest in sklearn.multioutput.MultiOutputRegressor."
        )
    values = np.ascontiguousarray(column_or_1d(y, warn=True), dtype=np.float64)
    largest = np.abs(values).max(initial=0.0)
    if not largest <= LARGEST_VALUE:
        raise ValueError(
            f"y must be finite and lie between -{LARGEST_VALUE:g} and {LARGEST_VALUE:g}. "
            f"Got a value of size {largest:g}."
        )
    return values


def plain_values(y: Any) -> NDArray[np.float64] | None:
    """The numbers, if they are a plain array of float64 in good order; None otherwise."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.char != "d" or len(y) == 0:
        return None
    values = np.ascontiguousarray(y)
    return values if np.abs(values).max() <= LARGEST_VALUE else None


def check_levels(q: ArrayLike, name: str = "q") -> NDArray[np.float64]:
    """Levels of quantiles: a number or a 1d array of numbers between 0 and 1, both excluded."""
    levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if levels.ndim != 1 or len(levels) == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"{name} must lie between 0 and 1, both excluded. Got {q!r} instead.")
    return np.ascontiguousarray(levels)


def _is_missing(label: object) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA says neither yes nor no
        return True


def kind_of_labels(labels: NDArray[Any]) -> str:
    """What the labels are, in a word that errors can name."""
    if labels.dtype.kind in "biuf":
        return "numbers"
    if labels.dtype.kind in "UT" or all(isinstance(label, str) for label in labels):
        return "strings"
    return f"objects ({type(labels.flat[0]).__name__})"


class ClassCodes:
    """The classes known so far, sorted, and the number each has in the core.

    A class keeps its number for ever, while its place among the sorted classes shifts when new
    ones appear. Instances never change; `extended` makes a new one.
    """

    def __init__(self, classes: NDArray[Any], codes: NDArray[np.int32]) -> None:
        self.classes = classes
        self.codes = codes
        self.n_classes = len(classes)
        # Whether code and place among the sorted classes are the same for all.
        self.in_order = bool(np.all(codes[1:] > codes[:-1]))
        self._code_of = dict(zip(classes.tolist(), codes.tolist(), strict=True))

    @classmethod
    def of(cls, labels: NDArray[Any]) -> ClassCodes:
        """Codes for the distinct labels, in sorted order."""
        classes = np.unique(labels)
        return cls(classes, np.arange(len(classes), dtype=np.int32))

    @classmethod
    def checked(cls, classes: NDArray[Any], codes: list[Any]) -> ClassCodes:
        """These codes for these classes, which are sorted; raise if those are not 0, 1, ...."""
        if any(type(code) is not int for code in codes) or sorted(codes) != [*range(len(classes))]:
            raise ValueError(f"its {len(classes)} classes do not have a code each.")
        return cls(classes, np.array(codes, dtype=np.int32))

    def extended(self, labels: NDArray[Any], name: str = "y") -> ClassCodes:
        """Codes that also cover `labels`; new classes are numbered on, in sorted order."""
        self._check_kind(labels, name)
        if self._are_known(labels).all():
            return self
        new = np.unique(labels)
        new = new[~np.isin(new, self.classes)]
        classes = np.concatenate([self.classes, new])
        codes = np.concatenate(
            [self.codes, np.arange(self.n_classes, len(classes), dtype=np.int32)]
        )
        order = np.argsort(classes)
        if np.any(classes[order][1:] == classes[order][:-1]):
            raise ValueError(
                f"{name} has labels of type {labels.dtype}, beside which some classes of type "
                f"{self.classes.dtype} cannot be told apart."
            )
        return ClassCodes(classes[order], codes[order])

    def encode_known(self, labels: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The code of each label, and which of them are known; of those that are not, -1."""
        self._check_kind(labels, "y")
        are_known = self._are_known(labels)
        codes = np.full(len(labels), -1, dtype=np.int32)
        codes[are_known] = self.encode(labels[are_known])
        return codes, are_known

    def _check_kind(self, labels: NDArray[Any], name: str) -> None:
        ours, theirs = kind_of_labels(self.classes), kind_of_labels(labels)
        if ours != theirs:
            raise ValueError(
                f"{name} has labels that are {theirs}, but this forest was fitted with {ours}."
            )

    def _are_known(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        places = np.searchsorted(self.classes, labels)
        known: NDArray[np.bool_] = self.classes[np.minimum(places, self.n_classes - 1)] == labels
        return known

    def code_of(self, label: Any) -> int | None:
        """The code of one label, None if it is not known or is no label at all."""
        try:
            return self._code_of.get(label)
        except TypeError:  # not hashable
            return None

    def in_class_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values per code, along the last axis, put into the order of the classes."""
        return values if self.in_order else values[..., self.codes]

    def encode(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """The code of each label; all of them must be known."""
        return self.codes[np.searchsorted(self.classes, labels)]


def codes_with(
    known: ClassCodes | None, labels: NDArray[Any], classes: ArrayLike | None
) -> ClassCodes:
    """The codes known after learning `labels` and hearing of `classes`."""
    if classes is not None:
        array = np.asarray(classes)
        if array.ndim != 1:
            raise ValueError(
                f"classes should be a 1d array, got an array of shape {array.shape} instead."
            )
        check_no_label_missing(array, "classes")
        declared = check_labels(array, "classes")
        known = ClassCodes.of(declared) if known is None else known.extended(declared, "classes")
        unknown = np.setdiff1d(labels, known.classes)
        if len(unknown):
            raise ValueError(
                f"The target label(s) {unknown} in y do not exist in the classes "
                f"{known.classes} that were declared or seen before."
            )
    return ClassCodes.of(labels) if known is None else known.extended(labels)
