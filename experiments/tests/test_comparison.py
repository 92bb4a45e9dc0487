"""The comparison of the order-free forest with other models: its figures and its targets."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from experiments import comparison, order_free, tables
from experiments.comparison import ACCURACY, AUC, COVERAGE, ECE, LOG_LOSS, POWERED, TEST_ROWS
from experiments.order_free import BOOSTING, EXTRA, MONDRIAN, OURS, RANDOM
from onlineforest import OnlineForestClassifier
from onlineforest._extras import MissingExtraError


def cells_of(output):
    """The cells of each row of a table, by data set and figure."""
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line[:1] == "|"]
    return {tuple(row[:2]): row[2:] for row in rows[2:]}


def few_trees(monkeypatch):
    """Models of ten trees, and a single tree instead of LightGBM."""
    models = {
        name: lambda seed, new=new: new(seed).set_params(n_estimators=10)
        for name, new in order_free.MODELS.items()
        if name != BOOSTING
    }
    models[BOOSTING] = lambda seed: DecisionTreeClassifier(random_state=seed)
    monkeypatch.setattr(order_free, "MODELS", models)


def test_order_free_runs_without_a_data_folder(monkeypatch, capsys):
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    few_trees(monkeypatch)
    assert order_free.main(["--data", "digits", "--seeds", "1", "--jobs", "1"]) in (0, 1)
    output = capsys.readouterr().out
    rows = cells_of(output)
    assert list(rows) == [
        (name, each) for name in ("digits", "mean") for each in comparison.METRICS
    ]
    for metric in comparison.METRICS:
        assert rows["digits", metric] == rows["mean", metric]
        assert len(rows["mean", metric]) == len(order_free.MODELS) + 1
    *accuracies, _, behind = np.array(rows["digits", ACCURACY], dtype=float)
    assert min(accuracies) > 0.85
    assert behind == pytest.approx(max(accuracies[1:]) - accuracies[0], abs=2e-4)
    *losses, _, behind = np.array(rows["digits", LOG_LOSS], dtype=float)
    assert max(losses) < 1.5 and behind == pytest.approx(losses[0] - min(losses[1:]), abs=2e-4)
    powered = np.array(rows["digits", POWERED][:-2], dtype=float)
    assert (powered < np.array(losses) + 0.02).all() and powered[1] < losses[1] - 0.1
    assert rows["digits", COVERAGE][1:] == ["-"] * len(order_free.MODELS)
    assert 0.85 < float(rows["digits", COVERAGE][0]) <= 1
    assert len(re.findall(r"^- .*: (yes|NO)$", output, re.MULTILINE)) == 8


def test_the_fits_run_in_processes(capsys):
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    data = {name: lambda seed: (X, y, X, y) for name in ("first", "second")}
    models = {"bayes": lambda seed: GaussianNB(), "tree": lambda seed: DecisionTreeClassifier()}
    by_jobs = []
    for n_jobs in (1, 2):
        by_jobs.append(list(comparison.compare(data, models, n_seeds=2, n_jobs=n_jobs)))
        for _, of_data in by_jobs[-1]:
            assert of_data["tree"][ACCURACY] == 1 > of_data["bayes"][ACCURACY]
            for of_model in of_data.values():
                del of_model[comparison.SECONDS]
    assert [name for name, _ in by_jobs[0]] == ["first", "second"]
    assert repr(by_jobs[0]) == repr(by_jobs[1])


class Sure:
    """Always predicts the first class, and is sure."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.array([[1.0, 0.0]] * len(X))


def test_small_probabilities_count_as_one_in_a_million():
    X, y = np.zeros((4, 1)), np.array([0, 0, 0, 1])
    found = comparison.figures_of(Sure(), (X, y, X, y), 0)
    assert found[ACCURACY] == 0.75 and found[AUC] == 0.5 and found[ECE] == 0.25
    assert found[LOG_LOSS] == pytest.approx(-np.log(1e-6) / 4)
    assert np.isnan(found[COVERAGE])


def test_figures_of_sets_are_those_of_the_forest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    forest = OnlineForestClassifier(10, random_state=0)
    found = comparison.figures_of(forest, (X[:300], y[:300], X[300:], y[300:]), 0)
    sets = forest.predict_set(X[300:], 0.9)
    inside = np.where(y[300:] == "yes", sets[:, 1], sets[:, 0])
    assert found[COVERAGE] == inside.mean() and found[TEST_ROWS] == 100
    assert found[ACCURACY] == (forest.predict(X[300:]) == y[300:]).mean()


