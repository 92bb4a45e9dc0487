"""Check that output files and folders can be written, before a command starts its work.

Knows no single command.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click


def check_output_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Raise if a file cannot be written; a callback of an option."""
    if path is not None and path.exists() and not path.is_file():  # a pipe or a device
        _check_writable(path, path)
    elif path is not None:
        _check_writable(path, path.resolve().parent)
    return path


def check_output_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Raise if a folder cannot be written to or created; a callback of an option."""
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
