"""Pictures of what a forest says over a plane of two features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest.plot.base import (
    MIDDLE,
    VALUES,
    Points,
    axes_or_new,
    check_count,
    check_forest,
    check_points,
    check_tree,
    class_colours,
    draw_points,
    feature_names,
    name_classes,
    root_box,
    with_margin,
    without_name_warning,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onlineforest.plot.base import Forest

FINEST = 2000  # places along an axis
ROWS_AT_ONCE = 8192  # thousands of classes times all places would not fit into memory


def decision_surface(
    forest: Forest,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a forest predicts over a plane of two features.

    For a classifier the colour is that of the most probable class, and the paler it is, the less
    sure: white where all classes are equally probable. For a regressor the colour is the mean, and
    lines join places of the same standard deviation.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        The forest.
    X : array-like of shape (n_samples, n_features), default=None
        Samples to draw as points; the plane shows all of them. None shows the plane around what
        the forest has learned.
    y : array-like of shape (n_samples,), default=None
        Their labels or values, which give them colours.
    features : pair of int or str, default=None
        The features of the plane, by index or name; needed if there are more than two. The others
        are held at their medians in X, which is then needed, too.
    resolution : int, default=200
        Number of places along each axis.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(20, random_state=0).fit(X, y)
    >>> ax = plot.decision_surface(forest, X, y, features=(2, 3), resolution=50)
    >>> ax.figure.savefig("surface.png")
    """
    check_forest(forest)
    points = check_points(forest, X, y)
    plane = Plane.of(forest, points, features, resolution, margin=0.08)
    axes = axes_or_new(ax)
    if isinstance(forest, MondrianForestClassifier):
        _draw_classes(axes, plane, forest)
    else:
        _draw_means(axes, plane, forest)
    plane.finish(axes, forest)
    return axes


