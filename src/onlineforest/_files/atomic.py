"""Replaces files atomically: whole or not at all. Must not know what is in them."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` at the end of the block, durably.

    If the block raises, or any step fails, the old file is unchanged. One exception: if only the
    last step fails, to sync the folder, the new file has already replaced the old one. A symbolic
    link at `path` stays and points to the new file. The new file has the permissions of the old
    one.
    """
    given = os.fspath(path)
    with _naming(given):
        mode = _mode_of(given)
        target = os.path.realpath(given)
        temporary = _temporary_name(target)
        file = _create(temporary, mode)
    try:
        with _naming(given):
            _set_mode(file, mode)
        with _naming(given, always=False):  # an error of the block may be about another file
            yield file
        with _naming(given):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):  # for example a full disk; the first error matters more
            file.close()
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with _naming(given):
        sync_folder(os.path.dirname(target))


def leftovers(folder: str | os.PathLike[str], prefix: str = "") -> list[Path]:
    """Temporary files of `replacing` for files whose names begin with `prefix`, sorted.

    They belong to processes that were killed or are still writing.
    """
    pattern = re.compile(rf"\.{re.escape(_clipped(prefix))}.*\.[0-9a-f]{{8}}\.tmp", re.DOTALL)
    with os.scandir(folder) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        )


@contextmanager
def _naming(path: str, always: bool = True) -> Iterator[None]:
    """Let errors of the system name the path of the user, not the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (always or error.filename is None):
            error.filename = path
            if error.filename2 is not None:
                del error.filename2  # None would be part of the message
        raise


def _mode_of(path: str) -> int | None:
    """The permissions of the file to replace, None if it does not exist."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if not os.path.basename(path):  # "" or "new/" has no file name
            raise
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):  # for example /dev/null
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return status.st_mode & 0o777


def _temporary_name(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{_clipped(name)}.{secrets.token_hex(4)}.tmp")


def _clipped(name: str) -> str:
    """The start of a name: a temporary name made from it stays within 255 bytes."""
    return name[:60]


def _create(path: str, mode: int | None) -> BinaryIO:
    """A new file whose permissions never exceed the final ones."""

    def open_with_mode(path: str, flags: int) -> int:
        return os.open(path, flags, 0o666 if mode is None else mode)  # the umask removes some

    return open(path, "xb", opener=open_with_mode)


def _set_mode(file: BinaryIO, mode: int | None) -> None:
    """Restore permissions that the umask removed, if the system has such permissions."""
    if not hasattr(os, "fchmod"):  # Windows, before Python 3.13
        return
    descriptor = file.fileno()
    if mode is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def sync_folder(folder: str) -> None:
    """Make a change of names in a folder durable, if the system can open folders."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder may be writable but not readable
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # the file system cannot sync folders
            raise
    finally:
        os.close(descriptor)
