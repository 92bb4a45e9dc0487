"""Scores of classes are those of scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score, roc_auc_score

from onlineforest import OnlineForestClassifier, OnlineForestRegressor
from onlineforest._cli.forests import HeldSamples
from onlineforest._cli.scores import ClassScores, f1_scores, roc_auc
from support.commands import CLASSIFY, REGRESS, SMALL, fine, stream


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_distinct", [2, 7, 10_000])
def test_the_area_under_the_curve_counts_ties_and_weights(n_distinct, weighted):
    rng = np.random.default_rng(n_distinct)
    scores = rng.integers(n_distinct, size=400) / n_distinct
    are_positive = rng.random(400) < 0.2 + 0.6 * scores
    weights = rng.random(400) if weighted else None
    expected = roc_auc_score(are_positive, scores, sample_weight=weights)
    assert roc_auc(are_positive, scores, weights) == pytest.approx(expected, abs=1e-12)
    assert roc_auc(~are_positive, scores, weights) == pytest.approx(1 - expected, abs=1e-12)


def test_without_positives_or_negatives_there_is_no_area():
    scores = np.array([0.1, 0.2])
    assert np.isnan(roc_auc(np.array([True, True]), scores))
    assert np.isnan(roc_auc(np.array([False, True]), scores, np.array([1.0, 0.0])))


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(4, size=200), rng.integers(3, size=200)
    expected = f1_score(truth, predicted, average=None, zero_division=0.0)
    found = f1_scores(confusion_matrix(truth, predicted))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[3] == 0.0
    assert f1_scores(np.zeros((2, 2), dtype=int)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("names", [np.arange(5), np.array(list("abcde"))])
def test_scores_of_batches_are_those_of_all_samples(n_classes, names):
    rng = np.random.default_rng(n_classes)
    classes = names[:n_classes]
    probabilities = rng.dirichlet(np.ones(n_classes), size=300).round(2)  # with ties
    truth = classes[np.r_[np.arange(n_classes), rng.integers(n_classes, size=300 - n_classes)]]
    scores = ClassScores()
    for i in range(0, 300, 37):
        scores.add(classes, probabilities[i : i + 37], truth[i : i + 37])
    found = scores.as_json()
    predicted = classes[probabilities.argmax(axis=1)]
    of_each = [roc_auc_score(truth == each, p) for each, p in zip(classes, probabilities.T)]
    expected = of_each[1] if n_classes == 2 else np.mean(of_each)
    assert found["auc"] == pytest.approx(expected, abs=1e-12)
    assert found["f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert found["f1_of_classes"] == pytest.approx(f1_score(truth, predicted, average=None))
    assert found["classes"] == classes.tolist()
    assert found["confusion"] == confusion_matrix(truth, predicted).tolist()
    assert json.loads(json.dumps(found)) == found


def test_a_class_that_is_not_known_yet_has_probability_0():
    scores = ClassScores()
    scores.add(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 2]))
    third = np.array([[0.3, 0.3, 0.4], [0.2, 0.7, 0.1]])
    scores.add(np.array([0, 1, 2]), third, np.array([2, 1]))
    truth, columns = np.array([0, 2, 2, 1]), np.array([[0.9, 0.2], [0.1, 0.8], [0.0, 0.0]])
    of_each = [roc_auc_score(truth == k, np.r_[columns[k], third[:, k]]) for k in range(3)]
    assert scores.auc() == pytest.approx(np.mean(of_each))
    assert scores.confusion().tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]


def test_too_many_probabilities_are_not_held():
    scores = ClassScores(most_held=5)
    two = np.array([[0.9, 0.1], [0.2, 0.8]])
    scores.add(np.array([0, 1]), two, np.array([0, 1]))
    assert scores.auc() == 1.0
    scores.add(np.array([0, 1]), two, np.array([0, 1]))
    scores.add(np.array([0, 1]), two, np.array([0, 1]))
    assert scores.auc() is None
    assert scores.confusion().tolist() == [[3, 0], [0, 3]]


def test_one_class_has_no_area_and_many_classes_no_table():
    scores = ClassScores()
    scores.add(np.array([0, 1]), np.array([[0.9, 0.1]]), np.array([0]))
    assert scores.auc() is None
    assert scores.lines() == ["true class  0  F1", "0           1   1"]
    scores.add(np.arange(13), np.eye(13), np.arange(13))
    assert scores.lines() == ["The confusion matrix of 13 classes is in the output of --json."]


def test_evaluate_prints_the_scores(folder):
    options = ["evaluate", "data.csv", *CLASSIFY, *SMALL]
    facts = json.loads(fine(*options, "--json", "-q").output)
    frame = stream(500)
    forest, X, y = OnlineForestClassifier(5, random_state=0), frame[["a", "b", "c"]], frame.kind
    forest.partial_fit(X[:50], y[:50])
    found = []
    for i in range(50, 500, 50):
        found.append(forest.predict_proba(X[i : i + 50]))
        forest.partial_fit(X[i : i + 50], y[i : i + 50])
    probabilities, truth = np.vstack(found), y[50:]
    predicted = forest.classes_[probabilities.argmax(axis=1)]
    expected = roc_auc_score(truth, probabilities, multi_class="ovr", average="macro")
    assert facts["auc"] == pytest.approx(expected, abs=1e-12)
    assert facts["f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert facts["confusion"] == confusion_matrix(truth, predicted).tolist()
    assert facts["classes"] == ["blue", "green", "red"]
    lines = fine(*options).output.splitlines()
    assert f"AUC, mean of each class against the rest  {expected:>10.4g}" in lines
    table = [line.split() for line in lines[-4:]]
    assert table[0] == ["true", "class", "blue", "green", "red", "F1"]
    assert [row[1:-1] for row in table[1:]] == [list(map(str, r)) for r in facts["confusion"]]
    assert '"f1"' not in fine("evaluate", "data.csv", *REGRESS, *SMALL, "--json").output


def test_evaluate_counts_rows_that_the_model_holds(folder):
    frame = stream(500)
    frame.assign(a=-0.0).to_csv("learned.csv", index=False)
    fine("train", "learned.csv", *CLASSIFY, *SMALL, "-o", "m.st")
    more = stream(80, seed=1).assign(a=0.0)
    mixed = frame.assign(a=0.0)[:120]  # equal to the learned rows, some with a missing value
    mixed.loc[mixed.index[:20], "kind"] = "other"  # not with this target
    for n_old, name in ((100, "mixed.csv"), (0, "more.csv")):
        rows = [*mixed[: 120 if n_old else 0].to_dict("records"), *more.to_dict("records")]
        type(frame)(rows).to_csv(name, index=False)
        for extra in (["--no-learn"], []):
            options = ["evaluate", name, "--target", "kind", "--from", "m.st", *extra]
            assert json.loads(fine(*options, "--json", "-q").output)["learned_before"] == n_old
            words = f"Warning: {n_old} of {n_old + 100} rows have the features and the target of a"
            assert (words in fine(*options).output) == (n_old > 0)
    assert "learned_before" not in fine("evaluate", "more.csv", *CLASSIFY, *SMALL, "--json").output


def test_numbers_and_levels_of_held_samples_are_compared(folder):
    options = ["--target", "value", "--task", "regress", "--drop", "id", "--trees", "5"]
    fine("train", "data.csv", *options, "--window", "300", "-o", "m.st")
    result = fine("evaluate", "data.csv", "--target", "value", "--from", "m.st", "--json", "-q")
    assert json.loads(result.output)["learned_before"] == 300


def test_zeros_and_missing_values_are_equal_whatever_their_bits():
    X = np.array([[0.0], [np.nan], [2.0]])
    held = HeldSamples(OnlineForestRegressor(2).fit(X, [0.0, 1.0, 2.0]))
    held.count(np.array([[-0.0], [-np.nan], [np.copysign(np.nan, -1)]]), np.array([-0.0, 1, 2]))
    assert held.n_equal == 2
    held.count(X[:1], np.array([1.0]))
    assert held.n_equal == 2


def test_held_samples_keep_their_classes_while_others_come(folder):
    rows = [f"{i},{'old' if i < 50 else 'kept'}" for i in range(100)]
    (folder / "first.csv").write_text("\n".join(["a,t", *rows]))
    options = ["--target", "t", "--task", "classify", "--trees", "3", "--window", "100"]
    fine("train", "first.csv", *options, "-o", "m.st")
    # The rows of `old` leave, its code becomes that of `new`, and these rows come with `new`.
    rows = [f"{1000 + i},kept" for i in range(60)] + [f"{i % 50},new" for i in range(200)]
    (folder / "second.csv").write_text("\n".join(["a,t", *rows]))
    options = ["--target", "t", "--from", "m.st", "--batch-size", "10", "--json", "-q"]
    facts = json.loads(fine("evaluate", "second.csv", *options).output)
    assert facts["learned_before"] == 0 and facts["classes"] == ["kept", "new"]
