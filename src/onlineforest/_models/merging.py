"""Forests that learned different parts of the data, asked together.

Knows how forests are weighed against each other, and nothing of what goes on within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Never, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from onlineforest._models.base import BaseMondrianForest
from onlineforest._models.class_codes import ClassCodes, kind_of_labels
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.validation import check_rows

Floats = NDArray[np.float64]

# A forest's say falls with this power of the share of its trees that know a sample. Measured by
# experiments/merging.py: less lets forests talk of what they have not seen, more makes regressors
# trust one of them alone, and be too sure.
POWER = 4
# Forests that know a sample less than this count alike: none of them knows it.
LEAST_KNOWN = 0.01


@overload
def merge(forests: Iterable[MondrianForestClassifier]) -> MergedForestClassifier: ...
@overload
def merge(forests: Iterable[MondrianForestRegressor]) -> MergedForestRegressor: ...
def merge(forests: Iterable[Any]) -> MergedForestClassifier | MergedForestRegressor:
    """Put forests together that learned different parts of the data.

    An approximation: each tree knows the samples of its own part only, so the merged forest is not
    the one that would have learned them all, and is usually worse, the more so the smaller the
    parts. Where all data can go to one forest, let it.

    Parameters
    ----------
    forests : iterable of MondrianForestClassifier, or of MondrianForestRegressor
        At least one; all of one kind, fitted, with the same features. They are neither copied nor
        changed.

    Returns
    -------
    MergedForestClassifier or MergedForestRegressor
        What answers from all of them.

    Raises
    ------
    TypeError
        If something is not a forest, or forests are of two kinds.
    ValueError
        If there is none, or their features or the kinds of their labels differ.
    sklearn.exceptions.NotFittedError
        If one has learned nothing yet.

    Notes
    -----
    How much a forest has to say about a sample is the number of samples it stores times
    ``(1 - novelty) ** 4``, where ``novelty`` is what its own method of that name says; all that
    know a sample less than 0.01 count as if they knew it that much. So a forest that has seen
    nothing nearby leaves the answer to those that have, and if no one has, all are asked. Parts may
    be anything: random, by place, by time. But not by class, nor nearly: a forest that has seen one
    class and little else calls little new, and speaks up everywhere.

    Each prediction asks every forest for its novelty as well, which takes up to as long again.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import MondrianForestClassifier, merge
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [slice(0, 500), slice(500, 1000), slice(1000, 1500)]
    >>> forests = [
    ...     MondrianForestClassifier(20, random_state=i).fit(X[part], y[part])
    ...     for i, part in enumerate(parts)
    ... ]
    >>> merged = merge(forests)
    >>> merged.score(X[1500:], y[1500:]) > max(f.score(X[1500:], y[1500:]) for f in forests)
    True
    """
    members = list(forests)
    kind = _kind_of(members)
    for i, forest in enumerate(members):
        check_is_fitted(forest, msg=f"forests[{i}], a %(name)s, has learned nothing yet.")
    _check_features(members)
    if kind is MondrianForestRegressor:
        return MergedForestRegressor(members)
    _classes_of([forest.classes_ for forest in members])
    return MergedForestClassifier(members)


merge.__module__ = "onlineforest"


def _kind_of(forests: Sequence[Any]) -> type[BaseMondrianForest]:
    """The one kind they all are."""
    if not forests:
        raise ValueError("merge needs at least one forest. Got none.")
    kinds: list[type[BaseMondrianForest]] = []
    for i, forest in enumerate(forests):
        for kind in (MondrianForestClassifier, MondrianForestRegressor):
            if isinstance(forest, kind):
                kinds.append(kind)
                break
        else:
            raise TypeError(
                "merge needs forests, each a MondrianForestClassifier or each a "
                f"MondrianForestRegressor, but forests[{i}] is of type {type(forest).__name__}."
                + (" Merge what its gather() gives." if hasattr(forest, "gather") else "")
            )
        if kinds[i] is not kinds[0]:
            raise TypeError(
                f"merge needs forests of one kind, but forests[0] is a {kinds[0].__name__} and "
                f"forests[{i}] a {kinds[i].__name__}."
            )
    return kinds[0]


def _check_features(forests: Sequence[Any]) -> None:
    """Raise if they have not learned the same features."""
    named: tuple[int, Any] | None = None
    for i, forest in enumerate(forests):
        if forest.n_features_in_ != forests[0].n_features_in_:
            raise ValueError(
                f"merge needs forests with the same features, but forests[0] has "
                f"{forests[0].n_features_in_} and forests[{i}] has {forest.n_features_in_}."
            )
        names = getattr(forest, "feature_names_in_", None)
        if names is None:
            continue
        if named is None:
            named = i, names
        different = np.flatnonzero(np.asarray(names) != np.asarray(named[1]))
        if len(different):
            place = different[0]
            raise ValueError(
                f"merge needs forests with the same features, but feature {place} of "
                f"forests[{named[0]}] is {named[1][place]!r} and that of forests[{i}] is "
                f"{names[place]!r}."
            )


def _classes_of(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The classes that any of the forests knows, sorted."""
    codes = ClassCodes.of(classes[0])
    for i, others in enumerate(classes):
        first, kind = kind_of_labels(classes[0]), kind_of_labels(others)
        if kind != first:
            raise ValueError(
                f"merge needs labels of one kind, but those of forests[0] are {first} and those of "
                f"forests[{i}] {kind}."
            )
        codes = codes.extended(others, f"forests[{i}]")
    return codes.classes


