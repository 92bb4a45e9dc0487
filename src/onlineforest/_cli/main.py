"""The command line. Needs the extra `cli`; pictures need `plot` as well."""

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
    """The command with all its subcommands."""
    import click

    from onlineforest._cli.base import Group
    from onlineforest._cli.demo import demo, example_data
    from onlineforest._cli.files import inspect, verify
    from onlineforest._cli.plot import plot
    from onlineforest._cli.predict import predict
    from onlineforest._cli.train import evaluate, train

    @click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="onlineforest")
    def onlineforest() -> None:
        """Random forests that learn online: from files, streams, or by way of a demonstration.

        `onlineforest COMMAND --help` explains each command, with examples. Commands end with code
        0 if all went well, 1 if something is wrong with data or a model, 2 if the command itself
        is not understood, 130 if interrupted.
        """

    onlineforest.sections = {
        "Learn and predict": (train, predict, evaluate),
        "Look at a model": (inspect, verify, plot),
        "See it work": (demo, example_data),
    }
    for commands in onlineforest.sections.values():
        for command in commands:
            onlineforest.add_command(command)
    return onlineforest
