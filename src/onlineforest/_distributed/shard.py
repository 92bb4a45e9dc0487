"""One part of a forest, which carries out numbered operations, each once and in order.

It lives in a process of its own. Knows nothing of Ray, or of other parts.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np

from onlineforest import _core
from onlineforest._distributed.shares import State
from onlineforest._distributed.snapshots import read_part, write_part
from onlineforest._files.container import ModelFileError

# What changes a forest: has a number, and is done once. And what only asks.
_OPERATIONS = {"learn", "forget", "forget_rows", "keep_latest", "refresh", "set_calibration"}
_QUESTIONS = {
    *("predict", "predict_terms", "predict_from", "novelty", "novelty_terms", "novelty_from"),
    *("laws", "quantiles", "quantiles_from", "log_density", "log_density_from", "apply"),
    *("relevance", "are_stored", "tree", "get_state", "check_invariants"),
}
_PROPERTIES = {"serials", "feature_weights", "discount_rate", "leaf_discount", "noise", "nbytes"}
_WITHOUT_THREADS = {
    *("set_calibration", "predict_from", "novelty_from"),
    *("are_stored", "tree", "get_state", "check_invariants"),
}


class GapError(RuntimeError):
    """An operation came before the one that precedes it."""


@dataclass(frozen=True)
class PartPlan:
    """What a part is built with: that of the whole forest, and its place in it."""

    core: str  # the name of a core forest
    n_trees: int  # of the whole
    n_features: int
    options: Mapping[str, Any]
    number: int
    n_parts: int
    held: tuple[int, int]
    n_threads: int
    run: str  # tells snapshots of this forest from those of others

    @property
    def name(self) -> str:
        """How the part is called in messages."""
        return f"shard {self.number} of {self.n_parts}"


@dataclass(frozen=True)
class Start:
    """Where a part begins: with a snapshot, or with a state after so many operations."""

    position: int = 0
    snapshot: str | None = None
    state: State | None = None


@dataclass(frozen=True)
class Hello:
    """What a part says of itself when it is there."""

    version: str
    machine: str
    fingerprint: str
    position: int
    refusal: str | None = None  # why it cannot begin


@dataclass(frozen=True)
class Status:
    """What all parts must agree on after an operation."""

    n_points: int
    n_seen: int
    n_classes: int
    measure: str


@dataclass(frozen=True)
class Outcome:
    """What became of an operation or a question."""

    answer: Any = None
    refusal: str | None = None  # then nothing has changed
    status: Status | None = None
    left_out: Any = None  # what a part of a regressor's forest has to say for the calibration


@functools.cache
def fingerprint() -> str:
    """A digest of forests grown from fixed numbers: the same where forests are, to the bit."""
    steps = np.arange(600, dtype=np.float32).reshape(200, 3)
    rows = np.ascontiguousarray(np.sin(steps * np.float32(0.7)) * np.float32(3.0))
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
    digest = hashlib.sha256()
    for forest in (labels, numbers):
        for name, array in sorted(forest.get_state().items()):
            digest.update(name.encode() + array.tobytes())
        digest.update(forest.predict(rows + np.float32(0.1)).tobytes())
    return digest.hexdigest()


def hello_from_here(position: int = 0) -> Hello:
    """What a part in this process says of itself."""
    return Hello(version("onlineforest"), platform.machine(), fingerprint(), position)


class Shard:
    """A part of a forest, and how many operations it has carried out.

    Parameters
    ----------
    plan : PartPlan
        What it is.
    start : Start
        Where it begins.
    """

    def __init__(self, plan: PartPlan, start: Start) -> None:
        self._plan = plan
        self._position = start.position
        self._lock = threading.Lock()
        self._forest: Any = None
        self._refusal: str | None = None
        self._last = Outcome()  # what became of the operation carried out last
        try:
            self._forest = self._begun(start)
        except (ModelFileError, OSError) as error:
            self._refusal = str(error)

    def hello(self) -> Hello:
        """Say what this is, so that others can tell whether it can be one of them."""
        return replace(hello_from_here(self._position), refusal=self._refusal)

    def carry_out(
        self,
        number: int,
        operation: str,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome:
        """Carry out an operation, if it is the next; a repeat is ignored, a gap refused."""
        if operation not in _OPERATIONS:
            raise ValueError(f"There is no operation {operation!r}.")
        with self._lock:
            if number == self._position:  # whoever asked may not have had the answer
                return self._last
            if number < self._position:
                return Outcome()
            if number > self._position + 1:
                raise GapError(
                    f"{self._plan.name} has carried out {self._position} operations, and was given "
                    f"operation {number}."
                )
            answer, refusal = self._call(operation, arguments, keywords)
            self._position = number
            left_out = None
            if hasattr(self._forest, "take_left_out"):
                left_out = self._forest.take_left_out()
            self._last = Outcome(answer, refusal, self._status(), left_out)
            return self._last

    def ask(
        self, question: str, arguments: tuple[Any, ...] = (), position: int | None = None
    ) -> Outcome:
        """Answer a question about the forest after so many operations, which stays as it is."""
        self._check_position(position)
        if question == "status":
            return Outcome(self._status())
        if question in _PROPERTIES:
            return Outcome(getattr(self._forest, question))
        if question not in _QUESTIONS:
            raise ValueError(f"There is no question {question!r}.")
        answer, refusal = self._call(question, arguments, {})
        return Outcome(answer, refusal)

    def snapshot(self, path: str, position: int | None = None) -> Outcome:
        """Write the part to a file; what hinders it is told, not raised."""
        self._check_position(position)
        with self._lock:
            try:
                write_part(path, self._forest.get_state(), self._place())
            except OSError as error:
                return Outcome(refusal=str(error))
        return Outcome(self._position)

    def _check_position(self, position: int | None) -> None:
        """Raise if it has not come as far as it should: an operation may have failed here."""
        if position is not None and position != self._position:
            raise GapError(
                f"{self._plan.name} has carried out {self._position} operations, not {position}."
            )

    def _begun(self, start: Start) -> Any:
        plan = self._plan
        kind = getattr(_core, plan.core)
        state = start.state
        if start.snapshot is not None:
            state = read_part(start.snapshot, self._place(), kind, plan.n_features, plan.options)
        if state is None:
            return kind(plan.n_trees, plan.n_features, held=plan.held, **plan.options)
        try:
            forest = kind.from_state(
                state, plan.n_threads, n_trees=plan.n_trees, first_tree=plan.held[0]
            )
        except ValueError as error:
            raise ModelFileError(f"{start.snapshot} is not a valid part: {error}") from error
        if forest.n_trees != plan.held[1] - plan.held[0]:
            raise ModelFileError(f"{start.snapshot} holds another number of trees.")
        return forest

    def _call(
        self, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[Any, str | None]:
        if name == "set_calibration" and (self._forest.n_points == 0 or self._forest.scale == 0.0):
            return None, None  # meanwhile there is nothing to calibrate any more
        threads = {} if name in _WITHOUT_THREADS else {"n_threads": self._plan.n_threads}
        try:
            return getattr(self._forest, name)(*arguments, **keywords, **threads), None
        except ValueError as error:  # the same in all parts, and nothing has changed
            return None, str(error)

    def _status(self) -> Status:
        forest = self._forest
        names = ("feature_weights", "discount_rate", "leaf_discount", "noise", "scale")
        digest = hashlib.sha256()
        for name in names:
            digest.update(np.asarray(getattr(forest, name, ()), dtype=np.float64).tobytes())
        n_classes = getattr(forest, "n_classes", 0)
        return Status(forest.n_points, forest.n_seen, n_classes, digest.hexdigest())

    def _place(self) -> dict[str, Any]:
        """What a snapshot must say to be one of this part."""
        plan = self._plan
        return {
            "run": plan.run,
            "number": plan.number,
            "n_parts": plan.n_parts,
            "held": list(plan.held),
            "n_trees": plan.n_trees,
            "position": self._position,
        }
