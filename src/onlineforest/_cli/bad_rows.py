"""Stop at the first bad row of a table, or count the bad rows. Knows nothing of options."""

from __future__ import annotations


class BadRows:
    """Callable that raises at the first bad row, or counts the rows it is called with."""

    def __init__(self, skip: bool) -> None:
        self._skip, self.n, self._first = skip, 0, ""

    def __call__(self, bad: object) -> None:
        """Raise an error about a bad row, or count it."""
        if not self._skip:
            raise ValueError(f"{bad}. (--skip-bad-rows skips such rows.)")
        self._first = self._first or str(bad)
        self.n += 1

    def summary(self, prefix: str = "") -> str:
        """A sentence about the skipped rows; empty if there were none."""
        if self.n == 0:
            return ""
        rows = "1 bad row" if self.n == 1 else f"{self.n:,} bad rows, the first of them"
        return f"{prefix}Skipped {rows}: {self._first}."
