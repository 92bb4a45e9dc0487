"""The forests as models of River: samples are dicts, learned one at a time or in mini-batches.

Thin: what a dict is as a row is said in `_dict_columns`, all else is done by the estimators.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import NDArray

from onlineforest._extras import require
from onlineforest._models import classifier as _classifier
from onlineforest._models import regressor as _regressor
from onlineforest._models.validation import check_values, unchanged_on_error
from onlineforest._models.widening import widened
from onlineforest.river.dict_columns import Columns, is_missing, number_of

try:
    from river.utils import dataframe

    from river import base, conf
except ImportError:
    require("river", "river")  # says how to get it
    raise

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor"]

Sample = dict[Hashable, Any]


class _MondrianForest(base.Estimator):
    """What both models share: the estimator, and which key of a sample is which of its features.

    A subclass sets the parameters it has of its own before it calls `__init__`, which makes the
    estimator of them all.
    """

    _kind: ClassVar[type[Any]]

    _estimator: Any
    _columns: Columns | None  # None before anything is learned

    def __init__(
        self,
        n_estimators: int,
        lifetime: float,
        min_samples_split: int,
        feature_weights: str,
        window: int | None,
        reservoir: int | None,
        half_life: float | None,
        n_jobs: int | None,
        seed: int | None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.feature_weights = feature_weights
        self.window = window
        self.reservoir = reservoir
        self.half_life = half_life
        self.n_jobs = n_jobs
        self.seed = seed
        self._estimator = self._new_estimator()
        self._columns = None

    def _new_estimator(self) -> Any:
        """An estimator of these parameters, or an error that says which is wrong."""
        if self.feature_weights not in ("learned", "range"):
            raise ValueError(
                "feature_weights must be 'learned' or 'range', for features come and go. "
                f"Got {self.feature_weights!r} instead."
            )
        parameters = self._get_params()
        estimator = self._kind(random_state=parameters.pop("seed"), **parameters)
        estimator._validate_params()
        estimator._core_options(n_features=1)
        return estimator

    @property
    def estimator(self) -> Any:
        """The forest itself, with all that it can do: save, forget, show its trees.

        An estimator in the style of scikit-learn. Its features are the columns in `features`;
        classes it knows by their numbers in the order of their first appearance. Do not let it
        learn: new keys and labels would not be noted. A new key may replace it by a wider one.
        """
        return self._estimator

    @property
    def features(self) -> list[Hashable]:
        """The keys learned, in the order of the estimator's columns; it may have spare ones."""
        return [] if self._columns is None else list(self._columns.keys)

    def __sizeof__(self) -> int:
        # Python does not see what the core holds, nor does River's count of memory.
        return super().__sizeof__() + (0 if self._columns is None else self._estimator.nbytes_)

    def novelty_one(self, x: Sample) -> float:
        """How far a sample is from everything learned, 0 to 1.

        The probability that a tree would cut it off from all samples learned before it comes to a
        leaf: see `onlineforest.MondrianForestClassifier.novelty`.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        float
            0 for what was learned, near 1 far from all of it; 1 before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> for i in range(100):
        ...     model.learn_one({"height": i % 10, "width": i % 7}, i % 2)
        >>> known, far = {"height": 3, "width": 2}, {"height": 99, "width": 2}
        >>> model.novelty_one(known) < model.novelty_one(far)
        True
        """
        if self._columns is None:
            return 1.0
        return float(self._estimator.novelty(_one_row(self._columns, x))[0])

    def _ask(self, method: str, row: Any, *arguments: Any) -> Any:
        """What a method of the estimator makes of a sample as a row."""
        try:
            return getattr(self._estimator, method)(row, *arguments)
        except ValueError:
            if self._columns is not None:
                self._columns.check_finite(row)  # an error that names the key
            raise

    def _learn_one(self, x: Mapping[Hashable, Any], target: Any) -> None:
        row = None if self._columns is None else self._columns.whole_row(x)
        if row is not None:
            self._ask("learn_one", row, target)
            return
        with self._unless_refused():
            self._ask("learn_one", self._columns_for(x).row(x), target)

    def _learn_many(self, X: IntoDataFrame, targets: NDArray[Any], starts: list[int]) -> None:
        """Learn a batch, in pieces that start where `starts` says."""
        frame = dataframe.into_frame(X)
        if len(frame) != len(targets):
            raise ValueError(f"X has {len(frame)} samples, but y has {len(targets)}.")
        if len(frame) == 0:
            return
        with self._unless_refused():
            rows = self._columns_for(frame.columns).rows(frame.columns, _values_of(frame))
            for begin, end in zip(starts, [*starts[1:], len(rows)], strict=True):
                piece = slice(begin, end)
                self._estimator._learn_more(rows[piece], targets[piece], None, one_by_one=True)

    def _columns_for(self, keys: Iterable[Hashable]) -> Columns:
        """Columns that these keys are among, with an estimator as wide."""
        if self._columns is None:
            self._columns = Columns.of(keys)
        elif not self._columns.knows(keys):
            self._columns = self._columns.extended(keys)
            if self._columns.width > self._estimator.n_features_in_:
                self._estimator = widened(self._estimator, self._columns.width)
        return self._columns

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Forgets what it heard of keys and labels if the block raises and nothing was learned.

        An interrupt may come when the estimator has learned already.
        """
        n_before = self._n_seen()
        with unchanged_on_error(self) as keep_changes:
            try:
                yield
            finally:
                if self._n_seen() > n_before:
                    keep_changes()

    def _n_seen(self) -> int:
        fitted = self._estimator.__sklearn_is_fitted__()
        return self._estimator.n_samples_seen_ if fitted else 0


def _one_row(columns: Columns, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
    """One sample as an array of rows."""
    rows = np.array([columns.row(x)])
    columns.check_finite(rows)
    return rows


def _values_of(frame: nw.DataFrame[Any]) -> NDArray[np.float64]:
    """The cells of a frame as numbers, NaN where one is missing."""
    if all(dtype.is_numeric() or dtype.is_boolean() for dtype in frame.schema.values()):
        return dataframe.to_numpy(frame)
    columns = [
        [number_of(column.name, value) for value in column.to_list()]
        for column in frame.iter_columns()
    ]
    return np.array(columns).T


class MondrianForestClassifier(_MondrianForest, base.MiniBatchClassifier):
    """Mondrian forest classifier, for River.

    The forest of `onlineforest.MondrianForestClassifier` in the shape of a model of River: samples
    are dictionaries, classes are labels of any hashable type, and both features and classes may
    appear at any time. Features need no scaling.

    Keys get columns in the order in which they first appear. A key that a sample lacks, or whose
    value is None or NaN, is missing: when learned, it is filled in from a sample nearby; when
    predicted, it neither separates nor decides. So are keys of samples that came before anyone had
    them, and those are filled in when the weights of the features are computed next. A key that was
    never learned is left out of predictions.

    Parameters
    ----------
    n_estimators
        The number of trees. More are better and slower; 10 as in River's forests.
    lifetime
        Time at which trees stop being cut. Smaller is coarser.
    discount
        How fast a node's label distribution may depart from its parent's.
    leaf_discount
        How much a leaf leaves to its parent's distribution at least, 0 to 1, or `"learned"`.
    min_samples_split
        A block with fewer samples is not cut (yet).
    feature_weights
        What each feature weighs in the rate of cuts: `"learned"` from the labels, or `"range"`, 1
        over the range of the data seen, which is quicker.
    window
        Keep only the latest so many samples: fixed memory, and a changing world is followed.
    reservoir
        Keep a sample of so many of all that came.
    half_life
        For a reservoir: a sample that came so many earlier is half as likely to be kept.
    n_jobs
        Number of threads for mini-batches. None is 1, -1 all processors.
    seed
        Random seed for reproducibility.

    See Also
    --------
    onlineforest.MondrianForestClassifier : The same forest for arrays; tells more of the
        parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlineforest.river import MondrianForestClassifier
    >>> model = MondrianForestClassifier(n_estimators=10, seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> metric.get() > 0.87
    True
    """

    _kind = _classifier.MondrianForestClassifier

    _labels: dict[Hashable, int]  # in the order of their codes: 0, 1, …

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        lifetime: float = math.inf,
        discount: float = 10.0,
        leaf_discount: float | str = "learned",
        min_samples_split: int = 2,
        feature_weights: str = "learned",
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.discount = discount
        self.leaf_discount = leaf_discount
        super().__init__(
            n_estimators,
            lifetime,
            min_samples_split,
            feature_weights,
            window,
            reservoir,
            half_life,
            n_jobs,
            seed,
        )
        self._labels = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Any) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of features: numbers and bools, or None where one is missing.
        y
            Its label.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> model.learn_one({"height": 1.0, "is_red": True}, "apple")
        >>> model.learn_one({"height": 9.0, "is_red": False, "weight": 4.0}, "melon")
        >>> model.features
        ['height', 'is_red', 'weight']
        """
        code = self._code_of(y)
        if code is not None:
            self._learn_one(x, code)
            return
        with self._unless_refused():
            self._labels = {**self._labels, y: len(self._labels)}
            self._learn_one(x, len(self._labels) - 1)

    def predict_proba_one(self, x: Sample, **_: Any) -> dict[Any, float]:
        """Predict the probability of each label.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        dict
            The probability of each label learned; empty before any was.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> model.predict_proba_one({"height": 1.0})
        {}
        >>> model.learn_one({"height": 1.0}, "apple")
        >>> model.predict_proba_one({"height": 1.0})
        {'apple': 1.0}
        """
        if self._columns is None:
            return {}
        probabilities = self._ask("predict_proba_one", self._columns.row(x))
        return dict(zip(self._labels, probabilities.tolist(), strict=True))

    def learn_many(self, X: IntoDataFrame, y: IntoSeries) -> None:
        """Learn a mini-batch, with the same result as `learn_one` of each row.

        Parameters
        ----------
        X
            A dataframe of features, of pandas, polars or pyarrow.
        y
            A series of labels.

        Examples
        --------
        >>> import pandas as pd
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 9.0], "is_red": [True, False]})
        >>> model.learn_many(X, pd.Series(["apple", "melon"]))
        >>> model.predict_many(X).tolist()
        ['apple', 'melon']
        """
        labels, starts = dict(self._labels), [0]
        targets = dataframe.into_series(y).to_list()
        for place, label in enumerate(targets):
            if self._code_of(label) is None and label not in labels:
                labels[label] = len(labels)
                starts.append(place)  # a new class makes a difference from here on only
        codes = np.array([labels[label] for label in targets], dtype=np.int64)
        with self._unless_refused():
            self._labels = labels
            try:
                self._learn_many(X, codes, sorted(set(starts)))
            finally:  # an interrupt may come before all labels are learned
                if self._n_seen():
                    n_known = len(self._estimator.classes_)
                    self._labels = dict(islice(labels.items(), n_known))

    def predict_proba_many(self, X: IntoDataFrame) -> Any:
        """Predict the probability of each label for each row.

        Parameters
        ----------
        X
            A dataframe of features.

        Returns
        -------
        dataframe
            Of the same kind, with a column for each label learned. Where names of columns must be
            strings, as in polars, they are the labels as strings.

        Examples
        --------
        >>> import pandas as pd
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 9.0]})
        >>> model.learn_many(X, pd.Series(["apple", "melon"]))
        >>> model.predict_proba_many(X).round(1)
           apple  melon
        0    0.8    0.2
        1    0.2    0.8
        """
        frame = dataframe.into_frame(X)
        return dataframe.to_native_frame(dict(self._probabilities(frame)), like=frame)

    def predict_many(self, X: IntoDataFrame) -> Any:
        """Predict the label of each row.

        Parameters
        ----------
        X
            A dataframe of features.

        Returns
        -------
        series
            The most probable label of each row, None before any was learned.

        Examples
        --------
        >>> import polars as pl
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> X = pl.DataFrame({"height": [1.0, 9.0]})
        >>> model.learn_many(X, pl.Series(["apple", "melon"]))
        >>> model.predict_many(X).to_list()
        ['apple', 'melon']
        """
        frame = dataframe.into_frame(X)
        best: list[Any] = [None] * len(frame)
        if found := self._probabilities(frame):
            labels = [label for label, _ in found]
            best = [labels[code] for code in np.argmax([p for _, p in found], axis=0)]
        return dataframe.to_native_series(best, name=None, like=frame)

    def _probabilities(self, frame: nw.DataFrame[Any]) -> list[tuple[Hashable, NDArray[Any]]]:
        """Each label learned with its probability in each row."""
        if self._columns is None:
            return []
        if len(frame) == 0:
            return [(label, np.empty(0)) for label in self._labels]
        rows = self._columns.rows(frame.columns, _values_of(frame))
        probabilities = self._estimator.predict_proba(rows)
        return list(zip(self._labels, probabilities.T.copy(), strict=True))

    def _code_of(self, label: Hashable) -> int | None:
        """The code of a label, None if it is new; or an error if it is none."""
        try:
            code = self._labels.get(label)
        except TypeError as error:
            raise TypeError(f"A label must be hashable. Got {label!r} instead.") from error
        if code is None and is_missing(label):
            raise ValueError(f"y must be a label. Got {label!r}: it is missing.")
        return code


class MondrianForestRegressor(_MondrianForest, base.MiniBatchRegressor):
    """Mondrian forest regressor, for River.

    The forest of `onlineforest.MondrianForestRegressor` in the shape of a model of River: samples
    are dictionaries whose features may appear and vanish at any time, and each prediction comes
    with an interval, if asked for. Features need no scaling.

    Keys get columns in the order in which they first appear. A key that a sample lacks, or whose
    value is None or NaN, is missing: when learned, it is filled in from a sample nearby; when
    predicted, it neither separates nor decides. So are keys of samples that came before anyone had
    them, and those are filled in when the weights of the features are computed next. A key that was
    never learned is left out of predictions.

    Parameters
    ----------
    n_estimators
        The number of trees. More are better and slower; 10 as in River's forests.
    lifetime
        Time at which trees stop being cut. Smaller is coarser.
    discount
        How fast a node's mean is tied to its parent's, or `"learned"`.
    noise
        The share of the variance of y around its trend that no tree is to explain, or `"learned"`.
    trend
        What is expected of y before looking at samples nearby: `"additive"`, a sum of functions of
        one feature each, or None, the mean.
    calibrate
        Whether predictions are corrected so that intervals hold.
    min_samples_split
        A block with fewer samples is not cut (yet).
    feature_weights
        What each feature weighs in the rate of cuts: `"learned"` from y, or `"range"`, 1 over the
        range of the data seen.
    window
        Keep only the latest so many samples: fixed memory, and a changing world is followed.
    reservoir
        Keep a sample of so many of all that came.
    half_life
        For a reservoir: a sample that came so many earlier is half as likely to be kept.
    n_jobs
        Number of threads for mini-batches. None is 1, -1 all processors.
    seed
        Random seed for reproducibility.

    See Also
    --------
    onlineforest.MondrianForestRegressor : The same forest for arrays; tells more of the parameters,
        and of what is promised of intervals.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlineforest.river import MondrianForestRegressor
    >>> model = MondrianForestRegressor(n_estimators=10, seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> metric.get() < 0.4
    True
    """

    _kind = _regressor.MondrianForestRegressor

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        lifetime: float = math.inf,
        discount: float | str = "learned",
        noise: float | str = "learned",
        trend: str | None = "additive",
        calibrate: bool = True,
        min_samples_split: int = 2,
        feature_weights: str = "learned",
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.discount = discount
        self.noise = noise
        self.trend = trend
        self.calibrate = calibrate
        super().__init__(
            n_estimators,
            lifetime,
            min_samples_split,
            feature_weights,
            window,
            reservoir,
            half_life,
            n_jobs,
            seed,
        )

    def learn_one(self, x: Sample, y: float) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of features: numbers and bools, or None where one is missing.
        y
            Its value.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestRegressor
        >>> model = MondrianForestRegressor(seed=0)
        >>> for height in range(10):
        ...     model.learn_one({"height": height}, 3.0 * height)
        >>> round(model.predict_one({"height": 2}))
        6
        """
        self._learn_one(x, y)

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
            Whether to return an interval instead, as `river.conf.RegressionJackknife` does: that of
            `predict_interval_one`.

        Returns
        -------
        float or river.conf.Interval
            The expected value; 0 before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestRegressor
        >>> model = MondrianForestRegressor(seed=0)
        >>> for height in range(10):
        ...     model.learn_one({"height": height}, 3.0 * height)
        >>> 6.0 in model.predict_one({"height": 2}, with_interval=True)
        True
        """
        if with_interval:
            return self.predict_interval_one(x)
        if self._columns is None:
            return 0.0
        value: float = self._ask("predict_one", self._columns.row(x))
        return value

    def predict_interval_one(self, x: Sample, coverage: float = 0.9) -> conf.Interval:
        """Predict an interval that holds the value of a sample with a given probability.

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
        >>> from onlineforest.river import MondrianForestRegressor
        >>> model = MondrianForestRegressor(seed=0)
        >>> validity = stats.Mean()
        >>> for x, y in datasets.TrumpApproval():
        ...     validity.update(y in model.predict_interval_one(x, coverage=0.9))
        ...     model.learn_one(x, y)
        >>> validity.get() > 0.7
        True
        """
        if self._columns is None:
            return conf.Interval(-math.inf, math.inf)
        interval = self._estimator.predict_interval(_one_row(self._columns, x), coverage)
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
        >>> from onlineforest.river import MondrianForestRegressor
        >>> model = MondrianForestRegressor(seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 2.0]})
        >>> model.learn_many(X, pd.Series([3.0, 6.0]))
        >>> model.predict_many(X).round().tolist()
        [3.0, 6.0]
        """
        self._learn_many(X, check_values(dataframe.into_series(y).to_numpy()), [0])

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
        >>> from onlineforest.river import MondrianForestRegressor
        >>> model = MondrianForestRegressor(seed=0)
        >>> model.predict_many(pl.DataFrame({"height": [1.0, 2.0]})).to_list()
        [0.0, 0.0]
        """
        frame = dataframe.into_frame(X)
        values = np.zeros(len(frame))
        if self._columns is not None and len(frame) > 0:
            rows = self._columns.rows(frame.columns, _values_of(frame))
            values = self._estimator.predict(rows)
        return dataframe.to_native_series(values, name=None, like=frame)
