"""Pictures of predictions and novelty over a plane of two features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor
from onlineforest._inputs.levels import Level
from onlineforest.plot.checks import (
    Classifier,
    Forest,
    categorical_names,
    check_count,
    check_forest,
    check_has_novelty,
    feature_names,
    numeric_features,
    raw_feature_names,
    without_name_warning,
)
from onlineforest.plot.figures import (
    COLOUR_MAP,
    MIDDLE,
    axes_or_new,
    class_colours,
    level_name,
    printable,
    shortened,
)
from onlineforest.plot.points import (
    Points,
    check_points,
    draw_points,
    limits_of,
    medians_of,
    name_classes,
    sample_box,
    typical_levels,
    with_margin,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEVELS_IN_TITLE = 2
MAX_RESOLUTION = 2000
BATCH_ROWS = 8192  # bounds the memory of the probabilities of thousands of classes


def decision_surface(
    forest: Forest,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw the predictions of a forest over a plane of two features.

    For a classifier, the colour shows the most probable class; it is paler for lower probability,
    and white where all classes are equally probable. For a regressor, the colour shows the mean,
    and contour lines show the standard deviation.

    Parameters
    ----------
    forest : OnlineForestClassifier, OnlineForestRegressor or MondrianForestClassifier
        The forest.
    X : array-like of shape (n_samples, n_features), default=None
        Samples to draw as points, unless one of the two features is missing; the plane includes all
        of them. With None, the plane includes the samples the forest has learned.
    y : array-like of shape (n_samples,), default=None
        Their labels or values, which determine their colours.
    features : pair of int or str, default=None
        The features of the plane, by index or name; required if more than two are numeric. They
        must be numeric. If there are others, X is required, too: they are held at their medians
        in X or, if categorical, at their most frequent levels in X. So the rows of X with one level
        show the predictions for this level.
    resolution : int, default=200
        Number of grid points along each axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import OnlineForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OnlineForestClassifier(20, random_state=0).fit(X, y)
    >>> ax = plot.decision_surface(forest, X, y, features=(2, 3), resolution=50)
    >>> ax.figure.savefig("surface.png")
    """
    check_forest(forest)
    points = check_points(forest, X, y)
    plane = Plane.of(forest, X, points, features, resolution, margin=0.08)
    axes = axes_or_new(ax)
    if isinstance(forest, BaseClassifier):
        _draw_classes(axes, plane, forest)
    else:
        _draw_means(axes, plane, forest)
    plane.finish(axes, forest)
    return axes


