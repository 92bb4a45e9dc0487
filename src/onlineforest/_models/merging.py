"""Combines forests that learned different parts of the data: exactly, or their predictions.

Knows how Mondrian forests are weighted. Must not know how a forest works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Never, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from onlineforest._models.base import BaseForest
from onlineforest._models.class_codes import ClassCodes, kind_of_labels
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.core import LOCAL
from onlineforest._models.loading import AnyForest
from onlineforest._models.online import BaseOnlineForest
from onlineforest._models.online_classifier import OnlineForestClassifier
from onlineforest._models.online_regressor import OnlineForestRegressor
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.validation import check_rows

Floats = NDArray[np.float64]

# The weight of a forest is this power of 1 - novelty. Measured by experiments/merging.py: a smaller
# power gives weight to forests far from their samples; a larger one lets regressors rely on a
# single forest, and predict too small deviations.
POWER = 4
# Lower bound of 1 - novelty: if all forests are below it, they count equally.
LEAST_KNOWN = 0.01


@overload
def merge(forests: Iterable[OnlineForestClassifier]) -> OnlineForestClassifier: ...
@overload
def merge(forests: Iterable[OnlineForestRegressor]) -> OnlineForestRegressor: ...
@overload
def merge(forests: Iterable[MondrianForestClassifier]) -> MergedForestClassifier: ...
@overload
def merge(forests: Iterable[MondrianForestRegressor]) -> MergedForestRegressor: ...
def merge(forests: Iterable[Any]) -> Any:
    """Combine forests that learned different parts of the data.

    Order-free forests (`OnlineForestClassifier`, `OnlineForestRegressor`) are merged exactly. The
    result is an order-free forest: the one that `fit` makes of the samples of all forests together,
    to the last bit. It has all samples and learns on.

    Mondrian forests are merged approximately, and the samples stay where they are. The result is a
    `MergedForestClassifier` or a `MergedForestRegressor`, which only predicts. Each tree has
    learned the samples of its own part only. So it differs from a forest that learned all samples,
    and is usually worse, the more so the smaller the parts.

    Parameters
    ----------
    forests : iterable of estimators
        At least one; all of one class, fitted, with the same features. They are not changed.
        Order-free forests must also have equal seeds and parameters, distinct ids, and no `window`
        or `reservoir`: see `OnlineForestClassifier.learn_from`.

    Returns
    -------
    OnlineForestClassifier, OnlineForestRegressor, MergedForestClassifier or MergedForestRegressor
        The order-free forest of all samples; or an estimator that predicts from all Mondrian
        forests, which are not copied.

    Raises
    ------
    TypeError
        If something is not a forest, or forests are of two kinds.
    ValueError
        If there is no forest, or if features or kinds of labels differ. Of order-free forests also
        if seeds or parameters differ, or if two samples have the same id.
    sklearn.exceptions.NotFittedError
        If a forest has learned nothing yet.

    See Also
    --------
    OnlineForestClassifier.learn_from : Exact as well, but without a copy of the largest forest.

    Notes
    -----
    *Exact.* The order-free forest with the most samples is copied and learns those of the others.
    Its samples count as the first to arrive, then those of the others in the order given.

    *Approximate.* The weight of a forest for a sample is the number of samples it stores times
    ``(1 - novelty) ** 4``, where ``novelty`` is that of its own method; ``1 - novelty`` is at least
    0.01. So forests without samples nearby have little weight if another forest has some, and all
    forests count if none has. The parts may be random, or divided by place or time, but not by
    class, not even nearly: a forest that has seen one class and little else has a small novelty,
    and thus a large weight, everywhere.

    Each prediction also computes the novelty of every forest, which at most doubles its time.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import MondrianForestClassifier, OnlineForestClassifier, merge
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [slice(0, 500), slice(500, 1000), slice(1000, 1500)]
    >>> forests = [OnlineForestClassifier(20, random_state=0).fit(X[p], y[p]) for p in parts]
    >>> whole = OnlineForestClassifier(20, random_state=0).fit(X[:1500], y[:1500])
    >>> merge(forests).digest_ == whole.digest_
    True

    Of Mondrian forests:

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
    if issubclass(kind, BaseOnlineForest):
        return _united(members)
    _check_features(members)
    if kind is MondrianForestRegressor:
        return MergedForestRegressor(members)
    _classes_of([forest.classes_ for forest in members])
    return MergedForestClassifier(members)


