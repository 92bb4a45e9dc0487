"""Reproduces every figure and table of the paper, with its competitors, in one command.

    python -m experiments.paper --quick                             # some minutes, no download
    ONLINEFOREST_DATA=/path/to/data python -m experiments.paper     # the full run

The output folder keeps all results, so the same command resumes an interrupted run. Without the
folder of data, they are fetched from OpenML. Needs the extra `experiments`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path

from experiments.paper.data import NAMES, DataError
from experiments.paper.methods import EXTRA, METHODS
from experiments.paper.records import Store
from experiments.paper.runner import TaskError, clock, run_all
from experiments.paper.tasks import FULL, QUICK, tasks_of
from onlineforest._extras import MissingExtraError, require

PICTURES = "_pictures/paper"  # the folder of figures that a build of the documentation draws


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse and check the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small run on scikit-learn's digits")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="default: paper-results, quick: paper-quick"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seeds", type=int, help="how many; default 5, quick 2")
    parser.add_argument("--trees", type=int, help="of each forest; default 100, quick 30")
    parser.add_argument("--data", nargs="+", choices=NAMES, help="default: all of the paper's")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all")
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="FOLDER",
        help="also write paper.md and paper/results.json there; only for a full run",
    )
    arguments = parser.parse_args(argv)
    for name in ("jobs", "seeds", "trees"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1. Got {value} instead.")
    changed = ("quick", "seeds", "trees", "data", "methods")
    if arguments.docs and any(getattr(arguments, name) for name in changed):
        options = ", ".join(f"--{name}" for name in changed)
        parser.error(f"--docs is for a whole run: without {options}.")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse(argv)
    try:
        for package in ("matplotlib", "numba", "rich", "river"):
            require(package, EXTRA)
        return reproduce(arguments)
    except (DataError, MissingExtraError) as error:
        print(error, file=sys.stderr)
        return 2
    except TaskError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenExecutor:
        print(
            "A process was killed, perhaps for lack of memory: try fewer --jobs. Finished tasks "
            "are kept; the same command goes on from here.",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"The results cannot be written: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return 130


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the tasks that are not done yet and write the report."""
    from experiments.paper.report import About, build, to_html, to_markdown
    from experiments.paper.results import summarise, write

    settings = QUICK if arguments.quick else FULL
    changes = {
        "data": tuple(arguments.data) if arguments.data else None,
        "methods": tuple(arguments.methods) if arguments.methods else None,
        "n_seeds": arguments.seeds,
        "n_trees": arguments.trees,
    }
    settings = replace(settings, **{k: v for k, v in changes.items() if v is not None})
    output = arguments.output or Path("paper-quick" if arguments.quick else "paper-results")
    tasks = list(tasks_of(settings))
    start = time.monotonic()
    outcomes = run_all(tasks, Store(output / "cache"), arguments.jobs)
    print(f"{len(tasks)} tasks, {clock(time.monotonic() - start)} minutes")

    records = [record for outcome in outcomes for record in outcome.records]
    about = About(settings, command_of(arguments), [outcome.about for outcome in outcomes])
    results = summarise(records)
    report = build(records, results, about, output / "figures")
    page = output / "report.html"
    page.write_text(to_html(report.sections, output / "figures"), encoding="utf-8")
    if arguments.docs:
        described = {"command": about.command, "machine": about.machines}
        write(results, arguments.docs / "paper" / "results.json", described)
        text = to_markdown(report.sections, PICTURES)
        (arguments.docs / "paper.md").write_text(text, encoding="utf-8")
    for claim in report.claims:
        answer = "holds" if claim.holds else "DOES NOT HOLD"
        print(f"\n[{answer}] {claim.says} ({claim.source})\n  {claim.measured}")
        if claim.why:
            print(f"  {claim.why}")
    print(f"\nThe report: {page}")
    return 0


def command_of(arguments: argparse.Namespace) -> str:
    """The command, with the options that change results."""
    words = ["python", "-m", "experiments.paper"]
    if arguments.quick:
        words.append("--quick")
    for name in ("seeds", "trees"):
        if value := getattr(arguments, name):
            words += [f"--{name}", str(value)]
    for name in ("data", "methods"):
        if values := getattr(arguments, name):
            words += [f"--{name}", *values]
    return shlex.join(words)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that child processes end too
    sys.exit(main())
