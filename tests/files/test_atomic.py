"""A file is replaced whole or not at all, whichever step fails."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from onlineforest._files import atomic as _atomic
from onlineforest._files.atomic import leftovers, replacing

OLD, NEW = b"old", b"new, and longer"


@pytest.fixture
def path(tmp_path):
    """The path of an existing file."""
    path = tmp_path / "model"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def umask():
    """Set the umask, and restore it afterwards."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def replace(path, data=NEW):
    with replacing(path) as file:
        file.write(data)


def replace_but(path, error):
    """Raise an error in the block after the bytes were written; the file is closed."""
    file = None
    try:
        with replacing(path) as file:
            file.write(NEW)
            raise error
    finally:
        assert file.closed


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def assert_only(path, data):
    """Assert that the folder holds only this file, with these bytes."""
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == data


def test_a_new_file_is_created(tmp_path):
    path = tmp_path / "new"
    replace(path)
    assert_only(path, NEW)


def test_an_old_file_stays_until_the_end(path):
    with replacing(path) as file:
        file.write(NEW)
        file.flush()
        assert path.read_bytes() == OLD
        (temporary,) = leftovers(path.parent)
        assert temporary.read_bytes() == NEW
    assert_only(path, NEW)


def test_a_reader_of_the_old_file_keeps_it(path):
    with path.open("rb") as file:
        replace(path)
        assert file.read() == OLD


@pytest.mark.parametrize("as_given", [str, lambda path: path])
def test_paths_may_be_strings(path, as_given):
    replace(as_given(path))
    assert_only(path, NEW)


def test_a_relative_path_is_resolved_at_the_start(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with replacing("model") as file:
        file.write(NEW)
        os.chdir("/")
    assert_only(path, NEW)


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "🌲" * 63, ".hidden", "a\nb", " "])
def test_file_names_with_odd_characters_are_valid(tmp_path, name):
    replace(tmp_path / name)
    assert_only(tmp_path / name, NEW)


def test_everything_is_synced_in_order(path, monkeypatch):
    steps = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("sync folder" if is_folder else f"sync {os.fstat(descriptor).st_size} bytes")
        real_fsync(descriptor)

    def replace_(source, target):
        steps.append("replace")
        real_replace(source, target)

    monkeypatch.setattr(_atomic.os, "fsync", fsync)
    monkeypatch.setattr(_atomic.os, "replace", replace_)
    replace(path)
    assert steps == [f"sync {len(NEW)} bytes", "replace", "sync folder"]


# Links and permissions


