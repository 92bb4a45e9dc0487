"""Examples in docstrings and documents run; commands and captions agree with what is checked."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import onlineforest

ROOT = Path(__file__).resolve().parents[2]

from docs import pictures

README = (ROOT / "README.md").read_text()
TUNE = (ROOT / "docs/hyperparameters.md").read_text()
REGRESSION = (ROOT / "docs/regression.md").read_text()
# The README, and all pages but those that Sphinx makes.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *ROOT.glob("docs/*/0*.md")]
RAY = pytest.mark.xdist_group("ray")  # tests that start Ray run one after the other
MODULES = [name for _, name, _ in pkgutil.walk_packages(onlineforest.__path__, "onlineforest.")]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=RAY) if name.startswith("onlineforest.ray") else name
        for name in MODULES
        # Public names of onlineforest.ray have tests of their own, in tests/ray.
        if name not in ("onlineforest._core", "onlineforest.__main__", "onlineforest.ray")
    ],
)
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them write files
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", sorted(set(onlineforest.__all__) - {"__version__", "plot"}))
def test_docstring_examples_of_public_names(name, tmp_path, monkeypatch):
    """`testmod` passes over public classes: they do not name the module they are defined in."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner()
    tests = doctest.DocTestFinder().find(getattr(onlineforest, name), name, module=False, globs={})
    for test in tests:
        runner.run(test)
    assert runner.summarize().failed == 0 and runner.tries > 0


@pytest.mark.parametrize("module", ["onlineforest", "onlineforest.ray"])
def test_every_public_name_has_an_example(module):
    module = importlib.import_module(module)
    for name in module.__all__:
        thing = getattr(module, name)
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
    accuracy, is_forgotten = capsys.readouterr().out.split()
    assert float(accuracy) > 0.9
    assert is_forgotten == "True"


def test_the_examples_of_save_and_load_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_examples((ROOT / "docs/save-and-load.md").read_text(), "save-and-load.md")
    assert names["later"].n_samples_seen_ == names["forest"].n_samples_seen_ == 1797
    assert names["samples"].shape == (1000, 64)
    again = run_examples((ROOT / "docs/save-and-load.md").read_text(), "save-and-load.md")
    assert again["start"] == 1500 and again["forest"].n_samples_seen_ == 1797


def test_the_examples_of_regression_run(capsys):
    names = run_examples(REGRESSION, "regression.md")
    assert names["forest"].n_samples_seen_ == 2100
    inside, n_predictions = map(float, capsys.readouterr().out.split())
    assert 0.8 < inside < 0.97  # 0.9 or a little less; the standard error of 500 samples is 0.013
    assert n_predictions == 1  # a constant far away


def test_the_examples_of_river_run(capsys):
    names = run_examples((ROOT / "docs/river.md").read_text(), "river.md")
    accuracy, fruit, inside = capsys.readouterr().out.splitlines()[:3]
    assert 0.88 < names["accuracy"].get() < 0.93 and accuracy.startswith("Accuracy: ")
    assert fruit == "melon"
    assert 0.85 < float(inside) < 0.95
    assert names["model"].estimator.n_samples_seen_ == 1000


def test_the_examples_and_commands_of_categories_run(tmp_path, monkeypatch):
    import pandas as pd
    from click.testing import CliRunner

    from onlineforest._cli import build_command

    monkeypatch.chdir(tmp_path)
    numbers = {
        name: range(300)
        for name in ("day", "sched_dep_time", "sched_arr_time", "distance", "flight", "dep_delay")
    }
    texts = {name: ["a", "b", None] * 100 for name in ("carrier", "tailnum", "origin", "dest")}
    table = pd.DataFrame({"month": 1, **numbers, **texts, "arr_delay": [30.0, 5.0, None] * 100})
    table.to_parquet("flights.parquet")
    page = ROOT / "docs/categories.md"
    names = run_examples(page.read_text(), page.name)
    assert names["coded"].levels_ == {0: [7, 112]}
    assert len(pd.read_parquet("arrivals.parquet")) == 200
    (next_flight,) = re.findall(r"printf .*?(month\S+) \\\s+(\S+) > next.csv", page.read_text())
    Path("next.csv").write_text("\n".join(next_flight))
    commands = list(commands_of(page))
    assert len(commands) == 6
    for words in commands:
        result = CliRunner().invoke(build_command(), words)
        assert result.exit_code == 0, (words, result.output)
    assert Path("curve.png").exists()


@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # Ray Data's, of itself
def test_the_examples_of_ray_run(capsys, tmp_path, monkeypatch):
    import ray

    monkeypatch.chdir(tmp_path)
    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    order = ray.data.DataContext.get_current().execution_options
    monkeypatch.setattr(order, "preserve_order", False)  # and so again afterwards
    names = run_examples((ROOT / "docs/ray.md").read_text(), "ray.md")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "True True" and lines[1].startswith("1500 ") and lines[2] == "1"
    assert lines[3] == "True"  # the union of two forests
    assert names["more"].n_rows == 297  # all digits
    assert names["dataset"].n_rows == 2000 and names["dataset"].n_batches == 4
    assert names["again"].n_batches == 3
    assert names["plain"].n_samples_seen_ == 1797


OWN_TESTS = {
    "README.md",
    "categories.md",
    "save-and-load.md",
    "ray.md",
    "regression.md",
    "river.md",
}  # above, which look at results, too


def has_python(page):
    return "```python\n" in page.read_text() and page.name not in OWN_TESTS