class BaseMergedForest(BaseEstimator):  # scikit-learn has no types
    """What merged forests of both kinds share: their features, and how much each has to say."""

    forests: Sequence[Any]

    def __init__(self, forests: Sequence[Any]) -> None:
        self.forests = forests

    def __sklearn_is_fitted__(self) -> bool:
        return all(forest.__sklearn_is_fitted__() for forest in self.forests)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.forests[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if a forest has learned them."""
        for forest in self.forests:
            if hasattr(forest, "feature_names_in_"):
                names: NDArray[Any] = forest.feature_names_in_
                return names
        raise AttributeError("No forest has names of features.")

    @property
    def n_samples_stored_(self) -> int:
        """Number of samples the forests are made of, together."""
        return sum(forest.n_samples_stored_ for forest in self.forests)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Never:  # noqa: ARG002
        """Raise an error: forests learn, a merged forest asks them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Not used.
        y : array-like of shape (n_samples,)
            Not used.

        Raises
        ------
        TypeError
            Always.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor, merge
        >>> merged = merge([MondrianForestRegressor(random_state=0).fit([[0.0]], [1.0])])
        >>> merged.fit([[1.0]], [2.0])
        Traceback (most recent call last):
            ...
        TypeError: A MergedForestRegressor does not learn: let one of its forests learn.
        """
        raise TypeError(f"A {type(self).__name__} does not learn: let one of its forests learn.")

    def novelty(self, X: ArrayLike) -> Floats:
        """How far each sample is from everything learned, 0 to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The mean of the forests' novelties, weighed as their predictions are: small if a forest
            knows samples like it, near 1 if none does.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor, merge
        >>> low = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> high = MondrianForestRegressor(random_state=1).fit([[100.0], [101.0]], [0.0, 1.0])
        >>> merge([low, high]).novelty([[0.0], [50.0], [100.0]]).round(1)
        array([0., 1., 0.])
        """
        _, novelty, weights = self._weigh(X)
        mean: Floats = (weights * novelty).sum(axis=0)
        return mean

    def _weigh(self, X: ArrayLike) -> tuple[list[tuple[Any, Any]], Floats, Floats]:
        """The forests that have samples, each with X as it takes it; their novelty; their weights.

        Both are of shape (n_forests, n_samples), and the weights of a sample add up to 1.
        """
        check_is_fitted(self)
        members = [forest for forest in self.forests if forest.n_samples_stored_ > 0]
        if not members:
            raise ValueError(
                f"The forests of this {type(self).__name__} have no samples. Learn some first."
            )
        asked = [(forest, self._rows_for(forest, X)) for forest in members]
        novelty = np.stack([forest.novelty(rows) for forest, rows in asked])
        sizes = np.array([[forest.n_samples_stored_] for forest in members], dtype=np.float64)
        weights = sizes * np.maximum(1.0 - novelty, LEAST_KNOWN) ** POWER
        return asked, novelty, weights / weights.sum(axis=0)

    def _rows_for(self, forest: Any, X: Any) -> Any:
        """X as it came, but without names for a forest that has none while others do."""
        if hasattr(self, "feature_names_in_") and not hasattr(forest, "feature_names_in_"):
            return check_rows(self, X, reset=False)
        return X


class MergedForestClassifier(ClassifierMixin, BaseMergedForest):
    """Classifiers that learned different parts of the data; `merge` makes it.

    Its answers are those of its forests as they are at that moment, weighed by how well each knows
    the place: see `merge`. It does not learn itself, but its forests may go on learning.

    Parameters
    ----------
    forests : list of MondrianForestClassifier
        The forests. `merge` checks that they fit together.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All classes a forest knows, sorted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where a forest has them.
    n_samples_stored_ : int
        Number of samples the forests are made of, together.

    See Also
    --------
    merge : Makes it, and says how forests are weighed.

    Notes
    -----
    It has no model file of its own: pickle it, or save the forests and merge them again.

    Examples
    --------
    >>> from onlineforest import MondrianForestClassifier, merge
    >>> north = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], ["elk", "fox"])
    >>> south = MondrianForestClassifier(random_state=1).fit([[8.0], [9.0]], ["fox", "gnu"])
    >>> merged = merge([north, south])
    >>> merged.classes_
    array(['elk', 'fox', 'gnu'], dtype='<U3')
    >>> merged.predict([[0.0], [1.0], [9.0]])
    array(['elk', 'fox', 'gnu'], dtype='<U3')
    """

    __module__ = "onlineforest"

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes a forest knows, sorted."""
        return _classes_of([forest.classes_ for forest in self.forests])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The weighed mean of the forests' probabilities, over `classes_`. A class that a forest
            does not know has probability 0 there.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier, merge
        >>> a = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
        >>> b = MondrianForestClassifier(random_state=1).fit([[0.0], [1.0]], [0, 2])
        >>> merge([a, b]).predict_proba([[0.0], [1.0]]).round(1)
        array([[0.8, 0.1, 0.1],
               [0.2, 0.4, 0.4]])
        """
        return self._predict(X)[0]

    def predict_log_proba(self, X: ArrayLike) -> Floats:
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
        >>> from onlineforest import MondrianForestClassifier, merge
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
        >>> merge([forest]).predict_log_proba([[0.0]]).shape
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
            The class with the largest probability; the first of equals.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier, merge
        >>> forest = MondrianForestClassifier(random_state=0).fit([[0.0], [1.0]], [3, 7])
        >>> merge([forest]).predict([[-1.0], [2.0]])
        array([3, 7])
        """
        probabilities, classes = self._predict(X)
        best: NDArray[Any] = classes[probabilities.argmax(axis=1)]
        return best

    def _predict(self, X: ArrayLike) -> tuple[Floats, NDArray[Any]]:
        """Probabilities, and the classes their columns stand for."""
        asked, _, weights = self._weigh(X)
        classes = self.classes_
        total = np.zeros((weights.shape[1], len(classes)))
        for (forest, rows), weight in zip(asked, weights, strict=True):
            probabilities, own = forest._predict(rows)
            known = _classes_of([classes, own])
            if len(known) > len(classes):  # another thread has learned a new class meanwhile
                wider = np.zeros((len(total), len(known)))
                wider[:, np.searchsorted(known, classes)] = total
                total, classes = wider, known
            total[:, np.searchsorted(classes, own)] += weight[:, np.newaxis] * probabilities
        return total, classes


