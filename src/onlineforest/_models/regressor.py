"""The Mondrian forest regressor. Must not know how its core forest works, nor where it lives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._models.base import Lesson
from onlineforest._models.base_regressor import BaseRegressor
from onlineforest._models.core import NUMBERS, Floats, NumberCore, Rows, Units
from onlineforest._models.ids import Id
from onlineforest._models.mondrian import BaseMondrianForest
from onlineforest._models.parameters import BOOLEAN, Constraints, interval
from onlineforest._models.saveable import SaveableForest
from onlineforest._models.trees import RegressionTree, TreeSequence


class NumberLesson(Lesson[NumberCore]):
    """The numbers of a batch."""

    def __init__(self, values: Floats, units: Units) -> None:
        self._values, self._units = values, units

    def teach(self, core: NumberCore, rows: Rows, n_threads: int, one_by_one: bool = False) -> None:
        core.learn(rows, self._values, n_threads, one_by_one, self._units)


class MondrianForestRegressor(
    BaseRegressor[NumberCore], BaseMondrianForest[NumberCore], SaveableForest[NumberCore]
):
    """A random forest regressor that learns online and predicts its own uncertainty.

    The Mondrian forest of Lakshminarayanan, Roy and Teh [1]_ for numbers [2]_. Samples can come all
    at once (`fit`), in batches or one at a time (`partial_fit`), in any order: given what is
    learned about the data as a whole (below), the distribution of the forest is the same. Every
    tree holds a Gaussian model of y whose posterior is exact. The prediction of a tree is a mixture
    of normals, and so is that of the forest. Far from all samples seen, predictions approach the
    trend and become wide.

    The forest learns about the data as a whole: the weights of the features, the trend, the noise,
    the discount and the calibration. All of them are refreshed when the number of new samples is
    half the number they were computed from (as many, if the weights are not learned). A call of
    `learn_one` that is due for it takes as long as `fit`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Time at which cutting stops. A smaller value gives coarser trees.
    discount : float or "learned", default="learned"
        How closely the mean of a node is tied to that of its parent: the share
        ``exp(-discount_rate_ * t)`` of the prior variance comes after time t. The rate is
        `discount` times the sum over features of weight times range. A larger value gives smoother
        predictions. ``"learned"`` increases it in steps from 0.02 while the squared error on
        left-out samples improves.
    noise : float in [1e-9, 1] or "learned", default="learned"
        The share of the variance of y around its trend that trees do not explain. ``"learned"``
        increases it in steps from 0.01, as for `discount`.
    trend : {"additive", None}, default="additive"
        The prior mean of y as a function of x. ``"additive"``: a sum of functions of one feature
        each, piecewise linear with up to 16 knots, fitted by least squares. A trial on left-out
        samples may choose fewer knots, a linear function or the mean, if more is not clearly
        better. For a single feature the trend is at most linear, for more than 256 features it is
        the mean. Outside the range of the data it is constant. None: the mean.
    calibrate : bool, default=True
        Whether predicted distributions are calibrated: see Notes.
    min_samples_split : int, default=2
        A block with fewer samples is not cut yet; nor is a block whose values of y are all equal.
    feature_weights : {"learned", "range"}, array-like of shape (n_features,) or None, \
            default="learned"
        The weight of each feature in the rate of cuts.

        - ``"learned"``: a share divided by the range. The share is a power, usually the square, of
          the relevance of the feature for y beyond the trend, which thirty greedy trees estimate
          from the samples. A trial on left-out samples chooses the power, which may be 0. With less
          than 40 distinct samples, or if no feature is relevant, as ``"range"``.
        - ``"range"``: 1 divided by the range of the data seen; 0 for a constant feature.
        - array-like: fixed weights. 0 ignores a feature.
        - None: all 1.

        If a refresh changes the weights by more than a little, all trees are grown again from the
        stored samples.
    window : int or None, default=None
        Number of latest samples to keep: older ones are forgotten as new ones come (see
        `forget`). An endless stream then takes fixed memory, and the forest follows changes.
    reservoir : int or None, default=None
        Number of samples to keep of all that came, drawn at random: each equally likely, or as
        `half_life` says. Samples that are not drawn are not learned, or are forgotten.
    half_life : float or None, default=None
        For a reservoir: a sample is half as likely to be kept as one that came `half_life` samples
        later. None: equally likely.
    n_jobs : int or None, default=None
        Number of threads, which share the trees. None is 1, -1 all processors. The result is the
        same to the last bit.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees; an int makes the forest reproducible.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.
    n_samples_seen_ : int
        Number of samples learned, forgotten ones included.
    n_samples_stored_ : int
        Number of stored samples.
    ids_ : frozenset
        The ids of the stored samples that have one.
    feature_weights_ : ndarray of shape (n_features,)
        The current weights.
    feature_importances_ : ndarray of shape (n_features,)
        The relevance of each feature for y, with sum 1; estimated at each access.
    discount_rate_ : float
        The current discount rate.
    noise_ : float
        The current noise.
    nbytes_ : int
        Memory of the forest in bytes: its samples, trees and ids.
    trees_ : sequence of RegressionTree
        The trees as read-only arrays.

    Notes
    -----
    **Calibration.** Once 40 distinct samples are stored, 5 % of them (but 256 to 1000) get exact
    leave-one-out predictions, tree by tree; for Mondrian trees these take no longer than ordinary
    predictions. The trend, which was fitted to all samples, is corrected by its leverage. The
    errors of these predictions give a scale and a noise of maximum likelihood, which correct all
    predicted distributions, and the level of each left-out value in its corrected distribution. The
    quantile of level q is then taken at the level below which a share q of these levels lies. If
    samples are exchangeable, as independent draws from one source are, a new sample is like a
    left-out one, except that its forest has seen one sample more and that the left-out samples
    contributed to what is learned about the data as a whole. So an interval of coverage 0.9
    contains about 90 % of new values, on average over new samples. It promises nothing for each
    region by itself, nor for data that changes. `std` and `log_density` use the scale and the
    noise, but not the levels.

    y is stored as float64, X as float32. `MondrianForestClassifier` describes the rounding, and
    what happens when `partial_fit` is interrupted.

    References
    ----------
    .. [1] B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests: Efficient Online Random
       Forests. Advances in Neural Information Processing Systems 27, 2014.
    .. [2] B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests for Large-Scale Regression
       when Uncertainty Matters. AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onlineforest import MondrianForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = MondrianForestRegressor(n_estimators=20, random_state=0)
    >>> for start in range(0, 400, 50):
    ...     forest = forest.partial_fit(X[start : start + 50], y[start : start + 50])
    >>> forest.n_samples_seen_
    400
    >>> interval = forest.predict_interval(X[400:], coverage=0.9)
    >>> inside = (interval[:, 0] <= y[400:]) & (y[400:] <= interval[:, 1])
    >>> 0.75 < inside.mean() < 1.0
    np.True_
    """

    __module__ = "onlineforest"

    _constraints: ClassVar[Constraints] = {
        **BaseMondrianForest._constraints,
        "discount": [interval(Real, 0, math.inf, "()"), "learned"],
        "noise": [interval(Real, 1e-9, 1), "learned"],
        "trend": ["additive", None],
        "calibrate": [BOOLEAN],
    }
    _core_kind = NUMBERS
    _saved_as = "MondrianForestRegressor"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        discount: float | str = "learned",
        noise: float | str = "learned",
        trend: str | None = "additive",
        calibrate: bool = True,
        min_samples_split: int = 2,
        feature_weights: ArrayLike | str | None = "learned",
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.discount = discount
        self.noise = noise
        self.trend = trend
        self.calibrate = calibrate
        self.min_samples_split = min_samples_split
        self.feature_weights = feature_weights
        self.window = window
        self.reservoir = reservoir
        self.half_life = half_life
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _own_options(self) -> dict[str, Any]:
        return {
            "discount": None if self.discount == "learned" else float(self.discount),
            "noise": None if self.noise == "learned" else float(self.noise),
            "trend": self.trend is not None,
            "calibrate": bool(self.calibrate),
        }

    @property
    def noise_(self) -> float:
        """The current share of the variance around the trend that is noise."""
        return self._core_with_samples().noise

    @property
    def trees_(self) -> TreeSequence[RegressionTree]:
        """The trees as read-only arrays."""
        check_is_fitted(self)
        return TreeSequence(
            lambda: self._forest.n_trees, lambda index: RegressionTree(**self._forest.tree(index))
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Learn a forest from these samples alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts. A sample of weight 2 is the same as two equal samples, and
            one of weight 0 is not learned. Rounded to multiples of 2^-16. None: each counts once.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        MondrianForestRegressor
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest.fit([[0.0], [1.0]], [10.0, 20.0]).predict([[0.0], [1.0]]).round()
        array([10., 20.])
        """
        self._learn_from_scratch(X, y, ids, sample_weight)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Learn more samples, or the first ones of a new estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts. A sample of weight 2 is the same as two equal samples, and
            one of weight 0 is not learned. Rounded to multiples of 2^-16. None: each counts once.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        MondrianForestRegressor
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest = forest.partial_fit([[0.0], [1.0]], [10.0, 20.0])
        >>> forest.partial_fit([[2.0]], [40.0]).n_samples_seen_
        3
        """
        self._learn_more(X, y, ids, sample_weight)
        return self

    def _moments(self, rows: Rows, n_threads: int) -> Floats:
        return self._core.predict(rows, n_threads)

    def _moments_of_one(self, x: ArrayLike) -> tuple[float, float]:
        return self._core.predict_one(x)

    def _quantiles(self, rows: Rows, levels: Floats, n_threads: int) -> Floats:
        return self._core.quantiles(rows, levels, n_threads)

    def _log_density(self, rows: Rows, values: Floats, n_threads: int) -> Floats:
        return self._core.log_density(rows, values, n_threads)

    def _lesson(self, target: NDArray[Any], **options: Any) -> NumberLesson:
        return NumberLesson(target, options.get("units"))
