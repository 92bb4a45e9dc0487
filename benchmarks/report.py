"""The measurements as a Markdown table, as JSON and as a picture. Measures nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.formats import number
from benchmarks.results import NotMeasuredError, Row

COLUMNS = ("case", "data", "ours", "peer", "ratio (median)", "spread", "target", "met")
MET, MISSED = "#0072B2", "#D55E00"
SMALLEST = 0.01


@dataclass
class Report:
    """Rows, with the machine and the settings."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    complete: bool = True

    def save(self, folder: Path) -> list[Path]:
        """Write the table and the JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        table, figures = folder / "benchmarks.md", folder / "benchmarks.json"
        table.write_text(as_markdown(self) + "\n", encoding="utf-8")
        figures.write_text(as_json(self) + "\n", encoding="utf-8")
        return [table, figures]


def as_markdown(report: Report) -> str:
    """Heading, machine, table, and number of targets met."""
    parts = [
        "# Benchmarks",
        machine_line(report),
        "Times are medians. A ratio is the median over pairs of runs made in turn, ours by the "
        "peer's; × is the peer's by ours. The spread is the least and the greatest of the pairs. "
        "Ours is the order-free forest, or the Mondrian forest where the name of a case says so.",
        markdown_table([COLUMNS, *(cells(row) for row in report.rows)]),
        summary(report),
    ]
    return "\n\n".join(parts)


def machine_line(report: Report) -> str:
    """Machine, versions and mode in one sentence."""
    known = {key: value for key, value in report.machine.items() if value is not None}
    mode = "quick" if report.settings.get("quick") else "full"
    return ", ".join([f"Mode: {mode}", *(f"{key} {value}" for key, value in known.items())]) + "."


def summary(report: Report) -> str:
    """Number of targets met, and the names of those missed."""
    judged = [row for row in report.rows if row.met is not None]
    missed = [f"{row.case} ({row.data})" for row in judged if not row.met]
    text = "No case had a target."
    if judged:
        text = f"{len(judged) - len(missed)} of {len(judged)} targets met."
    if missed:
        text += f" Missed: {'; '.join(missed)}."
    if not report.complete:
        text += " Interrupted: the other cases were not measured."
    return text


def cells(row: Row) -> tuple[str, ...]:
    """A row's columns as text."""
    met = {True: "yes", False: "NO", None: "-"}[row.met]
    return (row.case, row.data, row.ours, row.peer, figure(row), spread(row), target(row), met)


def figure(row: Row) -> str:
    """The median with its unit, or the reason why there is none."""
    if row.median is None:
        return row.note or "not measured"
    return with_unit(row.median, row.unit)


def spread(row: Row) -> str:
    """Minimum and maximum of the pairs."""
    if len(row.values) < 2:
        return f"{len(row.values)} run" if row.values else "-"
    return f"{number(min(row.values))} – {number(max(row.values))}"


def target(row: Row) -> str:
    """The target with the sign of its direction."""
    if row.target is None:
        return "-"
    sign = "≤" if row.better == "lower" else "≥"
    return f"{sign} {with_unit(row.target, row.unit)}"


def with_unit(value: float, unit: str) -> str:
    """A number and its unit; no space before ×."""
    return f"{number(value)}{unit}" if unit == "×" else f"{number(value)} {unit}".strip()


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table of lines of cells, the first the heading, padded to equal widths."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    padded = [
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])])


def as_json(report: Report) -> str:
    """The whole report, with every single run."""
    content = {
        "machine": report.machine,
        "settings": report.settings,
        "complete": report.complete,
        "rows": [json_row(row) for row in report.rows],
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def json_row(row: Row) -> dict[str, Any]:
    """A row with its derived values."""
    return {
        **vars(row),
        "median": row.median,
        "low": min(row.values, default=None),
        "high": max(row.values, default=None),
        "met": row.met,
    }


def save_plot(report: Report, path: Path) -> None:
    """Draw every figure that has a target as a multiple of it: a bar left of 1 meets it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotMeasuredError("needs matplotlib (pip install 'onlineforest[bench]')") from error

    rows = [row for row in report.rows if row.met is not None]
    drawing = Figure(figsize=(9.0, 1.6 + 0.32 * max(len(rows), 3)), layout="constrained")
    axes = drawing.add_subplot()
    for place, row in enumerate(rows):
        draw_bar(axes, place, row)
    axes.axvline(1.0, color="0.2", lw=1.2)
    axes.set_yticks(range(len(rows)), [f"{row.case}, {row.data}" for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    scale_axis(axes, [end for row in rows for end in bar_ends(row)])
    axes.set_title(plot_title(rows))
    draw_legend(drawing)
    drawing.savefig(path, dpi=150)


def bar_ends(row: Row) -> tuple[float, float, float]:
    """Median, and both ends of the spread, as multiples of the target."""
    median, low, high = (
        # A ratio at or below zero has no logarithm: the bar ends at the smallest value shown.
        max(row.against_target(value) or SMALLEST, SMALLEST) if value > 0 else SMALLEST
        for value in (row.median or 0.0, min(row.values), max(row.values))
    )
    return median, low, high


def draw_bar(axes: Any, place: int, row: Row) -> None:
    """Draw one figure: a bar from the target, a thin line for the spread, and the numbers."""
    median, low, high = bar_ends(row)
    axes.barh(place, median - 1.0, left=1.0, height=0.6, color=MET if row.met else MISSED)
    axes.plot([low, high], [place, place], color="0.2", lw=1.0)
    axes.annotate(
        f"{figure(row)}  ({target(row)})",
        (max(1.0, median, low, high), place),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )


def scale_axis(axes: Any, ends: Sequence[float]) -> None:
    """Make the axis logarithmic with plain numbers, and leave room for the text at the bars."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("log")
    axes.set_xlim(min([0.4, *ends]) / 1.3, max([1.3, *ends]) * 4)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel("measured / target (target / measured where more is better)")
    axes.grid(axis="x", alpha=0.3)


def draw_legend(drawing: Any) -> None:
    """Add a legend of the colours."""
    from matplotlib.patches import Patch

    handles = [Patch(color=MET, label="target met"), Patch(color=MISSED, label="target missed")]
    drawing.legend(handles=handles, loc="outside lower center", ncols=2)


def plot_title(rows: Sequence[Row]) -> str:
    """The number of targets met."""
    if not rows:
        return "No case with a target was measured"
    return f"onlineforest: {sum(bool(row.met) for row in rows)} of {len(rows)} targets met"
