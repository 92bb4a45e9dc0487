"""Offsets, and the warning about distinct values that float32 does not keep apart."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone

import onlineforest
from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    merge,
)
from onlineforest._inputs.rounding import suspects

RNG = np.random.default_rng(7)
START = 1_700_000_000
N = 600
X = np.column_stack([RNG.normal(size=N), START + RNG.integers(0, 3600, N), RNG.normal(size=N)])
Y = (X[:, 1] // 600 % 2).astype(int)
OFFSETS = np.array([0, START, 0])
NEAR = X - OFFSETS  # whole numbers and float64 normals: rounded as with offsets
FRAME = pd.DataFrame(X, columns=["a", "time", "b"])
TABLE = FRAME.assign(city=RNG.choice(["Bonn", "Rome", "Lima"], N))[["a", "city", "time", "b"]]

ALL = (
    OnlineForestClassifier,
    OnlineForestRegressor,
    MondrianForestClassifier,
)
each_online = pytest.mark.parametrize("kind", ALL[:2])
each_kind = pytest.mark.parametrize("kind", ALL)
MESSAGE = r"Rows are stored as float32, .* became \d+ in column"


def new(kind, **parameters):
    return kind(10, random_state=3, **parameters)


def quiet(act):
    """The result of a call that must not warn: warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return act()


# The warning


