"""Trees of a forest as plain arrays, to look at, draw and compute with. Cannot change them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onlineforest._core import LabelForest


@dataclass(frozen=True, eq=False, repr=False)
class MondrianTree:
    """One tree of a forest: a copy of its nodes as read-only arrays, one entry per node.

    The paper's letter is given with each name.

    Attributes
    ----------
    parent : ndarray of shape (n_nodes,), int32
        The parent of each node, -1 for the root.
    left, right : ndarray of shape (n_nodes,), int32
        The children, -1 for a leaf. ``x[split_dimension] <= split_location`` goes left.
    split_dimension : ndarray of shape (n_nodes,), int32
        The feature that is cut (delta), -1 for a leaf.
    split_location : ndarray of shape (n_nodes,), float32
        Where it is cut (xi), NaN for a leaf.
    split_time : ndarray of shape (n_nodes,), float64
        When it is cut (tau); the lifetime for a leaf. Never earlier than the parent's.
    lower, upper : ndarray of shape (n_nodes, n_features), float32
        The box around the node's training points (l, u).
    count : ndarray of shape (n_nodes, n_classes), int32
        At a leaf, the number of its points per class; at an internal node, how many of its two
        children hold the class (c). Columns are in the order of the forest's ``classes_``.
    labels : ndarray of shape (n_nodes, n_classes), bool
        Whether the class occurs below the node (tab).

    Examples
    --------
    >>> from onlineforest import MondrianForestClassifier
    >>> forest = MondrianForestClassifier(n_estimators=1, random_state=0)
    >>> tree = forest.fit([[0.0], [1.0], [5.0]], ["a", "a", "b"]).trees_[0]
    >>> tree.n_nodes, tree.split_dimension[tree.root]
    (3, np.int32(0))
    >>> tree.labels[tree.root]
    array([ True,  True])
    >>> tree.lower[tree.root], tree.upper[tree.root]
    (array([0.], dtype=float32), array([5.], dtype=float32))
    """

    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    split_dimension: NDArray[np.int32]
    split_location: NDArray[np.float32]
    split_time: NDArray[np.float64]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    count: NDArray[np.int32]
    labels: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"MondrianTree(n_nodes={self.n_nodes}, n_leaves={int(self.is_leaf.sum())})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parent)

    @property
    def root(self) -> int:
        """Index of the root: 0, or -1 for a tree of no nodes."""
        return 0 if self.n_nodes else -1

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        leaves: NDArray[np.bool_] = self.split_dimension == -1
        return leaves

    @property
    def depth(self) -> NDArray[np.int32]:
        """Number of cuts above each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        level, nodes = 0, np.flatnonzero(self.parent == -1)
        while len(nodes):
            depth[nodes] = level
            inner = nodes[self.split_dimension[nodes] != -1]
            level, nodes = level + 1, np.concatenate([self.left[inner], self.right[inner]])
        return depth

    @property
    def mean_depth(self) -> float:
        """Depth of the leaves, averaged over the points (the paper's appendix E).

        NaN for a tree of no points.
        """
        n_points = np.where(self.is_leaf, self.count.sum(axis=1), 0)
        total = n_points.sum()
        return float((self.depth * n_points).sum() / total) if total else math.nan


class TreeSequence(Sequence[MondrianTree]):
    """The trees of a forest as it is now, each copied out when asked for (all may be large).

    Parameters
    ----------
    source : callable
        Returns the forest, and its column for each of the sorted classes.
    """

    def __init__(self, source: Callable[[], tuple[LabelForest, NDArray[np.int32]]]) -> None:
        self._source = source

    def __len__(self) -> int:
        return self._source()[0].n_trees

    def __repr__(self) -> str:
        return f"<{len(self)} Mondrian trees>"

    @overload
    def __getitem__(self, index: int) -> MondrianTree: ...
    @overload
    def __getitem__(self, index: slice) -> list[MondrianTree]: ...
    def __getitem__(self, index: int | slice) -> MondrianTree | list[MondrianTree]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        forest, columns = self._source()
        if not -forest.n_trees <= index < forest.n_trees:
            raise IndexError(f"There are {forest.n_trees} trees; there is none of index {index}.")
        index %= forest.n_trees
        arrays: dict[str, NDArray[Any]] = forest.tree(index)
        for name in ("count", "labels"):
            arrays[name] = np.ascontiguousarray(arrays[name][:, columns])
        arrays["labels"] = arrays["labels"].view(np.bool_)
        for array in arrays.values():
            array.flags.writeable = False
        return MondrianTree(**arrays)
