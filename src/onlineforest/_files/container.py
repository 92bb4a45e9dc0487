"""Named arrays and strings in one file, with a digest: safetensors, read without trust.

Knows nothing of forests. A file is a safetensors file, which others can read: 8 bytes with the
length of the header, the header (JSON, padded with spaces), the bytes of the arrays one after the
other. Besides that, ours

- begin their header with the digest and the format, each at a place that never changes. The digest
  is the SHA-256 of the whole file, with zeros where its own 64 digits stand;
- start the arrays at a multiple of 8, large items first, so that each is aligned.

The safetensors package is not used: it cannot put a digest at a fixed place, and it reads either
through a mapping, where a file that another process cuts short kills this one, or with a copy.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import math
import os
import re
import reprlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

FORMAT_VERSION = 2
MAX_HEADER_BYTES = 2**24

Bytes = NDArray[np.uint8]
Source = str | os.PathLike[str] | BinaryIO

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_DTYPE_NAMES = {dtype.str: name for name, dtype in _DTYPES.items()}

_METADATA = "__metadata__"
_OUR_KEYS = ("sha256", "format", "format_version")
_BEGINNING = re.compile(
    rb'.{8}\{"__metadata__":\{"sha256":"(.{64})",'
    rb'"format":"onlineforest","format_version":"([1-9][0-9]{0,8})"',
    re.DOTALL,
)
_BEGINNING_BYTES = 256  # more than the expression can match
_SMALLEST = 152  # bytes: a file without arrays and metadata
_DIGEST = slice(35, 99)
_NO_DIGEST = "0" * 64

_PIECE = 2**24  # bytes read, hashed or written at once: Ctrl-C is answered in between
_MAX_TENSORS = 1000  # a forest has some fifty
_MAX_DIMENSIONS = 8
_MAX_DIGITS = 40
_MAX_DEPTH = 32


class ModelFileError(ValueError):
    """A file is no model file, is damaged, or is newer than this library.

    The message begins with the path of the file and says what is wrong with it. An error of the
    system (there is no such file, it may not be read) is an `OSError` instead.

    Examples
    --------
    >>> import io
    >>> import onlineforest
    >>> try:
    ...     onlineforest.load(io.BytesIO(b"A text, for example. " * 20))
    ... except onlineforest.ModelFileError as error:
    ...     print(error)
    the file is not a model file of onlineforest: it does not begin like one.
    """


class ModelTooLargeError(ModelFileError):
    """The forest in a file would take more memory than `max_bytes`.

    Examples
    --------
    >>> import onlineforest
    >>> forest = onlineforest.MondrianForestRegressor(random_state=0).fit([[0.0], [1.0]], [3, 7])
    >>> forest.save("sevens.safetensors")
    >>> try:
    ...     onlineforest.load("sevens.safetensors", max_bytes=100)
    ... except onlineforest.ModelTooLargeError as error:
    ...     print(error)
    sevens.safetensors holds a forest of more than 100 bytes.
    """


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds. The arrays are read-only."""

    metadata: dict[str, str]
    format_version: int
    arrays: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Tensor:
    """What a header says of one array; its bytes are counted from the end of the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    metadata: dict[str, str]
    format_version: int
    tensors: dict[str, Tensor]
    n_bytes: int  # of the whole file
    sha256: str


# Writing


def write(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and strings, front to back: into a pipe, too.

    Nobody may change the arrays meanwhile. They are read twice, for the digest and to be written.
    """
    tensors = _in_file_order(arrays)
    beginning = _beginning_of(tensors, metadata)
    digest = _sha256([beginning, *tensors.values()])
    beginning[_DIGEST] = _as_bytes(digest)
    for part in (beginning, *tensors.values()):
        for piece in _pieces(part):
            _write_all(file, piece)


