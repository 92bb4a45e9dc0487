"""The command `predict`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from onlineforest._cli.base import BadRows, Command, checked_file, examples, option, table_options
from onlineforest._cli.predictions import CsvWriter, ParquetWriter, Question, predictions
from onlineforest._files.atomic import replacing
from onlineforest._models.loading import load
from onlineforest._tables.tables import open_table

_ANSWERS = "What to predict"
_OUTPUT = "Where it goes"
_DEFAULT_BATCH = 10_000


_EXAMPLES = examples(
    "onlineforest predict flowers.safetensors new-flowers.csv --probabilities > out.csv",
    "onlineforest predict patients.safetensors patients.csv --intervals 0.9 --keep patient \\\n"
    "      -o out.parquet",
    "cat new-flowers.csv | onlineforest predict flowers.safetensors - --batch-size 1 --novelty",
)


@click.command(
    "predict",
    cls=Command,
    short_help="Predict the rows of a CSV or Parquet file.",
    epilog=_EXAMPLES,
)
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("data")
@option(
    "--probabilities",
    is_flag=True,
    section=_ANSWERS,
    help="For classes: a column probability_CLASS for each class, too.",
)
@option(
    "--intervals",
    "coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    section=_ANSWERS,
    help="For numbers: columns lower and upper, between which this share of values lies; 0.9 "
    "is nine in ten.",
)
@option(
    "--std",
    is_flag=True,
    section=_ANSWERS,
    help="For numbers: a column std, the standard deviation of what is predicted.",
)
@option(
    "--novelty",
    is_flag=True,
    section=_ANSWERS,
    help="A column novelty: how far a row is from everything learned, 0 to 1.",
)
@option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    section=_OUTPUT,
    help="Pass a column of DATA through, an id for instance. May be given several times.",
)
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=checked_file,
    section=_OUTPUT,
    help="Parquet if it ends in .parquet, otherwise CSV. Default: CSV to standard output.",
)
@option(
    "--jobs",
    type=int,
    metavar="N",
    section=_OUTPUT,
    help="Threads; -1 is one for each processor. Default: what the model was learned with.",
)
@table_options(
    f"Rows predicted at a time. Default: {_DEFAULT_BATCH:,}. With 1, each line of a slow stream is "
    "predicted as soon as it comes."
)
def predict(model: Path, data: str, **given: Any) -> None:
    """Predict the rows of DATA with the forest of a model file.

    DATA is a CSV file with a header, gzipped or not, a Parquet file, or - for standard input. The
    model finds its columns by their names, in any order; other columns are ignored. Rows come out
    in the order in which they came, as they are predicted: DATA may be larger than memory.
    """
    question = Question(
        given["probabilities"], given["coverage"], given["std"], given["novelty"], given["keep"]
    )
    bad_rows = BadRows(given["skip_bad_rows"])
    forest = load(model)
    if given["jobs"] is not None:
        forest.set_params(n_jobs=given["jobs"])
    batch_size = given["batch_size"] or _DEFAULT_BATCH
    with closing(open_table(data, given["format_"], given["delimiter"])) as table:
        batches = predictions(forest, table, question, batch_size, bad_rows)
        first = next(batches)  # an error here leaves the output as it was
        with _writer(given["output"]) as writer:
            writer.write(first)
            for batch in batches:
                writer.write(batch)
    if bad_rows.n:
        click.echo(bad_rows.words(), err=True)


@contextmanager
def _writer(path: Path | None) -> Iterator[CsvWriter | ParquetWriter]:
    if path is None:
        yield CsvWriter(sys.stdout.buffer)
        return
    with _output(path) as file:
        kind = ParquetWriter if path.suffix in (".parquet", ".pq") else CsvWriter
        with closing(kind(file)) as writer:
            yield writer


@contextmanager
def _output(path: Path) -> Iterator[BinaryIO]:
    """A file takes its name when it is complete; a pipe or a device is just written to."""
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
    else:
        with replacing(path) as file:
            yield file