def novelty_map(
    forest: Forest,
    X: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far each place of a plane is from everything a forest has learned.

    That is, ``forest.novelty``: light where it has learned samples, dark far from all of them.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        The forest.
    X : array-like of shape (n_samples, n_features), default=None
        Samples to draw as points; the plane shows all of them. None shows the plane around what
        the forest has learned.
    features : pair of int or str, default=None
        The features of the plane, by index or name; needed if there are more than two. The others
        are held at their medians in X, which is then needed, too.
    resolution : int, default=200
        Number of places along each axis.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(20, random_state=0).fit(X[:, 2:], y)
    >>> ax = plot.novelty_map(forest, X[:, 2:], resolution=50)
    >>> ax.figure.savefig("novelty.png")
    """
    check_forest(forest)
    points = check_points(forest, X, None)
    plane = Plane.of(forest, points, features, resolution, margin=0.3)
    axes = axes_or_new(ax)
    image = plane.show(axes, plane.ask(forest.novelty), cmap="Purples", vmin=0.0, vmax=1.0)
    axes.figure.colorbar(image, ax=axes, label="novelty")
    if plane.points is not None:
        draw_points(axes, plane.points, forest)
    plane.finish(axes, forest)
    return axes


@dataclass(frozen=True)
class Plane:
    """A grid of places in the plane of two features."""

    features: tuple[int, int]
    across: NDArray[np.float32]  # values of the first feature, from left to right
    upwards: NDArray[np.float32]  # values of the second, from below
    others: NDArray[np.float32]  # values of all features; the two are not looked at
    points: Points | None  # in this plane

    @classmethod
    def of(
        cls,
        forest: Forest,
        points: Points | None,
        features: Sequence[int | str] | None,
        resolution: int,
        margin: float,
    ) -> Plane:
        """The plane of these features around the points, or around what was learned."""
        pair = list(_check_features(forest, features))
        resolution = check_count(resolution, "resolution", 2, FINEST)
        if points is not None:
            low, high = points.rows.min(axis=0), points.rows.max(axis=0)
            others = np.median(points.rows, axis=0).astype(np.float32)
            points = Points(points.rows[:, pair], points.codes, points.values)
        elif forest.n_features_in_ == 2:
            low, high = root_box(check_tree(forest, 0))
            others = low
        else:
            raise ValueError(
                f"X is needed: this forest has {forest.n_features_in_} features, and those that "
                "are not drawn are held at their medians in X."
            )
        low, high = with_margin(low[pair], high[pair], margin)
        across, upwards = (
            np.linspace(low[i], high[i], resolution).astype(np.float32) for i in (0, 1)
        )
        return cls((pair[0], pair[1]), across, upwards, others, points)

    def rows(self) -> NDArray[np.float32]:
        """The places as samples, row by row from below."""
        rows = np.tile(self.others, (len(self.across) * len(self.upwards), 1))
        rows[:, self.features[0]] = np.tile(self.across, len(self.upwards))
        rows[:, self.features[1]] = np.repeat(self.upwards, len(self.across))
        return rows

    def ask(self, predict: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """What a method says of the places, shape (n_upwards, n_across, …)."""
        rows = self.rows()
        parts = [
            without_name_warning(predict, rows[start : start + ROWS_AT_ONCE])
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        answer = np.concatenate(parts)
        return answer.reshape(len(self.upwards), len(self.across), *answer.shape[1:])

    def show(self, axes: Axes, values: NDArray[Any], **options: Any) -> Any:
        """An image of values at the places, each a pixel with the place in its middle."""
        (left, right), (below, above) = (
            (float(ends[0]) - half, float(ends[-1]) + half)
            for ends in (self.across, self.upwards)
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
        """Names of the axes, and of what is held."""
        names = feature_names(forest)
        axes.set(xlabel=names[self.features[0]], ylabel=names[self.features[1]])
        n_others = forest.n_features_in_ - 2
        if n_others:
            features = "feature" if n_others == 1 else f"{n_others} features"
            axes.set_title(f"the other {features} at the median", loc="left", fontsize=9)


def _check_features(forest: Forest, features: Sequence[int | str] | None) -> tuple[int, int]:
    """The indices of the two features to draw."""
    n_features = forest.n_features_in_
    if n_features < 2:
        raise ValueError("A plane needs 2 features. This forest has 1.")
    if features is None:
        if n_features > 2:
            raise ValueError(
                f"This forest has {n_features} features: say which two to draw, as features=(0, 1)."
            )
        return 0, 1
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(f"features must be two indices or names. Got {features!r} instead.")
    if len(features) != 2:
        raise ValueError(f"features must be two indices or names. Got {len(features)} of them.")
    first, second = (_feature_index(forest, feature) for feature in features)
    if first == second:
        raise ValueError(f"features must be two different ones. Got {features!r} instead.")
    return first, second


def _feature_index(forest: Forest, feature: object) -> int:
    n_features: int = forest.n_features_in_
    if isinstance(feature, str):
        names = list(getattr(forest, "feature_names_in_", []))
        if feature not in names:
            known = "it knows no names" if not names else f"it has {', '.join(names[:10])}"
            raise ValueError(f"This forest has no feature {feature!r}: {known}.")
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise TypeError(f"A feature must be an index or a name. Got {feature!r} instead.")
    if not -n_features <= int(feature) < n_features:
        raise ValueError(
            f"This forest has {n_features} features; there is none of index {feature}."
        )
    return int(feature) % n_features


def _draw_classes(axes: Axes, plane: Plane, forest: MondrianForestClassifier) -> None:
    classes = forest.classes_

    def best_and_sure(rows: NDArray[np.float32]) -> NDArray[np.float64]:
        probabilities = forest.predict_proba(rows)
        return np.stack([probabilities.argmax(axis=1), probabilities.max(axis=1)], axis=1)

    answer = plane.ask(best_and_sure)
    best, probability = answer[..., 0].astype(np.intp), answer[..., 1]
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
        lambda: _surest_places(plane, best, sure),
        shown=shown[shown >= 0],
        title="class\n(paler: less sure)",
        unknown=bool((shown < 0).any()),
    )


def _surest_places(
    plane: Plane, best: NDArray[np.intp], sure: NDArray[np.float64]
) -> dict[int, tuple[float, float]]:
    """For each class, largest areas first, a place in the middle of where it is surest."""
    codes, sizes = np.unique(best, return_counts=True)
    found = {}
    for code in codes[np.argsort(-sizes, kind="stable")]:
        mine = np.where(best == code, sure, 0.0)
        up, along = np.nonzero(mine >= 0.9 * mine.max())
        middle = np.median(up), np.median(along)
        nearest = (np.abs(up - middle[0]) + np.abs(along - middle[1])).argmin()
        found[int(code)] = (
            float(plane.across[along[nearest]]),
            float(plane.upwards[up[nearest]]),
        )
    return found


def _draw_means(axes: Axes, plane: Plane, forest: Any) -> None:
    from matplotlib.colors import Normalize
    from matplotlib.patheffects import AbstractPathEffect, withStroke

    answer = plane.ask(lambda rows: np.stack(forest.predict(rows, return_std=True), axis=1))
    mean, std = answer[..., 0], answer[..., 1]
    values = None if plane.points is None else plane.points.values
    shown = mean.ravel() if values is None else np.concatenate([mean.ravel(), values])
    norm = Normalize(shown.min(), shown.max())
    image = plane.show(axes, mean, cmap=VALUES, norm=norm)
    axes.figure.colorbar(image, ax=axes, label="mean (lines: standard deviation)")
    if np.ptp(std) > 1e-6 * np.abs(std).max():
        lines = axes.contour(
            plane.across, plane.upwards, std, levels=5, colors="white", linewidths=0.8
        )
        outline: list[AbstractPathEffect] = [withStroke(linewidth=1.6, foreground=MIDDLE)]
        lines.set_path_effects(outline)
        for text in axes.clabel(lines, fontsize=7):
            text.set_path_effects(outline)
    if plane.points is not None:
        draw_points(axes, plane.points, forest, norm)
