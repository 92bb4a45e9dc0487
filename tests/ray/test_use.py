"""Use of a forest on Ray: threads, changed and wrong parameters, folders, streams."""

from __future__ import annotations

import contextlib
import gc
import json
import threading
import weakref

import numpy as np
import pytest
from sklearn.base import clone

from onlineforest import ModelFileError, MondrianForestClassifier
from onlineforest._distributed.errors import ShardUnreadableError
from onlineforest._files.reading import read
from onlineforest.ray import RayForest, ShardLostError, load_snapshot
from onlineforest.ray.crew import RayCrew
from support.bits import assert_same_forest
from support.model_files import changed
from support.rays import RAY, SMALL_ACTORS, classifier, data, on_ray, regressor

pytestmark = [RAY, pytest.mark.usefixtures("ray_here")]

X, LABELS, VALUES = data(600)


def test_parameters_of_a_forest_must_not_change():
    with on_ray(classifier()) as forest:
        forest.partial_fit(X[:300], LABELS[:300])
        before = forest.gather()
        forest.set_params(estimator__lifetime=1.0)
        for use in (
            lambda: forest.partial_fit(X[300:], LABELS[300:]),
            lambda: forest.keep_latest(5),
            forest.refresh_weights,
        ):
            with pytest.raises(ValueError, match=r"lifetime was inf .* but is 1.0 now"):
                use()
        forest.set_params(estimator=regressor())
        with pytest.raises(ValueError, match="was started with a MondrianForestClassifier"):
            forest.partial_fit(X[300:], LABELS[300:])
        assert_same_forest(forest.gather(), before)
        forest.set_params(estimator=classifier(n_jobs=2))
        assert forest.partial_fit(X[300:], LABELS[300:]).n_samples_seen_ == 600


def test_refreshing_returns_the_forest_itself():
    with on_ray(classifier()) as forest:
        assert forest.fit(X, LABELS).refresh_weights() is forest


def test_answers_are_writable():
    with on_ray(regressor(), n_shards=1) as forest:
        forest.fit(X, VALUES)
        for answer in (forest.predict(X), forest.feature_weights_, forest.novelty(X)):
            answer *= 2.0


@pytest.mark.parametrize(
    ("batches", "options", "error", "message"),
    [
        ([(X, LABELS)], {"first": -2}, ValueError, "first must be .* Got -2"),
        ([(X, LABELS)], {"first": "2"}, ValueError, "first must be a whole number"),
        ([(X, LABELS)], {"progress": 3}, TypeError, "progress must be a function"),
        ([X], {}, TypeError, "must be a pair of X and y. Got one of .*ndarray"),
        ([(X, LABELS, LABELS)], {}, TypeError, "must be a pair of X and y. Got one of .*tuple"),
    ],
)
def test_an_invalid_stream_is_an_error(batches, options, error, message):
    forest = on_ray(classifier())
    with pytest.raises(error, match=message):
        forest.learn_stream(batches, **options)
    assert forest._cores.current is None


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_forest_without_references_is_freed_at_once(method):
    """So are its actors: the next fold of a cross-validation has room."""
    forest = on_ray(classifier(n_estimators=2))
    getattr(forest, method)(X, LABELS)
    gone = weakref.ref(forest)
    gc.disable()
    try:
        del forest
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("metadata", "arrays", "error", "message"),
    [
        ({"n_seen": 7}, {}, ShardUnreadableError, "have seen 600 samples, not 7"),
        ({"n_seen": None}, {}, ModelFileError, "is not the driver's file of a snapshot"),
        ({"n_shards": 0}, {}, ModelFileError, "is not the driver's file of a snapshot"),
        ({}, {"ids.text": None}, ModelFileError, "ids.text"),
    ],
)
def test_an_invalid_snapshot_is_refused(metadata, arrays, error, message, tmp_path, monkeypatch):
    with on_ray(classifier(n_estimators=2), folder=tmp_path) as forest:
        forest.fit(X, LABELS, ids=range(600))
    driver_file = tmp_path / "position-000000000001" / "driver.safetensors"
    plan = json.loads(read(driver_file).metadata["snapshot"]) | metadata
    plan = {name: value for name, value in plan.items() if value is not None}
    driver_file.write_bytes(changed(driver_file.read_bytes(), {"snapshot": plan}, arrays))
    crews, real = [], RayCrew.__init__

    def noted(self, *arguments):
        crews.append(self)
        real(self, *arguments)

    monkeypatch.setattr(RayCrew, "__init__", noted)
    with pytest.raises(error, match=message):
        RayForest.resume(tmp_path, actor_options=SMALL_ACTORS)
    assert not any(crew._actors for crew in crews)  # all were ended


