"""Projectivity: a forest that forgot points has the distribution of one that never saw them.

A Mondrian tree restricted to fewer points is a Mondrian tree on those points. So a forest after any
history of learning and forgetting is compared with one batch of the remaining points, by the
statistics of `test_online_equals_batch.py`, with the same power and chance of a false alarm.

A call that forgets more than one point for every four that remain grows the trees again. Most
histories forget one point per call, with at least four remaining, so that trees forget in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from support.core import (
    check_same_predictions,
    check_same_trees,
    core_forest,
    forget,
    learn,
    statistics_of,
    tree_statistics,
    trees_of,
    wide,
)
from support.statistics import check_mean

_rng = np.random.default_rng(2014)
CLOUD = _rng.random((12, 3)).round(2)
CLOUD[5] = [1.9, -0.7, 0.5]  # this point and point 10 stretch the boxes
CLOUD[10] = [0.4, 0.6, 2.2]
CLOUD[6] = [0.5, 0.5, 0.5]  # an inner point
CLOUD[7] = CLOUD[2]  # a duplicate, with another label
CLOUD[8] = CLOUD[3]  # a duplicate, with the same label
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 2, 0])
APART = np.arange(12)  # all labels different: only single points pause

CROWD = _rng.random((30, 2))
# Each stretches the boxes a little, so that it lies deep in most trees.
HULL = {1: [-0.6, 0.4], 3: [0.5, 1.6], 16: [0.3, -0.6], 27: [1.6, 0.5]}
CROWD[list(HULL)] = list(HULL.values())


@dataclass(frozen=True)
class Case:
    """Data and parameters of one comparison."""

    X: np.ndarray
    y: np.ndarray
    options: dict = field(default_factory=dict)

    def learn(self, forest, rows):
        """Learn some of the points in one call."""
        return learn(forest, self.X[rows], self.y[rows], int(self.y.max()) + 1, n_threads=1)


CASES = {
    "pausing": Case(CLOUD, LABELS),
    "no pausing": Case(CLOUD, APART),
    "min_samples_split": Case(CLOUD, LABELS, {"min_samples_split": 4}),
    "finite lifetime": Case(CLOUD, LABELS, {"lifetime": 0.5, "weights": [1, 2, 0.5]}),
    "weights": Case(CLOUD, APART, {"weights": [3.0, 0.4, 1.0]}),
    "weight 0": Case(CLOUD, LABELS, {"weights": [0.0, 2.0, 1.0]}),
    "wide": Case(wide(CLOUD), LABELS),
    "wide, finite lifetime": Case(wide(CLOUD), APART, {"lifetime": 0.5}),
    "line": Case(np.array([[0.3], [0.0], [0.4], [0.9], [0.2], [0.1], [2.0], [0.5], [0.8]]), APART),
    "plane": Case(CLOUD[:8, :2], np.array([0, 1, 0, 1, 2, 2, 0, 1])),
    "crowd": Case(CROWD, np.arange(30)),
    "crowd, wide": Case(wide(CROWD), np.arange(30)),
    "crowd, pausing": Case(CROWD, (CROWD[:, 0] > 0.6).astype(int)),
    "window": Case(CLOUD, LABELS, {"window": 8}),
    "window, no pausing": Case(CLOUD, APART, {"window": 8}),
    "window, finite lifetime": Case(CLOUD, LABELS, {"window": 8, "lifetime": 0.5}),
    "window, wide": Case(wide(CLOUD), LABELS, {"window": 8}),
}


def learned(rows):
    """Steps of a history: points are learned one by one."""
    return [("learn", [i]) for i in rows]


def forgotten(rows):
    """Steps of a history: points are forgotten one by one."""
    return [("forget", [i]) for i in rows]


ALL = list(range(12))
FORGOTTEN = {
    "at random": forgotten([9, 4, 2]),
    "the oldest": forgotten([0, 1, 2]),
    "the latest": forgotten([11, 10, 9]),
    "outliers": forgotten([5, 10]),
    "an inner point": forgotten([6]),
    "duplicates": forgotten([7, 3]),
    "a class": forgotten([4, 9, 1, 7]),
    "all but a class": forgotten([7, 2, 10, 1, 5, 4, 9]),
    "half": forgotten([0, 11, 5, 3, 8, 6]),
    "two at once": [("forget", [11, 2])],
    "half at once": [("forget", [0, 11, 5, 3, 8, 6])],
    "all but the latest": [("keep", 10)],
}

HISTORIES = {
    **{who: [*learned(ALL), *steps] for who, steps in FORGOTTEN.items()},
    **{f"one batch, {who}": [("learn", ALL), *steps] for who, steps in FORGOTTEN.items()},
    "outliers come back": [("learn", ALL), *forgotten([5, 10]), *learned([10, 5])],
    "outliers come back as a set": [*learned(ALL), *forgotten([10, 5]), ("learn", [5, 10])],
    "a class comes back": [
        *learned(ALL),
        *forgotten([1, 4, 7, 9]),
        ("learn", [7, 9]),
        *learned([1, 4]),
    ],
    "one comes, one goes": [
        ("learn", [5, 10, *range(5)]),
        *(step for i in (6, 7, 8, 9, 11) for step in (*learned([i]), *forgotten([i - 6]))),
        *forgotten([10]),
        *learned([0]),
    ],
    "all go": [*learned(ALL), ("forget", ALL[::-1]), *learned([3, 5, 1, 0, 9, 10])],
    "all but one go": [("learn", ALL), *forgotten(ALL[:-1]), *learned(ALL[:-1])],
    "9 to 5": [*learned(range(9)), *forgotten([6, 4, 0, 7])],
    "8 to 4": [*learned(range(8)), *forgotten([1, 5, 6, 0])],
    "30 to 26": [("learn", list(range(30))), *forgotten(HULL)],
    "hull comes back": [("learn", list(range(30))), *forgotten(HULL), *learned(HULL)],
    "one by one": learned(ALL),
    "pairs": [("learn", [i, i + 1]) for i in ALL[::2]],
    "one batch": [("learn", ALL)],
}
COMPARED = {
    "pausing": [
        *FORGOTTEN,
        "one batch, the oldest",
        "one batch, outliers",
        "one batch, all but a class",
        "outliers come back",
        "a class comes back",
        "one comes, one goes",
        "all go",
        "all but one go",
    ],
    "no pausing": [
        "at random",
        "outliers",
        "duplicates",
        "half",
        "outliers come back",
        "outliers come back as a set",
        "one comes, one goes",
    ],
    "min_samples_split": [
        "all but a class",
        "half",
        "outliers come back",
        "a class comes back",
    ],
    "finite lifetime": [
        "outliers",
        "a class",
        "half",
        "outliers come back as a set",
        "one comes, one goes",
    ],
    "weights": ["at random", "outliers come back"],
    "weight 0": ["a class"],
    "wide": ["outliers", "a class", "outliers come back"],
    "wide, finite lifetime": ["at random", "outliers come back"],
    "line": ["9 to 5"],
    "plane": ["8 to 4"],
    "crowd": ["hull comes back"],
    "crowd, wide": ["hull comes back"],
    "crowd, pausing": ["30 to 26"],
    "window": ["one by one", "pairs", "one batch"],
    "window, no pausing": ["one by one", "one comes, one goes"],
    "window, finite lifetime": ["one by one"],
    "window, wide": ["one by one"],
}


def play(case, steps, forest):
    """Carry out a history; return the point of the case that is in each slot."""
    came = []
    for verb, rows in steps:
        if verb == "learn":
            case.learn(forest, rows)
            came += rows
        elif verb == "forget":
            forget(forest, [len(came) - 1 - came[::-1].index(i) for i in rows])
        else:
            forest.keep_latest(rows)
    return np.array(came)[forest.serials]


def left_after(case, steps):
    """The points that must remain, in order."""
    left = []
    for verb, rows in steps:
        if verb == "learn":
            left = [*left, *rows][-case.options.get("window", len(case.X)) :]
        elif verb == "forget":
            left = [i for i in left if i not in rows]
        else:
            left = left[-rows:]
    return sorted(left)


@pytest.fixture(scope="module")
def batch_statistics(n_trees):
    """Statistics of trees grown in one batch from some points of a case, computed once."""
    kept = {}

    def statistics(name, rows):
        key = name, tuple(rows)
        if key not in kept:
            case = CASES[name]
            forest = core_forest(n_trees, case.X.shape[1], seed=1, **case.options)
            kept[key] = tree_statistics(case.learn(forest, rows), point_ids=rows)
        return kept[key]

    return statistics


PAIRS = [(name, history) for name in CASES for history in COMPARED[name]]


@pytest.mark.parametrize(("name", "history"), PAIRS)
def test_a_history_gives_the_trees_of_a_batch(
    name, history, n_trees, batch_statistics, check_invariants
):
    case, steps = CASES[name], HISTORIES[history]
    left = left_after(case, steps)
    forest = core_forest(n_trees, case.X.shape[1], seed=2, **case.options)
    slots = play(case, steps, forest)
    assert sorted(slots) == left
    check_same_trees(batch_statistics(name, left), tree_statistics(forest, slots), case.X[left])
    check_invariants(forest)


@pytest.mark.parametrize(("name", "half_life"), [("pausing", np.inf), ("no pausing", 4.0)])
def test_a_reservoir_has_the_trees_of_its_points(
    name, half_life, n_trees, batch_statistics, check_invariants
):
    case = CASES[name]
    options = {"reservoir": 7, "half_life": half_life, **case.options}
    forest = core_forest(n_trees, case.X.shape[1], seed=2, **options)
    slots = play(case, learned(ALL), forest)
    left = sorted(slots)
    assert len(set(left)) == 7
    assert left != ALL[5:]
    check_same_trees(batch_statistics(name, left), tree_statistics(forest, slots), case.X[left])
    check_invariants(forest)


def test_a_reservoir_chooses_points_blindly(n_trees):
    """If the choice depended on the tree, the remaining tree would have another distribution.

    A forest of many trees would hide this, so each forest has one tree and its own points.
    """
    case = CASES["no pausing"]
    trees, fresh, kept = [], [], []
    for seed in range(n_trees):
        forest = core_forest(1, 3, reservoir=7, seed=seed)
        X, y = case.X.astype(np.float32), case.y.astype(np.int32)
        for i in ALL:
            forest.learn(X[i : i + 1], y[i : i + 1], 12)
        trees += trees_of(forest)
        rows = np.sort(forest.serials)
        forest = core_forest(1, 3, seed=n_trees + seed)
        forest.learn(X[rows], y[rows], 12)
        fresh += trees_of(forest)
        kept.append(np.isin(ALL, rows))
    check_same_trees(statistics_of(fresh), statistics_of(trees), case.X)
    for i, is_kept in enumerate(np.transpose(kept)):
        check_mean(f"point {i} is kept", is_kept, 7 / 12, bounded=True)


# On, between and around the points, and near the outliers.
QUERIES = np.array(
    [[0.5, 0.5, 0.5], [0.7, 0.2, 0.9], CLOUD[0], CLOUD[5], [1.4, -0.2, 0.5], [0.4, 0.6, 1.6]]
)
PREDICTED = [
    ("pausing", "one batch, outliers"),
    ("pausing", "one batch, a class"),
    ("no pausing", "one batch, at random"),
    ("no pausing", "outliers"),
    ("min_samples_split", "one batch, outliers"),
    ("finite lifetime", "half"),
    ("finite lifetime", "one comes, one goes"),
    ("crowd, pausing", "30 to 26"),
    ("window", "one by one"),
]


def with_measure_of(forest, other):
    """A copy of a forest with the measure of another.

    A measure depends on forgotten points until the next refresh. With given weights, trees do not
    depend on it, but predictions do.
    """
    state, source = forest.get_state(), other.get_state()
    state |= {key: source[key] for key in ("measures.discount_rate", "measures.leaf_discount")}
    return type(forest).from_state(state)


@pytest.mark.parametrize(("name", "history"), PREDICTED)
def test_a_history_gives_the_predictions_of_a_batch(name, history, n_trees):
    case, steps = CASES[name], HISTORIES[history]
    left = left_after(case, steps)
    n_features = case.X.shape[1]
    queries = np.ascontiguousarray(QUERIES[:, :n_features], dtype=np.float32)
    n_groups = 100
    online, batch = [], []
    for seed in range(n_groups):
        forest = core_forest(n_trees // n_groups, n_features, seed=seed, **case.options)
        play(case, steps, forest)
        online.append(forest.predict(queries))
        fresh = core_forest(n_trees // n_groups, n_features, seed=n_groups + seed, **case.options)
        batch.append(with_measure_of(case.learn(fresh, left), forest).predict(queries))
    check_same_predictions(np.array(batch), np.array(online))
