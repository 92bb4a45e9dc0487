"""Run the commands on tables with categorical columns."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import onlineforest
from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)
from onlineforest._cli import plot as _cli_plot
from onlineforest._cli.columns import RequestedTypes, feature_specs
from onlineforest._cli.commands import OptionError
from onlineforest._tables import csv_blocks as _csv_blocks
from onlineforest._tables.columns import ColumnType, TableError
from onlineforest._tables.csv_tables import CsvTable
from support.commands import fine, run

FEATURES = ["size", "city", "shop", "is_new"]
CLASSIFY = ["--target", "kind", "--task", "classify", "--categorical", "shop"]
SMALL = ["--trees", "5", "--batch-size", "50"]
CITIES = ["Rome", "nan", "None", "1", 'say "hi"', "two\nlines", "x" * 5000, "\U0001f333", None]


def stream(n=300, seed=0):
    """Data frame with a number, a column of text, one of codes and one of bools."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "city": np.array(CITIES, dtype=object)[rng.integers(len(CITIES), size=n)],
            "shop": rng.integers(6, size=n),
            "is_new": rng.random(n) < 0.5,
        }
    )
    is_good = frame.city.isin(CITIES[:3]) | (frame["shop"] == 4) | (frame["size"] > 1)
    return frame.assign(kind=np.where(is_good, "good", "bad"))


def cities(frame):
    return [each if isinstance(each, str) else None for each in frame.city]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream().to_csv("data.csv", index=False)
    stream().to_parquet("data.parquet")
    return tmp_path


def of_frame(frame, **options):
    forest = OnlineForestClassifier(
        5, random_state=0, categorical_features=["city", "shop", "is_new"], **options
    )
    return forest.fit(frame[FEATURES], frame.kind.to_numpy(str))


def test_csv_parquet_and_the_estimator_give_the_same_forest(folder):
    digests = []
    for name in ("data.csv", "data.parquet"):
        for batch_size in (50, 1):
            options = ["--trees", 5, "--batch-size", batch_size, "-q"]
            assert fine("train", name, *CLASSIFY, *options, "-o", "m.st").output == ""
            forest = onlineforest.load("m.st")
            digests.append(forest.digest_)
            assert list(forest.feature_names_in_) == FEATURES
            assert forest.levels_ == {
                "city": [*sorted(each for each in CITIES if each), None],
                "shop": list(range(6)),
                "is_new": [0, 1],
            }
    assert set(digests) == {of_frame(stream()).digest_}
    # Without codes, the default of the estimator finds the same categorical columns.
    fine("train", "data.csv", *CLASSIFY[:4], *SMALL, "-o", "m.st")
    by_type = OnlineForestClassifier(5, random_state=0)
    by_type.fit(stream()[FEATURES], stream().kind.to_numpy(str))
    assert onlineforest.load("m.st").digest_ == by_type.digest_


def test_single_rows_have_the_metrics_of_batches_of_one(folder, monkeypatch):
    options = ["evaluate", "data.csv", *CLASSIFY, "--trees", 3, "--batch-size", 1, "--json", "-q"]
    facts = json.loads(fine(*options).output)
    with monkeypatch.context() as patch:
        from onlineforest._cli.training import Training

        patch.setattr(Training, "_single_row", lambda *_: None)
        slow = json.loads(fine(*options).output)
    assert {**facts, "seconds": 0} == {**slow, "seconds": 0}


