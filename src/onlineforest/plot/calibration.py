"""Pictures of how reliable predictions are: probabilities of classes, and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from onlineforest.plot.checks import (
    check_count,
    check_regressor,
    feature_names,
    without_name_warning,
)
from onlineforest.plot.figures import (
    BLUE,
    DARK,
    LIGHT,
    MIDDLE,
    ORANGE,
    axes_or_new,
    legend_beside,
    line_style,
    printable,
)
from onlineforest.plot.points import check_points, class_codes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from onlineforest._forests.orderfree.regressor import OnlineForestRegressor


def reliability(
    y: ArrayLike,
    probabilities: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy of predicted classes over their predicted probability.

    Calibrated probabilities lie on the diagonal; overconfident ones lie below it. The bars show the
    share of the samples in each bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The true labels.
    probabilities : array-like of shape (n_samples, n_classes), or mapping of str to such
        Results of ``predict_proba``, or the results of several methods by the methods' names.
    classes : array-like of shape (n_classes,), default=None
        The classes of the columns, such as ``forest.classes_``. None means the sorted labels of y,
        which must then include every class.
    n_bins : int, default=10
        Number of bins of equal width.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Notes
    -----
    The legend gives the expected calibration error (ECE): the mean distance of the points from the
    diagonal, weighted by the number of samples.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import OnlineForestClassifier, plot
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = OnlineForestClassifier(20, random_state=0).fit(X[:1000], y[:1000])
    >>> ax = plot.reliability(y[1000:], forest.predict_proba(X[1000:]), classes=forest.classes_)
    >>> ax.figure.savefig("reliability.png")
    """
    n_bins = check_count(n_bins, "n_bins", 1, 1000)
    labels = column_or_1d(y)
    methods = probabilities if isinstance(probabilities, Mapping) else {"": probabilities}
    if len(labels) == 0 or not methods:
        raise ValueError("y and probabilities must not be empty: there is nothing to draw.")
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
    """Draw the diagonal, a line and bars for each method, and a legend."""
    from matplotlib.patches import Patch

    alone = len(bins) == 1  # bars of several methods overlap, so only their outlines are drawn
    handles: list[Artist] = [axes.plot([0, 1], [0, 1], color=MIDDLE, lw=0.8, ls="--")[0]]
    for i, of_method in enumerate(bins):
        style = line_style(i)
        handles += axes.plot(
            of_method.confidence, of_method.accuracy, marker="o", ms=5, clip_on=False, **style
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
    """Samples in bins of the predicted probability of their predicted class."""

    confidence: NDArray[np.float64]  # mean probability of the predicted class, per nonempty bin
    accuracy: NDArray[np.float64]  # share of correct predictions, per nonempty bin
    share: NDArray[np.float64]  # part of all samples that a bin has, per bin

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float((self.share[self.share > 0] * np.abs(self.confidence - self.accuracy)).sum())

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        probabilities: NDArray[np.float64],
        classes: NDArray[Any],
        n_bins: int,
    ) -> Self:
        """The bins of these predictions."""
        confidence = probabilities.max(axis=1)
        is_correct = class_codes(classes, labels) == probabilities.argmax(axis=1)
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        bin_of = np.searchsorted(edges[1:-1], confidence, side="right")
        counts = np.bincount(bin_of, minlength=n_bins)
        used = counts > 0
        sums = (
            np.bincount(bin_of, weights, minlength=n_bins) for weights in (confidence, is_correct)
        )
        mean_confidence, accuracy = (total[used] / counts[used] for total in sums)
        return cls(mean_confidence, accuracy, counts / len(labels))


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
    bad = np.argwhere(~((array >= 0) & (array <= 1 + 1e-6)))  # NaN compares as false
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            "probabilities must lie between 0 and 1. "
            f"Got {array[row, column]:g} in row {row}, column {column} instead."
        )
    return array


def intervals(
    forest: OnlineForestRegressor,
    X: ArrayLike,
    y: ArrayLike,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw predicted means and intervals beside the true values.

    The horizontal axis is the rank by predicted mean or, for a forest of one numeric feature that
    is never missing in X, that feature. Values outside their interval are marked.

    Parameters
    ----------
    forest : OnlineForestRegressor
        The forest.
    X : array-like of shape (n_samples, n_features)
        Samples the forest has not learned.
    y : array-like of shape (n_samples,)
        Their true values.
    coverage : float, default=0.9
        Nominal coverage of the intervals, between 0 and 1.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onlineforest import OnlineForestRegressor, plot
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OnlineForestRegressor(20, random_state=0).fit(X[:300], y[:300])
    >>> ax = plot.intervals(forest, X[300:], y[300:])
    >>> ax.figure.savefig("intervals.png")
    """
    check_regressor(forest)
    if X is None or y is None:
        raise ValueError("intervals needs X and y.")
    points = check_points(forest, X, y)
    assert points is not None
    assert points.values is not None
    mean = without_name_warning(forest.predict, X)
    ends = without_name_warning(partial(forest.predict_interval, coverage=coverage), X)
    one_feature = forest.n_features_in_ == 1 and not np.isnan(points.rows).any()
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
