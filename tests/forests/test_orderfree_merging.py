"""Order-free forests of parts of the data become the forest of all of it, to the bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    merge,
)
from onlineforest._forests.orderfree.holdings import MergeLesson
from support.bits import assert_same

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 3)).round(1)
X[RNG.random(X.shape) < 0.05] = np.nan
LABELS = np.array(["low", "middle", "high"])[
    (np.nan_to_num(X[:, 0]) > 0).astype(int) + (np.nan_to_num(X[:, 1]) > 0.7)
]
VALUES = np.nan_to_num(X[:, 0]) * 2 + RNG.normal(size=400)
KINDS = {"labels": (OnlineForestClassifier, LABELS), "numbers": (OnlineForestRegressor, VALUES)}
each_kind = pytest.mark.parametrize(("kind", "y"), KINDS.values(), ids=KINDS)


def new(kind, **parameters):
    return kind(**{"n_estimators": 7, "random_state": 0} | parameters)


def parts_of(kind, y, parts, **parameters):
    return [new(kind, **parameters).fit(X[part], y[part]) for part in parts]


@pytest.mark.parametrize("max_samples", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
@each_kind
def test_a_merged_forest_is_the_forest_of_all_samples(kind, y, seed, max_samples):
    """Parts are random; a sample that is in two of them counts twice."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 400, n) for n in rng.integers(1, 150, seed + 2)]
    forests = parts_of(kind, y, parts, max_samples=max_samples)
    whole = np.concatenate(parts)
    expected = new(kind, max_samples=max_samples).fit(X[whole], y[whole])
    before = [forest._forest.get_state() for forest in forests]
    merged = merge(forests)
    assert type(merged) is kind
    assert merged.digest_ == expected.digest_
    assert np.array_equal(merged.predict(X), expected.predict(X))
    assert merged.n_samples_seen_ == len(whole) and merged.verify()
    for forest, state in zip(forests, before, strict=True):
        assert_same(forest._forest.get_state(), state)
    for each in (merged, expected):
        each.partial_fit(X[:20], y[:20]).forget(X[parts[0][:1]], y[parts[0][:1]])
    assert merged.digest_ == expected.digest_


@each_kind
def test_a_forest_learns_from_others_in_the_order_given(kind, y):
    parts = [slice(100, 180), slice(0, 100), slice(180, 400)]
    one, *others = parts_of(kind, y, parts)
    assert one.learn_from(*others) is one
    expected = new(kind).fit(X, y)
    assert one.digest_ == expected.digest_
    one.keep_latest(220 + 10)  # all of the last one, ten of the second
    kept = np.r_[90:100, 180:400]
    assert one.digest_ == new(kind).fit(X[kept], y[kept]).digest_


@each_kind
def test_counts_and_ids_add_up(kind, y):
    one = new(kind).fit(X[:100], y[:100], ids=[f"a{i}" for i in range(100)])
    other = new(kind).fit(X[100:150], y[100:150])
    other.partial_fit(X[150:200], y[150:200], ids=range(50))
    other.forget(X[100:110], y[100:110]).forget(ids=[0, 1])
    one.forget(ids=["a3"]).learn_from(other)
    assert one.n_samples_seen_ == 200 and one.n_samples_stored_ == 187
    assert one.ids_ == {f"a{i}" for i in range(100) if i != 3} | set(range(2, 50))
    one.forget(ids=["a0", 49, 2])
    kept = np.r_[1:3, 4:100, 110:150, 153:199]
    assert one.digest_ == new(kind).fit(X[kept], y[kept]).digest_
    one.partial_fit(X[:1], y[:1], ids=["new"])
    assert one.n_samples_seen_ == 201 and "new" in one.ids_


def test_declared_and_new_classes_are_united():
    one = new(OnlineForestClassifier).partial_fit(X[:9], ["b"] * 9, classes=["b", "z"])
    other = new(OnlineForestClassifier).partial_fit(X[9:20], ["a"] * 11, classes=["a", "b", "y"])
    third = new(OnlineForestClassifier).partial_fit(X[20:25], ["c"] * 5, classes=["c", "longer"])
    third.keep_latest(0)
    merged = merge([one, other, third])
    assert merged.classes_.tolist() == ["a", "b", "c", "longer", "y", "z"]
    expected = new(OnlineForestClassifier).partial_fit(
        X[:20], ["b"] * 9 + ["a"] * 11, classes=["longer", "z", "y", "c", "b", "a"]
    )
    assert merged.digest_ == expected.digest_
    assert np.array_equal(merged.predict_proba(X), expected.predict_proba(X))
    merged.forget(X[9:20], ["a"] * 11)
    assert "a" in merged.classes_  # it was declared