@pytest.mark.parametrize("learned", ["data.csv", "data.parquet"])
def test_predictions_do_not_depend_on_the_format(folder, learned):
    fine("train", learned, *CLASSIFY, *SMALL, "-o", "m.st")
    more = stream(40, seed=1)
    more.loc[:9, "city"], more.loc[:9, "shop"] = "Oslo", 99  # new levels
    more.loc[10:19, ["city"]] = None
    more.to_csv("more.csv", index=False)
    more.to_parquet("more.parquet")
    expected = of_frame(stream()).predict_proba(more[FEATURES])
    for name in ("more.csv", "more.parquet"):
        result = fine("predict", "m.st", name, "--probabilities", "--keep", "city")
        rows = list(csv.DictReader(io.StringIO(result.output)))
        assert [row["city"] or None for row in rows] == cities(more)
        found = [[float(row[f"probability_{label}"]) for label in ("bad", "good")] for row in rows]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        options = ["--target", "kind", "--from", "m.st", "--no-learn", "--json", "-q"]
        facts = json.loads(fine("evaluate", name, *options).output)
        right = np.array(["bad", "good"])[expected.argmax(axis=1)] == more.kind
        assert facts["accuracy"] == pytest.approx(right.mean())
    assert set(onlineforest.load("m.st").levels_["shop"]) == set(range(6))


def test_a_column_of_the_model_keeps_its_levels_in_every_file(folder):
    frame = stream()
    fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "m.st")
    expected = of_frame(frame).predict(frame[FEATURES])
    like_pandas = frame.assign(shop=frame["shop"].astype(float), is_new=frame.is_new.astype(int))
    like_pandas.to_csv("floats.csv", index=False)
    like_pandas.to_parquet("floats.parquet")
    frame.assign(shop=frame["shop"].astype(str)).to_parquet("text.parquet")
    for name in ("floats.csv", "floats.parquet", "text.parquet"):
        out = fine("predict", "m.st", name).output.splitlines()[1:]
        assert out == expected.tolist(), name
    # "1" that was learned as text stays text, though the file holds nothing else.
    frame.assign(city="1").to_csv("ones.csv", index=False)
    frame.assign(city=1).to_parquet("ones.parquet")
    expected = of_frame(frame).predict(frame.assign(city="1")[FEATURES])
    assert set(expected) == {"bad", "good"}
    for name in ("ones.csv", "ones.parquet"):
        assert fine("predict", "m.st", name).output.splitlines()[1:] == expected.tolist()


def test_a_resumed_run_gives_the_file_of_one_run(folder):
    lines = (folder / "data.csv").read_text().splitlines(keepends=True)
    cut = next(i for i in range(150, 300) if lines[i].count('"') == lines[i - 1].count('"') == 0)
    (folder / "log.csv").write_text("".join(lines[:cut]))
    options = [*CLASSIFY, *SMALL, "-o", "m.st", "--checkpoints", "c", "--resume"]
    fine("train", "log.csv", *options)
    n_before = onlineforest.load("m.st").n_samples_seen_
    (folder / "log.csv").write_text("".join(lines))
    fine("train", "log.csv", *CLASSIFY[:4], *options[-5:])  # the model knows its columns
    fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "whole.st")
    m, whole = onlineforest.load("m.st"), onlineforest.load("whole.st")
    assert n_before < m.n_samples_seen_ == whole.n_samples_seen_ == 300
    assert m.digest_ == whole.digest_ and m.levels_ == whole.levels_
    fine("train", "data.parquet", "--target", "kind", "--from", "m.st", "-o", "more.st")
    assert onlineforest.load("more.st").levels_ == whole.levels_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--categorical", "size"], "--categorical names 'size', but the model has learned num"),
        (["--numeric", "city"], "--numeric names 'city', but the model has learned categories"),
        (["--categorical", "city", "--numeric", "size"], None),
    ],
)
def test_the_columns_of_a_model_cannot_be_changed(folder, options, message):
    fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "m.st")
    before = (folder / "m.st").read_bytes()
    result = run("train", "data.csv", "--target", "kind", *options, "--from", "m.st", "-o", "m.st")
    assert result.exit_code == (0 if message is None else 2)
    assert message is None or message in result.output
    assert ((folder / "m.st").read_bytes() == before) == (message is not None)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--categorical", "shp"], 1, "no column 'shp'. Its columns are 'size', 'city', 'shop'"),
        (["--numeric", "citi"], 1, "has no column 'citi'. Its columns are 'size', 'city'"),
        (["--numeric", "shop"], 2, "--categorical and --numeric both name 'shop'."),
        (["--categorical", "kind"], 2, "--categorical names 'kind', which is not a feature"),
        (["--numeric", "city", "--drop", "city"], 2, "--numeric names 'city', which is not a"),
        (["--forest", "mondrian"], 2, "--categorical names 'shop', but a Mondrian forest learns"),
        (["--numeric", "city"], 1, "line 3: column 'city' holds"),
    ],
)
def test_wrong_options_are_an_error_and_write_nothing(folder, options, code, message):
    files = {path.name for path in folder.iterdir()}
    result = run("train", "data.csv", *CLASSIFY, *SMALL, *options, "-o", "m.st")
    assert result.exit_code == code and message in result.output, result.output
    assert {path.name for path in folder.iterdir()} == files


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_mondrian_forests_refuse_text_and_learn_bools_as_numbers(folder, name):
    options = [*CLASSIFY[:4], *SMALL, "--forest", "mondrian", "-o", "m.st"]
    result = run("train", name, *options)
    assert result.exit_code == 1 and not (folder / "m.st").exists()
    assert re.search(
        r"text in 'city' \(such as '.*\), which a Mondrian forest cannot learn\. --forest "
        r"order-free learns .* --drop COLUMN, .* --id COLUMN",
        result.output,
    )
    fine("train", name, *options, "--drop", "city")
    frame = stream()
    forest = MondrianForestClassifier(5, random_state=0)
    for start in range(0, 300, 50):
        X = frame[["size", "shop", "is_new"]][start : start + 50].astype(float)
        forest.partial_fit(X, frame.kind[start : start + 50].to_numpy(str))
    found = onlineforest.load("m.st")
    assert np.array_equal(found.predict_proba(X), forest.predict_proba(X))
    # A model of numbers does not read text.
    frame.assign(size="small").to_csv("text.csv", index=False)
    result = run("predict", "m.st", "text.csv")
    words = "text in 'size' (such as 'small'), but the model has learned numbers there."
    assert result.exit_code == 1 and words in result.output


