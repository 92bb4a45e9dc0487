"""The base class of regressors: numbers in, distributions of numbers out.

Must not know how trees are cut, nor how the core forest predicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from onlineforest._models.base import BaseForest
from onlineforest._models.core import Floats, GuidedNumberCore, Rows
from onlineforest._models.ids import Id
from onlineforest._models.locking import Guard, guard_of
from onlineforest._models.one_row import RowLike
from onlineforest._models.validation import (
    check_are_numbers,
    check_levels,
    check_row,
    check_values,
    plain_rows,
    plain_values,
    units_of_one,
)


class BaseRegressor(RegressorMixin, BaseForest[GuidedNumberCore]):
    """Base of the regressors.

    A subclass says what its core forest predicts (`_moments`, `_moments_of_one`, `_quantiles`,
    `_log_density`).
    """

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Learn more samples, or the first ones of a new estimator."""
        raise NotImplementedError

    def _moments(self, rows: Rows, n_threads: int) -> Floats:
        """Mean and standard deviation of each row, shape (n_rows, 2)."""
        raise NotImplementedError

    def _means(self, rows: Rows, n_threads: int) -> Floats:
        """The means alone, shape (n_rows,), which may be faster."""
        return np.ascontiguousarray(self._moments(rows, n_threads)[:, 0])

    def _moments_of_one(self, x: ArrayLike) -> tuple[float, float]:
        """Mean and standard deviation of one row; TypeError if it is not an array of floats."""
        raise NotImplementedError

    def _mean_of_one(self, x: ArrayLike) -> float:
        """The mean alone, which may be faster."""
        return self._moments_of_one(x)[0]

    def _quantiles(self, rows: Rows, levels: Floats, n_threads: int) -> Floats:
        """Quantiles of each row, shape (n_rows, n_levels)."""
        raise NotImplementedError

    def _log_density(self, rows: Rows, values: Floats, n_threads: int) -> Floats:
        """Logarithm of the predicted density of each value at its row, shape (n_rows,)."""
        raise NotImplementedError

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
        self._check_any_sample()
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
        self._check_any_sample()
        levels = check_levels(q)
        quantiles = self._predict_rows(
            lambda rows, n_threads: self._quantiles(rows, levels, n_threads), X
        )
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
        self._check_any_sample()
        rows = self._check_queries(X)
        values = check_values(y)
        if len(rows) != len(values):
            raise ValueError(f"X has {len(rows)} samples, but y has {len(values)} values.")
        return self._log_density(rows, values, self._n_threads())

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
            an order-free forest learns text and bools in it as categories, as in a data frame.
        y : float
            Its value.
        id : int or str, default=None
            A name by which `forget` finds the sample.
        sample_weight : float, default=1.0
            How often the sample counts; 0 is not at all.

        Returns
        -------
        object
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
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one number. Got {y!r} instead.")
        units = units_of_one(sample_weight)
        guard: Guard[Any] = guard_of(self)
        with guard.lock:
            if guard.pending is not None:
                self._settle()
            row = self._row(x, may_be_new=False) if hasattr(self, "_forest") else None
            if row is None or id is not None or units == 0:
                names = None if id is None else [id]
                table, weights = self._table_of_one(x), [sample_weight]
                return self.partial_fit(table, [y], sample_weight=weights, ids=names)
            self._check_parameters_unchanged()
            value = float(check_values([y])[0]) if type(y) is not float else y
            try:
                self._forest.learn_one(row, value, units)
            except TypeError:
                self._forest.learn_one(check_row(row), value, units)
            self._after_learning_one()
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
        self._check_any_sample()
        predict = self._moments_of_one if return_std else self._mean_of_one
        row = self._row(x, may_be_new=True)
        try:
            return predict(row)
        except TypeError:
            return predict(check_row(row))

    def _check_any_sample(self) -> None:
        """Raise if there is nothing to predict from."""
        _ = self._core

    def _check_batch(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if not reset:
            rows, values = plain_rows(self, X), plain_values(y)
            if rows is not None and values is not None and len(rows) == len(values):
                return rows, values
        check_are_numbers(y)
        rows, target = self._check_rows(X, y=y, reset=reset, y_numeric=True, multi_output=True)
        return rows, check_values(target)

    def _stored_values(self, target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return target, np.ones(len(target), dtype=np.bool_)
