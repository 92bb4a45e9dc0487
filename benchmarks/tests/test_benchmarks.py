from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

from benchmarks.__main__ import main
from benchmarks.__main__ import measure as measure_case
from benchmarks.cases import full_cases, order_free_cases, quick_cases
from benchmarks.data import (
    DIGITS,
    NOISE,
    REGRESSION,
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    load,
    load_stream,
)
from benchmarks.forgetting import soak
from benchmarks.formats import duration, number
from benchmarks.measurements import calibration_of_stream, longest_call, memory, one_row
from benchmarks.ours import order_free
from benchmarks.peers import MOA_ARF
from benchmarks.report import COLUMNS, Report, as_json, as_markdown, bar_ends, save_plot
from benchmarks.results import NotMeasuredError, Row
from benchmarks.settings import Case, Settings
from benchmarks.tasks import (
    built_mini_batches,
    learn_alone,
    mini_batches,
    predicted_mini_batches,
    row_by_row_moa,
)
from benchmarks.timing import Pairs, alternate
from onlineforest import MondrianForestClassifier


def report_of(*rows, complete=True):
    return Report({"cores": 2, "river": None}, {"quick": False}, list(rows), complete)


def cells_of(markdown):
    """The cells of each row of the table, by column."""
    lines = [line.split("|")[1:-1] for line in markdown.splitlines() if line.startswith("|")]
    return [dict(zip(COLUMNS, map(str.strip, line))) for line in lines[2:]]


def test_runs_alternate_and_the_figure_is_the_median_of_pairs(monkeypatch):
    calls, now = [], [0.0]
    seconds = {"ours": [1.0, 9.0, 2.0], "peer": [2.0, 3.0, 8.0]}
    monkeypatch.setattr("benchmarks.timing.time.perf_counter", lambda: now[0])

    def side(name):
        def prepare(number):
            calls.append(f"prepare {name}")
            now[0] += 100.0  # preparing is not timed

            def job():
                calls.append(name)
                now[0] += seconds[name][number]

            return job

        return prepare

    pairs = alternate(side("ours"), side("peer"), repeats=3)
    assert calls == ["prepare ours", "ours", "prepare peer", "peer"] * 3
    assert pairs == Pairs(seconds["ours"], seconds["peer"])
    assert pairs.ratios() == [0.5, 3.0, 0.25]
    assert pairs.times_faster() == [2.0, 1 / 3, 4.0]
    assert pairs.differences() == [-1.0, 6.0, -6.0]
    assert pairs.medians() == (2.0, 3.0)
    # The ratio of the medians would be 2/3.
    assert Row("fit", "letter", values=pairs.ratios()).median == 0.5


@pytest.mark.parametrize(
    ("better", "value", "met", "sign"),
    [
        ("lower", 0.2, True, "≤"),
        ("lower", 0.25, True, "≤"),
        ("lower", 0.3, False, "≤"),
        ("higher", 0.2, False, "≥"),
        ("higher", 0.25, True, "≥"),
        ("higher", 0.3, True, "≥"),
    ],
)
def test_a_target_is_met_below_or_above_as_its_direction_says(better, value, met, sign):
    row = Row("fit", "letter", values=[value], better=better, target=0.25)
    assert row.met is met
    assert (bar_ends(row)[0] <= 1) is met
    (cells,) = cells_of(as_markdown(report_of(row)))
    assert cells["met"] == ("yes" if met else "NO")
    assert cells["target"] == f"{sign} 0.25"


def test_the_summary_names_missed_targets():
    met, missed = (Row("fit", data, values=[0.3], target=t) for data, t in (("a", 1), ("b", 0.1)))
    text = as_markdown(report_of(met, missed, Row("fit", "c", values=[0.3])))
    assert "1 of 2 targets met. Missed: fit (b)." in text
    assert "Interrupted" not in text
    assert "Interrupted" in as_markdown(report_of(met, complete=False))


