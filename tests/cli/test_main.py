from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    __version__,
    _cli,
    _extras,
)
from onlineforest._cli.commands import SUMMARIES, load_command
from onlineforest._cli.demo import Demo
from onlineforest._cli.forests import FORESTS
from onlineforest._cli.options import DEFAULT_KIND
from onlineforest._cli.parameters import NAMES
from onlineforest._forests.saving import write_model
from support.commands import run
from support.model_files import changed


@pytest.mark.parametrize(
    ("options", "name"), [([], "order-free"), (["--forest", "mondrian"], "Mondrian")]
)
def test_demo_shows_a_table_and_saves_pictures(tmp_path, options, name):
    folder = tmp_path / "new" / "folder"
    arguments = ["demo", "--trees", "3", "--output", str(folder), *options]
    result = run(*arguments, terminal_width=200)
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output and "log loss" in result.output
    assert "1797" in result.output
    assert "re-training" in result.output and f"{name} forest online" in result.output
    for name in ("learning-curve.png", "partition.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", FORESTS)
def test_demo_learns(kind):
    demo = Demo(n_estimators=10, kind=kind)
    steps = list(demo.run())
    assert steps[0] == 60
    assert steps[-1] == demo.n_samples == 1797
    assert demo.learned == steps[:-1]
    assert demo.recent(demo.online.correct) > 0.9
    assert demo.recent(demo.online.correct) > demo.recent(demo.online.correct[:5]) + 0.05
    assert demo.online.seconds > 0 and demo.retrained.seconds > 0


def test_demo_into_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    result = run("demo", "--output", blocked / "sub")
    assert result.exit_code == 1
    assert result.output.startswith("Error: cannot write to")
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--trees", "0"], "Invalid value for '--trees': 0 is not in the range"),
        (["demo", "--seed", "x"], "Invalid value for '--seed'"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_bad_arguments_exit_with_code_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("name", SUMMARIES)
def test_each_command_is_where_the_list_says(name):
    command = load_command(name)
    assert command.name == name
    assert command.get_short_help_str(70) == SUMMARIES[name]


def test_version_and_help_are_printed():
    assert __version__ in run("--version").output
    assert "demo" in run("-h").output


def test_the_module_runs_as_a_command():
    result = subprocess.run(
        [sys.executable, "-m", "onlineforest", "--version"], capture_output=True, text=True
    )
    assert result.returncode == 0
    assert __version__ in result.stdout


def test_each_kind_of_forest_has_a_name():
    assert list(NAMES) == list(FORESTS)
    assert DEFAULT_KIND in FORESTS


def test_the_help_of_a_command_does_not_wait_for_scikit_learn():
    code = """if True:
        import sys
        from onlineforest._cli.commands import load_command
        for name in ("train", "predict", "evaluate", "inspect", "verify"):
            load_command(name)
            loaded = {"sklearn", "numpy", "pyarrow"} & set(sys.modules)
            assert not loaded, f"{name} imports {loaded}"
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as error:
        _cli.main()
    assert error.value.code == 1
    assert "pip install 'onlineforest[cli]'" in capsys.readouterr().err


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "answers.safetensors"
    forest = MondrianForestClassifier(3, lifetime=5.0, random_state=np.random.RandomState(0))
    forest.feature_weights = [1.0, 2.0]
    X = pd.DataFrame([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], columns=["length", "\x1b[31mwidth"])
    forest.fit(X, ["no", "yes", "\x1b]0;maybe\x07"], ids=["a", "b", "c"])
    write_model(forest, path, position={"offset": 17})
    return path


def test_inspect_describes_a_file(model_file):
    result = run("inspect", model_file)
    assert result.exit_code == 0, result.output
    for words in (
        "MondrianForestClassifier",
        "3 stored of 3 seen, 3 with an id",
        "3 with 15 nodes",
        r"2 of float32, length, \x1b[31mwidth",
        r"3 of <U10, \x1b]0;maybe\x07, no, yes",
        "{'offset': 17}",
        "lifetime=5.0",
        "feature_weights=[1.0, 2.0]",
        "random_state=RandomState(…)",
    ):
        assert words in result.output
    assert "\x1b" not in result.output and "\x07" not in result.output
    assert "trees.left" not in result.output
    assert "trees.left: int32, 15" in run("inspect", "--arrays", model_file).output


def test_inspect_and_verify_an_order_free_forest(tmp_path, monkeypatch):
    path = tmp_path / "order-free.safetensors"
    forest = OnlineForestClassifier(3, window=3, random_state=0)
    forest.fit([[0.0], [1.0], [1.0], [1.0]], ["no", "no", "yes", "yes"]).save(path)
    result = run("inspect", path)
    assert result.exit_code == 0, result.output
    for words in (
        "OnlineForestClassifier",
        "3 stored of 4 seen, 0 with an id",
        "3, grown from 2 distinct samples",
        "2 of <U3, no, yes",
        "smoothing=0.2",
    ):
        assert words in result.output
    assert json.loads(run("inspect", "--json", path).output)["counts"]["samples_distinct"] == 2
    result = run("verify", path)
    assert result.output == f"{path}: sound, OnlineForestClassifier of 3 samples in 3 trees\n"
    monkeypatch.setattr(OnlineForestClassifier, "verify", lambda forest: False)
    assert isinstance(run("verify", path).exception, RuntimeError)


def test_inspect_prints_json(model_file):
    facts = json.loads(run("inspect", "--json", model_file).output)
    assert facts["counts"]["trees"] == 3 and facts["parameters"]["lifetime"] == 5.0
    assert facts["file_bytes"] == model_file.stat().st_size
    assert facts["tensors"]["rows"] == {"dtype": "float32", "shape": [3, 2]}


def test_inspect_does_not_read_the_arrays_and_verify_does(model_file):
    data = bytearray(model_file.read_bytes())
    data[-1] ^= 1
    model_file.write_bytes(data)
    assert run("inspect", model_file).exit_code == 0
    result = run("verify", model_file)
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {model_file} is damaged: its SHA-256 is")


def test_verify_continues_after_a_bad_file(model_file, tmp_path):
    bad = tmp_path / "text"
    bad.write_text("something else")
    result = run("verify", bad, tmp_path / "missing", model_file)
    assert result.exit_code == 1
    assert f"{bad} is not a model file of onlineforest: it has only 14 bytes" in result.output
    assert f"{tmp_path / 'missing'}: No such file or directory" in result.output
    assert f"{model_file}: sound, MondrianForestClassifier of 3 samples" in result.output
    assert run("verify", model_file).exit_code == 0


@pytest.mark.parametrize("key", ["counts", "features", "parameters", "classes"])
@pytest.mark.parametrize("value", [None, [], "x", 5, {"count": {}}, {"float": []}])
def test_inspect_survives_malformed_metadata(model_file, key, value):
    model_file.write_bytes(changed(model_file.read_bytes(), {key: value}))
    result = run("inspect", model_file)
    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)
