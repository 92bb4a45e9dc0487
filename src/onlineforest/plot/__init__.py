"""Pictures of forests: trees, predictions and how reliable they are.

Needs the extra ``plot`` (matplotlib). Every function draws into the axes given as ``ax`` and
returns them; without ``ax`` it makes a new figure. In a notebook, or if ``matplotlib.pyplot`` is
already imported, this is a figure of pyplot: a notebook shows it below the cell, ``plt.show()`` in
a window. Otherwise, as on a server, it has no window, needs no display, and is freed with its axes.
In both cases ``ax.figure.savefig(...)`` saves it.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from onlineforest import OnlineForestClassifier, plot
>>> X, y = load_iris(return_X_y=True, as_frame=True)
>>> forest = OnlineForestClassifier(20, random_state=0).fit(X, y)
>>> ax = plot.importances(forest)
>>> ax.figure.savefig("importances.png")
"""

from onlineforest.plot.calibration import intervals, reliability
from onlineforest.plot.maps import decision_surface, novelty_map
from onlineforest.plot.partitions import partition
from onlineforest.plot.scores import importances, learning_curve
from onlineforest.plot.trees import tree

__all__ = [
    "decision_surface",
    "importances",
    "intervals",
    "learning_curve",
    "novelty_map",
    "partition",
    "reliability",
    "tree",
]