def test_the_power_is_that_of_the_other_half():
    # 0.6 and 0.4, and four of five labels right: the best power makes 0.8 of 0.6.
    probabilities = np.tile([0.6, 0.4], (2000, 1))
    places = (np.arange(2000) % 5 == 0).astype(int)
    found = comparison.powered_log_loss(probabilities, places, 0)
    expected = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    assert found == pytest.approx(expected, abs=2e-3)
    assert found >= expected
    # Judged on the half that chose it, a power would look better than it is.
    places = np.zeros(10, dtype=int)
    places[np.random.default_rng(0).permutation(10)[::2]] = 1
    assert comparison.powered_log_loss(probabilities[:10], places, 0) > 1


def figures(accuracies, losses, error=0.01, coverage=0.9, n_test=2000):
    """Figures of the models in the order of MODELS."""
    return {
        name: {
            ACCURACY: accuracy,
            LOG_LOSS: loss,
            ECE: error,
            COVERAGE: coverage,
            TEST_ROWS: n_test,
        }
        for name, accuracy, loss in zip(order_free.MODELS, accuracies, losses)
    }


def judged(found):
    return "".join("ny"[met] for _, met in order_free.verdicts(found))


@pytest.mark.parametrize(
    ("first", "second", "losses", "met"),
    [
        # Models in the order of MODELS: ours, random forest, ERT-k, Mondrian forest, LightGBM.
        ([0.90, 0.90, 0.90, 0.8, 0.89], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 5, 4), "yyyyyyy"),
        ([0.90, 0.907, 0.9, 0.8, 0.89], [0.95, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 5, 4), "nyyyyyy"),
        ([0.90, 0.90, 0.92, 0.8, 0.89], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 5, 4), "ynyyyyy"),
        ([0.895, 0.90, 0.9, 0.8, 0.80], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 5, 4), "yynyyyy"),
        ([0.90, 0.90, 0.90, 0.8, 0.90], [0.90, 0.90, 0.90, 0.8, 0.90], (3, 4, 2, 5, 4), "yyynyyy"),
        ([0.90, 0.90, 0.90, 0.8, 0.89], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 2, 2, 5, 4), "yyyynyy"),
        ([0.90, 0.90, 0.90, 0.8, 0.89], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 2, 4), "yyyyyny"),
        ([0.90, 0.90, 0.90, 0.8, 0.89], [0.90, 0.90, 0.90, 0.8, 0.89], (3, 4, 2, 5, 2), "yyyyyyn"),
    ],
)
def test_order_free_judges_accuracy_and_log_loss(first, second, losses, met):
    assert list(order_free.MODELS) == [OURS, RANDOM, EXTRA, MONDRIAN, BOOSTING]
    losses = [loss / 10 for loss in losses]
    found = {"first": figures(first, losses), "second": figures(second, losses)}
    assert judged(found) == met + "yyyy"  # ECE and coverage of two data sets


@pytest.mark.parametrize(
    ("given", "met"),
    [
        ({"error": 0.02}, "yy"),
        ({"error": 0.03}, "ny"),
        ({"error": 0.03, "n_test": 1999}, "y"),
        ({"coverage": 0.87}, "yn"),
        ({"coverage": 0.88}, "yy"),
        ({"coverage": 0.95}, "yn"),
        ({"coverage": 0.97}, "yy"),  # as the accuracy
    ],
)
def test_order_free_judges_calibration_and_sets(given, met):
    accuracy = 0.97 if given.get("coverage") == 0.97 else 0.9
    assert judged({"one": figures([accuracy] * 5, [0.3] * 5, **given)})[7:] == met


@pytest.mark.parametrize(
    ("accuracy", "loss", "met"), [(0.93, 0.18, "yy"), (0.92, 0.18, "ny"), (0.93, 0.19, "yn")]
)
def test_order_free_judges_the_means_of_all_data(accuracy, loss, met):
    found = figures([accuracy] * 5, [loss] * 5, n_test=10)
    assert judged(dict.fromkeys(order_free.CLASSIFICATION, found))[7:9] == met