def test_bools_and_text_can_be_learned_as_numbers(folder):
    frame = stream().assign(size=["unknown"] * 150 + ["0.5"] * 150)
    frame.to_csv("odd.csv", index=False)
    options = [*CLASSIFY, *SMALL, "--numeric", "is_new", "--numeric", "size", "-o", "m.st"]
    result = run("train", "odd.csv", *options)
    assert result.exit_code == 1
    assert "line 2: column 'size' holds 'unknown', which is not a number." in result.output
    fine("train", "odd.csv", *options, "--skip-bad-rows")
    forest = onlineforest.load("m.st")
    assert list(forest.levels_) == ["city", "shop"] and forest.n_samples_seen_ == 150
    fine("train", "odd.csv", *CLASSIFY, *SMALL, "-o", "m.st")
    assert onlineforest.load("m.st").levels_["size"] == ["0.5", "unknown"]


@pytest.mark.parametrize("kind", ["order-free", "mondrian"])
def test_numbers_that_begin_with_text_are_learned_and_learned_further(folder, kind):
    frame = stream().assign(size=["unknown"] * 150 + ["0.5"] * 150).drop(columns="city")
    frame.to_csv("odd.csv", index=False)
    options = ["odd.csv", "--target", "kind", "--numeric", "size", "--skip-bad-rows", "-o", "m.st"]
    fine("train", *options, "--task", "classify", "--forest", kind, *SMALL)
    fine("train", *options, "--from", "m.st")
    assert onlineforest.load("m.st").n_samples_seen_ == 300
    result = run("train", *options[:3], "--from", "m.st", "-o", "n.st")
    words = "text in 'size' (such as 'unknown', '0.5'), but the model has learned numbers there."
    assert result.exit_code == 1 and words in result.output


