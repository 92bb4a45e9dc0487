"""The list of all commands, and their base classes: help in sections, errors in one line.

Must not import a command before it is used: scikit-learn takes longer to import than the help to
print.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn, TypeVar

import click

from onlineforest._extras import MissingExtraError
from onlineforest._files.errors import ModelFileError

INTERRUPTED = 130  # exit code
_TRACEBACK = "ONLINEFOREST_TRACEBACK"
_Function = TypeVar("_Function", bound=Callable[..., Any])
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Learn and predict": {
        "train": "Learn a forest from a file: CSV, JSON lines or Parquet.",
        "predict": "Predict the rows of a file.",
        "evaluate": "Measure how well a file is predicted while it is learned.",
    },
    "Inspect a model": {
        "inspect": "Describe a model file.",
        "verify": "Check every byte and node of model files.",
        "plot": "Draw a model or a learning curve.",
    },
    "Try it": {
        "demo": "Learn a stream of handwritten digits and draw two pictures.",
        "example-data": "Write small CSV files to try the other commands on.",
    },
}
SUMMARIES = {name: text for section in SECTIONS.values() for name, text in section.items()}
_FILES = {"inspect": "files", "verify": "files", "example-data": "demo"}  # others: by their names


class OptionError(ValueError):
    """Options contradict each other, the table, or the forest of an earlier run."""


def load_command(name: str) -> click.Command:
    """Import a command."""
    module = import_module(f"onlineforest._cli.{_FILES.get(name, name)}")
    loaded: click.Command = getattr(module, name.replace("-", "_"))
    return loaded


class Option(click.Option):
    """An option that the help lists in a section."""

    def __init__(self, *arguments: Any, section: str = "Other", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.section = section


class Command(click.Command):
    """A command that lists its options in sections and prints errors in one line."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(
            Option(
                ["--traceback"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=lambda context, _, value: context.meta.update({_TRACEBACK: value}),
                help=f"Show the traceback of an error (or set {_TRACEBACK}=1).",
            )
        )

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options; "Other" comes last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                heading = getattr(parameter, "section", "Other")
                sections.setdefault(heading, []).append(record)
        last = sections.pop("Other", [])
        for heading, records in [*sections.items(), ("Other", last)]:
            with formatter.section(heading):
                formatter.write_dl(records)

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        with readable_errors(context.meta.get(_TRACEBACK) or os.environ.get(_TRACEBACK)):
            return super().invoke(context)


class Group(click.Group):
    """A group that lists its commands in sections."""

    sections: Mapping[str, Mapping[str, str]]  # heading, name and summary of each command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


class AllCommands(Group):
    """The group of all commands, each of which is imported when it is used."""

    sections = SECTIONS

    def list_commands(self, _: click.Context) -> list[str]:
        """The names of all commands."""
        return list(SUMMARIES)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """The command with this name; None if there is none."""
        return load_command(name) if name in SUMMARIES else None


@contextmanager
def readable_errors(show_traceback: object = None) -> Iterator[None]:
    """Turn errors about files and data into one line without a traceback."""
    try:
        yield
    except BrokenPipeError:  # the reader of standard output has closed it, as `head` does
        _exit_without_flushing()
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    except (ModelFileError, OSError, MissingExtraError, ValueError, MemoryError) as error:
        if show_traceback:
            raise
        raise click.ClickException(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        path = "" if error.filename is None else f"{os.fspath(error.filename)}: "
        return f"{path}{error.strerror}"
    if isinstance(error, MemoryError):
        return "Out of memory."
    return str(error)


def _exit_without_flushing() -> NoReturn:
    """Exit so that the interpreter does not report that it cannot flush standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def command(
    name: str, *examples: str, summary: str | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorator that makes a command; its help ends with the example commands, line by line."""
    title = "Examples (on data that `onlineforest example-data` writes):"
    lines = (title, *(f"  {each}" for each in examples)) if examples else ()
    return click.command(
        name,
        cls=Command,
        short_help=summary or SUMMARIES[name],
        epilog="\n\n".join(f"\b\n{line}" for line in lines),
    )


def option(*names: str, section: str, **attributes: Any) -> Callable[[Any], Any]:
    """Decorator that adds an option in a section of the help."""
    return click.option(*names, cls=Option, section=section, **attributes)


def options(*decorators: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Combine decorators of options into one; the help keeps their order."""

    def decorate(function: _Function) -> _Function:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate
