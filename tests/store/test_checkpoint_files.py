"""The files of checkpoints: their names, which are kept, and which is opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from onlineforest import ModelFileError, ModelTooLargeError
from onlineforest._files import atomic as _atomic
from onlineforest._store import checkpoints as _checkpoints
from onlineforest._store.checkpoints import Checkpointer
from support.checkpoints import (
    learned,
    name,
    names,
    numbers,
    save_several,
)


def damage(path):
    """Flip one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


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
