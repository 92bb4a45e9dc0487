"""Pickles hold plain data and public names, so that private modules can move."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import is_regressor

import onlineforest
from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from support.bits import assert_same_forest

X = np.random.default_rng(0).normal(size=(60, 3))
LABELS = np.where(X[:, 0] > 0, "yes", "no")


def fitted(kind):
    y = X[:, 1] if is_regressor(kind()) else LABELS
    return kind(3, random_state=0).fit(X, y, ids=[f"sample {i}" for i in range(60)])


ALL = [MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", ALL)
def test_a_pickled_forest_names_no_private_module(kind, protocol):
    forest = fitted(kind)
    for thing in (kind(), forest, forest.trees_[0]):
        data = pickle.dumps(thing, protocol)
        assert b"onlineforest._" not in data
        assert type(pickle.loads(data)) is type(thing)


@pytest.mark.parametrize("kind", ALL)
def test_an_unpickled_forest_is_the_same_and_knows_ids_and_classes(kind):
    forest = fitted(kind)
    for other in (pickle.loads(pickle.dumps(forest)), copy.deepcopy(forest)):
        assert_same_forest(forest, other)
        assert other.ids_ == forest.ids_
        assert np.array_equal(other.predict(X), forest.predict(X))
        assert other.forget(ids=["sample 7"]).n_samples_stored_ == 59


@pytest.mark.parametrize("name", sorted(set(onlineforest.__all__) - {"__version__", "plot"}))
def test_public_names_say_that_they_are_of_the_package(name):
    thing = getattr(onlineforest, name)
    assert thing.__module__ == "onlineforest" and thing.__qualname__ == name
    assert pickle.loads(pickle.dumps(thing)) is thing
