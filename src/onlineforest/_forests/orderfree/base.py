"""The base class of order-free forests: digests, left-out samples, importances, merging.

Must not know what y is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import WEIGHT_OF_ONE
from onlineforest._files.encoding import from_json
from onlineforest._forests.core import CoreSpec, Floats, OfOrderFree, Rows, State
from onlineforest._forests.forest import Forest
from onlineforest._forests.forgetting import forget
from onlineforest._forests.importances import shares_of
from onlineforest._forests.learning import teach
from onlineforest._forests.lessons import Batch, Lesson
from onlineforest._forests.orderfree.digests import Samples, forest_digest, samples_of
from onlineforest._forests.orderfree.holdings import (
    Holdings,
    MergeLesson,
    Profile,
    check_can_be_merged,
    joined_rows,
)
from onlineforest._inputs.ids import Id
from onlineforest._inputs.levels import Level, in_order
from onlineforest._inputs.parameters import ARRAY_LIKE, Constraints, instance_of, interval
from onlineforest._inputs.rows import MixedRows, RowFormat, names_of
from onlineforest._inputs.validation import unchanged_on_error


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
    numbers : ndarray of shape (n_samples,)
        Its number, which equal samples have in common.
    """

    predictions: Floats
    n_trees: NDArray[np.int64]
    values: NDArray[Any]
    weights: Floats
    numbers: NDArray[np.int32]


