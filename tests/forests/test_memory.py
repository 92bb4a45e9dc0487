"""`nbytes_` counts what a forest holds besides samples and trees: ids, and names of all kinds."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from onlineforest._inputs.memory import nbytes_of_array, nbytes_of_dict, nbytes_of_objects
from support.estimators import each_of_all_kinds

N = 300
ROWS = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
Y = np.arange(N) % 3


def besides(forest):
    """The bytes in `nbytes_` besides those of the core forest, whose trees change."""
    return forest.nbytes_ - forest._forest.nbytes


def test_objects_are_counted_as_python_allocates_them():
    texts = ["a" * n for n in range(100)]
    total = sum(map(sys.getsizeof, texts))
    assert total <= nbytes_of_objects(texts) < total + 16 * len(texts)
    assert nbytes_of_objects([]) == 0
    numbers = {text: i for i, text in enumerate(texts)}
    assert nbytes_of_dict(numbers) > sys.getsizeof(numbers) + total
    assert nbytes_of_array(np.array(texts, dtype=object)) == 800 + nbytes_of_objects(texts)
    assert nbytes_of_array(np.zeros(5)) == 40


@each_of_all_kinds
def test_ids_are_counted_while_they_are_held(kind):
    forest, plain = (kind.estimator(2, random_state=0) for _ in range(2))
    plain.fit(ROWS, Y)
    forest.fit(ROWS, Y, ids=[f"patient number {i}" for i in range(N)])
    of_ids = besides(forest) - besides(plain)
    assert N * (64 + 32) < of_ids < N * 300
    forest.partial_fit(ROWS[:1], Y[:1], ids=["x" * 10_000])
    assert 10_000 < besides(forest) - besides(plain) - of_ids < 11_000
    forest.forget(ids=["x" * 10_000])
    assert besides(forest) - besides(plain) == of_ids


@each_of_all_kinds
def test_names_of_features_are_counted(kind):
    long = [f"{name} {'x' * 5000}" for name in "ab"]
    plain = kind.estimator(2, random_state=0).fit(ROWS, Y)
    named = kind.estimator(2, random_state=0).fit(pd.DataFrame(ROWS, columns=long), Y)
    assert 10_000 < besides(named) - besides(plain) < 11_000


@pytest.mark.parametrize("cls", [OnlineForestClassifier, OnlineForestRegressor])
def test_levels_are_counted_until_they_leave(cls):
    def frame(width):
        return pd.DataFrame({"a": ROWS[:, 0], "t": [f"{i:{width}}" for i in range(N)]})

    short, long = (cls(2, random_state=0).fit(frame(width), Y) for width in (10, 1010))
    assert besides(short) > N * (64 + 32)
    assert N * 990 < besides(long) - besides(short) < N * 1010
    short.keep_latest(3)
    long.keep_latest(3)
    assert 2970 < besides(long) - besides(short) < 3030


@pytest.mark.parametrize("cls", [MondrianForestClassifier, OnlineForestClassifier])
@pytest.mark.parametrize("dtype", [object, np.str_])
def test_labels_are_counted(cls, dtype):
    few = cls(2, random_state=0).fit(ROWS, Y)
    many = cls(2, random_state=0).fit(ROWS, np.array([f"{'x' * 1000} {i}" for i in Y], dtype))
    assert 3000 < besides(many) - besides(few) < 50_000


def test_errors_that_calibrate_are_counted():
    forest = OnlineForestRegressor(8, random_state=0).partial_fit(ROWS, Y)
    before = besides(forest)
    forest.recalibrate()
    n_calibrators = len(forest._forest.votes()[0])
    assert besides(forest) - before == 16 * n_calibrators > 0


def test_the_memory_can_be_asked_while_another_thread_learns_ids():
    forest = OnlineForestClassifier(1, random_state=0).fit(ROWS, Y, ids=range(N))

    def learn():
        for i in range(300):
            forest.learn_one(ROWS[i], Y[i], id=f"one more {i}")
            forest.forget(ids=[i])

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(learn)
        while not future.done():
            assert forest.nbytes_ > 0
        future.result()