@pytest.mark.parametrize("kind", ["order-free", "mondrian"])
def test_dates_are_refused_unless_they_are_categories(folder, kind):
    days = pd.to_datetime(["2020-01-02", "2021-03-04"] * 150)
    frame = pd.DataFrame({"day": days, "size": stream()["size"], "kind": stream().kind})
    frame.to_csv("days.csv", index=False)
    frame.to_parquet("days.parquet")
    options = [*CLASSIFY[:4], *SMALL, "--forest", kind, "-o", "m.st"]
    digests = set()
    for name in ("days.csv", "days.parquet"):
        result = run("train", name, *options)
        assert result.exit_code == 1 and "dates or times in 'day'" in result.output
        assert "the day of the week and the hour" in result.output and "--drop" in result.output
        assert ("--categorical COLUMN" in result.output) == (kind == "order-free")
        assert run("train", name, *options, "--numeric", "day").exit_code == 1
        assert not (folder / "m.st").exists()
    if kind == "order-free":
        frame.assign(day=days.date).to_parquet("days.parquet")
        for name in ("days.csv", "days.parquet"):
            fine("train", name, *options[:-2], "--categorical", "day", "-o", f"{name}.st")
            forest = onlineforest.load(f"{name}.st")
            digests.add(forest.digest_)
            assert forest.levels_ == {"day": ["2020-01-02", "2021-03-04"]}
        assert len(digests) == 1


def test_columns_that_are_neither_are_refused(folder):
    table = pa.table({"list": [[1]] * 3, "size": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]})
    parquet.write_table(table, "lists.parquet")
    for options in ([], ["--categorical", "list"], ["--numeric", "list"]):
        result = run("train", "lists.parquet", *CLASSIFY[:4], *options, "-o", "m.st")
        assert result.exit_code == 1 and not (folder / "m.st").exists()
        assert "values that are neither numbers nor text in 'list'" in result.output


@pytest.mark.parametrize("name", ["names.csv", "names.parquet"])
def test_columns_with_nearly_distinct_values_give_a_warning(folder, name):
    frame = stream()
    frame.insert(0, "person", [f"p{i}" for i in range(300)])
    frame.insert(0, "place", [f"p{i % 60}" for i in range(300)])
    (frame.to_csv if name.endswith("csv") else frame.to_parquet)(name, index=False)
    options = [*CLASSIFY, *SMALL, "-o", "m.st"]
    output = fine("train", name, *options).output
    assert output.count("Warning") == 1 and output.startswith(
        "Warning: nearly all values differ in 'person', from which a forest learns little. Leave "
        "such columns out with --drop COLUMN; `train` can name the samples by one of them with "
        "--id COLUMN.\n"
    )
    assert "Warning" in fine("evaluate", name, *options[:-2]).output
    for more in (["-q"], ["--drop", "person"], ["--id", "person"], ["--from", "m.st"]):
        assert "Warning" not in fine("train", name, *options[:-2], *more, "-o", "n.st").output
    frame[:99].to_csv("few.csv", index=False)  # too few values for a warning
    assert "Warning" not in fine("train", "few.csv", *options).output


def test_text_after_numbers_is_an_error_that_names_its_place(folder, monkeypatch):
    monkeypatch.setattr(_csv_blocks, "BLOCK_BYTES", 1 << 10)
    lines = ["a,b,kind", *(f"{i},{i % 7},{'xy'[i % 2]}" for i in range(3000))]
    lines[2001] = "2000,B7,x"
    (folder / "late.csv").write_text("\n".join(lines))
    options = [*CLASSIFY[:4], *SMALL, "-o", "m.st"]
    result = run("train", "late.csv", *options)
    assert result.exit_code == 1 and result.output == (
        "Error: late.csv, line 2,002: column 'b' holds 'B7', which is not a number; if its values "
        "are categories, give --categorical 'b'. (--skip-bad-rows skips such rows.)\n"
    )
    result = run("train", "late.csv", *options, "--categorical", "b")
    assert result.exit_code == 1 and result.output == (
        "Error: late.csv, line 2,002: column 'b' holds 'B7', but its categories are whole numbers "
        "of at most 18 digits, as in the first rows; with such a row among these, all would be "
        "text. (--skip-bad-rows skips such rows.)\n"
    )
    lines[1] = "0,A7,x"  # text among the first rows: all of them are text
    (folder / "late.csv").write_text("\n".join(lines))
    fine("train", "late.csv", *options, "--categorical", "b")
    levels = onlineforest.load("m.st").levels_["b"]
    assert levels == [*"0123456", "A7", "B7"]


