"""Samples after all checks, and batches as core forests learn them. Must not know estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from onlineforest._forests.core import Core, Rows, Weights
from onlineforest._inputs.ids import Id


@dataclass(frozen=True)
class Samples:
    """Valid samples that are to be learned.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_cells), float32
        Their rows.
    target : ndarray of shape (n_samples,)
        Their labels or numbers.
    ids : list or None
        Their ids, if they have some.
    weights : ndarray of shape (n_samples,) or None
        Their stored weights; None if each counts once.
    """

    rows: Rows
    target: NDArray[Any]
    ids: list[Id] | None
    weights: Weights

    def with_weight(self) -> Samples:
        """The samples whose weight is not 0."""
        if self.weights is None or self.weights.all():
            return self
        places = np.flatnonzero(self.weights)
        ids = None if self.ids is None else [self.ids[place] for place in places.tolist()]
        return Samples(self.rows[places], self.target[places], ids, self.weights[places])


class Lesson(ABC, Generic[Core]):
    """A batch in the form that a core forest learns.

    `changes` are attributes of the estimator that follow from the batch once it is stored.
    """

    changes: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def teach(self, core: Core, rows: Rows, n_threads: int) -> None:
        """Let a core forest learn the batch."""

    def finish(self, core: Core) -> None:
        """Change what else follows from the batch, which is stored. May be called twice."""


@dataclass(frozen=True)
class Batch(Generic[Core]):
    """A batch that a core forest learns: its lesson, its ids, and the serial of its first row.

    `attributes` are those that the estimator takes over when the batch is stored: the row format,
    and those of a new forest if this is its first batch.
    """

    core: Core
    lesson: Lesson[Core]
    ids: Sequence[Id | None] | None
    first_serial: int
    attributes: Mapping[str, Any]
