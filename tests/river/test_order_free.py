"""The order-free forest as a model of River: a function of its samples, keys and labels."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest.river import OnlineForestClassifier
from river import datasets

SEGMENTS = list(datasets.ImageSegments().take(300))
KEYS = sorted(SEGMENTS[0][0])


def learned(samples, **parameters):
    model = OnlineForestClassifier(**{"n_estimators": 5, "seed": 3, **parameters})
    for x, y in samples:
        model.learn_one(x, y)
    return model


def fitted(samples, keys=KEYS):
    """The estimator's `fit` on the table of the samples."""
    X = np.array([[x[key] for key in keys] for x, _ in samples])
    forest = onlineforest.OnlineForestClassifier(5, random_state=3)
    return forest.fit(X, [y for _, y in samples])


def shuffled(samples, seed):
    """The samples in another order, each with its keys in another order."""
    rng = np.random.default_rng(seed)
    for i in rng.permutation(len(samples)):
        x, y = samples[i]
        yield {key: x[key] for key in rng.permutation(list(x)).tolist()}, y


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_keys_and_samples_equals_fit(seed):
    model = learned(shuffled(SEGMENTS, seed))
    assert model.features == KEYS
    assert model.estimator.digest_ == fitted(SEGMENTS).digest_
    assert model.estimator.verify()
    for x, _ in SEGMENTS[:20]:
        row = [x[key] for key in KEYS]
        expected = model.estimator.predict_proba_one(row)
        assert list(model.predict_proba_one(x).values()) == expected.tolist()


def test_single_samples_and_mini_batches_may_alternate():
    model = learned(SEGMENTS[250:])
    batch = pd.DataFrame([x for x, _ in SEGMENTS[:250]])
    model.learn_many(batch[batch.columns[::-1]], pd.Series([y for _, y in SEGMENTS[:250]]))
    assert model.estimator.digest_ == fitted(SEGMENTS).digest_


def test_keys_that_are_numbers_have_the_order_of_a_table():
    X, y = np.array([list(x.values()) for x, _ in SEGMENTS]), [y for _, y in SEGMENTS]
    model = learned([(dict(enumerate(row)), label) for row, label in zip(X, y)])
    assert model.features == list(range(X.shape[1]))  # not 0, 1, 10, …
    estimator = onlineforest.OnlineForestClassifier(5, random_state=3)
    assert model.estimator.digest_ == estimator.fit(X, y).digest_


def test_forgotten_samples_leave_no_trace():
    model = learned(shuffled(SEGMENTS, 1))
    rows = [[x[key] for key in KEYS] for x, _ in SEGMENTS[:100]]
    model.estimator.forget(rows, [y for _, y in SEGMENTS[:100]])
    assert model.estimator.digest_ == fitted(SEGMENTS[100:]).digest_


def test_a_window_holds_the_latest_samples():
    model = learned(SEGMENTS, window=120)
    assert model.estimator.digest_ == fitted(SEGMENTS[-120:]).digest_


def test_a_label_leaves_predictions_with_its_last_sample():
    model = learned([({"a": float(i)}, "old") for i in range(9)], window=10)
    for i in range(9):
        model.learn_one({"a": float(i)}, "new")
    assert list(model.predict_proba_one({"a": 1.0})) == ["new", "old"]
    model.learn_one({"a": 0.0}, "new")
    assert list(model.predict_proba_one({"a": 1.0})) == ["new"]
    assert model.predict_many(pd.DataFrame({"a": [1.0]})).tolist() == ["new"]
    assert list(model.predict_proba_many(pd.DataFrame({"a": []}))) == ["new"]


def test_a_model_that_has_forgotten_all_predicts_as_if_it_had_learned_nothing():
    model = learned(SEGMENTS)
    model.estimator.keep_latest(0)
    x = SEGMENTS[0][0]
    assert model.predict_proba_one(x) == {} and model.predict_one(x) is None
    assert model.predict_many(pd.DataFrame([x])).tolist() == [None]
    model.learn_one(x, "again")
    assert model.predict_one(x) == "again"


def test_new_keys_have_their_place_among_all_keys():
    model = learned([({"m": float(i)}, i % 2) for i in range(9)])
    model.estimator.keep_latest(0)
    samples = [({"z": 1.0 * i, "m": 7.0 - i, "a": 2.0 * i}, i % 2) for i in range(9)]
    for x, y in samples:
        model.learn_one(x, y)
    assert model.features == ["a", "m", "z"]
    assert model.estimator.digest_ == fitted(samples, ["a", "m", "z"]).digest_
    assert model.estimator.n_samples_seen_ == 18


MIXED = [
    ({"a": float(i % 7), "b": float(i % 5)}, [1, "one", 2.5, ("x", 1)][i % 4]) for i in range(80)
]


