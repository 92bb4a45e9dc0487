"""Samples of River that lack keys, or have None or NaN for one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from onlineforest.river import OnlineForestClassifier, OnlineForestRegressor
from river import compose, datasets, evaluate, metrics, preprocessing
from support.bits import assert_same_forest
from support.river_checks import MODELS, river_checks


@pytest.mark.parametrize(("model", "check"), river_checks(lacking_keys=True))
def test_checks_of_river(model, check):
    check(model.clone())


def two_halves(n, share_missing, missing=None):
    """Samples whose class is whether a and b together are large; some but the first lack b."""
    rng = np.random.default_rng(0)
    for i in range(n):
        a, b = rng.random(2)
        lacks = rng.random() < share_missing and i > 0
        yield {"a": a, **((missing or {}) if lacks else {"b": b})}, bool(a + b > 1)


@pytest.mark.parametrize("kind", MODELS)
def test_none_nan_and_an_absent_key_are_the_same(kind):
    forests = []
    for missing in ({}, {"b": None}, {"b": math.nan}, {"b": pd.NA}):
        model = kind(5, seed=0)
        for x, y in two_halves(150, 0.3, missing):
            model.learn_one(x, y)
        forests.append(model)
    for other in forests[1:]:
        assert_same_forest(forests[0].estimator, other.estimator)
    predictions = [
        forests[0].predict_one(x)
        for x in ({"a": 0.9}, {"a": 0.9, "b": None}, {"b": np.nan, "a": 0.9})
    ]
    assert predictions[0] == predictions[1] == predictions[2]


def test_a_query_that_lacks_a_key_is_predicted_from_the_others():
    model = OnlineForestClassifier(20, seed=0)
    for x, y in two_halves(500, 0.0):
        model.learn_one(x, y)

    def mean_around(a):
        queries = [{"a": a + step} for step in np.linspace(-0.05, 0.05, 41)]
        return np.mean([model.predict_proba_one(x)[True] for x in queries])

    assert mean_around(0.95) > 0.8  # 0.95 in truth
    assert mean_around(0.05) < 0.2
    assert 0.0 < model.predict_proba_one({})[True] < 1.0


def test_samples_that_lack_keys_are_learned_from():
    model = OnlineForestClassifier(20, seed=0)
    for x, y in two_halves(600, 0.3):
        model.learn_one(x, y)
    test = [*two_halves(900, 0.0)][600:]
    assert np.mean([model.predict_one(x) == y for x, y in test]) > 0.85


@pytest.mark.parametrize("kind", MODELS)
def test_missing_cells_of_a_frame_are_missing_keys(kind):
    samples = [*two_halves(150, 0.3)]
    one, many = kind(5, seed=0), kind(5, seed=0)
    # With both keys first, so that their columns are in the same order.
    samples.sort(key=lambda sample: -len(sample[0]))
    for x, y in samples:
        one.learn_one(x, y)
    many.learn_many(pd.DataFrame([x for x, _ in samples]), pd.Series([y for _, y in samples]))
    assert_same_forest(one.estimator, many.estimator)
    queries = [{"a": 0.3}, {"a": 0.3, "b": 0.5}, {"b": 0.9}]
    assert many.predict_many(pd.DataFrame(queries)).tolist() == [
        one.predict_one(x) for x in queries
    ]


def test_the_first_sample_may_have_only_missing_values():
    model = OnlineForestRegressor(3, seed=0)
    model.learn_one({"a": None, "b": math.nan}, 1.0)
    model.learn_one({"b": 2.0}, 2.0)
    model.learn_one({"a": 3.0}, 3.0)
    assert 1.0 <= model.predict_one({}) <= 3.0


def test_keys_may_appear_and_vanish():
    rng = np.random.default_rng(0)
    model = OnlineForestClassifier(5, seed=0)
    for i in range(200):
        names = rng.choice(30, size=rng.integers(0, 6), replace=False)
        x = {f"key {name}": rng.random() for name in names}
        probabilities = model.predict_proba_one(x)
        assert not probabilities or math.isclose(sum(probabilities.values()), 1.0)
        model.learn_one(x, i % 3)
    assert len(model.features) == 30


def test_absent_one_hot_keys_are_missing_values():
    """Here a missing key means 0, which is not what it means to the forest: it still works."""
    rng = np.random.default_rng(0)
    model = compose.SelectType(str) | preprocessing.OneHotEncoder(drop_zeros=True)
    model += compose.SelectType(float)
    model |= OnlineForestClassifier(seed=0)
    for _ in range(300):
        colour = ["red", "green", "blue"][rng.integers(3)]
        x = {"colour": colour, "size": rng.random()}
        model.learn_one(x, x["size"] > 0.5)
    assert model.predict_one({"colour": "red", "size": 0.95}) is True


def test_a_river_data_set_with_missing_values_is_learned():
    rng = np.random.default_rng(0)
    samples = [
        ({key: value for key, value in x.items() if rng.random() < 0.9}, y)
        for x, y in datasets.Phishing().take(600)
    ]
    model = OnlineForestClassifier(seed=0)
    assert evaluate.progressive_val_score(samples, model, metrics.Accuracy()).get() > 0.8