class MergedForestRegressor(RegressorMixin, BaseMergedForest):
    """Regressors that learned different parts of the data; `merge` makes it.

    Its answers are those of its forests as they are at that moment, weighed by how well each knows
    the place: see `merge`. It does not learn itself, but its forests may go on learning.

    Parameters
    ----------
    forests : list of MondrianForestRegressor
        The forests. `merge` checks that they fit together.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where a forest has them.
    n_samples_stored_ : int
        Number of samples the forests are made of, together.

    See Also
    --------
    merge : Makes it, and says how forests are weighed.

    Notes
    -----
    It predicts means and standard deviations, but neither quantiles nor intervals: those of each
    forest are calibrated on its own part of the data, which promises nothing of them together.

    It has no model file of its own: pickle it, or save the forests and merge them again.

    Examples
    --------
    >>> from onlineforest import MondrianForestRegressor, merge
    >>> low = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [10.0, 20.0])
    >>> high = MondrianForestRegressor(random_state=1).fit([[8.0], [9.0]], [30.0, 40.0])
    >>> merge([low, high]).predict([[0.0], [9.0]]).round()
    array([10., 40.])
    """

    __module__ = "onlineforest"

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    def predict(self, X: ArrayLike, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """The expected value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Whether to return the standard deviation of y, too.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            The weighed mean of the forests' means.
        std : ndarray of shape (n_samples,)
            The standard deviation of the mixture of the forests' laws, so it grows where they
            disagree; only if `return_std`.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor, merge
        >>> ones = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [1.0, 1.0])
        >>> threes = MondrianForestRegressor(random_state=1).fit([[0.0], [1.0]], [3.0, 3.0])
        >>> merge([ones, threes]).predict([[0.5]], return_std=True)
        (array([2.]), array([1.]))
        """
        asked, _, weights = self._weigh(X)
        moments = [forest.predict(rows, return_std=True) for forest, rows in asked]
        means, deviations = np.stack([m for m, _ in moments]), np.stack([s for _, s in moments])
        mean: Floats = (weights * means).sum(axis=0)
        if not return_std:
            return mean
        return mean, np.sqrt((weights * (deviations**2 + (means - mean) ** 2)).sum(axis=0))
