"""Dynamic trees for classification: particle learning over trees (Taddy, Gramacy, Polson, 2011).

The competitor of Mondrian forests in the paper's figure 4, after the published algorithm, with the
defaults of the authors' R package. It knows nothing of Mondrian forests.

A cloud is a set of particles, each of them a tree over all the points seen. A new point is learned
in two steps. The particles are resampled by how well they predicted its label. Then each of them
takes in the point and changes only at the point's leaf: it stays, or the leaf's parent is pruned to
a leaf, or the leaf is split by a random proposal, each with the posterior probability of the tree
that would come of it.

How the trees are kept
----------------------
Resampling copies trees, so all particles of a cloud keep their trees in one pool of nodes and share
what is equal. A node is free again when no parent and no particle refers to it.

- No node ever gets another place: a move makes new nodes for what it changed and for the path up to
  the root, with the old splits. So whichever trees share a node, it stands for the same region of
  the feature space and for the same points.
- So a new point is added in place, once for each distinct node on its paths: the sharing trees
  would all get the same point there.
- Each node caches the log posterior of its subtree. Depth matters to the prior, but the depth of a
  node never changes, so only the nodes on a path have to be brought up to date.
- The points of a leaf are a linked list of cells that belongs to this leaf alone: moves make new
  leaves, and no leaf is ever copied.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from experiments.competitors.estimator import OnlineClassifier, check_at_least

NONE = -1
STAY, PRUNE, GROW = 0, 1, 2

NODE = np.dtype(
    [
        ("left", np.int32),  # NONE in a leaf; in a free node, the next free node
        ("right", np.int32),
        ("split_dimension", np.int32),
        ("references", np.int32),  # parents and particles that hold this node
        ("n_points", np.int32),
        ("first_cell", np.int32),  # where the list of the points of a leaf begins
        ("last_point", np.int32),  # the last one added in place
        ("split_location", np.float64),  # x <= split_location goes left
        ("log_posterior", np.float64),  # prior and likelihood of the subtree
    ]
)
CELL = np.dtype([("point", np.int32), ("next", np.int32)])
STATE = np.dtype(
    [
        ("free_node", np.int32),  # head of the list of free nodes
        ("n_nodes", np.int32),  # nodes beyond were never used
        ("n_live_nodes", np.int32),
        ("free_cell", np.int32),
        ("n_cells", np.int32),
        ("deepest", np.int32),  # depth of the deepest leaf so far
    ]
)


class Cloud(NamedTuple):
    """The particles of one run over the data, as arrays."""

    nodes: np.ndarray
    counts: np.ndarray  # (nodes, classes); inner nodes have them for prunes
    cells: np.ndarray
    roots: np.ndarray  # a node for each particle
    state: np.ndarray  # one element of type STATE


class Data(NamedTuple):
    """All points seen; the clouds share them. Rows of `columns` are features."""

    columns: np.ndarray
    labels: np.ndarray


class Tables(NamedTuple):
    """Logarithms by count (of points) or by depth: no depth exceeds the number of points."""

    log_gamma: np.ndarray  # lgamma(count + 1/K) - lgamma(1/K)
    log_factorial: np.ndarray  # lgamma(count + 1)
    log_split: np.ndarray  # prior of an inner node at this depth
    log_leaf: np.ndarray  # prior of a leaf at this depth


def make_tables(size, n_classes, alpha, beta):
    """Tables of `size` entries, computed by the library function that a plain version calls."""
    prior = 1 / n_classes
    split = [alpha * (1 + depth) ** -beta for depth in range(size)]
    return Tables(
        np.array([math.lgamma(count + prior) - math.lgamma(prior) for count in range(size)]),
        np.array([math.lgamma(count + 1) for count in range(size)]),
        np.array([math.log(p) for p in split]),
        np.array([math.log(1 - p) for p in split]),
    )


# ---- the pool ----------------------------------------------------------------------------------


@njit(cache=True)
def new_node(cloud):
    """A node with one reference; the caller fills it in."""
    state = cloud.state[0]
    node = state.free_node
    if node != NONE:
        state.free_node = cloud.nodes[node].left
    else:
        node = state.n_nodes
        state.n_nodes += 1
    state.n_live_nodes += 1
    cloud.nodes[node].references = 1
    return node


@njit(cache=True)
def new_inner_node(cloud, old):
    """A node with the points and counts of an old one; the caller sets split and children."""
    node = new_node(cloud)
    cloud.nodes[node].n_points = cloud.nodes[old].n_points
    cloud.nodes[node].last_point = NONE
    for k in range(cloud.counts.shape[1]):  # as one assignment, it takes seconds to compile
        cloud.counts[node, k] = cloud.counts[old, k]
    return node


@njit(cache=True)
def new_leaf(cloud):
    """A leaf without points."""
    leaf = new_node(cloud)
    fields = cloud.nodes[leaf]
    fields.left = NONE
    fields.right = NONE
    fields.n_points = 0
    fields.first_cell = NONE
    fields.last_point = NONE
    cloud.counts[leaf] = 0
    return leaf


@njit(cache=True)
def put_into_leaf(cloud, leaf, point, label):
    """Add a point to the list and to the counts of a leaf."""
    state = cloud.state[0]
    cell = state.free_cell
    if cell != NONE:
        state.free_cell = cloud.cells[cell].next
    else:
        cell = state.n_cells
        state.n_cells += 1
    fields = cloud.nodes[leaf]
    cloud.cells[cell].point = point
    cloud.cells[cell].next = fields.first_cell
    fields.first_cell = cell
    fields.n_points += 1
    cloud.counts[leaf, label] += 1


@njit(cache=True)
def release(cloud, root, stack):
    """Drop one reference to a tree, and free nodes without references."""
    state = cloud.state[0]
    stack[0] = root
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        fields = cloud.nodes[node]
        fields.references -= 1
        if fields.references > 0:
            continue
        if fields.left == NONE:
            cell = fields.first_cell
            while cell != NONE:
                following = cloud.cells[cell].next
                cloud.cells[cell].next = state.free_cell
                state.free_cell = cell
                cell = following
        else:
            stack[height] = fields.left
            stack[height + 1] = fields.right
            height += 2
        fields.left = state.free_node
        state.free_node = node
        state.n_live_nodes -= 1


@njit(cache=True)
def find_path(cloud, node, x, path):
    """Fill `path` with the nodes from the root to the leaf of x; return the leaf's depth."""
    depth = 0
    path[0] = node
    while cloud.nodes[node].left != NONE:
        fields = cloud.nodes[node]
        goes_left = x[fields.split_dimension] <= fields.split_location
        node = fields.left if goes_left else fields.right
        depth += 1
        path[depth] = node
    return depth


