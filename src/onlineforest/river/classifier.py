"""The classifier for River: labels of any hashable type, in the order of their appearance."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from river.utils import dataframe

from onlineforest._models import classifier as _classifier
from onlineforest.river.base import MondrianForestModel, Sample, rows_of
from onlineforest.river.dict_columns import is_missing
from river import base

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries


class MondrianForestClassifier(MondrianForestModel, base.MiniBatchClassifier):
    """Mondrian forest classifier, for River.

    The forest of `onlineforest.MondrianForestClassifier` as a model of River: samples are
    dictionaries, labels have any hashable type, and new features and labels may appear at any time.
    Features need no scaling.

    Keys get columns in the order in which they first appear. A key that a sample lacks, or whose
    value is None or NaN, is missing. A missing value of a learned sample is filled in from a nearby
    sample; a missing value of a query neither separates nor decides. When a key first appears, it
    is missing in all samples before; these are filled in when the feature weights are refreshed
    next. Predictions ignore keys that were never learned.

    Parameters
    ----------
    n_estimators
        Number of trees. More are better and slower; 10 as in River's forests.
    lifetime
        Time at which trees stop being cut. Smaller is coarser.
    discount
        How fast a node's label distribution may differ from its parent's.
    leaf_discount
        The smallest share of its parent's distribution in a leaf, 0 to 1, or `"learned"`.
    min_samples_split
        A block with fewer samples is not cut.
    feature_weights
        Weight of each feature in the rate of cuts: `"learned"` from the labels, or `"range"`, 1
        over the range of the data, which is faster.
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
    onlineforest.MondrianForestClassifier : The forest for arrays, with more about the parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlineforest.river import MondrianForestClassifier
    >>> model = MondrianForestClassifier(n_estimators=10, seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> metric.get() > 0.87
    True
    """

    __module__ = "onlineforest.river"

    _estimator_class = _classifier.MondrianForestClassifier

    _labels: dict[Hashable, int]  # class codes, in order: 0, 1, …

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
        super().__init__(
            n_estimators=n_estimators,
            lifetime=lifetime,
            discount=discount,
            leaf_discount=leaf_discount,
            min_samples_split=min_samples_split,
            feature_weights=feature_weights,
            window=window,
            reservoir=reservoir,
            half_life=half_life,
            n_jobs=n_jobs,
            seed=seed,
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
            A dictionary of features: numbers and bools, None for a missing value.
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
            The probability of each label learned; empty before anything is learned.

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
        probabilities = self._naming_keys(self._estimator.predict_proba_one, self._columns.row(x))
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
                starts.append(place)  # a new class changes only predictions from here on
        codes = np.array([labels[label] for label in targets], dtype=np.int64)
        with self._unless_refused():
            self._labels = labels
            try:
                self._learn_many(X, codes, sorted(set(starts)))
            finally:  # an interrupt may leave some labels unlearned
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
            A dataframe of the same kind, with a column for each label learned. Where names of
            columns must be strings, as in polars, labels are converted to strings.

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
            The most probable label of each row; None before anything is learned.

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
        """Each label learned, with its probability in each row."""
        if self._columns is None:
            return []
        if len(frame) == 0:
            return [(label, np.empty(0)) for label in self._labels]
        probabilities = self._estimator.predict_proba(rows_of(self._columns, frame))
        return list(zip(self._labels, probabilities.T.copy(), strict=True))

    def _code_of(self, label: Hashable) -> int | None:
        """The class code of a label, None if it is new; raises if it is not a valid label."""
        try:
            code = self._labels.get(label)
        except TypeError as error:
            raise TypeError(f"A label must be hashable. Got {label!r} instead.") from error
        if code is None and is_missing(label):
            raise ValueError(f"y must be a label, but it is missing: {label!r}.")
        return code
