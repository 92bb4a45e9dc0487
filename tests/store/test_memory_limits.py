"""A small file cannot demand much memory: its forest is bounded while it is loaded."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onlineforest import (
    ModelTooLargeError,
    MondrianForestClassifier,
    OnlineForestClassifier,
    load,
)
from onlineforest._files import container as _container
from support.model_files import changed, loaded, saved

X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]


@pytest.mark.parametrize(
    "forest",
    [
        MondrianForestClassifier(3000, feature_weights=None, random_state=0),
        OnlineForestClassifier(3000, random_state=0),
    ],
)
def test_the_memory_limit_counts_many_small_trees(forest):
    data = saved(forest.fit(X[:5], [1, 2, 1, 2, 1]))
    with pytest.raises(ModelTooLargeError):
        load(io.BytesIO(data), max_bytes=forest.nbytes_ // 2)


def test_a_leaf_of_very_many_classes_is_quick_to_load():
    """Each label is appended to a set, not inserted in its middle."""
    n = 60_000
    rows = np.zeros((n, 1), np.float32)
    forest = MondrianForestClassifier(1, feature_weights=None, random_state=0)
    data = saved(forest.fit(rows, np.arange(n)))
    backwards = changed(data, arrays={"values": np.arange(n, dtype=np.int32)[::-1]})
    other = load(io.BytesIO(backwards))
    other._forest.check_invariants()


def test_a_small_file_of_an_order_free_forest_cannot_demand_much_memory(order_free):
    """Without `max_bytes`, the limit is the memory of the machine."""
    contents = _container.read(io.BytesIO(order_free))
    parameters = json.loads(contents.metadata["parameters"])
    many = changed(order_free, {"parameters": parameters | {"n_estimators": 2**31 - 1}})
    empty = saved(OnlineForestClassifier(2, random_state=0).fit(X, Y).keep_latest(0))
    huge = {"count": 2**30 - 1, "dtype": "float32", "names": None}
    wide = changed(empty, {"features": huge}, {"rows": np.empty((0, 2**30 - 1), np.float32)})
    for data, options in ((many, {}), (many, {"max_bytes": 10**9}), (wide, {"max_bytes": 10**9})):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(data), **options)
    forest = OnlineForestClassifier(100, random_state=0).fit(X, Y)
    size = forest.nbytes_
    data = saved(forest)
    assert loaded(forest).digest_ == load(io.BytesIO(data), max_bytes=3 * size).digest_
    for limit in (0, 1000, size // 2):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(data), max_bytes=limit)


@pytest.mark.slow
def test_a_small_file_cannot_demand_much_memory(classifier):
    """Memory is bounded by the size of the file, or by `max_bytes`."""
    empty = saved(MondrianForestClassifier(2, random_state=0).fit(X, Y).keep_latest(0))
    huge = {"count": 2**31 - 1, "dtype": "float32", "names": None}
    arrays = {"rows": np.empty((0, 2**31 - 1), np.float32)}
    forest = load(io.BytesIO(changed(empty, {"features": huge}, arrays)))
    assert forest.n_features_in_ == 2**31 - 1 and forest.nbytes_ < 10_000

    size = load(io.BytesIO(classifier)).nbytes_
    assert load(io.BytesIO(classifier), max_bytes=2 * size).n_samples_stored_ == 50
    for limit in (0, 1000, size // 2):
        with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
            load(io.BytesIO(classifier), max_bytes=limit)


def test_a_chain_with_a_class_for_each_sample_is_stopped_in_time():
    """Its label sets grow with the square of the file, but the limit stops them."""
    n = 3000
    rows, labels = np.arange(n, dtype=np.float32)[:, None], np.arange(n)
    forest = MondrianForestClassifier(1, feature_weights=None, random_state=0).fit(rows, labels)
    # Node 0 is cut into the leaf of sample 0, node 1, and the rest, node 2, and so on.
    is_inner = np.arange(2 * n - 1) % 2 == 0
    is_inner[-1] = False
    inner = np.flatnonzero(is_inner)
    left, right = np.empty(2 * n - 1, np.int32), np.ones(2 * n - 1, np.int32)
    left[inner], right[inner] = inner + 1, inner + 2
    left[~is_inner] = np.arange(n)
    arrays = {
        "trees.left": left,
        "trees.right": right,
        "trees.split_dimension": np.where(is_inner, 0, -1).astype(np.int32),
        "trees.split_location": np.zeros(2 * n - 1, np.float32),
        "trees.split_time": np.full(2 * n - 1, np.inf),
        "trees.next_point": np.full(n, -1, np.int32),
    }
    arrays["trees.split_location"][inner] = np.arange(n - 1) + 0.5
    arrays["trees.split_time"][inner] = np.arange(n - 1)
    for name in list(arrays):
        arrays[f"{name}.sizes"] = np.array([len(arrays[name])], np.uint64)
    counts = {"samples_seen": n, "samples_stored": n, "ids": 0, "trees": 1, "nodes": 2 * n - 1}
    chain = changed(saved(forest), {"counts": counts}, arrays)
    deep = load(io.BytesIO(chain))
    deep._forest.check_invariants()
    assert deep.nbytes_ > 4 * n * n / 2 > 20 * len(chain)
    with pytest.raises(ModelTooLargeError, match="holds a forest of more than"):
        load(io.BytesIO(chain), max_bytes=deep.nbytes_ // 2)
