"""Sharded forests: the interface of a core forest, the same answers to the bit.

Turns calls into operations and questions, and joins the answers of shards. Must not know how
messages travel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import Quantity, add_terms
from onlineforest._distributed import messages
from onlineforest._distributed.keeper import ShardKeeper
from onlineforest._distributed.shard import ShardPlan
from onlineforest._distributed.splitting import (
    Mixtures,
    State,
    are_trees_up_to_date,
    join_mixtures,
    join_states,
    state_of_shard,
)
from onlineforest._models.core import LABELS, NUMBERS

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]

_MAX_NUMBERS = 2**24  # in the answers to one question: more rows are asked for in pieces
_COMPONENTS_PER_TREE = 16  # roughly, in the mixture of a row


class ShardedForest:
    """A core forest whose trees live in shards. A shard decides itself how many threads it uses.

    Parameters
    ----------
    keeper : ShardKeeper
        Keeps the shards.
    """

    def __init__(self, keeper: ShardKeeper) -> None:
        self.keeper = keeper

    @property
    def n_trees(self) -> int:
        """Number of trees of the whole forest."""
        return self.keeper.plans[0].spec.n_trees

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.keeper.plans[0].spec.n_features

    @property
    def seed(self) -> int:
        """The seed of the trees."""
        return self.keeper.plans[0].spec.seed

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.keeper.plans)

    @property
    def n_points(self) -> int:
        """Number of samples stored."""
        return self.keeper.status().n_points

    @property
    def n_seen(self) -> int:
        """Number of samples given."""
        return self.keeper.n_seen

    @property
    def serials(self) -> NDArray[np.int64]:
        """The serial of each stored sample."""
        return self.keeper.ask_first(messages.Serials())

    @property
    def feature_weights(self) -> Floats:
        """The weight of each feature."""
        return self.keeper.ask_first(messages.FeatureWeights())

    @property
    def discount_rate(self) -> float:
        """The discount per unit of time."""
        return self.keeper.ask_first(messages.DiscountRate())

    @property
    def nbytes(self) -> int:
        """Memory of all shards in bytes."""
        return sum(self.keeper.ask_all(messages.MemoryBytes()))

    def forget(self, serials: NDArray[np.int64], _n_threads: int = 1, /) -> None:
        """Forget samples by serial."""
        self.keeper.operate(messages.Forget(serials))

    def forget_rows(
        self, rows: Rows, values: NDArray[Any], _n_threads: int = 1, /
    ) -> NDArray[np.int64]:
        """Forget samples by row and target; return the positions of those that are not stored."""
        missing = self.keeper.operate(messages.ForgetRows(rows, values))
        assert missing is not None  # only learning is pipelined
        return missing

    def keep_latest(self, n: int, _n_threads: int = 1, /) -> None:
        """Forget all but the latest samples."""
        self.keeper.operate(messages.KeepLatest(n))

    def refresh(self, _n_threads: int = 1, /) -> None:
        """Recompute the measure from the stored samples."""
        self.keeper.operate(messages.Refresh())

    def are_stored(self, serials: NDArray[np.int64], /) -> NDArray[np.uint8]:
        """Which of these serials belong to stored samples."""
        return self.keeper.ask_first(messages.AreStored(serials))

    def relevance(self, _n_threads: int = 1, /) -> Floats:
        """The relevance of each feature."""
        return self.keeper.ask_first(messages.Relevance())

    def tree(self, index: int, /) -> dict[str, NDArray[Any]]:
        """One tree as arrays."""
        for plan in self.keeper.plans:
            begin, end = plan.held
            if begin <= index < end:
                arrays = self.keeper.ask_one(plan.number, messages.TreeArrays(index - begin))
                # Arrays from another process are read-only.
                return {name: array.copy() for name, array in arrays.items()}
        raise IndexError(f"tree {index} is outside [0, n_trees = {self.n_trees})")

    def apply(self, rows: Rows, _n_threads: int = 1, /) -> NDArray[np.int32]:
        """The leaf of each row in each tree."""
        return np.concatenate(self.keeper.ask_all(messages.Leaves(rows)), axis=1)

    def novelty(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """The novelty of each row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Novelty(rows))
        return self._summed(Quantity.NOVELTY, rows, width=1)

    def check_invariants(self) -> None:
        """Raise if a shard is inconsistent."""
        self.keeper.ask_all(messages.CheckInvariants())

    def get_state(self) -> State:
        """The state of the whole forest."""
        return join_states(self.keeper.ask_all(messages.WholeState()))

    def predict(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """Predictions, one row each."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Predict(rows))
        return self._summed(Quantity.PREDICTION, rows, self._prediction_width())

    def _prediction_width(self) -> int:
        """How many numbers a tree adds to the prediction of a row."""
        raise NotImplementedError

    def _summed(self, quantity: Quantity, rows: Rows, width: int) -> Floats:
        """A quantity of each row that is a sum over trees of `width` numbers."""
        n_most = width * self.n_trees  # a shard may have to send the terms of single trees
        return np.concatenate([self._sum_of(quantity, piece) for piece in _pieces(rows, n_most)])

    def _sum_of(self, quantity: Quantity, rows: Rows) -> Floats:
        answers = self.keeper.ask_all(messages.Terms(quantity, rows))
        shards = [
            (*plan.held, terms) for plan, (terms, _) in zip(self.keeper.plans, answers, strict=True)
        ]
        sums = add_terms(self.n_trees, shards)
        n_grown = sum(n for _, n in answers)
        return self.keeper.ask_first(messages.Finish(quantity, rows, sums, n_grown))


class ShardedLabelForest(ShardedForest):
    """A sharded `LabelForest`."""

    @property
    def n_classes(self) -> int:
        """Number of class codes."""
        return self.keeper.status().n_classes

    @property
    def leaf_discount(self) -> float:
        """The smallest discount of a leaf."""
        return self.keeper.ask_first(messages.LeafDiscount())

    def learn(
        self,
        rows: Rows,
        labels: NDArray[np.int32],
        n_classes: int,
        _n_threads: int = 1,
        one_by_one: bool = False,
        /,
    ) -> None:
        """Learn rows with class codes."""
        self.keeper.operate(messages.LearnLabels(rows, labels, n_classes, one_by_one))

    def learn_one(self, row: Any, label: int, n_classes: int, /) -> None:
        """Learn one row."""
        self.learn(_one_row(row, self.n_features), np.array([label], dtype=np.int32), n_classes)

    def predict_one(self, row: Any, out: Floats, /) -> bool:
        """Write the probabilities of one row into `out`; False if its length is not n_classes."""
        probabilities = self.predict(_one_row(row, self.n_features))[0]
        if len(probabilities) != len(out):
            return False
        out[:] = probabilities
        return True

    def _prediction_width(self) -> int:
        return self.n_classes + 1


class ShardedGaussianForest(ShardedForest):
    """A sharded `GaussianForest`."""

    @property
    def noise(self) -> float:
        """The share of the variance around the trend that is noise."""
        return self.keeper.ask_first(messages.Noise())

    @property
    def scale(self) -> float:
        """The number that one unit of a tree's means stands for."""
        return self.keeper.ask_first(messages.Scale())

    def trend(self, rows: Rows, /) -> Floats:
        """The trend at each row."""
        return self.keeper.ask_first(messages.Trend(rows))

    def learn(
        self, rows: Rows, values: Floats, _n_threads: int = 1, one_by_one: bool = False, /
    ) -> None:
        """Learn rows with numbers."""
        self.keeper.operate(messages.LearnNumbers(rows, values, one_by_one))

    def learn_one(self, row: Any, value: float, /) -> None:
        """Learn one row."""
        self.learn(_one_row(row, self.n_features), np.array([value], dtype=np.float64))

    def predict_one(self, row: Any, /) -> tuple[float, float]:
        """Mean and standard deviation of one row."""
        mean, deviation = self.predict(_one_row(row, self.n_features))[0]
        return float(mean), float(deviation)

    def quantiles(self, rows: Rows, levels: Floats, _n_threads: int = 1, /) -> Floats:
        """Quantiles of the mixture at each row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Quantiles(rows, levels))
        return np.concatenate(
            [
                self.keeper.ask_first(messages.Quantiles(piece, levels, self._mixtures(piece)))
                for piece in self._mixture_pieces(rows)
            ]
        )

    def log_density(self, rows: Rows, values: Floats, _n_threads: int = 1, /) -> Floats:
        """Logarithm of the density of each value at its row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.LogDensity(rows, values))
        answers, begin = [], 0
        for piece in self._mixture_pieces(rows):
            some = np.ascontiguousarray(values[begin : begin + len(piece)])
            question = messages.LogDensity(piece, some, self._mixtures(piece))
            answers.append(self.keeper.ask_first(question))
            begin += len(piece)
        return np.concatenate(answers)

    def _prediction_width(self) -> int:
        return 2

    def _mixtures(self, rows: Rows) -> Mixtures:
        return join_mixtures(self.keeper.ask_all(messages.Mixtures(rows)))

    def _mixture_pieces(self, rows: Rows) -> list[Rows]:
        return _pieces(rows, 4 * _COMPONENTS_PER_TREE * self.n_trees)


