"""Regression trees against dense linear algebra (`tests/reference/gaussian.py`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onlineforest import MondrianForestRegressor, RegressionTree
from reference.gaussian import GaussianTree
from support.core import core_forest, gaussian_forest, learn, trees_of
from support.statistics import check_frequencies, check_mean

# Fixed options: nothing is learned about the data as a whole.
PLAIN = {"discount": 0.3, "noise": 0.1, "trend": None, "calibrate": False}
SETTINGS = {
    "plain": {"feature_weights": None},
    "range": {"feature_weights": "range"},
    "all learned": {"discount": "learned", "noise": "learned", "feature_weights": "learned"},
    "trend": {"trend": "additive"},
    "weights": {"feature_weights": [1.0, 0.0, 2.5]},
    "finite lifetime": {"lifetime": 2.0, "feature_weights": None},
    "short lifetime": {"lifetime": 0.1, "feature_weights": None},
    "min_samples_split": {"min_samples_split": 6},
    "hardly any noise": {"noise": 1e-4},
    "only noise": {"noise": 1.0},
    "hardly any discount": {"discount": 1e-6},
    "huge discount": {"discount": 1e5},
}


def make_data():
    """A function with noise; some rows occur twice, with equal and with different values."""
    rng = np.random.default_rng(5)
    X = rng.random((60, 3)).astype(np.float32)
    y = 3 * X[:, 0] + np.sin(7 * X[:, 1]) + 0.2 * rng.normal(size=60)
    X[50:55] = X[:5]
    X[55:] = X[:5]
    y[55:] = y[:5]
    return X, y


WEIGHTS = np.random.default_rng(15).integers(1, 40, size=60) / 8


def references(forest, X, y, weights=None):
    """A reference tree per tree, and a function: shift and scale of rows in units of y."""
    state = forest._forest.get_state()
    expected = forest._forest.trend(X)
    leaves = forest.apply(X)
    trees = [
        GaussianTree.from_arrays(
            tree,
            leaves[:, t],
            X,
            (y - expected) / state["measures.scale"][0],
            lam=forest.lifetime,
            gamma=forest.discount_rate_,
            w=forest.feature_weights_,
            noise=forest.noise_,
            trend_variance=state["measures.trend_variance"][0],
            weights=weights,
        )
        for t, tree in enumerate(forest.trees_)
    ]
    return trees, lambda rows: (forest._forest.trend(rows), state["measures.scale"][0])


@pytest.fixture(params=[*SETTINGS, "weighted"])
def grown(request, check_invariants):
    """A forest learned in batches of several sizes, its data, and queries at all distances."""
    X, y = make_data()
    weights = WEIGHTS if request.param == "weighted" else np.ones(60)
    own = {} if request.param == "weighted" else SETTINGS[request.param]
    parameters = {**PLAIN, "feature_weights": "range", **own}
    forest = MondrianForestRegressor(n_estimators=3, random_state=3, **parameters)
    for start, stop in ((0, 20), (20, 21), (21, 22), (22, 40), (40, 60)):
        forest.partial_fit(X[start:stop], y[start:stop], sample_weight=weights[start:stop])
    check_invariants(forest._forest)
    rng = np.random.default_rng(6)
    queries = np.vstack([X[::12], X[::12] + 0.05 * rng.normal(size=X[::12].shape), [[9, 0, -4]]])
    return forest, X, y, weights, queries.astype(np.float32)


@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
def test_beliefs_equal_those_of_least_squares(grown):
    forest, X, y, weights, _ = grown
    trees, _ = references(forest, X, y, weights)
    for tree, arrays in zip(trees, forest.trees_):
        for i, j in enumerate(tree.nodes):
            mean, variance = tree.belief_from_below(j)
            assert abs(arrays.mean[i] - mean) < 1e-9
            assert abs(arrays.variance[i] - variance) < 1e-9


@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
def test_predictions_equal_those_of_the_joint_normal(grown):
    """The quadrature of the reference is exact to about 1e-10 at these rates and times."""
    forest, X, y, weights, queries = grown
    trees, units = references(forest, X, y, weights)
    moments = np.array([[tree.predict(x) for tree in trees] for x in queries.astype(float)])
    mean = moments[..., 0].mean(axis=1)
    variance = moments[..., 1].mean(axis=1) + moments[..., 0].var(axis=1)
    shift, scale = units(queries)
    predicted, std = forest.predict(queries, return_std=True)
    assert np.abs(predicted - (shift + scale * mean)).max() < 1e-8
    assert np.abs(std - scale * np.sqrt(variance)).max() < 1e-8


def test_leaving_a_point_out_equals_restricting_the_tree(grown):
    """Samples 0 and 3 occur twice: they are one point each, which is left out as a whole."""
    forest, X, y, weights, _ = grown
    trees, units = references(forest, X, y, weights)
    slots = np.array([0, 3, 17, 20, 21, 39, 52], dtype=np.int32)
    moments = np.array(
        [[tree.without(n).predict(X[n].astype(float)) for tree in trees] for n in slots]
    )
    shift, scale = units(X[slots])
    mean = shift + scale * moments[..., 0].mean(axis=1)
    std = scale * np.sqrt(moments[..., 1].mean(axis=1) + moments[..., 0].var(axis=1))
    left_out = forest._forest.predict_left_out(slots, 2)
    assert np.abs(left_out[:, 0] - mean).max() < 1e-8
    assert np.abs(left_out[:, 1] - std).max() < 1e-8


def test_leaving_the_only_point_out_gives_the_prior():
    forest = gaussian_forest(2, 1, noise=0.25)
    learn(forest, [[1.0]], [5.0])
    assert forest.predict_left_out(np.array([0], np.int32)).tolist() == [[5.0, 0.0]]


@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
@pytest.mark.parametrize("setting", ["plain", "finite lifetime", "trend", "min_samples_split"])
def test_prediction_is_the_average_over_extensions(setting, n_trees):
    """The reference samples extensions of the tree by the query, one by one."""
    X, y = make_data()
    parameters = {**PLAIN, "feature_weights": "range", **SETTINGS[setting]}
    forest = MondrianForestRegressor(1, random_state=8, **parameters).fit(X, y)
    (tree,), units = references(forest, X, y)
    rng = np.random.default_rng(9)
    queries = np.array([X[20] + [2.0, 0.2, 0], X[30] - [0.05, 0.3, 0.9]], dtype=np.float32)
    predicted, std = forest.predict(queries, return_std=True)
    shift, scale = units(queries)
    n = min(n_trees, 3000)  # each is a system of linear equations
    for q, x in enumerate(queries.astype(float)):
        mean, variance = np.array([tree.sample_extension(x, rng) for _ in range(n)]).T
        assert variance.std() > 1e-4, "the query lies inside its leaf: nothing was averaged"
        here = (predicted[q] - shift[q]) / scale
        check_mean(f"query {q}, mean", mean, here)
        second_moment = (std[q] / scale) ** 2 + here**2
        check_mean(f"query {q}, second moment", variance + mean**2, second_moment)


@pytest.mark.heavy_under_sanitizers(reason="most of the time is spent in the plain reference")
def test_values_drawn_from_the_model_are_calibrated():
    """Simulation-based calibration: values drawn from the prior of a tree have uniform levels.

    Each round draws a tree, its values and an extension of the tree by the query. So the level of
    the query's value in the predicted distribution is uniform. The prior's mean and scale are set
    to those of the simulation; otherwise they would be estimated.
    """
    rng = np.random.default_rng(0)
    levels = np.linspace(0.1, 0.9, 9)
    n = 1500
    places = []
    for i in range(n):
        X = rng.random((8, 2)).astype(np.float32)
        forest = gaussian_forest(1, 2, discount=0.5, noise=0.2, seed=i, weights=[1.0, 2.0])
        state = learn(forest, X, np.arange(8.0)).get_state()
        tree = reference_of(state, X, forest)
        state["values"] = tree.y = tree.sample_values(rng)
        state |= {"measures.intercept": np.zeros(1), "measures.scale": np.ones(1)}
        forest = type(forest).from_state(state)
        x = rng.random(2).astype(np.float32)
        mean, variance = tree.sample_extension(x.astype(float), rng)
        value = rng.normal(mean, math.sqrt(variance))
        places.append(np.searchsorted(forest.quantiles(x[None], levels)[0], value))
    check_frequencies("level of a value in its distribution", places, np.full(10, 0.1))


def reference_of(state, X, forest):
    return GaussianTree.from_arrays(
        RegressionTree(**forest.tree(0)),
        forest.apply(X)[:, 0],
        X,
        np.zeros(len(X)),
        lam=math.inf,
        gamma=forest.discount_rate,
        w=forest.feature_weights,
        noise=state["measures.noise"][0],
    )


@pytest.mark.parametrize("min_samples_split", [2, 4])
@pytest.mark.parametrize("lifetime", [math.inf, 1.2])
@pytest.mark.parametrize(
    "sizes", [[30], [1] * 30, [2] * 15, [1, 29], [10, 20], [28, 1, 1]], ids=str
)
def test_trees_over_numbers_equal_trees_over_labels(
    sizes, lifetime, min_samples_split, check_invariants
):
    """Equal to the bit if equal labels are equal numbers: so no other tests of trees are needed."""
    rng = np.random.default_rng(3)
    X = rng.random((30, 3)).round(1).astype(np.float32)
    y = rng.integers(4, size=30)
    options = {
        "lifetime": lifetime,
        "min_samples_split": min_samples_split,
        "weights": [1.0, 2.0, 0.5],
        "seed": 4,
    }
    labels, numbers = core_forest(20, 3, **options), gaussian_forest(20, 3, **options)
    for batch in np.split(np.arange(30), np.cumsum(sizes)[:-1]):
        learn(labels, X[batch], y[batch], 4)
        learn(numbers, X[batch], 7.5 * y[batch])
    check_invariants(numbers)
    for first, second in zip(trees_of(labels), trees_of(numbers)):
        for name in ("left", "right", "split_dimension", "split_location", "split_time", "rng"):
            assert np.array_equal(first[name], second[name])
        assert np.array_equal(first["next_point"], second["next_point"])


def spread_out(n=400):
    rng = np.random.default_rng(1)
    X = rng.random((n, 4)).astype(np.float32)
    return X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.heavy_under_sanitizers(reason="learns 16 forests with all options")
@pytest.mark.parametrize(("factor", "shift"), [(10.0, 0.0), (1e-3, 0.0), (1.0, 1e6), (-1e8, 3e9)])
@pytest.mark.parametrize("batches", [1, 7])
def test_units_of_y_do_not_matter(factor, shift, batches):
    X, y = spread_out()
    forests = []
    for values in (y, factor * y + shift):
        forest = MondrianForestRegressor(n_estimators=10, random_state=0)
        for batch in np.array_split(np.arange(300), batches):
            forest.partial_fit(X[batch], values[batch])
        forests.append(forest)
    plain, other = (forest.predict(X[300:], return_std=True) for forest in forests)
    tolerance = 1e-6 * abs(factor) + 1e-14 * abs(shift)
    assert np.abs(other[0] - (factor * plain[0] + shift)).max() < tolerance
    assert np.abs(other[1] - abs(factor) * plain[1]).max() < tolerance
    if factor > 0:
        low, high = (forest.predict_interval(X[300:]) for forest in forests)
        assert np.abs(high - (factor * low + shift)).max() < tolerance
    density, scaled = (
        forest.log_density(X[300:], values)
        for forest, values in zip(forests, (y[300:], factor * y[300:] + shift))
    )
    assert np.abs(scaled - (density - math.log(abs(factor)))).max() < 1e-4


def test_values_around_1e9_keep_their_precision():
    """float64 resolves 1e9 to 1e-7; predictions are nearly as precise."""
    X, y = spread_out()
    near = MondrianForestRegressor(n_estimators=10, random_state=0)
    far = MondrianForestRegressor(n_estimators=10, random_state=0)
    for x, value in zip(X[:200], np.round(y[:200], 3)):
        near.learn_one(x, float(value))
        far.learn_one(x, float(value) + 1e9)
    mean, std = near.predict(X[200:], return_std=True)
    far_mean, far_std = far.predict(X[200:], return_std=True)
    assert np.abs(far_mean - 1e9 - mean).max() < 1e-5
    assert np.abs(far_std - std).max() < 1e-5