def test_a_link_stays_and_leads_to_the_new_file(path, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    link, second = folder / "link", folder / "second"
    link.symlink_to("../model")
    second.symlink_to("link")
    replace(second)
    assert second.is_symlink() and link.is_symlink() and not path.is_symlink()
    assert path.read_bytes() == NEW
    assert leftovers(folder) == leftovers(tmp_path) == []


def test_a_dangling_link_leads_to_the_new_file(tmp_path):
    (tmp_path / "link").symlink_to("model")
    replace(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model").read_bytes() == NEW


def test_a_link_to_itself_is_an_error(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(OSError, match="link") as caught:
        replace(link)
    assert caught.value.errno == errno.ELOOP and caught.value.filename == str(link)
    assert link.is_symlink() and leftovers(tmp_path) == []


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_new_files_have_default_permissions(tmp_path, umask, mask):
    umask(mask)
    replace(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o666 & ~mask


@pytest.mark.parametrize("old_mode", [0o600, 0o640, 0o666, 0o755, 0o400])
def test_replaced_files_keep_their_permissions(path, umask, old_mode):
    path.chmod(old_mode)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == old_mode
    assert mode(path) == old_mode


def test_systems_without_permissions_need_nothing(path, umask, monkeypatch):
    path.chmod(0o666)
    umask(0o077)
    monkeypatch.delattr(os, "fchmod")
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_private_file_is_private_from_the_beginning(path, umask, monkeypatch):
    umask(0o000)
    path.chmod(0o600)
    created = []
    real_open = os.open

    def open_(path, flags, mode=0o777):
        descriptor = real_open(path, flags, mode)
        created.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(_atomic.os, "open", open_)
    replace(path)
    assert created[0] == 0o600


# Targets that cannot be replaced


def assert_refused(path, error, number):
    with pytest.raises(error) as caught, replacing(path):
        pytest.fail("The block was entered.")
    assert type(caught.value) is error
    assert caught.value.errno == number
    assert caught.value.filename == str(path) and caught.value.filename2 is None
    assert ".tmp" not in str(caught.value)


def test_a_folder_is_not_replaced(tmp_path):
    assert_refused(tmp_path, IsADirectoryError, errno.EISDIR)
    (tmp_path / "link").symlink_to(tmp_path)
    assert_refused(tmp_path / "link", IsADirectoryError, errno.EISDIR)
    assert_refused(f"{tmp_path}/", IsADirectoryError, errno.EISDIR)
    assert [each.name for each in tmp_path.iterdir()] == ["link"]


def test_a_missing_folder_is_an_error(tmp_path):
    assert_refused(tmp_path / "missing" / "model", FileNotFoundError, errno.ENOENT)
    assert_refused(f"{tmp_path}/missing/", FileNotFoundError, errno.ENOENT)
    assert_refused("", FileNotFoundError, errno.ENOENT)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(path):
    assert_refused(path / "below", NotADirectoryError, errno.ENOTDIR)
    assert_only(path, OLD)


def test_a_name_that_is_too_long_is_an_error(tmp_path):
    assert_refused(tmp_path / ("x" * 256), OSError, errno.ENAMETOOLONG)


def test_devices_and_pipes_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link"):
        assert_refused(tmp_path / name, OSError, errno.EINVAL)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe"]


def test_an_existing_temporary_file_is_not_overwritten(path, monkeypatch):
    monkeypatch.setattr(_atomic.secrets, "token_hex", lambda n: "0" * 2 * n)
    other = path.parent / ".model.00000000.tmp"
    other.write_bytes(b"other")
    assert_refused(path, FileExistsError, errno.EEXIST)
    assert other.read_bytes() == b"other" and path.read_bytes() == OLD


# Whatever goes wrong


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("name", ["open", "fchmod", "fsync", "replace"])
@pytest.mark.parametrize(
    "error",
    [PermissionError(errno.EACCES, "Permission denied", "x", None, "y"), KeyboardInterrupt()],
)
def test_a_step_that_fails(path, monkeypatch, umask, there, name, error):
    path.chmod(0o666)  # which the umask does not give, so that it has to be set
    if not there:
        path.unlink()

    def fail(*args):
        raise error

    monkeypatch.setattr(_atomic.os, name, fail)
    if name == "fchmod" and not there:
        replace(path)
        assert_only(path, NEW)
        return
    with pytest.raises(type(error)) as caught:
        replace(path)
    assert caught.value is error
    if isinstance(error, OSError):
        assert (error.filename, error.filename2, error.errno) == (str(path), None, errno.EACCES)
        assert str(error) == f"[Errno 13] Permission denied: '{path}'"
    if there:
        assert_only(path, OLD)
        assert mode(path) == 0o666
    else:
        assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_block_that_raises_leaves_the_old_file(path, error):
    with pytest.raises(error):
        replace_but(path, error())
    assert_only(path, OLD)


def test_a_disk_that_is_full(path):
    with pytest.raises(OSError, match="No space left") as caught:
        replace_but(path, OSError(errno.ENOSPC, "No space left on device"))
    assert caught.value.filename == str(path)
    assert_only(path, OLD)


def test_a_disk_that_is_full_at_the_end(path, monkeypatch):
    """The bytes stay in the buffer until the file is flushed."""

    class Full(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(name, how, opener):
        return io.BufferedWriter(Full(name, how, opener=opener))

    monkeypatch.setattr(_atomic, "open", open_full, raising=False)
    with pytest.raises(OSError, match="No space left") as caught:
        replace(path)
    assert caught.value.filename == str(path)
    assert_only(path, OLD)
    # The buffer cannot be written then, either, but the error of the block is raised.
    with pytest.raises(KeyboardInterrupt):
        replace_but(path, KeyboardInterrupt())
    assert_only(path, OLD)


def test_an_error_about_another_file_keeps_its_name(path):
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        os.stat("/missing")
    assert caught.value.filename == "/missing"
    assert_only(path, OLD)


def test_a_temporary_file_that_cannot_be_removed(path, monkeypatch):
    def fail(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_atomic.os, "unlink", fail)
    with pytest.raises(KeyboardInterrupt), replacing(path):
        raise KeyboardInterrupt
    assert path.read_bytes() == OLD and len(leftovers(path.parent)) == 1


@pytest.mark.parametrize(
    ("number", "passes"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)]
)
def test_a_folder_that_cannot_be_synced(path, monkeypatch, number, passes):
    real_fsync, synced = os.fsync, []

    def fsync(descriptor):
        synced.append(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real_fsync(descriptor)

    monkeypatch.setattr(_atomic.os, "fsync", fsync)
    if passes:
        replace(path)
    else:
        with pytest.raises(OSError, match="Input/output error") as caught:
            replace(path)
        assert caught.value.filename == str(path)
    assert_only(path, NEW)  # there in any case: only a power cut could undo it
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[1])  # closed


def test_a_folder_that_may_not_be_listed(path, monkeypatch):
    real_open = os.open

    def open_(name, flags, mode=0o777):
        if os.path.isdir(name):
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real_open(name, flags, mode)

    monkeypatch.setattr(_atomic.os, "open", open_)
    replace(path)
    assert_only(path, NEW)


# Killed processes


def test_a_killed_process_leaves_the_old_file_and_one_temporary_file(path):
    script = """
        import os, signal, sys
        from onlineforest._files.atomic import replacing
        with replacing(sys.argv[1]) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    (left,) = leftovers(path.parent, path.name)
    assert left.read_bytes() == b"half"
    left.unlink()
    replace(path)
    assert_only(path, NEW)


def test_leftovers_are_those_of_a_prefix(tmp_path):
    ours = [".model-1.0123abcd.tmp", ".model-2.ffffffff.tmp", ".model.00000000.tmp"]
    others = ["model", ".model", ".model.tmp", ".model.0123abc.tmp", ".model.0123ABCD.tmp"]
    others += ["model.0123abcd.tmp", ".model.0123abcd.tmp~", ".m.del.0123abcd.tmp.x"]
    for name in [*ours, *others, ".m.del.0123abcd.tmp"]:
        (tmp_path / name).touch()
    (tmp_path / ".model.11111111.tmp").mkdir()
    (tmp_path / ".model.22222222.tmp").symlink_to("model")
    assert leftovers(tmp_path, "model") == [tmp_path / name for name in ours]
    assert leftovers(str(tmp_path), "model-2") == [tmp_path / ours[1]]
    assert leftovers(tmp_path, "m.d") == [tmp_path / ".m.del.0123abcd.tmp"]
    assert len(leftovers(tmp_path)) == 4
    with pytest.raises(FileNotFoundError):
        leftovers(tmp_path / "missing")


def test_leftovers_of_long_names(tmp_path):
    name = "ä" * 100
    with replacing(tmp_path / name):
        assert len(leftovers(tmp_path, name)) == 1
    assert leftovers(tmp_path, name) == []


def test_an_error_of_the_block_keeps_its_message(tmp_path):
    with pytest.raises(OSError, match=r"^no number$"), replacing(tmp_path / "model"):
        raise OSError("no number")
