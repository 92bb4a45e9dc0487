"""A saved and loaded forest is the same forest."""

from __future__ import annotations

import io
import json
import math
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
from support.model_files import loaded, saved

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


def test_metadata_are_json(classifier):
    from safetensors import deserialize

    assert "rows" in dict(deserialize(classifier))
    header = json.loads(classifier[8 : 8 + int.from_bytes(classifier[:8], "little")])
    metadata = header["__metadata__"]
    assert json.loads(metadata["classes"]) == {"dtype": "<U1", "values": ["a", "b", "c"]}
    assert json.loads(metadata["counts"])["samples_stored"] == 50
    assert json.loads(metadata["parameters"])["window"] == 50
    assert metadata["library_version"] == onlineforest.__version__
