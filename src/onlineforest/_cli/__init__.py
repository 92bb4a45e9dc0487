"""The command line: the command `onlineforest`. The only room that knows terminals.

Needs the extra `cli`; pictures also need `plot`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from onlineforest._extras import MissingExtraError, require

if TYPE_CHECKING:
    import click


def main() -> None:
    """Entry point of the `onlineforest` command."""
    try:
        for package in ("click", "rich", "pyarrow"):
            require(package, "cli")
    except MissingExtraError as error:
        print(f"onlineforest: {error}", file=sys.stderr)
        sys.exit(1)
    build_command()(prog_name="onlineforest")


def build_command() -> click.Group:
    """The command with all subcommands."""
    import click

    from onlineforest._cli.commands import AllCommands

    @click.group(cls=AllCommands, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="onlineforest")
    def onlineforest() -> None:
        """Random forests that learn online, from files and streams.

        `onlineforest COMMAND --help` explains each command, with examples. Exit codes: 0 for
        success, 1 for an error in data or a model, 2 for an error in the command line, 130 for an
        interrupt.
        """

    return onlineforest