@pytest.mark.parametrize("n_kinds", [2, 3, 4])
def test_labels_of_several_kinds_in_any_order_give_the_same_forest(n_kinds):
    samples = [sample for i, sample in enumerate(MIXED) if i % 4 < n_kinds]
    model = learned(samples)
    labels = {"1": 1, "'one'": "one", "2.5": 2.5, "('x', 1)": ("x", 1)}
    texts = {label: text for text, label in labels.items()}
    expected = fitted([(x, texts[y]) for x, y in samples], ["a", "b"])
    assert set(model.estimator.classes_) == {texts[y] for _, y in samples}
    batched = OnlineForestClassifier(5, seed=3)
    batched.learn_many(
        pd.DataFrame([x for x, _ in samples]), pd.Series([y for _, y in samples], dtype=object)
    )
    sorted_by_label = sorted(samples, key=lambda sample: str(sample[1]))
    for other in (model, batched, learned(shuffled(samples, 5)), learned(sorted_by_label)):
        assert other.estimator.digest_ == expected.digest_
        probabilities = other.predict_proba_one({"a": 1.0, "b": 2.0})
        assert [texts[label] for label in probabilities] == expected.classes_.tolist()


def test_another_kind_of_label_keeps_the_order_of_arrival():
    samples = [({"a": float(i)}, i % 3) for i in range(40)]
    model = learned(samples, window=30)
    late = [({"a": float(i)}, "late") for i in range(10)]
    for x, y in late:
        model.predict_one(x)
        model.learn_one(x, y)
    held = [*samples[20:], *late]
    expected = learned([(x, str(y) if y != "late" else "'late'") for x, y in held])
    assert model.estimator.n_samples_seen_ == 50
    assert model.estimator.digest_ == expected.estimator.digest_
    assert set(model.predict_proba_one({"a": 0.0})) == {0, 1, 2, "late"}


def test_a_refused_label_of_another_kind_changes_nothing():
    model = learned([({"a": float(i)}, i % 3) for i in range(20)])
    before, digest = pickle.dumps(model), model.estimator.digest_
    with pytest.raises(TypeError, match="Feature 'a' must be a number"):
        model.learn_one({"a": "text"}, "another kind")
    with pytest.raises(TypeError, match="must be hashable"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series(["another kind", [1]]))
    assert pickle.dumps(model) == before and model.estimator.digest_ == digest


def test_copies_have_the_same_digest_and_go_their_own_way():
    model = learned(MIXED)
    digest = model.estimator.digest_
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.estimator.digest_ == digest
        twin.learn_one({"a": 1.0, "b": 2.0}, frozenset("new"))
        assert twin.estimator.digest_ != digest == model.estimator.digest_
    assert frozenset("new") not in model.predict_proba_one({"a": 1.0, "b": 2.0})


def test_probabilities_are_those_of_the_estimator_calibrated():
    model = learned(SEGMENTS, n_estimators=10)
    samples = [x for x, _ in SEGMENTS[:40]]
    forest = model.estimator
    rows = np.array([[x[key] for key in model.features] for x in samples])
    expected = forest.predict_proba(rows)
    assert not np.allclose(expected, forest._predict(rows)[0])  # which are not calibrated
    for x, row in zip(samples, expected.tolist(), strict=True):
        found = model.predict_proba_one(x)
        assert [found[label] for label in forest.classes_.tolist()] == row
        assert model.predict_one(x) == max(found, key=found.get)
    many = model.predict_proba_many(pd.DataFrame(samples))
    assert (many[forest.classes_.tolist()].to_numpy() == expected).all()
    assert model.predict_many(pd.DataFrame(samples)).tolist() == forest.predict(rows).tolist()


def test_a_weight_is_a_number_of_copies():
    once, copied = OnlineForestClassifier(seed=1), OnlineForestClassifier(seed=1)
    for i, (x, y) in enumerate(SEGMENTS[:60]):
        once.learn_one(x, y, w=i % 3)
        for _ in range(i % 3):
            copied.learn_one(x, y)
    assert once.estimator.digest_ == copied.estimator.digest_
    before = once.estimator.digest_
    once.learn_one({"of no": 1.0}, "weight", w=0)
    with pytest.raises(ValueError, match=r"sample_weight must be at least 0\. Got -1"):
        once.learn_one(*SEGMENTS[0], w=-1)
    with pytest.raises(ValueError, match=r"sample_weight must be at least 0\. Got -1"):
        once.learn_one({"of no": 1.0}, "weight", w=-1)
    assert once.estimator.digest_ == before and "of no" not in once.features


def test_balanced_classes_are_those_of_the_estimator():
    model = OnlineForestClassifier(class_weight="balanced", seed=1)
    for x, y in SEGMENTS:
        model.learn_one(x, y)
    row = np.array([SEGMENTS[0][0][key] for key in model.features])
    found = list(model.predict_proba_one(SEGMENTS[0][0]).values())
    assert found == model.estimator.predict_proba_one(row).tolist()
    with pytest.raises(ValueError, match=r"class_weight must be None or 'balanced'\. Got"):
        OnlineForestClassifier(class_weight={1: 2})
