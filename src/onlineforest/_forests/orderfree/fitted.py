"""When the part of a forest is fitted that left-out samples decide, and what was found.

The fitted part is a function of the samples that the forest held at one arrival, and of nothing
else. That arrival is decided by learning and forgetting alone: predictions, files, copies and the
size of batches have no influence. Must not know estimators, nor what is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

Found = TypeVar("Found")

_SHARE = 8  # it is fitted again when 1 / _SHARE of the samples are new


def _over(n: int, divisor: int) -> int:
    """The quotient, rounded up, and at least 1."""
    return max(-(-n // divisor), 1)


@dataclass(frozen=True)
class Fitted(Generic[Found]):
    """The fitted part of a forest in a stream.

    It may be computed later, while the samples that were held at its arrival are still held.

    Attributes
    ----------
    arrival : int
        Number of samples that the forest had seen when this part was fitted.
    n_held : int
        Number of samples that it held then; of a reservoir the number that a window would hold.
    capacity : int or None
        The most samples that it keeps.
    found : object or None
        What was found; None if it is not computed yet.
    """

    arrival: int
    n_held: int
    capacity: int | None
    found: Found | None = None

    @cached_property
    def due(self) -> int:
        """The arrival at which an eighth of the samples are new: the part is fitted again."""
        return self.arrival + self._step

    @property
    def _step(self) -> int:
        # After t new samples there are n + t, and an eighth of them is new if t = n / 7.
        step = _over(self.n_held, _SHARE - 1)
        return step if self.capacity is None else min(step, _over(self.capacity, _SHARE))

    def after(self, n_seen: int) -> Self:
        """The fitted part of the last arrival that was due when the forest had seen `n_seen`."""
        later = self
        while later.due <= n_seen:
            step = later._step
            if later.n_held == later.capacity:  # all further steps are equal
                step *= (n_seen - later.arrival) // step
            n_held = later.n_held + step
            if later.capacity is not None:
                n_held = min(n_held, later.capacity)
            later = replace(later, arrival=later.arrival + step, n_held=n_held, found=None)
        return later

    def with_found(self, found: Found) -> Self:
        """The fitted part after its computation."""
        return replace(self, found=found)

    def loses(self, n_samples: int, n_coming: int) -> bool:
        """Whether samples may leave a forest of `n_samples` when `n_coming` more come."""
        return self.capacity is not None and n_samples + n_coming > self.capacity


class Demand:
    """Whether somebody asks for the fitted part of a forest, and work that was done ahead of it.

    Only the moments of computing depend on it, never what is found. So it is not copied.

    Attributes
    ----------
    is_present : bool
        Whether somebody has asked for the part in force, or for the one before.
    ahead : tuple or None
        A part that is not computed yet, and what it will be computed from.
    """

    def __init__(self) -> None:
        self.is_present = False
        self.ahead: tuple[Fitted[Any], Any] | None = None


def check_fitted(fitted: Fitted[Any], n_seen: int) -> None:
    """Raise `ValueError` unless a forest that has seen `n_seen` samples may have this part."""
    most = fitted.arrival if fitted.capacity is None else min(fitted.arrival, fitted.capacity)
    if not 0 <= fitted.arrival <= n_seen or not 0 <= fitted.n_held <= most:
        raise ValueError(
            f"it was fitted with {fitted.n_held} of {fitted.arrival} samples, but has seen "
            f"{n_seen}."
        )
    if fitted.due <= n_seen:
        raise ValueError(
            f"it was fitted at arrival {fitted.arrival} and should have been fitted again at "
            f"{fitted.due}, but has seen {n_seen} samples."
        )
