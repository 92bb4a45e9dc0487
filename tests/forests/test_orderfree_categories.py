"""Categorical features of the order-free estimators: forests are functions of their samples."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import onlineforest
from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    merge,
)
from onlineforest._forests.locking import Guard
from onlineforest._inputs import levels as levels_module
from onlineforest._inputs.levels import LevelNames, cells_of, plain_level, word_of, words_in

KINDS = [OnlineForestClassifier, OnlineForestRegressor]
HOSTILE = ["", " ", "nan", "NaN", "None", "missing", "1", "1.0", "\xe9", "e\u0301", "\0", "a\0"]
HOSTILE += [
    "'\"\\,\n",
    "x" * 2**20,
    "\U0001f333",
    "\U000e0001",
    "\U0010ffff",
    "\u4e2d",
    "\u202eabc",
]


def table(n, seed=0, texts=("red", "green", "blue", "")):
    """Text, numbers with gaps, a categorical column with gaps, bools; what they say about y."""
    rng = np.random.default_rng(seed)
    kind = pd.Series(rng.choice(["u", "v", "w"], n))
    frame = pd.DataFrame(
        {
            "colour": rng.choice(np.array(texts, dtype=object), n),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "kind": kind.where(rng.random(n) < 0.8).astype("category"),
            "is_new": rng.random(n) < 0.5,
            "weight": rng.normal(size=n),
        }
    )
    y = (frame["colour"] == texts[0]).to_numpy() ^ (frame["weight"] > 0).to_numpy()
    return frame, y


def targets(kind, frame, y):
    return y.astype(int) if kind is OnlineForestClassifier else y + frame["weight"].to_numpy()


def new(kind, **parameters):
    return kind(**{"n_estimators": 10, "random_state": 0} | parameters)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


# The promise


def test_any_history_gives_the_same_digest(kind):
    frame, y = table(300)
    y = targets(kind, frame, y)
    whole = new(kind).fit(frame, y)
    rng = np.random.default_rng(1)
    forest = new(kind)
    for places in np.array_split(rng.permutation(300), 9):
        forest.partial_fit(frame.iloc[places], y[places])
        forest.predict(frame[:5])
    assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_
    # Levels that come and leave again.
    other, z = table(200, 7, ("red", "Ada", "Grace", "Emmy"))
    z = targets(kind, other, z)
    forest.partial_fit(other, z)
    assert "Ada" in forest.levels_["colour"] and forest.digest_ != whole.digest_
    forest.forget(other[100:], z[100:]).forget(other[:100], z[:100])
    assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_
    assert forest.verify()


def test_one_by_one_gives_the_same_digest(kind):
    frame, y = table(120)
    y = targets(kind, frame, y)
    forest = new(kind).partial_fit(frame[:1], y[:1])
    for row, target in zip(frame[1:].itertuples(index=False), y[1:].tolist(), strict=True):
        forest.learn_one(row, target)
        forest.predict_one(row)
    whole = new(kind).fit(frame, y)
    assert forest.digest_ == whole.digest_
    one = [forest.predict_one(row) for row in frame[:20].itertuples(index=False)]
    assert one == whole.predict(frame[:20]).tolist()


def test_shards_files_and_unions_give_the_same_digest(kind, tmp_path):
    frame, y = table(300)
    y = targets(kind, frame, y)
    whole = new(kind).fit(frame, y)
    whole.save(tmp_path / "forest.safetensors")
    loaded = onlineforest.load(tmp_path / "forest.safetensors")
    copy = pickle.loads(pickle.dumps(whole))
    parts = [new(kind).fit(frame[i::3], y[i::3]) for i in range(3)]
    for forest in (loaded, copy, merge(parts), parts[0].learn_from(*parts[1:])):
        assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_
        again = forest.partial_fit(frame[:9], y[:9]).forget(frame[:9], y[:9])
        assert again.digest_ == whole.digest_
    assert (loaded.predict(frame) == whole.predict(frame)).all()


def test_a_window_is_the_forest_of_the_latest_samples(kind):
    frame, y = table(150)
    frame["colour"] = [f"level {i // 10}" for i in range(150)]
    y = targets(kind, frame, y)
    forest = new(kind, window=40)
    for start in range(0, 150, 15):
        forest.partial_fit(frame[start : start + 15], y[start : start + 15])
    latest = new(kind).fit(frame[110:], y[110:])
    assert forest.digest_ == latest.digest_ and forest.levels_ == latest.levels_
    for row, target in zip(frame[:40].itertuples(index=False), y[:40].tolist(), strict=True):
        forest.learn_one(row, target)
    assert forest.levels_["colour"] == [f"level {i}" for i in range(4)]


def test_threads_change_nothing(kind):
    frame, y = table(400)
    y = targets(kind, frame, y)
    digests = {new(kind, n_jobs=n).fit(frame, y).digest_ for n in (1, 2, 5)}
    assert len(digests) == 1


def test_levels_of_a_batch_that_an_interrupt_left_are_recorded_later(kind, monkeypatch):
    frame, y = table(60)
    y = targets(kind, frame, y)
    other, z = table(40, 7, ("red", "Ada", "Grace", "Emmy"))
    z = targets(kind, other, z)
    forest = new(kind).fit(frame, y)
    settle, calls = Guard.settle, []

    def interrupted(guard, core, record):
        calls.append(1)
        if len(calls) == 2:  # the batch is stored, and shall be recorded
            raise KeyboardInterrupt
        settle(guard, core, record)

    monkeypatch.setattr(Guard, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forest.partial_fit(other, z)
    monkeypatch.undo()
    assert forest.predict(other[:3]).shape == (3,)
    whole = new(kind).fit(pd.concat([frame, other]), np.concatenate([y, z]))
    assert forest.digest_ == whole.digest_ and forest.levels_ == whole.levels_


class InterruptedCore:
    """A core forest whose calls that forget are interrupted when they are done."""

    def __init__(self, core):
        self._core = core

    def __getattr__(self, name):
        return getattr(self._core, name)

    def forget(self, *arguments):
        self._core.forget(*arguments)
        raise KeyboardInterrupt

    def forget_rows(self, *arguments):
        self._core.forget_rows(*arguments)
        raise KeyboardInterrupt

    def keep_latest(self, *arguments):
        self._core.keep_latest(*arguments)
        raise KeyboardInterrupt


@pytest.mark.parametrize("way", ["ids", "rows", "latest"])
@pytest.mark.parametrize("comes_late", [False, True])
def test_levels_leave_though_forgetting_is_interrupted(kind, way, comes_late, monkeypatch):
    frame, y = table(60, texts=[f"person {i:02}" for i in range(99)])
    y = targets(kind, frame, y)
    forest = new(kind).fit(frame, y, ids=range(60))
    expected = new(kind).fit(frame[50:], y[50:])
    call = {
        "ids": lambda: forest.forget(ids=range(50)),
        "rows": lambda: forest.forget(frame[:50], y[:50]),
        "latest": lambda: forest.keep_latest(10),
    }[way]
    core = forest._forest
    with monkeypatch.context() as patch:
        if comes_late:  # the samples are forgotten, the names are not

            def interrupted(*_):
                raise KeyboardInterrupt

            patch.setattr(type(forest), "_drop_unused_names", interrupted)
        else:
            forest._forest = InterruptedCore(core)
        with pytest.raises(KeyboardInterrupt):
            call()
    forest._forest = core
    if not comes_late:
        n_left = frame["colour"][50:].nunique()
        assert len(forest._rows.levels[0]) == n_left, "names are dropped at once"
    assert len(core.serials) == 10
    gone = set(frame["colour"][:50]) - set(frame["colour"][50:])
    of_cuts = [each for tree in forest.trees_ for each in tree.split_levels if each is not None]
    assert len(gone) > 10 and gone.isdisjoint(name for names in of_cuts for name in names)
    assert forest.levels_ == expected.levels_
    file = io.BytesIO()
    forest.save(file)
    for data in (file.getvalue(), pickle.dumps(forest)):
        assert not any(name.encode() in data for name in gone)
    assert forest.digest_ == expected.digest_


# Tables


def test_all_kinds_of_tables_are_equal(kind):
    frame, y = table(100)
    y = targets(kind, frame, y)
    digest = new(kind).fit(frame, y).digest_
    as_enum = pl.from_pandas(frame).with_columns(
        pl.col("colour").cast(pl.Enum(["", "blue", "green", "red", "white"]))
    )
    arrow = pa.Table.from_pandas(frame)
    for other in (pl.from_pandas(frame), as_enum, arrow, frame.astype({"colour": "category"})):
        assert new(kind).fit(other, y).digest_ == digest
    array = frame.to_numpy(dtype=object)
    for choice in ([0, 2, 3], [True, False, True, True, False], np.array([3, 0, 2])):
        assert new(kind, categorical_features=choice).fit(array, y).digest_ == digest
        assert new(kind, categorical_features=choice).fit(array.tolist(), y).digest_ == digest
    names = ["kind", "colour", "is_new"]
    assert new(kind, categorical_features=names).fit(frame, y).digest_ == digest


def test_codes_of_numbers_may_be_categorical(kind):
    rng = np.random.default_rng(0)
    codes = rng.integers(-3, 4, size=200)
    y = np.isin(codes, [-3, 0, 2]) + 0.0
    X = np.column_stack([rng.normal(size=200), codes])
    forest = new(kind, categorical_features=[1], min_samples_split=2).fit(X, y)
    assert forest.levels_ == {1: [-3, -2, -1, 0, 1, 2, 3]}
    assert (forest.predict(X).round() == y).mean() > 0.97
    texts = X.astype(object)
    texts[:, 1] = [str(code) for code in codes]
    other = new(kind, categorical_features=[1], min_samples_split=2).fit(texts, y)
    assert other.digest_ != forest.digest_
    small = new(kind, categorical_features=[1], min_samples_split=2).fit(X.astype(np.int8), y)
    assert small.levels_ == forest.levels_


def test_importances_and_trees_name_columns(kind):
    frame, y = table(500)
    y = targets(kind, frame, y)
    forest = new(kind, categorical_features="from_dtype").fit(frame, y)
    shares = dict(zip(frame.columns, forest.feature_importances_, strict=True))
    assert shares["weight"] + shares["colour"] > 0.8
    tree = forest.trees_[0]
    categorical = np.isin(tree.split_dimension, [0, 2, 3])
    assert np.isnan(tree.split_location[categorical]).all() and categorical.any()
    assert np.isfinite(tree.split_location[~categorical & ~tree.is_leaf]).any()
    leaves = forest.apply(frame)[:, 0]
    for j in np.flatnonzero(categorical):
        levels = tree.split_levels[j]
        known = forest.levels_[frame.columns[tree.split_dimension[j]]]
        assert 0 < len(levels) < len(known) and set(levels) < set(known)
    # A walk by these arrays ends in the leaf that the forest says.
    for row, leaf in zip(frame.itertuples(index=False), leaves, strict=True):
        at = 0
        while not tree.is_leaf[at] and not pd.isna(row[1]):
            value = plain_level(row[tree.split_dimension[at]]) if categorical[at] else None
            left = (
                value in tree.split_levels[at]
                if categorical[at]
                else (row[tree.split_dimension[at]] <= tree.split_location[at])
            )
            at = tree.left[at] if left else tree.right[at]
        assert pd.isna(row[1]) or at == leaf


def test_new_and_missing_levels_have_a_side(kind):
    frame, y = table(200)
    y = targets(kind, frame, y)
    forest = new(kind).fit(frame, y)
    queries = frame[:6].copy()
    queries["colour"] = ["never", None, np.nan, "Never", "1", 1]
    queries["kind"] = "w2"
    before = forest.levels_
    assert np.isfinite(forest.predict(queries)).all() and forest.levels_ == before
    answers = forest.predict(queries)
    assert answers[1] == answers[1] and forest.predict(queries).tolist() == answers.tolist()
    forest.partial_fit(queries, y[:6])
    assert forest.levels_["colour"] == [1, "", "1", "Never", "blue", "green", "never", "red", None]
    assert forest.levels_["kind"][-1] is None and "w2" in forest.levels_["kind"]


# Names


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_levels_like_others(name, kind, tmp_path):
    frame, y = table(60, texts=(name, "other", "1 ", "ordinary"))
    y = targets(kind, frame, y)
    forest = new(kind).fit(frame, y)
    assert name in forest.levels_["colour"]
    forest.save(tmp_path / "forest.safetensors")
    loaded = onlineforest.load(tmp_path / "forest.safetensors")
    assert loaded.levels_ == forest.levels_ and loaded.digest_ == forest.digest_
    kept = (frame["colour"] != name).to_numpy()
    loaded.forget(frame[~kept], y[~kept])
    assert name not in loaded.levels_["colour"]
    assert loaded.digest_ == new(kind).fit(frame[kept], y[kept]).digest_


def test_half_of_a_character_is_a_level(kind):
    X = np.array([["\ud800", 1.0], ["\udc00", 2.0]] * 9, dtype=object)  # no data frame holds it
    forest = new(kind, categorical_features=[0], min_samples_split=2).fit(X, [0, 1] * 9)
    file = io.BytesIO()
    forest.save(file)
    loaded = onlineforest.load(io.BytesIO(file.getvalue()))
    assert loaded.levels_ == {0: ["\ud800", "\udc00"]} and loaded.digest_ == forest.digest_


def test_all_hostile_names_are_different_levels():
    words = [
        word_of(plain_level(name)) for name in [*HOSTILE, "\ud800", 1, 0, -1, None, 2**63, -(2**63)]
    ]
    assert len(set(words)) == len(words) and max(words) < 2**60
    same = [1, True, 1.0, np.int8(1), np.float32(1), np.bool_(True)]
    assert {word_of(plain_level(value)) for value in same} == {word_of(1)}
    missing = [None, np.nan, pd.NA, pd.NaT, np.float32("nan"), np.datetime64("NaT", "s")]
    assert {word_of(plain_level(value)) for value in missing} == {word_of(None)}
    array = np.array(words, dtype=np.uint64)
    cells = cells_of(array)
    assert (words_in(cells) == array).all() and (cells >= np.finfo(np.float32).tiny).all()


def test_levels_with_equal_hashes_are_refused(monkeypatch):
    monkeypatch.setattr(levels_module, "word_of", lambda level: 7 if level else 8)
    with pytest.raises(ValueError, match="levels 'a' and 'b' have the same hash"):
        LevelNames().encode(["a", "", "b"])


def test_names_of_forgotten_levels_and_classes_leave_all_copies(kind, tmp_path):
    frame, y = table(80)
    y = y.astype(int).astype(str) if kind is OnlineForestClassifier else y + 0.0
    forest = new(kind).fit(frame, y)
    person = frame[:1].assign(colour="Ada Lovelace")
    target = ["Countess of Lovelace"] if kind is OnlineForestClassifier else [5.0]
    digest = forest.digest_
    forest.partial_fit(person, target, ids=["her"])
    assert b"Lovelace" in pickle.dumps(forest)
    forest.forget(ids=["her"])
    file = io.BytesIO()
    forest.save(file)
    assert b"Lovelace" not in pickle.dumps(forest) and b"Lovelace" not in file.getvalue()
    assert forest.digest_ == digest
    forest.partial_fit(person, target).keep_latest(0)
    assert b"Lovelace" not in pickle.dumps(forest) and forest.levels_["colour"] == []
    assert forest.partial_fit(frame, y).digest_ == digest


def test_a_code_of_a_class_is_used_again():
    X = np.arange(40.0)[:, np.newaxis]
    forest = new(OnlineForestClassifier).fit(X, [f"class {i % 4}" for i in range(40)])
    for i in range(30):
        forest.learn_one([50.0], f"visitor {i}").forget([[50.0]], [f"visitor {i}"])
        if i % 10 == 0:
            forest = pickle.loads(pickle.dumps(forest))
    assert forest._forest.n_labels == 5 and len(forest.classes_) == 4
    whole = new(OnlineForestClassifier).fit(X, [f"class {i % 4}" for i in range(40)])
    assert forest.digest_ == whole.digest_ and forest.verify()
    file = io.BytesIO()
    forest.save(file)
    loaded = onlineforest.load(io.BytesIO(file.getvalue()))
    assert loaded.digest_ == whole.digest_ and b"visitor" not in file.getvalue()
    assert (loaded.learn_one([9.5], "new one").predict_proba(X).sum(axis=1) > 0.999).all()


# Bad input


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"Column 'colour' is categorical. A level must be text, a bool or a whole number"),
        (np.inf, r"within ±2\^64. Got inf"),
        (2**64, r"within ±2\^64"),
        (b"bytes", r"Got b'bytes', which is of type bytes"),
        ((1, 2), r"of type tuple"),
        ([1], r"of type list"),
        (pd.Timestamp("2020-01-01"), r"of type Timestamp. Turn such values into text"),
        (pd.Interval(0, 1), r"of type Interval"),
    ],
)
def test_other_values_are_errors_that_change_nothing(value, message, kind):
    frame, y = table(50)
    y = targets(kind, frame, y)
    forest = new(kind).fit(frame, y)
    before = pickle.dumps(forest)
    bad = frame[:3].astype(object)
    bad.at[1, "colour"] = value
    for call in (
        lambda: forest.partial_fit(bad, y[:3]),
        lambda: forest.predict(bad),
        lambda: forest.forget(bad, y[:3]),
        lambda: new(kind, categorical_features=["colour", "kind", "is_new"]).fit(bad, y[:3]),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=r"A level must be text"):
        forest.learn_one(bad.iloc[1].tolist(), y[0].item())
    assert pickle.dumps(forest) == before


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([5], r"index 5, but X has 5 columns: indices are in \[0, 5\)"),
        ([-1], r"index -1"),
        (["size", "height"], r"names 'height', but X has no column"),
        ("height", r"names 'height', but X has no column"),
        ([True, False], r"mask of 2 entries, but X has 5 columns"),
        ([1.5], r"must be 'from_dtype', or hold indices, names"),
    ],
)
def test_a_wrong_choice_of_features_is_an_error(choice, message, kind):
    frame, y = table(20)
    with pytest.raises(ValueError, match=message):
        new(kind, categorical_features=choice).fit(frame, targets(kind, frame, y))


def test_text_where_numbers_were_is_an_error_that_names_the_column(kind):
    frame, y = table(50)
    y = targets(kind, frame, y)
    forest = new(kind).fit(frame, y)
    before = pickle.dumps(forest)
    bad = frame[:3].assign(size=["1", "large", None])
    for call in (lambda: forest.partial_fit(bad, y[:3]), lambda: forest.predict(bad)):
        with pytest.raises(ValueError, match=r"not numbers: 'size' .*must stay numbers"):
            call()
    with pytest.raises(ValueError, match="Feature 1 is numeric, but its value is 'large'"):
        forest.predict_one(bad.iloc[1].tolist())
    with pytest.raises(ValueError, match="x has 2 features, but this forest has 5"):
        forest.predict_one(["red", 1.0])
    dates = frame[:3].assign(size=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="Turn times into numbers"):
        forest.predict(dates)
    assert pickle.dumps(forest) == before


def test_arrays_of_text_point_to_categorical_features(kind):
    frame, y = table(20)
    with pytest.raises(ValueError, match="categorical_features names the columns"):
        new(kind).fit(frame.to_numpy(dtype=object), targets(kind, frame, y))
    with pytest.raises(ValueError, match="sparse"):
        new(kind, categorical_features=[0]).fit(sparse.eye(4).tocsr(), [0, 1, 0, 1])


def test_mondrian_forests_point_to_the_order_free_ones():
    frame, y = table(20)
    with pytest.raises(ValueError, match=r"'colour'.*Take OnlineForestClassifier, which"):
        MondrianForestClassifier().fit(frame, y)


def test_forests_with_other_categories_cannot_be_united(kind):
    frame, y = table(40)
    y = targets(kind, frame, y)
    numbers = frame.assign(is_new=frame["is_new"].astype(float))
    one, other = new(kind).fit(frame, y), new(kind).fit(numbers, y)
    with pytest.raises(ValueError, match=r"tuple of categorical columns is \(0, 2, 3\).*\(0, 2\)"):
        one.learn_from(other)


def test_files_with_wrong_levels_are_refused(kind):
    from onlineforest._files.reading import read
    from onlineforest._files.writing import write

    frame, y = table(40)
    file = io.BytesIO()
    new(kind).fit(frame, targets(kind, frame, y)).save(file)
    contents = read(io.BytesIO(file.getvalue()))
    good = onlineforest._files.encoding.from_json(contents.metadata, "levels")
    wrong = [
        ([], "0 lists of levels"),
        ([good[0][1:], *good[1:]], "not those of its samples"),
        ([[*good[0], "more"], *good[1:]], "not those of its samples"),
        ([[*good[0], good[0][0]], *good[1:]], "not distinct"),
        ([[*good[0], 1.5], *good[1:]], "not lists of texts"),
        ([[*good[0], 2**70], *good[1:]], "not within"),
    ]
    for levels, message in wrong:
        text = onlineforest._files.encoding.to_json(levels)
        spoiled = io.BytesIO()
        write(spoiled, contents.arrays, {**contents.metadata, "levels": text})
        with pytest.raises(onlineforest.ModelFileError, match=message):
            onlineforest.load(io.BytesIO(spoiled.getvalue()))
    rows = contents.arrays["rows"].copy()
    rows[0, -1] = np.nan
    spoiled = io.BytesIO()
    write(spoiled, {**contents.arrays, "rows": rows}, contents.metadata)
    message = "row 0, categorical feature 2: the cells do not encode a level"
    with pytest.raises(onlineforest.ModelFileError, match=message):
        onlineforest.load(io.BytesIO(spoiled.getvalue()))
