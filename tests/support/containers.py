"""Model files made by hand, and the errors that both readers of them raise."""

from __future__ import annotations

import hashlib
import io
import re

import numpy as np
import pytest

from onlineforest._files.container import (
    FORMAT_VERSION,
    ModelFileError,
    read,
    read_header,
    write,
)

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
