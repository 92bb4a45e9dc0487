"""The long run of a forest."""

from __future__ import annotations

import json

import pytest

from benchmarks import scale
from benchmarks.scale import COLUMNS, FORESTS, Stretch, line_ends, main, measure

SMALL = ["--features", "3", "--batch", "100", "--trees", "2"]


def table_of(text):
    """The cells of each line of the table, by column."""
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    heading, _, *lines = [[cell.strip() for cell in line] for line in lines]
    assert heading == list(COLUMNS)
    return [dict(zip(heading, line, strict=True)) for line in lines]


@pytest.mark.parametrize(
    ("batch", "n_rows", "ends"),
    [
        (100, 1_000, [100, 200, 500, 1_000]),
        (100, 1_300, [100, 200, 500, 1_000, 1_300]),
        (20, 100, [20, 100]),  # no batch ends at 50
        (7, 7, [7]),
    ],
)
def test_lines_end_at_1_2_and_5_times_powers_of_ten(batch, n_rows, ends):
    assert line_ends(batch, n_rows) == ends


@pytest.mark.parametrize("forest", FORESTS)
def test_a_small_run_has_its_table_and_its_file(forest, tmp_path, capsys):
    assert main(["--forest", forest, "--rows", "500", *SMALL, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    table = table_of(text)
    assert [line["rows"] for line in table] == ["100", "200", "500"]
    assert table[0]["accuracy"] == "-"  # an empty forest does not predict
    assert 0.4 < float(table[-1]["accuracy"]) <= 1
    assert text.splitlines()[-1].endswith("million rows of 3 features.")
    figures = json.loads((tmp_path / f"scale-{forest}-500.json").read_text(encoding="utf-8"))
    assert figures["settings"]["trees"] == 2
    assert [len(line["learn"]) for line in figures["lines"]] == [1, 1, 3]
    assert figures["lines"][-1]["model"] > 500 * 3 * 4


class Noting:
    """A forest that notes its calls."""

    nbytes_ = 0

    def __init__(self):
        self.calls = []

    def partial_fit(self, X, y, classes):
        self.calls.append("learn")

    def predict(self, X):
        self.calls.append("predict")
        return 0


def test_some_batches_are_predicted_twice_before_they_are_learned():
    forest = Noting()
    lines = list(measure(forest, 800, 2, 100, every=3))
    predicted = ["predict", "predict", "learn"]
    of_batches = [["learn"], predicted, ["learn"], predicted, predicted, ["learn"], predicted]
    assert forest.calls == [call for calls in [*of_batches, predicted] for call in calls]
    assert [(line.rows, len(line.predict), len(line.again)) for line in lines] == [
        *((100, 0, 0), (200, 1, 1), (500, 2, 2), (800, 2, 2))
    ]


def test_costs_are_those_of_one_row_in_the_mean():
    line = Stretch(1_000, [0.001, 0.003], [0.02], [0.004], [0.5, 0.75], 2_000, 9.0, 80_000, 90_000)
    assert line.cells() == (
        *("2,000", "9", "2", "20", "4", "20 ms", "0.08 MB", "0.09 MB", "40", "0.625"),
    )


@pytest.mark.parametrize("n_lines", [0, 2])
def test_an_interruption_keeps_the_table(n_lines, tmp_path, monkeypatch, capsys):
    def interrupted(forest, n_rows, n_features, batch, every):
        if n_rows > 2 * batch:  # not while libraries run once
            for rows in (100, 200)[:n_lines]:
                yield Stretch(batch, [0.1], rows=rows, memory=1024 * rows)
            raise KeyboardInterrupt

    monkeypatch.setattr(scale, "measure", interrupted)
    assert main(["--rows", "500", *SMALL, "--out", str(tmp_path)]) == 130
    captured = capsys.readouterr()
    assert [line["rows"] for line in table_of(captured.out)] == ["100", "200"][:n_lines]
    assert ("A GiB holds 1.05 million rows of 3 features." in captured.out) == bool(n_lines)
    assert "interrupted" in captured.err
    assert len(list(tmp_path.iterdir())) == bool(n_lines)


def test_rows_that_are_no_whole_batches_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--rows", "150", *SMALL])
    assert "--rows must be a multiple of --batch, 100" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_reported_before_the_run(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--rows", "500", *SMALL, "--out", str(tmp_path / "file")]) == 2
    captured = capsys.readouterr()
    assert "file" in captured.err
    assert not captured.out
