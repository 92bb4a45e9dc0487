"""Learn, predict and evaluate JSON lines."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import onlineforest
from support.commands import CLASSIFY, REGRESS, SMALL, each_kind, fine, of, run, stream


def rows_of(frame):
    """Rows as a program writes them: a key is missing, or its value is null."""
    rows = [
        {key: None if value != value else value for key, value in row.items()}
        for row in frame.astype({"a": float, "b": float, "c": float}).to_dict("records")
    ]
    for row in rows[::2]:
        if row["c"] is None:
            del row["c"]
    return rows


def write(path, frame):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(frame)))


@pytest.fixture(autouse=True)
def lines(folder, kind):
    write(folder / "data.jsonl", stream(500, kind=kind))
    return folder


@each_kind
def test_json_lines_give_the_model_of_parquet(folder, kind):
    parquet.write_table(pa.Table.from_pandas(stream(500, kind=kind)), "data.parquet")
    for task in (CLASSIFY, REGRESS)[: 2 if kind == "order-free" else 1]:
        for name in ("data.jsonl", "data.parquet"):
            fine("train", name, *task, *SMALL, *of(kind), "-o", f"{name}.st")
        found = [(folder / f"{name}.st") for name in ("data.jsonl", "data.parquet")]
        one, other = map(onlineforest.load, found)
        rows = stream(50, seed=1, kind=kind)[["a", "b", "c"]]
        np.testing.assert_array_equal(one.predict(rows), other.predict(rows))
        with open("data.jsonl", "rb") as file:
            fine("train", "-", *task, *SMALL, *of(kind), "-o", "pipe.st", input=file.read())
        assert (folder / "pipe.st").read_bytes() == found[0].read_bytes()


def test_predictions_are_written_as_json_lines(folder):
    fine("train", "data.jsonl", *CLASSIFY, *SMALL, "-o", "m.st")
    frame = stream(40, seed=1)
    frame.loc[3, "id"] = 'é "x"'
    write(folder / "more.jsonl", frame)
    frame.to_csv("more.csv", index=False)
    options = ["--probabilities", "--keep", "id"]
    output = fine("predict", "m.st", "more.jsonl", *options).output
    fine("predict", "m.st", "more.csv", *options, "-o", "out.ndjson", "--batch-size", "7")
    assert (folder / "out.ndjson").read_text(encoding="utf-8") == output
    forest = onlineforest.load("m.st")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["id"] for row in rows] == frame.id.tolist()
    assert [row["prediction"] for row in rows] == forest.predict(frame[["a", "b", "c"]]).tolist()
    found = [[row[f"probability_{label}"] for label in forest.classes_] for row in rows]
    assert found == forest.predict_proba(frame[["a", "b", "c"]]).tolist()
    fine("predict", "m.st", "more.jsonl", "-o", "out.csv")
    assert (folder / "out.csv").read_text().splitlines()[0] == "prediction"


def test_a_row_may_lack_features_of_the_model():
    fine("train", "data.jsonl", *CLASSIFY, *SMALL, "-o", "m.st")
    forest = onlineforest.load("m.st")
    result = fine("predict", "m.st", "-", "--format", "jsonl", input=b' {"b": 0.5}\n{"a": 1}')
    expected = forest.predict(pd.DataFrame({"a": [np.nan, 1], "b": [0.5, np.nan], "c": np.nan}))
    assert [json.loads(line)["prediction"] for line in result.output.splitlines()] == list(expected)
    result = run("predict", "m.st", "-", input=b'{"z": 1}\n')
    assert result.exit_code == 1 and "standard input lacks 3 of the 3 columns" in result.output


def test_evaluate_reads_json_lines():
    options = [*CLASSIFY, *SMALL, "--json", "-q"]
    facts = [
        json.loads(fine("evaluate", name, *options).output) for name in ("data.jsonl", "data.csv")
    ]
    assert facts[0]["samples"] == 500
    assert {**facts[0], "seconds": 0} == {**facts[1], "seconds": 0}


def test_bad_lines_are_named_and_skipped(folder):
    text = (folder / "data.jsonl").read_text().splitlines()
    text[299], text[399] = '{"a": 1', '{"a": "oops", "kind": "red"}'
    text[449] = '{"a": 1}'
    (folder / "bad.jsonl").write_text("\n".join(text))
    options = ["train", "bad.jsonl", *CLASSIFY, *SMALL, "-o", "m.st"]
    result = run(*options)
    assert result.exit_code == 1 and not (folder / "m.st").exists()
    assert result.output.startswith("Error: bad.jsonl, line 300: the line is not valid JSON: Expec")
    result = fine(*options, "--skip-bad-rows")
    assert "Learned 497 samples" in result.output
    assert "Skipped 3 bad rows, the first of them: bad.jsonl, line 300" in result.output
    result = run("train", "data.jsonl", *CLASSIFY[:2], "-o", "m.st", "--task", "regress")
    assert result.exit_code == 1 and "text in 'kind'" in result.output


@each_kind
def test_a_run_on_json_lines_that_grew_is_resumed(folder, kind):
    text = (folder / "data.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(text[:300]))
    options = [*CLASSIFY, *SMALL, *of(kind), "-o", "m.st", "--resume"]
    fine("train", "log.jsonl", *options)
    (folder / "log.jsonl").write_text("".join(text))
    assert "Learned 200 samples" in fine("train", "log.jsonl", *options).output
    fine("train", "data.jsonl", *CLASSIFY, *SMALL, *of(kind), "-o", "whole.st")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()
