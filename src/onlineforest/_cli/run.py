"""Learn a table with progress, interrupts, checkpoints and learning curves.

Shared by `train` and `evaluate`; knows neither of them.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from onlineforest._cli.columns import (
    RequestedTypes,
    advice_about,
    categorical_in,
    column_specs,
    dates_in,
    features_in,
    fingerprint,
    schema_of,
)
from onlineforest._cli.commands import OptionError
from onlineforest._cli.forests import (
    Forest,
    PreviousForest,
    RunStart,
    TrainingOptions,
    check_task,
    is_fitted,
    start_run,
)
from onlineforest._cli.metrics import CurveFile, LearningCurve, format_metrics
from onlineforest._cli.options import BadRows
from onlineforest._cli.parameters import all_parameters
from onlineforest._cli.training import Training
from onlineforest._inputs.rounding import RoundingWarning
from onlineforest._store.checkpoints import Checkpointer
from onlineforest._tables.columns import (
    FIRST_ROWS,
    BadRow,
    ColumnType,
    Table,
    TableError,
    join_names,
)
from onlineforest._tables.tables import open_table

GRACE_SECONDS = 0.3
SECONDS_BETWEEN_LINES = 10.0


class Run:
    """A table that is being learned, with its progress report."""

    def __init__(self, table: Table, given: dict[str, Any], interrupts: Interrupts) -> None:
        self.table, self._given, self.interrupts = table, given, interrupts
        self.bad_rows, self.reporter = BadRows(given["skip_bad_rows"]), Reporter(given["quiet"])

    def start(self, previous: PreviousForest | None) -> RunStart:
        """Find the columns to learn, and the forest and position to start from."""
        given, table = self._given, self.table
        options = _training_options(given)
        check_task(options, previous)
        drop = given["drop"] if previous is None else self._unused_columns(previous)
        dates = given["date"] if previous is None else ()
        self.schema = schema_of(table, given["target"], drop, given["id_"], dates)
        start = start_run(options, previous, fingerprint(table, self.schema))
        requested = RequestedTypes(given["categorical"], given["numeric"])
        self.specs = column_specs(table, self.schema, start.forest, requested)
        if not is_fitted(start.forest):
            categorical = categorical_in(self.specs, self.schema.features)
            if categorical:
                start.forest.set_params(categorical_features=categorical)
            self._set_class_weight(start.forest)
            self.reporter.say(advice_about(table, self.schema, self.specs, requested))
        self.reporter.say(start.message)
        return start

    def _set_class_weight(self, forest: Forest) -> None:
        """Give classes that are integers their weights: an option has named them as text."""
        weights = self._given["class_weight"]
        if isinstance(weights, dict) and self.specs[self.schema.target].type is ColumnType.INTEGER:
            wrong = [name for name in weights if not name.lstrip("-").isdecimal()]
            if wrong:
                raise OptionError(
                    f"--class-weight names {join_names(wrong)}, but the classes in "
                    f"{self.schema.target!r} are integers."
                )
            forest.set_params(class_weight={int(name): each for name, each in weights.items()})

    def _unused_columns(self, previous: PreviousForest) -> tuple[str, ...]:
        """The columns to drop: if the forest has feature names, all others."""
        given, forest = self._given, previous.forest
        names = [str(name) for name in getattr(forest, "feature_names_in_", ())]
        wrong = [name for name in given["date"] if name not in dates_in(names)]
        if wrong:
            raise OptionError(
                f"--date names {join_names(wrong)}, but the model in {previous.path} was learned "
                "without numbers made from these dates, which cannot be changed: learn a new model."
            )
        if not names:
            return tuple(given["drop"])
        used = {*features_in(self.table, forest), given["target"], given["id_"]}
        return tuple(each.name for each in self.table.columns if each.name not in used)

    def learn(
        self,
        training: Training,
        checkpointer: Checkpointer | None,
        curve_path: Path | None,
        curve: LearningCurve | None = None,
    ) -> None:
        """Learn the whole table; report progress, extend the curves, save checkpoints."""
        n_start = n_before = training.n_rows
        with ExitStack() as stack, self._ended_by_interrupts(), self._reported_warnings():
            curves: list[CurveFile | LearningCurve] = [] if curve is None else [curve]
            if curve_path is not None:
                curves.append(stack.enter_context(closing(CurveFile(curve_path, n_start))))
            stack.enter_context(self.reporter)
            check = self.interrupts.check
            for n in training.run(self.table, self.schema, self.specs, self._on_bad_row, check):
                if training.batch_metrics.n:
                    for each in curves:
                        each.add(n_before, training.metrics, training.batch_metrics)
                n_before = n
                means = training.metrics.means()
                self.reporter.show(self.table.fraction_read(), n, n - n_start, means)
                check()
                if checkpointer is not None:
                    checkpointer.update(training.forest, training.position().as_json())
        self.n_learned = training.n_rows - n_start

    @contextmanager
    def _ended_by_interrupts(self) -> Iterator[None]:
        """Raise an interrupt in place of an error in the table that it may have caused."""
        try:
            yield
        except TableError:
            # Ctrl-C stops the writer of a pipe, too: its last line may end within a quote.
            self.interrupts.check()
            raise

    @contextmanager
    def _reported_warnings(self) -> Iterator[None]:
        """Print warnings about rounding as messages of the command."""
        with warnings.catch_warnings():
            show = warnings.showwarning
            warnings.simplefilter("always", RoundingWarning)

            def report(message: Warning | str, category: type[Warning], *others: Any) -> None:
                if not issubclass(category, RoundingWarning):
                    show(message, category, *others)
                    return
                self.reporter.say(
                    f"Warning: {message} On the command line: --offset COLUMN=NUMBER, for "
                    "order-free forests."
                )

            warnings.showwarning = report  # type: ignore[assignment]
            yield

    def _on_bad_row(self, bad: BadRow) -> None:
        # Ctrl-C stops the writer of a pipe, too: its last line is often truncated.
        self.interrupts.check()
        self.bad_rows(bad)


@contextmanager
def open_run(given: dict[str, Any]) -> Iterator[Run]:
    """Open the table and handle interrupts until the run ends."""
    with (
        Interrupts() as interrupts,
        closing(
            open_table(given["data"], given["format_"], given["delimiter"], FIRST_ROWS)
        ) as table,
    ):
        if given["target"] is None:
            names = join_names([column.name for column in table.columns])
            raise click.UsageError(f"Missing option '--target': which of these columns? {names}")
        yield Run(table, given, interrupts)


def _training_options(given: dict[str, Any]) -> TrainingOptions:
    parameters = {
        name: given[each.key]
        for name, each in all_parameters().items()
        if given[each.key] is not None and name != "n_jobs"
    }
    learn = not given.get("no_learn", False)
    return TrainingOptions(
        given["task"], parameters, given["jobs"], given["batch_size"], learn, given["forest"]
    )


class Interrupts:
    """Context in which the first signal raises `KeyboardInterrupt` after a grace period.

    A batch that is almost learned can finish; a long one is interrupted. Between batches, `check`
    raises immediately. A second signal raises immediately.
    """

    def __init__(self) -> None:
        self._n_signals = 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other thread gets signals
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) == signal.SIG_IGN:  # as in a background job of a shell
                    continue
                self._old[number] = signal.signal(number, self._on_signal)
            if hasattr(signal, "SIGALRM"):
                self._old[signal.SIGALRM] = signal.signal(signal.SIGALRM, _on_alarm)
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal has arrived."""
        if self._n_signals:
            raise KeyboardInterrupt

    def cancel(self) -> None:
        """Cancel the grace period: from now on, only a new signal raises."""
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._n_signals += 1
        if self._n_signals > 1 or not hasattr(signal, "SIGALRM"):
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Reporter:
    """Shows progress on standard error: as a bar in a terminal, otherwise as lines."""

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

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._start

    def show(
        self, fraction: float | None, n_samples: int, n_learned: int, means: dict[str, float]
    ) -> None:
        """Show the total number of samples, the samples per second of this run, and a metric."""
        if self._quiet:
            return
        rate = n_learned / max(self.seconds, 1e-9)
        text = f"{n_samples:,} samples, {rate:,.0f}/s{format_metrics(means)}"
        if self._progress is not None:
            total = None if fraction is None else 1.0
            done = min(fraction or 0.0, 0.999)  # the last rows are read, but not learned
            self._progress.update(self._task, description=text, total=total, completed=done)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            percent = "" if fraction is None else f"{fraction:.0%}, "
            click.echo(f"{percent}{text}", err=True)

    def say(self, text: str) -> None:
        """Print a line, unless the text is empty or the reporter is quiet."""
        if text and not self._quiet:
            click.echo(text, err=True)
