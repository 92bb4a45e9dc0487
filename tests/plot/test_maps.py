"""Maps show predictions, deviations and novelty over the plane of two features."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    plot,
)
from onlineforest.plot.figures import COLOURS, class_colours
from support.pictures import (
    CLASSIFIERS,
    IRIS,
    KINDS,
    NAMES,
    PETALS,
    grid_of,
    only,
    rendered,
)


def test_a_surface_shows_what_the_classifier_predicts(petals):
    axes = rendered(plot.decision_surface(petals, PETALS, NAMES, resolution=30))
    (image,) = axes.images
    assert image.origin == "lower"
    grid = grid_of(image, 30)
    shown = np.asarray(image.get_array()).reshape(-1, 3)
    probabilities = petals.predict_proba(grid)
    sure = (probabilities.max(axis=1) - 1 / 3) / (1 - 1 / 3)
    colours = np.array([to_rgb(colour) for colour in COLOURS])[probabilities.argmax(axis=1)]
    # A place and the middle of its pixel differ by rounding; a split may lie between.
    right = np.abs(shown - (1 - 0.7 * sure[:, None] * (1 - colours))).max(axis=1) < 1e-3
    assert right.mean() > 0.99
    assert len(np.unique(shown, axis=0)) > 10
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), PETALS)


def test_a_surface_shows_mean_and_deviation_of_a_regressor(diabetes):
    axes = rendered(plot.decision_surface(diabetes, resolution=30))
    (image,) = axes.images
    mean, std = diabetes.predict(grid_of(image, 30), return_std=True)
    right = np.abs(np.asarray(image.get_array()).ravel() - mean) < 1e-3 * np.ptp(mean)
    assert right.mean() > 0.99
    (contours,) = [c for c in axes.collections if isinstance(c, QuadContourSet)]
    inside = [level for level in contours.levels if std.min() < level < std.max()]
    assert len(inside) >= 2


def test_other_features_are_held_at_their_medians(iris, plain_iris):
    by_name = plot.decision_surface(
        iris, IRIS.data, features=("petal width (cm)", "sepal length (cm)"), resolution=10
    )
    by_index = plot.decision_surface(
        plain_iris, IRIS.data.to_numpy(), features=[3, -4], resolution=10
    )
    for axes, forest in ((by_name, plain_iris), (by_index, plain_iris)):
        (image,) = rendered(axes).images
        rows = np.tile(IRIS.data.median().to_numpy(), (100, 1))
        rows[:, [3, 0]] = grid_of(image, 10)
        sure = (forest.predict_proba(rows).max(axis=1) - 1 / 3) / (1 - 1 / 3)
        shown = np.asarray(image.get_array()).reshape(-1, 3)
        darkest = 1 - shown.min(
            axis=1
        )  # the three class colours become 1, 1 and 1 less their least part
        colours = class_colours(3)[forest.predict_proba(rows).argmax(axis=1)]
        expected = 0.7 * sure * (1 - colours.min(axis=1))
        assert (np.abs(darkest - expected) < 1e-3).mean() > 0.95
        assert axes.get_title(loc="left") == "the other 2 features at the median"
    assert by_name.get_xlabel() == "petal width (cm)"
    assert by_index.get_ylabel() == "feature 0"


def test_novelty_of_an_order_free_forest_is_an_error_that_names_the_mondrian_forest():
    forest = OnlineForestClassifier(2).fit(PETALS, NAMES)
    message = r"boxes of a Mondrian forest.* an OnlineForestClassifier, .* Fit a MondrianForestCla"
    with pytest.raises(ValueError, match=message):
        plot.novelty_map(forest, PETALS)


def test_a_map_of_novelty_shows_novelty(mondrian_petals):
    axes = rendered(plot.novelty_map(mondrian_petals, PETALS, resolution=30))
    (image,) = axes.images
    novelty = mondrian_petals.novelty(grid_of(image, 30))
    np.testing.assert_allclose(np.asarray(image.get_array()).ravel(), novelty, atol=1e-4)
    assert image.get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), PETALS)
    left, right = axes.get_xlim()
    assert left < PETALS[:, 0].min() and right > PETALS[:, 0].max()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [0, 0]),
        ([[1.0, 2.0], [1.0, 3.0]], [0, 1]),
        ([[-3e38, 2.0], [3e38, 3.0]], [0, 1]),
        ([[1e-30, 1e30], [2e-30, 1e30]], [0, 1]),
    ],
)
def test_maps_of_degenerate_data_are_drawn(X, y):
    for kind in KINDS:
        forest = kind(3, random_state=0).fit(X, y)
        top, bottom = Figure(dpi=30).subplots(2, 2)
        plot.decision_surface(forest, X, y, resolution=5, ax=top[0])
        if kind is MondrianForestClassifier:
            plot.novelty_map(forest, X, resolution=5, ax=top[1])
        plot.partition(forest, X, y, ax=bottom[0])
        rendered(plot.tree(forest, ax=bottom[1]))


@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        *((kind, plot.decision_surface) for kind in CLASSIFIERS),
        (MondrianForestClassifier, plot.novelty_map),
    ],
)
def test_bad_planes_are_errors(kind, draw):
    X = IRIS.data
    petals, iris, plain_iris = (
        kind(2, random_state=0).fit(rows, NAMES) for rows in (PETALS, X, X.to_numpy())
    )
    with pytest.raises(ValueError, match=r"has 4 features: name two to draw, such as features="):
        draw(iris, X)
    with pytest.raises(ValueError, match=r"X is required: this forest has 4 features"):
        draw(iris, features=(0, 1))
    with pytest.raises(ValueError, match=r"no feature 'leaf': it has sepal length"):
        draw(iris, X, features=("leaf", 1))
    with pytest.raises(ValueError, match=r"no feature 'leaf': it has no feature names"):
        draw(plain_iris, X.to_numpy(), features=("leaf", 1))
    with pytest.raises(ValueError, match=r"feature 4 is outside \[0, n_features = 4\)"):
        draw(iris, X, features=(0, 4))
    with pytest.raises(ValueError, match=r"features must be two different features"):
        draw(iris, X, features=(3, -1))
    with pytest.raises(ValueError, match=r"two indices or names. Got 3 of them"):
        draw(iris, X, features=(0, 1, 2))
    for features in ("ab", 1, {0, 1}):
        with pytest.raises(TypeError, match=r"features must be two indices or names. Got"):
            draw(iris, X, features=features)
    for feature in (1.0, True, None):
        with pytest.raises(TypeError, match=r"A feature must be an index or a name. Got"):
            draw(iris, X, features=(0, feature))
    with pytest.raises(ValueError, match=r"A plane needs 2 features. This forest has 1"):
        draw(kind(1).fit([[1.0], [2.0]], [0, 1]))
    for resolution in (1, 2001, 10.0):
        with pytest.raises(ValueError, match=r"resolution must be an integer, 2 to 2000. Got"):
            draw(petals, resolution=resolution)
