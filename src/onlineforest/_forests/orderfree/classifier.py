"""The order-free forest classifier. Must not know how its core forest works, nor where it lives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import LEAST_TREES_TO_CALIBRATE_LABELS
from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.core import ORDER_FREE_LABELS, Floats, OrderFreeLabelCore
from onlineforest._forests.learning import learn, learn_one
from onlineforest._forests.lessons import Samples
from onlineforest._forests.orderfree.calibrated import CalibratedForest
from onlineforest._forests.orderfree.classes import Classes, Columns, hashes_of
from onlineforest._forests.orderfree.holdings import Holdings
from onlineforest._forests.orderfree.label_calibration import (
    LabelCalibration,
    balanced,
    masses_above,
)
from onlineforest._forests.orderfree.label_lessons import (
    LabelLesson,
    declared_codes,
    merged_lesson,
)
from onlineforest._forests.orderfree.tree_arrays import tree_arrays
from onlineforest._forests.trees import OnlineClassificationTree, TreeSequence
from onlineforest._inputs.ids import Id
from onlineforest._inputs.one_row import RowLike
from onlineforest._inputs.parameters import Constraints, instance_of, interval
from onlineforest._inputs.validation import blocks_of, check_levels, check_row
from onlineforest._inputs.weights import stored_weight_of_one


class OnlineForestClassifier(
    BaseClassifier, CalibratedForest[LabelCalibration, OrderFreeLabelCore]
):
    """A random forest classifier that learns online and does not depend on the order of samples.

    The forest is a function of its seed, its parameters, the samples it holds and the classes that
    were declared. Nothing else matters, to the last bit: not the order in which samples came, nor
    how they were divided into batches, nor what was learned and forgotten in between, nor the
    number of threads. So ``fit``, any sequence of ``partial_fit`` and any history of learning and
    forgetting that leaves the same samples end in the same forest, and `digest_` shows it.

    Splits look at the labels. Features may have any scale, and values may be missing.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    min_samples_split : int, default=2
        The least weight of samples that a node must have to be split: their number, equal ones
        counted each, if no weights are given. Left-out samples choose how far the trees are used:
        see Notes.
    max_samples : float in (0, 1], default=1.0
        The expected share of the samples that each tree learns. Which ones is decided by a hash of
        the row, so equal rows are learned by the same trees. Below 1, the other trees predict the
        sample for `oob_score_`.
    smoothing : float in [0, 1], default=0.2
        Absolute discount: what is subtracted from the count of each class in a node and given to
        the distribution of its parent. 0 predicts the frequencies in the leaf.
    calibrate : bool, default=True
        Whether probabilities are calibrated and the stop weight is chosen: see Notes. If not, each
        tree learns all samples, whole trees predict, and `predict_proba` gives the mean of their
        distributions.
    class_weight : dict, "balanced" or None, default=None
        A dict gives the weight of classes: each sample counts as often as the weight of its class
        says, 1 if there is none, times its own weight. The forest, its calibration and so its
        probabilities are those of a set where samples are held that often. "balanced" changes
        predictions alone: probabilities are those of a source where all classes are equally
        frequent, given how frequent they are among the stored samples. The forest is the same.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which features are categorical: their indices, their names, or a bool for each feature.
        "from_dtype": the columns of a data frame that hold text, categories or bools when the
        forest is started; none of an array. None: no feature is. See Notes.
    offsets : array-like of shape (n_features,), dict or None, default=None
        What is subtracted from the features, in float64, before they are rounded to float32: one
        number per feature, or a dict from names of features (indices if they have no names) to
        numbers, 0 for all others. For columns of large numbers that differ little, such as
        timestamps: see Notes. It must not depend on the samples: choose it before you learn.
    window : int or None, default=None
        Number of latest samples to keep: older ones are forgotten as new ones come (see
        `forget`). An endless stream then takes fixed memory, if it has a fixed set of labels, and
        the forest follows changes.
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
    classes_ : ndarray of shape (n_classes,)
        The known classes, sorted: those of the stored samples and those that were declared.
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
        Accuracy on the stored samples that some trees have not learned, each predicted by these.
    oob_decision_function_ : ndarray of shape (n_samples_stored, n_classes)
        The probabilities of these predictions.
    digest_ : str
        SHA-256 of the forest.
    nbytes_ : int
        Memory of the forest in bytes: its samples, trees, ids, and names of classes and levels.
    trees_ : sequence of OnlineClassificationTree
        The trees as read-only arrays.

    See Also
    --------
    OnlineForestRegressor : The same trees for numbers.
    MondrianForestClassifier : Learns single samples faster, and has novelty.

    Notes
    -----
    **Stop weight.** Trees grow to purity, which is too far where labels are noisy. So predictions,
    `apply` and importances do not enter nodes whose samples weigh less than a stop weight: the tree
    predicts as if the last node above were a leaf. The stop weight is 0 or 10, 20, 40, ..., at most
    a tenth of the weight of all samples: the one of least log loss on every second calibrator (see
    below), with a penalty that prefers 0 where calibrators are few. It is part of the calibration.
    Nodes that are lighter are not grown, but `trees_`, `digest_` and `verify` are about the whole
    trees.

    **Calibration.** The mean of many trees is too cautious: where 95 of 100 trees agree, more than
    95 % of new samples may have that class. So each probability is raised to a power, the same
    for all, and their sum is made 1 again. Of n distinct samples, n/8 calibrate, but at most
    256 + n/32 and at most 2048; hashes choose them. Half of the first ten trees and every fourth of
    the others leave them out and predict them. The power is the one of least log loss on these
    predictions, drawn towards 1 as by four samples, and corrected for the number of trees: more
    trees are more cautious, and half of these trees show by how much. A share of 1 / (c + 2) of the
    probability is spread evenly over the classes if there are c calibrators. The most probable
    class stays the same, unless levels count (see below). With fewer than 20 such samples, about
    160 in all, or fewer than ten trees, nothing is calibrated.

    The calibration is a function of the samples that were held at one arrival. After `fit`,
    `forget`, `keep_latest`, `learn_from` and `recalibrate` these are the stored samples. In a
    stream it is found again exactly at the arrival that makes an eighth of the samples new, also
    if this arrival is within a batch. So it lags by less than that: forests that hold the same
    samples always agree in `digest_`, and in classes and probabilities after `recalibrate`.
    Predictions, files, copies, the size of batches and declared classes have no influence on it.
    It supposes that new samples are like the stored ones: after a change in the data probabilities
    are too sure, until a window or `keep_latest` has dropped what is old.

    A window or a reservoir chooses which samples are held, and this choice depends on the order.
    The forest of the samples that are held does not. Labels are compared by value: 1, True, 1.0
    and ``np.int8(1)`` are the same label, "1" is another one. A label leaves `classes_` with its
    last sample, unless it was declared by the argument `classes` of `partial_fit`. The kind of
    labels, numbers or strings, stays until the next `fit`.

    **Weights** say how often a sample counts, in splits, leaves and the calibration. The forest is
    a function of the total weight of each distinct sample. So weights are numbers of samples, not
    shares: scale them to a mean of about 1. If they add up to 1, no node has `min_samples_split`. A
    window or a reservoir counts samples, whatever their weight.

    Rows are stored as float32, once for all trees; X is rounded on input. float32 has 24 bits: a
    timestamp in seconds since 1970 is rounded to steps of two minutes. `offsets` are subtracted
    first: with an offset of 1700000000, times near it are exact to the second or better. A warning,
    once per forest, names the columns of which a batch of `fit` or `partial_fit` has lost more than
    a third of its distinct values by the rounding and has fewer than 4096 left, or any number if
    all are whole numbers. `trees_` and pictures are in the units of X. NaN is a missing value.
    Nothing is filled in: surrogates, splits on other features that agree with a split, send rows
    that lack its feature left or right, and "missing or not" is itself a split.

    **Categories.** Levels of a categorical feature are texts, whole numbers or bools, compared by
    value as labels are; a missing value is a level of its own. A split on such a feature sends each
    level left or right by a hash of its value, so a level that comes later has its side already.
    There is no list of levels to declare and no limit on their number. A level leaves `levels_`,
    and the forest, with its last sample. Trees separate one of hundreds of levels slowly. So the
    forest also counts the labels of each level, and multiplies the probabilities by a power of what
    the counts tell. The power is fitted with the calibration; it is 0 if this helps little.

    To learn or to forget a sample, each tree is changed along the path of the sample. A split
    depends on at most 64 samples of its node, which hashes choose. If the sample is among them and
    another split wins, the nodes below are split again when a prediction needs them. Their expected
    number of samples grows with the logarithm of the number of stored samples, for data that do not
    depend on the seed. Anyone who knows the seed can craft samples that change the split of the
    root at every step, so that each step takes as long as `fit`: keep the seed secret if others
    supply the data.

    If `partial_fit` or `forget` is interrupted (Ctrl-C), either nothing has changed or the change
    is stored as a whole: `n_samples_seen_` and `n_samples_stored_` tell. Trees that are behind
    follow when they are next used. So predictions, `digest_` and whatever else is asked always
    belong to the stored samples. An interrupted `fit` leaves the estimator unchanged.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import OnlineForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = OnlineForestClassifier(n_estimators=20, random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     forest = forest.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> forest.score(X[1500:], y[1500:]) > 0.85
    True
    >>> other = OnlineForestClassifier(n_estimators=20, random_state=0).fit(X[99:1500], y[99:1500])
    >>> forest.forget(X[:99], y[:99]).digest_ == other.digest_
    True
    """

    __module__ = "onlineforest"

    _constraints: ClassVar[Constraints] = {
        **CalibratedForest._constraints,
        "smoothing": [interval(Real, 0, 1)],
        "class_weight": [instance_of(dict, "a dict"), "balanced", None],
    }
    _core_kind = ORDER_FREE_LABELS
    _targets_type = Classes
    _saved_as = "OnlineForestClassifier"
    _calibration_type = LabelCalibration

    _targets: Classes

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        min_samples_split: int = 2,
        max_samples: float = 1.0,
        smoothing: float = 0.2,
        calibrate: bool = True,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
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
        self.smoothing = smoothing
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.offsets = offsets
        self.window = window
        self.reservoir = reservoir
        self.half_life = half_life
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _core_options(self) -> dict[str, Any]:
        return super()._core_options() | {
            "discount": float(self.smoothing) + 0.0,  # without a negative zero
        }

    # Learning.

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
            Their classes: strings, integers or bools.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts. A sample of weight 2 is the same as two equal samples, and
            one of weight 0 is not learned. Rounded to multiples of 2^-16. None: each counts once.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        OnlineForestClassifier
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0)
        >>> forest.fit([[1], [2], [3], [7], [8], [9]], 3 * ["no"] + 3 * ["yes"]).predict([[8.5]])
        array(['yes'], dtype='<U3')
        """
        learn(self, X, y, ids, sample_weight, afresh=True)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
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
            Their classes. New classes are added to `classes_`.
        classes : array-like of shape (n_classes,), default=None
            Classes to declare: they belong to `classes_` whether samples of them are stored or not.
            If they are given, y must not contain any class that is neither among them nor known.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts. A sample of weight 2 is the same as two equal samples, and
            one of weight 0 is not learned. Rounded to multiples of 2^-16. None: each counts once.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        OnlineForestClassifier
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0)
        >>> forest.partial_fit([[0.0], [1.0]], ["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        >>> forest.partial_fit([[9.0]], ["maybe"]).classes_
        array(['maybe', 'no', 'yes'], dtype='<U5')
        """
        learn(self, X, y, ids, sample_weight, classes=classes)
        return self

    def learn_one(
        self, x: RowLike, y: Any, id: Id | None = None, *, sample_weight: float = 1.0
    ) -> Self:
        """Learn one more sample, as `partial_fit` of one row does, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`, None or NaN if
            it is missing. As the first sample of a forest, it gives the features their names, and
            text and bools in it are categories, as in a data frame.
        y : str, int or bool
            Its class. A new class is added to `classes_`.
        id : int or str, default=None
            A name by which `forget` finds the sample.
        sample_weight : float, default=1.0
            How often the sample counts; 0 is not at all.

        Returns
        -------
        OnlineForestClassifier
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0)
        >>> for x in [3.0, 8.0, 1.0, 9.0, 2.0, 7.0]:
        ...     forest = forest.learn_one(np.array([x]), "yes" if x > 5 else "no")
        >>> forest.predict_one(np.array([8.5]))
        'yes'
        """
        weight = stored_weight_of_one(sample_weight, y, self.class_weight)
        learn_one(self, x, y, id, self._learn_row, weight, sample_weight)
        return self

    def _lesson(
        self,
        core: OrderFreeLabelCore,
        samples: Samples,
        classes: ArrayLike | None,
        *,
        starts: bool,
        is_whole: bool,
    ) -> LabelLesson:
        targets = Classes() if starts else self._targets
        known = None if starts else core
        new = declared_codes(targets, samples.target, classes, known)
        codes = targets.codes.encode(samples.target)
        fitting = self._fitting(starts=starts, is_whole=is_whole)
        return LabelLesson(targets, codes, samples.weights, new, fitting)

    def _lesson_of(self, others: Sequence[Holdings]) -> LabelLesson:
        return merged_lesson(self._targets, others)

    # Predicting.

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The mean of the trees' distributions, over `classes_`, calibrated (see Notes of the
            class).

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(min_samples_split=2, random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba([[0.0], [0.5]]).round(1)
        array([[0.9, 0.1],
               [0.5, 0.5]])
        """
        return self._predict(X, calibrated=True)[0]

    def predict_proba_one(self, x: RowLike) -> Floats:
        """Probability of each class for one sample, as `predict_proba` gives, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`, None
            or NaN if it is missing. A data frame is checked as `predict`
            does.

        Returns
        -------
        ndarray of shape (n_classes,)
            What `predict_proba` gives for this sample.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(min_samples_split=2, random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba_one(np.array([0.5])).round(1)
        array([0.5, 0.5])
        """
        return self._predict_one(x, calibrated=True)[0]

    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, *, per_class: bool = False
    ) -> NDArray[np.bool_]:
        """Sets of classes that contain the true class with at least a given probability.

        A set has the most probable classes: as many as it needs, few where the forest is sure and
        many where it is not, and at least one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        coverage : float, default=0.9
            The probability, between 0 and 1.
        per_class : bool, default=False
            Whether the sets shall contain the true class with this probability for the samples of
            each class by itself, rare ones too, and not only for all together. Sets are larger
            then. Classes that have too few samples are in all sets.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Whether the class, in the order of `classes_`, is in the set of the sample.

        Raises
        ------
        AttributeError
            If nothing is calibrated: `calibrate` is False or there are fewer than ten trees.

        Notes
        -----
        Conformal prediction: the sets are wide enough for every second calibrator, samples that
        some trees have left out (see Notes of the class); the others choose the stop weight. So the
        coverage holds for a new sample that is like the stored ones, as independent draws from one
        source are: on average over samples and over what was learned, not for each region by
        itself, nor after a change in the data. In a stream the width lags as the calibration does.
        `class_weight="balanced"` has no influence.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from onlineforest import OnlineForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = OnlineForestClassifier(random_state=0).fit(X[:1000], y[:1000])
        >>> sets = forest.predict_set(X[1000:], coverage=0.9)
        >>> sets.shape, bool(sets.any(axis=1).all())
        ((797, 10), True)
        >>> bool(sets[range(797), y[1000:]].mean() > 0.9)
        True
        """
        check_is_fitted(self)
        level = float(check_levels(coverage, "coverage")[0])
        if not self._calibrates():
            built = self._built_with
            raise AttributeError(
                "predict_set needs samples that some trees have left out: set calibrate=True, with "
                f"at least {LEAST_TREES_TO_CALIBRATE_LABELS} trees. There are "
                f"{built['n_estimators']}, and calibrate is {built['calibrate']}."
            )
        scores = self._calibration().scores
        probabilities, columns = self._answer(X, calibrated=True)
        self._check_any(columns)
        if not per_class:
            return masses_above(probabilities) <= scores.threshold(level)
        thresholds = [scores.threshold(level, label) for label in hashes_of(columns.classes)]
        return masses_above(probabilities) <= np.array(thresholds)

    def _predict(self, X: ArrayLike, *, calibrated: bool = False) -> tuple[Floats, NDArray[Any]]:
        probabilities, columns = self._answer(X, calibrated=calibrated)
        return self._balanced(probabilities, columns), columns.classes

    def _predict_one(self, x: RowLike, *, calibrated: bool = False) -> tuple[Floats, NDArray[Any]]:
        probabilities, columns = self._answer_one(x, calibrated=calibrated)
        return self._balanced(probabilities, columns), columns.classes

    def _answer(self, X: ArrayLike, *, calibrated: bool) -> tuple[Floats, Columns]:
        """Probabilities in the order of classes, and the classes: both of one moment."""
        targets: Classes
        core, targets = self._core_and_targets()
        since, n_threads = targets.names, self._n_threads()
        how = self._how(calibrated=calibrated)
        answers = [
            core.predict(self._rows.queries(self, block), n_threads, *how) for block in blocks_of(X)
        ]
        return targets.answer(answers, since)

    def _answer_one(self, x: RowLike, *, calibrated: bool) -> tuple[Floats, Columns]:
        """Answer for one sample: the probabilities have shape `(n_classes,)`."""
        targets: Classes
        core, targets = self._core_and_targets()
        since, row = targets.names, self._rows.row(self, x, may_be_new=True)
        how = self._how(calibrated=calibrated)
        try:
            hashes, probabilities = core.predict_one(row, *how)
        except TypeError:
            hashes, probabilities = core.predict_one(check_row(row), *how)
        columns = targets.columns(hashes, since)
        return columns.in_class_order(probabilities), columns

    def _balanced(self, probabilities: Floats, columns: Columns) -> Floats:
        """Probabilities as `class_weight` says; an error if no class is known."""
        self._check_any(columns)
        if self._built_with["class_weight"] != "balanced":
            return probabilities
        weights = self._core.label_weights[columns.codes.codes]
        return balanced(np.atleast_2d(probabilities), weights).reshape(probabilities.shape)

    def _check_any(self, columns: Columns) -> None:
        if len(columns.hashes) == 0:
            raise ValueError(
                f"This {type(self).__name__} has forgotten all its samples and knows no class. "
                "Learn some first."
            )

    # Attributes that describe trees and stored samples.

    @property
    def trees_(self) -> TreeSequence[OnlineClassificationTree]:
        """The trees as read-only arrays."""
        check_is_fitted(self)
        return TreeSequence(lambda: self._forest.n_trees, self._tree, "order-free")

    def _tree(self, index: int) -> OnlineClassificationTree:
        with self._locked():
            table, codes = self._forest.tree(index), self._targets.known(self._forest).codes
            arrays = tree_arrays(table, self._rows_in_use())
        n_nodes = len(table["feature"])
        nodes = np.repeat(np.arange(n_nodes), np.diff(table["counts_end"], prepend=0))
        count = np.zeros((n_nodes, codes.n_classes))
        count[nodes, codes.places()[table["label"]]] = table["count"]
        return OnlineClassificationTree(**arrays, count=count)

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """Probabilities of each stored sample, from the trees that have not learned it.

        Shape (n_samples_stored, n_classes). The samples are in the order of their arrival. NaN for
        samples that all trees have learned. Not calibrated. Computed at each access. Only if trees
        leave samples out: for calibration, or because `max_samples` is below 1.
        """
        return self._left_out("oob_decision_function_")[0]

    @property
    def oob_score_(self) -> float:
        """Accuracy on the stored samples, each predicted by the trees that have not learned it.

        Samples count by their weights. Samples that all trees have learned do not count; NaN if
        there is no other. Computed at each access. Only if trees leave samples out: for
        calibration, or because `max_samples` is below 1.
        """
        probabilities, places, weights = self._left_out("oob_score_")
        are_left_out = ~np.isnan(probabilities).any(axis=1)
        if not are_left_out.any():
            return math.nan
        best = probabilities[are_left_out].argmax(axis=1)
        are_right = best == places[are_left_out]
        return float(np.average(are_right, weights=weights[are_left_out]))

    def _left_out(self, name: str) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Left-out predictions in the order of arrival, the true columns and the weights."""
        check_is_fitted(self)
        share = self._built_with["max_samples"]
        if share == 1 and not self._calibrates():
            raise AttributeError(
                f"{name} needs samples that some trees have not learned, but max_samples is "
                f"{share} and nothing is calibrated. Set max_samples below 1, or calibrate=True "
                f"with at least {LEAST_TREES_TO_CALIBRATE_LABELS} trees."
            )
        with self._locked():
            columns = self._targets.known(self._forest)
            left_out = self._left_out_samples(self._stop_weight())
        places = columns.codes.places()[left_out.values]
        return columns.in_class_order(left_out.predictions), places, left_out.weights

    def _how(self, *, calibrated: bool) -> tuple[float, float, int, float]:
        """Power and spread, (1, 0) if not calibrated, stop weight and level power, 0 if none.

        If levels count, the most probable class depends on the power: predictions are calibrated.
        """
        if not self._calibrates():
            return 1.0, 0.0, 0, 0.0
        found = self._calibration()
        is_raw = not calibrated and found.level_power == 0.0
        power_and_spread = (1.0, 0.0) if is_raw else (found.power, found.spread)
        return *power_and_spread, found.stop_weight, found.level_power
