"""Builds mutants of the core, runs the tests named with them and reports which were found.

It knows nothing about the mutants themselves: `run.py` lists them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST, MOST = 12, 12  # mutants that the gate tries: at least one of every room that has some


@dataclass(frozen=True)
class Mutant:
    """One way to break the core, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    only: str = ""  # the tests to run, an expression for `pytest -k`; all of them if empty
    is_variant: bool = False  # resembles another mutant: chosen last

    @property
    def room(self) -> str:
        """The room whose code is broken, such as `base` or `orderfree/tree`."""
        return room_of(self.file)


def room_of(file: str) -> str:
    """The room of a C++ file: its folder in `src/core`, or `bindings`."""
    return Path(file).parent.as_posix().removeprefix("src/").removeprefix("core/")


CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.20...4.0)
project(mutant LANGUAGES CXX)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)
find_package(Threads REQUIRED)
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG -ffp-contract=off")
nanobind_add_module(_core NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE SOURCES)
target_compile_features(_core PRIVATE cxx_std_20)
target_include_directories(_core PRIVATE src/core src/bindings)
target_link_libraries(_core PRIVATE Threads::Threads)
"""


def unit_of(path: Path) -> str:
    """The translation unit of a file below `src`: bindings, Mondrian forest or order-free forest.

    A mutant changes one or two of them; Ninja leaves the rest as they are.
    """
    return room_of(f"src/{path.as_posix()}").split("/")[0]


class BrokenWorkshopError(Exception):
    """The unbroken core, or the tool that builds it, does not work: mutants cannot be judged."""


class Workshop:
    """A copy of the sources and its build folder. One thread uses it."""

    def __init__(self, folder: Path) -> None:
        self.source, self.build_dir = folder / "source", folder / "build"
        self.package = folder / "python" / "onlineforest"
        self.source.mkdir(parents=True)
        for name in ("bindings", "core"):
            shutil.copytree(ROOT / "src" / name, self.source / "src" / name)
        # Few translation units, lightly optimised: compiling takes longer than testing.
        units: dict[str, list[str]] = {}
        for path in sorted((self.source / "src").rglob("*.cpp")):
            line = f'#include "{path.relative_to(self.source)}"\n'
            units.setdefault(unit_of(path.relative_to(self.source / "src")), []).append(line)
        for name, lines in units.items():
            (self.source / f"{name}.cpp").write_text("".join(lines))
        sources = " ".join(f"{name}.cpp" for name in units)
        (self.source / "CMakeLists.txt").write_text(CMAKE_LISTS.replace("SOURCES", sources))

    def build(self) -> None:
        """Compile the extension into the package, a copy of the Python files."""
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
        if ccache := shutil.which("ccache"):
            options.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}")
        # With relative paths, workshops share the entries of the compiler cache.
        environment = {**os.environ, "CCACHE_BASEDIR": str(self.source.parent)}
        run(["cmake", "-S", self.source, "-B", self.build_dir, "-G", "Ninja", *options])
        run(["cmake", "--build", self.build_dir], environment)
        (extension,) = self.build_dir.glob("_core*.so")
        shutil.copytree(
            ROOT / "src/onlineforest",
            self.package,
            ignore=shutil.ignore_patterns("_core*.so", "__pycache__"),
            dirs_exist_ok=True,
        )
        shutil.copy(extension, self.package)
        # The package reads its version from its metadata, so it need not be installed.
        metadata = self.package.parent / "onlineforest-0.dist-info" / "METADATA"
        metadata.parent.mkdir(exist_ok=True)
        metadata.write_text("Metadata-Version: 2.1\nName: onlineforest\nVersion: 0\n")

    def check_imported(self) -> None:
        """Raise if the tests would import another package, which would hide every mutant."""
        command = [sys.executable, "-c", "import onlineforest._core as c; print(c.__file__)"]
        result = subprocess.run(
            command, cwd=ROOT, env=self._environment(), capture_output=True, text=True
        )
        if not result.stdout.startswith(str(self.package)):
            raise BrokenWorkshopError(
                f"The tests would import {result.stdout.strip()}, not the one in {self.package}.\n"
                f"{result.stderr}"
            )

    def failure_of(self, tests: str, only: str = "") -> str | None:
        """Run tests up to the first failure; return pytest's lines on it, None if all pass."""
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--statistics-only", "-m", ""]
        command = [sys.executable, "-m", "pytest", *options, "-k", only, tests]
        result = subprocess.run(
            command, cwd=ROOT, env=self._environment(), capture_output=True, text=True
        )
        if result.returncode == 0:
            return None
        if result.returncode < 0:  # the core crashed
            return f"    the tests ended with signal {-result.returncode}"
        lines = result.stdout.splitlines()
        failures = [line for line in lines if line.startswith("FAILED")]
        if not failures:
            raise BrokenWorkshopError(f"pytest could not run:\n{result.stdout}{result.stderr}")
        reasons = [line for line in lines if line.startswith("E  ")]
        return "\n".join(f"    {line[:160]}" for line in failures[:1] + reasons[:1])

    def try_mutant(self, mutant: Mutant) -> bool:
        """Return whether a test noticed the mutant."""
        text = (ROOT / mutant.file).read_text()
        place = self.source / mutant.file
        place.write_text(text.replace(mutant.old, mutant.new))
        self.build()
        failure = self.failure_of(mutant.tests, mutant.only)
        place.write_text(text)
        verdict = "SURVIVED" if failure is None else "found"
        print(f"{mutant.room}: {mutant.name}: {verdict}\n{failure or ''}", flush=True)
        return failure is not None

    def _environment(self) -> dict[str, str]:
        """Return the environment in which Python imports this workshop's package.

        With all random examples. Without `CI`, or pytest would compare long lists line by line to
        explain a failure, which can take hours.
        """
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        ours = {"ONLINEFOREST_EXAMPLES": "1", "PYTHONPATH": str(self.package.parent)}
        return environment | ours


