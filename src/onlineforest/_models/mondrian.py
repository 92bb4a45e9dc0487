"""The base class of Mondrian forests: lifetime, weights of the features, novelty.

Must not know what y is, nor files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._core import LabelForest
from onlineforest._models.base import BaseForest, shares_of
from onlineforest._models.ids import Id
from onlineforest._models.parameters import ARRAY_LIKE, Constraints, interval
from onlineforest._models.validation import check_feature_weights


class BaseMondrianForest(BaseForest[LabelForest]):
    """Base of the estimators with Mondrian trees, which document the parameters."""

    _not_numbers = (
        "A Mondrian forest learns numbers only. Take OnlineForestClassifier or "
        "OnlineForestRegressor, which learn categories as they are, or turn categories into "
        "numbers with an encoder of scikit-learn."
    )
    _constraints: ClassVar[Constraints] = {
        **BaseForest._constraints,
        "lifetime": [interval(Real, 0, math.inf)],
        "feature_weights": ["learned", "range", ARRAY_LIKE, None],
    }

    lifetime: float
    feature_weights: ArrayLike | str | None

    @property
    def feature_weights_(self) -> NDArray[np.float64]:
        """The current weight of each feature, shape (n_features,)."""
        return self._core_with_samples().feature_weights

    @property
    def discount_rate_(self) -> float:
        """The current discount per unit of time: gamma in the paper."""
        return self._core_with_samples().discount_rate

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The relevance of each feature for the target, shape (n_features,); the sum is 1.

        Estimated at each access from the stored samples, as for ``"learned"`` in
        `feature_weights`, but always of y itself, without a trend. 0 for a feature without
        evidence; all 0 if no feature has any.
        """
        core = self._core_with_samples()
        return shares_of(core.relevance(self._n_threads()))

    def refresh_weights(self) -> Self:
        """Refresh all that is learned about the data as a whole, whether due or not.

        That is `feature_weights_`, `discount_rate_` and whatever else the estimator learns about
        the data as a whole. All of it is recomputed from the stored samples, so no trace of
        forgotten samples remains. If the weights change, all trees are grown again from the stored
        samples.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(feature_weights="range", random_state=0)
        >>> forest = forest.partial_fit([[0.0], [2.0]], [0, 1]).partial_fit([[4.0]], [1])
        >>> forest.feature_weights_, forest.refresh_weights().feature_weights_
        (array([0.5]), array([0.25]))
        """
        core = self._core
        self._check_parameters_unchanged()
        core.refresh(self._n_threads())
        return self

    def forget(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Unlearn samples: the forest becomes one that never saw them.

        This is exact: given what is learned about the data as a whole (see Notes), the forest has
        the distribution of one learned from the other samples alone. Either all samples are
        forgotten, or an error names those that are not stored, and nothing has changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The samples as they were learned. Of several equal samples the oldest is forgotten; a
            sample given twice is forgotten twice.
        y : array-like of shape (n_samples,), default=None
            Their targets as they were learned.
        ids : iterable of int or str, default=None
            The ids of the samples, instead of X and y.

        Returns
        -------
        object
            The estimator itself.

        Notes
        -----
        Forgetting takes about as long as learning the samples; a regressor takes longer where very
        many equal values of y lie together. If more than a fifth of the samples are forgotten, all
        trees are grown again. Do not choose samples by looking at the trees, for example the
        deepest ones: the remaining forest would be biased.

        Nothing of the samples remains in the stored data, the trees or a saved forest. But they
        also contributed to the weights of the features and to whatever else is learned about the
        data as a whole. That contribution remains, mixed with all others, until the next refresh.
        A refresh comes in due time, sooner if few samples are left, or with `refresh_weights`.
        Features and classes stay known. A forest without samples behaves like a new one.

        After an interrupt (Ctrl-C), either nothing has changed, or all samples are forgotten and
        the next call grows some trees again.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> people = ["Ada", "Grace", "Emmy"]
        >>> forest = forest.partial_fit([[0.0], [1.0], [2.0]], ["a", "b", "a"], ids=people)
        >>> forest.forget(ids=["Grace"]).n_samples_stored_
        2
        >>> forest.forget([[2.0]], ["a"]).ids_
        frozenset({'Ada'})
        """
        self._forget(X, y, ids)
        return self

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """The leaf of each sample in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Indices of nodes, as in ``trees_``. -1 for a tree without nodes, which occurs only after
            an interrupted call.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(n_estimators=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [0, 1]).apply([[0.0], [1.0]])
        array([[1, 1],
               [2, 2]], dtype=int32)
        """
        return self._predict_rows(self._core.apply, X)

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """How far each sample is from all samples learned, 0 to 1.

        The probability that a tree separates the sample from all samples learned before it reaches
        a leaf, averaged over the trees. 0 for samples that were learned, small for samples like
        them, near 1 far from all of them. Features with a small weight, which are hardly relevant
        for y, count little.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The novelty of each sample. A useful threshold depends on the data: look at the novelty
            of samples that are like the learned ones but were not learned.

        Notes
        -----
        A block whose values of y are all equal is not cut. So a forest that has seen only one
        class, or one value of y, has no cuts, and the novelty is 0 everywhere. Without labels, let
        a regressor learn distinct numbers as y.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import MondrianForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = MondrianForestClassifier(n_estimators=20, random_state=0)
        >>> forest = forest.fit(X[:1500], y[:1500])
        >>> usual = forest.novelty(X[1500:])
        >>> inverted = forest.novelty(16 - X[1500:])  # white on black
        >>> usual.mean().round(1), inverted.mean().round(1)
        (np.float64(0.1), np.float64(0.5))
        """
        return self._predict_rows(self._core_with_samples().novelty, X)

    def _check_trees(self) -> None:
        self._forest.check_invariants()

    def _core_options(self, n_features: int) -> dict[str, Any]:
        options = super()._core_options(n_features)
        rule, weights = "unit", None
        if isinstance(self.feature_weights, str):
            rule = self.feature_weights
        elif self.feature_weights is not None:
            rule, weights = "fixed", check_feature_weights(self.feature_weights, n_features)
        return {
            "lifetime": float(self.lifetime),
            "weight_rule": rule,
            "weights": weights,
            **options,
        }

    def _built_with_now(self, n_features: int) -> dict[str, Any]:
        built_with = super()._built_with_now(n_features)
        weights = self.feature_weights
        if weights is not None and not isinstance(weights, str):
            built_with["feature_weights"] = check_feature_weights(weights, n_features)
        return built_with
