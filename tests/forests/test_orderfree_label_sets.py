"""Sets of classes, and weights of classes, of the order-free classifier."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onlineforest import ModelFileError, OnlineForestClassifier, load
from onlineforest._core import WEIGHT_OF_ONE
from onlineforest._files.container import read
from onlineforest._forests.orderfree.label_calibration import SetScores, balanced, masses_above
from support.model_files import changed, saved

RNG = np.random.default_rng(21)


def noisy(n, rng=RNG):
    """Samples of three classes, of which the third is rare, with noise."""
    X = rng.normal(size=(n, 4)).round(2)
    p = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
    y = np.where(rng.random(n) < p, "yes", "no").astype("U4")
    y[(X[:, 2] > 1) & (rng.random(n) < 0.3)] = "rare"
    return X, y


X, Y = noisy(1600)
QUERIES, TRUE = noisy(4000)


def covered(forest, sets, true=TRUE):
    return sets[np.arange(len(true)), np.searchsorted(forest.classes_, true)]


def test_masses_above_are_those_of_more_probable_classes():
    probabilities = RNG.dirichlet(np.ones(5), size=50)
    probabilities[:20] = np.round(probabilities[:20], 1)  # some are equal
    found = masses_above(probabilities)
    for row, above in zip(probabilities, found, strict=True):
        for i, p in enumerate(row):
            more = [q for j, q in enumerate(row) if q > p or (q == p and j < i)]
            assert above[i] == pytest.approx(sum(more), abs=1e-12)
        assert above[row.argmax()] == 0


def test_a_threshold_is_the_conformal_quantile():
    labels, once = np.zeros(9, np.uint64), np.full(9, WEIGHT_OF_ONE)
    scores = SetScores(labels, np.arange(9) / 10, once)
    assert scores.threshold(0.5) == 0.4  # the fifth of nine and one more
    assert scores.threshold(0.9) == 0.8
    assert scores.threshold(0.91) == np.inf
    assert scores.threshold(0.1) == 0.0
    assert scores.threshold(0.9, label=1) == np.inf  # no sample of this class
    doubled = SetScores(labels, scores.scores, 2 * once)
    assert doubled.threshold(0.5) == 0.4 and doubled.threshold(0.94) == 0.8


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n_trees", [10, 40])
def test_sets_cover_and_are_not_larger_than_they_must(n_trees, coverage):
    forest = OnlineForestClassifier(n_trees, random_state=0).fit(X, Y)
    sets = forest.predict_set(QUERIES, coverage)
    accuracy = forest.score(QUERIES, TRUE)
    share = covered(forest, sets).mean()
    assert share >= coverage - 0.03  # 200 samples calibrate
    assert share <= max(coverage, accuracy) + 0.04
    assert sets.any(axis=1).all()
    # The most probable class is in each set, and no class without those that are more probable.
    probabilities = forest.predict_proba(QUERIES)
    least = np.where(sets, probabilities, 2).min(axis=1)
    most = np.where(sets, -1, probabilities).max(axis=1)
    assert (least >= most).all()


def test_sets_are_wider_for_more_coverage_and_where_the_forest_is_less_sure():
    forest = OnlineForestClassifier(20, random_state=0).fit(X, Y)
    narrow, wide = forest.predict_set(QUERIES, 0.8), forest.predict_set(QUERIES, 0.95)
    assert (narrow <= wide).all() and narrow.sum() < wide.sum()
    sizes, surest = wide.sum(axis=1), forest.predict_proba(QUERIES).max(axis=1)
    assert surest[sizes == 1].mean() > surest[sizes > 1].mean() + 0.1


def test_each_class_is_covered_by_itself():
    forest = OnlineForestClassifier(20, random_state=0).fit(X, Y)
    together, apart = (
        covered(forest, forest.predict_set(QUERIES, 0.9, per_class=each)) for each in (False, True)
    )
    rare = TRUE == "rare"
    assert together[rare].mean() < 0.8 < 0.85 < apart[rare].mean()
    for label in ("yes", "no"):
        assert apart[label == TRUE].mean() > 0.86


def test_few_samples_give_sets_of_all_classes():
    forest = OnlineForestClassifier(10, random_state=0).fit(X[:40], Y[:40])  # five calibrate
    assert forest.predict_set(QUERIES[:9], 0.9).all()
    assert not forest.predict_set(QUERIES[:99], 0.5).all()


def test_sets_follow_a_stream():
    images, digits = load_digits(return_X_y=True)
    forest = OnlineForestClassifier(10, random_state=0)
    forest.partial_fit(images[:100], digits[:100])
    inside = []
    for start in range(100, 1700, 50):
        batch = slice(start, start + 50)
        sets = forest.predict_set(images[batch], 0.9)
        inside.extend(sets[np.arange(50), np.searchsorted(forest.classes_, digits[batch])])
        forest.partial_fit(images[batch], digits[batch])
    assert np.mean(inside) > 0.87
    later = OnlineForestClassifier(10, random_state=0).fit(images[:1700], digits[:1700])
    queries = images[1700:]
    forest.recalibrate()
    assert (forest.predict_set(queries, 0.97) == later.predict_set(queries, 0.97)).all()


def test_copies_and_histories_give_equal_sets():
    forest = OnlineForestClassifier(12, random_state=0).fit(X, Y)
    expected = forest.predict_set(QUERIES, 0.9, per_class=True)
    other = OnlineForestClassifier(12, random_state=0, n_jobs=2)
    other.partial_fit(QUERIES[:300], TRUE[:300])
    other.predict_set(QUERIES[:2])
    for part in np.array_split(RNG.permutation(len(X)), 7):
        other.partial_fit(X[part], Y[part])
    other.forget(QUERIES[:300], TRUE[:300])
    assert (other.predict_set(QUERIES, 0.9, per_class=True) == expected).all()
    # It lags.
    forest.partial_fit(X[:100] + 1, Y[:100]).predict_set(QUERIES, 0.9)
    for copied in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert (copied.predict_set(QUERIES, 0.9) == forest.predict_set(QUERIES, 0.9)).all()
        assert (copied.predict_proba(QUERIES) == forest.predict_proba(QUERIES)).all()


def test_sets_need_calibration():
    for forest in (
        OnlineForestClassifier(9, random_state=0),
        OnlineForestClassifier(10, calibrate=False, random_state=0),
    ):
        with pytest.raises(AttributeError, match="calibrate=True, with at least 10 trees"):
            forest.fit(X[:100], Y[:100]).predict_set(X[:2])
    forest = OnlineForestClassifier(10, random_state=0).fit(X[:100], Y[:100])
    for coverage in (0.0, 1.0, np.nan, -1):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            forest.predict_set(X[:2], coverage)


# Weights of classes


def test_a_dict_weighs_samples_by_their_class():
    weights = {"rare": 5.0, "no": 0.5}
    forest = OnlineForestClassifier(12, class_weight=weights, random_state=0)
    of_samples = np.where(Y == "rare", 5.0, np.where(Y == "no", 0.5, 1.0))
    other = OnlineForestClassifier(12, random_state=0).fit(X, Y, of_samples)
    assert forest.fit(X, Y).digest_ == other.digest_
    assert (forest.predict_proba(QUERIES) == other.predict_proba(QUERIES)).all()
    stream = OnlineForestClassifier(12, class_weight=weights, random_state=0)
    stream.partial_fit(X[:700], Y[:700]).partial_fit(X[:9], Y[:9], sample_weight=np.full(9, 3.0))
    for x, y in zip(X[700:], Y[700:], strict=True):
        stream.learn_one(x, y)
    stream.learn_one(X[0], "rare", sample_weight=2)
    stream.forget(X[:1], ["rare"])
    assert stream.n_samples_stored_ == len(X) + 9
    twice = np.concatenate([of_samples[:9] * 3, of_samples])
    both = np.concatenate([X[:9], X]), np.concatenate([Y[:9], Y])
    expected = OnlineForestClassifier(12, random_state=0).fit(*both, twice)
    assert stream.digest_ == expected.digest_


def test_more_weight_finds_more_of_a_rare_class():
    plain = OnlineForestClassifier(20, random_state=0).fit(X, Y)
    rare = TRUE == "rare"
    recall = (plain.predict(QUERIES)[rare] == "rare").mean()
    for class_weight in ({"rare": 8}, "balanced"):
        forest = OnlineForestClassifier(20, class_weight=class_weight, random_state=0).fit(X, Y)
        assert (forest.predict(QUERIES)[rare] == "rare").mean() > recall + 0.05


def test_balanced_changes_predictions_alone():
    plain = OnlineForestClassifier(20, random_state=0).fit(X, Y)
    forest = OnlineForestClassifier(20, class_weight="balanced", random_state=0).fit(X, Y)
    assert forest.digest_ == plain.digest_
    weights = np.array([np.sum(label == Y) for label in forest.classes_])
    product = plain.predict_proba(QUERIES) / weights
    expected = product / product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(forest.predict_proba(QUERIES), expected, rtol=1e-12)
    assert (forest.predict_proba_one(QUERIES[0]) == forest.predict_proba(QUERIES[:1])[0]).all()
    assert (forest.predict_set(QUERIES, 0.9) == plain.predict_set(QUERIES, 0.9)).all()
    # Exact after forgetting.
    forest.partial_fit(X[:200], ["rare"] * 200).forget(X[:200], ["rare"] * 200)
    np.testing.assert_allclose(forest.predict_proba(QUERIES), expected, rtol=1e-12)


def test_a_declared_class_without_samples_stays_improbable():
    forest = OnlineForestClassifier(10, class_weight="balanced", random_state=0)
    forest.partial_fit(X[:500], Y[:500], classes=["new", "no", "rare", "yes"])
    probabilities = forest.predict_proba(QUERIES)
    assert probabilities[:, 0].max() < 0.2
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert balanced(np.array([[0.5, 0.5]]), np.zeros(2)).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "2", None, True])
def test_bad_weights_of_classes_are_refused(weight):
    forest = OnlineForestClassifier(10, class_weight={"no": weight})
    with pytest.raises(ValueError, match="class_weight must give each class a finite number"):
        forest.fit(X, Y)
    with pytest.raises(ValueError, match="class_weight"):
        OnlineForestClassifier(10, class_weight="even").fit(X, Y)


def test_weights_of_classes_must_not_change():
    weights = {"no": 2.0}
    forest = OnlineForestClassifier(10, class_weight=weights, random_state=0).fit(X, Y)
    weights["no"] = 3.0
    with pytest.raises(ValueError, match="class_weight"):
        forest.partial_fit(X, Y)


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        (Y, {"rare": 2.5, "no": 1}),
        (np.searchsorted(np.unique(Y), Y), {0: 2, np.int64(1): 0.5}),
        (Y == "yes", {True: 2, np.False_: 0.25}),
    ],
)
def test_weights_of_classes_are_saved(labels, weights):
    forest = OnlineForestClassifier(10, class_weight=weights, random_state=0).fit(X, labels)
    copied = load(io.BytesIO(saved(forest)))
    assert copied.class_weight == weights
    assert copied.partial_fit(X[:50], labels[:50]).digest_ == (
        forest.partial_fit(X[:50], labels[:50]).digest_
    )


@pytest.mark.parametrize(
    "bad", [[["no"]], [[["no"], 1]], [["no", "1"]], {"no": 1}, [1], [[None, 1]]]
)
def test_bad_weights_of_classes_in_a_file_are_refused(bad):
    forest = OnlineForestClassifier(10, class_weight={"no": 2}, random_state=0).fit(X, Y)
    data = saved(forest)
    parameters = json.loads(read(io.BytesIO(data)).metadata["parameters"])
    parameters["class_weight"] = {"dict": bad}
    with pytest.raises(ModelFileError, match="class_weight"):
        load(io.BytesIO(changed(data, {"parameters": parameters}, {})))
