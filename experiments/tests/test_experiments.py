"""The experiments run as their docstrings say; their results are not judged here."""

from __future__ import annotations

import re
import runpy
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from experiments import (
    calibration,
    categories,
    common,
    imbalance,
    importances,
    learned_weights,
    missing_values,
    numbers,
    order_free,
    regression,
)
from experiments.common import random_split
from experiments.paper import data as paper_data
from experiments.regression import OURS, Prediction, score
from onlineforest import OnlineForestClassifier


@pytest.fixture
def no_folder(monkeypatch):
    """There is no folder of data sets."""
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)


def test_learned_weights_runs_without_a_data_folder(no_folder, capsys):
    options = ["--data", "iris", "noise", "--seeds", "1", "--trees", "3"]
    assert learned_weights.main(options) in (0, 1)
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert "log loss" in header
    assert [row.split(" | ")[0] for row in rows] == ["| iris", "| noise"]
    assert all(row.count("|") == header.count("|") for row in rows)


def test_missing_values_runs(monkeypatch, capsys):
    monkeypatch.setattr(missing_values, "N_TREES", 10)
    monkeypatch.setattr(missing_values, "N_SAMPLES", 600)
    assert missing_values.main(["--data", "digits", "--seeds", "1"]) in (0, 1)
    *rows, verdict = capsys.readouterr().out.splitlines()[2:]
    cells = [row.strip("| ").split(" | ") for row in rows if row]
    assert [row[:2] for row in cells] == [["digits", share] for share in ("10%", "30%", "50%")]
    for row in cells:
        assert len(row) == 2 + len(missing_values.methods(0))
        found = np.array([cell.split(" / ") for cell in row[2:]], dtype=float)
        assert found[:, 0].min() > 0.4 and 0 < found[:, 1].min() <= found[:, 1].max() < 2
    assert re.fullmatch(r"- most accurate at every share.*: (yes|NO)", verdict)


def test_numbers_runs(monkeypatch, capsys):
    monkeypatch.setattr(numbers, "N_ROWS", 300)
    monkeypatch.setattr(numbers, "N_ROWS_OF_LEVELS", 900)
    monkeypatch.setattr(numbers, "N_LEVELS", 20)
    models = {**numbers.MODELS, numbers.BOOSTING: lambda _: RandomForestRegressor(5)}
    monkeypatch.setattr(numbers, "MODELS", models)
    monkeypatch.setattr(numbers, "TAKE_LEVELS", (numbers.OURS,))
    names = ["friedman, noise 1", *numbers.GENERATED, *numbers.WIDE, *numbers.LEVELS]
    options = ["--data", *names, "--seeds", "1", "--jobs", "1"]
    assert numbers.main(options) in (0, 1)
    printed = capsys.readouterr().out.splitlines()
    rows = [line.strip("| ").split(" | ") for line in printed[2:] if line.startswith("|")]
    assert [row[0] for row in rows] == names
    found = np.array([row[1:] for row in rows], dtype=float)
    assert (found > 0).all() and (found[:, 4] > 0.6).all()
    targets = [line for line in printed if line.startswith("- ")]
    assert len(targets) == 2 * len(names)
    assert all(re.fullmatch(r"- .+: (yes|NO)", line) for line in targets)


@pytest.mark.parametrize(
    "command",
    [
        ("learned_weights", "--data", "dna"),
        ("paper_table", "--data", "dna"),
        ("regression", "--only", "kin8nm"),
        ("numbers", "--data", "kin8nm"),
        ("order_free", "--data", "dna"),
        ("order_free", "--data", "elec2"),
        ("calibration", "--data", "letter"),
        ("imbalance", "--data", "covtype"),
        ("categories", "--flights"),
        ("tables", "--data", "flights"),
        ("importances", "--data", "dna"),
    ],
)
def test_the_error_names_a_missing_data_folder(command, no_folder, monkeypatch, capsys):
    def unreachable(**_options):
        raise OSError("no route to host")

    monkeypatch.setattr(paper_data, "fetch_openml", unreachable)
    module, *arguments = command
    name = f"experiments.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as stopped:  # as `python -m` runs it
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    assert stopped.value.code == 2
    assert "ONLINEFOREST_DATA" in capsys.readouterr().err


