"""The typed interface between estimators and core forests, and where core forests come from.

Must not know scikit-learn, nor any process but this one: a sharded forest implements these
protocols in a room above. A Mondrian forest is never sharded: its core is `MondrianForest`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._core import (
    WEIGHT_OF_ONE,
    MondrianForest,
    OrderFreeLabelForest,
    OrderFreeNumberForest,
)

State = dict[str, NDArray[Any]]
"""A core forest as named flat arrays."""
Rows = NDArray[np.float32]
Floats = NDArray[np.float64]
Serials = NDArray[np.int64]
Masses = NDArray[np.uint64]
Hashes = NDArray[np.uint64]
LabelVotes = tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    Masses,
    Masses,
    Floats,
]
"""The held labels, the label and the stored weight of each calibrator, stop weights, and masses.

Masses have the shape (n_stop_weights, n_calibrators, n_labels + 1), for each label and the rest:
the sums over all trees that leave this calibrator out, and over half of them. Last, the evidence of
its levels for each label, without itself; without columns if no feature is categorical.
"""
StopWeights = NDArray[np.int64]
NumberVotes = tuple[Floats, NDArray[np.int64], StopWeights, Floats, Floats, Floats]
"""The number and the stored weight of each calibrator, stop weights, and leaves.

Leaves have the shape (n_stop_weights, n_calibrators, n_trees, 2), for the trees that leave
calibrators out: the mean and variance at the node where the tree ends, negative if it is empty.
Then how far the levels of each calibrator lie above the mean of all numbers, without itself, and
the strengths of the categorical features; none if no feature is categorical.
"""
MOST_STOP_WEIGHT = 2**52
"""The limit of stop weights, which are stored weights."""
Weights = NDArray[np.int64] | None
"""Stored weights of samples, of which one that counts once has `WEIGHT_OF_ONE`.

