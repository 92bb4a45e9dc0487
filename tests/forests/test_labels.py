"""Labels of any sortable kind, and classes that appear while learning."""

from __future__ import annotations

import enum
import io

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import onlineforest
from onlineforest import MondrianForestClassifier, OnlineForestClassifier
from support.model_files import saved

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


# Text that NumPy would change


class Colour(str, enum.Enum):  # noqa: UP042 - NumPy takes its name for its text
    RED = "red"
    BLUE = "blue"


class Fruit(enum.StrEnum):
    FIG = "fig"
    APPLE = "apple"


each_family = pytest.mark.parametrize("family", [MondrianForestClassifier, OnlineForestClassifier])
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda labels: np.array(labels, dtype=object),
    "pandas": lambda labels: pd.Series(labels, dtype=object),
}


def few(family, **parameters):
    return family(n_estimators=10, random_state=0, **parameters)


@each_family
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", [Colour, Fruit])
def test_members_of_a_string_enumeration_are_labels_by_their_text(family, container, kind):
    members = [list(kind)[i % 2] for i in range(20)]
    texts = [member.value for member in members]
    rows, y = X[:20], CONTAINERS[container](members)
    plain = few(family).fit(rows, texts)
    forest = few(family).fit(rows, y)
    stream = few(family)
    for x, member in zip(rows, members, strict=True):
        stream.learn_one(x, member)
    declared = few(family).partial_fit(rows, y, classes=CONTAINERS[container](list(kind)))
    for other in (forest, stream, declared):
        assert other.classes_.tolist() == sorted(set(texts))
        assert {type(label) for label in other.predict(rows).tolist()} == {str}
        assert {type(other.predict_one(x)) for x in rows} == {str}
        assert other.n_samples_stored_ == 20
    assert np.array_equal(forest.predict_proba(rows), plain.predict_proba(rows))
    assert forest.score(rows, y) == plain.score(rows, texts)
    forest.forget(rows[:10], CONTAINERS[container](members[:10]))
    assert forest.n_samples_stored_ == 10
    if container in ("list", "tuple"):
        assert forest.classes_.dtype == plain.classes_.dtype


def test_class_weights_are_those_of_the_text():
    members = [list(Colour)[i % 2] for i in range(20)]
    for weights in ({"red": 3.0}, {Colour.RED: 3.0}):
        weighted = few(OnlineForestClassifier, class_weight=weights).fit(X[:20], members)
        stream = few(OnlineForestClassifier, class_weight=weights)
        for x, member in zip(X[:20], members, strict=True):
            stream.learn_one(x, member)
        assert stream.digest_ == weighted.digest_
        assert weighted.digest_ != few(OnlineForestClassifier).fit(X[:20], members).digest_


NUL = ["a", "a\0", "a\0\0", "b"]


@each_family
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_label_that_ends_with_nul_is_itself(family, container):
    labels = [NUL[i % 4] for i in range(24)]
    rows = np.arange(24.0)[:, np.newaxis]
    whole = few(family).fit(rows, CONTAINERS[container](labels))
    one, after = few(family), few(family).partial_fit(rows[:5], CONTAINERS[container](labels[:5]))
    for x, label in zip(rows, labels, strict=True):
        one.learn_one(x, label)
    for x, label in zip(rows[5:], labels[5:], strict=True):
        after.learn_one(x, label)
    declared = few(family).partial_fit(rows[:1], ["b"], classes=CONTAINERS[container](NUL))
    declared.partial_fit(rows[1:], CONTAINERS[container](labels[1:]))
    for forest in (whole, one, after, declared):
        assert forest.classes_.tolist() == sorted(NUL)
    if family is OnlineForestClassifier:
        assert whole.digest_ == one.digest_ == after.digest_
    assert set(whole.predict(rows).tolist()) <= set(NUL)
    file = io.BytesIO()
    whole.save(file)
    file.seek(0)
    again = onlineforest.load(file)
    assert again.classes_.tolist() == sorted(NUL)
    for forest in (whole, one, after, again):
        forest.forget(rows[1:2], CONTAINERS[container](["a\0"]))
        with pytest.raises(ValueError, match="1 of 1 samples are not stored"):
            forest.forget(rows[:1], CONTAINERS[container](["a\0"]))
        assert forest.n_samples_stored_ == 23


def test_a_level_that_ends_with_nul_is_itself():
    rows = [["a"], ["a\0"], ["b"], ["a\0\0"]] * 5
    y = [0, 1, 0, 1] * 5
    forest = few(OnlineForestClassifier, categorical_features=[0]).fit(rows, y)
    stream = few(OnlineForestClassifier, categorical_features=[0])
    for x, label in zip(rows, y, strict=True):
        stream.learn_one(x, label)
    frame = few(OnlineForestClassifier).fit(pd.DataFrame(rows, columns=["text"]), y)
    assert forest.levels_ == stream.levels_ == {0: ["a", "a\0", "a\0\0", "b"]}
    assert forest.digest_ == stream.digest_ == frame.digest_


def test_the_width_of_texts_does_not_depend_on_the_history():
    """An array of texts is as wide as the longest, and a slice of it as wide as the array."""
    slice_of_wide = np.array(["no", "maybe"])[:1]
    one = OnlineForestClassifier(10, random_state=0).partial_fit(X[:1], slice_of_wide)
    other = OnlineForestClassifier(10, random_state=0).learn_one(X[0], "no")
    again = OnlineForestClassifier(10, random_state=0).learn_one(X[0], "maybe").keep_latest(0)
    again.partial_fit(X[:1], slice_of_wide)
    assert one.classes_.dtype == other.classes_.dtype == again.classes_.dtype == "<U2"
    assert saved(one) == saved(other)
    assert again._own_metadata()["class_codes"] == one._own_metadata()["class_codes"]