def test_a_random_split_is_that_of_its_seed():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    first, again, other = (random_split(lambda: (X, y))(seed) for seed in (0, 0, 1))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[3], other[3])
    X_train, y_train, X_test, y_test = first
    assert len(y_test) == 3 and sorted([*y_train, *y_test]) == list(range(10))
    assert np.array_equal(X_train[:, 0], 2 * y_train) and np.array_equal(X_test[:, 0], 2 * y_test)
    *_, y_some = random_split(lambda: (X, y), n_samples=5)(0)
    assert len(y_some) == 2


def test_calibration_runs_without_a_data_folder(no_folder, monkeypatch, capsys):
    few = {"n_estimators": 10}
    monkeypatch.setattr(
        calibration,
        "OnlineForestClassifier",
        lambda *_, **options: OnlineForestClassifier(**{**options, **few}),
    )
    models = {
        name: lambda seed, new=new: new(seed).set_params(**few)
        for name, new in order_free.MODELS.items()
    }
    monkeypatch.setattr(calibration, "MODELS", models)
    assert calibration.main(["--data", "digits", "--seeds", "1"]) in (0, 1)
    output = capsys.readouterr().out
    rows = rows_of(output)
    assert float(rows["accuracy, at once"][0]) > 0.9
    assert rows["accuracy, at once"] == rows["accuracy, 100 batches"]
    assert 1 <= float(rows["size 0.95, at once"][0]) < 3
    assert len(re.findall(r"^- .*: (yes|NO)$", output, re.MULTILINE)) == 12


def test_the_calibration_error_is_that_of_its_definition():
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.35, 0.65], [0.35, 0.65]])
    y = np.array(["a", "b", "b", "b"])
    found = common.calibration_error(probabilities, np.array(["a", "b"]), y)
    assert found == pytest.approx((2 * 0.4 + 2 * 0.35) / 4)


@pytest.mark.thorough
def test_imbalance_runs_without_a_data_folder(no_folder, capsys):
    pytest.importorskip("river")
    assert imbalance.main(["--data", "generated", "--seeds", "1", "--samples", "600"]) == 0
    models = [line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(models) == len(set(models)) == 11
    assert {"order-free", "random forest, balanced", "River ARF, stream"} <= set(models)


def test_importances_runs_without_a_data_folder(no_folder, monkeypatch, capsys):
    monkeypatch.setattr(importances, "N_FRESH", 500)
    data = [name for name in importances.DATA if name != "dna"]
    assert importances.main(["--data", *data, "--seeds", "1"]) in (0, 1)
    header, _, *rows, _, verdict = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in data]
    assert all(row.count("|") == header.count("|") for row in rows)
    assert verdict.startswith("- rank correlation")


def save_flights(folder, n_rows=300):
    """Flights of two carriers, one of which is often late; one flight was cancelled."""
    rng = np.random.default_rng(0)
    carrier = rng.choice(["AA", "BB"], n_rows)
    delay = rng.normal(np.where(carrier == "AA", 25.0, 5.0), 5.0)
    delay[3] = np.nan
    columns = {
        "month": 1,
        "carrier": carrier,
        "tailnum": np.where(
            rng.random(n_rows) < 0.1, None, rng.integers(9, size=n_rows).astype(str)
        ),
        "origin": rng.choice(["EWR", "JFK"], n_rows),
        "dest": rng.choice(["IAH", "MIA", "ORD"], n_rows),
        "dep_delay": delay,
        "arr_delay": delay,
    }
    pd.DataFrame(columns).to_parquet(folder / "flights.parquet")


def test_categories_runs_on_flights(tmp_path, monkeypatch, capsys):
    save_flights(tmp_path)
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    for name, value in {"BATCH": 50, "EVERY": 100, "RIVER_ROWS": 200}.items():
        monkeypatch.setattr(categories, name, value)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setitem(sys.modules, "river.forest", None)
    assert categories.main(["--flights"]) == 0
    header, _, *lines = capsys.readouterr().out.splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert [row[0] for row in rows] == [*categories.FLIGHTS, *categories.FIRST_FLIGHTS]
    assert [row[1] for row in rows] == ["299"] * len(categories.FLIGHTS) + ["200"] * 2
    missing = {"LightGBM, re-trained", "River ARF, 10 trees"}
    for name, _, *cells in rows:
        if name in missing:
            assert cells == [categories.NOT_INSTALLED]
        else:
            assert len(cells) == header.count("|") - 3
            assert float(cells[3]) > 0.8 and float(cells[4]) < 0.6  # after the first hundred rows


