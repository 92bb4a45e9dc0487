"""The C library predicts, learns and saves as Python does, to the last bit."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from sklearn.base import is_classifier

from onlineforest import OnlineForestClassifier, OnlineForestRegressor, load
from support.model_files import saved

rng = np.random.default_rng(3)
N = 700
X = rng.normal(size=(N, 4)).astype(np.float32)
X[:, 3] = np.round(X[:, 3])
PLACES = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
WORDS = np.array(["left", "mittig ü", "right 😀"])[PLACES]
GAPS = np.where(rng.random(X.shape) < 0.2, np.float32(np.nan), X)
NUMBERS = X[:, 0] * 3.0 + np.sin(X[:, 1]) + rng.normal(size=N) * 0.1
WEIGHTS = rng.choice([0.0, 0.25, 1.0, 2.0, 1e-7, 3.3], size=N)
START = 400

CASES = {
    "words": (OnlineForestClassifier(12), X, WORDS),
    "whole numbers": (OnlineForestClassifier(12), X, PLACES * 7 - 5),
    "bools": (OnlineForestClassifier(12), X, PLACES > 0),
    "real numbers": (OnlineForestClassifier(12), X, PLACES * 1e17 - 4.0),
    "objects": (OnlineForestClassifier(12), X, WORDS.astype(object)),
    "missing values": (OnlineForestClassifier(12), GAPS, WORDS),
    "few trees": (OnlineForestClassifier(3), X, WORDS),
    "not calibrated": (OnlineForestClassifier(12, calibrate=False, smoothing=0), X, WORDS),
    "left out": (OnlineForestClassifier(12, max_samples=0.6, min_samples_split=9), X, WORDS),
    "balanced": (OnlineForestClassifier(12, class_weight="balanced"), X, PLACES),
    "weights of classes": (
        OnlineForestClassifier(12, class_weight={2: 0.3, True: 2.5, 9: 4.0}), X, PLACES
    ),
    "weights of words": (OnlineForestClassifier(4, class_weight={"left": 0.5}), X, WORDS),
    "window": (OnlineForestClassifier(12, window=150), X, WORDS),
    "reservoir": (OnlineForestClassifier(12, reservoir=200, half_life=80.5), X, WORDS),
    "numbers": (OnlineForestRegressor(12), X, NUMBERS),
    "numbers with missing values": (OnlineForestRegressor(12), GAPS, NUMBERS),
    "numbers, few trees": (OnlineForestRegressor(2, calibrate=False), X, NUMBERS),
    "numbers in a window": (OnlineForestRegressor(12, window=150), X, NUMBERS),
    "numbers in a reservoir": (OnlineForestRegressor(12, reservoir=100, half_life=50), X, NUMBERS),
}  # fmt: skip


def index_of(labels, classes):
    """The indices of labels among classes."""
    return np.searchsorted(classes, labels).astype(np.int32)


def assert_same_predictions(theirs, ours, rows, classes):
    """`classes` are those of the C forest: it keeps those that have left a window."""
    for n_threads in (1, 3):
        if not is_classifier(ours):
            np.testing.assert_array_equal(theirs.predict(rows, n_threads), ours.predict(rows))
            continue
        expected = np.zeros((len(rows), len(classes)))
        expected[:, index_of(ours.classes_, classes)] = ours.predict_proba(rows)
        np.testing.assert_array_equal(theirs.predict_proba(rows, n_threads), expected)
        best = theirs.predict(rows, n_threads)
        np.testing.assert_array_equal(classes[best], ours.predict(rows))


def without_version(data):
    """A file without its digest and the version that wrote it, which may have another length."""
    n = struct.unpack("<Q", data[:8])[0]
    header = re.sub(rb'"(sha256|library_version)":"[^"]*"', b"", data[8 : 8 + n]).rstrip()
    return header, data[8 + n :]


def learned_elsewhere(library, forest, rows, target, tmp_path, weights=None):
    """Both learn the same batches; they agree after each, and the saved files in the end."""
    theirs = library.load_bytes(saved(forest), tmp_path)
    ours = load(tmp_path / "model.safetensors")
    classes = getattr(ours, "classes_", None)
    assert_same_predictions(theirs, ours, rows[:60], classes)
    first = len(rows) // 5
    for begin in (0, first, first + 1, first + 3, len(rows) // 2):
        end = {0: first, first: first + 1, first + 1: first + 3}.get(begin, begin + 60)
        batch = slice(begin, end)
        weight = None if weights is None else weights[batch]
        y = target[batch]
        theirs.learn(rows[batch], y if classes is None else index_of(y, classes), weight, 2)
        ours.partial_fit(rows[batch], y, sample_weight=weight)
        assert theirs.n_samples_seen == ours.n_samples_seen_
        assert theirs.n_samples_stored == ours.n_samples_stored_
        if begin != first + 1:  # so that a calibration lags
            assert_same_predictions(theirs, ours, rows[:60], classes)
    theirs.save(tmp_path / "learned.safetensors")
    data = (tmp_path / "learned.safetensors").read_bytes()
    assert without_version(data) == without_version(saved(ours))
    assert re.search(rb'"library_version":"([^"]*)"', data)[1] == library.c.of_library_version()
    again = load(tmp_path / "learned.safetensors")
    assert again.digest_ == ours.digest_
    assert_same_predictions(theirs, again, rows[:60], classes)
    return theirs, again


@pytest.mark.parametrize("name", CASES)
def test_what_is_learned_in_c_is_learned_in_python(name, library, tmp_path):
    forest, rows, target = CASES[name]
    forest = forest.set_params(random_state=5).fit(rows[:START], target[:START])
    learned_elsewhere(library, forest, rows[START:], target[START:], tmp_path)


@pytest.mark.parametrize("name", ["words", "weights of classes", "window", "numbers"])
def test_weights_are_rounded_and_left_out_as_in_python(name, library, tmp_path):
    forest, rows, target = CASES[name]
    forest = forest.set_params(random_state=5).fit(rows[:START], target[:START], WEIGHTS[:START])
    learned_elsewhere(library, forest, rows[START:], target[START:], tmp_path, WEIGHTS[START:])


def test_ids_and_names_and_declared_classes_are_carried_through(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:100], columns=["a", "b", 'c"\\', "ü\n"])
    forest = OnlineForestClassifier(4, window=120, random_state=0).partial_fit(
        frame, WORDS[:100], classes=["left", "mittig ü", "never", "right 😀"],
        ids=[*range(-5, 45), *(f"Ä {i}" for i in range(50))],
    )  # fmt: skip
    path = tmp_path / "named.safetensors"
    theirs = library.load_bytes(saved(forest), tmp_path)
    assert theirs.labels() == ["left", "mittig ü", "never", "right 😀"]
    theirs.learn(X[100:160], index_of(WORDS[100:160], forest.classes_))
    theirs.save(path)
    forest.partial_fit(pandas.DataFrame(X[100:160], columns=frame.columns), WORDS[100:160])
    assert without_version(path.read_bytes()) == without_version(saved(forest))
    again = load(path)
    assert again.ids_ == forest.ids_ and 0 < len(again.ids_) < 100
    assert list(again.feature_names_in_) == list(frame.columns)
    assert list(again.classes_) == theirs.labels()


def test_the_name_of_a_class_leaves_the_file_with_its_last_sample(library, tmp_path):
    words = np.array(["rare and long", "a", "b"])[np.minimum(np.arange(90), 1 + np.arange(90) % 2)]
    forest = OnlineForestClassifier(12, window=50, random_state=0).fit(X[:40], words[:40])
    path = tmp_path / "later.safetensors"
    theirs = library.load_bytes(saved(forest), tmp_path)
    forest = load(tmp_path / "model.safetensors")
    theirs.learn(X[40:90], index_of(words[40:90], forest.classes_))
    theirs.save(path)
    forest.partial_fit(X[40:90], words[40:90])
    assert list(forest.classes_) == ["a", "b"]
    assert b"rare" not in path.read_bytes()
    assert without_version(path.read_bytes()) == without_version(saved(forest))
    assert theirs.labels() == ["a", "b", "rare and long"]  # as long as it lives
    assert (theirs.predict_proba(X)[:, 2] == 0).all()
    np.testing.assert_array_equal(theirs.predict_proba(X)[:, :2], forest.predict_proba(X))
    theirs.learn(X[:5], np.full(5, 2))
    theirs.save(path)
    forest.partial_fit(X[:5], np.repeat("rare and long", 5))
    assert load(path).digest_ == forest.digest_
    np.testing.assert_array_equal(theirs.predict_proba(X), forest.predict_proba(X))


def test_a_calibration_that_lags_is_saved(library, tmp_path):
    forest = OnlineForestClassifier(12, random_state=0).fit(X[:600], WORDS[:600])
    forest.partial_fit(X[600:610], WORDS[600:610])
    data = saved(forest)
    assert b'"calibration":"[600,' in data
    theirs = library.load_bytes(data, tmp_path)
    np.testing.assert_array_equal(theirs.predict_proba(X), forest.predict_proba(X))
    theirs.save(tmp_path / "again.safetensors")
    assert without_version((tmp_path / "again.safetensors").read_bytes()) == without_version(data)


def test_a_forest_that_holds_nothing_learns(library, tmp_path):
    forest = OnlineForestRegressor(3, random_state=0).fit(X, NUMBERS).keep_latest(0)
    theirs = library.load_bytes(saved(forest), tmp_path)
    assert (theirs.n_samples_seen, theirs.n_samples_stored) == (N, 0)
    theirs.learn(X[:50], NUMBERS[:50])
    forest.partial_fit(X[:50], NUMBERS[:50])
    np.testing.assert_array_equal(theirs.predict(X), forest.predict(X))


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ([-3, 7], ["-3", "7"]),
        ([False, True], ["false", "true"]),
        ([1.0, 2e18], ["1.0", "2e+18"]),
        (["", "a\0b"], ["", "a\0b"]),
        ([2**63, 2**64 - 1], ["9223372036854775808", "18446744073709551615"]),
    ],
)
def test_labels_come_as_text(labels, texts, library, tmp_path):
    y = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    forest = OnlineForestClassifier(2, random_state=0).fit([[0.0], [1.0]], y)
    theirs = library.load_bytes(saved(forest), tmp_path)
    assert theirs.labels() == texts and theirs.is_classifier
