"""The exact union of order-free forests: which forests can be merged, and what is learned then.

Must not know what y is, nor where trees live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._core import WEIGHT_OF_ONE
from onlineforest._forests.core import OfOrderFree, Rows, Weights
from onlineforest._forests.lessons import Lesson
from onlineforest._inputs.ids import Id, some_of
from onlineforest._inputs.rows import RowFormat


@dataclass(frozen=True)
class Profile:
    """Facts that must be equal in merged forests, and ids, which must be distinct.

    Attributes
    ----------
    name : str
        The forest in messages to users.
    seed : int
        The seed of the trees.
    parameters : mapping
        Those that must not change during the life of a forest.
    n_features : int
        Number of features.
    feature_names : list of str or None
        Their names.
    categorical : tuple of int
        Which of them are categorical.
    ids : list
        The ids of the stored samples.
    """

    name: str
    seed: int
    parameters: Mapping[str, Any]
    n_features: int
    feature_names: list[str] | None
    categorical: tuple[int, ...]
    ids: list[Id]


@dataclass(frozen=True)
class Holdings:
    """The stored samples of a forest in the order of their arrival, and what else it knows.

    Attributes
    ----------
    profile : Profile
        Its seed, parameters, features and ids.
    rows : ndarray of shape (n_samples, n_features), float32
        The rows.
    target : ndarray of shape (n_samples,)
        The labels or numbers.
    weights : ndarray of shape (n_samples,)
        Their stored weights; None if each counts once.
    ids : list
        The id of each sample, None if it has none.
    declared : ndarray
        The labels that were declared.
    n_seen : int
        Number of samples seen, forgotten ones included.
    row_format : RowFormat
        The format of the rows, with the levels of categorical features.
    """

    profile: Profile
    rows: Rows
    target: NDArray[Any]
    weights: Weights
    ids: list[Id | None]
    declared: NDArray[Any]
    n_seen: int
    row_format: RowFormat


class MergeLesson(Lesson[OfOrderFree]):
    """The samples of other forests, and the number of samples that all of them have seen."""

    def __init__(self, lesson: Lesson[OfOrderFree], n_seen: int) -> None:
        self._lesson, self._n_seen = lesson, n_seen
        self.changes = lesson.changes

    def teach(self, core: OfOrderFree, rows: Rows, n_threads: int) -> None:
        self._lesson.teach(core, rows, n_threads)

    def finish(self, core: OfOrderFree) -> None:
        self._lesson.finish(core)
        core.count_as_seen(self._n_seen)


def check_can_be_merged(profiles: Sequence[Profile]) -> None:
    """Raise `ValueError` if two forests differ in more than their samples, or share an id."""
    first = profiles[0]
    for each in profiles:
        _check_keeps_all(each)
        _check_features(first, each)
        for name, value in first.parameters.items():
            if each.parameters[name] != value:
                raise ValueError(
                    f"Only forests with equal parameters can be merged, but {name} is {value!r} in "
                    f"{first.name} and {each.parameters[name]!r} in {each.name}."
                )
        if each.seed != first.seed:
            raise ValueError(
                f"Only forests with equal seeds can be merged, but the seed is {first.seed} in "
                f"{first.name} and {each.seed} in {each.name}. Set random_state to the same whole "
                "number in all forests."
            )
    _check_ids(profiles)


def _check_keeps_all(profile: Profile) -> None:
    for name in ("window", "reservoir"):
        if profile.parameters[name] is not None:
            raise ValueError(
                "Only forests that keep all their samples can be merged, but "
                f"{name} is {profile.parameters[name]!r} in {profile.name}. Which samples it keeps "
                "depends on their order of arrival, and there is none between samples of different "
                "forests."
            )


def _check_features(first: Profile, other: Profile) -> None:
    for what, a, b in (
        ("number of features", first.n_features, other.n_features),
        ("feature_names_in_", first.feature_names, other.feature_names),
        ("the tuple of categorical columns", first.categorical, other.categorical),
    ):
        if a != b:
            raise ValueError(
                f"Only forests with the same features can be merged, but {what} is {a} in "
                f"{first.name} and {b} in {other.name}."
            )


def _check_ids(profiles: Sequence[Profile]) -> None:
    owners: dict[Id, str] = {}
    for profile in profiles:
        common = [each for each in profile.ids if each in owners]
        if common:
            owner = owners[common[0]]
            both = [each for each in common if owners[each] == owner]
            raise ValueError(
                f"ids must be distinct, but samples of {owner} and of {profile.name} have "
                f"{some_of(both)}."
            )
        owners.update(dict.fromkeys(profile.ids, profile.name))


def joined_weights(others: Sequence[Holdings]) -> Weights:
    """The weights of all, in order; None if each sample counts once."""
    if all(each.weights is None for each in others):
        return None
    return np.concatenate(
        [
            np.full(len(each.rows), WEIGHT_OF_ONE) if each.weights is None else each.weights
            for each in others
        ]
    )


def joined_rows(others: Sequence[Holdings]) -> Rows:
    """The rows of all, in order."""
    return np.concatenate([each.rows for each in others])
