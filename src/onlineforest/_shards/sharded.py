"""Sharded order-free forests: the interface of a core forest, the same answers to the bit.

Turns calls into operations and questions, and joins the answers of shards. Masses of labels are
integers, so shards send sums. Moments of numbers are rounded, so shards send the leaf of each tree
and the driver combines them in the order of trees. Must not know how messages travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import WEIGHT_OF_ONE, moments_of_leaves
from onlineforest._forests.core import (
    MOST_STOP_WEIGHT,
    ORDER_FREE_LABELS,
    ORDER_FREE_NUMBERS,
    Floats,
    Hashes,
    LabelVotes,
    Masses,
    NumberVotes,
    OrderFreeCore,
    OrderFreeLabelCore,
    OrderFreeNumberCore,
    Rows,
    Serials,
    State,
    Weights,
)
from onlineforest._shards.keeper import ShardKeeper
from onlineforest._shards.messages import (
    PROPERTIES,
    ArrayQuestion,
    ArraysQuestion,
    GrowthQuestion,
    NamedArraysQuestion,
    NumberQuestion,
    Operation,
    PropertyQuestion,
    TruthQuestion,
)

_MAX_NUMBERS = 2**24  # in the answers to one question: more rows are asked for in pieces


Sharded = TypeVar("Sharded")


def with_properties_of(core: type) -> Callable[[type[Sharded]], type[Sharded]]:
    """A decorator that adds the properties of a protocol that a class does not define itself.

    One shard answers them for all, since each has all samples.
    """

    def asking(name: str, doc: str | None) -> property:
        return property(lambda self: self.keeper.ask_any(PropertyQuestion(name)), doc=doc)

    def completed(sharded: type[Sharded]) -> type[Sharded]:
        for name in PROPERTIES:
            member = getattr(core, name, None)
            if member is not None and not hasattr(sharded, name):
                setattr(sharded, name, asking(name, member.__doc__))
        return sharded

    return completed


@with_properties_of(OrderFreeCore)
class ShardedForest:
    """A core forest whose trees live in shards. A shard decides itself how many threads it uses.

    Parameters
    ----------
    keeper : ShardKeeper
        Keeps the shards.
    """

    def __init__(self, keeper: ShardKeeper) -> None:
        self.keeper = keeper
        self._spec = keeper.plans[0].spec

    @property
    def n_trees(self) -> int:
        """Number of trees of the whole forest."""
        return self._spec.n_trees

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._spec.n_features

    @property
    def seed(self) -> int:
        """The seed of the trees."""
        return self._spec.seed

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.keeper.plans)

    @property
    def n_samples(self) -> int:
        """Number of samples stored."""
        return self.keeper.status().n_samples

    @property
    def n_seen(self) -> int:
        """Number of samples given."""
        return self.keeper.n_seen

    @property
    def version(self) -> int:
        """A number that changes when other samples are stored."""
        return self.keeper.position

    @property
    def nbytes(self) -> int:
        """Memory of all shards in bytes."""
        return sum(self.keeper.ask_all(NumberQuestion()))

    # Questions that one shard answers for all, since each has all samples.

    def levels(self, categorical: int, /) -> NDArray[np.uint64]:
        """The levels of a categorical feature that samples have, sorted."""
        return self.keeper.ask_any(ArrayQuestion("levels", {"categorical": categorical}))

    def are_stored(self, serials: Serials, /) -> NDArray[np.uint8]:
        """Which of these serials belong to stored samples."""
        return self.keeper.ask_any(ArrayQuestion("are_stored", {"serials": serials}))

    def get_state(self) -> State:
        """The state of the whole forest, which is its samples."""
        state = self.keeper.ask_any(NamedArraysQuestion("get_state"))
        trees = {"n_trees": self.n_trees, "first_tree": 0}  # the state has those of the shard
        return state | {f"options.{k}": np.array([n], dtype=np.uint64) for k, n in trees.items()}

    # Changes.

    def learn(
        self, rows: Rows, values: NDArray[Any], _n_threads: int = 1, weights: Weights = None, /
    ) -> None:
        """Learn rows with class codes or numbers."""
        samples = {"rows": rows, "values": values, "weights": weights}
        self.keeper.operate(Operation("learn", samples, n_new=len(rows)))

    def forget(self, serials: Serials, _n_threads: int = 1, /) -> None:
        """Forget samples by serial."""
        self.keeper.operate(Operation("forget", {"serials": serials}))

    def forget_rows(self, rows: Rows, values: NDArray[Any], _n_threads: int = 1, /) -> Serials:
        """Forget samples by row and target; return the positions of those that are not stored."""
        operation = Operation("forget_rows", {"rows": rows, "values": values})
        return cast(Serials, self.keeper.operate(operation))

    def keep_latest(self, n: int, _n_threads: int = 1, /) -> None:
        """Forget all but the latest samples."""
        self.keeper.operate(Operation("keep_latest", {"n": n}))

    def count_as_seen(self, n_seen: int, /) -> None:
        """Count samples that another forest has seen and forgotten."""
        n_more = n_seen - self.n_seen
        if n_more > 0:
            self.keeper.operate(Operation("count_as_seen", {"n_seen": n_seen}, n_new=n_more))

    # Trees.

    def tree(self, index: int, /) -> dict[str, NDArray[Any]]:
        """One tree as arrays."""
        for plan in self.keeper.plans:
            begin, end = plan.held
            if begin <= index < end:
                question = NamedArraysQuestion("tree", {"index": index - begin})
                return self.keeper.ask_one(plan.number, question)
        raise IndexError(f"tree {index} is outside [0, n_trees = {self.n_trees})")

    def apply(self, rows: Rows, _n_threads: int = 1, stop_weight: int = 0, /) -> NDArray[np.int32]:
        """The node where each row ends in each tree."""
        question = ArrayQuestion("apply", {"rows": rows, "stop_weight": stop_weight})
        return np.concatenate(self.keeper.ask_all(question), axis=1)

    def importances(self, _n_threads: int = 1, stop_weight: int = 0, /) -> Floats:
        """The credit of each feature in each tree."""
        question = ArrayQuestion("importances", {"stop_weight": stop_weight})
        return np.concatenate(self.keeper.ask_all(question))

    def grow_all(self, _n_threads: int = 1, stop_weight: int = 0, /) -> None:
        """Split all blocks above a stop weight, which changes no answer."""
        self.keeper.ask_all(GrowthQuestion(arguments={"stop_weight": stop_weight}))

    def votes(
        self,
        _n_threads: int = 1,
        least: int = 0,
        limit: int = MOST_STOP_WEIGHT,
        begin: int = 0,
        end: int = 2**62,
        /,
    ) -> tuple[Any, ...]:
        """The votes on the calibrators, by the trees that leave them out."""
        what = {"least": least, "limit": limit, "begin": begin, "end": end}
        return self._joined(self.keeper.ask_all(ArraysQuestion("votes", what)))

    def votes_at(
        self, n_seen: int, _n_threads: int = 1, least: int = 0, limit: int = MOST_STOP_WEIGHT, /
    ) -> tuple[Any, ...]:
        """The votes after `n_seen` samples, all of which the forest must still hold."""
        what = {"n_seen": n_seen, "least": least, "limit": limit}
        return self._joined(self.keeper.ask_all(ArraysQuestion("votes_at", what)))

    def votes_after(
        self,
        rows: Rows,
        values: NDArray[Any],
        _n_threads: int = 1,
        weights: Weights = None,
        least: int = 0,
        limit: int = MOST_STOP_WEIGHT,
        /,
    ) -> tuple[Any, ...]:
        """The votes as they would be after these samples, which the forest does not learn."""
        what = {"rows": rows, "values": values, "weights": weights, "least": least, "limit": limit}
        return self._joined(self.keeper.ask_all(ArraysQuestion("votes_after", what)))

    def _joined(self, shards: list[Any]) -> tuple[Any, ...]:
        """The votes of all shards."""
        raise NotImplementedError

    def are_trees_of_samples(self) -> bool:
        """Whether each shard grows the trees that it has from its samples again."""
        answers: list[bool] = self.keeper.ask_all(TruthQuestion())
        return all(answers)

    def _one_row(self, row: Any) -> Rows:
        """One row as a batch; `TypeError` if it is not an array of numbers, as from the core."""
        if not isinstance(row, np.ndarray) or row.ndim != 1 or row.dtype.kind not in "fiub":
            raise TypeError(f"a row must be a one-dimensional array of numbers, not {row!r}")
        if len(row) != self._spec.width:
            raise ValueError(f"x has {len(row)} features, but this forest has {self._spec.width}")
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(row, dtype=np.float32)
        infinite = np.flatnonzero(np.isinf(array))
        if len(infinite):
            raise ValueError(
                "x contains infinity or a value too large for float32: "
                f"{row[infinite[0]]:g} at feature {infinite[0]}"
            )
        return array[np.newaxis]


@with_properties_of(OrderFreeLabelCore)
class ShardedLabelForest(ShardedForest):
    """A sharded `OrderFreeLabelForest`."""

    _n_labels_sent = 0

    @property
    def n_labels(self) -> int:
        """Number of codes."""
        # Does not wait for batches in progress: only `set_labels` changes it.
        return self._n_labels_sent or self.keeper.status().n_labels

    def set_labels(self, hashes: NDArray[np.uint64], are_declared: NDArray[np.uint8], /) -> None:
        """Give labels their codes."""
        labels = {"hashes": hashes, "are_declared": are_declared}
        self.keeper.operate(Operation("set_labels", labels))
        self._n_labels_sent = len(hashes)

    def learn_one(self, row: Any, value: int, weight: int = WEIGHT_OF_ONE, /) -> None:
        """Learn one row."""
        values = np.array([value], dtype=np.int32)
        self.learn(self._one_row(row), values, 1, np.array([weight]))

    def predict(
        self,
        rows: Rows,
        _n_threads: int = 1,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
        /,
    ) -> tuple[Hashes, Floats]:
        """The hashes of the known labels, and their probabilities."""
        answers = []
        how: dict[str, Any] = {"power": power, "spread": spread, "level_power": level_power}
        with self.keeper.at_one_position():
            for begin, end in _ranges_of(len(rows), self._width()):
                queries = {"rows": rows[begin:end], "stop_weight": stop_weight}
                masses = self.keeper.ask_all(ArrayQuestion("masses", queries))
                if level_power > 0:
                    how["rows"] = rows[begin:end]
                answers.append(self._finished(masses, how))
        return answers[0][0], np.concatenate([probabilities for _, probabilities in answers])

    def predict_one(
        self,
        row: Any,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
        /,
    ) -> tuple[Hashes, Floats]:
        """The hashes of the known labels, and their probabilities for one row."""
        how = power, spread, stop_weight, level_power
        hashes, probabilities = self.predict(self._one_row(row), 1, *how)
        return hashes, probabilities[0]

    def left_out(
        self, _n_threads: int = 1, stop_weight: int = 0, /
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Predict each stored sample from the trees that have not learned it."""
        answers = []
        with self.keeper.at_one_position():
            for begin, end in _ranges_of(self.n_samples, self._width()):
                samples = {"begin": begin, "end": end, "stop_weight": stop_weight}
                shards = self.keeper.ask_all(ArraysQuestion("left_out_masses", samples))
                n_trees = np.sum([n for _, n in shards], axis=0)
                _, probabilities = self._finished([masses for masses, _ in shards], {})
                are_known = n_trees[:, np.newaxis] > 0
                answers.append((np.where(are_known, probabilities, np.nan), n_trees))
        predictions, counts = zip(*answers, strict=True)
        return np.concatenate(predictions), np.concatenate(counts)

    def _finished(self, masses: list[Masses], how: Mapping[str, Any]) -> tuple[Hashes, Floats]:
        """The known labels and their probabilities, given the masses of all shards.

        `how` says how they are calibrated.
        """
        sums = {"sums": np.sum(masses, axis=0), **how}
        hashes, probabilities = self.keeper.ask_any(ArraysQuestion("finish", sums))
        return hashes, probabilities

    def _joined(self, shards: list[LabelVotes]) -> LabelVotes:
        held, labels, weights, stops, *_, evidence = shards[0]
        votes = np.sum([each[4] for each in shards], axis=0)
        half = np.sum([each[5] for each in shards], axis=0)
        return held, labels, weights, stops, votes, half, evidence

    def _width(self) -> int:
        """How many numbers all shards send for a row."""
        return self.n_shards * (self.n_labels + 1)


