"""Levels of numbers: exact sums of each level beside the trees."""

import io
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from onlineforest import OnlineForestRegressor, load
from onlineforest._core import WEIGHT_OF_ONE, moments_of_leaves
from onlineforest._forests.orderfree.number_calibration import _level_share
from reference.order_free_levels import (
    LevelSample,
    deviation_of_numbers,
    level_share,
    strength_of_numbers,
)
from support.model_files import saved

RNG = np.random.default_rng(4)
N, N_TOWNS = 900, 90
TOWNS = RNG.integers(0, N_TOWNS, N)
COLORS = RNG.integers(0, 3, N)
NUMBERS = RNG.normal(size=N)
EFFECTS = 2.0 * RNG.normal(size=N_TOWNS)
Y = EFFECTS[TOWNS] + np.sin(3 * NUMBERS) + 0.3 * RNG.normal(size=N)
WEIGHTS = RNG.integers(1, 5, N) / 2


def table(places):
    towns = [f"town {i}" if i else None for i in TOWNS[places]]
    colors = np.array(["red", "green", "blue"])[COLORS[places]]
    return pd.DataFrame({"n": NUMBERS[places], "town": towns, "color": colors})


LEARNED, NEW = np.arange(600), np.arange(600, N)


def new(**parameters):
    return OnlineForestRegressor(**{"n_estimators": 8, "random_state": 1, **parameters})


@pytest.fixture(scope="module")
def forest():
    return new().fit(table(LEARNED), Y[LEARNED], WEIGHTS[LEARNED])


def answers(forest):
    X = table(NEW)
    return np.column_stack([*forest.predict(X, return_std=True), forest.predict_interval(X)])


def test_sums_of_levels_are_those_of_the_definition(forest):
    units = (WEIGHTS * WEIGHT_OF_ONE).astype(int)
    samples = [
        LevelSample((int(TOWNS[i]), int(COLORS[i])), float(Y[i]), int(units[i])) for i in LEARNED
    ]
    votes = forest._forest.votes(1, 0, 1)
    values, _, _, _, deviations, strengths = votes
    expected = [strength_of_numbers(samples, feature) for feature in (0, 1)]
    assert strengths == pytest.approx(expected, rel=1e-9) and expected[0] > 0
    by_value = {sample.label: sample for sample in samples}
    for value, deviation in zip(values.tolist()[:40], deviations.tolist()):
        own = by_value[value]
        plain = deviation_of_numbers(samples, own.levels, strengths, own)
        assert deviation == pytest.approx(plain, rel=1e-9, abs=1e-12)
    rows = forest._rows.queries(forest, table(NEW[:20]))
    found = forest._forest.level_deviations(rows, strengths)
    for i, deviation in zip(NEW[:20], found):
        plain = deviation_of_numbers(samples, (int(TOWNS[i]), int(COLORS[i])), strengths)
        assert deviation == pytest.approx(plain, rel=1e-9, abs=1e-12)


def test_the_share_is_that_of_the_definition(forest):
    values, weights, stops, leaves, deviations, _ = forest._forest.votes()
    found = forest._calibration()
    k = stops.tolist().index(found.stop_weight)
    errors = values - moments_of_leaves(leaves[k])[0][:, 0]
    rows = list(zip(errors.tolist(), deviations.tolist(), (weights / WEIGHT_OF_ONE).tolist()))
    assert found.level_share == pytest.approx(level_share(rows), rel=1e-12)
    assert 0.5 < found.level_share <= 2.0


def test_levels_count_only_if_they_pay_as_two_samples():
    one, deviations = np.ones(50), np.tile([1.0, -1.0], 25)
    errors = np.tile([1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 2.0, 2.0, -2.0, -2.0], 5)
    for size in (0.0, 0.05, 0.25, 0.3, 0.5, 3.0):
        both = errors + size * deviations
        rows = list(zip(both.tolist(), deviations.tolist(), one.tolist()))
        assert _level_share(both, deviations, one) == pytest.approx(level_share(rows), rel=1e-12)
    assert _level_share(errors + 3.0 * deviations, deviations, one) == 2.0
    assert _level_share(errors - 3.0 * deviations, deviations, one) == 0.0
    assert _level_share(errors + 0.1 * deviations, deviations, one) == 0.0
    assert _level_share(errors, 0.0 * deviations, one) == 0.0


def test_many_levels_are_predicted_better_than_by_trees_alone(forest):
    X, y = table(NEW), Y[NEW]
    rows, stop = forest._rows.queries(forest, X), forest._stop_weight()
    alone = forest._forest.predict(rows, 1, stop)[:, 0]
    error, of_trees = (np.sqrt(np.mean((p - y) ** 2)) for p in (forest.predict(X), alone))
    assert error < 0.7 * of_trees
    low, high = forest.predict_interval(X).T
    # With 150 calibrators and 300 new samples a standard error is 0.03.
    assert 0.78 < np.mean((low <= y) & (y <= high)) <= 1.0


