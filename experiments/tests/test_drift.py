"""The streams of the experiment on drift drift as described; its recipe forgets in time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

from experiments import drift
from experiments.drift import Forest, NoChange, TwoMemories, Watch, evaluate
from experiments.league.streams import generate

DOCUMENT = (ROOT / "docs/drift.md").read_text()


def losses(*parts, seed=0):
    """Losses 0 and 1, in segments given by a share of ones and a length."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(n) < share for share, n in parts]).astype(float).tolist()


def kept(stream, **options):
    """The samples, counted from 1, after which a watch forgets, and how many it keeps."""
    watch = Watch(**options)
    said = [watch.n_to_keep(loss) for loss in stream]
    return {i: n for i, n in enumerate(said, start=1) if n is not None}


@pytest.mark.parametrize("seed", range(5))
def test_a_watch_keeps_the_samples_since_the_loss_rose(seed):
    stream = losses((0.1, 2000), (0.5, 160), seed=seed)
    found, wider = kept(stream), kept(stream, since_warning=False)
    assert len(found) >= 1 and min(found) > 2000
    # The detectors look at every 32nd loss, so a few samples from before may be kept.
    assert all(1 <= n <= i - 2000 + 32 for i, n in found.items())
    assert found.keys() == wider.keys()
    assert all(wider[i] > n for i, n in found.items())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "parts",
    [[(0.2, 5000)], [(0.5, 2000), (0.1, 2000)], [(0.9, 300), (0.5, 300), (0.1, 300)]],
)
def test_a_watch_keeps_all_while_the_loss_is_steady_or_falls(parts, seed):
    assert kept(losses(*parts, seed=seed)) == {}


def test_falling_losses_are_detected_and_ignored():
    watch, n_noticed = Watch(), 0
    for loss in losses((0.5, 2000), (0.1, 2000)):
        assert watch.n_to_keep(loss) is None
        n_noticed += watch.alarm.drift_detected
    assert n_noticed > 0
    assert watch.warned == 0


def test_the_recipe_shrinks_after_an_abrupt_change_and_only_then():
    for kind, n_shrunk in (("abrupt", 2), ("steady", 0)):
        X, y = generate(kind, 3000, seed=0)
        watched, plain = Forest(10, 0, watch=Watch()), Forest(10, 0)
        scores, scores_of_plain = evaluate(watched, X, y), evaluate(plain, X, y)
        assert scores.n_shrunk == n_shrunk and scores_of_plain.n_shrunk is None
        assert plain.forest.n_samples_stored_ == 3000
        if kind == "abrupt":
            assert watched.forest.n_samples_stored_ <= 1000 + 32
            assert scores.accuracy > scores_of_plain.accuracy + 0.05
        else:
            assert watched.forest.n_samples_stored_ == 3000
            assert scores.accuracy == scores_of_plain.accuracy
            assert scores.log_loss == scores_of_plain.log_loss


class Script:
    """Returns given predictions, and records its calls."""

    n_shrunk = 7

    def __init__(self, *said):
        self.said, self.asked = list(said), []

    def rows(self, X):
        return X.tolist()

    def predict(self, row):
        self.asked.append(("predict", row))
        return self.said[sum(what == "predict" for what, *_ in self.asked) - 1]

    def learn(self, row, label):
        self.asked.append(("learn", row, label))


def test_scores_equal_those_computed_by_hand():
    script = Script({}, {0: 2.0, 1: 6.0}, {0: 1.0}, {0: 0.5, 1: 0.5}, {0: 0.0}, {2: 0.9, 1: 1e-9})
    y = np.array([0, 1, 1, 0, 0, 1])
    scores = evaluate(script, np.arange(6), y)
    assert scores.accuracy == pytest.approx(2 / 6)  # the second; the fourth: the first of equals
    expected = [1e-6, 0.75, 1e-6, 0.5, 1e-6, 1e-6]
    assert scores.log_loss == pytest.approx(-np.log(expected).mean())
    assert scores.n_shrunk == 7
    assert scores.seconds > 0


def test_each_sample_is_predicted_before_it_is_learned(monkeypatch):
    monkeypatch.setattr(Script, "predict", lambda self, row: self.asked.append((row,)) or {})
    script = Script()
    evaluate(script, np.array([5, 6]), np.array([1, 0]))
    assert script.asked == [(5,), ("learn", 5, 1), (6,), ("learn", 6, 0)]


