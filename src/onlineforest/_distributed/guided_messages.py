"""Messages to shards of order-free forests, besides those that all forests understand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import GuidedLabelForest, GuidedNumberForest
from onlineforest._distributed.messages import Floats, GuidedForest, Operation, Question, Rows
from onlineforest._models.core import Masses, Units, Votes

# Operations.


@dataclass(frozen=True, eq=False)
class LearnSamples(Operation[GuidedForest, None]):
    """Learn rows with class codes or numbers."""

    rows: Rows
    values: NDArray[Any]
    units: Units = None
    may_be_pipelined: ClassVar[bool] = True

    @property
    def n_new(self) -> int:
        return len(self.rows)

    def carry_out(self, forest: GuidedForest, n_threads: int, /) -> None:
        forest.learn(self.rows, self.values, n_threads, self.units)


@dataclass(frozen=True, eq=False)
class SetLabels(Operation[GuidedLabelForest, None]):
    """Give labels their codes."""

    hashes: NDArray[np.uint64]
    are_declared: NDArray[np.uint8]

    def carry_out(self, forest: GuidedLabelForest, _n_threads: int, /) -> None:
        forest.set_labels(self.hashes, self.are_declared)


@dataclass(frozen=True, eq=False)
class CountAsSeen(Operation[GuidedForest, None]):
    """Count samples that another forest has seen and forgotten."""

    n_seen: int  # after the operation
    n_more: int

    @property
    def n_new(self) -> int:
        return self.n_more

    def carry_out(self, forest: GuidedForest, _n_threads: int, /) -> None:
        forest.count_as_seen(self.n_seen)


# Questions.


@dataclass(frozen=True, eq=False)
class Complete(Question[GuidedForest, None]):
    """Cut all blocks that are not cut yet, which changes no answer."""

    def answer(self, forest: GuidedForest, n_threads: int, /) -> None:
        forest.complete(n_threads)


@dataclass(frozen=True, eq=False)
class Importances(Question[GuidedForest, Floats]):
    """The importance of each feature in each tree of a shard."""

    def answer(self, forest: GuidedForest, n_threads: int, /) -> Floats:
        return forest.importances(n_threads)


@dataclass(frozen=True, eq=False)
class Values(Question[GuidedForest, NDArray[Any]]):
    """The value of each stored sample."""

    def answer(self, forest: GuidedForest, _n_threads: int, /) -> NDArray[Any]:
        return forest.values


@dataclass(frozen=True, eq=False)
class Weights(Question[GuidedForest, Floats]):
    """The weight of each stored sample."""

    def answer(self, forest: GuidedForest, _n_threads: int, /) -> Floats:
        return forest.weights


@dataclass(frozen=True, eq=False)
class SampleNumbers(Question[GuidedForest, NDArray[np.int32]]):
    """A number for each stored sample, the same for equal ones."""

    def answer(self, forest: GuidedForest, _n_threads: int, /) -> NDArray[np.int32]:
        return forest.sample_numbers


@dataclass(frozen=True, eq=False)
class NumbersOfLevels(Question[GuidedForest, NDArray[np.int64]]):
    """The number of levels of each categorical feature that samples have."""

    def answer(self, forest: GuidedForest, _n_threads: int, /) -> NDArray[np.int64]:
        return forest.n_levels


@dataclass(frozen=True, eq=False)
class Levels(Question[GuidedForest, NDArray[np.uint64]]):
    """The levels of a categorical feature that samples have."""

    categorical: int

    def answer(self, forest: GuidedForest, _n_threads: int, /) -> NDArray[np.uint64]:
        return forest.levels(self.categorical)


@dataclass(frozen=True, eq=False)
class LabelWeights(Question[GuidedLabelForest, Floats]):
    """The weight of the stored samples of each label."""

    def answer(self, forest: GuidedLabelForest, _n_threads: int, /) -> Floats:
        return forest.label_weights


@dataclass(frozen=True, eq=False)
class SummedMasses(Question[GuidedLabelForest, Masses]):
    """The masses of labels at each row, summed over the trees of a shard."""

    rows: Rows

    def answer(self, forest: GuidedLabelForest, n_threads: int, /) -> Masses:
        return forest.masses(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class LeftOutMasses(Question[GuidedLabelForest, tuple[Masses, NDArray[np.int64]]]):
    """The same for the samples [begin, end), over trees that have not learned them."""

    begin: int
    end: int

    def answer(
        self, forest: GuidedLabelForest, n_threads: int, /
    ) -> tuple[Masses, NDArray[np.int64]]:
        return forest.left_out_masses(self.begin, self.end, n_threads)


@dataclass(frozen=True, eq=False)
class FinishMasses(Question[GuidedLabelForest, Floats]):
    """Probabilities, given the masses over all trees of all shards and a calibration."""

    sums: Masses
    power: float = 1.0
    spread: float = 0.0

    def answer(self, forest: GuidedLabelForest, _n_threads: int, /) -> Floats:
        return forest.finish(self.sums, self.power, self.spread)


@dataclass(frozen=True, eq=False)
class LeftOutVotes(Question[GuidedLabelForest, Votes]):
    """What the trees of a shard say about samples that calibrate and that they leave out."""

    begin: int
    end: int

    def answer(self, forest: GuidedLabelForest, n_threads: int, /) -> Votes:
        return forest.votes(n_threads, self.begin, self.end)


@dataclass(frozen=True, eq=False)
class LeftOutVotesAt(Question[GuidedLabelForest, Votes]):
    """Such votes of the shard when it had seen so many samples."""

    n_seen: int

    def answer(self, forest: GuidedLabelForest, n_threads: int, /) -> Votes:
        return forest.votes_at(self.n_seen, n_threads)


@dataclass(frozen=True, eq=False)
class LeftOutVotesAfter(Question[GuidedLabelForest, Votes]):
    """Such votes of the shard if it learned these samples next."""

    rows: Rows
    labels: NDArray[np.int32]
    weights: Units

    def answer(self, forest: GuidedLabelForest, n_threads: int, /) -> Votes:
        return forest.votes_after(self.rows, self.labels, n_threads, self.weights)


@dataclass(frozen=True, eq=False)
class TreeLeaves(Question[GuidedNumberForest, Floats]):
    """Mean and variance in the leaf of each row in each tree of a shard."""

    rows: Rows

    def answer(self, forest: GuidedNumberForest, n_threads: int, /) -> Floats:
        return forest.leaves(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class LeftOutLeaves(Question[GuidedNumberForest, tuple[NDArray[np.int64], Floats]]):
    """The same for those of the samples [begin, end) that trees may have left out."""

    begin: int
    end: int

    def answer(
        self, forest: GuidedNumberForest, n_threads: int, /
    ) -> tuple[NDArray[np.int64], Floats]:
        return forest.left_out_leaves(self.begin, self.end, n_threads)


@dataclass(frozen=True, eq=False)
class OfAllSamples(Question[GuidedNumberForest, Floats]):
    """The prediction for rows about which no tree knows anything."""

    def answer(self, forest: GuidedNumberForest, _n_threads: int, /) -> Floats:
        return forest.of_all_samples()


@dataclass(frozen=True, eq=False)
class AreTreesOfSamples(Question[GuidedForest, bool]):
    """Whether the trees of a shard are those of its samples: grows them a second time."""

    def answer(self, forest: GuidedForest, n_threads: int, /) -> bool:
        again = type(forest).from_state(forest.get_state(), n_threads)
        again.complete(n_threads)
        return all(
            _tree_bytes(forest.tree(i)) == _tree_bytes(again.tree(i)) for i in range(forest.n_trees)
        )


def _tree_bytes(tree: dict[str, NDArray[Any]]) -> dict[str, bytes]:
    """The arrays of a tree; the labels of a node are in no order, so they are sorted."""
    if "label" in tree:
        n_labels = np.diff(tree["counts_end"], prepend=0)
        order = np.lexsort((tree["label"], np.repeat(np.arange(len(n_labels)), n_labels)))
        tree = tree | {name: tree[name][order] for name in ("label", "count")}
    return {name: array.tobytes() for name, array in tree.items()}
