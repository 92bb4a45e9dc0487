"""The command `train`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from onlineforest._cli.commands import INTERRUPTED, command, option
from onlineforest._cli.options import (
    DATA,
    FILE,
    REPORT,
    check_output_file,
    check_output_folder,
    curve_option,
    learning_options,
)

if TYPE_CHECKING:
    from onlineforest._cli.forests import ModelStore
    from onlineforest._cli.run import Run
    from onlineforest._cli.training import Training
    from onlineforest._store.checkpoints import Checkpointer

_CHECKPOINTS = "Checkpoints"
_DEFAULT_SECONDS = 60.0


@command(
    "train",
    "onlineforest train flowers.csv --target species --task classify -o flowers.safetensors",
    "onlineforest train patients.csv --target progression --task regress --drop patient \\\n"
    "      --checkpoints saved --every-seconds 300 --resume -o patients.safetensors",
    "cat patients.csv | onlineforest train - --target progression --task regress \\\n"
    "      --id patient --window 200 -o latest.safetensors",
    "onlineforest train flowers.csv --target species --task classify --forest mondrian \\\n"
    "      -o mondrian.safetensors",
)
@learning_options
@option(
    "-o",
    "--model",
    type=FILE,
    required=True,
    metavar="FILE",
    callback=check_output_file,
    section=DATA,
    help="Where to save the forest (.safetensors). An existing file is replaced when the new one "
    "is complete.",
)
@option(
    "--id",
    "id_",
    metavar="COLUMN",
    section=DATA,
    help="A column of unique ids, by which `forget` of Python finds samples later. Ids are "
    "integers if all in the first rows are, otherwise text; a model that is continued keeps the "
    "type of its ids.",
)
@option(
    "--checkpoints",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    callback=check_output_folder,
    section=_CHECKPOINTS,
    help="Save the forest regularly; the last three checkpoints are kept. If the command is "
    "killed, only samples after the last checkpoint are lost.",
)
@option(
    "--every-seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    section=_CHECKPOINTS,
    help=f"Seconds between checkpoints. Default: {_DEFAULT_SECONDS:.0f}, unless --every-samples "
    "is given.",
)
@option(
    "--every-samples",
    type=click.IntRange(1),
    metavar="N",
    section=_CHECKPOINTS,
    help="Samples between checkpoints.",
)
@option(
    "--resume",
    is_flag=True,
    section=_CHECKPOINTS,
    help="Continue from the newest valid checkpoint, or from the model file if it has learned "
    "more, and skip the rows already learned. The result is bit for bit the forest of an "
    "uninterrupted run; a Mondrian forest is not if DATA has grown past a last batch that was not "
    "full. Starts from the first row if neither exists.",
)
@option(
    "--no-evaluate",
    is_flag=True,
    section=REPORT,
    help="Do not predict each batch before learning it: faster.",
)
@curve_option
@option("-q", "--quiet", is_flag=True, section=REPORT, help="Print nothing but errors.")
def train(**given: Any) -> None:
    """Learn a forest from DATA: CSV, JSON lines or Parquet, or - for standard input.

    Rows are read and learned in batches, so DATA may be larger than memory. The forest keeps
    every sample, unless --window or --reservoir limits it. CSV needs a header; text may be gzipped.
    Columns of numbers are learned as numbers; columns of text and of true/false are categories. (A
    Mondrian forest learns no text, and true/false as 1 and 0.) A CSV column of numbers with text
    among its first 100 rows is a column of text. --categorical and --numeric override this.
    Missing numbers are empty, NA, NaN, null, None or ?; a missing category is empty. A row is bad
    if its target is missing, and for a Mondrian forest also if a feature is missing.

    Ctrl-C (or SIGTERM) saves the samples learned so far and exits with code 130; --resume
    continues.
    """
    checkpointer = _checkpointer(given)
    from onlineforest._cli.forests import ModelStore, load_previous
    from onlineforest._cli.run import open_run
    from onlineforest._cli.training import Training

    with open_run(given) as run:
        store = ModelStore(given["model"], checkpointer)
        if not given["resume"]:
            store.check_is_new(given["from_"])
        start = run.start(load_previous(given["from_"], store if given["resume"] else None))
        if given["resume"] and not start.message:
            run.reporter.say("Nothing to resume: starting from the first row.")
        training = Training(start.forest, start.position, evaluate=not given["no_evaluate"])
        try:
            run.learn(training, checkpointer, given["curve"])
        except KeyboardInterrupt:
            run.interrupts.cancel()
            _save_interrupted(run, training, store)
        except ValueError:
            if checkpointer is not None and training.n_rows > start.position.rows:
                checkpointer.save(training.forest, training.position().as_json())
            raise
        _save_finished(run, training, store)


def _checkpointer(given: dict[str, Any]) -> Checkpointer | None:
    folder, seconds = given["checkpoints"], given["every_seconds"]
    samples = given["every_samples"]
    if folder is None:
        if seconds is not None or samples is not None:
            raise click.UsageError("--every-seconds and --every-samples need --checkpoints FOLDER.")
        return None
    if seconds is None and samples is None:
        seconds = _DEFAULT_SECONDS
    from onlineforest._store.checkpoints import Checkpointer

    return Checkpointer(folder, every_seconds=seconds, every_samples=samples)


def _save(training: Training, store: ModelStore, is_finished: bool = True) -> None:
    from onlineforest._forests.saving import write_model

    position = replace(training.position(), is_finished=is_finished).as_json()
    if store.checkpointer is not None:
        store.checkpointer.save(training.forest, position)
    if is_finished:
        training.finish()
    write_model(training.forest, store.model, position)


def _save_interrupted(run: Run, training: Training, store: ModelStore) -> NoReturn:
    say = run.reporter.say
    if training.n_rows == 0:
        say("Interrupted before the first batch was learned; nothing saved.")
        sys.exit(INTERRUPTED)
    try:
        _save(training, store, is_finished=False)
    except KeyboardInterrupt:
        say("Interrupted again while saving: the files are unchanged.")
        sys.exit(INTERRUPTED)
    say(
        f"Interrupted after {training.n_rows:,} samples. Saved {store.model}. To continue, run the "
        "same command with --resume."
    )
    sys.exit(INTERRUPTED)


def _save_finished(run: Run, training: Training, store: ModelStore) -> None:
    from onlineforest._cli.metrics import format_metrics

    skipped = run.bad_rows.summary(" ")
    if training.n_rows == 0:
        raise ValueError(f"{run.table.name} has no rows to learn.{skipped}")
    seconds = run.reporter.seconds
    if run.n_learned == 0:
        _save(training, replace(store, checkpointer=None))
        run.reporter.say(f"Nothing more to learn. Saved {store.model}.{skipped}")
        return
    _save(training, store)
    means = format_metrics(training.metrics.means(), max_metrics=2).removeprefix(", ")
    over = "" if run.n_learned == training.n_rows else f", over all {training.n_rows:,} samples"
    predicted = f" Predicted before they were learned{over}: {means}." if means else ""
    run.reporter.say(
        f"Learned {run.n_learned:,} samples in {seconds:.1f} s ({run.n_learned / seconds:,.0f}/s)."
        f"{predicted} Saved {store.model}.{skipped}"
    )
