"""The file of results holds what the figures need, and the committed one agrees with its page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

from experiments.paper.curves import curve, reliability
from experiments.paper.records import Record
from experiments.paper.results import COUNTS, MEASURED, read, summarise, write

BINS = ((0, 0.0, 0), (10, 8.5, 6), (30, 28.5, 30))
RECORDS = [
    Record("dna†", method, seed, fraction, 1, n, n / 7, accuracy - 0.01 * seed, 1 / 3, BINS, depth)
    for method, depth in (("MF", 12.3456789), ("ERT-1", None))
    for seed in range(2)
    for fraction, n, accuracy in ((0.5, 700, 0.8), (1.0, 1400, 0.9))
]
COMMITTED = ROOT / "docs/paper/results.json"


def test_results_are_the_means_of_the_records():
    results = summarise(RECORDS)
    assert list(results.curves) == [("dna†", "MF"), ("dna†", "ERT-1")]
    expected = curve(RECORDS, "dna†", "MF")
    for name in (*COUNTS, *MEASURED):
        np.testing.assert_array_equal(
            getattr(results.curve("dna†", "MF"), name), getattr(expected, name)
        )
    np.testing.assert_array_equal(
        results.reliability("dna†", "MF"), reliability(RECORDS, "dna†", "MF")
    )
    assert results.curve("dna", "MF") is None
    assert results.reliability("dna", "MF") is None


def test_a_file_keeps_five_digits_and_missing_numbers(tmp_path):
    results, path = summarise(RECORDS), tmp_path / "folder/results.json"
    write(results, path, {"command": "python"})
    again = read(path)
    assert list(again.curves) == list(results.curves)
    for pair, of in results.curves.items():
        assert again.curves[pair].n_seeds == of.n_seeds == 2
        for name in (*COUNTS, *MEASURED):
            found, expected = getattr(again.curves[pair], name), getattr(of, name)
            np.testing.assert_allclose(found, expected, rtol=5e-5)
        np.testing.assert_allclose(again.bins[pair], results.bins[pair], rtol=5e-5)
    assert np.isnan(again.curve("dna†", "ERT-1").depth).all()
    assert again.curve("dna†", "MF").depth[0] == 12.346
    second = tmp_path / "second.json"
    write(again, second, {"command": "python"})
    assert second.read_bytes() == path.read_bytes()


def table(start):
    """Cells of the table of `paper.md` after a paragraph, by data set and method."""
    page = (ROOT / "docs/paper.md").read_text()
    head, _, *rows = page[page.index(start) :].split("\n\n")[1].splitlines()
    methods = [cell.strip() for cell in head.strip("|").split("|")][1:]
    for row in rows:
        data, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for method, cell in zip(methods, cells, strict=True):
            yield data, method, [float(number) for number in re.findall(r"[\d.]+", cell)]


@pytest.mark.parametrize(
    ("start", "fields", "digits", "n_checked"),
    [
        ("Test accuracy, mean", ("accuracy", "deviation"), 4, 84),
        ("Seconds of processor time", ("seconds",), 2, 50),
    ],
)
def test_the_committed_results_agree_with_the_page(start, fields, digits, n_checked):
    results, checked = read(COMMITTED), 0
    for data, method, said in table(start):
        of = results.curve(data, method)
        if of is None:
            continue
        end = of.at(1.0)
        found = [getattr(of, field)[end] for field in fields]
        if len(said) > len(fields):  # the last number is after all passes
            found.append(getattr(of, fields[0])[of.last])
        for number, value in zip(said, found, strict=True):
            if np.isfinite(value):
                assert number == pytest.approx(value, abs=0.501 * 10**-digits, rel=5e-5)
                checked += 1
    assert checked == n_checked


def test_the_committed_results_are_small():
    assert COMMITTED.stat().st_size < 200_000
