"""All competitors check input, predict probabilities and draw from their seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

from experiments.competitors.denil import OnlineForestDenil
from experiments.competitors.dynamic_trees import DynamicTrees
from experiments.competitors.river_forests import RiverForest
from experiments.competitors.saffari import OnlineForestSaffari
from support.examples import thorough_but

pytestmark = pytest.mark.xdist_group("compiled competitors")  # compiled once

NEW = {
    "Saffari": lambda seed: OnlineForestSaffari(3, n_tests=5, min_samples_split=5, seed=seed),
    "Denil": lambda seed: OnlineForestDenil(3, min_samples_child=3, seed=seed),
    "dynamic trees": lambda seed: DynamicTrees(5, seed=seed),
}


@pytest.fixture(params=thorough_but("Denil", of=NEW))
def new(request):
    return NEW[request.param]


def make_data():
    rng = np.random.default_rng(8)
    X = rng.random((120, 4))
    y = (X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.4)
    return X, np.where(rng.random(120) < 0.2, rng.integers(0, 4, 120), y)


def test_probabilities_are_valid_and_uniform_at_first(new):
    X, y = make_data()
    model = new(0).partial_fit(X[:0], y[:0], classes=range(5))
    np.testing.assert_allclose(model.predict_proba(X), 0.2)  # nothing learned: uniform
    proba = model.partial_fit(X, y).predict_proba(X)
    assert proba.shape == (120, 5) and (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert (model.predict(X) == y).mean() > 0.5
    assert model.predict_proba(X[:0]).shape == (0, 5)


def test_labels_may_be_any_integers(new):
    X, y = make_data()
    names = np.array([-7, 3, 4, 1000])
    plain, renamed = new(0).partial_fit(X, y), new(0).partial_fit(X.tolist(), names[y])
    assert renamed.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(plain.predict_proba(X), renamed.predict_proba(X))
    np.testing.assert_array_equal(renamed.predict(X), names[plain.predict(X)])


def test_randomness_comes_from_the_seed_alone(new):
    X, y = make_data()
    np.random.seed(0)  # noqa: NPY002, the global state must not matter
    first = new(1).partial_fit(X, y).predict_proba(X)
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(new(1).partial_fit(X, y).predict_proba(X), first)
    assert np.abs(new(2).partial_fit(X, y).predict_proba(X) - first).max() > 0.01


def test_a_bad_first_call_changes_nothing(new):
    X, y = make_data()
    model = new(0)
    with pytest.raises(ValueError, match="has learned nothing yet"):
        model.predict_proba(X)
    for bad_X, bad_y, classes, message in [
        (X, y, [0, 1], r"not among the classes: \[2, 3\]"),
        (X, y, [0, 0, 1, 2, 3], "different labels"),
        (X[:0], y[:0], None, "one or more different labels"),
        (X[:, :0], y, None, "at least one feature"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad_X, bad_y, classes=classes)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :3], y, None), "X has 3 features, but this .* was fitted with 4"),
        (lambda X, y: (np.where(X > 0.99, np.nan, X), y, None), "NaN"),
        (lambda X, y: (np.where(X > 0.99, np.inf, X), y, None), "infinity"),
        (lambda X, y: (X[0], y, None), "shape"),
        (lambda X, y: (X, y[:, np.newaxis], None), "shape"),
        (lambda X, y: (X, y[:-1], None), "X has 120 rows, but y has 119 labels"),
        (lambda X, y: (X, y + 1, None), r"not among the classes: \[4\]"),
        (lambda X, y: (X, y + 0.5, None), "integers"),
        (lambda X, y: (X, y, range(5)), "must stay"),
    ],
)
def test_bad_input_changes_nothing(new, change, message):
    X, y = make_data()
    model, untouched = (new(3).partial_fit(X, y) for _ in range(2))
    bad_X, bad_y, classes = change(X, y)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(bad_X, bad_y, classes=classes)
    with pytest.raises(ValueError, match="features"):
        model.predict_proba(X[:, :3])
    for each in (model, untouched):
        each.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict_proba(X), untouched.predict_proba(X))


def test_a_bad_seed_is_refused():
    with pytest.raises(ValueError, match="'seed' parameter of DynamicTrees must be an integer"):
        DynamicTrees(seed=-1)


def test_river_forests_have_the_interface_of_the_others():
    X, y = make_data()
    model = RiverForest("AMFClassifier", n_estimators=10, seed=0)
    model.partial_fit(X[:100], y[:100], classes=np.arange(5))
    proba = model.predict_proba(X[100:])
    assert proba.shape == (20, 5)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-9)
    learned = model.predict_proba(X[:100]).argmax(axis=1)
    assert (model.classes_[learned] == y[:100]).mean() > 0.9
    silent = RiverForest("ARFClassifier", n_models=2, seed=0)
    silent.classes_ = np.arange(4)
    np.testing.assert_allclose(silent.predict_proba(X[:3]), 0.25)