def novelty_map(
    forest: MondrianForestClassifier,
    X: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw the novelty over a plane of two features.

    The colour shows ``forest.novelty``: light near samples the forest has learned, dark far from
    all of them.

    Parameters
    ----------
    forest : MondrianForestClassifier
        The forest.
    X : array-like of shape (n_samples, n_features), default=None
        Samples to draw as points; the plane includes all of them. With None, the plane includes
        the samples the forest has learned.
    features : pair of int or str, default=None
        The features of the plane, by index or name; required if there are more than two. The
        others are held at their medians in X, which is then required, too.
    resolution : int, default=200
        Number of grid points along each axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(20, random_state=0).fit(X[:, 2:], y)
    >>> ax = plot.novelty_map(forest, X[:, 2:], resolution=50)
    >>> ax.figure.savefig("novelty.png")
    """
    check_has_novelty(forest)
    points = check_points(forest, X, None)
    plane = Plane.of(forest, X, points, features, resolution, margin=0.3)
    axes = axes_or_new(ax)
    image = plane.show(axes, plane.evaluate(forest.novelty), cmap="Purples", vmin=0.0, vmax=1.0)
    axes.figure.colorbar(image, ax=axes, label="novelty")
    if plane.points is not None:
        draw_points(axes, plane.points, forest)
    plane.finish(axes, forest)
    return axes


@dataclass(frozen=True)
class Plane:
    """A grid of points in the plane of two features."""

    features: tuple[int, int]
    x: NDArray[np.floating]  # grid values of the first feature, ascending
    y: NDArray[np.floating]  # grid values of the second feature, ascending
    others: NDArray[Any]  # values of all features; those of the two are unused
    levels: dict[int, Level]  # levels of the categorical features; `others` holds them, too
    points: Points | None  # the points in this plane

    @classmethod
    def of(
        cls,
        forest: Forest,
        X: ArrayLike | None,
        points: Points | None,
        features: Sequence[int | str] | None,
        resolution: int,
        margin: float,
    ) -> Plane:
        """The plane that includes the points of X or, without points, the samples learned."""
        pair = list(check_features(forest, features))
        resolution = check_count(resolution, "resolution", 2, MAX_RESOLUTION)
        if points is not None:
            low, high = limits_of(points.rows)
            others, columns = medians_of(points.rows), forest._rows.columns
            levels = typical_levels(X, columns) if columns else {}
            if levels:
                others = others.astype(object)
                others[list(levels)] = list(levels.values())
            points = points.in_plane(pair)
        elif forest.n_features_in_ == 2:
            low, high = sample_box(forest)
            others, levels = low, {}
        else:
            raise ValueError(
                f"X is required: this forest has {forest.n_features_in_} features, and those that "
                "are not drawn are held at their medians in X, or their most frequent levels in X."
            )
        dtype = low.dtype
        low, high = with_margin(low[pair], high[pair], margin)
        x, y = (np.linspace(low[i], high[i], resolution).astype(dtype) for i in (0, 1))
        return cls((pair[0], pair[1]), x, y, others, levels, points)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Some of the grid points as rows of features; the first feature varies fastest."""
        at = np.arange(start, stop)
        rows = np.tile(self.others, (len(at), 1))
        rows[:, self.features[0]] = self.x[at % len(self.x)]
        rows[:, self.features[1]] = self.y[at // len(self.x)]
        return rows

    def evaluate(self, predict: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """Results of a method at the grid points, shape (n_y, n_x, …)."""
        n = len(self.x) * len(self.y)
        batches = [
            without_name_warning(predict, self.rows(start, min(start + BATCH_ROWS, n)))
            for start in range(0, n, BATCH_ROWS)
        ]
        result = np.concatenate(batches)
        return result.reshape(len(self.y), len(self.x), *result.shape[1:])

    def show(self, axes: Axes, values: NDArray[Any], **options: Any) -> Any:
        """Draw values at the grid points as an image; each pixel has a grid point in its centre."""
        (left, right), (below, above) = (
            (float(ends[0]) - half, float(ends[-1]) + half)
            for ends in (self.x, self.y)
            for half in [0.5 * (float(ends[-1]) - float(ends[0])) / (len(ends) - 1)]
        )
        return axes.imshow(
            values,
            extent=(left, right, below, above),
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            **options,
        )

    def finish(self, axes: Axes, forest: Forest) -> None:
        """Label the axes, and note the features that are held."""
        names = feature_names(forest)
        axes.set(xlabel=names[self.features[0]], ylabel=names[self.features[1]])
        held = self._held(names)
        if held:
            axes.set_title(held, loc="left", fontsize=9)

    def _held(self, names: list[str]) -> str:
        """Text that names the values at which the other features are held."""
        n_levels, n_numbers = len(self.levels), len(names) - 2 - len(self.levels)
        lines = []
        if n_numbers:
            kind = "numeric " if n_levels else ""
            features = f"{kind}feature" if n_numbers == 1 else f"{n_numbers} {kind}features"
            lines.append(f"the other {features} at the median")
        if n_levels > MAX_LEVELS_IN_TITLE:
            lines.append(f"the {n_levels} categorical features at the most frequent level")
        elif n_levels:
            shown = {names[i]: level_name(level, 20) for i, level in self.levels.items()}
            lines.append(", ".join(f"{name}: {printable(level)}" for name, level in shown.items()))
        return "\n".join(lines)


def check_features(forest: Forest, features: Sequence[int | str] | None) -> tuple[int, int]:
    """The indices of the two features to draw; raises if they cannot be axes."""
    numeric = numeric_features(forest)
    if len(numeric) < 2:
        categorical = categorical_names(forest)
        raise ValueError(
            f"A plane needs 2 {'numeric ' if categorical else ''}features. This forest has "
            f"{len(numeric)}" + (f": these are categorical: {categorical}." if categorical else ".")
        )
    if features is None:
        if len(numeric) > 2:
            kind = "" if len(numeric) == forest.n_features_in_ else "numeric "
            raise ValueError(
                f"This forest has {len(numeric)} {kind}features: name two to draw, such as "
                f"features=({numeric[0]}, {numeric[1]})."
            )
        return numeric[0], numeric[1]
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(f"features must be two indices or names. Got {features!r} instead.")
    if len(features) != 2:
        raise ValueError(f"features must be two indices or names. Got {len(features)} of them.")
    first, second = (_feature_index(forest, feature) for feature in features)
    if first == second:
        raise ValueError(f"features must be two different features. Got {features!r} instead.")
    for feature in (first, second):
        if feature not in numeric:
            name = shortened(raw_feature_names(forest)[feature], 60)
            raise ValueError(
                f"Feature {name!r} is categorical and cannot be an axis: its levels have no order. "
                f"Name two of the {len(numeric)} numeric features."
            )
    return first, second


def _feature_index(forest: Forest, feature: object) -> int:
    n_features: int = forest.n_features_in_
    if isinstance(feature, str):
        names = list(getattr(forest, "feature_names_in_", []))
        if feature not in names:
            known = "it has no feature names" if not names else f"it has {', '.join(names[:10])}"
            raise ValueError(f"This forest has no feature {feature!r}: {known}.")
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise TypeError(f"A feature must be an index or a name. Got {feature!r} instead.")
    if not -n_features <= int(feature) < n_features:
        raise ValueError(f"feature {feature} is outside [0, n_features = {n_features}).")
    return int(feature) % n_features


def _draw_classes(axes: Axes, plane: Plane, forest: Classifier) -> None:
    classes = forest.classes_

    def best_class(rows: NDArray[Any]) -> NDArray[np.float64]:
        probabilities = forest.predict_proba(rows)
        return np.stack([probabilities.argmax(axis=1), probabilities.max(axis=1)], axis=1)

    result = plane.evaluate(best_class)
    best, probability = result[..., 0].astype(np.intp), result[..., 1]
    least = 1.0 / len(classes)
    sure = np.clip((probability - least) / (1.0 - least), 0.0, 1.0) if least < 1.0 else probability
    colours = class_colours(len(classes))[best]
    plane.show(axes, 1.0 - 0.7 * sure[..., None] * (1.0 - colours))
    shown = np.unique(best)
    points = plane.points
    if points is not None:
        draw_points(axes, points, forest)
        if points.codes is not None:
            shown = np.union1d(shown, points.codes)
    name_classes(
        axes,
        classes,
        lambda: _most_certain_points(plane, best, sure),
        shown=shown[shown >= 0],
        title="class\n(paler: less sure)",
        unknown=bool((shown < 0).any()),
    )


def _most_certain_points(
    plane: Plane, best: NDArray[np.intp], sure: NDArray[np.float64]
) -> dict[int, tuple[float, float]]:
    """For each class, largest area first, a central grid point of the region where it is surest."""
    codes, sizes = np.unique(best, return_counts=True)
    found = {}
    for code in codes[np.argsort(-sizes, kind="stable")]:
        certainty = np.where(best == code, sure, 0.0)
        up, along = np.nonzero(certainty >= 0.9 * certainty.max())
        middle = np.median(up), np.median(along)
        nearest = (np.abs(up - middle[0]) + np.abs(along - middle[1])).argmin()
        found[int(code)] = (
            float(plane.x[along[nearest]]),
            float(plane.y[up[nearest]]),
        )
    return found


def _draw_means(axes: Axes, plane: Plane, forest: OnlineForestRegressor) -> None:
    from matplotlib.colors import Normalize
    from matplotlib.patheffects import AbstractPathEffect, withStroke

    result = plane.evaluate(lambda rows: np.stack(forest.predict(rows, return_std=True), axis=1))
    mean, std = result[..., 0], result[..., 1]
    values = None if plane.points is None else plane.points.values
    shown = mean.ravel() if values is None else np.concatenate([mean.ravel(), values])
    norm = Normalize(shown.min(), shown.max())
    image = plane.show(axes, mean, cmap=COLOUR_MAP, norm=norm)
    axes.figure.colorbar(image, ax=axes, label="mean (lines: standard deviation)")
    if np.ptp(std) > 1e-6 * np.abs(std).max():
        lines = axes.contour(plane.x, plane.y, std, levels=5, colors="white", linewidths=0.8)
        outline: list[AbstractPathEffect] = [withStroke(linewidth=1.6, foreground=MIDDLE)]
        lines.set_path_effects(outline)
        for text in axes.clabel(lines, fontsize=7):
            text.set_path_effects(outline)
    if plane.points is not None:
        draw_points(axes, plane.points, forest, norm)
