"""The paper's data sets, from a folder or from OpenML with every row checked; and the digits.

`row_hashes.npz` identifies the rows of the paper's split by hashes of their values: OpenML has the
rows, but in a different order and without the split.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_digits

ROW_HASHES = Path(__file__).with_name("row_hashes.npz")


@dataclass(frozen=True)
class Data:
    """Train and test, features rescaled to [0, 1] over both together, classes from 0 up."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The classes of the training set."""
        return np.unique(self.y)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything."""
        digest = hashlib.sha256()
        for array in (self.X, self.y, self.X_test, self.y_test):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """The OpenML id of a data set, and how to identify its rows.

    `levels` rounds raw values to the whole numbers that are hashed. The last digit of the real
    values of usps is uncertain, so they are rounded coarsely and a few rows may differ; instead,
    its rows must come in the known order.
    """

    openml_id: int
    levels: Callable[[NDArray], NDArray] = np.rint
    ordered: bool = False


def grey_levels(X: NDArray) -> NDArray:
    """Nine levels of pixels from -1 to 1; common values are far from the edges of levels."""
    return np.floor((X + 1) * 4 + 0.1)


SOURCES = {
    "usps": Source(41082, grey_levels, ordered=True),
    "satimages": Source(182),
    "letter": Source(6),
    "dna": Source(40670),
}
SHARE_OF_EQUAL_ROWS = 0.99  # with less, the rows have another order than the known one
DAGGER = "dna†"  # dna reduced to its 60 relevant columns
RELEVANT_COLUMNS = slice(60, 120)
DIGITS = "digits"
NAMES = (*SOURCES, DAGGER, DIGITS)


class DataError(Exception):
    """A data set is not available; the message says how to provide it."""


@lru_cache(maxsize=8)
def load(name: str) -> Data:
    """A data set by name."""
    if name == DIGITS:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:1200], order[1200:]
        return rescaled(name, X[train], y[train], X[test], y[test])
    if name == DAGGER:
        X, y, X_test, y_test = raw("dna")
        return rescaled(name, X[:, RELEVANT_COLUMNS], y, X_test[:, RELEVANT_COLUMNS], y_test)
    return rescaled(name, *raw(name))


def raw(name: str) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Unscaled train and test rows, from the folder if it is set, else from OpenML."""
    folder = os.environ.get("ONLINEFOREST_DATA")
    if folder:
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            raise DataError(
                f"There is no {name}.npz in the folder ONLINEFOREST_DATA names, {folder}. "
                "Put it there, or unset ONLINEFOREST_DATA to fetch the data from OpenML."
            )
        keys = ("X_train", "y_train", "X_test", "y_test")
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                return tuple(file[key] for key in keys)
        except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
            raise DataError(
                f"{path} must be an npz file with the arrays {', '.join(keys)}: {error}"
            ) from error
    return fetched(name)


def fetched(name: str) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Train and test rows from OpenML, identified by their hashes."""
    source = SOURCES[name]
    try:
        bunch = fetch_openml(data_id=source.openml_id, as_frame=False, parser="liac-arff")
        X = plain_values(bunch)
    except Exception as error:  # network, server or file: the advice is the same
        raise DataError(
            f"{name} (data set {source.openml_id}) could not be fetched from OpenML: {error}. "
            f"Either connect to a network, or set ONLINEFOREST_DATA to a folder with {name}.npz "
            "(arrays X_train, y_train, X_test, y_test)."
        ) from error
    y = np.unique(as_numbers(bunch.target), return_inverse=True)[1]
    with np.load(ROW_HASHES, allow_pickle=False) as stored:
        train, test = stored[f"{name}_train"], stored[f"{name}_test"]
        counts = stored[f"{name}_class_counts"]
    found = row_hashes(X, source)
    wanted = np.concatenate([train, test])
    rows = known_order(name, wanted, found) if source.ordered else places(name, wanted, found)
    of_train, of_test = rows[: len(train)], rows[len(train) :]
    if not np.array_equal(np.sort(np.bincount(y[of_train])), counts):
        raise DataError(f"OpenML's {name} has other labels than the paper's: {advice(name)}")
    return X[of_train], y[of_train], X[of_test], y[of_test]


def plain_values(bunch: Any) -> NDArray[np.float64]:
    """The features as numbers; categories, which come as codes, get their values."""
    X = bunch.data.toarray() if hasattr(bunch.data, "toarray") else bunch.data
    X = np.array(X, dtype=np.float64)
    for name, values in (getattr(bunch, "categories", None) or {}).items():
        if name in bunch.feature_names:
            d = bunch.feature_names.index(name)
            X[:, d] = np.asarray(values, dtype=np.float64)[X[:, d].astype(int)]
    return X


def as_numbers(labels: NDArray) -> NDArray:
    """Labels as numbers if possible, so that 10 comes after 9."""
    try:
        return np.asarray(labels, dtype=np.float64)
    except ValueError:
        return np.asarray(labels)


def row_hashes(X: NDArray, source: Source) -> NDArray[np.uint64]:
    """A hash of each row's values."""
    levels = np.ascontiguousarray(source.levels(np.asarray(X, dtype=np.float64)), dtype="<i2")
    digests = (hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in levels)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def places(name: str, wanted: NDArray, found: NDArray) -> NDArray[np.int64]:
    """Index of each wanted row among those found; each index is used once."""
    at = defaultdict(list)
    for place in range(len(found) - 1, -1, -1):
        at[int(found[place])].append(place)
    rows = [at[key].pop() if at[key] else -1 for key in map(int, wanted)]
    if n_missing := rows.count(-1):
        raise DataError(
            f"{n_missing} of {len(wanted)} rows of {name} are not in OpenML's: {advice(name)}"
        )
    return np.array(rows)


def known_order(name: str, wanted: NDArray, found: NDArray) -> NDArray[np.int64]:
    """All rows in their order, if nearly all of them are the wanted ones."""
    if len(wanted) != len(found) or (wanted == found).mean() < SHARE_OF_EQUAL_ROWS:
        raise DataError(
            f"OpenML's rows of {name} are not those of the paper in their order: {advice(name)}"
        )
    return np.arange(len(found))


def advice(name: str) -> str:
    """How to provide the data without OpenML."""
    return f"set ONLINEFOREST_DATA to a folder with {name}.npz instead."


def rescaled(name: str, X: NDArray, y: NDArray, X_test: NDArray, y_test: NDArray) -> Data:
    """Features from 0 to 1 over train and test together; constant ones stay constant."""
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    low = np.minimum(X.min(axis=0), X_test.min(axis=0))
    span = np.maximum(X.max(axis=0), X_test.max(axis=0)) - low
    span[span == 0] = 1
    return Data(
        name,
        (X - low) / span,
        y.astype(np.int64),
        (X_test - low) / span,
        y_test.astype(np.int64),
    )


def store_row_hashes() -> None:
    """Write `row_hashes.npz` from the folder of the data sets."""
    arrays = {}
    for name, source in SOURCES.items():
        X, y, X_test, _ = raw(name)
        arrays[f"{name}_train"] = row_hashes(X, source)
        arrays[f"{name}_test"] = row_hashes(X_test, source)
        arrays[f"{name}_class_counts"] = np.sort(np.bincount(y))
    np.savez(ROW_HASHES, **arrays)
