# Written by tests/core/make_stub.py from the built extension.
"""The compiled core of onlineforest. Private: use the estimators."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LAW: int = 2

LARGEST_WEIGHT: float = 1e200

LARGEST_VALUE: float = 1e150

WEIGHT_OF_ONE: int = 65536

LEAST_CALIBRATORS: int = 20

MOST_CALIBRATORS: int = 2048

SAMPLES_PER_CALIBRATOR_OF_LABELS: int = 8

SAMPLES_PER_CALIBRATOR_OF_NUMBERS: int = 4

LEAST_TREES_TO_CALIBRATE_LABELS: int = 10

LEAST_TREES_TO_CALIBRATE_NUMBERS: int = 5

LEAST_POWER: float = 0.03125

LARGEST_POWER: float = 128.0

LARGEST_LEVEL_POWER: float = 2.0

LARGEST_SPREAD: float = 1.0

LARGEST_TOTAL_WEIGHT: int = 68719476736

class TooLargeError(ValueError):
    pass

class OrderFreeLabelForest:
    """An order-free forest over labels 0, 1, ... Rows are float32."""

    def __init__(
        self,
        n_trees: int,
        n_features: int,
        *,
        n_categorical: int = 0,
        seed: int,
        min_samples_split: int = 2,
        max_samples: float = 1.0,
        calibrates: bool = False,
        discount: float = 0.2,
        window: int = 0,
        reservoir: int = 0,
        half_life: float = float("inf"),
        first_tree: int = 0,
        key_bits: int = 64,
    ) -> None: ...
    def forget(self, serials: NDArray[np.int64], n_threads: int = 1) -> None: ...
    def forget_rows(
        self, rows: NDArray[np.float32], values: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.int64]: ...
    def keep_latest(self, n: int, n_threads: int = 1) -> None: ...
    def are_stored(self, serials: NDArray[np.int64]) -> NDArray[np.uint8]: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def serials(self) -> NDArray[np.int64]: ...
    @property
    def values(self) -> NDArray[np.int32]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def sample_numbers(self) -> NDArray[np.int32]: ...
    @property
    def n_levels(self) -> NDArray[np.int64]: ...
    @property
    def version(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def label_weights(self) -> NDArray[np.float64]: ...
    def learn(
        self,
        rows: NDArray[np.float32],
        values: NDArray[np.int32],
        n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
    ) -> None: ...
    def learn_one(self, row: ArrayLike, value: int, weight: int = 65536) -> None: ...
    def grow_all(self, n_threads: int = 1, stop_weight: int = 0) -> None: ...
    def apply(
        self, rows: NDArray[np.float32], n_threads: int = 1, stop_weight: int = 0
    ) -> NDArray[np.int32]: ...
    def importances(self, n_threads: int = 1, stop_weight: int = 0) -> NDArray[np.float64]: ...
    def count_as_seen(self, n_seen: int) -> None: ...
    def get_state(self) -> dict[str, NDArray[Any]]: ...
    @staticmethod
    def from_state(
        state: dict[str, NDArray[Any]],
        n_threads: int = 1,
        max_bytes: int = ...,
        *,
        n_trees: int = 0,
        first_tree: int = 0,
    ) -> OrderFreeLabelForest: ...
    def levels(self, categorical: int) -> NDArray[np.uint64]: ...
    @property
    def seed(self) -> int: ...
    def set_labels(self, hashes: NDArray[np.uint64], are_declared: NDArray[np.uint8]) -> None: ...
    def predict(
        self,
        rows: NDArray[np.float32],
        n_threads: int = 1,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    def predict_one(
        self,
        row: ArrayLike,
        power: float = 1.0,
        spread: float = 0.0,
        stop_weight: int = 0,
        level_power: float = 0.0,
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    def votes(
        self,
        n_threads: int = 1,
        least: int = 0,
        limit: int = 4503599627370496,
        begin: int = 0,
        end: int = 9223372036854775807,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.float64],
    ]: ...
    def votes_at(
        self, n_seen: int, n_threads: int = 1, least: int = 0, limit: int = 4503599627370496
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.float64],
    ]: ...
    def votes_after(
        self,
        rows: NDArray[np.float32],
        values: NDArray[np.int32],
        n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
        least: int = 0,
        limit: int = 4503599627370496,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.float64],
    ]: ...
    def tree(self, index: int) -> dict[str, NDArray[Any]]: ...
    def left_out(
        self, n_threads: int = 1, stop_weight: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
    def masses(
        self, rows: NDArray[np.float32], n_threads: int = 1, stop_weight: int = 0
    ) -> NDArray[np.uint64]: ...
    def left_out_masses(
        self, begin: int, end: int, n_threads: int = 1, stop_weight: int = 0
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...
    def finish(
        self,
        sums: NDArray[np.uint64],
        power: float = 1.0,
        spread: float = 0.0,
        level_power: float = 0.0,
        rows: NDArray[np.float32] | None = None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]: ...
    @property
    def known_labels(self) -> NDArray[np.uint64]: ...

def calibration_by(
    held: NDArray[np.int32],
    labels: NDArray[np.int32],
    weights: NDArray[np.int64],
    stop_weights: NDArray[np.int64],
    votes: NDArray[np.uint64],
    half: NDArray[np.uint64],
    evidence: NDArray[np.float64],
    n_trees: int,
) -> tuple[float, float, float, float]: ...
def losses_of_stops(
    held: NDArray[np.int32],
    labels: NDArray[np.int32],
    weights: NDArray[np.int64],
    stop_weights: NDArray[np.int64],
    votes: NDArray[np.uint64],
    half: NDArray[np.uint64],
    evidence: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def probabilities_by(
    held: NDArray[np.int32],
    labels: NDArray[np.int32],
    weights: NDArray[np.int64],
    stop_weights: NDArray[np.int64],
    votes: NDArray[np.uint64],
    half: NDArray[np.uint64],
    evidence: NDArray[np.float64],
    power: float,
    spread: float,
    level_power: float,
) -> NDArray[np.float64]: ...

class OrderFreeNumberForest:
    """An order-free forest over numbers. Rows are float32."""

    def __init__(
        self,
        n_trees: int,
        n_features: int,
        *,
        n_categorical: int = 0,
        seed: int,
        min_samples_split: int = 2,
        max_samples: float = 1.0,
        calibrates: bool = False,
        discount: float = 0.2,
        window: int = 0,
        reservoir: int = 0,
        half_life: float = float("inf"),
        first_tree: int = 0,
        key_bits: int = 64,
    ) -> None: ...
    def forget(self, serials: NDArray[np.int64], n_threads: int = 1) -> None: ...
    def forget_rows(
        self, rows: NDArray[np.float32], values: NDArray[np.float64], n_threads: int = 1
    ) -> NDArray[np.int64]: ...
    def keep_latest(self, n: int, n_threads: int = 1) -> None: ...
    def are_stored(self, serials: NDArray[np.int64]) -> NDArray[np.uint8]: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def serials(self) -> NDArray[np.int64]: ...
    @property
    def values(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def sample_numbers(self) -> NDArray[np.int32]: ...
    @property
    def n_levels(self) -> NDArray[np.int64]: ...
    @property
    def version(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def learn(
        self,
        rows: NDArray[np.float32],
        values: NDArray[np.float64],
        n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
    ) -> None: ...
    def learn_one(self, row: ArrayLike, value: float, weight: int = 65536) -> None: ...
    def grow_all(self, n_threads: int = 1, stop_weight: int = 0) -> None: ...
    def apply(
        self, rows: NDArray[np.float32], n_threads: int = 1, stop_weight: int = 0
    ) -> NDArray[np.int32]: ...
    def importances(self, n_threads: int = 1, stop_weight: int = 0) -> NDArray[np.float64]: ...
    def count_as_seen(self, n_seen: int) -> None: ...
    def get_state(self) -> dict[str, NDArray[Any]]: ...
    @staticmethod
    def from_state(
        state: dict[str, NDArray[Any]],
        n_threads: int = 1,
        max_bytes: int = ...,
        *,
        n_trees: int = 0,
        first_tree: int = 0,
    ) -> OrderFreeNumberForest: ...
    def levels(self, categorical: int) -> NDArray[np.uint64]: ...
    @property
    def seed(self) -> int: ...
    def predict(
        self,
        rows: NDArray[np.float32],
        n_threads: int = 1,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]: ...
    def predict_one(
        self,
        row: ArrayLike,
        stop_weight: int = 0,
        level_share: float = 0.0,
        strengths: NDArray[np.float64] | None = None,
    ) -> tuple[float, float, float]: ...
    def votes(
        self,
        n_threads: int = 1,
        least: int = 0,
        limit: int = 4503599627370496,
        begin: int = 0,
        end: int = 9223372036854775807,
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def votes_at(
        self, n_seen: int, n_threads: int = 1, least: int = 0, limit: int = 4503599627370496
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def votes_after(
        self,
        rows: NDArray[np.float32],
        values: NDArray[np.float64],
        n_threads: int = 1,
        weights: NDArray[np.int64] | None = None,
        least: int = 0,
        limit: int = 4503599627370496,
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def tree(self, index: int) -> dict[str, NDArray[Any]]: ...
    def left_out(
        self, n_threads: int = 1, stop_weight: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
    def level_deviations(
        self, rows: NDArray[np.float32], strengths: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How far the levels of each row lie above the mean of all numbers."""

    def leaves(
        self, rows: NDArray[np.float32], n_threads: int = 1, stop_weight: int = 0
    ) -> NDArray[np.float64]: ...
    def left_out_leaves(
        self, begin: int, end: int, n_threads: int = 1, stop_weight: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
    def of_all_samples(self) -> NDArray[np.float64]:
        """Mean and variance of all samples, for rows that no tree answers."""

def moments_of_leaves(
    leaves: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...

class MondrianForest:
    """A Mondrian forest over labels 0, 1, ... Rows are float32."""

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
        leaf_discount: float | None = 0.0,
        window: int = 0,
        reservoir: int = 0,
        half_life: float = float("inf"),
    ) -> None: ...
    def learn(
        self,
        rows: NDArray[np.float32],
        labels: NDArray[np.int32],
        n_classes: int,
        n_threads: int = 1,
        one_by_one: bool = False,
    ) -> None: ...
    def learn_one(self, row: ArrayLike, label: int, n_classes: int) -> None: ...
    def predict(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float64]: ...
    def predict_one(self, row: ArrayLike) -> NDArray[np.float64]: ...
    def apply(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.int32]: ...
    def novelty(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float64]: ...
    def refresh(self, n_threads: int = 1) -> None: ...
    def relevance(self, n_threads: int = 1) -> NDArray[np.float64]: ...
    def tree(self, index: int) -> dict[str, NDArray[Any]]: ...
    def check_invariants(self) -> None: ...
    def get_state(self) -> dict[str, NDArray[Any]]: ...
    @staticmethod
    def from_state(
        state: dict[str, NDArray[Any]], n_threads: int = 1, max_bytes: int = ...
    ) -> MondrianForest: ...
    @property
    def feature_weights(self) -> NDArray[np.float64]: ...
    @property
    def discount_rate(self) -> float: ...
    @property
    def leaf_discount(self) -> float: ...
    def forget(self, serials: NDArray[np.int64], n_threads: int = 1) -> None: ...
    def forget_rows(
        self, rows: NDArray[np.float32], values: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.int64]: ...
    def keep_latest(self, n: int, n_threads: int = 1) -> None: ...
    def are_stored(self, serials: NDArray[np.int64]) -> NDArray[np.uint8]: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def serials(self) -> NDArray[np.int64]: ...
    @property
    def nbytes(self) -> int: ...