# ---- resampling --------------------------------------------------------------------------------


@njit(cache=True)
def residual_copies(weights, rng):
    """Number of copies of each particle by residual resampling.

    Of N particles each is taken floor(N w) times, and the rest is drawn with probabilities
    proportional to what the floors left over.
    """
    n_particles = weights.size
    total = 0.0
    for weight in weights:
        total += weight
    copies = np.empty(n_particles, np.int64)
    residual = np.empty(n_particles)
    for i in range(n_particles):
        expected = n_particles * (weights[i] / total)
        copies[i] = math.floor(expected)
        residual[i] = expected - copies[i]
    cumulated = np.cumsum(residual)
    for _ in range(n_particles - copies.sum()):
        # The right side: a particle without residual is never drawn.
        drawn = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
        copies[drawn] += 1
    return copies


@njit(cache=True)
def resample(cloud, x, label, rng, path, stack):
    """Resample the particles by their posterior predictive probability of the label."""
    n_particles = cloud.roots.size
    n_classes = cloud.counts.shape[1]
    weights = np.empty(n_particles)
    all_equal = True
    for i in range(n_particles):
        leaf = path[find_path(cloud, cloud.roots[i], x, path)]
        count = cloud.counts[leaf, label]
        weights[i] = (count + 1 / n_classes) / (cloud.nodes[leaf].n_points + 1)
        all_equal = all_equal and weights[i] == weights[0]
    if all_equal:
        return
    copies = residual_copies(weights, rng)
    resampled = np.empty_like(cloud.roots)
    filled = 0
    for i in range(n_particles):
        cloud.nodes[cloud.roots[i]].references += copies[i]
        for _ in range(copies[i]):
            resampled[filled] = cloud.roots[i]
            filled += 1
    for i in range(n_particles):  # only now: slots may share a root
        release(cloud, cloud.roots[i], stack)
        cloud.roots[i] = resampled[i]


