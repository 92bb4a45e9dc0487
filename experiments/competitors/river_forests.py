"""River's forests with the interface of the other competitors: arrays in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.common import river_rows


class RiverForest:
    """One of River's forests.

    Parameters
    ----------
    name : str
        Its name in `river.forest`.
    **parameters
        Of the forest.
    """

    def __init__(self, name: str, **parameters: Any) -> None:
        from river import forest

        self.model = getattr(forest, name)(**parameters)

    def partial_fit(self, X: NDArray, y: NDArray, classes: ArrayLike | None = None) -> RiverForest:
        """Learn rows, one after the other; all classes must be known at the first call."""
        if not hasattr(self, "classes_"):
            self.classes_ = np.unique(y if classes is None else classes)
        for row, label in zip(river_rows(X), y.tolist(), strict=True):
            self.model.learn_one(row, label)
        return self

    def predict_proba(self, X: NDArray) -> NDArray[np.float64]:
        """Probabilities of the classes; uniform if River returns none."""
        n_classes = len(self.classes_)
        labels = self.classes_.tolist()
        result = np.empty((len(X), n_classes))
        for i, row in enumerate(river_rows(X)):
            said = self.model.predict_proba_one(row)
            result[i] = [said.get(label, 0.0) for label in labels]
        totals = result.sum(axis=1, keepdims=True)
        return np.divide(result, totals, out=np.full_like(result, 1 / n_classes), where=totals > 0)