@each_kind
def test_a_forest_without_samples_adds_nothing(kind, y):
    one, empty = parts_of(kind, y, [slice(0, 50), slice(50, 60)])
    empty.keep_latest(0)
    expected = one.digest_
    assert one.learn_from(empty).digest_ == expected
    assert one.n_samples_seen_ == 60 and one.n_samples_stored_ == 50
    assert one.learn_from().digest_ == expected
    assert empty.learn_from(one).digest_ == expected and empty.n_samples_seen_ == 70


DIFFERENCES = {
    "parameters": (
        {"min_samples_split": 9},
        r"min_samples_split is \d in forests\[0\] and 9 in forests\[2\]",
    ),
    "trees": ({"n_estimators": 5}, r"n_estimators is 7 in forests\[0\] and 5 in forests\[2\]"),
    "seed": ({"random_state": 1}, r"the seed is \d+ in forests\[0\] and \d+ in forests\[2\]"),
    "window": ({"window": 90}, r"window is 90 in forests\[2\]"),
    "reservoir": ({"reservoir": 90}, r"reservoir is 90 in forests\[2\]"),
}


@pytest.mark.parametrize(("parameters", "message"), DIFFERENCES.values(), ids=DIFFERENCES)
@each_kind
def test_forests_that_differ_in_more_than_samples_are_refused(kind, y, parameters, message):
    forests = parts_of(kind, y, [slice(0, 100), slice(100, 150)])
    forests.append(new(kind, **parameters).fit(X[150:200], y[150:200]))
    with pytest.raises(ValueError, match=message):
        merge(forests)
    before = forests[0]._forest.get_state()
    with pytest.raises(ValueError, match=message.replace(r"forests\[0\]", "this forest")):
        forests[0].learn_from(forests[1], new(kind).fit(X, y), forests[2])
    assert_same(forests[0]._forest.get_state(), before)


def test_forests_of_other_features_are_refused():
    one = new(OnlineForestRegressor).fit(X[:50], VALUES[:50])
    with pytest.raises(
        ValueError, match=r"number of features is 3 in this forest and 2 in forests"
    ):
        one.learn_from(new(OnlineForestRegressor).fit(X[:, :2], VALUES))
    named = [
        new(OnlineForestRegressor).fit(pd.DataFrame(X, columns=list(names)), VALUES)
        for names in ("abc", "abd")
    ]
    with pytest.raises(
        ValueError, match=r"feature_names_in_ is None in this forest and \['a', 'b'"
    ):
        one.learn_from(named[0])
    with pytest.raises(ValueError, match=r"is \['a', 'b', 'c'\] in .* and \['a', 'b', 'd'\] in"):
        merge(named)
    again = new(OnlineForestRegressor).fit(pd.DataFrame(X[:5], columns=list("abc")), VALUES[:5])
    assert merge([again, named[0]]).feature_names_in_.tolist() == list("abc")


def test_equal_ids_are_refused():
    forests = [
        new(OnlineForestRegressor).fit(X[part], VALUES[part], ids=ids)
        for part, ids in [
            (slice(0, 90), range(90)),
            (slice(90, 120), range(90, 120)),
            (slice(120, 130), [*range(5, 10), 700, 701, 702, 95, 703]),
        ]
    ]
    message = r"samples of forests\[0\] and of forests\[2\] have 5, 6, 7, 8 and 9\."
    with pytest.raises(ValueError, match=message):
        merge(forests)
    forests[0].forget(ids=range(5, 10))
    with pytest.raises(ValueError, match=r"of forests\[1\] and of forests\[2\] have 95\."):
        merge(forests)
    forests[2].forget(ids=[95])
    assert merge(forests).n_samples_stored_ == 90 - 5 + 30 + 9


