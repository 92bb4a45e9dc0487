"""Values may be missing (NaN) in samples and in queries."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import onlineforest
from onlineforest import MondrianForestClassifier, MondrianForestRegressor
from support.bits import assert_same
from support.interrupts import CtrlC

KINDS = {"classifier": MondrianForestClassifier, "regressor": MondrianForestRegressor}
each_kind = pytest.mark.parametrize("kind", KINDS)


def with_gaps(X, share=0.2, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def iris(kind, n=150):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(3).permutation(150)[:n]
    return X[order], y[order] if kind == "classifier" else X[order, 2] + 0.1 * y[order]


def new_forest(kind, **parameters):
    return KINDS[kind](**{"n_estimators": 7, "random_state": 0, **parameters})


def stored_rows(forest):
    """The row of each sample, with what is filled in; equal samples are stored once."""
    state = forest._forest.get_state()
    rows = state["rows"].reshape(-1, forest.n_features_in_)
    return rows[state["sample_of"]] if "sample_of" in state else rows


def answers(forest, X):
    if isinstance(forest, MondrianForestClassifier):
        return {"proba": forest.predict_proba(X), "novelty": forest.novelty(X)}
    mean, std = forest.predict(X, return_std=True)
    quantiles = forest.predict_quantiles(X, [0.1, 0.5, 0.9])
    return {"mean": mean, "std": std, "quantiles": quantiles, "novelty": forest.novelty(X)}


@each_kind
@pytest.mark.parametrize("weights", ["learned", "range", None])
def test_given_what_is_filled_in_the_forest_is_that_of_complete_rows(kind, weights):
    X, y = iris(kind)
    X = X + np.random.default_rng(4).normal(scale=0.01, size=X.shape)  # no two are filled in alike
    forest = new_forest(kind, feature_weights=weights).fit(with_gaps(X), y)
    filled = stored_rows(forest)
    assert np.isfinite(filled).all() and not np.array_equal(filled, X.astype(np.float32))
    complete = new_forest(kind, feature_weights=weights).fit(filled, y)
    assert_same(answers(forest, X), answers(complete, X))
    for tree, twin in zip(forest.trees_, complete.trees_):
        assert np.array_equal(tree.split_location, twin.split_location, equal_nan=True)
        assert np.array_equal(tree.lower, twin.lower)


@each_kind
def test_what_is_filled_in_was_seen_in_that_feature(kind):
    X, y = iris(kind)
    gaps = with_gaps(X)
    gaps[:, 1] = np.nan  # never seen
    filled = stored_rows(new_forest(kind).fit(gaps, y))
    for d in (0, 2, 3):
        assert set(filled[:, d]) == set(gaps[~np.isnan(gaps[:, d]), d].astype(np.float32))
    assert (filled[:, 1] == 0).all()
    assert np.array_equal(filled[~np.isnan(gaps)], gaps[~np.isnan(gaps)].astype(np.float32))


@each_kind
def test_missing_values_are_filled_in_from_neighbours(kind):
    """A feature determined by another is filled in far better than by chance."""
    X, y = iris(kind)
    X = np.column_stack([X[:, 2], 10 * X[:, 2], X[:, 1]])
    gaps = X.copy()
    gaps[::3, 1] = np.nan
    error = stored_rows(new_forest(kind).fit(gaps, y))[::3, 1] - X[::3, 1]
    assert np.abs(error).mean() < 0.1 * X[:, 1].std()


@each_kind
@pytest.mark.parametrize("keep", [{}, {"window": 60}, {"reservoir": 60}], ids=str)
def test_one_by_one_and_threads(kind, keep):
    X, y = iris(kind)
    gaps = with_gaps(X)
    one, two = new_forest(kind, **keep), new_forest(kind, n_jobs=2, **keep)
    one.partial_fit(gaps[:40], y[:40])
    two.partial_fit(gaps[:40], y[:40])
    for x, value in zip(gaps[40:], y[40:]):
        one.learn_one(x, value)
    values = y[40:].astype(np.float64 if kind == "regressor" else np.int32)
    n_classes = () if kind == "regressor" else (3,)
    rows = np.ascontiguousarray(gaps[40:], dtype=np.float32)
    two._forest.learn(rows, values, *n_classes, 2, one_by_one=True)
    assert_same(one._forest.get_state(), two._forest.get_state())
    assert_same(answers(one, gaps), answers(two, gaps))
    one._forest.check_invariants()


@each_kind
def test_saved_and_pickled_forests_continue_identically(kind):
    X, y = iris(kind)
    gaps = with_gaps(X)
    forest = new_forest(kind).fit(gaps[:60], y[:60])
    file = io.BytesIO()
    forest.save(file)
    file.seek(0)
    for twin in (onlineforest.load(file), pickle.loads(pickle.dumps(forest))):
        rest = copy.deepcopy(forest).partial_fit(gaps[60:], y[60:])
        twin.partial_fit(gaps[60:], y[60:])
        assert_same(rest._forest.get_state(), twin._forest.get_state())
        assert_same(answers(rest, gaps), answers(twin, gaps))


@each_kind
def test_what_is_predicted_for_a_row_does_not_depend_on_the_others(kind):
    X, y = iris(kind)
    gaps = with_gaps(X, 0.4)
    forest = new_forest(kind).fit(gaps[:100], y[:100])
    together = answers(forest, gaps[100:])
    alone = [answers(forest, gaps[i : i + 1]) for i in range(100, 150)]
    for name, values in together.items():
        np.testing.assert_allclose(
            values, np.concatenate([each[name] for each in alone]), rtol=1e-9
        )
    one = forest.predict_proba_one if kind == "classifier" else forest.predict_one
    row = next(i for i in range(100, 150) if np.isnan(gaps[i]).any())
    expected = together["proba" if kind == "classifier" else "mean"][row - 100]
    np.testing.assert_allclose(one(gaps[row]), expected, rtol=1e-9)


def test_a_missing_value_follows_both_children():
    X = np.repeat([[0.0, 5.0], [1.0, 5.0]], 20, axis=0)
    forest = MondrianForestClassifier(20, random_state=0).fit(X, [0] * 20 + [1] * 20)
    left, right, both = forest.predict_proba([[0.0, 5.0], [1.0, 5.0], [np.nan, 5.0]])[:, 0]
    assert right < 0.1 < both < 0.9 < left
    assert forest.apply([[np.nan, 5.0]]).shape == (1, 20)


def test_a_missing_value_of_a_regressor_follows_both_children():
    X = np.repeat([[0.0, 5.0], [1.0, 5.0]], 20, axis=0)
    forest = MondrianForestRegressor(20, random_state=0).fit(X, [0.0] * 20 + [10.0] * 20)
    queries = [[0.0, 5.0], [1.0, 5.0], [np.nan, 5.0]]
    mean, std = forest.predict(queries, return_std=True)
    assert mean[0] + 2 < mean[2] < mean[1] - 2
    assert std[2] > 2 + max(std[0], std[1])
    low, high = forest.predict_interval(queries, coverage=0.8)[2]
    assert low < 2 and high > 8
    density = forest.log_density(np.array(queries)[[2, 2, 2]], [0.0, 10.0, 50.0])
    assert min(density[:2]) > density[2]


@each_kind
def test_what_is_missing_does_not_cut_off(kind):
    X, y = iris(kind)
    forest = new_forest(kind, n_estimators=20, feature_weights="range").fit(X, y)
    far = X.copy()
    far[:, 0] = 1e6
    assert forest.novelty(far).min() > 0.9
    assert forest.novelty(np.where(far == 1e6, np.nan, far)).mean() < 0.2


@each_kind
def test_what_is_filled_in_does_not_cut_off(kind):
    """Not even where two values never seen together are filled in, each from another sample."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.arange(200) % 2 if kind == "classifier" else np.arange(200.0)
    X[::2, 0] = X[1::2, 1] = np.nan
    forest = new_forest(kind, feature_weights=[1.0, 1.0, 0.0]).fit(X, y)
    queries = rng.normal(size=(50, 3))
    assert forest.novelty(queries).mean() > 0.01
    queries[:, :2] = np.nan
    assert (forest.novelty(queries) == 0).all()