def _in_file_order(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays as they stand in a file: large items first, little-endian."""
    tensors = {name: _as_written(name, array) for name, array in arrays.items()}
    return dict(sorted(tensors.items(), key=lambda each: -each[1].itemsize))


def _as_written(name: str, array: NDArray[Any]) -> NDArray[Any]:
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPE_NAMES:
        raise TypeError(
            f"Arrays must have one of the dtypes {', '.join(_DTYPE_NAMES.values())}. "
            f"Got {array.dtype} for {name!r} instead."
        )
    if array.ndim > _MAX_DIMENSIONS:
        raise ValueError(
            f"Arrays must have at most {_MAX_DIMENSIONS} dimensions. "
            f"Got {array.ndim} for {name!r} instead."
        )
    written = np.asarray(array, dtype=dtype, order="C")
    if not _is_sound(written):
        raise ValueError(f"The bools of {name!r} are not all 0 or 1.")
    return written


def _is_sound(array: NDArray[Any]) -> bool:
    """False for bools that are neither 0 nor 1, as a view of other bytes can have them."""
    return array.dtype != np.bool_ or int(array.view(np.uint8).max(initial=0)) <= 1


def _beginning_of(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> Bytes:
    """Length and header, with zeros for the digest."""
    _check_names(tensors, metadata)
    ours = (_NO_DIGEST, "onlineforest", str(FORMAT_VERSION))
    text = json.dumps(
        {_METADATA: dict(zip(_OUR_KEYS, ours, strict=True)) | dict(metadata)} | _entries(tensors),
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
        if not _is_text(each):
            raise ValueError(f"Names and metadata must be Unicode. Got {each!r} instead.")
    taken = (tensors.keys() & {_METADATA}) | (metadata.keys() & set(_OUR_KEYS))
    if taken:
        raise ValueError(f"The format itself uses the name {taken.pop()!r}.")


def _entries(tensors: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """What the header says of each tensor."""
    ends = itertools.accumulate((tensor.nbytes for tensor in tensors.values()), initial=0)
    return {
        name: {
            "dtype": _DTYPE_NAMES[tensor.dtype.str],
            "shape": list(tensor.shape),
            "data_offsets": list(offsets),
        }
        for (name, tensor), offsets in zip(tensors.items(), itertools.pairwise(ends), strict=True)
    }


def _is_text(each: str) -> bool:
    """Whether a string can be written; half of a surrogate pair cannot."""
    try:
        each.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array in C order, some at a time."""
    # numpy makes the bytes, and a copy where the order is another. A memoryview could do neither.
    view = array.reshape(-1).view(np.uint8).data
    return (view[i : i + _PIECE] for i in range(0, len(view), _PIECE))


def _sha256(parts: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for piece in itertools.chain.from_iterable(map(_pieces, parts)):
        digest.update(piece)
    return digest.hexdigest()


def _write_all(file: BinaryIO, piece: memoryview) -> None:
    """Write a piece to a file that may take less of it at a time."""
    while len(piece):
        n_written = file.write(piece)
        if n_written is None or not 0 < n_written <= len(piece):  # None: it would have to wait
            raise BlockingIOError(errno.EAGAIN, f"The file took {n_written} of {len(piece)} bytes.")
        piece = piece[n_written:]


# Reading


def read(source: Source) -> Contents:
    """Read a file and check all of it: what it is, its digest, its header, its arrays.

    Of a file object, all that is left to read. Everything is checked in memory, after it was read.
    """
    with _opened(source) as (name, file, size):
        start = _read_up_to(file, _BEGINNING_BYTES)
        sha256, format_version = _check_beginning(name, start)
        data = _read_rest(file, start) if size is None else _read_size(name, file, start, size)
    actual = _sha256([data[: _DIGEST.start], _as_bytes(_NO_DIGEST), data[_DIGEST.stop :]])
    if actual != sha256:
        raise ModelFileError(f"{name} is damaged: its SHA-256 is {actual}, but it says {sha256}.")
    _check_version(name, format_version)
    end = _end_of_header(name, start, len(data))
    metadata, tensors = _parse_header(name, data[8:end].tobytes(), len(data) - end)
    arrays = {key: _array(name, key, data[end:], tensor) for key, tensor in tensors.items()}
    return Contents(metadata, format_version, arrays)


def read_header(source: Source) -> Header:
    """Read the header alone. The digest is not checked, but the sizes are.

    A file object must be able to seek, and is left where it was.
    """
    with _opened(source) as (name, file, size):
        position = file.tell()
        if size is None:
            size = file.seek(0, os.SEEK_END) - position
            file.seek(position)
        start = _read_up_to(file, _BEGINNING_BYTES)
        sha256, format_version = _check_beginning(name, start)
        _check_version(name, format_version)
        end = _end_of_header(name, start, size)
        start += _read_up_to(file, end - len(start))
        file.seek(position)
    if len(start) < end:
        _refuse_shorter(name)
    metadata, tensors = _parse_header(name, start[8:end], size - end)
    return Header(metadata, format_version, tensors, size, sha256)


@contextmanager
def _opened(source: Source) -> Iterator[tuple[str, BinaryIO, int | None]]:
    """What to call the file in messages, the file, and its size where that is known."""
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "read"):
            raise TypeError(f"A path or a file was wanted. Got {source!r} instead.")
        yield "the file", source, None
        return
    name = os.fspath(source)
    _check_regular(name, os.stat(name))  # opening a device can do things
    with open(name, "rb", buffering=0, opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        _check_regular(name, status)
        try:
            yield name, file, status.st_size
        except OSError as error:  # of reading, which does not say where
            error.filename = error.filename or name
            raise


def _open_at_once(path: str, flags: int) -> int:
    # Should the path have become a pipe, opening must not wait for its writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_regular(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{name} is not a regular file.")


def _read_up_to(file: BinaryIO, n_bytes: int) -> bytes:
    """As many bytes, or all that are left."""
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
    """A whole file of known size, of which the start was read already."""
    data = np.empty(size, np.uint8)
    start = start[:size]  # it may have grown
    data[: len(start)] = np.frombuffer(start, np.uint8)
    for piece in _pieces(data[len(start) :]):
        while len(piece):
            n_read = file.readinto(piece)  # type: ignore[attr-defined]
            if not n_read:
                _refuse_shorter(name)
            piece = piece[n_read:]
    return data


def _read_rest(file: BinaryIO, start: bytes) -> Bytes:
    """A whole file of unknown size, of which the start was read already."""
    data = bytearray(start)
    while part := _read_some(file, _PIECE):
        data += part
    return np.frombuffer(data, np.uint8)


def _refuse_shorter(name: str) -> NoReturn:
    raise ModelFileError(f"{name} became shorter while it was read.")


def _refuse(name: str, why: str) -> NoReturn:
    raise ModelFileError(f"{name} is not a valid model file: {why}.")


def _check_beginning(name: str, start: bytes) -> tuple[str, int]:
    """The digest and the format version that a file of ours begins with."""
    match = _BEGINNING.match(start)
    if match is None:
        raise ModelFileError(f"{name} is not a model file of onlineforest: {_what_else(start)}.")
    sha256, format_version = match.groups()
    if re.fullmatch(rb"[0-9a-f]{64}", sha256) is None:
        raise ModelFileError(f"{name} is damaged: its SHA-256 is not 64 hexadecimal digits.")
    return sha256.decode(), int(format_version)


def _what_else(start: bytes) -> str:
    """What a file is instead of one of ours, from its first bytes."""
    if not start:
        return "it is empty"
    if len(start) < _SMALLEST:
        return f"it has only {len(start)} bytes"
    if re.match(rb"\x80[\x02-\x05]", start):
        return "it looks like a pickle"
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**32:
        return "it looks like a safetensors file of another kind"
    return "it does not begin like one"


def _check_version(name: str, format_version: int) -> None:
    if format_version > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} has format {format_version}, but this version of onlineforest "
            f"({version('onlineforest')}) reads formats up to {FORMAT_VERSION}. "
            "A newer version of onlineforest can read it."
        )