# ---- moves -------------------------------------------------------------------------------------


@njit(cache=True)
def log_marginal(counts, n_points, tables):
    """Log marginal likelihood of a leaf's labels under a Dirichlet(1/K) prior."""
    total = 0.0
    for count in counts:
        total += tables.log_gamma[count]
    return total - tables.log_factorial[n_points]


@njit(cache=True)
def log_inner(cloud, left, right, depth, tables):
    """Log posterior of a subtree with a split at its root."""
    nodes = cloud.nodes
    return tables.log_split[depth] + nodes[left].log_posterior + nodes[right].log_posterior


@njit(cache=True)
def add_point(cloud, root, data, point, tables, path):
    """Add a point to the nodes on its path that did not get it through another particle."""
    if cloud.nodes[root].last_point == point:
        return  # all nodes below have it, too
    label = data.labels[point]
    depth = find_path(cloud, root, data.columns[:, point], path)
    leaf = path[depth]
    fields = cloud.nodes[leaf]
    if fields.last_point != point:
        put_into_leaf(cloud, leaf, point, label)
        marginal = log_marginal(cloud.counts[leaf], fields.n_points, tables)
        fields.log_posterior = tables.log_leaf[depth] + marginal
        fields.last_point = point
    for above in range(depth - 1, -1, -1):
        node = path[above]
        fields = cloud.nodes[node]
        if fields.last_point != point:
            fields.n_points += 1
            cloud.counts[node, label] += 1
            fields.log_posterior = log_inner(cloud, fields.left, fields.right, above, tables)
            fields.last_point = point


@njit(cache=True)
def propose_split(cloud, leaf, data, rng, left_counts):
    """Draw a split: a feature, then a location between its least and largest value in the leaf.

    Returns the feature, the location and the number of points on the left, which is zero if
    there is no split; `left_counts` gets their labels.
    """
    n_points = cloud.nodes[leaf].n_points
    if n_points < 2:
        return 0, 0.0, 0
    dimension = int(rng.random() * data.columns.shape[0])
    values = data.columns[dimension]
    first = cloud.nodes[leaf].first_cell
    lower = upper = values[cloud.cells[first].point]
    cell = cloud.cells[first].next
    while cell != NONE:
        value = values[cloud.cells[cell].point]
        lower = min(lower, value)
        upper = max(upper, value)
        cell = cloud.cells[cell].next
    if lower == upper:
        return dimension, lower, 0
    location = lower + rng.random() * (upper - lower)
    left_counts[:] = 0
    n_left = 0
    cell = first
    while cell != NONE:
        point = cloud.cells[cell].point
        if values[point] <= location:
            left_counts[data.labels[point]] += 1
            n_left += 1
        cell = cloud.cells[cell].next
    if n_left == n_points:  # the location was rounded up to the largest value
        return dimension, location, 0
    return dimension, location, n_left


@njit(cache=True)
def choose_move(log_stay, log_prune, log_grow, uniform):
    """Choose a move with probabilities proportional to the exponentials."""
    largest = max(log_stay, log_prune, log_grow)
    stay = math.exp(log_stay - largest)
    prune = math.exp(log_prune - largest)
    grow = math.exp(log_grow - largest)
    threshold = uniform * (stay + prune + grow)
    if threshold < stay:
        return STAY
    if threshold < stay + prune:
        return PRUNE
    return GROW


