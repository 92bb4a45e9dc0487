"""Killed shards and nodes are restored, and the forest equals that of an undisturbed run."""

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

from onlineforest.ray import RayForest, ShardLostError, SnapshotWarning, load_snapshot
from support.bits import assert_same_forest
from support.rays import (
    RAY,
    SMALL_ACTORS,
    actors_of,
    classifier,
    data,
    on_ray,
    order_free_classifier,
    order_free_regressor,
    regressor,
    target_of,
)

pytestmark = RAY

X, LABELS, VALUES = data(4000)


class Killer(threading.Thread):
    """Kills shards at random moments; one in four while another is being restored."""

    def __init__(self, ray, forest, n_kills, seed):
        super().__init__(daemon=True)
        self.ray, self.keeper, self.n_kills = ray, forest._sharded().keeper, n_kills
        self.random = random.Random(seed)
        self.n_done = 0

    def run(self):
        while self.n_done < self.n_kills:
            time.sleep(self.random.uniform(0.0, 0.3))
            actors = dict(self.keeper._crew._actors)
            number = self.random.choice(list(actors))
            self.kill(actors[number])
            if self.n_done < self.n_kills and self.random.random() < 0.25:
                self.kill(actors[1 - number])
            while self.keeper._crew._actors.get(number) is actors[number]:
                time.sleep(0.01)  # the driver has not noticed the loss
            if self.random.random() < 0.75:
                while not self.keeper._members[number].is_running:
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


@pytest.mark.parametrize(
    ("make", "n_kills"),
    [(classifier, 20), (regressor, 10), (order_free_classifier, 20), (order_free_regressor, 10)],
)
def test_sixty_killed_shards_do_not_change_the_forest(make, n_kills, tmp_path, ray_here):
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

    with on_ray(make(**parameters), folder=tmp_path, snapshot_every=7) as forest:
        killer, source = None, stream()
        forest.partial_fit(*next(source))
        killer = Killer(ray_here, forest, n_kills, seed=n_kills)
        killer.start()
        forest.learn_stream(source)
        killer.join()
        assert killer.n_done == n_kills
        assert (
            forest.n_recoveries_ >= n_kills / 2
        )  # a shard may be killed again before it is restored
        assert_same_forest(forest.gather(), local)
        queries = X[:100] + 0.1
        assert np.array_equal(forest.predict(queries), local.predict(queries))
    print(f"{n_kills} kills, {n_learned} batches")


def test_a_shard_out_of_memory_is_restored(tmp_path, ray_here):
    """The limit ends with the process: the restored shard learns the batch."""
    local = classifier(n_estimators=2)
    with on_ray(classifier(n_estimators=2), folder=tmp_path) as forest:
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


def test_a_full_folder_stops_learning_only_when_the_log_is_full(tmp_path, ray_here):
    """Learning continues while batches can be stored; the last good snapshot stays."""

    def limit(_, n_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))

    local = classifier()
    with on_ray(classifier(), folder=tmp_path, snapshot_every=2) as forest:
        for each in (forest, local):
            each.partial_fit(X[:100], LABELS[:100])
        ray_here.get(actors_of(forest)[1].__ray_call__.remote(limit, 1000))
        n_warned = 0
        for begin in range(100, 900, 100):
            rows = slice(begin, begin + 100)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                forest.partial_fit(X[rows], LABELS[rows])
            n_warned += len(caught)
            assert all(warning.category is SnapshotWarning for warning in caught)
            local.partial_fit(X[rows], LABELS[rows])
        assert n_warned == 4
        with pytest.raises(OSError, match=r"File too large.* 8 batches .* Nothing has changed"):
            forest.partial_fit(X[:100], LABELS[:100])
        assert forest.n_samples_seen_ == local.n_samples_seen_ == 900
        assert load_snapshot(tmp_path).n_samples_seen_ == 100
        assert len(list(tmp_path.iterdir())) == 1  # no incomplete snapshot is left
        ray_here.get(actors_of(forest)[1].__ray_call__.remote(limit, resource.RLIM_INFINITY))
        rows = slice(900, 1000)
        for each in (forest, local):
            each.partial_fit(X[rows], LABELS[rows])
        assert_same_forest(forest.gather(), local)
        forest.take_snapshot()
        assert_same_forest(load_snapshot(tmp_path), local)


def test_a_folder_of_another_forest_is_refused(tmp_path, ray_here):
    with on_ray(classifier(), folder=tmp_path) as forest:
        forest.partial_fit(X[:100], LABELS[:100])
    with (
        on_ray(classifier(), folder=tmp_path) as other,
        pytest.raises(ValueError, match="holds snapshots of another forest"),
    ):
        other.partial_fit(X[:100], LABELS[:100])
    assert load_snapshot(tmp_path).n_samples_seen_ == 100


@pytest.mark.parametrize("make", [regressor, order_free_regressor])
def test_another_driver_resumes_from_the_last_snapshot(make, tmp_path, ray_here):
    local = make()
    stream = [(X[i : i + 50], VALUES[i : i + 50]) for i in range(0, 1000, 50)]
    for some, values in stream:
        local.partial_fit(some, values)
    with on_ray(make(), folder=tmp_path, snapshot_every=4) as forest:
        forest.learn_stream(stream[:15])
        forest.close()  # without a last snapshot
    assert load_snapshot(tmp_path).n_samples_seen_ < 750
    with RayForest.resume(tmp_path, actor_options=SMALL_ACTORS) as forest:
        assert 0 < forest.n_batches_ < 15
        assert forest.snapshot_every == 4
        forest.learn_stream(stream, first=0)  # batches that were learned are skipped
        assert_same_forest(forest.gather(), local)
    assert_same_forest(
        load_snapshot(tmp_path), local
    )  # the last snapshot, taken when the block ends


@pytest.mark.parametrize("make", [classifier, order_free_classifier])
def test_a_damaged_snapshot_is_a_warning_and_an_older_one_is_used(make, tmp_path, ray_here):
    with on_ray(make(), folder=tmp_path, snapshot_every=1) as forest:
        for begin in (0, 100, 200):
            forest.partial_fit(X[begin : begin + 100], LABELS[begin : begin + 100])
    newest = sorted(tmp_path.iterdir())[-1] / "shard-00001.safetensors"
    content = bytearray(newest.read_bytes())
    content[-9] ^= 1
    newest.write_bytes(content)
    with pytest.warns(SnapshotWarning, match="an older one is used"):
        assert load_snapshot(tmp_path).n_samples_seen_ == 200
    with (
        pytest.warns(SnapshotWarning, match="an older one is used"),
        RayForest.resume(tmp_path, actor_options=SMALL_ACTORS) as forest,
    ):
        assert forest.n_samples_seen_ == 200


def test_the_shard_of_a_killed_node_is_restored_on_another(tmp_path):
    """Without another node there is an error after `recovery_timeout` seconds."""
    from ray.cluster_utils import Cluster

    import ray

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
            classifier(), n_shards=2, folder=tmp_path, snapshot_every=3, recovery_timeout=60.0
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
            with pytest.raises(ShardLostError, match="could not be started within 2 s"):
                ask_until(forest, lambda: False)
        assert load_snapshot(tmp_path).n_samples_seen_ >= 1300
    finally:
        ray.shutdown()
        cluster.shutdown()


def ask_until(forest, condition):
    """Ask the forest until a condition holds, for at most a minute."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        forest.predict(X[:10])
