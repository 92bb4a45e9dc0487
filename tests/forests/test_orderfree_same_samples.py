"""An order-free forest is a function of the samples it holds, by whatever way it came to hold them.

Some values are missing. Samples that are not to be held leave by a window, or are forgotten.
Shards: tests/shards and tests/ray. Kills: tests/property/test_kills.py.
"""

from __future__ import annotations

import copy
import io
import math
import pickle

import numpy as np
import pytest

from onlineforest import OnlineForestClassifier, OnlineForestRegressor, load, merge, river
from onlineforest._store.checkpoints import Checkpointer
from support.model_files import saved

RNG = np.random.default_rng(5)
N_GONE, N_HELD = 90, 240
X = RNG.integers(0, 30, (N_GONE + N_HELD, 4)).astype(float)
LABELS = np.array(["low", "high"])[(X[:, 0] + X[:, 1] > 29).astype(int)]
LABELS[:N_GONE:7] = "gone"
VALUES = X[:, 0] - X[:, 1] + RNG.normal(size=len(X))
X[RNG.random(X.shape) < 0.2] = np.nan
KINDS = {"labels": (OnlineForestClassifier, LABELS), "numbers": (OnlineForestRegressor, VALUES)}
RIVER = {
    OnlineForestClassifier: river.OnlineForestClassifier,
    OnlineForestRegressor: river.OnlineForestRegressor,
}


def small_parts(rows):
    """Batches that trees follow step by step, and do not grow again for."""
    return np.array_split(rows, 1 + len(rows) // 9)


def learn(forest, rows, y):
    for part in small_parts(rows):
        forest.partial_fit(X[part], y[part])
        forest.predict(X[:2])
    return forest


def in_batches(forest, gone, held, y, folder):
    return learn(learn(forest, gone, y), held, y)


def one_by_one(forest, gone, held, y, folder):
    for i in [*gone, *held]:
        forest.learn_one(X[i], y[i])
    return forest


def through(copied):
    """The forest is copied in the middle of its samples."""

    def learn_and_copy(forest, gone, held, y, folder):
        before = learn(learn(forest, gone, y), held[:100], y)
        after = copied(before, folder)
        assert after is not before and after.digest_ == before.digest_
        return learn(after, held[100:], y)

    return learn_and_copy


def from_checkpoint(forest, folder):
    Checkpointer(folder).save(forest, 7)
    return Checkpointer(folder).open().forest


def by_river(forest, gone, held, y, folder):
    """Sample by sample, with the keys of what is there in any order."""
    parameters = {"window": forest.window, "seed": forest.random_state}
    model = RIVER[type(forest)](forest.n_estimators, **parameters)
    for i in [*gone, *held]:
        present = [d for d in RNG.permutation(4).tolist() if not math.isnan(X[i, d])]
        model.learn_one({d: X[i, d] for d in present}, y[i])
        model.predict_one({0: 1.0})
    assert model.features == [0, 1, 2, 3]
    return model.estimator


def merged(forest, gone, held, y, folder):
    other = learn(copy.deepcopy(forest), held[150:], y)
    return merge([learn(learn(forest, gone, y), held[:150], y), other])


def taught(forest, gone, held, y, folder):
    other = learn(copy.deepcopy(forest), held[50:], y)
    return learn(learn(forest, gone, y), held[:50], y).learn_from(other)


WAYS = {
    "batches": in_batches,
    "one by one": one_by_one,
    "copy": through(lambda forest, folder: copy.deepcopy(forest)),
    "pickle": through(lambda forest, folder: pickle.loads(pickle.dumps(forest))),
    "file": through(lambda forest, folder: load(io.BytesIO(saved(forest)))),
    "checkpoint": through(from_checkpoint),
    "river": by_river,
    "merge": merged,
    "learn_from": taught,
}


CASES = [
    pytest.param(way, window, id=f"{name}-{how}")
    for name, way in WAYS.items()
    for how, window in (("forgotten", None), ("window", N_HELD))
    if window is None or way not in (merged, taught)  # forests with windows are not united
]


@pytest.mark.parametrize(("way", "window"), CASES)
@pytest.mark.parametrize(("kind", "y"), KINDS.values(), ids=KINDS)
def test_equal_samples_give_equal_forests(kind, y, way, window, tmp_path):
    gone, held = np.arange(N_GONE), N_GONE + np.random.default_rng(1).permutation(N_HELD)
    expected = kind(4, random_state=0).fit(X[N_GONE:], y[N_GONE:])
    forest = way(kind(4, random_state=0, window=window), gone, held, y, tmp_path / "new")
    if window is None:
        assert forest.digest_ != expected.digest_
        for part in small_parts(gone):
            forest.forget(X[part], y[part])
            forest.predict(X[:2])
    assert forest.n_samples_stored_ == N_HELD
    assert forest.digest_ == expected.digest_ and forest.verify()
    assert np.array_equal(forest.predict(X), expected.predict(X))
