"""Pictures leave out samples that lack a feature, and label splits that ask for it."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from sklearn.datasets import load_digits

from onlineforest import (
    OnlineForestClassifier,
    OnlineForestRegressor,
    plot,
)
from support.pictures import (
    IRIS,
    NAMES,
    grid_of,
    only,
    path_conditions,
    rendered,
)


def with_gaps(X, share=0.3, seed=0):
    """A copy of X that lacks some values."""
    X = np.array(X, dtype=np.float32)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


# Whether a value is missing tells the class: all trees ask for it.
GAPS = np.array([[i, np.nan if i % 2 else i % 7] for i in range(60)], dtype=np.float32)
GAP_LABELS = [str(i % 2) if i < 50 else "rest" for i in range(60)]


@pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
def test_a_split_that_asks_for_missing_values_is_labelled(kind):
    y = GAP_LABELS if kind is OnlineForestClassifier else np.unique(GAP_LABELS, return_inverse=1)[1]
    forest = kind(4, random_state=0).fit(GAPS, y)
    n_asked = 0
    for i, tree in enumerate(forest.trees_):
        axes = rendered(plot.tree(forest, tree=i, max_depth=100))
        asks = np.isinf(tree.split_location)
        asked = [t.get_text() for t in axes.texts if "missing" in t.get_text()]
        names = [f"feature {feature}\nnot missing" for feature in tree.split_dimension[asks]]
        assert sorted(asked) == sorted(names)
        splits = [t for t in axes.texts if "≤" in t.get_text()]
        assert len(splits) == np.isfinite(tree.split_location).sum()
        n_asked += len(asked)
    assert n_asked > 0


def test_a_partition_has_no_line_for_samples_that_lack_a_feature():
    forest = OnlineForestClassifier(6, min_samples_split=2, random_state=0).fit(GAPS, GAP_LABELS)
    n_hidden = 0
    for i, tree in enumerate(forest.trees_):
        drawn = []
        for j in np.flatnonzero(np.isfinite(tree.split_location)):
            above = path_conditions(tree, j)
            if any(np.isinf(location) and not goes_left for _, location, goes_left in above):
                n_hidden += 1
            else:
                drawn.append((tree.split_dimension[j], tree.split_location[j]))
        axes = rendered(plot.partition(forest, GAPS, GAP_LABELS, tree=i))
        segments = only(LineCollection, axes).get_segments()
        places = [(np.ptp(line, axis=0).argmin(), line.min(axis=0)) for line in segments]
        assert sorted((d, start[d]) for d, start in places) == sorted(drawn)
    assert n_hidden > 0
    points = only(PathCollection, axes)
    np.testing.assert_array_equal(points.get_offsets(), GAPS[~np.isnan(GAPS).any(axis=1)])


@pytest.mark.parametrize("estimator", [OnlineForestClassifier, OnlineForestRegressor])
def test_pictures_of_samples_with_gaps_leave_these_out(estimator):
    X = with_gaps(IRIS.data.to_numpy())
    X[:5, :2] = [[100.0, np.nan]] * 5
    y = NAMES if estimator is OnlineForestClassifier else IRIS.target
    forest = estimator(3, random_state=0).fit(X, y)
    axes = rendered(plot.decision_surface(forest, X, y, features=(0, 1), resolution=10))
    (image,) = axes.images
    plain = image.get_array()
    rows = np.tile(np.nanmedian(X, axis=0), (100, 1))
    rows[:, :2] = grid_of(image, 10)
    if estimator is OnlineForestRegressor:
        right = np.abs(plain.ravel() - forest.predict(rows)) < 1e-3
        assert right.mean() > 0.95
    assert axes.get_xlim()[1] > 100  # where a sample lies that lacks the other feature
    are_drawn = ~np.isnan(X[:, :2]).any(axis=1)
    assert 50 < are_drawn.sum() < 100
    np.testing.assert_array_equal(only(PathCollection, axes).get_offsets(), X[are_drawn, :2])


@pytest.mark.parametrize("estimator", [OnlineForestClassifier, OnlineForestRegressor])
def test_a_feature_that_all_samples_lack_is_drawn(estimator):
    X = np.array([[i, np.nan] for i in range(9)], dtype=np.float32)
    forest = estimator(2, random_state=0).fit([[i, i % 4] for i in range(9)], np.arange(9) % 2)
    for given in (X, None):
        for kind in (forest, estimator(2, random_state=0).fit(X, np.arange(9) % 2)):
            y = None if given is None else np.arange(9) % 2
            axes = rendered(plot.decision_surface(kind, given, y, resolution=5))
            assert not [c for c in axes.collections if type(c) is PathCollection]
            rendered(plot.partition(kind, given, y))
            rendered(plot.tree(kind))


def test_names_of_many_classes_are_written_amid_known_points():
    X, y = load_digits(return_X_y=True)
    X = with_gaps(X[:300, [20, 42]])
    forest = OnlineForestClassifier(1, random_state=0).fit(X, y[:300])
    axes = rendered(plot.partition(forest, X, y[:300]))
    assert 5 <= len(axes.texts) <= 10
    assert np.isfinite([text.get_position() for text in axes.texts]).all()
