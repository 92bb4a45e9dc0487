"""Bytes of arrays, piece by piece, and their SHA-256. Must not know the format of a file."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

PIECE_BYTES = 2**24  # read, hashed or written at once; an interrupt is handled in between


def as_bytes(text: str) -> Bytes:
    """A text in UTF-8 as an array."""
    return np.frombuffer(text.encode(), np.uint8)


def pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array in C order, `PIECE_BYTES` at a time."""
    # A memoryview can neither reinterpret items as bytes nor copy an array into C order.
    view = array.reshape(-1).view(np.uint8).data
    return (view[i : i + PIECE_BYTES] for i in range(0, len(view), PIECE_BYTES))


def sha256_of(parts: Iterable[NDArray[Any]]) -> str:
    """The SHA-256 of all parts, one after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in itertools.chain.from_iterable(map(pieces, parts)):
        digest.update(piece)
    return digest.hexdigest()
