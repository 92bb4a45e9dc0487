"""A model file with any defect is refused, and the error names the defect."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onlineforest import (
    ModelFileError,
    MondrianForestClassifier,
    load,
)
from onlineforest._files import container as _container
from support.model_files import changed, saved

X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]


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
