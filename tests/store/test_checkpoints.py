"""A forest is saved when a checkpoint is due, and comes back with its position."""

from __future__ import annotations

import math
import re
import threading

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from onlineforest import MondrianForestClassifier, load
from onlineforest._forests import saving as _saving
from onlineforest._store import checkpoints as _checkpoints
from onlineforest._store.checkpoints import Checkpointer
from support.bits import assert_same_forest
from support.checkpoints import (
    learned,
    name,
    names,
    numbers,
)
from support.estimators import each_of_all_kinds

# Parameters


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("folder", value) for value in (None, 3, b"checkpoints")),
        *(("every_samples", value) for value in (0, -1, 1.5, "10")),
        *(("every_seconds", value) for value in (0, -1.0, math.nan, math.inf, "10")),
        *(("keep", value) for value in (0, -1, 1.5, None)),
    ],
)
def test_bad_parameters(tmp_path, parameter, value):
    message = f"The '{parameter}' parameter of Checkpointer must be .* Got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        Checkpointer(**{"folder": tmp_path, parameter: value})


@pytest.mark.parametrize("call", ["update", "save"])
def test_only_a_fitted_forest_of_this_library_is_saved(folder, call):
    class Subclass(MondrianForestClassifier):
        pass

    checkpointer = Checkpointer(folder, every_samples=1)
    save = getattr(checkpointer, call)
    with pytest.raises(TypeError, match="forest must be an estimator of onlineforest"):
        save(SGDClassifier())
    with pytest.raises(NotFittedError):
        save(MondrianForestClassifier())
    assert not folder.exists()
    with pytest.raises(TypeError, match="not of the subclass Subclass"):
        save(learned(3, Subclass(n_estimators=2)))
    assert names(folder) == []


def test_update_without_an_interval_would_never_save(folder):
    with pytest.raises(ValueError, match="every_samples or every_seconds, but both are None"):
        Checkpointer(folder).update(learned())
    assert not folder.exists()


# When it is time


def numbers_seen_at_saves(checkpointer, batches, forest=None):
    """Learn batches of these sizes; return the number of samples seen at each save."""
    seen = []
    for size in batches:
        forest = learned(size, forest)
        path = checkpointer.update(forest)
        if path is not None:
            assert load(path).n_samples_seen_ == forest.n_samples_seen_
            seen.append(forest.n_samples_seen_)
    return seen


def test_every_samples_counts_what_the_forest_has_seen(folder):
    checkpointer = Checkpointer(folder, every_samples=5)
    assert numbers_seen_at_saves(checkpointer, [1, 3, 1, 4, 4, 20, 4, 1]) == [5, 13, 33, 38]


def test_a_forest_that_was_never_saved_is_saved_at_once(folder):
    forest = learned(20)
    assert numbers_seen_at_saves(Checkpointer(folder, every_samples=5), [1, 4, 1], forest) == [
        21,
        26,
    ]


def test_samples_are_counted_from_the_forest_that_was_opened(folder):
    Checkpointer(folder).save(learned(20))
    checkpointer = Checkpointer(folder, every_samples=5)
    forest = checkpointer.open().forest
    assert numbers_seen_at_saves(checkpointer, [1, 3, 1, 4], forest) == [25]


def test_a_forest_that_was_fitted_again_is_saved(folder):
    checkpointer = Checkpointer(folder, every_samples=50)
    forest = learned(60)
    assert checkpointer.update(forest) is not None
    assert checkpointer.update(forest.fit([[0.0], [1.0]], [0, 1])) is not None
    assert checkpointer.update(forest.partial_fit([[2.0]], [1])) is None


def test_every_seconds_counts_time(folder, clock):
    checkpointer = Checkpointer(folder, every_seconds=10)
    forest = learned()
    saved_at = []
    for now in (1000, 1009.9, 1010, 1019.9, 1021, 1030, 1031):
        clock.now = now
        if checkpointer.update(forest):
            saved_at.append(now)
    assert saved_at == [1010, 1021, 1031]


def test_time_is_counted_from_the_end_of_a_save(folder, clock, monkeypatch):
    """Otherwise a disk slower than the interval would leave no time to learn."""

    def write_slowly(*arguments):
        clock.now += 15

    monkeypatch.setattr(_checkpoints, "write_model", write_slowly)
    checkpointer = Checkpointer(folder, every_seconds=10)
    clock.now += 10
    assert checkpointer.update(learned()) is not None
    clock.now += 9
    assert checkpointer.update(learned()) is None
    clock.now += 1
    assert checkpointer.update(learned()) is not None


