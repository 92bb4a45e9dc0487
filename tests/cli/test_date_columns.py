"""Learn and predict columns of dates and times."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest import OnlineForestClassifier
from support.commands import fine, run

PARTS = ["time (days)", "time (hour)", "time (weekday)", "time (month)"]
TRAIN = ["--target", "kind", "--task", "classify", "--trees", "5"]


def frame_of(n=400, seed=0):
    """Table whose target is told by weekday and hour."""
    rng = np.random.default_rng(seed)
    time = pd.Timestamp("2023-03-01") + pd.to_timedelta(rng.integers(0, 400 * 86400, n), unit="s")
    kind = np.where((time.day_of_week >= 5) & (time.hour >= 9), "open", "closed")
    return pd.DataFrame({"x": rng.normal(size=n), "time": time, "kind": kind})


def parts_of(frame):
    time = frame.time.dt
    days = (frame.time - pd.Timestamp(0)) / pd.Timedelta(days=1)
    hour = time.hour + time.minute / 60 + time.second / 3600
    numbers = [days, hour, time.day_of_week.astype(float), time.month.astype(float)]
    return frame[["x"]].assign(**dict(zip(PARTS, numbers, strict=True)))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = frame_of()
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet")
    rows = frame.assign(time=frame.time.astype(str)).to_dict("records")
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame_of(60, seed=1).to_csv("more.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.jsonl"])
def test_dates_are_learned_as_numbers_and_predicted_by_their_column(name):
    fine("train", name, *TRAIN, "--date", "time", "-o", "m.st")
    forest = onlineforest.load("m.st")
    assert list(forest.feature_names_in_) == ["x", *PARTS]
    twin = OnlineForestClassifier(5, random_state=0)
    twin.fit(parts_of(frame_of()), frame_of().kind.to_numpy(str))
    assert forest.digest_ == twin.digest_
    more = frame_of(60, seed=1)
    out = fine("predict", "m.st", "more.csv", "--keep", "time").output
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["time"] for row in rows] == more.time.astype(str).tolist()
    assert [row["prediction"] for row in rows] == twin.predict(parts_of(more)).tolist()
    assert twin.predict(parts_of(more)).tolist() != ["closed"] * 60
    options = ["--target", "kind", "--from", "m.st", "--json", "-q"]
    facts = json.loads(fine("evaluate", "more.csv", *options, "--no-learn").output)
    assert facts["accuracy"] == (twin.predict(parts_of(more)) == more.kind).mean()


def test_a_run_with_dates_continues_and_resumes():
    options = [*TRAIN, "--date", "time", "--resume"]
    fine("train", "data.csv", *options, "-o", "m.st")
    assert "Nothing more to learn" in fine("train", "data.csv", *options, "-o", "m.st").output
    for extra in ([], ["--date", "time"]):
        fine("train", "more.csv", *TRAIN, "--from", "m.st", *extra, "-o", "more.st")
        assert onlineforest.load("more.st").n_samples_seen_ == 460
    both = pd.concat([frame_of(), frame_of(60, seed=1)])
    twin = OnlineForestClassifier(5, random_state=0).fit(parts_of(both), both.kind.to_numpy(str))
    assert onlineforest.load("more.st").digest_ == twin.digest_


def test_a_model_finds_columns_of_numbers_that_were_made_already(folder):
    fine("train", "data.csv", *TRAIN, "--date", "time", "-o", "m.st")
    parts_of(frame_of(60, seed=1)).to_csv("parts.csv", index=False)
    expected = fine("predict", "m.st", "more.csv").output
    assert fine("predict", "m.st", "parts.csv").output == expected
    (folder / "odd.csv").write_text("x,date\n1,2024-01-31\n")
    result = run("predict", "m.st", "odd.csv")
    assert result.exit_code == 1 and "lacks 4 of the 5 columns" in result.output


def test_a_missing_date_is_missing_or_bad(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[5] = "0.5,,open"
    (folder / "gaps.csv").write_text("\n".join(lines))
    fine("train", "gaps.csv", *TRAIN, "--date", "time", "-o", "m.st")
    assert onlineforest.load("m.st").n_samples_stored_ == 400
    options = [*TRAIN, "--date", "time", "--forest", "mondrian", "-o", "n.st"]
    result = run("train", "gaps.csv", *options)
    assert result.exit_code == 1
    assert "gaps.csv, line 6: the value of column 'time' is missing" in result.output
    fine("train", "data.csv", *options)


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [
        ("data.csv", [], 1, "dates or times in 'time'"),
        ("data.csv", ["--date", "tim"], 1, "no column 'tim'. Its columns are 'x', 'time', 'kind'."),
        (
            "data.csv",
            ["--date", "kind"],
            1,
            "'kind' has two roles: only one of --target, --id, --d",
        ),
        ("data.csv", ["--date", "time", "--drop", "time"], 1, "'time' has two roles"),
        ("data.csv", ["--date", "x", "--date", "time"], 1, "data.csv, line 2: column 'x' holds"),
        ("data.csv", ["--date", "time", "--categorical", "time (hour)"], 2, "which --date makes"),
        ("named.csv", ["--date", "time"], 1, "has a column 'time (hour)', which --date 'time' wou"),
    ],
)
def test_wrong_dates_are_errors(folder, name, options, code, message):
    frame_of().assign(**{"time (hour)": 1}).to_csv("named.csv", index=False)
    result = run("train", name, *TRAIN, *options, "-o", "m.st")
    assert result.exit_code == code and message in " ".join(result.output.split())
    assert not (folder / "m.st").exists()


def test_a_model_cannot_get_dates_later():
    fine("train", "data.csv", *TRAIN, "--drop", "time", "-o", "m.st")
    result = run("train", "data.csv", *TRAIN, "--date", "time", "--from", "m.st", "-o", "n.st")
    assert result.exit_code == 2
    assert "--date names 'time', but the model in m.st was learned without" in result.output