def test_threads_that_start_together_learn_one_forest():
    with on_ray(classifier(n_estimators=2)) as forest:
        threads = [
            threading.Thread(target=forest.partial_fit, args=(X[:50], LABELS[:50]))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert forest.n_samples_seen_ == 150 and forest.n_batches_ == 3


def test_a_snapshot_is_consistent_while_threads_learn(tmp_path):
    """Shards and ids belong to the same operation."""
    with on_ray(classifier(n_estimators=2), folder=tmp_path, snapshot_every=1) as forest:
        forest.partial_fit(X[:20], LABELS[:20])

        def learn(first):
            for id in range(first, first + 200, 20):
                forest.partial_fit(X[:20], LABELS[:20], ids=range(id, id + 20))

        threads = [threading.Thread(target=learn, args=(first,)) for first in (0, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = load_snapshot(tmp_path)
        assert found.n_samples_seen_ == 420 and len(found.ids_) == 400
        assert forest.n_batches_ == 21


@pytest.mark.parametrize("wrong", [np.inf, "2", -1])
def test_processors_must_be_a_number(wrong):
    with pytest.raises(ValueError, match="num_cpus of actor_options must be a number"):
        on_ray(classifier(), actor_options={"num_cpus": wrong}).fit(X, LABELS)


def test_shards_that_need_no_processor_are_not_one_per_tree():
    with RayForest(classifier(n_estimators=7), actor_options={"num_cpus": 0}) as forest:
        assert forest.fit(X, LABELS).n_shards_ == 2


def test_a_shard_handles_one_message_at_a_time():
    options = {"num_cpus": 0.2, "max_concurrency": 4, "max_restarts": 3}
    batches = [(X[i : i + 20], LABELS[i : i + 20]) for i in range(0, 600, 20)]
    with on_ray(classifier(), actor_options=options) as forest:
        assert forest.learn_stream(batches).n_batches == 30


def test_a_failed_fit_keeps_the_snapshots(tmp_path):
    forest = on_ray(classifier(), folder=tmp_path).fit(X, LABELS)
    local = forest.gather()
    forest.set_params(actor_options={"num_cpus": 3}, recovery_timeout=1.0)
    with pytest.raises(ShardLostError, match="could not be started"):
        forest.fit(X, LABELS)
    assert_same_forest(load_snapshot(tmp_path), local)
    forest.set_params(actor_options={"num_cpus": 0.2}, recovery_timeout=60.0)
    with forest.fit(X[:100], LABELS[:100]):
        assert load_snapshot(tmp_path).n_samples_seen_ == 100


def test_a_refused_fit_keeps_the_forest(tmp_path):
    with on_ray(classifier(), folder=tmp_path / "one") as other:
        other.fit(X, LABELS)
    with on_ray(classifier()) as forest:
        forest.fit(X, LABELS).set_params(folder=tmp_path / "one")
        with pytest.raises(ValueError, match="holds snapshots of another forest"):
            forest.fit(X, LABELS)
        assert forest.score(X, LABELS) > 0.8


def test_a_subclass_that_cannot_be_saved_is_refused_a_folder(tmp_path):
    class Own(MondrianForestClassifier):
        pass

    forest = on_ray(Own(n_estimators=2), folder=tmp_path)
    for use in (forest.fit, forest.partial_fit):
        with pytest.raises(TypeError, match="subclass Own, which would be lost"):
            use(X, LABELS)
    with pytest.raises(TypeError, match="subclass Own"):
        RayForest.scatter(Own(n_estimators=2).fit(X, LABELS), folder=tmp_path)
    assert forest._cores.current is None


def test_an_invalid_estimator_has_no_attributes():
    assert not hasattr(RayForest("a forest"), "predict")


def test_an_unfitted_forest_can_be_copied():
    forest = on_ray(classifier())
    with contextlib.suppress(ValueError):
        forest.partial_fit(X, LABELS[:3])
    assert clone(forest).n_shards == 2
    assert "_guard" not in forest.__getstate__()
    assert np.array_equal(forest.__getstate__()["n_shards"], 2)


@pytest.mark.parametrize("now", [None, ("another node", "another job")])
def test_a_shut_down_ray_is_an_error(now, tmp_path, monkeypatch):
    with on_ray(classifier(n_estimators=2), folder=tmp_path) as forest:
        forest.fit(X, LABELS)
        with monkeypatch.context() as patched:
            patched.setattr("onlineforest.ray.crew._this_ray", lambda: now)
            for use in (forest.predict, lambda X: forest.partial_fit(X, LABELS)):
                with pytest.raises(ShardLostError, match="Ray was shut down, and the shards"):
                    use(X)
            with pytest.raises(ShardLostError, match="Ray was shut down"):
                forest.take_snapshot()
        assert forest.n_samples_seen_ == 600
        assert forest.score(X, LABELS) > 0.8