@njit(cache=True)
def grown_subtree(cloud, leaf, dimension, location, depth, data, tables):
    """A new node in place of the leaf, with two leaves that divide its points."""
    left, right = new_leaf(cloud), new_leaf(cloud)
    cell = cloud.nodes[leaf].first_cell
    while cell != NONE:
        point = cloud.cells[cell].point
        child = left if data.columns[dimension, point] <= location else right
        put_into_leaf(cloud, child, point, data.labels[point])
        cell = cloud.cells[cell].next
    for child in (left, right):
        marginal = log_marginal(cloud.counts[child], cloud.nodes[child].n_points, tables)
        cloud.nodes[child].log_posterior = tables.log_leaf[depth + 1] + marginal
    node = new_inner_node(cloud, leaf)
    fields = cloud.nodes[node]
    fields.left = left
    fields.right = right
    fields.split_dimension = dimension
    fields.split_location = location
    fields.log_posterior = log_inner(cloud, left, right, depth, tables)
    cloud.state[0].deepest = max(cloud.state[0].deepest, depth + 1)
    return node


@njit(cache=True)
def pruned_subtree(cloud, parent, depth, data, tables, stack):
    """A new leaf in place of the parent, with all the points below it."""
    pruned = new_leaf(cloud)
    stack[0] = parent
    height = 1
    while height > 0:
        height -= 1
        fields = cloud.nodes[stack[height]]
        if fields.left == NONE:
            cell = fields.first_cell
            while cell != NONE:
                point = cloud.cells[cell].point
                put_into_leaf(cloud, pruned, point, data.labels[point])
                cell = cloud.cells[cell].next
        else:
            stack[height] = fields.left
            stack[height + 1] = fields.right
            height += 2
    marginal = log_marginal(cloud.counts[pruned], cloud.nodes[pruned].n_points, tables)
    cloud.nodes[pruned].log_posterior = tables.log_leaf[depth] + marginal
    return pruned


@njit(cache=True)
def replaced_root(cloud, path, depth, subtree, tables):
    """The root of a tree with `subtree` in place of the node at this depth of the path.

    The nodes above are made anew, and the other children are shared with the old tree.
    """
    for above in range(depth - 1, -1, -1):
        old = path[above]
        node = new_inner_node(cloud, old)
        fields = cloud.nodes[node]
        fields.split_dimension = cloud.nodes[old].split_dimension
        fields.split_location = cloud.nodes[old].split_location
        if cloud.nodes[old].left == path[above + 1]:
            fields.left = subtree
            fields.right = cloud.nodes[old].right
            cloud.nodes[fields.right].references += 1
        else:
            fields.left = cloud.nodes[old].left
            fields.right = subtree
            cloud.nodes[fields.left].references += 1
        fields.log_posterior = log_inner(cloud, fields.left, fields.right, above, tables)
        subtree = node
    return subtree


