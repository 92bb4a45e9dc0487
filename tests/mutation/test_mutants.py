"""The list of mutants fits the sources, and mutants are chosen as the help says. Builds nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mutation.run import MUTANTS, SOUND
from mutation.workshop import LEAST, MOST, ROOT, Mutant, Workshop, choose, main, problems_of

CORE = ROOT / "src/core"
ROOMS = {path.parent.relative_to(CORE).as_posix() for path in CORE.rglob("*.hpp")} | {"bindings"}


def test_every_text_to_replace_occurs_exactly_once_in_its_file():
    assert problems_of(MUTANTS) == []
    assert (ROOT / SOUND[0]).is_file()


def test_pytest_does_not_explain_a_failure_at_length(tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    environment = Workshop(tmp_path)._environment()
    assert "CI" not in environment and "PATH" in environment


def test_every_mutant_belongs_to_a_room():
    assert {mutant.room for mutant in MUTANTS} <= ROOMS


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"old": "no such text"}, "occurs 0 times"),
        ({"old": "\n"}, r"occurs \d+ times"),
        ({"file": "src/core/mondrian/tree/none.hpp"}, "does not exist"),
        ({"tests": "tests/none.py"}, "does not exist"),
        ({"new": MUTANTS[0].old}, "are equal"),
        ({"name": MUTANTS[1].name}, "two mutants have this name"),
    ],
    ids=["absent text", "frequent text", "no file", "no tests", "no change", "name twice"],
)
def test_a_mutant_that_fits_nothing_is_a_problem(change, problem):
    mutants = [replace(MUTANTS[0], **change), *MUTANTS[1:]]
    (found,) = problems_of(mutants)
    assert re.search(problem, found)


def mutants_of(**n_mutants):
    """As many mutants of each room as said, the first of each room no variant.

    The room of the keyword `law_tree` is `law/tree`.
    """
    return [
        Mutant(
            f"{room} {i}",
            f"src/core/{room.replace('_', '/')}/x.hpp",
            "a",
            "b",
            "",
            is_variant=i > 0,
        )
        for room, n in n_mutants.items()
        for i in range(n)
    ]


def names(mutants):
    return [mutant.name for mutant in mutants]


def test_mutants_of_changed_rooms_are_chosen_in_turn():
    mutants = mutants_of(tree=5, labels=2, numbers=1)
    assert names(choose(mutants, {"tree"}, 3, 100)) == [f"tree {i}" for i in range(5)]
    assert names(choose(mutants, {"tree", "labels"}, 3, 4)) == [
        "tree 0",
        "labels 0",
        "tree 1",
        "labels 1",
    ]
    assert choose(mutants, {"base"}, 0, 100) == []


def test_further_mutants_are_taken_from_the_rooms_in_turn():
    mutants = mutants_of(tree=5, labels=2, numbers=1)
    assert names(choose(mutants, (), 5, 5)) == [
        "tree 0",
        "labels 0",
        "numbers 0",
        "tree 1",
        "labels 1",
    ]
    assert names(choose(mutants, {"labels"}, 4, 4)) == [
        "labels 0",
        "labels 1",
        "tree 0",
        "numbers 0",
    ]
    assert len(choose(mutants, (), 100, 100)) == 8


def test_the_default_choice_reaches_every_room_that_has_mutants():
    assert {m.room for m in choose(MUTANTS, (), LEAST, MOST)} == {m.room for m in MUTANTS}
    assert len(choose(MUTANTS, (), LEAST, MOST)) == LEAST


class QuickWorkshop:
    """Builds nothing, and says that one mutant survives."""

    def __init__(self, folder):
        pass

    def build(self):
        pass

    check_imported = build

    def failure_of(self, tests, only=""):
        return None

    def try_mutant(self, mutant):
        return mutant.name != "tree 2"


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["--all"], 1, "22 of 23 mutants found"),
        (["--only", "labels"], 0, "20 of 20 mutants found"),
        (["--rooms", "law/labels"], 0, "20 of 20 mutants found"),
        (["--rooms", "tree"], 1, f"{LEAST - 1} of {LEAST} mutants found"),
        ([], 0, f"{MOST} of {MOST} mutants found"),  # law/labels has changed
    ],
)
def test_all_chosen_mutants_are_tried(monkeypatch, capsys, words, status, line):
    monkeypatch.setattr("mutation.workshop.Workshop", QuickWorkshop)
    monkeypatch.setattr("mutation.workshop.problems_of", lambda mutants: [])
    monkeypatch.setattr("mutation.workshop.changed_rooms", lambda: {"law/labels"})
    monkeypatch.setattr("sys.argv", ["run.py", *words])
    assert main(mutants_of(tree=3, law_labels=20), SOUND, "") == status
    assert capsys.readouterr().out.splitlines() == [line]