@each_kind
@pytest.mark.parametrize(
    ("table", "column", "key"),
    [
        (X, 1, "1"),
        (X.tolist(), 1, "1"),
        (X.astype(np.int64), 1, "1"),
        (X.astype(object), 1, "1"),
        (FRAME, "time", "'time'"),
        (FRAME.astype({"time": "Int64"}), "time", "'time'"),
        (pl.DataFrame(dict(FRAME)), "time", "'time'"),
        (pa.table(dict(FRAME)), "time", "'time'"),
        (scipy.sparse.csr_matrix(X), 1, "1"),
        (scipy.sparse.coo_array(X), 1, "1"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_values_that_become_equal_are_told(kind, table, column, key, method):
    n_distinct, n_kept = len(np.unique(X[:, 1])), len(np.unique(X[:, 1].astype(np.float32)))
    forest = new(kind)
    with pytest.warns(UserWarning, match=MESSAGE) as caught:
        getattr(forest, method)(table, Y)
    (text,) = (str(warning.message) for warning in caught)
    assert f"{n_distinct} became {n_kept} in column {column!r}" in text
    assert caught[0].filename == __file__
    number = "1700001000"
    if kind in ALL[:2]:
        assert f"offsets={{{key}: {number}}}" in text
    else:
        assert f"{number} from column {key}" in text and "offsets" not in text


@each_online
def test_the_remedy_of_the_warning_silences_it(kind):
    forest = new(kind, offsets={"time": 1700001000})
    assert quiet(lambda: forest.fit(FRAME, Y)).n_samples_stored_ == N


HARMLESS = {
    "normal draws": RNG.normal(size=100_000),
    "uniform draws": RNG.uniform(1, 2, 100_000),
    "latitudes of a city": RNG.uniform(52.45, 52.55, 100_000),
    "kelvin": RNG.normal(290, 5, 100_000),
    "a constant": np.full(1000, 0.1),
    "a large constant": np.full(1000, 1.7e9 + 0.1),
    "a constant with rounding errors": 0.1 * (1 + 1e-16 * RNG.integers(0, 5, 1000)),
    "levels with rounding errors": 300 + RNG.integers(0, 9, 1000) / 10 + RNG.random(1000) * 1e-13,
    "integers below 2^24": RNG.integers(2**24 - 5000, 2**24, 5000),
    "heavy duplicates": RNG.choice([1.7e9, 1.8e9, 1.9e9], 5000),
    "years": RNG.integers(1990, 2020, 5000).astype(float),
    "nothing but missing values": np.full(100, np.nan),
    "one time, else missing": np.r_[1.7e9, np.full(99, np.nan)],
    "zeros": np.zeros(100),
    "huge numbers of both signs": np.array([-3e38, 3e38]),
    "floats that are float32": (1.7e9 + RNG.integers(0, 10**6, 1000)).astype(np.float32),
}


@pytest.mark.parametrize("values", HARMLESS.values(), ids=HARMLESS.keys())
def test_ordinary_data_do_not_warn(values):
    rows = values.reshape(-1, 1)
    forest = OnlineForestRegressor(1, calibrate=False, random_state=0)
    quiet(lambda: forest.fit(rows, np.arange(len(rows)) % 2))
    quiet(lambda: forest.partial_fit(rows.tolist()[:500], np.arange(len(rows))[:500] % 2))


HARMFUL = {
    "seconds of a month": (1.7e9 + RNG.integers(0, 30 * 86_400, 100_000), "170"),
    "fractions of seconds": (1.7e9 + RNG.uniform(0, 3600, 1000), "1700001000"),
    "two sessions a season apart": (
        np.r_[1.7e9 + np.arange(500), 1.7e9 + 8e6 + np.arange(500)],
        "1700000000",
    ),
    "integers above 2^24": (np.arange(2**24, 2**24 + 1000), "16778000"),
    "negative": (-1e9 - np.arange(100.0), "-1000000000"),
    "nanoseconds": (
        1_700_000_000_123_456_789 + np.arange(10**9, step=10**6),
        "1700000001000000000",
    ),
    "a small range": (0.3 + 1e-9 * np.arange(100), "0.3"),
    "with missing values": (np.r_[1.7e9 + np.arange(500), np.full(500, np.nan)], "1700000000"),
    "two values": (np.array([1.7e9, 1.7e9 + 1]), "1700000000"),
}


@pytest.mark.parametrize(("values", "number"), HARMFUL.values(), ids=HARMFUL.keys())
def test_collapsing_data_warn(values, number):
    rows = values.reshape(-1, 1)
    forest = OnlineForestRegressor(1, calibrate=False, random_state=0)
    with pytest.warns(UserWarning, match=rf"offsets={{0: {number}") as caught:
        forest.fit(rows, np.arange(len(rows)) % 2)
    offset = float(str(caught[0].message).split("{0: ")[1].split("}")[0])
    assert np.nanmin(values) <= offset <= np.nanmax(values)
    shifted = OnlineForestRegressor(1, calibrate=False, random_state=0, offsets=[offset])
    kept = len(np.unique((values - offset).astype(np.float32)))
    quiet(lambda: shifted.fit(rows, np.arange(len(rows)) % 2))
    assert kept > 0.99 * len(np.unique(values))


def test_few_rows_exclude_no_column_that_all_rows_would_not():
    """A column is a suspect if its range is below an eighth of its largest magnitude."""
    rng = np.random.default_rng(1)
    n_suspects = 0
    for n in (2, 3, 7, 8, 9, 40, 200):
        centres, widths = rng.normal(size=400), 10.0 ** rng.uniform(-4, 1, 400)
        rows = (centres + widths * rng.uniform(-1, 1, (n, 400))).astype(np.float32)
        rows[rng.random((n, 400)) < 0.2] = np.nan
        rows[0] = np.where(np.isnan(rows).all(axis=0), 0, rows[0])
        largest = np.nanmax(np.abs(rows), axis=0)
        expected = np.nanmax(rows, axis=0) - np.nanmin(rows, axis=0) < largest / 8
        assert np.array_equal(suspects(rows), np.flatnonzero(expected))
        n_suspects += expected.sum()
    assert 400 < n_suspects < 2400
    assert len(suspects(np.zeros((5, 3), np.float32))) == 0


@each_kind
def test_a_forest_warns_once(kind):
    forest = new(kind)
    with pytest.warns(UserWarning, match=MESSAGE):
        forest.partial_fit(X[:300], Y[:300])
    quiet(lambda: forest.partial_fit(X[300:], Y[300:]))
    quiet(lambda: forest.predict(X))
    quiet(lambda: forest.forget(X[:9], Y[:9]))
    with pytest.warns(UserWarning, match=MESSAGE):  # another forest
        forest.fit(X, Y)
    quiet(lambda: copy.deepcopy(forest).predict(X))
    with pytest.warns(UserWarning, match=MESSAGE):  # a pickle does not tell what was learned
        pickle.loads(pickle.dumps(forest)).partial_fit(X, Y)


@each_kind
def test_the_samples_of_a_stream_do_not_warn(kind):
    forest = new(kind)
    for x, y in zip(X[:20], Y[:20].tolist(), strict=True):
        quiet(lambda x=x, y=y: forest.learn_one(x, y))


@each_kind
def test_a_warning_that_is_an_error_changes_nothing(kind):
    fresh, random_state = new(kind), np.random.RandomState(5)
    fresh.set_params(random_state=random_state)
    before = random_state.get_state()[2]
    for _ in range(2):
        with pytest.raises(UserWarning, match=MESSAGE):
            quiet(lambda: fresh.partial_fit(X, Y))
    assert not hasattr(fresh, "n_features_in_") and random_state.get_state()[2] == before
    forest = quiet(lambda: new(kind).partial_fit(NEAR, Y))
    for _ in range(2):
        with pytest.raises(UserWarning, match=MESSAGE):
            quiet(lambda: forest.partial_fit(X, Y))
    assert forest.n_samples_seen_ == N
    quiet(lambda: forest.partial_fit(NEAR, Y))


def test_threads_that_learn_at_once_warn_once():
    forest = quiet(lambda: new(OnlineForestClassifier).fit(NEAR, Y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=forest.partial_fit, args=(X, Y)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(caught) == 1 and forest.n_samples_seen_ == 5 * N


def test_columns_beside_categories_warn_and_only_those():
    with pytest.warns(UserWarning, match=r"in column 'time'\. .*offsets={'time': 1700001000}"):
        new(OnlineForestClassifier).fit(TABLE, Y)
    codes = TABLE.assign(city=START + RNG.integers(0, 100, N), time=NEAR[:, 1])
    quiet(lambda: new(OnlineForestClassifier, categorical_features=["city"]).fit(codes, Y))


def test_several_columns_share_a_warning():
    rows = np.column_stack([X[:, 1], NEAR[:, 0], X[:, 1] + 1e9])
    with pytest.warns(UserWarning, match=r"column 0; .* column 2\. .*{0: 1\d+, 2: 2\d+}") as caught:
        new(OnlineForestClassifier).fit(rows, Y)
    assert len(caught) == 1


# Meaning of offsets


def same(kind, one, other, queries, shifted):
    """Whether two forests are the same but for the digest, which covers offsets."""
    for name in ("predict", "predict_proba", "apply", "predict_interval"):
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name)(queries), getattr(other, name)(shifted))
    for x, near in zip(shifted[:20] + OFFSETS, shifted[:20], strict=True):
        for each in (x, x.tolist(), x.astype(object).tolist()):
            assert one.predict_one(each) == other.predict_one(near)
        if kind is OnlineForestClassifier:
            assert np.array_equal(one.predict_proba_one(x), other.predict_proba_one(near))
    assert one.verify()


@each_online
@pytest.mark.parametrize(
    ("table", "offsets"),
    [
        (X, [0, START, 0]),
        (X, np.array([0.0, START, 0.0])),
        (X, {1: START}),
        (X, {np.int64(1): Fraction(START), 0: -0.0}),
        (X.tolist(), (0, START, 0)),
        (X.astype(object), [0, START, 0]),
        (FRAME, {"time": float(START)}),
        (FRAME, pd.Series([0, START, 0])),
        (FRAME.astype({"time": "Int64"}), {"time": START}),
        (pl.DataFrame(dict(FRAME)), {"time": START}),
        (pa.table(dict(FRAME)), {"time": START}),
        (scipy.sparse.csr_matrix(X), {1: START}),
    ],
)
def test_offsets_are_subtracted_before_rounding(kind, table, offsets):
    other = new(kind).fit(NEAR, Y)
    forest = new(kind, offsets=offsets).fit(table, Y)
    assert forest.offsets is offsets
    same(kind, forest, other, table, NEAR)
    parts = new(kind, offsets=offsets).partial_fit(table, Y)
    parts.forget(table, Y).partial_fit(table, Y)
    assert parts.digest_ == forest.digest_ != other.digest_


@each_online
def test_offsets_are_subtracted_from_single_samples(kind):
    forest = new(kind, offsets={1: START})
    for x, y in zip(X[:50], Y[:50].tolist(), strict=True):
        forest.learn_one(x, y)
    for x, y in zip(X[50:80].tolist(), Y[50:80].tolist(), strict=True):
        forest.learn_one(x, y, id=str(x))
    for x, y in zip(X[80:100], Y[80:100].tolist(), strict=True):
        forest.learn_one(x, y, sample_weight=1.0)
    assert forest.digest_ == new(kind, offsets={1: START}).fit(X[:100], Y[:100]).digest_
    forest.forget(X[:10], Y[:10]).forget(ids=[str(X[60].tolist())])
    rows = np.delete(X[:100], [*range(10), 60], axis=0)
    target = np.delete(Y[:100], [*range(10), 60])
    assert forest.digest_ == new(kind, offsets={1: START}).fit(rows, target).digest_
    for bad in (X[0, :2], X[0, :1], np.ones(4)):
        with pytest.raises(ValueError, match=rf"x has {len(bad)} features, but this forest has 3"):
            forest.learn_one(bad, 1)
        with pytest.raises(ValueError, match=rf"x has {len(bad)} features, but this forest has 3"):
            forest.predict_one(bad)
    with pytest.raises(ValueError, match="infinity"):
        forest.predict_one(np.array([1.0, np.inf, 0.0]))
    with pytest.raises(TypeError, match="x must hold numbers"):
        forest.predict_one(["a", "b", "c"])


@each_online
def test_offsets_beside_categories(kind):
    near = TABLE.assign(time=NEAR[:, 1])
    other = new(kind).fit(near, Y)
    for offsets in ({"time": START}, [0, 0, START, 0]):
        forest = new(kind, offsets=offsets).fit(TABLE[:300], Y[:300])
        forest.partial_fit(TABLE[300:590], Y[300:590])
        for x, y in zip(TABLE[590:].itertuples(index=False), Y[590:].tolist(), strict=True):
            forest.learn_one(tuple(x), y)
        assert np.array_equal(forest.predict(TABLE), other.predict(near))
        assert np.array_equal(forest.apply(TABLE), other.apply(near))
        for x, n in zip(
            TABLE[:20].itertuples(index=False), near[:20].itertuples(index=False), strict=True
        ):
            assert forest.predict_one(tuple(x)) == other.predict_one(tuple(n))
        for tree, plain in zip(forest.trees_, other.trees_, strict=True):
            shift = np.where(tree.split_dimension == 2, START, 0)
            assert np.allclose(
                tree.split_location - shift, plain.split_location, equal_nan=True, atol=1e-3
            )
        assert forest.verify()


@each_online
def test_missing_values_stay_missing(kind):
    gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    near = gaps - [0, START, 0]
    forest, other = new(kind, offsets=[0, START, 0]).fit(gaps, Y), new(kind).fit(near, Y)
    same(kind, forest, other, gaps, near)
    tree, plain = forest.trees_[0], other.trees_[0]
    assert tree.surrogate_location.shape[1] > 0
    shift = np.where(tree.surrogate_dimension == 1, START, 0)
    assert np.allclose(tree.surrogate_location - shift, plain.surrogate_location, equal_nan=True)


@each_online
def test_trees_are_in_the_units_of_users(kind):
    forest, other = new(kind, offsets={1: START}).fit(X, Y), new(kind).fit(NEAR, Y)
    assert other.trees_[0].split_location.dtype == np.float32
    for tree, plain in zip(forest.trees_, other.trees_, strict=True):
        assert tree.split_location.dtype == np.float64
        shift = np.where(tree.split_dimension == 1, START, 0)
        assert np.allclose(tree.split_location - shift, plain.split_location, equal_nan=True)
        root = tree.split_dimension[0]
        n_left = (X[:, root] <= tree.split_location[0]).sum()
        assert n_left == (NEAR[:, root].astype(np.float32) <= plain.split_location[0]).sum()


@each_online
def test_offsets_of_zero_change_no_digest(kind):
    plain = new(kind).fit(NEAR, Y)
    for offsets in ([0, 0, 0], {}, {2: 0.0}, {2: -0.0}):
        assert new(kind, offsets=offsets).fit(NEAR, Y).digest_ == plain.digest_
    digests = {
        new(kind, offsets=offsets).fit(X, Y).digest_
        for offsets in ([0, START, 0], [0, START + 1, 0], [1, START, 0], {1: START})
    }
    assert len(digests) == 3


# Checks


@each_online
@pytest.mark.parametrize(
    ("table", "offsets", "message"),
    [
        (X, [0, 1], r"offsets must have shape \(3,\), one number per feature.* Got shape \(2,\)"),
        (X, [[0, 1, 2]], r"Got shape \(1, 3\)"),
        (X, [0, np.nan, 0], "offsets must be finite numbers. Got nan for feature 1"),
        (FRAME, [0, 0, np.inf], "offsets must be finite numbers. Got inf for feature 'b'"),
        (X, {1: 10**400}, "offsets must be finite numbers"),
        (X, {1: "1"}, "offsets must be finite numbers. Got '1' for feature 1"),
        (X, [True, 1, 1], "offsets must be finite numbers. Got True for feature 0"),
        (X, {1: None}, "offsets must be finite numbers. Got None"),
        (X, {3: 1.0}, "offsets names the feature 3, but the features are 0, 1, 2"),
        (X, {-1: 1.0}, "offsets names the feature -1"),
        (X, {True: 1.0}, "offsets names the feature True"),
        (X, {1.0: 1.0}, r"offsets names the feature 1\.0"),
        (X, {"time": 1.0}, "offsets names the feature 'time', but the features are 0, 1, 2"),
        (FRAME, {"tme": 1.0}, "the feature 'tme', but the features are 'a', 'time', 'b'"),
        (FRAME, {1: 1.0}, "offsets names the feature 1, but the features are 'a', 'time', 'b'"),
        (TABLE, {"city": 1.0}, "offsets has 1.0 for feature 'city', which is categorical"),
        (TABLE, [0, 2, 0, 0], "offsets has 2.0 for feature 'city', which is categorical"),
        (X, 3.0, "The 'offsets' parameter of .* must be"),
        (X, "time", "The 'offsets' parameter of .* must be"),
        (X, [1e300, 0, 0], "less the offsets, a value too large"),
    ],
)
def test_wrong_offsets_are_errors(kind, table, offsets, message):
    forest = new(kind, offsets=offsets)
    for learn in (forest.fit, forest.partial_fit):
        with pytest.raises(ValueError, match=message):
            learn(table, Y)
        assert not hasattr(forest, "n_features_in_") and not hasattr(forest, "_forest")


@each_online
def test_offsets_must_not_change(kind):
    given, array = {1: START}, np.array([0.0, START, 0.0])
    for offsets in (given, array):
        forest = new(kind, offsets=offsets).fit(X[:300], Y[:300])
        digest, predicted = forest.digest_, forest.predict(X)
        offsets[1] = START + 1
        for act in (
            lambda forest=forest: forest.partial_fit(X, Y),
            lambda forest=forest: forest.learn_one(X[0], 1),
            lambda forest=forest: forest.forget(X[:1], Y[:1]),
            lambda forest=forest: forest.learn_from(forest),
        ):
            with pytest.raises(
                ValueError, match=r"offsets was .* when this forest was started|itself"
            ):
                act()
        assert forest.digest_ == digest and np.array_equal(forest.predict(X), predicted)
        offsets[1] = START
        forest.partial_fit(X[300:], Y[300:])
        assert (
            forest.set_params(offsets=None).fit(NEAR, Y).digest_ == new(kind).fit(NEAR, Y).digest_
        )


@each_online
def test_a_rejected_fit_keeps_the_offsets(kind):
    forest = new(kind, offsets=[0, START, 0]).fit(X, Y)
    predicted = forest.predict(X)
    for offsets in (None, [0, START, 0], [0, 0]):
        forest.set_params(offsets=offsets)
        with pytest.raises(ValueError, match=r"infinity|offsets must have shape"):
            forest.fit(np.full((4, 3), np.inf) if offsets is None or len(offsets) == 3 else X, Y)
        assert np.array_equal(forest.predict(X), predicted)


# Copies, files and unions


@each_online
@pytest.mark.parametrize(
    ("table", "offsets"),
    [
        (X, [0.0, START, 0.0]),
        (X, np.array([0.0, START, 0.0])),
        (X, {1: START}),
        (FRAME, {"time": START}),
        (TABLE, {"time": START}),
    ],
)
def test_offsets_are_kept_in_files_and_pickles(kind, table, offsets, tmp_path):
    forest = new(kind, offsets=offsets).fit(table[:500], Y[:500])
    path = tmp_path / "forest.safetensors"
    forest.save(path)
    for twin in (
        onlineforest.load(path),
        pickle.loads(pickle.dumps(forest)),
        clone(forest).fit(table[:500], Y[:500]),
    ):
        assert twin.digest_ == forest.digest_ and type(twin.offsets) is type(offsets)
        assert np.array_equal(twin.predict(table), forest.predict(table))
        twin.partial_fit(table[500:], Y[500:])
        assert twin.digest_ == new(kind, offsets=offsets).fit(table, Y).digest_
        twin.save(tmp_path / "twin.safetensors")


@each_online
def test_only_forests_of_equal_offsets_are_united(kind):
    half = new(kind, offsets={1: START}).fit(X[300:], Y[300:])
    whole = new(kind, offsets={1: START}).fit(X, Y)
    for offsets in ({1: START}, {1: float(START), 0: 0}, [0, START, 0], np.array([0, START, 0])):
        forest = new(kind, offsets=offsets).fit(X[:300], Y[:300])
        assert merge([forest, half]).digest_ == whole.digest_
        assert forest.learn_from(half).digest_ == whole.digest_
    for offsets, table in ((None, NEAR), ({1: START + 1}, X), ({0: 1, 1: START}, X)):
        forest = new(kind, offsets=offsets).fit(table[:300], Y[:300])
        with pytest.raises(
            ValueError, match=r"offsets is .* in this forest and .* in forests\[0\]"
        ):
            forest.learn_from(half)
        with pytest.raises(ValueError, match="equal parameters"):
            merge([forest, half])
    zero = new(kind, offsets=[0, 0, 0]).fit(NEAR[:300], Y[:300])
    assert zero.learn_from(new(kind).fit(NEAR[300:], Y[300:])).n_samples_stored_ == N