merge.__module__ = "onlineforest"


def _united(forests: Sequence[Any]) -> Any:
    """The order-free forest of the samples of all forests."""
    names = [f"forests[{i}]" for i in range(len(forests))]
    largest = max(range(len(forests)), key=lambda i: forests[i].n_samples_stored_)
    union = forests[largest]._copy_with_core(LOCAL.restore)
    others = [i for i in range(len(forests)) if i != largest]
    union._unite([forests[i] for i in others], names[largest], [names[i] for i in others])
    return union


def _kind_of(forests: Sequence[Any]) -> type[BaseForest]:
    """The common class of all forests, or an error."""
    if not forests:
        raise ValueError("merge needs at least one forest. Got none.")
    kinds: list[type[BaseForest]] = []
    for i, forest in enumerate(forests):
        for kind in get_args(AnyForest):
            if isinstance(forest, kind):
                kinds.append(kind)
                break
        else:
            raise TypeError(
                "merge needs forests of one kind, such as OnlineForestClassifier, but "
                f"forests[{i}] is of type {type(forest).__name__}."
                + (" Merge the result of its gather()." if hasattr(forest, "gather") else "")
            )
        if kinds[i] is not kinds[0]:
            raise TypeError(
                f"merge needs forests of one kind, but forests[0] is a {kinds[0].__name__} and "
                f"forests[{i}] a {kinds[i].__name__}."
            )
    return kinds[0]


