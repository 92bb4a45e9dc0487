"""Learn a table with progress, interrupts, checkpoints and learning curves.

Shared by `train` and `evaluate`; knows neither of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import click

from onlineforest._cli.bad_rows import BadRows
from onlineforest._cli.curves import CurveFile, LearningCurve
from onlineforest._cli.features import Said, advice_about, categorical_in
from onlineforest._cli.forests import is_fitted
from onlineforest._cli.interrupts import Interrupts
from onlineforest._cli.progress import Reporter
from onlineforest._cli.resuming import (
    PreviousForest,
    RunStart,
    TrainingOptions,
    check_task,
    start_run,
)
from onlineforest._cli.schema import column_specs, fingerprint, schema_of
from onlineforest._cli.training import Training
from onlineforest._inputs.rounding import RoundingWarning
from onlineforest._store.checkpoints import Checkpointer
from onlineforest._tables.columns import FIRST_ROWS, BadRow, Table, TableError, join_names
from onlineforest._tables.tables import open_table

_PARAMETERS = {  # of the estimators, by the names of the options
    "trees": "n_estimators",
    "window": "window",
    "reservoir": "reservoir",
    "half_life": "half_life",
    "seed": "random_state",
    "offset": "offsets",
}


class Run:
    """A table that is being learned, with its progress report."""

    def __init__(self, table: Table, given: dict[str, Any], interrupts: Interrupts) -> None:
        self.table, self._given, self.interrupts = table, given, interrupts
        self.bad_rows, self.reporter = BadRows(given["skip_bad_rows"]), Reporter(given["quiet"])

    def start(self, previous: PreviousForest | None) -> RunStart:
        """Find the columns to learn, and the forest and position to start from."""
        options = _training_options(self._given)
        check_task(options, previous)
        target, id_column = self._given["target"], self._given["id_"]
        drop = self._given["drop"]
        names = None if previous is None else getattr(previous.forest, "feature_names_in_", None)
        if names is not None:  # the forest decides which columns are features
            columns = [column.name for column in self.table.columns]
            missing = [name for name in names if name not in columns]
            if missing:
                raise ValueError(
                    f"{self.table.name} lacks {join_names(missing)}, which the model has."
                )
            used = {*names, target, id_column}
            drop = tuple(name for name in columns if name not in used)
        self.schema = schema_of(self.table, target, drop, id_column)
        source = fingerprint(self.table, self.schema)
        start = start_run(options, previous, source)
        said = Said(self._given["categorical"], self._given["numeric"])
        self.specs = column_specs(self.table, self.schema, start.forest, said)
        if not is_fitted(start.forest):
            categorical = categorical_in(self.specs, self.schema.features)
            if categorical:
                start.forest.set_params(categorical_features=categorical)
            self.reporter.say(advice_about(self.table, self.schema.features, self.specs, said))
        self.reporter.say(start.message)
        return start

    def learn(
        self,
        training: Training,
        checkpointer: Checkpointer | None,
        curve_path: Path | None,
        curve: LearningCurve | None = None,
    ) -> None:
        """Learn the whole table; report progress, extend the curves, save checkpoints."""
        n_start = n_before = training.n_rows
        with ExitStack() as stack, self._ended_by_interrupts(), self._telling_warnings():
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
        try:
            yield
        except TableError:
            # Ctrl-C stops the writer of a pipe, too: its last line may end within a quote.
            self.interrupts.check()
            raise

    @contextmanager
    def _telling_warnings(self) -> Iterator[None]:
        """Show a warning about rounding as a message."""
        with warnings.catch_warnings():
            show = warnings.showwarning
            warnings.simplefilter("always", RoundingWarning)

            def tell(message: Warning | str, category: type[Warning], *others: Any) -> None:
                if not issubclass(category, RoundingWarning):
                    show(message, category, *others)
                    return
                self.reporter.say(
                    f"Warning: {message} On the command line: --offset COLUMN=NUMBER, for "
                    "order-free forests."
                )

            warnings.showwarning = tell  # type: ignore[assignment]
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
        parameter: given[key] for key, parameter in _PARAMETERS.items() if given[key] is not None
    }
    learn = not given.get("no_learn", False)
    return TrainingOptions(
        given["task"], parameters, given["jobs"], given["batch_size"], learn, given["forest"]
    )
