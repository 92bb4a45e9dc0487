from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from onlineforest import __version__, _cli, _extras
from onlineforest._demo import Demo
from onlineforest._plots import draw_partition, new_figure


def test_demo_shows_a_table_and_saves_pictures(tmp_path):
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(
        _cli.build_command(), ["demo", "--trees", "3", "--output", str(folder)], terminal_width=200
    )
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output and "log loss" in result.output
    assert "1797" in result.output
    assert "re-training" in result.output
    for name in ("learning-curve.png", "partition.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_demo_learns():
    demo = Demo(n_estimators=10)
    steps = list(demo.run())
    assert steps[0] == 50
    assert steps[-1] == demo.n_samples == 1797
    assert demo.learned == steps[:-1]
    assert demo.recent(demo.online.correct) > 0.9
    assert demo.recent(demo.online.correct) > demo.recent(demo.online.correct[:6]) + 0.05
    assert demo.online.seconds > 0 and demo.batch.seconds > 0


def test_a_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    result = CliRunner().invoke(_cli.build_command(), ["demo", "--output", str(blocked / "sub")])
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
def test_bad_arguments(arguments, message):
    result = CliRunner().invoke(_cli.build_command(), arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_version_and_help():
    assert __version__ in CliRunner().invoke(_cli.build_command(), ["--version"]).output
    assert "demo" in CliRunner().invoke(_cli.build_command(), ["-h"]).output


def test_module_entry_point():
    result = subprocess.run(
        [sys.executable, "-m", "onlineforest", "--version"], capture_output=True, text=True
    )
    assert result.returncode == 0
    assert __version__ in result.stdout


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as error:
        _cli.main()
    assert error.value.code == 1
    assert "pip install 'onlineforest[cli]'" in capsys.readouterr().err
    with pytest.raises(ImportError, match=r"onlineforest\[plot\]"):
        new_figure()


def test_a_partition_needs_two_features():
    from sklearn.datasets import load_iris

    from onlineforest import MondrianForestClassifier

    X, y = load_iris(return_X_y=True)
    tree = MondrianForestClassifier(1).fit(X, y).trees_[0]
    _, axes = new_figure()
    with pytest.raises(ValueError, match=r"can be drawn for 2 features. This tree has 4"):
        draw_partition(axes, tree, X, y)
