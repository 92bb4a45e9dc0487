"""The base class of order-free forests: digests, left-out samples, importances.

Must not know what y is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import UNITS_PER_SAMPLE
from onlineforest._files.encoding import from_json
from onlineforest._forests.base import Batch, Lesson, shares_of
from onlineforest._forests.core import CoreSpec, Floats, OfOrderFree, Rows, State
from onlineforest._forests.orderfree.digests import (
    LabelDigest,
    NumberDigest,
    Samples,
    forest_digest,
    samples_of,
)
from onlineforest._forests.orderfree.holdings import (
    Holdings,
    Profile,
    UnionLesson,
    check_can_be_united,
    joined_rows,
)
from onlineforest._forests.saveable import SaveableForest
from onlineforest._inputs.categories import (
    FROM_DTYPE,
    Categories,
    Table,
    chosen_columns,
    named_columns,
    row_of,
)
from onlineforest._inputs.ids import Id
from onlineforest._inputs.levels import Level, in_order
from onlineforest._inputs.one_row import PLAIN_ROWS, is_frame
from onlineforest._inputs.parameters import ARRAY_LIKE, Constraints, instance_of, interval
from onlineforest._inputs.rounding import Loss, offsets_of_features
from onlineforest._inputs.validation import (
    FindOffsets,
    check_row,
    check_table,
    unchanged_on_error,
)


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


class BaseOnlineForest(SaveableForest[OfOrderFree]):
    """Base of the order-free forests, which document the parameters.

    A subclass says how the values of its samples enter a digest (`_value_digest`) and prepares new
    core forests for them (`_prepare`).
    """

    _constraints: ClassVar[Constraints] = {
        **SaveableForest._constraints,
        "max_samples": [interval(Real, 0, 1, "(]")],
        "categorical_features": [ARRAY_LIKE, instance_of(str, "a string"), None],
        "offsets": [instance_of(dict, "a dict"), ARRAY_LIKE, None],
    }
    _not_numbers = (
        "Columns that were numbers when the forest was started must stay numbers. Columns of text "
        "in a data frame are categorical if they are there from the start; for an array, "
        "categorical_features names the columns."
    )

    max_samples: float
    categorical_features: ArrayLike | str | None
    offsets: ArrayLike | Mapping[Any, float] | None
    _categories: Categories | None = None  # None if all features are numeric

    def _check_rows(self, X: Any, *, reset: bool, **options: Any) -> Any:
        if reset:
            self._categories = self._chosen_categories(X)
        categories, options["find_offsets"] = self._categories, self._finding_offsets(reset=reset)
        if categories is None:
            return super()._check_rows(X, reset=reset, **options)
        checked, grown = check_table(
            self, X, categories, reset=reset, hint=self._not_numbers, **options
        )
        if grown is not categories:  # the names are dropped again if no sample is stored
            self._categories = grown
        return checked

    def _finding_offsets(self, *, reset: bool) -> FindOffsets | None:
        """How to find the offsets of the features; None if there are none."""
        if reset and self.offsets is not None:
            return self._take_offsets
        if reset:
            self._offsets = None
        offsets = self._offsets
        return None if offsets is None else lambda: offsets

    def _take_offsets(self) -> Floats:
        """Keep the offsets that the parameter gives the features, whose names are known."""
        self._offsets = offsets_of_features(
            self.offsets,
            self.n_features_in_,
            getattr(self, "feature_names_in_", None),
            () if self._categories is None else self._categories.columns,
        )
        return self._offsets

    def _numeric_columns(self) -> Sequence[int]:
        return super()._numeric_columns() if self._categories is None else self._categories.numeric

    def _advice_on_rounding(self, losses: Mapping[Any, Loss]) -> str:
        numbers = ", ".join(f"{name!r}: {loss.offset}" for name, loss in losses.items())
        return (
            "Subtract a number near them: the parameter offsets does it, before the rounding, in "
            f"learning and in predicting. Start a new forest with offsets={{{numbers}}}."
        )

    def _described_layout(self) -> dict[str, Any]:
        return {} if self._categories is None else {"categorical": list(self._categories.columns)}

    def _take_layout(self, n_features: int, described: dict[str, Any]) -> None:
        match described:
            case {"categorical": list(columns), **others} if columns and not others:
                if all(type(column) is int and 0 <= column < n_features for column in columns):
                    if sorted(set(columns)) != columns:
                        raise ValueError("its categorical columns are not distinct and in order.")
                    self._categories = Categories.of(n_features, columns)
                    self._check_chosen(columns)
                    return
        super()._take_layout(n_features, described)
        self._check_chosen([])

    def _check_chosen(self, columns: list[int]) -> None:
        """Raise unless these categorical columns of a file are those that the parameter chooses."""
        wish = self.categorical_features
        if isinstance(wish, str) and wish == FROM_DTYPE:  # it depended on the first table
            return
        names = getattr(self, "feature_names_in_", None)
        chosen = (
            []
            if wish is None
            else named_columns(wish, self.n_features_in_, None if names is None else list(names))
        )
        if chosen != columns:
            raise ValueError(
                f"its categorical columns are {columns}, but its categorical_features chooses "
                f"{chosen}."
            )

    def _layout(self) -> dict[str, Any]:
        return {"_categories": self._categories, "_offsets": self._offsets}

    def _check_queries(self, X: ArrayLike) -> NDArray[np.float32]:
        if self._categories is None:
            return super()._check_queries(X)
        find_offsets = self._finding_offsets(reset=False)
        rows: Rows = check_table(
            self,
            X,
            self._categories,
            hint=self._not_numbers,
            find_offsets=find_offsets,
            reset=False,
        )[0]
        return rows

    def _chosen_categories(self, X: Any) -> Categories | None:
        """The categorical features that the parameters choose in a first table."""
        wish = self.categorical_features
        is_by_type = wish is None or (isinstance(wish, str) and wish == FROM_DTYPE)
        has_types = isinstance(X, Table) or is_into_dataframe(X)
        if wish is None or (is_by_type and not has_types):
            return None
        table = Table.of(X)
        columns = chosen_columns(wish, table)
        return Categories.of(table.n_columns, columns) if columns else None

    def _row(self, x: Any, *, may_be_new: bool) -> Any:
        categories, offsets, names = self._categories, self._offsets, None
        if type(x) not in PLAIN_ROWS:
            if is_frame(x):
                return self._row_of_frame(x) if may_be_new else None
            x, names = self._values_in_order(x), self._feature_names()
        if categories is None:
            return x if offsets is None else check_row(x, offsets)
        row, grown = row_of(x, categories, offsets, names)
        return row if may_be_new or grown is categories else None

    def _categorical_columns(self) -> tuple[int, ...]:
        return () if self._categories is None else self._categories.columns

    def _table_of_values(self, x: Any) -> Any:
        wish = self.categorical_features
        are_all_numbers = wish is None or (isinstance(wish, str) and wish == FROM_DTYPE)
        if self._categories is None and (are_all_numbers or hasattr(self, "_forest")):
            return super()._table_of_values(x)
        return Table.of_one(x)

    def _drop_stale_names(self) -> None:
        super()._drop_stale_names()
        self._drop_stale_levels()

    def _drop_stale_levels(self) -> None:
        """Drop names of levels that no stored sample has, as after an interrupted call."""
        if self._categories is not None:
            core = self._forest
            self._categories = self._categories.without(core.n_levels.tolist(), core.levels)

    def _core_options(self, n_features: int) -> dict[str, Any]:
        options = super()._core_options(n_features)
        n_categorical = 0 if self._categories is None else len(self._categories.columns)
        return options | {"n_categorical": n_categorical}

    @property
    def levels_(self) -> dict[Any, list[Level]]:
        """The levels of each categorical feature that stored samples have, sorted.

        The keys are the names of the features, or their indices if they have no names. Numbers come
        before text; None stands for missing values, and is last. A level leaves with its last
        sample.
        """
        check_is_fitted(self)
        with self._locked():
            self._drop_stale_levels()
            categories = self._categories
        if categories is None:
            return {}
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return {
            names[column]: in_order(levels.names())
            for column, levels in zip(categories.columns, categories.levels, strict=True)
        }

    def _nbytes(self) -> int:
        levels = () if self._categories is None else self._categories.levels
        return super()._nbytes() + sum(names.nbytes for names in levels)

    def _facts_of_samples(self) -> dict[str, str]:
        facts = super()._facts_of_samples()
        if self._categories is not None:
            facts["features"] += f", {len(self._categories.columns):,} of them categorical"
        return facts

    def _own_metadata(self) -> dict[str, Any]:
        if self._categories is None:
            return super()._own_metadata()
        return super()._own_metadata() | {
            "levels": [levels.names() for levels in self._categories.levels]
        }

    def _take_own_metadata(self, metadata: Mapping[str, str]) -> None:
        super()._take_own_metadata(metadata)
        if self._categories is not None:
            levels = from_json(metadata, "levels", list)
            self._categories = self._categories.named(levels, self._forest.levels)
        if self.offsets is not None:
            self._take_offsets()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state.get("_categories") is not None:
            state["_categories"] = state["_categories"].plain()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("_categories") is not None:
            state = {**state, "_categories": Categories.from_plain(*state["_categories"])}
        super().__setstate__(state)

    def _value_digest(self) -> LabelDigest | NumberDigest:
        """How the values of samples enter the digest."""
        raise NotImplementedError

    def _prepare(self, core: OfOrderFree) -> None:
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
        return shares_of(self._in_order_of_columns(mean))

    def _in_order_of_columns(self, of_features: Floats) -> Floats:
        """An array with an entry for each feature of the core forest, in the order of columns."""
        if self._categories is None:
            return of_features
        ordered = np.empty_like(of_features)
        ordered[self._categories.order] = of_features
        return ordered

    @property
    def digest_(self) -> str:
        """SHA-256 of the forest in hexadecimal.

        Covers the seed, the parameters that define the forest, `offsets` if any is not 0,
        `classes_` if there are any, the stored samples and all cuts and leaves of the trees.
        `n_jobs`, `window`, `reservoir`, `half_life`, ids, names of features and the order of
        arrival have no influence. All pending cuts are made first.
        """
        check_is_fitted(self)
        with self._locked():
            state = self._forest.get_state()
            return self._digest_of(self._forest, state, self._spec_of_state(state))

    def _digest_of(self, core: OfOrderFree, state: State, spec: CoreSpec[OfOrderFree]) -> str:
        """The digest of a core forest with the values of this estimator."""
        core.complete(self._n_threads())
        others = {"window", "reservoir", "half_life", "n_categorical"}
        settings = {name: value for name, value in spec.options.items() if name not in others}
        settings |= {"n_estimators": spec.n_trees, "n_features": spec.n_features}
        if self._categories is not None:
            settings["categorical"] = ",".join(map(str, self._categories.columns))
        offsets = self._offset_list()
        if offsets is not None:
            settings["offsets"] = ",".join(map(float.hex, offsets))
        return forest_digest(core, samples_of(state, spec.width), self._value_digest(), settings)

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
            if self._categories is not None:
                self._categories = self._categories.with_levels_of(
                    each.categories for each in others if each.categories is not None
                )
            batch = Batch(core, lesson, ids, first_serial, self._layout())
            self._learn_batch(batch, joined_rows(others), keep_changes)
            if not ids:  # nothing was stored, but classes may have been declared
                self._record(batch)
                keep_changes()

    def _lesson_of(self, others: Sequence[Holdings]) -> Lesson[OfOrderFree]:
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
            # As numbers: a dict and an array may say the same.
            self._built_with | {"offsets": self._offset_list()},
            self.n_features_in_,
            None if names is None else list(names),
            () if self._categories is None else self._categories.columns,
            ids,
        )

    def _offset_list(self) -> list[float] | None:
        """The offset of each feature; None if all are 0."""
        return None if self._offsets is None or not self._offsets.any() else self._offsets.tolist()

    def _built_with_now(self, n_features: int) -> dict[str, Any]:
        built = super()._built_with_now(n_features)
        if isinstance(self.offsets, dict):  # a copy: it may be changed later
            built["offsets"] = dict(self.offsets)
        elif self.offsets is not None:
            built["offsets"] = np.array(self.offsets, dtype=np.float64)
        return built

    def _holdings(self, name: str) -> Holdings:
        """The samples of this forest, called `name` in messages."""
        with self._locked():
            self._drop_stale_levels()
            state = self._forest.get_state()
            order = np.argsort(state["serials"])
            samples, units = state["sample_of"][order], state.get("weights")
            ids = self._ids.only_of(state["serials"])
            id_of = dict(zip(ids.serials().tolist(), ids.names(), strict=True))
            return Holdings(
                self._profile(name, ids.names()),
                state["rows"].reshape(-1, self._spec_of_state(state).width)[samples],
                self._targets_of(state["values"][samples]),
                None if units is None else units[order],
                [id_of.get(serial) for serial in state["serials"][order].tolist()],
                self._declared_labels(),
                int(state["n_seen"][0]),
                self._categories,
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


def tree_arrays(
    table: dict[str, NDArray[Any]], categories: Categories | None, offsets: Floats | None
) -> dict[str, Any]:
    """The arrays that trees of labels and of numbers have in common."""
    features, ends = table["feature"], table["surrogates_end"]
    thresholds = table["threshold"]
    of_surrogates, levels = table["surrogate_feature"], np.full(len(features), None, dtype=object)
    surrogate_thresholds = table["surrogate_threshold"]
    if categories is not None:
        levels = categories.left_levels(features, thresholds)
        n_numeric, order = len(categories.numeric), categories.order.astype(np.int32)
        thresholds = np.where(features < n_numeric, thresholds, np.float32(np.nan))
        surrogate_thresholds = np.where(
            of_surrogates < n_numeric, surrogate_thresholds, np.float32(np.nan)
        )
        features = np.where(features >= 0, order[features], features)
        of_surrogates = order[of_surrogates]
    if offsets is not None:  # -1, no feature, gets any of them
        thresholds = thresholds + offsets[features]
        surrogate_thresholds = surrogate_thresholds + offsets[of_surrogates]
    n_surrogates = np.diff(ends, prepend=0)
    nodes = np.repeat(np.arange(len(features)), n_surrogates)
    places = np.arange(len(nodes)) - np.repeat(ends - n_surrogates, n_surrogates)
    shape = (len(features), int(n_surrogates.max(initial=0)))
    dimension, location = np.full(shape, -1, np.int32), np.full(shape, np.nan, thresholds.dtype)
    are_reversed = np.zeros(shape, np.bool_)
    dimension[nodes, places] = of_surrogates
    location[nodes, places] = surrogate_thresholds
    are_reversed[nodes, places] = table["surrogate_reversed"]
    return {
        "parent": table["parent"],
        "left": table["left"],
        "right": table["right"],
        "split_dimension": features,
        "split_location": np.where(features >= 0, thresholds, np.float32(np.nan)),
        "split_levels": levels,
        "missing_left": table["missing_left"].astype(np.bool_),
        "surrogate_dimension": dimension,
        "surrogate_location": location,
        "surrogate_reversed": are_reversed,
        "n_points": table["weight"],
    }
