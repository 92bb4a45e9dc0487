"""The report: one page of claims, figures and tables, as self-contained HTML or as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.paper.claims import Claim, Race, judge
from experiments.paper.curves import depth_fit
from experiments.paper.drawings import DRAWINGS
from experiments.paper.expected import EXPECTED
from experiments.paper.figures import FIGURES, save
from experiments.paper.methods import METHODS
from experiments.paper.names import (
    BREIMAN,
    DENIL,
    DYNAMIC_TREES,
    ERT_1,
    ERT_K,
    LEARNED,
    MF,
    SAFFARI,
    SAFFARI_TUNED,
)
from experiments.paper.records import Record
from experiments.paper.results import Results
from experiments.paper.tasks import Settings


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure saved under a name, with its caption."""

    name: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A title and the parts below it."""

    title: str
    parts: tuple[Text | Table | Picture, ...]


def verdict(claim: Claim) -> str:
    return "holds" if claim.holds else "does not hold"


def claims_section(claims: Sequence[Claim]) -> Section:
    held = sum(claim.holds for claim in claims)
    rows = tuple((c.source, c.says, c.measured, verdict(c)) for c in claims)
    reasons = tuple(Text(f"Does not hold: {c.says}. Reason: {c.why}") for c in claims if c.why)
    return Section(
        "Claim by claim",
        (
            Text(
                f"{held} of {len(claims)} claims hold. The brackets hold the criterion of a claim."
            ),
            Table(("where", "claim", "measured", "verdict"), rows),
            *reasons,
        ),
    )


def accuracy_section(race: Race) -> Section:
    methods = [
        name
        for name in (
            MF,
            LEARNED,
            BREIMAN,
            ERT_K,
            ERT_1,
            SAFFARI,
            SAFFARI_TUNED,
            DENIL,
            DYNAMIC_TREES,
        )
        if any(race.has(data, name) for data in race.data)
    ]
    accuracies, seconds = [], []
    for data in race.data:
        first, second = [data], [data]
        for name in methods:
            if not race.has(data, name):
                first.append("-")
                second.append("-")
                continue
            found = race.get(data, name)
            end, last = found.at(1.0), found.last
            passes = f"; {found.accuracy[last]:.4f}" if last != end else ""
            first.append(f"{found.accuracy[end]:.4f} ± {found.deviation[end]:.4f}{passes}")
            again = f"; {found.seconds[last]:.2f}" if last != end else ""
            second.append(f"{found.seconds[end]:.2f}{again}")
        accuracies.append(tuple(first))
        seconds.append(tuple(second))
    return Section(
        "All data learned",
        (
            Text(
                "Test accuracy, mean ± standard deviation over the seeds. The number after a "
                "semicolon is the accuracy after all passes, for methods that make more than one."
            ),
            Table(("data", *methods), tuple(accuracies)),
            Text(
                "Seconds of processor time, one thread. Online methods: one pass in 100 "
                "mini-batches, and after a semicolon all passes. Batch forests: one training."
            ),
            Table(("data", *methods), tuple(seconds)),
        ),
    )


def depth_section(race: Race) -> Section:
    rows = []
    for data in race.data:
        if race.has(data, MF):
            found = race.get(data, MF)
            wanted = EXPECTED[data].depth if data in EXPECTED else None
            slope, _, r2 = depth_fit(found)
            rows.append(
                (
                    data,
                    f"{found.n_samples[-1]:.0f}",
                    f"{found.depth[-1]:.1f}",
                    f"{wanted[0]} ± {wanted[1]}" if wanted else "-",
                    f"{slope:.2f}",
                    f"{r2:.3f}",
                )
            )
    head = ("data", "samples", "depth", "paper", "levels per doubling", "R² over log N")
    return Section("Table 1: depth of the trees", (Table(head, tuple(rows)),))


@dataclass(frozen=True)
class About:
    """How the records were measured; `runs` describes the run of each task."""

    settings: Settings
    command: str
    runs: Sequence[dict[str, Any]]

    @property
    def machines(self) -> list[str]:
        """Processor and versions, without duplicates."""
        texts = [
            ", ".join(f"{name} {value}" for name, value in run["machine"].items() if value)
            for run in self.runs
        ]
        return sorted(set(texts))

    @property
    def minutes(self) -> float:
        """Sum of the durations of all tasks."""
        return sum(run["wall_seconds"] for run in self.runs) / 60


def setting_section(about: About) -> Section:
    settings = about.settings
    fractions = ", ".join(f"{fraction:g}" for fraction in settings.fractions)
    return Section(
        "How it was run",
        (
            Text(
                f"Command: `{about.command}`. {len(about.runs)} tasks of {about.minutes:.0f} "
                f"minutes in total, one process each. Machine: {'; or '.join(about.machines)}."
            ),
            Text(
                f"{settings.n_trees} trees or particles, {settings.n_seeds} seeds. Features are "
                "rescaled to [0, 1] over train and test together. The seed shuffles the rows, "
                "which are divided into 100 mini-batches. Models are tested, and batch forests "
                f"retrained, at the fractions {fractions}, rounded down to whole mini-batches. "
                "The time of retraining after every mini-batch is the sum over all 100, "
                "interpolated between these fractions. ORF-Saffari and ORF-Denil make "
                f"{settings.n_passes} passes; they "
                "learn sample by sample and get all samples up to the next test in one call. The "
                "comparison with River is row by row, with 10 trees, up to "
                f"{max(settings.few_rows)} rows, and {settings.n_test_rows} test rows. Times are "
                "processor times of learning alone, in one thread. Every method but River's is "
                "compiled."
            ),
            Table(
                ("method", "settings"),
                tuple((name, METHODS[name].settings) for name in settings.methods),
            ),
        ),
    )


@dataclass(frozen=True)
class Report:
    """The sections of the page, and the claims with their verdicts."""

    sections: list[Section]
    claims: list[Claim]

    @property
    def pictures(self) -> list[str]:
        """Names of the pictures."""
        parts = (part for section in self.sections for part in section.parts)
        return [part.name for part in parts if isinstance(part, Picture)]


def build(records: Sequence[Record], results: Results, about: About, folder: Path) -> Report:
    """Draw the figures into a folder, judge the claims and lay out the report."""
    race, claims = Race(records), judge(records)
    drawn = []
    for name, (caption, draw) in DRAWINGS.items():
        save(draw(), folder, name)
        drawn.append(Picture(name, caption))
    measured = []
    for name, (caption, draw) in FIGURES.items():
        figure = draw(results)
        if figure is not None:
            save(figure, folder, name)
            measured.append(Picture(name, caption))
    sections = [
        claims_section(claims),
        Section("Trees of the library", tuple(drawn)),
        Section("Measurements", tuple(measured)),
        accuracy_section(race),
        depth_section(race),
        setting_section(about),
    ]
    return Report(sections, claims)


TITLE = "The paper, reproduced"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid #ccc; padding: 0.3em 0.6em; text-align: left; }
td { vertical-align: top; }
figure { margin: 2em 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #444; } .holds { color: #06662f; } .does-not-hold { color: #a40000; }
"""


