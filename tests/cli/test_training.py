from __future__ import annotations

import csv
import io
import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import log_loss

from onlineforest import Checkpointer, MondrianForestClassifier, OnlineForestRegressor
from onlineforest._cli.columns import column_specs, fingerprint, schema_of
from onlineforest._cli.commands import OptionError
from onlineforest._cli.forests import (
    FORESTS,
    ModelStore,
    Position,
    TrainingError,
    TrainingOptions,
    check_task,
    load_previous,
    start_run,
)
from onlineforest._cli.metrics import (
    CurveFile,
    Metrics,
    class_metrics,
    interval_metrics,
    read_curve,
    value_metrics,
)
from onlineforest._cli.training import Training
from onlineforest._tables.columns import ColumnType, TableError
from onlineforest._tables.csv_tables import CsvTable
from onlineforest.plot.calibration import Bins
from support.bits import assert_same_forest


def table_of(text):
    return CsvTable(io.BytesIO(text.encode()), "a.csv", None, lambda: None, lambda: None)


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    lines = [f"r{i},{a!r},{b!r},{label}" for i, (a, b, label) in enumerate(zip(*X.T.tolist(), y))]
    return "\n".join(["name,a,b,way", *lines])


def trained(text, forest, start=None, batch_size=10, stop_at=None, **options):
    table = table_of(text)
    schema = schema_of(table, "way", ("name",))
    start = start or Position(0, batch_size, fingerprint(table, schema))
    training = Training(forest, start, **options)
    for n in training.run(table, schema, column_specs(table, schema, forest), pytest.fail):
        if stop_at is not None and n >= stop_at:
            break
    return training


@pytest.fixture(params=FORESTS)
def kind(request):
    """Each kind of forest."""
    return request.param


@pytest.fixture
def new_forest(kind):
    """Makes a classifier of each kind."""
    return lambda: FORESTS[kind]["classify"](5, random_state=0)


def test_training_learns_the_forest_of_partial_fit(new_forest):
    text = rows_of(95)
    training = trained(text, new_forest())
    rows = list(csv.DictReader(io.StringIO(text)))
    X = np.array([[float(row["a"]), float(row["b"])] for row in rows])
    y = np.array([row["way"] for row in rows])
    forest, n_right = new_forest(), 0
    for i in range(0, 95, 10):
        if i:
            n_right += (forest.predict(X[i : i + 10]) == y[i : i + 10]).sum()
        forest.partial_fit(X[i : i + 10], y[i : i + 10])
    assert_same_forest(training.forest, forest)
    assert list(training.forest.feature_names_in_) == ["a", "b"]
    assert training.n_rows == 95 and training.metrics.n == 85
    assert training.metrics.means()["accuracy"] == pytest.approx(n_right / 85)


@pytest.mark.parametrize(
    ("kind", "task"), [(kind, task) for kind, tasks in FORESTS.items() for task in tasks]
)
def test_single_rows_give_the_forest_and_metrics_of_batches_of_one(kind, task):
    estimator = FORESTS[kind][task]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0, "up", "down").tolist()
    labels[30] = "aside"  # an unknown class
    y = labels if task == "classify" else X.sum(axis=1).tolist()
    if kind != "mondrian":
        X[7, 1] = np.nan
    lines = [f"n,{a},{b},{value}" for (a, b), value in zip(X.tolist(), y, strict=True)]
    text = "\n".join(["name,a,b,way", *lines])
    training = trained(text, estimator(5, random_state=0), batch_size=1)
    forest, metrics = estimator(5, random_state=0), Metrics()
    for i in range(60):
        row, truth = pa.table(dict(zip("ab", X[i : i + 1].T, strict=True))), np.array(y[i : i + 1])
        if i and task == "classify":
            metrics += class_metrics(forest.classes_, forest.predict_proba(row), truth)
        elif i:
            metrics += value_metrics(forest.predict(row), truth)
        forest.partial_fit(row, truth)
    assert_same_forest(training.forest, forest)
    assert training.metrics == metrics and training.n_rows == 60


@pytest.mark.parametrize("stop_at", [10, 50, 100])
def test_a_resumed_run_gives_the_forest_of_one_run(new_forest, stop_at):
    text = rows_of(100)
    first = trained(text, new_forest(), stop_at=stop_at)
    position = Position.from_json(first.position().as_json())
    assert position.rows == stop_at
    second, whole = trained(text, first.forest, position), trained(text, new_forest())
    assert_same_forest(second.forest, whole.forest)
    assert second.position() == whole.position()


