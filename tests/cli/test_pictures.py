"""Run plot as a user does."""

from __future__ import annotations

import os

import numpy as np

from onlineforest._cli import plot as _cli_plot
from onlineforest._cli.forests import FORESTS
from support.commands import CLASSIFY, SMALL, each_kind, fine, of, run, stream


def test_points_sample_the_whole_file_and_skip_bad_rows(models, monkeypatch):
    drawn = []
    monkeypatch.setattr(_cli_plot.pictures, "novelty_map", lambda forest, X, **_: drawn.append(X))
    frame = stream(500).assign(a=np.arange(500.0), b=1, c=2)
    frame.astype({"b": object}).assign(b=lambda f: f.b.where(f.a != 9, "oops")).to_csv("t.csv")
    arguments = ["novelty", "kinds.st", "--data", "t.csv", "--rows", "50", "-o", "p.png"]
    assert "Skipped 1 bad row: t.csv, line 11" in fine("plot", *arguments).output
    values = np.asarray(drawn[0])[:, 0]
    assert len(values) == 50 and 150 < values.mean() < 350


@each_kind
def test_every_plot_command_saves_a_picture(models, kind):
    options = [*CLASSIFY, "--drop", "c", *SMALL, *of(kind), "-o", "two.st", "--curve", "c.csv"]
    fine("train", "data.csv", *options)
    points = ["--data", "data.csv", "--target", "kind"]
    numbers = [
        ["tree", "values.st"],
        ["surface", "values.st", "--data", "data.csv", "--target", "value", "--resolution", "20"],
        ["importances", "values.st"],
    ]
    for arguments in (
        ["partition", "two.st", "--tree", "1", *points],
        ["tree", "kinds.st", "--max-depth", "3"],
        ["surface", "kinds.st", *points, "--resolution", "20"],
        ["surface", "two.st", "--resolution", "20"],
        ["importances", "kinds.st"],
        ["curve", "c.csv", "--measure", "ece"],
        *(numbers if "regress" in FORESTS[kind] else []),
    ):
        assert fine("plot", *arguments, "-o", "p.png").output == "Saved p.png\n"
        assert (models / "p.png").read_bytes().startswith(b"\x89PNG")
        os.remove("p.png")
    novelty = ["novelty", "kinds.st", *points[:2], "--features", "a", "c", "--resolution", "20"]
    result = run("plot", *novelty, "-o", "p.png")
    assert (models / "p.png").exists() == (kind == "mondrian") == (result.exit_code == 0)
    words = "Novelty is the distance from the boxes of a Mondrian forest"
    assert (words in result.output) == (kind == "order-free")
