"""The league: scores, budget, files of results and report. No test needs Java or a network."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from experiments.league import __main__ as league
from experiments.league import moa, models, run
from experiments.league.lengths import LEAST, Cost, chosen_lengths
from experiments.league.models import MODELS, Learner, Model, Task
from experiments.league.ranks import critical_difference, groups, mean_ranks
from experiments.league.results import Results
from experiments.league.run import Archive, Clock, OutOfTimeError, carry_out, plan
from experiments.league.streams import STREAMS
from experiments.league.trial import (
    ACCURACY,
    KAPPA,
    LOG_LOSS,
    RMSE,
    SECONDS,
    kappa_temporal,
    result_of,
    scores_of_labels,
    scores_of_numbers,
)

ROOT = Path(__file__).resolve().parents[2]


class Stub(Learner):
    """Gives the label before a probability of 3/4; fails if it is told to."""

    package = "numpy"
    calls: ClassVar = []

    def __init__(self, error=None):
        self.error, self.before = error, None
        Stub.calls = []

    def rows(self, X):
        return X[:, 0].tolist()

    def answer(self, row, target):
        self.calls.append(("predict", row))
        if self.error:
            raise ValueError(self.error)
        right = target == self.before
        return None if self.before is None else (0.75 if right else 0.25, right)

    def learn(self, row, target):
        self.calls.append(("learn", row))
        self.before = target


@pytest.fixture
def stubs(monkeypatch, tmp_path):
    """Three models that are quick, and trials in this process; returns the tasks carried out."""
    players = {
        "ours": Model("a stub", lambda _: Stub()),
        "other": Model("another stub", lambda _: Stub()),
        "broken": Model("it fails", lambda _: Stub("no such thing")),
        "of MOA": Model("in Java", lambda _: Stub(), of_moa=True),
    }
    for name in list(MODELS):
        monkeypatch.delitem(MODELS, name)
    for name, model in players.items():
        monkeypatch.setitem(MODELS, name, model)
    monkeypatch.setattr(league, "PACKAGES", ("matplotlib", "rich", "river"))
    carried_out = []

    def here(task, _seconds):
        carried_out.append(task)
        try:
            return result_of(task) | {"elapsed": 1.0}
        except ValueError as error:
            return {"task": asdict(task), "error": str(error), "elapsed": 1.0}

    monkeypatch.setattr(run, "in_a_process", here)
    return carried_out


def task_of(model="ours", stream="abrupt", seed=0, n_samples=100):
    return Task(model, stream, seed, n_samples)


def played(tmp_path, *options):
    """Run the command; return the report."""
    assert league.main(["--out", str(tmp_path), *options]) == 0
    return (tmp_path / "league.html").read_text(encoding="utf-8")


def rows_of(html, title):
    """The cells of the table under a heading."""
    part = html[html.index(f">{title}</h") :]
    table = part[part.index("<table>") : part.index("</table>")]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[1:]]
    return [[re.sub(r"<.*?>", "", text) for text in row] for row in rows]


def list_of(html, title):
    part = html[html.index(f">{title}</h") :]
    return re.findall(r"<li>(.*?)</li>", part[: part.index("</ul>")])


def test_scores_of_labels_equal_those_by_hand():
    y = np.array([0, 0, 1, 1, 1, 0])
    answers = np.array([[np.nan] * 2, [0.75, 1], [0.2, 0], [0.5, 1], [0.9, 1], [1e-9, 0]])
    found = scores_of_labels(answers, y)
    assert found[ACCURACY] == pytest.approx(3 / 6)
    # The label before is right three times of six.
    assert found[KAPPA] == pytest.approx(0.0)
    expected = [1 / 2, 0.75, 0.2, 0.5, 0.9, 1e-6]
    assert found[LOG_LOSS] == pytest.approx(-np.log(expected).mean())


def test_kappa_temporal_equals_that_by_hand():
    y = np.array([1, 1, 1, 0, 1])  # the label before is right twice of five
    assert kappa_temporal(0.8, y) == pytest.approx((0.8 - 0.4) / (1 - 0.4))
    assert kappa_temporal(0.2, y) == pytest.approx(-1 / 3)
    assert kappa_temporal(1.0, y) == pytest.approx(1.0)


def test_scores_of_numbers_equal_those_by_hand():
    answers = np.array([[np.nan, np.nan], [3.0, 0.0], [1.0, 0.0]])
    found = scores_of_numbers(answers, np.array([2.0, 1.0, 1.0]))
    assert found == {RMSE: pytest.approx(np.sqrt((4 + 4 + 0) / 3))}


def test_each_sample_is_predicted_before_it_is_learned():
    X = np.array([[5.0], [6.0]])
    done = Stub().go(X, np.array([1, 1]))
    assert Stub.calls == [("predict", 5.0), ("learn", 5.0), ("predict", 6.0), ("learn", 6.0)]
    assert np.isnan(done.answers[0]).all() and done.answers[1].tolist() == [0.75, 1.0]
    assert done.seconds >= 0 and set(done.versions) == {"numpy"}


def test_ranks_equal_those_by_hand():
    losses = [[0.1, 0.2, 0.3], [0.2, 0.2, 0.1], [0.5, np.nan, 0.4]]
    #         1    2    3      2.5  2.5  1      2    3       1
    assert mean_ranks(losses) == pytest.approx([5.5 / 3, 7.5 / 3, 5 / 3])


def test_the_critical_difference_is_that_of_demsar():
    # Demšar (2006), section 3.2.3: q = 2.569 for four models, on 14 data sets; his table 5(a).
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(10, 1) == pytest.approx(3.164 * np.sqrt(110 / 6), abs=0.01)


def test_groups_hold_the_models_that_do_not_differ():
    assert groups([1.0, 2.0, 2.5, 4.0, 6.0], 1.6) == [(0, 2), (2, 3)]
    assert groups([1.0, 3.0], 1.0) == []
    assert groups([1.0, 1.5, 2.0], 5.0) == [(0, 2)]


def test_streams_are_shortened_to_a_common_limit():
    longest = {"cheap": 10_000, "dear": 10_000, "dearest": 50_000}
    costs = {"cheap": Cost(1.0, 0.001), "dear": Cost(1.0, 0.01), "dearest": Cost(1.0, 0.02)}
    found = chosen_lengths(longest, costs, 100.0)
    total = sum(costs[name].seconds(n) for name, n in found.items())
    assert total == pytest.approx(100.0, abs=0.1) and total <= 100.0
    assert found["cheap"] == 10_000
    limits = [costs[name].seconds(found[name]) for name in ("dear", "dearest")]
    assert limits == pytest.approx([44.5, 44.5], abs=0.1)  # the cheap stream leaves 89 s for both
    assert chosen_lengths(longest, costs, 2_000.0) == longest
    assert chosen_lengths(longest, costs, 1.0) == dict.fromkeys(longest, LEAST)


def test_a_second_run_computes_nothing(stubs, tmp_path):
    options = ("--streams", "abrupt", "sea", "--models", "ours", "other", "--samples", "50")
    first = played(tmp_path, *options, "--seeds", "2")
    # All of the first seed come first.
    assert [(task.seed, task.stream) for task in stubs[::2]] == [
        (0, "abrupt"), (0, "sea"), (1, "abrupt"), (1, "sea"),
    ]  # fmt: skip
    again = played(tmp_path, *options, "--seeds", "2")
    assert len(stubs) == 8
    tables = first[first.index("<h2>Labels") : first.index("<h2>Machine")]
    assert tables in again
    played(tmp_path, *options, "--seeds", "3")
    assert len(stubs) == 12
    played(tmp_path, *options[:-1], "60", "--seeds", "1")  # longer streams
    assert len(stubs) == 16


def test_an_interrupt_leaves_what_is_done(stubs, tmp_path, monkeypatch, capsys):
    options = ("--streams", "abrupt", "sea", "--models", "ours", "other", "--seeds", "1")
    options += ("--samples", "50")
    done = run.in_a_process

    def interrupted(task, seconds):
        if len(stubs) == 3:
            raise KeyboardInterrupt
        return done(task, seconds)

    with monkeypatch.context() as patch:
        patch.setattr(run, "in_a_process", interrupted)
        html = played(tmp_path, *options)
    assert "Interrupted" in capsys.readouterr().err
    assert [row[0] for row in rows_of(html, "Labels: accuracy")] == ["stream", "abrupt"]
    assert list_of(html, "Not run, or failed") == ["sea: 1 of 2 trials were not run"]
    html = played(tmp_path, *options)
    assert len(stubs) == 4
    assert [row[0] for row in rows_of(html, "Labels: accuracy")[1:]] == ["abrupt", "sea"]


def test_a_model_that_fails_is_a_line_and_the_last_rank(stubs, tmp_path):
    options = ("--streams", "abrupt", "--models", "ours", "broken", "other", "--seeds", "1")
    html = played(tmp_path, *options, "--samples", "50")
    assert list_of(html, "Not run, or failed") == ["broken on abrupt: no such thing"]
    header, row = rows_of(html, "Labels: accuracy")
    assert header == ["stream", "ours", "broken", "other"]
    assert row[2] == "-" and 0 < float(row[1]) < 1
    ranks = rows_of(html, "accuracy")[1:]
    assert ranks == [["ours", "1.50"], ["other", "1.50"], ["broken", "3.00"]]
    assert html.count("<svg") == 2 and "critical difference" in html
    played(tmp_path, *options, "--samples", "50")
    assert [task.model for task in stubs[3:]] == ["broken"]  # it is tried again


def test_the_report_says_where_ours_loses(stubs):
    scores = {"ours": (0.8, 0.7), "other": (0.9, 0.6), "third": (0.6, 0.65)}
    tasks = [task_of(model, name) for name in ("abrupt", "sea") for model in scores]
    found = [
        {
            "task": asdict(task),
            "scores": {ACCURACY: scores[task.model][task.stream == "sea"], LOG_LOSS: 0.5},
        }
        for task in tasks
    ]
    accuracy, log_loss = Results(tasks, found).defeats()
    assert accuracy == "ours, accuracy: behind on 1 of 2: abrupt (0.800, other 0.900)."
    assert log_loss == "ours, log loss: behind on 0 of 2."


def test_a_table_has_means_of_complete_seeds_and_the_best():
    tasks = [task_of(model, seed=seed) for seed in range(3) for model in ("ours", "other")]
    values = [0.5, 0.9, 0.7, 0.6, 0.1]  # the third seed lacks a model
    found = [{"task": asdict(task), "scores": {LOG_LOSS: x}} for task, x in zip(tasks, values)]
    table = Results(tasks, found).table(LOG_LOSS)
    assert [table.text(0, model) for model in (0, 1)] == ["0.600 ± 0.100", "0.750 ± 0.150"]
    assert table.best(0) == [0]


def test_a_budget_shortens_streams_and_the_report_says_so(stubs, tmp_path, monkeypatch):
    def slow(task, _seconds):
        stubs.append(task)
        result = result_of(task) | {"elapsed": 1.0 + 0.01 * task.n_samples}
        result["scores"][SECONDS] = 0.01 * task.n_samples
        return result

    monkeypatch.setattr(run, "in_a_process", slow)
    options = ("--streams", "abrupt", "phishing", "--models", "ours", "--seeds", "1")
    html = played(tmp_path, *options, "--hours", str(60 / 3600))
    # Prefixes of 300 take 4 s each. Of the 52 s that are left, phishing needs 1 + 1.5 · 12.5 s.
    prefixes, (abrupt, phishing) = stubs[:2], stubs[2:]
    assert [task.n_samples for task in prefixes] == [300, 300]
    assert phishing.n_samples == 1250
    assert abrupt.n_samples == int((52 - 1 - 18.75 - 1) / 0.015)
    rows = {row[0]: row[2:] for row in rows_of(html, "Streams")[1:]}
    assert rows["abrupt"] == [f"{abrupt.n_samples:,}", f"{abrupt.n_samples:,} of 9,000"]
    assert rows["phishing"] == ["1,250", "no"]
    assert "0.01 hours, a budget of 0.0166667 hours" in html
    played(tmp_path, *options, "--hours", str(60 / 3600))
    assert len(stubs) == 4


def test_no_trial_begins_when_the_budget_is_used_up(stubs, tmp_path, monkeypatch):
    def hurried(task, seconds):
        if seconds <= 0:
            raise OutOfTimeError
        return done(task, seconds)

    done = run.in_a_process
    monkeypatch.setattr(run, "in_a_process", hurried)
    tasks = [task_of(seed=seed) for seed in range(5)]
    clock = Clock(2.5)
    found = list(carry_out(tasks, Archive(tmp_path), clock, "league"))
    assert len(found) == 3 and clock.spent == 3.0
    assert Results(tasks, found).failures() == ["abrupt: 2 of 5 trials were not run"]
    assert plan(tasks, tmp_path / "prefixes", Clock(None)) == {"abrupt": 100}


def test_without_time_a_process_does_not_begin():
    with pytest.raises(OutOfTimeError):
        run.in_a_process(task_of(), 0.0)


@pytest.mark.slow
def test_a_trial_runs_in_a_process_and_stops_at_its_limit():
    result = run.in_a_process(task_of(n_samples=40), None)
    assert Task(**result["task"]) == task_of(n_samples=40) and result["n_samples"] == 40
    assert 0 < result["scores"][ACCURACY] < 1 and result["elapsed"] > result["scores"][SECONDS]
    failed = run.in_a_process(task_of("River SRP", "plane"), None)
    assert "River SRP has no model for the stream plane" in failed["error"]
    with pytest.raises(OutOfTimeError):
        run.in_a_process(task_of(n_samples=9000), 0.2)


def test_all_models_without_java_answer(monkeypatch):
    for name, model in MODELS.items():
        for numbers, stream in ((False, "sea"), (True, "plane")):
            if model.make(numbers) is None or model.of_moa:
                continue
            scores = result_of(task_of(name, stream, n_samples=80))["scores"]
            assert np.isfinite(scores[RMSE if numbers else LOG_LOSS]), name


def test_models_take_text_and_gaps(tmp_path, monkeypatch):
    n = 120
    text = np.array(["UA", "B6", None], dtype=object)[np.arange(n) % 3]
    table = pd.DataFrame({"carrier": text, "hour": np.arange(n) % 24})
    y = (np.arange(n) % 3 == 0).astype(np.int64)
    for name in ("ours", "River ARF", "River AMF", "LightGBM"):
        done = MODELS[name].labels(task_of(name)).go(table, y)
        assert np.nansum(done.answers[:, 1]) > 0.3 * n, name
    codes, n_levels = models.codes_of(table)
    assert n_levels == [2, 0]
    assert codes[:2].tolist() == [[0, 0], [1, 1]] and np.isnan(codes[2, 0])


def test_boosting_is_trained_when_samples_have_doubled(monkeypatch):
    boosting, trained = models.Boosting(0), []
    monkeypatch.setattr(boosting, "train", lambda: trained.append(len(boosting.learned)))
    for _ in range(2600):
        boosting.learn(np.zeros(1), 0)
    assert trained == [32, 64, 128, 256, 500, 1000, 1500, 2000, 2000]


def test_adaptive_memory_plays_where_a_version_has_it(monkeypatch):
    class WithMemory:
        def __init__(self, n_estimators=100, *, memory=None, random_state=None):
            self.memory = memory

    class Without:
        def __init__(self, n_estimators=100, *, random_state=None):
            pass

    monkeypatch.setattr(models, "OnlineForestClassifier", Without)
    monkeypatch.setattr(models, "OnlineForestRegressor", Without)
    assert models.adaptive() == {}
    monkeypatch.setattr(models, "OnlineForestClassifier", WithMemory)
    (model,) = models.adaptive().values()
    assert model.labels(task_of()).forest.memory == "adaptive" and model.numbers is None


def test_without_moa_the_report_says_why(stubs, tmp_path, monkeypatch):
    options = ("--streams", "abrupt", "--models", "ours", "of MOA", "--seeds", "1")
    options += ("--samples", "50")
    (line,) = list_of(played(tmp_path, *options), "Not run, or failed")
    assert line.startswith("of MOA: ") and "--capymoa" in line
    monkeypatch.setattr(moa.shutil, "which", lambda _: None)
    html = played(tmp_path, *options, "--capymoa", str(tmp_path / "environment"))
    (line,) = list_of(html, "Not run, or failed")
    assert line.startswith("of MOA: needs Java")
    assert rows_of(html, "Labels: accuracy")[0] == ["stream", "ours"]
    assert not (tmp_path / "environment").exists()


def test_the_environment_of_moa_is_made_once(tmp_path, monkeypatch):
    commands, works = [], []

    def told(command):
        commands.append(command)
        return None if works else "no network"

    monkeypatch.setattr(moa.shutil, "which", lambda _: "/usr/bin/java")
    monkeypatch.setattr(moa, "problem_of", told)
    with pytest.raises(moa.AbsentError, match="could not be installed: no network"):
        moa.prepare(str(tmp_path))
    assert commands[0][1:3] == ["-m", "venv"]
    works.append(True)
    commands.clear()
    moa.prepare(str(tmp_path))
    assert [command[-1] for command in commands[:1]] == [str(tmp_path)]
    assert {"install", "--no-deps", *moa.PACKAGES} <= set(commands[1])
    python = moa.python_of(tmp_path)
    python.parent.mkdir()
    python.touch()
    commands.clear()
    moa.prepare(str(tmp_path))
    assert [command[-1] for command in commands] == [moa.PROBE]


def test_a_command_that_fails_says_its_last_line():
    assert moa.problem_of([sys.executable, "-c", "pass"]) is None
    assert moa.problem_of([sys.executable, "-c", "raise ValueError('why')"]) == "ValueError: why"
    assert "missing" in moa.problem_of(["/missing/python"])


def test_moa_gets_codes_and_gives_answers(monkeypatch):
    told = {}

    def said(self, task):
        with np.load(task["file"]) as data:
            told.update(task, X=data["X"], y=data["y"])
        answers = [[float("nan")] * 2, [0.25, 0.0]]
        return {"answers": answers, "seconds": 2.0, "n_bytes": 3, "versions": {"java": "17"}}

    monkeypatch.setattr(moa.Moa, "said", said)
    done = moa.Moa("AdaptiveRandomForest", 10, 5, "folder").go(np.eye(2), np.array([7, 3]))
    assert told["y"].tolist() == [1, 0] and told["n_classes"] == 2 and told["n_levels"] == [0, 0]
    assert (told["name"], told["n_trees"], told["seed"]) == ("AdaptiveRandomForest", 10, 5)
    assert done.answers[1].tolist() == [0.25, 0.0] and done.seconds == 2.0


def test_votes_of_moa_become_probabilities(monkeypatch):
    monkeypatch.setitem(sys.modules, "jpype", type(sys)("jpype"))
    monkeypatch.delitem(sys.modules, "experiments.league._moa_child", raising=False)
    from experiments.league._moa_child import answer_of

    assert answer_of([1.0, 3.0], 1) == (0.75, 1.0)
    assert answer_of([1.0, 3.0], 0) == (0.25, 0.0)
    assert answer_of([2.0], 1) == (0.0, 0.0)  # a label that it has not seen
    assert np.isnan(answer_of([], 0)).all() and np.isnan(answer_of([0.0, 0.0], 0)).all()


def test_the_page_names_all_options_models_and_streams(capsys):
    page = (ROOT / "docs/league.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        league.main(["--help"])
    options = set(re.findall(r"--\w+", capsys.readouterr().out)) - {"--help"}
    assert set(re.findall(r"`(--\w+)", page)) == options
    assert all(f"`{name}`" in page for name in STREAMS)
    assert all(f"`{name}`" in page for name, model in MODELS.items() if not model.standard)


def test_without_an_extra_the_error_names_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "river", None)
    assert league.main(["--quick"]) == 2
    assert "pip install 'onlineforest[league]'" in capsys.readouterr().err


def test_a_quick_league_needs_no_data_folder(stubs, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    html = played(tmp_path, "--quick", "--models", "ours", "other")
    assert {task.stream for task in stubs} == {"abrupt", "sea"}  # the stubs know no numbers
    for measure in ("accuracy", KAPPA, LOG_LOSS, SECONDS):
        assert [row[0] for row in rows_of(html, f"Labels: {measure}")[1:]] == ["abrupt", "sea"]
    assert f"numpy {np.__version__}" in html and "seeds 0:" in html
    assert "src=" not in html and "href=" not in html.replace("xlink:href", "")
    printed = capsys.readouterr().out
    assert "| stream | ours | other |" in printed and str(tmp_path / "league.html") in printed
