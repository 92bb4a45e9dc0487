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
from onlineforest._distributed.splitting import are_trees_up_to_date
from onlineforest.ray import RayForest, ShardLostError, load_snapshot
from onlineforest.ray.starting import shards_and_processors
from support.bits import assert_same_forest
from support.interrupts import CtrlC, NapClock
from support.rays import (
    MAKERS,
    RAY,
    SMALL_ACTORS,
    actors_of,
    classifier,
    data,
    on_ray,
    order_free_classifier,
    order_free_regressor,
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
    if hasattr(local, "digest_"):
        assert forest.digest_ == local.digest_ and forest.verify()
        assert np.array_equal(forest.feature_importances_, local.feature_importances_)
    else:
        assert np.array_equal(forest.novelty(queries), local.novelty(queries))
        assert np.array_equal(forest.feature_weights_, local.feature_weights_)
    assert forest.n_samples_seen_ == local.n_samples_seen_
    assert forest.n_samples_stored_ == local.n_samples_stored_
    assert forest.ids_ == local.ids_
    if is_classifier(local):
        assert np.array_equal(forest.predict_proba(queries), local.predict_proba(queries))
        assert np.array_equal(forest.predict_proba_one(X[0]), local.predict_proba_one(X[0]))
        assert list(forest.classes_) == list(local.classes_)
    else:
        interval = forest.predict_interval(queries)
        assert np.array_equal(interval, local.predict_interval(queries))
        assert forest.predict_one(X[0], return_std=True) == local.predict_one(X[0], return_std=True)
        values = VALUES[:60]
        assert np.array_equal(
            forest.log_density(queries, values), local.log_density(queries, values)
        )


@pytest.mark.parametrize(("n_trees", "n_shards"), [(10, 1), (9, 2), (23, 5)])
@pytest.mark.parametrize("make", MAKERS)
def test_a_forest_on_ray_equals_the_local_forest(make, n_trees, n_shards, tmp_path):
    """With windows, ids, forgetting and several refreshes of the weights."""
    y = target_of(make, LABELS, VALUES)
    local = make(n_estimators=n_trees, window=500)
    with on_ray(make(n_estimators=n_trees, window=500), n_shards=n_shards) as forest:
        for begin in range(0, 1200, 150):
            rows = slice(begin, begin + 150)
            for each in (forest, local):
                each.partial_fit(X[rows], y[rows], ids=range(begin, begin + 150))
        for each in (forest, local):
            each.forget(ids=range(1000, 1040))
            each.forget(X[1190:], y[1190:])
            each.learn_one(X[3], y[3])
            each.keep_latest(300)
            if make in (classifier, regressor):
                each.refresh_weights()
            each.partial_fit(X[:90], y[:90])
        assert forest.n_shards_ == n_shards
        assert forest.n_batches_ == 10
        assert_same_answers(forest, local)
        assert_same_forest(forest.gather(), local)
        forest.save(tmp_path / "forest.safetensors")
        assert_same_forest(onlineforest.load(tmp_path / "forest.safetensors"), local)
        assert len(forest.trees_) == n_trees
        last, own = forest.trees_[-1], local.trees_[-1]
        assert np.array_equal(last.split_location, own.split_location, equal_nan=True)


@pytest.mark.parametrize("n_shards", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("make", [order_free_classifier, order_free_regressor])
def test_batches_and_shards_in_any_number_give_the_forest_of_fit(
    make, n_shards, tmp_path, ray_here
):
    """Some values are missing, some samples leave by a window, and a shard is lost."""
    y = target_of(make, LABELS, VALUES)
    rows = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    local = make(max_samples=0.7).fit(rows[:900], y[:900])
    estimator = make(max_samples=0.7, window=900)
    with on_ray(estimator, n_shards=n_shards, folder=tmp_path) as forest:
        forest.partial_fit(rows[900:], y[900:]).forget(rows[1100:], y[1100:])
        for number, part in enumerate(
            np.array_split(np.random.default_rng(n_shards).permutation(900), 4)
        ):
            forest.partial_fit(rows[part], y[part])
            if number == 1:
                ray_here.kill(actors_of(forest)[n_shards - 1])
        assert forest.digest_ == local.digest_ and forest.n_recoveries_ == 1
        assert forest.oob_score_ == pytest.approx(local.oob_score_, abs=1e-12)
        with pytest.raises(AttributeError, match="refresh_weights"):
            forest.refresh_weights()
        assert forest.score(X, y) == local.score(X, y)
        if make is order_free_classifier:
            assert forest.recalibrate() is forest
            assert np.array_equal(forest.predict_proba(X), local.predict_proba(X))


@pytest.mark.parametrize("make", [order_free_classifier, order_free_regressor])
def test_a_forest_on_ray_learns_from_others(make, tmp_path, ray_here):
    y = target_of(make, LABELS, VALUES)
    parts = [slice(0, 600), slice(600, 1000), slice(1000, 1200)]
    whole = make().fit(X, y)
    with (
        on_ray(make(), n_shards=3, folder=tmp_path) as forest,
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
        forest.take_snapshot()
        forest.forget(ids=[3]).learn_from(other)
        ray_here.kill(actors_of(forest)[1])  # it learns the samples again
        whole.forget(X[3:4], y[3:4]).partial_fit(X[:5], y[:5])
        assert forest.digest_ == whole.digest_ and forest.n_recoveries_ == 1
        assert forest.n_samples_seen_ == 1605
    assert_same_forest(load_snapshot(tmp_path), whole)


@pytest.mark.parametrize("make", MAKERS)
def test_scattered_gathered_and_resumed_forests_equal_the_local_one(make, tmp_path):
    y = target_of(make, LABELS, VALUES)
    local = make().partial_fit(X[:400], y[:400], ids=range(400))
    before = pickle.dumps(local._forest.get_state())
    with RayForest.scatter(
        local, n_shards=3, actor_options=SMALL_ACTORS, folder=tmp_path
    ) as forest:
        assert_same_answers(forest, local)
        forest.partial_fit(X[400:], y[400:])
        assert pickle.dumps(local._forest.get_state()) == before  # unchanged
        local.partial_fit(X[400:], y[400:])
        back = forest.gather()
        assert_same_forest(back, local)
        forest.take_snapshot()
    assert_same_forest(load_snapshot(tmp_path), local)
    with RayForest.resume(tmp_path, actor_options=SMALL_ACTORS) as forest:
        assert forest.get_params()["estimator"].get_params() == local.get_params()
        for each in (forest, local, back):
            each.forget(ids=range(100))
            each.partial_fit(X[:200], y[:200])
        assert_same_answers(forest, local)
    assert_same_forest(back, local)
    assert type(back) is type(local)


def test_scattering_an_interrupted_forest_finishes_its_batch():
    undisturbed = classifier(n_estimators=300).partial_fit(X[:50], LABELS[:50])
    local = pickle.loads(pickle.dumps(undisturbed))
    undisturbed.partial_fit(X, LABELS)
    with CtrlC(0.02), pytest.raises(KeyboardInterrupt):
        local.partial_fit(X, LABELS)
    assert local.n_samples_seen_ == 1250
    assert not are_trees_up_to_date(local._forest.get_state())
    with RayForest.scatter(local, n_shards=2, actor_options=SMALL_ACTORS) as forest:
        assert_same_forest(forest.gather(), undisturbed)


def batches(n, size=40):
    return [(X[size * i : size * i + size], LABELS[size * i : size * i + size]) for i in range(n)]


@pytest.mark.parametrize("make", [classifier, order_free_classifier])
def test_a_stream_gives_the_forest_of_its_batches(make, ray_here):
    local, reports = make(), []
    for some, labels in batches(30):
        local.partial_fit(some, labels)
    with on_ray(make(), max_in_flight=3) as forest:
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")  # of its own names
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


@pytest.mark.parametrize("make", [classifier, order_free_classifier])
def test_a_slow_shard_slows_down_the_stream(make, ray_here):
    """At most `max_in_flight` batches are in progress while one shard is stopped."""
    sent = []
    with on_ray(make(), max_in_flight=3) as forest:
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
        local = make()
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
    with on_ray(classifier(), folder=tmp_path, snapshot_every=1) as forest:
        forest.partial_fit(X[:100], LABELS[:100]).fit(X[200:], LABELS[200:])
        assert forest.n_samples_seen_ == 1000 and forest.n_batches_ == 1
        assert_same_forest(forest.gather(), classifier().fit(X[200:], LABELS[200:]))
        assert load_snapshot(tmp_path).n_samples_seen_ == 1000


def test_invalid_parameters_are_errors(tmp_path):
    for parameters, message in [
        ({"n_shards": 0}, "'n_shards' parameter of RayForest"),
        ({"max_in_flight": 0}, "'max_in_flight' parameter"),
        ({"snapshot_every": 0}, "'snapshot_every' parameter"),
        ({"recovery_timeout": 0}, "'recovery_timeout' parameter"),
        ({"estimator": "a forest"}, "'estimator' parameter"),
    ]:
        with pytest.raises(ValueError, match=message):
            RayForest(**{"estimator": classifier()} | parameters).fit(X, LABELS)
    with pytest.raises(TypeError, match="scatter needs an OnlineForestClassifier"):
        RayForest.scatter("a forest")
    with pytest.raises(NotFittedError):
        RayForest.scatter(classifier())
    with pytest.raises(FileNotFoundError, match="no snapshot in"):
        RayForest.resume(tmp_path)
    with pytest.raises(TypeError, match="n_shards cannot be chosen"):
        RayForest.resume(tmp_path, n_shards=3)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="Snapshots need a folder"):
        on_ray(classifier(), folder=tmp_path / "file").fit(X, LABELS)


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
