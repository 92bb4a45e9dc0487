"""Report the progress of a command on standard error: a bar in a terminal, otherwise some lines.

Knows nothing of forests.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 10.0
METRIC_LABELS = {
    "log_loss": "log loss",
    "ece": "expected calibration error",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "width": "mean width of intervals",
}


class Reporter:
    """Shows the progress of a command."""

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

    def show(
        self, fraction: float | None, n_samples: int, n_learned: int, means: dict[str, float]
    ) -> None:
        """Show the total number of samples, the rate of those of this run, and a metric."""
        if self._quiet:
            return
        rate = n_learned / max(self.seconds, 1e-9)
        text = f"{n_samples:,} samples, {rate:,.0f}/s{format_metrics(means)}"
        if self._progress is not None:
            total = None if fraction is None else 1.0
            done = min(fraction or 0.0, 0.999)  # the rows read last are not learned yet
            self._progress.update(self._task, description=text, total=total, completed=done)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            percent = "" if fraction is None else f"{fraction:.0%}, "
            click.echo(f"{percent}{text}", err=True)

    def say(self, text: str) -> None:
        """Print a line, unless the text is empty or the reporter is quiet."""
        if text and not self._quiet:
            click.echo(text, err=True)


def format_metrics(means: dict[str, float], max_metrics: int = 1) -> str:
    """Text of the first metrics; accuracy and RMSE come before others."""
    first = [name for name in ("accuracy", "rmse") if name in means]
    names = [*first, *(name for name in means if name not in first)][:max_metrics]
    return "".join(f", {METRIC_LABELS.get(name, name)} {means[name]:.4g}" for name in names)
