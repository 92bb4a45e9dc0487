"""Collects the figures that pages quote, and writes them where pages quote them.

    python -m docs.figures

A figure is read from the table that records its measurement, so that no number is typed twice.
`docs/figures.toml` says which cells of which page, `docs/figures.json` has the values. A page
quotes a figure in a marked place, which readers do not see:

    `fit` takes <!--figure fit-->0.23 to 0.49<!--/--> of extra-trees' time.

To change a figure, measure it, change its table and run the command. Measures nothing itself.
`docs/tests/test_figures.py` fails if a page differs.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEFINITIONS, VALUES = ROOT / "docs/figures.toml", ROOT / "docs/figures.json"
GENERATED = ("paper.md",)
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED),
]
PLACE = re.compile(r"<!--figure ([^ >]+)-->(.*?)<!--/-->", re.DOTALL)

Cell = tuple[str, str]  # a row by its leading cells, as "fit / ERT-k | letter", and a column


def tables(page: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Header and rows of each table of a page; an empty first cell stands for the one above."""
    header: list[str] = []
    rows: list[list[str]] = []
    for line in [*(ROOT / page).read_text(encoding="utf-8").splitlines(), ""]:
        if not line.startswith("|"):
            if header:
                yield header, rows
            header, rows = [], []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not header:
            header = cells
        elif not set(line) <= set("|-: "):
            rows.append([cells[0] or (rows[-1][0] if rows else ""), *cells[1:]])


@cache
def text_of(page: str, row: str, column: str) -> str:
    """The only cell of a page in this row and column."""
    found = [
        cells[header.index(column)]
        for header, rows in tables(page)
        if column in header
        for cells in rows
        if f"{' | '.join(cells)} | ".startswith(f"{row} | ")
    ]
    if len(found) != 1:
        raise ValueError(f"{page} has {len(found)} cells in row {row!r}, column {column!r}.")
    return found[0]


def numbers(page: str, cells: Sequence[Cell]) -> list[Decimal]:
    """The numbers of cells, without those in brackets."""
    texts = [re.sub(r"\(.*?\)|(?<=\d),(?=\d{3})", "", text_of(page, *cell)) for cell in cells]
    return [Decimal(number) for text in texts for number in re.findall(r"\d*\.?\d+", text)]


def rounded(number: Decimal) -> str:
    """At most two significant digits, and all before the point."""
    exponent = max(min(number.adjusted() - 1, 0), int(number.as_tuple().exponent))
    return f"{number.quantize(Decimal(1).scaleb(exponent), ROUND_HALF_UP):f}"


def span(measured: Sequence[Decimal]) -> str:
    """The least and the greatest number; one if they are printed alike."""
    low, high = rounded(min(measured)), rounded(max(measured))
    return low if low == high else f"{low} to {high}"


def percent(measured: Sequence[Decimal]) -> str:
    """Shares as whole percents."""
    return span([(100 * share).quantize(Decimal(1), ROUND_HALF_UP) for share in measured])


def difference(measured: Sequence[Decimal]) -> str:
    """By how many percents the smaller side of each ratio is smaller."""
    return percent([1 - min(ratio, 1 / ratio) for ratio in measured])


def score(measured: Sequence[Decimal]) -> str:
    """Accuracies or log losses with three digits, without the zero before the point."""
    low, high = (
        f"{end.quantize(Decimal('0.001'), ROUND_HALF_UP)}".removeprefix("0")
        for end in (min(measured), max(measured))
    )
    return low if low == high else f"{low} to {high}"


FORMS = {"span": span, "percent": percent, "difference": difference, "score": score}


def table(figure: Mapping[str, Any]) -> str:
    """A table of cells of a page, between empty lines; rows and columns have new names."""
    page, columns = figure["page"], figure["columns"]

    def cell(row: str, column: str) -> str:
        if "form" not in figure:
            return text_of(page, row, column)
        return FORMS[figure["form"]](numbers(page, [(row, column)]))

    lines = [
        [figure["corner"], *columns],
        ["---"] * (len(columns) + 1),
        *(
            [name, *(cell(row, c) for c in columns.values())]
            for name, row in figure["rows"].items()
        ),
    ]
    return "\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def parts_of(name: str, figure: Mapping[str, Any]) -> Iterator[tuple[str, list[Cell]]]:
    """The cells of a figure by its name, then those of its parts."""
    rows, columns = figure["rows"], figure["columns"]
    yield name, [(row, column) for row in rows for column in columns]
    kind = figure.get("parts")
    if kind == "rows":
        yield from ((f"{name}.{row}", [(row, column) for column in columns]) for row in rows)
    if kind == "columns":
        yield from ((f"{name}.{column}", [(row, column) for row in rows]) for column in columns)
    if kind == "cells":
        yield from ((f"{name}.{r}.{c}", [(r, c)]) for r in rows for c in columns)


def collect() -> dict[str, dict[str, Any]]:
    """All figures by name: value, what it is, the command that measures it, the page it is from."""
    found = {}
    for name, figure in tomllib.loads(DEFINITIONS.read_text(encoding="utf-8")).items():
        page = figure["page"]
        origin = {key: figure[key] for key in ("what", "command", "page")}
        if "pattern" in figure:
            text = (ROOT / page).read_text(encoding="utf-8")
            value = span([Decimal(number) for number in re.findall(figure["pattern"], text)])
            found[name] = {"value": value, **origin}
        elif isinstance(figure["rows"], dict):
            found[name] = {"value": table(figure), **origin}
        else:
            for full_name, cells in parts_of(name, figure):
                measured = numbers(page, cells)
                if "by_column" in figure:
                    by = numbers(page, [(row, figure["by_column"]) for row, _ in cells])
                    measured = [a / b for a, b in zip(measured, by, strict=True)]
                value = FORMS[figure.get("form", "span")](measured)
                found[short(full_name)] = {"value": value, **origin}
    return found


def short(name: str) -> str:
    """The name of a part without the case that its row begins with, and without spaces."""
    figure, *parts = name.split(".")
    last_cells = (part.split(" | ")[-1].split(",")[0].replace(" ", "-") for part in parts)
    return ".".join([figure, *last_cells])


def filled(text: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    """A page with the values of figures in its marked places."""

    def place(match: re.Match[str]) -> str:
        return f"<!--figure {match[1]}-->{figures[match[1]]['value']}<!--/-->"

    return PLACE.sub(place, text)


def main() -> int:
    """Write the values, and all places that quote them."""
    figures = collect()
    VALUES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
