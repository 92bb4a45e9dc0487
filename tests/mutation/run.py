"""Breaks the core in known ways and sees the tests fail: the proof that the proof bites.

    python tests/mutation/run.py [--only NAME | --all]

Each mutant is a copy of the sources with one piece of text replaced. It is built like the real
thing and given to the tests named with it; one of them must fail, without the help of the
invariant checker, which would see some of the mutants at once. The unbroken copy comes first and
must pass some of the tests, so that a mutant does not "fail" because nothing works here; that it
passes all of them is what they are run for elsewhere.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONLINE_EQUALS_BATCH = "tests/statistical/test_online_equals_batch.py"
FORGETTING = "tests/statistical/test_forgetting.py"
REFERENCE = "tests/parity/test_reference.py"
GAUSSIAN = "tests/parity/test_gaussian.py"
LEARNED_WEIGHTS = "tests/models/test_learned_weights.py"
MISSING = "tests/models/test_missing.py"
PARTS = "tests/parity/test_parts.py"


@dataclass(frozen=True)
class Mutant:
    """One way to break the core, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    only: str = ""  # part of the names of the tests that look where it is; all of them if empty
    is_variant: bool = False  # much like another: left out unless all are asked for


MUTANTS = [
    Mutant(
        "the rate of an extension counts the old box too",
        "src/core/tree/extend.hpp",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n);",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n) > 0.0"
        " ? linear_dimension(weights(), outer, n) : 0.0;",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the location is drawn in the wrong gap",
        "src/core/process/cut.hpp",
        "is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d])",
        "is_upper ? rng.location(box.lower[d], row[d]) : rng.location(row[d], box.upper[d])",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the random state is the same for every sample",
        "src/core/tree/extend.hpp",
        "    learn();\n  } catch",
        "    learn();\n    rng_ = before.copy();\n  } catch",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a box is not grown",
        "src/core/tree/boxes.hpp",
        "  if (n_points <= kFewPoints) return;\n  nodes_.add_box(j);",
        "  if (n_points <= kFewPoints || nodes_.has_box(j)) return;\n  nodes_.add_box(j);",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "a box is not grown by one point",
        "src/core/tree/boxes.hpp",
        "    include(nodes_.lower(j), nodes_.upper(j), {row, row}, n_features());\n  }\n}",
        "  }\n}",
        ONLINE_EQUALS_BATCH,
        only="cloud",
        is_variant=True,
    ),
    Mutant(
        "the near child is born at its grandparent's time",
        "src/core/tree/extend.hpp",
        "work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()})",
        "work.tasks.push_back({near, near_begin, near_end, task.birth_time, rng_.exponential()})",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "both children go on with one clock",
        "src/core/tree/extend.hpp",
        "both ? rng_.exponential() : clock",
        "clock",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "the clock does not run down",
        "src/core/tree/extend.hpp",
        "return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;",
        "return rate * duration >= 0.0 ? clock : clock;",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "a proposal that misses the box is taken",
        "src/core/process/cut.hpp",
        "if (range.lower <= location && location < range.upper) {",
        "if (range.lower <= location && range.lower < range.upper) {",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "a right child goes on with the bounds of the left",
        "src/core/tree/grow.hpp",
        "        work.bounds.rewind(block.mark);\n",
        "",
        ONLINE_EQUALS_BATCH,
        only="wide",
        is_variant=True,
    ),
    Mutant(
        "the posterior counts labels both children hold once",
        "src/core/labels/label_walk.hpp",
        "level.n_labels + sets.size_common(node.left, node.right())",
        "level.n_labels",
        REFERENCE,
    ),
    Mutant(
        "the walk forgets to weigh the features",
        "src/core/process/rates.hpp",
        "rate += weights[d] * distance_to(box.lower[d], box.upper[d], row[d]);",
        "rate += (weights[d] > 0) * distance_to(box.lower[d], box.upper[d], row[d]);",
        REFERENCE,
        is_variant=True,
    ),
    Mutant(
        "pausing looks at the first new point only",
        "src/core/tree/pausing.hpp",
        "holds_only(leaf, node, points, value) && all_equal(points, more, value)",
        "holds_only(leaf, node, points, value)",
        ONLINE_EQUALS_BATCH,
        is_variant=True,
    ),
    Mutant(
        "relevance keeps what chance takes off",
        "src/core/forest/relevance.hpp",
        "relevance[d] += (gain - by_chance) * share;",
        "relevance[d] += gain * share;",
        LEARNED_WEIGHTS,
        is_variant=True,
    ),
    Mutant(
        "a message goes up an edge without its variance",
        "src/core/numbers/gaussian_target.hpp",
        "return {below.mean, below.variance + edge_variance(fade_above, fade_below)};",
        "return {below.mean, below.variance + 0.0 * edge_variance(fade_above, fade_below)};",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "no bridge where a row branches off",
        "src/core/numbers/gaussian_walk.hpp",
        "mean = level.above.mean + apart * w;",
        "mean = level.below.mean + 0.0 * apart;",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a set of points leaves the beliefs above it as they were",
        "src/core/tree/extend.hpp",
        "    work.unset.push_back({j, false});\n  } else {",
        "  } else {",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a point that is left out still speaks",
        "src/core/numbers/gaussian_walk.hpp",
        "      if (!held_it) {\n        beliefs_[k]",
        "      if (!held_it || other != kNoNode) {\n        beliefs_[k]",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a point that is left out still stretches the boxes",
        "src/core/numbers/gaussian_walk.hpp",
        "tree.box(places_[k + 1].other, points, buffer_)",
        "tree.box(place.node, points, buffer_)",
        GAUSSIAN,
        is_variant=True,
    ),
    Mutant(
        "a box does not shrink when a point is forgotten",
        "src/core/points/box.hpp",
        "    lower[d] = low;\n    upper[d] = high;\n",
        "",
        FORGETTING,
        only="back",
    ),
    Mutant(
        "the boxes above one that shrinks do not",
        "src/core/tree/boxes.hpp",
        "return std::exchange(old, now) == now;",
        "return old == now;",
        FORGETTING,
        only="crowd and wide",
        is_variant=True,
    ),
    Mutant(
        "the box of a leaf does not shrink when a point is forgotten",
        "src/core/tree/boxes.hpp",
        "(is_upper ? upper : lower)[d] = points.row(nodes_[leaf].first_point)[d];",
        "static_cast<void>(d), static_cast<void>(is_upper);",
        FORGETTING,
        only="predictions and crowd",
        is_variant=True,
    ),
    Mutant(
        "a block that may pause again stays cut",
        "src/core/tree/forget.hpp",
        "j != kRoot && target_.may_join(nodes_, links_.parent(j), points)",
        "false && target_.may_join(nodes_, links_.parent(j), points)",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "of the cuts of a block that may pause again only the last is undone",
        "src/core/tree/forget.hpp",
        "    j = join(links_.parent(j), points, work, stop);\n",
        "    j = join(links_.parent(j), points, work, stop);\n    break;\n",
        FORGETTING,
        only="class",
        is_variant=True,
    ),
    Mutant(
        "who takes its parent's place takes its time",
        "src/core/tree/forget.hpp",
        "  move_node(sibling, j);\n",
        "  const double time = nodes_.split_time(j);\n  move_node(sibling, j);\n"
        "  if (!nodes_[j].is_leaf()) set_split_time(j, time);\n",
        FORGETTING,
        only="outliers",
        is_variant=True,
    ),
    Mutant(
        "a label that is forgotten stays known above its leaf",
        "src/core/labels/label_target.hpp",
        "    sets_.erase(j, label);\n",
        "",
        FORGETTING,
        only="predictions and labels",
        is_variant=True,
    ),
    Mutant(
        "the beliefs above a point that is forgotten stay as they were",
        "src/core/numbers/gaussian_target.hpp",
        "    combine(j, left, right);\n    return true;",
        "    return true;",
        FORGETTING,
        only="predictions and numbers",
        is_variant=True,
    ),
    Mutant(
        "the point that lies deepest goes",
        "src/core/forest/learning.hpp",
        "  const Leaving leaving(std::move(admission.leaving), points_.size());\n",
        "    std::size_t most = 0;\n"
        "    for (std::size_t i = 0; admission.leaving.size() == 1 && i < points_.size(); ++i) {\n"
        "      const Slot slot = static_cast<Slot>(i);\n"
        "      Path path;\n"
        "      find_path(trees_.front().nodes(), kRoot, points_.row(slot), path);\n"
        "      if (path.size() > most) admission.leaving.front() = slot;\n"
        "      most = std::max(most, path.size());\n"
        "    }\n"
        "  const Leaving leaving(std::move(admission.leaving), points_.size());\n",
        FORGETTING,
        only="blindly",
        is_variant=True,
    ),
    Mutant(
        "what is missing cuts a row off",
        "src/core/tree/walk.hpp",
        "if (std::isnan(rows.given[i * n_features + d])) known_weights_[d] = 0.0;",
        "if (std::isnan(rows.given[i * n_features + d])) known_weights_[d] *= 1.0;",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "one by one, those that come later lend",
        "src/core/forest/filling.hpp",
        "if (one_by_one_) return Lending{i, n_before + i + 1};",
        "if (one_by_one_) return Lending{i, n_before + n};",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "what was filled in once stays",
        "src/core/forest/learning.hpp",
        "points_.missing().any() && measure_ ?",
        "points_.missing().any() && !measure_ ?",
        MISSING,
        is_variant=True,
    ),
    Mutant(
        "trees of a part are numbered from 0",
        "src/core/forest/learning.hpp",
        "Rng(options_.seed, i));",
        "Rng(options_.seed, i - held.begin));",
        PARTS,
        is_variant=True,
    ),
    Mutant(
        "a part has a trial of its own",
        "src/core/forest/trial.hpp",
        "options_.n_trees = std::min(options_.n_trees, kTrialTrees);",
        "options_.n_trees = std::min(options_.trees_held().size(), kTrialTrees);",
        PARTS,
        is_variant=True,
    ),
    Mutant(
        "the groups of trees are not told apart",
        "src/core/forest/sums.hpp",
        "terms[end].group == terms[begin].group",
        "terms[end].group >= terms[begin].group",
        PARTS,
        is_variant=True,
    ),
]


CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.20...4.0)
project(mutant LANGUAGES CXX)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)
find_package(Threads REQUIRED)
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG -ffp-contract=off")
nanobind_add_module(_core NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE all.cpp)
target_compile_features(_core PRIVATE cxx_std_20)
target_include_directories(_core PRIVATE src/core src/bindings)
target_link_libraries(_core PRIVATE Threads::Threads)
"""


class Workshop:
    """A copy of the sources, and where it is built. Each is used by one thread."""

    def __init__(self, folder: Path) -> None:
        self.source, self.build_dir = folder / "source", folder / "build"
        self.package = folder / "python" / "onlineforest"
        self.source.mkdir(parents=True)
        shutil.copytree(ROOT / "src", self.source / "src")
        # In one piece and lightly optimised: most of the time goes into compiling, not into tests.
        sources = sorted((self.source / "src").glob("*/*.cpp"))
        (self.source / "all.cpp").write_text("".join(f'#include "{each}"\n' for each in sources))
        (self.source / "CMakeLists.txt").write_text(CMAKE_LISTS)

    def build(self) -> None:
        """Compile the extension into the package, a copy of the Python files."""
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
        run(["cmake", "-S", self.source, "-B", self.build_dir, "-G", "Ninja", *options])
        run(["cmake", "--build", self.build_dir])
        (extension,) = self.build_dir.glob("_core*.so")
        shutil.copytree(ROOT / "src/onlineforest", self.package, dirs_exist_ok=True)
        shutil.copy(extension, self.package)
        # Nothing need be installed: this is all the package asks of its metadata.
        metadata = self.package.parent / "onlineforest-0.dist-info" / "METADATA"
        metadata.parent.mkdir(exist_ok=True)
        metadata.write_text("Metadata-Version: 2.1\nName: onlineforest\nVersion: 0\n")

    def check_imported(self) -> None:
        """An editable install would hide the copy: then every mutant would seem to survive."""
        command = [sys.executable, "-c", "import onlineforest._core as c; print(c.__file__)"]
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if not result.stdout.startswith(str(self.package)):
            raise Broken(
                f"The tests would import {result.stdout.strip()}, not the one in {self.package}."
            )

    def failure_of(self, tests: str, only: str = "") -> str | None:
        """Run tests up to the first that fails; what pytest says of it, None if all pass."""
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--statistics-only"]
        command = [sys.executable, "-m", "pytest", *options, "-k", only, tests]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if result.returncode == 0:
            return None
        lines = result.stdout.splitlines()
        failures = [line for line in lines if line.startswith("FAILED")]
        if not failures:
            raise Broken(f"pytest could not run:\n{result.stdout}{result.stderr}")
        reasons = [line for line in lines if line.startswith("E  ")]
        return "\n".join(f"    {line[:160]}" for line in failures[:1] + reasons[:1])

    def try_mutant(self, mutant: Mutant) -> bool:
        """Whether a test noticed it."""
        text = (ROOT / mutant.file).read_text()
        if text.count(mutant.old) != 1:
            print(f"{mutant.name}: the text to replace is not there exactly once", flush=True)
            return False
        place = self.source / mutant.file
        place.write_text(text.replace(mutant.old, mutant.new))
        self.build()
        failure = self.failure_of(mutant.tests, mutant.only)
        place.write_text(text)
        print(
            f"{mutant.name}: {'SURVIVED' if failure is None else 'found'}\n{failure or ''}",
            flush=True,
        )
        return failure is not None


class Broken(Exception):
    """The unbroken core, or what builds it, does not work: nothing can be said of mutants."""


def run(command: list[object]) -> None:
    """Run a command that must work."""
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode:
        raise Broken(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def main() -> int:
    """Try the mutants, one per processor at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="part of the name of a mutant")
    parser.add_argument("--all", action="store_true", help="variants of other mutants, too")
    arguments = parser.parse_args()
    if arguments.only:
        chosen = [m for m in MUTANTS if arguments.only in m.name]
    else:
        chosen = [m for m in MUTANTS if arguments.all or not m.is_variant]
    waiting = list(reversed(chosen))
    lock = threading.Lock()

    def work(workshop: Workshop) -> int:
        workshop.build()
        workshop.check_imported()
        failure = workshop.failure_of(REFERENCE, only="recount")
        if failure is not None:
            raise Broken(f"unbroken core: {REFERENCE} fails\n{failure}")
        n_found = 0
        while waiting:
            with lock:
                mutant = waiting.pop() if waiting else None
            n_found += mutant is not None and workshop.try_mutant(mutant)
        return n_found

    n_workers = min(os.cpu_count() or 1, 4, len(chosen))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(n_workers) as pool:
        workshops = [Workshop(Path(folder, str(i))) for i in range(n_workers)]
        try:
            n_found = sum(pool.map(work, workshops))
        except Broken as error:
            waiting.clear()
            print(error)
            return 1
    print(f"{n_found} of {len(chosen)} mutants found")
    return 0 if n_found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
