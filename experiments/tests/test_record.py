"""The record of accuracy: figures of known data, going on after an interruption, the page."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # experiments are run from a checkout, never installed

from experiments import record
from experiments.record import CLASSIFICATION, REGRESSION, STREAM, Task

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def halves(seed):
    """Two classes that lie apart, and the side as target."""
    rng = np.random.default_rng(seed)
    X = rng.random((120, 2))
    X[:, 0] += np.arange(120) % 2 * 3.0
    return X, np.arange(120) % 2


def train_and_test(seed):
    X, y = halves(seed)
    return X[:80], y[:80], X[80:], y[80:]


def numbers(seed):
    X, y, X_test, y_test = train_and_test(seed)
    return X, y + X[:, 1], X_test, y_test + X_test[:, 1]


TASKS = (
    Task("apart", CLASSIFICATION, "two halves", train_and_test),
    Task("sums", REGRESSION, "two halves", numbers),
    Task("apart", STREAM, "all in order", halves),
)


@pytest.fixture(scope="module")
def rows():
    return {task.kind: record.measure(task, seeds=[0, 1]) for task in TASKS}


def test_a_row_has_sizes_and_one_value_per_seed(rows):
    for row in rows.values():
        assert row["seeds"] == [0, 1]
        assert row["n_features"] == 2
        values = [v for model in row["metrics"].values() for v in model.values()]
        assert values and all(len(v) == 2 and all(map(math.isfinite, v)) for v in values)
    sizes = {kind: (row["n_train"], row["n_test"]) for kind, row in rows.items()}
    assert sizes == {CLASSIFICATION: (80, 40), REGRESSION: (80, 40), STREAM: (120, 120)}


def test_easy_data_are_predicted(rows):
    classification, stream = rows[CLASSIFICATION]["metrics"], rows[STREAM]["metrics"]
    for model in record.CLASSIFIERS:
        assert min(classification[model]["accuracy"]) == 1.0
        assert max(classification[model]["log_loss"]) < 0.3
    assert classification["most frequent class"]["accuracy"] == [0.5, 0.5]
    assert min(stream["MondrianForestClassifier"]["accuracy"]) > 0.9
    assert stream["class of the sample before"]["accuracy"] == [0.0, 0.0]
    regression = rows[REGRESSION]["metrics"]
    for model in record.REGRESSORS:
        assert max(regression[model]["rmse"]) < 0.3
    assert regression["RandomForestRegressor"].keys() == {"rmse"}
    assert min(regression["MondrianForestRegressor"]["coverage_90"]) > 0.6


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch, capsys):
    path = tmp_path / "deep" / "record.json"
    record.run(TASKS[:1], path, COMMIT)
    first = json.loads(path.read_text())
    assert first["commit"] == COMMIT and set(first["versions"]) >= {"numpy", "scikit-learn"}
    measured = []
    measure = record.measure
    monkeypatch.setattr(record, "measure", lambda task: measured.append(task) or measure(task))
    record.run(TASKS, path, COMMIT)
    assert measured == list(TASKS[1:])
    assert "apart, classification: recorded already" in capsys.readouterr().out
    second = json.loads(path.read_text())
    assert second["rows"][0] == first["rows"][0] and len(second["rows"]) == len(TASKS)
    with pytest.raises(SystemExit, match="is a record of commit 0123456"):
        record.run(TASKS, path, "f" * 40)
    assert list(path.parent.iterdir()) == [path]


def test_the_page_shows_means_over_seeds(rows, tmp_path):
    row = rows[CLASSIFICATION]
    row = {**row, "metrics": {"MondrianForestClassifier": {"accuracy": [0.5, 0.75]}}}
    path = tmp_path / "record" / "some.json"
    record.write_record({**record.circumstances(COMMIT), "rows": [row, rows[REGRESSION]]}, path)
    page = tmp_path / "record.md"
    assert record.main(["--page", str(page), "--from", str(path)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "at commit 0123456," in text and "[the file](record/some.json)" in text
    assert "| apart | 80 | 40 | 2 | 0.6250 | – | – | – | – | – | – |" in text
    assert "- sums: two halves; seeds 0, 1." in text
    assert "## Regression" in text and "## Streams" not in text
    tables = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert tables[:3] == [tables[0]] * 3 and tables[3:] == [tables[3]] * 3


def test_the_page_of_the_documentation_is_that_of_its_record():
    path = ROOT / "docs/record/2f3eea0.json"
    kept = json.loads(path.read_text())
    page = (ROOT / "docs/record.md").read_text(encoding="utf-8")
    assert record.page(kept, "record/2f3eea0.json") == page
    assert kept["commit"].startswith(path.stem)
    kinds = [(row["data"], row["task"]) for row in kept["rows"]]
    assert kinds == [(task.data, task.kind) for task in record.TASKS]


def test_texts_become_codes_in_order_of_appearance():
    import pyarrow as pa

    texts = pa.chunked_array([["b", "a"], [None, "b", "c"]])
    assert np.array_equal(record.ordinal_codes(texts), [0, 1, np.nan, 0, 2], equal_nan=True)
    assert np.array_equal(record.ordinal_codes(pa.chunked_array([[3, 1]])), [3, 1])


@pytest.mark.parametrize("arguments", [[], ["--page", "x.md"], ["--out", "x", "--from", "y"]])
def test_arguments_that_do_not_fit_are_refused(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        record.main(arguments)
    assert "--page" in capsys.readouterr().err


def test_a_revision_that_is_no_commit_is_refused():
    with pytest.raises(SystemExit, match="no-such-revision is no commit"):
        record.full_commit("no-such-revision")
