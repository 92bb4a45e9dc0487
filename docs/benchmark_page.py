"""Writes two parts of the page of benchmarks: a picture of the figures, and the latest run.

`conf.py` calls it at the start of a build. It measures nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures.json"
LATEST = ROOT / "benchmarks/results/benchmarks.md"
NO_RUN = "*This page was built without a run: `python -m benchmarks --quick` makes one.*\n"
DATA = ("letter", "satimages", "dna", "usps")
# Rows of the picture, by the names of their figures; the unit is extra-trees.
CASES = {
    "fit": "fit",
    "mondrian_fit": "Mondrian: fit",
    "predict": "predict",
    "mondrian_predict": "Mondrian: predict",
    "stream": "stream, predicted and learned",
    "mondrian_stream": "Mondrian: stream, learned",
    "predicted_batches": "mini-batches / re-trained, predicted and learned",
    "mondrian_batches": "Mondrian: mini-batches / re-trained, learned",
}


def ratios(figures: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The middle of each figure, by case and data."""
    return {
        (case, data): fmean(float(end) for end in re.findall(r"[\d.]+", found["value"]))
        for name, case in CASES.items()
        for data in DATA
        if (found := figures.get(f"{name}.{data}")) is not None
    }


def draw(found: dict[tuple[str, str], float], path: Path) -> None:
    """Draw each ratio as a dot and 1 as a line; left of the line onlineforest is faster."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(case for case, _ in found))
    names = list(dict.fromkeys(data for _, data in found))
    figure = Figure(figsize=(8.0, 0.9 + 0.4 * len(cases)), layout="constrained")
    axes = figure.subplots()
    for name, marker in zip(names, "osD^v<>", strict=False):
        points = [(found[case, name], i) for i, case in enumerate(cases) if (case, name) in found]
        axes.plot(*zip(*points, strict=True), marker, ms=7, label=name)
    axes.axvline(1.0, color="0.6", lw=1.0)
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.set(yticks=range(len(cases)), yticklabels=cases, xlim=(0.012, 50))
    axes.set_xlabel("time relative to scikit-learn's ExtraTreesClassifier")
    axes.invert_yaxis()
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)


def write(folder: Path) -> None:
    """Write the picture and the latest run into a folder."""
    draw(ratios(json.loads(FIGURES.read_text(encoding="utf-8"))), folder / "benchmarks.svg")
    latest = LATEST.read_text().replace("# Benchmarks\n", "") if LATEST.exists() else NO_RUN
    (folder / "latest-benchmarks.md").write_text(latest)
