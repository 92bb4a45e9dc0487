"""Run predict and evaluate as a user does."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest import OnlineForestRegressor
from support.commands import CLASSIFY, COMMAND, REGRESS, SMALL, each_kind, fine, of, run, stream


@each_kind
def test_predict_writes_classes_and_probabilities(models, kind):
    novelty = ["--novelty"] if kind == "mondrian" else []
    result = fine("predict", "kinds.st", "data.csv", "--probabilities", *novelty, "--keep", "id")
    rows = pd.read_csv(io.StringIO(result.output), dtype=str)  # pandas 2 would round numbers
    forest, frame = onlineforest.load("kinds.st"), stream(500, kind=kind)
    X = frame[["a", "b", "c"]]
    assert list(rows.id) == list(map(str, frame.id))
    assert list(rows.prediction) == list(forest.predict(X))
    names = [f"probability_{name}" for name in forest.classes_]
    assert list(rows.columns) == ["id", "prediction", *names, *(word[2:] for word in novelty)]
    probabilities = rows[names].astype(float)
    np.testing.assert_allclose(probabilities, forest.predict_proba(X), rtol=1e-12)
    if novelty:
        np.testing.assert_allclose(
            rows.novelty.astype(float), forest.novelty(X), rtol=1e-12, atol=1e-300
        )


def test_predict_writes_numbers_to_files(models):
    frame = stream(500)
    frame[["value", "c", "a", "b", "id"]].to_parquet("other.parquet")  # in another order
    options = ["--intervals", "0.8", "--std", "--keep", "value", "--batch-size", "77"]
    for name in ("out.parquet", "out.csv"):
        assert fine("predict", "values.st", "other.parquet", *options, "-o", name).output == ""
    forest, X = onlineforest.load("values.st"), frame[["a", "b", "c"]]
    mean, std = forest.predict(X, return_std=True)
    interval = forest.predict_interval(X, 0.8)
    for rows in (pd.read_parquet("out.parquet"), pd.read_csv("out.csv")):
        assert list(rows.columns) == ["value", "prediction", "lower", "upper", "std"]
        np.testing.assert_allclose(rows.prediction, mean, rtol=1e-12)
        np.testing.assert_allclose(rows[["lower", "upper"]], interval, rtol=1e-9)
        np.testing.assert_allclose(rows["std"], std, rtol=1e-12)
    plain = pd.read_csv(io.StringIO(fine("predict", "values.st", "other.parquet").output))
    np.testing.assert_allclose(plain.prediction, mean, rtol=1e-12)
    assert {path.name for path in models.iterdir() if path.name.startswith(".")} == set()


def test_predict_quotes_text_that_needs_it(models):
    (models / "odd.csv").write_text('id,a,b,c\n"x, ""y""",1,2,3\nz,1,2,3\n')
    rows = list(
        csv.reader(io.StringIO(fine("predict", "kinds.st", "odd.csv", "--keep", "id").output))
    )
    assert [row[0] for row in rows] == ["id", 'x, "y"', "z"]
    (models / "none.csv").write_text("id,a,b,c\n")
    assert fine("predict", "kinds.st", "none.csv", "--keep", "id").output == "id,prediction\n"


def test_predict_with_a_model_without_feature_names(folder):
    frame = stream(100)
    X = frame[["a", "b", "c"]].to_numpy()
    OnlineForestRegressor(3, random_state=0).fit(X, frame.value).save("plain.st")
    frame[["a", "b", "c"]].to_csv("x.csv", index=False)
    rows = pd.read_csv(io.StringIO(fine("predict", "plain.st", "x.csv").output))
    np.testing.assert_allclose(rows.prediction, onlineforest.load("plain.st").predict(X))
    assert "has no feature names" in run("predict", "plain.st", "data.csv").output


@pytest.mark.slow
def test_each_line_is_predicted_when_it_arrives_until_the_reader_closes(models):
    command = [*COMMAND, "predict", "kinds.st", "-", "--batch-size", "1"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    process.stdin.write(b"a,b,c\n1,2,3\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"prediction\n"
    assert process.stdout.readline().strip().decode() in ("red", "green", "blue")
    process.stdout.close()  # as `head` does
    process.stdin.write(b"1,2,3\n" * 10)
    process.stdin.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_evaluate_prints_metrics_of_numbers_and_draws_the_curve(folder):
    result = fine("evaluate", "data.csv", *REGRESS, *SMALL, "-q", "--picture", "p.svg")
    words = dict(re.findall(r"^(.*?)  +([\d.,]+)$", result.output, re.MULTILINE))
    assert words["samples"] == "500" and words["of these predicted"] == "450"
    assert set(words) >= {"RMSE", "mean absolute error", "coverage of intervals for 0.9"}
    assert (folder / "p.svg").read_text().startswith("<?xml")


@each_kind
def test_evaluate_prints_metrics_of_classes(folder, kind):
    options = [*CLASSIFY, *SMALL, *of(kind), "-q", "--json"]
    facts = json.loads(fine("evaluate", "data.csv", *options).output)
    assert facts["predicted"] == 450 and 0.5 < facts["accuracy"] <= 1 and facts["log_loss"] > 0
    assert 0 < facts["ece"] < 0.5


@each_kind
def test_evaluate_without_learning_leaves_the_model_unchanged(models, kind):
    before = (models / "kinds.st").read_bytes()
    options = ["--target", "kind", "--from", "kinds.st", "--no-learn", "--json", "-q"]
    facts = json.loads(fine("evaluate", "data.csv", *options).output)
    forest, frame = onlineforest.load("kinds.st"), stream(500, kind=kind)
    right = forest.predict(frame[["a", "b", "c"]]) == frame.kind.to_numpy(str)
    assert facts["accuracy"] == pytest.approx(right.mean()) and facts["predicted"] == 500
    assert (models / "kinds.st").read_bytes() == before
    output = fine("evaluate", "data.csv", *options[:5], "--curve", "c.csv").output
    assert (
        "Predicting with kinds.st, which has learned 500 samples." in output
        and "Saved c.csv" in output
    )
