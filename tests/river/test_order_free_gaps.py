"""Absent and new keys of the order-free forest as a model of River."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import onlineforest
import onlineforest.river.base
from onlineforest.river import OnlineForestClassifier


def samples_with_gaps(n=200, share=0.3, seed=0):
    """Samples of four keys, each of which is absent from some; the label depends on two."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        values = dict(zip("abcd", rng.integers(0, 20, size=4).tolist()))
        x = {key: value for key, value in values.items() if rng.random() >= share}
        yield x, "high" if values["b"] + values["d"] > 19 else "low"


SAMPLES = list(samples_with_gaps())


def learned(samples, **parameters):
    model = OnlineForestClassifier(**{"n_estimators": 5, "seed": 3, **parameters})
    for x, y in samples:
        model.learn_one(x, y)
    return model


def fitted(samples, keys="abcd"):
    """The estimator's `fit` on the table of the samples, with NaN for absent keys."""
    X = np.array([[x.get(key, math.nan) for key in keys] for x, _ in samples], dtype=float)
    forest = onlineforest.OnlineForestClassifier(5, random_state=3)
    return forest.fit(X, [y for _, y in samples])


def batches(samples, size):
    for start in range(0, len(samples), size):
        piece = samples[start : start + size]
        yield pd.DataFrame([x for x, _ in piece]), pd.Series([y for _, y in piece])


@pytest.fixture
def copies(monkeypatch):
    """The number of columns each time the samples are copied for new keys."""
    counted, real = [], onlineforest.river.base.with_columns

    def with_columns(forest, sources, categorical, offsets):
        counted.append(len(sources))
        return real(forest, sources, categorical, offsets)

    monkeypatch.setattr(onlineforest.river.base, "with_columns", with_columns)
    return counted


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_keys_and_samples_equals_fit(seed):
    rng = np.random.default_rng(seed)
    shuffled = [SAMPLES[i] for i in rng.permutation(len(SAMPLES))]
    model = learned([])
    for x, y in shuffled:
        model.learn_one({key: x[key] for key in rng.permutation(list(x)).tolist()}, y)
        if rng.random() < 0.1:
            model.predict_one(x)
    assert model.features == list("abcd")
    assert model.estimator.digest_ == fitted(SAMPLES).digest_
    assert model.estimator.verify()


@pytest.mark.parametrize("size", [1, 7, 200])
def test_mini_batches_equal_fit(size):
    model = OnlineForestClassifier(5, seed=3)
    for X, y in batches(SAMPLES, size):
        model.learn_many(X, y)
    assert model.estimator.digest_ == fitted(SAMPLES).digest_


def test_a_late_key_is_missing_in_the_samples_before():
    early = [({"m": float(i % 7)}, i % 2) for i in range(50)]
    late = [({"m": 1.0, "a": float(i % 9), "z": float(i % 4)}, i % 3) for i in range(50)]
    model = learned(early)
    before = model.estimator.digest_
    for x, y in late:
        model.predict_one(x)
        model.learn_one(x, y)
    assert model.features == ["a", "m", "z"]
    assert model.estimator.digest_ == fitted(early + late, "amz").digest_ != before


def test_several_new_keys_in_one_call_cost_one_copy(copies):
    model = learned([({"m": 1.0}, 0), ({"m": 2.0}, 1)])
    model.learn_one({"a": 1.0, "b": 2.0, "z": 3.0}, 0)
    assert copies == [4]
    model.learn_many(pd.DataFrame({"c": [1.0, 2.0], "d": [3.0, 4.0]}), pd.Series([0, 1]))
    assert copies == [4, 6]
    for x in ({"z": 1.0}, {}, dict.fromkeys("abcdmz", 0.5), {"m": None}):
        model.learn_one(x, 1)
        model.predict_one({**x, "unheard of": 1.0})
    assert copies == [4, 6] and model.features == list("abcdmz")


def test_a_refused_sample_with_new_keys_costs_no_copy(copies):
    model = learned(SAMPLES[:20])
    copies.clear()
    digest = model.estimator.digest_
    with pytest.raises(TypeError, match="Feature 'new' must be a number"):
        model.learn_one({"new": b"bytes"}, "low")
    assert copies == [] and model.estimator.digest_ == digest and "new" not in model.features


def test_new_keys_keep_the_window():
    model = OnlineForestClassifier(5, window=60, seed=3)
    samples = [({f"key {j}": float(i % 5) for j in range(1 + i // 20)}, i % 3) for i in range(140)]
    for x, y in samples:
        model.learn_one(x, y)
    assert len(model.features) == 7
    assert model.estimator.digest_ == fitted(samples[-60:], model.features).digest_


def test_a_key_stays_a_feature_when_its_last_sample_is_forgotten():
    model = learned([({"old": 1.0, "m": 2.0}, 0), *(({"m": float(i)}, i % 2) for i in range(30))])
    model.estimator.keep_latest(30)
    held = [({"m": float(i)}, i % 2) for i in range(30)]
    assert model.features == ["m", "old"]
    assert model.estimator.digest_ == fitted(held, ["m", "old"]).digest_


def test_none_nan_and_an_absent_key_are_the_same():
    digests = {
        learned([({**dict.fromkeys("abcd", gap), **x}, y) for x, y in SAMPLES]).estimator.digest_
        for gap in (None, math.nan, np.float32("nan"), pd.NA)
    }
    assert digests == {fitted(SAMPLES).digest_}


def test_forgotten_samples_with_gaps_leave_no_trace():
    model = learned(SAMPLES)
    rows = [[x.get(key, math.nan) for key in "abcd"] for x, _ in SAMPLES[:80]]
    model.estimator.forget(rows, [y for _, y in SAMPLES[:80]])
    assert model.estimator.digest_ == fitted(SAMPLES[80:]).digest_


def test_samples_without_keys_have_one_column_until_a_key_comes():
    model = learned([({}, "a"), ({}, "b"), ({}, "a")])
    assert model.features == [] and model.predict_one({}) == "a"
    samples = [({}, "a"), ({}, "b"), ({}, "a"), ({"key": 1.0}, "b")]
    model.learn_one(*samples[-1])
    assert model.estimator.digest_ == fitted(samples, ["key"]).digest_
