"""Messages from the driver to its shards: operations change a forest, questions do not.

A message calls the core forest of the shard directly. Must not know processes, or how messages
travel.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import GaussianForest, LabelForest

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
AnyForest = LabelForest | GaussianForest


class Quantity(Enum):
    """What a forest can answer by a sum over its trees."""

    PREDICTION = auto()
    NOVELTY = auto()


Forest = TypeVar("Forest", LabelForest, GaussianForest, AnyForest)
Answer = TypeVar("Answer")

message = dataclass(frozen=True, eq=False)  # arrays have no truth value: messages do not compare


class Message:
    """Data that travel from the driver to shards. A subclass is a dataclass."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in the message."""
        return sum(_nbytes_of(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]


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


@message
class LearnLabels(Operation[LabelForest, None]):
    """Learn rows with class codes."""

    rows: Rows
    labels: NDArray[np.int32]
    n_classes: int
    one_by_one: bool = False
    may_be_pipelined: ClassVar[bool] = True

    @property
    def n_new(self) -> int:
        return len(self.rows)

    def carry_out(self, forest: LabelForest, n_threads: int, /) -> None:
        forest.learn(self.rows, self.labels, self.n_classes, n_threads, self.one_by_one)


@message
class LearnNumbers(Operation[GaussianForest, None]):
    """Learn rows with numbers."""

    rows: Rows
    values: Floats
    one_by_one: bool = False
    may_be_pipelined: ClassVar[bool] = True

    @property
    def n_new(self) -> int:
        return len(self.rows)

    def carry_out(self, forest: GaussianForest, n_threads: int, /) -> None:
        forest.learn(self.rows, self.values, n_threads, self.one_by_one)


@message
class Forget(Operation[AnyForest, None]):
    """Forget samples by serial."""

    serials: NDArray[np.int64]

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> None:
        forest.forget(self.serials, n_threads)


@message
class ForgetRows(Operation[AnyForest, NDArray[np.int64]]):
    """Forget samples by row and target; the answer is the positions of those not stored."""

    rows: Rows
    values: NDArray[Any]

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> NDArray[np.int64]:
        return forest.forget_rows(self.rows, self.values, n_threads)


@message
class KeepLatest(Operation[AnyForest, None]):
    """Forget all but the latest samples."""

    n: int

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> None:
        forest.keep_latest(self.n, n_threads)


@message
class Refresh(Operation[AnyForest, None]):
    """Recompute the measure from the stored samples."""

    def carry_out(self, forest: AnyForest, n_threads: int, /) -> None:
        forest.refresh(n_threads)


@message
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


@message
class Terms(Question[AnyForest, tuple[Floats, int]]):
    """The terms of a sum over trees, and the number of trees that are grown."""

    quantity: Quantity
    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> tuple[Floats, int]:
        if self.quantity is Quantity.PREDICTION:
            return forest.predict_terms(self.rows, n_threads)
        return forest.novelty_terms(self.rows, n_threads)


@message
class Finish(Question[AnyForest, Floats]):
    """A quantity, given its sums over all trees of all shards."""

    quantity: Quantity
    rows: Rows
    sums: Floats
    n_grown: int

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Floats:
        if self.quantity is Quantity.PREDICTION:
            return forest.predict_from(self.rows, self.sums, self.n_grown)
        return forest.novelty_from(self.rows, self.sums, self.n_grown)


@message
class Mixtures(Question[GaussianForest, Arrays]):
    """The components that the trees of a shard add to the mixture of each row."""

    rows: Rows

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Arrays:
        return forest.laws(self.rows, n_threads)


@message
class Leaves(Question[AnyForest, NDArray[np.int32]]):
    """The leaf of each row in each tree of a shard."""

    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> NDArray[np.int32]:
        return forest.apply(self.rows, n_threads)


@message
class TreeArrays(Question[AnyForest, Arrays]):
    """One tree of a shard."""

    index: int  # within the shard

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Arrays:
        return forest.tree(self.index)


@message
class WholeState(Question[AnyForest, Arrays]):
    """The state of a shard."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Arrays:
        return forest.get_state()


@message
class MemoryBytes(Question[AnyForest, int]):
    """The memory that a shard takes, in bytes."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> int:
        return forest.nbytes


@message
class CheckInvariants(Question[AnyForest, None]):
    """Raise if the shard is inconsistent."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> None:
        forest.check_invariants()


# Questions to a shard that is the whole forest, or with the mixtures of all shards.


@message
class Predict(Question[AnyForest, Floats]):
    """Predictions of a forest that has one shard."""

    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> Floats:
        return forest.predict(self.rows, n_threads)


@message
class Novelty(Question[AnyForest, Floats]):
    """The novelty of each row in a forest that has one shard."""

    rows: Rows

    def answer(self, forest: AnyForest, n_threads: int, /) -> Floats:
        return forest.novelty(self.rows, n_threads)


@message
class Quantiles(Question[GaussianForest, Floats]):
    """Quantiles at each row, of these mixtures or of a forest that has one shard."""

    rows: Rows
    levels: Floats
    mixtures: Arrays | None = None

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Floats:
        if self.mixtures is None:
            return forest.quantiles(self.rows, self.levels, n_threads)
        return forest.quantiles_from(self.rows, self.levels, self.mixtures, n_threads)


@message
class LogDensity(Question[GaussianForest, Floats]):
    """The log density of each value, of these mixtures or of a forest that has one shard."""

    rows: Rows
    values: Floats
    mixtures: Arrays | None = None

    def answer(self, forest: GaussianForest, n_threads: int, /) -> Floats:
        if self.mixtures is None:
            return forest.log_density(self.rows, self.values, n_threads)
        return forest.log_density_from(self.rows, self.values, self.mixtures, n_threads)


# Questions that every shard answers alike.


@message
class Serials(Question[AnyForest, NDArray[np.int64]]):
    """The serial of each stored sample."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> NDArray[np.int64]:
        return forest.serials


@message
class AreStored(Question[AnyForest, NDArray[np.uint8]]):
    """Which of these serials belong to stored samples."""

    serials: NDArray[np.int64]

    def answer(self, forest: AnyForest, _n_threads: int, /) -> NDArray[np.uint8]:
        return forest.are_stored(self.serials)


@message
class Relevance(Question[AnyForest, Floats]):
    """The relevance of each feature."""

    def answer(self, forest: AnyForest, n_threads: int, /) -> Floats:
        return forest.relevance(n_threads)


@message
class FeatureWeights(Question[AnyForest, Floats]):
    """The weight of each feature."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Floats:
        return forest.feature_weights


@message
class DiscountRate(Question[AnyForest, float]):
    """The discount per unit of time."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> float:
        return forest.discount_rate


@message
class LeafDiscount(Question[LabelForest, float]):
    """The smallest discount of a leaf."""

    def answer(self, forest: LabelForest, _n_threads: int, /) -> float:
        return forest.leaf_discount


@message
class Noise(Question[GaussianForest, float]):
    """The share of the variance around the trend that is noise."""

    def answer(self, forest: GaussianForest, _n_threads: int, /) -> float:
        return forest.noise


@message
class Scale(Question[GaussianForest, float]):
    """The number that one unit of a tree's means stands for."""

    def answer(self, forest: GaussianForest, _n_threads: int, /) -> float:
        return forest.scale


@message
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
    measure: str  # a digest


@message
class CurrentStatus(Question[AnyForest, Status]):
    """The status of a shard."""

    def answer(self, forest: AnyForest, _n_threads: int, /) -> Status:
        return status_of(forest)


def status_of(forest: AnyForest) -> Status:
    """What shards must agree on; their measures are compared by a digest."""
    digest = hashlib.sha256(forest.feature_weights.tobytes())
    if isinstance(forest, LabelForest):
        rest = [forest.discount_rate, forest.leaf_discount]
        n_classes = forest.n_classes
    else:
        rest = [forest.discount_rate, forest.noise, forest.scale]
        n_classes = 0
    digest.update(np.array(rest, dtype=np.float64).tobytes())
    return Status(forest.n_points, forest.n_seen, n_classes, digest.hexdigest())
