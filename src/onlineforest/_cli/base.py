"""Base classes of all commands: options in sections, help texts, and errors in one line.

Knows no single command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import click

from onlineforest._cli.commands import ENTRIES, SECTIONS, load_command
from onlineforest._cli.errors import OptionError
from onlineforest._extras import MissingExtraError
from onlineforest._files.errors import ModelFileError

INTERRUPTED = 130  # exit code
_TRACEBACK = "ONLINEFOREST_TRACEBACK"
_Function = TypeVar("_Function", bound=Callable[..., Any])


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

    sections: Mapping[str, Mapping[str, str]]  # what is said about each command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


class AllCommands(Group):
    """The group of all commands, each of which is imported when it is used."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.sections = {
            heading: {name: entry.summary for name, entry in entries.items()}
            for heading, entries in SECTIONS.items()
        }

    def list_commands(self, _: click.Context) -> list[str]:
        """The names of all commands."""
        return list(ENTRIES)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """The command of a name, if there is one."""
        return load_command(name) if name in ENTRIES else None


@contextmanager
def readable_errors(show_traceback: object = None) -> Iterator[None]:
    """Turn errors about files and data into one line without a traceback."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
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


def option(*names: str, section: str, **attributes: Any) -> Callable[[Any], Any]:
    """Decorator that adds an option in a section of the help."""
    return click.option(*names, cls=Option, section=section, **attributes)


def options(*several: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Combine decorators of options into one; the help keeps their order."""

    def decorate(function: _Function) -> _Function:
        for each in reversed(several):
            function = each(function)
        return function

    return decorate


def examples(*commands: str) -> str:
    """End of a help text: example commands, printed line by line as given."""
    title = "Examples (on data that `onlineforest example-data` writes):"
    return "\n\n".join(f"\b\n{text}" for text in (title, *(f"  {each}" for each in commands)))
