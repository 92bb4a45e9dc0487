"""The forests as models of River; what concerns missing keys is in test_missing.py."""

from __future__ import annotations

import builtins
import copy
import importlib
import inspect
import pickle
import sys
import weakref
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import onlineforest
import onlineforest.river
from onlineforest.river import OnlineForestClassifier, OnlineForestRegressor
from onlineforest.river import base as river_base
from river import (
    bandit,
    base,
    compose,
    conf,
    datasets,
    drift,
    ensemble,
    evaluate,
    metrics,
    model_selection,
    multioutput,
    preprocessing,
)
from support.bits import assert_same_forest
from support.river_checks import LACKING_KEYS, MODELS, river_checks

PHISHING = list(datasets.Phishing().take(300))
TRUMP = list(datasets.TrumpApproval().take(300))
STREAM_OF = {OnlineForestClassifier: PHISHING, OnlineForestRegressor: TRUMP}


def learn(model, samples):
    for x, y in samples:
        model.learn_one(x, y)
    return model


def answers(model, samples):
    if isinstance(model, base.Classifier):
        return [model.predict_proba_one(x) for x, _ in samples]
    return [model.predict_one(x) for x, _ in samples]


def state_of(model):
    return pickle.dumps(model)


@pytest.mark.parametrize(("model", "check"), river_checks(lacking_keys=False))
def test_checks_of_river(model, check):
    check(model.clone())


@pytest.mark.parametrize("kind", MODELS)
def test_no_check_is_skipped(kind):
    assert kind()._unit_test_skips() == set()
    run = [*river_checks(lacking_keys=False), *river_checks(lacking_keys=True)]
    names = {check.values[1].__name__ for check in run if check.values[0].__class__ is kind}
    # The first versions of River have 16 checks, later ones more than 25.
    has_new = "check_learn_many_matches_learn_one" in names
    assert len(names) > (25 if has_new else 15)
    assert names >= (LACKING_KEYS if has_new else {"check_emerging_features"})


def test_without_river_the_error_names_the_extra(monkeypatch):
    real_import, real_find = builtins.__import__, importlib.util.find_spec

    def no_river(name, *args, **kwargs):
        if name == "river" and (kwargs.get("level") or (args[3] if len(args) > 3 else 0)) == 0:
            raise ModuleNotFoundError("No module named 'river'", name="river")
        return real_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "onlineforest.river")
    monkeypatch.setattr(builtins, "__import__", no_river)
    monkeypatch.setattr(
        "onlineforest._extras.find_spec", lambda name: None if name == "river" else real_find(name)
    )
    with pytest.raises(ImportError, match=r"pip install 'onlineforest\[river\]'"):
        importlib.import_module("onlineforest.river")


@pytest.mark.parametrize("kind", MODELS)
def test_every_public_method_has_an_example(kind):
    assert ">>> " in inspect.getdoc(kind)
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if method.__module__.startswith("onlineforest.river") and not name.startswith("_"):
            assert ">>> " in inspect.getdoc(method), name


# Forests of a model and of its estimator


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_equals_the_estimator_of_this_library(kind):
    samples = STREAM_OF[kind]
    model = learn(kind(5, seed=3), samples)
    keys = sorted(samples[0][0])
    X = np.array([[x[key] for key in keys] for x, _ in samples])
    y = [y for _, y in samples]
    estimator = getattr(onlineforest, kind.__name__)(5, random_state=3)
    for row, value in zip(X, y):
        estimator.learn_one(row, value)
    assert_same_forest(model.estimator, estimator)
    assert model.features == keys
    if kind is OnlineForestClassifier:
        assert [list(p.values()) for p in answers(model, samples)] == [
            estimator.predict_proba_one(row).tolist() for row in X
        ]
    else:
        assert answers(model, samples) == [estimator.predict_one(row) for row in X]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("sizes", [[300], [1, 7, 100, 192]])
