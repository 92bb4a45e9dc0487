"""A forest learns the rows of a table, batch by batch, and goes on where it was stopped.

Knows nothing of terminals, signals or options. What is stored with the forest, its position, says
of which table it has learned how many rows, in which batches: a run that goes on from there ends
with the forest of one that was never stopped, to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from onlineforest._cli.prequential import (
    Measures,
    measure_classes,
    measure_intervals,
    measure_values,
)
from onlineforest._core import LARGEST_VALUE
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._tables.columns import (
    Column,
    Kind,
    Looks,
    OnBadRow,
    Table,
    TableError,
    Wanted,
    listed,
)
from onlineforest._tables.tables import in_batches, named, without_first

Forest = MondrianForestClassifier | MondrianForestRegressor
DEFAULT_BATCH = 100


class TrainingError(ValueError):
    """Rows that the forest refuses, or a forest that does not go with the table."""


@dataclass(frozen=True)
class Roles:
    """Which column is what."""

    target: str
    features: tuple[str, ...]
    id: str | None = None


def roles_in(table: Table, target: str, drop: tuple[str, ...] = (), id: str | None = None) -> Roles:
    """The roles of all columns of a table; an error if one cannot have its own."""
    named(table, target)
    others = [*drop, *([] if id is None else [id])]
    for name in others:
        named(table, name)
    if target in others or id in drop:
        both = target if target in others else id
        raise TableError(f"column {both!r} cannot be dropped, or be the id, and be used as well.")
    taken = {target, *others}
    features = [column for column in table.columns if column.name not in taken]
    if not features:
        raise TableError(f"{table.name} has no columns to learn from besides {target!r}.")
    check_are_numbers(table, features)
    return Roles(target, tuple(column.name for column in features), id)


def check_are_numbers(table: Table, columns: list[Column]) -> None:
    """Raise if columns are not numbers; tells what to do about them."""
    _check_are_not(
        table,
        columns,
        {Looks.TEXT, Looks.OTHER},
        "which a forest cannot learn from. Leave them out with --drop NAME, or turn them into "
        'numbers first ("Categorical columns" in the documentation tells how)',
    )
    _check_are_not(
        table,
        columns,
        {Looks.DATES},
        "which a forest cannot learn from. Leave them out with --drop NAME, or turn them into "
        "numbers first, such as days since the start, hour of the day, day of the week",
    )
    nameless = [column.name for column in columns if not column.name.strip()]
    if nameless:
        raise TableError(
            f"{table.name} has a column without a name: row numbers, perhaps? Leave it out with "
            '--drop "", or give it a name.'
        )


def _check_are_not(table: Table, columns: list[Column], bad: set[Looks], words: str) -> None:
    found = [column for column in columns if column.looks in bad]
    if found:
        examples = found[0].examples
        such = f" (such as {listed(list(examples))})" if examples else ""
        names = listed([column.name for column in found])
        raise TableError(f"{table.name}: {found[0].looks.value} in {names}{such}, {words}.")


def wanted_of(table: Table, roles: Roles, forest: Forest) -> dict[str, Wanted]:
    """How the columns are read; labels and ids are whole numbers if they look so.

    But a forest that has some goes on with their kind.
    """
    features = {name: Wanted(Kind.NUMBER) for name in roles.features}
    target = Wanted(Kind.NUMBER, is_needed=True, largest=LARGEST_VALUE)
    if isinstance(forest, MondrianForestRegressor):
        _check_are_not(
            table,
            [named(table, roles.target)],
            {Looks.TEXT},
            "where numbers were wanted: --task classify learns classes",
        )
    if isinstance(forest, MondrianForestClassifier):
        target = Wanted(_kind_of_labels(named(table, roles.target), forest), is_needed=True)
    wanted = {**features, roles.target: target}
    if roles.id is not None:
        wanted[roles.id] = Wanted(_kind_of_ids(named(table, roles.id), forest), is_needed=True)
    return wanted


def _looks_whole(column: Column) -> bool:
    return column.looks is Looks.WHOLE_NUMBERS


def _kind_of_ids(column: Column, forest: Forest) -> Kind:
    ids = forest.ids_ if is_fitted(forest) else frozenset()
    # 3 and "3" are two ids: of the other kind, a sample that is there already would pass.
    are_whole = all(isinstance(id, int) for id in ids) if ids else _looks_whole(column)
    return Kind.WHOLE if are_whole else Kind.TEXT


def _kind_of_labels(column: Column, forest: MondrianForestClassifier) -> Kind:
    if column.looks is Looks.NUMBERS and column.share_distinct > 0.5:
        raise TableError(
            f"column {column.name!r} holds numbers that are almost all different, not classes: "
            "--task regress learns numbers."
        )
    if not is_fitted(forest):
        return Kind.WHOLE if _looks_whole(column) else Kind.TEXT
    if forest.classes_.dtype.kind in "iu":
        return Kind.WHOLE
    if forest.classes_.dtype.kind == "b":
        raise TrainingError(
            "the model has bools for classes, which only Python can give it more of."
        )
    return Kind.TEXT


def is_fitted(forest: Forest) -> bool:
    """Whether it has learned anything yet."""
    return bool(forest.__sklearn_is_fitted__())


def fingerprint(table: Table, roles: Roles) -> str:
    """Tells whether two tables are the same, or one is the beginning of the other, as a rule."""
    words = repr((roles.target, roles.features, roles.id)).encode()
    return hashlib.sha256(table.first_bytes() + words).hexdigest()[:16]


@dataclass(frozen=True)
class Position:
    """Where in a table a forest is."""

    rows: int
    batch_size: int
    source: str  # the table's fingerprint
    measures: Measures = field(default_factory=Measures)
    is_finished: bool = True  # False if the run was interrupted, and is to go on

    def as_json(self) -> dict[str, Any]:
        """What is stored with the forest."""
        return {
            "rows": self.rows,
            "batch_size": self.batch_size,
            "source": self.source,
            "measures": self.measures.as_json(),
            **({} if self.is_finished else {"is_finished": False}),
        }

    @classmethod
    def from_json(cls, stored: Any) -> Position | None:
        """What `as_json` gave; None if it is anything else."""
        match stored:
            case {"rows": int(rows), "batch_size": int(size), "source": str(source), **others}:
                try:
                    measures = Measures.from_json(others.get("measures"))
                except ValueError:
                    return None
                is_finished = others.get("is_finished") is not False
                is_sound = rows >= 0 and size > 0
                return cls(rows, size, source, measures, is_finished) if is_sound else None
        return None


@dataclass(frozen=True)
class _Batch:
    """Rows to be learned together; if it is but one, it is there as an array, too."""

    X: pa.Table
    y: NDArray[Any]
    ids: list[Any] | None
    row: NDArray[np.float32] | None = None


def _cut(table: pa.Table, roles: Roles, size: int) -> Iterator[_Batch]:
    """A batch as it is; for batches of one, however many rows there are, one after the other."""
    X, y = table.select(list(roles.features)), target_of(table, roles)
    ids = None if roles.id is None else table.column(roles.id).to_pylist()
    if size > 1:
        yield _Batch(X, y, ids)
        return
    rows = np.stack([column.to_numpy() for column in X.columns], axis=1).astype(np.float32)
    for i, row in enumerate(rows):
        yield _Batch(X.slice(i, 1), y[i : i + 1], None if ids is None else ids[i : i + 1], row)


class Training:
    """A forest on its way through a table."""

    def __init__(
        self,
        forest: Forest,
        start: Position,
        *,
        evaluate: bool = True,
        coverage: float | None = None,
        learn: bool = True,
    ) -> None:
        self.forest, self._start = forest, start
        self._n_seen_before = _n_seen(forest) - start.rows
        self.measures, self.last = start.measures, Measures()
        self._next: tuple[int, Measures] | None = None
        self._evaluate, self._coverage, self._learn = evaluate, coverage, learn
        self._n_passed = start.rows
        self._has_same_names = False

    @property
    def rows(self) -> int:
        """How many rows of the table have been learned; true in any moment."""
        return _n_seen(self.forest) - self._n_seen_before if self._learn else self._n_passed

    def position(self) -> Position:
        """Where it is. Right even if a batch was interrupted: one that is stored counts."""
        self._settle()
        return Position(self.rows, self._start.batch_size, self._start.source, self.measures)

    def run(
        self,
        table: Table,
        roles: Roles,
        wanted: Mapping[str, Wanted],
        on_bad_row: OnBadRow,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[int]:
        """Learn what is left of the table; yields the number of rows learned after each batch.

        `check` is called before a batch is learned, and may raise to end it there.
        """
        rows = without_first(table.read(wanted, on_bad_row), self._start.rows)
        size = self._start.batch_size
        tables = in_batches(rows, size) if size > 1 else rows
        for table_part in tables:
            for batch in _cut(table_part, roles, size):
                check()
                self._step(batch)
                yield self.rows

    def _step(self, batch: _Batch) -> None:
        y, first = batch.y, self.rows + 1
        try:
            self.last = self._measured(batch)
            after = self.measures + self.last
            if not self._learn:
                self._n_passed, self.measures = self._n_passed + len(y), after
                return
            self._next = (self.rows + len(y), after)
            self._learn_batch(batch)
        except ValueError as error:
            where = f"samples {first:,} to {first + len(y) - 1:,}"
            raise TrainingError(f"{where}: {first_line(error)}") from error
        self._settle()

    def _settle(self) -> None:
        """Take over the measures of a batch once it is learned."""
        if self._next is not None and self.rows == self._next[0]:
            self.measures, self._next = self._next[1], None

    def _learn_batch(self, batch: _Batch) -> None:
        x = self._only_row(batch)
        # One of a new class, or with an id, takes the long way in any case.
        if x is None or batch.ids is not None or not self._is_known(batch.y):
            self.forest.partial_fit(batch.X, batch.y, ids=batch.ids)
        else:
            self.forest.learn_one(x, batch.y[0].item())

    def _is_known(self, y: NDArray[Any]) -> bool:
        forest = self.forest
        return isinstance(forest, MondrianForestRegressor) or bool((forest.classes_ == y[0]).any())

    def _only_row(self, batch: _Batch) -> NDArray[np.float32] | None:
        """The row of a batch of one, if the forest has its columns in this order; None otherwise.

        Methods for one row are many times quicker, but look at no names.
        """
        if batch.row is None:
            return None
        if not self._has_same_names and is_fitted(self.forest):
            names = getattr(self.forest, "feature_names_in_", ())
            self._has_same_names = list(names) == batch.X.column_names
        return batch.row if self._has_same_names else None

    def _measured(self, batch: _Batch) -> Measures:
        forest, X, y, x = self.forest, batch.X, batch.y, self._only_row(batch)
        if not self._evaluate or not is_fitted(forest) or forest.n_samples_stored_ == 0:
            return Measures()
        if isinstance(forest, MondrianForestClassifier):
            one = None if x is None else forest.predict_proba_one(x)[np.newaxis]
            return measure_classes(
                forest.classes_, forest.predict_proba(X) if one is None else one, y
            )
        measures = measure_values(
            forest.predict(X) if x is None else np.array([forest.predict_one(x)]), y
        )
        if self._coverage is None:
            return measures
        return measures + measure_intervals(forest.predict_interval(X, self._coverage), y)


def target_of(batch: pa.Table, roles: Roles) -> NDArray[Any]:
    """The target of a batch as an array of labels or numbers."""
    column = batch.column(roles.target)
    values: NDArray[Any] = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


def finish_last_batch(forest: Forest) -> None:
    """Finish a batch that was interrupted when the forest was saved; no more than that."""
    forest.keep_latest(forest.n_samples_stored_)


def _n_seen(forest: Forest) -> int:
    try:
        return forest.n_samples_seen_
    except NotFittedError:
        return 0


def first_line(error: Exception) -> str:
    """What an error says, without its advice."""
    return str(error).splitlines()[0] if str(error) else repr(error)
