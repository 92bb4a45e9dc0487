"""Trees of a forest as read-only arrays. Must not know forests, nor change them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray


class TreeArrays:
    """Base of the trees: a dataclass of arrays with one entry per node."""

    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    split_dimension: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in fields(self):  # type: ignore[arg-type]  # of each subclass
            getattr(self, array.name).flags.writeable = False

    def __repr__(self) -> str:
        name, n_leaves = type(self).__name__, int(self.is_leaf.sum())
        return f"{name}(n_nodes={self.n_nodes}, n_leaves={n_leaves})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parent)

    @property
    def root(self) -> int:
        """Index of the root: 0, or -1 for a tree without nodes."""
        return 0 if self.n_nodes else -1

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        leaves: NDArray[np.bool_] = self.split_dimension == -1
        return leaves

    @property
    def depth(self) -> NDArray[np.int32]:
        """Number of splits above each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        level, nodes = 0, np.flatnonzero(self.parent == -1)
        while len(nodes):
            depth[nodes] = level
            inner = nodes[self.split_dimension[nodes] != -1]
            level, nodes = level + 1, np.concatenate([self.left[inner], self.right[inner]])
        return depth

    @property
    def mean_depth(self) -> float:
        """Depth of the leaves, averaged over their points or weights (appendix E of the paper).

        NaN for a tree without nodes.
        """
        sizes = np.where(self.is_leaf, self._sizes, 0)
        total = sizes.sum()
        return float((self.depth * sizes).sum() / total) if total else math.nan

    @property
    def _sizes(self) -> NDArray[Any]:
        """Number or weight of the training points below each node."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class MondrianTree(TreeArrays):
    """One tree of a Mondrian forest: a copy of its nodes as read-only arrays.

    The letters in parentheses are those of the paper.

    Attributes
    ----------
    parent : ndarray of shape (n_nodes,), int32
        The parent of each node, -1 for the root.
    left, right : ndarray of shape (n_nodes,), int32
        The children, -1 for a leaf. ``x[split_dimension] <= split_location`` goes left.
    split_dimension : ndarray of shape (n_nodes,), int32
        The feature of the cut (delta), -1 for a leaf.
    split_location : ndarray of shape (n_nodes,), float32
        The location of the cut (xi), NaN for a leaf.
    split_time : ndarray of shape (n_nodes,), float64
        The time of the cut (tau); the lifetime for a leaf. At least that of the parent.
    lower, upper : ndarray of shape (n_nodes, n_features), float32
        The box around the node's training points (l, u).
    n_points : ndarray of shape (n_nodes,), int32
        Number of training points below the node: equal samples are one point.
    count : ndarray of shape (n_nodes, n_classes), float64
        At a leaf, the number of samples per class. At an internal node, how many of its two
        children hold the class (c). Columns are in the order of the forest's ``classes_``.
    labels : ndarray of shape (n_nodes, n_classes), bool
        Whether the class occurs below the node (tab).

    See Also
    --------
    OnlineTree : A tree of an order-free forest.

    Examples
    --------
    >>> from onlineforest import MondrianForestClassifier
    >>> forest = MondrianForestClassifier(n_estimators=1, random_state=0)
    >>> tree = forest.fit([[0.0], [1.0], [5.0]], ["a", "a", "b"]).trees_[0]
    >>> tree.n_nodes, tree.split_dimension[tree.root]
    (3, np.int32(0))
    >>> tree.lower[tree.root], tree.upper[tree.root]
    (array([0.], dtype=float32), array([5.], dtype=float32))
    >>> tree.count[tree.root], tree.labels[tree.root]
    (array([1., 1.]), array([ True,  True]))
    """

    __module__ = "onlineforest"

    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    split_dimension: NDArray[np.int32]
    split_location: NDArray[np.float32]
    split_time: NDArray[np.float64]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    n_points: NDArray[np.int32]
    count: NDArray[np.float64]
    labels: NDArray[np.bool_]

    @property
    def _sizes(self) -> NDArray[Any]:
        return self.n_points


@dataclass(frozen=True, eq=False, repr=False)
class OnlineTree(TreeArrays):
    """One tree of an order-free forest: a copy of its nodes as read-only arrays.

    Nodes are in preorder, left children first. So the arrays depend on the samples alone.

    Attributes
    ----------
    parent : ndarray of shape (n_nodes,), int32
        The parent of each node, -1 for the root.
    left, right : ndarray of shape (n_nodes,), int32
        The children, -1 for a leaf. ``x[split_dimension] <= split_location`` goes left.
    split_dimension : ndarray of shape (n_nodes,), int32
        The feature of the split, -1 for a leaf.
    split_location : ndarray of shape (n_nodes,), float32, or float64 if the forest has offsets
        The location of the split in the units of X, NaN for a leaf and if the feature is
        categorical. Infinite if the split asks whether the feature is missing: then all samples
        that have it go left.
    split_levels : ndarray of shape (n_nodes,), object
        For a split on a categorical feature the tuple of all levels in the forest's ``levels_``
        that go left, sorted; else None.
    missing_left : ndarray of shape (n_nodes,), bool
        Whether samples go left that lack the feature and those of all surrogates.
    surrogate_dimension : ndarray of shape (n_nodes, n_surrogates), int32
        The features of surrogate splits, -1 where there is none. A sample that lacks the feature of
        the split goes where the first surrogate says whose feature it has.
    surrogate_location : ndarray of shape (n_nodes, n_surrogates), as `split_location`
        Their locations, NaN where there is none or the feature is categorical.
    surrogate_reversed : ndarray of shape (n_nodes, n_surrogates), bool
        Whether a sample goes left if it is above the location, not below.
    weight : ndarray of shape (n_nodes,), float64
        Weight of the samples below the node: their number if no weights were given.

    See Also
    --------
    OnlineClassificationTree, OnlineRegressionTree : The trees of the estimators.
    MondrianTree : A tree of a Mondrian forest.

    Examples
    --------
    >>> from onlineforest import OnlineForestClassifier
    >>> forest = OnlineForestClassifier(n_estimators=1, min_samples_split=2, random_state=0)
    >>> tree = forest.fit([[0.0], [1.0], [5.0]], ["a", "a", "b"]).trees_[0]
    >>> tree.n_nodes, tree.split_dimension[tree.root]
    (3, np.int32(0))
    """

    __module__ = "onlineforest"

    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    split_dimension: NDArray[np.int32]
    split_location: NDArray[np.floating]
    split_levels: NDArray[np.object_]
    missing_left: NDArray[np.bool_]
    surrogate_dimension: NDArray[np.int32]
    surrogate_location: NDArray[np.floating]
    surrogate_reversed: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @property
    def _sizes(self) -> NDArray[Any]:
        return self.weight


@dataclass(frozen=True, eq=False, repr=False)
class OnlineClassificationTree(OnlineTree):
    """A tree of an order-free classifier: an `OnlineTree` with labels.

    Attributes
    ----------
    count : ndarray of shape (n_nodes, n_classes), float64
        Weight of the training points below the node, per class: their number if no weights were
        given. Columns are in the order of the forest's ``classes_``.

    Examples
    --------
    >>> from onlineforest import OnlineForestClassifier
    >>> forest = OnlineForestClassifier(n_estimators=1, min_samples_split=2, random_state=0)
    >>> tree = forest.fit([[0.0], [1.0], [5.0]], ["a", "a", "b"]).trees_[0]
    >>> tree.count[tree.root]
    array([2., 1.])
    """

    __module__ = "onlineforest"

    count: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class OnlineRegressionTree(OnlineTree):
    """A tree of an order-free regressor: an `OnlineTree` with numbers.

    Attributes
    ----------
    mean : ndarray of shape (n_nodes,), float64
        Mean of the numbers of the training points below the node.
    variance : ndarray of shape (n_nodes,), float64
        Their variance.
    rest : ndarray of shape (n_nodes,), float64
        What a leaf adds to its line: a leaf predicts ``rest`` plus the value of the line. NaN for
        nodes that are split.
    line : ndarray of shape (n_nodes,), int32
        The line of a leaf, or that of the leaves below a node, if they have no other: an index into
        the arrays below; -1 for none. A split node of more than 64 samples has a line of its own.
    line_base : ndarray of shape (n_lines,), float64
        The value of a line where each feature is at its center.
    line_dimension : ndarray of shape (n_lines, 8), int32
        The features of a line; -1 for none.
    line_slope, line_center : ndarrays of shape (n_lines, 8), float64
        The line adds ``slope * (x - center)`` for each feature, and nothing for a missing value.
    line_clip : ndarray of shape (n_lines, 8, 2), float64
        The range into which the line clips x first.
    line_range : ndarray of shape (n_lines, 2), float64
        The range into which the line clips its value.

    Examples
    --------
    >>> from onlineforest import OnlineForestRegressor
    >>> forest = OnlineForestRegressor(n_estimators=1, random_state=0)
    >>> tree = forest.fit([[0.0], [1.0], [5.0]], [1.0, 1.0, 4.0]).trees_[0]
    >>> tree.mean[tree.root], tree.variance[tree.root]
    (np.float64(2.0), np.float64(2.0))
    """

    __module__ = "onlineforest"

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    rest: NDArray[np.float64]
    line: NDArray[np.int32]
    line_base: NDArray[np.float64]
    line_dimension: NDArray[np.int32]
    line_slope: NDArray[np.float64]
    line_center: NDArray[np.float64]
    line_clip: NDArray[np.float64]
    line_range: NDArray[np.float64]


Tree = TypeVar("Tree", bound=TreeArrays)


class TreeSequence(Sequence[Tree], Generic[Tree]):
    """The current trees of a forest, each copied on access because all may be large.

    Parameters
    ----------
    count : callable
        Returns the number of trees.
    tree : callable
        Returns the tree of an index.
    kind : str, default="Mondrian"
        The kind of trees, for `repr`.
    """

    def __init__(
        self, count: Callable[[], int], tree: Callable[[int], Tree], kind: str = "Mondrian"
    ) -> None:
        self._count, self._tree, self._kind = count, tree, kind

    def __len__(self) -> int:
        return self._count()

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind} trees>"

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tree]: ...
    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        n_trees = len(self)
        if not -n_trees <= index < n_trees:
            raise IndexError(f"There are {n_trees} trees; there is none of index {index}.")
        return self._tree(index % n_trees)
