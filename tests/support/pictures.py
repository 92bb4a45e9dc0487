"""Data sets that tests draw, and the parts of a picture."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import PathCollection
from sklearn.datasets import load_diabetes, load_iris

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)

IRIS = load_iris(as_frame=True)
NAMES = IRIS.target_names[IRIS.target]
PETALS = IRIS.data.iloc[:, 2:].to_numpy(dtype=np.float32)
DIABETES = load_diabetes()
CLASSIFIERS = [MondrianForestClassifier, OnlineForestClassifier]
KINDS = [*CLASSIFIERS, OnlineForestRegressor]


def legend_texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def only(kind, axes):
    (found,) = [artist for artist in axes.get_children() if type(artist) is kind]
    return found


def rendered(axes):
    """Render the picture: some errors and warnings appear only then."""
    axes.figure.canvas.draw()
    return axes


def points_of(axes):
    return [np.asarray(c.get_offsets()) for c in axes.collections if type(c) is PathCollection]


def grid_of(image, resolution):
    """The middles of the pixels of an image, row by row from below."""
    left, right, below, above = image.get_extent()
    step = np.arange(resolution) + 0.5
    x = left + (right - left) * step / resolution
    y = below + (above - below) * step / resolution
    return np.stack([np.tile(x, resolution), np.repeat(y, resolution)], axis=1)


def path_conditions(tree, j):
    """Which sides of which splits lead to a node: feature, location, whether to the left."""
    while tree.parent[j] >= 0:
        j, child = tree.parent[j], j
        yield tree.split_dimension[j], tree.split_location[j], tree.left[j] == child
