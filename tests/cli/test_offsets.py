"""Run the commands on a table whose column of times float32 does not keep apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import onlineforest
from onlineforest import OnlineForestClassifier
from support.commands import fine, run

START = 1_700_000_000
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({"a=b": RNG.normal(size=300), "time": START + RNG.integers(0, 3600, 300)})
KIND = np.where(FRAME["time"] // 600 % 2, "odd", "even")
TRAIN = ["train", "data.csv", "--target", "kind", "--trees", 5]
NEW = [*TRAIN, "--task", "classify"]
OFFSET = ["--offset", f"time={START}"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.assign(kind=KIND).to_csv("data.csv", index=False)


def of_frame(**offsets):
    return OnlineForestClassifier(5, random_state=0, offsets=offsets).fit(FRAME, KIND)


@pytest.mark.parametrize("batch_size", [1, 50])
def test_offsets_are_learned_and_kept_in_the_model(batch_size):
    options = [*NEW, "--batch-size", batch_size, *OFFSET, "--offset", "a=b=0.5"]
    assert "Warning" not in fine(*options, "-o", "m.safetensors").output
    forest = onlineforest.load("m.safetensors")
    assert forest.offsets == {"time": START, "a=b": 0.5}
    assert forest.digest_ == of_frame(**{"time": START, "a=b": 0.5}).digest_
    for size in (1, 100):
        predicted = fine("predict", "m.safetensors", "data.csv", "--batch-size", size).output
        assert predicted.split()[1:] == forest.predict(FRAME).tolist()


def test_a_column_that_needs_an_offset_is_told_once():
    output = fine(*NEW, "--batch-size", "50", "-o", "m.safetensors").output
    assert output.count("Warning: Rows are stored as float32") == 1
    assert "in column 'time'" in output and "--offset COLUMN=NUMBER" in output
    assert "Warning" not in fine(*NEW, "-q", "-o", "quiet.safetensors").output
    output = fine(*NEW, "--forest", "mondrian", "-o", "mondrian.safetensors").output
    assert output.count("Warning: Rows are stored as float32") == 1
    assert "Warning" in fine("evaluate", *NEW[1:]).output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--offset", "time"], "'time' is not COLUMN=NUMBER"),
        (["--offset", "time=soon"], "'time=soon' is not COLUMN=NUMBER"),
        (["--offset", "time=nan"], "'time=nan' is not COLUMN=NUMBER"),
        (["--offset", "=3"], "'=3' is not COLUMN=NUMBER"),
        (["--offset", "time=1", "--offset", "time=2"], "'time' has two offsets"),
        (["--offset", "tme=1"], "offsets names the feature 'tme', but the features are 'a=b', 'ti"),
        (["--offset", "kind=1"], "offsets names the feature 'kind'"),
        ([*OFFSET, "--categorical", "time"], "'time', which is categorical"),
        ([*OFFSET, "--forest", "mondrian"], "--offset is for order-free forests"),
    ],
)
def test_wrong_offsets_are_errors(options, message, tmp_path):
    result = run(*NEW, *options, "-o", "m.safetensors")
    assert result.exit_code in (1, 2) and message in result.output
    assert not (tmp_path / "m.safetensors").exists()


def test_a_model_keeps_its_offsets():
    fine(*NEW, *OFFSET, "-o", "m.safetensors")
    more = [*TRAIN, "--from", "m.safetensors", "-o", "more.safetensors"]
    fine(*more)
    fine(*more, *OFFSET)
    assert onlineforest.load("more.safetensors").offsets == {"time": START}
    result = run(*more, "--offset", "time=5")
    assert result.exit_code == 2 and "--offset is {'time': 5.0}, but the forest" in result.output
    of_array = OnlineForestClassifier(5, random_state=0, offsets=[0, START]).fit(FRAME, KIND)
    of_array.save("array.safetensors")
    fine(*TRAIN, "--from", "array.safetensors", "-o", "more.safetensors")
    result = run(*TRAIN, "--from", "array.safetensors", "--offset", "time=5", "-o", "b.safetensors")
    assert result.exit_code == 2 and "cannot be changed" in result.output