def test_time_is_counted_from_opening(folder, clock):
    Checkpointer(folder).save(learned())
    checkpointer = Checkpointer(folder, every_seconds=10)
    clock.now += 100
    forest = checkpointer.open().forest
    clock.now += 9
    assert checkpointer.update(forest) is None
    clock.now += 1
    assert checkpointer.update(forest) is not None


def test_with_both_intervals_the_first_to_pass_counts(folder, clock):
    checkpointer = Checkpointer(folder, every_samples=5, every_seconds=10)
    forest = learned(4)
    assert checkpointer.update(forest) is None
    assert checkpointer.update(learned(1, forest)) is not None
    clock.now += 9
    assert checkpointer.update(learned(4, forest)) is None
    clock.now += 1
    assert checkpointer.update(forest) is not None
    clock.now += 9
    assert checkpointer.update(learned(4, forest)) is None, "the time saved counts for samples, too"
    assert checkpointer.update(learned(1, forest)) is not None


def test_save_saves_now_and_starts_the_count(folder, clock):
    checkpointer = Checkpointer(folder, every_samples=5, every_seconds=10)
    forest = learned(4)
    clock.now += 9
    checkpointer.save(forest)
    clock.now += 9
    assert checkpointer.update(learned(4, forest)) is None
    assert numbers(folder) == [1]


# Contents of a checkpoint


@each_of_all_kinds
def test_the_forest_comes_back_to_the_last_bit(folder, kind):
    forest = learned(50, kind.estimator(n_estimators=3, random_state=0, window=30))
    path = Checkpointer(folder).save(forest, 50)
    checkpoint = Checkpointer(folder).open()
    assert checkpoint.path == path == folder / name(1) and checkpoint.skipped == ()
    assert_same_forest(checkpoint.forest, forest)
    assert_same_forest(learned(7, checkpoint.forest), learned(7, forest))


@pytest.mark.parametrize(
    "position", [0, -1, 2**63, 0.5, "", "2024-05-01", False, [1, [2]], {"a": 1, "b": None}, {}, []]
)
def test_positions_come_back(folder, position):
    Checkpointer(folder).save(learned(), position)
    assert Checkpointer(folder).open().position == position


@pytest.mark.parametrize("position", [(1, 2), {1: 2}, {1}, math.nan, b"1"])
def test_positions_that_json_cannot_represent_are_refused(folder, position):
    checkpointer = Checkpointer(folder)
    checkpointer.save(learned(), 1)
    with pytest.raises(ValueError, match="position must be a value that JSON can represent"):
        checkpointer.save(learned(), position)
    assert numbers(folder) == [1]


def test_without_a_position_it_is_the_number_of_samples_seen(folder):
    forest = MondrianForestClassifier(n_estimators=2, window=3)
    Checkpointer(folder).save(learned(10, forest))
    assert Checkpointer(folder).open().position == 10


def test_without_a_position_the_two_agree_even_if_another_thread_learns(folder, monkeypatch):
    forest = learned(10)

    def write_later(forest, path, position):
        _saving.write_model(learned(5, forest), path, position)

    monkeypatch.setattr(_checkpoints, "write_model", write_later)
    Checkpointer(folder).save(forest)
    checkpoint = Checkpointer(folder).open()
    assert checkpoint.position == checkpoint.forest.n_samples_seen_ == 15


# Threads and signals


def test_threads_share_a_checkpointer(folder):
    checkpointer, forest = Checkpointer(folder, every_samples=1, keep=1000), learned(1)
    failures, paths = [], []

    def learn():
        try:
            for _ in range(20):
                path = checkpointer.update(learned(1, forest))
                paths.extend([path] if path else [])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert numbers(folder) == list(range(1, len(paths) + 1)) and len(set(paths)) == len(paths)
    seen = [load(path).n_samples_seen_ for path in sorted(paths)]
    assert seen == sorted(seen)
    checkpoint = checkpointer.open()
    assert checkpoint.position == checkpoint.forest.n_samples_seen_ == 81


@pytest.mark.parametrize("call", ["open", "save"])
def test_a_signal_handler_cannot_use_the_checkpointer_it_interrupts(folder, monkeypatch, call):
    """The handler would wait for its own thread, or use the same number."""
    checkpointer, forest = Checkpointer(folder, every_samples=1), learned()

    def write_model(*arguments):
        checkpointer.open() if call == "open" else checkpointer.save(forest)

    with monkeypatch.context() as patch:
        patch.setattr(_checkpoints, "write_model", write_model)
        with pytest.raises(RuntimeError, match="in the middle of a call"):
            checkpointer.update(forest)
    checkpointer.save(forest)
    assert numbers(folder) == [1]
