"""Pictures of numbers: what features tell, how good predictions are and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from onlineforest.plot.base import (
    COLOURS,
    DARK,
    LIGHT,
    MIDDLE,
    axes_or_new,
    check_count,
    check_forest,
    check_points,
    check_regressor,
    class_codes,
    feature_names,
    legend_beside,
    legend_inside,
    printable,
    without_name_warning,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from onlineforest._models.regressor import MondrianForestRegressor
    from onlineforest.plot.base import Forest

BLUE, ORANGE = COLOURS[0], COLOURS[3]
STYLES = ("-", "--", ":", "-.")


def importances(forest: Forest, *, max_features: int = 20, ax: Axes | None = None) -> Axes:
    """Draw how much each feature tells about the target, the most important at the top.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        The forest; its ``feature_importances_`` are drawn, whose sum is 1.
    max_features : int, default=20
        How many features to draw. What the others tell together is noted.
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
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = MondrianForestClassifier(10, random_state=0).fit(X, y)
    >>> ax = plot.importances(forest)
    >>> ax.figure.savefig("importances.png")
    """
    check_forest(forest)
    max_features = check_count(max_features, "max_features", 1)
    values = forest.feature_importances_
    order = np.argsort(-values, kind="stable")
    shown, others = order[:max_features], order[max_features:]
    names = feature_names(forest)
    axes = axes_or_new(ax, (6.5, float(np.clip(0.27 * len(shown) + 1.2, 2.0, 40.0))))
    bars = axes.barh(range(len(shown)), values[shown], color=BLUE, height=0.7)
    axes.bar_label(bars, [f"{value:.3f}" for value in values[shown]], padding=3, fontsize=8)
    axes.set_yticks(range(len(shown)), [names[i] for i in shown])
    axes.set(ylim=(len(shown) - 0.4, -0.6), xlabel="importance")
    # Room for the numbers.
    axes.set_xlim(0.0, 1.12 * float(values.max()) if values.max() > 0 else 1.0)
    axes.spines[["top", "right"]].set_visible(False)
    if len(others):
        features = "feature" if len(others) == 1 else f"{len(others)} features"
        axes.set_title(
            f"the other {features}: {values[others].sum():.3f} together", loc="left", fontsize=9
        )
    return axes


def learning_curve(
    n_samples: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    ylabel: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw scores over the number of samples learned, one line per method.

    Parameters
    ----------
    n_samples : array-like of shape (n_points,)
        The numbers of samples.
    curves : mapping of str to array-like of shape (n_points,)
        For each name its scores. NaN leaves a gap. The names stand in a legend if they are several.
    ylabel : str, default="accuracy"
        What the scores are.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Examples
    --------
    >>> from onlineforest import plot
    >>> ax = plot.learning_curve([100, 200, 300], {"online": [0.8, 0.9, 0.95]})
    >>> ax.figure.savefig("curve.png")
    """
    at = _numbers(n_samples, "n_samples")
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError(
            f"curves must be a mapping of names to scores, of one at least. Got {curves!r} instead."
        )
    lines = {name: _numbers(values, f"curves[{name!r}]") for name, values in curves.items()}
    for name, values in lines.items():
        if len(values) != len(at):
            raise ValueError(f"curves[{name!r}] has {len(values)} scores for {len(at)} n_samples.")
    axes = axes_or_new(ax)
    handles = [
        axes.plot(at, values, **_line_style(i))[0] for i, values in enumerate(lines.values())
    ]
    axes.set(xlabel="samples learned", ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        legend_inside(axes, handles, [printable(name, 40) for name in lines])
    return axes


def reliability(
    y: ArrayLike,
    probabilities: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often predicted classes are right, over how probable they were said to be.

    On the diagonal probabilities can be taken at their word; below it they are too sure. The bars
    tell how many samples each point stands for.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The true labels.
    probabilities : array-like of shape (n_samples, n_classes), or mapping of str to such
        What ``predict_proba`` says of the samples; of several methods, by name.
    classes : array-like of shape (n_classes,), default=None
        The classes of the columns, such as ``forest.classes_``. None takes those in y, sorted,
        which must then be all.
    n_bins : int, default=10
        Into how many bins of equal width the probabilities are put.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Notes
    -----
    The legend tells the expected calibration error (ECE): the distance of the points from the
    diagonal, on average over the samples.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import MondrianForestClassifier, plot
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = MondrianForestClassifier(20, random_state=0).fit(X[:1000], y[:1000])
    >>> ax = plot.reliability(y[1000:], forest.predict_proba(X[1000:]), classes=forest.classes_)
    >>> ax.figure.savefig("reliability.png")
    """
    n_bins = check_count(n_bins, "n_bins", 1, 1000)
    labels = column_or_1d(y)
    methods = probabilities if isinstance(probabilities, Mapping) else {"": probabilities}
    if len(labels) == 0 or not methods:
        raise ValueError("There is nothing to draw: no labels, or no probabilities.")
    columns = np.unique(labels) if classes is None else column_or_1d(classes)
    checked = {
        name: _check_probabilities(values, len(labels), len(columns))
        for name, values in methods.items()
    }
    bins = {name: Bins.of(labels, values, columns, n_bins) for name, values in checked.items()}
    axes = axes_or_new(ax, (6.5, 4.8))
    if isinstance(probabilities, Mapping):
        names = [f"{printable(name, 40)} (ECE {of.error:.3f})" for name, of in bins.items()]
    else:
        names = [f"ECE {of.error:.3f}" for of in bins.values()]
    _draw_bins(axes, list(bins.values()), names)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1.02),
        xlabel="probability of the predicted class",
        ylabel="share that is right",
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _draw_bins(axes: Axes, bins: list[Bins], names: list[str]) -> None:
    """The diagonal, a line and bars for each method, and what they are."""
    from matplotlib.patches import Patch

    alone = len(bins) == 1  # bars of several methods lie on one another: outlines only
    handles: list[Artist] = [axes.plot([0, 1], [0, 1], color=MIDDLE, lw=0.8, ls="--")[0]]
    for i, of_method in enumerate(bins):
        style = _line_style(i)
        handles += axes.plot(
            of_method.said, of_method.right, marker="o", ms=5, clip_on=False, **style
        )
        axes.stairs(
            of_method.share,
            np.linspace(0.0, 1.0, len(of_method.share) + 1),
            fill=alone,
            color=LIGHT if alone else style["color"],
            lw=0.8,
            alpha=1.0 if alone else 0.6,
            zorder=1,
        )
    handles.append(Patch(color=LIGHT, fill=alone))
    legend_beside(axes, handles, ["as said", *names, "share of samples"])


@dataclass(frozen=True)
class Bins:
    """Samples put into bins by how probable their predicted class is said to be."""

    said: NDArray[np.float64]  # mean probability of the predicted class in each bin with samples
    right: NDArray[np.float64]  # share of the samples there whose predicted class is the true one
    share: NDArray[np.float64]  # of all samples, in each bin

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float((self.share[self.share > 0] * np.abs(self.said - self.right)).sum())

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        probabilities: NDArray[np.float64],
        classes: NDArray[Any],
        n_bins: int,
    ) -> Self:
        """The bins of these predictions."""
        said = probabilities.max(axis=1)
        is_right = class_codes(classes, labels) == probabilities.argmax(axis=1)
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        bin_of = np.searchsorted(edges[1:-1], said, side="right")
        counts = np.bincount(bin_of, minlength=n_bins)
        used = counts > 0
        sums = (np.bincount(bin_of, weights, minlength=n_bins) for weights in (said, is_right))
        mean_said, mean_right = (total[used] / counts[used] for total in sums)
        return cls(mean_said, mean_right, counts / len(labels))


def _check_probabilities(values: Any, n_samples: int, n_classes: int) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"probabilities must be numbers. Got {values!r} instead.") from error
    if array.ndim != 2 or len(array) != n_samples:
        raise ValueError(
            f"probabilities must have shape ({n_samples}, n_classes), as y has {n_samples} "
            f"labels. Got an array of shape {array.shape}."
        )
    if array.shape[1] != n_classes:
        raise ValueError(
            f"probabilities have {array.shape[1]} columns for {n_classes} classes. "
            "Give the classes of the columns, as classes=forest.classes_."
        )
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1 + 1e-6):
        raise ValueError("probabilities must lie between 0 and 1.")
    return array


def intervals(
    forest: MondrianForestRegressor,
    X: ArrayLike,
    y: ArrayLike,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw predicted means and intervals beside the true values.

    Samples are sorted by their predicted mean; if there is one feature only, they stand at its
    value. Values outside their interval are marked.

    Parameters
    ----------
    forest : MondrianForestRegressor
        The forest.
    X : array-like of shape (n_samples, n_features)
        Samples the forest has not learned.
    y : array-like of shape (n_samples,)
        Their true values.
    coverage : float, default=0.9
        The probability that an interval is to have, between 0 and 1.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        Where it is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onlineforest import MondrianForestRegressor, plot
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = MondrianForestRegressor(20, random_state=0).fit(X[:300], y[:300])
    >>> ax = plot.intervals(forest, X[300:], y[300:])
    >>> ax.figure.savefig("intervals.png")
    """
    check_regressor(forest)
    if X is None or y is None:
        raise ValueError("intervals needs X and y.")
    points = check_points(forest, X, y)
    assert points is not None
    assert points.values is not None
    mean = without_name_warning(forest.predict, points.rows)
    ends = without_name_warning(partial(forest.predict_interval, coverage=coverage), points.rows)
    one_feature = forest.n_features_in_ == 1
    order = np.argsort(points.rows[:, 0] if one_feature else mean, kind="stable")
    values, mean, (low, high) = points.values[order], mean[order], ends[order].T
    at = points.rows[order, 0] if one_feature else np.arange(len(order))
    inside = (low <= values) & (values <= high)
    axes = axes_or_new(ax)
    band = axes.fill_between(
        at, low, high, step=None if one_feature else "mid", color=BLUE, alpha=0.2, lw=0
    )
    line = axes.plot(at, mean, color=BLUE, lw=1.2)[0]
    style: dict[str, Any] = {
        "s": points.size,
        "lw": 0,
        "zorder": 3,
        "alpha": 1.0 if len(at) < 500 else 0.6,
    }
    dots = axes.scatter(at[inside], values[inside], c=DARK, **style)
    crosses = axes.scatter(at[~inside], values[~inside], c=ORANGE, marker="D", **style)
    axes.set_xlabel(feature_names(forest)[0] if one_feature else "samples, by predicted mean")
    axes.set_ylabel("y")
    axes.spines[["top", "right"]].set_visible(False)
    legend_beside(
        axes,
        [line, band, dots, crosses],
        [
            "mean",
            f"interval of {float(coverage):.4g}",
            f"inside: {inside.mean():.3f}",
            f"outside: {1.0 - inside.mean():.3f}",
        ],
    )
    return axes


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers. Got {values!r} instead.") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1d array. Got an array of shape {array.shape}.")
    return array


def _line_style(i: int) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "ls": STYLES[i // len(COLOURS) % len(STYLES)]}
