"""Messages from the driver to its shards: operations change a forest, questions do not.

A message calls the core forest of the shard directly. Must not know processes, or how messages
travel.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import (
    GaussianForest,
    GuidedLabelForest,
    GuidedNumberForest,
    LabelForest,
    Quantity,
)
from onlineforest._models.core import Units

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
MondrianForest = LabelForest | GaussianForest
GuidedForest = GuidedLabelForest | GuidedNumberForest
AnyForest = MondrianForest | GuidedForest

Forest = TypeVar("Forest")
Answer = TypeVar("Answer")


class Message:
    """Data that travel from the driver to shards.

    A subclass is a frozen dataclass without comparison, since its arrays do not compare.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in the message."""
        return sum(_nbytes_of(value) for value in vars(self).values())


def _nbytes_of(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_nbytes_of, value.values()))
    return value.nbytes if isinstance(value, np.ndarray) else 0


class Operation(Message, ABC, Generic[Forest, Answer]):
    """A change of a forest. Each shard carries it out once, in the order of its number."""

    may_be_pipelined: ClassVar[bool] = False  # the driver need not wait for the answer

    @property
    def n_new(self) -> int:
        """Number of samples that the operation gives to the forest."""
        return 0

    @abstractmethod
    def carry_out(self, forest: Forest, n_threads: int, /) -> Answer:
        """Change the forest, or raise `ValueError` and leave it unchanged."""


class Question(Message, ABC, Generic[Forest, Answer]):
    """A call that changes nothing."""

    @abstractmethod
    def answer(self, forest: Forest, n_threads: int, /) -> Answer:
        """Ask the forest."""


# Operations.


@dataclass(frozen=True, eq=False)
class LearnLabels(Operation[LabelForest, None]):
    """Learn rows with class codes."""

    rows: Rows
    labels: NDArray[np.int32]
    n_classes: int
    one_by_one: bool = False
    units: Units = None
    may_be_pipelined: ClassVar[bool] = True

    @property
    def n_new(self) -> int:
        return len(self.rows)

    def carry_out(self, forest: LabelForest, n_threads: int, /) -> None:
        forest.learn(self.rows, self.labels, self.n_classes, n_threads, self.one_by_one, self.units)


@dataclass(frozen=True, eq=False)
class LearnNumbers(Operation[GaussianForest, None]):
    """Learn rows with numbers."""

    rows: Rows
    values: Floats
    one_by_one: bool = False
    units: Units = None
    may_be_pipelined: ClassVar[bool] = True

    @property
    def n_new(self) -> int:
        return len(self.rows)

    def carry_out(self, forest: GaussianForest, n_threads: int, /) -> None:
        forest.learn(self.rows, self.values, n_threads, self.one_by_one, self.units)


@dataclass(frozen=True, eq=False)
class Forget(Operation[AnyForest, None]):
    """Forget samples by serial."""

    serials: NDArray[np.int64]

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> None:
        forest.forget(self.serials, n_threads)


@dataclass(frozen=True, eq=False)
class ForgetRows(Operation[AnyForest, NDArray[np.int64]]):
    """Forget samples by row and target; the answer is the positions of those not stored."""

    rows: Rows
    values: NDArray[Any]

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> NDArray[np.int64]:
        return forest.forget_rows(self.rows, self.values, n_threads)


@dataclass(frozen=True, eq=False)
class KeepLatest(Operation[AnyForest, None]):
    """Forget all but the latest samples."""

    n: int

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> None:
        forest.keep_latest(self.n, n_threads)


@dataclass(frozen=True, eq=False)
class Refresh(Operation[MondrianForest, None]):
    """Recompute the measure from the stored samples."""

    def carry_out(self, forest: MondrianForest, n_threads: int, /) -> None:
        forest.refresh(n_threads)


@dataclass(frozen=True, eq=False)
class SetCalibration(Operation[GaussianForest, None]):
    """Use a calibration that the driver computed from the left-out predictions of all shards."""

    scale: float
    noise: float
    levels: Floats

    def carry_out(self, forest: GaussianForest, _n_threads: int, /) -> None:
        """Calibrate, unless operations since then left nothing to calibrate."""
        if forest.n_points > 0 and forest.scale != 0.0:
            forest.set_calibration(self.scale, self.noise, self.levels)


# Questions to one shard about trees that all shards have to add up or join.


@dataclass(frozen=True, eq=False)
class Terms(Question[MondrianForest, tuple[Floats, int]]):
    """The terms of a sum over trees, and the number of trees that are grown."""

    quantity: Quantity
    rows: Rows

    def answer(self, forest: MondrianForest, n_threads: int, /) -> tuple[Floats, int]:
        return forest.terms(self.quantity, self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class Finish(Question[MondrianForest, Floats]):
    """A quantity, given its sums over all trees of all shards."""

    quantity: Quantity
    rows: Rows
    sums: Floats
    n_grown: int

    def answer(self, forest: MondrianForest, _n_threads: int, /) -> Floats:
        return forest.finish(self.quantity, self.rows, self.sums, self.n_grown)


@dataclass(frozen=True, eq=False)
class Mixtures(Question[GaussianForest, Arrays]):
    """The components that the trees of a shard add to the mixture of each row."""

    rows: Rows

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Arrays:
        return forest.mixtures(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class Leaves(Question[AnyForest, NDArray[np.int32]]):
    """The leaf of each row in each tree of a shard."""

    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> NDArray[np.int32]:
        return forest.apply(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class TreeArrays(Question[AnyForest, Arrays]):
    """One tree of a shard."""

    index: int  # within the shard

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Arrays:
        return forest.tree(self.index)


@dataclass(frozen=True, eq=False)
class WholeState(Question[AnyForest, Arrays]):
    """The state of a shard."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Arrays:
        return forest.get_state()


