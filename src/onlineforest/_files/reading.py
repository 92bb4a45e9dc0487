"""Reads model files without trust. Must not know anything of forests."""

from __future__ import annotations

import errno
import os
import reprlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.digest import PIECE_BYTES, Bytes, as_bytes, pieces, sha256_of
from onlineforest._files.errors import ModelFileError
from onlineforest._files.header import (
    BEGINNING_BYTES,
    DIGEST,
    NO_DIGEST,
    Header,
    Tensor,
    bad_bool,
    check_beginning,
    check_version,
    end_of_header,
    parse_header,
    refuse,
)

Source = str | os.PathLike[str] | BinaryIO


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a model file. The arrays are read-only."""

    metadata: dict[str, str]
    arrays: dict[str, NDArray[Any]]


def read(source: Source) -> Contents:
    """Read a file and check all of it: its beginning, its digest, its header, its arrays.

    A file object is read to its end. The checks use the bytes in memory, not the file.
    """
    with _opened(source) as (name, file, size):
        start = _read_up_to(file, BEGINNING_BYTES)
        sha256, format_version = check_beginning(name, start)
        data = _read_rest(file, start) if size is None else _read_size(name, file, start, size)
    actual = sha256_of([data[: DIGEST.start], as_bytes(NO_DIGEST), data[DIGEST.stop :]])
    if actual != sha256:
        raise ModelFileError(f"{name} is damaged: its SHA-256 is {actual}, but it says {sha256}.")
    check_version(name, format_version)
    end = end_of_header(name, start, len(data))
    metadata, tensors = parse_header(name, data[8:end].tobytes(), len(data) - end)
    arrays = {key: _array(name, key, data[end:], tensor) for key, tensor in tensors.items()}
    return Contents(metadata, arrays)


def read_header(source: Source) -> Header:
    """Read the header alone, and check the sizes but not the digest.

    A file object must be seekable; its position is restored.
    """
    with _opened(source) as (name, file, size):
        position = file.tell()
        if size is None:
            size = file.seek(0, os.SEEK_END) - position
            file.seek(position)
        start = _read_up_to(file, BEGINNING_BYTES)
        sha256, format_version = check_beginning(name, start)
        check_version(name, format_version)
        end = end_of_header(name, start, size)
        start += _read_up_to(file, end - len(start))
        file.seek(position)
    if len(start) < end:
        _refuse_shorter(name, len(start), end)
    metadata, tensors = parse_header(name, start[8:end], size - end)
    return Header(metadata, tensors, size, sha256)


@contextmanager
def _opened(source: Source) -> Iterator[tuple[str, BinaryIO, int | None]]:
    """The name of the file in messages, the file, and its size if it is known."""
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "read"):
            raise TypeError(f"The source must be a path or a binary file. Got {source!r} instead.")
        yield "the file", source, None
        return
    name = os.fspath(source)
    _check_regular(name, os.stat(name))  # opening a device may have side effects
    with open(name, "rb", buffering=0, opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        _check_regular(name, status)
        try:
            yield name, file, status.st_size
        except OSError as error:  # an error of reading names no file
            error.filename = error.filename or name
            raise


def _open_at_once(path: str, flags: int) -> int:
    # If the path has become a pipe meanwhile, opening must not wait for its writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_regular(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{name} is not a regular file.")


def _read_up_to(file: BinaryIO, n_bytes: int) -> bytes:
    """Up to `n_bytes` bytes: fewer only at the end of the file."""
    parts = []
    while n_bytes > 0 and (part := _read_some(file, n_bytes)):
        parts.append(part)
        n_bytes -= len(part)
    return b"".join(parts)


def _read_some(file: BinaryIO, n_bytes: int) -> bytes:
    part = file.read(n_bytes)
    if part is None:
        raise BlockingIOError(errno.EAGAIN, "The file has no bytes yet.")
    if not isinstance(part, bytes):
        raise TypeError(f"The file must be open for bytes. It gave {type(part).__name__} instead.")
    return part


def _read_size(name: str, file: BinaryIO, start: bytes, size: int) -> Bytes:
    """A whole file of known size whose start was already read."""
    data = np.empty(size, np.uint8)
    start = start[:size]  # the file may have grown
    data[: len(start)] = np.frombuffer(start, np.uint8)
    n_bytes = len(start)
    for piece in pieces(data[n_bytes:]):
        while len(piece):
            n_read = file.readinto(piece)  # type: ignore[attr-defined]
            if not n_read:
                _refuse_shorter(name, n_bytes, size)
            n_bytes += n_read
            piece = piece[n_read:]
    return data


def _read_rest(file: BinaryIO, start: bytes) -> Bytes:
    """A whole file of unknown size whose start was already read."""
    data = bytearray(start)
    while part := _read_some(file, PIECE_BYTES):
        data += part
    return np.frombuffer(data, np.uint8)


def _refuse_shorter(name: str, n_bytes: int, n_expected: int) -> NoReturn:
    raise ModelFileError(
        f"{name} became shorter while it was read: it ends at byte {n_bytes} instead of "
        f"{n_expected} or later."
    )


def _array(name: str, key: str, data: Bytes, tensor: Tensor) -> NDArray[Any]:
    """A read-only array: a view of the data if that is aligned and in native byte order."""
    little = data[tensor.begin : tensor.end].view(tensor.dtype.newbyteorder("<"))
    if (found := bad_bool(little)) is not None:
        refuse(
            name, f"the bools of its tensor {reprlib.repr(key)} must be 0 or 1, but it has {found}"
        )
    array: NDArray[Any] = np.require(little, tensor.dtype, "A").reshape(tensor.shape)
    array.flags.writeable = False
    return array
