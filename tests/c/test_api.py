"""Bad input is refused by name and changes nothing; the library can be installed and used in C."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import threading
from ctypes import c_double, c_float

import numpy as np
import pytest

from onlineforest import OnlineForestClassifier, OnlineForestRegressor, load
from support.c_library import ROOT, CError, pointer, run, tool
from support.model_files import saved

rng = np.random.default_rng(1)
X = rng.random((300, 3)).astype(np.float32)
LABELS = np.where(X[:, 0] > 0.5, "yes", "no")
NUMBERS = X[:, 0].astype(float)
CODES = (X[:, 0] > 0.5).astype(np.int32)  # indices of these labels
HEADER = (ROOT / "include/onlineforest.h").read_text()
EXAMPLE = ROOT / "examples/c/stream.c"
GUIDE = (ROOT / "docs/c-api.md").read_text()


@pytest.fixture
def classifier(library, tmp_path):
    forest = OnlineForestClassifier(10, random_state=0).fit(X, LABELS)
    return library.load_bytes(saved(forest), tmp_path)


@pytest.fixture
def regressor(library, tmp_path):
    forest = OnlineForestRegressor(10, random_state=0).fit(X, NUMBERS)
    return library.load_bytes(saved(forest), tmp_path)


def with_value(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, r: c.predict(X[:, :2]), "rows have 2 features, but this forest has 3"),
        (
            lambda c, r: c.predict(with_value(X, (7, 1), np.inf)),
            "feature 1 of row 7 is infinite, but must be finite, or NaN",
        ),
        (lambda c, r: c.predict(X, 0), "n_threads is 0, but must be in [1, 1024]"),
        (lambda c, r: c.learn(X, CODES, None, 1025), "n_threads is 1025, but must be in [1, 1024]"),
        (
            lambda c, r: c.learn(X, with_value(CODES, 4, 2)),
            "the class of row 4 is 2, but must be in [0, 2)",
        ),
        (
            lambda c, r: c.learn(X, with_value(CODES, 5, -1)),
            "the class of row 5 is -1, but must be in [0, 2)",
        ),
        (
            lambda c, r: c.learn(X, CODES, with_value(NUMBERS, 6, -0.5)),
            "the weight of row 6 is -0.500000, but must be finite and at least 0",
        ),
        (
            lambda c, r: r.learn(X, NUMBERS, with_value(NUMBERS, 6, np.nan)),
            "the weight of row 6 is nan, but must be finite and at least 0",
        ),
        (
            lambda c, r: r.learn(X, NUMBERS, with_value(NUMBERS, 6, 1e11)),
            "but must be at most 68719476736",
        ),
        (
            lambda c, r: r.learn(X, with_value(NUMBERS, 3, np.nan)),
            "the number of row 3 is not in [-1e150, 1e150]",
        ),
        (lambda c, r: r.predict_proba(X), "the forest is a regressor, but this call needs a class"),
        (lambda c, r: c.label(2), "index is 2, but must be less than the 2 classes"),
        (
            lambda c, r: c._predict(
                c.c.of_predict_proba, X, np.empty(599), c_double, 1
            ),
            "out has room for 599 values, but needs 600",
        ),
        (
            lambda c, r: c.library.check(
                c.c.of_learn_numbers(c.handle, None, 0, 3, None, None, 1)
            ),
            "the forest is a classifier, but this call needs a regressor",
        ),
        (
            lambda c, r: c.library.check(c.c.of_learn_classes(c.handle, None, 5, 3, None, None, 1)),
            "rows is NULL",
        ),
        (
            lambda c, r: c.library.check(
                c.c.of_predict_classes(c.handle, pointer(X, c_float), 2**62, 3, 1, None, 0)
            ),
            "4611686018427387904 * 3 values of rows do not fit the memory",
        ),
        (lambda c, r: c.library.check(c.c.of_save(None, b"x")), "forest is NULL"),
        (lambda c, r: c.library.check(c.c.of_save(c.handle, None)), "path is NULL"),
        (lambda c, r: c.library.check(c.c.of_load(b"x", 0, None)), "forest is NULL"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_and_changes_nothing(call, message, classifier, regressor):
    before = classifier.predict_proba(X), regressor.predict(X)
    with pytest.raises(CError) as caught:
        call(classifier, regressor)
    assert caught.value.status == "INVALID_ARGUMENT" and message in str(caught.value)
    after = classifier.predict_proba(X), regressor.predict(X)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])
    assert classifier.n_samples_seen == regressor.n_samples_seen == 300


def test_no_rows_are_nothing_to_do(classifier):
    empty = np.empty((0, 3), dtype=np.float32)
    assert classifier.predict_proba(empty).shape == (0, 2)
    classifier.learn(empty, [])
    classifier.learn(X[:2], [0, 0], [0.0, 1e-9])
    assert classifier.n_samples_seen == 300


def test_a_forest_without_samples_does_not_predict(library, tmp_path):
    for kind, y in ((OnlineForestClassifier, LABELS), (OnlineForestRegressor, NUMBERS)):
        forest = kind(2, random_state=0).fit(X, y).keep_latest(0)
        theirs = library.load_bytes(saved(forest), tmp_path)
        with pytest.raises(CError, match="the forest holds no samples"):
            theirs.predict(X)


def test_a_missing_forest_has_nothing(library):
    for name in ("n_features", "n_classes", "n_samples_seen", "n_samples_stored"):
        assert getattr(library.c, f"of_{name}")(None) == 0
    library.c.of_free(None)


def test_the_version_is_that_of_the_header(library):
    assert library.c.of_api_version() == int(re.search(r"#define OF_API_VERSION (\d+)", HEADER)[1])
    assert (
        f'version = "{library.c.of_library_version().decode()}"'
        in (ROOT / "pyproject.toml").read_text()
    )


def test_files_that_cannot_be_read_or_written(classifier, library, tmp_path):
    for path in (tmp_path / "none", tmp_path, "/dev/null"):
        with pytest.raises(CError) as caught:
            library.load(path)
        assert caught.value.status == "SYSTEM_ERROR" and str(path) in str(caught.value)
    for path in (tmp_path, tmp_path / "none/model", "/dev/null", ""):
        with pytest.raises(CError) as caught:
            classifier.save(path)
        assert caught.value.status == "SYSTEM_ERROR" and str(path) in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_file_is_replaced_with_its_permissions_and_links(classifier, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o604)
    link.symlink_to(target)
    classifier.save(link)
    assert link.is_symlink() and load(target).n_samples_seen_ == 300
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    new = tmp_path / ("n" * 250)  # the temporary name is shorter
    classifier.save(new)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~umask
    assert len(list(tmp_path.iterdir())) == 4  # no temporary file is left


def test_a_file_in_the_working_folder_is_replaced(classifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        classifier.save("plain")
    assert load("plain").n_samples_seen_ == 300


def test_threads_may_learn_and_predict_at_the_same_time(classifier, tmp_path):
    errors = []

    def work(begin):
        try:
            for i in range(begin, begin + 30):
                classifier.learn(X[i : i + 1], CODES[i : i + 1])
                classifier.predict_proba(X[:20], 2)
                classifier.save(tmp_path / f"from {begin}")
        except CError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[begin]) for begin in (0, 30, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and classifier.n_samples_seen == 390
    classifier.save(tmp_path / "end")
    expected = OnlineForestClassifier(10, random_state=0).fit(X, LABELS)
    assert load(tmp_path / "end").digest_ == expected.partial_fit(X[:90], LABELS[:90]).digest_


def test_only_the_api_is_visible(library):
    names = re.findall(r" [A-Z] (\w+)$", run("nm", "-D", "--defined-only", library.path), re.M)
    assert set(names) == set(
        re.findall(r"\b(of_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S))
    )


def lines_of(rows, target):
    """Rows in CSV, with an empty field for a missing value."""
    fields = [["" if np.isnan(value) else repr(float(value)) for value in row] for row in rows]
    return "".join(
        ",".join([*row, str(each)]) + "\n" for row, each in zip(fields, target, strict=True)
    )


@pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
def test_the_example_predicts_and_learns_a_stream(kind, library, tmp_path):
    gaps = np.where(rng.random(X.shape) < 0.1, np.float32(np.nan), X)
    target = LABELS if kind is OnlineForestClassifier else NUMBERS
    forest = kind(10, random_state=0).fit(gaps[:200], target[:200])
    forest.save(tmp_path / "model")
    text = lines_of(gaps[200:], target[200:])
    command = library.example, tmp_path / "model", tmp_path / "learned"
    printed = run(*command, input=text).splitlines()
    for i in range(200, 300):
        expected = forest.predict(gaps[i : i + 1])[0]
        assert type(expected)(printed[i - 200]) == expected
        forest.partial_fit(gaps[i : i + 1], target[i : i + 1])
    assert load(tmp_path / "learned").digest_ == forest.digest_
    done = subprocess.run(command, input="1,2\n", text=True, capture_output=True)
    assert done.returncode == 1 and "too few fields" in done.stderr


def test_the_installed_library_is_found_by_compilers_of_c_and_cpp(library, tmp_path):
    run(tool("cmake"), "--install", library.folder, "--prefix", tmp_path)
    (folder,) = tmp_path.glob("lib*")
    compiler = shutil.which("cc") or shutil.which("gcc")
    warnings = ("-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{tmp_path / 'include'}")
    links = (f"-L{folder}", "-lonlineforest", f"-Wl,-rpath,{folder}")
    run(compiler, "-std=c99", *warnings, EXAMPLE, "-o", tmp_path / "stream", *links)
    done = subprocess.run([tmp_path / "stream", "none"], text=True, capture_output=True)
    assert done.returncode == 1 and "none: cannot read it: No such file" in done.stderr
    (tmp_path / "include.cpp").write_text("#include <onlineforest.h>\nint main() {}\n")
    run(compiler, "-x", "c++", *warnings, "-fsyntax-only", tmp_path / "include.cpp")


def test_the_programs_of_the_guide_run(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (program,) = re.findall(r"```c\n(.*?)```", GUIDE, re.DOTALL)
    exec(compile(python, "c-api.md", "exec"), {})
    (tmp_path / "flower.c").write_text(program)
    folder = library.path.parent
    links = (f"-L{folder}", "-lonlineforest", f"-Wl,-rpath,{folder}", f"-I{ROOT / 'include'}")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "flower.c", *links)
    assert run("./a.out") == "virginica\n"
    assert load("flowers.safetensors").n_samples_seen_ == 151
    functions = set(re.findall(r"`(of_\w+)`", GUIDE))
    assert functions == set(re.findall(r"\b(of_\w+)\(", HEADER))
