"""One shard of a forest: carries out numbered operations, each once and in order.

It runs in a process of its own, which imports neither scikit-learn nor Ray. Must not know other
shards.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest import _core
from onlineforest._distributed.errors import GapError
from onlineforest._distributed.messages import (
    AnyForest,
    Operation,
    Question,
    Status,
    status_of,
)
from onlineforest._distributed.snapshots import ShardPlace, read_shard, write_shard
from onlineforest._distributed.splitting import Mixtures, State
from onlineforest._files.errors import ModelFileError
from onlineforest._models.core import CoreSpec


@dataclass(frozen=True)
class ShardPlan:
    """How a shard is built: the core forest it belongs to, and its place in it."""

    spec: CoreSpec[Any]  # of the whole forest
    number: int
    n_shards: int
    held: tuple[int, int]  # its trees, [begin, end)
    n_threads: int
    run: str  # identifies the forest: snapshots of other forests are refused

    @property
    def name(self) -> str:
        """The shard in messages to users."""
        return f"shard {self.number} of {self.n_shards}"


@dataclass(frozen=True)
class Start:
    """What a shard starts from: nothing, a snapshot, or a state; and after which operation."""

    position: int = 0
    snapshot: str | None = None
    state: State | None = None


@dataclass(frozen=True)
class Hello:
    """The first reply of a shard, by which the driver decides whether it can be used."""

    version: str
    machine: str
    fingerprint: str
    position: int
    refusal: str | None = None  # why it cannot start


@dataclass(frozen=True)
class Outcome:
    """The result of an operation, a question or a snapshot."""

    answer: Any = None
    refusal: str | None = None  # an error text; nothing has changed
    status: Status | None = None
    left_out: Mixtures | None = None  # left-out predictions that wait for a calibration


def _fixed_rows() -> NDArray[np.float32]:
    """Rows that every processor computes alike."""
    steps = np.arange(600, dtype=np.float32).reshape(200, 3)
    return np.float32(0.0625) * (steps * np.float32(37) % np.float32(101)) - np.float32(3)


@functools.cache
def fingerprint() -> str:
    """A digest of forests grown from fixed numbers: equal where forests agree to the bit."""
    rows = _fixed_rows()
    values = rows[:, 0].astype(np.float64) * 2.0 - rows[:, 1] ** 2
    common: dict[str, Any] = {
        "lifetime": np.inf, "min_samples_split": 2, "weight_rule": "learned", "seed": 1
    }  # fmt: skip
    labels = _core.LabelForest(4, 3, discount=10.0, leaf_discount=None, **common)
    labels.learn(rows, (values > 0).astype(np.int32), 2)
    numbers = _core.GaussianForest(
        4, 3, discount=None, noise=None, trend=True, calibrate=True, **common
    )
    numbers.learn(rows, values)
    guided_labels = _core.GuidedLabelForest(4, 3, seed=1)
    guided_labels.set_labels(np.arange(2, dtype=np.uint64), np.zeros(2, dtype=np.uint8))
    guided_labels.learn(rows, (values > 0).astype(np.int32))
    guided_numbers = _core.GuidedNumberForest(4, 3, seed=1, calibrates=True)
    guided_numbers.learn(rows, values)
    digest = hashlib.sha256()
    for forest in (labels, numbers, guided_labels, guided_numbers):
        for arrays in (forest.get_state(), *map(forest.tree, range(4))):
            for name, array in sorted(arrays.items()):
                digest.update(name.encode() + array.tobytes())
        digest.update(forest.predict(rows + np.float32(0.1)).tobytes())
    digest.update(guided_labels.predict(rows, 1, 2.5, 0.01).tobytes())  # calibrated
    return digest.hexdigest()


def hello_from_here(position: int = 0) -> Hello:
    """The hello of a shard in this process."""
    return Hello(version("onlineforest"), platform.machine(), fingerprint(), position)


class Shard:
    """A shard, and its position: the number of operations it has carried out.

    Parameters
    ----------
    plan : ShardPlan
        Which shard it is.
    start : Start
        What it starts from.
    """

    def __init__(self, plan: ShardPlan, start: Start) -> None:
        self._plan = plan
        self._position = start.position
        self._lock = threading.Lock()
        self._forest: AnyForest
        self._refusal: str | None = None
        self._last = Outcome()  # of the latest operation
        try:
            self._forest = self._started(start)
        except (ModelFileError, OSError) as error:
            self._refusal = str(error)

    def hello(self) -> Hello:
        """Version, fingerprint and position, and a refusal if the shard could not start."""
        return replace(hello_from_here(self._position), refusal=self._refusal)

    def carry_out(self, number: int, operation: Operation[Any, Any]) -> Outcome:
        """Carry out the next operation. A repeat changes nothing; a gap raises `GapError`."""
        if not isinstance(operation, Operation):
            raise TypeError(f"{operation!r} is not an operation.")
        with self._lock:
            if number == self._position:  # the driver may not have received the outcome
                return self._last
            if number < self._position:
                return Outcome()
            if number > self._position + 1:
                raise GapError(
                    f"{self._plan.name} has carried out {self._position} operations, but received "
                    f"operation {number}."
                )
            answer, refusal = self._call(operation.carry_out)
            self._position = number
            left_out = None
            if isinstance(self._forest, _core.GaussianForest):
                left_out = self._forest.take_left_out()
            self._last = Outcome(answer, refusal, status_of(self._forest), left_out)
            return self._last

    def ask(self, question: Question[Any, Any], position: int | None = None) -> Outcome:
        """Answer a question about the forest after `position` operations."""
        if not isinstance(question, Question):
            raise TypeError(f"{question!r} is not a question.")
        self._check_position(position)
        answer, refusal = self._call(question.answer)
        return Outcome(answer, refusal)

    def snapshot(self, path: str, position: int | None = None) -> Outcome:
        """Write the shard to a file; an error of the system becomes a refusal."""
        self._check_position(position)
        with self._lock:
            try:
                write_shard(path, self._forest.get_state(), self._place())
            except OSError as error:
                return Outcome(refusal=str(error))
        return Outcome(self._position)

    def _check_position(self, position: int | None) -> None:
        """Raise if an operation before `position` failed here without an outcome."""
        if position is not None and position != self._position:
            raise GapError(
                f"{self._plan.name} has carried out {self._position} operations, not {position}."
            )

    def _started(self, start: Start) -> AnyForest:
        spec, held = self._plan.spec, self._plan.held
        state = start.state
        if start.snapshot is not None:
            state = read_shard(start.snapshot, self._place(), spec)
        forest: AnyForest
        if state is None:
            forest = spec.new_shard(held)
            return forest
        try:
            forest = spec.restored_shard(state, held, self._plan.n_threads)
        except ValueError as error:
            raise ModelFileError(f"{start.snapshot} is not a valid shard: {error}") from error
        if forest.n_trees != held[1] - held[0]:
            raise ModelFileError(
                f"{start.snapshot} has {forest.n_trees} trees, but the shard holds "
                f"{held[1] - held[0]}."
            )
        return forest

    def _call(self, function: Callable[[Any, int], Any]) -> tuple[Any, str | None]:
        """An answer, or a refusal, which is the same in all shards; then nothing has changed."""
        try:
            return function(self._forest, self._plan.n_threads), None
        except ValueError as error:
            return None, str(error)

    def _place(self) -> ShardPlace:
        """What a snapshot of this shard says about itself."""
        plan = self._plan
        return ShardPlace(
            run=plan.run,
            number=plan.number,
            n_shards=plan.n_shards,
            held=plan.held,
            n_trees=plan.spec.n_trees,
            position=self._position,
        )
