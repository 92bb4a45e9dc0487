"""Model files: writing, reading, other readers, and file objects that misbehave."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import sys
import threading

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, load_file

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
from support.containers import (
    ARRAYS,
    DIGEST,
    METADATA,
    SMALL,
    as_bytes,
    assert_same,
    sealed,
)

DTYPES = ["f8", "f4", "i8", "i4", "u8", "u4", "u1", "?"]
SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0, 2), (1, 1, 1, 1, 1, 1, 1, 2)]

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
