"""A forest is saved when a checkpoint is due, and the newest valid checkpoint is found."""

from __future__ import annotations

import errno
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from onlineforest import ModelFileError, ModelTooLargeError, MondrianForestClassifier, load
from onlineforest._files import atomic as _atomic
from onlineforest._forests import saving as _saving
from onlineforest._store import checkpoints as _checkpoints
from onlineforest._store.checkpoints import Checkpointer
from support.bits import assert_same_forest
from support.estimators import each_of_all_kinds

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path):
    """A folder that does not exist yet."""
    return tmp_path / "checkpoints"


def learned(n_samples=3, forest=None):
    """A forest that has learned this number of (further) samples."""
    forest = forest or MondrianForestClassifier(n_estimators=2, random_state=0)
    rng = np.random.default_rng(n_samples)
    return forest.partial_fit(rng.random((n_samples, 2)), rng.integers(2, size=n_samples))


def name(number):
    return f"checkpoint-{number:012d}.safetensors"


def names(folder):
    return sorted(os.listdir(folder))


def numbers(folder):
    """The numbers of the checkpoints in a folder, which must hold nothing else."""
    pattern = r"checkpoint-(\d{12})\.safetensors"
    return [int(re.fullmatch(pattern, each)[1]) for each in names(folder)]


def save_several(folder, n):
    """Save checkpoints 1 to n, of forests that have seen a growing number of samples."""
    for i in range(1, n + 1):
        Checkpointer(folder, keep=100).save(learned(i))


def damage(path):
    """Flip one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


class Clock:
    """Stands in for the module `time`."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_checkpoints, "time", clock)
    return clock


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


# Files


def test_the_folder_and_its_names_are_synced(tmp_path, monkeypatch):
    synced = []
    real_fsync = os.fsync

    def fsync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_fsync(descriptor)

    monkeypatch.setattr(_atomic.os, "fsync", fsync)
    folder = tmp_path / "a" / "b"
    Checkpointer(str(folder)).save(learned())
    assert names(folder) == [name(1)]
    *parents, file, last = synced
    assert parents == [str(tmp_path / "a"), str(tmp_path)]
    assert file.endswith(".tmp") and last == str(folder)
    synced.clear()
    Checkpointer(folder).save(learned())
    assert len(synced) == 2


def test_a_folder_stays_where_it_was_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpointer = Checkpointer("checkpoints")
    monkeypatch.chdir("/")
    assert checkpointer.save(learned()) == tmp_path / "checkpoints" / name(1)


def test_numbers_continue_after_the_largest(folder):
    folder.mkdir()
    for number in (3, 17, 999_999_999_999):
        (folder / name(number)).write_bytes(b"damaged")
    checkpointer = Checkpointer(folder, keep=2)
    paths = [checkpointer.save(learned()) for _ in range(2)]
    assert [path.name for path in paths] == [
        "checkpoint-1000000000000.safetensors",
        "checkpoint-1000000000001.safetensors",
    ]
    assert names(folder) == [path.name for path in paths]
    assert checkpointer.open().path == paths[1]


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_last_ones_are_kept(folder, keep):
    checkpointer = Checkpointer(folder, keep=keep)
    for i in range(1, 8):
        checkpointer.save(learned(i))
        assert numbers(folder) == list(range(1, i + 1))[-keep:]
    save_several(folder, 3)
    checkpointer.save(learned())
    assert numbers(folder) == list(range(1, 12))[-keep:]


def test_old_ones_are_deleted_only_when_the_new_one_is_safe(folder, monkeypatch):
    checkpointer = Checkpointer(folder, keep=1)
    checkpointer.save(learned(1))
    listings = []
    real_fsync = os.fsync

    def fsync(descriptor):
        listings.append(name(1) in names(folder))
        real_fsync(descriptor)

    monkeypatch.setattr(_atomic.os, "fsync", fsync)
    checkpointer.save(learned(2))
    assert listings == [True, True]  # while the file, then while the folder was not yet on the disk
    assert numbers(folder) == [2]


def test_a_failed_deletion_is_no_error_and_tried_again(folder, monkeypatch):
    checkpointer = Checkpointer(folder, keep=1)
    checkpointer.save(learned(1))

    def unlink(path):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        checkpointer.save(learned(2))
        checkpointer.save(learned(3))
    assert numbers(folder) == [1, 2, 3]
    checkpointer.save(learned(4))
    assert numbers(folder) == [4]


