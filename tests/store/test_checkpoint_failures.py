"""A save that fails leaves earlier checkpoints and the forest as they were."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

from onlineforest._files import atomic as _atomic
from onlineforest._forests import saving as _saving
from onlineforest._store import checkpoints as _checkpoints
from onlineforest._store.checkpoints import Checkpointer
from support.checkpoints import (
    assert_fails,
    assert_goes_on,
    learned,
    numbers,
    save_several,
)

TESTS = Path(__file__).resolve().parents[1]


# Whatever goes wrong with a save


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
    """Run a script on a saved forest, possibly through another command."""
    start = """
        import errno, os, resource, subprocess, sys
        from pathlib import Path
        from onlineforest import Checkpointer
        from support.checkpoints import assert_fails, assert_goes_on, learned
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
