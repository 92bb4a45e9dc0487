"""Messages from the driver to its shards: operations change a forest, questions do not.

A message names a method of the core forest. There is a class of questions for each kind of answer.
Must not know processes, or how messages travel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import OrderFreeLabelForest, OrderFreeNumberForest
from onlineforest._forests.core import OrderFreeLabelCore, OrderFreeNumberCore

Forest = OrderFreeLabelForest | OrderFreeNumberForest
Answer = TypeVar("Answer")

PROPERTIES = frozenset(
    name
    for core in (OrderFreeLabelCore, OrderFreeNumberCore)
    for base in core.__mro__
    for name, member in vars(base).items()
    if isinstance(member, property)
)
"""Names of the properties of core forests."""
_WITHOUT_THREADS = frozenset(
    {
        "are_stored", "count_as_seen", "finish", "get_state", "level_deviations", "levels",
        "of_all_samples", "set_labels", "tree",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Message:
    """A call of a method of the core forest, or a property of it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def call(self, forest: Forest, n_threads: int) -> Any:
        """Call the method on `n_threads` threads, or get the property."""
        found = getattr(forest, self.name)
        if not callable(found):
            return found
        threads = {} if self.name in _WITHOUT_THREADS else {"n_threads": n_threads}
        return found(**self.arguments, **threads)


@dataclass(frozen=True, eq=False)
class Operation(Message):
    """A change of a forest. Each shard carries it out once, in the order of its number.

    `ValueError` means that nothing has changed.
    """

    name: Literal["count_as_seen", "forget", "forget_rows", "keep_latest", "learn", "set_labels"]
    n_new: int = 0  # samples that it gives to the forest


@dataclass(frozen=True, eq=False)
class Question(Message, Generic[Answer]):
    """A call that changes no answer."""

    def answer(self, forest: Forest, n_threads: int) -> Answer:
        """Ask the forest."""
        return self.call(forest, n_threads)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class PropertyQuestion(Question[NDArray[Any]]):
    """Asks for an array that is a property of the core forest."""

    def __post_init__(self) -> None:
        if self.name not in PROPERTIES:
            raise ValueError(f"{self.name!r} is not a property of core forests")


@dataclass(frozen=True, eq=False)
class ArrayQuestion(Question[NDArray[Any]]):
    """Asks for an array: an entry, or a row, per sample, query, label or tree."""

    name: Literal[
        "apply",
        "are_stored",
        "importances",
        "leaves",
        "level_deviations",
        "levels",
        "masses",
        "of_all_samples",
    ]


@dataclass(frozen=True, eq=False)
class ArraysQuestion(Question[tuple[NDArray[Any], ...]]):
    """Asks for several arrays: predictions of trees for samples that they leave out."""

    name: Literal[
        "finish", "left_out_leaves", "left_out_masses", "votes", "votes_after", "votes_at"
    ]


@dataclass(frozen=True, eq=False)
class NamedArraysQuestion(Question[dict[str, NDArray[Any]]]):
    """Asks for a tree or the state of a shard, which is its samples."""

    name: Literal["get_state", "tree"]


@dataclass(frozen=True, eq=False)
class NumberQuestion(Question[int]):
    """Asks for the memory that a shard takes, in bytes."""

    name: Literal["nbytes"] = "nbytes"


@dataclass(frozen=True, eq=False)
class GrowthQuestion(Question[None]):
    """Asks a shard to split all blocks above a stop weight, which changes no answer."""

    name: Literal["grow_all"] = "grow_all"


@dataclass(frozen=True, eq=False)
class TruthQuestion(Question[bool]):
    """Asks whether the trees of a shard are those of its samples: grows them a second time."""

    name: Literal["are_trees_of_samples"] = "are_trees_of_samples"

    def answer(self, forest: Forest, n_threads: int) -> bool:
        """Compare the trees with those that the samples give."""
        again = type(forest).from_state(forest.get_state(), n_threads)
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


def nbytes_of(message: Any) -> int:
    """Bytes of the arrays in a message."""
    if is_dataclass(message):
        message = vars(message)
    if isinstance(message, Mapping):
        return sum(map(nbytes_of, message.values()))
    return message.nbytes if isinstance(message, np.ndarray) else 0