def to_html(sections: Sequence[Section], folder: Path) -> str:
    """A self-contained page: the pictures are part of it."""
    parts = [f"<h1>{TITLE}</h1>"]
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        for part in section.parts:
            if isinstance(part, Text):
                parts.append(f"<p>{with_code(html.escape(part.text))}</p>")
            elif isinstance(part, Table):
                head = "".join(f"<th>{html.escape(cell)}</th>" for cell in part.head)
                rows = "".join(f"<tr>{''.join(map(cell_html, row))}</tr>" for row in part.rows)
                parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
            else:
                parts.append(
                    f"<figure>{inline_svg(folder / f'{part.name}.svg', part.name)}"
                    f"<figcaption>{html.escape(part.caption)}</figcaption></figure>"
                )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def with_code(text: str) -> str:
    """Turn text between backticks into code elements."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", text)


def cell_html(cell: str) -> str:
    """A cell of a table; verdicts get a class for their colour."""
    kind = f' class="{cell.replace(" ", "-")}"' if cell in ("holds", "does not hold") else ""
    return f"<td{kind}>{html.escape(cell)}</td>"


def inline_svg(path: Path, prefix: str) -> str:
    """A picture as an element of a page: no header, and ids with a prefix to keep them unique."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)


def to_markdown(sections: Sequence[Section], pictures: str) -> str:
    """The page for the documentation; `pictures` is the folder of its figures."""
    lines = [
        f"# {TITLE}",
        "",
        "This page reproduces every figure and table of the Mondrian forest paper, with its "
        "competitors, and compares the measurements with the paper's claims. It is generated; the "
        "last section describes how.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}"]
        for part in section.parts:
            lines.append("")
            if isinstance(part, Text):
                lines.append(part.text)
            elif isinstance(part, Table):
                lines.append(f"| {' | '.join(part.head)} |")
                lines.append(f"|{'---|' * len(part.head)}")
                lines += [
                    f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
                    for row in part.rows
                ]
            else:
                lines += [f"![{part.name}]({pictures}/{part.name}.svg)", "", f"*{part.caption}*"]
    return "\n".join(lines) + "\n"
