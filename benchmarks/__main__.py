"""The command line: `python -m benchmarks`.

Modules that use NumPy are imported within functions, after the number of threads is set.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.report import Report
    from benchmarks.results import Row
    from benchmarks.settings import Case, Settings

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DATA_VARIABLE = "ONLINEFOREST_DATA"
# One other process that computes all the time has a load of 1.
BUSY = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen cases. Returns the exit code."""
    from benchmarks.cases import full_cases, quick_cases
    from benchmarks.data import BUNDLED
    from benchmarks.settings import Settings

    parser = build_parser()
    arguments = parser.parse_args(argv)
    cases = chosen(
        quick_cases() if arguments.quick else full_cases(), arguments.only, arguments.without
    )
    if not cases:
        parser.error(
            f"no case is left by --only {arguments.only} and --without {arguments.without}; "
            "see --list"
        )
    if arguments.list:
        print("\n".join(f"{case.name}, {case.data}" for case in cases))
        return 0
    folder = None if arguments.quick else data_folder()
    if folder is None and not all(case.data in BUNDLED for case in cases):
        print(
            f"Set {DATA_VARIABLE} to the folder of the data sets (letter.npz, …), "
            "or use --quick, which needs none.",
            file=sys.stderr,
        )
        return 2
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # reported before anything is measured
        print(f"cannot write to {arguments.out}: {error.strerror}", file=sys.stderr)
        return 2
    repeats = arguments.repeats or (3 if arguments.quick else 5)
    settings = Settings(repeats, arguments.quick, arguments.scale, folder)
    return run(cases, settings, arguments.out)


def run(cases: Sequence[Case], settings: Settings, folder: Path) -> int:
    """Measure the cases, and publish the rows measured even after an error."""
    from benchmarks.machine import describe_machine
    from benchmarks.report import Report

    shown = {"quick": settings.quick, "repeats": settings.repeats, "scale": settings.scale}
    report = Report(describe_machine(), shown, complete=False)
    load = report.machine["load"]
    if load and load > BUSY:
        print(f"This machine is busy (load {load}): the figures may be wrong.", file=sys.stderr)
    try:
        warm_up()
        measure_all(cases, settings, report)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
    finally:  # an error must not lose the rows measured before it
        gc.unfreeze()
        publish(report, folder)
    return 0 if report.complete else 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure onlineforest side by side with scikit-learn's forests and River's.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two minutes at most, on data that need no folder"
    )
    parser.add_argument(
        "--repeats", type=positive, metavar="N", help="pairs of runs (default: 5; quick: 3)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only cases whose name contains this; may be given several times",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="TEXT",
        help="no cases whose name contains this, such as Mondrian; may be given several times",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results"),
        help="folder for the table, the JSON file and the plot (default: %(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    return parser


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1. Got {value}.")
    return value


def data_folder() -> Path | None:
    """The folder of the data sets, if the variable is set and the folder exists."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).resolve() if named and Path(named).is_dir() else None


def chosen(cases: list[Case], only: Sequence[str], without: Sequence[str]) -> list[Case]:
    """The cases whose name contains one of `only`, if it has any, and none of `without`."""

    def contains(case: Case, texts: Sequence[str]) -> bool:
        return any(text in f"{case.name}, {case.data}" for text in texts)

    return [
        case for case in cases if (not only or contains(case, only)) and not contains(case, without)
    ]


def measure_all(cases: Sequence[Case], settings: Settings, report: Report) -> None:
    """Add the rows of each case to the report, with a line of progress."""
    for count, case in enumerate(cases, start=1):
        place = f"[{count}/{len(cases)}] {case.name}, {case.data}"
        print(f"{place} …", end=" ", flush=True, file=sys.stderr)
        start = time.perf_counter()
        report.rows.extend(measure(case, settings))
        print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)
    report.complete = True


def measure(case: Case, settings: Settings) -> list[Row]:
    """The rows of a case; one row with the reason if it cannot be measured here."""
    from benchmarks.results import NotMeasuredError

    try:
        return list(case.measure(case, settings))
    except NotMeasuredError as error:
        return [case.row(settings, note=f"not measured: {error}")]


def warm_up() -> None:
    """Run one-time initialisation of every library, and freeze its objects in the collector."""
    from benchmarks.data import DIGITS, load
    from benchmarks.ours import mondrian, order_free, order_free_regressor
    from benchmarks.peers import ERT, ERT_1, ERT_K, RF

    data = load(DIGITS, None).head(50)
    peers = [peer.new(2, 0) for peer in (ERT_K, ERT_1, RF, ERT)]
    for model in (
        mondrian(2, 0),
        order_free(2, 0),
        order_free_regressor(2, 0),
        *peers,
    ):
        model.fit(data.X, data.y).predict(data.X_test)
    gc.freeze()


def publish(report: Report, folder: Path) -> None:
    """Print and save the table, and draw the picture."""
    from benchmarks.report import as_markdown, save_plot
    from benchmarks.results import NotMeasuredError

    print(as_markdown(report), flush=True)
    paths = report.save(folder)
    picture = folder / "benchmarks.png"
    try:
        save_plot(report, picture)
        paths.append(picture)
    except NotMeasuredError as error:
        print(f"no plot: {error}", file=sys.stderr)
    for path in paths:
        print(f"Saved {path}", file=sys.stderr)


if __name__ == "__main__":
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    sys.exit(main())
