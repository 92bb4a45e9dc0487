"""Model files for tests: read, changed and written again with a valid digest."""

from __future__ import annotations

import hashlib
import io
import json
import struct

import numpy as np

from onlineforest import load
from onlineforest._files import container as _container

DIGEST = slice(35, 99)  # the position of the digest in every format


def saved(forest):
    """The bytes of a forest's file."""
    file = io.BytesIO()
    forest.save(file)
    return file.getvalue()


def loaded(forest):
    """The forest of a forest's file."""
    return load(io.BytesIO(saved(forest)))


def signed(data):
    """The bytes with a valid digest."""
    data = bytearray(data)
    data[DIGEST] = b"0" * 64
    data[DIGEST] = hashlib.sha256(data).hexdigest().encode()
    return bytes(data)


def with_header(data, header):
    """The arrays of a file after another header."""
    n = struct.unpack("<Q", data[:8])[0]
    header += b" " * (-len(header) % 8)
    return signed(struct.pack("<Q", len(header)) + header + data[8 + n :])


def header_of(data):
    return data[8 : 8 + struct.unpack("<Q", data[:8])[0]].rstrip()


def changed(data, metadata=None, arrays=None):
    """The file with other metadata (JSON values) or arrays; None removes an entry."""
    contents = _container.read(io.BytesIO(data))
    texts, all_arrays = dict(contents.metadata), dict(contents.arrays)
    for key, value in (metadata or {}).items():
        del texts[key]
        if value is not None:
            texts[key] = value if key == "estimator" else json.dumps(value)
    for name, array in (arrays or {}).items():
        all_arrays.pop(name, None)
        if array is not None:
            all_arrays[name] = np.asarray(array)
    file = io.BytesIO()
    _container.write(file, all_arrays, texts)
    return file.getvalue()
