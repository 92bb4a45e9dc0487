"""The check of the C++ rooms (.ci/check_rooms.py) finds what it is there to find."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def check_rooms():
    spec = importlib.util.spec_from_file_location("check_rooms", ROOT / ".ci/check_rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems(check_rooms, folder, **texts):
    """The problems of small sources, named like `tree__tree` for src/core/tree/tree.hpp."""
    for name, text in texts.items():
        room, stem = name.split("__")
        place = folder / "src" / (room if room in check_rooms.TOPS else f"core/{room}")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{stem}.hpp").write_text(text)
    return check_rooms.Sources(folder).problems()


def test_the_sources_keep_to_their_rooms(check_rooms):
    sources = check_rooms.Sources(ROOT)
    assert sources.problems() == []
    assert len(sources.core_files) > 50
    assert all(len(files) > 5 for files in sources.top_files.values())
    assert {room for room, _ in sources.arrows} == {*check_rooms.ROOMS, *check_rooms.TOPS}


def test_includes_of_lower_rooms_are_allowed(check_rooms, tmp_path):
    assert not problems(
        check_rooms,
        tmp_path,
        base__rng="#include <vector>\n",
        tree__tree='#include "base/rng.hpp"\n',
        tree__walk='#include "tree/tree.hpp"\n',
        bindings__calls='#include "tree/tree.hpp"\n#include <nanobind/nanobind.h>\n',
        bindings__module='#include "calls.hpp"\n',
    )


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"tree__tree": '#include "labels/sets.hpp"\n', "labels__sets": ""}, "must not include"),
        ({"labels__a": '#include "guided/b.hpp"\n', "guided__b": ""}, "must not include"),
        ({"tree__tree": '#include "walk.hpp"\n', "tree__walk": ""}, "does not name a room"),
        ({"tree__tree": '#include "base/none.hpp"\n'}, "does not name a room"),
        ({"base__rng": "#include <nanobind/nanobind.h>\n"}, "the core includes <nanobind"),
        ({"base__rng": "#include <Python.h>\n"}, "the core includes <Python.h>"),
        ({"attic__box": ""}, "'attic' is not one of the rooms"),
        ({"base__a": '#include "base/b.hpp"\n', "base__b": '#include "base/a.hpp"\n'}, "circle"),
        ({"bindings__calls": '#include "none.hpp"\n'}, "neither of a room nor of 'bindings'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forbidden_include_is_found(check_rooms, tmp_path, texts, problem):
    (found,) = problems(check_rooms, tmp_path, **texts)
    assert problem in found
