"""Run train, evaluate, predict and plot as a user does."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import onlineforest
from onlineforest import MondrianForestClassifier, OnlineForestRegressor, _cli
from onlineforest._cli import plot as _cli_plot
from onlineforest._cli import run as _cli_run
from onlineforest._cli.forests import FORESTS
from onlineforest._cli.run import Interrupts
from support.bits import assert_same_forest
from support.examples import thorough_but

COMMAND = [sys.executable, "-m", "onlineforest"]
each_kind = pytest.mark.parametrize("kind", FORESTS)


def run(*arguments, **options):
    return CliRunner().invoke(_cli.build_command(), [str(a) for a in arguments], **options)


def fine(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def stream(n, seed=0, kind="order-free"):
    """Data frame of samples with a class of three and a number.

    For kinds of forests that learn missing values, it has some.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    colour = np.array(["red", "green", "blue"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    if kind != "mondrian":
        X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, "id", [f"s{i}" for i in range(n)])
    return frame.assign(kind=colour, value=3.0 * X[:, 0] + X[:, 1].astype(float) ** 2)


CLASSIFY = ["--target", "kind", "--task", "classify", "--drop", "id", "--drop", "value"]
REGRESS = ["--target", "value", "--task", "regress", "--drop", "id", "--drop", "kind"]
SMALL = ["--trees", "5", "--batch-size", "50"]


@pytest.fixture
def kind():
    """Kind of the forests of a test that is not marked with `each_kind`."""
    return "order-free"


@pytest.fixture
def folder(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    stream(500, kind=kind).to_csv("data.csv", index=False)
    return tmp_path


def of(kind):
    """Options for a kind of forest: none for the default."""
    return [] if kind == "order-free" else ["--forest", kind]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder with a model of each kind and task, trained once for all tests."""
    path = tmp_path_factory.mktemp("models")
    for kind, tasks in FORESTS.items():
        (path / kind).mkdir()
        data, options = path / kind / "data.csv", [*SMALL, *of(kind), "-o"]
        stream(500, kind=kind).to_csv(data, index=False)
        fine("train", data, *CLASSIFY, *options, path / kind / "kinds.st")
        if "regress" in tasks:
            fine("train", data, *REGRESS, *options, path / kind / "values.st")
    return path


@pytest.fixture
def models(trained, folder, kind):
    shutil.copytree(trained / kind, folder, dirs_exist_ok=True)
    return folder


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


def lines_of_pipe(n, kind):
    return stream(n, kind=kind).to_csv(index=False).encode().splitlines(keepends=True)


def begin(*arguments, **options):
    return subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, **options)


def wait_for(condition, process):
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "task", "kept"),
    thorough_but(
        ("order-free", CLASSIFY, "--window"),
        of=[
            ("mondrian", CLASSIFY, "--window"),
            ("order-free", CLASSIFY, "--window"),
            ("order-free", REGRESS, "--reservoir"),
        ],
    ),
)
def test_a_killed_and_resumed_run_ends_with_the_same_files(folder, kind, task, kept):
    lines = lines_of_pipe(500, kind)
    forest = [*task, *SMALL, *of(kind), kept, "300"]
    options = [*forest, "--checkpoints", "c", "--every-samples", "100", "--resume"]
    options += ["-o", "m.st", "--curve", "curve.csv"]
    # The pipe stalls after some rows. The first process is killed there, the second interrupted.
    for n_rows, number, code in ((371, signal.SIGKILL, -signal.SIGKILL), (420, signal.SIGINT, 130)):
        process = begin("train", "-", *options, stdin=subprocess.PIPE)
        process.stdin.write(b"".join(lines[: n_rows + 1]))
        process.stdin.write(b"s999,0.1,0.")  # the pipe will end here
        process.stdin.flush()
        n_whole = n_rows // 50
        wait_for(lambda n=n_whole: n_lines(folder / "curve.csv") >= n, process)
        process.send_signal(number)
        begun = time.monotonic()
        _, errors = process.communicate()
        assert process.returncode == code, errors
        assert time.monotonic() - begun < 5  # usually below 1 s; the machine may be busy
    assert "Interrupted after 400 samples. Saved m.st" in errors.decode()
    assert onlineforest.load("m.st").n_samples_seen_ == 400
    result = fine("train", "-", *options, input=b"".join(lines))
    assert "after 400 samples" in result.output
    fine("train", "data.csv", *forest, "-o", "whole.st", "--curve", "whole.csv")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()
    assert (folder / "curve.csv").read_text() == (folder / "whole.csv").read_text()


@pytest.mark.parametrize(("kind", "task"), [("mondrian", CLASSIFY), ("order-free", REGRESS)])
@pytest.mark.parametrize("n_learned", [0, 100])
def test_an_interrupted_run_can_be_resumed(folder, monkeypatch, n_learned, kind, task):
    estimator = FORESTS[kind][task[3]]
    learn = estimator.partial_fit

    def interrupted(forest, X, y, ids=None):
        n_seen = forest.n_samples_seen_ if forest.__sklearn_is_fitted__() else 0
        if n_seen >= n_learned:
            raise KeyboardInterrupt
        return learn(forest, X, y, ids=ids)

    options = [*task, *SMALL, *of(kind), "-o", "m.st", "--resume"]
    monkeypatch.setattr(estimator, "partial_fit", interrupted)
    result = run("train", "data.csv", *options)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert result.exit_code == 130
    saved = "Interrupted after 100 samples. Saved m.st" if n_learned else "nothing saved"
    assert saved in result.output and (folder / "m.st").exists() == bool(n_learned)
    fine("train", "data.csv", *options)
    fine("train", "data.csv", *task, *SMALL, *of(kind), "-o", "whole.st")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()


@each_kind
def test_an_interrupted_model_is_not_replaced_without_resume(folder, monkeypatch, kind):
    estimator = FORESTS[kind]["classify"]
    learn = estimator.partial_fit

    def interrupted(forest, X, y, ids=None):
        if forest.__sklearn_is_fitted__():
            raise KeyboardInterrupt
        return learn(forest, X, y, ids=ids)

    options = ["train", "data.csv", *CLASSIFY, *SMALL, *of(kind), "-o", "m.st"]
    with monkeypatch.context() as patch:
        patch.setattr(estimator, "partial_fit", interrupted)
        assert run(*options).exit_code == 130
    before = (folder / "m.st").read_bytes()
    result = run(*options)
    assert result.exit_code == 2 and "Continue from it with --resume" in result.output
    assert "delete it or name another file" in result.output
    assert (folder / "m.st").read_bytes() == before
    assert "over all 500 samples: accuracy" in fine(*options, "--resume").output
    fine(*options)  # a finished model may be replaced


def test_an_unwritable_output_is_reported_before_data_are_read(models):
    picture = ["-o", "no/p.png"]
    for arguments in (
        ["train", "-", *CLASSIFY, "-o", "no/m"],
        ["train", "-", *CLASSIFY, "-o", "data.csv/m"],
        ["train", "-", *CLASSIFY, "-o", "m", "--curve", "no/c.csv"],
        ["train", "-", *CLASSIFY, "-o", "m", "--checkpoints", "data.csv/c"],
        ["evaluate", "-", *CLASSIFY, "--curve", "no/c.csv"],
        ["evaluate", "-", *CLASSIFY, "--picture", "no/c.png"],
        ["predict", "kinds.st", "-", "-o", "no/out.csv"],
        ["plot", "surface", "kinds.st", "--data", "-", *picture],
        ["plot", "curve", "none.csv", *picture],
    ):
        result = run(*arguments, input=b"")  # reading it would be an error
        words = r"Error: (no|data\.csv)/.*: (No such file or|Not a) directory\n"
        assert result.exit_code == 1 and re.fullmatch(words, result.output), arguments


def test_an_unclosed_quote_is_an_error_even_if_bad_rows_are_skipped(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[300] = lines[300].replace(",", ',"', 1)
    (folder / "open.csv").write_text("\n".join(lines))
    result = run("train", "open.csv", *CLASSIFY, *SMALL, "-o", "m.st", "--skip-bad-rows")
    assert result.exit_code == 1 and "open.csv, line 301: the quote" in result.output
    assert not (folder / "m.st").exists()


@each_kind
def test_interrupted_commands_exit_with_code_130(models, monkeypatch, kind):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FORESTS[kind]["classify"], "predict_proba", interrupted)
    evaluate = ["evaluate", "data.csv", *CLASSIFY, *of(kind)]
    for arguments in (["predict", "kinds.st", "data.csv"], evaluate):
        result = run(*arguments)
        assert result.exit_code == 130 and result.output == "Interrupted.\n"


def test_a_signal_raises_after_the_grace_period():
    with Interrupts() as interrupts:
        interrupts.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
        assert time.monotonic() - begun < 5
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        interrupts.cancel()  # the interrupt is handled: no grace period is left
        time.sleep(0.6)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


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


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "data.csv", "-o", "m"], 2, "'--target': which of these columns? 'id', 'a'"),
        (["train", "data.csv", *CLASSIFY[:4], "--forest", "mondrian", "-o", "m"], 1,
         "text in 'id' (such as 's0', 's1', 's2'), which a Mondrian forest cannot learn. --forest "
         "order-free learns"),
        (["train", "data.csv", *CLASSIFY[:2], "-o", "m"], 2, "option '--task'"),
        (["train", "data.csv", *CLASSIFY], 2, "Missing option '-o'"),
        (["train", "data.csv", "--target", "sort", *CLASSIFY[2:], "-o", "m"], 1, "no column"),
        (["train", "data.csv", "--target", "kin", *CLASSIFY[2:], "-o", "m"], 1, "mean 'kind'?"),
        (["train", "data.csv", "--target", "kind", *REGRESS[2:6], "--drop", "value", "-o", "m"],
         1, "--task classify learns classes"),
        (["train", "none.csv", *CLASSIFY, "-o", "m"], 1, "none.csv: No such file or directory"),
        (["train", ".", *CLASSIFY, "-o", "m"], 1, ".: Is a directory"),
        (["train", "data.csv", *CLASSIFY, *SMALL, "-o", "no/m"], 1, "no/m: No such file"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--every-samples", "5"], 2, "need --check"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--delimiter", "ab"], 2, "one character"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--from", "none"], 1, "none: No such file"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--half-life", "9"], 2, "give --reservoir"),
        (["train", "-", *CLASSIFY, "-o", "m"], 1, "standard input is empty"),
        (["evaluate", "data.csv", *CLASSIFY, "--no-learn"], 2, "name one with --from"),
        (["evaluate", "data.csv", *CLASSIFY, "--batch-size", "500"], 1, "smaller --batch-size"),
        (["predict", "data.csv", "data.csv"], 1, "data.csv is not a model file"),
        (["predict", "kinds.st", "other.csv"], 1, "lacks 2 of the 3 columns"),
        (["predict", "kinds.st", "data.csv", "--intervals", "0.9"], 1, "is for numbers"),
        (["predict", "kinds.st", "data.csv", "--intervals", "90"], 2, "not in the range"),
        (["predict", "values.st", "data.csv", "--probabilities"], 1, "is for classes"),
        (["predict", "kinds.st", "data.csv", "--keep", "zz"], 1, "no column 'zz'"),
        (["predict", "kinds.st", "data.csv", "--novelty"], 1, "an OnlineForestClassifier. `train"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--forest", "oak"], 2, "'order-free', 'mon"),
        (["train", "data.csv", *CLASSIFY, "-o", "m", "--forest", "mondrian", "--from", "kinds.st"],
         2, "--forest is mondrian, but the forest in kinds.st is order-free"),
        (["train", "data.csv", *REGRESS, "-o", "m", "--forest", "mondrian"], 2,
         "--task regress needs --forest order-free: --forest mondrian learns classes only"),
        (["evaluate", "data.csv", *REGRESS, "--forest", "mondrian"], 2, "--forest order-free"),
        (["plot", "tree", "kinds.st", "-o", "p.doc"], 2, "must end in .png, .svg or .pdf"),
        (["plot", "partition", "kinds.st", "-o", "p.png"], 1, "2 features"),
        (["plot", "surface", "kinds.st", "-o", "p.png"], 2, "name data with --data"),
        (["plot", "curve", "data.csv", "-o", "p.png"], 1, "is not a learning curve"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_an_exit_code(models, arguments, code, message):
    (models / "other.csv").write_text("a,kind\n1,red\n")
    files = {path.name for path in models.iterdir()}
    result = run(*arguments)
    assert result.exit_code == code, result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("Error: ") and message in last
    assert code == 2 or result.output.count("\n") == 1
    assert {path.name for path in models.iterdir()} == files


def test_a_traceback_is_shown_on_request(folder, monkeypatch):
    arguments = ["train", "none.csv", *CLASSIFY, "-o", "m"]
    assert isinstance(run(*arguments, "--traceback").exception, FileNotFoundError)
    assert run(*arguments).output == "Error: none.csv: No such file or directory\n"
    monkeypatch.setenv("ONLINEFOREST_TRACEBACK", "1")
    assert isinstance(run(*arguments).exception, FileNotFoundError)


COMMANDS = ["train", "predict", "evaluate", "inspect", "verify", "demo"]
PLOTS = ["partition", "tree", "surface", "novelty", "importances", "curve"]


def run_line(command):
    """Run a command of the help, which may read a pipe or redirect its output."""
    words, given = shlex.split(command), None
    if words[0] == "cat":
        given = Path(words[1]).read_bytes()
        words = words[words.index("|") + 1 :]
    if ">" in words:
        words = words[: words.index(">")]
    assert words[0] == "onlineforest"
    fine(*words[1:], input=given)


@pytest.mark.slow
def test_the_examples_of_the_help_run(folder):
    assert fine("example-data").output.count("Wrote") == 3
    assert run("example-data").exit_code == 1  # existing files are not replaced
    names = [[name] for name in COMMANDS if name != "demo"] + [["plot", name] for name in PLOTS]
    for each in names:
        examples = fine(*each, "--help").output.split("Examples (", 1)[1].split("\n\n")[1:]
        assert examples, each
        for command in examples:
            run_line(command.replace("\\\n", " "))


def test_every_option_has_a_help_text():
    for names in [[name] for name in COMMANDS] + [["plot", name] for name in PLOTS]:
        command = _cli.build_command()
        for name in names:
            command = command.get_command(click.Context(command), name)
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or parameter.help, (
                names,
                parameter.name,
            )
        assert max(map(len, fine(*names, "--help").output.splitlines())) <= 100
