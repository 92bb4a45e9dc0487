"""The header of a model file: its layout, its text, and its checks.

Must not know how a file is opened, nor anything of forests. A model file is a safetensors file,
which other tools can read: 8 bytes with the length of the header, the header (JSON, padded with
spaces), the bytes of the arrays one after the other. In addition, our files

- begin their header with the digest and the format, each at a fixed place. The digest is the
  SHA-256 of the whole file, with zeros in place of its own 64 digits;
- start the arrays at a multiple of 8, large items first, so that each is aligned.

The safetensors package is not used: it cannot put a digest at a fixed place. It reads either
through a mapping, where a file that another process truncates kills this one, or with a copy.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.digest import Bytes
from onlineforest._files.errors import ModelFileError
from onlineforest._files.strict_json import parse_json

FORMAT_VERSION = 4
MAX_HEADER_BYTES = 2**24

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
DTYPE_NAMES = {dtype.str: name for name, dtype in DTYPES.items()}

METADATA = "__metadata__"
OUR_KEYS = ("sha256", "format", "format_version")
_BEGINNING = re.compile(
    rb'.{8}\{"__metadata__":\{"sha256":"(.{64})",'
    rb'"format":"onlineforest","format_version":"([1-9][0-9]{0,8})"',
    re.DOTALL,
)
BEGINNING_BYTES = 256  # more than `_BEGINNING` can match
SMALLEST = 152  # bytes of a file without arrays and metadata
DIGEST = slice(35, 99)
NO_DIGEST = "0" * 64

_MAX_TENSORS = 1000  # a forest has about fifty
MAX_DIMENSIONS = 8


@dataclass(frozen=True)
class Tensor:
    """The header's entry for one array. Bytes are counted from the end of the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """The header of a file, and the size of the file."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]
    n_bytes: int  # size of the whole file
    sha256: str


def bad_bool(array: NDArray[Any]) -> str | None:
    """The first bool that is neither 0 nor 1, and its place; a view of other bytes can hold one."""
    if array.dtype != np.bool_ or int(array.view(np.uint8).max(initial=0)) <= 1:
        return None
    flat = array.view(np.uint8).reshape(-1)
    place = int((flat > 1).argmax())
    return f"{flat[place]} at position {place}"


def is_text(each: str) -> bool:
    """Whether a string can be encoded in UTF-8; a lone surrogate cannot."""
    try:
        each.encode()
    except UnicodeEncodeError:
        return False
    return True


