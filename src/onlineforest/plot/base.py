"""What all pictures share: axes, colours, names, points, and checks of what is to be drawn.

Needs the extra `plot`; imports matplotlib only when something is drawn. Knows no single
picture.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._extras import require
from onlineforest._models.base import BaseMondrianForest
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.regressor import MondrianForestRegressor
from onlineforest._models.trees import MondrianTree
from onlineforest._models.validation import check_values

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from onlineforest._models.trees import ClassificationTree, RegressionTree

    Forest = MondrianForestClassifier | MondrianForestRegressor

# Colours of Okabe and Ito, which colour-blind readers can tell apart, without the yellow that is
# hard to see on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MOST_IN_LEGEND = 8  # classes; more are named in the picture
MOST_INSIDE = 6  # lines named in the axes; more would cover them
VALUES = "viridis"  # colours of numbers
DARK, MIDDLE, LIGHT = "0.2", "0.55", "0.85"


# Axes


def new_figure(size: tuple[float, float] = (7.0, 5.0)) -> tuple[Figure, Axes]:
    """A figure with one pair of axes.

    It is one of pyplot's, which notebooks and `plt.show()` show by themselves, if pyplot is in use
    already or the session is an interactive one. Otherwise it belongs to no window and nothing
    keeps it alive: a server can draw as many as it likes, in any thread, without a display.
    """
    require("matplotlib", "plot")
    if "matplotlib.pyplot" in sys.modules or _in_ipython():
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=size, layout="constrained")
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _in_ipython() -> bool:
    """Whether a notebook or an IPython prompt runs this."""
    module = sys.modules.get("IPython")
    return module is not None and module.get_ipython() is not None


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (7.0, 5.0)) -> Axes:
    """The axes given, or new ones."""
    require("matplotlib", "plot")
    from matplotlib.axes import Axes

    if ax is None:
        return new_figure(size)[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be a matplotlib Axes or None. Got {type(ax).__name__} instead.")
    return ax


def legend_beside(
    axes: Axes, handles: Sequence[Artist], labels: Sequence[str], title: str | None = None
) -> None:
    """A legend at the right of the axes, where it covers nothing."""
    _legend(
        axes,
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        title=title,
    )


def legend_inside(axes: Axes, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """A legend in the axes, where it covers least; of many lines beside them."""
    if len(handles) > MOST_INSIDE:
        legend_beside(axes, handles, labels)
    else:
        _legend(axes, handles, labels, loc="best", framealpha=0.8, edgecolor="none")


def _legend(axes: Axes, handles: Sequence[Artist], labels: Sequence[str], **place: Any) -> None:
    legend = axes.legend(
        handles=list(handles), labels=[" "] * len(handles), alignment="left", **place
    )
    # Set afterwards: matplotlib leaves out what begins with an underscore.
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)


# Names


def shortened(value: object, longest: int = 28) -> str:
    """A name on one line. Of a long one, the middle is left out: the ends tell names apart."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    if len(text) <= longest:
        return text
    n_tail = (longest - 1) // 2
    return f"{text[: longest - 1 - n_tail]}…{text[-n_tail:]}"


def printable(value: object, longest: int = 28) -> str:
    """A name as matplotlib is to write it: short, and with no formula in it."""
    return shortened(value, longest).replace("$", r"\$")


