"""Model files: what is written, what other tools read, and what is refused."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import pickle
import re
import sys
import threading
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load, load_file, save

from onlineforest._files import digest as _digest
from onlineforest._files import header as _header
from onlineforest._files import reading as _reading
from onlineforest._files import writing as _writing
from onlineforest._files.container import (
    FORMAT_VERSION,
    MAX_HEADER_BYTES,
    ModelFileError,
    Tensor,
    read,
    read_header,
    write,
)
from support.json_values import COUNTS, JSON

DTYPES = ["f8", "f4", "i8", "i4", "u8", "u4", "u1", "?"]
SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0, 2), (1, 1, 1, 1, 1, 1, 1, 2)]
FIRST = '{"__metadata__":{"sha256":"' + "0" * 64 + '","format":"onlineforest","format_version":'
WHOLE = f'{FIRST}"{FORMAT_VERSION}"'
DIGEST = slice(35, 99)

ARRAYS = {
    "flags": np.array([True, False, True]),
    "counts": np.array([[1, -2], [3, 4]], np.int32),
    "times": np.array([0.5, np.inf]),
}
METADATA = {"kind": "test", "note": 'ä "quoted" \\ \n'}


def as_bytes(arrays=ARRAYS, metadata=METADATA):
    file = io.BytesIO()
    write(file, arrays, metadata)
    return file.getvalue()


SMALL = as_bytes()


def sealed(data):
    """The file with its correct digest."""
    if len(data) < DIGEST.stop:
        return data
    zeros = data[: DIGEST.start] + b"0" * 64 + data[DIGEST.stop :]
    digest = hashlib.sha256(zeros).hexdigest().encode()
    return data[: DIGEST.start] + digest + data[DIGEST.stop :]


def file_of(header, data=b""):
    """A file with a handmade header and a correct digest."""
    header = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else header
    return sealed(len(header).to_bytes(8, "little") + header + data)


def with_tensors(tensors, data=b""):
    """A file with handmade entries for its tensors."""
    return file_of(f"{WHOLE}}},{tensors}}}", data)


def entry(name="a", dtype='"U8"', shape="[4]", offsets="[0,4]"):
    return f'"{name}":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}'


def assert_refused(data, words, *, by_header_too=True):
    """Both readers raise this message, in one line that names the file."""
    readers = [read, read_header] if by_header_too else [read]
    for reader in readers:
        with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
            reader(io.BytesIO(data))
        message = str(caught.value)
        assert message.startswith("the file ") and "\n" not in message and len(message) < 400


def assert_same(arrays, expected):
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        assert array.dtype == expected[name].dtype, name
        np.testing.assert_array_equal(array, expected[name], strict=True, err_msg=name)


# Arrays and metadata come back as they were written


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    contents = read(io.BytesIO(as_bytes({"a": array})))
    assert contents.metadata == METADATA
    assert_same(contents.arrays, {"a": array})


def test_extreme_values_keep_their_bits():
    array = np.array([np.nan, -0.0, np.inf, -np.inf, 5e-324, sys.float_info.max])
    array.view(np.uint64)[0] += 7  # a NaN with a payload
    got = read(io.BytesIO(as_bytes({"a": array}))).arrays["a"]
    assert got.tobytes() == array.tobytes()


def test_any_order_of_axes_and_bytes_is_written():
    rows = np.arange(12.0).reshape(3, 4)
    arrays = {
        "fortran": np.asfortranarray(rows),
        "part": rows[::2, ::-1],
        "big": rows.astype(">f8"),
    }
    got = read(io.BytesIO(as_bytes(arrays))).arrays
    assert_same(got, {name: array.astype("=f8") for name, array in arrays.items()})


@pytest.mark.parametrize(
    "array", [np.arange(9)[::-1], np.arange(9)[::2], np.arange(9).reshape(3, 3).T]
)
def test_any_stride_is_written(array):
    assert np.array_equal(read(io.BytesIO(as_bytes({"a": array}))).arrays["a"], array)


def test_contiguous_arrays_are_not_copied():
    array = np.arange(10.0)
    array.flags.writeable = False
    assert np.shares_memory(_writing._as_written("a", array), array)


def test_arrays_are_aligned_read_only_views_of_one_buffer(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    for source in (path, str(path), io.BytesIO(SMALL)):
        arrays = read(source).arrays
        assert_same(arrays, {name: ARRAYS[name] for name in ("times", "counts", "flags")})
        for array in arrays.values():
            assert array.flags.aligned and not array.flags.writeable and not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            arrays["times"][0] = 1


def test_a_file_without_arrays_can_be_written():
    data = as_bytes({}, {})
    contents = read(io.BytesIO(data))
    assert contents.arrays == {} and contents.metadata == {}
    assert len(data) == _header.SMALLEST


def test_the_header_can_be_read_alone(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    header = read_header(path)
    assert header.metadata == METADATA
    assert header.tensors == {
        "times": Tensor(np.dtype("f8"), (2,), 0, 16),
        "counts": Tensor(np.dtype("i4"), (2, 2), 16, 32),
        "flags": Tensor(np.dtype("?"), (3,), 32, 35),
    }
    assert header.n_bytes == len(SMALL)
    assert header.sha256.encode() == SMALL[DIGEST]
    file = io.BytesIO(b"before" + SMALL)
    file.seek(6)
    assert read_header(file) == header
    assert file.tell() == 6
    assert read(file).metadata == METADATA


def test_the_header_is_read_without_the_data():
    class Counting(io.BytesIO):
        n_read = 0

        def read(self, n=-1):
            part = super().read(n)
            self.n_read += len(part)
            return part

    file = Counting(as_bytes({"a": np.zeros(10**5)}))
    assert read_header(file).tensors["a"].shape == (10**5,)
    assert file.n_read < 1000


def test_the_piece_size_does_not_change_the_file(monkeypatch, tmp_path):
    monkeypatch.setattr(_digest, "PIECE_BYTES", 7)
    monkeypatch.setattr(_reading, "PIECE_BYTES", 7)
    assert as_bytes() == SMALL
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    for source in (path, io.BytesIO(SMALL)):
        assert_same(read(source).arrays, read(io.BytesIO(SMALL)).arrays)


# The layout is a promise


def test_the_bytes_of_a_file():
    header = (
        '{"__metadata__":{"sha256":"' + SMALL[DIGEST].decode() + '",'
        '"format":"onlineforest","format_version":"4",'
        '"kind":"test","note":"ä \\"quoted\\" \\\\ \\n"},'
        '"times":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},'
        '"counts":{"dtype":"I32","shape":[2,2],"data_offsets":[16,32]},'
        '"flags":{"dtype":"BOOL","shape":[3],"data_offsets":[32,35]}}'
    ).encode()
    n_header = -(-len(header) // 8) * 8
    data = ARRAYS["times"].astype("<f8").tobytes() + ARRAYS["counts"].astype("<i4").tobytes()
    length = n_header.to_bytes(8, "little")
    assert length + header.ljust(n_header) + data + b"\x01\x00\x01" == SMALL
    assert sealed(SMALL) == SMALL


def test_the_bytes_of_a_file_are_those_of_every_version():
    # Not to be changed while the format has this number: files must stay readable.
    golden = "00a35391f06ae864966bc844f22f017a25deb05dfbcc61e368865b5d3072e027"
    assert FORMAT_VERSION == 4 and hashlib.sha256(SMALL).hexdigest() == golden


def test_large_items_come_first_and_others_in_the_order_given():
    arrays = {f"{dtype}{i}": np.zeros(3, dtype) for i in range(2) for dtype in reversed(DTYPES)}
    tensors = read_header(io.BytesIO(as_bytes(arrays))).tensors
    sizes = [tensor.dtype.itemsize for tensor in tensors.values()]
    assert sizes == sorted(sizes, reverse=True)
    for size in (8, 4, 1):
        of_size = [name for name, array in arrays.items() if array.itemsize == size]
        assert [name for name, t in tensors.items() if t.dtype.itemsize == size] == of_size
    assert all(tensor.begin % tensor.dtype.itemsize == 0 for tensor in tensors.values())


@pytest.mark.parametrize("n", range(9))
def test_the_data_start_at_a_multiple_of_8(n):
    data = as_bytes({"a": np.zeros(1)}, {"k": "x" * n})
    assert int.from_bytes(data[:8], "little") % 8 == 0
    load(data)


def test_safetensors_reads_our_files(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {f"{dtype} {shape} ä": np.ones(shape, dtype) for dtype in DTYPES for shape in SHAPES}
    path.write_bytes(as_bytes(arrays))
    assert_same(load_file(path), arrays)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    assert metadata == METADATA | {
        "sha256": read_header(path).sha256,
        "format": "onlineforest",
        "format_version": str(FORMAT_VERSION),
    }


# Arrays and metadata that cannot be written


@pytest.mark.parametrize("dtype", ["f2", "i2", "i1", "u2", "c16", "U3", "S3", "O", "M8[s]", "V8"])
def test_other_dtypes_are_not_written(dtype):
    with pytest.raises(TypeError, match=r"one of the dtypes F64, .* for 'a' instead"):
        as_bytes({"a": np.zeros(2, dtype)})


def test_more_dimensions_are_not_written():
    with pytest.raises(ValueError, match=r"at most 8 dimensions. Got 9 for 'a'"):
        as_bytes({"a": np.zeros((1,) * 9)})


def test_bools_other_than_0_and_1_are_not_written():
    with pytest.raises(ValueError, match=r"bools of 'a' must be 0 or 1\. Got 2 at position 2"):
        as_bytes({"a": np.array([0, 1, 2], np.uint8).view(bool)})


@pytest.mark.parametrize("key", ["sha256", "format", "format_version"])
def test_reserved_names_are_refused(key):
    with pytest.raises(ValueError, match=f"itself uses the name '{key}'"):
        as_bytes({}, {key: "1"})
    with pytest.raises(ValueError, match="itself uses the name '__metadata__'"):
        as_bytes({"__metadata__": np.zeros(1)})


def test_metadata_must_be_text():
    with pytest.raises(TypeError, match=r"must be strings. Got 1 instead"):
        as_bytes({}, {"k": 1})
    with pytest.raises(TypeError, match=r"must be strings. Got 2 instead"):
        as_bytes({2: np.zeros(1)}, {})
    with pytest.raises(ValueError, match=r"must be Unicode. Got '\\ud800' instead"):
        as_bytes({}, {"k": "\ud800"})


def test_a_header_that_is_too_large_is_refused():
    room = MAX_HEADER_BYTES - (len(as_bytes({}, {"k": ""})) - 8)
    fits = {"k": "x" * room}
    assert read(io.BytesIO(as_bytes({}, fits))).metadata == fits
    with pytest.raises(ValueError, match=f"header of {MAX_HEADER_BYTES} bytes. Got 16777224"):
        as_bytes({}, {"k": "x" * (room + 9)})


# Files that misbehave


def test_a_pipe_can_be_written_and_read():
    read_end, write_end = os.pipe()
    arrays = {"a": np.arange(50_000)}  # more than a pipe holds at once

    def run():
        with open(write_end, "wb", buffering=0) as file:
            write(file, arrays, METADATA)

    thread = threading.Thread(target=run)
    thread.start()
    with open(read_end, "rb", buffering=0) as file:
        contents = read(file)
    thread.join()
    assert_same(contents.arrays, arrays)


class Short(io.BytesIO):
    """Reads and writes a few bytes at a time."""

    def write(self, piece):
        return super().write(piece[:5])

    def read(self, n):
        return super().read(min(n, 3))


def test_partial_reads_and_writes_are_continued():
    file = Short()
    write(file, ARRAYS, METADATA)
    assert file.getvalue() == SMALL
    file.seek(0)
    assert read_header(file).metadata == METADATA
    assert_same(read(file).arrays, read(io.BytesIO(SMALL)).arrays)


@pytest.mark.parametrize("n", range(4))
def test_an_error_of_the_file_is_passed_on(n):
    class Full(io.BytesIO):
        writes = 0

        def write(self, piece):
            self.writes += 1
            if self.writes > n:
                raise OSError(28, "No space left on device")
            return super().write(piece)

    with pytest.raises(OSError, match="No space left"):
        write(Full(), ARRAYS, METADATA)


@pytest.mark.parametrize("answer", [None, 0, -1, 10**6])
def test_a_file_that_accepts_no_bytes_is_an_error(answer):
    class Stuck(io.BytesIO):
        def write(self, piece):
            return answer

    with pytest.raises(BlockingIOError, match=f"took {answer} of"):
        write(Stuck(), ARRAYS, METADATA)


def test_a_file_that_would_block_is_an_error():
    class Waiting(io.BytesIO):
        def read(self, n):
            return None

    with pytest.raises(BlockingIOError, match="no bytes yet"):
        read(Waiting(SMALL))


def test_text_files_and_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"open for bytes. It gave str instead"):
        read(io.StringIO("text"))
    for source in (None, 3, SMALL):
        with pytest.raises(TypeError, match="The source must be a path or a binary file"):
            read(source)


def test_errors_of_the_system_pass_through(tmp_path):
    for reader in (read, read_header):
        with pytest.raises(FileNotFoundError) as caught:
            reader(tmp_path / "missing")
        assert caught.value.filename == str(tmp_path / "missing")
        (tmp_path / "file").touch()
        with pytest.raises(NotADirectoryError):
            reader(tmp_path / "file" / "below")


@pytest.mark.parametrize("reader", [read, read_header])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_regular_files_are_opened(tmp_path, reader, make):
    path = f"{tmp_path}/a path"
    make(path)
    with pytest.raises(ModelFileError, match=f"^{path} is not a regular file.$"):
        reader(path)


@pytest.mark.parametrize("reader", [read, read_header])
def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path, monkeypatch, reader):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    before = os.stat(tmp_path / "file")
    monkeypatch.setattr(_reading.os, "stat", lambda path: before)
    with pytest.raises(ModelFileError, match="pipe is not a regular file"):
        reader(tmp_path / "pipe")


def test_an_endless_file_object_is_refused_at_its_beginning():
    with open("/dev/zero", "rb") as file:
        for reader in (read, read_header):
            with pytest.raises(ModelFileError, match="not a model file"):
                reader(file)


def test_a_large_file_of_another_kind_is_not_read(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ModelFileError, match="not a model file"):
        read(path)


@pytest.mark.parametrize("n", [0, 50, 300, len(SMALL) - 1])
def test_a_file_truncated_while_read_is_an_error(tmp_path, monkeypatch, n):
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    before = os.stat(path)
    path.write_bytes(SMALL[:n])
    monkeypatch.setattr(_reading.os, "fstat", lambda descriptor: before)
    what = (
        "is not a model file"
        if n < 256
        else f"became shorter while it was read: it ends at byte {n}"
    )
    with pytest.raises(ModelFileError, match=f"^{path} {what}"):
        read(path)
    if n <= 300:
        with pytest.raises(ModelFileError, match=f"^{path} {what}"):
            read_header(path)


def test_a_file_that_grows_is_read_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    before = os.stat(path)
    path.write_bytes(SMALL + b"more")
    monkeypatch.setattr(_reading.os, "fstat", lambda descriptor: before)
    assert read(path).metadata == METADATA
    path.write_bytes(SMALL[:100])
    before = os.stat(path)
    path.write_bytes(SMALL)
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


def test_an_error_of_reading_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(as_bytes())

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(_reading, "_read_up_to", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        read(path)
    assert caught.value.filename == str(path)


# Other files, and damage


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"short", "it has only 5 bytes"),
        (SMALL[:140], "it has only 140 bytes"),
        (pickle.dumps(list(range(300))), "it looks like a pickle"),
        (save({"a": np.zeros(99)}), "it looks like a safetensors file of another kind"),
        (save({"a": np.zeros(9)}, {"format": "pt"}), "it looks like a safetensors file of another"),
        (b"Some text.\n" * 99, "it begins with the bytes b'Some tex'"),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "it begins with the bytes b'\\x89PNG"),
        (b"\xff" * 8 + b"{" * 500, "it begins with the bytes b'\\xff"),
        (SMALL.replace(b"onlineforest", b"offlineforst"), "it looks like a safetensors file"),
        (SMALL.replace(b'"4"', b'"0"'), "it looks like a safetensors file"),
    ],
)
def test_files_of_other_kinds_are_refused(data, why):
    assert_refused(data, f"is not a model file of onlineforest: {why}")


def test_the_message_names_the_path_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it's.model").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"^\./it's\.model is not a model file"):
        read("./it's.model")


def test_a_wrong_digest_is_named_in_the_error():
    damaged = SMALL[:-1] + b"\x00"
    is_, says = sealed(damaged)[DIGEST].decode(), SMALL[DIGEST].decode()
    words = f"the file is damaged: its SHA-256 is {is_}, but it says {says}."
    assert_refused(damaged, words, by_header_too=False)
    assert read_header(io.BytesIO(damaged)).sha256 == says


@pytest.mark.parametrize("digit", [b"A", b"g", b"\x00", b'"', b"\xff"])
def test_a_digest_that_is_not_hexadecimal_is_refused(digit):
    place = DIGEST.start + 7
    damaged = SMALL[:place] + digit + SMALL[place + 1 :]
    words = "is damaged: its SHA-256 must be 64 hexadecimal digits"
    assert_refused(damaged, f"{words}. Got the byte {digit!r} at position 7 instead.")


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_any_changed_byte_is_detected(flip):
    for i in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[i] ^= flip
        with pytest.raises(ModelFileError):
            read(io.BytesIO(damaged))


def test_any_truncation_is_detected(tmp_path):
    for n in range(len(SMALL)):
        with pytest.raises(ModelFileError):
            read(io.BytesIO(SMALL[:n]))
        with pytest.raises(ModelFileError):
            read_header(io.BytesIO(SMALL[:n]))
    path = tmp_path / "model"
    for n in range(0, len(SMALL), 10):
        path.write_bytes(SMALL[:n])
        for reader in (read, read_header):
            with pytest.raises(ModelFileError):
                reader(path)


@pytest.mark.parametrize("more", [b"\0", b" ", b"more bytes", SMALL])
def test_any_added_byte_is_detected(more):
    assert_refused(SMALL + more, "is damaged", by_header_too=False)
    words = f"its tensors have 35 bytes, but its data {35 + len(more)}"
    assert_refused(sealed(SMALL + more), words)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 999_999_999])
def test_other_formats_are_refused_with_both_numbers(n):
    # The header of another format is unknown: nothing of it but the number is looked at.
    data = file_of(f'{FIRST}"{n}"}},"a":{{"dtype":"F8","new":[[[{{NaN', b"data")
    words = (
        f"the file has format {n}, but this version of onlineforest "
        f"({version('onlineforest')}) reads format 4 alone. "
        f"{'A newer' if n > 4 else 'An older'} version of onlineforest can read it."
    )
    assert_refused(data, words)
    assert_refused(data + b"?", "is damaged", by_header_too=False)


# Hostile headers; their digests are right


def test_files_made_by_hand_are_read():
    """A valid handmade file is read, so other handmade files fail for their own defects."""
    contents = read(io.BytesIO(with_tensors(entry(), b"abcd")))
    assert contents.arrays["a"].tolist() == list(b"abcd") and contents.metadata == {}


@pytest.mark.parametrize("n_bytes", [MAX_HEADER_BYTES + 1, 2**32, 2**63, 2**64 - 1])
def test_headers_that_claim_to_be_too_long_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    assert_refused(data, f"its header has {n_bytes} bytes, but may have {MAX_HEADER_BYTES}")


@pytest.mark.parametrize("n_bytes", [len(SMALL) - 7, len(SMALL), MAX_HEADER_BYTES])
def test_headers_longer_than_the_file_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    words = f"its header ends at byte {8 + n_bytes}, but the file at byte {len(SMALL)}"
    assert_refused(data, words)


@pytest.mark.parametrize("n_bytes", [0, 1, 2, 15, 100, 150, 300])
def test_headers_that_end_too_early_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    assert_refused(data, "is not a valid model file: its header ")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ((WHOLE + ',"k":"\xff"}}').encode("latin-1"), "its header is not UTF-8"),
        (WHOLE + ',"k":"\ud800"}}', "its header is not UTF-8"),
        (WHOLE + ',"k":"\\ud800"}}', r"the string '\ud800', which is not Unicode"),
        (WHOLE + ',"\\udc00":""}}', r"the string '\udc00', which is not Unicode"),
        (WHOLE + '},"\\udfff":1}', r"the string '\udfff', which is not Unicode"),
        (WHOLE + "}}\n", r"its header must end with } and spaces, but it ends with '\n'"),
        (WHOLE + "}}\0", r"its header must end with } and spaces, but it ends with '\x00'"),
        (WHOLE + "}}  \t ", r"its header must end with } and spaces, but it ends with '\t'"),
        (WHOLE + "}}x}", "its header is not JSON (Extra data"),
        (WHOLE + "}", "its header is not JSON"),
        (WHOLE + ',"k":"\n"}}', "its header is not JSON (Invalid control character"),
        (WHOLE + ',"k":"1","k":"1"}}', "its header has the key 'k' twice"),
        (WHOLE + ',"format_version":"1"}}', "its header has the key 'format_version' twice"),
        (WHOLE + '},"__metadata__":{}}', "its header has the key '__metadata__' twice"),
        (WHOLE + '},"a":{"shape":[],"shape":[]}}', "its header has the key 'shape' twice"),
        (WHOLE + '},"a":1,"a":2}', "its header has the key 'a' twice"),
        (WHOLE + '},"a":NaN}', "its header has the number NaN, which is not finite"),
        (WHOLE + '},"a":-Infinity}', "has the number -Infinity, which is not finite"),
        (WHOLE + '},"a":1e400}', "its header has the number 1e400, which is not finite"),
        (WHOLE + '},"a":' + "1" * 41 + "}", "has a number of 41 characters, more than 40"),
        (WHOLE + '},"a":' + "1" * 10**5 + "}", "has a number of 100000 characters"),
        (WHOLE + '},"a":0.' + "1" * 39 + "}", "has a number of 41 characters, more than 40"),
        (
            WHOLE + '},"a":' + "[" * 10**5 + "]" * 10**5 + "}",
            "nested 100001 levels deep, more than 32",
        ),
        (WHOLE + '},"a":' + '{"a":' * 40 + "1" + "}" * 41, "nested 41 levels deep, more than 32"),
        (WHOLE + '},"a":' + "[" * 10**6 + "}", "nested 1000001 levels deep, more than 32"),
        (WHOLE + ',"k":1}}', "its metadata have 1, which is not a string"),
        (WHOLE + ',"k":null}}', "its metadata have None, which is not a string"),
        (WHOLE + ',"k":{"a":"b"}}}', "its metadata have {'a': 'b'}, which is not a string"),
    ],
)
def test_hostile_headers_are_refused(header, words):
    assert_refused(file_of(header), words)


def test_padding_and_space_within_the_header_are_allowed():
    assert read(io.BytesIO(file_of(WHOLE + "} \n}     "))).arrays == {}


KEYS = "its tensor 'a' must have exactly the keys dtype, shape and data_offsets"
SHAPE = "instead of a list of at most 8 counts"
OFFSETS = "instead of a begin and an end"
SIZE = "dtype U8 need "
LARGEST = "more than 9223372036854775807"


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ('"a":1', KEYS),
        ('"a":[]', KEYS),
        ('"a":null', KEYS),
        ('"a":{}', KEYS),
        ('"a":{"dtype":"U8","shape":[4]}', KEYS),
        (entry()[:-1] + ',"more":1}', KEYS),
        (entry(dtype='"F16"'), "its tensor 'a' has dtype 'F16', which is unknown"),
        (entry(dtype='"f8"'), "has dtype 'f8', which is unknown"),
        (entry(dtype="[]"), "has dtype [], which is unknown"),
        (entry(dtype="{}"), "has dtype {}, which is unknown"),
        (entry(dtype="null"), "has dtype None, which is unknown"),
        (entry(shape="4"), SHAPE),
        (entry(shape="null"), SHAPE),
        (entry(shape='"4"'), SHAPE),
        (entry(shape='{"4":4}'), SHAPE),
        (entry(shape="[-4]"), SHAPE),
        (entry(shape="[-2,-2]"), SHAPE),
        (entry(shape="[4.0]"), SHAPE),
        (entry(shape="[true,4]"), SHAPE),
        (entry(shape='["4"]'), SHAPE),
        (entry(shape="[[4]]"), SHAPE),
        (entry(shape="[4,1,1,1,1,1,1,1,1]"), SHAPE),
        (entry(shape=str([1] * 10**5)), SHAPE),
        (entry(offsets="[0]"), OFFSETS),
        (entry(offsets="[0,4,4]"), OFFSETS),
        (entry(offsets="4"), OFFSETS),
        (entry(offsets="null"), OFFSETS),
        (entry(offsets="[0,4.0]"), OFFSETS),
        (entry(offsets="[false,4]"), OFFSETS),
        (entry(offsets="[-4,0]"), OFFSETS),
        (entry(offsets="[4,0]"), OFFSETS),
        (entry(shape="[3]"), "has 4 bytes, but its shape [3] and dtype U8 need 3"),
        (entry(shape="[]"), SIZE),
        (entry(shape="[0]"), SIZE),
        (entry(dtype='"F32"'), "has 4 bytes, but its shape [4] and dtype F32 need 16"),
        (entry(shape=f"[{2**62},4]", offsets="[0,0]"), SIZE),  # 2**64 is 0 in 64 bits
        (entry(shape=f"[{2**32},{2**32},4]", offsets="[0,4]"), SIZE),
        (entry(shape=f"[0,{2**63}]", offsets="[0,0]"), LARGEST),
        (entry(shape=f"[0,{2**40},{2**40}]", offsets="[0,0]"), LARGEST),
        (entry(dtype='"F64"', shape=f"[{2**60},0]", offsets="[0,0]"), LARGEST),
        (entry(shape=f"[{10**30}]", offsets=f"[0,{10**30}]"), LARGEST),
        (entry(shape=f"[{2**50}]", offsets=f"[0,{2**50}]"), "but its data 4"),
        (entry(shape="[0]", offsets="[0,0]"), "its tensors have 0 bytes, but its data 4"),
        (entry(shape="[3]", offsets="[0,3]"), "its tensors have 3 bytes, but its data 4"),
        (entry(shape="[5]", offsets="[0,5]"), "its tensors have 5 bytes, but its data 4"),
        (entry(shape="[3]", offsets="[1,4]"), "'a' begins at byte 1 of the data instead of 0"),
        (entry() + "," + entry("b"), "'b' begins at byte 0 of the data instead of 4"),
        (
            entry(shape="[3]", offsets="[0,3]") + "," + entry("b", shape="[2]", offsets="[2,4]"),
            "'b' begins at byte 2 of the data instead of 3",
        ),
        (
            entry(shape="[1]", offsets="[0,1]") + "," + entry("b", shape="[2]", offsets="[2,4]"),
            "'b' begins at byte 2 of the data instead of 1",
        ),
        (
            entry() + "," + entry("b", shape="[0]", offsets="[2,2]"),
            "'b' begins at byte 2 of the data instead of 4",
        ),
        (
            entry() + "," + entry("b", shape="[0]", offsets="[5,5]"),
            "'b' begins at byte 5 of the data instead of 4",
        ),
    ],
)
def test_hostile_tensors_are_refused(tensors, words):
    assert_refused(with_tensors(tensors, b"abcd"), words)


def test_too_many_tensors_are_refused():
    """Each tensor takes microseconds, and the largest header could name a million."""
    tensors = ",".join(entry(str(i), shape="[0]", offsets="[0,0]") for i in range(1001))
    assert_refused(with_tensors(tensors, b""), "it has 1001 tensors, more than 1000")


def test_tensors_may_come_in_any_order():
    tensors = ",".join(
        [
            entry("b", shape="[2]", offsets="[2,4]"),
            entry("end", shape="[0,3]", offsets="[4,4]"),
            entry("between", shape="[0]", offsets="[2,2]"),
            entry("a", shape="[2,1]", offsets="[0,2]"),
            entry("start", shape=f"[{2**62},0]", offsets="[0,0]"),
        ]
    )
    arrays = read(io.BytesIO(with_tensors(tensors, b"abcd"))).arrays
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        "b": b"cd",
        "end": b"",
        "between": b"",
        "a": b"ab",
        "start": b"",
    }
    assert arrays["start"].shape == (2**62, 0)


def test_a_long_name_is_cut_in_the_message():
    assert_refused(with_tensors(f'"{"x" * 10**5}":1'), "must have exactly the keys")


@pytest.mark.parametrize("shift", range(1, 8))
def test_unaligned_tensors_are_copied(shift):
    values = np.array([1.5, -2.0])
    tensors = entry("pad", shape=f"[{shift}]", offsets=f"[0,{shift}]")
    tensors += "," + entry("a", '"F64"', "[2]", f"[{shift},{shift + 16}]")
    header = f"{WHOLE}}},{tensors}}}"
    header += " " * (-len(header) % 8)
    array = read(io.BytesIO(file_of(header, bytes(shift) + values.tobytes()))).arrays["a"]
    assert array.tolist() == values.tolist()
    assert array.flags.aligned and not array.flags.writeable


@pytest.mark.parametrize("byte", [2, 0x80, 0xFF])
def test_bools_are_0_or_1(byte):
    data = with_tensors(entry(dtype='"BOOL"'), bytes([0, 1, byte, 1]))
    words = f"the bools of its tensor 'a' must be 0 or 1, but it has {byte} at position 2"
    assert_refused(data, words, by_header_too=False)
    assert read_header(io.BytesIO(data)).tensors["a"].dtype == bool


# Any damage at all

BITS_OF_JSON = st.sampled_from(
    rb'" { } [ ] , : \ - 0 99999999999999999999 1e999 true null NaN "U8" "F64" \ud800 [] {}'.split()
)


def only_model_file_errors(data):
    for reader in (read, read_header):
        with contextlib.suppress(ModelFileError):
            reader(io.BytesIO(data))
            assert b'"format_version":"4"' in data[:155]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SMALL)), st.integers(0, 30), st.binary(max_size=9) | BITS_OF_JSON
        ),
        max_size=4,
    )
)
@example([(len(SMALL) - 1, 1, b"\x02")])
def test_damaged_files_with_a_valid_digest_never_crash(changes):
    data = SMALL
    for place, n_removed, new in changes:
        data = data[:place] + new + data[place + n_removed :]
    only_model_file_errors(sealed(data))
    # Mostly that is no JSON any more; so again, with the length of the header corrected.
    n_header = max(0, len(data) - 8 - 35)
    only_model_file_errors(sealed(n_header.to_bytes(8, "little") + data[8:]))


ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F64", "F32", "U8", "BOOL", "F16"]) | JSON,
        "shape": st.lists(COUNTS, max_size=9) | JSON,
        "data_offsets": st.lists(COUNTS, min_size=2, max_size=2) | JSON,
    }
)


@settings(max_examples=50)  # slow to draw
@given(
    st.dictionaries(st.text(max_size=3), ENTRIES | JSON, max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3) | JSON, max_size=2),
    st.binary(max_size=40),
)
def test_random_headers_with_a_valid_digest_never_crash(entries, metadata, data):
    ours = {"sha256": "0" * 64, "format": "onlineforest", "format_version": "4"}
    header = json.dumps({"__metadata__": ours | metadata} | entries, separators=(",", ":"))
    only_model_file_errors(file_of(header, data))
