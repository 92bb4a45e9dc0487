"""A forest on Ray equals the local one to the bit: learning, forgetting, streams, copies."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

import onlineforest
from onlineforest.ray import RayForest, ShardLostError
from onlineforest.ray.starting import shards_and_processors
from support.bits import assert_same_forest
from support.interrupts import NapClock
from support.rays import (
    RAY,
    SMALL_ACTORS,
    actors_of,
    classifier,
    data,
    each_maker,
    on_ray,
    process_of,
    regressor,
    target_of,
)

pytestmark = [RAY, pytest.mark.usefixtures("ray_here")]

X, LABELS, VALUES = data()


def assert_same_answers(forest, local):
    queries = X[:60] + 0.1
    assert np.array_equal(forest.apply(queries), local.apply(queries))
    assert np.array_equal(forest.predict(queries), local.predict(queries))
    assert forest.digest_ == local.digest_ and forest.verify()
    assert np.array_equal(forest.feature_importances_, local.feature_importances_)
    assert forest.n_samples_seen_ == local.n_samples_seen_
    assert forest.n_samples_stored_ == local.n_samples_stored_
    assert forest.ids_ == local.ids_
    if is_classifier(local):
        assert np.array_equal(forest.predict_proba(queries), local.predict_proba(queries))
        assert np.array_equal(forest.predict_proba_one(X[0]), local.predict_proba_one(X[0]))
        assert list(forest.classes_) == list(local.classes_)
        assert forest.score(X, LABELS) == local.score(X, LABELS)
    else:
        assert forest.score(X, VALUES) == local.score(X, VALUES)
        interval = forest.predict_interval(queries)
        assert np.array_equal(interval, local.predict_interval(queries))
        assert forest.predict_one(X[0], return_std=True) == local.predict_one(X[0], return_std=True)
        values = VALUES[:60]
        assert np.array_equal(
            forest.log_density(queries, values), local.log_density(queries, values)
        )


@each_maker
def test_a_forest_on_ray_equals_the_local_forest(make, tmp_path, ray_here):
    """With windows, ids, forgetting, all answers, copies, and a shard that is lost."""
    y = target_of(make, LABELS, VALUES)
    parameters = {"n_estimators": 23, "window": 500, "max_samples": 0.7}
    local = make(**parameters)
    with on_ray(make(**parameters), n_shards=5) as forest:
        for begin in range(0, 1200, 150):
            rows = slice(begin, begin + 150)
            for each in (forest, local):
                each.partial_fit(X[rows], y[rows], ids=range(begin, begin + 150))
            if begin == 600:
                ray_here.kill(actors_of(forest)[4])
        for each in (forest, local):
            each.forget(ids=range(1000, 1040))
            each.forget(X[1190:], y[1190:])
            each.learn_one(X[3], y[3])
            each.keep_latest(300)
            each.partial_fit(X[:90], y[:90])
        assert forest.n_shards_ == 5 and forest.n_recoveries_ == 1
        assert forest.n_batches_ == 10
        assert_same_answers(forest, local)
        assert_same_forest(forest.gather(), local)
        assert forest.oob_score_ == local.oob_score_
        if make is classifier:
            assert forest.recalibrate() is forest
            local.recalibrate()
            assert np.array_equal(forest.predict_proba(X), local.predict_proba(X))
        forest.save(tmp_path / "forest.safetensors")
        assert_same_forest(onlineforest.load(tmp_path / "forest.safetensors"), local)
        assert len(forest.trees_) == 23
        last, own = forest.trees_[-1], local.trees_[-1]
        assert np.array_equal(last.split_location, own.split_location, equal_nan=True)


@each_maker
def test_a_forest_on_ray_learns_from_others(make, ray_here):
    y = target_of(make, LABELS, VALUES)
    parts = [slice(0, 600), slice(600, 1000), slice(1000, 1200)]
    whole = make().fit(X, y)
    with (
        on_ray(make(), n_shards=3) as forest,
        on_ray(make(), n_shards=2) as other,
    ):
        forest.fit(X[parts[0]], y[parts[0]], ids=range(600))
        other.fit(X[parts[1]], y[parts[1]], ids=range(600, 1000))
        local = make().fit(X[parts[2]], y[parts[2]])
        with pytest.raises(
            TypeError, match=r"forests\[1\] is of type RayForest\. Merge the result"
        ):
            onlineforest.merge([local, other])
        with pytest.raises(TypeError, match=r"is of type RayForest\. Use what its gather"):
            local.learn_from(other)
        with pytest.raises(NotFittedError):
            forest.learn_from(on_ray(make()))
        assert forest.learn_from(other, local) is forest
        assert forest.digest_ == whole.digest_ and forest.n_samples_seen_ == 1200
        assert forest.ids_ == set(range(1000))
        with pytest.raises(ValueError, match=r"of this forest and of forests\[0\] have 600"):
            forest.learn_from(other)
        other.forget(ids=range(600, 1000)).learn_from(make().fit(X[:5], y[:5]))
        assert other.n_samples_seen_ == 405 and other.n_samples_stored_ == 5
        forest.forget(ids=[3]).learn_from(other)
        ray_here.kill(actors_of(forest)[1])
        whole.forget(X[3:4], y[3:4]).partial_fit(X[:5], y[:5])
        assert forest.digest_ == whole.digest_ and forest.n_recoveries_ == 1
        assert forest.n_samples_seen_ == 1605


@each_maker
def test_scattered_gathered_and_resumed_forests_equal_the_local_one(make, tmp_path):
    y = target_of(make, LABELS, VALUES)
    file = tmp_path / "run.safetensors"
    local = make().partial_fit(X[:400], y[:400], ids=range(400))
    before = pickle.dumps(local._forest.get_state())
    with RayForest.scatter(local, n_shards=3, actor_options=SMALL_ACTORS, file=file) as forest:
        assert_same_answers(forest, local)
        assert_same_forest(onlineforest.load(file), local)
        forest.partial_fit(X[400:], y[400:])
        assert pickle.dumps(local._forest.get_state()) == before  # unchanged
        local.partial_fit(X[400:], y[400:])
        back = forest.gather()
        assert_same_forest(back, local)
    assert_same_forest(onlineforest.load(file), local)
    with RayForest.resume(file, n_shards=2, actor_options=SMALL_ACTORS) as forest:
        assert forest.n_batches_ == 1 and forest.n_shards_ == 2
        assert forest.get_params()["estimator"].get_params() == local.get_params()
        for each in (forest, local, back):
            each.forget(ids=range(100))
            each.partial_fit(X[:200], y[:200])
        assert_same_answers(forest, local)
    assert_same_forest(back, local)
    assert_same_forest(onlineforest.load(file), local)
    assert type(back) is type(local)


def batches(n, size=40):
    return [(X[size * i : size * i + size], LABELS[size * i : size * i + size]) for i in range(n)]


def test_a_stream_gives_the_forest_of_its_batches():
    local, reports = classifier(), []
    for some, labels in batches(30):
        local.partial_fit(some, labels)
    with on_ray(classifier(), max_in_flight=3) as forest:
        report = forest.learn_stream(batches(10), progress=reports.append)
        assert [each.n_batches for each in reports] == list(range(1, 11))
        assert report.n_rows == 400 and report.rows_per_second > 0 and report.n_recoveries == 0
        # From the beginning: batches that were learned are skipped.
        assert forest.learn_stream(iter(batches(20)), first=0).n_batches == 10
        with pytest.raises(ValueError, match="batches 20 to 24 are missing"):
            forest.learn_stream(batches(30)[25:], first=25)
        with pytest.raises(ValueError, match="first must be a whole number"):
            forest.learn_stream(batches(30), first=-1)
        assert forest.learn_stream(batches(30)[15:], first=15).n_batches == 10
        assert_same_forest(forest.gather(), local)
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4") as caught:
            forest.learn_stream([(X[:5, :3], LABELS[:5])])
        assert caught.value.__notes__ == ["This was batch 30, counted from 0."]
        assert_same_forest(forest.gather(), local)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ray.data.context"
)  # Ray warns of its own names
def test_a_ray_dataset_is_a_stream(ray_here):
    import pandas as pd
    import pyarrow as pa
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    frame = pd.DataFrame(X[:600], columns=list("abcd")).assign(y=LABELS[:600])
    local = classifier()
    for begin in range(0, 600, 200):
        some = frame.iloc[begin : begin + 200]
        local.partial_fit(some.drop(columns="y"), some["y"])
    with on_ray(classifier()) as forest:
        dataset = ray.data.from_arrow(pa.Table.from_pandas(frame))
        with pytest.raises(ValueError, match="needs a target"):
            forest.learn_stream(dataset)
        with pytest.raises(ValueError, match="batch_size must be a whole number, at least 1"):
            forest.learn_stream(dataset, target="y", batch_size=0)
        with pytest.raises(ValueError, match="no column 'z'"):
            forest.learn_stream(dataset, target="z")
        assert forest.learn_stream(dataset, target="y", batch_size=200).n_batches == 3
        assert list(forest.feature_names_in_) == list("abcd")
        assert_same_forest(forest.gather(), local)


@pytest.mark.thorough
def test_a_slow_shard_slows_down_the_stream(ray_here):
    """At most `max_in_flight` batches are in progress while one shard is stopped."""
    sent = []
    with on_ray(classifier(), max_in_flight=3) as forest:
        forest.partial_fit(*batches(1)[0])
        process = process_of(ray_here, actors_of(forest)[1])
        os.kill(process, signal.SIGSTOP)
        waking = threading.Timer(1.5, os.kill, (process, signal.SIGCONT))
        waking.start()
        try:
            started = time.monotonic()
            forest.learn_stream(
                batches(30)[1:], progress=lambda report: sent.append(time.monotonic() - started)
            )
        finally:
            waking.join()
        assert len(sent) == 29
        assert sent[3] > 1.2  # three were in progress while it was stopped
        assert forest.n_recoveries_ == 0
        local = classifier()
        for some, labels in batches(30):
            local.partial_fit(some, labels)
        assert_same_forest(forest.gather(), local)


def test_an_interrupt_returns_at_once_and_the_batch_counts(ray_here):
    local = classifier().partial_fit(X[:400], LABELS[:400]).partial_fit(X[400:], LABELS[400:])
    with on_ray(classifier()) as forest:
        forest.partial_fit(X[:400], LABELS[:400])
        process = process_of(ray_here, actors_of(forest)[0])
        os.kill(process, signal.SIGSTOP)  # it will not answer
        waking = threading.Timer(10.0, os.kill, (process, signal.SIGCONT))
        waking.start()
        clocks = []

        def interrupt():
            clocks.append(NapClock())
            signal.raise_signal(signal.SIGINT)

        threading.Timer(0.5, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            forest.partial_fit(X[400:], LABELS[400:])
        assert clocks[0].stop() < 1.0
        assert waking.is_alive(), "the interrupt waited for the process that does not answer"
        assert forest.n_samples_seen_ == 1200 and forest.n_batches_ == 2
        waking.cancel()
        os.kill(process, signal.SIGCONT)
        assert_same_forest(forest.gather(), local)


def test_bad_input_changes_nothing():
    with on_ray(classifier()) as forest:
        for use in (lambda: forest.predict(X), lambda: forest.classes_, forest.gather):
            with pytest.raises(NotFittedError):
                use()
        with pytest.raises(ValueError, match=r"NaN|missing"):
            forest.partial_fit(X[:3], np.array(["a", None, "b"], dtype=object))
        assert forest._cores.current is None or forest._cores.current.keeper.is_closed
        with pytest.raises(NotFittedError):
            forest.predict(X)
        forest.partial_fit(X, LABELS)
        before = forest.gather()
        for use in (
            lambda: forest.partial_fit(X[:, :2], LABELS),
            lambda: forest.fit(X[:, 0], LABELS),
            lambda: forest.partial_fit(np.full((1, 4), np.inf), ["low"]),
            lambda: forest.learn_one([1.0, 2.0], "low"),
            lambda: forest.learn_one([1.0, 2.0, 3.0, np.inf], "low"),
            lambda: forest.forget(X[:1] + 50, LABELS[:1]),
            lambda: forest.keep_latest(-1),
            lambda: forest.predict(X[:, :2]),
        ):
            with pytest.raises(ValueError, match=r"."):
                use()
        assert_same_forest(forest.gather(), before)


def test_fit_replaces_the_forest(tmp_path):
    file = tmp_path / "run.safetensors"
    with on_ray(classifier(), file=file) as forest:
        forest.partial_fit(X[:100], LABELS[:100]).fit(X[200:], LABELS[200:])
        assert forest.n_samples_seen_ == 1000 and forest.n_batches_ == 1
        assert_same_forest(forest.gather(), classifier().fit(X[200:], LABELS[200:]))
        assert onlineforest.load(file).n_samples_seen_ == 1000


def test_invalid_parameters_are_errors(tmp_path):
    for parameters, message in [
        ({"n_shards": 0}, "'n_shards' parameter of RayForest"),
        ({"max_in_flight": 0}, "'max_in_flight' parameter"),
        ({"save_every": 0}, "'save_every' parameter"),
        ({"recovery_timeout": 0}, "'recovery_timeout' parameter"),
        ({"estimator": "a forest"}, "'estimator' parameter"),
        (
            {"estimator": onlineforest.MondrianForestClassifier()},
            "'estimator' parameter .* an OnlineForestClassifier or OnlineForestRegressor",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            RayForest(**{"estimator": classifier()} | parameters).fit(X, LABELS)
    with pytest.raises(TypeError, match="scatter needs an OnlineForestClassifier"):
        RayForest.scatter("a forest")
    with pytest.raises(NotFittedError):
        RayForest.scatter(classifier())
    with pytest.raises(FileNotFoundError):
        RayForest.resume(tmp_path / "run.safetensors")
    with pytest.raises(NotADirectoryError, match="needs a folder"):
        on_ray(classifier(), file=tmp_path / "runs" / "run.safetensors").fit(X, LABELS)


def test_it_follows_the_conventions_of_scikit_learn():
    forest = on_ray(classifier(), max_in_flight=7)
    again = clone(forest)
    assert again.max_in_flight == 7 and again.estimator.n_estimators == 10
    assert is_classifier(forest) and is_regressor(on_ray(regressor()))
    assert again.set_params(estimator__n_estimators=3).estimator.n_estimators == 3
    assert pickle.loads(pickle.dumps(forest)).max_in_flight == 7
    assert hasattr(forest, "predict_proba") and not hasattr(on_ray(regressor()), "predict_proba")
    with forest:
        forest.fit(X, LABELS)
        assert forest.score(X, LABELS) > 0.8
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(forest)


def test_the_number_of_shards_is_at_most_that_of_trees():
    with on_ray(classifier(n_estimators=2), n_shards=5) as forest:
        assert forest.fit(X, LABELS).n_shards_ == 2


def test_by_default_there_is_a_shard_per_node(ray_here, monkeypatch):
    with RayForest(classifier()) as forest:
        assert forest.fit(X, LABELS).n_shards_ == 1  # with one of two processors
    machines = [
        {"Alive": True, "Resources": {"CPU": 8.0}},
        {"Alive": True, "Resources": {"CPU": 16.0}},
        {"Alive": False, "Resources": {"CPU": 4.0}},
        {"Alive": True, "Resources": {}},
    ]
    monkeypatch.setattr(ray_here, "nodes", lambda: machines)
    assert shards_and_processors(None, None, 100) == (2, 7.0)
    assert shards_and_processors(None, 3, 100) == (7, 3.0)
    assert shards_and_processors(None, 3, 5) == (5, 3.0)
    assert shards_and_processors(None, 0, 100) == (24, 0.0)
    assert shards_and_processors(4, None, 100) == (4, 1.0)
    for nonsense in (-1, "two", True):
        with pytest.raises(ValueError, match="num_cpus of actor_options must be a number"):
            shards_and_processors(None, nonsense, 100)


def test_too_few_resources_are_an_error():
    with (
        on_ray(classifier(), actor_options={"num_cpus": 1.5}, recovery_timeout=2.0) as forest,
        pytest.raises(ShardLostError, match=r"within 2 s. 2 shards of 1.5 CPU need 3; .* has 2"),
    ):
        forest.fit(X, LABELS)


def test_shards_that_do_not_fit_on_this_machine_are_an_error(ray_here, monkeypatch):
    """Ray was started here, so no other node can join: the driver does not wait."""
    monkeypatch.setattr(ray_here, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_here, "init", lambda: None)
    with pytest.raises(
        ValueError, match=r"3 shards of 1 processors need 3, .* has 2: enough for 2"
    ):
        RayForest(classifier(), n_shards=3).fit(X, LABELS)


def test_shards_that_leave_no_processor_for_a_dataset_are_a_warning(ray_here, monkeypatch):
    with on_ray(classifier()) as forest:
        forest.fit(X, LABELS)
        forest._cores.warn_if_no_processor_is_left()  # 0.4 of 2: there are
        monkeypatch.setattr(ray_here, "cluster_resources", lambda: {"CPU": 1.0})
        with pytest.warns(RuntimeWarning, match="The shards hold 0.4 of 1 processors"):
            forest._cores.warn_if_no_processor_is_left()
