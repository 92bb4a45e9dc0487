"""What order-free forests as models of River have in common. Must not know what the targets are.

Columns are in an order that follows from the set of keys. So the forest is a function of its seed,
its parameters, its samples and the keys and labels that the model has learned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from onlineforest._models.regrowing import with_columns
from onlineforest.river.base import ForestModel
from onlineforest.river.dict_columns import Columns


class OnlineModel(ForestModel):
    """Base of the models whose estimators are order-free forests."""

    @property
    def _query_columns(self) -> Columns | None:
        if self._columns is None or self._estimator.n_samples_stored_ == 0:
            return None
        return self._columns

    def _columns_with(self, columns: Columns, keys: Iterable[Hashable]) -> Columns:
        return columns.sorted_with(keys)

    def _resized(self, columns: Columns, new: Columns) -> Any:
        return with_columns(self._estimator, new.sources_in(columns))
