"""The base class of classifiers: labels in, probabilities and labels out.

Must not know how trees are cut, nor how the core forest stores labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import UNITS_PER_SAMPLE
from onlineforest._files.encoding import decode_labels, encode_labels, from_json
from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import Floats, OfLabels, Rows
from onlineforest._forests.display import some_of
from onlineforest._forests.locking import Guard, guard_of
from onlineforest._inputs.class_codes import (
    ClassCodes,
    check_labels,
    check_no_label_missing,
    exact_labels,
    plain_labels,
)
from onlineforest._inputs.ids import Id
from onlineforest._inputs.one_row import RowLike
from onlineforest._inputs.validation import check_row, plain_rows


def codes_in(metadata: Mapping[str, str], n_codes: int | None = None) -> ClassCodes:
    """The codes in the metadata of a model file, after their check.

    With `n_codes` codes, of which any number may have no class.
    """
    classes = decode_labels(from_json(metadata, "classes"), n_least=int(n_codes is None))
    return ClassCodes.checked(classes, from_json(metadata, "class_codes", list), n_codes)


class BaseClassifier(ClassifierMixin, BaseForest[OfLabels]):
    """Base of the classifiers.

    A subclass defines the codes of its classes (`_class_codes`, `_code_to_learn`) and how its core
    forest learns one row (`_teach_one`).
    """

    def _class_codes(self) -> ClassCodes:
        """The known classes, and the column of each in a prediction of the core forest."""
        raise NotImplementedError

    def _all_codes(self) -> ClassCodes:
        """The codes of all labels that have one."""
        raise NotImplementedError

    def _own_metadata(self) -> dict[str, Any]:
        codes = self._all_codes()
        return {
            "classes": encode_labels(codes.classes),
            "class_codes": codes.codes.tolist(),
            **super()._own_metadata(),
        }

    def _are_current(self, codes: ClassCodes) -> bool:  # noqa: ARG002
        """Whether a prediction that is made now has the columns that `codes` says."""
        return True

    def _code_to_learn(self, label: Any) -> int | None:
        """The code of a label that the core forest can learn at once; None for all others."""
        return self._class_codes().code_of(label)

    def _teach_one(self, x: ArrayLike, code: int, units: int) -> None:
        """Let the core forest learn one row; TypeError if it is not an array of floats.

        `units` is its weight.
        """
        raise NotImplementedError

    @property
    def classes_(self) -> NDArray[Any]:
        """The known classes, sorted."""
        check_is_fitted(self)
        guard: Guard[Any] = guard_of(self)
        if guard.pending is not None:
            self._wait_for_others()
        return self._class_codes().classes

    def _nbytes(self) -> int:
        return super()._nbytes() + self._nbytes_of_labels()

    def _nbytes_of_labels(self) -> int:
        """Memory of the labels and their codes in bytes."""
        return self._all_codes().nbytes

    def _facts_of_samples(self) -> dict[str, str]:
        classes = self._class_codes().classes
        names = f": {some_of(classes)}" if len(classes) else ""
        return super()._facts_of_samples() | {"classes": f"{len(classes):,}{names}"}

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The mean of the trees' distributions, over `classes_`. `OnlineForestClassifier`
            calibrates it.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba([[0.0], [0.5]]).round(1)
        array([[0.8, 0.2],
               [0.5, 0.5]])
        """
        return self._predict(X, calibrated=True)[0]

    def predict_proba_one(self, x: RowLike) -> NDArray[np.float64]:
        """Probability of each class for one sample, as `predict_proba` gives, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`: in an
            order-free forest None or NaN if it is missing. A data frame is checked as `predict`
            does.

        Returns
        -------
        ndarray of shape (n_classes,)
            What `predict_proba` gives for this sample.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba_one(np.array([0.5])).round(1)
        array([0.5, 0.5])
        """
        return self._predict_one(x, calibrated=True)[0]

    def predict_one(self, x: RowLike) -> Any:
        """The most probable class of one sample.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`: in an
            order-free forest None or NaN if it is missing. A data frame is checked as `predict`
            does.

        Returns
        -------
        str, int, bool or date
            The class with the largest mean probability; the first of several. A date or duration
            is one of NumPy.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [3, 7])
        >>> forest.predict_one(np.array([2.0]))
        7
        """
        probabilities, classes = self._predict_one(x)
        best = classes[probabilities.argmax()]
        if isinstance(best, np.datetime64 | np.timedelta64):
            return best  # item() makes an integer of one in nanoseconds
        return best.item() if isinstance(best, np.generic) else best

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``log(predict_proba(X))``.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
        >>> forest.predict_log_proba([[0.0]]).shape
        (1, 2)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The class with the largest mean probability; the first of several.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [3, 7])
        >>> forest.predict([[-1.0], [2.0]])
        array([3, 7])
        """
        probabilities, classes = self._predict(X)
        best: NDArray[Any] = classes[probabilities.argmax(axis=1)]
        return best

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of samples whose class is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts. None: each counts once.

        Returns
        -------
        float
            The accuracy, 0 to 1.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.score([[0.1], [0.9]], ["no", "yes"])
        1.0
        """
        check_no_label_missing(y)
        return float(super().score(X, exact_labels(y), sample_weight))

    def _learn_one(
        self,
        x: RowLike,
        y: Any,
        id: Id | None,
        units: int = UNITS_PER_SAMPLE,
        sample_weight: float | None = None,
    ) -> None:
        """Implement `learn_one`; `units` are the weight as the core forest needs it."""
        guard: Guard[Any] = guard_of(self)
        with guard.lock:
            if guard.pending is not None:
                self._settle()
            code = self._code_to_learn(y) if hasattr(self, "_forest") else None
            row = None if code is None else self._row(x, may_be_new=False)
            # Also for the first sample, and if y is not a label.
            if row is None or code is None or id is not None or units == 0:
                if np.ndim(y) != 0:
                    raise ValueError(f"y must be one label. Got {y!r} instead.")
                names = None if id is None else [id]
                weights = None if sample_weight is None else [sample_weight]
                self._learn_more(self._table_of_one(x), [y], names, weights)
                return
            self._check_parameters_unchanged()
            try:
                self._teach_one(row, code, units)
            except TypeError:
                self._teach_one(check_row(row), code, units)
            self._after_learning_one()

    def _predict_one(
        self, x: Any, *, calibrated: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Probabilities, and the classes in their order. The best class needs no calibration."""
        x = self._row(x, may_be_new=True)
        while True:
            core, codes = self._core_with_codes()
            probabilities = np.empty(codes.n_codes)
            try:
                is_done = self._put_probabilities(core, x, probabilities, calibrated)
                if is_done and self._are_current(codes):
                    return codes.in_class_order(probabilities), codes.classes
                self._wait_for_others()  # another thread learns a new class: predict again
            except TypeError:
                x = check_row(x)

    def _predict(
        self, X: ArrayLike, *, calibrated: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Probabilities, and the classes of their columns. The best needs no calibration."""
        while True:
            core, codes = self._core_with_codes()
            predict = partial(self._probabilities, core, calibrated)
            probabilities = self._predict_rows(predict, X)
            if probabilities.shape[1] == codes.n_codes and self._are_current(codes):
                return codes.in_class_order(probabilities), codes.classes
            self._wait_for_others()  # another thread learns a new class: predict again

    def _probabilities(
        self,
        core: OfLabels,
        calibrated: bool,  # noqa: ARG002
        rows: Rows,
        n_threads: int,
    ) -> Floats:
        """The probabilities of rows, in the order of class codes."""
        return core.predict(rows, n_threads)

    def _put_probabilities(
        self,
        core: OfLabels,
        x: ArrayLike,
        out: Floats,
        calibrated: bool,  # noqa: ARG002
    ) -> bool:
        """Write those of one row into `out`; False if it has not one entry per code."""
        return core.predict_one(x, out)

    def _core_with_codes(self) -> tuple[OfLabels, ClassCodes]:
        """The core forest and its class codes, though another thread may replace both by `fit`."""
        while True:
            core, codes = self._core, self._class_codes()
            if self._core is core:
                return core, codes

    def _wait_for_others(self) -> None:
        with self._locked():
            pass

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if not reset:
            rows = plain_rows(self, X)
            labels = plain_labels(y)
            if rows is not None and labels is not None and len(rows) == len(labels):
                return rows, labels
        check_no_label_missing(y)
        rows, labels = self._check_rows(X, y=exact_labels(y), reset=reset)
        return rows, check_labels(labels)