def cars(n=300):
    """Data frame with columns of numbers and text, the text not in the first row."""
    rng = np.random.default_rng(0)
    persons = np.array(["2", "4", "more"])[np.r_[0, 1, 2, rng.integers(3, size=n - 3)]]
    doors = np.array(["2", "3", "4", "5more"])[np.r_[[0] * 99, 3, rng.integers(4, size=n - 100)]]
    kind = np.where((persons == "more") ^ (rng.random(n) < 0.1), "good", "bad")
    return pd.DataFrame({"persons": persons, "doors": doors, "kind": kind})


MIXED = (
    "Warning: the first 100 rows have both numbers and text (such as 'more') in 'persons', "
    "'doors', learned as categories. If they are numbers, give --numeric COLUMN: rows with text "
    "are bad then."
)


def test_a_column_with_text_among_its_first_100_rows_is_categorical(folder, monkeypatch):
    frame = cars()
    frame.to_csv("cars.csv", index=False)
    frame.to_parquet("cars.parquet")
    expected = OnlineForestClassifier(5, random_state=0)
    expected.fit(frame[["persons", "doors"]], frame.kind.to_numpy(str))
    options = [*CLASSIFY[:4], "--trees", 5, "-o", "m.st"]
    for block in (64, 1 << 17):  # a pipe may bring few rows at a time
        monkeypatch.setattr(_csv_blocks, "BLOCK_BYTES", block)
        for batch_size in (1, 7, 1000):
            output = fine("train", "cars.csv", *options, "--batch-size", batch_size).output
            assert output.splitlines()[0] == MIXED
            forest = onlineforest.load("m.st")
            assert forest.digest_ == expected.digest_
            assert forest.levels_["doors"] == ["2", "3", "4", "5more"]
    output = fine("train", "cars.parquet", *options).output
    assert "Warning" not in output and onlineforest.load("m.st").digest_ == expected.digest_
    predicted = [fine("predict", "m.st", f"cars.{end}").output for end in ("csv", "parquet")]
    assert predicted[0] == predicted[1]
    frame[frame.persons != "more"].to_csv("few.csv", index=False)  # nothing but numbers there
    few = fine("predict", "m.st", "few.csv").output.splitlines()
    assert len(few) == 1 + (frame.persons != "more").sum()
    metrics = [
        json.loads(fine("evaluate", name, *options[:-2], "--json", "-q").output)["accuracy"]
        for name in ("cars.csv", "cars.parquet")
    ]
    assert metrics[0] == metrics[1]


def test_a_run_with_mixed_columns_is_resumed_as_it_was_started(folder):
    cars().to_csv("cars.csv", index=False)
    cars()[:120].to_csv("log.csv", index=False)
    options = [*CLASSIFY[:4], *SMALL, "-o", "m.st", "--checkpoints", "c", "--resume"]
    assert MIXED in fine("train", "log.csv", *options).output
    cars().to_csv("log.csv", index=False)
    assert "Warning" not in fine("train", "log.csv", *options).output
    fine("train", "cars.csv", *CLASSIFY[:4], *SMALL, "-o", "whole.st")
    assert onlineforest.load("m.st").digest_ == onlineforest.load("whole.st").digest_


