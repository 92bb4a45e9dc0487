"""Shards and nodes that are killed come back, and the forest is that of an undisturbed run."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
import time

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
    regressor,
)

pytestmark = RAY

X, LABELS, VALUES = data(4000)


class Killer(threading.Thread):
    """Kills a shard at a random moment, when all are there; sometimes the next one at once."""

    def __init__(self, ray, forest, n_kills, seed):
        super().__init__(daemon=True)
        self.ray, self.forest, self.n_kills = ray, forest, n_kills
        self.random = random.Random(seed)
        self.n_done = 0

    def run(self):
        members = self.forest._sharded()._members
        while self.n_done < self.n_kills:
            is_calm = all(member.is_there for member in members)
            if is_calm or self.random.random() < 0.02:  # or while one is coming back
                time.sleep(self.random.uniform(0.0, 0.1))
                self.kill(self.random.choice(list(actors_of(self.forest).items())))
            time.sleep(0.05)

    def kill(self, item):
        number, actor = item
        if self.random.random() < 0.5:
            self.ray.kill(actor)
        else:
            try:
                os.kill(self.ray.get(actor.__ray_call__.remote(_pid), timeout=1.0), signal.SIGKILL)
            except Exception:  # it is not there, or busy
                self.ray.kill(actor)
        self.n_done += 1


def _pid(_):
    return os.getpid()


@pytest.mark.parametrize(("make", "n_kills"), [(classifier, 20), (regressor, 10)])
def test_thirty_kills(make, n_kills, tmp_path, ray_here):
    y = LABELS if make is classifier else VALUES
    parameters = {"n_estimators": 6, "window": 700}
    local = make(**parameters)
    n_learned = 0

    def stream():
        nonlocal n_learned
        rng = np.random.default_rng(0)
        while killer is None or killer.is_alive() or n_learned < 20:
            rows = rng.integers(0, len(X), 50)
            local.partial_fit(X[rows], y[rows])
            n_learned += 1
            yield X[rows], y[rows]

    with on_ray(make(**parameters), folder=tmp_path, snapshot_every=7) as forest:
        killer, source = None, stream()
        forest.partial_fit(*next(source))
        killer = Killer(ray_here, forest, n_kills, seed=n_kills)
        killer.start()
        forest.learn_stream(source, first=1)
        killer.join()
        assert killer.n_done == n_kills
        assert forest.n_recoveries_ >= n_kills / 2  # a shard may be killed again before it is back
        assert_same_forest(forest.gather(), local)
        queries = X[:100] + 0.1
        assert np.array_equal(forest.predict(queries), local.predict(queries))
    print(f"{n_kills} kills, {n_learned} batches")


def test_a_shard_out_of_memory_is_built_anew(tmp_path, ray_here):
    """The limit goes with the process: its successor learns the batch."""
    local = classifier()
    with on_ray(classifier(), folder=tmp_path) as forest:
        for each in (forest, local):
            each.partial_fit(X[:200], LABELS[:200])

        def limit(_):
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, used + 2**20))

        ray_here.get(actors_of(forest)[1].__ray_call__.remote(limit))
        wide = np.tile(X, (20, 1)), np.tile(LABELS, 20)
        for each in (forest, local):
            each.partial_fit(*wide)
        assert forest.n_recoveries_ >= 1
        assert_same_forest(forest.gather(), local)


def test_a_folder_that_fills_up(tmp_path, ray_here):
    """Learning goes on as long as batches can be kept; the last good snapshot stays."""

    def limit(_, n_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))

    local = classifier()
    with on_ray(classifier(), folder=tmp_path, snapshot_every=2) as forest:
        for each in (forest, local):
            each.partial_fit(X[:100], LABELS[:100])
        ray_here.get(actors_of(forest)[1].__ray_call__.remote(limit, 1000))
        n_warned = 0
        with pytest.raises(ShardLostError, match="No snapshot could be written since operation 1"):  # noqa: PT012
            for begin in range(100, 4000, 100):
                rows = slice(begin, begin + 100)
                with pytest.warns(SnapshotWarning) if begin % 200 == 0 else _nothing():
                    forest.partial_fit(X[rows], LABELS[rows])
                    n_warned += begin % 200 == 0
                local.partial_fit(X[rows], LABELS[rows])
        assert n_warned == 4
        assert forest.n_samples_seen_ == local.n_samples_seen_ == 900
        assert load_snapshot(tmp_path).n_samples_seen_ == 100
        assert len(list(tmp_path.iterdir())) == 1  # nothing half-done is left
        ray_here.get(actors_of(forest)[1].__ray_call__.remote(limit, resource.RLIM_INFINITY))
        rows = slice(900, 1000)
        for each in (forest, local):
            each.partial_fit(X[rows], LABELS[rows])
        assert_same_forest(forest.gather(), local)
        forest.take_snapshot()
        assert_same_forest(load_snapshot(tmp_path), local)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_a_folder_of_another_forest_is_refused(tmp_path, ray_here):
    with on_ray(classifier(), folder=tmp_path) as forest:
        forest.partial_fit(X[:100], LABELS[:100])
    with (
        on_ray(classifier(), folder=tmp_path) as other,
        pytest.raises(ValueError, match="holds snapshots of another forest"),
    ):
        other.partial_fit(X[:100], LABELS[:100])
    assert load_snapshot(tmp_path).n_samples_seen_ == 100


def test_a_driver_that_is_gone_is_followed_by_another(tmp_path, ray_here):
    local = regressor()
    stream = [(X[i : i + 50], VALUES[i : i + 50]) for i in range(0, 1000, 50)]
    for some, values in stream:
        local.partial_fit(some, values)
    with on_ray(regressor(), folder=tmp_path, snapshot_every=4) as forest:
        forest.learn_stream(stream[:15])
    assert load_snapshot(tmp_path).n_samples_seen_ < 750
    with RayForest.resume(tmp_path, actor_options=SMALL_ACTORS) as forest:
        assert 0 < forest.n_batches_ < 15
        forest.learn_stream(stream)  # what was learned before is skipped
        assert_same_forest(forest.gather(), local)


def test_a_damaged_snapshot_is_told_and_the_one_before_taken(tmp_path, ray_here):
    with on_ray(classifier(), folder=tmp_path, snapshot_every=1) as forest:
        for begin in (0, 100, 200):
            forest.partial_fit(X[begin : begin + 100], LABELS[begin : begin + 100])
    newest = sorted(tmp_path.iterdir())[-1] / "part-00001.safetensors"
    content = bytearray(newest.read_bytes())
    content[-9] ^= 1
    newest.write_bytes(content)
    with pytest.warns(SnapshotWarning, match="an older one is taken"):
        assert load_snapshot(tmp_path).n_samples_seen_ == 200
    with (
        pytest.warns(SnapshotWarning, match="an older one is taken"),
        RayForest.resume(tmp_path, actor_options=SMALL_ACTORS) as forest,
    ):
        assert forest.n_samples_seen_ == 200


def test_a_node_that_is_killed(tmp_path):
    """Its shard comes back on another; where there is no other, an error after the time stated."""
    import ray
    from ray.cluster_utils import Cluster

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
            _wait_for(lambda: _lost(forest) or forest.n_recoveries_ == 1, forest)
            assert forest.n_recoveries_ == 1
            assert_same_forest(forest.gather(), local)

            forest._sharded()._settings = _quicker(forest._sharded()._settings)
            cluster.remove_node(another, allow_graceful=False)
            started = time.monotonic()
            with pytest.raises(ShardLostError, match="could not be started within 2 s"):
                while time.monotonic() < started + 60.0:  # until Ray has noticed
                    forest.predict(X[:10])
        assert load_snapshot(tmp_path).n_samples_seen_ >= 1300
    finally:
        ray.shutdown()
        cluster.shutdown()


def _quicker(settings):
    from dataclasses import replace

    return replace(settings, recovery_timeout=2.0)


def _lost(forest):
    forest.predict(X[:10])
    return False


def _wait_for(condition, forest, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
