"""The C library for tests: built once, and called from Python through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_size_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
STATUSES = (
    "OK",
    "INVALID_ARGUMENT",
    "SYSTEM_ERROR",
    "BAD_FILE",
    "TOO_LARGE",
    "UNSUPPORTED",
    "NO_MEMORY",
    "INTERNAL_ERROR",
)


def run(*command, **options):
    """The output of a command; an error shows what it printed."""
    done = subprocess.run(
        [str(each) for each in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def tool(name):
    """The path of a tool, which may be in the environment of this Python alone."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not installed: pip install 'onlineforest[test]'"
    return found


def build(folder):
    """Build the library and the example; warnings are errors.

    Lightly optimised, which changes no bit: compiling takes longer than testing. In units of about
    equal size, for two processors.
    """
    run(
        tool("cmake"), "-S", ROOT, "-B", folder, "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=5", "-DONLINEFOREST_PYTHON=OFF",
        "-DONLINEFOREST_C=ON", "-DONLINEFOREST_WERROR=ON",
    )  # fmt: skip
    run(tool("cmake"), "--build", folder, "--parallel", "2")


class CError(Exception):
    """A call of the C library failed."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = STATUSES[status]


class Library:
    """The functions of the shared library in a folder of CMake."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.path = self.folder / "src/c/libonlineforest.so"
        self.example = self.folder / "src/c/stream"
        self.c = c = ctypes.CDLL(str(self.path))
        for name in ("of_n_features", "of_n_classes"):
            getattr(c, name).argtypes, getattr(c, name).restype = [c_void_p], c_size_t
        for name in ("of_n_samples_seen", "of_n_samples_stored"):
            getattr(c, name).argtypes, getattr(c, name).restype = [c_void_p], c_uint64
        c.of_library_version.restype = c.of_last_error.restype = c_char_p
        c.of_get_kind.argtypes = c.of_free.argtypes = [c_void_p]
        c.of_free.restype = None
        c.of_load.argtypes = [c_char_p, c_uint64, POINTER(c_void_p)]
        c.of_save.argtypes = [c_void_p, c_char_p]
        c.of_class_label.argtypes = [c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t)]
        rows = [c_void_p, POINTER(c_float), c_size_t, c_size_t]
        for name, kind in {
            "of_predict_classes": c_int32,
            "of_predict_proba": c_double,
            "of_predict_numbers": c_double,
        }.items():
            getattr(c, name).argtypes = [*rows, ctypes.c_uint, POINTER(kind), c_size_t]
        for name, kind in {"of_learn_classes": c_int32, "of_learn_numbers": c_double}.items():
            getattr(c, name).argtypes = [*rows, POINTER(kind), POINTER(c_double), ctypes.c_uint]

    def check(self, status):
        """Raise if a status is not OF_OK."""
        if status != 0:
            raise CError(status, self.c.of_last_error().decode())

    def load(self, path, max_bytes=0):
        """The forest in a file."""
        handle = c_void_p(1)
        status = self.c.of_load(os.fsencode(path), max_bytes, byref(handle))
        assert (status == 0) == bool(handle)
        self.check(status)
        return CForest(self, handle)

    def load_bytes(self, data, folder, max_bytes=0):
        """The forest in a file of these bytes."""
        path = Path(folder) / "model.safetensors"
        path.write_bytes(data)
        return self.load(path, max_bytes)


def pointer(array, kind):
    return None if array is None else array.ctypes.data_as(POINTER(kind))


class CForest:
    """A forest of the C library. Freed with this object."""

    def __init__(self, library, handle):
        self.library, self.c, self.handle = library, library.c, handle

    def __del__(self):
        self.c.of_free(self.handle)

    @property
    def is_classifier(self):
        return self.c.of_get_kind(self.handle) == 0

    @property
    def n_classes(self):
        return self.c.of_n_classes(self.handle)

    @property
    def n_samples_seen(self):
        return self.c.of_n_samples_seen(self.handle)

    @property
    def n_samples_stored(self):
        return self.c.of_n_samples_stored(self.handle)

    def label(self, index):
        text, size = c_void_p(), c_size_t()
        self.library.check(self.c.of_class_label(self.handle, index, byref(text), byref(size)))
        return ctypes.string_at(text, size.value).decode("utf-8", "surrogatepass")

    def labels(self):
        return [self.label(i) for i in range(self.n_classes)]

    def _predict(self, function, X, out, kind, n_threads):
        X = np.ascontiguousarray(X, dtype=np.float32)
        arguments = (self.handle, pointer(X, c_float), *X.shape, n_threads, pointer(out, kind))
        self.library.check(function(*arguments, out.size))
        return out

    def predict(self, X, n_threads=1):
        """The numbers, or the indices of the classes."""
        if self.is_classifier:
            out = np.empty(len(X), dtype=np.int32)
            return self._predict(self.c.of_predict_classes, X, out, c_int32, n_threads)
        out = np.empty(len(X))
        return self._predict(self.c.of_predict_numbers, X, out, c_double, n_threads)

    def predict_proba(self, X, n_threads=1):
        out = np.empty((len(X), self.n_classes))
        return self._predict(self.c.of_predict_proba, X, out, c_double, n_threads)

    def learn(self, X, y, weights=None, n_threads=1):
        """Learn samples; y are numbers, or indices of classes."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        if self.is_classifier:
            y, kind, function = np.ascontiguousarray(y, np.int32), c_int32, self.c.of_learn_classes
        else:
            y, kind = np.ascontiguousarray(y, np.float64), c_double
            function = self.c.of_learn_numbers
        status = function(
            self.handle, pointer(X, c_float), *X.shape, pointer(y, kind),
            pointer(weights, c_double), n_threads,
        )  # fmt: skip
        self.library.check(status)

    def save(self, path):
        self.library.check(self.c.of_save(self.handle, os.fsencode(path)))