def _end_of_header(name: str, start: bytes, size: int) -> int:
    """Where the header ends and the bytes of the arrays begin."""
    n_bytes = int.from_bytes(start[:8], "little")
    if n_bytes > MAX_HEADER_BYTES:
        _refuse(name, f"its header has {n_bytes} bytes, but may have {MAX_HEADER_BYTES}")
    if 8 + n_bytes > size:
        _refuse(name, f"its header ends at byte {8 + n_bytes}, but the file at byte {size}")
    return 8 + n_bytes


def _parse_header(
    name: str, header: bytes, n_data_bytes: int
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata without our own keys, and tensors that fill the data exactly."""
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        _refuse(name, f"its header is not UTF-8 ({error})")
    text = text.rstrip(" ")
    if not text.endswith("}"):  # JSON would allow other white space
        _refuse(name, "its header does not end with } and spaces")
    entries = parse_json(text, f"{name} is not a valid model file: its header")
    metadata = entries.pop(_METADATA)  # the beginning has shown that it is there, and a dict
    if len(entries) > _MAX_TENSORS:
        _refuse(name, f"it has {len(entries)} tensors, more than {_MAX_TENSORS}")
    for each in (*entries, *metadata, *metadata.values()):
        if not isinstance(each, str):
            _refuse(name, f"its metadata have {reprlib.repr(each)}, which is not a string")
        if not _is_text(each):
            _refuse(name, f"its header has the string {reprlib.repr(each)}, which is not Unicode")
    tensors = {key: _check_tensor(name, key, entry) for key, entry in entries.items()}
    _check_tiling(name, tensors, n_data_bytes)
    return {key: each for key, each in metadata.items() if key not in _OUR_KEYS}, tensors


def _check_tensor(name: str, key: str, entry: Any) -> Tensor:
    whose = f"its tensor {reprlib.repr(key)}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        _refuse(name, f"{whose} has not exactly the keys dtype, shape and data_offsets")
    dtype_name, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype_name, str) or dtype_name not in _DTYPES:
        _refuse(name, f"{whose} has dtype {reprlib.repr(dtype_name)}, which is not known")
    if not _are_counts(shape) or len(shape) > _MAX_DIMENSIONS:
        _refuse(
            name,
            f"{whose} has shape {reprlib.repr(shape)} instead of a list of at most "
            f"{_MAX_DIMENSIONS} counts",
        )
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        _refuse(
            name,
            f"{whose} has data_offsets {reprlib.repr(offsets)} instead of a begin and an end",
        )
    dtype, (begin, end) = _DTYPES[dtype_name], offsets
    # The second is for shapes with a zero, whose other dimensions numpy multiplies nevertheless.
    n_bytes, largest = (math.prod(s) * dtype.itemsize for s in (shape, [n or 1 for n in shape]))
    if n_bytes != end - begin or largest >= 2**63:
        _refuse(
            name,
            f"{whose} has {end - begin} bytes, but its shape {reprlib.repr(shape)} and dtype "
            f"{dtype_name} do not fit that",
        )
    return Tensor(dtype.newbyteorder("="), tuple(shape), begin, end)


def _are_counts(value: Any) -> bool:
    # The exact type: a bool is an int, too.
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _check_tiling(name: str, tensors: Mapping[str, Tensor], n_data_bytes: int) -> None:
    """Raise unless the tensors fill the data without holes or overlaps."""
    filled = 0
    for key, tensor in sorted(tensors.items(), key=lambda each: (each[1].begin, each[1].end)):
        if tensor.begin != filled:
            _refuse(
                name,
                f"its tensor {reprlib.repr(key)} begins at byte {tensor.begin} of the data "
                f"instead of {filled}",
            )
        filled = tensor.end
    if filled != n_data_bytes:
        _refuse(name, f"its tensors have {filled} bytes, but its data {n_data_bytes}")


def _array(name: str, key: str, data: Bytes, tensor: Tensor) -> NDArray[Any]:
    """A read-only array: a view of the data if it is aligned and in our byte order."""
    little = data[tensor.begin : tensor.end].view(tensor.dtype.newbyteorder("<"))
    if not _is_sound(little):
        _refuse(name, f"the bools of its tensor {reprlib.repr(key)} are not all 0 or 1")
    array: NDArray[Any] = np.require(little, tensor.dtype, "A").reshape(tensor.shape)
    array.flags.writeable = False
    return array


# JSON


def parse_json(text: str, what: str) -> Any:
    """The value of a JSON text from a stranger; `what` begins the messages.

    Stricter than `json.loads`: no key twice, no number that is not finite or has too many digits,
    and no deep nesting.
    """

    def refuse(why: str) -> NoReturn:
        raise ModelFileError(f"{what} {why}.")

    def check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key in values:
                refuse(f"has the key {reprlib.repr(key)} twice")
            values[key] = value
        return values

    def check_digits(literal: str) -> str:
        if len(literal) > _MAX_DIGITS:
            refuse(f"has a number of {len(literal)} characters, more than {_MAX_DIGITS}")
        return literal

    def finite(literal: str) -> float:
        number = float(check_digits(literal))
        if not math.isfinite(number):
            refuse(f"has the number {literal}, which is not finite")
        return number

    # The parser calls itself for each level. How deep it can go before it raises, or the process
    # ends, depends on the thread and on settings of others.
    if _depth(text) > _MAX_DEPTH:
        refuse(f"is nested more than {_MAX_DEPTH} levels deep")
    try:
        return json.loads(
            text,
            object_pairs_hook=check_pairs,
            parse_int=lambda literal: int(check_digits(literal)),
            parse_float=finite,
            parse_constant=finite,
        )
    except json.JSONDecodeError as error:
        refuse(f"is not JSON ({error})")


def _depth(text: str) -> int:
    """How deep a JSON text is nested, up to the first mistake in it."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(unescaped.split('"')[::2])  # of strings
    characters = np.frombuffer(outside.encode(errors="replace"), np.uint8)
    brackets = characters[np.isin(characters, list(b"[]{}"))]
    steps = np.where(np.isin(brackets, list(b"[{")), np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
