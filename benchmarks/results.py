"""One row of the table of measurements. Knows neither clocks nor file formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal


class NotMeasuredError(Exception):
    """A case cannot be measured here; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class Row:
    """One figure, with all its runs.

    `values` has one entry per pair of runs; the figure is their median. `seconds` (of each side)
    and `details` go to the JSON file only.
    """

    case: str
    data: str
    ours: str = "-"
    peer: str = "-"
    values: list[float] = field(default_factory=list)
    unit: str = ""
    better: Literal["lower", "higher"] = "lower"
    target: float | None = None
    note: str = ""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        """The figure; None if it was not measured."""
        return median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without a target or a figure."""
        if self.target is None or self.median is None:
            return None
        if self.better == "lower":
            return self.median <= self.target
        return self.median >= self.target

    def against_target(self, value: float) -> float | None:
        """A value as a multiple of the target, inverted if higher is better: at most 1 meets it."""
        if self.target is None:
            return None
        return value / self.target if self.better == "lower" else self.target / value
