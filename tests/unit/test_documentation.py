"""Examples in docstrings and documents run; commands and captions agree with what is checked."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import onlineforest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
REGRESSION = (ROOT / "docs/regression.md").read_text()
MODULES = [name for _, name, _ in pkgutil.iter_modules(onlineforest.__path__)]


@pytest.mark.parametrize("name", [m for m in MODULES if m not in ("_core", "__main__")])
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them write files
    module = importlib.import_module(f"onlineforest.{name}")
    assert doctest.testmod(module).failed == 0


def test_every_public_name_has_an_example():
    for name in onlineforest.__all__:
        thing = getattr(onlineforest, name)
        if isinstance(thing, str):  # __version__
            continue
        assert ">>> " in inspect.getdoc(thing), name
        for method_name, method in inspect.getmembers(thing, inspect.isfunction):
            ours = method.__module__.startswith("onlineforest")
            if ours and not method_name.startswith("_"):
                assert ">>> " in inspect.getdoc(method), f"{name}.{method_name}"


def run_examples(text, name):
    """Runs the blocks of Python in a document one after the other; returns what they defined."""
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, name, "exec"), names)
    return names


def test_the_readme_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples(README, "README.md")
    assert names["later"].n_samples_seen_ == 1797  # all digits
    accuracy = float(capsys.readouterr().out.split()[0])
    assert accuracy > 0.9


def test_the_examples_of_model_files_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples((ROOT / "docs/model-files.md").read_text(), "model-files.md")
    assert names["later"].n_samples_seen_ == names["forest"].n_samples_seen_ == 1797
    assert names["samples"].shape == (1000, 64)
    again = run_examples((ROOT / "docs/model-files.md").read_text(), "model-files.md")
    assert again["start"] == 1500 and again["forest"].n_samples_seen_ == 1797


def test_the_examples_of_regression_run(capsys):
    names = run_examples(REGRESSION, "regression.md")
    assert names["forest"].n_samples_seen_ == 2100 and names["plain"].n_samples_seen_ == 2000
    inside, near, far = map(float, capsys.readouterr().out.split())
    assert 0.8 < inside < 0.97  # of 500 samples: 0.9, or a little less, with standard error 0.013
    assert far > 1.5 * near


def test_the_examples_of_river_run(capsys):
    names = run_examples((ROOT / "docs/river.md").read_text(), "river.md")
    accuracy, fruit, inside = capsys.readouterr().out.splitlines()[:3]
    assert 0.88 < names["accuracy"].get() < 0.93 and accuracy.startswith("Accuracy: ")
    assert fruit == "melon"
    assert 0.85 < float(inside) < 0.95
    assert names["model"].estimator.n_samples_seen_ == 1000


@pytest.fixture(scope="module")
def gap():
    """The script that draws the picture of a gap."""
    spec = importlib.util.spec_from_file_location("gap", ROOT / "docs/make_gap_picture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_picture_of_a_gap_is_as_its_caption_says(gap):
    caption = re.search(r"^\*200 samples.*?\*$", REGRESSION, re.DOTALL | re.MULTILINE).group()
    X, y = gap.draw_samples()
    assert len(X) == 200
    widths = [gap.mean_widths(gap.learn(name, X, y)) for name in gap.FORESTS]
    said = [float(number) for number in re.findall(r"\d\.\d\d", caption)]
    measured = [width for of_forest in widths for width in of_forest.values()]
    assert said == pytest.approx(measured, rel=0.05)
    for of_forest, factor in zip(widths, (2, 5)):
        among, within, beyond = of_forest.values()
        assert min(within, beyond) > factor * among


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_gap_is_seen_whatever_the_seeds(gap, seed):
    X, y = gap.draw_samples(seed)
    among, within, beyond = gap.mean_widths(gap.learn("Default parameters", X, y, seed)).values()
    assert min(within, beyond) > 2 * among  # 36 others: 2.3 and more


def test_the_readme_table_names_the_parameters_and_their_defaults():
    rows = re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", README, re.MULTILINE)
    parameters = inspect.signature(onlineforest.MondrianForestClassifier).parameters
    assert [(name, default) for name, default in rows] == [
        (name, str(p.default) if not isinstance(p.default, str) else f'"{p.default}"')
        for name, p in parameters.items()
    ]


def test_continuous_integration_runs_the_readme_test_command():
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert commands[0].endswith("onlineforest demo")
    assert commands[1].endswith("-m pytest")
    assert commands[1] in (ROOT / ".ci/run").read_text()


def test_links_of_the_documentation_lead_somewhere():
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"
