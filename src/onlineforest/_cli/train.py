"""The commands `train` and `evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from onlineforest._cli.base import (
    INTERRUPTED,
    BadRows,
    Command,
    checked_file,
    checked_folder,
    examples,
    option,
    options,
    table_options,
)
from onlineforest._cli.interrupts import Interrupts
from onlineforest._cli.prequential import CurveFile, Measures
from onlineforest._cli.progress import MEASURES, Reporter, measures
from onlineforest._cli.starting import Choices, Found, Start, Store, found_forest, started
from onlineforest._cli.training import (
    DEFAULT_BATCH,
    Training,
    fingerprint,
    roles_in,
    wanted_of,
)
from onlineforest._extras import require
from onlineforest._models.checkpoints import Checkpointer
from onlineforest._models.saving import write_model
from onlineforest._tables.columns import BadRow, Table, TableError, listed
from onlineforest._tables.tables import open_table

_DATA = "What to learn"
_FOREST = "The forest"
_SAFETY = "Checkpoints"
_SHOWN = "What is shown"
_FILE = click.Path(path_type=Path, dir_okay=False)
_DEFAULT_SECONDS = 60.0
_LOOKED_AT = 100  # rows, before it is decided what labels and ids are

learning_options = options(
    click.argument("data"),
    option(
        "--target", metavar="COLUMN", section=_DATA, help="The column to predict. Must be given."
    ),
    option(
        "--task",
        type=click.Choice(["classify", "regress"]),
        section=_DATA,
        help="Whether the target is a class or a number. Must be given, unless a model is gone on "
        "with. Classes are whole numbers if all in the first rows (at least 100) look so, text "
        "otherwise.",
    ),
    option(
        "--drop",
        metavar="COLUMN",
        multiple=True,
        section=_DATA,
        help="Leave out a column. May be given several times.",
    ),
)

forest_options = options(
    option(
        "--trees",
        type=click.IntRange(1),
        metavar="N",
        section=_FOREST,
        help="Number of trees. Default: 100.",
    ),
    option(
        "--window",
        type=click.IntRange(1),
        metavar="N",
        section=_FOREST,
        help="Keep only the latest N samples, and follow a changing world: fixed memory. Default: "
        "keep all.",
    ),
    option(
        "--reservoir",
        type=click.IntRange(1),
        metavar="N",
        section=_FOREST,
        help="Keep a random N of all samples: fixed memory. Default: keep all.",
    ),
    option(
        "--half-life",
        type=click.FloatRange(1),
        metavar="N",
        section=_FOREST,
        help="With --reservoir: a sample that came N samples earlier is half as likely to be kept.",
    ),
    option(
        "--seed",
        type=click.IntRange(0),
        metavar="N",
        section=_FOREST,
        help="The same seed and data give the same forest. Default: 0.",
    ),
    option(
        "--jobs",
        type=int,
        metavar="N",
        section=_FOREST,
        help="Threads; -1 is one for each processor. The forest does not depend on it. Default: 1.",
    ),
    option(
        "--from",
        "from_",
        type=_FILE,
        metavar="MODEL",
        section=_FOREST,
        help="Go on with the forest of a model file, and learn all of DATA on top.",
    ),
)

_BATCH_HELP = (
    f"Rows learned at a time, N. Default: {DEFAULT_BATCH:,}. Each batch is predicted before it is "
    "learned: what is measured is how well the next N rows are predicted before any of their "
    "labels is known. A forest depends a little on how its data were cut into batches."
)


@dataclass
class Curve:
    """The learning curve, in memory."""

    samples: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, n_learned: int, so_far: Measures, _batch: Measures) -> None:
        """A point more."""
        self.samples.append(n_learned)
        for name, value in so_far.means().items():
            self.values.setdefault(name, []).append(value)


_TRAIN_EXAMPLES = examples(
    "onlineforest train flowers.csv --target species --task classify -o flowers.safetensors",
    "onlineforest train patients.csv --target progression --task regress --drop patient \\\n"
    "      --checkpoints saved --every-seconds 300 --resume -o patients.safetensors",
    "cat patients.csv | onlineforest train - --target progression --task regress \\\n"
    "      --id patient --window 200 -o latest.safetensors",
)
_EVALUATE_EXAMPLES = examples(
    "onlineforest evaluate flowers.csv --target species --task classify",
    "onlineforest evaluate patients.csv --target progression --task regress --drop patient \\\n"
    "      --batch-size 10 --picture curve.png",
    "onlineforest evaluate new-flowers.csv --target species --from flowers.safetensors --no-learn",
)


@click.command(
    "train",
    cls=Command,
    short_help="Learn a forest from a CSV or Parquet file.",
    epilog=_TRAIN_EXAMPLES,
)
@learning_options
@option(
    "-o",
    "--model",
    type=_FILE,
    required=True,
    metavar="FILE",
    callback=checked_file,
    section=_DATA,
    help="Where to save the forest (.safetensors). Replaced when the new one is complete.",
)
@option(
    "--id",
    "id_",
    metavar="COLUMN",
    section=_DATA,
    help="A column of names by which samples can be forgotten later, all different. Whole numbers "
    "if all in the first rows look so, text otherwise; in a model that is gone on with, what its "
    "ids are.",
)
@forest_options
@table_options(_BATCH_HELP)
@option(
    "--checkpoints",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    callback=checked_folder,
    section=_SAFETY,
    help="Save the forest now and then; the last three are kept. If the command is killed, only "
    "what came after the last one is lost.",
)
@option(
    "--every-seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    section=_SAFETY,
    help=f"Seconds between checkpoints. Default: {_DEFAULT_SECONDS:.0f}, unless --every-samples "
    "is given.",
)
@option(
    "--every-samples",
    type=click.IntRange(1),
    metavar="N",
    section=_SAFETY,
    help="Samples between checkpoints.",
)
@option(
    "--resume",
    is_flag=True,
    section=_SAFETY,
    help="Go on from the newest sound checkpoint, or from the model file if that is further: what "
    "was learned is skipped. Ends with the very forest of a run never stopped, unless DATA has "
    "grown past a last batch that was not full. Starts anew if there is neither.",
)
@option(
    "--no-evaluate",
    is_flag=True,
    section=_SHOWN,
    help="Do not predict each batch before learning it: quicker.",
)
@option(
    "--curve",
    type=_FILE,
    metavar="FILE",
    callback=checked_file,
    section=_SHOWN,
    help="Write the learning curve as CSV: samples learned, and each measure over all samples "
    "until then and over the batch alone.",
)
@option("-q", "--quiet", is_flag=True, section=_SHOWN, help="Say nothing unless it goes wrong.")
def train(**given: Any) -> None:
    """Learn a forest from DATA: a CSV or Parquet file, or - for standard input.

    Rows are read and learned batch by batch, so DATA may be larger than memory. The forest keeps
    every sample, unless --window or --reservoir limits it. CSV needs a header; it may be gzipped.
    All columns besides the target must be numbers (or true/false, which are 1 and 0). Missing
    values are empty, NA, NaN, null, None or ?; a row whose target is missing is bad.

    Ctrl-C (or SIGTERM) saves what was learned and ends with code 130; --resume goes on.
    """
    checkpointer = _checkpointer(given)
    with _opened(given) as run:
        store = Store(given["model"], checkpointer)
        if not given["resume"]:
            store.check_is_new(given["from_"])
        start = run.start(given, found_forest(store, given["resume"], given["from_"]))
        if given["resume"] and not start.words:
            run.reporter.say("Nothing to go on from: starting anew.")
        training = Training(start.forest, start.position, evaluate=not given["no_evaluate"])
        try:
            run.learn(training, checkpointer, given["curve"])
        except KeyboardInterrupt:
            run.interrupts.settle()
            _save_interrupted(run, training, store)
        except ValueError:
            if checkpointer is not None and training.rows > start.position.rows:
                checkpointer.save(training.forest, training.position().as_json())
            raise
        _save_finished(run, training, store)


@click.command(
    "evaluate",
    cls=Command,
    short_help="Tell how well a file is predicted while it is learned.",
    epilog=_EVALUATE_EXAMPLES,
)
@learning_options
@forest_options
@table_options(_BATCH_HELP)
@option(
    "--coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    metavar="SHARE",
    section=_SHOWN,
    help="For numbers: the share of values that the intervals are to hold.",
)
@option(
    "--no-learn",
    is_flag=True,
    section=_SHOWN,
    help="With --from: only predict, and learn nothing: how good is the model on these data?",
)
@option(
    "--picture",
    type=_FILE,
    metavar="FILE",
    callback=checked_file,
    section=_SHOWN,
    help="Draw the learning curve: .png, .svg or .pdf.",
)
@option(
    "--curve",
    type=_FILE,
    metavar="FILE",
    callback=checked_file,
    section=_SHOWN,
    help="Write the learning curve as CSV.",
)
@option("--json", "as_json", is_flag=True, section=_SHOWN, help="The measures as JSON.")
@option("-q", "--quiet", is_flag=True, section=_SHOWN, help="Show no progress.")
def evaluate(**given: Any) -> None:
    """Predict each batch of DATA, then learn it, and tell how good the predictions were.

    That is how a forest does that learns as data come: no sample is predicted after it was
    learned. The first batch cannot be predicted and does not count, unless --from names a model.
    Nothing is saved. DATA is a CSV or Parquet file, or - for standard input: see `train --help`.

    For classes: accuracy, and log loss in nats (a probability counts as 0.001 at least). For
    numbers, in units of the target: the root of the mean squared error (RMSE), the mean absolute
    error, and the coverage and mean width of intervals.
    """
    if given["picture"] is not None:
        require("matplotlib", "plot")
    if given["no_learn"] and given["from_"] is None:
        raise click.UsageError("--no-learn needs a model: name one with --from.")
    with _opened({**given, "id_": None}) as run:
        start = run.start(given, found_forest(None, False, given["from_"]))
        learn = not given["no_learn"]
        training = Training(start.forest, start.position, coverage=given["coverage"], learn=learn)
        curve = Curve()
        run.learn(training, None, given["curve"], curve)
        run.reporter.say(run.bad_rows.words())
        if training.measures.n == 0:
            raise ValueError(
                f"{run.table.name} has {training.rows:,} rows, which is one batch or less: nothing "
                "was predicted. Choose a smaller --batch-size."
            )
        _show_measures(training, run.reporter.seconds, given)
        if given["picture"] is not None:
            _draw(curve, given["picture"])
        if given["curve"] is not None:
            run.reporter.say(f"Saved {given['curve']}")


class Run:
    """A table that is being learned, and what is shown meanwhile."""

    def __init__(self, table: Table, given: dict[str, Any], interrupts: Interrupts) -> None:
        self.table, self._given, self.interrupts = table, given, interrupts
        self.bad_rows, self.reporter = BadRows(given["skip_bad_rows"]), Reporter(given["quiet"])

    def start(self, given: dict[str, Any], found: Found | None) -> Start:
        """Find out what each column is, and where to begin."""
        drop = given["drop"]
        names = None if found is None else getattr(found.forest, "feature_names_in_", None)
        if names is not None:  # whatever else is in the table is not looked at
            missing = [name for name in names if all(c.name != name for c in self.table.columns)]
            if missing:
                raise ValueError(f"{self.table.name} lacks {listed(missing)}, which the model has.")
            known = {*names, given["target"], self._given["id_"]}
            drop = tuple(c.name for c in self.table.columns if c.name not in known)
        self.roles = roles_in(self.table, given["target"], drop, self._given["id_"])
        start = started(_choices(given), found, fingerprint(self.table, self.roles))
        self.wanted = wanted_of(self.table, self.roles, start.forest)
        self.reporter.say(start.words)
        return start

    def learn(
        self,
        training: Training,
        checkpointer: Checkpointer | None,
        curve_path: Path | None,
        curve: Curve | None = None,
    ) -> None:
        """Learn all of the table, show how it goes, save checkpoints."""
        n_start = n_before = training.rows
        with ExitStack() as stack, self._ended_by_interrupts():
            curves: list[CurveFile | Curve] = [] if curve is None else [curve]
            if curve_path is not None:
                curves.append(stack.enter_context(closing(CurveFile(curve_path, n_start))))
            stack.enter_context(self.reporter)
            check = self.interrupts.check
            for n in training.run(self.table, self.roles, self.wanted, self._on_bad_row, check):
                if training.last.n:
                    for each in curves:
                        each.add(n_before, training.measures, training.last)
                n_before = n
                means = training.measures.means()
                self.reporter.show(self.table.fraction_read(), n, n - n_start, means)
                check()
                if checkpointer is not None:
                    checkpointer.update(training.forest, training.position().as_json())
        self.n_now = training.rows - n_start

    @contextmanager
    def _ended_by_interrupts(self) -> Iterator[None]:
        try:
            yield
        except TableError:
            self.interrupts.check()  # as for bad rows: in a pipe, a quote may be cut off
            raise

    def _on_bad_row(self, bad: BadRow) -> None:
        # Ctrl-C ends those, too, who write into a pipe: what comes last from it is often cut off.
        self.interrupts.check()
        self.bad_rows(bad)


@contextmanager
def _opened(given: dict[str, Any]) -> Iterator[Run]:
    with (
        Interrupts() as interrupts,
        closing(
            open_table(given["data"], given["format_"], given["delimiter"], n_looked_at=_LOOKED_AT)
        ) as table,
    ):
        if given["target"] is None:
            names = listed([column.name for column in table.columns])
            raise click.UsageError(f"Missing option '--target': which of these columns? {names}")
        yield Run(table, given, interrupts)


def _choices(given: dict[str, Any]) -> Choices:
    names = {
        "trees": "n_estimators",
        "window": "window",
        "reservoir": "reservoir",
        "half_life": "half_life",
        "seed": "random_state",
    }
    parameters = {names[key]: given[key] for key in names if given[key] is not None}
    learn = not given.get("no_learn", False)
    return Choices(given["task"], parameters, given["jobs"], given["batch_size"], learn)


def _checkpointer(given: dict[str, Any]) -> Checkpointer | None:
    folder, seconds, samples = (
        given["checkpoints"],
        given["every_seconds"],
        given["every_samples"],
    )
    if folder is None:
        if seconds is not None or samples is not None:
            raise click.UsageError("--every-seconds and --every-samples need --checkpoints FOLDER.")
        return None
    if seconds is None and samples is None:
        seconds = _DEFAULT_SECONDS
    return Checkpointer(folder, every_seconds=seconds, every_samples=samples)


def _save(training: Training, store: Store, is_finished: bool = True) -> None:
    position = replace(training.position(), is_finished=is_finished).as_json()
    if store.checkpointer is not None:
        store.checkpointer.save(training.forest, position)
    write_model(training.forest, store.model, position)


def _save_interrupted(run: Run, training: Training, store: Store) -> NoReturn:
    say = run.reporter.say
    if training.rows == 0:
        say("Interrupted before anything was learned; nothing saved.")
        sys.exit(INTERRUPTED)
    try:
        _save(training, store, is_finished=False)
    except KeyboardInterrupt:
        say("Interrupted again while saving: files are as they were before.")
        sys.exit(INTERRUPTED)
    say(
        f"Interrupted after {training.rows:,} samples. Saved {store.model}. To go on, give the "
        "same command with --resume."
    )
    sys.exit(INTERRUPTED)


def _save_finished(run: Run, training: Training, store: Store) -> None:
    if training.rows == 0:
        raise ValueError(f"{run.table.name} has no rows to learn.{run.bad_rows.words(' ')}")
    seconds = run.reporter.seconds
    if run.n_now == 0:
        write_model(training.forest, store.model, training.position().as_json())
        run.reporter.say(f"Nothing more to learn. Saved {store.model}.{run.bad_rows.words(' ')}")
        return
    _save(training, store)
    means = measures(training.measures.means(), most=2).removeprefix(", ")
    over = "" if run.n_now == training.rows else f", over all {training.rows:,} samples"
    predicted = f" Predicted before they were learned{over}: {means}." if means else ""
    run.reporter.say(
        f"Learned {run.n_now:,} samples in {seconds:.1f} s ({run.n_now / seconds:,.0f}/s)."
        f"{predicted} Saved {store.model}.{run.bad_rows.words(' ')}"
    )


def _show_measures(training: Training, seconds: float, given: dict[str, Any]) -> None:
    means, n = training.measures.means(), training.measures.n
    if given["as_json"]:
        facts = {"samples": training.rows, "predicted": n, "seconds": round(seconds, 3), **means}
        click.echo(json.dumps(facts, indent=2))
        return
    lines = [("samples", f"{training.rows:,}"), ("of these predicted", f"{n:,}")]
    names = {**MEASURES, "coverage": f"coverage of intervals for {given['coverage']:g}"}
    lines += [(names.get(name, name), f"{value:.4g}") for name, value in means.items()]
    width = max(len(label) for label, _ in lines)
    for label, value in lines:
        click.echo(f"{label:{width}}  {value:>10}")


def _draw(curve: Curve, path: Path) -> None:
    from onlineforest._cli.plot import draw_curve, saved_picture

    with saved_picture(path) as axes:
        draw_curve(axes, curve.samples, curve.values)
