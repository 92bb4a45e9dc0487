"""Every file, class and function that the maps of the code name exists. Nothing is imported."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "docs/algorithm.md"
MAPS = [MAP, ROOT / "docs/order-free.md"]
PAGES = [*MAPS, ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/decisions/0*.md"))]
FOLDERS = ["src/core", "src/bindings", "src/onlineforest"]
# Paths that begin with one of these are complete; others are relative to a folder of the sources.
WHOLE = ("src/", "tests/", "benchmarks/", "experiments/", "docs/", ".ci/", "conftest.py")

PATH = re.compile(r"(?<![\w./-])[\w./-]*\w\.(?:hpp|cpp|py)\b")
CPP_MEMBER = re.compile(r"\b([A-Z]\w+)::(\w+)")
PYTHON_MEMBER = re.compile(r"`([A-Z][a-z]\w*)\.(\w+)`")  # not CONTRIBUTING.md
STEP = re.compile(r"^ *\d+\. `([^`]+)` \(`([^`]+)`\)", re.MULTILINE)


def find_file(path: str, root: Path = ROOT) -> Path | None:
    """The file that a page means by a path."""
    places = [root] if path.startswith(WHOLE) else [root / folder for folder in FOLDERS]
    return next((place / path for place in places if (place / path).is_file()), None)


def missing_files(text: str) -> list[str]:
    """Paths in a text that are no files."""
    return sorted({path for path in PATH.findall(text) if find_file(path) is None})


@cache
def sources(folder: str, suffix: str) -> tuple[str, ...]:
    """The texts of all source files in a folder."""
    return tuple(file.read_text() for file in sorted((ROOT / folder).rglob(f"*{suffix}")))


def has_word(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


def missing_members(
    names: set[tuple[str, str]], texts: tuple[str, ...], declaration: str
) -> list[str]:
    """Pairs of class and member that no file has which declares the class."""
    declaring = {
        owner: [text for text in texts if re.search(declaration.format(owner), text)]
        for owner, _ in names
    }
    return sorted(
        f"{owner}: {member}"
        for owner, member in names
        if not any(has_word(text, member) for text in declaring[owner])
    )


def missing_in_core(text: str) -> list[str]:
    """Members of C++ classes in a text that the core lacks."""
    names = set(CPP_MEMBER.findall(text))
    return missing_members(names, sources("src/core", ".hpp"), r"\b(?:class|struct) {}\b[^;()]*\{{")


def missing_in_package(text: str) -> list[str]:
    """Members of Python classes in a text that the package lacks."""
    names = set(PYTHON_MEMBER.findall(text))
    return missing_members(names, sources("src/onlineforest", ".py"), r"\bclass {}\b")


def misplaced_steps(text: str) -> list[str]:
    """Steps of the lists of calls whose function is not in the file named beside it."""
    steps = [(re.split(r"::|\.", call)[-1], path) for call, path in STEP.findall(text)]
    return [
        f"{function}: {path}"
        for function, path in steps
        if (file := find_file(path)) is None or not has_word(file.read_text(), function)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page):
    assert missing_files(page.read_text()) == []


def test_every_path_in_the_map_names_its_room():
    assert len(PATH.findall(MAP.read_text())) > 50
    assert [path for path in PATH.findall(MAP.read_text()) if "/" not in path] == []


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
def test_every_member_of_a_class_of_the_core_exists(page):
    text = page.read_text()
    assert CPP_MEMBER.findall(text)
    assert missing_in_core(text) == []


def test_every_member_of_a_python_class_exists():
    text = MAP.read_text()
    assert PYTHON_MEMBER.findall(text)
    assert missing_in_package(text) == []


def test_every_step_of_a_call_is_in_the_file_beside_it():
    text = MAP.read_text()
    assert len(STEP.findall(text)) == len(re.findall(r"^\d+\. ", text, re.MULTILINE)) > 20
    assert misplaced_steps(text) == []


def test_every_step_of_a_row_in_contributing_is_in_the_file_beside_it():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(STEP.findall(text)) > 15
    assert misplaced_steps(text) == []


def test_wrong_names_are_found():
    assert missing_files("`mondrian/tree/grow.hpp`, `mondrian/tree/shrub.hpp`") == [
        "mondrian/tree/shrub.hpp"
    ]
    assert missing_files("`grow.hpp`, `src/core/mondrian/tree/grow.hpp`") == ["grow.hpp"]
    assert missing_in_core("`Tree::grow`, `Tree::wither`, `Shrub::grow`") == [
        "Shrub: grow", "Tree: wither"
    ]  # fmt: skip
    assert missing_in_package("`MondrianForestClassifier.fit`, `Shrub.fit`") == ["Shrub: fit"]
    room = "mondrian/tree"
    step = (
        f"1. `Tree::grow` (`{room}/grow.hpp`): grows.\n2. `Tree::grow` (`{room}/forget.hpp`): no.\n"
    )
    assert misplaced_steps(step) == [f"grow: {room}/forget.hpp"]
