"""Pictures of forests. Needs the extra `plot`; imports matplotlib only when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from onlineforest._trees import MondrianTree


def new_figure(**options: Any) -> tuple[Figure, Axes]:
    """A figure with one pair of axes that belongs to no window."""
    require("matplotlib", "plot")
    from matplotlib.figure import Figure

    figure = Figure(**{"figsize": (7.0, 5.0), "layout": "constrained", **options})
    return figure, figure.add_subplot()


def draw_learning_curves(
    axes: Axes, n_samples: Sequence[int], curves: Mapping[str, Sequence[float]], ylabel: str
) -> None:
    """One line per curve over the number of samples learned."""
    for name, values in curves.items():
        axes.plot(n_samples, values, label=name)
    axes.set(xlabel="samples learned", ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.legend()


def draw_partition(axes: Axes, tree: MondrianTree, X: NDArray[np.float32], y: NDArray[Any]) -> None:
    """The cuts of a tree on two features, committed inside the boxes only, and its points.

    As in the paper's figures 1 and 2: grey boxes around the points of each node, a line for each
    cut, drawn within the node's box.
    """
    from matplotlib.patches import Rectangle

    if tree.lower.shape[1] != 2:
        raise ValueError(
            f"A partition can be drawn for 2 features. This tree has {tree.lower.shape[1]}."
        )
    for j in np.argsort(tree.depth):
        corner, size = tree.lower[j], tree.upper[j] - tree.lower[j]
        place = (corner[0], corner[1]), size[0], size[1]
        axes.add_patch(Rectangle(*place, facecolor="0.5", alpha=0.1))
        axes.add_patch(Rectangle(*place, fill=False, edgecolor="0.6", lw=0.6, ls=":"))
        if not tree.is_leaf[j]:
            d, location = tree.split_dimension[j], tree.split_location[j]
            ends = [tree.lower[j][1 - d], tree.upper[j][1 - d]]
            along = ([location, location], ends) if d == 0 else (ends, [location, location])
            axes.plot(*along, color="0.2", lw=0.8)
    for label in np.unique(y):
        axes.plot(*X[y == label].T, "o", ms=4, label=str(label))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="class")
