"""Writes two parts of the page of benchmarks: a picture of the notes, and the latest run.

`conf.py` calls it at the start of a build. It measures nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "benchmarks/NOTES.md"
LATEST = ROOT / "benchmarks/results/benchmarks.md"
PEER = "ERT-k"  # the unit: scikit-learn's extra-trees, trained once or after each batch
NO_RUN = "*This page was built without a run: `python -m benchmarks --quick` makes one.*\n"


def ratios(notes: str) -> dict[tuple[str, str], float]:
    """The second run of each case in units of the peer, by case and data."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .*?\| ([\d.]+)[^|]*\|$", notes, re.MULTILINE)
    return {
        (case.removesuffix(PEER).strip(" /"), data): float(ratio)
        for case, data, ratio in rows
        if case.endswith(PEER)
    }


def draw(found: dict[tuple[str, str], float], path: Path) -> None:
    """Draw each ratio as a dot and 1 as a line; left of the line onlineforest is faster."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(case for case, _ in found))
    names = list(dict.fromkeys(data for _, data in found))
    figure = Figure(figsize=(8.0, 0.9 + 0.5 * len(cases)), layout="constrained")
    axes = figure.subplots()
    for name, marker in zip(names, "osD^v<>", strict=False):
        points = [(found[case, name], i) for i, case in enumerate(cases) if (case, name) in found]
        axes.plot(*zip(*points, strict=True), marker, ms=7, label=name)
    axes.axvline(1.0, color="0.6", lw=1.0)
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.set(yticks=range(len(cases)), yticklabels=cases, xlim=(0.015, 12))
    axes.set_xlabel("time relative to scikit-learn's ExtraTreesClassifier")
    axes.invert_yaxis()
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)


def write(folder: Path) -> None:
    """Write the picture and the latest run into a folder."""
    draw(ratios(NOTES.read_text()), folder / "benchmarks.svg")
    latest = LATEST.read_text().replace("# Benchmarks\n", "") if LATEST.exists() else NO_RUN
    (folder / "latest-benchmarks.md").write_text(latest)
