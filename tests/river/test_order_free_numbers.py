"""The order-free forest of numbers as a model of River: a function of its samples and keys."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest.river import OnlineForestRegressor


def samples_with_gaps(n=300, share=0.2, seed=0):
    """Samples of four keys, each of which is absent from some; the number depends on two."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        values = dict(zip("abcd", rng.integers(0, 20, size=4).tolist()))
        x = {key: value for key, value in values.items() if rng.random() >= share}
        yield x, values["b"] + 3.0 * values["d"] + rng.normal()


SAMPLES = list(samples_with_gaps())


def learned(samples, **parameters):
    model = OnlineForestRegressor(**{"n_estimators": 5, "seed": 3, **parameters})
    for x, y in samples:
        model.learn_one(x, y)
    return model


def table(samples, keys="abcd"):
    """The samples with NaN for absent keys."""
    return np.array([[x.get(key, math.nan) for key in keys] for x, _ in samples], dtype=float)


def fitted(samples, keys="abcd", **parameters):
    forest = onlineforest.OnlineForestRegressor(5, random_state=3, **parameters)
    return forest.fit(table(samples, keys), [y for _, y in samples])


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_keys_and_samples_equals_fit(seed):
    rng = np.random.default_rng(seed)
    model = learned([])
    for i in rng.permutation(len(SAMPLES)):
        x, y = SAMPLES[i]
        model.learn_one({key: x[key] for key in rng.permutation(list(x)).tolist()}, y)
        if rng.random() < 0.1:
            model.predict_one(x)
    assert model.features == list("abcd")
    whole = fitted(SAMPLES)
    assert model.estimator.digest_ == whole.digest_
    model.estimator.recalibrate()
    means = whole.predict(table(SAMPLES[:9])).tolist()
    intervals = whole.predict_interval(table(SAMPLES[:9]), coverage=0.8).tolist()
    for (x, _), mean, (low, high) in zip(SAMPLES, means, intervals, strict=False):
        assert model.predict_one(x) == mean
        interval = model.predict_interval_one(x, coverage=0.8)
        assert (interval.lower, interval.upper) == (low, high)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_mini_batches_equal_fit(size):
    model = OnlineForestRegressor(5, seed=3)
    for start in range(0, len(SAMPLES), size):
        piece = SAMPLES[start : start + size]
        model.learn_many(pd.DataFrame([x for x, _ in piece]), pd.Series([y for _, y in piece]))
    assert model.estimator.digest_ == fitted(SAMPLES).digest_


@pytest.mark.parametrize(
    "parameters",
    [{"calibrate": False}, {"min_samples_split": 9}, {"max_samples": 0.5}, {"n_jobs": 2}],
)
def test_parameters_are_those_of_the_estimator(parameters):
    model = learned(SAMPLES, **parameters)
    assert model.estimator.digest_ == fitted(SAMPLES, **parameters).digest_
    assert learned([]).estimator.get_params() == {
        **onlineforest.OnlineForestRegressor().get_params(), "n_estimators": 5, "random_state": 3
    }  # fmt: skip


def test_a_window_holds_the_latest_samples():
    model = learned(SAMPLES, window=120)
    assert model.estimator.digest_ == fitted(SAMPLES[-120:]).digest_
    sampled = learned(SAMPLES, reservoir=50, half_life=40.0)
    assert sampled.estimator.n_samples_stored_ == 50


def test_a_model_that_has_forgotten_all_can_learn_again():
    model = learned(SAMPLES)
    model.estimator.keep_latest(0)
    for x, y in SAMPLES:
        model.learn_one(x, y)
    assert model.estimator.digest_ == fitted(SAMPLES).digest_


def test_copies_have_the_same_digest_and_go_their_own_way():
    model = learned(SAMPLES)
    digest = model.estimator.digest_
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.estimator.digest_ == digest
        twin.learn_one({"a": 1.0, "new": 2.0}, 5.0)
        assert twin.estimator.digest_ != digest == model.estimator.digest_


def test_a_refused_sample_changes_nothing():
    model = learned(SAMPLES)
    digest = model.estimator.digest_
    for x, y in [({"a": "text"}, 1.0), ({"a": 1.0}, math.nan), ({"new": 1.0}, math.inf)]:
        with pytest.raises((TypeError, ValueError)):
            model.learn_one(x, y)
    assert model.features == list("abcd")
    assert model.estimator.digest_ == digest
