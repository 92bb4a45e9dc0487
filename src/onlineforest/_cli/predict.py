"""The command `predict`: predict the rows of a table, and write the predictions.

Imports NumPy, Arrow and forests only when it runs: they take longer to import than the help to
print.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from onlineforest._cli.commands import command, option
from onlineforest._cli.options import FILE, BadRows, check_output_file, table_options
from onlineforest._files.atomic import replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from onlineforest._cli.forests import Forest
    from onlineforest._tables.columns import OnBadRow, Table

_PREDICTIONS = "What to predict"
_OUTPUT = "Output"
_DEFAULT_BATCH_SIZE = 10_000


@command(
    "predict",
    "onlineforest predict flowers.safetensors new-flowers.csv --probabilities > out.csv",
    "onlineforest predict patients.safetensors patients.csv --intervals 0.9 --keep patient \\\n"
    "      -o out.parquet",
    "cat new-flowers.csv | onlineforest predict flowers.safetensors - --batch-size 1",
    "onlineforest predict mondrian.safetensors new-flowers.csv --novelty",
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
    help="Parquet if it ends in .parquet, JSON lines if it ends in .jsonl or .ndjson, otherwise "
    "CSV. Default: to standard output, as JSON lines if DATA are, otherwise as CSV.",
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

    DATA is a file of CSV with a header or of JSON lines, gzipped or not, a Parquet file, or - for
    standard input. The model finds its columns by name, in any order; other columns are ignored.
    Predictions keep the order of the rows and are written batch by batch, so DATA may be larger
    than memory.
    """
    from onlineforest._store.loading import load
    from onlineforest._tables.tables import open_table

    requested = _Requested(
        given["probabilities"], given["coverage"], given["std"], given["novelty"], given["keep"]
    )
    bad_rows = BadRows(given["skip_bad_rows"])
    forest = load(model)
    if given["jobs"] is not None:
        forest.set_params(n_jobs=given["jobs"])
    batch_size = given["batch_size"] or _DEFAULT_BATCH_SIZE
    with closing(open_table(data, given["format_"], given["delimiter"])) as table:
        batches = _predictions(forest, table, requested, batch_size, bad_rows)
        first = next(batches)  # an error here leaves an existing output file unchanged
        _write(chain([first], batches), given["output"], not table.has_fixed_columns)
    if bad_rows.n:
        click.echo(bad_rows.summary(), err=True)


@dataclass(frozen=True)
class _Requested:
    """Which columns to predict, and which columns of the table to copy."""

    probabilities: bool
    coverage: float | None
    std: bool
    novelty: bool
    keep: tuple[str, ...]

    def check(self, forest: Forest) -> None:
        """Raise if this forest cannot predict the requested columns."""
        from onlineforest._cli.forests import TrainingError
        from onlineforest._forests.classification import BaseClassifier
        from onlineforest._forests.mondrian.classifier import MondrianForestClassifier

        if self.probabilities and not isinstance(forest, BaseClassifier):
            raise TrainingError("--probabilities is for classes, but the model predicts numbers.")
        if self.coverage is not None and isinstance(forest, BaseClassifier):
            raise TrainingError("--intervals is for numbers, but the model predicts classes.")
        if self.std and isinstance(forest, BaseClassifier):
            raise TrainingError("--std is for numbers, but the model predicts classes.")
        if self.novelty and not isinstance(forest, MondrianForestClassifier):
            raise TrainingError(
                f"--novelty is for Mondrian forests, but the model is an {type(forest).__name__}. "
                "`train --forest mondrian` learns one."
            )