@njit(cache=True)
def propagate(cloud, particle, data, point, tables, rng, path, stack, left_counts):
    """Choose a particle's move at the leaf of its newest point, and make it.

    The trees it chooses from differ only below the leaf's parent, so their posteriors are compared
    there.
    """
    nodes = cloud.nodes
    root = cloud.roots[particle]
    depth = find_path(cloud, root, data.columns[:, point], path)
    leaf = path[depth]

    dimension, location, n_left = propose_split(cloud, leaf, data, rng, left_counts)
    if depth == 0 and n_left == 0:
        return  # nothing to choose from
    grown = -np.inf
    if n_left > 0:
        right_counts = cloud.counts[leaf] - left_counts
        n_right = nodes[leaf].n_points - n_left
        on_left = tables.log_leaf[depth + 1] + log_marginal(left_counts, n_left, tables)
        on_right = tables.log_leaf[depth + 1] + log_marginal(right_counts, n_right, tables)
        grown = tables.log_split[depth] + on_left + on_right

    if depth == 0:
        log_stay, log_prune, log_grow = nodes[leaf].log_posterior, -np.inf, grown
    else:
        parent = path[depth - 1]
        log_stay = nodes[parent].log_posterior
        marginal = log_marginal(cloud.counts[parent], nodes[parent].n_points, tables)
        log_prune = tables.log_leaf[depth - 1] + marginal
        left, right = nodes[parent].left, nodes[parent].right
        if left == leaf:
            log_grow = tables.log_split[depth - 1] + grown + nodes[right].log_posterior
        else:
            log_grow = tables.log_split[depth - 1] + nodes[left].log_posterior + grown

    move = choose_move(log_stay, log_prune, log_grow, rng.random())
    if move == STAY:
        return
    if move == GROW:
        subtree = grown_subtree(cloud, leaf, dimension, location, depth, data, tables)
    else:
        depth -= 1
        subtree = pruned_subtree(cloud, path[depth], depth, data, tables, stack)
    cloud.roots[particle] = replaced_root(cloud, path, depth, subtree, tables)
    release(cloud, root, stack)


# ---- whole clouds ------------------------------------------------------------------------------


@njit(cache=True)
def learn(cloud, data, points, tables, rng):
    """Learn points one by one while the pool of nodes surely has room; return their number."""
    n_particles = cloud.roots.size
    path = np.empty(tables.log_leaf.size, np.int64)
    stack = np.empty(tables.log_leaf.size + 2, np.int64)
    left_counts = np.empty(cloud.counts.shape[1], cloud.counts.dtype)
    for i in range(points.size):
        room = cloud.nodes.size - cloud.state[0].n_live_nodes
        if room < n_particles * (cloud.state[0].deepest + 3):  # every tree might grow
            return i
        point = points[i]
        resample(cloud, data.columns[:, point], data.labels[point], rng, path, stack)
        for particle in range(n_particles):
            add_point(cloud, cloud.roots[particle], data, point, tables, path)
        for particle in range(n_particles):
            propagate(cloud, particle, data, point, tables, rng, path, stack, left_counts)
    return points.size


@njit(cache=True)
def predict(cloud, columns):
    """The mean over particles of their predictive probabilities, (n_samples, n_classes)."""
    n_classes = cloud.counts.shape[1]
    result = np.zeros((columns.shape[1], n_classes))
    path = np.empty(cloud.state[0].deepest + 1, np.int64)
    for i in range(columns.shape[1]):
        for root in cloud.roots:
            leaf = path[find_path(cloud, root, columns[:, i], path)]
            n_points = cloud.nodes[leaf].n_points
            for k in range(n_classes):
                result[i, k] += (cloud.counts[leaf, k] + 1 / n_classes) / (n_points + 1)
    return result / cloud.roots.size


def make_cloud(n_particles, n_classes):
    """Particles that all share one empty leaf."""
    cloud = Cloud(
        np.empty(4 * n_particles, NODE),
        np.empty((4 * n_particles, n_classes), np.int32),
        np.empty(0, CELL),
        np.zeros(n_particles, np.int32),
        np.array([(NONE, 1, 1, NONE, 0, 0)], STATE),
    )
    cloud.nodes[0] = (NONE, NONE, 0, n_particles, 0, NONE, NONE, 0.0, 0.0)
    cloud.counts[0] = 0
    return cloud


def enlarged(array, size, used):
    """A longer array with equal first `used` elements; the others are not initialised."""
    result = np.empty((size, *array.shape[1:]), array.dtype)
    result[:used] = array[:used]
    return result


# ---- the estimator -----------------------------------------------------------------------------


