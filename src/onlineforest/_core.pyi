"""The compiled core of onlineforest. Private: use the estimators."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_WEIGHT: float

class LabelForest:
    """A Mondrian forest over labels 0, 1, ... Rows are finite float32."""

    def __init__(
        self,
        n_trees: int,
        n_features: int,
        *,
        lifetime: float,
        discount: float,
        min_samples_split: int,
        weight_rule: str,
        weights: NDArray[np.float64] | None = None,
        seed: int,
    ) -> None: ...
    def learn(
        self,
        rows: NDArray[np.float32],
        labels: NDArray[np.int32],
        n_classes: int,
        n_threads: int = 1,
    ) -> None: ...
    def predict(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float64]: ...
    def apply(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.int32]: ...
    def tree(self, index: int) -> dict[str, NDArray[Any]]: ...
    def check_invariants(self) -> None: ...
    def get_state(self) -> dict[str, Any]: ...
    @staticmethod
    def from_state(state: dict[str, Any]) -> LabelForest: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_points(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def feature_weights(self) -> NDArray[np.float64]: ...
    @property
    def discount_rate(self) -> float: ...
