"""Learns a stream with checkpoints, in processes that are killed and resume.

Run as a program (``python -m support.checkpointing_child KIND FOLDER N_KILLS SEED``) it kills a
learner many times and prints a `Report`. It imports everything once and forks for each life of the
learner. At that time it has one thread only, so the child behaves like a new process.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from onlineforest._files.atomic import leftovers
from onlineforest._store.checkpoints import Checkpointer

MOST_EVENTS = 14  # events of a process before it is killed
EVENT = struct.Struct("<q")


def new_forest(kind):
    if kind == "classifier":
        return MondrianForestClassifier(n_estimators=10, window=400, random_state=0)
    if kind == "online classifier":
        return OnlineForestClassifier(n_estimators=10, reservoir=400, half_life=300, random_state=0)
    return OnlineForestRegressor(n_estimators=10, window=400, random_state=0)


def learn_batch(kind, forest, position):
    """Learn the batch of the stream at a position; return the position after it."""
    rng = np.random.default_rng(position)
    n_samples = int(rng.integers(1, 40))
    X = rng.normal(size=(n_samples, 5))
    values = X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=n_samples)
    if kind.startswith("online"):
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind.endswith("classifier"):
        n_classes = 2 + position // 500  # grows with the stream
        ids = [f"sample {i}" if i % 3 else i for i in range(position, position + n_samples)]
        forest.partial_fit(X, rng.integers(n_classes, size=n_samples), ids=ids)
    else:
        forest.partial_fit(X, values)
    return position + n_samples


def digest(forest):
    """Digest of the whole forest: state, classes, ids."""
    sha256 = hashlib.sha256()
    for name, array in sorted(forest._forest.get_state().items()):
        sha256.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    classes, trees = getattr(forest, "classes_", np.empty(0)), getattr(forest, "digest_", None)
    sha256.update(repr((classes.tolist(), sorted(map(repr, forest.ids_)), trees)).encode())
    return sha256.hexdigest()


def learn_stream(kind, folder, end, tell):
    """One life of the learner: resume from the newest checkpoint, up to a position.

    After each step it reports the position of the newest checkpoint that is surely written.
    """
    checkpointer = Checkpointer(folder, every_samples=20, keep=1)
    checkpoint = checkpointer.open()
    if checkpoint is None:
        forest, position = new_forest(kind), 0
    else:
        forest, position = checkpoint.forest, checkpoint.position["next"]
    safe = position
    tell(safe)
    while position < end:
        position = learn_batch(kind, forest, position)
        tell(safe)
        if checkpointer.update(forest, {"next": position}) is not None:
            safe = position
        tell(safe)
    checkpointer.save(forest, {"next": position})


@dataclass
class Report:
    """Counts and checkpoints of a learner that was killed many times."""

    n_kills: int = 0
    n_in_a_write: int = 0  # kills that left a temporary file
    n_without_progress: int = 0  # kills before the life had a checkpoint of its own
    newest: list[tuple[int, str]] = field(default_factory=list)  # after kills: position, digest
    end: int = 0
    seconds: float = 0.0


class Life:
    """A child process that learns, and the pipe through which it reports."""

    def __init__(self, kind, folder, end):
        assert len(os.listdir("/proc/self/task")) == 1, "a child would miss the other threads"
        self.pipe, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            os.close(self.pipe)  # writing fails once the parent has ended
            try:
                learn_stream(kind, folder, end, lambda safe: os.write(write_end, EVENT.pack(safe)))
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)
        os.close(write_end)
        self.safe = 0

    def next_event(self):
        """Wait for an event; False if the life is over."""
        data = os.read(self.pipe, EVENT.size)
        if data:
            (self.safe,) = EVENT.unpack(data)
        return bool(data)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)  # the process exists until it is waited for
        while self.next_event():
            pass
        assert self.wait() == -signal.SIGKILL, "the learner ended by itself"

    def wait(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(status)


def step_of(n_events):
    """The step of a life after `n_events` events: 0 opens, 1 learns, 2 updates."""
    return 0 if n_events == 0 else 2 - n_events % 2


def temporary_files(folder):
    return set(leftovers(folder)) if folder.exists() else set()


def kill_many_times(kind, folder, n_kills, seed):
    """Kill the learner at random moments; at the end let it learn a little more undisturbed."""
    rng = np.random.default_rng(seed)
    report = Report(n_kills=n_kills)
    start = time.monotonic()
    # Seconds of steps: from fork to open, and in turn learning and updating. The delay of a kill
    # within the last step is drawn from them.
    durations = [[0.01], [0.01], [0.01]]
    before, position = set(), 0
    for _ in range(n_kills):
        life = Life(kind, folder, end=sys.maxsize)
        n_events = int(rng.integers(MOST_EVENTS))
        for i in range(n_events):
            start_of_step = time.monotonic()
            assert life.next_event(), "the learner ended by itself"
            durations[step_of(i)].append(time.monotonic() - start_of_step)
        duration = rng.choice(durations[step_of(n_events)][-50:])
        if rng.random() < 0.3:  # to hit the short time of a write more often
            deadline = time.monotonic() + 30
            while temporary_files(folder) <= before:
                assert time.monotonic() < deadline, "the learner does not save"
            duration = durations[2][-1] / 2
        time.sleep(duration * rng.uniform(0, 1.2))
        life.kill()

        left = temporary_files(folder)
        report.n_in_a_write += bool(left - before)
        before = left
        checkpoint = Checkpointer(folder).open()
        reached = 0 if checkpoint is None else checkpoint.position["next"]
        assert reached >= max(life.safe, position), "a checkpoint was lost"
        report.n_without_progress += reached == position
        position = reached
        if checkpoint is not None:
            report.newest.append((position, digest(checkpoint.forest)))
    life = Life(kind, folder, end=position + 100)
    while life.next_event():
        pass
    assert life.wait() == 0
    report.end = Checkpointer(folder).open().position["next"]
    report.seconds = time.monotonic() - start
    return report


if __name__ == "__main__":
    warnings.simplefilter("error")  # a skipped checkpoint is a defect
    kind, folder, n_kills, seed = sys.argv[1:]
    print(json.dumps(asdict(kill_many_times(kind, Path(folder), int(n_kills), int(seed)))))