def test_other_files_are_not_touched(folder):
    folder.mkdir()
    others = [
        "checkpoint-1.safetensors",
        "checkpoint-0000000000001.safetensors",  # a digit too many
        "checkpoint-00000000000a.safetensors",
        "checkpoint-000000000001.safetensors.bak",
        "Checkpoint-000000000001.safetensors",
        ".checkpoint-best.safetensors.0123abcd.tmp",
        ".checkpoint-000000000001.safetensors.tmp",
        ".other.safetensors.0123abcd.tmp",
        "notes.txt",
    ]
    for other in others:
        (folder / other).write_text(other)
    checkpointer = Checkpointer(folder, keep=1)
    assert checkpointer.open() is None
    for i in range(1, 4):
        checkpointer.save(learned(i))
    assert checkpointer.open().position == 3
    assert names(folder) == sorted([*others, name(3)])
    assert all((folder / other).read_text() == other for other in others)


def test_temporary_files_of_killed_processes_are_removed(folder):
    save_several(folder, 1)
    left = folder / f".{name(2)}.0123abcd.tmp"
    left.write_bytes(b"half")
    checkpointer = Checkpointer(folder)
    checkpointer.open()
    assert left.exists(), "who opens does not change the folder: another may be writing"
    checkpointer.save(learned())
    assert numbers(folder) == [1, 2]


# Opening


def test_open_without_a_checkpoint_returns_none(folder):
    checkpointer = Checkpointer(folder)
    assert checkpointer.open() is None and not folder.exists()
    folder.mkdir()
    assert checkpointer.open() is None


def test_the_newest_is_opened(folder):
    save_several(folder, 11)
    assert Checkpointer(folder).open().position == 11


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


def replace_by_link_to_nothing(path):
    path.unlink()
    path.symlink_to("nothing")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (damage, "is damaged: its SHA-256"),
        (empty, "is not a model file of onlineforest: it is empty"),
        (cut, "is damaged: its SHA-256"),
        (replace_by_folder, "is not a regular file"),
        (replace_by_link_to_nothing, "cannot be read: No such file or directory"),
    ],
)
def test_one_that_cannot_be_used_is_skipped_with_a_warning(folder, spoil, reason):
    save_several(folder, 3)
    spoil(folder / name(3))
    with pytest.warns(UserWarning, match="Skipped") as caught:
        checkpoint = Checkpointer(folder).open()
    assert checkpoint.position == 2 and checkpoint.path == folder / name(2)
    (skipped,) = checkpoint.skipped
    assert skipped.path == folder / name(3) and skipped.reason.startswith(reason)
    (warning,) = caught
    assert str(warning.message) == f"Skipped a checkpoint: {skipped.path} {skipped.reason}"
    assert "\n" not in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "Permission denied"), OSError("?")]
)
def test_one_that_cannot_be_read_is_skipped(folder, monkeypatch, error):
    save_several(folder, 2)
    real_load = _checkpoints.load_with_position

    def load_with_position(path, max_bytes):
        if path.name == name(2):
            raise error
        return real_load(path, max_bytes=max_bytes)

    monkeypatch.setattr(_checkpoints, "load_with_position", load_with_position)
    with pytest.warns(UserWarning, match=rf"{name(2)} cannot be read: (Permission denied|\?)"):
        assert Checkpointer(folder).open().position == 1


def test_each_skipped_checkpoint_is_warned_about(folder):
    save_several(folder, 4)
    for number in (1, 3, 4):
        damage(folder / name(number))
    with pytest.warns(UserWarning, match="Skipped") as caught:
        checkpoint = Checkpointer(folder).open()
    assert checkpoint.position == 2 and len(caught) == 2
    assert [each.path.name for each in checkpoint.skipped] == [name(4), name(3)]


def test_after_a_skip_learning_goes_on_with_a_new_number(folder):
    save_several(folder, 3)
    damage(folder / name(3))
    checkpointer = Checkpointer(folder, every_samples=5)
    with pytest.warns(UserWarning, match="Skipped"):
        forest = checkpointer.open().forest
    assert checkpointer.update(learned(4, forest)) is None, "it counts from 2"
    assert checkpointer.update(learned(1, forest)) == folder / name(4)
    assert checkpointer.open().position == 7


def test_those_that_were_skipped_do_not_count_as_kept(folder):
    save_several(folder, 4)
    for number in (3, 4):
        damage(folder / name(number))
    checkpointer = Checkpointer(folder, keep=2)
    with pytest.warns(UserWarning, match="Skipped"):
        checkpointer.open()
    checkpointer.save(learned())
    assert numbers(folder) == [2, 3, 4, 5]
    checkpointer.save(learned())
    assert numbers(folder) == [5, 6]


