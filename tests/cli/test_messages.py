"""Errors and help texts of all commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from onlineforest import _cli
from support.commands import CLASSIFY, REGRESS, SMALL, fine, run


def test_an_unwritable_output_is_reported_before_data_are_read(models):
    picture = ["-o", "no/p.png"]
    for arguments in (
        ["train", "-", *CLASSIFY, "-o", "no/m"],
        ["train", "-", *CLASSIFY, "-o", "data.csv/m"],
        ["train", "-", *CLASSIFY, "-o", "m", "--curve", "no/c.csv"],
        ["train", "-", *CLASSIFY, "-o", "m", "--checkpoints", "data.csv/c"],
        ["evaluate", "-", *CLASSIFY, "--curve", "no/c.csv"],
        ["evaluate", "-", *CLASSIFY, "--picture", "no/c.png"],
        ["predict", "kinds.st", "-", "-o", "no/out.csv"],
        ["plot", "surface", "kinds.st", "--data", "-", *picture],
        ["plot", "curve", "none.csv", *picture],
    ):
        result = run(*arguments, input=b"")  # reading it would be an error
        words = r"Error: (no|data\.csv)/.*: (No such file or|Not a) directory\n"
        assert result.exit_code == 1 and re.fullmatch(words, result.output), arguments


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "data.csv", "-o", "m"], 2, "'--target': which of these columns? 'id', 'a'"),
        (["train", "data.csv", *CLASSIFY[:4], "--forest", "mondrian", "-o", "m"], 1,
         "text in 'id' (such as 's0', 's1', 's2'), which a Mondrian forest cannot learn. --forest "
         "order-free learns"),
        (["train", "data.csv", *CLASSIFY[:2], "-o", "m"], 2, "option '--task'"),
        (["train", "data.csv", *CLASSIFY], 2, "Missing option '-o'"),
        (["train", "data.csv", "--target", "sort", *CLASSIFY[2:], "-o", "m"], 1, "no column"),
        (["train", "data.csv", "--target", "kin", *CLASSIFY[2:], "-o", "m"], 1, "mean 'kind'?"),
        (["train", "data.csv", "--target", "kind", *REGRESS[2:6], "--drop", "value", "-o", "m"],
         1, "--task classify learns classes"),
        (["train", "none.csv", *CLASSIFY, "-o", "m"], 1, "none.csv: No such file or directory"),
        (["train", ".", *CLASSIFY, "-o", "m"], 1, ".: Is a directory"),
        (["train", "data.csv", *CLASSIFY, *SMALL, "-o", "no/m"], 1, "no/m: No such file"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--every-samples", "5"], 2, "need --check"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--delimiter", "ab"], 2, "one character"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--from", "none"], 1, "none: No such file"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--half-life", "9"], 2, "give --reservoir"),
        (["train", "-", *CLASSIFY, "-o", "m"], 1, "standard input is empty"),
        (["evaluate", "data.csv", *CLASSIFY, "--no-learn"], 2, "name one with --from"),
        (["evaluate", "data.csv", *CLASSIFY, "--batch-size", "500"], 1, "smaller --batch-size"),
        (["predict", "data.csv", "data.csv"], 1, "data.csv is not a model file"),
        (["predict", "kinds.st", "other.csv"], 1, "lacks 2 of the 3 columns"),
        (["predict", "kinds.st", "data.csv", "--intervals", "0.9"], 1, "is for numbers"),
        (["predict", "kinds.st", "data.csv", "--intervals", "90"], 2, "not in the range"),
        (["predict", "values.st", "data.csv", "--probabilities"], 1, "is for classes"),
        (["predict", "kinds.st", "data.csv", "--keep", "zz"], 1, "no column 'zz'"),
        (["predict", "kinds.st", "data.csv", "--novelty"], 1, "an OnlineForestClassifier. `train"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--forest", "oak"], 2, "'order-free', 'mon"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--forest", "mondrian", "--from", "kinds.st"],
         2, "--forest is mondrian, but the forest in kinds.st is order-free"),
        (["train", "data.csv", *REGRESS, "-o", "m", "--forest", "mondrian"], 2,
         "--task regress needs --forest order-free: --forest mondrian learns classes only"),
        (["evaluate", "data.csv", *REGRESS, "--forest", "mondrian"], 2, "--forest order-free"),
        (["plot", "tree", "kinds.st", "-o", "p.doc"], 2, "must end in .png, .svg or .pdf"),
        (["plot", "partition", "kinds.st", "-o", "p.png"], 1, "2 features"),
        (["plot", "surface", "kinds.st", "-o", "p.png"], 2, "name data with --data"),
        (["plot", "curve", "data.csv", "-o", "p.png"], 1, "is not a learning curve"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_an_exit_code(models, arguments, code, message):
    (models / "other.csv").write_text("a,kind\n1,red\n")
    files = {path.name for path in models.iterdir()}
    result = run(*arguments)
    assert result.exit_code == code, result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("Error: ") and message in last
    assert code == 2 or result.output.count("\n") == 1
    assert {path.name for path in models.iterdir()} == files


def test_a_traceback_is_shown_on_request(folder, monkeypatch):
    arguments = ["train", "none.csv", *CLASSIFY, "-o", "m"]
    assert isinstance(run(*arguments, "--traceback").exception, FileNotFoundError)
    assert run(*arguments).output == "Error: none.csv: No such file or directory\n"
    monkeypatch.setenv("ONLINEFOREST_TRACEBACK", "1")
    assert isinstance(run(*arguments).exception, FileNotFoundError)


COMMANDS = ["train", "predict", "evaluate", "inspect", "verify", "demo"]
PLOTS = ["partition", "tree", "surface", "novelty", "importances", "curve"]


def run_line(command):
    """Run a command of the help, which may read a pipe or redirect its output."""
    words, given = shlex.split(command), None
    if words[0] == "cat":
        given = Path(words[1]).read_bytes()
        words = words[words.index("|") + 1 :]
    if ">" in words:
        words = words[: words.index(">")]
    assert words[0] == "onlineforest"
    fine(*words[1:], input=given)


@pytest.mark.slow
def test_the_examples_of_the_help_run(folder):
    assert fine("example-data").output.count("Wrote") == 3
    assert run("example-data").exit_code == 1  # existing files are not replaced
    names = [[name] for name in COMMANDS if name != "demo"] + [["plot", name] for name in PLOTS]
    for each in names:
        examples = fine(*each, "--help").output.split("Examples (", 1)[1].split("\n\n")[1:]
        assert examples, each
        for command in examples:
            run_line(command.replace("\\\n", " "))


def test_every_option_has_a_help_text():
    for names in [[name] for name in COMMANDS] + [["plot", name] for name in PLOTS]:
        command = _cli.build_command()
        for name in names:
            command = command.get_command(click.Context(command), name)
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or parameter.help, (
                names,
                parameter.name,
            )
        assert max(map(len, fine(*names, "--help").output.splitlines())) <= 100