def test_mixed_columns_are_numbers_if_users_say_so_and_in_mondrian_forests(folder):
    cars().to_csv("cars.csv", index=False)
    numeric = ["--numeric", "persons", "--numeric", "doors"]
    for more in (numeric, ["--forest", "mondrian"]):
        options = ["train", "cars.csv", *CLASSIFY[:4], *SMALL, *more, "-o", "m.st"]
        result = run(*options)
        assert result.exit_code == 1 and "Warning" not in result.output
        assert "line 4: column 'persons' holds 'more', which is not a number" in result.output
        fine(*options, "--skip-bad-rows")
        forest = onlineforest.load("m.st")
        n_good = (~cars().isin(["more", "5more"]).any(axis=1)).sum()
        assert forest.n_samples_seen_ == n_good and not getattr(forest, "levels_", {})


def test_text_after_the_first_100_rows_is_a_bad_row(folder):
    frame = cars()
    frame["doors"] = ["2"] * 100 + ["5more"] + ["3"] * 199
    frame.to_csv("cars.csv", index=False)
    options = ["train", "cars.csv", *CLASSIFY[:4], *SMALL, "-o", "m.st"]
    result = run(*options)
    words = "line 102: column 'doors' holds '5more', which is not a number; if its values are cat"
    assert result.exit_code == 1 and words in result.output
    fine(*options, "--categorical", "doors")
    assert onlineforest.load("m.st").levels_["doors"] == ["2", "3", "5more"]


def test_columns_that_begin_without_values_are_numbers_unless_said_otherwise(folder, monkeypatch):
    monkeypatch.setattr(_csv_blocks, "BLOCK_BYTES", 1 << 10)
    text = ["a,b,kind", *(f"{i},{'' if i < 2000 else 'red'},{'xy'[i % 2]}" for i in range(2500))]
    (folder / "text.csv").write_text("\n".join(text))
    (folder / "numbers.csv").write_text("\n".join(text).replace("red", "7"))
    options = [*CLASSIFY[:4], *SMALL, "-o", "m.st"]
    result = run("train", "text.csv", *options)
    warning, error = result.output.splitlines()
    assert warning == (
        "Warning: the first rows have no values in 'b': later ones must be numbers. If they are "
        "categories, give --categorical COLUMN."
    )
    assert "line 2,002: column 'b' holds 'red', which is not a number; if its values" in error
    output = fine("train", "text.csv", *options, "--categorical", "b").output
    assert "Warning" not in output and onlineforest.load("m.st").levels_ == {"b": ["red", None]}
    assert "Warning" not in fine("train", "numbers.csv", *options, "--numeric", "b").output
    assert onlineforest.load("m.st").levels_ == {}


def test_true_false_and_something_else_are_text(folder):
    lines = [
        "flag,kind",
        *(f"{['true', 'false', 'unknown'][i % 3]},{'xy'[i % 2]}" for i in range(99)),
    ]
    (folder / "flags.csv").write_text("\n".join(lines))
    fine("train", "flags.csv", *CLASSIFY[:4], *SMALL, "-o", "m.st")
    assert onlineforest.load("m.st").levels_ == {"flag": ["false", "true", "unknown"]}


def test_every_plot_command_reads_categorical_columns(folder, monkeypatch):
    fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "m.st", "--curve", "c.csv")
    for arguments in (["tree", "m.st"], ["importances", "m.st"], ["curve", "c.csv"]):
        for name in ("p.png", "p.svg"):
            assert fine("plot", *arguments, "-o", name).output == f"Saved {name}\n"
    stream().assign(width=1.5, noise=np.arange(300.0)).to_csv("wide.csv", index=False)
    fine("train", "wide.csv", *CLASSIFY, *SMALL, "-o", "wide.st")
    drawn, real = [], _cli_plot.pictures.decision_surface

    def draw(forest, X, y, features, **options):
        drawn.append(
            (forest.predict(X), X, y, [str(forest.feature_names_in_[i]) for i in features])
        )
        return real(forest, X, y, features=features, **options)

    monkeypatch.setattr(_cli_plot.pictures, "decision_surface", draw)
    points = ["--data", "wide.csv", "--target", "kind", "--rows", "300"]
    for given in (points, [*points[:2], *points[4:]]):
        result = fine("plot", "surface", "wide.st", *given, "-o", "p.png", "--resolution", 20)
        assert result.output == "Saved p.png\n"
    (predicted, X, y, features), (_, plain, _, _) = drawn
    assert X.equals(plain) and X.column("city").to_pylist() == cities(stream())
    assert (predicted == y).mean() > 0.9 and features == ["size", "noise"]