@each_kind
def test_rows_without_any_value_are_valid(kind):
    X, y = iris(kind)
    nothing = np.full((1, 4), np.nan)
    forest = new_forest(kind).partial_fit(nothing, y[:1])
    forest.partial_fit(nothing, y[1:2]).partial_fit(X[2:], y[2:])
    forest._forest.check_invariants()
    for values in answers(forest, nothing).values():
        assert np.isfinite(values).all()
    unknown = np.full_like(X, np.nan)
    forest = new_forest(kind).fit(unknown, y)  # learns y alone
    for values in answers(forest, unknown[:3]).values():
        assert np.isfinite(values).all()


@each_kind
def test_forget_rows_with_gaps(kind):
    X, y = iris(kind)
    gaps = with_gaps(X)
    gaps[7] = gaps[3]
    y = y.copy()
    y[7] = y[3]
    forest = new_forest(kind).fit(gaps, y, ids=range(150))
    with pytest.raises(ValueError, match="rows 1"):
        forest.forget([gaps[3], stored_rows(forest)[3]], [y[3], y[3]])
    forest.forget(gaps[[3, 3, 20, 21]], y[[3, 3, 20, 21]])
    assert forest.ids_ == set(range(150)) - {3, 7, 20, 21}
    forest._forest.check_invariants()