def test_markdown_and_json_agree():
    rows = [
        Row("fit", "letter", "1 s", "ERT-k 4 s", [0.2, 0.25, 0.4], target=0.2),
        Row("one sample", "letter", values=[60.0], unit="×", better="higher", target=50.0),
        Row("memory", "usps", values=[850.4], unit="bytes"),
        Row("one sample", "usps", note="not measured: needs river"),
    ]
    report = report_of(*rows)
    table, content = cells_of(as_markdown(report)), json.loads(as_json(report))
    assert [cells["met"] for cells in table] == ["NO", "yes", "-", "-"]
    assert [row["met"] for row in content["rows"]] == [False, True, None, None]
    figures = [cells["ratio (median)"] for cells in table]
    assert figures == ["0.25", "60×", "850 bytes", "not measured: needs river"]
    assert [row["median"] for row in content["rows"]] == [0.25, 60.0, 850.4, None]
    assert [cells["spread"] for cells in table] == ["0.2 – 0.4", "1 run", "1 run", "-"]
    assert (content["rows"][0]["low"], content["rows"][0]["high"]) == (0.2, 0.4)
    for cells, row in zip(table, content["rows"]):
        assert (cells["case"], cells["data"]) == (row["case"], row["data"])


def test_figures_below_zero_can_be_drawn(tmp_path):
    path = tmp_path / "plot.png"
    save_plot(report_of(Row("overhead", "letter", values=[-1.0, 0.0], target=5.0)), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_numbers_are_formatted_with_three_digits():
    assert [number(v) for v in (0.01234, 1.5, 15000.4)] == ["0.0123", "1.5", "15,000"]
    assert [duration(v) for v in (2.0, 0.0021, 0.0000034)] == ["2 s", "2.1 ms", "3.4 µs"]


def test_targets_apply_only_to_their_data():
    bound = Case("fit", "letter", lambda case, settings: [], target=0.25)
    anywhere = Case("overhead", "letter", lambda case, settings: [], target=5.0, any_data=True)
    full, quick = Settings(repeats=5), Settings(repeats=5, quick=True)
    assert (bound.row(full).target, bound.row(quick).target) == (0.25, None)
    assert (anywhere.row(full).target, anywhere.row(quick).target) == (5.0, 5.0)
    assert bound.row(Settings(repeats=5, scale=0.5)).target is None


def run_quickly(folder, *more):
    """Run the command at the smallest sizes; what it saved as JSON."""
    scale = ["--quick", "--scale", "0.02", "--repeats", "1", "--out", str(folder)]
    assert main([*scale, *more]) == 0
    return json.loads((folder / "benchmarks.json").read_text(encoding="utf-8"))


@pytest.fixture
def in_this_process(monkeypatch):
    """Memory is measured in this process; a new one would import everything first."""

    def answer(module, task):
        return json.loads(json.dumps(import_module(module).measure(task)))

    for user in ("memory", "forgetting"):
        monkeypatch.setattr(f"benchmarks.{user}.answer_of", answer)


@pytest.fixture
def mondrian_cases(monkeypatch):
    """The names of the cases that make a Mondrian forest."""
    current, names = "", set()

    def noting(case, settings):
        nonlocal current
        current = case.name
        return measure_case(case, settings)

    def noted(*arguments, **options):
        names.add(current)
        return MondrianForestClassifier(*arguments, **options)

    monkeypatch.setattr("benchmarks.__main__.measure", noting)
    for user in ("ours", "_soak_child"):
        monkeypatch.setattr(f"benchmarks.{user}.MondrianForestClassifier", noted)
    return names


def test_the_command_measures_every_case(tmp_path, capsys, in_this_process, mondrian_cases):
    content = run_quickly(tmp_path)
    output = capsys.readouterr()
    names = {f"benchmarks.{ending}" for ending in ("md", "json", "png")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert output.out == (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert content["complete"]
    has_river = find_spec("river") is not None
    for case in quick_cases():
        assert f"{case.name}, {case.data} … " in output.err
        rows = [
            row
            for row in content["rows"]
            if row["case"].startswith(case.name) and row["data"].startswith(case.data)
        ]
        assert rows, case.name
        for row in rows:
            assert bool(row["values"]) is (has_river or "River" not in row["case"])
    mondrian_cases.discard("")  # the warm-up
    assert mondrian_cases == {
        case.name
        for case in quick_cases()
        if case.name.startswith("Mondrian: ")
        if has_river or "River" not in case.name
    }


def test_memory_is_measured_in_a_process_of_its_own():
    case = Case("memory", DIGITS, memory("fit", beside_rows=True))
    first, *more = case.measure(case, Settings(repeats=1, quick=True, scale=0.02))
    assert first.case == case.name and len(first.values) == 1
    assert first.details["model"] > 0
    assert [row.case for row in more] in ([], ["memory, peak / resident"])


def test_rows_of_river_name_the_missing_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    content = run_quickly(tmp_path, "--only", "River", "--only", "batch stream")
    names = [row["case"] for row in content["rows"]]
    samples, batches = (
        [f"{way} / River {peer}" for peer in ("AMF", "ARF")]
        for way in ("one sample", "batch stream")
    )
    assert names == [
        *samples,
        *batches,
        *(case.name for case in quick_cases() if "model of River" in case.name),
        *(f"Mondrian: {name}" for name in (*samples, *batches)),
    ]
    for row in content["rows"]:
        assert not row["values"]
        assert row["note"] == "not measured: needs river (pip install 'onlineforest[bench]')"


class Recorder:
    """A model that notes what it is asked."""

    def __init__(self):
        self.calls = []

    def predict_proba(self, X):
        self.calls.append(("predict", len(X)))

    def partial_fit(self, X, y, classes=None):
        self.calls.append(("learn", len(X), classes is not None))


@pytest.mark.parametrize(
    ("task", "calls"),
    [
        (mini_batches, [("learn", 10, True), ("learn", 10, False)]),
        (predicted_mini_batches, [("learn", 10, True), ("predict", 10), ("learn", 10, False)]),
        (built_mini_batches, [("learn", 10, True), ("learn", 10, False), ("predict", 20)]),
    ],
)
def test_mini_batches_are_predicted_before_they_are_learned_or_all_at_the_end(task, calls):
    model = Recorder()
    job = task(model, load(SYNTHETIC, None).head(20), 2)
    assert model.calls == []
    job()
    assert model.calls == calls


def test_the_longest_call_is_the_longest_that_no_other_run_shortens(monkeypatch):
    now, runs = [0.0], []
    monkeypatch.setattr("benchmarks.measurements.time.perf_counter", lambda: now[0])

    class Forest:
        def __init__(self, *_):
            self.n_learned = 1
            runs.append(self)

        def partial_fit(self, X, y, classes):
            assert len(X) == 1

        def predict_proba_one(self, row):
            now[0] += 0.25

        def learn_one(self, row, label):
            self.n_learned += 1
            now[0] += 1.0 + (self.n_learned == 7)
            now[0] += 100.0 * (self.n_learned == 10 + len(runs))  # a pause of the machine

    monkeypatch.setattr("benchmarks.measurements.order_free", Forest)
    settings = Settings(repeats=2, scale=0.0002)
    [row] = longest_call(Case("longest call", SYNTHETIC, longest_call), settings)
    assert [run.n_learned for run in runs] == [20, 20]
    assert row.values == [2000.0] and row.unit == "ms"
    assert row.ours == "predict 250 ms (row 2), learn 2 s (row 7)"


def test_memory_beside_rows_leaves_out_four_bytes_per_feature(monkeypatch):
    data = load(SYNTHETIC, None)
    stored = data.X.nbytes
    found = {"resident": stored + 3000 * 100 * 50, "peak": None, "model": stored + 3000 * 100 * 40}
    asked = []
    monkeypatch.setattr(
        "benchmarks.measurements.memory_of_learning", lambda **task: asked.append(task) or found
    )
    measure = memory("fit", beside_rows=True)
    [row] = measure(Case("memory", SYNTHETIC, measure), Settings(repeats=1))
    assert asked[0]["forest"] == "order-free"
    assert row.values == [50.0] and "model 40 bytes by nbytes_" in row.ours
    [row] = memory("fit", "Mondrian")(Case("memory", SYNTHETIC, measure), Settings(repeats=1))
    assert asked[1]["forest"] == "Mondrian"
    assert row.values == [found["resident"] / 300_000]


def test_a_long_stream_runs_in_a_process_of_its_own():
    case = Case("memory of a long stream", SYNTHETIC, soak)
    [row] = case.measure(case, Settings(repeats=1, scale=0.001))
    assert row.data == "synthetic, 1,000 rows, window 50"
    assert len(row.details["resident"]) == 10 and min(row.values) >= 0


def test_streams_are_learned_beside_rivers_forest():
    pytest.importorskip("river")
    [case] = (c for c in order_free_cases([], [], streams=[DIGITS]) if c.name.endswith("River ARF"))
    [row] = case.measure(case, Settings(repeats=1, quick=True, scale=0.02))
    assert row.case == case.name and len(row.values) == 1


def test_one_row_is_timed_in_three_ways():
    case = Case("one row", DIGITS, one_row(order_free, 600.0, 30.0), any_data=True)
    rows = case.measure(case, Settings(repeats=2, quick=True, scale=0.02))
    ways = ["predict, nothing learned", "predict, after each learn", "learn"]
    assert [row.case for row in rows] == [f"one row, {way}" for way in ways]
    assert all(len(row.values) == 2 and min(row.values) > 0 for row in rows)
    assert [row.target for row in rows] == [30.0, 30.0, 600.0]


def test_the_order_free_forest_has_these_targets():
    targets = {
        (case.name, case.data): case.target
        for case in full_cases()
        if not case.name.startswith("Mondrian: ")
    }
    paper = ("letter", "satimages", "dna", "usps")
    wanted = {
        "fit / ERT-k": (0.5, paper),
        "fit / RF": (None, paper),
        "stream / ERT-k": (6.0, paper),
        "mini-batches, built at the end / re-trained ERT-k": (0.08, paper),
        "mini-batches, each predicted / re-trained ERT-k": (0.08, paper),
        "predict / ERT-k": (0.9, paper),
        "forget / learn, one by one": (1.5, paper),
        "forget / learn, one by one, each predicted": (1.5, paper),
        "long stream": (2.5, (SYNTHETIC, NOISE)),
        "longest call": (None, (SYNTHETIC,)),
        "memory, fit": (100.0, ("letter", "usps")),
        "memory, mini-batches, built at the end": (100.0, ("letter", "usps")),
        "one sample / River ARF": (20.0, ("elec2", "covtype")),
        "one sample / MOA ARF": (4.0, ("elec2", "covtype")),
        "2 threads, fit": (1.9, ("letter",)),
        "2 threads, batches of 1,000": (1.9, ("letter",)),
        "2 threads, predict": (1.9, ("letter",)),
        "16 threads, fit": (13.0, ("letter",)),
        "16 threads, batches of 1,000": (12.0, ("letter",)),
        "16 threads, predict": (13.0, ("letter",)),
        "one row": (None, ("letter",)),
        "covtype stream": (None, ("covtype",)),
        "model of River / River AMF": (None, ("letter",)),
        "model of River, numbers / River AMF": (None, ("kin8nm",)),
        "numbers, fit / ERT": (0.9, REGRESSION),
        "numbers, predict / ERT": (0.4, REGRESSION),
        "calibration, fit": (1.1, ("letter", "satimages")),
        "calibration, predict": (1.05, ("letter", "satimages")),
        "calibration, learn alone": (1.1, ("letter", "elec2", "covtype")),
        "calibration, predict and learn": (1.1, ("letter", "elec2", "covtype")),
    }
    assert targets == {
        (name, data): target for name, (target, names) in wanted.items() for data in names
    }


def test_moa_runs_in_its_own_loop_on_a_model_of_the_streams_schema(monkeypatch):
    class Stream:
        def __init__(self, X, y, target_type):
            self.rows, self.target_type = len(X), target_type
            assert len(y) == len(X)

        def get_schema(self):
            return f"schema of {self.rows} rows, {self.target_type}"

    def forest(schema, ensemble_size, random_seed):
        return (schema, ensemble_size, random_seed)

    def evaluation(stream, model, optimise):
        return (stream.rows, model, optimise)

    modules = {
        "capymoa": {},
        "capymoa.classifier": {"AdaptiveRandomForestClassifier": forest},
        "capymoa.evaluation": {"prequential_evaluation": evaluation},
        "capymoa.stream": {"NumpyStream": Stream},
    }
    for name, contents in modules.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**contents))
    data = load(DIGITS, None).head(30)
    job = row_by_row_moa(MOA_ARF.new(10, 3), data)
    assert job() == (30, ("schema of 30 rows, categorical", 10, 3), True)


def test_moa_is_not_measured_without_capymoa(monkeypatch):
    monkeypatch.setitem(sys.modules, "capymoa.classifier", None)
    with pytest.raises(NotMeasuredError, match="needs capymoa"):
        MOA_ARF.new(10, 0)


def test_forests_with_and_without_calibration_take_turns(monkeypatch):
    now, learned = [0.0], []
    monkeypatch.setattr("benchmarks.timing.time.perf_counter", lambda: now[0])

    class Forest:
        def __init__(self, name, seconds):
            self.name, self.seconds = name, seconds

        def partial_fit(self, X, y, classes):
            now[0] += 100.0  # is not timed

        def learn_one(self, row, label):
            now[0] += self.seconds
            learned.append(self.name)

    for name, forest, seconds in (("order_free", "with", 3.0), ("uncalibrated", "without", 2.0)):
        monkeypatch.setattr(
            f"benchmarks.measurements.{name}", lambda n, seed, made=(forest, seconds): Forest(*made)
        )
    measure = calibration_of_stream(learn_alone, n_piece=20)
    settings = Settings(repeats=2, scale=51 / 3000)
    [row] = measure(Case("learn alone", SYNTHETIC, measure), settings)
    turns = ["with"] * 20 + ["without"] * 20
    assert learned == 2 * (2 * turns + ["with"] * 10 + ["without"] * 10)
    assert row.values == [1.5, 1.5] and row.seconds == {"ours": [3.0, 3.0], "peer": [2.0, 2.0]}


@pytest.mark.thorough
def test_long_streams_of_the_order_free_forest_shrink_with_the_scale():
    cases = [case for case in full_cases() if case.name == "long stream"]
    assert [case.data for case in cases] == [SYNTHETIC, NOISE]
    for case in cases:
        [row] = case.measure(case, Settings(repeats=2, scale=0.002))
        assert len(row.values) == 2 and min(row.values) > 0
        assert row.ours.startswith("at 2,000: ") and row.peer.startswith("at 20: ")


def test_noise_has_no_structure():
    X, y = load_stream(NOISE, None, 5_000)
    structure = np.minimum((X[:, 0] + X[:, 1]) / 2 * 5, 4).astype(int)
    # Each label is drawn from five: 0.2 with a standard deviation of 0.006.
    assert (y == structure).mean() == pytest.approx(0.2, abs=0.03)
    _, y = load_stream(SYNTHETIC, None, 5_000)
    assert (y == structure).mean() > 0.8


def test_a_stream_is_loaded_in_its_order(tmp_path):
    y = np.tile([3, 1], 5_100)
    np.savez(tmp_path / "elec2.npz", X=np.arange(len(y))[:, np.newaxis], y=y)
    data = load("elec2", tmp_path)
    assert np.array_equal(data.X[:, 0], np.arange(10_000)) and len(data.X_test) == 0
    assert np.array_equal(data.y, y[:10_000])


def test_the_first_rows_keep_numbers_and_renumber_classes():
    whole, part = load(SYNTHETIC_REGRESSION, None), load(SYNTHETIC_REGRESSION, None, scale=0.02)
    assert whole.y.dtype == np.float64
    assert np.array_equal(part.y, whole.y[:40])
    whole = load(SYNTHETIC, None)
    some = whole.head(5)
    classes = np.unique(whole.y[:5])
    assert np.array_equal(classes[some.y], whole.y[:5])
    assert np.array_equal(some.classes, np.arange(len(classes)))


def test_regression_is_measured_on_a_tenth_of_a_file(tmp_path):
    y = np.linspace(-1.0, 1.0, 50)
    np.savez(tmp_path / "concrete.npz", X=np.stack([y, 2 * y], axis=1), y=y)
    data = load("concrete", tmp_path)
    assert (data.X.dtype, data.X.shape, data.X_test.shape) == (np.float32, (45, 2), (5, 2))
    assert np.array_equal(data.X[:, 0], data.y.astype(np.float32))
    assert np.array_equal(np.sort([*data.X[:, 0], *data.X_test[:, 0]]), y.astype(np.float32))


def test_rows_measured_before_an_interruption_are_reported(tmp_path, monkeypatch, capsys):
    def interrupted(case, settings):
        raise KeyboardInterrupt

    cases = [
        Case("first", "digits", lambda case, settings: [case.row(settings, values=[1.0])]),
        Case("second", "digits", interrupted),
    ]
    monkeypatch.setattr("benchmarks.cases.quick_cases", lambda: cases)
    assert main(["--quick", "--out", str(tmp_path)]) == 130
    content = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert [row["case"] for row in content["rows"]] == ["first"]
    assert not content["complete"]
    assert "interrupted" in capsys.readouterr().err


def test_the_error_without_data_names_the_variable_and_quick(monkeypatch, capsys):
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    assert main([]) == 2
    message = capsys.readouterr().err
    assert "ONLINEFOREST_DATA" in message and "--quick" in message


def test_a_missing_data_set_has_a_row_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    names = ("letter", "covtype", "kin8nm")
    only = [argument for name in names for argument in ("--only", name)]
    assert main([*only, "--out", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert len(content["rows"]) > 10
    for row in content["rows"]:
        assert row["note"].startswith("not measured: needs ")
        assert row["note"].endswith(".npz in the folder of the data sets")


def test_an_unwritable_folder_is_an_error(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert main(["--quick", "--out", str(blocked / "sub")]) == 2
    assert capsys.readouterr().err.startswith("cannot write to")


def test_cases_can_be_listed_and_chosen(capsys):
    assert main(["--list", "--only", "fit / ERT-k"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [
        f"{forest}fit / ERT-k, {data}"
        for forest in ("", "Mondrian: ")
        for data in ("letter", "satimages", "dna", "usps")
    ]
    assert main(["--list", "--only", "fit / ERT-k", "--without", "Mondrian"]) == 0
    assert capsys.readouterr().out.splitlines() == listed[:4]
    assert main(["--list", "--only", "numbers, fit"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [f"numbers, fit / ERT, {data}" for data in REGRESSION]
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "nothing of the kind"])
    names = [(case.name, case.data) for case in full_cases()]
    assert len(set(names)) == len(names)


def test_no_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotMeasuredError, match="needs matplotlib"):
        save_plot(report_of(), tmp_path / "plot.png")
