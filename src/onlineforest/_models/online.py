"""The base class of order-free forests: digests, left-out samples, importances.

Must not know what y is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import UNITS_PER_SAMPLE
from onlineforest._models.base import Batch, Lesson, shares_of
from onlineforest._models.core import CoreSpec, Floats, OfGuided, State, VerifiesItself
from onlineforest._models.digests import (
    LabelDigest,
    NumberDigest,
    Samples,
    forest_digest,
    samples_of,
)
from onlineforest._models.ids import Id
from onlineforest._models.saveable import SaveableForest
from onlineforest._models.uniting import (
    Holdings,
    Profile,
    UnionLesson,
    check_can_be_united,
    joined_rows,
)
from onlineforest._models.validation import unchanged_on_error


@dataclass(frozen=True)
class LeftOutSamples:
    """The stored samples in the order of arrival, and what trees say that have not learned them.

    Attributes
    ----------
    predictions : ndarray of shape (n_samples, n_columns)
        As the core forest predicts; NaN if all trees have learned the sample.
    n_trees : ndarray of shape (n_samples,)
        The number of trees that have not learned it.
    values : ndarray of shape (n_samples,)
        The code of its label, or its number.
    weights : ndarray of shape (n_samples,)
        How often it counts.
    """

    predictions: Floats
    n_trees: NDArray[np.int64]
    values: NDArray[Any]
    weights: Floats


class BaseOnlineForest(SaveableForest[OfGuided]):
    """Base of the order-free forests, which document the parameters.

    A subclass says how the values of its samples enter a digest (`_value_digest`) and prepares new
    core forests for them (`_prepare`).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SaveableForest._parameter_constraints,
        "max_samples": [Interval(Real, 0, 1, closed="right")],
    }

    max_samples: float

    def _value_digest(self) -> LabelDigest | NumberDigest:
        """How the values of samples enter the digest."""
        raise NotImplementedError

    def _prepare(self, core: OfGuided) -> None:
        """Tell a new core forest what it must know before it learns the stored samples."""

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The decrease of impurity at the cuts of each feature, shape (n_features,).

        The sum is 1; all are 0 if there is no cut. The impurity is the Gini impurity of classes or
        the variance of numbers. If trees leave samples out, it is the squared error on these
        samples, and a feature that does harm gets 0.
        """
        by_tree = self._core.importances(self._n_threads())
        mean = np.zeros(by_tree.shape[1])
        for of_tree in by_tree:  # in the order of trees, whatever np.mean would do
            mean += of_tree / len(by_tree)
        return shares_of(mean)

    @property
    def digest_(self) -> str:
        """SHA-256 of the forest in hexadecimal.

        Covers the seed, the parameters that define the forest, `classes_` if there are any, the
        stored samples and all cuts and leaves of the trees. `n_jobs`, `window`, `reservoir`,
        `half_life`, ids, names of features and the order of arrival have no influence. All pending
        cuts are made first.
        """
        check_is_fitted(self)
        with self._locked():
            state = self._forest.get_state()
            return self._digest_of(self._forest, state, self._spec_of_state(state))

    def _digest_of(self, core: OfGuided, state: State, spec: CoreSpec[OfGuided]) -> str:
        """The digest of a core forest with the values of this estimator."""
        core.complete(self._n_threads())
        kept = {"window", "reservoir", "half_life"}
        settings = {name: value for name, value in spec.options.items() if name not in kept}
        settings |= {"n_estimators": spec.n_trees, "n_features": spec.n_features}
        return forest_digest(
            core, samples_of(state, spec.n_features), self._value_digest(), settings
        )

    def verify(self) -> bool:
        """Whether the trees are those of the stored samples.

        Grows a second forest from the stored samples, with the seed of this one, and compares the
        digests. Takes as long as `fit`, and as much memory.

        Returns
        -------
        bool
            True if the digests are equal. False means that the memory or the state of the forest
            was changed by something other than its methods, or that the library has a defect.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
        >>> forest.learn_one([2.0], "no").forget([[0.0]], ["no"]).verify()
        True
        """
        check_is_fitted(self)
        with self._locked():
            if isinstance(self._forest, VerifiesItself):
                return self._forest.are_trees_of_samples()
            state = self._forest.get_state()
            spec = self._spec_of_state(state)
            fresh = self._grown_afresh(spec, samples_of(state, spec.n_features))
            ours = self._digest_of(self._forest, state, spec)
            return ours == self._digest_of(fresh, fresh.get_state(), spec)

    def _check_trees(self) -> None:
        if not self.verify():
            raise RuntimeError("The trees are not those of the stored samples.")

    def _grown_afresh(self, spec: CoreSpec[OfGuided], samples: Samples) -> OfGuided:
        """A core forest that keeps all samples, and learned these in another order."""
        keep_all = {"window": 0, "reservoir": 0, "half_life": math.inf}
        core: Any = self._core_source.new(replace(spec, options={**spec.options, **keep_all}))
        self._prepare(core)
        if len(samples.values):
            core.learn(
                np.ascontiguousarray(samples.rows[::-1]),
                np.ascontiguousarray(samples.values[::-1]),
                self._n_threads(),
                (samples.weights[::-1] * UNITS_PER_SAMPLE).astype(np.int64),
            )
        return core  # type: ignore[no-any-return]

    def _left_out_samples(self) -> LeftOutSamples:
        """The stored samples, predicted by the trees that have not learned them."""
        core = self._forest
        predictions, n_trees = core.left_out(self._n_threads())
        order = np.argsort(core.serials)
        return LeftOutSamples(
            predictions[order], n_trees[order], core.values[order], core.weights[order]
        )

    def forget(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        ids: Iterable[Id] | None = None,
    ) -> Self:
        """Unlearn samples: the forest becomes one that never saw them, to the last bit.

        Either all samples are forgotten, or an error names those that are not stored, and nothing
        has changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The samples as they were learned. Of several equal samples the oldest is forgotten; a
            sample given twice is forgotten twice.
        y : array-like of shape (n_samples,), default=None
            Their classes or numbers as they were learned.
        ids : iterable of int or str, default=None
            The ids of the samples, instead of X and y.

        Returns
        -------
        object
            The estimator itself.

        Notes
        -----
        A class leaves `classes_` with its last sample, unless it was declared. Nothing of the
        samples remains in the stored data and the trees, but the names of such classes stay in
        memory, pickles and model files until the next `fit`.

        After an interrupt (Ctrl-C), either nothing has changed, or all samples are forgotten and
        the trees follow when they are next used.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(random_state=0)
        >>> people = ["Ada", "Grace", "Emmy"]
        >>> forest = forest.partial_fit([[0.0], [1.0], [2.0]], ["a", "b", "a"], ids=people)
        >>> forest.forget(ids=["Grace"]).classes_
        array(['a'], dtype='<U1')
        >>> forest.forget([[2.0]], ["a"]).ids_
        frozenset({'Ada'})
        """
        self._forget(X, y, ids)
        return self

    def learn_from(self, *forests: Self) -> Self:
        """Learn all samples of other forests: the result is the forest of all samples, exactly.

        This forest becomes the one that `fit` makes of the samples of all forests together, to the
        last bit, and `digest_` shows it. The other forests do not change. It takes as long as
        learning their samples with `partial_fit`, so let the forest with the most samples learn
        from the others.

        Parameters
        ----------
        *forests : estimators of the class of this one
            Fitted forests with the seed, the parameters (except `n_jobs` and `random_state`) and
            the features of this one. Their ids must be distinct from those of this forest and of
            each other. Classes that were declared are declared in the result, too.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        TypeError
            If something is not a forest of this class.
        ValueError
            If seeds, parameters, features or kinds of labels differ, if an id occurs twice, or if a
            forest has a `window` or a `reservoir`: these keep samples by their order of arrival,
            and there is no such order between samples of different forests. Nothing has changed.

        See Also
        --------
        merge : The same as a function, which changes no forest.

        Notes
        -----
        The samples of the other forests count as arrived after those of this one, one forest after
        the other: `keep_latest` goes by that. `n_samples_seen_` is the sum of those of all forests.
        A sample that several forests hold is held as often as in all of them together.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from onlineforest import OnlineForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> one = OnlineForestClassifier(random_state=0).fit(X[:90], y[:90])
        >>> other = OnlineForestClassifier(random_state=0).fit(X[90:], y[90:])
        >>> both = OnlineForestClassifier(random_state=0).fit(X, y)
        >>> one.learn_from(other).digest_ == both.digest_
        True
        """
        check_is_fitted(self)
        names = [f"forests[{i}]" for i in range(len(forests))]
        self._unite(forests, "this forest", names)
        return self

    def _unite(self, forests: Sequence[Any], own_name: str, names: Sequence[str]) -> None:
        """Learn the samples of other forests, which have these names in messages."""
        others = []
        for forest, name in zip(forests, names, strict=True):
            if type(forest) is not type(self):
                raise TypeError(
                    f"{own_name} is of type {type(self).__name__}, but {name} is of type "
                    f"{type(forest).__name__}."
                    + (" Use what its gather() returns." if hasattr(forest, "gather") else "")
                )
            if forest is self:
                raise ValueError(f"{name} is {own_name} itself.")
            check_is_fitted(forest, msg=f"{name}, a %(name)s, has learned nothing yet.")
            others.append(forest._holdings(name))
        with self._locked(), unchanged_on_error(self) as keep_changes:
            self._check_parameters_unchanged()
            core = self._forest
            own_ids = self._ids.only_of(core.serials) if len(self._ids) else self._ids
            profiles = [each.profile for each in others]
            check_can_be_united([self._profile(own_name, own_ids.names()), *profiles])
            if not others:
                return
            first_serial = core.n_seen
            n_seen = first_serial + sum(each.n_seen for each in others)
            lesson = UnionLesson(self._lesson_of(others), n_seen)
            ids = [each for some in others for each in some.ids]
            batch = Batch(core, lesson, ids, first_serial, {})
            self._learn_batch(batch, joined_rows(others), keep_changes)
            if not ids:  # nothing was stored, but classes may have been declared
                self._record(batch)
                keep_changes()

    def _lesson_of(self, others: Sequence[Holdings]) -> Lesson[OfGuided]:
        """The samples of other forests as one lesson."""
        raise NotImplementedError

    def _targets_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """What users call the values of stored samples."""
        return values

    def _declared_labels(self) -> NDArray[Any]:
        """The labels that users have declared."""
        return np.empty(0)

    def _profile(self, name: str, ids: list[Id]) -> Profile:
        names = getattr(self, "feature_names_in_", None)
        return Profile(
            name,
            self._forest.seed,
            self._built_with,
            self.n_features_in_,
            None if names is None else list(names),
            ids,
        )

    def _holdings(self, name: str) -> Holdings:
        """The samples of this forest, called `name` in messages."""
        with self._locked():
            state = self._forest.get_state()
            order = np.argsort(state["serials"])
            samples, units = state["sample_of"][order], state.get("weights")
            ids = self._ids.only_of(state["serials"])
            id_of = dict(zip(ids.serials().tolist(), ids.names(), strict=True))
            return Holdings(
                self._profile(name, ids.names()),
                state["rows"].reshape(-1, self.n_features_in_)[samples],
                self._targets_of(state["values"][samples]),
                None if units is None else units[order],
                [id_of.get(serial) for serial in state["serials"][order].tolist()],
                self._declared_labels(),
                int(state["n_seen"][0]),
            )

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """The leaf of each sample in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Indices of nodes, as in ``trees_``. -1 for a tree without samples.

        Examples
        --------
        >>> from onlineforest import OnlineForestClassifier
        >>> forest = OnlineForestClassifier(n_estimators=2, min_samples_split=2, random_state=0)
        >>> forest.fit([[0.0], [1.0]], [0, 1]).apply([[0.0], [1.0]])
        array([[1, 1],
               [2, 2]], dtype=int32)
        """
        return self._predict_rows(self._core.apply, X)


def tree_arrays(table: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays that trees of labels and of numbers have in common."""
    features, ends = table["feature"], table["surrogates_end"]
    n_surrogates = np.diff(ends, prepend=0)
    nodes = np.repeat(np.arange(len(features)), n_surrogates)
    places = np.arange(len(nodes)) - np.repeat(ends - n_surrogates, n_surrogates)
    shape = (len(features), int(n_surrogates.max(initial=0)))
    dimension, location = np.full(shape, -1, np.int32), np.full(shape, np.nan, np.float32)
    are_reversed = np.zeros(shape, np.bool_)
    dimension[nodes, places] = table["surrogate_feature"]
    location[nodes, places] = table["surrogate_threshold"]
    are_reversed[nodes, places] = table["surrogate_reversed"]
    return {
        "parent": table["parent"],
        "left": table["left"],
        "right": table["right"],
        "split_dimension": features,
        "split_location": np.where(features >= 0, table["threshold"], np.float32(np.nan)),
        "missing_left": table["missing_left"].astype(np.bool_),
        "surrogate_dimension": dimension,
        "surrogate_location": location,
        "surrogate_reversed": are_reversed,
        "n_points": table["weight"],
    }
