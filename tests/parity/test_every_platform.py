"""Order-free forests are the same, to the bit, on every system, processor and version of Python.

They call nothing whose last bit depends on the platform. (For Mondrian forests, see
test_golden_digests.py.) The tests of each wheel run this file. After a change that is meant to
change forests, raise the number of the law, `kLaw` in src/core/orderfree/law/law.hpp;
`python tests/parity/test_every_platform.py` prints the new digests.
"""

from __future__ import annotations

import hashlib
from unittest import mock

import numpy as np
import pytest

from onlineforest import OnlineForestClassifier, OnlineForestRegressor
from onlineforest._forests.orderfree import digests as _digests

N_SAMPLES, N_QUERIES = 600, 100
# Digests of each forest: its own, that without the number of the law, and that of its answers.
EXPECTED = {
    "classifier": ("c460352e20f30aea", "7d83f05f9f12c1f6", "72b6827c59a64243"),
    "classifier with missing values, threads": (
        "12d838a24dc47b20",
        "83342a9b9e2ece95",
        "01a67f309d671df3",
    ),
    "classifier with categories": ("f32b73879e495c09", "6e6d266222c27d33", "3c2fb22635dbd659"),
    "classifier, wide": ("33bfa1203eefe21b", "6225f5464b6d4b67", "dee2d6daa3cbb569"),
    "classifier, wide, missing values": (
        "5b58c50f07ef6a6f",
        "d89cdeed3db74fc7",
        "f252509c6ebb8313",
    ),
    "regressor": ("dff8d0913cf23800", "6704a611cae3f6c2", "01daeb714b2a8f95"),
    "regressor, wide": ("fd8db7dab31bd6ba", "a1f23e37e8ade923", "62f41e4de7ed4a52"),
    "regressor with missing values, threads": (
        "2e6c0d18698b9ee3",
        "b3b42243ac1e5b28",
        "3f0e72c617db51a3",
    ),
    "regressor, batches, forgotten": ("70f3f9961f946845", "7e18fd3abb8c70e9", "6047eea7d4b2b763"),
}


def rows_of(rng, n_rows):
    """Rows by exact arithmetic: no function of the C library, no sums whose order may differ."""
    rows = rng.random((n_rows, 5)).astype(np.float32)
    rows[:, 3] = rng.integers(0, 4, n_rows)
    rows[:, 4] = 1000 * rows[:, 4] - 300
    return rows


RNG = np.random.default_rng(27)
X, QUERIES = rows_of(RNG, N_SAMPLES), rows_of(RNG, N_QUERIES)
LABELS = (4 * X[:, 0] * X[:, 1]).astype(int) + (X[:, 3] > 2)
NUMBERS = 3.0 * X[:, 0] - X[:, 1].astype(float) * X[:, 2] + 0.25 * RNG.integers(0, 8, N_SAMPLES)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.float32(np.nan), X)
NOISE = RNG.random((N_SAMPLES + N_QUERIES, 20), dtype=np.float32)  # wide rows are screened
WIDE, WIDE_QUERIES = np.hstack([X, NOISE[:N_SAMPLES]]), np.hstack([QUERIES, NOISE[N_SAMPLES:]])
WIDE_HOLES = np.where(RNG.random(WIDE.shape) < 0.1, np.float32(np.nan), WIDE)


def classifier(**parameters):
    return OnlineForestClassifier(n_estimators=20, random_state=3, **parameters)


def regressor(**parameters):
    return OnlineForestRegressor(n_estimators=20, random_state=3, **parameters)


CASES = {
    "classifier": lambda: classifier().fit(X, LABELS),
    "classifier with missing values, threads": lambda: classifier(n_jobs=2).fit(HOLES, LABELS),
    "classifier with categories": lambda: classifier(categorical_features=[3]).fit(X, LABELS),
    "classifier, wide": lambda: classifier().fit(WIDE, LABELS),
    "classifier, wide, missing values": lambda: classifier().fit(WIDE_HOLES, LABELS),
    "regressor": lambda: regressor().fit(X, NUMBERS),
    "regressor, wide": lambda: regressor().fit(WIDE, NUMBERS),
    "regressor with missing values, threads": lambda: regressor(n_jobs=2).fit(HOLES, NUMBERS),
    "regressor, batches, forgotten": lambda: (
        regressor()
        .partial_fit(X[:50], NUMBERS[:50])
        .partial_fit(X[50:], NUMBERS[50:])
        .forget(X[:9], NUMBERS[:9])
    ),
}


def bits_of(array):
    """16 digits of SHA-256 over the numbers of an array."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<f8").tobytes()).hexdigest()[:16]


def digest_without_law(forest):
    """The digest of a forest as it was before laws had numbers."""
    add = _digests._add_bytes

    def add_others(sha, name, data):
        if name != "law":
            add(sha, name, data)

    with mock.patch.object(_digests, "_add_bytes", add_others):
        return forest.digest_


def digests_of(name):
    """The digests of a forest, with and without the law, and of its answers."""
    forest = CASES[name]()
    queries = QUERIES if forest.n_features_in_ == QUERIES.shape[1] else WIDE_QUERIES
    if isinstance(forest, OnlineForestClassifier):
        answers = forest.predict_proba(queries)
    else:
        answers = np.column_stack(forest.predict(queries, return_std=True))
    return forest.digest_[:16], digest_without_law(forest)[:16], bits_of(answers)


@pytest.mark.parametrize("name", CASES)
def test_digests_are_those_of_other_platforms(name):
    assert digests_of(name) == EXPECTED[name]


if __name__ == "__main__":
    for case in CASES:
        print(f'    "{case}": {digests_of(case)},'.replace("'", '"'))
