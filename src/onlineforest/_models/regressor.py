"""The Mondrian forest regressor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import GaussianForest
from onlineforest._models.base import Lesson
from onlineforest._models.core import NUMBERS, Floats, NumberCore, Rows
from onlineforest._models.ids import Id
from onlineforest._models.locking import Guard, guard_of
from onlineforest._models.saveable import SaveableForest
from onlineforest._models.trees import RegressionTree, TreeSequence
from onlineforest._models.validation import (
    check_levels,
    check_row,
    check_rows,
    check_values,
    plain_rows,
    plain_values,
)


class NumberLesson(Lesson[NumberCore]):
    """The numbers of a batch."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def teach(self, core: NumberCore, rows: Rows, n_threads: int, one_by_one: bool = False) -> None:
        core.learn(rows, self._values, n_threads, one_by_one)


class MondrianForestRegressor(RegressorMixin, SaveableForest[NumberCore]):
    """A random forest regressor that learns online and knows how sure it is.

    The Mondrian forest of Lakshminarayanan, Roy and Teh [1]_ for numbers [2]_. Samples can come all
    at once (`fit`), in batches or one at a time (`partial_fit`), in any order: given what is
    learned about the data as a whole (below), the forest has the same distribution. Every tree
    holds a Gaussian model of y whose posterior is exact; its prediction is a mixture of normals,
    and so is the forest's. Far from everything seen, predictions go back to the trend and get
    wide.

    What is learned about the data as a whole: the weights of the features, the trend, the noise,
    the discount and the calibration. All of them are computed again when half as many samples have
    come as they were computed from (as many, if the weights are not learned).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Time at which trees stop being cut. Smaller is coarser.
    discount : float or "learned", default="learned"
        How fast a node's mean is tied to its parent's: of the prior variance, the share
        ``exp(-discount_rate_ * t)`` comes after time t. The rate is `discount` times the sum over
        features of weight times range. Larger is smoother. ``"learned"`` climbs a ladder from 0.02
        by the squared error on samples left out.
    noise : float in [1e-9, 1] or "learned", default="learned"
        The share of the variance of y around its trend that no tree is to explain. ``"learned"``
        as above, from 0.01.
    trend : {"additive", None}, default="additive"
        What is expected of y before looking at samples nearby. ``"additive"``: a sum of functions
        of one feature each, straight between up to 16 knots, fitted by least squares; with fewer
        knots, linear, or the mean, if on samples left out more is not clearly better; at most
        linear for a single feature, the mean for more than 256. Outside the range of the data the
        trend stays as it was at the border. None: the mean.
    calibrate : bool, default=True
        Whether predictions are corrected so that they hold: see Notes.
    min_samples_split : int, default=2
        A block with fewer samples is not cut (yet); nor is one whose values of y are all equal.
    feature_weights : {"learned", "range"}, array-like of shape (n_features,) or None, \
            default="learned"
        What each feature weighs in the rate of cuts.

        - ``"learned"``: a share over the range. The share is a power, usually the square, of what
          the feature tells about y beyond the trend, as measured on the samples by thirty greedy
          trees; a trial on samples left out chooses the power, 0 among them. With less than 40
          samples, or where no feature tells anything, the same as ``"range"``.
        - ``"range"``: 1 over the range of the data seen; 0 for a constant feature.
        - array-like: fixed weights. 0 leaves a feature out.
        - None: all 1.

        If the new weights differ by more than little, all trees are grown afresh from the stored
        samples.
    window : int or None, default=None
        Keep only the latest so many samples: older ones are forgotten as new ones come (see
        `forget`), so an endless stream takes fixed memory, and a changing world is followed.
    reservoir : int or None, default=None
        Keep a sample of so many of all that came, each equally likely, or as `half_life` says.
        Those that are not drawn are not learned, or forgotten.
    half_life : float or None, default=None
        For a reservoir: a sample that came so many samples earlier is half as likely to be kept.
        None: equally likely.
    n_jobs : int or None, default=None
        Number of threads, over the trees. None is 1, -1 all processors. The result does not depend
        on it, to the last bit.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees; an int gives the same forest each time.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had string column names.
    n_samples_seen_ : int
        Number of samples given, forgotten ones included.
    n_samples_stored_ : int
        Number of samples the forest is made of.
    ids_ : frozenset
        The ids of the stored samples that have one.
    feature_weights_ : ndarray of shape (n_features,)
        The weights now.
    feature_importances_ : ndarray of shape (n_features,)
        How much each feature tells about y; measured when asked for, in all modes.
    discount_rate_ : float
        The discount rate now.
    noise_ : float
        The noise now.
    nbytes_ : int
        What the forest takes in memory, the samples it keeps included, in bytes.
    trees_ : sequence of RegressionTree
        The trees, as read-only arrays.

    Notes
    -----
    **Calibration.** With at least 40 samples, one in twenty of them, but 256 to 1000, are predicted
    by the forest as it would be without them: exactly, tree by tree, which for Mondrian trees takes
    no longer than a prediction. The trend, which was fitted to all, is corrected by its leverage.
    From their errors come a scale and a noise of maximum likelihood, by which all predicted laws
    are corrected, and the level at which each of them lay in its corrected law. The quantile of
    level q is then taken at the level below which a share q of those lay. If samples are
    exchangeable (as independent draws from one source are), a new sample is like those left out but
    for the one sample more its forest has seen, and for what was learned of the data as a whole
    with them; so an interval of coverage 0.9 holds about nine in ten new values, on average over
    new samples. It says nothing about each place by itself, nor about a world that changes.
    `std` and `log_density` have the scale and the noise, but not the levels.

    y is kept as float64, X as float32: see `MondrianForestClassifier`, also for what happens when
    `partial_fit` is interrupted.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SaveableForest._parameter_constraints,
        "discount": [Interval(Real, 0, None, closed="neither"), StrOptions({"learned"})],
        "noise": [Interval(Real, 1e-9, 1, closed="both"), StrOptions({"learned"})],
        "trend": [StrOptions({"additive"}), None],
        "calibrate": ["boolean"],
    }
    _core_kind = NUMBERS
    _core_forest = GaussianForest
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
        """The share of the variance around the trend that is noise, now."""
        return self._core_with_samples().noise

    @property
    def trees_(self) -> TreeSequence[RegressionTree]:
        """The trees, as read-only arrays."""
        check_is_fitted(self)
        return TreeSequence(
            lambda: self._forest.n_trees, lambda index: RegressionTree(**self._forest.tree(index))
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, ids: Iterable[Id] | None = None) -> Self:
        """Learn a forest from these samples alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their values.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` can find the samples, all different and new.

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
        self._learn_afresh(X, y, ids)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike, ids: Iterable[Id] | None = None) -> Self:
        """Learn more samples; on a new estimator, the first ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their values.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` can find the samples, all different and new.

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
        self._learn_more(X, y, ids)
        return self

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
            The mean of the predicted law.
        std : ndarray of shape (n_samples,)
            Its standard deviation, the spread between the trees included; only if `return_std`.
            0 as long as all values learned are the same.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> mean, std = forest.predict([[2.0], [100.0]], return_std=True)
        >>> std[0] < std[1]
        np.True_
        """
        moments = self._predict_rows(self._core.predict, X)
        mean, std = np.ascontiguousarray(moments[:, 0]), np.ascontiguousarray(moments[:, 1])
        return (mean, std) if return_std else mean

    def predict_quantiles(self, X: ArrayLike, q: ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles of the predicted law.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        q : float or array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            The levels, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples,) if q is a number
            The values below which y lies with these probabilities.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> low, median, high = forest.predict_quantiles([[1.0]], q=[0.1, 0.5, 0.9])[0]
        >>> low < median < high
        np.True_
        """
        core, levels = self._core, check_levels(q)
        quantiles = self._predict_rows(
            lambda rows, n_threads: core.quantiles(rows, levels, n_threads), X
        )
        return quantiles[:, 0] if np.ndim(q) == 0 else quantiles

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Floats:
        """An interval that holds y with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        coverage : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end: the quantiles of the levels ``(1 - coverage) / 2`` and
            ``(1 + coverage) / 2``. What is promised of them is said in the class's Notes.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> forest.predict_interval([[1.0], [1.5]], coverage=0.5).shape
        (2, 2)
        """
        if np.ndim(coverage) != 0:
            raise ValueError(f"coverage must be one number. Got {coverage!r} instead.")
        level = check_levels(coverage, "coverage")[0]
        return self.predict_quantiles(
            X, [(1.0 - level) / 2.0, min((1.0 + level) / 2.0, np.nextafter(1.0, 0.0))]
        )

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Logarithm of the predicted density of each value at its sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            The values.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``log p(y | x)``. As long as all values learned are the same, it is infinite: positive
            at that value, negative elsewhere.

        Examples
        --------
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> near, far = forest.log_density([[1.0], [1.0]], [1.0, 100.0])
        >>> near > far
        np.True_
        """
        core = self._core
        rows = self._check_queries(X)
        values = check_values(y)
        if len(rows) != len(values):
            raise ValueError(f"X has {len(rows)} samples, but y has {len(values)} values.")
        return core.log_density(rows, values, self._n_threads())

    def learn_one(self, x: ArrayLike, y: float, id: Id | None = None) -> Self:
        """Learn one more sample: what `partial_fit` of one row does, without its overhead.

        Now and then, ever more rarely, a call takes as long as `fit`: when what is learned about
        the data as a whole is due again.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The sample. An array of float32 or float64 is quickest; names of features are not
            looked at.
        y : float
            Its value.
        id : int or str, default=None
            A name by which `forget` can find the sample.

        Returns
        -------
        MondrianForestRegressor
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0)
        >>> for x in range(5):
        ...     forest = forest.learn_one(np.array([x]), 2.0 * x)
        >>> forest.n_samples_seen_
        5
        """
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one number. Got {y!r} instead.")
        guard: Guard[Any] = guard_of(self)
        with guard.lock:
            if guard.pending is not None:
                self._settle()
            if not hasattr(self, "_forest") or id is not None:
                names = None if id is None else [id]
                self.partial_fit(check_row(x)[np.newaxis], [y], ids=names)
                return self
            self._check_parameters_unchanged()
            value = float(check_values([y])[0]) if type(y) is not float else y
            try:
                self._forest.learn_one(x, value)
            except TypeError:
                self._forest.learn_one(check_row(x), value)
        return self

    @overload
    def predict_one(self, x: ArrayLike, return_std: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: ArrayLike, return_std: Literal[True]) -> tuple[float, float]: ...
    def predict_one(self, x: ArrayLike, return_std: bool = False) -> float | tuple[float, float]:
        """The expected value of one sample: an entry of `predict`, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The sample. An array of float32 or float64 is quickest; names of features are not
            looked at.
        return_std : bool, default=False
            Whether to return the standard deviation, too.

        Returns
        -------
        mean : float
            The mean of the predicted law.
        std : float
            Its standard deviation; only if `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestRegressor
        >>> forest = MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [3.0, 7.0])
        >>> round(forest.predict_one(np.array([1.0])))
        7
        """
        core = self._core
        try:
            mean, std = core.predict_one(x)
        except TypeError:
            mean, std = core.predict_one(check_row(x))
        return (mean, std) if return_std else mean

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if not reset:
            rows, values = plain_rows(self, X), plain_values(y)
            if rows is not None and values is not None and len(rows) == len(values):
                return rows, values
        rows, target = check_rows(self, X, y=y, reset=reset, y_numeric=True, multi_output=True)
        return rows, check_values(target)

    def _lesson(self, target: NDArray[Any], **_: Any) -> NumberLesson:
        return NumberLesson(target)

    def _stored_values(self, target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return target, np.ones(len(target), dtype=np.bool_)