def test_if_all_checkpoints_are_damaged_open_raises(folder):
    save_several(folder, 2)
    for number in (1, 2):
        damage(folder / name(number))
    with pytest.raises(ModelFileError) as caught:
        Checkpointer(folder).open()
    first, *others = str(caught.value).splitlines()
    assert first == f"{folder} has checkpoints, but none can be used:"
    assert [other.split(" is damaged: ")[0] for other in others] == [
        str(folder / name(2)),
        str(folder / name(1)),
    ]
    assert numbers(folder) == [1, 2]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_errors_that_do_not_concern_the_file_are_raised(folder, monkeypatch, error):
    save_several(folder, 2)

    def fail(*args, **options):
        raise error

    checkpointer = Checkpointer(folder)
    with monkeypatch.context() as patch:
        patch.setattr(_checkpoints, "load_with_position", fail)
        with pytest.raises(error):
            checkpointer.open()
    assert checkpointer.open().position == 2


def test_a_checkpoint_beyond_the_memory_limit_is_an_error(folder):
    save_several(folder, 1)
    Checkpointer(folder).save(learned(2000))
    for limit in (1, 20_000):  # the older one is smaller, but not what was asked for
        with pytest.raises(ModelTooLargeError, match=rf"{name(2)} holds a forest of more than"):
            Checkpointer(folder).open(max_bytes=limit)
    with pytest.raises(ValueError, match="max_bytes must be an integer"):
        Checkpointer(folder).open(max_bytes=-1)


# Whatever goes wrong with a save


def assert_fails(checkpointer, forest, number):
    """A save fails and leaves no file; earlier checkpoints and the forest are unchanged."""
    before = {path.name: path.read_bytes() for path in checkpointer.folder.iterdir()}
    state = forest._forest.get_state()
    with pytest.raises(OSError, match="checkpoint not written") as caught:
        checkpointer.save(forest)
    error = caught.value
    assert error.errno == number
    assert type(error) is type(OSError(number, ""))
    ones = "1 earlier one is" if len(before) == 1 else f"{len(before)} earlier ones are"
    assert error.strerror == f"{os.strerror(number)}; checkpoint not written, {ones} intact"
    assert error.filename == str(checkpointer.folder / name(len(before) + 1))
    assert {path.name: path.read_bytes() for path in checkpointer.folder.iterdir()} == before
    assert all(
        np.array_equal(array, state[key]) for key, array in forest._forest.get_state().items()
    )


def assert_goes_on(checkpointer, forest, last_saved):
    """The last checkpoint opens, and the forest continues to learn and can be saved."""
    assert checkpointer.open().position == last_saved
    checkpointer.save(learned(5, forest))
    checkpoint = checkpointer.open()
    assert checkpoint.position == forest.n_samples_seen_
    assert_same_forest(checkpoint.forest, forest)


@pytest.mark.parametrize("n_earlier", [0, 1, 2])
@pytest.mark.parametrize("function", ["open", "fsync", "replace"])
@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES]
)
def test_a_step_that_fails(folder, monkeypatch, function, number, n_earlier):
    def fail(*arguments):
        raise OSError(number, os.strerror(number))

    folder.mkdir()
    save_several(folder, n_earlier)
    checkpointer, forest = Checkpointer(folder), learned(50)
    with monkeypatch.context() as patch:
        patch.setattr(_atomic.os, function, fail)
        assert_fails(checkpointer, forest, number)
    if n_earlier:
        assert_goes_on(checkpointer, forest, n_earlier)
    else:
        assert checkpointer.open() is None


def test_a_disk_that_is_full_in_the_middle(folder, monkeypatch):
    def write(file, arrays, metadata):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    save_several(folder, 3)
    checkpointer, forest = Checkpointer(folder), learned(50)
    with monkeypatch.context() as patch:
        patch.setattr(_saving, "write", write)
        assert_fails(checkpointer, forest, errno.ENOSPC)
    assert_goes_on(checkpointer, forest, 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_save(folder, monkeypatch, error):
    def write(file, arrays, metadata):
        file.write(b"half")
        raise error

    save_several(folder, 3)
    checkpointer, forest = Checkpointer(folder), learned(50)
    with monkeypatch.context() as patch:
        patch.setattr(_saving, "write", write)
        with pytest.raises(error):
            checkpointer.save(forest)
    assert numbers(folder) == [1, 2, 3]
    assert_goes_on(checkpointer, forest, 3)


@pytest.mark.parametrize("below", ["", "below"])
def test_a_folder_that_is_a_file(tmp_path, below):
    (tmp_path / "file").write_text("not a folder")
    checkpointer = Checkpointer(tmp_path / "file" / below)
    with pytest.raises(NotADirectoryError, match="Not a directory; checkpoint not written"):
        checkpointer.save(learned())
    with pytest.raises(NotADirectoryError):
        checkpointer.open()
    assert (tmp_path / "file").read_text() == "not a folder"


def test_a_full_disk_is_tried_again_after_an_interval(folder, clock, monkeypatch):
    """A failing disk must not slow down every batch."""
    tried = []

    def write_model(forest, path, position):
        tried.append((forest.n_samples_seen_, clock.now))
        clock.now += 3
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_checkpoints, "write_model", write_model)
    checkpointer = Checkpointer(folder, every_samples=10, every_seconds=60)
    forest, n_failed = None, 0
    for seconds in [1] * 25 + [25] * 9:  # that a batch takes
        forest = learned(1, forest)
        clock.now += seconds
        try:
            assert checkpointer.update(forest) is None
        except OSError:
            n_failed += 1
    assert n_failed == len(tried)
    assert tried[:2] == [(10, 1010), (20, 1023)]  # every 10 samples
    assert tried[2:] == [(28, 1106), (31, 1184), (34, 1262)]  # every 60 seconds


