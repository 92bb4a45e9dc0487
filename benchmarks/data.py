"""The data sets: those of a folder, scikit-learn's digits, and synthetic ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import NotMeasuredError

# Rows and their classes.
Labelled = tuple[NDArray[np.float32], NDArray[np.int64]]

DIGITS, SYNTHETIC, NOISE = "digits", "synthetic", "noise"
ELEC2, COVTYPE = "elec2", "covtype"
REGRESSION = ("kin8nm", "power_plant", "concrete", "california")
SYNTHETIC_REGRESSION = "synthetic regression"
BUNDLED = (DIGITS, SYNTHETIC, NOISE, SYNTHETIC_REGRESSION)  # need no folder
N_STREAM_ROWS = 10_000  # rows of a stream that is loaded like other data


@dataclass(frozen=True)
class Data:
    """Rows as float32, so that neither side converts them.

    y holds class codes from 0, or float64 numbers for regression.
    """

    X: NDArray[np.float32]
    y: NDArray[Any]
    X_test: NDArray[np.float32]

    @property
    def classes(self) -> NDArray[np.int64]:
        """The classes of the training set."""
        return np.arange(self.y.max() + 1)

    @property
    def labels(self) -> NDArray[np.int32]:
        """The class codes, as the core takes them."""
        return self.y.astype(np.int32)

    def head(self, n_rows: int) -> Data:
        """The first training rows, with class codes renumbered without gaps."""
        y = self.y[:n_rows]
        if y.dtype == np.int64:
            y = np.unique(y, return_inverse=True)[1]
        return Data(self.X[:n_rows], y, self.X_test[:n_rows])


def load(name: str, folder: Path | None, scale: float = 1.0) -> Data:
    """A data set by name; those in files need `folder`."""
    if name == DIGITS:
        data = load_digits()
    elif name == SYNTHETIC:
        data = split(*synthetic(4_000, 20, n_classes=10), n_train=3_000)
    elif name == SYNTHETIC_REGRESSION:
        data = synthetic_regression()
    elif name in REGRESSION:
        data = load_regression(file_of(name, folder))
    elif name in (ELEC2, COVTYPE):
        data = split(*load_stream(name, folder, N_STREAM_ROWS), n_train=N_STREAM_ROWS)
    else:
        data = load_file(file_of(name, folder))
    return data.head(max(20, round(scale * len(data.y)))) if scale != 1 else data


def file_of(name: str, folder: Path | None) -> Path:
    """The file of a data set."""
    if folder is None or not (folder / f"{name}.npz").is_file():
        raise NotMeasuredError(f"needs {name}.npz in the folder of the data sets")
    return folder / f"{name}.npz"


def load_file(path: Path) -> Data:
    """A file with a training and a test set, rows in random order."""
    with np.load(path, allow_pickle=False) as file:
        X, y = shuffled(file["X_train"], file["y_train"], seed=0)
        # Some files are sorted by class, unlike a stream.
        X_test, _ = shuffled(file["X_test"], file["y_test"], seed=1)
    return Data(X, y, X_test)


def load_regression(path: Path) -> Data:
    """A file of rows and numbers; a random tenth is the test set."""
    with np.load(path, allow_pickle=False) as file:
        X, y = shuffled(file["X"], file["y"], seed=0, dtype=np.float64)
    return split(X, y, n_train=len(y) - len(y) // 10)


def load_digits() -> Data:
    """The handwritten digits of scikit-learn, which need no download."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return split(*shuffled(X, y, seed=0), n_train=1_500)


def load_stream(name: str, folder: Path | None, n_rows: int) -> Labelled:
    """The first rows of a stream, in their order."""
    if name in (SYNTHETIC, NOISE):
        return synthetic(n_rows, 10, n_classes=5, noise=0.2 if name == SYNTHETIC else 1.0)
    with np.load(file_of(name, folder), allow_pickle=False) as file:
        X, y = file["X"][:n_rows], file["y"][:n_rows]
    return X.astype(np.float32), y.astype(np.int64)


def synthetic(
    n_rows: int, n_features: int, n_classes: int, seed: int = 0, noise: float = 0.2
) -> Labelled:
    """Uniform features; the class depends on the sum of two, and a share `noise` is random."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features), dtype=np.float32)
    y = np.minimum((X[:, 0] + X[:, 1]) / 2 * n_classes, n_classes - 1).astype(np.int64)
    flipped = rng.random(n_rows) < noise
    y[flipped] = rng.integers(n_classes, size=flipped.sum())
    return X, y


def synthetic_regression() -> Data:
    """Uniform features; the target is a sum of two, a product of two others, and noise."""
    rng = np.random.default_rng(0)
    X = rng.random((2_200, 8), dtype=np.float32)
    y = X[:, 0] + X[:, 1] + 4 * X[:, 2] * X[:, 3] + rng.normal(scale=0.2, size=len(X))
    return split(X, y, n_train=2_000)


def shuffled(
    X: NDArray[Any], y: NDArray[Any], seed: int, dtype: type = np.int64
) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """The rows in random order, C-contiguous."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.ascontiguousarray(X[order], np.float32), y[order].astype(dtype)


def split(X: NDArray[np.float32], y: NDArray[Any], n_train: int) -> Data:
    """The first rows as training set, the others as test set."""
    return Data(X[:n_train], y[:n_train], X[n_train:])