@with_properties_of(OrderFreeNumberCore)
class ShardedNumberForest(ShardedForest):
    """A sharded `OrderFreeNumberForest`."""

    def learn_one(self, row: Any, value: float, weight: int = WEIGHT_OF_ONE, /) -> None:
        """Learn one row."""
        values = np.array([value], dtype=np.float64)
        self.learn(self._one_row(row), values, 1, np.array([weight]))

    def predict(
        self,
        rows: Rows,
        _n_threads: int = 1,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: Floats | None = None,
        /,
    ) -> Floats:
        """Mean, variance within leaves and variance between trees."""
        with self.keeper.at_one_position():
            ranges = _ranges_of(len(rows), 2 * self.n_trees)
            answers = [self._predict(rows[begin:end], stop_weight) for begin, end in ranges]
            moments = np.concatenate(answers)
            if level_share > 0 and strengths is not None:
                moments[:, 0] += level_share * self.level_deviations(rows, strengths)
            return moments

    def level_deviations(self, rows: Rows, strengths: Floats, /) -> Floats:
        """How far the levels of each row lie above the mean of all numbers."""
        question = ArrayQuestion("level_deviations", {"rows": rows, "strengths": strengths})
        return self.keeper.ask_any(question)

    def _predict(self, rows: Rows, stop_weight: int) -> Floats:
        question = ArrayQuestion("leaves", {"rows": rows, "stop_weight": stop_weight})
        leaves = self.keeper.ask_all(question)
        moments, n_trees = moments_of_leaves(np.concatenate(leaves, axis=1))
        if not n_trees.all():  # no tree knows anything about a row
            moments[n_trees == 0] = self.keeper.ask_any(ArrayQuestion("of_all_samples"))
        return moments

    def predict_one(
        self,
        row: Any,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: Floats | None = None,
        /,
    ) -> tuple[float, float, float]:
        """The prediction of one row."""
        how = stop_weight, level_share, strengths
        mean, within, between = self.predict(self._one_row(row), 1, *how)[0].tolist()
        return mean, within, between

    def left_out(
        self, _n_threads: int = 1, stop_weight: int = 0, /
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Predict each stored sample from the trees that have not learned it."""
        with self.keeper.at_one_position():
            n = self.n_samples
            moments, n_trees = np.full((n, 3), np.nan), np.zeros(n, dtype=np.int64)
            for begin, end in _ranges_of(n, 2 * self.n_trees):
                samples = {"begin": begin, "end": end, "stop_weight": stop_weight}
                shards = self.keeper.ask_all(ArraysQuestion("left_out_leaves", samples))
                places = shards[0][0]
                leaves = np.concatenate([leaves for _, leaves in shards], axis=1)
                moments[places], n_trees[places] = moments_of_leaves(leaves)
        return moments, n_trees

    def _joined(self, shards: list[NumberVotes]) -> NumberVotes:
        numbers, weights, stops, _, deviations, strengths = shards[0]
        leaves = np.concatenate([each[3] for each in shards], axis=2)
        return numbers, weights, stops, leaves, deviations, strengths


def _ranges_of(n: int, width: int) -> list[tuple[int, int]]:
    """[0, n) in ranges, at least one, whose answers of `width` numbers each are not too large."""
    n_together = max(_MAX_NUMBERS // width, 1)
    return [(i, min(i + n_together, n)) for i in range(0, max(n, 1), n_together)]


SHARDED_FORESTS: dict[str, type[ShardedForest]] = {
    ORDER_FREE_LABELS.name: ShardedLabelForest,
    ORDER_FREE_NUMBERS.name: ShardedNumberForest,
}
"""The class of sharded forests for each kind of core forest, by name."""