def test_labels_of_other_kinds_are_refused():
    one = new(OnlineForestClassifier).fit(X[:60], LABELS[:60])
    other = new(OnlineForestClassifier).fit(X[60:90], np.arange(30) % 2)
    before = one.digest_
    with pytest.raises(ValueError, match=r"forests\[0\] has labels that are numbers, but"):
        one.learn_from(other)
    assert one.digest_ == before
    big = new(OnlineForestClassifier).fit(X[:5], np.array([0, 1, 2, 3, 2**63 + 1], dtype=np.uint64))
    with pytest.raises(ValueError, match="change their values"):
        big.learn_from(new(OnlineForestClassifier).fit(X[5:7], np.array([-1, 2**53 + 1])))


def test_only_order_free_forests_of_one_class_are_united():
    one = new(OnlineForestClassifier).fit(X[:60], LABELS[:60])
    mondrian = MondrianForestClassifier(7, random_state=0).fit(np.nan_to_num(X[:60]), LABELS[:60])
    with pytest.raises(TypeError, match=r"forests\[0\] is of type MondrianForestClassifier"):
        one.learn_from(mondrian)
    message = r"merge needs order-free forests.* but forests\[1\] is of type MondrianForestCl"
    with pytest.raises(TypeError, match=message):
        merge([one, mondrian])
    with pytest.raises(TypeError, match=r"forests\[0\] is of type OnlineForestRegressor"):
        one.learn_from(new(OnlineForestRegressor).fit(X, VALUES))
    with pytest.raises(TypeError, match=r"forests\[0\] is of type list"):
        one.learn_from([one])
    with pytest.raises(ValueError, match=r"forests\[0\] is this forest itself"):
        one.learn_from(one)
    with pytest.raises(NotFittedError, match=r"forests\[0\], a OnlineForestClassifier"):
        one.learn_from(new(OnlineForestClassifier))
    with pytest.raises(NotFittedError):
        new(OnlineForestClassifier).learn_from(one)


def test_what_merge_refuses():
    one = new(OnlineForestClassifier).fit(X[:60], LABELS[:60])
    other = new(OnlineForestRegressor).fit(X[60:90], VALUES[60:90])
    with pytest.raises(ValueError, match=r"at least one forest\. Got none"):
        merge([])
    with pytest.raises(TypeError, match=r"forests\[1\] is of type int"):
        merge([one, 3])
    with pytest.raises(
        TypeError, match=r"forests\[0\] is a \w+Classifier and forests\[1\] a \w+Reg"
    ):
        merge([one, other])
    with pytest.raises(NotFittedError, match=r"forests\[1\], a OnlineForestClassifier, has"):
        merge([one, new(OnlineForestClassifier)])


@each_kind
def test_merge_neither_changes_its_forests_nor_shares_with_them(kind, y):
    forests = parts_of(kind, y, [slice(0, 60), slice(60, 200)])
    digests = [forest.digest_ for forest in forests]
    merged = merge(forest for forest in forests)
    assert type(merged) is kind and merged.n_samples_stored_ == 200
    digest = merged.digest_
    assert [forest.digest_ for forest in forests] == digests
    forests[0].partial_fit(X[200:], y[200:])
    assert merged.digest_ == digest
    merged.partial_fit(X[200:], y[200:])
    assert forests[1].digest_ == digests[1] and forests[0].n_samples_stored_ == 260
    assert merge([forests[1]]).digest_ == digests[1]


@pytest.mark.parametrize("place", ["teach", "finish"])
@each_kind
def test_an_interrupt_leaves_all_samples_or_none(kind, y, place, monkeypatch):
    """Before the samples are stored, or after: then the next call records the rest."""
    one = new(kind).fit(X[:90], y[:90])
    other = new(kind).fit(X[90:], y[90:], ids=range(310)).keep_latest(300)
    before = one.digest_
    real, n_calls = getattr(MergeLesson, place), 0

    def interrupted(self, *arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise KeyboardInterrupt
        real(self, *arguments)

    monkeypatch.setattr(MergeLesson, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.learn_from(other)
    if place == "teach":
        assert one.digest_ == before and one.n_samples_seen_ == 90 and not one.ids_
        return
    kept = np.r_[:90, 100:400]
    assert one.ids_ == set(range(10, 310)) and one.n_samples_seen_ == 400
    assert one.digest_ == new(kind).fit(X[kept], y[kept]).digest_
