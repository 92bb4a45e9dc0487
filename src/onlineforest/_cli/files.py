"""The commands that read model files: `inspect` and `verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from onlineforest._cli.commands import command, option, readable_errors

_SECTION = "Report"


@command("inspect", "onlineforest inspect flowers.safetensors")
@click.argument("file", type=click.Path(path_type=Path))
@option("--json", "as_json", is_flag=True, section=_SECTION, help="Print the description as JSON.")
@option("--arrays", is_flag=True, section=_SECTION, help="List the arrays, too.")
def inspect(file: Path, as_json: bool, arrays: bool) -> None:
    """Describe a model file.

    Reads only the header of the file, which is fast, and checks neither the digest nor the trees;
    `verify` checks both.
    """
    from onlineforest._store.inspection import describe, lines_about

    if as_json:
        click.echo(json.dumps(describe(file), indent=2))
    else:
        click.echo("\n".join(lines_about(file, arrays)))


@command("verify", "onlineforest verify flowers.safetensors")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "--max-bytes",
    type=click.IntRange(0),
    section=_SECTION,
    help="Reject forests that need more memory.",
)
def verify(files: tuple[Path, ...], max_bytes: int | None) -> None:
    """Check model files: their digests, and every node of every tree.

    Exits with code 1 if a file is not valid. Needs the memory of the largest forest.
    """
    from onlineforest._store.inspection import verify_file

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
