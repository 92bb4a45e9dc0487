"""The base of the models for River: parameters, columns, learning and errors.

Must not know what the targets are. `dict_columns` turns dicts into rows; an estimator does
everything else. Columns are in an order that follows from the set of keys. So the forest is a
function of its seed, its parameters, its samples and the keys and labels that the model has
learned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.base import BaseForest
from onlineforest._forests.learning import learn
from onlineforest._forests.orderfree.copies import with_columns
from onlineforest._inputs.cells import is_missing
from onlineforest._inputs.rounding import offsets_of_features
from onlineforest._inputs.validation import unchanged_on_error
from onlineforest.river.dict_columns import Columns, MixedColumns, columns_of, number_of
from onlineforest.river.frames import frame_of, holds_numbers, numbers_in
from river import base

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame

Sample = dict[Hashable, Any]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class ForestModel(base.Estimator):
    """Base of the models: an estimator, and the column of each key of a sample.

    Parameters
    ----------
    **parameters
        All parameters of the subclass.
    """

    _estimator_class: ClassVar[type[BaseForest[Any]]]

    offsets: dict[Hashable, float] | None

    _estimator: Any
    _columns: Columns | None  # None before anything is learned

    def __init__(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)
        self._estimator = self._new_estimator()
        self._columns = None

    def _new_estimator(self) -> Any:
        """An estimator of these parameters, or an error that names the wrong one."""
        if self.offsets is not None:
            if not isinstance(self.offsets, dict):
                raise TypeError(
                    "offsets must be a dict from features to numbers, or None. "
                    f"Got {self.offsets!r} instead."
                )
            keys = list(self.offsets)
            numbers = [self.offsets[key] for key in keys]
            offsets_of_features(numbers, len(keys), keys)  # raises unless all are finite
        parameters = self._get_params()
        estimator = self._estimator_class(random_state=parameters.pop("seed"), **parameters)
        estimator._check_parameters()
        estimator._core_options()
        return estimator

    @property
    def estimator(self) -> Any:
        """The forest itself, with all its methods: save, forget, trees.

        An estimator in the style of scikit-learn. Its features are the columns in `features`. Do
        not let it learn: the model would not see new keys and labels. A new key replaces it by
        another.
        """
        return self._estimator

    @property
    def features(self) -> list[Hashable]:
        """The keys learned, in the order of the estimator's columns."""
        return [] if self._columns is None else list(self._columns.keys)

    def __sizeof__(self) -> int:
        # Neither Python nor River's memory usage counts the memory of the core.
        return super().__sizeof__() + (0 if self._columns is None else self._estimator.nbytes_)

    def __getstate__(self) -> dict[str, Any]:
        # Plain values: a pickle must not name classes that may move.
        state = self.__dict__.copy()
        if self._columns is not None:
            state["_columns"] = self._columns.plain()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        columns = state["_columns"]
        self.__dict__.update(state)
        self._columns = None if columns is None else Columns.from_plain(*columns)

    @property
    def _query_columns(self) -> Columns | None:
        """The columns of queries; None if predictions are those before anything is learned."""
        if self._columns is None or self._estimator.n_samples_stored_ == 0:
            return None
        return self._columns

    def _naming_keys(
        self,
        method: Callable[Concatenate[Any, Arguments], Answer],
        row: Any,
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Answer:
        """Call a method of the estimator with a row; an error about a value names its key."""
        try:
            return method(row, *arguments, **options)
        except ValueError:
            if self._columns is not None:
                self._columns.check_finite(row)
            raise

    def _learn_one(self, x: Mapping[Hashable, Any], target: Any, weight: float) -> None:
        row = None if self._columns is None else self._columns.whole_row(x)
        if row is not None:
            self._naming_keys(self._estimator.learn_one, row, target, sample_weight=weight)
            return
        with self._unless_refused():
            columns = self._columns_for(x)
            row = columns.row(x)
            columns.check_finite(row)
            self._use(columns)
            self._naming_keys(self._estimator.learn_one, row, target, sample_weight=weight)

    def _learn_many(self, X: IntoDataFrame, targets: NDArray[Any]) -> None:
        frame = frame_of(X)
        if len(frame) != len(targets):
            raise ValueError(f"X has {len(frame)} samples, but y has {len(targets)}.")
        if len(frame) == 0:
            return
        with self._unless_refused():
            columns = self._columns_for(examples_in(frame))
            rows = rows_of(columns, frame)
            self._use(columns)
            learn(self._estimator, rows, targets, columns=columns.keys)

    def _columns_for(self, examples: Mapping[Hashable, Any]) -> Columns:
        """Columns for the keys of a sample, too, which are not in use yet."""
        known = self._columns or Columns(())
        new = examples.keys() - set(known.keys)
        decided = {key for key, value in examples.items() if not is_missing(value)}
        # The first value of a key decides whether it is categorical.
        texts = {key for key in decided & (new | known.undecided) if isinstance(examples[key], str)}
        undecided = (known.undecided | new) - decided
        if self._columns is not None and not new and undecided == known.undecided:
            return self._columns
        return columns_of((*known.keys, *new), known.categorical | texts, undecided)

    def _offsets_of(self, columns: Columns) -> list[float] | None:
        """The offset of each column; None if there are none."""
        if self.offsets is None:
            return None
        texts = [key for key in self.offsets if key in columns.categorical]
        if texts:
            raise ValueError(f"offsets names {texts[0]!r}, which is categorical.")
        return [self.offsets.get(key, 0.0) for key in columns.keys] or [0.0]

    def _use(self, columns: Columns) -> None:
        """Use these columns from now on, with an estimator for them."""
        known = self._columns
        if known is None:
            if columns.categorical:
                self._estimator.categorical_features = columns.categorical_places()
            self._estimator.offsets = self._offsets_of(columns)
        elif columns.keys != known.keys or columns.categorical != known.categorical:
            places, offsets = columns.categorical_places(), self._offsets_of(columns)
            sources = columns.sources_in(known)
            self._estimator = with_columns(self._estimator, sources, places, offsets)
        self._columns = columns

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Undo new keys and labels if the block raises before the estimator has learned.

        After an interrupt, the estimator may have learned already.
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


def row_of(columns: Columns, x: Mapping[Hashable, Any]) -> NDArray[Any]:
    """One sample as an array of one row."""
    row = columns.row(x)
    rows = np.array([row], dtype=object if isinstance(columns, MixedColumns) else None)
    columns.check_finite(rows)
    return rows


def rows_of(columns: Columns, frame: nw.DataFrame[Any]) -> Any:
    """The samples of a frame as rows."""
    if isinstance(columns, MixedColumns):
        return columns.rows(frame.columns, [column.to_list() for column in frame.iter_columns()])
    return columns.rows(frame.columns, _values_of(frame))


def examples_in(frame: nw.DataFrame[Any]) -> dict[Hashable, Any]:
    """For each column of a frame a text if it holds one, else any value, None if there is none."""
    found: dict[Hashable, Any] = {}
    for column in frame.iter_columns():
        known = [value for value in column.to_list() if not is_missing(value)]
        texts = (value for value in known if isinstance(value, str))
        found[column.name] = next(texts, known[0] if known else None)
    return found


def _values_of(frame: nw.DataFrame[Any]) -> NDArray[np.float64]:
    """The cells of a frame as numbers, NaN for a missing one."""
    if holds_numbers(frame):
        return numbers_in(frame)
    columns = [
        [number_of(column.name, value) for value in column.to_list()]
        for column in frame.iter_columns()
    ]
    return np.array(columns).T