def test_an_interrupted_batch_counts_if_it_is_stored(new_forest):
    text = rows_of(60)
    for is_stored in (False, True):
        forest = new_forest()
        learn = forest.partial_fit

        def interrupted(X, y, ids=None, forest=forest, learn=learn, is_stored=is_stored):
            stops = getattr(forest, "_forest", None) is not None and forest.n_samples_seen_ == 30
            if not stops or is_stored:
                learn(X, y, ids=ids)
            if stops:
                raise KeyboardInterrupt

        forest.partial_fit = interrupted
        table = table_of(text)
        schema = schema_of(table, "way", ("name",))
        training = Training(forest, Position(0, 10, fingerprint(table, schema)))
        with pytest.raises(KeyboardInterrupt):
            list(training.run(table, schema, column_specs(table, schema, forest), pytest.fail))
        position = training.position()
        assert position.rows == (40 if is_stored else 30)
        assert position.metrics.n == position.rows - 10
        del forest.partial_fit
        assert_same_forest(
            trained(text, forest, position).forest, trained(text, new_forest()).forest
        )


def test_resuming_on_a_shorter_table_is_an_error(new_forest):
    position = trained(rows_of(50), new_forest()).position()
    with pytest.raises(TableError, match="cannot skip 50 rows: the table has only 20"):
        trained(rows_of(20), trained(rows_of(50), new_forest()).forest, position)


def test_a_run_without_learning_does_not_change_the_forest(new_forest):
    forest = trained(rows_of(50), new_forest()).forest
    training = trained(rows_of(40, seed=1), forest, learn=False)
    assert training.n_rows == training.metrics.n == 40
    assert forest.n_samples_seen_ == 50


def test_labels_are_integers_if_all_first_values_are(new_forest):
    for labels, kind in (("1,2,1,2", "i"), ("1,2,x,2", "U"), ("1.0,2.0,1.0,2.0", "U")):
        text = "a,way,name\n" + "".join(f"{i},{y},z\n" for i, y in enumerate(labels.split(",")))
        assert trained(text, new_forest()).forest.classes_.dtype.kind == kind


@pytest.mark.parametrize(
    ("first", "later", "type"),
    [
        ([0, 1], "x10", ColumnType.INTEGER),
        (["x", "1"], "2", ColumnType.TEXT),
        ([0, "x"], "2", ColumnType.TEXT),
    ],
)
def test_a_forest_with_ids_keeps_their_type(new_forest, first, later, type):
    table = table_of(f"name,a,way\n{later},0.5,x\n")
    schema = schema_of(table, "way", id="name")
    forest = new_forest().partial_fit([[0.0], [1.0]], ["x", "y"], ids=first)
    assert column_specs(table, schema, forest)["name"].type is type
    forest.forget(ids=first)  # no stored id fixes the type
    inferred = ColumnType.TEXT if later == "x10" else ColumnType.INTEGER
    assert column_specs(table, schema, forest)["name"].type is inferred


def test_an_error_names_the_samples_that_the_forest_rejects(new_forest):
    table = table_of("name,a,way\n1,0.5,x\n2,1.5,y\n2,2.5,x\n")
    schema = schema_of(table, "way", id="name")
    forest = new_forest()
    training = Training(forest, Position(0, 2, ""))
    with pytest.raises(TrainingError, match="samples 3 to 3: ids must be new"):
        list(training.run(table, schema, column_specs(table, schema, forest), pytest.fail))
    assert forest.ids_ == {1, 2}


@pytest.mark.parametrize(
    ("header", "row", "options", "message"),
    [
        ("a,y", "1,2", {"drop": ("z",)}, "no column 'z'"),
        ("a,y", "1,2", {"drop": ("y",)}, "'y' has two roles"),
        ("y", "2", {}, "no columns to learn from"),
        ("a,b,y", "red,1,2", {}, "text in 'a' (such as 'red'), which a Mondrian forest cannot"),
        ("a,b,y", "2020-01-01,1,2", {}, "dates or times in 'a' (such as '2020-01-01')"),
        (",b,y", "0,1,2", {}, 'without a name, perhaps row numbers. Drop it with --drop ""'),
    ],
)
def test_unusable_columns_are_an_error(header, row, options, message):
    table = table_of(f"{header}\n{row}\n")
    with pytest.raises(TableError) as error:
        column_specs(table, schema_of(table, "y", **options), MondrianForestClassifier())
    assert message in str(error.value)


