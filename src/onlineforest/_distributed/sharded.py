"""A core forest in parts that live elsewhere: the same interface, the same answers, to the bit.

Knows what is asked of a forest, and how the answers of parts are put together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import add_terms
from onlineforest._distributed.keeping import PartKeeper
from onlineforest._distributed.shard import PartPlan
from onlineforest._distributed.shares import (
    State,
    are_trees_up_to_date,
    join_laws,
    join_states,
    part_of_state,
)
from onlineforest._models.validation import check_row

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]

_MOST_NUMBERS = 2**24  # of the answers to one question: the rows are asked for in pieces


class ShardedForest(PartKeeper):
    """What the estimators ask of a core forest. Threads are the parts' own affair."""

    @property
    def n_trees(self) -> int:
        """Number of trees of the whole forest."""
        return self._members[0].plan.n_trees

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._members[0].plan.n_features

    @property
    def n_points(self) -> int:
        """Number of samples stored."""
        return self._settled_status().n_points

    @property
    def n_classes(self) -> int:
        """Number of classes, of a forest over labels."""
        return self._settled_status().n_classes

    @property
    def nbytes(self) -> int:
        """What all parts take in memory."""
        return sum(self._ask_all("nbytes"))

    def __getattr__(self, name: str) -> Any:
        if name in {"serials", "feature_weights", "discount_rate", "leaf_discount", "noise"}:
            return self._ask_first(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def forget(self, serials: NDArray[np.int64], _n_threads: int = 1) -> None:
        """Forget samples by when they came."""
        self._operate("forget", (serials,))

    def forget_rows(self, rows: Rows, values: Any, _n_threads: int = 1) -> NDArray[np.int64]:
        """Forget samples by what they are; returns places of those that are not stored."""
        missing: NDArray[np.int64] = self._operate("forget_rows", (rows, values))
        return missing

    def keep_latest(self, n: int, _n_threads: int = 1) -> None:
        """Forget all but the latest samples."""
        self._operate("keep_latest", (n,))

    def refresh(self, _n_threads: int = 1) -> None:
        """Compute the measure anew."""
        self._operate("refresh", ())

    def are_stored(self, serials: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Which samples are stored."""
        stored: NDArray[np.uint8] = self._ask_first("are_stored", serials)
        return stored

    def relevance(self, _n_threads: int = 1) -> Floats:
        """How much each feature tells."""
        relevance: Floats = self._ask_first("relevance")
        return relevance

    def tree(self, index: int) -> dict[str, NDArray[Any]]:
        """One tree as arrays."""
        for member in self._members:
            begin, end = member.plan.held
            if begin <= index < end:
                arrays: dict[str, NDArray[Any]] = self._ask(member, "tree", index - begin)
                # What comes from another process may not be written to.
                return {name: array.copy() for name, array in arrays.items()}
        raise IndexError(f"There is no tree {index}: there are {self.n_trees}.")

    def apply(self, rows: Rows, _n_threads: int = 1) -> NDArray[np.int32]:
        """The leaf of each row in each tree."""
        return np.concatenate(self._ask_all("apply", rows), axis=1)

    def novelty(self, rows: Rows, _n_threads: int = 1) -> Floats:
        """How far each row is from everything learned."""
        return self._sum("novelty", rows, 1)

    def check_invariants(self) -> None:
        """Raise if a part is not sound."""
        self._ask_all("check_invariants")

    def get_state(self) -> State:
        """The state of the whole forest."""
        return join_states(self._ask_all("get_state"))

    def _sum(self, question: str, rows: Rows, width: int) -> Floats:
        """What the whole forest answers whose trees' answers are added up."""
        if len(self._members) == 1:
            answer: Floats = self._ask_first(question, rows)
            return answer
        most = width * self.n_trees  # a shard may have to tell trees apart
        return np.concatenate([self._sum_piece(question, piece) for piece in _pieces(rows, most)])

    def _sum_piece(self, question: str, rows: Rows) -> Floats:
        answers = self._ask_all(f"{question}_terms", rows)
        parts = [
            (*member.plan.held, terms)
            for member, (terms, _) in zip(self._members, answers, strict=True)
        ]
        sums = add_terms(self.n_trees, parts)
        n_grown = sum(n for _, n in answers)
        finished: Floats = self._ask_first(f"{question}_from", rows, sums, n_grown)
        return finished


class ShardedLabelForest(ShardedForest):
    """A forest over labels."""

    def learn(
        self,
        rows: Rows,
        labels: NDArray[np.int32],
        n_classes: int,
        _n_threads: int = 1,
        one_by_one: bool = False,
    ) -> None:
        """Learn rows with labels."""
        keywords = {"one_by_one": one_by_one}
        self._operate("learn", (rows, labels, n_classes), keywords, len(rows))

    def learn_one(self, row: Any, label: int, n_classes: int) -> None:
        """Learn one row."""
        self.learn(_one_row(row, self.n_features), np.array([label], dtype=np.int32), n_classes)

    def predict(self, rows: Rows, _n_threads: int = 1) -> Floats:
        """Probabilities."""
        return self._sum("predict", rows, self.n_classes + 1)

    def predict_one(self, row: Any, out: Floats) -> bool:
        """Probabilities of one row; False if `out` has another length."""
        probabilities = self.predict(_one_row(row, self.n_features))[0]
        if len(probabilities) != len(out):
            return False
        out[:] = probabilities
        return True


class ShardedGaussianForest(ShardedForest):
    """A forest over numbers."""

    def learn(
        self, rows: Rows, values: Floats, _n_threads: int = 1, one_by_one: bool = False
    ) -> None:
        """Learn rows with values."""
        self._operate("learn", (rows, values), {"one_by_one": one_by_one}, len(rows))

    def learn_one(self, row: Any, value: float) -> None:
        """Learn one row."""
        self.learn(_one_row(row, self.n_features), np.array([value]))

    def predict(self, rows: Rows, _n_threads: int = 1) -> Floats:
        """Mean and standard deviation."""
        return self._sum("predict", rows, 2)

    def predict_one(self, row: Any) -> tuple[float, float]:
        """The same of one row."""
        mean, deviation = self.predict(_one_row(row, self.n_features))[0]
        return float(mean), float(deviation)

    def quantiles(self, rows: Rows, levels: Floats, _n_threads: int = 1) -> Floats:
        """Quantiles of the law at each row."""
        if len(self._members) == 1:
            answer: Floats = self._ask_first("quantiles", rows, levels)
            return answer
        return np.concatenate(
            [
                self._ask_first("quantiles_from", piece, levels, self._laws(piece))
                for piece in self._law_pieces(rows)
            ]
        )

    def log_density(self, rows: Rows, values: Floats, _n_threads: int = 1) -> Floats:
        """The logarithm of the density of each value at its row."""
        if len(self._members) == 1:
            answer: Floats = self._ask_first("log_density", rows, values)
            return answer
        answers, begin = [], 0
        for piece in self._law_pieces(rows):
            some = np.ascontiguousarray(values[begin : begin + len(piece)])
            answers.append(self._ask_first("log_density_from", piece, some, self._laws(piece)))
            begin += len(piece)
        return np.concatenate(answers)

    def _laws(self, rows: Rows) -> dict[str, NDArray[Any]]:
        return join_laws(self._ask_all("laws", rows))

    def _law_pieces(self, rows: Rows) -> list[Rows]:
        components_per_tree = 16  # roughly
        return _pieces(rows, 4 * components_per_tree * self.n_trees)


def _pieces(rows: Rows, width: int) -> list[Rows]:
    """Rows in pieces for which answers of so many numbers per row are not too large."""
    n_together = max(_MOST_NUMBERS // max(width, 1), 1)
    return [rows[i : i + n_together] for i in range(0, max(len(rows), 1), n_together)]


def _one_row(row: Any, n_features: int) -> Rows:
    """One row as the core would take it."""
    array = check_row(row)
    if len(array) != n_features:
        raise ValueError(f"x has {len(array)} features, but this forest has {n_features}")
    if np.isinf(array).any():
        place = int(np.flatnonzero(np.isinf(array))[0])
        raise ValueError(
            f"x contains infinity or a value too large for float32, at feature {place}"
        )
    return array[np.newaxis]


KINDS: dict[str, type[ShardedForest]] = {
    "LabelForest": ShardedLabelForest,
    "GaussianForest": ShardedGaussianForest,
}


def parts_of(state: State, kind: type[Any], plans: list[PartPlan]) -> list[State]:
    """The states of the parts of a forest of which this is the state."""
    if not are_trees_up_to_date(state):  # an interrupted call left something to be finished
        whole = kind.from_state(state)
        whole.forget(np.empty(0, dtype=np.int64))
        state = whole.get_state()
    return [part_of_state(state, *plan.held) for plan in plans]
