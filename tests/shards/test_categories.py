"""Forests with categorical features whose trees live in shards."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from onlineforest import OnlineForestClassifier, OnlineForestRegressor
from support.crews import LocalShards


def some_shards():
    """Three shards, one of which is lost now and then."""
    n_calls = 0

    def loses(_, method):
        nonlocal n_calls
        n_calls += 1
        return "after" if n_calls % 17 == 0 and method == "carry_out" else None

    return LocalShards(loses)


def table(n):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Rome", "Oslo", "", "nan", None], n),
            "size": rng.normal(size=n),
            "is_new": rng.random(n) < 0.5,
        }
    )
    return frame, ((frame["city"] == "Rome") ^ (frame["size"] > 0)).to_numpy().astype(int)


@pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
def test_shards_give_the_digest_of_one_process(kind):
    frame, y = table(240)
    forest = kind(12, random_state=0)
    forest._core_source = some_shards()
    for start in range(0, 240, 40):
        forest.partial_fit(frame[start : start + 40], y[start : start + 40])
        forest.predict(frame[:5])
    whole = kind(12, random_state=0).fit(frame, y)
    assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_
    person = frame[:1].assign(city="Ada Lovelace")
    forest.partial_fit(person, y[:1], ids=["her"])
    assert forest.digest_ != whole.digest_ and "Ada Lovelace" in forest.levels_["city"]
    assert (forest.predict(person) == forest.predict(person)).all()
    other = frame[:1].assign(city="Oslo", size=0.5, is_new=True)
    forest.learn_one(["Oslo", 0.5, True], y[0].item()).forget(other, y[:1])
    forest.forget(ids=["her"])
    assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_
    assert b"Lovelace" not in pickle.dumps(forest) and forest.verify()


def test_the_name_of_a_class_leaves_all_shards():
    frame, y = table(120)
    names = np.array(["no", "yes"])[y]
    forest = OnlineForestClassifier(12, random_state=0)
    forest._core_source = some_shards()
    forest.partial_fit(frame, names)
    digest = forest.digest_
    for visitor in ("Ada Lovelace", "Grace Hopper"):
        forest.partial_fit(frame[:1], [visitor]).forget(frame[:1], [visitor])
        assert forest.classes_.tolist() == ["no", "yes"] and forest.digest_ == digest
    assert forest._forest.n_labels == 3
    assert b"Hopper" not in pickle.dumps(forest) and forest.verify()


@pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
def test_offsets_are_subtracted_before_rows_go_to_shards(kind):
    frame, y = table(120)
    frame["time"] = 1_700_000_000 + np.arange(120)
    forest = kind(12, random_state=0, offsets={"time": 1.7e9})
    whole = kind(12, random_state=0, offsets={"time": 1.7e9}).fit(frame, y)
    forest._core_source = some_shards()
    forest.partial_fit(frame[:117], y[:117])
    for x, label in zip(frame[117:].itertuples(index=False), y[117:].tolist(), strict=True):
        forest.learn_one(tuple(x), label)
    assert forest.digest_ == whole.digest_ and forest.verify()
    x = tuple(frame.iloc[7])
    assert forest.predict_one(x) == whole.predict_one(x) == whole.predict(frame)[7]