# Errors of the system itself, in a process of its own


def run_child(script, *arguments, within=()):
    """Run a script that imports this file, possibly through another command."""
    start = """
        import errno, os, resource, subprocess, sys
        from pathlib import Path
        from store.test_checkpoints import Checkpointer, assert_fails, assert_goes_on, learned
        checkpointer = Checkpointer(Path(sys.argv[1]) / "checkpoints", keep=2)
        forest = learned(20)
        checkpointer.save(forest)
    """
    script = textwrap.dedent(start) + textwrap.dedent(script)
    command = [*within, sys.executable, "-c", script, *map(str, arguments)]
    finished = subprocess.run(command, cwd=TESTS, timeout=120, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


LIMITED_FILES = """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 1000, 5000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        assert_fails(checkpointer, learned(5, forest), errno.EFBIG)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_goes_on(checkpointer, forest, 20)
"""

SMALL_DISK = """
    disk = Path(sys.argv[1])

    def fill(n_bytes_to_leave):
        hog = disk / "hog"
        try:
            with hog.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
        os.truncate(hog, hog.stat().st_size - n_bytes_to_leave)
        return hog

    for n_bytes_to_leave in (0, 4096):
        hog = fill(n_bytes_to_leave)
        assert_fails(checkpointer, learned(5, forest), errno.ENOSPC)
        hog.unlink()
    assert_goes_on(checkpointer, forest, 20)

    n_saved = forest.n_samples_seen_
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert_fails(checkpointer, learned(5, forest), errno.EROFS)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert_goes_on(checkpointer, forest, n_saved)
"""

FORBIDDEN_FOLDER = """
    folder = checkpointer.folder
    if os.getuid() == 0:  # whom permissions do not bind
        for path in (folder, *folder.iterdir()):
            os.chown(path, 65534, 65534)
        os.chmod(folder.parent, 0o755)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    folder.chmod(0o500)
    assert_fails(checkpointer, learned(5, forest), errno.EACCES)
    folder.chmod(0o300)
    try:
        checkpointer.save(forest)
    except PermissionError as error:  # it cannot know which number is next
        what = "Permission denied; checkpoint not written, earlier ones are intact"
        assert (error.strerror, error.filename) == (what, str(folder))
    else:
        raise AssertionError("nothing was forbidden")
    folder.chmod(0o700)
    assert_goes_on(checkpointer, forest, 20)
"""


def own_mounts():
    """A command prefix that allows private mounts; None if the system has none."""
    for command in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        probe = [*command, "mount", "-t", "tmpfs", "probe", "/mnt"]
        with suppress(FileNotFoundError):
            if subprocess.run(probe, capture_output=True, timeout=60).returncode == 0:
                return command
    return None


@pytest.mark.slow
@pytest.mark.thorough
def test_files_of_limited_size(tmp_path):
    run_child(LIMITED_FILES, tmp_path)


@pytest.mark.slow
def test_a_small_disk_full_or_read_only(tmp_path):
    command = own_mounts()
    if command is None:  # then another way in which the system refuses to write
        run_child(LIMITED_FILES, tmp_path)
        return
    mount = 'mount -t tmpfs -o size=128k checkpoints "$0" && exec "$@"'
    run_child(SMALL_DISK, tmp_path, within=[*command, "sh", "-c", mount, str(tmp_path)])
    assert list(tmp_path.iterdir()) == [], "the disk was not mounted: nothing tested"


@pytest.mark.slow
@pytest.mark.thorough
def test_a_folder_one_may_not_write_into():
    with tempfile.TemporaryDirectory() as folder:  # which others can enter, unlike tmp_path
        run_child(FORBIDDEN_FOLDER, folder)


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