def test_categories_runs_rivers_forest(tmp_path, monkeypatch, capsys):
    pytest.importorskip("river")
    save_flights(tmp_path)
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    monkeypatch.setattr(categories, "BATCH", 50)
    assert categories.main(["--flights", "--models", "River ARF, 10 trees"]) == 0
    (cells,) = rows_of(capsys.readouterr().out).values()
    assert float(cells[1]) > 0.6 and cells[4:7] == ["-"] * 3


def test_categories_re_trains_with_the_rows_so_far(monkeypatch):
    monkeypatch.setattr(categories, "EVERY", 2)
    monkeypatch.setattr(categories, "BATCH", 1)
    learned = []

    def fit(X, y, seed):
        learned.append(len(y))
        return lambda rows: np.tile([1 - len(y) / 10, len(y) / 10], (len(rows), 1))

    X, y = pd.DataFrame({"a": range(6)}), np.array([1, 0, 0, 0, 0, 0])
    found, _ = categories.stream(categories.Retrained(X, y, fit), 6, "")
    assert learned == [2, 4]
    assert found.tolist() == [0.5, 1.0, 0.2, 0.2, 0.4, 0.4]


def test_categories_runs_on_generated_tables_and_those_of_a_folder(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 400)
    table = pd.DataFrame({"colour": pd.Categorical(colour), "size": rng.random(400)})
    table.assign(y=colour == "red").to_parquet(tmp_path / "fruit.parquet")
    for package in ("lightgbm", "catboost"):
        monkeypatch.setitem(sys.modules, package, None)
    options = ["--rows", "400", "--splits", "1", "--folder", str(tmp_path)]
    assert categories.main(["--tables", *options]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    names = [*categories.GENERATED, "fruit"]
    there = [name for name in categories.MODELS if name not in ("LightGBM", "CatBoost")]
    expected = [(name, model) for name in names for model in categories.MODELS]
    assert [(row[0], row[2]) for row in rows] == expected + [("mean of 5", name) for name in there]
    for row in rows:
        if row[2] not in there:
            assert row[3:] == [categories.NOT_INSTALLED]
        elif row[0] == "fruit":
            assert float(row[3]) > 0.95 and float(row[5]) > 0.95


@pytest.mark.parametrize("name", categories.GENERATED)
def test_the_generated_tables_of_categories_are_as_they_say(name):
    X, y = categories.GENERATED[name](np.random.default_rng(0))
    n_levels = {
        "1,000 rates": [1000],
        "interaction of three": [6] * 8,
        "mixed, additive": [5, 40, 300, 100, 100, 100],
        "four classes": [20] * 6,
    }[name]
    found = [len(X[column].cat.categories) for column in categories.categorical(X)]
    assert found == n_levels
    assert len(X) == len(y) and min(np.bincount(y)) > 0.1 * len(y)


def test_the_area_is_a_mean_over_classes():
    p = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.2, 0.3, 0.5]])
    assert common.area(p, np.array([0, 1, 2, 2])) == pytest.approx(1.0)
    assert common.area(p, np.array([1, 0, 2, 2])) == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert common.area(p[:, :2], np.array([0, 1, 0, 1])) == pytest.approx(7 / 8)


def rows_of(table):
    """The cells of each row of a table, by its first cell."""
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {first: cells for first, *cells in lines[1:]}


