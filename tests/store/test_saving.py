"""A saved and loaded forest is the same forest; an invalid file is refused."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import onlineforest
from onlineforest import (
    ModelFileError,
    ModelTooLargeError,
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    load,
)
from onlineforest._files import container as _container
from onlineforest._files import encoding as _encoding
from onlineforest._forests import base as _base
from onlineforest._forests.orderfree import label_lessons as _label_lessons
from onlineforest._forests.saving import write_model
from onlineforest._store.loading import load_with_position
from support.bits import assert_same_forest
from support.estimators import ALL_KINDS, each_of_all_kinds
from support.model_files import changed, saved

X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]
WEIGHTS = np.linspace(0.0, 2.0, 64)

# Everything that can be set, and most of what can have happened.
PARAMETERS = {
    "defaults": {},
    "paper": {"feature_weights": "range"},
    "short": {"lifetime": 3, "min_samples_split": np.int64(7), "feature_weights": None},
    "weights": {"feature_weights": WEIGHTS, "lifetime": np.float32(4)},
    "list of weights": {"feature_weights": WEIGHTS.tolist()},
    "window": {"window": 123},
    "reservoir": {"reservoir": 99, "half_life": 200.5},
    "shares": {"max_samples": 0.5, "smoothing": 1, "min_samples_split": np.int64(3)},
    "uncalibrated shares": {"max_samples": np.float32(0.5), "calibrate": False},
    "threads": {"n_jobs": 2},
    "seed of numpy": {"random_state": np.int32(7)},
    "random state": {"random_state": np.random.RandomState(5)},
    "no seed": {"random_state": None},
}


CASES = [
    pytest.param(kind, parameters, id=f"{kind_name}-{name}")
    for kind_name, kind in ALL_KINDS.items()
    for name, parameters in PARAMETERS.items()
    if parameters.keys() <= kind.estimator().get_params().keys()
]


def loaded(forest):
    return load(io.BytesIO(saved(forest)))


def small(kind, **parameters):
    return kind.estimator(**{"n_estimators": 5, "random_state": 0, **parameters})


@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_a_loaded_forest_continues_as_the_saved_one(kind, parameters, tmp_path):
    forest = small(kind, **parameters).partial_fit(X[:200], Y[:200])
    forest.partial_fit(X[200:300], Y[200:300], ids=[f"person {i}" for i in range(99)] + [-7])
    path = tmp_path / "forest.safetensors"
    forest.save(path)
    other = load(path)
    assert type(other) is type(forest)
    assert_same_parameters(other, forest)
    assert other.ids_ == forest.ids_
    assert_same_forest(other, forest)
    other._check_trees()
    for each in (forest, other):
        each.partial_fit(X[300:400], Y[300:400], ids=range(100))
        each.forget(ids=[50])
        for x, y in zip(X[400:420], Y[400:420]):
            each.learn_one(x, y)
    other.n_jobs = 3
    for each in (forest, other):
        each.partial_fit(X[420:], Y[420:])
    assert_same_forest(other, forest)
    assert np.array_equal(kind.predict(other, X), kind.predict(forest, X))
    if isinstance(forest.random_state, np.random.RandomState):
        assert forest.random_state.normal() == other.random_state.normal()


def assert_same_parameters(first, second):
    ours, theirs = first.get_params(), second.get_params()
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, theirs[name])
        elif not isinstance(value, np.random.RandomState):
            assert value == theirs[name]


@each_of_all_kinds
def test_a_forest_that_has_forgotten_everything(kind):
    forest = small(kind).fit(X, Y).keep_latest(0)
    other = loaded(forest)
    assert other.n_samples_stored_ == 0 and other.n_samples_seen_ == 500
    assert_same_forest(other.partial_fit(X, Y), forest.partial_fit(X, Y))


@each_of_all_kinds
def test_names_of_features(kind):
    frame = pd.DataFrame(X[:, :4], columns=["a", "b", "größe", "\n"])
    forest = loaded(small(kind).fit(frame, Y))
    assert forest.feature_names_in_.tolist() == frame.columns.tolist()
    forest.partial_fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        forest.predict(frame[["b", "a", "größe", "\n"]])


each_classifier = pytest.mark.parametrize(
    "estimator", [MondrianForestClassifier, OnlineForestClassifier]
)
LABELS = {
    "bools": [True, False],
    "int8": np.array([3, -128], dtype=np.int8),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "floats": [1.0, -2.0],
    "float16": np.array([1, 2], dtype=np.float16),
    "big-endian": np.array([1, 2], dtype=">i4"),
    "strings": ["yes", ""],
    "odd strings": ["\x00\x1b[31m", "\U0001f333"],
    "half a surrogate": ["\ud800", "a"],
    "wide strings": np.array(["a", "b"], dtype="<U500"),
    "objects": np.array(["long" * 20, "b"], dtype=object),
    "times": np.array(["2024-01-01", "1969-12-31"], dtype="M8[D]"),
    "spans": np.array([5, -1], dtype="m8[us]"),
}


@pytest.mark.parametrize("name", LABELS)
@each_classifier
def test_labels_of_every_kind(estimator, name):
    labels = np.resize(np.asarray(LABELS[name]), 40)
    forest = estimator(3, random_state=0).fit(X[:40], labels)
    other = loaded(forest)
    assert other.classes_.dtype == forest.classes_.dtype
    assert np.array_equal(other.classes_, forest.classes_)
    assert np.array_equal(other.predict(X), forest.predict(X))
    assert other.partial_fit(X[:40], labels).n_samples_seen_ == 80


@each_classifier
def test_classes_keep_the_order_in_which_they_came(estimator):
    forest = estimator(3, random_state=0).partial_fit(X[:2], ["m", "z"])
    for label in ("a", "q", "b"):
        forest.partial_fit(X[2:3], [label])
    other = loaded(forest)
    assert other.classes_.tolist() == ["a", "b", "m", "q", "z"]
    assert np.array_equal(other.predict_proba(X), forest.predict_proba(X))


def test_labels_that_cannot_be_saved(monkeypatch):
    monkeypatch.setattr(_encoding, "_MAX_LABEL_BYTES", 10**5)
    forest = MondrianForestClassifier(2, random_state=0).fit(X[:4], ["a", "b" * 5000, "c", "d"])
    assert loaded(forest).classes_.dtype == forest.classes_.dtype
    forest.partial_fit(X[:2], ["e", "f"])
    with pytest.raises(ValueError, match="array of objects for strings"):
        saved(forest)
    long = np.resize(np.array([2**60 + 1, 5], np.longdouble), 4)
    with pytest.raises(ValueError, match="cannot be saved: they are too long"):
        saved(MondrianForestClassifier(2, random_state=0).fit(X[:4], long))
    records = np.array([(1,), (2,)], dtype=[("a", "i4")])
    with pytest.raises(ValueError, match="cannot be saved"):
        saved(MondrianForestClassifier(2, random_state=0).fit(X[:2], records))


def test_ids_of_every_kind():
    ids = ["", "a", "\ud800", "ünï", "i10", 0, -1, 10**30, -(10**5000), "x" * 10_000]
    forest = OnlineForestRegressor(2, random_state=0).fit(X[:10], Y[:10], ids=ids)
    assert loaded(forest).ids_ == frozenset(ids)
    for each in ids[:-1]:
        forest = loaded(forest.forget(ids=[each]))
    assert forest.ids_ == frozenset(ids[-1:])


@pytest.mark.heavy_under_sanitizers(reason="imports all packages in a second process")
@pytest.mark.slow
def test_a_forest_of_another_process(tmp_path):
    """Saved by one process, loaded by another: the same predictions to the last bit."""
    forest = MondrianForestClassifier(10, random_state=0).fit(X[:300], Y[:300])
    forest.save(tmp_path / "forest.safetensors")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import numpy, onlineforest\n"
        "forest = onlineforest.load('forest.safetensors')\n"
        "numpy.save('out.npy', forest.predict_proba(numpy.load('X.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    assert np.array_equal(np.load(tmp_path / "out.npy"), forest.predict_proba(X))


@each_classifier
def test_saving_while_others_learn(estimator):
    """Each file holds the forest as it was between two batches."""
    forest = estimator(5, random_state=0).partial_fit(X[:10], Y[:10])
    rounds = [np.arange(i, i + 10) for i in range(10, 400, 10)]

    def learn():
        for rows in rounds:
            forest.partial_fit(X[rows], Y[rows], ids=rows.tolist())

    thread = threading.Thread(target=learn)
    thread.start()
    files = []
    while thread.is_alive():
        files.append(saved(forest))
    thread.join()
    for data in files[:: max(1, len(files) // 10)]:
        other = load(io.BytesIO(data))
        n = other.n_samples_seen_
        assert n % 10 == 0 and other.ids_ == frozenset(range(10, n))
        expected = estimator(5, random_state=0).partial_fit(X[:10], Y[:10])
        for rows in rounds:
            if rows[-1] < n:
                expected.partial_fit(X[rows], Y[rows])
        assert_same_forest(other, expected)


def test_other_tools_can_read_the_samples(tmp_path):
    from safetensors.numpy import load_file

    OnlineForestRegressor(2, random_state=0).fit(X, Y).save(tmp_path / "forest.safetensors")
    arrays = load_file(tmp_path / "forest.safetensors")
    assert np.array_equal(arrays["rows"], X.astype(np.float32))
    assert np.array_equal(arrays["values"], Y)


def test_positions_of_a_stream():
    forest = OnlineForestRegressor(2, random_state=0).fit(X, Y)
    for position in (0, 2**60, -1.5, "offset", None, [1, "a"], {"topic": {"0": 17, "1": 4}}, True):
        file = io.BytesIO()
        write_model(forest, file, position)
        again = load_with_position(io.BytesIO(file.getvalue())).position
        assert again == position and type(again) is type(position)
    cycle = []
    cycle.append(cycle)
    for odd in (math.nan, (1, 2), {1: 2}, b"x", np.int64(3), object(), cycle, 10**50):
        with pytest.raises(ValueError, match="position must be a value that JSON can represent"):
            write_model(forest, io.BytesIO(), odd)


@each_of_all_kinds
def test_every_saved_forest_can_be_loaded(kind):
    """Unusual parameters are accepted, or refused before anything is written."""
    unusual = {
        "lifetime": np.longdouble(2),
        "discount": 2**70,
        "min_samples_split": np.uint8(3),
        "feature_weights": tuple(range(64)),
        "max_samples": np.float16(0.5),
        "smoothing": np.int8(1),
    }
    for name in unusual.keys() & kind.estimator().get_params().keys():
        value = unusual[name]
        other = loaded(small(kind, **{name: value}).fit(X, Y))
        assert np.array_equal(getattr(other, name), value)
    forest = small(kind, window=50).fit(X, Y)
    forest.window, forest.n_estimators = 50.0, 5.0
    assert type(loaded(forest).window) is int
    for name, value in {
        "n_jobs": 0,
        "random_state": -1,
    }.items():
        forest = small(kind).fit(X, Y)
        setattr(forest, name, value)
        with pytest.raises(ValueError, match="cannot be saved"):
            saved(forest)
    forest.set_params(random_state=np.random.default_rng(0))
    with pytest.raises(ValueError, match="cannot be saved"):
        saved(forest)


@each_classifier
def test_an_interrupt_when_the_core_has_just_returned(monkeypatch, estimator):
    """The batch is stored: its classes and ids are known, whatever is called next."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def learn_interrupted(forest, *batch, **options):
        with monkeypatch.context() as patch:
            patch.setattr(_base.BaseForest, "_record", interrupt)
            with pytest.raises(KeyboardInterrupt):
                forest.partial_fit(*batch, **options)
        return forest

    def interrupted():
        forest = estimator(2, random_state=0).fit(X[:50], np.resize([1, 2], 50))
        return learn_interrupted(forest, X[50:53], [3, 3, 3], ids=["a", "b", "c"])

    assert interrupted().classes_.tolist() == [1, 2, 3]
    assert interrupted().predict_proba(X).shape == (500, 3)
    assert interrupted().predict_one(X[51]) in (1, 2, 3)
    assert interrupted().ids_ == {"a", "b", "c"}
    assert loaded(interrupted()).ids_ == {"a", "b", "c"}
    assert interrupted().forget(ids=["b"]).n_samples_stored_ == 52
    assert interrupted().learn_one(X[60], 1).n_samples_seen_ == 54
    fresh = learn_interrupted(estimator(2, random_state=0), X[:3], [1, 2, 3])
    assert fresh.partial_fit(X[:2], [4, 5]).classes_.tolist() == [4, 5]


