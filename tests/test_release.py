"""Versions, addresses, workflows and the files that they name agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import onlineforest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
HASH = r"[0-9a-f]{40} # v\d+\.\d+\.\d+"


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert onlineforest.__version__ in (version, "0")  # "0": a site that CI made without metadata
    assert f"\nversion: {version}\n" in citation
    assert re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M) or (
        "## [Unreleased]" in changes and f"version, {version}." in changes
    )


def test_addresses_are_the_same_everywhere():
    home = PROJECT["project"]["urls"]["Homepage"]
    for name in ("CITATION.cff", "SECURITY.md", "pyproject.toml"):
        assert home in (ROOT / name).read_text(encoding="utf-8"), name


def test_links_of_the_readme_have_addresses_where_packages_are_shown():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/" in text
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links)
    assert all(
        (ROOT / link.split("/main/")[1].split("#")[0]).exists()
        for link in links
        if "/main/" in link
    )


def test_the_tests_of_wheels_exist():
    command = PROJECT["tool"]["cibuildwheel"]["test-command"].split()
    files = [part for part in command if part.startswith("tests/")]
    assert len(files) >= 4
    assert all((ROOT / file).exists() for file in files)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_pinned_thin_and_may_only_read(path):
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (\S+)(.*)", text)
    for action, comment in actions:
        assert action.startswith("./") or re.fullmatch(HASH, action.split("@")[1] + comment), action
    assert "\npermissions:\n  contents: read\n" in text
    assert set(re.findall(r"^ +([a-z-]+): write", text, re.M)) <= {"id-token", "pages"}
    assert "secrets." not in text
    for script in re.findall(r"bash (\.ci/\S+)", text):
        assert (ROOT / script).exists(), script


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"docs", "nightly", "release", "tests"}