def raw_feature_names(forest: Forest) -> list[str]:
    """The names of the features, or their numbers, as they are."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        return [f"feature {i}" for i in range(forest.n_features_in_)]
    return [str(name) for name in names]


def feature_names(forest: Forest) -> list[str]:
    """The names of the features, or their numbers, as matplotlib is to write them."""
    return [printable(name) for name in raw_feature_names(forest)]


# Checks


def check_forest(forest: Any) -> None:
    """Raise unless this is a forest that has learned something."""
    if not isinstance(forest, BaseMondrianForest):
        raise TypeError(
            "forest must be a MondrianForestClassifier or a MondrianForestRegressor. "
            f"Got {_kind(forest)} instead."
        )
    check_is_fitted(forest)
    forest._core_with_samples()


def check_regressor(forest: Any) -> None:
    """Raise unless this is a regressor that has learned something."""
    if not isinstance(forest, MondrianForestRegressor):
        raise TypeError(f"forest must be a MondrianForestRegressor. Got {_kind(forest)} instead.")
    check_forest(forest)


def _kind(thing: object) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__


def check_count(value: object, name: str, least: int, most: int = 2**31 - 1) -> int:
    """A whole number within limits."""
    if (
        not isinstance(value, Integral)
        or isinstance(value, bool)
        or not least <= int(value) <= most
    ):
        limits = f"at least {least}" if most == 2**31 - 1 else f"{least} to {most}"
        raise ValueError(f"{name} must be a whole number, {limits}. Got {value!r} instead.")
    return int(value)


def check_tree(forest: Forest, index: int) -> ClassificationTree | RegressionTree:
    """The tree of an index."""
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise TypeError(f"tree must be the index of a tree, a whole number. Got {index!r} instead.")
    tree = forest.trees_[int(index)]
    if tree.n_nodes == 0:
        raise ValueError(
            f"Tree {index} has no nodes: a call was interrupted. The next one grows it afresh."
        )
    return tree


# Points and their colours


@dataclass(frozen=True)
class Points:
    """Samples to draw, and what is known of them."""

    rows: NDArray[np.float32]
    codes: NDArray[np.intp] | None = None  # of a classifier: class of each, -1 for one not known
    values: NDArray[np.float64] | None = None  # of a regressor

    @property
    def size(self) -> float:
        """Of a marker: smaller for many."""
        return float(np.clip(9000.0 / max(len(self.rows), 1), 5.0, 26.0))


def check_points(forest: Forest, X: ArrayLike | None, y: ArrayLike | None) -> Points | None:
    """The samples to draw, checked as those to predict are."""
    if X is None:
        if y is not None:
            raise ValueError("y is given, but not X: points need both, or X alone.")
        return None
    rows = forest._check_queries(X)
    if y is None:
        return Points(rows)
    if isinstance(forest, MondrianForestRegressor):
        values = check_values(y)
        _check_lengths(rows, values)
        return Points(rows, values=values)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be a 1d array of labels. Got an array of shape {labels.shape}.")
    _check_lengths(rows, labels)
    return Points(rows, codes=class_codes(forest.classes_, labels))


def _check_lengths(rows: NDArray[Any], y: NDArray[Any]) -> None:
    if len(rows) != len(y):
        raise ValueError(f"X has {len(rows)} samples, but y has {len(y)}.")


def class_codes(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The position of each label among the classes, -1 if it is not there."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def class_colours(n_classes: int) -> NDArray[np.float64]:
    """A colour (RGB) per class: first those of the palette, then darker and lighter ones."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in COLOURS])
    if n_classes > len(COLOURS):
        palette = palette[:-1]  # black has no darker one
        palette = np.concatenate([palette, palette * 0.55, 1.0 - 0.5 * (1.0 - palette)])
    return palette[np.arange(n_classes) % len(palette)]


def draw_points(axes: Axes, points: Points, forest: Forest, norm: Normalize | None = None) -> None:
    """The samples, by class or by value."""
    x, y = points.rows.T
    style: dict[str, Any] = {
        "s": points.size,
        "lw": 0.015 * points.size,
        "edgecolors": "white",
        "zorder": 5,
    }
    if points.values is not None:
        axes.scatter(x, y, c=points.values, cmap=VALUES, norm=norm, **style)
    elif points.codes is not None:
        assert isinstance(forest, MondrianForestClassifier)
        known = points.codes >= 0
        colours = class_colours(len(forest.classes_))[points.codes[known]]
        axes.scatter(x[known], y[known], c=colours, **style)
        if not known.all():
            axes.scatter(x[~known], y[~known], c="black", marker="x", s=20, lw=0.8, zorder=5)
    else:
        axes.scatter(x, y, c=DARK, **style)


