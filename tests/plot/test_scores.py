"""Bars, curves, reliability diagrams and intervals show the numbers that they are given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.patches import StepPatch
from sklearn.exceptions import NotFittedError

from onlineforest import (
    OnlineForestRegressor,
    plot,
)
from onlineforest.plot import calibration as _plot_calibration
from support.pictures import (
    DIABETES,
    IRIS,
    NAMES,
    PETALS,
    legend_texts,
    only,
    points_of,
    rendered,
)


def test_bars_are_the_importances_sorted(iris):
    axes = rendered(plot.importances(iris))
    values = iris.feature_importances_
    order = np.argsort(-values, kind="stable")
    assert [bar.get_width() for bar in axes.patches] == list(values[order])
    assert [text.get_text() for text in axes.get_yticklabels()] == list(IRIS.data.columns[order])
    assert axes.yaxis_inverted()  # the first is at the top
    few = rendered(plot.importances(iris, max_features=1))
    assert len(few.patches) == 1
    rest = np.sort(values)[:3].sum()
    assert few.get_title(loc="left") == f"the other 3 features: {rest:.3f} together"
    with pytest.raises(ValueError, match=r"max_features must be an integer, at least 1. Got 0"):
        plot.importances(iris, max_features=0)


def test_learning_curves_are_lines_with_names():
    axes = plot.learning_curve([10, 20], {"one": [0.5, np.nan], "two": (0.1, 0.2)}, ylabel="loss")
    one, two = rendered(axes).lines
    np.testing.assert_array_equal(one.get_xydata(), [[10, 0.5], [20, np.nan]])
    np.testing.assert_array_equal(two.get_ydata(), [0.1, 0.2])
    assert legend_texts(axes) == ["one", "two"]
    assert axes.get_ylabel() == "loss" and axes.get_xlabel() == "samples learned"
    assert plot.learning_curve([1, 2], {"alone": [0, 1]}).get_legend() is None
    many = plot.learning_curve([1, 2], {str(i): [0, 1] for i in range(20)})
    inside = [
        of.get_legend().get_window_extent().x0 < of.bbox.x1 for of in map(rendered, [axes, many])
    ]
    assert inside == [True, False]  # many would cover the lines
    assert len({(line.get_color(), line.get_linestyle()) for line in many.lines}) == 20
    with pytest.raises(ValueError, match=r"curves\['one'\] has 1 scores for 2 n_samples"):
        plot.learning_curve([1, 2], {"one": [1]})
    for curves in ([1, 2], {}):
        with pytest.raises(TypeError, match=r"curves must be a mapping of at least one name"):
            plot.learning_curve([1, 2], curves)
    with pytest.raises(TypeError, match=r"curves\['a'\] must hold numbers. Got 'x'"):
        plot.learning_curve([1, 2], {"a": "x"})
    with pytest.raises(ValueError, match=r"n_samples must be a 1d array. Got an array of shape"):
        plot.learning_curve([[1, 2]], {"a": [1, 2]})


def test_reliability_equals_a_calculation_by_hand():
    y = ["a", "b", "b", "a"]
    sure = [[0.95, 0.05], [0.91, 0.09], [0.39, 0.61], [0.69, 0.31]]
    axes = rendered(plot.reliability(y, sure, n_bins=10))
    _, line = axes.lines
    # In the bin from 0.9 one of two is right, in that from 0.6 both are.
    np.testing.assert_allclose(line.get_xydata(), [[0.65, 1.0], [0.93, 0.5]])
    error = 0.5 * 0.35 + 0.5 * 0.43
    assert legend_texts(axes) == ["as said", f"ECE {error:.3f}", "share of samples"]
    np.testing.assert_allclose(only(StepPatch, axes).get_data().values, [0] * 6 + [0.5, 0, 0, 0.5])


def test_the_bin_of_a_probability_holds_its_lower_end():
    bins = _plot_calibration.Bins.of(
        np.array([0, 0, 0]), np.array([[0.5, 0.5], [1.0, 0.0], [0.75, 0.25]]), np.array([0, 1]), 4
    )
    np.testing.assert_array_equal(bins.share, [0, 0, 1 / 3, 2 / 3])
    assert bins.error == pytest.approx(0.5 / 3 + 2 / 3 * 0.125)


def test_reliability_of_several_methods_and_of_unknown_classes():
    proba = np.array([[0.2, 0.8], [0.2, 0.8]])
    axes = rendered(
        plot.reliability([1, 7], {0: proba, "B": proba[:, ::-1]}, classes=[0, 1], n_bins=5)
    )
    # The first predicts 1 twice, once rightly; B predicts 0, always wrongly.
    assert legend_texts(axes)[1:3] == ["0 (ECE 0.300)", "B (ECE 0.800)"]


def test_bad_probabilities_are_errors():
    y, good = [0, 1], [[0.2, 0.8], [0.5, 0.5]]
    for bad, words in [
        ([[0.2, 0.3, 0.5]] * 2, "probabilities have 3 columns for 2 classes. Give the classes"),
        ([[0.2, 0.8]], r"shape \(2, n_classes\), as y has 2 labels. Got an array of shape \(1, 2"),
        ([0.2, 0.8], r"Got an array of shape \(2,\)"),
        ([[0.2, 0.8], [0.2, 1.8]], r"must lie between 0 and 1\. Got 1.8 in row 1, column 1"),
        ([[0.2, np.nan]] * 2, r"must lie between 0 and 1\. Got nan in row 0, column 1"),
        ([[0.2, 0.8], [-1.0, 2.0]], r"Got -1 in row 1, column 0"),
        ({}, "nothing to draw"),
    ]:
        with pytest.raises(ValueError, match=words):
            plot.reliability(y, bad)
    with pytest.raises(TypeError, match=r"probabilities must be numbers. Got 'x'"):
        plot.reliability(y, "x")
    with pytest.raises(ValueError, match=r"nothing to draw"):
        plot.reliability([], np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"n_bins must be an integer, 1 to 1000. Got 0"):
        plot.reliability(y, good, n_bins=0)


def test_intervals_are_sorted_by_prediction(diabetes):
    X, y = DIABETES.data[300:, [2, 8]], DIABETES.target[300:]
    axes = rendered(plot.intervals(diabetes, X, y, coverage=0.6))
    mean, ends = diabetes.predict(X), diabetes.predict_interval(X, 0.6)
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_ydata(), np.sort(mean))
    is_inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    inside, outside = points_of(axes)
    assert 0 < len(outside) == np.sum(~is_inside)
    order = np.argsort(mean, kind="stable")
    np.testing.assert_array_equal(inside[:, 1], y[order][is_inside[order]])
    np.testing.assert_array_equal(outside[:, 0], np.flatnonzero(~is_inside[order]))
    assert legend_texts(axes)[1:3] == ["interval of 0.6", f"inside: {is_inside.mean():.3f}"]
    (band,) = [c for c in axes.collections if isinstance(c, PolyCollection)]
    corners = band.get_paths()[0].vertices
    assert set(np.round(ends.ravel(), 6)) <= set(np.round(corners[:, 1], 6))


def test_intervals_of_one_feature_are_drawn_over_its_values():
    X, y = DIABETES.data[:200, [2]], DIABETES.target[:200]
    forest = OnlineForestRegressor(5, random_state=0)
    forest.fit(pd.DataFrame(X[:100], columns=["bmi"]), y[:100])
    axes = rendered(plot.intervals(forest, pd.DataFrame(X[100:], columns=["bmi"]), y[100:]))
    assert axes.get_xlabel() == "bmi"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), np.sort(X[100:, 0]), rtol=1e-6)
    at = np.concatenate(points_of(axes))[:, 0]
    np.testing.assert_allclose(np.sort(at), np.sort(X[100:, 0]), rtol=1e-6)
    X[150] = np.nan  # has a rank, but no place on the axis of the feature
    axes = rendered(plot.intervals(forest, pd.DataFrame(X[100:], columns=["bmi"]), y[100:]))
    assert axes.get_xlabel() == "samples, by predicted mean"
    assert sum(map(len, points_of(axes))) == 100


def test_bad_arguments_of_intervals_are_errors(petals, diabetes):
    X, y = DIABETES.data[:10, [2, 8]], DIABETES.target[:10]
    message = r"must be a regressor, such as an OnlineForestRegressor. Got \w+Classifier"
    with pytest.raises(TypeError, match=message):
        plot.intervals(petals, PETALS, NAMES)
    with pytest.raises(NotFittedError):
        plot.intervals(OnlineForestRegressor(), X, y)
    with pytest.raises(ValueError, match=r"coverage must"):
        plot.intervals(diabetes, X, y, coverage=[0.5, 0.9])
    with pytest.raises(ValueError, match=r"coverage"):
        plot.intervals(diabetes, X, y, coverage=1.5)
    with pytest.raises(ValueError, match=r"intervals needs X and y"):
        plot.intervals(diabetes, X, None)
    with pytest.raises(ValueError, match=r"X has 10 samples, but y has 9"):
        plot.intervals(diabetes, X, y[1:])