def save_regression(folder, name="kin8nm"):
    """A data set with standard splits under the name of a known one."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = X[:, 0] + rng.normal(size=len(X))
    # Split s tests five rows of every 20, from row s on.
    parts = (np.arange(len(X)) - np.arange(20)[:, np.newaxis]) % 20
    np.savez(folder / f"{name}.npz", X=X, y=y, test_mask=parts < 5)


def test_regression_runs_every_method_and_reports_a_missed_target(tmp_path, monkeypatch, capsys):
    save_regression(tmp_path)
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    # Two trees are too few to hold their intervals.
    assert regression.main(["--only", "kin8nm", "--seeds", "2", "--trees", "2"]) == 1
    output = capsys.readouterr().out
    assert "met: NO" in output
    rows = rows_of(output)
    assert list(rows) == list(regression.METHODS)
    assert "-" not in rows[OURS]
    for method in ("random forest", "extra trees"):
        assert rows[method][1:4] == ["-"] * 3
    for method, cells in rows.items():
        missing = "pip install 'onlineforest[bench]'" in cells[0]
        assert missing or float(cells[0].split(" ± ")[0]) > 0.5, method


def test_regression_without_its_extra_names_the_extra(tmp_path, monkeypatch, capsys):
    save_regression(tmp_path)
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    optional = {"quantile forest": "quantile_forest", "River AMF": "river"}
    for package in optional.values():
        monkeypatch.setitem(sys.modules, package, None)
    regression.main(["--only", "kin8nm", "--seeds", "1", "--trees", "2"])
    rows = rows_of(capsys.readouterr().out)
    for method, package in optional.items():
        assert f"needs {package}" in rows[method][0]
        assert rows[method][1:] == ["-"] * 4


def test_regression_scores_by_hand():
    y = np.array([0.0, 1.0, 2.0, 4.0])
    interval = np.array([[0.0, 1.0], [1.5, 2.0], [1.0, 2.0], [0.0, 3.5]])
    log_density = np.log([0.5, 0.25, 0.5, 0.25])
    mean = np.array([1.0, 0.0, 5.0, 9.0])
    found = score(Prediction(3.0, mean, interval, log_density), y)
    assert found.rmse == pytest.approx(3.0)  # the squares 1, 1, 9 and 25 have the mean 9
    assert found.nlpd == pytest.approx(1.5 * np.log(2))
    assert found.coverage == 0.5  # both ends belong to an interval
    assert found.width == pytest.approx((1 + 0.5 + 1 + 3.5) / 4)
    assert found.seconds == 3.0
    silent = score(Prediction(3.0, y), y)
    assert silent.rmse == 0.0
    assert np.isnan([silent.nlpd, silent.coverage, silent.width]).all()


def test_in_regression_a_seed_gives_all_methods_the_same_split(tmp_path, monkeypatch):
    save_regression(tmp_path)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "california.npz", X=rng.random((30, 2)), y=np.arange(30.0))
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    with np.load(tmp_path / "kin8nm.npz") as file:
        y, masks = file["y"], file["test_mask"]
    for seed in (0, 3, 23):
        _, train, _, test = regression.load_split("kin8nm", seed)
        assert np.array_equal(test, y[masks[seed % 20]])
        assert np.array_equal(np.sort([*train, *test]), np.sort(y))
    first, again, other = (regression.load_split("california", seed) for seed in (0, 0, 1))
    assert len(first[3]) == 3
    assert np.array_equal(np.sort([*first[1], *first[3]]), np.arange(30.0))
    assert np.array_equal(first[3], again[3])
    assert not np.array_equal(first[3], other[3])


@pytest.mark.parametrize(
    ("error", "n_outside", "status"),
    [
        (1.009, 5, 0),  # the best error of the forests beside it is 1
        (1.011, 5, 1),
        (0.9, 0, 1),  # intervals that hold too much, or too little
        (0.9, 10, 1),
    ],
)
@pytest.mark.parametrize("best", regression.RIVALS)
def test_regression_exits_with_1_if_a_target_is_missed(
    best, error, n_outside, status, tmp_path, monkeypatch, capsys
):
    save_regression(tmp_path)
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))

    def known(error, n_outside):
        def predict(data, *_):
            *_, y = data
            interval = np.stack([y - 1, y + 1], axis=1)
            interval[:n_outside] += 3
            return Prediction(1.0, y + error, interval)

        return predict

    rivals = {name: known(1.0 if name == best else 1.5, 0) for name in regression.RIVALS}
    boosting = {regression.BOOSTING: known(0.5, 0)}
    methods = {OURS: known(error, n_outside), **rivals, **boosting}
    monkeypatch.setattr(regression, "METHODS", methods)
    assert regression.main(["--only", "kin8nm", "--seeds", "2"]) == status
    output = capsys.readouterr().out
    assert f"met: {['yes', 'NO'][status]}" in output
    assert rows_of(output)[OURS][0] == f"{error:.4f} ± 0.0000"
