"""Mondrian forests and predictions equal, to the last bit, those of `golden_digests.json`.

Each case learns a forest through the public estimator from generated data. Two digests are kept of
each: of the arrays of the core forest (`state`), and of all answers of the estimator
(`predictions`). A third, of the data, shows whether the cases learned the same numbers.

A change that must not change behaviour must not change a digest. After a change that is meant to
change forests or predictions, write the file again, from a build of the commit that changes them,
and say so in the message of that commit:

    python tests/parity/test_golden_digests.py --write [--commit REVISION]

The digests are the same on every system and processor: the core has logarithms and exponentials of
its own. The file names the platform it was made with, all the same. (For order-free forests, see
test_every_platform.py.)
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier, load

COMMITTED = Path(__file__).with_name("golden_digests.json")
RECORD = Path(os.environ.get("ONLINEFOREST_GOLDEN_DIGESTS", COMMITTED))
N_TREES, N_SAMPLES, N_FEATURES, N_QUERIES = 12, 420, 5, 40
EDGES = (0, 1, 9, 10, 50, 51, 130, 131, 260, N_SAMPLES)  # where uneven batches begin and end
# The paper's settings: only ranges are learned from the data as a whole.
PLAIN = {"feature_weights": "range", "leaf_discount": 0.0}
LEARNED = ("feature_weights_", "discount_rate_", "feature_importances_", "leaf_discount_")
# States of the commit of the record also had these. They were empty if no value was missing.
EMPTY = {"missing.features": np.empty(0, np.int32), "missing.words": np.empty(0, np.uint64)}


def digest_of(arrays):
    """16 digits of SHA-256 over the arrays in order of name: name, type, shape, bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        assert not array.dtype.hasobject, f"{name} has pointers, not values"
        little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        head = f"{name} {little_endian.dtype.str} {array.shape};"
        digest.update(head.encode() + little_endian.tobytes())
    return digest.hexdigest()[:16]


def make_data(seed=20):
    """Samples and queries from NumPy's generator by rational arithmetic: no libm, no sums."""
    rng = np.random.default_rng(seed)
    X = rng.random((N_SAMPLES, N_FEATURES))
    X[:, 3] = rng.integers(0, 4, N_SAMPLES)  # few values, many ties
    X[:, 4] = 1000.0 * X[:, 4] - 300.0  # another scale
    X[70:80] = X[60:70]  # rows that occur twice
    rng.random(N_SAMPLES)  # keeps later draws as they were when cases that are gone drew these
    labels = np.floor(2.0 * X[:, 0] + 2.0 * X[:, 1] * X[:, 1]).astype(np.int64)
    flipped = rng.random(N_SAMPLES) < 0.1
    labels[flipped] = rng.integers(0, 4, np.count_nonzero(flipped))
    labels[:4] = range(4)
    rng.random(X.shape)  # keeps later draws as they were, too
    many = rng.integers(0, 30, N_SAMPLES)
    many[120:] = rng.integers(0, 90, N_SAMPLES - 120)

    queries = 1.2 * rng.random((N_QUERIES, N_FEATURES)) - 0.1
    queries[:, 3] = rng.integers(-1, 5, N_QUERIES)
    queries[:, 4] = 1000.0 * queries[:, 4] - 300.0
    queries[:6] = X[[0, 60, 70, 150, 300, N_SAMPLES - 1]]  # learned
    queries[6] = 1e6  # far from all
    large = rng.random((2000, N_FEATURES))
    large_y = large[:, 0] * large[:, 1] + 0.1 * rng.random(len(large))
    return SimpleNamespace(
        X=X,
        labels=labels,
        many=many,
        queries=queries,
        large=large,
        large_labels=np.floor(8.0 * large_y).astype(np.int64),
    )


DATA = make_data()
CASES = {}


def case(build):
    """Register a function that builds a forest as a case."""
    CASES[f"classifier: {build.__name__.replace('_', ' ')}"] = build
    return build


def start(**parameters):
    return MondrianForestClassifier(**{"n_estimators": N_TREES, "random_state": 7, **parameters})


def learn_batches(forest, X=DATA.X, begin=0, end=N_SAMPLES, ids=None):
    edges = [edge for edge in EDGES if begin <= edge <= end]
    for a, b in pairwise(edges):
        forest.partial_fit(X[a:b], DATA.labels[a:b], ids=None if ids is None else ids[a:b])
    return forest


def learn_each(forest, begin=0, end=N_SAMPLES):
    for row, target in zip(DATA.X[begin:end], DATA.labels[begin:end]):
        forest.learn_one(row, target)
    return forest


@case
def fit_with_defaults():
    return start(n_estimators=20).fit(DATA.X, DATA.labels)


@case
def larger_forest_with_two_threads():
    """More samples than a calibration uses, more trees than one group of a sum."""
    return start(n_estimators=40, n_jobs=2).fit(DATA.large, DATA.large_labels)


@case
def batches_with_defaults():
    return learn_batches(start())


@case
def batches_with_two_threads():
    return learn_batches(start(n_jobs=2))


@case
def one_by_one():
    return learn_each(start(), end=250)


@case
def paper_settings_fit():
    return start(**PLAIN).fit(DATA.X, DATA.labels)


@case
def paper_settings_in_batches_with_lifetime():
    parameters = {**PLAIN, "feature_weights": None}
    forest = start(lifetime=3.0, **parameters)
    X = DATA.X.copy()
    X[:, 4] /= 1000.0
    return learn_batches(forest, X)