class BaseOnlineForest(Forest[OfOrderFree]):
    """Base of the order-free forests, which document the parameters.

    The targets of a subclass say how values enter a digest, and prepare new core forests for them.
    """

    _constraints: ClassVar[Constraints] = {
        **Forest._constraints,
        "max_samples": [interval(Real, 0, 1, "(]")],
        "categorical_features": [ARRAY_LIKE, instance_of(str, "a string"), None],
        "offsets": [instance_of(dict, "a dict"), ARRAY_LIKE, None],
    }

    max_samples: float
    categorical_features: ArrayLike | str | None
    offsets: ArrayLike | Mapping[Any, float] | None

    def _core_options(self) -> dict[str, Any]:
        return super()._core_options() | {
            "max_samples": float(self.max_samples),
            "n_categorical": len(self._rows.columns),
        }

    def _lesson_of(self, others: Sequence[Holdings]) -> Lesson[OfOrderFree]:
        """The samples of other forests as one lesson."""
        raise NotImplementedError

    @property
    def levels_(self) -> dict[Any, list[Level]]:
        """The levels of each categorical feature that stored samples have, sorted.

        The keys are the names of the features, or their indices if they have no names. Numbers come
        before text; None stands for missing values, and is last. A level leaves with its last
        sample.
        """
        check_is_fitted(self)
        rows = self._rows_in_use()
        if not isinstance(rows, MixedRows):
            return {}
        names = names_of(self) or range(self.n_features_in_)
        return {
            names[column]: in_order(levels.names())
            for column, levels in zip(rows.columns, rows.levels, strict=True)
        }

    def _rows_in_use(self) -> RowFormat:
        """The format of rows without unused levels, as an interrupted call may have left them."""
        with self._locked():
            self._rows = self._rows.without_unused(self._forest)
            return self._rows

    def _own_metadata(self) -> dict[str, Any]:
        metadata = super()._own_metadata()
        if isinstance(self._rows, MixedRows):
            metadata["levels"] = [levels.names() for levels in self._rows.levels]
        return metadata

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        super()._take_own_metadata(metadata)
        if isinstance(self._rows, MixedRows):
            levels = from_json(metadata, "levels", list)
            self._rows = self._rows.named(levels, self._forest.levels)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much the splits on each feature tell about y, shape (n_features,).

        The sum is 1; all are 0 if no feature tells anything, or fewer than two samples are held.
        Each split is judged by samples that did not decide it: those of its node beyond the 64
        that hashes chose, and those that the tree has left out. It gets credit for each of them,
        (mean of the child - mean of the node) times (y - mean of the node), with the means of all
        other samples; a class is a vector of zeros and a one. A split on noise moves the mean
        towards y as often as away from it, so the expected credit of a feature without
        information is 0, however many values or levels it has. The credits of a feature are added
        over all trees; a negative sum counts as 0.

        Up to 64 samples decide every split. With fewer samples than that, only samples that trees
        leave out count (`calibrate`, `max_samples`): without them, all importances are 0. Features
        that tell the same share their importance. Equal for equal forests, to the last bit.
        """
        by_tree = self._core.importances(self._n_threads(), self._stop_weight())
        mean = np.zeros(by_tree.shape[1])
        for of_tree in by_tree:  # in the order of trees, whatever np.mean would do
            mean += of_tree / len(by_tree)
        ordered = np.empty_like(mean)
        ordered[self._rows.order] = mean
        return shares_of(ordered)

    @property
    def digest_(self) -> str:
        """SHA-256 of the forest in hexadecimal.

        Covers the seed, the parameters that define the forest, `offsets` if any is not 0,
        `classes_` if there are any, the stored samples and all splits and leaves of the trees.
        `n_jobs`, `window`, `reservoir`, `half_life`, ids, names of features and the order of
        arrival have no influence. All splits are made, tree by tree, also those below the nodes
        that predict.
        """
        check_is_fitted(self)
        with self._locked():
            state = self._forest.get_state()
            return self._digest_of(self._forest, state, self._spec_of_state(state))

    def _digest_of(self, core: OfOrderFree, state: State, spec: CoreSpec[OfOrderFree]) -> str:
        """The digest of a core forest with the values of this estimator."""
        others = {"window", "reservoir", "half_life", "n_categorical"}
        settings = {name: value for name, value in spec.options.items() if name not in others}
        settings |= {"n_estimators": spec.n_trees, "n_features": spec.n_features}
        if self._rows.columns:
            settings["categorical"] = ",".join(map(str, self._rows.columns))
        offsets = self._rows.offset_list()
        if offsets is not None:
            settings["offsets"] = ",".join(map(float.hex, offsets))
        samples = samples_of(state, spec.width)
        return forest_digest(core, samples, self._targets.digest(self._forest), settings)

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
            found = self._core_source.are_trees_of_samples(self._forest)
            if found is not None:
                return found
            state = self._forest.get_state()
            spec = self._spec_of_state(state)
            fresh = self._grown_afresh(spec, samples_of(state, spec.width))
            ours = self._digest_of(self._forest, state, spec)
            return ours == self._digest_of(fresh, fresh.get_state(), spec)

    def _check_trees(self) -> None:
        if not self.verify():
            raise RuntimeError("The trees are not those of the stored samples.")

    def _grown_afresh(self, spec: CoreSpec[OfOrderFree], samples: Samples) -> OfOrderFree:
        """A core forest that keeps all samples, and learned these in another order."""
        keep_all = {"window": 0, "reservoir": 0, "half_life": math.inf}
        core: Any = self._core_source.new(replace(spec, options={**spec.options, **keep_all}))
        self._targets.prepare(core)
        if len(samples.values):
            core.learn(
                np.ascontiguousarray(samples.rows[::-1]),
                np.ascontiguousarray(samples.values[::-1]),
                self._n_threads(),
                (samples.weights[::-1] * WEIGHT_OF_ONE).astype(np.int64),
            )
        return core  # type: ignore[no-any-return]

    def _stop_weight(self) -> int:
        """The stop weight with which the trees predict; 0 if they predict as a whole."""
        return 0

    def _left_out_samples(self, stop_weight: int = 0) -> LeftOutSamples:
        """The stored samples, predicted by the trees that have not learned them."""
        core = self._forest
        predictions, n_trees = core.left_out(self._n_threads(), stop_weight)
        return LeftOutSamples(predictions, n_trees, core.values, core.weights, core.sample_numbers)

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
        A class leaves `classes_` with its last sample, unless it was declared, and a level leaves
        `levels_`. Nothing of the samples remains in the stored data, the trees, pickles and model
        files, not even these names.

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
        forget(self, X, y, ids)
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
        self._merge(forests, "this forest", names)
        return self

    def _merge(self, forests: Sequence[Any], own_name: str, names: Sequence[str]) -> None:
        """Learn the samples of other forests, which have these names in messages."""
        others = [
            self._other(forest, own_name, name)._holdings(name)
            for forest, name in zip(forests, names, strict=True)
        ]
        with self._locked(), unchanged_on_error(self) as keep_changes:
            self._check_parameters_unchanged()
            core = self._forest
            own_ids = self._ids.only_of(core.serials) if len(self._ids) else self._ids
            profiles = [each.profile for each in others]
            check_can_be_merged([self._profile(own_name, own_ids.names()), *profiles])
            if not others:
                return
            first_serial = core.n_seen
            n_seen = first_serial + sum(each.n_seen for each in others)
            lesson = MergeLesson(self._lesson_of(others), n_seen)
            ids = [each for some in others for each in some.ids]
            if isinstance(self._rows, MixedRows):
                self._rows = self._rows.with_levels_of(each.row_format for each in others)
            batch = Batch(core, lesson, ids, first_serial, {"_rows": self._rows})
            teach(self, batch, joined_rows(others), keep_changes)
            if not ids:  # nothing was stored, but classes may have been declared
                self._record(batch)
                keep_changes()

    def _other(self, forest: Any, own_name: str, name: str) -> Self:
        """Another fitted forest of this class, or an error."""
        if type(forest) is not type(self):
            raise TypeError(
                f"{own_name} is of type {type(self).__name__}, but {name} is of type "
                f"{type(forest).__name__}."
                + (" Use what its gather() returns." if hasattr(forest, "gather") else "")
            )
        if forest is self:
            raise ValueError(f"{name} is {own_name} itself.")
        check_is_fitted(forest, msg=f"{name}, a %(name)s, has learned nothing yet.")
        return forest

    def _profile(self, name: str, ids: list[Id]) -> Profile:
        return Profile(
            name,
            self._forest.seed,
            # As numbers: a dict and an array may say the same.
            self._built_with | {"offsets": self._rows.offset_list()},
            self.n_features_in_,
            names_of(self),
            self._rows.columns,
            ids,
        )

    def _holdings(self, name: str) -> Holdings:
        """The samples of this forest, called `name` in messages."""
        with self._locked():
            rows = self._rows_in_use()
            state = self._forest.get_state()
            order = np.argsort(state["serials"])
            samples, weights = state["sample_of"][order], state.get("weights")
            ids = self._ids.only_of(state["serials"])
            id_of = dict(zip(ids.serials().tolist(), ids.names(), strict=True))
            return Holdings(
                self._profile(name, ids.names()),
                state["rows"].reshape(-1, self._spec_of_state(state).width)[samples],
                self._targets.named(state["values"][samples]),
                None if weights is None else weights[order],
                [id_of.get(serial) for serial in state["serials"][order].tolist()],
                self._targets.declared_labels,
                int(state["n_seen"][0]),
                rows,
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
        core, stop_weight = self._core, self._stop_weight()

        def nodes(rows: Rows, n_threads: int) -> NDArray[np.int32]:
            return core.apply(rows, n_threads, stop_weight)

        return self._predict_rows(nodes, X)