def beginning_of(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> Bytes:
    """The bytes before the arrays: the header's length and the header, with zeros as digest."""
    _check_names(tensors, metadata)
    ours = (NO_DIGEST, "onlineforest", str(FORMAT_VERSION))
    text = json.dumps(
        {METADATA: dict(zip(OUR_KEYS, ours, strict=True)) | dict(metadata)} | _entries(tensors),
        ensure_ascii=False,
        separators=(",", ":"),
    )
    header = text.encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(
            f"Names and metadata must fit into a header of {MAX_HEADER_BYTES} bytes. "
            f"Got {len(header)} bytes instead."
        )
    return np.frombuffer(bytearray(len(header).to_bytes(8, "little") + header), np.uint8)


def _check_names(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    for each in (*tensors, *metadata, *metadata.values()):
        if not isinstance(each, str):
            raise TypeError(f"Names and metadata must be strings. Got {each!r} instead.")
        if not is_text(each):
            raise ValueError(f"Names and metadata must be Unicode. Got {each!r} instead.")
    taken = (tensors.keys() & {METADATA}) | (metadata.keys() & set(OUR_KEYS))
    if taken:
        raise ValueError(f"The format itself uses the name {taken.pop()!r}.")


def _entries(tensors: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """The header's entry for each tensor."""
    ends = itertools.accumulate((tensor.nbytes for tensor in tensors.values()), initial=0)
    return {
        name: {
            "dtype": DTYPE_NAMES[tensor.dtype.str],
            "shape": list(tensor.shape),
            "data_offsets": list(offsets),
        }
        for (name, tensor), offsets in zip(tensors.items(), itertools.pairwise(ends), strict=True)
    }


def refuse(name: str, why: str) -> NoReturn:
    """Raise `ModelFileError` about an invalid file."""
    raise ModelFileError(f"{name} is not a valid model file: {why}.")


def check_beginning(name: str, start: bytes) -> tuple[str, int]:
    """The digest and the format version at the beginning of a model file, or an error."""
    match = _BEGINNING.match(start)
    if match is None:
        raise ModelFileError(f"{name} is not a model file of onlineforest: {_what_else(start)}.")
    sha256, format_version = match.groups()
    if (other := re.search(rb"[^0-9a-f]", sha256)) is not None:
        raise ModelFileError(
            f"{name} is damaged: its SHA-256 must be 64 hexadecimal digits. Got the byte "
            f"{other[0]!r} at position {other.start()} instead."
        )
    return sha256.decode(), int(format_version)


def _what_else(start: bytes) -> str:
    """Why the first bytes of a file are not those of a model file."""
    if not start:
        return "it is empty"
    if len(start) < SMALLEST:
        return f"it has only {len(start)} bytes"
    if re.match(rb"\x80[\x02-\x05]", start):
        return "it looks like a pickle"
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**32:
        return "it looks like a safetensors file of another kind"
    return f"it begins with the bytes {start[:8]!r}"


def check_version(name: str, format_version: int) -> None:
    """Raise if this version of the library cannot read the format."""
    if format_version != FORMAT_VERSION:
        which = "A newer" if format_version > FORMAT_VERSION else "An older"
        raise ModelFileError(
            f"{name} has format {format_version}, but this version of onlineforest "
            f"({version('onlineforest')}) reads format {FORMAT_VERSION} alone. "
            f"{which} version of onlineforest can read it."
        )


def end_of_header(name: str, start: bytes, size: int) -> int:
    """The byte at which the header ends and the arrays begin."""
    n_bytes = int.from_bytes(start[:8], "little")
    if n_bytes > MAX_HEADER_BYTES:
        refuse(name, f"its header has {n_bytes} bytes, but may have {MAX_HEADER_BYTES}")
    if 8 + n_bytes > size:
        refuse(name, f"its header ends at byte {8 + n_bytes}, but the file at byte {size}")
    return 8 + n_bytes


def parse_header(
    name: str, header: bytes, n_data_bytes: int
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata without our own keys, and tensors that fill the data exactly."""
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        refuse(name, f"its header is not UTF-8 ({error})")
    text = text.rstrip(" ")
    if not text.endswith("}"):  # JSON allows other white space
        refuse(name, f"its header must end with }} and spaces, but it ends with {text[-1:]!r}")
    entries = parse_json(text, f"{name} is not a valid model file: its header")
    metadata = entries.pop(METADATA)  # `check_beginning` has shown that it is a dict
    if len(entries) > _MAX_TENSORS:
        refuse(name, f"it has {len(entries)} tensors, more than {_MAX_TENSORS}")
    for each in (*entries, *metadata, *metadata.values()):
        if not isinstance(each, str):
            refuse(name, f"its metadata have {reprlib.repr(each)}, which is not a string")
        if not is_text(each):
            refuse(name, f"its header has the string {reprlib.repr(each)}, which is not Unicode")
    tensors = {key: _check_tensor(name, key, entry) for key, entry in entries.items()}
    _check_tiling(name, tensors, n_data_bytes)
    return {key: each for key, each in metadata.items() if key not in OUR_KEYS}, tensors


def _check_tensor(name: str, key: str, entry: Any) -> Tensor:
    whose = f"its tensor {reprlib.repr(key)}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        refuse(
            name,
            f"{whose} must have exactly the keys dtype, shape and data_offsets, but it is "
            f"{reprlib.repr(entry)}",
        )
    dtype_name, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype_name, str) or dtype_name not in DTYPES:
        refuse(name, f"{whose} has dtype {reprlib.repr(dtype_name)}, which is unknown")
    if not _are_counts(shape) or len(shape) > MAX_DIMENSIONS:
        refuse(
            name,
            f"{whose} has shape {reprlib.repr(shape)} instead of a list of at most "
            f"{MAX_DIMENSIONS} counts",
        )
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        refuse(
            name,
            f"{whose} has data_offsets {reprlib.repr(offsets)} instead of a begin and an end",
        )
    dtype, (begin, end) = DTYPES[dtype_name], offsets
    # `largest` ignores zeros: numpy multiplies the other dimensions of an empty array.
    n_bytes, largest = (math.prod(s) * dtype.itemsize for s in (shape, [n or 1 for n in shape]))
    if n_bytes != end - begin:
        refuse(
            name,
            f"{whose} has {end - begin} bytes, but its shape {reprlib.repr(shape)} and dtype "
            f"{dtype_name} need {reprlib.repr(n_bytes)}",
        )
    if largest >= 2**63:
        refuse(
            name,
            f"{whose} has shape {reprlib.repr(shape)}, whose dimensions other than 0 need "
            f"{reprlib.repr(largest)} bytes, more than {2**63 - 1}",
        )
    return Tensor(dtype.newbyteorder("="), tuple(shape), begin, end)


def _are_counts(value: Any) -> bool:
    # The exact type, because a bool is an int.
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _check_tiling(name: str, tensors: Mapping[str, Tensor], n_data_bytes: int) -> None:
    """Raise unless the tensors fill the data without holes or overlaps."""
    filled = 0
    for key, tensor in sorted(tensors.items(), key=lambda each: (each[1].begin, each[1].end)):
        if tensor.begin != filled:
            refuse(
                name,
                f"its tensor {reprlib.repr(key)} begins at byte {tensor.begin} of the data "
                f"instead of {filled}",
            )
        filled = tensor.end
    if filled != n_data_bytes:
        refuse(name, f"its tensors have {filled} bytes, but its data {n_data_bytes}")
