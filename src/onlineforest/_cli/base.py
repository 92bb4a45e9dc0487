"""What all commands share: sections of options, errors in one line, options for tables."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from onlineforest._cli.starting import ChoiceError
from onlineforest._extras import MissingExtraError
from onlineforest._files.container import ModelFileError

INTERRUPTED = 130  # exit code
_TRACEBACK = "ONLINEFOREST_TRACEBACK"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Option(click.Option):
    """An option that stands under a heading in the help."""

    def __init__(self, *arguments: Any, section: str = "Other", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.section = section


class Command(click.Command):
    """A command whose options stand in sections, and whose errors are one line."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(
            Option(
                ["--traceback"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=lambda context, _, value: context.meta.update({_TRACEBACK: value}),
                help=f"Show where in the code an error arose (or set {_TRACEBACK}=1).",
            )
        )

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under their headings, in the order in which these first appear."""
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
        """Run it."""
        with readable_errors(context.meta.get(_TRACEBACK) or os.environ.get(_TRACEBACK)):
            return super().invoke(context)


class Group(click.Group):
    """Commands under headings."""

    sections: dict[str, tuple[click.Command, ...]]

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """All commands, each with a line."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(each.name or "", each.get_short_help_str(70)) for each in commands]
                )


@contextmanager
def readable_errors(show_traceback: object = None) -> Iterator[None]:
    """Errors about files and data as one line for the user, without a traceback."""
    try:
        yield
    except BrokenPipeError:  # who reads what is written has seen enough
        _close_quietly()
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except ChoiceError as error:
        raise click.UsageError(str(error)) from error
    except (ModelFileError, OSError, MissingExtraError, ValueError, MemoryError) as error:
        if show_traceback:
            raise
        raise click.ClickException(_words(error)) from error


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{os.fspath(error.filename)}: "
        return f"{where}{error.strerror}"
    if isinstance(error, MemoryError):
        return "Out of memory."
    return str(error)


def _close_quietly() -> NoReturn:
    """End without the complaint of the interpreter that it cannot flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def options(*several: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Several options as one decorator, in their order."""

    def decorate(function: _Function) -> _Function:
        for option in reversed(several):
            function = option(function)
        return function

    return decorate


def examples(*commands: str) -> str:
    """The end of a help text: commands to be pasted, lines as they are."""
    title = "Examples (on data that `onlineforest example-data` writes):"
    return "\n\n".join(f"\b\n{text}" for text in (title, *(f"  {each}" for each in commands)))


def option(*names: str, section: str, **attributes: Any) -> Callable[[Any], Any]:
    """An option under a heading."""
    return click.option(*names, cls=Option, section=section, **attributes)


def table_options(batch_size: str) -> Callable[[Any], Any]:
    """How the rows are read."""
    section = "How to read the data"
    return options(
        option(
            "--batch-size",
            type=click.IntRange(1),
            metavar="N",
            section=section,
            help=batch_size,
        ),
        option(
            "--skip-bad-rows",
            is_flag=True,
            section=section,
            help="Leave out rows that cannot be used, and tell at the end how many. Otherwise the "
            "first one ends the command, with its line.",
        ),
        option(
            "--format",
            "format_",
            type=click.Choice(["csv", "parquet"]),
            section=section,
            help="What the data are; otherwise seen from their first bytes.",
        ),
        option(
            "--delimiter",
            metavar="C",
            section=section,
            callback=_checked_delimiter,
            help="What is between the fields of a CSV file. Default: a comma, or, if the header "
            "has none, a semicolon, tab or |.",
        ),
    )


def checked_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """A file that can be written, as far as can be told before hours of learning."""
    if path is not None and path.exists() and not path.is_file():  # a pipe or a device
        _check_may_write(path, path)
    elif path is not None:
        _check_may_write(path, path.resolve().parent)
    return path


def checked_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """A folder that can be written to, or made."""
    if path is not None:
        whole = path.absolute()
        _check_may_write(path, next(each for each in (whole, *whole.parents) if each.exists()))
    return path


def _check_may_write(given: Path, to: Path) -> None:
    code = 0
    if not to.exists():
        code = errno.ENOENT
    elif to != given and not to.is_dir():
        code = errno.ENOTDIR
    elif not os.access(to, os.W_OK | (os.X_OK if to.is_dir() else 0)):
        code = errno.EACCES
    if code:
        raise click.ClickException(f"{given}: {os.strerror(code)}")


def _checked_delimiter(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    value = "\t" if value == "\\t" else value
    if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
        raise click.BadParameter("one character was wanted, such as ';'.", context, parameter)
    return value


class BadRows:
    """Stops at the first bad row, or counts them."""

    def __init__(self, skip: bool) -> None:
        self._skip, self.n, self._first = skip, 0, ""

    def __call__(self, bad: object) -> None:
        """Note a row."""
        if not self._skip:
            raise ValueError(f"{bad}. (--skip-bad-rows leaves out such rows.)")
        self._first = self._first or str(bad)
        self.n += 1

    def words(self, before: str = "") -> str:
        """What to say of them, nothing if there were none."""
        if self.n == 0:
            return ""
        rows = "1 bad row" if self.n == 1 else f"{self.n:,} bad rows, the first of them"
        return f"{before}Skipped {rows}: {self._first}."
