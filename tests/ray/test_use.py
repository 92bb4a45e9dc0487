"""Use of a forest on Ray: threads, changed and wrong parameters, folders, streams."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest
from sklearn.base import clone

from onlineforest import (
    ModelFileError,
    MondrianForestClassifier,
    OnlineForestClassifier,
    load,
)
from onlineforest.ray import RayForest, ShardLostError
from support.bits import assert_same_forest
from support.examples import thorough_but
from support.rays import RAY, classifier, data, on_ray, regressor

pytestmark = [RAY, pytest.mark.usefixtures("ray_here")]

X, LABELS, VALUES = data(600)


def test_parameters_of_a_forest_must_not_change():
    with on_ray(classifier()) as forest:
        forest.partial_fit(X[:300], LABELS[:300])
        before = forest.gather()
        forest.set_params(estimator__max_samples=0.5)
        for use in (
            lambda: forest.partial_fit(X[300:], LABELS[300:]),
            lambda: forest.keep_latest(5),
        ):
            with pytest.raises(ValueError, match=r"max_samples was 1.0 .* but is 0.5 now"):
                use()
        forest.set_params(estimator=regressor())
        with pytest.raises(ValueError, match="was started with a OnlineForestClassifier"):
            forest.partial_fit(X[300:], LABELS[300:])
        assert_same_forest(forest.gather(), before)
        forest.set_params(estimator=classifier(n_jobs=2))
        assert forest.partial_fit(X[300:], LABELS[300:]).n_samples_seen_ == 600


def test_answers_are_writable():
    with on_ray(regressor(), n_shards=1) as forest:
        forest.fit(X, VALUES)
        tree = forest._sharded().tree(0)
        for answer in (forest.predict(X), forest._sharded().weights, *tree.values()):
            answer *= 2


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


@pytest.mark.parametrize("method", thorough_but("fit", of=["fit", "partial_fit"]))
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


def test_a_file_that_no_forest_on_ray_wrote_is_refused(tmp_path):
    file = tmp_path / "run.safetensors"
    for kind in (classifier, MondrianForestClassifier):
        kind().fit(np.nan_to_num(X[:50]), LABELS[:50]).save(file)
        with pytest.raises(ValueError, match=r"was not written by a RayForest\. Use RayForest\.sc"):
            RayForest.resume(file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        RayForest.resume(file)


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


def test_a_model_file_is_consistent_while_threads_learn(tmp_path):
    """Samples and ids belong to the same operation."""
    file = tmp_path / "run.safetensors"
    with on_ray(classifier(n_estimators=2), file=file, save_every=1) as forest:
        forest.partial_fit(X[:20], LABELS[:20])

        def learn(first):
            for id in range(first, first + 200, 20):
                forest.partial_fit(X[:20], LABELS[:20], ids=range(id, id + 20))

        threads = [threading.Thread(target=learn, args=(first,)) for first in (0, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = load(file)
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


def test_a_failed_fit_keeps_the_model_file(tmp_path):
    file = tmp_path / "run.safetensors"
    forest = on_ray(classifier(), file=file).fit(X, LABELS)
    local = forest.gather()
    forest.set_params(actor_options={"num_cpus": 3}, recovery_timeout=1.0)
    with pytest.raises(ShardLostError, match=rf"could not be started.*'{file}'"):
        forest.fit(X, LABELS)
    assert_same_forest(load(file), local)
    forest.set_params(actor_options={"num_cpus": 0.2}, recovery_timeout=60.0)
    with forest.fit(X[:100], LABELS[:100]):
        assert load(file).n_samples_seen_ == 100


def test_the_file_of_another_forest_is_refused(tmp_path):
    file = tmp_path / "run.safetensors"
    local = classifier().fit(X[:100], LABELS[:100])
    local.save(file)
    for use in (
        lambda: on_ray(classifier(), file=file).partial_fit(X, LABELS),
        lambda: RayForest.scatter(local, n_shards=2, file=file),
    ):
        with pytest.raises(ValueError, match=r"run.safetensors' exists\. Continue its forest"):
            use()
    with on_ray(classifier()) as forest:
        forest.fit(X, LABELS).set_params(file=file)
        with pytest.raises(ValueError, match="exists"):
            forest.fit(X, LABELS)
        assert forest.score(X, LABELS) > 0.8  # it keeps its forest
        with pytest.raises(ValueError, match="save needs a file"):
            forest.save()
    assert load(file).n_samples_seen_ == 100


def test_a_subclass_that_cannot_be_saved_is_refused_a_file(tmp_path):
    class Own(OnlineForestClassifier):
        pass

    file = tmp_path / "run.safetensors"
    forest = on_ray(Own(n_estimators=2), file=file)
    for use in (forest.fit, forest.partial_fit):
        with pytest.raises(TypeError, match="subclass Own, which would be lost"):
            use(X, LABELS)
    with pytest.raises(TypeError, match="subclass Own"):
        RayForest.scatter(Own(n_estimators=2).fit(X, LABELS), file=file)
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
    file = tmp_path / "run.safetensors"
    with on_ray(classifier(n_estimators=2), file=file) as forest:
        forest.fit(X, LABELS)
        with monkeypatch.context() as patched:
            patched.setattr("onlineforest.ray.crew._this_ray", lambda: now)
            for use in (forest.predict, lambda X: forest.partial_fit(X, LABELS)):
                with pytest.raises(ShardLostError, match="Ray was shut down, and the shards"):
                    use(X)
            with pytest.raises(ShardLostError, match="Ray was shut down"):
                forest.save()
        assert forest.n_samples_seen_ == 600
        assert forest.score(X, LABELS) > 0.8