def test_mini_batches_equal_single_samples(kind, sizes):
    samples = STREAM_OF[kind]
    one, many = learn(kind(5, seed=1), samples), kind(5, seed=1)
    start = 0
    for size in sizes:
        batch = samples[start : start + size]
        X, y = pd.DataFrame([x for x, _ in batch]), pd.Series([y for _, y in batch])
        many.learn_many(X.iloc[:, ::-1] if start else X, y)
        start += size
    assert_same_forest(one.estimator, many.estimator)
    assert answers(one, samples) == answers(many, samples)


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        ["yes", "no"],
        [3, -7],
        [("a", 1), ("b", 2)],
        ["text", 5],
        [np.bool_(True), np.bool_(False)],
        [np.str_("u"), np.str_("v")],
        [0.5, 1.5],
        [1, 2.5],
        [2.0, 3.0],
        ["1", 1],
        ["1", ("1",)],
        [10**30, 7],
        ["a\0", "a"],
        pytest.param([frozenset("ab"), frozenset("c")], id="sets"),  # their text has no order
    ],
    ids=str,
)
def test_labels_may_be_anything_hashable(labels):
    model = OnlineForestClassifier(seed=0)
    for i in range(40):
        model.learn_one({"a": i % 2}, labels[i % 2])
    for i, label in enumerate(labels):
        assert model.predict_one({"a": i}) == label
        probabilities = model.predict_proba_one({"a": i})
        assert set(probabilities) == set(labels) and probabilities[label] > 0.9


def test_new_labels_may_appear_at_any_time():
    model = learn(OnlineForestClassifier(seed=0, min_samples_split=2), PHISHING[:50])
    model.learn_one(dict.fromkeys(PHISHING[0][0], 9.0), "new")
    assert model.predict_one(dict.fromkeys(PHISHING[0][0], 9.0)) == "new"
    assert set(model.predict_proba_one(PHISHING[0][0])) == {True, False, "new"}


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        (None, ValueError, "y must be a label"),
        (float("nan"), ValueError, "y must be a label"),
        ([1], TypeError, "must be hashable"),
    ],
)
def test_an_invalid_label_changes_nothing(label, error, message):
    for model in (OnlineForestClassifier(seed=0), learn(OnlineForestClassifier(), PHISHING)):
        before = state_of(model)
        with pytest.raises(error, match=message):
            model.learn_one({"new key": 1.0}, label)
        with pytest.raises(error, match=message):
            model.learn_many(
                pd.DataFrame({"new key": [1.0, 2.0]}), pd.Series([True, label], dtype=object)
            )
        assert state_of(model) == before


# Bad samples and values


BAD_SAMPLES = [
    ({"colour": b"red"}, TypeError, r"Feature 'colour' must be a number.*OneHotEncoder"),
    ({"colour": np.inf}, ValueError, r"Feature 'colour' must be finite"),
    ({"colour": 1e39}, ValueError, r"Feature 'colour' must be finite"),
]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("news", "error", "message"), BAD_SAMPLES)
@pytest.mark.parametrize("kind", MODELS)
def test_an_invalid_sample_is_an_error_that_names_its_key_and_changes_nothing(
    kind, news, error, message, is_known
):
    samples = [({**x, **({"colour": 0.5} if is_known else {})}, y) for x, y in STREAM_OF[kind]]
    good, y = samples[0]
    bad = {**good, **news}
    frame = pd.DataFrame([good, bad])
    for model in (kind(seed=0), learn(kind(seed=0), samples[:60])):
        before = state_of(model)
        with pytest.raises(error, match=message):
            model.learn_one(bad, y)
        with pytest.raises(error, match=message):
            model.learn_one(bad, "a new label" if kind is OnlineForestClassifier else 1.5)
        with pytest.raises(error, match=message):
            model.learn_many(frame, pd.Series([y, y]))
        assert state_of(model) == before
    if is_known:
        with pytest.raises(error, match=message):
            model.predict_one(bad)
        with pytest.raises(error, match=message):
            model.predict_many(frame)


@pytest.mark.parametrize(
    ("value", "error"), [(np.nan, ValueError), (1e200, ValueError), ("red", ValueError)]
)
def test_an_invalid_number_changes_nothing(value, error):
    for model in (OnlineForestRegressor(seed=0), learn(OnlineForestRegressor(), TRUMP[:60])):
        before = state_of(model)
        with pytest.raises(error):
            model.learn_one({**TRUMP[0][0], "new key": 1.0}, value)
        with pytest.raises(error):
            model.learn_many(pd.DataFrame([TRUMP[0][0]]), pd.Series([value]))
        assert state_of(model) == before


