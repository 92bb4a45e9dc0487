"""Each field of a model file is forged in turn: `load` refuses it, or gives a sound forest."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from onlineforest import (
    Checkpointer,
    ModelFileError,
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    load,
)
from onlineforest._files import container as _container
from onlineforest._forests import saving as _saving
from support.model_files import changed, saved

N = 12
ROWS = np.random.default_rng(0).random((N, 2)).astype(np.float32)
LABELS = np.resize(["a", "b", "c"], N)
FRAME = pd.DataFrame({"x": ROWS[:, 0], "colour": LABELS, "y": ROWS[:, 1], "n": np.arange(N) % 2})
FORESTS = {
    "Mondrian classifier": lambda: MondrianForestClassifier(
        1, feature_weights=[1.0, 2.0], window=10, random_state=0
    ).fit(ROWS, LABELS, ids=range(N)),
    "Mondrian classifier, names": lambda: MondrianForestClassifier(1, random_state=0).fit(
        FRAME[["x", "y"]], LABELS
    ),
    "classifier": lambda: OnlineForestClassifier(
        10, class_weight={"a": 2.0}, categorical_features=["colour", "n"], random_state=0
    ).fit(FRAME, LABELS, ids=[f"person {i}" for i in range(N)]),
    "regressor": lambda: OnlineForestRegressor(
        2, reservoir=10, half_life=5.0, random_state=np.random.RandomState(0)
    ).fit(ROWS, ROWS[:, 0], sample_weight=np.arange(1.0, N + 1.0)),
}
each_forest = pytest.mark.parametrize("make", FORESTS.values(), ids=FORESTS.keys())
ODD_VALUES = [None, True, -1, 0, 1, 0.5, 2**31, 10**30, -1e300, "", "x", [], [[]], {}, {"dict": []}]


def odd_arrays(array):
    """Arrays of other shapes, sizes and types in place of one."""
    flat, zero = array.reshape(-1), np.zeros(1, array.dtype)
    others = [
        flat[:1].reshape(()) if len(flat) else zero[0],
        flat.reshape(1, -1),
        flat.reshape(-1, 1),
        flat.reshape(-1, 1, 1),
        array[:0],
        array[1:],
        np.concatenate([flat, zero]),
        flat if array.ndim > 1 else np.concatenate([flat, flat]),
        array.astype(np.bool_),
    ]
    with np.errstate(invalid="ignore"):
        others.append(array.astype(np.float64 if array.dtype != np.float64 else np.int64))
        others += [
            np.full_like(array, value) for value in np.array([0, -1, np.inf]).astype(array.dtype)
        ]
    return others


def odd_values(value):
    """Values of JSON with one part replaced, dropped, doubled or added; few of a long list."""
    yield from ODD_VALUES
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: each for name, each in value.items() if name != key}
            for odd in odd_values(part):
                yield {**value, key: odd}
        yield {**value, "more": 1}
    if isinstance(value, list) and value:
        yield value[1:]
        yield value[::-1]
        yield [*value, value[0]]
        for odd in odd_values(value[-1]):
            yield [*value[:-1], odd]


def refusal(data):
    """The error that `load` raises; None if it gives a forest, which must be sound."""
    try:
        forest = load(io.BytesIO(data), max_bytes=2**26)
    except ModelFileError as error:
        return error
    forest._check_trees()
    return None


def assert_checked(data, field):
    """A forged file is refused by a check, not by an error that happened to come later."""
    try:
        error = refusal(data)
    except Exception as unexpected:
        raise AssertionError(f"{field}: {unexpected!r}") from unexpected
    expected = (type(None), ValueError, TypeError, OverflowError)
    assert error is None or isinstance(error.__cause__, expected), f"{field}: {error}"
    return error is not None


@each_forest
def test_forged_arrays_are_refused(make):
    data = saved(make())
    n_refused = n = 0
    for name, array in _container.read(io.BytesIO(data)).arrays.items():
        for odd in odd_arrays(array):
            n += 1
            forged = changed(data, arrays={name: odd})
            n_refused += assert_checked(forged, f"{name} of shape {odd.shape}")
        with pytest.raises(ModelFileError, match="has shape"):
            load(io.BytesIO(changed(data, arrays={name: np.zeros((), array.dtype)})))
    assert n_refused > n / 2


@each_forest
def test_forged_metadata_are_refused(make):
    data = saved(make())
    n_refused = n = 0
    for key, text in _container.read(io.BytesIO(data)).metadata.items():
        if key in ("library_version", "estimator"):
            continue
        for odd in odd_values(json.loads(text)):
            n += 1
            forged = changed(data, {key: odd})
            n_refused += assert_checked(forged, f"{key} is {json.dumps(odd)[:200]}")
    assert n_refused > n / 2


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("class_weight", {"dict": [["a", -1.0]]}, "class_weight must give each class a finite"),
        ("class_weight", {"dict": [["a", -1]]}, "class_weight must give each class a finite"),
        ("categorical_features", {"list": ["colour", "size"]}, "names 'size', but X has no column"),
        ("categorical_features", {"list": [1, 4]}, r"index 4, but X has 4 columns"),
        ("categorical_features", {"list": [True, True]}, "a mask of 2 entries"),
        ("categorical_features", {"list": [0, 1]}, r"columns are \[1, 3\], .* chooses \[0, 1\]"),
        ("categorical_features", None, r"columns are \[1, 3\], .* chooses \[\]"),
        ("categorical_features", "colour", r"columns are \[1, 3\], .* chooses \[1\]"),
    ],
)
def test_parameters_in_a_file_pass_the_checks_of_fit(parameter, value, message):
    data = saved(FORESTS["classifier"]())
    parameters = json.loads(_container.read(io.BytesIO(data)).metadata["parameters"])
    forged = changed(data, {"parameters": {**parameters, parameter: value}})
    with pytest.raises(ModelFileError, match=message):
        load(io.BytesIO(forged))


@pytest.mark.parametrize("columns", [[1, 1], [3, 1], [1, 1, 3]])
def test_categorical_columns_of_a_file_are_distinct_and_in_order(columns):
    data = saved(FORESTS["classifier"]())
    features = json.loads(_container.read(io.BytesIO(data)).metadata["features"])
    with pytest.raises(ModelFileError, match="not distinct and in order"):
        load(io.BytesIO(changed(data, {"features": {**features, "categorical": columns}})))


def test_a_forged_checkpoint_is_skipped(tmp_path):
    forest, checkpoints = FORESTS["classifier"](), Checkpointer(tmp_path)
    checkpoints.save(forest, 1)
    path = checkpoints.save(forest, 2)
    path.write_bytes(changed(path.read_bytes(), arrays={"n_seen": np.array(N, np.uint64)}))
    with pytest.warns(UserWarning, match=r"'n_seen' has shape \(\)"):
        assert Checkpointer(tmp_path).open().position == 1


@pytest.mark.parametrize(
    "error", [KeyError("x"), IndexError("y"), RuntimeError("\n"), RecursionError]
)
def test_an_unexpected_error_while_loading_is_one_of_the_file(monkeypatch, error):
    data = saved(FORESTS["regressor"]())

    def fail(*_):
        raise error

    monkeypatch.setattr(_saving, "_counts_of", fail)
    with pytest.raises(ModelFileError, match="the file is not a valid model file: ") as raised:
        load(io.BytesIO(data))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_error_that_does_not_concern_the_file_is_raised(monkeypatch, error):
    data = saved(FORESTS["regressor"]())

    def fail(*_):
        raise error

    monkeypatch.setattr(_saving, "_counts_of", fail)
    with pytest.raises(error):
        load(io.BytesIO(data))
