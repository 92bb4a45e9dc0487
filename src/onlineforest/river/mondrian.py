"""What Mondrian forests as models of River have in common. Must not know what the targets are.

New keys get columns after the known ones, and leave the trees unchanged.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from onlineforest._models.widening import widened
from onlineforest.river.base import ForestModel, Sample, row_of
from onlineforest.river.dict_columns import Columns


class MondrianModel(ForestModel):
    """Base of the models whose estimators are Mondrian forests."""

    feature_weights: str

    def _new_estimator(self) -> Any:
        if self.feature_weights not in ("learned", "range"):
            raise ValueError(
                "feature_weights must be 'learned' or 'range', because features may appear at any "
                f"time. Got {self.feature_weights!r} instead."
            )
        return super()._new_estimator()

    def _columns_with(self, columns: Columns, keys: Iterable[Hashable]) -> Columns:
        return columns.extended(keys)

    def _resized(self, columns: Columns, new: Columns) -> Any:
        return (
            self._estimator if new.width == columns.width else widened(self._estimator, new.width)
        )

    def novelty_one(self, x: Sample) -> float:
        """How far a sample is from everything learned, 0 to 1.

        The probability that a tree separates the sample from all learned samples on its path to a
        leaf: see `onlineforest.MondrianForestClassifier.novelty`.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        float
            0 for a learned sample, near 1 far from all of them; 1 before anything is learned.

        Examples
        --------
        >>> from onlineforest.river import MondrianForestClassifier
        >>> model = MondrianForestClassifier(seed=0)
        >>> for i in range(100):
        ...     model.learn_one({"height": i % 10, "width": i % 7}, i % 2)
        >>> known, far = {"height": 3, "width": 2}, {"height": 99, "width": 2}
        >>> model.novelty_one(known) < model.novelty_one(far)
        True
        """
        if self._columns is None:
            return 1.0
        return float(self._estimator.novelty(row_of(self._columns, x))[0])
