"""The evidence of levels in the order-free classifier."""

from __future__ import annotations

import io
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from onlineforest import ModelFileError, ModelTooLargeError, OnlineForestClassifier, load
from onlineforest._core import (
    WEIGHT_OF_ONE,
    OrderFreeLabelForest,
    calibration_by,
    probabilities_by,
)
from onlineforest._files.container import read
from reference.order_free_levels import LevelSample, evidence, with_levels
from support.model_files import changed, saved

RNG = np.random.default_rng(11)
N_LEVELS = 120


def rates(n, rng=RNG):
    """One column of levels with rates of their own, one of noise, and a number."""
    logits = 2 * np.random.default_rng(0).normal(size=N_LEVELS)
    codes, noise = rng.integers(N_LEVELS, size=n), rng.integers(N_LEVELS, size=n)
    number = rng.normal(size=n)
    p = 1 / (1 + np.exp(-logits[codes] - number))
    y = np.where(rng.random(n) < p, "yes", "no")
    return pd.DataFrame({"number": number, "code": codes.astype(str), "x": noise.astype(str)}), y


X, Y = rates(2000)
QUERIES, TRUE = rates(1000)


def forest_of(**parameters):
    return OnlineForestClassifier(12, random_state=3, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return forest_of().fit(X, Y)


def level_power_of(forest):
    return forest._how(calibrated=True)[3]


def test_levels_with_rates_of_their_own_are_learned(fitted):
    of_trees = fitted._forest.predict(fitted._rows.queries(fitted, QUERIES), 1, 1.0, 0.0)[1]
    of_trees = of_trees[:, fitted._targets.codes.codes]
    found = fitted.predict_proba(QUERIES)
    assert level_power_of(fitted) > 0.3
    assert roc_auc_score(TRUE, found[:, 1]) > roc_auc_score(TRUE, of_trees[:, 1]) + 0.03
    assert log_loss(TRUE, found) < log_loss(TRUE, of_trees) - 0.03
    assert np.array_equal(fitted.predict(QUERIES), fitted.classes_[found.argmax(axis=1)])
    one = [fitted.predict_proba_one(QUERIES.iloc[i : i + 1]) for i in range(20)]
    assert np.array_equal(one, found[:20])
    assert fitted.predict_one(QUERIES.iloc[:1]) == fitted.predict(QUERIES[:1])[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_and_probabilities_are_those_of_the_definition(weighted):
    rng = np.random.default_rng(7)
    n = 400
    weights = rng.choice([0.25, 1.0, 1.7, 3.0], n) if weighted else np.ones(n)
    labels = np.where(rng.random(n) < 0.1, "rare", Y[:n])
    forest = forest_of().fit(X[:n], labels, sample_weight=weights)
    core = forest._forest
    votes = core.votes(1, 0, 1)
    _, true, units, *_, found = votes
    assert found.shape == (len(true), 3) == (n // 8, 3)
    codes = forest._targets.codes.encode(labels)
    names = X[["code", "x"]].to_numpy()[:n].astype(int)
    stored = np.round(weights * WEIGHT_OF_ONE).astype(int)
    samples = [
        LevelSample(tuple(levels), code, weight)
        for levels, code, weight in zip(names.tolist(), codes.tolist(), stored.tolist())
    ]
    expected = {}
    for own in samples:
        by_label = evidence(own.levels, samples, own)
        expected[own.label, own.weight, tuple(by_label[c] for c in range(3))] = own
    near = np.array([[label, weight, *each] for label, weight, each in expected])
    for label, weight, each in zip(true, units, found):
        distance = np.abs(near - [label, weight, *each]).max(axis=1)
        assert distance.min() < 1e-9
    assert found.max() > 1
    rows = forest._rows.queries(forest, QUERIES[:50])
    _, raw = core.predict(rows)
    asked = [
        evidence(levels, samples) for levels in QUERIES[["code", "x"]][:50].astype(int).to_numpy()
    ]
    of_rows = [[by_label[c] for c in range(3)] for by_label in asked]
    want = [with_levels(p, e, 1.5, 0.7, 0.01) for p, e in zip(raw.tolist(), of_rows)]
    _, got = core.predict(rows, 1, 1.5, 0.01, 0, 0.7)
    assert np.allclose(got, want, rtol=1e-10, atol=1e-12)
    got = probabilities_by(*votes, 1.5, 0.01, 0.7)
    raw = probabilities_by(*votes, 1.0, 0.0, 0.0)
    want = [with_levels(p, e, 1.5, 0.7, 0.01) for p, e in zip(raw.tolist(), found.tolist())]
    assert np.allclose(got, want, rtol=1e-10, atol=1e-12)


def test_the_powers_have_the_least_loss(fitted):
    votes = fitted._forest.votes(1, 0, 1)
    _, true, *_, found = votes
    raw = probabilities_by(*votes, 1.0, 0.0, 0.0)
    _, power, spread, level_power = calibration_by(*votes, 12)

    def loss(power, level_power):
        rows = [
            with_levels(p, e, power, level_power, spread)[label]
            for p, e, label in zip(raw.tolist(), found.tolist(), true)
        ]
        penalty = 2 * math.log(power) ** 2 + level_power**2 / 2
        return penalty - sum(map(math.log, rows))

    least = loss(power, level_power)
    assert least < loss(power, 0.0) - 2
    for other in (0.9, 1.1):
        assert least < loss(power * other, level_power) + 0.01
        assert least < loss(power, level_power * other) + 0.01


def test_the_history_of_samples_has_no_influence(fitted):
    expected = fitted.predict_proba(QUERIES)
    other = forest_of(n_jobs=2).partial_fit(QUERIES[:300], TRUE[:300])
    other.predict_proba(QUERIES[:3])
    for part in np.array_split(np.random.default_rng(1).permutation(len(X)), 5):
        other.partial_fit(X.iloc[part], Y[part])
    other.forget(QUERIES[:300], TRUE[:300])
    assert np.array_equal(other.predict_proba(QUERIES), expected)
    for copied in (load(io.BytesIO(saved(fitted))), pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(copied.predict_proba(QUERIES), expected)
    halves = [forest_of().fit(X[:900], Y[:900]), forest_of().fit(X[900:], Y[900:])]
    assert np.array_equal(halves[0].learn_from(halves[1]).predict_proba(QUERIES), expected)


def test_only_the_level_power_lags_in_a_stream():
    forest = forest_of().fit(X[:1000], Y[:1000])
    before = level_power_of(forest)
    forest.partial_fit(X[1000:1050], Y[1000:1050])
    assert level_power_of(forest) == before > 0
    for copied in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(copied.predict_proba(QUERIES), forest.predict_proba(QUERIES))
    # The counts are those of the samples that are held now.
    other = forest_of().fit(X[:1050], Y[:1050])
    how = forest._how(calibrated=True)
    answers = [
        each._forest.predict(each._rows.queries(each, QUERIES), 1, *how) for each in (forest, other)
    ]
    assert np.array_equal(answers[0][1], answers[1][1])


def test_a_window_counts_only_what_it_holds():
    forest = forest_of(window=700)
    for begin in range(0, 2000, 250):
        forest.partial_fit(X[begin : begin + 250], Y[begin : begin + 250])
    later = forest_of().fit(X[1300:], Y[1300:])
    assert np.array_equal(forest.recalibrate().predict_proba(QUERIES), later.predict_proba(QUERIES))
    forest.keep_latest(0).partial_fit(X[:300], Y[:300])
    assert np.array_equal(
        forest.recalibrate().predict_proba(QUERIES),
        forest_of().fit(X[:300], Y[:300]).predict_proba(QUERIES),
    )


@pytest.mark.parametrize("column", ["random", "ids"])
def test_levels_that_tell_nothing_do_not_count(column):
    rng = np.random.default_rng(2)
    n = 1500
    levels = rng.integers(150, size=n) if column == "random" else np.arange(n)
    numbers = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-2 * numbers))
    table = pd.DataFrame({"number": numbers, "text": levels.astype(str)})
    assert level_power_of(forest_of().fit(table, y)) == 0.0


def test_unknown_levels_give_no_evidence(fitted):
    strange = QUERIES.assign(code="never seen", x="neither")
    core, rows = fitted._forest, fitted._rows.queries(fitted, strange)
    power, spread, stop, _ = fitted._how(calibrated=True)
    with_evidence = core.predict(rows, 1, *fitted._how(calibrated=True))[1]
    assert np.allclose(core.predict(rows, 1, power, spread, stop)[1], with_evidence, rtol=1e-12)


def test_uncalibrated_forests_count_no_levels(fitted):
    plain = forest_of(calibrate=False).fit(X, Y)
    assert level_power_of(plain) == 0.0
    rows = fitted._rows.queries(fitted, X.assign(code=np.arange(len(X)).astype(str)))
    sizes = []
    for calibrates in (False, True):  # no tree is grown
        core = OrderFreeLabelForest(12, 3, n_categorical=2, seed=1, calibrates=calibrates)
        core.set_labels(np.array([1, 2], np.uint64), np.zeros(2, np.uint8))
        core.learn(rows, (Y == "yes").astype(np.int32))
        sizes.append(core.nbytes)
    assert 80 * len(X) < sizes[1] - sizes[0] < 300 * len(X)


def test_bad_numbers_are_errors(fitted):
    core, rows = fitted._forest, fitted._rows.queries(fitted, QUERIES)
    for bad in (-0.1, 2.5, math.nan):
        with pytest.raises(ValueError, match=r"level_power must be in \[0, 2\], got"):
            core.predict(rows, 1, 1.0, 0.0, 0, bad)
    sums = core.masses(rows)
    with pytest.raises(ValueError, match="there are 0 rows for the sums of 1000"):
        core.finish(sums, 1.0, 0.0, 0.5)
    with pytest.raises(ValueError, match="there are 9 rows for the sums of 1000"):
        core.finish(sums, 1.0, 0.0, 0.5, rows[:9])
    answer, other = core.finish(sums, 2.0, 0.1, 0.5, rows), core.predict(rows, 1, 2.0, 0.1, 0, 0.5)
    assert np.array_equal(answer[1], other[1])
    *votes, found = core.votes(1, 0, 1)
    with pytest.raises(ValueError, match="entries of 'evidence' instead of"):
        calibration_by(*votes, found[:-1].copy(), 12)
    for bad in (-1.0, math.inf, math.nan):
        wrong = found.copy()
        wrong[3, 1] = bad
        with pytest.raises(ValueError, match="evidence must be finite and not negative, got"):
            calibration_by(*votes, wrong, 12)
    with pytest.raises(ValueError, match="needs evidence, but the votes have none"):
        probabilities_by(*votes, np.empty((len(found), 0)), 1.0, 0.0, 0.5)


def test_the_estimated_memory_of_a_file_includes_levels():
    def least_limit(**parameters):
        data = saved(forest_of(**parameters).fit(X[:300], Y[:300]))
        least, most = 0, 2**24
        while most - least > 1:
            middle = (least + most) // 2
            try:
                load(io.BytesIO(data), max_bytes=middle)
                most = middle
            except ModelTooLargeError:
                least = middle
        return most

    assert least_limit() - least_limit(calibrate=False) == pytest.approx(300 * 2 * 100, rel=0.2)


@pytest.mark.parametrize("bad", [-0.5, 2.1, "1", 1, None])
def test_files_with_a_bad_level_power_are_refused(bad):
    forest = forest_of().fit(X[:1000], Y[:1000]).partial_fit(X[:50], Y[:50])
    data = saved(forest)
    calibration = json.loads(read(io.BytesIO(data)).metadata["calibration"])
    assert calibration["level_power"] == level_power_of(forest)
    changed(data, {"calibration": calibration})
    with pytest.raises(ModelFileError, match="the level power of its calibration hold"):
        load(io.BytesIO(changed(data, {"calibration": calibration | {"level_power": bad}})))
