"""The command `predict`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from onlineforest._cli.bad_rows import BadRows
from onlineforest._cli.base import Command, examples, option
from onlineforest._cli.commands import ENTRIES
from onlineforest._cli.paths import check_output_file
from onlineforest._cli.table_options import FILE, table_options
from onlineforest._files.atomic import replacing

if TYPE_CHECKING:
    from onlineforest._cli.predictions import CsvWriter, ParquetWriter

_PREDICTIONS = "What to predict"
_OUTPUT = "Output"
_DEFAULT_BATCH_SIZE = 10_000


_EXAMPLES = examples(
    "onlineforest predict flowers.safetensors new-flowers.csv --probabilities > out.csv",
    "onlineforest predict patients.safetensors patients.csv --intervals 0.9 --keep patient \\\n"
    "      -o out.parquet",
    "cat new-flowers.csv | onlineforest predict flowers.safetensors - --batch-size 1",
    "onlineforest predict mondrian.safetensors new-flowers.csv --novelty",
)


@click.command(
    "predict",
    cls=Command,
    short_help=ENTRIES["predict"].summary,
    epilog=_EXAMPLES,
)
@click.argument("model", type=FILE)
@click.argument("data")
@option(
    "--probabilities",
    is_flag=True,
    section=_PREDICTIONS,
    help="For classes: add a column probability_CLASS for each class.",
)
@option(
    "--intervals",
    "coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    section=_PREDICTIONS,
    help="For numbers: add columns lower and upper, the ends of intervals with this coverage, such "
    "as 0.9.",
)
@option(
    "--std",
    is_flag=True,
    section=_PREDICTIONS,
    help="For numbers: add a column std, the standard deviation of the prediction.",
)
@option(
    "--novelty",
    is_flag=True,
    section=_PREDICTIONS,
    help="For Mondrian forests: add a column novelty, how far a row is from all samples learned, "
    "0 to 1.",
)
@option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    section=_OUTPUT,
    help="Copy a column of DATA, such as an id, to the output. May be given several times.",
)
@option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    callback=check_output_file,
    section=_OUTPUT,
    help="Parquet if it ends in .parquet, otherwise CSV. Default: CSV to standard output.",
)
@option(
    "--jobs",
    type=int,
    metavar="N",
    section=_OUTPUT,
    help="Number of threads; -1 is one per processor. Default: that of the model.",
)
@table_options(
    f"Number of rows per batch. Default: {_DEFAULT_BATCH_SIZE:,}. With 1, each line of a slow "
    "stream is predicted as soon as it arrives."
)
def predict(model: Path, data: str, **given: Any) -> None:
    """Predict the rows of DATA with the forest of a model file.

    DATA is a CSV file with a header, gzipped or not, a Parquet file, or - for standard input. The
    model finds its columns by name, in any order; other columns are ignored. Predictions keep the
    order of the rows and are written batch by batch, so DATA may be larger than memory.
    """
    from onlineforest._cli.predictions import PredictionRequest, predictions
    from onlineforest._store.loading import load
    from onlineforest._tables.tables import open_table

    request = PredictionRequest(
        given["probabilities"], given["coverage"], given["std"], given["novelty"], given["keep"]
    )
    bad_rows = BadRows(given["skip_bad_rows"])
    forest = load(model)
    if given["jobs"] is not None:
        forest.set_params(n_jobs=given["jobs"])
    batch_size = given["batch_size"] or _DEFAULT_BATCH_SIZE
    with closing(open_table(data, given["format_"], given["delimiter"])) as table:
        batches = predictions(forest, table, request, batch_size, bad_rows)
        first = next(batches)  # an error here leaves an existing output file unchanged
        with _writer(given["output"]) as writer:
            writer.write(first)
            for batch in batches:
                writer.write(batch)
    if bad_rows.n:
        click.echo(bad_rows.summary(), err=True)


@contextmanager
def _writer(path: Path | None) -> Iterator[CsvWriter | ParquetWriter]:
    from onlineforest._cli.predictions import CsvWriter, ParquetWriter

    if path is None:
        yield CsvWriter(sys.stdout.buffer)
        return
    with _output(path) as file:
        writer_type = ParquetWriter if path.suffix in (".parquet", ".pq") else CsvWriter
        with closing(writer_type(file)) as writer:
            yield writer


@contextmanager
def _output(path: Path) -> Iterator[BinaryIO]:
    """Open an output; a regular file replaces an existing one only when it is complete."""
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
    else:
        with replacing(path) as file:
            yield file