@case
def fixed_weights_and_larger_leaves():
    weights = [1.0, 2.0, 0.0, 0.25, 0.001]
    forest = start(feature_weights=weights, min_samples_split=6)
    return learn_each(learn_batches(forest, end=260), 260, 330)


@case
def window():
    forest = learn_batches(start(window=100), end=260)
    return learn_each(forest, 260, 400)


@case
def reservoir_with_half_life():
    forest = learn_batches(start(reservoir=90, half_life=120.0), end=260)
    return learn_each(forest, 260, 400)


@case
def reservoir_with_two_threads():
    return learn_batches(start(reservoir=120, n_jobs=2, **PLAIN))


@case
def forget_rows_and_ids():
    ids = [f"sample {i}" if i % 2 else i for i in range(N_SAMPLES)]
    forest = learn_batches(start(), end=260, ids=ids)
    forest.forget(ids=[ids[i] for i in (3, 8, 100, 259)])
    forest.forget(DATA.X[[70, 12, 200]], DATA.labels[[70, 12, 200]])
    forest.partial_fit(DATA.X[260:300], DATA.labels[260:300])
    return forest.forget(ids=ids[110:190])  # more than a fifth: trees are grown again


@case
def keep_latest_then_refresh():
    forest = start().fit(DATA.X[:300], DATA.labels[:300])
    forest.keep_latest(120).partial_fit(DATA.X[300:340], DATA.labels[300:340])
    forest.keep_latest(155).refresh_weights()
    return learn_each(forest, 340, 360)


@case
def saved_loaded_and_continued():
    file = io.BytesIO()
    learn_batches(start(window=200), end=260).save(file)
    file.seek(0)
    return learn_batches(load(file), begin=260)


@case
def many_classes_and_new_ones():
    forest = start(n_estimators=6)
    names = np.array([f"class {code:02}" for code in range(90)])
    forest.partial_fit(DATA.X[:120], names[DATA.many[:120]])
    forest.partial_fit(DATA.X[120:300], names[DATA.many[120:300]])
    for row, code in zip(DATA.X[300:330], DATA.many[300:330]):
        forest.learn_one(row, names[code])
    forest.learn_one(DATA.X[330], "late class")
    assert len(forest.classes_) > 64
    return forest


def digests_of(name):
    """The two digests of a case."""
    forest = CASES[name]()
    tree = forest.trees_[N_TREES // 4]
    answers = {
        "classes_": forest.classes_,
        "predict": forest.predict(DATA.queries),
        "predict_proba": forest.predict_proba(DATA.queries),
        "predict_proba_one": [forest.predict_proba_one(row) for row in DATA.queries[:12]],
        "apply": forest.apply(DATA.queries),
        "novelty": forest.novelty(DATA.queries),
        **{attribute: getattr(forest, attribute) for attribute in LEARNED},
        **{f"tree.{f.name}": getattr(tree, f.name) for f in dataclasses.fields(tree)},
    }
    state = {**forest._forest.get_state(), **EMPTY}
    return {"state": digest_of(state), "predictions": digest_of(answers)}


def built_on():
    """The platform, on which the last bits of log, exp and pow depend."""
    libc = " ".join(platform.libc_ver()).strip()
    return {"machine": platform.machine(), "libc": libc, "numpy": np.__version__}


def data_digest():
    return digest_of(vars(DATA))


@pytest.fixture(scope="module")
def golden():
    return json.loads(RECORD.read_text())


def test_the_data_are_those_of_the_record(golden):
    assert data_digest() == golden["data"], "the cases learn other data than those of the record"


def test_the_record_has_exactly_these_cases(golden):
    assert golden["cases"].keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_digests_equal_those_of_the_record(name, golden):
    found, expected = digests_of(name), golden["cases"][name]
    changed = [what for what in expected if found[what] != expected[what]]
    assert not changed, (
        f"case '{name}': {' and '.join(changed)} changed since commit {golden['commit']}: "
        f"expected {expected}, found {found}. Recorded on {golden['built_on']}, "
        f"here {built_on()}: see the docstring of this file if they differ."
    )


def test_every_case_has_digests_of_its_own(golden):
    """Except for the number of threads, which must not matter."""
    cases = golden["cases"]
    threads = cases["classifier: batches with two threads"]
    assert cases["classifier: batches with defaults"] == threads
    for what in ("state", "predictions"):
        assert len({digests[what] for digests in cases.values()}) == len(cases) - 1


def test_another_seed_changes_both_digests(golden, monkeypatch):
    name = "classifier: fit with defaults"
    monkeypatch.setitem(
        CASES, name, lambda: start(n_estimators=20, random_state=8).fit(DATA.X, DATA.labels)
    )
    found, expected = digests_of(name), golden["cases"][name]
    assert all(found[what] != expected[what] for what in expected)


def commit_of(revision):
    command = ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Write the digests of the installed package.")
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("--out", type=Path, default=COMMITTED)
    parser.add_argument(
        "--commit", default="HEAD", help="the commit that the package was built from"
    )
    options = parser.parse_args(arguments)
    record = {
        "commit": commit_of(options.commit),
        "built_on": built_on(),
        "data": data_digest(),
        "cases": {name: digests_of(name) for name in CASES},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
