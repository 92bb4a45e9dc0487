"""Labels of any sortable kind, and classes that appear while learning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier

X, Y = load_iris(return_X_y=True)
SHUFFLED = np.random.default_rng(0).permutation(len(Y))

NAMES = {
    "strings": np.array(["setosa", "versicolor", "virginica"]),
    "objects": np.array(["setosa", "versicolor", "virginica"], dtype=object),
    "ints with gaps": np.array([-7, 0, 1000]),
    "unsigned": np.array([3, 200, 255], dtype=np.uint8),
    "whole floats": np.array([0.0, 1.0, 5.0]),
    "unsorted strings": np.array(["z", "a", "m"]),
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("online", [False, True])
def test_kinds_of_labels(kind, online):
    y = NAMES[kind][Y]
    forest = MondrianForestClassifier(n_estimators=20, random_state=0)
    if online:
        for part in np.array_split(SHUFFLED, 7):
            forest.partial_fit(X[part], y[part])
    else:
        forest.fit(X, y)
    assert np.array_equal(forest.classes_, np.unique(y))
    assert forest.classes_.dtype == y.dtype
    assert forest.score(X, y) == 1.0


def test_bools():
    forest = MondrianForestClassifier(n_estimators=20, random_state=0).fit(X, Y == 1)
    assert forest.classes_.tolist() == [False, True]
    assert forest.predict(X).dtype == bool
    assert forest.score(X, Y == 1) == 1.0


@pytest.mark.parametrize("dtype", ["category", "string", "object"])
def test_pandas_series(dtype):
    y = pd.Series(NAMES["strings"][Y]).astype(dtype)
    forest = MondrianForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    assert forest.score(X, y) == 1.0


def test_new_classes_appear():
    """Classes come one after the other, the last in sorted order first."""
    forest = MondrianForestClassifier(n_estimators=10, random_state=0)
    names = np.array(["a", "bb", "ccc"])
    known = []
    for k in (2, 0, 1):
        forest.partial_fit(X[k == Y], names[Y[k == Y]])
        known.append(names[k])
        assert forest.classes_.tolist() == sorted(known)
        assert forest.predict_proba(X).shape == (len(Y), len(known))
    assert forest.score(X, names[Y]) == 1.0
    twin = MondrianForestClassifier(n_estimators=10, random_state=0)
    for k in (2, 0, 1):
        twin.partial_fit(X[k == Y], Y[k == Y], classes=[0, 1, 2])
    assert np.array_equal(forest.predict_proba(X), twin.predict_proba(X))
    assert np.array_equal(forest.trees_[0].count.sum(axis=0), twin.trees_[0].count.sum(axis=0))


def test_new_string_classes_may_be_longer():
    forest = MondrianForestClassifier(n_estimators=2, random_state=0).partial_fit(X[:2], ["a", "b"])
    forest.partial_fit(X[2:4], ["a rather long name", "b"])
    assert forest.classes_.tolist() == ["a", "a rather long name", "b"]


def test_declared_classes_that_never_come():
    forest = MondrianForestClassifier(n_estimators=10, random_state=0)
    forest.partial_fit(X, Y, classes=[0, 1, 2, 9, 5])
    assert forest.classes_.tolist() == [0, 1, 2, 5, 9]
    probabilities = forest.predict_proba(X + 1.0)
    assert probabilities.shape == (len(Y), 5)
    assert (probabilities[:, 3:] > 0).all() and (probabilities[:, 3:] < 0.2).all()
    assert np.array_equal(probabilities[:, 3], probabilities[:, 4])
    forest.partial_fit(X[:5], Y[:5], classes=[3])
    assert forest.classes_.tolist() == [0, 1, 2, 3, 5, 9]


def test_far_away_falls_back_to_the_prior_over_known_classes():
    forest = MondrianForestClassifier(n_estimators=50, random_state=0)
    forest.partial_fit(X, Y, classes=[0, 1, 2, 9])
    far = forest.predict_proba(np.full((1, 4), 1e6))
    assert np.abs(far - 0.25).max() < 0.01


def test_one_class():
    forest = MondrianForestClassifier(n_estimators=3).fit(X, np.full(len(Y), "only"))
    assert np.array_equal(forest.predict_proba(X), np.ones((len(Y), 1)))
    assert forest.predict(X[:2]).tolist() == ["only", "only"]


@pytest.mark.parametrize("batch", [1, 50])
def test_three_thousand_classes(batch):
    """Every label is its own class, so the representation of label sets changes."""
    rng = np.random.default_rng(0)
    n, n_classes = 3_000, 3_000
    centres = rng.random((n_classes, 5))
    y = rng.permutation(n_classes)
    X = centres[y]
    n = 500 if batch == 1 else n
    forest = MondrianForestClassifier(n_estimators=5, random_state=0)
    for start in range(0, n, batch):
        forest.partial_fit(X[start : start + batch], y[start : start + batch])
    assert len(forest.classes_) == n
    assert forest.score(X[:n], y[:n]) > 0.95
    forest._forest.check_invariants()


def test_more_than_64_classes_equal_fewer_with_the_same_data():
    """The representation of label sets changes beyond 64 classes; predictions do not."""
    rng = np.random.default_rng(1)
    X, y = rng.random((300, 3)), rng.integers(60, size=300)
    few = MondrianForestClassifier(n_estimators=5, lifetime=3.0, random_state=0)
    many = MondrianForestClassifier(n_estimators=5, lifetime=3.0, random_state=0)
    switched = MondrianForestClassifier(n_estimators=5, lifetime=3.0, random_state=0)
    few.partial_fit(X, y, classes=range(60)).partial_fit(X + 0.1, y)
    many.partial_fit(X, y, classes=range(100)).partial_fit(X + 0.1, y)
    switched.partial_fit(X, y, classes=range(60)).partial_fit(X + 0.1, y, classes=range(100))
    for first, second in zip(few.trees_, many.trees_):
        assert np.array_equal(first.count, second.count[:, :60])
    assert np.array_equal(many.predict_proba(X), switched.predict_proba(X))
    for forest in (few, many, switched):
        forest._forest.check_invariants()


def test_more_than_64_classes_of_which_no_tree_has_met_one():
    """A reservoir turns away the sample that declares them, so label sets stay words."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    y = (X[:, 0] > 0.5).astype(int)
    forest = MondrianForestClassifier(n_estimators=5, reservoir=20, random_state=0)
    forest.partial_fit(X, y).partial_fit(X[:1], y[:1], classes=range(100))
    probabilities = forest.predict_proba(X)
    assert np.abs(probabilities.sum(axis=1) - 1.0).max() < 1e-12
    assert (probabilities[:, 2:] == probabilities[:, 2:3]).all()
    assert forest.score(X, y) > 0.8