def test_no_change_equals_a_computation_by_hand():
    model, said = NoChange(), []
    for label in (3, 3, 5, 4, 4):
        said.append(model.predict(None))
        model.learn(None, label)
    assert said[0] == {}
    assert said[1] == {3: 1 / 2}
    assert said[2] == {3: 2 / 3}  # right once of once, and one of two to begin with
    assert said[3] == pytest.approx({5: 2 / 4, 3: 2 / 4})
    assert said[4] == pytest.approx({4: 2 / 5, 3: 0.3, 5: 0.3})


def test_of_two_memories_the_one_that_was_right_weighs_more():
    model = TwoMemories(1, 0)
    long, short = Script(*[{0: 0.9, 1: 0.1}] * 20), Script(*[{0: 0.2, 1: 0.8}] * 20)
    model.forests = (long, short)
    assert model.predict(None)[1] == pytest.approx((0.1 + 0.8) / 2)
    model.learn("row", 1)
    assert long.asked[-1] == short.asked[-1] == ("learn", "row", 1)
    assert model.predict(None)[1] == pytest.approx((0.1 * 0.1 + 0.8 * 0.8) / (0.1 + 0.8))
    model.learn(None, 1)
    ratio = 8**1.98  # the label before counts a little less
    assert model.predict(None)[1] == pytest.approx((0.1 + 0.8 * ratio) / (1 + ratio))
    for _ in range(10):
        model.learn(None, 0)
        p = model.predict(None)[0]
    assert p > 0.85


def table_rows(text):
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def test_a_quick_run_prints_the_whole_table(monkeypatch, capsys):
    monkeypatch.setattr(drift, "N_QUICK", 60)
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    assert drift.main(["--quick"]) == 0
    streams, methods = list(drift.OWN), list(drift.METHODS)
    header, *rows = table_rows(capsys.readouterr().out)
    n = len(streams) * len(methods)
    single, summaries = rows[:n], rows[n:]
    assert [row[:3] for row in single] == [[s, "60", m] for s in streams for m in methods]
    assert all(len(row) == len(header) for row in single)
    assert all(0 <= float(row[3]) <= 1 and float(row[4]) > 0 for row in single)
    of_recipes = [row[6] for row in single if "recipe" in row[2] or "memories" in row[2]]
    assert all(count.isdigit() for count in of_recipes)
    assert [row[0] for row in summaries] == ["method", *methods] * 3
    assert summaries[0][1:] == streams
    cells = {(row[0], row[2]): row for row in single}
    for table, (column, digits) in enumerate(((3, 3), (4, 3))):
        for row in summaries[table * (len(methods) + 1) :][1 : len(methods) + 1]:
            for stream, cell in zip(streams, row[1:]):
                found = float(cells[stream, row[0]][column])
                assert float(cell) == pytest.approx(found, abs=0.6 * 10**-digits)


@pytest.mark.thorough
def test_the_command_runs_without_a_data_folder():
    environment = {k: v for k, v in os.environ.items() if k != "ONLINEFOREST_DATA"}
    command = [sys.executable, "-m", "experiments.drift", "--quick", "--streams", "abrupt"]
    done = subprocess.run(
        [*command, "--methods", "all", "recipe"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, plain, recipe, *_ = table_rows(done.stdout)
    assert [plain[2], recipe[2]] == ["all", "recipe"]
    assert float(recipe[3]) > float(plain[3])


def test_the_error_names_a_missing_data_folder(monkeypatch, capsys):
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    with pytest.raises(SystemExit) as stop:
        drift.main(["--streams", "elec2", "--methods", "no change"])
    assert stop.value.code == 2
    assert "ONLINEFOREST_DATA" in capsys.readouterr().err


def test_without_river_the_error_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "river", None)
    assert drift.main(["--quick"]) == 2
    assert "pip install 'onlineforest[experiments]'" in capsys.readouterr().err


def test_the_examples_of_the_document_run(capsys):
    names = {}
    for code in re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL):
        exec(compile(code, "drift.md", "exec"), names)
    assert names["forest"].n_samples_seen_ == 4000
    assert 1900 < names["forest"].n_samples_stored_ < 2033  # the samples since the change


def test_the_document_shows_all_methods_and_streams():
    accuracy, log_loss, seconds = re.findall(r"(?:^\|.*\n)+", DOCUMENT, re.MULTILINE)[-3:]
    for table in (accuracy, log_loss, seconds):
        header, *rows = table_rows(table)
        assert header == ["method", *drift.STREAMS]
        assert [row[0] for row in rows] == list(drift.METHODS)
        assert all(len(row) == len(header) for row in rows)
