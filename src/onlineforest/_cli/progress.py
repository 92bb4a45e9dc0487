"""Progress of a command, on standard error: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 10.0
MEASURES = {
    "log_loss": "log loss",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "width": "mean width of intervals",
}


class Reporter:
    """Shows how far a command has come."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._start = self._last_line = time.monotonic()
        self._progress: Progress | None = None
        if self._console.is_terminal and not quiet:
            self._progress = Progress(
                BarColumn(20),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("reading", total=None)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._start

    def show(self, fraction: float | None, n: int, n_now: int, means: dict[str, float]) -> None:
        """So many samples, so many of them now; the measures to be shown."""
        if self._quiet:
            return
        words = f"{n:,} samples, {n_now / max(self.seconds, 1e-9):,.0f}/s{measures(means)}"
        if self._progress is not None:
            total = None if fraction is None else 1.0
            done = min(fraction or 0.0, 0.999)  # what was read last is yet to be learned
            self._progress.update(self._task, description=words, total=total, completed=done)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            percent = "" if fraction is None else f"{fraction:.0%}, "
            click.echo(f"{percent}{words}", err=True)

    def say(self, words: str) -> None:
        """A line, if there is anything to say."""
        if words and not self._quiet:
            click.echo(words, err=True)


def measures(means: dict[str, float], most: int = 1) -> str:
    """The first measures in words: accuracy or RMSE come before others."""
    first = [name for name in ("accuracy", "rmse") if name in means]
    names = [*first, *(name for name in means if name not in first)][:most]
    return "".join(f", {MEASURES.get(name, name)} {means[name]:.4g}" for name in names)
