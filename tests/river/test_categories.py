"""Text in samples of River: levels of categorical features of the order-free forests."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest.river import OnlineForestClassifier, OnlineForestRegressor

KINDS = [OnlineForestClassifier, OnlineForestRegressor]


def samples(kind, n=90):
    draw = random.Random(4)
    found = []
    for i in range(n):
        x = {
            "city": draw.choice(["Rome", "Oslo", "", "nan", "1", None]),
            "size": draw.random(),
            "code": draw.choice(["1", 1, True, 7]) if i > 30 else "1",
        }
        if i > 50:
            x["late"] = draw.choice(["a", "b"])
        y = (x["city"] == "Rome") ^ (x["size"] > 0.5)
        found.append((x, y if kind is OnlineForestClassifier else float(y)))
    return found


def learned(kind, stream, **parameters):
    model = kind(10, seed=3, **parameters)
    for x, y in stream:
        model.predict_one(x)
        model.learn_one(x, y)
    return model


def fitted(kind, stream, features):
    table = np.full((len(stream), len(features)), None, dtype=object)
    for row, (x, _) in zip(table, stream, strict=True):
        row[:] = [x.get(key) for key in features]
    categorical = [place for place, key in enumerate(features) if key != "size"]
    classes = {
        OnlineForestClassifier: onlineforest.OnlineForestClassifier,
        OnlineForestRegressor: onlineforest.OnlineForestRegressor,
    }
    forest = classes[kind](10, random_state=3, categorical_features=categorical)
    return forest.fit(table, [y for _, y in stream])


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_samples_and_keys_equals_fit(kind):
    stream = samples(kind)
    model = learned(kind, stream)
    assert model.features == ["city", "code", "late", "size"]
    digest = fitted(kind, stream, model.features).digest_
    assert model.estimator.digest_ == digest
    turned = [stream[0], *((dict(reversed(x.items())), y) for x, y in reversed(stream[1:]))]
    assert learned(kind, turned).estimator.digest_ == digest
    copy = pickle.loads(pickle.dumps(model))
    assert copy.estimator.digest_ == digest
    copy.learn_one({"city": "never seen"}, stream[0][1])
    assert "never seen" in copy.estimator.levels_[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_learns_what_single_samples_do(kind):
    stream = samples(kind, 60)
    batch = kind(10, seed=3)
    batch.learn_many(pd.DataFrame([x for x, _ in stream]), pd.Series([y for _, y in stream]))
    single = learned(kind, stream)
    assert batch.estimator.digest_ == single.estimator.digest_
    queries = pd.DataFrame([x for x, _ in stream])
    assert batch.predict_many(queries).tolist() == [single.predict_one(x) for x, _ in stream]


@pytest.mark.parametrize("kind", KINDS)
def test_levels_leave_with_a_window(kind):
    stream = samples(kind)
    model = learned(kind, stream, window=10)
    held = {x["city"] for x, _ in stream[-10:]}
    assert set(model.estimator.levels_[0]) == held
    model.learn_one({"city": "Ada Lovelace"}, stream[0][1])
    for x, y in stream[:10]:
        model.learn_one(x, y)
    assert b"Lovelace" not in pickle.dumps(model)


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_a_key_that_was_a_number_is_refused(kind):
    stream = samples(kind)
    model = learned(kind, stream)
    before = pickle.dumps(model)
    bad = {"size": "large"}
    for call in (
        lambda: model.learn_one(bad, stream[0][1]),
        lambda: model.predict_one(bad),
        lambda: model.learn_many(pd.DataFrame([bad]), pd.Series([stream[0][1]])),
    ):
        with pytest.raises(TypeError, match=r"Feature 'size' must be a number. Got 'large'"):
            call()
    with pytest.raises(ValueError, match="A level must be text"):
        model.learn_one({"city": 1.5}, stream[0][1])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_value_decides_what_a_key_is(kind):
    model = kind(10, seed=3)
    model.learn_one({"a": None, "b": 1.0}, 1)
    assert model.predict_one({"a": "text", "b": 1.0}) == 1  # as if it were missing
    model.learn_one({"a": "text", "b": 2.0}, 0)
    assert model.estimator.levels_ == {0: ["text", None]}
    other = kind(10, seed=3)
    other.learn_one({"a": "text", "b": 2.0}, 0)
    other.learn_one({"a": None, "b": 1.0}, 1)
    assert model.estimator.digest_ == other.estimator.digest_
