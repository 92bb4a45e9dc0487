"""Checks that every room of the C++ core includes only rooms before it.

    python .ci/check_rooms.py [--graph]

Includes of our own files are written with their room ("points/box.hpp"), or without one for a file
in the same folder of the bindings. `--graph` prints how many includes lead from room to room.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "src" / "core"
# A room may include itself and the rooms named with it; rooms stand below those that use them.
ROOMS = {
    "base": (),
    "points": ("base",),
    "process": ("base", "points"),
    "tree": ("base", "points", "process"),
    "forest": ("base", "points", "process", "tree"),
    "labels": ("base", "points", "process", "tree", "forest"),
    "numbers": ("base", "points", "process", "tree", "forest"),
    "state": ("base", "points", "process", "tree", "forest", "labels", "numbers"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def problems_of(path: Path, arrows: Counter[tuple[str, str]]) -> list[str]:
    """Return what is wrong with the includes of one file; count its arrows between rooms."""
    room = path.relative_to(CORE).parts[0]
    name = path.relative_to(ROOT)
    if room not in ROOMS:
        return [f"{name}: {room!r} is not one of the rooms {', '.join(ROOMS)}"]
    problems = []
    for own, system in INCLUDE.findall(path.read_text()):
        if system:
            if system.startswith("nanobind") or system.lower() == "python.h":
                problems.append(f"{name}: the core includes <{system}>")
            continue
        target = own.split("/")[0]
        if not (CORE / own).is_file() or "/" not in own:
            problems.append(f'{name}: "{own}" is not written with its room')
        elif target != room and target not in ROOMS[room]:
            problems.append(f'{name}: room {room!r} must not include "{own}"')
        else:
            arrows[room, target] += 1
    return problems


def circles_of(files: list[Path]) -> list[str]:
    """Return files that include each other, directly or through others."""
    includes = {
        str(path.relative_to(CORE)): [own for own, _ in INCLUDE.findall(path.read_text()) if own]
        for path in files
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


def main() -> int:
    """Print all problems; return 1 if there are any."""
    arrows: Counter[tuple[str, str]] = Counter()
    files = sorted(path for path in CORE.rglob("*") if path.suffix in {".hpp", ".cpp"})
    problems = [problem for path in files for problem in problems_of(path, arrows)]
    problems += circles_of(files)
    print(*problems, sep="\n", end="\n" if problems else "")
    if "--graph" in sys.argv[1:]:
        for (room, target), count in sorted(arrows.items()):
            if room != target:
                print(f"{room} -> {target}: {count} includes")
    print(f"{len(files)} files in {len(ROOMS)} rooms, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