def test_without_lightgbm_the_error_names_its_extra(monkeypatch, capsys):
    monkeypatch.setattr("onlineforest._extras.find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=r"lightgbm.*onlineforest\[experiments\]"):
        comparison.light_gbm(0)
    monkeypatch.setattr(tables, "N_ROWS", 40)
    for run, name in ((order_free.main, "digits"), (tables.main, "customers")):
        assert run(["--data", name, "--seeds", "1", "--jobs", "1"]) == 2
        assert "onlineforest[experiments]" in capsys.readouterr().err


def test_lightgbm_learns_arrays_and_tables():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    text = pd.Categorical(np.where(X[:, 1] > 0, "a", "b"))
    for rows in (X, pd.DataFrame({"x": X[:, 0], "text": text})):
        found = comparison.figures_of(
            comparison.light_gbm(0), (rows[:200], y[:200], rows[200:], y[200:]), 0
        )
        assert found[ACCURACY] > 0.9


def test_tables_runs(monkeypatch, capsys):
    few_trees(monkeypatch)
    monkeypatch.setattr(tables, "MODELS", order_free.MODELS | {BOOSTING: lambda seed: GaussianNB()})
    monkeypatch.setattr(tables, "N_ROWS", 600)
    names = ["logistic, 5 of 8", "nonlinear, 4 of 10"]
    assert tables.main(["--data", *names, "--seeds", "2", "--jobs", "1"]) in (0, 1)
    output = capsys.readouterr().out
    rows = cells_of(output)
    assert list(rows) == [(name, each) for name in [*names, "mean"] for each in comparison.METRICS]
    assert len(rows["mean", AUC]) == 3 and 0.5 < float(rows["mean", AUC][0]) < 0.8
    found = re.findall(r"^- ([^:]+: \w+) .*: (?:yes|NO)$", output, re.MULTILINE)
    assert found == [f"{name}: {each}" for each in ("AUC", "sets") for name in names]


@pytest.mark.parametrize(
    ("gap", "losses", "met"),
    [
        (0.006, (0.3, 0.2), "yn"),
        (0.007, (0.3, 0.3), "ny"),
        (-0.1, (0.2, 0.3), "yy"),
    ],
)
def test_tables_judges_each_target(gap, losses, met):
    common = {ECE: 0.03, COVERAGE: 0.95, ACCURACY: 0.9, TEST_ROWS: 2000}
    weak = {**common, AUC: 0.65}
    found = {
        "logistic, 5 of 8": {OURS: weak, BOOSTING: {**weak, AUC: 0.65 + gap - 1e-12}},
        "bananas": {
            name: {**common, LOG_LOSS: loss} for name, loss in zip((OURS, BOOSTING), losses)
        },
    }
    assert "".join("ny"[is_met] for _, is_met in tables.verdicts(found)) == met + "nnnn"


@pytest.mark.parametrize("name", tables.WEAK)
def test_tables_of_weak_effects_are_as_they_say(name):
    X, y, _, y_test = tables.DATA[name](0)
    assert len(y) == 14_000 and len(y_test) == 6000
    assert 0.1 < y.mean() < 0.9
    X = X if isinstance(X, np.ndarray) else X.select_dtypes("number").fillna(0.0).to_numpy()
    # No single feature tells much.
    correlations = np.abs([np.corrcoef(column, y)[0, 1] for column in X.T])
    assert 0.03 < max(correlations) < 0.3


def test_customers_have_text_and_gaps():
    X, _ = tables.customers(np.random.default_rng(0))
    assert [len(X[name].cat.categories) for name in X.select_dtypes("category")] == [
        4,
        12,
        40,
        6,
        30,
    ]
    assert 0.08 < X["x2"].isna().mean() < 0.12
    assert not X.drop(columns="x2").isna().any(axis=None)


def test_flights_are_random_rows_with_all_levels(monkeypatch):
    X = pd.DataFrame({"carrier": ["AA", "BB"] * 50, "distance": range(100)})
    monkeypatch.setattr(tables, "flights", lambda: (X, np.arange(100)))
    monkeypatch.setattr(tables, "FLIGHTS_ROWS", 10)
    X_train, y, X_test, y_test = tables.learned_and_tested(tables.some_flights)(0)
    assert len(y) == 7 and len(y_test) == 3
    assert list(X_train["carrier"].cat.categories) == list(X_test["carrier"].cat.categories)
    both = pd.concat([X_train, X_test])["distance"].to_numpy()
    assert np.array_equal(both, np.concatenate([y, y_test])) and not np.array_equal(
        both, np.sort(both)
    )
