"""The base class of classifiers: labels out. Must not know how trees are split."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import Floats
from onlineforest._forests.locking import Guard, guard_of
from onlineforest._inputs.class_codes import check_no_label_missing, exact_labels
from onlineforest._inputs.one_row import RowLike


class BaseClassifier(ClassifierMixin):
    """A classifier: everything that follows from how it predicts probabilities."""

    def _predict(self, X: ArrayLike, *, calibrated: bool = False) -> tuple[Floats, NDArray[Any]]:
        """Probabilities, and the classes of their columns: both of one moment.

        The power of a calibration does not change which class is the best. The stop weight does,
        and holds in both cases.
        """
        raise NotImplementedError

    def _predict_one(self, x: RowLike, *, calibrated: bool = False) -> tuple[Floats, NDArray[Any]]:
        """Probabilities of one sample, and the classes."""
        raise NotImplementedError

    @property
    def classes_(self) -> NDArray[Any]:
        """The known classes, sorted."""
        check_is_fitted(self)
        guard: Guard[Any] = guard_of(self)
        if guard.pending is not None:
            with self._locked():  # after another thread's batch
                pass
        core, targets = self._core_and_targets()
        classes: NDArray[Any] = targets.known_classes(core)
        return classes

    def predict_one(self, x: RowLike) -> Any:
        """The most probable class of one sample.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`; an
            order-free forest takes None or NaN if it is missing. A data frame is checked as
            `predict` does.

        Returns
        -------
        str, int, bool or date
            The class with the largest mean probability; the first of several. A date or duration
            is one of NumPy.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(min_samples_split=2, random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], [3, 7])
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
            return np.log(self._predict(X, calibrated=True)[0])

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
