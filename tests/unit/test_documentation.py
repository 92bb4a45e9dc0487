"""Examples in docstrings and in the README run; commands agree with what is checked elsewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import onlineforest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
MODULES = [name for _, name, _ in pkgutil.iter_modules(onlineforest.__path__)]


@pytest.mark.parametrize("name", [m for m in MODULES if m not in ("_core", "__main__")])
def test_docstring_examples(name):
    module = importlib.import_module(f"onlineforest.{name}")
    assert doctest.testmod(module).failed == 0


def test_every_public_name_has_an_example():
    for name in onlineforest.__all__:
        thing = getattr(onlineforest, name)
        if not inspect.isclass(thing):
            continue
        assert ">>> " in inspect.getdoc(thing), name
        for method_name, method in inspect.getmembers(thing, inspect.isfunction):
            ours = method.__module__.startswith("onlineforest")
            if ours and not method_name.startswith("_"):
                assert ">>> " in inspect.getdoc(method), f"{name}.{method_name}"


def test_the_readme_examples_run(capsys):
    names = {}
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
    assert names["later"].n_samples_seen_ == len(names["y"])
    accuracy = float(capsys.readouterr().out.split()[0])
    assert accuracy > 0.9


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
