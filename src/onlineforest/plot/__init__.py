"""Pictures of forests: their trees, what they predict, and how far to trust it.

Needs the extra ``plot`` (matplotlib). Every function draws into the axes given as ``ax`` and
returns them; without, it makes a new figure. In a notebook, and wherever ``matplotlib.pyplot`` has
been imported before, that is one of pyplot's figures: a notebook shows it below the cell,
``plt.show()`` in a window. Elsewhere, as on a server, it belongs to no window, needs no display,
and goes when nobody holds its axes any more. Either way ``ax.figure.savefig(...)`` saves it.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from onlineforest import MondrianForestClassifier, plot
>>> X, y = load_iris(return_X_y=True, as_frame=True)
>>> forest = MondrianForestClassifier(20, random_state=0).fit(X, y)
>>> ax = plot.importances(forest)
>>> ax.figure.savefig("importances.png")
"""

from onlineforest.plot.maps import decision_surface, novelty_map
from onlineforest.plot.partitions import partition
from onlineforest.plot.scores import importances, intervals, learning_curve, reliability
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
