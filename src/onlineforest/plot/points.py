"""Samples as points in a plane: their checks, colours, class names, limits and typical values.

Knows no single picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._forests.orderfree.digests import samples_of
from onlineforest._forests.trees import MondrianTree
from onlineforest._inputs.levels import Level, in_order, plain_level
from onlineforest._inputs.tables import Table
from onlineforest._inputs.targets import check_values
from onlineforest.plot.checks import Forest, check_tree
from onlineforest.plot.figures import COLOUR_MAP, DARK, class_colours, legend_beside, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

MAX_CLASSES_IN_LEGEND = 8  # the names of more classes are written into the picture


@dataclass(frozen=True)
class Points:
    """Samples to draw, with their classes or values if given."""

    rows: NDArray[np.floating]  # in the order of columns; NaN if a feature is categorical
    codes: NDArray[np.intp] | None = None  # class codes for a classifier, -1 for unknown labels
    values: NDArray[np.float64] | None = None  # targets for a regressor

    @property
    def size(self) -> float:
        """Area of a marker: smaller for many points."""
        return float(np.clip(9000.0 / max(len(self.rows), 1), 5.0, 26.0))

    def in_plane(self, features: list[int]) -> Points | None:
        """The points in the plane of two features, unless they lack one; None if none is left."""
        rows = self.rows[:, features]
        are_known = ~np.isnan(rows).any(axis=1)
        if not are_known.any():
            return None
        codes = None if self.codes is None else self.codes[are_known]
        values = None if self.values is None else self.values[are_known]
        return Points(rows[are_known], codes, values)


def check_points(forest: Forest, X: ArrayLike | None, y: ArrayLike | None) -> Points | None:
    """The samples to draw; X is validated like queries. None if X is None."""
    if X is None:
        if y is not None:
            raise ValueError("y is given, but not X: give both, or X alone.")
        return None
    rows = forest._rows.in_columns(forest._rows.queries(forest, X))
    if y is None:
        return Points(rows)
    if not isinstance(forest, BaseClassifier):
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
    """The class code of each label, -1 for unknown labels."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def draw_points(axes: Axes, points: Points, forest: Forest, norm: Normalize | None = None) -> None:
    """Draw the samples, coloured by class or by value."""
    x, y = points.rows.T
    style: dict[str, Any] = {
        "s": points.size,
        "lw": 0.015 * points.size,
        "edgecolors": "white",
        "zorder": 5,
    }
    if points.values is not None:
        axes.scatter(x, y, c=points.values, cmap=COLOUR_MAP, norm=norm, **style)
    elif points.codes is not None:
        assert isinstance(forest, BaseClassifier)
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
    """Add a legend of the classes or, if they are many, write their names into the picture.

    `centres` returns the place of the name of each class. `shown` are the codes of the classes in
    the picture; None means all. `unknown` adds an entry for unknown labels.
    """
    from matplotlib.lines import Line2D

    codes = np.arange(len(classes)) if shown is None else shown
    colours = class_colours(len(classes))

    def marker(shape: str, colour: Any) -> Line2D:
        return Line2D([], [], marker=shape, ls="", ms=6, color=colour)

    handles, labels = [], []
    if len(codes) <= MAX_CLASSES_IN_LEGEND:
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
    """Write the names of classes into the picture; omits a name that would overlap another."""
    from matplotlib.patheffects import withStroke

    names = {code: printable(classes[code], 12) for code in centres}
    # An estimate of the size of the longest name, in pixels.
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
    """For each class, most frequent first, the point nearest to the median of its points."""
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


def with_margin(
    lower: NDArray[Any], upper: NDArray[Any], share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits widened by a share of their extent; an empty extent becomes positive.

    NaN, the limit of a feature without values, counts as 0.
    """
    lower, upper = (np.where(np.isnan(end), 0.0, end.astype(np.float64)) for end in (lower, upper))
    extent = upper - lower
    extent = np.where(extent > 0, extent, np.maximum(1.0, 1e-3 * np.abs(lower)))
    room = np.where(upper > lower, share * extent, 0.5 * extent)
    largest = float(np.finfo(np.float32).max)
    return np.maximum(lower - room, -largest), np.minimum(upper + room, largest)


def sample_box(forest: Forest) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Lower and upper corner of the box around all stored samples."""
    if isinstance(forest, MondrianForestClassifier):
        tree = check_tree(forest, 0)
        assert isinstance(tree, MondrianTree)
        return tree.lower[tree.root], tree.upper[tree.root]
    rows = samples_of(forest._core.get_state(), forest.n_features_in_).rows
    return limits_of(forest._rows.in_columns(rows))


def limits_of(rows: NDArray[np.floating]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and greatest value of each feature; NaN for one that all rows lack."""
    return np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)


def medians_of(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """Median of the known values of each feature; NaN for one that all rows lack."""
    known = (column[~np.isnan(column)] for column in rows.T)
    medians = [np.median(values) if len(values) else np.nan for values in known]
    return np.array(medians, dtype=rows.dtype)


def typical_levels(X: Any, columns: Sequence[int]) -> dict[int, Level]:
    """The most frequent level of each categorical column; the first in order if several are."""
    table = Table.of(X)
    found = {}
    for column in columns:
        counts: Counter[Level] = Counter()
        for value, n in Counter(table.values(column)).items():
            counts[plain_level(value)] += n
        most = max(counts.values())
        found[column] = in_order(level for level, n in counts.items() if n == most)[0]
    return found