@pytest.mark.parametrize("page", list(filter(has_python, PAGES)), ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page.read_text(), page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_interactive_examples_of_a_page_hold(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def commands_of(page):
    """The calls of `onlineforest` in a page's shell blocks, as lists of words."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"[|>]|&&", line):
                words = shlex.split(part, comments=True)
                if words and Path(words[0]).name == "onlineforest":
                    yield words[1:]


def parse(command, words):
    """Let click look at a command without running it; an unknown option is an error."""
    context = command.make_context(command.name, list(words))
    while hasattr(context.command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_exist_with_their_options(page):
    from onlineforest._cli import build_command

    for words in commands_of(page):
        parse(build_command(), words)


def test_a_wrong_option_is_found():
    import click

    from onlineforest._cli import build_command

    for words in (["train", "x.csv", "--no-such-option"], ["plot", "no-such-picture"], ["trian"]):
        with pytest.raises(click.UsageError):
            parse(build_command(), words)


def test_the_commands_of_the_command_line_page_run(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from onlineforest._cli import build_command

    monkeypatch.chdir(tmp_path)
    commands = list(commands_of(ROOT / "docs/command-line.md"))
    assert len(commands) > 10
    for words in commands:
        if words == ["demo"]:  # has tests of its own, and takes long
            continue
        if "-" in words:  # from a pipe, which the runner has not
            words = [word if word != "-" else "new-flowers.csv" for word in words]
        result = CliRunner().invoke(build_command(), words)
        assert result.exit_code == 0, (words, result.output)


def load_script(path):
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_of_benchmarks_finds_its_figures(tmp_path):
    page = load_script(ROOT / "docs/benchmark_page.py")
    found = page.ratios(json.loads(page.FIGURES.read_text(encoding="utf-8")))
    assert {case for case, _ in found} == set(page.CASES.values())
    assert found["fit", "letter"] == pytest.approx(0.78) and len(found) == 30
    page.draw(found, tmp_path / "benchmarks.svg")
    assert (tmp_path / "benchmarks.svg").stat().st_size > 1000


def test_the_pictures_of_how_it_works_are_those_of_the_script():
    shown = re.findall(r"\(_pictures/how/(\w+)\.svg\)", (ROOT / "docs/how-it-works.md").read_text())
    assert shown == list(pictures.how.PICTURES)
    pictures.how.online_picture()  # draws, with the plot module as it is


def test_the_figures_of_the_paper_are_those_of_the_page():
    shown = re.findall(r"\(_pictures/paper/(\w+)\.svg\)", (ROOT / "docs/paper.md").read_text())
    assert shown == list(pictures.paper.PICTURES)


def test_a_picture_is_drawn_when_it_is_missing_or_older_than_a_source(tmp_path):
    source = tmp_path / "source.py"
    source.touch()
    picture = pictures.Picture(tmp_path / "page/tree.svg", pictures.how.tree_picture, (source,))
    assert picture.is_outdated()
    picture.save()
    first = picture.path.read_bytes()
    assert not picture.is_outdated()
    later = picture.path.stat().st_mtime + 1
    os.utime(source, (later, later))
    assert picture.is_outdated()
    picture.save()
    assert picture.path.read_bytes() == first  # equal figures, equal files


def test_only_outdated_pictures_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures.how, "PICTURES", {"tree": pictures.how.tree_picture})
    monkeypatch.setattr(pictures, "PAGES", (pictures.how,))
    assert pictures.draw_outdated(tmp_path) == [tmp_path / "how/tree.svg"]
    assert pictures.draw_outdated(tmp_path) == []


def test_the_picture_of_the_readme_is_small_and_the_only_one_committed():
    assert "(docs/stream.svg)" in README
    assert (ROOT / "docs/stream.svg").stat().st_size < 60_000
    built = ("_pictures", "gallery", "generated", "api")  # folders that git ignores
    images = [
        path.relative_to(ROOT / "docs")
        for suffix in ("svg", "png")
        for path in (ROOT / "docs").rglob(f"*.{suffix}")
    ]
    assert [str(path) for path in images if path.parts[0] not in built] == ["stream.svg"]


def test_every_public_name_is_in_the_reference():
    import onlineforest.plot
    import onlineforest.ray
    import onlineforest.river

    parts = (ROOT / "docs/reference.md").read_text().split("autosummary::")[1:]
    modules = (onlineforest, onlineforest.plot, onlineforest.river, onlineforest.ray)
    for module, part in zip(modules, parts, strict=True):
        names = re.findall(r"^   (\w+)$", part, re.MULTILINE)
        public = {n for n in module.__all__ if not n.startswith("__") and n != "plot"}
        assert set(names) == public


def test_every_page_of_the_site_is_reached():
    pages = {p.stem for p in (ROOT / "docs").glob("*.md")}
    listed = {
        name
        for page in PAGES
        for toctree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL)
        for name in re.findall(r"^[\w-]+$", toctree, re.MULTILINE)
    }
    assert pages - listed == {"index"}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("The order-free forest", onlineforest.OnlineForestClassifier),
        ("The Mondrian forest", onlineforest.MondrianForestClassifier),
    ],
)
def test_the_tables_of_parameters_name_them_all_and_their_defaults(heading, kind):
    section = TUNE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", section, re.MULTILINE)
    parameters = inspect.signature(kind).parameters
    assert sorted(rows) == sorted(
        (name, str(p.default) if not isinstance(p.default, str) else f'"{p.default}"')
        for name, p in parameters.items()
    )


def test_continuous_integration_runs_the_readme_test_command():
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert commands[0].endswith("onlineforest demo")
    (tests,) = (command for command in commands if command.endswith("-m pytest"))
    assert tests in (ROOT / ".ci/run").read_text()


def test_links_of_the_documentation_lead_somewhere():
    drawn = {picture.path for picture in pictures.pictures()}
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            path = document.parent / target
            if not target.startswith("http"):
                assert path in drawn or path.exists(), f"{document.name}: {target}"
