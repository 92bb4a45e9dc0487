"""The commands that look at model files: `inspect` and `verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from onlineforest._cli.base import Command, examples, option, readable_errors
from onlineforest._models.inspection import describe, lines_about, verify_file

_SECTION = "What to tell"


@click.command(
    "inspect",
    cls=Command,
    short_help="Tell what a model file holds.",
    epilog=examples("onlineforest inspect flowers.safetensors"),
)
@click.argument("file", type=click.Path(path_type=Path))
@option("--json", "as_json", is_flag=True, section=_SECTION, help="All of it, as JSON.")
@option("--arrays", is_flag=True, section=_SECTION, help="List the arrays, too.")
def inspect(file: Path, as_json: bool, arrays: bool) -> None:
    """Tell what a model file holds.

    Reads what the file says of itself, not the trees: quick, but nothing is checked. `verify`
    does.
    """
    if as_json:
        click.echo(json.dumps(describe(file), indent=2))
    else:
        click.echo("\n".join(lines_about(file, arrays)))


@click.command(
    "verify",
    cls=Command,
    short_help="Check every byte and node of model files.",
    epilog=examples("onlineforest verify flowers.safetensors"),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "--max-bytes",
    type=click.IntRange(0),
    section=_SECTION,
    help="Refuse forests that take more memory.",
)
def verify(files: tuple[Path, ...], max_bytes: int | None) -> None:
    """Check model files: their digests, and every node of every tree.

    Exits with 1 if one of them is not sound. Takes the memory of the largest forest.
    """
    n_bad = 0
    for file in files:
        try:
            with readable_errors():
                click.echo(f"{file}: sound, {verify_file(file, max_bytes)}")
        except click.ClickException as error:
            error.show()
            n_bad += 1
    if n_bad:
        sys.exit(1)