def _predictions(
    forest: Forest, table: Table, requested: _Requested, batch_size: int, on_bad_row: OnBadRow
) -> Iterator[pa.Table]:
    """Yield, for each batch of rows, the copied columns and the predictions.

    A table without rows yields one empty batch, which has the names of the columns.
    """
    import pyarrow as pa

    from onlineforest._cli.columns import feature_specs, features_in, integers_or_text, rows_for
    from onlineforest._cli.forests import rejection
    from onlineforest._tables.columns import ColumnSpec
    from onlineforest._tables.tables import find_column, rebatch

    requested.check(forest)
    features = features_in(table, forest, requested.keep)
    specs = feature_specs(table, features, forest)
    for name in requested.keep:
        specs.setdefault(name, ColumnSpec(integers_or_text(find_column(table, name))))
    n_rows = 0
    for batch in rebatch(table.read(specs, on_bad_row), repeat(batch_size)):
        rows = rows_for(forest, batch.select(features))
        try:
            columns = _predict(forest, rows, requested)
        except ValueError as error:
            raise rejection("rows", n_rows + 1, len(batch), error) from error
        n_rows += len(batch)
        yield _with_kept_columns(batch, requested, columns)
    if n_rows == 0:
        empty = pa.table({name: pa.array([], pa.string()) for name in specs})
        zeros = pa.table({name: [0.0] for name in features})
        example = _predict(forest, rows_for(forest, zeros), requested)
        yield _with_kept_columns(
            empty, requested, {name: values[:0] for name, values in example.items()}
        )


def _with_kept_columns(batch: pa.Table, requested: _Requested, columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    from onlineforest._tables.columns import TableError, join_names

    both = [name for name in requested.keep if name in columns]
    if both:
        raise TableError(
            f"--keep cannot copy {join_names(both)}: a column of predictions has the same name."
        )
    kept = {name: batch.column(name) for name in requested.keep}
    return pa.table({**kept, **{name: pa.array(values) for name, values in columns.items()}})


def _predict(forest: Forest, rows: Any, requested: _Requested) -> dict[str, Any]:
    from onlineforest._forests.classification import BaseClassifier
    from onlineforest._forests.mondrian.classifier import MondrianForestClassifier

    columns: dict[str, Any] = {}
    if isinstance(forest, BaseClassifier):
        probabilities, classes = forest.predict_proba(rows), forest.classes_
        columns["prediction"] = classes[probabilities.argmax(axis=1)]
        if requested.probabilities:
            for i, label in enumerate(classes):
                columns[f"probability_{label}"] = probabilities[:, i]
    else:
        # A standard deviation takes longer than the mean alone.
        mean, std = forest.predict(rows, True) if requested.std else (forest.predict(rows), None)
        columns["prediction"] = mean
        if requested.coverage is not None:
            columns["lower"], columns["upper"] = forest.predict_interval(rows, requested.coverage).T
        if requested.std:
            columns["std"] = std
    if requested.novelty:
        assert isinstance(forest, MondrianForestClassifier)
        columns["novelty"] = forest.novelty(rows)
    return columns


def _write(batches: Iterator[pa.Table], path: Path | None, are_objects: bool) -> None:
    """Write batches to a file, whose ending decides the format, or to standard output."""
    if path is None:
        (_write_json if are_objects else _write_csv)(batches, sys.stdout.buffer)
        return
    writers = {".parquet": _write_parquet, ".pq": _write_parquet}
    writers |= {".jsonl": _write_json, ".ndjson": _write_json}
    with _opened(path) as file:
        writers.get(path.suffix, _write_csv)(batches, file)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open an output; a regular file replaces an existing one only when all rows are written."""
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
    else:
        with replacing(path) as file:
            yield file


def _write_csv(batches: Iterator[pa.Table], file: BinaryIO) -> None:
    """Write batches as CSV, and flush each: the reader of a pipe waits for it."""
    import pyarrow as pa

    for i, batch in enumerate(batches):
        if i == 0:
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(batch.column_names)
            file.write(header.getvalue().encode())
        try:
            data = _csv_rows(batch, "none")
        except pa.ArrowInvalid:  # a text needs quotes
            data = _csv_rows(batch, "needed")
        file.write(data)
        file.flush()


def _write_json(batches: Iterator[pa.Table], file: BinaryIO) -> None:
    """Write batches as JSON lines, and flush each."""
    for batch in batches:
        for row in batch.to_pylist():
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        file.flush()


def _csv_rows(batch: pa.Table, quoting: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    sink = pa.BufferOutputStream()
    options = arrow_csv.WriteOptions(include_header=False, quoting_style=quoting)
    arrow_csv.write_csv(batch, sink, options)
    return sink.getvalue()


def _write_parquet(batches: Iterator[pa.Table], file: BinaryIO) -> None:
    from pyarrow import parquet

    first = next(batches)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_table(batch)
