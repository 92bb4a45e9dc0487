"""Options of all commands that read tables and learn from them. Knows no single command."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from onlineforest._cli.base import option, options
from onlineforest._cli.defaults import DEFAULT_BATCH_SIZE, DEFAULT_KIND, NAMES
from onlineforest._cli.paths import check_output_file

DATA = "Data to learn"
REPORT = "Report"
FILE = click.Path(path_type=Path, dir_okay=False)
_FOREST = "The forest"
_READING = "How to read the data"


def table_options(batch_size_help: str) -> Callable[[Any], Any]:
    """Options that say how to read the rows of a table."""
    return options(
        option(
            "--batch-size",
            type=click.IntRange(1),
            metavar="N",
            section=_READING,
            help=batch_size_help,
        ),
        option(
            "--skip-bad-rows",
            is_flag=True,
            section=_READING,
            help="Skip rows that cannot be used, and report their number at the end. Without it, "
            "the first bad row ends the command with an error that names its line.",
        ),
        option(
            "--format",
            "format_",
            type=click.Choice(["csv", "parquet"]),
            section=_READING,
            help="Format of the data. Default: detected from the first bytes.",
        ),
        option(
            "--delimiter",
            metavar="C",
            section=_READING,
            callback=_check_delimiter,
            help="Separator of the fields of a CSV file. Default: a comma or, if the header has "
            "none, a semicolon, tab or |.",
        ),
    )


def _check_delimiter(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    value = "\t" if value == "\\t" else value
    if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
        message = f"{value!r} is not one character such as ';'."
        raise click.BadParameter(message, context, parameter)
    return value


learning_options = options(
    click.argument("data"),
    option("--target", metavar="COLUMN", section=DATA, help="The column to predict. Required."),
    option(
        "--task",
        type=click.Choice(["classify", "regress"]),
        section=DATA,
        help="Whether the target is a class or a number. Required unless --from or --resume names "
        "a model. Classes are integers if all values in the first rows (at least 100) are, "
        "otherwise text.",
    ),
    option(
        "--drop",
        metavar="COLUMN",
        multiple=True,
        section=DATA,
        help="Ignore a column. May be given several times.",
    ),
    option(
        "--categorical",
        metavar="COLUMN",
        multiple=True,
        section=DATA,
        help="Learn a column as categories, though it looks like numbers or dates: codes such as "
        "those of shops. Columns of text and of true/false are categories without it, in "
        "order-free forests. The categories are whole numbers if all values in the first rows (at "
        "least 100) are, otherwise text. May be given several times.",
    ),
    option(
        "--numeric",
        metavar="COLUMN",
        multiple=True,
        section=DATA,
        help="Learn a column as numbers, though it looks like text in the first rows; true and "
        "false are 1 and 0. May be given several times.",
    ),
)


def _forest_option(name: str, type: Any, help: str) -> Callable[[Any], Any]:
    return option(name, type=type, metavar="N", section=_FOREST, help=help)


def kind_option(help: str, section: str = _FOREST, **attributes: Any) -> Callable[[Any], Any]:
    """The option `--forest`."""
    kinds = click.Choice(list(NAMES))
    return option("--forest", type=kinds, section=section, help=help, **attributes)


def _offsets(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float] | None:
    """The offset of each column; None if none is given."""
    offsets: dict[str, float] = {}
    for text in given:
        column, _, number = text.rpartition("=")
        try:
            offset = float(number)
        except ValueError:
            offset = math.nan
        if not column or not math.isfinite(offset):
            message = f"{text!r} is not COLUMN=NUMBER, such as time=1700000000."
            raise click.BadParameter(message, context, parameter)
        if column in offsets:
            raise click.BadParameter(f"{column!r} has two offsets.", context, parameter)
        offsets[column] = offset
    return offsets or None


forest_options = options(
    kind_option(
        f"Kind of the forest. Default: {DEFAULT_KIND}, which does not depend on the order of the "
        "rows; with --from or --resume, that of the model. mondrian has novelty, and classes only."
    ),
    _forest_option("--trees", click.IntRange(1), "Number of trees. Default: 100."),
    option(
        "--offset",
        metavar="COLUMN=NUMBER",
        multiple=True,
        callback=_offsets,
        section=_FOREST,
        help="Subtract a number from a column before it is rounded to float32, which keeps about 7 "
        "digits: time=1700000000 for seconds since 1970. May be given several times; the model "
        "keeps it. For order-free forests.",
    ),
    _forest_option(
        "--window",
        click.IntRange(1),
        "Keep only the latest N samples, to follow a changing stream with fixed memory. Default: "
        "keep all.",
    ),
    _forest_option(
        "--reservoir",
        click.IntRange(1),
        "Keep a random sample of N samples: fixed memory. Default: keep all.",
    ),
    _forest_option(
        "--half-life",
        click.FloatRange(1),
        "With --reservoir: a sample that arrived N samples earlier is half as likely to be kept.",
    ),
    _forest_option(
        "--seed", click.IntRange(0), "The same seed and data give the same forest. Default: 0."
    ),
    _forest_option(
        "--jobs",
        int,
        "Number of threads; -1 is one per processor. The forest does not depend on it. Default: 1.",
    ),
    option(
        "--from",
        "from_",
        type=FILE,
        metavar="MODEL",
        section=_FOREST,
        help="Continue with the forest of a model file, and learn all of DATA in addition.",
    ),
)

learning_table_options = table_options(
    f"Number of rows per batch, N. Default: {DEFAULT_BATCH_SIZE:,}. Each batch is predicted before "
    "it is learned: the metrics say how well the next N rows are predicted before any of their "
    "labels is known. A Mondrian forest depends slightly on the batch size."
)


def curve_option(help: str) -> Callable[[Any], Any]:
    """The option `--curve`."""
    return option(
        "--curve",
        type=FILE,
        metavar="FILE",
        callback=check_output_file,
        section=REPORT,
        help=help,
    )
