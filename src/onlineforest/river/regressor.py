"""The regressor for River: numbers, with intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from onlineforest._forests.orderfree import regressor as _online_regressor
from onlineforest._inputs.targets import check_values
from onlineforest.river.base import ForestModel, Sample, row_of, rows_of
from onlineforest.river.frames import frame_of, native_series, series_of
from river import base, conf

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries


class OnlineForestRegressor(ForestModel, base.MiniBatchRegressor):
    """Order-free forest regressor, for River.

    The forest of `onlineforest.OnlineForestRegressor` as a model of River: samples are dictionaries
    whose features may appear and vanish at any time, and predictions can have intervals. The forest
    is a function of its seed, its parameters, the samples that it holds and the keys that it has
    learned. The order of samples and of keys has no influence.

    Columns are sorted, and new keys cost as much, as in `OnlineForestClassifier`.

    Parameters
    ----------
    n_estimators
        Number of trees. More are better and slower; 10 as in River's forests.
    min_samples_split
        A node with fewer samples is not split.
    max_samples
        The expected share of the samples that each tree learns, above 0 and at most 1.
    calibrate
        Whether intervals follow the errors of trees on samples that they have not learned.
    offsets
        What is subtracted from features before they are rounded to float32: a dict from features to
        numbers. Other features have 0. See `onlineforest.OnlineForestClassifier`.
    window
        Keep only this number of latest samples: bounded memory, and the forest follows drift.
    reservoir
        Keep a random sample of this size of all samples seen.
    half_life
        For a reservoir: a sample is half as likely to be kept as one that came this number of
        samples later.
    n_jobs
        Number of threads for mini-batches. None: 1; -1: all processors.
    seed
        Random seed for reproducibility.

    See Also
    --------
    onlineforest.OnlineForestRegressor : The forest for arrays, with more about the parameters and
        the guarantees of intervals.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlineforest.river import OnlineForestRegressor
    >>> model = OnlineForestRegressor(n_estimators=10, seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> metric.get() < 0.5
    True
    """

    __module__ = "onlineforest.river"

    _estimator_class = _online_regressor.OnlineForestRegressor

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        min_samples_split: int = 3,
        max_samples: float = 1.0,
        calibrate: bool = True,
        offsets: dict[Hashable, float] | None = None,
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            min_samples_split=min_samples_split,
            max_samples=max_samples,
            calibrate=calibrate,
            offsets=offsets,
            window=window,
            reservoir=reservoir,
            half_life=half_life,
            n_jobs=n_jobs,
            seed=seed,
        )

    def learn_one(self, x: Sample, y: float, w: float = 1.0) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of features: numbers and bools, None for a missing value.
        y
            Its value.
        w
            How often the sample counts; 0 is not at all.

        Examples
        --------
        >>> from onlineforest.river import OnlineForestRegressor
        >>> model = OnlineForestRegressor(min_samples_split=2, seed=0)
        >>> for height in range(10):
        ...     model.learn_one({"height": height}, 3.0 * height)
        >>> round(model.predict_one({"height": 2}))
        6
        """
        if w != 0:
            self._learn_one(x, y, w)

    @overload
    def predict_one(self, x: Sample, with_interval: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: Sample, with_interval: Literal[True]) -> conf.Interval: ...
    def predict_one(self, x: Sample, with_interval: bool = False) -> float | conf.Interval:
        """Predict the value of a sample.

        Parameters
        ----------
        x
            A dictionary of features.
        with_interval
            Whether to return the interval of `predict_interval_one` instead, as
            `river.conf.RegressionJackknife` does.

        Returns
        -------
        float or river.conf.Interval
            The expected value; 0 before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import OnlineForestRegressor
        >>> model = OnlineForestRegressor(seed=0)
        >>> for height in range(10):
        ...     model.learn_one({"height": height}, 3.0 * height)
        >>> 6.0 in model.predict_one({"height": 2}, with_interval=True)
        True
        """
        if with_interval:
            return self.predict_interval_one(x)
        columns = self._query_columns
        if columns is None:
            return 0.0
        value: float = self._naming_keys(self._estimator.predict_one, columns.row(x))
        return value

    def predict_interval_one(self, x: Sample, coverage: float = 0.9) -> conf.Interval:
        """Predict an interval that contains the value of a sample with a given probability.

        Parameters
        ----------
        x
            A dictionary of features.
        coverage
            The probability, between 0 and 1.

        Returns
        -------
        river.conf.Interval
            With `lower`, `upper`, `center` and `width`; infinite before anything is learned.

        Examples
        --------
        >>> from river import datasets, stats
        >>> from onlineforest.river import OnlineForestRegressor
        >>> model = OnlineForestRegressor(seed=0)
        >>> validity = stats.Mean()
        >>> for x, y in datasets.TrumpApproval():
        ...     validity.update(y in model.predict_interval_one(x, coverage=0.9))
        ...     model.learn_one(x, y)
        >>> validity.get() > 0.7
        True
        """
        columns = self._query_columns
        if columns is None:
            return conf.Interval(-math.inf, math.inf)
        interval = self._estimator.predict_interval(row_of(columns, x), coverage)
        return conf.Interval(*interval[0].tolist())

    def learn_many(self, X: IntoDataFrame, y: IntoSeries) -> None:
        """Learn a mini-batch, with the same result as `learn_one` of each row.

        Parameters
        ----------
        X
            A dataframe of features, of pandas, polars or pyarrow.
        y
            A series of values.

        Examples
        --------
        >>> import pandas as pd
        >>> from onlineforest.river import OnlineForestRegressor
        >>> model = OnlineForestRegressor(min_samples_split=2, seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 2.0]})
        >>> model.learn_many(X, pd.Series([3.0, 6.0]))
        >>> model.predict_many(X).round().tolist()
        [3.0, 6.0]
        """
        self._learn_many(X, check_values(series_of(y).to_numpy()))

    def predict_many(self, X: IntoDataFrame) -> Any:
        """Predict the value of each row.

        Parameters
        ----------
        X
            A dataframe of features.

        Returns
        -------
        series
            The expected values; 0 before anything is learned.

        Examples
        --------
        >>> import polars as pl
        >>> from onlineforest.river import OnlineForestRegressor
        >>> model = OnlineForestRegressor(seed=0)
        >>> model.predict_many(pl.DataFrame({"height": [1.0, 2.0]})).to_list()
        [0.0, 0.0]
        """
        frame = frame_of(X)
        values, columns = np.zeros(len(frame)), self._query_columns
        if columns is not None and len(frame) > 0:
            values = self._estimator.predict(rows_of(columns, frame))
        return native_series(values, like=frame)
