"""Breaks the core in known ways and sees the tests fail: the proof that the proof bites.

    python tests/mutation/run.py [--only NAME]

Each mutant is a copy of the sources with one piece of text replaced. It is built like the real
thing and given to the tests named with it; one of them must fail, without the help of the
invariant checker, which would see some of the mutants at once. The unbroken copy comes first and
must pass, so that a mutant does not "fail" because nothing works.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONLINE_EQUALS_BATCH = "tests/statistical/test_online_equals_batch.py"
REFERENCE = "tests/parity/test_reference.py"
LEARNED_WEIGHTS = "tests/estimator/test_learned_weights.py"


@dataclass(frozen=True)
class Mutant:
    """One way to break the core, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "the rate of an extension counts the old box too",
        "src/core/tree.hpp",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n);",
        "const double rate = extension_rate(weights(), block.box, outer, 0, n) > 0.0"
        " ? linear_dimension(weights(), outer, n) : 0.0;",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the location is drawn in the wrong gap",
        "src/core/cut.hpp",
        "is_upper ? rng.location(box.upper[d], row[d]) : rng.location(row[d], box.lower[d])",
        "is_upper ? rng.location(box.lower[d], row[d]) : rng.location(row[d], box.upper[d])",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the random state is the same for every sample",
        "src/core/tree.hpp",
        "      learn();\n    } catch",
        "      learn();\n      rng_ = before;\n    } catch",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "a box is not grown",
        "src/core/tree.hpp",
        "    if (n_points <= kFewPoints) return;\n    nodes_.add_box(j);",
        "    if (n_points <= kFewPoints || nodes_.has_box(j)) return;\n    nodes_.add_box(j);",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "a box is not grown by one point",
        "src/core/tree.hpp",
        "      include(nodes_.lower(j), nodes_.upper(j), {row, row}, n_features());\n    }\n  }",
        "    }\n  }",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the near child is born at its grandparent's time",
        "src/core/tree.hpp",
        "work.tasks.push_back({near, near_begin, near_end, time, rng_.exponential()})",
        "work.tasks.push_back({near, near_begin, near_end, task.birth_time, rng_.exponential()})",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "both children go on with one clock",
        "src/core/tree.hpp",
        "both ? rng_.exponential() : clock",
        "clock",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the clock does not run down",
        "src/core/tree.hpp",
        "return rate > 0.0 ? std::max(clock - rate * duration, 0.0) : clock;",
        "return rate * duration >= 0.0 ? clock : clock;",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "a proposal that misses the box is taken",
        "src/core/cut.hpp",
        "if (range.lower <= location && location < range.upper) {",
        "if (range.lower <= location && range.lower < range.upper) {",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "a right child goes on with the bounds of the left",
        "src/core/tree.hpp",
        "          work.bounds.rewind(block.mark);\n",
        "",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "the posterior counts labels both children hold once",
        "src/core/label_walk.hpp",
        "level.n_labels + sets.size_common(node.left, node.right())",
        "level.n_labels",
        REFERENCE,
    ),
    Mutant(
        "the walk forgets to weigh the features",
        "src/core/box.hpp",
        "rate += weights[d] * distance_to(box.lower[d], box.upper[d], row[d]);",
        "rate += (weights[d] > 0) * distance_to(box.lower[d], box.upper[d], row[d]);",
        REFERENCE,
    ),
    Mutant(
        "pausing looks at the first new point only",
        "src/core/label_target.hpp",
        "sets_.contains(leaf, label) && all_equal(points, more, label)",
        "sets_.contains(leaf, label)",
        ONLINE_EQUALS_BATCH,
    ),
    Mutant(
        "relevance keeps what chance takes off",
        "src/core/relevance.hpp",
        "relevance[d] += (gain - by_chance) * share;",
        "relevance[d] += gain * share;",
        LEARNED_WEIGHTS,
    ),
]


def build(source: Path, build_dir: Path, package: Path) -> None:
    """Compile the extension from `source` into `package`, a copy of the Python files."""
    # Lightly optimised and in few pieces: most of the time goes into compiling, not into the tests.
    options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DCMAKE_UNITY_BUILD=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    run(["cmake", "-S", source, "-B", build_dir, "-G", "Ninja", *options])
    run(["cmake", "--build", build_dir])
    (extension,) = build_dir.glob("_core*.so")
    shutil.copytree(ROOT / "src/onlineforest", package, dirs_exist_ok=True)
    shutil.copy(extension, package)


def check_imported(package: Path) -> None:
    """An editable install would hide the copy: then every mutant would seem to survive."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", "import onlineforest._core as c; print(c.__file__)"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if not result.stdout.startswith(str(package)):
        sys.exit(f"The tests would import {result.stdout.strip()}, not the mutant in {package}.")


def run(command) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def tests_pass(package: Path, tests: str) -> bool:
    """Run tests against a built package, up to the first failure."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    options = ["-x", "-q", "-n", "2", "-p", "no:cacheprovider", "--statistics-only"]
    command = [sys.executable, "-m", "pytest", *options, tests]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    failures = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    if result.returncode and not failures:
        sys.exit(f"pytest could not run:\n{result.stdout}{result.stderr}")
    reasons = [line for line in result.stdout.splitlines() if line.startswith("E  ")]
    for line in failures[:1] + reasons[:1]:
        print(f"    {line[:160]}")
    return result.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="part of the name of a mutant")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.only or arguments.only in m.name]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        source, build_dir = Path(folder, "source"), Path(folder, "build")
        package = Path(folder, "python", "onlineforest")
        source.mkdir()
        shutil.copytree(ROOT / "src", source / "src")
        shutil.copy(ROOT / "CMakeLists.txt", source)
        build(source, build_dir, package)
        check_imported(package)
        for tests in sorted({m.tests for m in chosen}):
            if not tests_pass(package, tests):
                print(f"unbroken core: {tests} fails")
                return 1
        print("unbroken core: passes", flush=True)
        for mutant in chosen:
            text = (ROOT / mutant.file).read_text()
            if text.count(mutant.old) != 1:
                print(f"{mutant.name}: the text to replace is not there exactly once")
                survivors.append(mutant)
                continue
            (source / mutant.file).write_text(text.replace(mutant.old, mutant.new))
            build(source, build_dir, package)
            survived = tests_pass(package, mutant.tests)
            print(f"{mutant.name}: {'SURVIVED' if survived else 'found'}", flush=True)
            if survived:
                survivors.append(mutant)
            (source / mutant.file).write_text(text)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants found")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
