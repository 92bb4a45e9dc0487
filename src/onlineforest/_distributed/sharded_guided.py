"""Sharded order-free forests: the interface of a core forest, the same answers to the bit.

Masses of labels are integers, so shards send sums. Moments of numbers are rounded, so shards send
the leaf of each tree and the driver combines them in the order of trees. Must not know how messages
travel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import UNITS_PER_SAMPLE, moments_of_leaves
from onlineforest._distributed import guided_messages as messages
from onlineforest._distributed.messages import WholeState
from onlineforest._distributed.sharded_base import (
    Floats,
    Rows,
    ShardedForest,
    one_row,
    pieces_of,
    ranges_of,
)
from onlineforest._distributed.splitting import State
from onlineforest._models.core import Votes


class ShardedGuidedForest(ShardedForest):
    """A core forest of guided trees that live in shards."""

    @property
    def version(self) -> int:
        """A number that changes when other samples are stored."""
        return self.keeper.position

    @property
    def values(self) -> NDArray[Any]:
        """The value of each stored sample, in the order of `serials`."""
        return self.keeper.ask_first(messages.Values())

    @property
    def weights(self) -> Floats:
        """The weight of each stored sample, in the order of `serials`."""
        return self.keeper.ask_first(messages.Weights())

    @property
    def sample_numbers(self) -> NDArray[np.int32]:
        """A number for each stored sample, the same for equal ones, in the order of `serials`."""
        return self.keeper.ask_first(messages.SampleNumbers())

    def learn(
        self,
        rows: Rows,
        values: NDArray[Any],
        _n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
        /,
    ) -> None:
        """Learn rows with class codes or numbers."""
        self.keeper.operate(messages.LearnSamples(rows, values, weights))

    def count_as_seen(self, n_seen: int, /) -> None:
        """Count samples that another forest has seen and forgotten."""
        n_more = n_seen - self.n_seen
        if n_more > 0:
            self.keeper.operate(messages.CountAsSeen(n_seen, n_more))

    def complete(self, _n_threads: int = 1, /) -> None:
        """Cut all blocks that are not cut yet, which changes no answer."""
        self.keeper.ask_all(messages.Complete())

    def importances(self, _n_threads: int = 1, /) -> Floats:
        """The importance of each feature in each tree."""
        return np.concatenate(self.keeper.ask_all(messages.Importances()))

    @property
    def n_levels(self) -> NDArray[np.int64]:
        """The number of levels of each categorical feature that samples have."""
        return self.keeper.ask_first(messages.NumbersOfLevels())

    def levels(self, categorical: int, /) -> NDArray[np.uint64]:
        """The levels of a categorical feature that samples have, sorted."""
        return self.keeper.ask_first(messages.Levels(categorical))

    def are_trees_of_samples(self) -> bool:
        """Whether each shard grows the trees that it has from its samples again."""
        answers: list[bool] = self.keeper.ask_all(messages.AreTreesOfSamples())
        return all(answers)

    def get_state(self) -> State:
        """The state of the whole forest, which is its samples: those of the first shard."""
        state = self.keeper.ask_first(WholeState())
        return {name: array.copy() for name, array in state.items()} | {
            "options.n_trees": np.array([self.n_trees], dtype=np.uint64)
        }


class ShardedGuidedLabelForest(ShardedGuidedForest):
    """A sharded `GuidedLabelForest`."""

    _n_labels_sent = 0

    @property
    def n_labels(self) -> int:
        """Number of codes."""
        # Does not wait for batches in progress: only `set_labels` changes it.
        return self._n_labels_sent or self.keeper.status().n_classes

    @property
    def label_weights(self) -> Floats:
        """The weight of the stored samples of each label, in the order of codes."""
        return self.keeper.ask_first(messages.LabelWeights())

    @property
    def labels_version(self) -> int:
        """A number that changes when other labels are known or have codes."""
        return self.keeper.status().labels_version

    def set_labels(self, hashes: NDArray[np.uint64], are_declared: NDArray[np.uint8], /) -> None:
        """Give labels their codes."""
        self.keeper.operate(messages.SetLabels(hashes, are_declared))
        self._n_labels_sent = len(hashes)

    def learn_one(self, row: Any, value: int, weight: int = UNITS_PER_SAMPLE, /) -> None:
        """Learn one row."""
        rows, values = one_row(row, self.width), np.array([value], dtype=np.int32)
        self.learn(rows, values, 1, np.array([weight]))

    def predict(
        self, rows: Rows, _n_threads: int = 1, power: float = 1.0, spread: float = 0.0, /
    ) -> Floats:
        """Probabilities, in the order of codes."""
        width = self.n_shards * (self.n_labels + 1)
        with self.keeper.at_one_position():
            pieces = pieces_of(rows, width)
            return np.concatenate([self._predict(piece, power, spread) for piece in pieces])

    def _predict(self, rows: Rows, power: float, spread: float) -> Floats:
        sums = np.sum(self.keeper.ask_all(messages.SummedMasses(rows)), axis=0)
        return self.keeper.ask_first(messages.FinishMasses(sums, power, spread))

    def votes(self, _n_threads: int = 1, begin: int = 0, end: int = 2**62, /) -> Votes:
        """What the trees that leave out the samples that calibrate say about them."""
        return self._summed(messages.LeftOutVotes(begin, end))

    def votes_at(self, n_seen: int, _n_threads: int = 1, /) -> Votes:
        """Those of this forest when it had seen `n_seen` samples, all of which it still holds."""
        return self._summed(messages.LeftOutVotesAt(n_seen))

    def votes_after(
        self,
        rows: Rows,
        labels: NDArray[np.int32],
        _n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
        /,
    ) -> Votes:
        """Those of this forest if it learned these samples next; it does not."""
        return self._summed(messages.LeftOutVotesAfter(rows, labels, weights))

    def _summed(self, question: Any) -> Votes:
        """The votes of all shards."""
        shards: list[Votes] = self.keeper.ask_all(question)
        held, labels, weights = shards[0][:3]
        votes = np.sum([each[3] for each in shards], axis=0)
        half = np.sum([each[4] for each in shards], axis=0)
        return held, labels, weights, votes, half

    def predict_one(
        self, row: Any, out: Floats, power: float = 1.0, spread: float = 0.0, /
    ) -> bool:
        """Write the probabilities of one row into `out`; False if it has not one entry per code."""
        probabilities = self.predict(one_row(row, self.width), 1, power, spread)[0]
        if len(probabilities) != len(out):
            return False
        out[:] = probabilities
        return True

    def left_out(self, _n_threads: int = 1, /) -> tuple[Floats, NDArray[np.int64]]:
        """Predict each stored sample from the trees that have not learned it."""
        answers = []
        with self.keeper.at_one_position():
            width = self.n_shards * (self.n_labels + 1)
            for begin, end in ranges_of(self.n_points, width):
                shards = self.keeper.ask_all(messages.LeftOutMasses(begin, end))
                sums = np.sum([masses for masses, _ in shards], axis=0)
                n_trees = np.sum([n for _, n in shards], axis=0)
                probabilities = self.keeper.ask_first(messages.FinishMasses(sums))
                probabilities[n_trees == 0] = np.nan
                answers.append((probabilities, n_trees))
        predictions, counts = zip(*answers, strict=True)
        return np.concatenate(predictions), np.concatenate(counts)


class ShardedGuidedNumberForest(ShardedGuidedForest):
    """A sharded `GuidedNumberForest`."""

    def learn_one(self, row: Any, value: float, weight: int = UNITS_PER_SAMPLE, /) -> None:
        """Learn one row."""
        rows, values = one_row(row, self.width), np.array([value], dtype=np.float64)
        self.learn(rows, values, 1, np.array([weight]))

    def predict(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """Mean, variance within leaves and variance between trees."""
        with self.keeper.at_one_position():
            pieces = pieces_of(rows, 2 * self.n_trees)
            return np.concatenate([self._predict(piece) for piece in pieces])

    def _predict(self, rows: Rows) -> Floats:
        leaves = np.concatenate(self.keeper.ask_all(messages.TreeLeaves(rows)), axis=1)
        moments, n_trees = moments_of_leaves(leaves)
        if not n_trees.all():
            moments[n_trees == 0] = self.keeper.ask_first(messages.OfAllSamples())
        return moments

    def predict_one(self, row: Any, /) -> tuple[float, float, float]:
        """The prediction of one row."""
        mean, within, between = self.predict(one_row(row, self.width))[0].tolist()
        return mean, within, between

    def left_out(self, _n_threads: int = 1, /) -> tuple[Floats, NDArray[np.int64]]:
        """Predict each stored sample from the trees that have not learned it."""
        with self.keeper.at_one_position():
            n = self.n_points
            moments, n_trees = np.full((n, 3), np.nan), np.zeros(n, dtype=np.int64)
            for begin, end in ranges_of(n, 2 * self.n_trees):
                shards = self.keeper.ask_all(messages.LeftOutLeaves(begin, end))
                places = shards[0][0]
                leaves = np.concatenate([leaves for _, leaves in shards], axis=1)
                moments[places], n_trees[places] = moments_of_leaves(leaves)
        return moments, n_trees