@dataclass(frozen=True, eq=False)
class MemoryBytes(Question[AnyForest, int]):
    """The memory that a shard takes, in bytes."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> int:
        return forest.nbytes


@dataclass(frozen=True, eq=False)
class CheckInvariants(Question[MondrianForest, None]):
    """Raise if the shard is inconsistent."""

    def answer(self, forest: MondrianForest, _n_threads: int, /) -> None:
        forest.check_invariants()


# Questions to a shard that is the whole forest, or with the mixtures of all shards.


@dataclass(frozen=True, eq=False)
class Predict(Question[AnyForest, Floats]):
    """Predictions of a forest that has one shard."""

    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> Floats:
        return forest.predict(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class Novelty(Question[MondrianForest, Floats]):
    """The novelty of each row in a forest that has one shard."""

    rows: Rows

    def answer(self, forest: MondrianForest, n_threads: int, /) -> Floats:
        return forest.novelty(self.rows, n_threads)


@dataclass(frozen=True, eq=False)
class Quantiles(Question[GaussianForest, Floats]):
    """Quantiles at each row, of these mixtures or of a forest that has one shard."""

    rows: Rows
    levels: Floats
    mixtures: Arrays | None = None

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Floats:
        return forest.quantiles(self.rows, self.levels, n_threads, mixtures=self.mixtures)


@dataclass(frozen=True, eq=False)
class LogDensity(Question[GaussianForest, Floats]):
    """The log density of each value, of these mixtures or of a forest that has one shard."""

    rows: Rows
    values: Floats
    mixtures: Arrays | None = None

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Floats:
        return forest.log_density(self.rows, self.values, n_threads, mixtures=self.mixtures)


# Questions that every shard answers alike.


@dataclass(frozen=True, eq=False)
class Serials(Question[AnyForest, NDArray[np.int64]]):
    """The serial of each stored sample."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> NDArray[np.int64]:
        return forest.serials


@dataclass(frozen=True, eq=False)
class AreStored(Question[AnyForest, NDArray[np.uint8]]):
    """Which of these serials belong to stored samples."""

    serials: NDArray[np.int64]

    def answer(self, forest: AnyForest, _n_threads: int, /) -> NDArray[np.uint8]:
        return forest.are_stored(self.serials)


@dataclass(frozen=True, eq=False)
class Relevance(Question[MondrianForest, Floats]):
    """The relevance of each feature."""

    def answer(self, forest: MondrianForest, n_threads: int, /) -> Floats:
        return forest.relevance(n_threads)


@dataclass(frozen=True, eq=False)
class FeatureWeights(Question[MondrianForest, Floats]):
    """The weight of each feature."""

    def answer(self, forest: MondrianForest, _n_threads: int, /) -> Floats:
        return forest.feature_weights


@dataclass(frozen=True, eq=False)
class DiscountRate(Question[MondrianForest, float]):
    """The discount per unit of time."""

    def answer(self, forest: MondrianForest, _n_threads: int, /) -> float:
        return forest.discount_rate


@dataclass(frozen=True, eq=False)
class LeafDiscount(Question[LabelForest, float]):
    """The smallest discount of a leaf."""

    def answer(self, forest: LabelForest, _n_threads: int, /) -> float:
        return forest.leaf_discount


@dataclass(frozen=True, eq=False)
class Noise(Question[GaussianForest, float]):
    """The share of the variance around the trend that is noise."""

    def answer(self, forest: GaussianForest, _n_threads: int, /) -> float:
        return forest.noise


@dataclass(frozen=True, eq=False)
class Scale(Question[GaussianForest, float]):
    """The number that one unit of a tree's means stands for."""

    def answer(self, forest: GaussianForest, _n_threads: int, /) -> float:
        return forest.scale


@dataclass(frozen=True, eq=False)
class Trend(Question[GaussianForest, Floats]):
    """The trend at each row."""

    rows: Rows

    def answer(self, forest: GaussianForest, _n_threads: int, /) -> Floats:
        return forest.trend(self.rows)


@dataclass(frozen=True)
class Status:
    """What all shards must agree on after an operation."""

    n_points: int
    n_seen: int
    n_classes: int  # 0 for a forest over numbers
    digest: str  # of the measure, or of the number of samples of each label
    labels_version: int = 0  # of an order-free forest: another number when other labels are known


@dataclass(frozen=True, eq=False)
class CurrentStatus(Question[AnyForest, Status]):
    """The status of a shard."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Status:
        return status_of(forest)


def status_of(forest: AnyForest) -> Status:
    """What shards must agree on; arrays are compared by a digest."""
    n_classes = labels_version = 0
    match forest:
        case LabelForest():
            numbers = [forest.feature_weights, [forest.discount_rate, forest.leaf_discount]]
            n_classes = forest.n_classes
        case GaussianForest():
            rest = [forest.discount_rate, forest.noise, forest.scale]
            numbers = [forest.feature_weights, rest]
        case GuidedLabelForest():
            numbers = [forest.label_weights]
            n_classes = forest.n_labels
            # Not the version of the core: a restored shard counts from 0.
            are_known = hashlib.sha256((forest.label_weights > 0).tobytes()).digest()
            labels_version = int.from_bytes(are_known[:8])
        case _:
            numbers = []
    digest = hashlib.sha256()
    for array in numbers:
        digest.update(np.array(array, dtype=np.float64).tobytes())
    return Status(forest.n_points, forest.n_seen, n_classes, digest.hexdigest(), labels_version)
