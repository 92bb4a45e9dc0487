"""A league of stream learners: ours, River's, MOA's and LightGBM, on streams with drift.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.league --capymoa build/capymoa
    python -m experiments.league --quick

Each sample is predicted, then learned. The folder OUT gets one file for each model, stream and
seed, so that a league that was interrupted goes on where it ended, and `league.html`, the report.
Streams whose data are missing, and models whose packages are missing, are left out, and the
report says so. Needs the extra `league`; MOA needs Java, and an environment that --capymoa makes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.common import print_header, print_row
from experiments.league.moa import AbsentError, prepare
from experiments.league.models import MODELS, Task
from experiments.league.streams import STREAMS
from onlineforest._extras import MissingExtraError, require

if TYPE_CHECKING:
    from experiments.league.results import Results

PACKAGES = ("lightgbm", "matplotlib", "pandas", "rich", "river")
N_SEEDS = 5
QUICK = {"seeds": 1, "samples": 300}
QUICK_STREAMS = ("abrupt", "sea", "plane")


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; --quick decides what no other option says."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser("experiments.league", description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--streams", nargs="+", choices=STREAMS, metavar="STREAM")
    parser.add_argument("--seeds", type=int, help=f"number of seeds, by default {N_SEEDS}")
    parser.add_argument("--samples", type=int, help="of each stream at most")
    parser.add_argument("--hours", type=float, help="budget, kept by shorter streams")
    parser.add_argument("--out", type=Path, default=Path("build/league"), metavar="FOLDER")
    parser.add_argument(
        "--capymoa", default="none", metavar="FOLDER", help="environment of MOA; none: without MOA"
    )
    parser.add_argument("--quick", action="store_true", help=f"short: {', '.join(QUICK_STREAMS)}")
    options = parser.parse_args(argv)
    usual = QUICK if options.quick else {"seeds": N_SEEDS, "samples": None}
    for name, value in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.models = options.models or [name for name in MODELS if MODELS[name].standard]
    options.streams = options.streams or (QUICK_STREAMS if options.quick else list(STREAMS))
    options.capymoa = None if options.capymoa == "none" else str(Path(options.capymoa).resolve())
    return options


def absent(options: argparse.Namespace) -> dict[str, str]:
    """Why a model or a stream cannot take part, for those that cannot."""
    found = {name: STREAMS[name].missing() for name in options.streams}
    of_moa = [name for name in options.models if MODELS[name].of_moa]
    if of_moa:
        try:
            prepare(options.capymoa)
        except AbsentError as error:
            found |= dict.fromkeys(of_moa, str(error))
    return {name: reason for name, reason in found.items() if reason is not None}


def tasks_of(options: argparse.Namespace, without: Sequence[str]) -> list[Task]:
    """The trials of a league: all of the first seed come first."""
    return [
        Task(
            model,
            name,
            seed,
            min(STREAMS[name].n_samples, options.samples or STREAMS[name].n_samples),
            options.capymoa,
        )
        for seed in range(options.seeds)
        for name in options.streams
        for model in options.models
        if not {name, model} & set(without) and MODELS[model].make(STREAMS[name].numbers)
    ]


def print_results(results: Results) -> None:
    """The tables as Markdown."""
    for table in results.tables():
        print(f"\n{table.measure}\n")
        print_header("stream", *table.models)
        for i, stream in enumerate(table.streams):
            print_row(stream, *(table.text(i, j) for j in range(len(table.models))))


def main(argv: Sequence[str] | None = None) -> int:
    try:
        for package in PACKAGES:
            require(package, "league")
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return 2
    from experiments.league.report import Setting, html_of
    from experiments.league.results import Results
    from experiments.league.run import Archive, Clock, carry_out, plan

    options = parsed(argv)
    missing = absent(options)
    tasks = tasks_of(options, list(missing))
    asked = {task.stream: task.n_samples for task in tasks}
    lines = [f"{name}: {reason}" for name, reason in missing.items()]
    setting = Setting(options.seeds, options.hours, asked, lines)
    clock = Clock(None if options.hours is None else 3600 * options.hours)
    found = []
    try:
        lengths = plan(tasks, options.out / "prefixes", clock)
        tasks = [replace(task, n_samples=lengths[task.stream]) for task in tasks]
        for result in carry_out(tasks, Archive(options.out / "trials"), clock, "league"):
            found.append(result)
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
    results = Results(tasks, found, clock.spent)
    print_results(results)
    report = options.out / "league.html"
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_text(html_of(results, setting), encoding="utf-8")
    print(f"\nreport: {report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