def _pieces(rows: Rows, width: int) -> list[Rows]:
    """Rows in pieces, whose answers of `width` numbers per row are not too large."""
    n_together = max(_MAX_NUMBERS // max(width, 1), 1)
    return [rows[i : i + n_together] for i in range(0, max(len(rows), 1), n_together)]


def _one_row(row: Any, n_features: int) -> Rows:
    """One row as a batch; `TypeError` if it is not an array of numbers, as from the core."""
    if not isinstance(row, np.ndarray) or row.ndim != 1 or row.dtype.kind not in "fiub":
        raise TypeError(f"a row must be a one-dimensional array of numbers, not {row!r}")
    if len(row) != n_features:
        raise ValueError(f"x has {len(row)} features, but this forest has {n_features}")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(row, dtype=np.float32)
    infinite = np.flatnonzero(np.isinf(array))
    if len(infinite):
        raise ValueError(
            f"x contains infinity or a value too large for float32, at feature {infinite[0]}"
        )
    return array[np.newaxis]


SHARDED_FORESTS: dict[str, type[ShardedForest]] = {
    LABELS.name: ShardedLabelForest,
    NUMBERS.name: ShardedGaussianForest,
}
"""The class of sharded forests for each kind of core forest, by name."""


def split_state(state: State, plans: list[ShardPlan]) -> list[State]:
    """The states of shards of a forest of this state."""
    if not are_trees_up_to_date(state):  # an interrupted call left work that must be finished
        whole = plans[0].spec.kind.from_state(state)
        whole.forget(np.empty(0, dtype=np.int64))
        state = whole.get_state()
    return [state_of_shard(state, *plan.held) for plan in plans]