class DynamicTrees(OnlineClassifier):
    """Online classification by particle learning over trees.

    Parameters
    ----------
    n_particles : int
        Trees of each cloud.
    n_repeats : int
        Independent clouds whose predictions are averaged.
    alpha, beta : float
        A node at depth d (of the root: 0) is split with prior probability alpha (1 + d)^-beta.
    seed : int
        All randomness comes from it.

    Notes
    -----
    Differs from the paper, where each repeat sees a random permutation of the whole training set:
    here the first cloud sees every mini-batch in the order given, each further one in a random
    order of the same mini-batch. Thus all clouds hold the same points after each call, and the
    whole is one online run that can be judged at any time.

    Examples
    --------
    >>> trees = DynamicTrees(n_particles=10, seed=1)
    >>> trees = trees.partial_fit([[0.0], [0.1], [0.9], [1.0]] * 5, [3, 3, 7, 7] * 5)
    >>> trees.predict([[0.05], [0.95]])
    array([3, 7])
    """

    def __init__(self, n_particles=100, *, n_repeats=2, alpha=0.95, beta=2.0, seed=0):
        super().__init__(seed)
        owner = type(self).__name__
        check_at_least(owner, "n_particles", n_particles, 1)
        check_at_least(owner, "n_repeats", n_repeats, 1)
        check_at_least(owner, "beta", beta, 0.0)
        if not 0 < alpha < 1:
            raise ValueError(
                f"The 'alpha' parameter of {owner} must lie between 0 and 1. Got {alpha!r} instead."
            )
        self.n_particles = n_particles
        self.n_repeats = n_repeats
        self.alpha = alpha
        self.beta = beta

    def _start(self, n_features, n_classes):
        self.n_samples_ = 0
        self._data = Data(np.empty((n_features, 0)), np.empty(0, np.int64))
        self._clouds = [make_cloud(self.n_particles, n_classes) for _ in range(self.n_repeats)]
        seeds = np.random.SeedSequence(self.seed).spawn(self.n_repeats)
        self._rngs = [np.random.default_rng(seed) for seed in seeds]

    def _learn(self, X, y):
        points = np.arange(self.n_samples_, self.n_samples_ + len(X))
        self._reserve(self.n_samples_ + len(X))
        self._data.columns[:, points] = X.T
        self._data.labels[points] = y
        self.n_samples_ += len(X)
        for repeat, rng in enumerate(self._rngs):
            self._learn_cloud(repeat, points if repeat == 0 else rng.permutation(points), rng)

    def _predict(self, X):
        columns = np.ascontiguousarray(X.T)
        return sum(predict(cloud, columns) for cloud in self._clouds) / self.n_repeats

    def _reserve(self, n_samples):
        """Make room for points, and for the lists of the leaves.

        The leaves of a particle hold each point once, and a move holds at most all points once
        more, so the lists never need more cells than this.
        """
        if n_samples <= self._data.labels.size:
            return
        size = max(64, n_samples, 2 * self._data.labels.size)
        columns = np.empty((self.n_features_in_, size))
        columns[:, : self.n_samples_] = self._data.columns[:, : self.n_samples_]
        self._data = Data(columns, enlarged(self._data.labels, size, self.n_samples_))
        self._tables = make_tables(size + 1, self.classes_.size, self.alpha, self.beta)
        for i, cloud in enumerate(self._clouds):
            n_cells = (self.n_particles + 1) * size
            cells = enlarged(cloud.cells, n_cells, cloud.state["n_cells"][0])
            self._clouds[i] = cloud._replace(cells=cells)

    def _learn_cloud(self, repeat, points, rng):
        """Learn points with one cloud; enlarge its pool of nodes before it may get too small."""
        while points.size:
            cloud = self._clouds[repeat]
            n_learned = learn(cloud, self._data, points, self._tables, rng)
            points = points[n_learned:]
            if points.size == 0:
                return
            size, used = 2 * cloud.nodes.size, cloud.state["n_nodes"][0]
            self._clouds[repeat] = cloud._replace(
                nodes=enlarged(cloud.nodes, size, used),
                counts=enlarged(cloud.counts, size, used),
            )
