"""Checks that every room of the C++ sources includes only the rooms it may know.

    python .ci/check_rooms.py [--graph]

A room is a folder of `src/core` that holds C++ files, such as `base` or `orderfree/law`. An include
of our own file names its whole room ("orderfree/law/panel.hpp"). The bindings, which stand above
the core, include files of their own folder without one. `--graph` prints the number of includes
from room to room.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A room may include itself and the rooms named with it, which stand before it.
SHARED = ("base", "samples")
LAW, TREE = (*SHARED, "orderfree/law"), (*SHARED, "orderfree/law", "orderfree/tree")
ORDER_FREE = (*TREE, "orderfree/forest")
MONDRIAN = ("points", "process", "tree", "labels", "forest", "state")  # each may know all before it
ROOMS = {
    "base": (),
    "samples": ("base",),
    "orderfree/law": SHARED,
    "orderfree/tree": LAW,
    "orderfree/forest": TREE,
    "orderfree/labels": ORDER_FREE,
    "orderfree/numbers": ORDER_FREE,
    **{
        f"mondrian/{room}": (*SHARED, *(f"mondrian/{lower}" for lower in MONDRIAN[:i]))
        for i, room in enumerate(MONDRIAN)
    },
}
# The folders beside the core, and the rooms of the core that each may include.
TOPS = {"bindings": tuple(ROOMS)}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class Sources:
    """The C++ files of a checkout: `src/core` with its rooms, and the folders above it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.core = root / "src" / "core"
        self.arrows: Counter[tuple[str, str]] = Counter()  # includes from room to room
        self.core_files = files_in(self.core)
        self.top_files = {top: files_in(root / "src" / top) for top in TOPS}

    def problems(self) -> list[str]:
        """Return all forbidden includes, all circles, and the rooms that do not exist."""
        problems = [each for path in self.core_files for each in self.problems_of_core(path)]
        for top, paths in self.top_files.items():
            problems += [each for path in paths for each in self.problems_of_top(top, path)]
        found = {self.room_of(path) for path in self.core_files}
        problems += [f"room {room!r} has no C++ file" for room in ROOMS if room not in found]
        return problems + self.circles()

    def room_of(self, path: Path) -> str:
        """Return the room of a file of the core: its folder."""
        return path.relative_to(self.core).parent.as_posix()

    def problems_of_core(self, path: Path) -> list[str]:
        """Return the forbidden includes of one file of the core; count the others."""
        room = self.room_of(path)
        name = path.relative_to(self.root)
        if room not in ROOMS:
            return [f"{name}: {room!r} is not one of the rooms {', '.join(ROOMS)}"]
        problems = []
        for own, system in INCLUDE.findall(path.read_text()):
            if system:
                if is_python(system):
                    problems.append(f"{name}: the core includes <{system}>")
                continue
            target = Path(own).parent.as_posix()
            if not (self.core / own).is_file() or "/" not in own:
                problems.append(f'{name}: "{own}" does not name a room and a file of it')
            elif target != room and target not in ROOMS[room]:
                problems.append(f'{name}: room {room!r} must not include "{own}"')
            else:
                self.arrows[room, target] += 1
        return problems

    def problems_of_top(self, top: str, path: Path) -> list[str]:
        """Return the forbidden includes of one file above the core; count the others."""
        problems = []
        name = path.relative_to(self.root)
        for own, _ in INCLUDE.findall(path.read_text()):
            room = Path(own).parent.as_posix()
            if own and "/" in own and (self.core / own).is_file():
                self.arrows[top, room] += 1
                if room not in TOPS[top]:
                    problems.append(f'{name}: {top!r} must not include "{own}"')
            elif own and not (path.parent / own).is_file():
                problems.append(f'{name}: "{own}" is neither of a room nor of {top!r}')
        return problems

    def circles(self) -> list[str]:
        """Return files of the core that include each other, directly or through others."""
        includes = {
            path.relative_to(self.core).as_posix(): [
                own for own, _ in INCLUDE.findall(path.read_text()) if own
            ]
            for path in self.core_files
        }
        done: set[str] = set()
        problems = []

        def visit(name: str, trail: tuple[str, ...]) -> None:
            if name in trail:
                problems.append("circle: " + " -> ".join((*trail[trail.index(name) :], name)))
            elif name not in done:
                for other in includes.get(name, ()):
                    visit(other, (*trail, name))
                done.add(name)

        for name in includes:
            visit(name, ())
        return problems


def arrows_up(rooms: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the rooms of a table that may know a room that does not stand before them."""
    names = list(rooms)
    return [
        f"room {room!r} may know {lower!r}, which does not stand before it"
        for i, room in enumerate(names)
        for lower in rooms[room]
        if lower not in names[:i]
    ]


def is_python(header: str) -> bool:
    """Return whether a header is one of Python or nanobind."""
    return header.startswith("nanobind") or header.lower() == "python.h"


def files_in(folder: Path) -> list[Path]:
    """Return the C++ files in a folder and its folders."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".hpp", ".cpp", ".inc"})


def floors_of(arrows: Counter[tuple[str, str]]) -> int:
    """Return the number of rooms on the longest way down."""
    rooms = {room for pair in arrows for room in pair}
    heights: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in heights:
            lower = {target for each, target in arrows if each == room and target != room}
            heights[room] = 1 + max(map(height, lower), default=0)
        return heights[room]

    return max(map(height, rooms), default=0)


def main() -> int:
    """Print all problems; return 1 if there are any."""
    sources = Sources(ROOT)
    problems = arrows_up(ROOMS) + sources.problems()
    print(*problems, sep="\n", end="\n" if problems else "")
    if "--graph" in sys.argv[1:]:
        arrows = {pair: count for pair, count in sources.arrows.items() if pair[0] != pair[1]}
        for (room, target), count in sorted(arrows.items()):
            print(f"{room} -> {target}: {count} includes")
        print(f"{len(arrows)} arrows on {floors_of(sources.arrows)} floors")
    n_files = len(sources.core_files) + sum(map(len, sources.top_files.values()))
    above = " and ".join(TOPS)
    print(f"{n_files} files in {len(ROOMS)} rooms and in {above}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
