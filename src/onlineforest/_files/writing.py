"""Writes model files. Must not know how a file is replaced safely, nor anything of forests."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.digest import as_bytes, pieces, sha256_of
from onlineforest._files.header import (
    DIGEST,
    DTYPE_NAMES,
    MAX_DIMENSIONS,
    bad_bool,
    beginning_of,
)


def write(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and strings, front to back, so that `file` may be a pipe.

    The arrays must not change meanwhile: they are read twice, for the digest and for the file.
    """
    tensors = _in_file_order(arrays)
    beginning = beginning_of(tensors, metadata)
    digest = sha256_of([beginning, *tensors.values()])
    beginning[DIGEST] = as_bytes(digest)
    for part in (beginning, *tensors.values()):
        for piece in pieces(part):
            _write_all(file, piece)


def _in_file_order(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays as they stand in a file: large items first, little-endian."""
    tensors = {name: _as_written(name, array) for name, array in arrays.items()}
    return dict(sorted(tensors.items(), key=lambda each: -each[1].itemsize))


def _as_written(name: str, array: NDArray[Any]) -> NDArray[Any]:
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPE_NAMES:
        raise TypeError(
            f"Arrays must have one of the dtypes {', '.join(DTYPE_NAMES.values())}. "
            f"Got {array.dtype} for {name!r} instead."
        )
    if array.ndim > MAX_DIMENSIONS:
        raise ValueError(
            f"Arrays must have at most {MAX_DIMENSIONS} dimensions. "
            f"Got {array.ndim} for {name!r} instead."
        )
    written = np.asarray(array, dtype=dtype, order="C")
    if (found := bad_bool(written)) is not None:
        raise ValueError(f"The bools of {name!r} must be 0 or 1. Got {found} instead.")
    return written


def _write_all(file: BinaryIO, piece: memoryview) -> None:
    """Write a piece to a file that may accept fewer bytes at a time."""
    while len(piece):
        n_written = file.write(piece)
        if n_written is None or not 0 < n_written <= len(piece):  # None: it would block
            raise BlockingIOError(errno.EAGAIN, f"The file took {n_written} of {len(piece)} bytes.")
        piece = piece[n_written:]
