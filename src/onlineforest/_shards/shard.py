"""One shard of a forest: carries out numbered operations, each once and in order.

It runs in a process of its own, which imports neither scikit-learn nor Ray. Must not know other
shards.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest import _core
from onlineforest._forests.core import CoreSpec, State
from onlineforest._shards.errors import GapError
from onlineforest._shards.messages import Forest, Operation, Question


@dataclass(frozen=True)
class ShardPlan:
    """How a shard is built: the core forest it belongs to, and its place in it."""

    spec: CoreSpec[Any]  # describes the whole forest
    number: int
    n_shards: int
    n_threads: int

    @property
    def held(self) -> tuple[int, int]:
        """Its trees, [begin, end): the numbers of trees of shards differ by one at most."""
        n_trees = self.spec.n_trees
        begin, end = (n_trees * i // self.n_shards for i in (self.number, self.number + 1))
        return begin, end

    @property
    def name(self) -> str:
        """The shard in messages to users."""
        return f"shard {self.number} of {self.n_shards}"


def plans_of(spec: CoreSpec[Any], n_shards: int, n_threads: int) -> list[ShardPlan]:
    """The shards of a forest, in the order of their trees."""
    return [ShardPlan(spec, number, n_shards, n_threads) for number in range(n_shards)]


@dataclass(frozen=True)
class Start:
    """The beginning of a shard: the state of any shard after `position` operations.

    Without a state, the forest is empty.
    """

    position: int = 0
    state: State | None = None


@dataclass(frozen=True)
class Status:
    """Facts that all shards must agree on after an operation."""

    n_samples: int
    n_seen: int
    n_labels: int  # 0 for a forest over numbers
    digest: str  # SHA-256 of the weight of the samples of each label


def _status_of(forest: Forest) -> Status:
    if not isinstance(forest, _core.OrderFreeLabelForest):
        return Status(forest.n_samples, forest.n_seen, 0, "")
    weights = forest.label_weights
    return Status(
        forest.n_samples,
        forest.n_seen,
        forest.n_labels,
        hashlib.sha256(weights.tobytes()).hexdigest(),
    )


@dataclass(frozen=True)
class Hello:
    """The first reply of a shard, by which the driver decides whether it can be used."""

    version: str
    machine: str
    fingerprint: str
    status: Status | None = None  # None in the hello of the driver


@dataclass(frozen=True)
class Outcome:
    """The result of an operation or a question."""

    answer: Any = None
    refusal: str | None = None  # an error text; nothing has changed
    status: Status | None = None  # None after a question


def _fixed_rows() -> NDArray[np.float32]:
    """Rows that every processor computes alike."""
    steps = np.arange(600, dtype=np.float32).reshape(200, 3)
    return np.float32(0.0625) * (steps * np.float32(37) % np.float32(101)) - np.float32(3)


@functools.cache
def fingerprint() -> str:
    """A digest of forests grown from fixed numbers: equal where forests agree to the bit."""
    rows = _fixed_rows()
    values = rows[:, 0].astype(np.float64) * 2.0 - rows[:, 1] ** 2
    labels = _core.OrderFreeLabelForest(4, 3, seed=1)
    labels.set_labels(np.arange(2, dtype=np.uint64), np.zeros(2, dtype=np.uint8))
    labels.learn(rows, (values > 0).astype(np.int32))
    numbers = _core.OrderFreeNumberForest(4, 3, seed=1, calibrates=True)
    numbers.learn(rows, values)
    digest = hashlib.sha256()
    for forest in (labels, numbers):
        for arrays in (forest.get_state(), *map(forest.tree, range(4))):
            for name, array in sorted(arrays.items()):
                digest.update(name.encode() + array.tobytes())
    queries = rows + np.float32(0.1)
    for power, spread in ((1.0, 0.0), (2.5, 0.01)):
        digest.update(labels.predict(queries, 1, power, spread)[1].tobytes())
    digest.update(numbers.predict(queries).tobytes())
    return digest.hexdigest()


def hello_from_here(status: Status | None = None) -> Hello:
    """The hello of this process."""
    return Hello(version("onlineforest"), platform.machine(), fingerprint(), status)


class Shard:
    """A shard, and its position: the number of operations it has carried out.

    Parameters
    ----------
    plan : ShardPlan
        Which shard it is.
    start : Start
        Its position and state at the beginning.
    """

    def __init__(self, plan: ShardPlan, start: Start) -> None:
        self._plan = plan
        self._position = start.position
        self._last = Outcome()  # the answer if the latest operation is sent again
        self._forest: Forest
        if start.state is None:
            self._forest = plan.spec.new_shard(plan.held)
        else:
            self._forest = plan.spec.restored_shard(start.state, plan.held, plan.n_threads)

    def hello(self) -> Hello:
        """Version, fingerprint and status."""
        return hello_from_here(_status_of(self._forest))

    def carry_out(self, number: int, operation: Operation) -> Outcome:
        """Carry out the next operation; a repeat of the latest changes nothing."""
        if not isinstance(operation, Operation):
            raise TypeError(f"{operation!r} is not an operation.")
        if number == self._position:  # the driver was interrupted when it sent it
            return self._last
        if number != self._position + 1:
            raise GapError(
                f"{self._plan.name} has carried out {self._position} operations, but received "
                f"operation {number}."
            )
        answer, refusal = self._call(operation.call)
        self._position = number
        self._last = Outcome(answer, refusal, _status_of(self._forest))
        return self._last

    def ask(self, question: Question[Any], position: int) -> Outcome:
        """Answer a question about the forest after `position` operations."""
        if not isinstance(question, Question):
            raise TypeError(f"{question!r} is not a question.")
        if position != self._position:  # an operation failed here without an outcome
            raise GapError(
                f"{self._plan.name} has carried out {self._position} operations, not {position}."
            )
        answer, refusal = self._call(question.answer)
        return Outcome(answer, refusal)

    def _call(self, function: Callable[[Forest, int], Any]) -> tuple[Any, str | None]:
        """An answer, or a refusal, which is the same in all shards; then nothing has changed."""
        try:
            return function(self._forest, self._plan.n_threads), None
        except ValueError as error:
            return None, str(error)
