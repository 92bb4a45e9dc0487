"""Run train as a user does."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import onlineforest
from onlineforest import MondrianForestClassifier
from onlineforest._cli import run as _cli_run
from onlineforest._cli.forests import FORESTS
from support.bits import assert_same_forest
from support.commands import CLASSIFY, REGRESS, SMALL, each_kind, fine, of, run, stream


@each_kind
def test_train_learns_the_forest_of_partial_fit(models, kind):
    frame = stream(500, kind=kind)
    for task, estimator in FORESTS[kind].items():
        path, target = {"classify": ("kinds.st", "kind"), "regress": ("values.st", "value")}[task]
        forest, X, y = (
            estimator(5, random_state=0),
            frame[["a", "b", "c"]],
            frame[target],
        )
        if target == "kind":
            y = y.to_numpy(str)
        for i in range(0, 500, 50):
            forest.partial_fit(X[i : i + 50], y[i : i + 50])
        found = onlineforest.load(path)
        assert type(found) is type(forest)
        assert_same_forest(found, forest)
        assert list(found.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("task", [CLASSIFY, REGRESS])
def test_order_and_batches_do_not_change_an_order_free_forest(folder, task):
    stream(500).sample(frac=1.0, random_state=0).to_csv("shuffled.csv", index=False)
    fine("train", "data.csv", *task, *SMALL, "-o", "m.st")
    fine("train", "shuffled.csv", *task, *SMALL[:2], "--batch-size", "33", "-o", "shuffled.st")
    digests = {onlineforest.load(name).digest_ for name in ("m.st", "shuffled.st")}
    assert len(digests) == 1


def test_all_formats_give_the_same_model(folder):
    frame = stream(500)
    frame.to_parquet("data.parquet")
    frame.to_csv("data.csv.gz", index=False)
    options = [*CLASSIFY, *SMALL, "--quiet", "-o"]
    for i, name in enumerate(("data.csv", "data.parquet", "data.csv.gz")):
        assert fine("train", name, *options, f"{i}.st").output == ""
    with open("data.csv", "rb") as file:
        fine("train", "-", *options, "3.st", input=file.read())
    with open("data.parquet", "rb") as file:
        fine("train", "-", *options, "4.st", input=file.read())
    forests = [onlineforest.load(f"{i}.st") for i in range(5)]
    for forest in forests[1:]:
        assert_same_forest(forests[0], forest)


def test_train_reports_samples_and_metrics(folder):
    result = fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "m.st", "--curve", "curve.csv")
    assert re.fullmatch(
        r"Learned 500 samples in .* s \(.*/s\)\. Predicted before they were learned: "
        r"accuracy 0\.\d+, log loss 0\.\d+\. Saved m\.st\.\n",
        result.output,
    )
    with open("curve.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["samples"]) for row in rows] == list(range(50, 500, 50))
    metrics = {"accuracy", "log_loss", "ece"}
    assert set(rows[0]) == {"samples", *metrics, *(f"batch_{name}" for name in metrics)}
    shown = float(re.search(r"accuracy (0\.\d+)", result.output)[1])
    assert shown == pytest.approx(float(rows[-1]["accuracy"]), abs=1e-3)


def test_progress_is_printed_as_lines_without_a_terminal(folder, monkeypatch):
    monkeypatch.setattr(_cli_run, "SECONDS_BETWEEN_LINES", 0.0)
    result = fine("train", "data.csv", *REGRESS, *SMALL, "-o", "m.st")
    assert re.search(r"^100%, 500 samples, [\d,]+/s, RMSE [\d.]+$", result.output, re.MULTILINE)
    assert "accuracy" not in result.output
    result = fine("train", "data.csv", *REGRESS, *SMALL, "-o", "m.st", "--no-evaluate")
    assert "RMSE" not in result.output


@each_kind
def test_a_window_limits_the_stored_samples_and_ids_can_be_forgotten(folder, kind):
    options = ["--target", "kind", "--task", "classify", "--drop", "value", "--id", "id", *SMALL]
    options += of(kind)
    fine("train", "data.csv", *options, "--window", "100", "-o", "m.st")
    forest = onlineforest.load("m.st")
    assert forest.n_samples_stored_ == 100 and forest.n_samples_seen_ == 500
    assert forest.ids_ == {f"s{i}" for i in range(400, 500)}
    forest.forget(ids=["s450"])


def test_bad_rows_end_the_command_or_are_skipped(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[300] = "s299,1.0,oops,1.0,red,2.0"
    lines[400] = "s399,1.0,1.0,1.0,,2.0"
    (folder / "bad.csv").write_text("\n".join(lines))
    options = [*CLASSIFY, *SMALL, "-o", "m.st"]
    result = run("train", "bad.csv", *options)
    assert result.exit_code == 1
    assert result.output == (
        "Error: bad.csv, line 301: column 'b' holds 'oops', which is not a number; if its values "
        "are categories, give --categorical 'b'. (--skip-bad-rows skips such rows.)\n"
    )
    assert not (folder / "m.st").exists()
    result = fine("train", "bad.csv", *options, "--skip-bad-rows")
    assert "Learned 498 samples" in result.output
    assert "Skipped 2 bad rows, the first of them: bad.csv, line 301" in result.output
    assert fine("predict", "m.st", "bad.csv", "--skip-bad-rows").output.count("\n") == 501


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_rows_with_missing_features_are_bad_for_mondrian_forests(folder, name):
    frame = stream(500)
    frame.to_parquet("data.parquet")
    options = ["train", name, *CLASSIFY, *SMALL, *of("mondrian"), "-o", "m.st"]
    result = run(*options)
    place = "data.csv, line 2" if name == "data.csv" else "data.parquet, row 1"
    assert result.exit_code == 1 and result.output == (
        f"Error: {place}: the value of column 'c' is missing; a Mondrian forest takes complete "
        "rows of numbers, an order-free forest (--forest order-free of `train`) takes text and "
        "missing values, too. (--skip-bad-rows skips such rows.)\n"
    )
    assert not (folder / "m.st").exists()
    assert "Skipped 72 bad rows" in fine(*options, "--skip-bad-rows").output
    forest = MondrianForestClassifier(5, random_state=0)
    rows = frame.dropna()
    for start in range(0, len(rows), 50):
        batch = rows[start : start + 50]
        forest.partial_fit(batch[["a", "b", "c"]], batch.kind.to_numpy(str))
    assert_same_forest(onlineforest.load("m.st"), forest)
    result = run("predict", "m.st", name)
    assert result.exit_code == 1 and f"{place}: the value of column 'c' is missing" in result.output
    fine("train", name, *CLASSIFY, *SMALL, "-o", "m.st")  # as the error says


def test_a_mondrian_forest_refuses_a_column_without_values(folder):
    stream(50).assign(c=np.nan).to_csv("empty.csv", index=False)
    options = ["train", "empty.csv", *CLASSIFY, *SMALL, *of("mondrian"), "-o", "m.st"]
    result = run(*options)
    assert result.exit_code == 1 and "line 2: the value of column 'c' is missing" in result.output
    assert "Warning" not in result.output  # about categories, which it does not learn


@each_kind
def test_a_run_resumes_after_a_bad_row_is_fixed(folder, kind):
    good = (folder / "data.csv").read_text()
    (folder / "part.csv").write_text(good.replace("s299,", "s299,x,"))
    whole = ["train", "data.csv", *CLASSIFY, *SMALL, *of(kind), "-o", "whole.st"]
    options = [*CLASSIFY, *SMALL, *of(kind), "-o", "m.st", "--checkpoints", "c", "--resume"]
    assert "line 301: the row has 7 fields" in run("train", "part.csv", *options).output
    (folder / "part.csv").write_text(good)
    assert "after 250 samples" in fine("train", "part.csv", *options).output
    fine(*whole)
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()


@each_kind
def test_a_model_learns_more_from_another_file(models, kind):
    stream(200, seed=1, kind=kind).to_csv("more.csv", index=False)
    options = ["--target", "kind", *SMALL, "-o", "more.st", "--from", "kinds.st"]
    result = fine("train", "more.csv", *options)
    assert "Continuing with kinds.st, which has learned 500 samples." in result.output
    assert onlineforest.load("more.st").n_samples_seen_ == 700
    result = run("train", "more.csv", "--target", "kind", "-o", "kinds.st", "--resume")
    assert result.exit_code == 1 and "use --from in place of --resume" in result.output
    result = run(
        "train", "more.csv", "--target", "value", *SMALL, "-o", "x.st", "--from", "kinds.st"
    )
    assert result.exit_code == 1


@each_kind
def test_the_new_rows_of_a_file_that_grew_are_learned(folder, kind):
    stream(800, kind=kind).to_csv("all.csv", index=False)
    lines = (folder / "all.csv").read_text().splitlines(keepends=True)
    (folder / "log.csv").write_text("".join(lines[:501]))
    options = [*CLASSIFY, *SMALL, *of(kind), "-o", "m.st", "--resume"]
    assert "starting from the first row" in fine("train", "log.csv", *options).output
    assert "Nothing more to learn" in fine("train", "log.csv", *options).output
    (folder / "log.csv").write_text("".join(lines))
    assert "Learned 300 samples" in fine("train", "log.csv", *options).output
    fine("train", "all.csv", *CLASSIFY, *SMALL, *of(kind), "-o", "whole.st")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()


@each_kind
def test_resuming_after_a_partial_batch_differs_only_as_the_help_says(folder, kind):
    stream(600, kind=kind).to_csv("all.csv", index=False)
    lines = (folder / "all.csv").read_text().splitlines(keepends=True)
    (folder / "log.csv").write_text("".join(lines[:561]))  # ten rows are the last batch
    options = [*CLASSIFY, *SMALL, *of(kind), "-o", "m.st", "--resume"]
    fine("train", "log.csv", *options)
    (folder / "log.csv").write_text("".join(lines))
    assert "Learned 40 samples" in fine("train", "log.csv", *options).output
    fine("train", "all.csv", *CLASSIFY, *SMALL, *of(kind), "-o", "whole.st")
    resumed, whole = onlineforest.load("m.st"), onlineforest.load("whole.st")
    if kind == "order-free":
        assert_same_forest(resumed, whole)
    else:
        with pytest.raises(AssertionError):
            assert_same_forest(resumed, whole)
    words = " ".join(fine("train", "--help").output.split())
    assert "a Mondrian forest is not if DATA has grown past a last batch" in words


def test_ids_keep_their_type_in_a_file_that_grew(folder):
    lines = [f"{i},{i / 7},{i % 2}\n" for i in range(50)]
    (folder / "log.csv").write_text("".join(["id,a,t\n", *lines]))
    options = ["--target", "t", "--task", "classify", "--id", "id", *SMALL, "-o", "m.st"]
    options += ["--resume", "--skip-bad-rows"]
    fine("train", "log.csv", *options)
    with open("log.csv", "a") as log:
        log.write("x10,1,0\n50,2,1\n")
    assert "1 bad row" in fine("train", "log.csv", *options).output
    assert onlineforest.load("m.st").ids_ == set(range(51))
    with open("log.csv", "a") as log:
        log.write("3,1,0\n")
    result = run("train", "log.csv", *options)
    assert result.exit_code == 1 and "ids must be new" in result.output


@each_kind
@pytest.mark.parametrize("batch_size", [1, 7])
def test_classes_that_end_with_nul_are_kept_apart(folder, kind, batch_size):
    labels = ["a", "a\0", "b"] * 8
    parquet.write_table(pa.table({"x": np.arange(24.0) % 3, "kind": labels}), "nul.parquet")
    options = ["--target", "kind", "--task", "classify", "--trees", "10", *of(kind)]
    fine("train", "nul.parquet", *options, "--batch-size", batch_size, "-o", "m.st")
    forest = onlineforest.load("m.st")
    assert forest.classes_.tolist() == ["a", "a\0", "b"]
    fine("predict", "m.st", "nul.parquet", "-o", "out.parquet")
    assert parquet.read_table("out.parquet").column("prediction").to_pylist() == labels
    options = ["nul.parquet", "--target", "kind", "--from", "m.st", "--no-learn", "--json", "-q"]
    assert json.loads(fine("evaluate", *options).output)["accuracy"] == 1.0


def test_a_target_that_is_nan_is_a_bad_row(folder):
    with open("data.csv", "a") as data:
        data.write("s500,1,2,3,red,NAN\n")
    result = run("train", "data.csv", *REGRESS, *SMALL, "-o", "m.st")
    assert result.exit_code == 1
    assert "data.csv, line 502: the value of column 'value' is missing (NAN)" in result.output
    fine("train", "data.csv", *REGRESS, *SMALL, "-o", "m.st", "--skip-bad-rows")
    assert onlineforest.load("m.st").n_samples_seen_ == 500


def test_a_folder_with_checkpoints_of_another_run_is_an_error(folder):
    options = [*CLASSIFY, *SMALL, "-o", "m.st", "--checkpoints", "c", "--every-samples", "200"]
    fine("train", "data.csv", *options)
    assert len(list((folder / "c").iterdir())) == 3
    result = run("train", "data.csv", *options)
    assert result.exit_code == 2 and "already has checkpoints" in result.output


def test_an_unclosed_quote_is_an_error_even_if_bad_rows_are_skipped(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[300] = lines[300].replace(",", ',"', 1)
    (folder / "open.csv").write_text("\n".join(lines))
    result = run("train", "open.csv", *CLASSIFY, *SMALL, "-o", "m.st", "--skip-bad-rows")
    assert result.exit_code == 1 and "open.csv, line 301: the quote" in result.output
    assert not (folder / "m.st").exists()