None: each sample counts once.
"""


@runtime_checkable
class OrderFreeCore(Protocol):
    """A core forest of trees whose splits look at the values, whatever these are.

    Parameters are positional: implementations may name them differently. `n_threads` may be
    ignored by an implementation whose trees live in other processes.
    """

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features."""
        ...

    @property
    def n_samples(self) -> int:
        """Number of stored samples."""
        ...

    @property
    def n_seen(self) -> int:
        """Number of samples learned so far, forgotten ones included: the next serial."""
        ...

    @property
    def serials(self) -> Serials:
        """The arrival number of each stored sample, in slot order."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the forest in bytes."""
        ...

    def learn(
        self, rows: Rows, values: NDArray[Any], n_threads: int = 1, weights: Weights = None, /
    ) -> None:
        """Learn a batch of rows with the codes of their labels, or with numbers."""
        ...

    def learn_one(self, row: ArrayLike, value: Any, weight: int = WEIGHT_OF_ONE, /) -> None:
        """Learn one row; TypeError if it is not an array of floats."""
        ...

    def forget(self, serials: Serials, n_threads: int = 1, /) -> None:
        """Forget the samples with these serials."""
        ...

    def forget_rows(self, rows: Rows, values: NDArray[Any], n_threads: int = 1, /) -> Serials:
        """Forget samples by row and target; return the positions of those that are not stored.

        If any is not stored, nothing is forgotten.
        """
        ...

    def keep_latest(self, n: int, n_threads: int = 1, /) -> None:
        """Forget all but the latest `n` samples."""
        ...

    def are_stored(self, serials: Serials, /) -> NDArray[np.uint8]:
        """For each serial 1 if its sample is stored, else 0."""
        ...

    def apply(self, rows: Rows, n_threads: int = 1, stop_weight: int = 0, /) -> NDArray[np.int32]:
        """The node where each row ends in each tree, shape (n_rows, n_trees).

        It enters no node that is lighter than `stop_weight`.
        """
        ...

    def tree(self, index: int, /) -> dict[str, NDArray[Any]]:
        """One tree as writable arrays."""
        ...

    def get_state(self) -> State:
        """The state of the forest."""
        ...

    @property
    def seed(self) -> int:
        """The seed of the trees."""
        ...

    @property
    def version(self) -> int:
        """A number that changes when other samples are stored."""
        ...

    @property
    def values(self) -> NDArray[Any]:
        """The value of each stored sample, in the order of `serials`."""
        ...

    @property
    def weights(self) -> Floats:
        """The weight of each stored sample, in the order of `serials`."""
        ...

    @property
    def sample_numbers(self) -> NDArray[np.int32]:
        """A number for each stored sample, the same for equal ones, in the order of `serials`."""
        ...

    def grow_all(self, n_threads: int = 1, stop_weight: int = 0, /) -> None:
        """Make all pending splits above a stop weight, which changes no answer."""
        ...

    def importances(self, n_threads: int = 1, stop_weight: int = 0, /) -> Floats:
        """The credit of the splits on each feature per sample, shape (n_trees, n_features)."""
        ...

    @property
    def n_levels(self) -> NDArray[np.int64]:
        """The number of levels of each categorical feature that stored samples have."""
        ...

    def levels(self, categorical: int, /) -> NDArray[np.uint64]:
        """The levels of a categorical feature that stored samples have, sorted."""
        ...

    def count_as_seen(self, n_seen: int, /) -> None:
        """Count samples that another forest has seen: `n_seen` is at least this number then."""
        ...

    def votes(
        self,
        n_threads: int = 1,
        least: int = 0,
        limit: int = MOST_STOP_WEIGHT,
        begin: int = 0,
        end: int = 2**62,
        /,
    ) -> tuple[Any, ...]:
        """Votes on the calibrators [begin, end), by the trees that leave them out.

        With each stop weight of [least, limit) that the forest may choose. Calibrators beyond
        their number are left out. `LabelVotes` and `NumberVotes` say what votes are.
        """
        ...

    def votes_at(
        self, n_seen: int, n_threads: int = 1, least: int = 0, limit: int = MOST_STOP_WEIGHT, /
    ) -> tuple[Any, ...]:
        """Votes of this forest after `n_seen` samples, all of which it must still hold."""
        ...

    def votes_after(
        self,
        rows: Rows,
        values: NDArray[Any],
        n_threads: int = 1,
        weights: Weights = None,
        least: int = 0,
        limit: int = MOST_STOP_WEIGHT,
        /,
    ) -> tuple[Any, ...]:
        """Votes of a copy of this forest that learns these samples. This forest stays as it is."""
        ...

    def left_out(
        self, n_threads: int = 1, stop_weight: int = 0, /
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Predict each stored sample from the trees that have not learned it.

        Predictions as `predict` gives them, NaN where there is no such tree, and the number of
        these trees, both in the order of `serials`.
        """
        ...


@runtime_checkable
class OrderFreeLabelCore(OrderFreeCore, Protocol):
    """A core forest of order-free trees that predicts classes.

    A label is known if it is declared or if a sample of it is stored; the probability of all others
    is 0.
    """

    @property
    def n_labels(self) -> int:
        """Number of codes."""
        ...

    @property
    def label_weights(self) -> Floats:
        """The weight of the stored samples of each label, in the order of codes."""
        ...

    @property
    def known_labels(self) -> Hashes:
        """The hashes of the labels that are known, in the order of codes."""
        ...

    def predict(
        self,
        rows: Rows,
        n_threads: int = 1,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
        /,
    ) -> tuple[Hashes, Floats]:
        """The hashes of the known labels in the order of codes, and their probabilities.

        Both are of one moment. The trees enter no node that is lighter than `stop_weight`. The
        probabilities are calibrated as `calibration_by` says.
        """
        ...

    def predict_one(
        self,
        row: ArrayLike,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
        /,
    ) -> tuple[Hashes, Floats]:
        """Answer for one row, as `predict`; TypeError if it is not an array of floats."""
        ...

    def set_labels(self, hashes: NDArray[np.uint64], are_declared: NDArray[np.uint8], /) -> None:
        """Give labels their codes by their hashes; earlier labels keep their codes."""
        ...


@runtime_checkable
class OrderFreeNumberCore(OrderFreeCore, Protocol):
    """A core forest of order-free trees that predicts numbers.

    `predict` gives the mean, the mean variance within leaves and the variance between trees, shape
    (n_rows, 3).
    """

    def predict(
        self,
        rows: Rows,
        n_threads: int = 1,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: Floats | None = None,
        /,
    ) -> Floats:
        """Predictions, one row each. The trees enter no node that is lighter than `stop_weight`.

        With `level_share` times the deviation of the levels of a row in its mean, given the
        strengths of the categorical features.
        """
        ...

    def level_deviations(self, rows: Rows, strengths: Floats, /) -> Floats:
        """How far the levels of each row lie above the mean of all numbers."""
        ...

    def predict_one(
        self,
        row: ArrayLike,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: Floats | None = None,
        /,
    ) -> tuple[float, float, float]:
        """The prediction of one row, as `predict`; TypeError if it is not an array of floats."""
        ...


CoreForest: TypeAlias = MondrianForest | OrderFreeCore
"""A Mondrian forest, which lives in this process, or an order-free one, wherever its trees live."""

if TYPE_CHECKING:  # before Python 3.13, only type checkers know defaults of type variables
    from typing_extensions import TypeVar as TypeVarWithDefault

    Core = TypeVarWithDefault("Core", bound=CoreForest, default=Any)
    OfLabels = TypeVarWithDefault(
        "OfLabels", bound=MondrianForest | OrderFreeLabelCore, default=Any
    )
    OfOrderFree = TypeVarWithDefault("OfOrderFree", bound=OrderFreeCore, default=Any)
else:
    Core = TypeVar("Core", bound=CoreForest)
    OfLabels = TypeVar("OfLabels", bound=MondrianForest | OrderFreeLabelCore)
    OfOrderFree = TypeVar("OfOrderFree", bound=OrderFreeCore)


@dataclass(frozen=True)
class CoreKind(Generic[Core]):
    """A kind of core forest: the trees that it has and what it predicts.

    Attributes
    ----------
    name : str
        Identifies the kind, in messages to other processes too.
    make : callable
        ``make(n_trees, n_features, **options)`` makes an empty forest in this process.
    from_state : callable
        ``from_state(state, n_threads=1, max_bytes=...)`` makes the forest of a state in this
        process, and checks it. That of an order-free forest takes ``*, n_trees=0, first_tree=0``,
        too.
    has_trees_in_state : bool
        Whether a state holds the trees. If not, they are grown again from the samples, and their
        number and that of the features are options.
    optional_arrays : frozenset of str
        Arrays that a state may lack.
    """

    name: str
    make: Callable[..., Core]
    from_state: Callable[..., Core]
    has_trees_in_state: bool = True
    optional_arrays: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[Callable[[str], CoreKind[Any]], tuple[str]]:
        # By name: functions of the compiled core cannot be pickled.
        return _kind_named, (self.name,)


# A state lacks the samples of arrivals if each is a sample of its own, and the weights if each
# counts once.
MONDRIAN: CoreKind[MondrianForest] = CoreKind(
    "MondrianForest",
    MondrianForest,
    MondrianForest.from_state,
    optional_arrays=frozenset({"sample_of"}),
)
ORDER_FREE_LABELS: CoreKind[OrderFreeLabelCore] = CoreKind(
    "OrderFreeLabelForest",
    OrderFreeLabelForest,
    OrderFreeLabelForest.from_state,
    has_trees_in_state=False,
    optional_arrays=frozenset({"weights"}),
)
ORDER_FREE_NUMBERS: CoreKind[OrderFreeNumberCore] = CoreKind(
    "OrderFreeNumberForest",
    OrderFreeNumberForest,
    OrderFreeNumberForest.from_state,
    has_trees_in_state=False,
    optional_arrays=frozenset({"weights"}),
)


def _kind_named(name: str) -> CoreKind[Any]:
    kinds: tuple[CoreKind[Any], ...] = (MONDRIAN, ORDER_FREE_LABELS, ORDER_FREE_NUMBERS)
    return {kind.name: kind for kind in kinds}[name]


@dataclass(frozen=True)
class CoreSpec(Generic[Core]):
    """Which core forest an estimator needs.

    Attributes
    ----------
    kind : CoreKind
        Its kind of trees, and whether it predicts labels or numbers.
    n_trees, n_features : int
        Size of the forest.
    options : mapping
        All other keyword arguments of the core forest, `seed` among them.
    """

    kind: CoreKind[Core]
    n_trees: int
    n_features: int
    options: Mapping[str, Any]

    @property
    def seed(self) -> int:
        """The seed of the trees."""
        return int(self.options["seed"])

    @property
    def width(self) -> int:
        """Number of cells of a row: a categorical feature has two."""
        return self.n_features + int(self.options.get("n_categorical", 0))

    def new_shard(self, held: tuple[int, int]) -> Core:
        """An empty order-free forest in this process that holds the trees [begin, end) alone."""
        begin, end = held
        return self.kind.make(end - begin, self.n_features, first_tree=begin, **self.options)

    def restored_shard(self, state: State, held: tuple[int, int], n_threads: int) -> Core:
        """A shard with the samples of a state, which holds no trees: that of any shard will do."""
        begin, end = held
        return self.kind.from_state(state, n_threads, n_trees=end - begin, first_tree=begin)


class CoreSource(ABC):
    """Makes the core forests of an estimator: in this process, or somewhere else."""

    @abstractmethod
    def new(self, spec: CoreSpec[Core]) -> Core:
        """An empty core forest."""

    @abstractmethod
    def restore(self, spec: CoreSpec[Core], state: State) -> Core:
        """The core forest of this state, which was built with `spec`."""

    def are_trees_of_samples(self, core: OrderFreeCore) -> bool | None:  # noqa: ARG002
        """Whether the trees are those that grow from the stored samples again.

        None if the caller has to find out; trees that live elsewhere are compared there.
        """
        return None


class LocalCores(CoreSource):
    """The source of core forests in this process.

    Parameters
    ----------
    n_threads : int, default=1
        Number of threads that `restore` uses.
    max_bytes : int or None, default=None
        `restore` raises `TooLargeError` for a forest that would take more memory.
    """

    def __init__(self, n_threads: int = 1, max_bytes: int | None = None) -> None:
        self._n_threads = n_threads
        self._limit = {} if max_bytes is None else {"max_bytes": max_bytes}

    def new(self, spec: CoreSpec[Core]) -> Core:
        """An empty core forest."""
        return spec.kind.make(spec.n_trees, spec.n_features, **spec.options)

    def restore(self, spec: CoreSpec[Core], state: State) -> Core:
        """The core forest of this state."""
        return spec.kind.from_state(state, self._n_threads, **self._limit)


LOCAL = LocalCores()
