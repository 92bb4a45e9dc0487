"""The Mondrian forest classifier. Must not know how its core forest works."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import MondrianForest
from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.core import MONDRIAN, Floats, Rows
from onlineforest._forests.forest import Forest
from onlineforest._forests.forgetting import forget
from onlineforest._forests.importances import shares_of
from onlineforest._forests.learning import learn, learn_one
from onlineforest._forests.lessons import Lesson, Samples
from onlineforest._forests.mondrian.classes import MondrianClasses
from onlineforest._forests.trees import MondrianTree, TreeSequence
from onlineforest._inputs.class_codes import ClassCodes, check_classes, check_declared, codes_with
from onlineforest._inputs.ids import Id
from onlineforest._inputs.one_row import RowLike
from onlineforest._inputs.parameters import ARRAY_LIKE, Constraints, interval
from onlineforest._inputs.rows import CompleteRows
from onlineforest._inputs.validation import blocks_of, check_feature_weights, check_row


class MondrianLesson(Lesson[MondrianForest]):
    """The class codes of a batch, and all classes known after it."""

    def __init__(
        self, targets: MondrianClasses, labels: NDArray[np.int32], codes: ClassCodes
    ) -> None:
        self._targets, self._labels, self._codes = targets, labels, codes
        self.changes = {"_targets": targets}

    def teach(self, core: MondrianForest, rows: Rows, n_threads: int) -> None:
        core.learn(rows, self._labels, self._codes.n_classes, n_threads)

    def finish(self, core: MondrianForest) -> None:  # noqa: ARG002
        self._targets.codes = self._codes


class MondrianForestClassifier(BaseClassifier, Forest[MondrianForest]):
    """A random forest classifier that learns online.

    The Mondrian forest of Lakshminarayanan, Roy and Teh [1]_. Samples can come all at once
    (`fit`), in batches or one at a time (`partial_fit`), in any order: given the weights of the
    features, the distribution of the forest is the same. Predicted probabilities are smoothed along
    the path in each tree. Far from all samples seen, they approach the uniform prior.

    Cuts are drawn without looking at the labels; how often each feature is cut is learned from the
    labels. With ``feature_weights="range", leaf_discount=0.0`` the forest is that of the paper, on
    features rescaled to [0, 1].

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Time at which cutting stops: lambda in the paper. A smaller value gives coarser trees.
    discount : float, default=10.0
        How fast the label distribution of a node may depart from that of its parent. The discount
        rate, gamma in the paper, is `discount` times the sum over features of weight times range.
        For data that fills the unit cube, it is `discount` times the number of features.
    leaf_discount : float in [0, 1] or "learned", default="learned"
        Smallest share of the first sample of each label that a leaf leaves to its parent's
        distribution. 0 is the paper's rule: with an infinite lifetime, a leaf of one label then
        predicts it with probability 1, which is too sure where samples repeat or features are
        discrete. ``"learned"`` chooses among 0.03, 0.1, 0.3, 0.6 and 0.9, when the weights are
        computed, by the log loss on left-out samples; 0.3 unless another value is better by a
        standard error.
    min_samples_split : int, default=2
        A block with fewer distinct samples is not cut yet; nor is a block whose labels are all
        equal.
    feature_weights : {"learned", "range"}, array-like of shape (n_features,) or None, \
            default="learned"
        The weight of each feature in the rate of cuts.

        - ``"learned"``: a share divided by the range. The share is a power, usually the square, of
          the relevance of the feature for the labels, which thirty greedy trees estimate from the
          samples. A trial on left-out samples chooses the power, which may be 0. With less than 40
          distinct samples, or if no feature is relevant, as ``"range"``. The weights are refreshed
          when the number of new samples is half the number they were computed from (half of a full
          window). If more than 5 % of the cuts would then fall to other features, all trees are
          grown again from the stored samples.
        - ``"range"``: 1 divided by the range of the data seen, so that scales do not matter; 0 for
          a constant feature. With `fit`, this equals rescaling the training data to [0, 1]. With
          `partial_fit`, the weights are refreshed when the number of samples has doubled. If one of
          them has then changed by more than 10 %, all trees are grown again from the stored
          samples.
        - array-like: fixed weights. 0 ignores a feature.
        - None: all 1.
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
    classes_ : ndarray of shape (n_classes,)
        The known classes, sorted.
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
        The relevance of each feature for the labels, with sum 1; estimated at each access.
    discount_rate_ : float
        The current discount rate.
    leaf_discount_ : float
        The current smallest discount of a leaf.
    nbytes_ : int
        Memory of the forest in bytes: its samples, trees, ids and names of classes.
    trees_ : sequence of MondrianTree
        The trees as read-only arrays.

    See Also
    --------
    OnlineForestClassifier : Also learns categories, rows with missing values and weighted samples.

    Notes
    -----
    Rows are stored as float32, once for all trees, and so are boxes and cuts; X is rounded on
    input. float32 has 24 bits: a timestamp in seconds since 1970 is rounded to steps of two
    minutes. A warning, once per forest, names the columns of which a batch has lost more than a
    third of its distinct values by the rounding and has fewer than 4096 left, or any number if all
    are whole numbers. Subtract a number near the values of such a column before you learn and
    before you predict.

    If `partial_fit` is interrupted (Ctrl-C), the batch is stored, but some trees have learned only
    part of it. The forest can be used and saved in this state. The next `partial_fit` finishes the
    batch first, and gives the forest that would exist without the interrupt. If that call is
    interrupted before it has finished the earlier batch, it has not stored its own batch:
    `n_samples_seen_` shows this. An interrupted `fit` leaves the estimator unchanged.

    References
    ----------
    .. [1] B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests: Efficient Online Random
       Forests. Advances in Neural Information Processing Systems 27, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import MondrianForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = MondrianForestClassifier(n_estimators=20, random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     forest = forest.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> forest.n_samples_seen_
    1500
    >>> forest.score(X[1500:], y[1500:]) > 0.85
    True
    """

    __module__ = "onlineforest"

    _constraints: ClassVar[Constraints] = {
        **Forest._constraints,
        "lifetime": [interval(Real, 0, math.inf)],
        "feature_weights": ["learned", "range", ARRAY_LIKE, None],
        "discount": [interval(Real, 0, math.inf, "[)")],
        "leaf_discount": [interval(Real, 0, 1), "learned"],
    }
    _core_kind = MONDRIAN
    _targets_type = MondrianClasses
    _numeric_format = CompleteRows
    _saved_as = "MondrianForestClassifier"

    _targets: MondrianClasses

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        discount: float = 10.0,
        leaf_discount: float | str = "learned",
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
        self.leaf_discount = leaf_discount
        self.min_samples_split = min_samples_split
        self.feature_weights = feature_weights
        self.window = window
        self.reservoir = reservoir
        self.half_life = half_life
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        `feature_weights`. 0 for a feature without evidence; all 0 if no feature has any.
        """
        core = self._core_with_samples()
        return shares_of(core.relevance(self._n_threads()))

    @property
    def leaf_discount_(self) -> float:
        """The current smallest discount of a leaf."""
        return self._core_with_samples().leaf_discount

    @property
    def trees_(self) -> TreeSequence[MondrianTree]:
        """The trees as read-only arrays."""
        check_is_fitted(self)

        def tree(index: int) -> MondrianTree:
            arrays, columns = self._forest.tree(index), self._targets.codes.codes
            for name in ("count", "labels"):
                arrays[name] = np.ascontiguousarray(arrays[name][:, columns])
            arrays["labels"] = arrays["labels"].view(np.bool_)
            return MondrianTree(**arrays)

        return TreeSequence(lambda: self._forest.n_trees, tree)

    def fit(self, X: ArrayLike, y: ArrayLike, *, ids: Iterable[Id] | None = None) -> Self:
        """Learn a forest from these samples alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes: strings, integers or bools.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        MondrianForestClassifier
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest.fit([[0.0], [1.0]], ["no", "yes"]).predict([[0.9]])
        array(['yes'], dtype='<U3')
        """
        learn(self, X, y, ids, afresh=True)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Learn more samples, or the first ones of a new estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their classes. New classes are added to `classes_`.
        classes : array-like of shape (n_classes,), default=None
            Classes to add to `classes_`, whether they occur in y or not. If they are given, y must
            not contain any class that is neither among them nor known.
        ids : iterable of int or str of length n_samples, default=None
            Names by which `forget` finds the samples, all distinct and not in use.

        Returns
        -------
        MondrianForestClassifier
            The estimator itself.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest.partial_fit([[0.0], [1.0]], ["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        >>> forest.partial_fit([[9.0]], ["maybe"]).classes_
        array(['maybe', 'no', 'yes'], dtype='<U5')
        """
        learn(self, X, y, ids, classes=classes)
        return self

    def refresh_weights(self) -> Self:
        """Refresh all that is learned about the data as a whole, whether due or not.

        That is `feature_weights_`, `discount_rate_` and `leaf_discount_`. All of it is recomputed
        from the stored samples, so no trace of forgotten samples remains. If the weights change,
        all trees are grown again from the stored samples.

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
            Their classes as they were learned.
        ids : iterable of int or str, default=None
            The ids of the samples, instead of X and y.

        Returns
        -------
        object
            The estimator itself.

        Notes
        -----
        Forgetting takes about as long as learning the samples. If more than a fifth of the samples
        are forgotten, all trees are grown again. Do not choose samples by looking at the trees, for
        example the deepest ones: the remaining forest would be biased.

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
        forget(self, X, y, ids)
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
        A block whose labels are all equal is not cut. So a forest that has seen only one class has
        no cuts, and the novelty is 0 everywhere. Without labels, learn random ones of 64 classes
        with ``feature_weights="range"``.

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

    def learn_one(self, x: RowLike, y: Any, id: Id | None = None) -> Self:
        """Learn one more sample, as `partial_fit` of one row does, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`. As the first
            sample of a forest, it gives the features their names.
        y : str, int or bool
            Its class. A new class is added to `classes_`.
        id : int or str, default=None
            A name by which `forget` finds the sample.

        Returns
        -------
        MondrianForestClassifier
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> for x in [3.0, 8.0, 1.0, 9.0, 2.0, 7.0]:
        ...     forest = forest.learn_one(np.array([x]), "yes" if x > 5 else "no")
        >>> forest.predict_one(np.array([8.5]))
        'yes'
        """
        learn_one(self, x, y, id, self._learn_row)
        return self

    def _learn_row(self, row: Any, code: int, weight: int) -> None:  # noqa: ARG002
        self._forest.learn_one(row, code, self._targets.codes.n_classes)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The mean of the trees' distributions, over `classes_`.

        Examples
        --------
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba([[0.0], [0.5]]).round(1)
        array([[0.8, 0.2],
               [0.5, 0.5]])
        """
        return self._predict(X)[0]

    def predict_proba_one(self, x: RowLike) -> Floats:
        """Probability of each class for one sample, as `predict_proba` gives, with less overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,), mapping or data frame of one row
            The sample. An array of float32 or float64 is fastest. A dict, or a pandas Series with
            names as its index, needs a value for each name in `feature_names_in_`. A data frame is
            checked as `predict` does.

        Returns
        -------
        ndarray of shape (n_classes,)
            What `predict_proba` gives for this sample.

        Examples
        --------
        >>> import numpy as np
        >>> from onlineforest import MondrianForestClassifier
        >>> forest = MondrianForestClassifier(random_state=0)
        >>> forest = forest.fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.predict_proba_one(np.array([0.5])).round(1)
        array([0.5, 0.5])
        """
        return self._predict_one(x)[0]

    def _predict(
        self,
        X: ArrayLike,
        *,
        calibrated: bool = False,  # noqa: ARG002
    ) -> tuple[Floats, NDArray[Any]]:
        core, targets = self._core_and_targets()
        answers = [
            core.predict(self._rows.queries(self, block), self._n_threads())
            for block in blocks_of(X)
        ]
        n_classes = max(answer.shape[1] for answer in answers)
        whole = np.concatenate([_widened(answer, n_classes) for answer in answers])
        return self._in_class_order(whole, targets)

    def _predict_one(
        self,
        x: RowLike,
        *,
        calibrated: bool = False,  # noqa: ARG002
    ) -> tuple[Floats, NDArray[Any]]:
        core, targets = self._core_and_targets()
        row = self._rows.row(self, x, may_be_new=True)
        try:
            probabilities = core.predict_one(row)
        except TypeError:
            probabilities = core.predict_one(check_row(row))
        return self._in_class_order(probabilities, targets)

    def _in_class_order(
        self, probabilities: Floats, targets: MondrianClasses
    ) -> tuple[Floats, NDArray[Any]]:
        """Probabilities in the order of classes, and the classes that the core forest knew."""
        n_classes = probabilities.shape[-1]
        if targets.codes.n_classes < n_classes:
            with self._locked():  # until another thread has recorded its batch
                pass
        codes = targets.codes.first(n_classes)
        return codes.in_class_order(probabilities), codes.classes

    def _check_trees(self) -> None:
        self._forest.check_invariants()

    def _core_options(self) -> dict[str, Any]:
        rule, weights = "unit", None
        if isinstance(self.feature_weights, str):
            rule = self.feature_weights
        elif self.feature_weights is not None:
            rule = "fixed"
            weights = check_feature_weights(self.feature_weights, self.n_features_in_)
        learned = self.leaf_discount == "learned"
        return super()._core_options() | {
            "lifetime": float(self.lifetime),
            "discount": float(self.discount),
            "leaf_discount": None if learned else float(self.leaf_discount),
            "weight_rule": rule,
            "weights": weights,
        }

    def _lesson(
        self,
        core: MondrianForest,  # noqa: ARG002
        samples: Samples,
        classes: ArrayLike | None,
        *,
        starts: bool,
        is_whole: bool,  # noqa: ARG002
    ) -> MondrianLesson:
        targets = MondrianClasses() if starts else self._targets
        codes = None if starts else targets.codes
        if classes is not None:
            codes = codes_with(codes, check_classes(classes), "classes")
            check_declared(samples.target, codes.classes)
        codes = codes_with(codes, samples.target)
        return MondrianLesson(targets, codes.encode(samples.target), codes)


def _widened(probabilities: Floats, n_classes: int) -> Floats:
    """Probabilities with columns of zeros for classes that were unknown."""
    n_new = n_classes - probabilities.shape[1]
    return np.pad(probabilities, ((0, 0), (0, n_new))) if n_new else probabilities
