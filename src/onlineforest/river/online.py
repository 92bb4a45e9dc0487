"""What order-free forests as models of River have in common. Must not know what the targets are.

Columns are in an order that follows from the set of keys. So the forest is a function of its seed,
its parameters, its samples and the keys and labels that the model has learned.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from onlineforest._models.cells import is_missing
from onlineforest._models.regrowing import with_columns
from onlineforest._models.rounding import offsets_of_features
from onlineforest.river.base import ForestModel
from onlineforest.river.dict_columns import Columns, columns_of


class OnlineModel(ForestModel):
    """Base of the models whose estimators are order-free forests."""

    offsets: dict[Hashable, float] | None

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

    def _new_estimator(self) -> Any:
        if self.offsets is not None:
            if not isinstance(self.offsets, dict):
                raise TypeError(
                    "offsets must be a dict from features to numbers, or None. "
                    f"Got {self.offsets!r} instead."
                )
            keys = list(self.offsets)
            numbers = [self.offsets[key] for key in keys]
            offsets_of_features(numbers, len(keys), keys)  # raises unless all are finite
        return super()._new_estimator()

    def _offsets_of(self, columns: Columns) -> list[float] | None:
        """The offset of each column; None if there are none."""
        if self.offsets is None:
            return None
        texts = [key for key in self.offsets if key in columns.categorical]
        if texts:
            raise ValueError(f"offsets names {texts[0]!r}, which is categorical.")
        spare = [0.0] * (columns.width - len(columns.keys))
        return [self.offsets.get(key, 0.0) for key in columns.keys] + spare

    def _use(self, columns: Columns) -> None:
        if self._columns is None:
            if columns.categorical:
                self._estimator.categorical_features = columns.categorical_places()
            self._estimator.offsets = self._offsets_of(columns)
        super()._use(columns)

    def _resized(self, columns: Columns, new: Columns) -> Any:
        if new.keys == columns.keys and new.categorical == columns.categorical:
            return self._estimator
        places, offsets = new.categorical_places(), self._offsets_of(new)
        return with_columns(self._estimator, new.sources_in(columns), places, offsets)
