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


def problems(check_rooms, folder, texts):
    """The problems of small sources: texts of headers by room and name, `mondrian/tree/tree`.

    Every room has a file besides.
    """
    for name, text in {**{f"{room}/door": "" for room in check_rooms.ROOMS}, **texts}.items():
        top = name.split("/")[0]
        place = folder / "src" / (name if top in check_rooms.TOPS else f"core/{name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_suffix(".hpp").write_text(text)
    return check_rooms.Sources(folder).problems()


def test_the_sources_keep_to_their_rooms(check_rooms):
    sources = check_rooms.Sources(ROOT)
    assert sources.problems() == []
    assert len(sources.core_files) > 50
    assert all(len(files) > 5 for files in sources.top_files.values())
    assert {room for room, _ in sources.arrows} == {*check_rooms.ROOMS, *check_rooms.TOPS}


def test_every_room_knows_only_rooms_before_it(check_rooms):
    assert check_rooms.arrows_up(check_rooms.ROOMS) == []
    (found,) = check_rooms.arrows_up({"base": (), "law": ("base", "tree"), "tree": ("law",)})
    assert found == "room 'law' may know 'tree', which does not stand before it"
    (found,) = check_rooms.arrows_up({"base": ("base",)})
    assert "'base' may know 'base'" in found


def test_includes_of_lower_rooms_are_allowed(check_rooms, tmp_path):
    assert not problems(
        check_rooms,
        tmp_path,
        {
            "base/rng": "#include <vector>\n",
            "mondrian/tree/tree": '#include "base/rng.hpp"\n',
            "mondrian/tree/walk": '#include "mondrian/tree/tree.hpp"\n',
            "bindings/calls": '#include "mondrian/tree/tree.hpp"\n#include <nanobind/nanobind.h>\n',
            "bindings/module": '#include "calls.hpp"\n',
        },
    )


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"mondrian/tree/tree": '#include "mondrian/labels/door.hpp"\n'}, "must not include"),
        ({"mondrian/labels/a": '#include "orderfree/law/door.hpp"\n'}, "must not include"),
        ({"orderfree/labels/a": '#include "orderfree/numbers/door.hpp"\n'}, "must not include"),
        ({"orderfree/law/a": '#include "mondrian/points/door.hpp"\n'}, "must not include"),
        ({"mondrian/tree/tree": '#include "door.hpp"\n'}, "does not name a room"),
        ({"mondrian/tree/tree": '#include "tree/door.hpp"\n'}, "does not name a room"),
        ({"mondrian/tree/tree": '#include "base/none.hpp"\n'}, "does not name a room"),
        ({"base/rng": "#include <nanobind/nanobind.h>\n"}, "the core includes <nanobind"),
        ({"base/rng": "#include <Python.h>\n"}, "the core includes <Python.h>"),
        ({"attic/box": ""}, "'attic' is not one of the rooms"),
        ({"orderfree/box": ""}, "'orderfree' is not one of the rooms"),
        ({"base/attic/box": ""}, "'base/attic' is not one of the rooms"),
        ({"base/a": '#include "base/b.hpp"\n', "base/b": '#include "base/a.hpp"\n'}, "circle"),
        ({"bindings/calls": '#include "none.hpp"\n'}, "neither of a room nor of 'bindings'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forbidden_include_is_found(check_rooms, tmp_path, texts, problem):
    (found,) = problems(check_rooms, tmp_path, texts)
    assert problem in found


def test_a_room_that_does_not_exist_is_found(check_rooms, tmp_path):
    sources = check_rooms.Sources(tmp_path)
    assert sources.problems() == [f"room {room!r} has no C++ file" for room in check_rooms.ROOMS]