@each_of_all_kinds
def test_the_same_forest_gives_the_same_file(kind):
    forest = small(kind, window=2)
    forest.partial_fit(X[:3], Y[:3], ids=["a", "b", "c"])
    other = loaded(forest)
    for each in (forest, other):
        each.partial_fit(X[3:4], Y[3:4], ids=["a"])  # which was dropped from the window
    assert saved(forest) == saved(other)


def test_a_file_that_contradicts_fixed_parameters_is_refused():
    plain = {"feature_weights": np.ones(64), "leaf_discount": 0.5}
    sound = saved(MondrianForestClassifier(2, random_state=0, **plain).fit(X, Y))
    assert load(io.BytesIO(sound)).leaf_discount_ == 0.5
    for arrays, message in (
        (
            {"measures.leaf_discount": [0.1]},
            "measures.leaf_discount is 0.1, but options.leaf_discount is 0.5",
        ),
        (
            {"measures.weights": np.full(64, 2.0)},
            "measures.weights of feature 0 is 2, but the options give it the weight 1",
        ),
    ):
        with pytest.raises(ModelFileError, match=message):
            load(io.BytesIO(changed(sound, arrays=arrays)))


@pytest.mark.parametrize(
    "forest",
    [
        MondrianForestClassifier(3000, feature_weights=None, random_state=0),
        OnlineForestClassifier(3000, random_state=0),
    ],
)
def test_the_memory_limit_counts_many_small_trees(forest):
    data = saved(forest.fit(X[:5], [1, 2, 1, 2, 1]))
    with pytest.raises(ModelTooLargeError):
        load(io.BytesIO(data), max_bytes=forest.nbytes_ // 2)


def test_a_leaf_of_very_many_classes_is_quick_to_load():
    """Each label is appended to a set, not inserted in its middle."""
    n = 60_000
    rows = np.zeros((n, 1), np.float32)
    forest = MondrianForestClassifier(1, feature_weights=None, random_state=0)
    data = saved(forest.fit(rows, np.arange(n)))
    backwards = changed(data, arrays={"values": np.arange(n, dtype=np.int32)[::-1]})
    other = load(io.BytesIO(backwards))
    other._forest.check_invariants()


@each_of_all_kinds
def test_forests_that_cannot_be_saved_are_refused(kind, tmp_path):
    path = tmp_path / "forest.safetensors"
    with pytest.raises(NotFittedError):
        small(kind).save(path)
    forest = small(kind).fit(X, Y)
    forest.window = 3
    with pytest.raises(ValueError, match="window was None"):
        forest.save(path)

    class Mine(kind.estimator):
        pass

    with pytest.raises(TypeError, match="subclass Mine"):
        Mine(n_estimators=2, random_state=0).fit(X, Y).save(path)
    odd = np.random.RandomState(np.random.PCG64(1))
    with pytest.raises(ValueError, match="RandomState of PCG64"):
        small(kind, random_state=odd).fit(X, Y).save(path)
    assert not path.exists()
    with pytest.raises(IsADirectoryError):
        small(kind).fit(X, Y).save(tmp_path)
    for odd in (42, b"path", None):
        with pytest.raises(TypeError, match="must be a path or a writable binary file"):
            small(kind).fit(X, Y).save(odd)
    with pytest.raises(FileNotFoundError):
        small(kind).fit(X, Y).save(tmp_path / "missing" / "forest.safetensors")


def test_missing_files_and_bad_arguments_cannot_be_loaded(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    with pytest.raises(TypeError, match="path or a binary file"):
        load(42)
    for odd in (-1, 1.5, "many"):
        with pytest.raises(ValueError, match="max_bytes must be"):
            load(tmp_path, max_bytes=odd)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(ModelFileError, match="not a regular file"):
            load(tmp_path / name)


@pytest.fixture(scope="module")
def classifier():
    rows = X[:60].astype(np.float32)
    forest = MondrianForestClassifier(3, window=50, random_state=0)
    return saved(forest.fit(rows, np.resize(["a", "b", "c"], 60), ids=range(60)))


RANDOM_STATE = {"key": [1] * 624, "pos": 0, "gauss": None}


# Changes of a valid file, and the error that each must give.
WRONG = [
    ({"estimator": "Forest"}, {}, "holds a 'Forest', which is unknown"),
    ({"estimator": None}, {}, "holds a '', which is unknown"),
    (
        {"estimator": "MondrianForestRegressor"},
        {},
        "holds a 'MondrianForestRegressor', which is un",
    ),
    ({"estimator": "OnlineForestRegressor"}, {}, "it has no law"),
    ({"parameters": None}, {}, "it has no parameters"),
    ({"parameters": []}, {}, "its parameters is list, not dict"),
    ({"parameters": {"n_trees": 3}}, {}, "parameter 'n_trees' is unknown"),
    ({"parameters": {"n_estimators": 10**9}}, {}, "has 3 trees, but n_estimators is 1000000000"),
    ({"parameters": {"n_estimators": -1}}, {}, "'n_estimators' parameter .* must be an int"),
    ({"parameters": {"n_estimators": "3"}}, {}, "'n_estimators' parameter .* must be an int"),
    ({"parameters": {"lifetime": {"float": "1.0"}}}, {}, "parameter 'lifetime' cannot be read"),
    ({"parameters": {"lifetime": {"float": "nan"}}}, {}, "'lifetime' parameter"),
    ({"parameters": {"lifetime": {"code": "exit()"}}}, {}, "parameter 'lifetime' cannot be read"),
    (
        {"parameters": {"n_estimators": 3, "lifetime": 0.25}},
        {},
        "split_time inf, the lifetime is 0.25",
    ),
    ({"parameters": {"n_estimators": 3, "window": 49}}, {}, "the capacity is 49"),
    ({"parameters": {"feature_weights": {"list": ["x"]}}}, {}, "'feature_weights' cannot be"),
    ({"parameters": {"feature_weights": {"array": [1.0]}}}, {}, r"must have shape \(64,\)"),
    ({"parameters": {"window": 5, "reservoir": 5}}, {}, "exclude each other"),
    ({"parameters": {"random_state": {"RandomState": {}}}}, {}, "not a RandomState"),
    (
        {"parameters": {"random_state": {"RandomState": {**RANDOM_STATE, "pos": 625}}}},
        {},
        "not a RandomState",
    ),
    (
        {"parameters": {"random_state": {"RandomState": {**RANDOM_STATE, "gauss": "0x1p9999"}}}},
        {},
        "not a RandomState",
    ),
    ({"seed": -1}, {}, "its seed is -1"),
    ({"seed": 2**64}, {}, "its seed is"),
    ({"seed": "1"}, {}, "its seed is str, not int"),
    ({"features": {}}, {}, "its features cannot be read"),
    ({"features": {"count": 63, "dtype": "float32", "names": None}}, {}, "'rows' has shape"),
    ({"features": {"count": 2**31, "dtype": "float32", "names": None}}, {}, "features cannot be"),
    ({"features": {"count": 64, "dtype": "float32", "names": ["a"]}}, {}, "each of its 64"),
    ({"features": {"count": 64, "dtype": "float32", "names": ["a"] * 64}}, {}, "not distinct"),
    ({"features": {"count": 64, "dtype": "float32", "names": [1] * 64}}, {}, "not distinct str"),
    ({"classes": ["a", "b", "c"]}, {}, "classes cannot be read"),
    ({"classes": {"dtype": "<U1", "values": ["a", "c", "b"]}}, {}, "not sorted"),
    ({"classes": {"dtype": "<U1", "values": ["a", "a", "b"]}}, {}, "not distinct"),
    ({"classes": {"dtype": "<U1", "values": ["a", "b", "cc"]}}, {}, "not all of type '<U1"),
    ({"classes": {"dtype": "<U1", "values": ["a", "b", 3]}}, {}, "not all of type '<U1"),
    ({"classes": {"dtype": "|i1", "values": [1, 2, 300]}}, {}, "not all of type"),
    ({"classes": {"dtype": "<U999999999", "values": ["a", "b"]}}, {}, "not all of type '<U99"),
    ({"classes": {"dtype": "<U1", "values": []}}, {}, "classes cannot be read"),
    ({"classes": {"dtype": "O", "values": ["a", "b", "c"]}}, {}, "not all of type 'O'"),
    ({"classes": {"dtype": "<f8", "values": [0.5, 0.7, 1.0]}}, {}, "not all of type '<f8'"),
    ({"classes": {"dtype": "<f2", "values": [1e6, 2e6, 3e6]}}, {}, "not all of type '<f2'"),
    ({"classes": {"dtype": "<U4097", "values": ["a", "b", "c"]}}, {}, "not all of type '<U4097'"),
    ({"classes": {"dtype": "\n\x1b", "values": ["a", "b", "c"]}}, {}, r"not all of type '.n.x1b'"),
    ({"parameters": {"lifetime": {"list": [1.5] * 99}}}, {}, "'lifetime' cannot be read"),
    ({"parameters": {"n_jobs": {"RandomState": {}}}}, {}, "'n_jobs' cannot be read"),
    ({"parameters": {"discount": "x" * 10**6}}, {}, "'discount' parameter"),
    ({"parameters": {"leaf_discount": 0.25}}, {}, "but options.leaf_discount is 0.25"),
    ({"parameters": {"feature_weights": None}}, {}, "but the options give it the weight 1"),
    ({"parameters": {"feature_weights": {"list": [1.0] * 64}}}, {}, "give it the weight 1"),
    ({}, {"turned_away": [59.5]}, "not the state of a forest"),
    ({}, {"turned_away": [60.0]}, "not the state of a forest"),
    ({}, {"turned_away": [20.0]}, "not the state of a forest"),
    ({}, {"rows": np.zeros(50 * 64, np.float32)}, "'rows' has shape"),
    ({}, {"n_seen": np.array([2**53 + 1], np.uint64)}, "n_seen is 9007199254740993"),
    ({}, {"measures.discount_rate": [1e301]}, r"discount_rate is 1e\+301, outside \[0,"),
    ({"classes": {"dtype": "<U1", "values": ["a", "b"]}}, {}, "2 classes do not have a code"),
    ({"class_codes": [0, 1, 1]}, {}, "do not have a code each"),
    ({"class_codes": [0, 1, True]}, {}, "do not have a code each"),
    ({"counts": {}}, {}, "its counts are not those"),
    ({}, {"extra": [1.0]}, "'extra'"),
    ({}, {"trees.left": None}, "'trees.left'"),
    ({}, {"trees.left": [1.0]}, "'trees.left' is not .* array of int32"),
    (
        {},
        {"trees.left.sizes": np.array([2**63] * 3, np.uint64)},
        "for record 0, 'trees.left.sizes' says",
    ),
    ({}, {"trees.rng": np.zeros(12, np.uint64)}, "tree 0: rng is all zero"),
    ({}, {"trees.rng": np.ones(13, np.uint64)}, "'trees.rng' has 13 entries instead of 12"),
    (
        {},
        {"trees.measure": np.array([0, 0, 1], np.int32)},
        r"tree 2: measure 1 is outside \[0, 1\)",
    ),
    ({}, {"n_classes": np.array([4], np.int32)}, "3 classes, but its forest has 4"),
    ({}, {"n_classes": np.array([2], np.int32)}, "not the state of a forest"),
    (
        {},
        {"rows": np.full((50, 64), np.nan, np.float32)},
        "rows has the value nan at point 0, feature 0",
    ),
    ({}, {"rows": np.zeros((50, 64), np.float32)}, "not the state of a forest"),
    ({}, {"rows": np.zeros((50, 8, 8), np.float32)}, "'rows' has shape"),
    ({}, {"n_seen": np.array([49], np.uint64)}, "not the state of a forest"),
    ({}, {"ids.serials": np.arange(50)}, "ids belongs to no stored sample"),
    ({}, {"ids.serials": np.full(50, 20)}, "exactly one id for each serial"),
    ({}, {"ids.serials": np.arange(50.0)}, "arrays of its ids have wrong types"),
    ({}, {"ids.ends": np.zeros(50, np.uint64)}, "ends of its ids do not fit"),
    ({}, {"ids.text": np.zeros(1, np.uint8)}, "ends of its ids do not fit"),
]


@pytest.mark.parametrize(("metadata", "arrays", "message"), WRONG)
def test_an_invalid_file_is_refused_with_its_defect(
    classifier, tmp_path, metadata, arrays, message
):
    assert_refused(classifier, tmp_path, metadata, arrays, message)


def assert_refused(data, tmp_path, metadata, arrays, message):
    path = tmp_path / "wrong.safetensors"
    if isinstance(metadata.get("parameters"), dict):
        sound = json.loads(_container.read(io.BytesIO(data)).metadata["parameters"])
        metadata = {"parameters": sound | metadata["parameters"]}
    path.write_bytes(changed(data, metadata, arrays))
    with pytest.raises(ModelFileError, match=message) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path} is not a valid model file: ")
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def order_free():
    """A window of 50 samples, 49 of them distinct, and a class that is only declared."""
    rows = X[:60].astype(np.float32)
    labels = np.resize(["a", "b", "c"], 60)
    rows[59], labels[59] = rows[58], labels[58]
    forest = OnlineForestClassifier(3, window=50, random_state=0)
    return saved(forest.partial_fit(rows, labels, classes=["a", "b", "c", "d"], ids=range(60)))


def changed_array(name, **places):
    """A change of a file's array: its entries at some places (`at_3=7`) get other values."""

    def change(arrays):
        array = arrays[name].copy()
        for place, value in places.items():
            array[int(place.removeprefix("at_"))] = value
        return {name: array}

    return change


def without_arrival(arrays):
    """The last sample of which there are two loses both its arrivals."""
    return {"sample_of": np.where(arrays["sample_of"] == 48, 0, arrays["sample_of"])}


def with_sample_twice(arrays):
    """Sample 1 becomes equal to sample 0."""
    rows, values = arrays["rows"].copy(), arrays["values"].copy()
    rows[1], values[1] = rows[0], values[0]
    return {"rows": rows, "values": values}


WRONG_ORDER_FREE = [
    ({"estimator": "MondrianForestClassifier"}, {}, "parameter 'calibrate' is unknown"),
    ({"parameters": {"max_samples": 0.0}}, {}, "'max_samples' parameter"),
    ({"parameters": {"smoothing": 1.5}}, {}, "'smoothing' parameter"),
    ({"parameters": {"window": 49}}, {}, "there are 50 points, the capacity is 49"),
    ({"parameters": {"window": None}}, {}, "but a forest that keeps all points has -inf"),
    ({"features": {"count": 63, "dtype": "float32", "names": None}}, {}, "'rows' has shape"),
    ({"seed": 2**64}, {}, "its seed is"),
    ({"counts": {}}, {}, "its counts are not those"),
    ({"classes": {"dtype": "<U1", "values": ["a", "b", "c"]}}, {}, "3 classes do not have a code"),
    ({"classes": {"dtype": "<U1", "values": ["a", "b", "c", "e"]}}, {}, "hash of label 3 has ch"),
    ({"class_codes": [0, 1, 3, 2]}, {}, "hash of label 2 has changed"),
    ({"class_codes": [0, 1, 2, 2]}, {}, "do not have a code each"),
    ({"declared_codes": None}, {}, "it has no declared_codes"),
    ({"declared_codes": [4]}, {}, r"declared_codes are not all in \[0, 4\)"),
    ({"declared_codes": [-1]}, {}, "declared_codes are not all"),
    ({"declared_codes": [True]}, {}, "declared_codes are not all"),
    ({"declared_codes": [0.0]}, {}, "declared_codes are not all"),
    ({}, changed_array("label_hashes", at_1=7), r"hash of label 1 has changed from \d+ to \d+"),
    (
        {},
        changed_array("label_hashes", at_1=2**63, at_2=2**63),
        f"two labels have the same hash {2**63}",
    ),
    ({}, {"label_hashes": np.arange(3, dtype=np.uint64)}, "3 label hashes, but 4 marks"),
    ({}, {"label_hashes": np.arange(4)}, "'label_hashes' is not .* array of uint64"),
    ({}, {"label_hashes": None}, "array 'label_hashes' is missing"),
    ({}, {"trees.left": np.zeros(3, np.int32)}, "unexpected array 'trees.left'"),
    ({}, {"options.n_trees": np.ones(1, np.uint64)}, "unexpected array 'options.n_trees'"),
    ({}, {"values": np.zeros(49, np.int64)}, "'values' is not .* array of int32"),
    ({}, {"values": np.zeros(48, np.int32)}, "but 48 samples of 64 cells have 3072"),
    ({}, {"values": np.zeros((49, 1), np.int32)}, r"'values' has shape \(49, 1\)"),
    ({}, changed_array("values", at_5=4), r"row 5: label 4 is outside \[0, 4\)"),
    ({}, changed_array("values", at_5=-1), r"label -1 is outside \[0, 4\)"),
    ({}, {"rows": np.zeros((49, 8, 8), np.float32)}, "'rows' has shape"),
    ({}, {"rows": np.zeros((49, 64))}, "'rows' is not .* array of float32"),
    ({}, changed_array("rows", at_7=np.inf), "row 7, feature 0: the value is infinite"),
    ({}, changed_array("rows", at_48=-np.inf), "row 48, feature 0: the value is infinite"),
    ({}, with_sample_twice, "sample 1 equals an earlier one"),
    ({}, without_arrival, "sample 48 has no arrival"),
    (
        {},
        changed_array("sample_of", at_3=49),
        r"arrival 3 has sample 49, which is outside \[0, 49\)",
    ),
    ({}, changed_array("sample_of", at_3=-1), "sample -1, which is outside"),
    ({}, {"sample_of": np.zeros(0, np.int32)}, "there are 0 arrivals, but 50 serials"),
    ({}, changed_array("serials", at_0=59), "two points have the serial 59"),
    ({}, changed_array("serials", at_0=60), r"serial 60 is outside \[0, n_seen = 60\)"),
    ({}, changed_array("serials", at_0=-1), "serial -1 is outside"),
    ({}, changed_array("serials", at_0=9), "not above `turned_away` = 9"),
    ({}, {"n_seen": np.array([59], np.uint64)}, r"serial 59 is outside \[0, n_seen = 59\)"),
    ({}, {"n_seen": np.array([2**53 + 1], np.uint64)}, "n_seen is 9007199254740993"),
    ({}, {"n_seen": np.array([60, 60], np.uint64)}, "'n_seen' has 2 entries instead of 1"),
    ({}, {"turned_away": [60.0]}, "`turned_away` is 60"),
    ({}, {"turned_away": [np.nan]}, "`turned_away` is nan"),
    ({}, {"ids.serials": np.arange(50)}, "ids belongs to no stored sample"),
]


@pytest.mark.parametrize(("metadata", "arrays", "message"), WRONG_ORDER_FREE)
def test_an_invalid_file_of_an_order_free_forest_is_refused(
    order_free, tmp_path, metadata, arrays, message
):
    if callable(arrays):
        arrays = arrays(_container.read(io.BytesIO(order_free)).arrays)
    assert_refused(order_free, tmp_path, metadata, arrays, message)


def test_declared_classes_and_forgotten_labels_come_back():
    forest = OnlineForestClassifier(3, random_state=0)
    forest.partial_fit(X[:40], np.resize(["a", "b"], 40), classes=["a", "b", "never seen"])
    forest.partial_fit(X[40:42], ["gone", "gone"]).forget(X[40:42], ["gone", "gone"])
    forest.partial_fit(X[42:43], ["kept"], classes=["kept"]).forget(X[42:43], ["kept"])
    other = loaded(forest)
    assert other.classes_.tolist() == ["a", "b", "kept", "never seen"]
    assert other.classes_.dtype == forest.classes_.dtype
    assert other.digest_ == forest.digest_
    for each in (forest, other):
        each.partial_fit(X[40:42], ["gone", "new"]).keep_latest(1)
        assert each.classes_.tolist() == ["a", "b", "kept", "never seen", "new"]
    assert_same_forest(other, forest)
    assert other.digest_ == forest.digest_
    assert loaded(forest.keep_latest(0)).classes_.tolist() == ["a", "b", "kept", "never seen"]


def test_a_label_that_a_failed_call_has_left_is_no_class(monkeypatch):
    """The table of labels then has one more than the core forest."""
    forest = OnlineForestClassifier(3, random_state=0).fit(X[:40], np.resize(["a", "b"], 40))

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_label_lessons.LabelLesson, "teach", fail)
        with pytest.raises(MemoryError):
            forest.partial_fit(X[40:42], ["c", "c"])
    other = loaded(forest)
    assert other.classes_.tolist() == ["a", "b"] and other.digest_ == forest.digest_
    for each in (forest, other):
        each.partial_fit(X[40:42], ["d", "c"])
    assert_same_forest(other, forest)