def start_of(path, options, resume=True, folder=None, source="s", from_=None):
    store = ModelStore(path, None if folder is None else Checkpointer(folder))
    previous = load_previous(from_, store if resume else None)
    check_task(options, previous)
    return start_run(options, previous, source)


def saved(path, n_rows, kind="order-free", **options):
    from onlineforest._forests.saving import write_model

    training = trained(rows_of(n_rows), FORESTS[kind]["classify"](5, random_state=0))
    position = {**training.position().as_json(), "source": "s", **options}
    write_model(training.forest, path, position)
    return training.forest, position


def test_a_run_resumes_from_the_file_with_more_samples(tmp_path):
    model, folder = tmp_path / "m", tmp_path / "c"
    assert start_of(model, TrainingOptions("classify"), folder=folder).position.rows == 0
    forest, position = saved(model, 30)
    assert start_of(model, TrainingOptions(), folder=folder).position.rows == 30
    Checkpointer(folder).save(forest, {**position, "rows": 20})
    assert start_of(model, TrainingOptions(), folder=folder).position.rows == 30
    Checkpointer(folder).save(forest, {**position, "rows": 40})
    assert start_of(model, TrainingOptions(), folder=folder).position.rows == 40
    (folder / "checkpoint-000000000003.safetensors").write_bytes(b"broken")
    start = start_of(model, TrainingOptions(), folder=folder)
    assert start.position.rows == 40 and "000002.safetensors, after 40 samples" in start.message


@pytest.mark.parametrize(
    ("options", "stored", "error", "message"),
    [
        (
            TrainingOptions("regress"),
            {},
            OptionError,
            "--task is regress, but .* OnlineForestClassifier",
        ),
        (
            TrainingOptions(parameters={"n_estimators": 7}),
            {},
            OptionError,
            "--trees is 7, but .* n_estimators = 5",
        ),
        (
            TrainingOptions(batch_size=7),
            {},
            OptionError,
            "--batch-size is 7, but .* started with 10",
        ),
        (TrainingOptions(), {"source": "other"}, TrainingError, "was learned from other data"),
        (TrainingOptions(), {"rows": "x"}, TrainingError, "does not say which rows"),
    ],
)
def test_resuming_with_other_options_or_data_is_an_error(tmp_path, options, stored, error, message):
    saved(tmp_path / "m", 30, **stored)
    with pytest.raises(error, match=message):
        start_of(tmp_path / "m", options)


def test_resuming_a_mondrian_forest_for_numbers_is_an_error(tmp_path):
    saved(tmp_path / "m", 30, "mondrian")
    with pytest.raises(OptionError, match=r"--task is regress, but .* MondrianForestClassifier"):
        start_of(tmp_path / "m", TrainingOptions("regress"))


@pytest.mark.parametrize("other", FORESTS)
def test_resuming_with_another_kind_of_forest_is_an_error(tmp_path, kind, other):
    forest, position = saved(tmp_path / "m", 30, kind)
    Checkpointer(tmp_path / "c").save(forest, {**position, "rows": 40})
    for folder in (None, tmp_path / "c"):
        if other == kind:
            start = start_of(tmp_path / "m", TrainingOptions(kind=kind), folder=folder)
            assert start.position.rows == (30 if folder is None else 40)
            continue
        name = "m" if folder is None else "checkpoint-000000000001.safetensors"
        words = rf"--forest is {other}, but the forest in .*{name} is {kind} \(.*Classifier\)"
        with pytest.raises(OptionError, match=words):
            start_of(tmp_path / "m", TrainingOptions(kind=other), folder=folder)


