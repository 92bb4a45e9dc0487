"""Batches grow with the rows learned, unless --batch-size says otherwise."""

from __future__ import annotations

import csv
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest import OnlineForestClassifier
from onlineforest._cli.forests import Position
from onlineforest._cli.training import Training
from support.bits import assert_same_forest
from support.commands import CLASSIFY, each_kind, fine, of, run, stream

GROWN = [0, 100, 200, 300, 450, 675]  # where batches begin in 1,000 rows


def ends_of(n, start=0, forest=None, **options):
    """Rows after each batch of a table of n rows, from a position on."""
    training = Training(forest or OnlineForestClassifier(), Position(start, None, ""), **options)
    training._n_seen_before = max(training._n_seen_before, 0)
    ends, sizes = [start], training._batch_sizes()
    while ends[-1] < n:
        ends.append(ends[-1] + next(sizes))
    return ends


def test_batches_grow_to_half_of_the_rows_learned():
    ends = ends_of(100_000)
    assert ends[:6] == GROWN
    assert all(b - a == max(100, a // 2) for a, b in pairwise(ends))
    assert len(ends) < 22


@pytest.mark.parametrize("start", [1, 99, 100, 450, 675, 5000])
def test_batches_end_at_the_same_rows_wherever_a_run_is_resumed(start):
    whole = ends_of(10_000)
    assert ends_of(10_000, start)[1:] == [end for end in whole if end > start]


def test_batches_do_not_grow_beyond_what_a_window_keeps():
    for options in ({"window": 1000}, {"reservoir": 1000}):
        forest = OnlineForestClassifier(**options)
        assert np.diff(ends_of(9000, forest=forest)).max() == 500
    forest = OnlineForestClassifier(3).fit(stream(4000)[["a", "b", "c"]], stream(4000).kind)
    assert ends_of(3000, forest=forest)[:3] == [0, 2000, 5000]
    assert ends_of(25_000, forest=forest, learn=False) == [0, 10_000, 20_000, 30_000]


@each_kind
def test_a_run_without_a_batch_size_learns_in_growing_batches(folder, kind):
    frame = stream(1000, kind=kind)
    frame.to_csv("data.csv", index=False)
    options = ["train", "data.csv", *CLASSIFY, "--trees", "5", *of(kind)]
    fine(*options, "-o", "m.st", "--curve", "curve.csv")
    with open("curve.csv") as file:
        assert [int(row["samples"]) for row in csv.DictReader(file)] == GROWN[1:]
    forest = onlineforest.load("m.st")
    twin = type(forest)(5, random_state=0)
    for i, j in zip(GROWN, [*GROWN[1:], 1000]):
        twin.partial_fit(frame[["a", "b", "c"]][i:j], frame.kind[i:j].to_numpy(str))
    assert_same_forest(forest, twin)
    if kind == "order-free":
        for size in (1, 333):
            fine(*options, "--batch-size", size, "-o", "other.st", "--no-evaluate")
            assert_same_forest(onlineforest.load("other.st"), forest)


@each_kind
def test_an_interrupted_run_in_growing_batches_ends_with_the_same_files(folder, kind, monkeypatch):
    frame = stream(1000, kind=kind)
    frame.to_csv("data.csv", index=False)
    options = ["train", "data.csv", *CLASSIFY, "--trees", "5", *of(kind)]
    fine(*options, "-o", "whole.st", "--curve", "whole.csv")
    step, n_batches = Training._step, 0

    def interrupted(training, batch):
        nonlocal n_batches
        n_batches += 1
        if n_batches in (3, 6):
            raise KeyboardInterrupt
        step(training, batch)

    monkeypatch.setattr(Training, "_step", interrupted)
    for n_learned in (200, 450):
        result = run(*options, "-o", "m.st", "--curve", "curve.csv", "--resume")
        assert result.exit_code == 130
        assert f"Interrupted after {n_learned} samples" in result.output
    fine(*options, "-o", "m.st", "--curve", "curve.csv", "--resume")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()
    assert (folder / "curve.csv").read_text() == (folder / "whole.csv").read_text()
    result = run(*options, "-o", "m.st", "--resume", "--batch-size", "7")
    assert result.exit_code == 2 and "was started with batches that grow. Omit it" in result.output


def test_the_scores_of_a_model_do_not_depend_on_batches(folder):
    pd.concat([stream(300)] * 40).to_csv("long.csv", index=False)
    fine("train", "data.csv", *CLASSIFY, "--trees", "5", "-o", "m.st")
    options = ["evaluate", "long.csv", "--target", "kind", "--from", "m.st", "--no-learn", "-q"]
    found = [
        json.loads(fine(*options, "--json", *size).output) for size in ([], ["--batch-size", 99])
    ]
    assert found[0]["predicted"] == 12_000
    for name in ("accuracy", "log_loss", "ece", "auc", "f1"):
        assert found[0][name] == pytest.approx(found[1][name], rel=1e-12)
    assert found[0]["confusion"] == found[1]["confusion"]