def test_the_file_of_an_order_free_forest_holds_no_trees(order_free):
    contents = _container.read(io.BytesIO(order_free))
    assert not any(name.startswith(("trees", "options")) for name in contents.arrays)
    assert json.loads(contents.metadata["counts"]) == {
        "samples_seen": 60, "samples_stored": 50, "ids": 50, "samples_distinct": 49
    }  # fmt: skip
    forest = load(io.BytesIO(order_free))
    size = forest.nbytes_
    forest.predict(X)
    assert forest.nbytes_ > size + 49 * 3 * 10, "the trees were grown before they were needed"


def test_a_small_file_of_an_order_free_forest_cannot_demand_much_memory(order_free):
    """Without `max_bytes`, the limit is the memory of the machine."""
    contents = _container.read(io.BytesIO(order_free))
    parameters = json.loads(contents.metadata["parameters"])
    many = changed(order_free, {"parameters": parameters | {"n_estimators": 2**31 - 1}})
    empty = saved(OnlineForestClassifier(2, random_state=0).fit(X, Y).keep_latest(0))
    huge = {"count": 2**30 - 1, "dtype": "float32", "names": None}
    wide = changed(empty, {"features": huge}, {"rows": np.empty((0, 2**30 - 1), np.float32)})
    for data, options in ((many, {}), (many, {"max_bytes": 10**9}), (wide, {"max_bytes": 10**9})):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(data), **options)
    forest = OnlineForestClassifier(100, random_state=0).fit(X, Y)
    size = forest.nbytes_
    data = saved(forest)
    assert loaded(forest).digest_ == load(io.BytesIO(data), max_bytes=3 * size).digest_
    for limit in (0, 1000, size // 2):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(data), max_bytes=limit)


def test_ids_that_are_not_ids(classifier):
    n = len(load(io.BytesIO(classifier)).ids_)
    for text in (b"sa", b"i 1", b"i+1", b"i01", b"i", b"x1", b"s\xff", b"i1_0"):
        names = [text] + [b"i%x" % i for i in range(100, 99 + n)]
        if text == b"sa":
            names[1] = b"sa"
        arrays = {
            "ids.text": np.frombuffer(b"".join(names), np.uint8),
            "ids.ends": np.cumsum([len(name) for name in names], dtype=np.uint64),
        }
        with pytest.raises(ModelFileError, match=r"ids (are equal|cannot be read)"):
            load(io.BytesIO(changed(classifier, arrays=arrays)))


@pytest.mark.slow
def test_a_small_file_cannot_demand_much_memory(classifier):
    """Memory is bounded by the size of the file, or by `max_bytes`."""
    empty = saved(MondrianForestClassifier(2, random_state=0).fit(X, Y).keep_latest(0))
    huge = {"count": 2**31 - 1, "dtype": "float32", "names": None}
    arrays = {"rows": np.empty((0, 2**31 - 1), np.float32)}
    forest = load(io.BytesIO(changed(empty, {"features": huge}, arrays)))
    assert forest.n_features_in_ == 2**31 - 1 and forest.nbytes_ < 10_000

    size = load(io.BytesIO(classifier)).nbytes_
    assert load(io.BytesIO(classifier), max_bytes=2 * size).n_samples_stored_ == 50
    for limit in (0, 1000, size // 2):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(classifier), max_bytes=limit)


def test_a_chain_with_a_class_for_each_sample_is_stopped_in_time():
    """Its label sets grow with the square of the file, but the limit stops them."""
    n = 3000
    rows, labels = np.arange(n, dtype=np.float32)[:, None], np.arange(n)
    forest = MondrianForestClassifier(1, feature_weights=None, random_state=0).fit(rows, labels)
    # Node 0 is cut into the leaf of sample 0, node 1, and the rest, node 2, and so on.
    is_inner = np.arange(2 * n - 1) % 2 == 0
    is_inner[-1] = False
    inner = np.flatnonzero(is_inner)
    left, right = np.empty(2 * n - 1, np.int32), np.ones(2 * n - 1, np.int32)
    left[inner], right[inner] = inner + 1, inner + 2
    left[~is_inner] = np.arange(n)
    arrays = {
        "trees.left": left,
        "trees.right": right,
        "trees.split_dimension": np.where(is_inner, 0, -1).astype(np.int32),
        "trees.split_location": np.zeros(2 * n - 1, np.float32),
        "trees.split_time": np.full(2 * n - 1, np.inf),
        "trees.next_point": np.full(n, -1, np.int32),
    }
    arrays["trees.split_location"][inner] = np.arange(n - 1) + 0.5
    arrays["trees.split_time"][inner] = np.arange(n - 1)
    for name in list(arrays):
        arrays[f"{name}.sizes"] = np.array([len(arrays[name])], np.uint64)
    counts = {"samples_seen": n, "samples_stored": n, "ids": 0, "trees": 1, "nodes": 2 * n - 1}
    chain = changed(saved(forest), {"counts": counts}, arrays)
    deep = load(io.BytesIO(chain))
    deep._forest.check_invariants()
    assert deep.nbytes_ > 4 * n * n / 2 > 20 * len(chain)
    with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
        load(io.BytesIO(chain), max_bytes=deep.nbytes_ // 2)


def test_metadata_are_json(classifier):
    from safetensors import deserialize

    assert "rows" in dict(deserialize(classifier))
    header = json.loads(classifier[8 : 8 + int.from_bytes(classifier[:8], "little")])
    metadata = header["__metadata__"]
    assert json.loads(metadata["classes"]) == {"dtype": "<U1", "values": ["a", "b", "c"]}
    assert json.loads(metadata["counts"])["samples_stored"] == 50
    assert json.loads(metadata["parameters"])["window"] == 50
    assert metadata["library_version"] == onlineforest.__version__