def test_all_predictions_have_the_same_mean(forest):
    X = table(NEW[:30])
    mean, std = forest.predict(X, return_std=True)
    assert np.array_equal(mean, forest.predict(X))
    one = [forest.predict_one(x, return_std=True) for x in X.to_dict("records")]
    assert one == list(zip(mean.tolist(), std.tolist()))
    assert [forest.predict_one(x) for x in X.to_dict("records")] == mean.tolist()
    found, core = forest._calibration(), forest._forest
    moments = core.predict(forest._rows.queries(forest, X), 1, found.stop_weight)
    middle = mean + found.quantile(0.5) * found.deviations(moments, 8)
    assert np.array_equal(forest.predict_quantiles(X, 0.5), middle)


def test_a_level_without_samples_deviates_by_nothing(forest):
    X = table(NEW[:5]).assign(town="nowhere", color="none")
    rows, found = forest._rows.queries(forest, X), forest._calibration()
    assert not forest._forest.level_deviations(rows, np.array(found.strengths)).any()


def test_levels_that_tell_nothing_have_no_influence():
    y = NUMBERS + 0.3 * RNG.normal(size=N)
    forest = new().fit(table(LEARNED), y[LEARNED])
    assert forest._calibration().level_share == 0 and forest._calibration().strengths == ()
    core = forest._forest
    expected = core.predict(forest._rows.queries(forest, table(NEW)), 1, forest._stop_weight())
    assert np.array_equal(forest.predict(table(NEW)), expected[:, 0])


def test_the_way_has_no_influence(forest):
    X, y, w = table(LEARNED), Y[LEARNED], WEIGHTS[LEARNED]
    other = new(n_jobs=3)
    order = RNG.permutation(600)
    extra = table(NEW)
    other.partial_fit(extra, Y[NEW] + 50.0)
    for part in np.array_split(order, 7):
        other.partial_fit(X.iloc[part], y[part], sample_weight=w[part])
        other.predict(extra)
    other.forget(extra, Y[NEW] + 50.0)
    assert other.digest_ == forest.digest_ and other.verify()
    assert np.array_equal(answers(other), answers(forest))
    assert np.array_equal(answers(pickle.loads(pickle.dumps(other))), answers(forest))


def test_sums_do_not_lag():
    forest = new().fit(table(LEARNED), Y[LEARNED])
    before, x = forest._calibration(), table(NEW[:1]).assign(town="new town")
    rows = forest._rows.queries(forest, x)
    many = pd.concat([x] * 30).assign(n=RNG.normal(size=30))
    forest.partial_fit(many, np.full(30, 40.0))
    assert forest._calibration() is before
    strengths = np.array(before.strengths)
    assert forest._forest.level_deviations(rows, strengths)[0] > 10
    forest.forget(many, np.full(30, 40.0))
    assert not (forest._forest.level_deviations(rows, strengths) > 10).any()


def test_files_keep_a_calibration_that_lags(forest):
    lagging = pickle.loads(pickle.dumps(forest)).partial_fit(table(NEW[:20]), Y[NEW[:20]])
    data = saved(lagging)
    copy = load(io.BytesIO(data))
    assert copy._calibration().strengths == forest._calibration().strengths
    assert np.array_equal(answers(copy), answers(lagging))
    assert saved(copy) == data


def test_a_file_with_other_strengths_is_refused(forest):
    plain = forest._calibration().plain() | {"strengths": [1.0], "arrival": 1, "held": 1}
    with pytest.raises(ValueError, match="has 1 strengths of 2 categorical features"):
        forest._fitted_of(plain)


@pytest.mark.parametrize("strengths", [[], [1.0], [1.0] * 3])
def test_the_core_needs_a_strength_for_each_feature(forest, strengths):
    rows = forest._rows.queries(forest, table(NEW[:2]))
    with pytest.raises(ValueError, match=f"there are {len(strengths)} strengths .* of 2 features"):
        forest._forest.level_deviations(rows, np.array(strengths, dtype=float))


def test_large_and_equal_numbers_are_no_problem():
    for y in (np.full(600, 7.0), 1e150 * np.sign(EFFECTS[TOWNS[LEARNED]])):
        forest = new().fit(table(LEARNED), y)
        found = answers(forest)
        assert np.isfinite(found).all()
    assert (new().fit(table(LEARNED), np.full(600, 7.0)).predict(table(NEW)) == 7.0).all()


def test_one_call_of_the_core_adds_trees_and_levels(forest):
    core, found = forest._forest, forest._calibration()
    rows = forest._rows.queries(forest, table(NEW))
    assert found.level_share > 0
    deviations = core.level_deviations(rows, np.array(found.strengths))
    trees = core.predict(rows, 1, found.stop_weight)
    together = core.predict(rows, 1, *found.how)
    assert (together[:, 0] == trees[:, 0] + found.level_share * deviations).all()
    assert (together[:, 1:] == trees[:, 1:]).all()
    for share, strengths, message in (
        (-1.0, np.zeros(2), "-1.0.*at least 0"),
        (math.inf, np.zeros(2), "inf.*finite"),
        (1.0, np.zeros(1), "1 strengths.*2 features"),
        (1.0, None, "0 strengths.*2 features"),
    ):
        with pytest.raises(ValueError, match=message):
            core.predict(rows, 1, 0, share, strengths)