def test_pictures_that_need_numbers_say_so(folder):
    fine("train", "data.csv", *CLASSIFY, *SMALL, "-o", "m.st")
    stream().assign(width=1.5).to_csv("wide.csv", index=False)
    fine("train", "wide.csv", *CLASSIFY, *SMALL, "-o", "wide.st")
    two_numbers = "A plane needs 2 numeric features. This forest has 1: these are categorical: "
    for arguments, code, message in [
        (["surface", "m.st"], 1, f"{two_numbers}'city', 'shop', 'is_new'."),
        (["surface", "m.st", "--data", "data.csv"], 1, f"{two_numbers}'city', 'shop', 'is_new'."),
        (
            ["surface", "wide.st", "--features", "size", "city"],
            1,
            "Feature 'city' is categorical and cannot be an axis: its levels have no order. Name "
            "two of the 2 numeric features.",
        ),
        (["surface", "wide.st"], 2, "categorical ones at their most frequent level."),
        (
            ["partition", "wide.st"],
            1,
            "A partition can be drawn for 2 numeric features. This forest has 5, of which these "
            "are categorical: 'city', 'shop', 'is_new'.",
        ),
        (["novelty", "wide.st", "--data", "wide.csv"], 1, "boxes of a Mondrian forest"),
    ]:
        result = run("plot", *arguments, "-o", "p.png")
        assert result.exit_code == code, result.output
        assert message in " ".join(result.output.split())
        assert not (folder / "p.png").exists()


def test_a_model_without_feature_names_reads_its_columns_in_order(folder):
    frame = stream()
    rows = frame[FEATURES].to_numpy(dtype=object)
    forest = OnlineForestRegressor(3, random_state=0, categorical_features=[1, 2])
    forest.fit(rows, frame["size"]).save("plain.st")
    frame[FEATURES].to_csv("x.csv", index=False)
    found = pd.read_csv(io.StringIO(fine("predict", "plain.st", "x.csv").output))
    np.testing.assert_allclose(found.prediction, forest.predict(rows), rtol=1e-12)
    frame[FEATURES][:0].to_csv("none.csv", index=False)
    assert fine("predict", "plain.st", "none.csv").output == "prediction\n"


def table_of(text):
    return CsvTable(io.BytesIO(text.encode()), "a.csv", None, lambda: None, lambda: None)


@pytest.mark.parametrize(
    ("levels", "cell", "type"),
    [
        ([1, 2], "x", ColumnType.CODE),
        (["1", "2"], "1", ColumnType.LEVEL),
        (["1", None], "1", ColumnType.LEVEL),
        ([None], "1", ColumnType.CODE),
        ([None], "x", ColumnType.LEVEL),
        ([None], "", ColumnType.LEVEL),
        ([True, None], "0.5", ColumnType.CODE),
    ],
)
def test_the_levels_of_a_forest_say_how_a_column_is_read(levels, cell, type):
    forest = OnlineForestRegressor(2, categorical_features=[0])
    forest.fit(np.array(levels, dtype=object)[:, np.newaxis], np.arange(len(levels)))
    specs = feature_specs(table_of(f"a,b\n{cell},1\n"), ["a"], forest)
    assert specs["a"].type is type


def test_levels_of_both_types_cannot_be_read_from_a_table():
    forest = OnlineForestRegressor(2, categorical_features=[0])
    forest.fit(np.array([[1], ["1"]], dtype=object), [0, 1])
    with pytest.raises(TableError, match="levels of 'a' in the model are both text and whole"):
        feature_specs(table_of("a\n1\n"), ["a"], forest)
    with pytest.raises(OptionError, match="both name 'a'"):
        feature_specs(table_of("a\n1\n"), ["a"], forest, RequestedTypes(("a",), ("a",)))
