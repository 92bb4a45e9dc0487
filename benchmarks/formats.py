"""Format numbers, durations and sizes for tables."""

from __future__ import annotations


def number(value: float) -> str:
    """A number with three significant digits, or as an integer from 100."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Seconds as s, ms or µs."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{number(seconds * factor)} {unit}"
    return f"{number(seconds * 1e6)} µs"


def megabytes(n_bytes: float) -> str:
    """Bytes as MB."""
    return f"{number(n_bytes / 1e6)} MB"
