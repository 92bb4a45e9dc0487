"""Sharded Mondrian forests: the interface of a core forest, the same answers to the bit.

Turns calls into operations and questions, and joins the answers of shards. Must not know how
messages travel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import UNITS_PER_SAMPLE, Quantity, add_terms
from onlineforest._distributed import messages
from onlineforest._distributed.sharded_base import Floats, Rows, ShardedForest, one_row, pieces_of
from onlineforest._distributed.splitting import Mixtures, join_mixtures
from onlineforest._models.core import Units

_COMPONENTS_PER_TREE = 16  # roughly, in the mixture of a row


class ShardedMondrianForest(ShardedForest):
    """A core forest of Mondrian trees that live in shards."""

    @property
    def feature_weights(self) -> Floats:
        """The weight of each feature."""
        return self.keeper.ask_first(messages.FeatureWeights())

    @property
    def discount_rate(self) -> float:
        """The discount per unit of time."""
        return self.keeper.ask_first(messages.DiscountRate())

    def refresh(self, _n_threads: int = 1, /) -> None:
        """Recompute the measure from the stored samples."""
        self.keeper.operate(messages.Refresh())

    def relevance(self, _n_threads: int = 1, /) -> Floats:
        """The relevance of each feature."""
        return self.keeper.ask_first(messages.Relevance())

    def novelty(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """The novelty of each row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Novelty(rows))
        return self._summed(Quantity.NOVELTY, rows, width=1)

    def check_invariants(self) -> None:
        """Raise if a shard is inconsistent."""
        self.keeper.ask_all(messages.CheckInvariants())

    def predict(self, rows: Rows, _n_threads: int = 1, /) -> Floats:
        """Predictions, one row each."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Predict(rows))
        return self._summed(Quantity.PREDICTION, rows, self._prediction_width())

    def _prediction_width(self) -> int:
        """How many numbers a tree adds to the prediction of a row."""
        raise NotImplementedError

    def _summed(self, quantity: Quantity, rows: Rows, width: int) -> Floats:
        """A quantity of each row that is a sum over trees of `width` numbers."""
        n_most = width * self.n_trees  # a shard may have to send the terms of single trees
        return np.concatenate([self._sum_of(quantity, piece) for piece in pieces_of(rows, n_most)])

    def _sum_of(self, quantity: Quantity, rows: Rows) -> Floats:
        answers = self.keeper.ask_all(messages.Terms(quantity, rows))
        shards = [
            (*plan.held, terms) for plan, (terms, _) in zip(self.keeper.plans, answers, strict=True)
        ]
        sums = add_terms(self.n_trees, shards)
        n_grown = sum(n for _, n in answers)
        return self.keeper.ask_first(messages.Finish(quantity, rows, sums, n_grown))


class ShardedLabelForest(ShardedMondrianForest):
    """A sharded `LabelForest`."""

    @property
    def n_classes(self) -> int:
        """Number of class codes."""
        return self.keeper.status().n_classes

    @property
    def leaf_discount(self) -> float:
        """The smallest discount of a leaf."""
        return self.keeper.ask_first(messages.LeafDiscount())

    def learn(
        self,
        rows: Rows,
        labels: NDArray[np.int32],
        n_classes: int,
        _n_threads: int = 1,
        one_by_one: bool = False,
        units: Units = None,
        /,
    ) -> None:
        """Learn rows with class codes."""
        self.keeper.operate(messages.LearnLabels(rows, labels, n_classes, one_by_one, units))

    def learn_one(
        self, row: Any, label: int, n_classes: int, units: int = UNITS_PER_SAMPLE, /
    ) -> None:
        """Learn one row."""
        labels = np.array([label], dtype=np.int32)
        self.learn(one_row(row, self.n_features), labels, n_classes, 1, False, np.array([units]))

    def predict_one(self, row: Any, out: Floats, /) -> bool:
        """Write the probabilities of one row into `out`; False if its length is not n_classes."""
        probabilities = self.predict(one_row(row, self.n_features))[0]
        if len(probabilities) != len(out):
            return False
        out[:] = probabilities
        return True

    def _prediction_width(self) -> int:
        return self.n_classes + 1


class ShardedGaussianForest(ShardedMondrianForest):
    """A sharded `GaussianForest`."""

    @property
    def noise(self) -> float:
        """The share of the variance around the trend that is noise."""
        return self.keeper.ask_first(messages.Noise())

    @property
    def scale(self) -> float:
        """The number that one unit of a tree's means stands for."""
        return self.keeper.ask_first(messages.Scale())

    def trend(self, rows: Rows, /) -> Floats:
        """The trend at each row."""
        return self.keeper.ask_first(messages.Trend(rows))

    def learn(
        self,
        rows: Rows,
        values: Floats,
        _n_threads: int = 1,
        one_by_one: bool = False,
        units: Units = None,
        /,
    ) -> None:
        """Learn rows with numbers."""
        self.keeper.operate(messages.LearnNumbers(rows, values, one_by_one, units))

    def learn_one(self, row: Any, value: float, units: int = UNITS_PER_SAMPLE, /) -> None:
        """Learn one row."""
        values = np.array([value], dtype=np.float64)
        self.learn(one_row(row, self.n_features), values, 1, False, np.array([units]))

    def predict_one(self, row: Any, /) -> tuple[float, float]:
        """Mean and standard deviation of one row."""
        mean, deviation = self.predict(one_row(row, self.n_features))[0]
        return float(mean), float(deviation)

    def quantiles(self, rows: Rows, levels: Floats, _n_threads: int = 1, /) -> Floats:
        """Quantiles of the mixture at each row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.Quantiles(rows, levels))
        return np.concatenate(
            [
                self.keeper.ask_first(messages.Quantiles(piece, levels, self._mixtures(piece)))
                for piece in self._mixture_pieces(rows)
            ]
        )

    def log_density(self, rows: Rows, values: Floats, _n_threads: int = 1, /) -> Floats:
        """Logarithm of the density of each value at its row."""
        if self.n_shards == 1:
            return self.keeper.ask_first(messages.LogDensity(rows, values))
        answers, begin = [], 0
        for piece in self._mixture_pieces(rows):
            some = np.ascontiguousarray(values[begin : begin + len(piece)])
            question = messages.LogDensity(piece, some, self._mixtures(piece))
            answers.append(self.keeper.ask_first(question))
            begin += len(piece)
        return np.concatenate(answers)

    def _prediction_width(self) -> int:
        return 2

    def _mixtures(self, rows: Rows) -> Mixtures:
        return join_mixtures(self.keeper.ask_all(messages.Mixtures(rows)))

    def _mixture_pieces(self, rows: Rows) -> list[Rows]:
        return pieces_of(rows, 4 * _COMPONENTS_PER_TREE * self.n_trees)