def _check_features(forests: Sequence[Any]) -> None:
    """Raise if the features of the forests differ."""
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
    """All classes of the forests, sorted."""
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
    """Base of the merged forests: their features and their weights."""

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
        """Names of the features, if a forest has them."""
        for forest in self.forests:
            if hasattr(forest, "feature_names_in_"):
                names: NDArray[Any] = forest.feature_names_in_
                return names
        raise AttributeError("No forest has names of features.")

    @property
    def n_samples_stored_(self) -> int:
        """Number of samples stored by all forests together."""
        return sum(forest.n_samples_stored_ for forest in self.forests)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Never:  # noqa: ARG002
        """Raise an error: only the forests learn.

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
        """How far each sample is from all samples learned, 0 to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The mean of the forests' novelties, weighted as their predictions are: small if a forest
            has learned samples like it, near 1 if none has.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor, merge
        >>> low = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> high = MondrianForestRegressor(random_state=1).fit([[100.0], [101.0]], [0.0, 1.0])
        >>> merge([low, high]).novelty([[0.0], [50.0], [100.0]]).round(1)
        array([0., 1., 0.])
        """
        _, novelty, weights = self._weighted_queries(X)
        mean: Floats = (weights * novelty).sum(axis=0)
        return mean

    def _weighted_queries(self, X: ArrayLike) -> tuple[list[tuple[Any, Any]], Floats, Floats]:
        """The forests that have samples, each with X in its form; their novelty; their weights.

        Novelty and weights have shape (n_forests, n_samples). The weights of a sample sum to 1.
        """
        check_is_fitted(self)
        members = [forest for forest in self.forests if forest.n_samples_stored_ > 0]
        if not members:
            raise ValueError(
                f"The forests of this {type(self).__name__} have no samples. Learn some first."
            )
        queries = [(forest, self._rows_for(forest, X)) for forest in members]
        novelty = np.stack([forest.novelty(rows) for forest, rows in queries])
        sizes = np.array([[forest.n_samples_stored_] for forest in members], dtype=np.float64)
        weights = sizes * np.maximum(1.0 - novelty, LEAST_KNOWN) ** POWER
        return queries, novelty, weights / weights.sum(axis=0)

    def _rows_for(self, forest: Any, X: Any) -> Any:
        """X as given, but without names for a forest that has none while others have."""
        if hasattr(self, "feature_names_in_") and not hasattr(forest, "feature_names_in_"):
            return check_rows(self, X, reset=False)
        return X


class MergedForestClassifier(ClassifierMixin, BaseMergedForest):
    """Classifiers that learned different parts of the data, made by `merge`.

    A prediction combines the current predictions of the forests, weighted by how close each has
    samples: see `merge`. The merged forest does not learn, but its forests may continue to learn.

    Parameters
    ----------
    forests : list of MondrianForestClassifier
        The forests. `merge` checks that they fit together.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All classes of the forests, sorted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if a forest has them.
    n_samples_stored_ : int
        Number of samples stored by all forests together.

    See Also
    --------
    merge : Makes a merged forest, and describes the weights.

    Notes
    -----
    There is no model file for a merged forest: pickle it, or save its forests and merge them again.

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
        """All classes of the forests, sorted."""
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
            The weighted mean of the forests' probabilities, over `classes_`. A class that is
            unknown to a forest has probability 0 in it.

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
            The class with the largest probability; the first of several.

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
        """Probabilities, and the classes of their columns."""
        queries, _, weights = self._weighted_queries(X)
        classes = self.classes_
        total = np.zeros((weights.shape[1], len(classes)))
        for (forest, rows), weight in zip(queries, weights, strict=True):
            probabilities, own = forest._predict(rows)
            known = _classes_of([classes, own])
            if len(known) > len(classes):  # another thread has learned a new class meanwhile
                wider = np.zeros((len(total), len(known)))
                wider[:, np.searchsorted(known, classes)] = total
                total, classes = wider, known
            total[:, np.searchsorted(classes, own)] += weight[:, np.newaxis] * probabilities
        return total, classes


class MergedForestRegressor(RegressorMixin, BaseMergedForest):
    """Regressors that learned different parts of the data, made by `merge`.

    A prediction combines the current predictions of the forests, weighted by how close each has
    samples: see `merge`. The merged forest does not learn, but its forests may continue to learn.

    Parameters
    ----------
    forests : list of MondrianForestRegressor
        The forests. `merge` checks that they fit together.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if a forest has them.
    n_samples_stored_ : int
        Number of samples stored by all forests together.

    See Also
    --------
    merge : Makes a merged forest, and describes the weights.

    Notes
    -----
    It predicts means and standard deviations, but neither quantiles nor intervals: each forest is
    calibrated on its own part of the data, which promises nothing for the mixture.

    There is no model file for a merged forest: pickle it, or save its forests and merge them again.

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
            Whether to return the standard deviation of y as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            The weighted mean of the forests' means.
        std : ndarray of shape (n_samples,)
            The standard deviation of the mixture of the forests' distributions, which grows where
            they disagree; only if `return_std`.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor, merge
        >>> ones = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [1.0, 1.0])
        >>> threes = MondrianForestRegressor(random_state=1).fit([[0.0], [1.0]], [3.0, 3.0])
        >>> merge([ones, threes]).predict([[0.5]], return_std=True)
        (array([2.]), array([1.]))
        """
        queries, _, weights = self._weighted_queries(X)
        moments = [forest.predict(rows, return_std=True) for forest, rows in queries]
        means, deviations = np.stack([m for m, _ in moments]), np.stack([s for _, s in moments])
        mean: Floats = (weights * means).sum(axis=0)
        if not return_std:
            return mean
        return mean, np.sqrt((weights * (deviations**2 + (means - mean) ** 2)).sum(axis=0))
