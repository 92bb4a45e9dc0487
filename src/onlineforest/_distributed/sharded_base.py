"""The interface of a core forest that all sharded forests have.

Must not know trees, nor how messages travel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._distributed import messages
from onlineforest._distributed.keeper import ShardKeeper
from onlineforest._distributed.splitting import State, join_states

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]

_MAX_NUMBERS = 2**24  # in the answers to one question: more rows are asked for in pieces


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
    def width(self) -> int:
        """Number of cells of a row."""
        return self.keeper.plans[0].spec.width

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

    def are_stored(self, serials: NDArray[np.int64], /) -> NDArray[np.uint8]:
        """Which of these serials belong to stored samples."""
        return self.keeper.ask_first(messages.AreStored(serials))

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

    def predict(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """Predictions, one row each."""
        raise NotImplementedError

    def get_state(self) -> State:
        """The state of the whole forest."""
        return join_states(self.keeper.ask_all(messages.WholeState()))


def pieces_of(rows: Rows, width: int) -> list[Rows]:
    """Rows in pieces, whose answers of `width` numbers per row are not too large."""
    return [rows[begin:end] for begin, end in ranges_of(len(rows), width)]


def ranges_of(n: int, width: int) -> list[tuple[int, int]]:
    """[0, n) in ranges, at least one, whose answers of `width` numbers each are not too large."""
    n_together = max(_MAX_NUMBERS // max(width, 1), 1)
    return [(i, min(i + n_together, n)) for i in range(0, max(n, 1), n_together)]


def one_row(row: Any, n_features: int) -> Rows:
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
