"""Pictures of feature importances and of learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest.plot.checks import Forest, check_count, check_forest, feature_names
from onlineforest.plot.figures import BLUE, axes_or_new, legend_inside, line_style, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importances(forest: Forest, *, max_features: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the importances of the features, the most important at the top.

    Parameters
    ----------
    forest : OnlineForestClassifier, OnlineForestRegressor or MondrianForestClassifier
        The forest; its ``feature_importances_`` are drawn, whose sum is 1.
    max_features : int, default=20
        Number of features to draw. A note gives the sum of the others.
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
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = OnlineForestClassifier(10, random_state=0).fit(X, y)
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
    # Leave room for the numbers.
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
        The scores of each method, by name. NaN leaves a gap. Several methods get a legend.
    ylabel : str, default="accuracy"
        The name of the scores.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw into; None makes a new figure, see `onlineforest.plot`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from onlineforest import plot
    >>> ax = plot.learning_curve([100, 200, 300], {"online": [0.8, 0.9, 0.95]})
    >>> ax.figure.savefig("curve.png")
    """
    at = _numbers(n_samples, "n_samples")
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError(
            f"curves must be a mapping of at least one name to scores. Got {curves!r} instead."
        )
    lines = {name: _numbers(values, f"curves[{name!r}]") for name, values in curves.items()}
    for name, values in lines.items():
        if len(values) != len(at):
            raise ValueError(f"curves[{name!r}] has {len(values)} scores for {len(at)} n_samples.")
    axes = axes_or_new(ax)
    handles = [axes.plot(at, values, **line_style(i))[0] for i, values in enumerate(lines.values())]
    axes.set(xlabel="samples learned", ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        legend_inside(axes, handles, [printable(name, 40) for name in lines])
    return axes


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers. Got {values!r} instead.") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1d array. Got an array of shape {array.shape}.")
    return array
