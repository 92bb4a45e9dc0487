"""Killed shards and nodes do not change the forest; if all are lost, the model file has it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from onlineforest import load
from onlineforest.ray import RayForest, ShardLostError
from support.bits import assert_same_forest
from support.examples import thorough_but
from support.rays import (
    RAY,
    SMALL_ACTORS,
    actors_of,
    classifier,
    data,
    on_ray,
    regressor,
    target_of,
)

pytestmark = RAY

X, LABELS, VALUES = data(4000)


class Killer(threading.Thread):
    """Kills two of three shards at random moments; one in four while the other is made anew."""

    def __init__(self, ray, forest, n_kills, seed):
        super().__init__(daemon=True)
        self.ray, self.keeper, self.n_kills = ray, forest._sharded().keeper, n_kills
        self.random = random.Random(seed)
        self.n_done = 0

    def run(self):
        while self.n_done < self.n_kills:
            time.sleep(self.random.uniform(0.0, 0.3))
            actors = dict(self.keeper._crew._actors)
            spared = self.random.choice(list(actors))
            number, other = self.random.sample(sorted(actors.keys() - {spared}), 2)
            self.kill(actors[number])
            doomed = [number]
            if self.n_done < self.n_kills and self.random.random() < 0.25:
                self.kill(actors[other])
                doomed.append(other)
            for each in doomed:
                while self.keeper._crew._actors.get(each) is actors[each]:
                    time.sleep(0.01)  # the driver has not noticed the loss
            while not all(member.is_running for member in self.keeper._members):
                time.sleep(0.01)

    def kill(self, actor):
        if self.random.random() < 0.5:
            self.ray.kill(actor)
        else:
            try:
                os.kill(self.ray.get(actor.__ray_call__.remote(_pid), timeout=1.0), signal.SIGKILL)
            except self.ray.exceptions.RayError:  # it is gone, or busy
                self.ray.kill(actor)
        self.n_done += 1


def _pid(_):
    return os.getpid()


FEW_KILLS = (classifier, 4)


@pytest.mark.parametrize(
    ("make", "n_kills"),
    thorough_but(FEW_KILLS, of=[FEW_KILLS, (classifier, 20), (regressor, 10)]),
)
def test_killed_shards_do_not_change_the_forest(make, n_kills, ray_here):
    """Batches are in progress all the time, and none is stored once it is learned."""
    y = target_of(make, LABELS, VALUES)
    parameters = {"n_estimators": 6, "window": 700}
    local = make(**parameters)
    n_learned = 0

    def stream():
        nonlocal n_learned
        rng = np.random.default_rng(0)
        same_place = np.empty((50, 4), dtype=np.float32)  # overwritten by the next batch
        while killer is None or killer.is_alive() or n_learned < 20:
            rows = rng.integers(0, len(X), 50)
            same_place[:] = X[rows]
            local.partial_fit(same_place, y[rows])
            n_learned += 1
            yield same_place, y[rows]

    with on_ray(make(**parameters), n_shards=3) as forest:
        killer, source = None, stream()
        forest.partial_fit(*next(source))
        killer = Killer(ray_here, forest, n_kills, seed=n_kills)
        killer.start()
        forest.learn_stream(source)
        killer.join()
        assert killer.n_done == n_kills
        assert forest.n_recoveries_ >= n_kills
        assert_same_forest(forest.gather(), local)
        queries = X[:100] + 0.1
        assert np.array_equal(forest.predict(queries), local.predict(queries))
        assert forest.digest_ == local.digest_
    print(f"{n_kills} kills, {n_learned} batches")


@pytest.mark.thorough
def test_a_shard_out_of_memory_is_made_anew(ray_here):
    """The limit ends with the process: the new shard gets the batch with all other samples."""
    local = classifier(n_estimators=2)
    with on_ray(classifier(n_estimators=2)) as forest:
        for each in (forest, local):
            each.partial_fit(X[:200], LABELS[:200])

        def starve(shard):
            resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))  # less than it has: no more
            shard.balloon = []
            for size in (2**26, 2**22, 2**20):
                with contextlib.suppress(MemoryError):
                    while True:
                        shard.balloon.append(bytearray(size))

        ray_here.get(actors_of(forest)[1].__ray_call__.remote(starve))
        wide = np.tile(X, (50, 1)), np.tile(LABELS, 50)
        for each in (forest, local):
            each.partial_fit(*wide)
        assert forest.n_recoveries_ >= 1
        assert_same_forest(forest.gather(), local)


@pytest.mark.parametrize("n_shards", thorough_but(1, of=[1, 2]))
def test_if_all_shards_are_lost_the_model_file_continues(n_shards, tmp_path, ray_here):
    file = tmp_path / "run.safetensors"
    local = regressor()
    stream = [(X[i : i + 50], VALUES[i : i + 50]) for i in range(0, 1000, 50)]
    for some, values in stream:
        local.partial_fit(some, values)
    with on_ray(regressor(), n_shards=n_shards, file=file, save_every=4) as forest:
        forest.learn_stream(stream[:15])
        for actor in actors_of(forest).values():
            ray_here.kill(actor)
        for use in (lambda: forest.predict(X), lambda: forest.partial_fit(*stream[15])):
            with pytest.raises(ShardLostError, match=rf"last living shard was lost.*'{file}'"):
                use()
        forest.close()
    assert load(file).n_samples_seen_ == 650  # after the 1st, the 5th, the 9th and the 13th batch
    with RayForest.resume(file, n_shards=3 - n_shards, actor_options=SMALL_ACTORS) as forest:
        assert forest.n_batches_ == 13 and forest.n_shards_ == 3 - n_shards
        forest.learn_stream(stream, first=0)  # batches that were learned are skipped
        assert_same_forest(forest.gather(), local)
        assert forest.digest_ == local.digest_
    assert_same_forest(load(file), local)  # written when the block ends


def test_another_driver_continues_from_the_model_file(tmp_path, ray_here):
    """This one ends its shards, as Ray does when the driver is killed."""
    file = tmp_path / "run.safetensors"
    local = classifier()
    stream = [(X[i : i + 50], LABELS[i : i + 50]) for i in range(0, 1000, 50)]
    for some, labels in stream:
        local.partial_fit(some, labels)
    with on_ray(classifier(), file=file, save_every=4) as forest:
        forest.learn_stream(stream[:12])
        forest.save()
        forest.learn_stream(stream[12:15])
        forest.close()
    with RayForest.resume(file, actor_options=SMALL_ACTORS, save_every=1000) as forest:
        assert forest.n_batches_ == 13  # one was due after the 13th
        forest.learn_stream(stream, first=0)
        assert load(file).n_samples_seen_ == 650
        forest.save()
        assert_same_forest(load(file), local)


def test_a_full_disk_is_a_warning_and_learning_continues(tmp_path, ray_here, monkeypatch):
    file = tmp_path / "run.safetensors"
    local = classifier()

    def fail(*_):
        raise OSError(28, "No space left on device")

    with on_ray(classifier(), file=file, save_every=2) as forest:
        for each in (forest, local):
            each.partial_fit(X[:100], LABELS[:100])
        n_warned = 0
        with monkeypatch.context() as patched:
            patched.setattr("onlineforest._forests.saving.write", fail)
            for begin in range(100, 900, 100):
                rows = slice(begin, begin + 100)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    forest.partial_fit(X[rows], LABELS[rows])
                n_warned += len(caught)
                assert all(warning.category is RuntimeWarning for warning in caught)
                local.partial_fit(X[rows], LABELS[rows])
            with pytest.raises(OSError, match="No space left"):
                forest.save()
        assert n_warned == 4
        assert load(file).n_samples_seen_ == 100  # the last good one stays
        assert_same_forest(forest.gather(), local)
        forest.save()
        assert_same_forest(load(file), local)
        assert [each.name for each in tmp_path.iterdir()] == ["run.safetensors"]


@pytest.mark.thorough
def test_the_shard_of_a_killed_node_is_made_anew_on_another(tmp_path):
    """Without another node there is an error after `recovery_timeout` seconds."""
    from ray.cluster_utils import Cluster

    import ray

    file = tmp_path / "run.safetensors"
    ray.shutdown()  # that of the other tests
    memory = 100 * 2**20
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": memory},
    )
    try:
        doomed = cluster.add_node(num_cpus=1, object_store_memory=memory)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        local = classifier()
        with RayForest(
            classifier(), n_shards=2, file=file, save_every=3, recovery_timeout=60.0
        ) as forest:

            def learn(begin, end):
                for first in range(begin, end, 100):
                    rows = slice(first, first + 100)
                    local.partial_fit(X[rows], LABELS[rows])
                    forest.partial_fit(X[rows], LABELS[rows])

            learn(0, 800)
            places = {
                ray.get(a.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()))
                for a in actors_of(forest).values()
            }
            assert len(places) == 2  # a shard on each node
            cluster.remove_node(doomed, allow_graceful=False)
            another = cluster.add_node(num_cpus=1, object_store_memory=memory)
            learn(800, 1600)
            ask_until(forest, lambda: forest.n_recoveries_ == 1)  # until Ray has noticed
            assert_same_forest(forest.gather(), local)

            keeper = forest._sharded().keeper
            keeper._settings = replace(keeper._settings, recovery_timeout=2.0)
            cluster.remove_node(another, allow_graceful=False)
            with pytest.raises(ShardLostError, match=rf"could not be started within 2 s.*'{file}'"):
                ask_until(forest, lambda: False)
            assert_same_forest(forest.gather(), local)  # the first shard has all samples
        assert_same_forest(load(file), local)
    finally:
        ray.shutdown()
        cluster.shutdown()


def ask_until(forest, condition):
    """Ask the forest until a condition holds, for at most a minute."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        forest.predict(X[:10])
