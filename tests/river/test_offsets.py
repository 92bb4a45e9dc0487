"""Offsets of River's models, and the warning about values that float32 does not keep apart."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest import river

START = 1_700_000_000
RNG = np.random.default_rng(4)
TABLE = pd.DataFrame({"a": RNG.normal(size=200), "time": START + RNG.integers(0, 3600, 200)})
Y = pd.Series((TABLE["time"] // 600 % 2).to_numpy())
SAMPLES = TABLE.to_dict(orient="records")
KINDS = [
    (river.OnlineForestClassifier, onlineforest.OnlineForestClassifier),
    (river.OnlineForestRegressor, onlineforest.OnlineForestRegressor),
]
each_kind = pytest.mark.parametrize(("model_kind", "kind"), KINDS)


def new(model_kind, **parameters):
    return model_kind(5, seed=3, **parameters)


@each_kind
def test_offsets_are_subtracted_before_rounding(model_kind, kind):
    forest = kind(5, random_state=3, offsets={1: START}).fit(TABLE.to_numpy(), Y)
    one, many = (new(model_kind, offsets={"time": START, "later": 7.0}) for _ in range(2))
    for x, y in zip(SAMPLES, Y.tolist(), strict=True):
        one.learn_one(x, y)
    many.learn_many(TABLE, Y)
    for model in (one, many, one.clone(include_attributes=True), pickle.loads(pickle.dumps(many))):
        assert model.estimator.digest_ == forest.digest_
        expected = forest.predict(TABLE.to_numpy())
        assert np.array_equal(model.predict_many(TABLE).to_numpy(), expected)
        assert [model.predict_one(x) for x in SAMPLES[:20]] == expected[:20].tolist()
    assert one.clone().offsets == {"time": START, "later": 7.0}


@each_kind
def test_new_keys_get_their_offsets(model_kind, kind):
    later = TABLE.assign(early=5e9 + RNG.integers(0, 999, 200), z="x")
    offsets = {"time": START, "early": 5e9}
    model = new(model_kind, offsets=offsets)
    model.learn_many(TABLE, Y)
    for x, y in zip(later[:10].to_dict(orient="records"), Y[:10].tolist(), strict=True):
        model.learn_one(x, y)
    model.learn_many(later[10:], Y[10:])
    assert model.features == ["a", "early", "time", "z"]
    both = pd.concat([TABLE, later])[model.features]
    forest = kind(5, random_state=3, offsets=offsets).fit(both, pd.concat([Y, Y]))
    assert model.estimator.digest_ == forest.digest_ and model.estimator.verify()
    assert model.estimator.offsets == [0.0, 5e9, START, 0.0]


@each_kind
def test_wrong_offsets_are_errors(model_kind, kind):
    del kind
    for offsets, message in (
        ([1.0], r"offsets must be a dict .* Got \[1.0\]"),
        ({"time": np.nan}, "offsets must be finite numbers. Got nan for feature 'time'"),
        ({("a", 1): "1"}, "offsets must be finite numbers. Got '1' for feature"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            new(model_kind, offsets=offsets)
    model = new(model_kind, offsets={"time": START, "city": 1.0})
    model.learn_many(TABLE, Y)
    digest = model.estimator.digest_
    for _ in range(2):
        with pytest.raises(ValueError, match="offsets names 'city', which is categorical"):
            model.learn_one({"time": START, "city": "Rome"}, 1)
    assert model.features == ["a", "time"] and model.estimator.digest_ == digest


@each_kind
def test_batches_of_values_that_become_equal_are_told_once(model_kind, kind):
    del kind
    model = new(model_kind)
    with pytest.warns(UserWarning, match=r"\d+ became 29 in column 'time'") as caught:
        model.learn_many(TABLE, Y)
    assert "offsets={'time': 1700001000}" in str(caught[0].message) and len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_many(TABLE, Y)
        other = copy.deepcopy(new(model_kind))
        for x, y in zip(SAMPLES, Y.tolist(), strict=True):
            other.learn_one(x, y)
