"""Helpers that tests of forests on Ray share."""

from __future__ import annotations

import os

import numpy as np
import pytest

from onlineforest import OnlineForestClassifier, OnlineForestRegressor
from onlineforest.ray import RayForest
from support.examples import thorough_but

RAY = pytest.mark.xdist_group("ray")
SMALL_ACTORS = {"num_cpus": 0.2}  # five per processor


def data(n=1200, n_features=4, seed=0):
    """Rows with a few missing values, labels and numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    labels = np.array(["low", "middle", "high"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.7)]
    values = 2.0 * X[:, 0] - X[:, 1] ** 2 + rng.normal(size=n)
    X[rng.random(X.shape) < 0.01] = np.nan
    return X, labels, values


def classifier(**parameters):
    return OnlineForestClassifier(**{"n_estimators": 10, "random_state": 0} | parameters)


def regressor(**parameters):
    return OnlineForestRegressor(**{"n_estimators": 10, "random_state": 0} | parameters)


each_maker = pytest.mark.parametrize("make", thorough_but(classifier, of=[classifier, regressor]))


def target_of(make, labels, values):
    """The targets that the estimators of a maker learn."""
    return labels if make is classifier else values


def on_ray(estimator, **parameters):
    """The forest on Ray, with small actors."""
    return RayForest(estimator, **{"n_shards": 2, "actor_options": SMALL_ACTORS} | parameters)


def actors_of(forest):
    """The actors of a forest by number of the shard."""
    return forest._sharded().keeper._crew._actors


def process_of(ray, actor):
    """The process of an actor."""
    return ray.get(actor.__ray_call__.remote(lambda self: os.getpid()))
