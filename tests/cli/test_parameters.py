"""Every parameter of an estimator is an option."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import onlineforest
from onlineforest._cli.commands import load_command
from onlineforest._cli.forests import FORESTS
from onlineforest._cli.parameters import all_parameters
from support.commands import CLASSIFY, REGRESS, SMALL, fine, of, run

CLASSES = [estimator for tasks in FORESTS.values() for estimator in tasks.values()]


def test_the_options_are_the_parameters_of_the_estimators():
    found = all_parameters()
    names = {name for estimator in CLASSES for name in estimator().get_params()}
    assert {*found, "categorical_features"} == names  # --categorical names columns
    for name, parameter in found.items():
        for estimator in CLASSES:
            signature = inspect.signature(estimator).parameters
            assert (estimator.__name__ in parameter.defaults) == (name in signature)
            if name in signature and signature[name].default not in (None, np.inf):
                default = eval(parameter.defaults[estimator.__name__])
                assert default == signature[name].default
    for command in ("train", "evaluate"):
        options = {option.name: option for option in load_command(command).params}
        for parameter in found.values():
            assert options[parameter.key].help == parameter.help
            assert len(parameter.help) < 250


def test_parameters_are_read_without_importing_estimators():
    code = """if True:
        import sys
        from onlineforest._cli.parameters import all_parameters
        assert "min_samples_split" in all_parameters()
        assert not {"sklearn", "numpy"} & set(sys.modules)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("kind", "task", "options", "expected"),
    [
        ("order-free", CLASSIFY, ["--min-samples-split", "20"], {"min_samples_split": 20}),
        ("order-free", CLASSIFY, ["--max-samples", ".5", "--smoothing", "0"],
         {"max_samples": 0.5, "smoothing": 0.0}),
        ("order-free", CLASSIFY, ["--no-calibrate"], {"calibrate": False}),
        ("order-free", REGRESS, ["--no-calibrate", "--seed", "7"],
         {"calibrate": False, "random_state": 7}),
        ("order-free", CLASSIFY, ["--class-weight", "balanced"], {"class_weight": "balanced"}),
        ("order-free", CLASSIFY, ["--class-weight", "red=2", "--class-weight", "blue=.5"],
         {"class_weight": {"red": 2.0, "blue": 0.5}}),
        ("order-free", REGRESS, ["--reservoir", "90", "--half-life", "30", "--jobs", "2"],
         {"reservoir": 90, "half_life": 30.0, "window": None}),
        ("mondrian", CLASSIFY, ["--lifetime", "3", "--leaf-discount", "0.1", "--discount", "5"],
         {"lifetime": 3.0, "leaf_discount": 0.1, "discount": 5.0}),
        ("mondrian", CLASSIFY, ["--feature-weights", "range"], {"feature_weights": "range"}),
        ("mondrian", CLASSIFY, ["--feature-weights", "1,0,2.5"], {"feature_weights": [1, 0, 2.5]}),
    ],
)  # fmt: skip
def test_options_reach_the_forest_and_stay(folder, kind, task, options, expected):
    fine("train", "data.csv", *task, *SMALL, *of(kind), *options, "-o", "m.st")
    found = onlineforest.load("m.st").get_params()
    assert {name: found[name] for name in expected} == expected
    more = ["train", "data.csv", *task[:2], "--from", "m.st", *options, "-o", "more.st"]
    fine(*more)  # with equal options
    result = run(*more, "--trees", "6")
    assert result.exit_code == 2 and "--trees is 6, but the forest in m.st has" in result.output


def test_weights_of_classes_that_are_integers(folder):
    lines = [f"{i / 7},{i % 2}" for i in range(100)]
    (folder / "whole.csv").write_text("\n".join(["a,t", *lines]))
    options = ["train", "whole.csv", "--target", "t", "--task", "classify", "--trees", "3"]
    weights = ["--class-weight", "1=3"]
    fine(*options, *weights, "-o", "m.st")
    assert onlineforest.load("m.st").class_weight == {1: 3.0}
    more = ["train", "whole.csv", "--target", "t", "--from", "m.st", "-o", "more.st"]
    fine(*more, *weights)
    assert "cannot be changed" in run(*more, "--class-weight", "1=2").output
    result = run(*options, "--class-weight", "one=3", "-o", "x.st")
    assert result.exit_code == 2
    assert "--class-weight names 'one', but the classes in 't' are integers" in result.output


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (CLASSIFY, ["--smoothing", "2"], "Invalid value for '--smoothing': The 'smoothing' "
         "parameter of OnlineForestClassifier must be a number in the range [0, 1]. Got 2.0"),
        (CLASSIFY, ["--trees", "0"], "'--trees': The 'n_estimators' parameter of OnlineForestCl"),
        (CLASSIFY, ["--trees", "many"], "Invalid value for '--trees': 'many' is not a number."),
        (CLASSIFY, ["--class-weight", "red"], "'red' is not CLASS=NUMBER"),
        (CLASSIFY, ["--class-weight", "red=1", "--class-weight", "red=2"], "two class weights, 1"),
        (CLASSIFY, ["--class-weight", "red=-1"], "at least 0. Got -1.0 for 'red'"),
        (REGRESS, ["--smoothing", "0.1"], "--smoothing is for order-free forests that classify, "
         "and OnlineForestRegressor has no parameter smoothing"),
        (CLASSIFY, ["--lifetime", "1"], "--lifetime is for Mondrian forests"),
        (CLASSIFY, ["--max-samples", "0.5", "--forest", "mondrian"], "is for order-free forests,"),
        (CLASSIFY, ["--feature-weights", "best", "--forest", "mondrian"], "Got 'best' instead"),
    ],
)  # fmt: skip
def test_wrong_values_are_errors(folder, task, options, message):
    result = run("train", "data.csv", *task, *options, "-o", "m.st")
    assert result.exit_code in (1, 2) and message in " ".join(result.output.split())
    assert not (folder / "m.st").exists()
