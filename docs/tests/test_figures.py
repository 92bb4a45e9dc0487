"""Pages quote figures as `docs/figures.json` has them, and state no measured speed beside these."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest

from docs import figures

RECORDS = ("save-and-load.md", "order-free-figures.md")  # pages that record measurements
QUOTING = [page for page in figures.PAGES if page.name not in RECORDS]
NUMBER = r"(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twenty)"
# "0.3 of extra-trees' time", "6 to 7 times as fast", "twice as long", "37 times one fit", "11 ms".
SPEED = re.compile(
    rf"{NUMBER} times (?:as (?:fast|long|slow)|(?:fast|slow|quick)er|one fit|that of|the time)"
    rf"|{NUMBER} of (?:the|its|their|[\w-]+'s?) time\b"
    r"|\b(?:twice|half) as (?:fast|long|quick|slow)"
    r"|\b\d[\d.,]* (?:µs|ms)\b"
)
# Cells of rows about time, in tables that quote figures: "| fit | 0.3 |".
TIMED_ROW = re.compile(
    r"^\| `?(?:fit|predict|stream|one by one|100 mini-batches)\b.*$", re.MULTILINE
)


def prose(text):
    """A page without code, marked places and tables, on one line."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = figures.PLACE.sub("FIGURE", text)
    return " ".join(line for line in text.splitlines() if not line.startswith("|"))


def unmarked(text):
    """Texts outside of marked places that look like measured speeds."""
    rows = TIMED_ROW.findall(figures.PLACE.sub("FIGURE", text))
    return [match[0] for match in SPEED.finditer(prose(text))] + [
        row for row in rows if re.search(r"\d\.\d", row)
    ]


def differences(page, values):
    """Names and texts of the marked places of a page that differ from the file."""
    measured = {name: figure["value"] for name, figure in values.items()}
    return [
        f"{name} is {text!r}, but {measured.get(name)!r} was measured"
        for name, text in figures.PLACE.findall(page)
        if text != measured.get(name)
    ]


def test_the_file_holds_what_the_tables_say():
    values, collected = json.loads(figures.VALUES.read_text(encoding="utf-8")), figures.collect()
    names = sorted(values.keys() | collected.keys())
    differ = [name for name in names if values.get(name) != collected.get(name)]
    assert not differ, (
        f"figures.json differs from the tables in {differ}: run python -m docs.figures"
    )


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.stem)
def test_a_page_quotes_figures_as_they_were_measured(page):
    values = json.loads(figures.VALUES.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    wrong = differences(text, values)
    assert not wrong, f"{page.name}: {'; '.join(wrong)}. Run python -m docs.figures."
    assert text.count("<!--figure") == text.count("<!--/-->") == len(figures.PLACE.findall(text))
    # A mark that begins a line of text would end the paragraph.
    assert not re.search(r"^ *<!--figure [^>]*-->[^\n]", text, re.MULTILINE)


@pytest.mark.parametrize("page", QUOTING, ids=lambda page: page.stem)
def test_a_page_states_no_speed_outside_of_marked_places(page):
    found = unmarked(page.read_text(encoding="utf-8"))
    assert not found, f"{page.name} states without a mark: {found}. See docs/figures.py."


def test_a_wrong_figure_and_an_unmarked_one_are_found():
    values = {"fit": {"value": "0.2 to 0.5"}}
    right, wrong, unknown = (
        f"takes <!--figure {name}-->{text}<!--/--> of extra-trees' time"
        for name, text in (("fit", "0.2 to 0.5"), ("fit", "0.3"), ("no", "1"))
    )
    assert differences(right, values) == []
    assert differences(wrong, values) == ["fit is '0.3', but '0.2 to 0.5' was measured"]
    assert differences(unknown, values) == ["no is '1', but None was measured"]
    assert figures.filled(wrong, values) == right
    for text in (
        "takes 0.23 to 0.49 of extra-trees' time",
        "it is 6 to 7 times as\nfast as River's",
        "and twice as fast as MOA's",
        "cost 10 to 37 times one fit",
        "the longest took 19 ms",
        "| `fit` | 0.54 | 0.25 |",
    ):
        assert len(unmarked(text)) == 1, text
    for text in (
        right,
        "| fit | <!--figure fit-->0.2 to 0.5<!--/--> |",
        "each time the number of samples has grown by half",
        "a sample that two forests have learned counts twice",
        "9 to 15 times as wide in the gap",
        "in a batch of 1,000 rows",
    ):
        assert unmarked(text) == [], text


def test_figures_have_two_digits_and_ends_of_spans_differ():
    spans = {
        ("0.487", "0.39", "0.234"): "0.23 to 0.49",
        ("1.65", "7.16"): "1.7 to 7.2",
        ("9.91", "35.1"): "9.9 to 35",
        ("80.2", "719"): "80 to 719",
        ("0.256", "0.258"): "0.26",
        ("3.0",): "3.0",
    }
    for measured, printed in spans.items():
        assert figures.span([Decimal(number) for number in measured]) == printed
    assert figures.score([Decimal(".9239")]) == ".924"
    assert figures.percent([Decimal(".899"), Decimal(".917")]) == "90 to 92"
    assert figures.difference([Decimal("1.052")]) == "5"


def test_a_cell_must_be_there_once():
    with pytest.raises(ValueError, match="0 cells in row 'no such case', column 'letter'"):
        figures.text_of("benchmarks/NOTES.md", "no such case", "letter")