def test_contradictory_options_are_an_error(tmp_path):
    with pytest.raises(OptionError, match=r"'--task': classify .* regress"):
        start_of(tmp_path / "m", TrainingOptions())
    words = "--task regress needs --forest order-free: --forest mondrian learns"
    with pytest.raises(OptionError, match=words):
        start_of(tmp_path / "m", TrainingOptions("regress", kind="mondrian"))
    with pytest.raises(OptionError, match="exclude each other"):
        start_of(tmp_path / "m", TrainingOptions("regress", {"window": 5, "reservoir": 5}))
    with pytest.raises(OptionError, match="give --reservoir"):
        start_of(tmp_path / "m", TrainingOptions("regress", {"half_life": 5.0}))
    Checkpointer(tmp_path / "c").save(saved(tmp_path / "other", 20)[0])
    with pytest.raises(OptionError, match="already has checkpoints"):
        ModelStore(tmp_path / "m", Checkpointer(tmp_path / "c")).check_is_new()


def test_metrics_of_classes():
    classes = np.array(["a", "b", "c"])
    probabilities = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4], [0.3, 0.3, 0.4]])
    means = class_metrics(classes, probabilities, np.array(["a", "c", "c"])).means()
    assert means["accuracy"] == pytest.approx(2 / 3)
    assert means["log_loss"] == pytest.approx(log_loss([0, 2, 2], probabilities, labels=[0, 1, 2]))
    unknown = class_metrics(classes, probabilities[:1], np.array(["zebra"])).means()
    assert unknown == {
        "accuracy": 0.0,
        "log_loss": pytest.approx(-math.log(1e-3)),
        "ece": pytest.approx(0.7),
    }


def test_the_calibration_error_of_batches_is_that_of_all_samples():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([0.3, 0.3, 0.3], size=500)
    probabilities[:2] = np.eye(3)[:2]  # the last bin is closed
    classes, labels = np.arange(3), rng.integers(3, size=500)
    pieces = [slice(i, i + 7) for i in range(0, 500, 7)]
    batches = [class_metrics(classes, probabilities[piece], labels[piece]) for piece in pieces]
    error = sum(batches, Metrics()).means()["ece"]
    assert error == pytest.approx(Bins.of(labels, probabilities, classes, 15).error)
    assert error > 0.3


def test_metrics_of_numbers_and_their_sum():
    first = value_metrics(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    first += interval_metrics(np.array([[0.0, 2.0], [1.0, 2.0]]), np.array([1.0, 5.0]))
    both = first + value_metrics(np.array([0.0]), np.array([-3.0]))
    assert first.means() == {
        "coverage": 0.5,
        "mae": 1.5,
        "rmse": pytest.approx(math.sqrt(4.5)),
        "width": 1.5,
    }
    assert both.n == 3 and both.means()["rmse"] == pytest.approx(math.sqrt(6.0))
    assert Metrics.from_json(both.as_json()) == both
    for odd in (None, {}, {"n": -1, "sums": {}}, {"n": 1, "sums": {"a": "b"}}):
        with pytest.raises(ValueError, match="cannot be read"):
            Metrics.from_json(odd)


def test_a_curve_file_continues_after_an_interruption(tmp_path):
    path = tmp_path / "curve.csv"
    points = [(n, Metrics(n, {"rmse": n * 4.0}), Metrics(10, {"rmse": 90.0})) for n in (10, 20, 30)]
    curve = CurveFile(path)
    for point in points:
        curve.add(*point)
    curve.close()
    whole = path.read_text()
    assert whole.splitlines()[:2] == ["samples,rmse,batch_rmse", "10,2,3"]
    with path.open("a") as file:
        file.write("4")  # killed in the middle of a line
    curve = CurveFile(path, n_learned=25)
    curve.add(*points[2])
    curve.close()
    assert path.read_text() == whole
    assert read_curve(path) == ([10, 20, 30], {"rmse": [2.0] * 3, "batch_rmse": [3.0] * 3})


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "samples,x\n", "samples,x\n1,y\n", "samples,x\n1\n"]
)
def test_a_file_that_is_not_a_curve_is_an_error(tmp_path, text):
    (tmp_path / "curve.csv").write_text(text)
    with pytest.raises(ValueError, match="is not a learning curve"):
        read_curve(tmp_path / "curve.csv")


def test_metrics_of_a_regressor_include_its_intervals():
    rng = np.random.default_rng(0)
    text = "a,way,name\n" + "".join(f"{x},{2 * x},n\n" for x in rng.normal(size=200).tolist())
    training = trained(text, OnlineForestRegressor(5, random_state=0), coverage=0.9)
    means = training.metrics.means()
    assert means.keys() == {"coverage", "mae", "rmse", "width"}
    assert 0.5 < means["coverage"] <= 1 and means["mae"] <= means["rmse"] < 1
