"""Options that several commands share, their defaults and checks. Knows no single command.

Must not import scikit-learn, which takes longer to import than the help to print.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from onlineforest._cli.commands import option, options
from onlineforest._cli.parameters import NAMES, parameter_options

DEFAULT_KIND = "order-free"
FIRST_BATCH_SIZE = 100  # rows of the first batch, unless --batch-size is given
BATCH_SHARE = 0.5  # a later batch has at most this share of the rows learned before it
DATA = "Data to learn"
REPORT = "Report"
FILE = click.Path(path_type=Path, dir_okay=False)
_FOREST = "The forest"
_READING = "How to read the data"


class BadRows:
    """Callable that raises at the first bad row, or counts the bad rows with --skip-bad-rows."""

    def __init__(self, skip: bool) -> None:
        self._skip, self.n, self._first = skip, 0, ""

    def __call__(self, bad: object) -> None:
        """Raise an error about a bad row, or count it."""
        if not self._skip:
            raise ValueError(f"{bad}. (--skip-bad-rows skips such rows.)")
        self._first = self._first or str(bad)
        self.n += 1

    def summary(self, prefix: str = "") -> str:
        """A sentence about the skipped rows; empty if there were none."""
        if self.n == 0:
            return ""
        rows = "1 bad row" if self.n == 1 else f"{self.n:,} bad rows, the first of them"
        return f"{prefix}Skipped {rows}: {self._first}."


def check_output_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an option: raise if a file cannot be written, before the command starts."""
    if path is not None and path.exists() and not path.is_file():  # a pipe or a device
        _check_writable(path, path)
    elif path is not None:
        _check_writable(path, path.resolve().parent)
    return path


def check_output_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an option: raise if a folder cannot be written to or created."""
    if path is not None:
        absolute = path.absolute()
        existing = next(each for each in (absolute, *absolute.parents) if each.exists())
        _check_writable(path, existing)
    return path


def _check_writable(given: Path, target: Path) -> None:
    code = 0
    if not target.exists():
        code = errno.ENOENT
    elif target != given and not target.is_dir():
        code = errno.ENOTDIR
    elif not os.access(target, os.W_OK | (os.X_OK if target.is_dir() else 0)):
        code = errno.EACCES
    if code:
        raise click.ClickException(f"{given}: {os.strerror(code)}")


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
            type=click.Choice(["csv", "jsonl", "parquet"]),
            section=_READING,
            help="Format of the data; jsonl: a JSON object per line; a missing key or null is a "
            "missing value. Default: jsonl if the name ends in .jsonl or .ndjson, otherwise "
            "detected from the first bytes.",
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


def _check_delimiter(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    value = "\t" if value == "\\t" else value
    if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
        raise click.BadParameter(
            f"{value!r} is not one character of ASCII other than a quote and a line break, such as "
            "';'."
        )
    return value


def kind_option(help: str, section: str = _FOREST, **attributes: Any) -> Callable[[Any], Any]:
    """The option `--forest`."""
    kinds = click.Choice(list(NAMES))
    return option("--forest", type=kinds, section=section, help=help, **attributes)


_data_options = options(
    click.argument("data"),
    option("--target", metavar="COLUMN", section=DATA, help="The column to predict. Required."),
    option(
        "--task",
        type=click.Choice(["classify", "regress"]),
        section=DATA,
        help="classify if the target is a class, regress if it is a number. Required unless --from "
        "or --resume names a model. Classes are integers if all values in the first rows (at least "
        "100) are, otherwise text.",
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
        help="Learn a column as categories, though its values look like numbers or dates: for "
        "example the codes of shops. In order-free forests, columns of text and of true/false are "
        "categories without this option. The categories are whole numbers if all values in the "
        "first rows (at least 100) are, otherwise text. May be given several times.",
    ),
    option(
        "--date",
        metavar="COLUMN",
        multiple=True,
        section=DATA,
        help="Learn a column of dates or times, such as 2024-01-31T12:30, as four numbers: days "
        "since 1970, hour, weekday (0 is Monday) and month, in UTC. The model keeps it. May be "
        "given several times.",
    ),
    option(
        "--numeric",
        metavar="COLUMN",
        multiple=True,
        section=DATA,
        help="Learn a column as numbers, though it holds text in the first rows; true and "
        "false are 1 and 0. May be given several times.",
    ),
)

_forest_options = options(
    kind_option(
        f"Kind of the forest. Default: {DEFAULT_KIND}, which does not depend on the order of the "
        "rows; with --from or --resume, that of the model. mondrian has novelty, and classes only."
    ),
    parameter_options(_FOREST),
    option(
        "--from",
        "from_",
        type=FILE,
        metavar="MODEL",
        section=_FOREST,
        help="Continue with the forest of a model file, and learn all of DATA in addition.",
    ),
)

learning_options = options(
    _data_options,
    _forest_options,
    table_options(
        "Rows per batch, N. Each batch is predicted before it is learned: the metrics say how well "
        "the next N rows are predicted before any of their labels is known. Default: batches that "
        f"grow: {FIRST_BATCH_SIZE} rows, then {BATCH_SHARE:.0%} of the rows learned, because a "
        "forest grows trees again to predict after each batch. For a slow stream, give N: rows "
        "wait until their batch is full. A Mondrian forest depends slightly on the batches."
    ),
)

curve_option = option(
    "--curve",
    type=FILE,
    metavar="FILE",
    callback=check_output_file,
    section=REPORT,
    help="Write the learning curve as CSV: samples learned, and each metric over all samples so "
    "far and over the batch alone.",
)