@pytest.mark.parametrize("kind", MODELS)
def test_invalid_batches_are_errors(kind):
    model = learn(kind(3, seed=0), STREAM_OF[kind][:20])
    before = state_of(model)
    X = pd.DataFrame([x for x, _ in STREAM_OF[kind][:5]])
    with pytest.raises(ValueError, match="X has 5 samples, but y has 2"):
        model.learn_many(X, pd.Series([True, False]))
    with pytest.raises(TypeError, match=r"X must be a data frame of pandas, .* Got .*ndarray"):
        model.learn_many(X.to_numpy(), pd.Series([True] * 5))
    with pytest.raises(TypeError, match=r"y must be a series of pandas, .* Got .*list"):
        model.learn_many(X, [True] * 5)
    model.learn_many(X[:0], pd.Series([], dtype=float))
    assert state_of(model) == before
    assert len(model.predict_many(X[:0])) == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"window": 5, "reservoir": 5},
        {"half_life": 5.0},
        {"seed": "one"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", MODELS)
def test_invalid_parameters_are_errors_at_construction(kind, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters)).replace("seed", "random_state")):
        kind(**parameters)


def test_new_keys_of_an_interrupted_sample_stay_if_it_was_learned(monkeypatch):
    model = learn(OnlineForestClassifier(3, seed=0), [({"a": i}, i % 2) for i in range(20)])
    estimator = onlineforest.OnlineForestClassifier
    real = estimator.learn_one

    def interrupted(self, *arguments, **options):
        real(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(estimator, "learn_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_one({"a": 1, "b": 3.0}, "new")
    monkeypatch.undo()
    assert model.features == ["a", "b"]
    assert set(model.predict_proba_one({"a": 1, "b": 3.0})) == {0, 1, "new"}


# Before anything is learned


def test_before_anything_is_learned():
    x = {"a": 1.0}
    frame = pd.DataFrame([x, x], index=[7, 9])
    classifier = OnlineForestClassifier()
    assert classifier.predict_proba_one(x) == {} and classifier.predict_one(x) is None
    assert classifier.predict_proba_many(frame).shape == (2, 0)
    assert classifier.predict_many(frame).tolist() == [None, None]
    regressor = OnlineForestRegressor()
    assert regressor.predict_one(x) == 0.0
    assert regressor.predict_many(frame).tolist() == [0.0, 0.0]
    assert regressor.predict_interval_one(x) == conf.Interval(-np.inf, np.inf)
    assert classifier.features == regressor.features == []


# Features


def test_a_key_may_first_appear_late():
    rng = np.random.default_rng(0)
    model = OnlineForestClassifier(seed=0)
    for _ in range(60):
        model.learn_one({"a": rng.random()}, "old")
    for _ in range(300):
        b = rng.random()
        model.learn_one({"b": b, "a": rng.random()}, "high" if b > 0.5 else "low")
    assert model.features == ["a", "b"]
    assert model.predict_one({"a": 0.5, "b": 0.9}) == "high"
    assert model.predict_one({"b": 0.1, "a": 0.5}) == "low"


def test_many_keys_may_appear_one_by_one():
    model, x = OnlineForestRegressor(3, seed=0), {}
    for i in range(40):
        x = {**x, f"key {i}": float(i)}
        model.learn_one(x, float(i))
    assert model.features == sorted(x)
    assert model.estimator.n_features_in_ == 40
    assert model.estimator.n_samples_seen_ == 40


def test_predictions_ignore_unknown_keys():
    model = learn(OnlineForestClassifier(3, seed=0), PHISHING)
    x, _ = PHISHING[5]
    before = state_of(model)
    assert model.predict_proba_one({"unheard of": 1.0, **x}) == model.predict_proba_one(x)
    frame = pd.DataFrame([{**x, "unheard of": 1.0}])
    assert model.predict_proba_many(frame).iloc[0].to_dict() == model.predict_proba_one(x)
    assert state_of(model) == before


def test_samples_without_any_feature():
    model = OnlineForestClassifier(3, seed=0)
    for label in ("a", "b", "a"):
        model.learn_one({}, label)
    assert model.predict_one({}) == "a"
    model.learn_one({"key": 1.0}, "b")
    assert model.features == ["key"]


def test_bools_and_keys_of_all_kinds():
    model = OnlineForestClassifier(seed=0)
    for i in range(40):
        model.learn_one({("pair", 1): i % 2 == 0, 5: np.int8(i), None: 1.5}, i % 2)
    assert model.predict_one({None: 1.5, 5: 3, ("pair", 1): np.bool_(True)}) == 0


# Frames


FRAMES = {
    "pandas": (pd.DataFrame, pd.Series),
    "polars": (pl.DataFrame, pl.Series),
    "pyarrow": (pa.table, lambda y: pa.chunked_array([y])),
}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("kind", MODELS)
def test_frames_of_all_kinds(kind, library):
    frame, series = FRAMES[library]
    samples = STREAM_OF[kind][:100]
    table = {key: [x[key] for x, _ in samples] for key in samples[0][0]}
    model = kind(3, seed=0)
    model.learn_many(frame(table), series([y for _, y in samples]))
    assert_same_forest(model.estimator, learn(kind(3, seed=0), samples).estimator)
    predicted = model.predict_many(frame(table))
    assert type(predicted) is type(series([1.0]))
    tolist = getattr(predicted, "to_list", None) or predicted.to_pylist
    assert tolist() == pytest.approx([model.predict_one(x) for x, _ in samples])
    if kind is OnlineForestClassifier:
        probabilities = model.predict_proba_many(frame(table))
        assert type(probabilities) is type(frame(table))
        names = [True, False] if library == "pandas" else ["True", "False"]
        columns = getattr(probabilities, "columns", None)
        columns = probabilities.column_names if library == "pyarrow" else columns
        assert sorted(columns) == sorted(names)


def test_pandas_index_and_odd_columns():
    rows = 50
    X = pd.DataFrame(
        {
            "whole": range(rows),
            "bool": [True, False] * 25,
            "sparse": pd.arrays.SparseArray([0, 0, 0, 1, 0] * 10, dtype="uint8"),
            "nullable": pd.array([1, 2] * 25, dtype="Int64"),
            "object": np.array([1, 2.5] * 25, dtype=object),
            7: np.arange(rows, dtype=np.float32),
        },
        index=range(100, 100 + rows),
    )
    model = OnlineForestClassifier(3, seed=0)
    model.learn_many(X, pd.Series(["a", "b"] * 25, index=X.index))
    assert set(model.features) == set(X.columns)
    predicted = model.predict_many(X)
    assert predicted.index.equals(X.index) and model.predict_proba_many(X).index.equals(X.index)
    one = model.predict_one({key: X[key].iloc[3] for key in X.columns})
    assert predicted.iloc[3] == one


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_text_in_a_frame_is_an_error_that_names_its_column(dtype):
    model = OnlineForestClassifier()
    model.learn_one({"a": 1.0, "colour": 2.0}, 0)
    X = pd.DataFrame({"a": [1.0, 2.0], "colour": pd.Series(["1.5", "red"], dtype=dtype)})
    with pytest.raises(TypeError, match="Feature 'colour' must be a number"):
        model.learn_many(X, pd.Series([0, 1]))
    with pytest.raises(TypeError, match="Feature 'colour' must be a number"):
        model.learn_many(pl.DataFrame({"colour": ["1.5"]}), pl.Series([1]))


# Within River


@pytest.mark.parametrize("kind", MODELS)
def test_clones_and_copies(kind):
    samples = STREAM_OF[kind]
    model = learn(kind(4, seed=5, window=100), samples[:150])
    clone = model.clone()
    assert clone.features == [] and clone._get_params() == model._get_params()
    assert answers(learn(clone, samples[:150]), samples) == answers(model, samples)
    assert model.clone({"n_estimators": 7}).estimator.n_estimators == 7
    before = answers(model, samples)
    for twin in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.clone(include_attributes=True),
    ):
        learn(twin, samples[150:])
        assert answers(model, samples) == before
        assert answers(twin, samples) == answers(
            learn(copy.deepcopy(model), samples[150:]), samples
        )


def test_memory_usage_counts_the_core_within_pipelines_too():
    model = learn(OnlineForestClassifier(20, seed=0), PHISHING)
    held = model.estimator.nbytes_
    assert held > 50_000
    assert held < model._raw_memory_usage < held + 100_000
    pipeline = preprocessing.StandardScaler() | model
    assert pipeline._raw_memory_usage > held
    assert model._memory_usage.split()[1][0] in "KM"  # KB or KiB, depending on River


@pytest.mark.parametrize("kind", MODELS)
def test_no_reference_to_a_sample_is_kept(kind):
    class Sample(dict):
        """A dict that can be watched."""

    model = kind(3, seed=0)
    for x, y in STREAM_OF[kind][:10]:
        sample = Sample(x)
        model.learn_one(sample, y)
        model.predict_one(sample)
        watch = weakref.ref(sample)
        del sample
        assert watch() is None


def test_window_and_reservoir_reach_the_estimator():
    model = learn(OnlineForestClassifier(window=50), PHISHING)
    assert model.estimator.n_samples_stored_ == 50
    model = learn(OnlineForestRegressor(reservoir=70, half_life=30.0), TRUMP)
    assert model.estimator.n_samples_stored_ == 70


@pytest.mark.parametrize("metric", [metrics.Accuracy(), metrics.LogLoss(), metrics.ROCAUC()])
def test_progressive_validation(metric):
    model = preprocessing.StandardScaler() | OnlineForestClassifier(seed=0)
    metric = metric.clone()
    score = evaluate.progressive_val_score(datasets.Phishing().take(600), model, metric).get()
    assert score < 0.4 if isinstance(metric, metrics.LogLoss) else score > 0.85


def test_progressive_validation_of_numbers_step_by_step():
    model = compose.Select("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")
    model |= OnlineForestRegressor(seed=0)
    steps = [*evaluate.iter_progressive_val_score(TRUMP, model, metrics.MAE(), step=100)]
    assert [step["Step"] for step in steps] == [100, 200, 300]
    assert steps[-1]["MAE"].get() < 1.0
    assert model["OnlineForestRegressor"].features == [
        "gallup",
        "ipsos",
        "morning_consult",
        "rasmussen",
        "you_gov",
    ]


def test_one_hot_keys_appear_with_their_categories():
    """All categories are named in each sample, those of the encoder's past."""
    rng = np.random.default_rng(0)
    colours = ["red", "green", "blue", "black", "white", "grey"]
    model = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model += compose.SelectType(float)
    model |= OnlineForestClassifier(seed=0)
    right = 0
    for i in range(400):
        colour = colours[rng.integers(1 + min(i // 40, 5))]
        x, y = {"colour": colour, "size": rng.random()}, colour in ("red", "blue", "white")
        right += i >= 300 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 95
    assert set(model["OnlineForestClassifier"].features) == {
        "size",
        *(f"colour_{colour}" for colour in colours),
    }


def test_mini_batches_through_a_pipeline():
    model = preprocessing.StandardScaler() | OnlineForestClassifier(seed=0)
    X, y = pd.DataFrame([x for x, _ in PHISHING]), pd.Series([y for _, y in PHISHING])
    for start in range(0, 300, 50):
        model.learn_many(X[start : start + 50], y[start : start + 50])
    assert model["OnlineForestClassifier"].estimator.n_samples_seen_ == 300
    assert (model.predict_many(X) == y).mean() > 0.9


WRAPPED_CLASSIFIERS = {
    "bagging": lambda model: ensemble.BaggingClassifier(model, n_models=3, seed=0),
    "voting": lambda model: ensemble.VotingClassifier([model, model.clone()]),
    "stacking": lambda model: ensemble.StackingClassifier(
        [model, model.clone({"min_samples_split": 20})], meta_classifier=model.clone()
    ),
    "drift": lambda model: drift.DriftRetrainingClassifier(model),
    "chain": lambda model: compose.Pipeline(preprocessing.MinMaxScaler(), model),
}


@pytest.mark.parametrize("name", WRAPPED_CLASSIFIERS)
def test_wrapped_classifiers(name):
    model = WRAPPED_CLASSIFIERS[name](OnlineForestClassifier(3, seed=0))
    assert evaluate.progressive_val_score(PHISHING, model, metrics.Accuracy()).get() > 0.75


WRAPPED_REGRESSORS = {
    "bagging": lambda model: ensemble.BaggingRegressor(model, n_models=3, seed=0),
    "greedy choice": lambda model: model_selection.GreedyRegressor(
        [model, model.clone({"min_samples_split": 20})]
    ),
    "bandit": lambda model: model_selection.BanditRegressor(
        models=[model, model.clone({"min_samples_split": 20})],
        metric=metrics.MAE(),
        policy=bandit.EpsilonGreedy(epsilon=0.1, seed=0),
    ),
    "scaled target": lambda model: preprocessing.TargetStandardScaler(model),
    "jackknife": lambda model: conf.RegressionJackknife(model),
}


@pytest.mark.parametrize("name", WRAPPED_REGRESSORS)
def test_wrapped_regressors(name):
    model = WRAPPED_REGRESSORS[name](OnlineForestRegressor(3, seed=0))
    assert evaluate.progressive_val_score(TRUMP, model, metrics.MAE()).get() < 1.0


def test_several_targets():
    model = multioutput.RegressorChain(OnlineForestRegressor(3, seed=0), order=["u", "v"])
    for i in range(50):
        model.learn_one({"a": float(i)}, {"u": 2.0 * i, "v": 3.0 * i})
    assert model.predict_one({"a": 20.0})["u"] == pytest.approx(40, abs=3)


def test_intervals():
    model = OnlineForestRegressor(seed=0)
    inside = wide = 0
    rng = np.random.default_rng(0)
    for i in range(600):
        a = rng.random()
        x, y = {"a": a}, a + rng.normal() / 10
        if i >= 300:
            interval = model.predict_interval_one(x, coverage=0.8)
            assert isinstance(interval, conf.Interval)
            inside += y in interval
            wide += interval.width < model.predict_one(x, with_interval=True).width
            assert model.predict_one(x, with_interval=True) == model.predict_interval_one(x, 0.9)
        model.learn_one(x, y)
    assert wide == 300
    assert 0.7 < inside / 300 < 0.9  # 0.8, with standard error 0.023
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        model.predict_interval_one({"a": 0.5}, coverage=1.5)


@pytest.mark.parametrize("is_learned", [True, False])
def test_an_interrupted_batch_leaves_a_working_model(is_learned, monkeypatch):
    """Labels and keys of what was learned are known, and no others."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2_000, 4)), columns=list("abcd"))
    y = pd.Series(np.arange(2_000) // 40)
    model = OnlineForestClassifier(10, seed=0)
    model.learn_one({"a": X["a"][0]}, y[0])
    before, real = state_of(model), river_base.learn

    def interrupted(*arguments, **options):
        if is_learned:
            real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(river_base, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    monkeypatch.undo()
    assert is_learned or state_of(model) == before
    assert model.features == (list("abcd") if is_learned else ["a"])
    n_labels = len(model.predict_proba_one({"a": 1.0}))
    assert n_labels == len(model.estimator.classes_) == (50 if is_learned else 1)
    model.learn_one(X.iloc[-1].to_dict(), 49)
    model.learn_many(X[-200:], y[-200:])
    assert set(model.predict_proba_one({"a": 1.0})) == {*range(n_labels), *range(45, 50)}


def test_a_defaultdict_does_not_invent_missing_keys():
    model = OnlineForestClassifier(2, seed=0)
    model.learn_one(Counter("aab"), 1)
    model.learn_one(Counter("xyy"), 0)
    assert model.features == ["a", "b", "x", "y"]
    sample = defaultdict(float, {"a": 1.0, "b": 2.0, "x": 1.0, "z": 1.0})
    model.predict_proba_one(sample)
    assert sorted(sample) == ["a", "b", "x", "z"]