def run(command: Sequence[object], environment: dict[str, str] | None = None) -> None:
    """Run a command; raise with its output if it fails."""
    words = list(map(str, command))
    result = subprocess.run(words, capture_output=True, text=True, env=environment)
    if result.returncode:
        raise BrokenWorkshopError(f"{' '.join(words)} failed:\n{result.stdout}{result.stderr}")


def problems_of(mutants: Iterable[Mutant]) -> list[str]:
    """Return what is wrong with a list of mutants, without building any.

    Each `old` text must occur exactly once in its file, and a mutant must change something.
    """
    problems = []
    names: set[str] = set()
    for mutant in mutants:
        path = ROOT / mutant.file
        if mutant.name in names:
            problems.append(f"{mutant.name}: two mutants have this name")
        names.add(mutant.name)
        if mutant.old == mutant.new:
            problems.append(f"{mutant.name}: the old and the new text are equal")
        if not (ROOT / mutant.tests).is_file():
            problems.append(f"{mutant.name}: {mutant.tests} does not exist")
        if not path.is_file():
            problems.append(f"{mutant.name}: {mutant.file} does not exist")
        elif (n_found := path.read_text().count(mutant.old)) != 1:
            problems.append(
                f"{mutant.name}: the text to replace occurs {n_found} times in {mutant.file}"
            )
    return problems


def choose(mutants: Sequence[Mutant], rooms: Iterable[str], least: int, most: int) -> list[Mutant]:
    """Return the mutants of some rooms, at most `most`, and others until there are `least`.

    They are taken from the rooms in turn, in the order of the list, mutants that are no variants
    first: the same list gives the same choice.
    """
    rooms = set(rooms)
    chosen = _in_turn(mutant for mutant in mutants if mutant.room in rooms)[:most]
    others = _in_turn(mutant for mutant in mutants if mutant.room not in rooms)
    return chosen + others[: max(least - len(chosen), 0)]


def _in_turn(mutants: Iterable[Mutant]) -> list[Mutant]:
    queues: dict[str, list[Mutant]] = {}
    for mutant in sorted(mutants, key=lambda mutant: mutant.is_variant):  # stable
        queues.setdefault(mutant.room, []).append(mutant)
    rounds = zip_longest(*queues.values())
    return [mutant for round_ in rounds for mutant in round_ if mutant is not None]