def name_classes(
    axes: Axes,
    classes: NDArray[Any],
    centres: Callable[[], dict[int, tuple[float, float]]],
    *,
    shown: NDArray[np.intp] | None = None,
    title: str = "class",
    unknown: bool = False,
) -> None:
    """A legend of the classes; if they are many, their names at places in the picture instead.

    `centres` gives a place for each class that has one. `shown` are the classes in the picture.
    """
    from matplotlib.lines import Line2D

    codes = np.arange(len(classes)) if shown is None else shown
    colours = class_colours(len(classes))

    def marker(shape: str, colour: Any) -> Line2D:
        return Line2D([], [], marker=shape, ls="", ms=6, color=colour)

    handles, labels = [], []
    if len(codes) <= MOST_IN_LEGEND:
        handles = [marker("o", colours[code]) for code in codes]
        labels = [printable(classes[code]) for code in codes]
    else:
        _write_names(axes, classes, colours, centres())
    if unknown:
        handles.append(marker("x", "black"))
        labels.append("not learned")
    if handles:
        legend_beside(axes, handles, labels, title)


def _write_names(
    axes: Axes,
    classes: NDArray[Any],
    colours: NDArray[np.float64],
    centres: dict[int, tuple[float, float]],
) -> None:
    """Names of classes in the picture; one that would lie on another is left out."""
    from matplotlib.patheffects import withStroke

    names = {code: printable(classes[code], 12) for code in centres}
    # About what the longest name takes, in pixels.
    pixels = axes.figure.dpi / 72.0
    width, height = 7.0 * max(map(len, names.values()), default=0) * pixels, 14.0 * pixels
    taken: list[tuple[float, float]] = []
    for code, place in centres.items():
        x, y = axes.transData.transform(place)
        if any(abs(x - other[0]) < width and abs(y - other[1]) < height for other in taken):
            continue
        taken.append((x, y))
        axes.text(
            *place,
            names[code],
            color=0.6 * colours[code],
            fontsize=10,
            fontweight="bold",
            ha="center",
            va="center",
            clip_on=True,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=6,
        )


def medoids(points: Points) -> dict[int, tuple[float, float]]:
    """For each class, the most frequent first, the point that is nearest to the middle of it."""
    assert points.codes is not None
    codes, counts = np.unique(points.codes[points.codes >= 0], return_counts=True)
    found = {}
    for code in codes[np.argsort(-counts, kind="stable")]:
        rows = points.rows[points.codes == code].astype(np.float64)
        middle = np.median(rows, axis=0)
        spread = np.maximum(np.ptp(points.rows.astype(np.float64), axis=0), 1e-300)
        nearest = rows[np.abs((rows - middle) / spread).sum(axis=1).argmin()]
        found[int(code)] = (float(nearest[0]), float(nearest[1]))
    return found


# The plane that is drawn


def with_margin(
    lower: NDArray[Any], upper: NDArray[Any], share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits with some room around, and some extent where there is none."""
    lower, upper = lower.astype(np.float64), upper.astype(np.float64)
    extent = upper - lower
    extent = np.where(extent > 0, extent, np.maximum(1.0, 1e-3 * np.abs(lower)))
    room = np.where(upper > lower, share * extent, 0.5 * extent)
    largest = float(np.finfo(np.float32).max)
    return np.maximum(lower - room, -largest), np.minimum(upper + room, largest)


def root_box(tree: MondrianTree) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The box around all samples."""
    return tree.lower[tree.root], tree.upper[tree.root]


def without_name_warning(predict: Callable[[Any], Any], rows: NDArray[Any]) -> Any:
    """What a method of the forest makes of rows that we made, which have no names of features."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return predict(rows)