@each_kind
def test_nothing_of_a_forgotten_sample_remains_after_a_refresh(kind):
    X, y = iris(kind)
    gaps = with_gaps(X, 0.5)
    known = ~np.isnan(gaps[:, 0])
    gaps[:, 0] = np.where(known, np.arange(150), np.nan)  # each value is that of one sample
    forest = new_forest(kind).fit(gaps, y, ids=range(150))
    values = stored_rows(forest)[~known, 0].astype(int)
    donor = int(np.bincount(values).argmax())
    forest.forget(ids=[donor])
    assert donor in stored_rows(forest)[:, 0]
    forest.refresh_weights()
    assert donor not in stored_rows(forest)[:, 0]
    forest._forest.check_invariants()


@each_kind
def test_a_feature_that_only_forgotten_samples_had_is_as_never_known(kind):
    X, y = iris(kind)
    gaps = X.copy()
    gaps[50:, 2] = np.nan
    forest = new_forest(kind).fit(gaps, y).forget(gaps[:50], y[:50])
    assert (stored_rows(forest.refresh_weights())[:, 2] == 0).all()
    assert forest.feature_weights_[2] == 0


@each_kind
def test_rows_learned_one_by_one_are_filled_in_from_earlier_rows_only(kind):
    X, y = iris(kind)
    gaps = X.copy()
    gaps[1:120, 1] = np.nan
    rows = np.ascontiguousarray(gaps, dtype=np.float32)
    values = y.astype(np.float64 if kind == "regressor" else np.int32)
    one, many = new_forest(kind), new_forest(kind)
    for forest in (one, many):
        forest.partial_fit(gaps[:1], y[:1], **({"classes": [0, 1, 2]} if len(set(y)) == 3 else {}))
    for x, value in zip(gaps[1:], y[1:]):
        one.learn_one(x, value)
    n_classes = () if kind == "regressor" else (3,)
    many._forest.learn(rows[1:], values[1:], *n_classes, 2, one_by_one=True)
    assert_same(one._forest.get_state(), many._forest.get_state())


@pytest.mark.slow
def test_quantiles_agree_with_the_deviation():
    X, y = load_diabetes(return_X_y=True)
    forest = MondrianForestRegressor(20, random_state=0).fit(X[:150], y[:150])
    queries = with_gaps(X[150:250], 0.4)
    levels = np.linspace(0.005, 0.995, 100)
    _, std = forest.predict(queries, return_std=True)
    of_quantiles = forest.predict_quantiles(queries, levels).std(axis=1)
    of_whole = forest.predict_quantiles(X[150:250], levels).std(axis=1)
    _, std_whole = forest.predict(X[150:250], return_std=True)
    ratio, usual = np.median(of_quantiles / std), np.median(of_whole / std_whole)
    assert abs(ratio / usual - 1) < 0.1


def test_filling_in_can_be_interrupted():
    """An interrupt after seconds of filling in: nothing is learned or changed."""
    rng = np.random.default_rng(0)
    X = with_gaps(rng.normal(size=(20_000, 300)), 0.3).astype(np.float32)
    y = rng.integers(0, 2, len(X))
    forest = MondrianForestClassifier(1, random_state=0).fit(X[:100], y[:100])
    state = forest._forest.get_state()
    with CtrlC(0.3) as interrupt, pytest.raises(KeyboardInterrupt):
        forest.partial_fit(X, y)
    assert interrupt.seconds_to_return < 1.0
    assert_same(forest._forest.get_state(), state)


def test_a_feature_that_appears_later_is_used():
    X, y = load_digits(n_class=2, return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(y), 2))
    late = np.where(np.arange(len(y)) < 60, np.nan, y)
    X = np.column_stack([noise, late])
    forest = MondrianForestClassifier(20, random_state=0)
    for start in range(0, 300, 20):
        forest.partial_fit(X[start : start + 20], y[start : start + 20])
    assert forest.score(X[300:], y[300:]) > 0.95
    assert forest.feature_importances_.argmax() == 2


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_as_good_as_filling_in_the_median_or_better():
    X, y = load_digits(return_X_y=True)
    gaps = with_gaps(X, 0.3)
    scores = []
    for seed in range(3):
        ours = MondrianForestClassifier(30, random_state=seed)
        median = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            MondrianForestClassifier(30, random_state=seed),
        )
        both = (each.fit(gaps[:1000], y[:1000]) for each in (ours, median))
        scores.append([each.score(gaps[1000:], y[1000:]) for each in both])
    ours, median = np.mean(scores, axis=0)
    assert ours > 0.88
    assert ours > median - 0.01


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_intervals_hold_where_values_are_missing():
    X, y = load_diabetes(return_X_y=True)
    gaps = with_gaps(X, 0.2)
    forest = MondrianForestRegressor(30, random_state=0).fit(gaps[:300], y[:300])
    low, high = forest.predict_interval(gaps[300:], coverage=0.9).T
    assert 0.8 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.98


@each_kind
def test_tags(kind):
    tags = new_forest(kind).__sklearn_tags__().input_tags
    assert tags.allow_nan and tags.sparse
