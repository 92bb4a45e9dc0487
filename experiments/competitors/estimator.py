"""The interface of every competitor: checked data in, probabilities out.

It knows nothing of trees, nor of how they are compiled.
"""

from __future__ import annotations

import numpy as np


class OnlineClassifier:
    """Learns points in the order given, from random numbers of a seed.

    A competitor says how: `_start(n_features, n_classes)` makes what it keeps, `_learn(X, y)` takes
    checked points with classes from 0 up, `_predict(X)` returns probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
    """

    def __init__(self, seed):
        check_at_least(type(self).__name__, "seed", seed, 0)
        self.seed = seed

    def partial_fit(self, X, y, classes=None):
        """Learn points in the order given; a further pass is a further call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Integers.
        classes : array-like of shape (n_classes,), optional
            Every label that will ever come. If the first call names none, those of its y.
        """
        first = not hasattr(self, "classes_")
        X = check_features(X, None if first else self.n_features_in_)
        y = check_labels(y)
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows, but y has {len(y)} labels.")
        if first:
            known = check_classes(np.unique(y) if classes is None else classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(check_classes(classes), known):
                raise ValueError(f"classes must stay {known.tolist()} after the first call.")
        y = encode_labels(y, known)

        if first:
            self.classes_ = known
            self.n_features_in_ = X.shape[1]
            self._start(X.shape[1], len(known))
        self._learn(X, y)
        return self

    def predict_proba(self, X):
        """Class probabilities, of shape (n_samples, n_classes)."""
        if not hasattr(self, "classes_"):
            raise ValueError(f"This {type(self).__name__} has learned nothing yet.")
        return self._predict(check_features(X, self.n_features_in_))

    def predict(self, X):
        """The most probable class of each point; the smaller label of equals."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def check_features(X, n_features=None):
    """Return X as an array of finite doubles, of shape (n_samples, n_features)."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features). Got {X.shape} instead.")
    if X.shape[1] == 0:
        raise ValueError("X must have at least one feature. Got none.")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} features, but this forest was fitted with {n_features}."
        )
    if not np.isfinite(X).all():
        raise ValueError("X must be finite. Got NaN or infinity.")
    return X


def check_classes(classes):
    """The class labels, sorted: at least one integer, none twice."""
    classes = check_labels(classes, "classes")
    unique = np.unique(classes)
    if len(unique) == 0 or len(unique) < len(classes):
        raise ValueError(
            f"classes must be one or more different labels. Got {classes.tolist()} instead."
        )
    return unique


def check_labels(y, name="y"):
    """The labels as integers, of shape (n_samples,)."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must have shape (n_samples,). Got {y.shape} instead.")
    if not (np.issubdtype(y.dtype, np.integer) or y.size == 0):
        raise ValueError(f"{name} must hold integers. Got {y.dtype} instead.")
    return y.astype(np.int64)


def encode_labels(y, classes):
    """Each label's place in `classes`, which must be sorted and hold every label of y."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[places] != y
    if unknown.any():
        raise ValueError(
            f"y holds labels that are not among the classes: {np.unique(y[unknown]).tolist()}."
        )
    return places


def check_at_least(owner, name, value, smallest):
    """Raise unless a parameter is a number of at least `smallest`, and whole if that is an int."""
    whole = isinstance(smallest, int)
    good = isinstance(value, (int, np.integer) if whole else (int, float, np.number))
    if not good or isinstance(value, bool) or not value >= smallest:
        kind = "an integer" if whole else "a number"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be {kind} of at least {smallest}. "
            f"Got {value!r} instead."
        )
