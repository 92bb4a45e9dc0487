"""Missing values (NaN) in the samples and queries of order-free forests: nothing is filled in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from onlineforest import OnlineForestClassifier, OnlineForestRegressor

RNG = np.random.default_rng(0)
X = RNG.integers(0, 12, (250, 4)).astype(np.float32)
Y = ((X[:, 0] + X[:, 1]) // 6).astype(int)
GAPS = np.where(RNG.random(X.shape) < 0.3, np.nan, X).astype(np.float32)
GAPS[:5] = np.nan  # rows without any cell

each_kind = pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])


def small(kind, **parameters):
    return kind(**{"n_estimators": 5, "random_state": 0, **parameters})


def answers(forest, rows):
    if isinstance(forest, OnlineForestClassifier):
        return forest.predict_proba(rows)
    return np.column_stack([*forest.predict(rows, return_std=True), forest.predict_interval(rows)])


@each_kind
@pytest.mark.parametrize("n_batches", [2, 9, 250])
def test_any_order_gives_the_same_forest(kind, n_batches):
    whole = small(kind).fit(GAPS, Y)
    forest = small(kind, n_jobs=2).fit(X[:30] + 1, Y[:30])
    for part in np.array_split(np.random.default_rng(n_batches).permutation(250), n_batches):
        forest.partial_fit(GAPS[part], Y[part])
        forest.predict(GAPS[:1])
    forest.forget(X[:30] + 1, Y[:30])
    assert forest.digest_ == whole.digest_ and forest.verify()
    assert np.array_equal(answers(forest, GAPS), answers(whole, GAPS))
    assert np.array_equal(forest.apply(GAPS), whole.apply(GAPS))


@each_kind
def test_what_lacks_cells_can_be_forgotten(kind):
    forest = small(kind).fit(X, Y)
    before = forest.digest_
    forest.partial_fit(GAPS, Y)
    assert forest.digest_ != before
    assert forest.forget(GAPS[::-1], Y[::-1]).digest_ == before
    with pytest.raises(ValueError, match="not stored"):
        forest.forget(GAPS[:1], Y[:1])


@each_kind
def test_every_nan_is_the_same(kind):
    """Whatever bits it has (it is quiet: NumPy warns of others), of either precision, or None."""
    whole = small(kind).fit(GAPS, Y)
    other = GAPS.copy()
    bits = RNG.integers(0x7FC00000, 2**31, X.shape) | RNG.integers(0, 2, X.shape) << 31
    gone = np.isnan(GAPS)
    other.view(np.uint32)[gone] = bits[gone]
    assert len(set(other.view(np.uint32)[gone].tolist())) > 100
    frame = pd.DataFrame(GAPS).astype("Float64")
    assert frame.isna().to_numpy().sum() == gone.sum()
    objects = GAPS.astype(object)
    objects[gone] = None
    for rows in (other, -GAPS * -1, GAPS.astype(np.float64), objects):
        assert small(kind).fit(rows, Y).digest_ == whole.digest_
    assert small(kind).fit(frame.to_numpy(float, na_value=np.nan), Y).digest_ == whole.digest_
    one_by_one = small(kind)
    for x, y in zip(other, Y.tolist()):
        one_by_one.learn_one(x, y if kind is OnlineForestClassifier else float(y))
    assert one_by_one.digest_ == whole.digest_
    assert np.array_equal(answers(whole, other), answers(whole, GAPS))
    assert whole.forget(other[:9], Y[:9]).n_samples_stored_ == 241


@each_kind
def test_a_missing_cell_is_no_number(kind):
    digests = {
        small(kind).fit(np.nan_to_num(GAPS, nan=value), Y).digest_ for value in (0.0, -1.0, 99.0)
    }
    assert len({*digests, small(kind).fit(GAPS, Y).digest_}) == 4


@each_kind
def test_a_feature_that_is_missing_everywhere_is_never_cut(kind):
    rows = GAPS.copy()
    rows[:, 2] = np.nan
    forest = small(kind).fit(rows, Y)
    assert all((tree.split_dimension != 2).all() for tree in forest.trees_)
    assert forest.feature_importances_[2] == 0
    filled = rows.copy()
    filled[:, 2] = 3.0  # is ignored: no cut asks for it
    assert np.array_equal(answers(forest, filled), answers(forest, rows))
    nothing = small(kind).fit(np.full((50, 3), np.nan), Y[:50])
    assert all(tree.n_nodes == 1 for tree in nothing.trees_)
    if kind is OnlineForestRegressor:
        plain = small(kind, calibrate=False).fit(np.full((50, 3), np.nan), Y[:50])
        assert np.allclose(plain.predict(X[:4, :3]), Y[:50].mean(), rtol=1e-12)
    forest.partial_fit(X[:50], Y[:50])  # now it is there
    assert forest.verify()


@each_kind
def test_rows_without_any_cell(kind):
    forest = small(kind).fit(GAPS, Y)
    found = answers(forest, np.full((3, 4), np.nan))
    assert np.isfinite(found).all() and np.array_equal(found[0], found[2])
    assert np.isfinite(answers(small(kind).fit(X, Y), np.full((1, 4), np.nan))).all()
    whole = small(kind).fit(X, Y)
    for query in (GAPS[:9], X[:9]):
        expected = whole.predict(query)
        assert [whole.predict_one(x) for x in query] == expected.tolist()


@each_kind
def test_trees_say_where_missing_values_go(kind):
    forest = small(kind, calibrate=False).fit(GAPS, Y)
    n_left = n_asking = n_surrogates = 0
    for index, tree in enumerate(forest.trees_):
        for x, leaf in zip(GAPS[:60], forest.apply(GAPS[:60])[:, index]):
            at = tree.root
            while not tree.is_leaf[at]:
                cell = x[tree.split_dimension[at]]
                goes_left = cell <= tree.split_location[at]
                if np.isnan(cell):
                    goes_left = tree.missing_left[at]
                    n_left += int(goes_left)
                    for k, feature in enumerate(tree.surrogate_dimension[at]):
                        if feature >= 0 and not np.isnan(x[feature]):
                            is_below = x[feature] <= tree.surrogate_location[at, k]
                            goes_left = is_below != tree.surrogate_reversed[at, k]
                            n_surrogates += 1
                            break
                at = (tree.left if goes_left else tree.right)[at]
            assert at == leaf
        n_asking += np.isposinf(tree.split_location).sum()
    assert n_left > 0 and n_asking > 0 and n_surrogates > 0


@each_kind
def test_whether_a_cell_is_missing_is_learned(kind):
    """The other features are noise, and the values of this one, too."""
    rows = RNG.normal(size=(400, 3))
    y = RNG.random(400) < 0.5
    rows[y, 1] = np.nan
    forest = small(kind, n_estimators=20).fit(rows[:300], y[:300] * 1)
    wrong = np.abs(forest.predict(rows[300:]) - y[300:]).mean()
    assert wrong < 0.02
    assert forest.feature_importances_.argmax() == 1


@each_kind
def test_what_is_predicted_for_a_row_does_not_depend_on_the_others(kind):
    forest = small(kind).fit(GAPS[:150], Y[:150])
    together = answers(forest, GAPS[150:])
    alone = [answers(forest, GAPS[i : i + 1])[0] for i in range(150, 250)]
    assert np.array_equal(together, alone)
    one = forest.predict_proba_one if kind is OnlineForestClassifier else forest.predict_one
    expected = together if kind is OnlineForestClassifier else together[:, 0]
    assert np.array_equal([one(x) for x in GAPS[150:]], expected)


@each_kind
def test_tags(kind):
    tags = small(kind).__sklearn_tags__().input_tags
    assert tags.allow_nan and tags.sparse


def test_a_feature_that_appears_later_is_used():
    X, y = load_digits(n_class=2, return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(y), 2))
    late = np.where(np.arange(len(y)) < 60, np.nan, y)
    X = np.column_stack([noise, late])
    forest = small(OnlineForestClassifier, n_estimators=20)
    for start in range(0, 300, 20):
        forest.partial_fit(X[start : start + 20], y[start : start + 20])
    assert forest.score(X[300:], y[300:]) > 0.95
    assert forest.feature_importances_.argmax() == 2


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_as_good_as_filling_in_the_median_or_better():
    X, y = load_digits(return_X_y=True)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    scores = []
    for seed in range(3):
        ours = OnlineForestClassifier(30, random_state=seed)
        median = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            OnlineForestClassifier(30, random_state=seed),
        )
        both = (each.fit(gaps[:1000], y[:1000]) for each in (ours, median))
        scores.append([each.score(gaps[1000:], y[1000:]) for each in both])
    ours, median = np.mean(scores, axis=0)
    assert ours > 0.86
    assert ours > median - 0.01


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_intervals_hold_where_values_are_missing():
    X, y = load_diabetes(return_X_y=True)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    forest = OnlineForestRegressor(30, random_state=0).fit(gaps[:300], y[:300])
    low, high = forest.predict_interval(gaps[300:], coverage=0.9).T
    assert 0.8 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.98