def changed_rooms() -> set[str]:
    """Return the rooms of C++ files that differ from the main branch or the commit before.

    The base is the merge base with `origin/main`, else the commit before this one, else nothing is
    known to have changed. Changes that are not committed count.
    """
    for command in (["merge-base", "HEAD", "origin/main"], ["rev-parse", "--verify", "HEAD~1"]):
        base = _git(*command)
        if base and base != _git("rev-parse", "HEAD"):
            names = _git("diff", "--name-only", base, "--", "src/core", "src/bindings")
            return {room_of(name) for name in (names or "").splitlines()}
    return set()


def _git(*arguments: str) -> str | None:
    """Return what a Git command prints, None if it fails or Git is not installed."""
    try:
        result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def try_mutants(chosen: Sequence[Mutant], sound: tuple[str, str]) -> int:
    """Try mutants, one per processor at a time; return how many were found.

    `sound` is a test file and a `-k` expression that the unbroken core must pass, so that a mutant
    does not "fail" because nothing works.
    """
    waiting = list(reversed(chosen))
    lock = threading.Lock()

    def check_unbroken(workshop: Workshop) -> None:
        workshop.build()
        workshop.check_imported()
        failure = workshop.failure_of(*sound)
        if failure is not None:
            raise BrokenWorkshopError(f"unbroken core: {sound[0]} fails\n{failure}")

    def work(workshop: Workshop) -> int:
        try:
            if workshop is workshops[0]:  # the others begin with mutants at once
                check_unbroken(workshop)
            n_found = 0
            while True:
                with lock:
                    if not waiting:
                        return n_found
                    mutant = waiting.pop()
                n_found += workshop.try_mutant(mutant)
        except BrokenWorkshopError:
            with lock:
                waiting.clear()
            raise

    n_workers = min(os.cpu_count() or 1, 4, len(chosen))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(n_workers) as pool:
        workshops = [Workshop(Path(folder, str(i))) for i in range(n_workers)]
        return sum(pool.map(work, workshops))


def main(mutants: Sequence[Mutant], sound: tuple[str, str], description: str) -> int:
    """Choose mutants by the command line and try them; return 0 if all were found."""
    parser = argparse.ArgumentParser(description=description)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="TEXT", help="the mutants whose name contains a text")
    which.add_argument("--all", action="store_true", help="all mutants")
    which.add_argument("--check", action="store_true", help="check the list and build nothing")
    parser.add_argument(
        "--rooms",
        nargs="*",
        metavar="ROOM",
        help="all mutants of these rooms (default: some of the rooms that changed since the main "
        f"branch, at most {MOST})",
    )
    parser.add_argument(
        "--least",
        type=int,
        default=LEAST,
        metavar="N",
        help="if the rooms have fewer mutants, add some of other rooms (default: %(default)s)",
    )
    arguments = parser.parse_args()

    problems = problems_of(mutants)
    print(*problems, sep="\n", end="\n" if problems else "")
    if arguments.check or problems:
        print(f"{len(mutants)} mutants, {len(problems)} problems")
        return 1 if problems else 0
    known = {mutant.room for mutant in mutants}
    if unknown := set(arguments.rooms or ()) - known:
        parser.error(f"no mutants of {sorted(unknown)}; rooms with mutants: {sorted(known)}")
    if arguments.all:
        chosen = list(mutants)
    elif arguments.only:
        chosen = [mutant for mutant in mutants if arguments.only in mutant.name]
        if not chosen:
            parser.error(f"no mutant has {arguments.only!r} in its name")
    elif arguments.rooms is not None:
        chosen = choose(mutants, arguments.rooms, arguments.least, len(mutants))
    else:
        chosen = choose(mutants, changed_rooms(), arguments.least, MOST)
    try:
        n_found = try_mutants(chosen, sound)
    except BrokenWorkshopError as error:
        print(error)
        return 1
    print(f"{n_found} of {len(chosen)} mutants found")
    return 0 if n_found == len(chosen) else 1
