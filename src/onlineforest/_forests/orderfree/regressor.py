"""The order-free forest regressor. Must not know how its core forest works, nor where it lives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import (
    ORDER_FREE_NUMBERS,
    Floats,
    OrderFreeNumberCore,
    Rows,
)
from onlineforest._forests.learning import learn, learn_one
from onlineforest._forests.lessons import Samples
from onlineforest._forests.orderfree.calibrated import CalibratedForest
from onlineforest._forests.orderfree.fitted import Fitted
from onlineforest._forests.orderfree.fitted_lessons import FittedLesson
from onlineforest._forests.orderfree.holdings import Holdings, joined_weights
from onlineforest._forests.orderfree.number_calibration import (
    NumberCalibration,
    finite,
    r2_of,
)
from onlineforest._forests.orderfree.numbers import Numbers
from onlineforest._forests.orderfree.tree_arrays import number_arrays, tree_arrays
from onlineforest._forests.trees import OnlineRegressionTree, TreeSequence
from onlineforest._inputs.ids import Id
from onlineforest._inputs.one_row import RowLike
from onlineforest._inputs.targets import check_values
from onlineforest._inputs.validation import check_levels, check_row
from onlineforest._inputs.weights import stored_weight_of_one


class OnlineForestRegressor(
    RegressorMixin, CalibratedForest[NumberCalibration, OrderFreeNumberCore]
):
    """A random forest regressor that learns online and does not depend on the order of samples.

    The forest is a function of its seed, its parameters and the samples it holds. Nothing else
    matters, to the last bit: see `OnlineForestClassifier`, which has the same trees. In a stream,
    the calibration of predictions may lag: see Notes.

    Splits look at y. Features may have any scale, and values may be missing.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    min_samples_split : int, default=3
        The least weight of samples that a node must have to be split: their number, equal ones
        counted each, if no weights are given. Left-out samples choose how far the trees are used:
        see Notes.
    max_samples : float in (0, 1], default=1.0
        The expected share of the samples that each tree learns. Which ones is decided by a hash of
        the row, so equal rows are learned by the same trees.
    calibrate : bool, default=True
        Whether predicted distributions are calibrated and the stop weight is chosen: see Notes. If
        not, each tree learns all samples, whole trees predict, and intervals are those of a normal
        distribution around the mean.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which features are categorical: their indices, their names, or a bool for each feature.
        "from_dtype": the columns of a data frame that hold text, categories or bools when the
        forest is started; none of an array. None: no feature is. See
        `OnlineForestClassifier`.
    offsets : array-like of shape (n_features,), dict or None, default=None
        What is subtracted from the features, in float64, before they are rounded to float32: one
        number per feature, or a dict from names of features (indices if they have no names) to
        numbers, 0 for all others. For columns of large numbers that differ little, such as
        timestamps: see `OnlineForestClassifier`. It must not depend on the samples: choose it
        before you learn.
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
        Seed of the trees; an int makes the forest reproducible. None draws one from NumPy's global
        generator.

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
    levels_ : dict
        The levels of each categorical feature that stored samples have.
    feature_importances_ : ndarray of shape (n_features,)
        How much the splits on each feature tell about samples that did not decide them, with
        sum 1; noise has about 0.
    oob_score_ : float
        R² of predictions of stored samples by the trees that have not learned them.
    oob_prediction_ : ndarray of shape (n_samples_stored,)
        These predictions.
    digest_ : str
        SHA-256 of the forest.
    nbytes_ : int
        Memory of the forest in bytes: its samples, trees, ids, and names of classes and levels.
    trees_ : sequence of OnlineRegressionTree
        The trees as read-only arrays.

    See Also
    --------
    OnlineForestClassifier : The same trees for classes.

    Notes
    -----
    **Lines.** A node of more than 64 samples fits a ridge regression of y on up to eight numeric
    features to the samples that decide its split. Leaves add to it the mean of what it leaves of y.
    The splits of half of the trees explain y, those of the others explain what lines leave of it. A
    line stays within the range of the values that it was fitted to, and is constant beyond theirs.

    **Calibration.** Of n distinct samples, n/4 calibrate, but at most 256 + n/32 and at most
    2048. Hashes choose them. Every fourth tree leaves them out and predicts them. The squared
    errors of these predictions give the scale of all predicted variances, which are the sum of
    two: the variance within leaves and that between trees. Both are drawn towards their means
    over the calibrators, because few trees know them badly. The quantile of level q
    is the mean plus the predicted standard deviation times the q-quantile of the errors,
    measured in predicted standard deviations. If samples are exchangeable, as independent draws
    from one source are, a new sample is like one that calibrates. So an interval of coverage
    0.9 contains about 90 % of new values, on average over new samples. It promises nothing for
    each region by itself, nor for data that changes, nor beyond the stored samples, where
    predictions and intervals are constant. `std` and `log_density` are those of a normal
    distribution of the same scale.

    **Stop weight.** Whole trees follow noise. So predictions enter no node whose samples weigh less
    than the stop weight, which has the least squared error on the calibrators: 0 where numbers are
    clear. Trees are grown no further than that.

    **Levels.** Trees separate one of hundreds of levels slowly. So the forest also keeps the exact
    sum of y for each level, and adds a share of how far the levels of a row deviate to the mean of
    the trees: the share of least squared error on the calibrators, 0 if it does not pay.

    After `fit`, `forget` and `keep_latest`, calibration and stop weight are those of the stored
    samples. In a stream they are found again when an eighth of the samples are new, at an arrival
    that learning and forgetting alone decide, or by `recalibrate`. `digest_` never lags.

    With fewer than 80 distinct samples or five trees nothing is calibrated.

    y is stored as float64, X as float32. `OnlineForestClassifier` describes the rounding, the
    warning about it, missing values, what learning and forgetting cost, and what happens when a
    call is interrupted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onlineforest import OnlineForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OnlineForestRegressor(n_estimators=20, random_state=0)
    >>> for start in range(0, 400, 50):
    ...     forest = forest.partial_fit(X[start : start + 50], y[start : start + 50])
    >>> interval = forest.predict_interval(X[400:], coverage=0.9)
    >>> inside = (interval[:, 0] <= y[400:]) & (y[400:] <= interval[:, 1])
    >>> 0.75 < inside.mean() < 1.0
    np.True_
    >>> other = OnlineForestRegressor(n_estimators=20, random_state=0).fit(X[99:400], y[99:400])
    >>> forest.forget(X[:99], y[:99]).digest_ == other.digest_
    True
    """

    __module__ = "onlineforest"

    _core_kind = ORDER_FREE_NUMBERS
    _targets_type = Numbers
    _saved_as = "OnlineForestRegressor"
    _calibration_type = NumberCalibration

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        min_samples_split: int = 3,
        max_samples: float = 1.0,
        calibrate: bool = True,
        categorical_features: ArrayLike | str | None = "from_dtype",
        offsets: ArrayLike | Mapping[Any, float] | None = None,
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_split = min_samples_split
        self.max_samples = max_samples
        self.calibrate = calibrate
        self.categorical_features = categorical_features
        self.offsets = offsets
        self.window = window
        self.reservoir = reservoir
        self.half_life = half_life
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _lesson(
        self,
        core: OrderFreeNumberCore,  # noqa: ARG002
        samples: Samples,
        classes: ArrayLike | None,  # noqa: ARG002
        *,
        starts: bool,
        is_whole: bool,
    ) -> FittedLesson[OrderFreeNumberCore]:
        fitting = self._fitting(starts=starts, is_whole=is_whole)
        return FittedLesson(Numbers(), samples.target, samples.weights, fitting)

    def _lesson_of(self, others: Sequence[Holdings]) -> FittedLesson[OrderFreeNumberCore]:
        numbers = np.concatenate([each.target for each in others])
        return FittedLesson(Numbers(), numbers, joined_weights(others))

    @property
    def trees_(self) -> TreeSequence[OnlineRegressionTree]:
        """The trees as read-only arrays."""
        check_is_fitted(self)
        return TreeSequence(lambda: self._forest.n_trees, self._tree, "order-free")

    def _tree(self, index: int) -> OnlineRegressionTree:
        with self._locked():
            table = self._forest.tree(index)
            rows = self._rows_in_use()
            arrays = tree_arrays(table, rows) | number_arrays(table, rows)
        return OnlineRegressionTree(**arrays)

    @property
    def oob_prediction_(self) -> Floats:
        """Prediction of each stored sample by the trees that have not learned it.

        Shape (n_samples_stored,), in the order of arrival. NaN for samples that all trees have
        learned. Computed at each access.
        """
        check_is_fitted(self)
        with self._locked():
            return self._left_out_samples(self._stop_weight()).predictions[:, 0]

    @property
    def oob_score_(self) -> float:
        """R² of the predictions of stored samples by the trees that have not learned them.

        Samples count by their weights. Samples that all trees have learned do not count; NaN if
        there are less than two other distinct ones. Computed at each access.
        """
        check_is_fitted(self)
        with self._locked():
            samples = self._left_out_samples(self._stop_weight())
        known = samples.n_trees > 0
        if len(np.unique(samples.numbers[known])) < 2:
            return math.nan
        return r2_of(samples.predictions[known, 0], samples.values[known], samples.weights[known])

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
        OnlineForestRegressor
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(min_samples_split=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [10.0, 20.0]).predict([[0.0], [1.0]])
        array([10., 20.])
        """
        learn(self, X, y, ids, sample_weight, afresh=True)
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

        Splits that these samples change are made when they are first needed, by a prediction for
        example.

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
        OnlineForestRegressor
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> forest = forest.partial_fit([[0.0], [1.0]], [10.0, 20.0])
        >>> forest.partial_fit([[2.0]], [40.0]).n_samples_seen_
        3
        """
        learn(self, X, y, ids, sample_weight)
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
            Whether to return the standard deviation of y as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            The mean of the predicted distribution.
        std : ndarray of shape (n_samples,)
            Its standard deviation, which includes the spread between trees; only if `return_std`.
            0 as long as all learned values are equal.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 9.0])
        >>> mean, std = forest.predict([[0.0], [3.0]], return_std=True)
        >>> std[0] < std[1]
        np.True_
        """
        self._core_with_samples()
        if not return_std:
            return self._predict_rows(self._means, X)
        moments = self._predict_rows(self._moments, X)
        mean, std = np.ascontiguousarray(moments[:, 0]), np.ascontiguousarray(moments[:, 1])
        return mean, std

    def predict_quantiles(self, X: ArrayLike, q: ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles of the predicted distribution.

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
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> low, median, high = forest.predict_quantiles([[1.0]], q=[0.1, 0.5, 0.9])[0]
        >>> low < median < high
        np.True_
        """
        self._core_with_samples()
        levels = check_levels(q)
        quantiles = self._predict_rows(partial(self._quantiles, levels), X)
        return quantiles[:, 0] if np.ndim(q) == 0 else quantiles

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Floats:
        """An interval that contains y with a given probability.

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
            ``(1 + coverage) / 2``. The Notes of the class say what they promise.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
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
            ``log p(y | x)``. As long as all learned values are equal, it is infinite: positive at
            that value, negative elsewhere.

        Examples
        --------
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
        >>> near, far = forest.log_density([[1.0], [1.0]], [1.0, 100.0])
        >>> near > far
        np.True_
        """
        self._core_with_samples()
        rows = self._rows.queries(self, X)
        values = check_values(y)
        if len(rows) != len(values):
            raise ValueError(f"X has {len(rows)} samples, but y has {len(values)} values.")
        mean, deviation = self._moments(rows, self._n_threads()).T
        is_sure = deviation == 0
        error, scale = values - mean, np.where(is_sure, 1.0, deviation)
        with np.errstate(over="ignore"):
            squares = (error / scale) ** 2
        density = -0.5 * squares - np.log(scale) - 0.5 * math.log(2.0 * math.pi)
        without_spread = np.where(error == 0, math.inf, -math.inf)
        result: Floats = np.where(is_sure, without_spread, density)
        return result

    def learn_one(
        self, x: RowLike, y: float, id: Id | None = None, *, sample_weight: float = 1.0
    ) -> Self:
        """Learn one more sample, as `partial_fit` of one row does, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`, None or NaN if
            it is missing. As the first sample of a forest, it gives the features their names, and
            text and bools in it are categories, as in a data frame.
        y : float
            Its value.
        id : int or str, default=None
            A name by which `forget` finds the sample.
        sample_weight : float, default=1.0
            How often the sample counts; 0 is not at all.

        Returns
        -------
        OnlineForestRegressor
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> for x in range(5):
        ...     forest = forest.learn_one(np.array([x]), 2.0 * x)
        >>> forest.n_samples_seen_
        5
        """
        weight = stored_weight_of_one(sample_weight)
        learn_one(self, x, y, id, self._learn_row, weight, sample_weight)
        return self

    @overload
    def predict_one(self, x: RowLike, return_std: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: RowLike, return_std: Literal[True]) -> tuple[float, float]: ...
    def predict_one(self, x: RowLike, return_std: bool = False) -> float | tuple[float, float]:
        """The expected value of one sample, as `predict` gives, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`, None or NaN if
            it is missing. A data frame is checked as `predict` does.
        return_std : bool, default=False
            Whether to return the standard deviation as well.

        Returns
        -------
        mean : float
            The mean of the predicted distribution.
        std : float
            Its standard deviation; only if `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import OnlineForestRegressor
        >>> forest = OnlineForestRegressor(min_samples_split=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [3.0, 7.0]).predict_one(np.array([1.0]))
        7.0
        """
        self._core_with_samples()
        predict = self._moments_of_one if return_std else self._mean_of_one
        row = self._rows.row(self, x, may_be_new=True)
        try:
            return predict(row)
        except TypeError:
            return predict(check_row(row))

    def _found(self) -> NumberCalibration:
        """The calibration in force; one that changes nothing if nothing is calibrated."""
        return self._calibration() if self._calibrates() else NumberCalibration()

    def _moments(self, rows: Rows, n_threads: int) -> Floats:
        """Mean and standard deviation of each row, shape (n_rows, 2)."""
        core, found = self._core, self._found()
        moments = core.predict(rows, n_threads, *found.how)
        return np.column_stack([moments[:, 0], found.std(moments, core.n_trees)])

    def _means(self, rows: Rows, n_threads: int) -> Floats:
        """The means alone, shape (n_rows,)."""
        moments = self._core.predict(rows, n_threads, *self._found().how)
        return np.ascontiguousarray(moments[:, 0])

    def _moments_of_one(self, x: ArrayLike) -> tuple[float, float]:
        """Mean and standard deviation of one row; TypeError if it is not an array of floats."""
        core, found = self._core, self._found()
        moments = np.array([core.predict_one(x, *found.how)])
        return float(moments[0, 0]), float(found.std(moments, core.n_trees)[0])

    def _mean_of_one(self, x: ArrayLike) -> float:
        """The mean alone."""
        return self._core.predict_one(x, *self._found().how)[0]

    def _quantiles(self, levels: Floats, rows: Rows, n_threads: int) -> Floats:
        """Quantiles of each row, shape (n_rows, n_levels)."""
        core, found = self._core, self._found()
        moments = core.predict(rows, n_threads, *found.how)
        deviations = found.deviations(moments, core.n_trees)
        places = np.array([found.quantile(float(level)) for level in levels])
        with np.errstate(over="ignore"):
            return finite(moments[:, :1] + deviations[:, np.newaxis] * places)

    def _fitted_of(self, plain: Any) -> Fitted[NumberCalibration]:
        fitted, n = super()._fitted_of(plain), len(self._rows.columns)
        found = fitted.found
        if found is not None and found.level_share > 0 and len(found.strengths) != n:
            raise ValueError(
                f"its calibration has {len(found.strengths)} strengths of {n} categorical features."
            )
        return fitted

    def _nbytes(self) -> int:
        fitted = self._fitted
        own = 0 if fitted is None or fitted.found is None else fitted.found.nbytes
        return super()._nbytes() + own
