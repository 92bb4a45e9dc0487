"""The numbers that the figures draw, as one small JSON file.

An experiment writes this file once; the documentation draws from it at every build. Knows no figure
and runs no experiment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.curves import Curve, curve, reliability
from experiments.paper.records import Record

DIGITS = 5  # significant digits in the file: more than a figure can show
COUNTS = ("n_passes", "n_samples")
MEASURED = ("fraction", "accuracy", "deviation", "log_loss", "seconds", "depth")
BINS = ("n_rows", "confidence", "accuracy")  # the rows of a reliability diagram's array


@dataclass(frozen=True)
class Results:
    """Means over the seeds of every method on every data set it was run on.

    Attributes
    ----------
    curves : dict
        A curve per pair of data set and method.
    bins : dict
        Per pair of data set and method: number of rows, mean confidence and accuracy, for each
        tenth of the confidence that has rows. As `reliability` returns them.
    """

    curves: dict[tuple[str, str], Curve]
    bins: dict[tuple[str, str], NDArray]

    def curve(self, data: str, method: str) -> Curve | None:
        """The curve of a method on a data set; None if it was not run there."""
        return self.curves.get((data, method))

    def reliability(self, data: str, method: str) -> NDArray | None:
        """The reliability diagram of a method on a data set; None if it was not run there."""
        return self.bins.get((data, method))


def summarise(records: Sequence[Record]) -> Results:
    """Average records over their seeds."""
    pairs = list(dict.fromkeys((record.data, record.method) for record in records))
    return Results(
        {pair: curve(records, *pair) for pair in pairs},
        {pair: reliability(records, *pair) for pair in pairs},
    )


def write(results: Results, path: Path, about: dict[str, Any]) -> None:
    """Write results, and a description of the run, as JSON with one line per curve."""
    lines = []
    for pair, of in results.curves.items():
        fields: dict[str, Any] = {"data": of.data, "method": of.method, "n_seeds": of.n_seeds}
        fields |= {name: [int(n) for n in getattr(of, name)] for name in COUNTS}
        fields |= {name: numbers(getattr(of, name)) for name in MEASURED}
        if pair in results.bins:
            bins = dict(zip(BINS, results.bins[pair], strict=True))
            n_rows = [int(n) for n in bins.pop("n_rows")]
            fields["reliability"] = {"n_rows": n_rows} | {k: numbers(v) for k, v in bins.items()}
        lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    text = ",\n".join(lines)
    head = json.dumps(about, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"about": {head},\n"curves": [\n{text}\n]}}\n', encoding="utf-8")


def read(path: Path) -> Results:
    """Read what `write` wrote."""
    curves, bins = {}, {}
    for fields in json.loads(path.read_text(encoding="utf-8"))["curves"]:
        pair = fields["data"], fields["method"]
        of_bins = fields.pop("reliability", None)
        n_points = len(fields["fraction"])
        arrays = {name: array(fields[name], n_points) for name in (*COUNTS, *MEASURED)}
        curves[pair] = Curve(*pair, n_seeds=fields["n_seeds"], **arrays)
        if of_bins is not None:
            bins[pair] = np.array([of_bins[name] for name in BINS], dtype=float)
    return Results(curves, bins)


def numbers(values: NDArray) -> list[float | None] | None:
    """Rounded floats with None for nan; None alone if there is no number at all."""
    if not np.isfinite(values).any():
        return None
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values.tolist()]


def array(values: list[float | None] | None, n_points: int) -> NDArray:
    """The inverse of `numbers`."""
    if values is None:
        return np.full(n_points, np.nan)
    return np.array([np.nan if value is None else value for value in values])
