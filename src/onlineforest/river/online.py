"""What order-free forests as models of River have in common. Must not know what the targets are.

Columns are in an order that follows from the set of keys. So the forest is a function of its seed,
its parameters, its samples and the keys and labels that the model has learned.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from onlineforest._models.cells import is_missing
from onlineforest._models.regrowing import with_columns
from onlineforest.river.base import ForestModel
from onlineforest.river.dict_columns import Columns, columns_of


class OnlineModel(ForestModel):
    """Base of the models whose estimators are order-free forests."""

    @property
    def _query_columns(self) -> Columns | None:
        if self._columns is None or self._estimator.n_samples_stored_ == 0:
            return None
        return self._columns

    def _columns_for(self, examples: Mapping[Hashable, Any]) -> Columns:
        known = self._columns or Columns((), 1)
        new = examples.keys() - set(known.keys)
        decided = {key for key, value in examples.items() if not is_missing(value)}
        # The first value of a key decides whether it is categorical.
        texts = {key for key in decided & (new | known.undecided) if isinstance(examples[key], str)}
        undecided = (known.undecided | new) - decided
        if self._columns is not None and not new and undecided == known.undecided:
            return self._columns
        return columns_of((*known.keys, *new), known.categorical | texts, undecided)

    def _use(self, columns: Columns) -> None:
        if self._columns is None and columns.categorical:
            self._estimator.categorical_features = columns.categorical_places()
        super()._use(columns)

    def _resized(self, columns: Columns, new: Columns) -> Any:
        if new.keys == columns.keys and new.categorical == columns.categorical:
            return self._estimator
        places = new.categorical_places()
        return with_columns(self._estimator, new.sources_in(columns), places)
