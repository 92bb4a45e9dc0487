"""The classifier for River: labels of any hashable type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.orderfree import classifier as _online_classifier
from onlineforest._forests.orderfree.copies import relabelled
from onlineforest._inputs.cells import is_missing
from onlineforest.river.base import ForestModel, Sample, rows_of
from onlineforest.river.frames import frame_of, native_frame, native_series, series_of
from onlineforest.river.names import plain_labels, text_of
from river import base

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries


class OnlineForestClassifier(ForestModel, base.MiniBatchClassifier):
    """Order-free forest classifier, for River.

    The forest of `onlineforest.OnlineForestClassifier` as a model of River: samples are
    dictionaries, labels have any hashable type, and new features and labels may appear at any time.
    The forest is a function of its seed, its parameters, the samples that it holds, and the keys
    and labels that it has learned. The order of samples and of keys has no influence. A loop of
    `learn_one` gives the same forest, to the last bit, as `onlineforest.OnlineForestClassifier.fit`
    on a table with the columns `features`. `estimator.digest_` shows it.

    Columns are sorted: first keys that are numbers, by value, then strings by code points, then all
    others by type and `repr`. A key that a sample lacks, or whose value is None or NaN, is missing.
    A new key is missing in all samples before. A forest with another set of features is another
    forest: a call that learns new keys, one or many, copies the stored samples, and the next
    prediction grows all trees again, which takes as long as one `fit`. A key stays a feature when
    its last sample is forgotten. Predictions ignore keys that were never learned.

    Labels that are all strings, or all whole numbers and bools, are those of the estimator. When a
    label of another kind comes, all labels become texts in the estimator, and its trees are grown
    again once. The model always predicts the labels that it has learned.

    Parameters
    ----------
    n_estimators
        Number of trees. More are better and slower; 10 as in River's forests.
    min_samples_split
        A node with fewer samples is not split.
    max_samples
        The expected share of the samples that each tree learns, above 0 and at most 1.
    smoothing
        How much of the count of each class a node gives to the distribution of its parent, 0 to 1.
    calibrate
        Whether probabilities are calibrated by samples that some trees leave out. They are
        calibrated again when 1/8 of the samples are new. Needs ten trees.
    class_weight
        None, or "balanced": probabilities are those of a source where all classes are equally
        frequent. To weight classes in learning, give `learn_one` weights.
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
    onlineforest.OnlineForestClassifier : The forest for arrays, with more about the parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlineforest.river import OnlineForestClassifier
    >>> model = OnlineForestClassifier(n_estimators=10, seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> metric.get() > 0.87
    True
    >>> other = OnlineForestClassifier(n_estimators=10, seed=0)
    >>> for x, y in reversed(list(datasets.Phishing())):
    ...     other.learn_one(x, y)
    >>> model.estimator.digest_ == other.estimator.digest_
    True
    """

    __module__ = "onlineforest.river"

    _estimator_class = _online_classifier.OnlineForestClassifier

    _labels: dict[Hashable, Any]  # the estimator's label for each label
    _names: dict[Any, Hashable]  # the label for each label of the estimator

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        min_samples_split: int = 2,
        max_samples: float = 1.0,
        smoothing: float = 0.2,
        calibrate: bool = True,
        class_weight: str | None = None,
        offsets: dict[Hashable, float] | None = None,
        window: int | None = None,
        reservoir: int | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        if class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight must be None or 'balanced'. Got {class_weight!r}.")
        super().__init__(
            n_estimators=n_estimators,
            min_samples_split=min_samples_split,
            max_samples=max_samples,
            smoothing=smoothing,
            calibrate=calibrate,
            class_weight=class_weight,
            offsets=offsets,
            window=window,
            reservoir=reservoir,
            half_life=half_life,
            n_jobs=n_jobs,
            seed=seed,
        )
        self._labels = {}
        self._names = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Any, w: float = 1.0) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of features: numbers and bools, None for a missing value.
        y
            Its label.
        w
            How often the sample counts; 0 is not at all.

        Examples
        --------
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(seed=0)
        >>> model.learn_one({"height": 1.0, "is_red": True}, "apple")
        >>> model.learn_one({"height": 9.0, "is_red": False, "weight": 4.0}, "melon")
        >>> model.features
        ['height', 'is_red', 'weight']
        """
        if w == 0:
            return
        code = self._code_of(y)
        if code is not None:
            self._learn_one(x, code, w)
            return
        with self._unless_refused():
            self._add_labels([y])
            self._learn_one(x, self._labels[y], w)

    def predict_proba_one(self, x: Sample, **_: Any) -> dict[Any, float]:
        """Predict the probability of each label.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        dict
            The probability of each label of the stored samples; empty before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(seed=0)
        >>> model.predict_proba_one({"height": 1.0})
        {}
        >>> model.learn_one({"height": 1.0}, "apple")
        >>> model.predict_proba_one({"height": 1.0})
        {'apple': 1.0}
        """
        return self._probabilities_of_one(x, calibrated=True)

    def predict_one(self, x: Sample, **_: Any) -> Any:
        """Predict the label of a sample.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        object
            The most probable label; None before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(seed=0)
        >>> model.learn_one({"height": 1.0}, "apple")
        >>> model.predict_one({"height": 1.0})
        'apple'
        """
        # The most probable label needs no calibration.
        found = self._probabilities_of_one(x, calibrated=False)
        return max(found, key=found.__getitem__) if found else None

    def _probabilities_of_one(self, x: Sample, *, calibrated: bool) -> dict[Any, float]:
        columns = self._query_columns
        if columns is None:
            return {}
        row, predict = columns.row(x), self._estimator._predict_one
        probabilities, classes = self._naming_keys(predict, row, calibrated=calibrated)
        return dict(zip(self._names_of(classes), probabilities.tolist(), strict=True))

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
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(min_samples_split=2, seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 9.0], "is_red": [True, False]})
        >>> model.learn_many(X, pd.Series(["apple", "melon"]))
        >>> model.predict_many(X).tolist()
        ['apple', 'melon']
        """
        targets = series_of(y).to_list()
        new = [label for label in targets if self._code_of(label) is None]
        with self._unless_refused():
            if new:
                self._add_labels(new)
            self._learn_many(X, np.array([self._labels[label] for label in targets]))

    def predict_proba_many(self, X: IntoDataFrame) -> Any:
        """Predict the probability of each label for each row.

        Parameters
        ----------
        X
            A dataframe of features.

        Returns
        -------
        dataframe
            A dataframe of the same kind, with a column for each label of the stored samples. Where
            names of columns must be strings, as in polars, labels are converted to strings.

        Examples
        --------
        >>> import pandas as pd
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(min_samples_split=2, seed=0)
        >>> X = pd.DataFrame({"height": [1.0, 9.0]})
        >>> model.learn_many(X, pd.Series(["apple", "melon"]))
        >>> model.predict_proba_many(X).round(1)
           apple  melon
        0    0.9    0.1
        1    0.1    0.9
        """
        frame = frame_of(X)
        found = self._probabilities(frame, calibrated=True)
        return native_frame(dict(found), like=frame)

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
        >>> from onlineforest.river import OnlineForestClassifier
        >>> model = OnlineForestClassifier(min_samples_split=2, seed=0)
        >>> X = pl.DataFrame({"height": [1.0, 9.0]})
        >>> model.learn_many(X, pl.Series(["apple", "melon"]))
        >>> model.predict_many(X).to_list()
        ['apple', 'melon']
        """
        frame = frame_of(X)
        best: list[Any] = [None] * len(frame)
        if found := self._probabilities(frame, calibrated=False):
            labels = [label for label, _ in found]
            best = [labels[code] for code in np.argmax([p for _, p in found], axis=0)]
        return native_series(best, like=frame)

    def _probabilities(
        self, frame: nw.DataFrame[Any], *, calibrated: bool
    ) -> list[tuple[Hashable, NDArray[Any]]]:
        """Each label learned, with its probability in each row."""
        columns = self._query_columns
        if columns is None:
            return []
        if len(frame) == 0:
            return [(label, np.empty(0)) for label in self._names_of(self._estimator.classes_)]
        rows = rows_of(columns, frame)
        probabilities, classes = self._estimator._predict(rows, calibrated=calibrated)
        return list(zip(self._names_of(classes), probabilities.T.copy(), strict=True))

    def _code_of(self, label: Hashable) -> Any:
        """The estimator's label for a label, None if it is new; raises if it is not a label."""
        try:
            code = self._labels.get(label)
        except TypeError as error:
            raise TypeError(f"A label must be hashable. Got {label!r} instead.") from error
        if code is None and is_missing(label):
            raise ValueError(f"y must be a label, but it is missing: {label!r}.")
        return code

    def _add_labels(self, new: Iterable[Hashable]) -> None:
        """Extend `_labels` and `_names` by new labels."""
        labels = plain_labels((*self._labels, *new))
        if any(labels[label] != code for label, code in self._labels.items()):
            self._estimator = relabelled(self._estimator, text_of)
        self._labels, self._names = labels, {code: label for label, code in labels.items()}

    def _names_of(self, classes: NDArray[Any]) -> list[Hashable]:
        """The labels that these classes of the estimator stand for, in their order."""
        return [self._names[label] for label in classes.tolist()]
