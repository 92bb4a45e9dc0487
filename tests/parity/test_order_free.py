"""The core against the definition of the order-free forest in `tests/reference`.

Trees and predictions are equal to the bit, on small sets of many kinds and however the core came to
hold them. Ties of ranks are forced by keys of few bits.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from onlineforest._core import WEIGHT_OF_ONE, OrderFreeLabelForest, OrderFreeNumberForest
from reference import order_free_forest as reference
from reference.order_free_forest import OrderFreeForest, derive, is_left
from reference.order_free_numbers import OrderFreeNumbers
from support.core import by_code
from support.examples import examples, thorough_but
from support.order_free_trees import LEAST_NORMAL, describe_core, describe_reference

pytestmark = pytest.mark.random

N_SETS = examples(14)  # sets that each test tries
N_TREES = 2
KINDS = ["labels", "numbers"]

# Rows of each kind: (generator, n, D) -> array.
WORLDS = {
    "real": lambda rng, *shape: rng.normal(size=shape),
    "three values": lambda rng, *shape: rng.integers(0, 3, shape),
    "binary": lambda rng, *shape: rng.integers(0, 2, shape),
    "nine in ten equal": lambda rng, n, d: np.where(
        rng.random((n, 1)) < 0.9, 0.0, rng.normal(size=(n, d))
    ),
    "one row of many labels": lambda rng, *shape: rng.random(shape) < 0.005,
    "neighbouring floats": lambda rng, *shape: 1 + rng.integers(0, 4, shape) * 2.0**-23,
    "extreme": lambda rng, *shape: rng.choice([-3e38, 3e38, 1e-45, -1e-45, 0.0, -0.0], shape),
    "half missing": lambda rng, *shape: with_gaps(rng, rng.normal(size=shape)),
    "binary or missing": lambda rng, *shape: with_gaps(rng, rng.integers(0, 2, shape)),
}

# Levels of each kind, numbers of 60 bits: (generator, n, categorical features) -> array.
LEVELS = {
    "few": lambda rng, *shape: some_levels(3)[rng.integers(0, 3, shape)],
    "a dozen": lambda rng, *shape: some_levels(12)[rng.integers(0, 12, shape)],
    "many": lambda rng, *shape: rng.integers(0, 2**60, shape),
    "equal low bits": lambda rng, *shape: rng.integers(0, 6, shape) * 2**30 + 77,
    "equal high bits": lambda rng, *shape: rng.integers(0, 6, shape) + 77 * 2**30,
    "one is rare": lambda rng, *shape: np.where(rng.random(shape) < 0.97, *some_levels(2)),
}
LOW_BITS = 2**30 - 1

# Numbers of each kind: (generator, rows) -> array.
NUMBERS = {
    "of the row": lambda rng, X: (
        np.nan_to_num(X).sum(axis=1, dtype=float) % 7 + rng.normal(size=len(X))
    ),
    "noise": lambda rng, X: rng.normal(size=len(X)),
    "three values": lambda rng, X: rng.integers(0, 3, len(X)) - 1.0,
    "extreme": lambda rng, X: rng.choice([-1e150, 1e150, 1e-320, 0.0, -0.0, 1e9, 1e9 + 1], len(X)),
}


def with_gaps(rng, rows):
    """Rows of which each value is missing with a probability of its row."""
    return np.where(
        rng.random(rows.shape) < rng.choice([0, 0.2, 0.9], (len(rows), 1)), np.nan, rows
    )


def some_levels(n):
    return np.array([derive(54321, number) >> 4 for number in range(n)], dtype=np.int64)


def cells_of(levels):
    """Levels as the core takes them: the low and the high bits of each as bits of floats."""
    halves = np.stack([levels & LOW_BITS, levels >> 30], axis=2).astype(np.uint32) + LEAST_NORMAL
    return halves.view(np.float32).reshape(len(levels), 2 * levels.shape[1])


@dataclass
class Case:
    """A set of samples, the options of a forest, and rows to predict.

    The last cells of rows hold the levels of categorical features, two cells each.
    """

    X: np.ndarray
    y: np.ndarray  # codes or numbers
    hashes: np.ndarray | None  # one per label; None if y are numbers
    declared: np.ndarray
    options: dict
    queries: np.ndarray
    rng: np.random.Generator
    weights: np.ndarray | None = None  # in units
    n_categorical: int = 0

    def weights_of(self, places):
        return None if self.weights is None else self.weights[places]

    def plain(self, row):
        """A row as the definition takes it: numbers, then levels."""
        n_numeric = len(row) - 2 * self.n_categorical
        bits = (row[n_numeric:].view(np.uint32) - LEAST_NORMAL).astype(np.int64)
        low, high = bits.reshape(-1, 2).T
        return [*row[:n_numeric], *(low + high * 2**30).tolist()]


# Weights of each kind in units: (generator, n) -> array.
WEIGHTS = {
    "whole": lambda rng, n: rng.integers(1, 4, n) * WEIGHT_OF_ONE,
    "any": lambda rng, n: rng.integers(1, 3 * WEIGHT_OF_ONE, n),
    "below the discount": lambda rng, n: rng.integers(1, WEIGHT_OF_ONE // 4, n),
    "of all sizes": lambda rng, n: np.exp2(rng.uniform(0, 32, n)).astype(np.int64),
}


def weighted(case, kind):
    case.weights = WEIGHTS[kind](case.rng, len(case.X)).astype(np.int64)
    return case


def make_case(world, number, kind="labels", **options):
    """Case of this number of a world. Half of the cases have labels that tell nothing."""
    rng = np.random.default_rng([number, list(WORLDS).index(world)])
    n = int(rng.choice([0, 1, 2, 10, 17, 50, 66, 100, 130, 200, 400]))
    n_features = int(rng.choice([1, 2, 3, 5, 5, 20, 70]))
    n_codes = 400 if "many labels" in world else int(rng.choice([1, 2, 2, 3, 10, 80]))
    X = WORLDS[world](rng, n, n_features).astype(np.float32)
    y = rng.integers(0, n_codes, n)
    if rng.random() < 0.5:
        y = np.nan_to_num(np.abs(X)).sum(axis=1, dtype=float) % n_codes
    options = {
        "n_trees": N_TREES,
        "seed": int(rng.integers(0, 2**64, dtype=np.uint64)),
        "min_samples_split": int(rng.choice([2, 2, 2, 5, 100])),
        "max_samples": float(rng.choice([1.0, 1.0, 0.6])),
        "calibrates": bool(rng.random() < 0.3),
        "discount": float(rng.choice([0.0, 0.2, 1.0])),
        "key_bits": int(rng.choice([64, 64, 5, 0])),
        **options,
    }
    queries = np.vstack([X[:5], rng.normal(size=(4, n_features))]).astype(np.float32)
    if "missing" in world:
        queries = with_gaps(rng, queries).astype(np.float32)
    if kind == "numbers":
        del options["discount"]
        y = NUMBERS[rng.choice(list(NUMBERS))](rng, X)
        return Case(X, y, None, None, options, queries, rng)
    hashes = np.array([derive(12345, code + 1) for code in range(n_codes + 2)], dtype=np.uint64)
    declared = (rng.random(n_codes + 2) < 0.2).astype(np.uint8)
    return Case(X, y.astype(np.int32), hashes, declared, options, queries, rng)


def with_levels(case, kind, n_categorical=None):
    """The case with categorical features, at times with no others. Half have values by level."""
    rng, n, has_labels = case.rng, len(case.X), case.hashes is not None
    if n_categorical is None:
        n_categorical = int(rng.choice([1, 1, 2, 5, 33]))
        if rng.random() < 0.3:
            case.X, case.queries = case.X[:, :0], case.queries[:, :0]
    levels = LEVELS[kind](rng, n, n_categorical)
    if n and rng.random() < 0.5:
        told = levels[:, 0] % 1009
        case.y = told % len(case.hashes) if has_labels else told % 7 + rng.normal(size=n)
        case.y = case.y.astype(np.int32 if has_labels else float)
    asked = LEVELS[kind](rng, len(case.queries), n_categorical)
    asked[: min(n, 3)] = levels[:3]
    asked[-1] = rng.integers(0, 2**60, n_categorical)  # levels that no sample has
    case.X = np.hstack([case.X, cells_of(levels)])
    case.queries = np.hstack([case.queries, cells_of(asked)])
    case.n_categorical = n_categorical
    return case


def reference_forest(case):
    """The forest of a case by its definition."""
    weights = None if case.weights is None else (case.weights / WEIGHT_OF_ONE).tolist()
    options = {**case.options, "weights": weights}
    if case.hashes is None:
        return OrderFreeNumbers(list(zip(map(case.plain, case.X), case.y.tolist())), **options)
    samples = [(case.plain(x), int(case.hashes[c]), int(c)) for x, c in zip(case.X, case.y)]
    declared = np.flatnonzero(case.declared).tolist()
    return OrderFreeForest(samples, n_codes=len(case.hashes), declared=declared, **options)


def empty_core(case):
    """A core forest that knows the labels of a case."""
    options = {**case.options, "n_categorical": case.n_categorical}
    n_features = case.X.shape[1] - case.n_categorical
    if case.hashes is None:
        return OrderFreeNumberForest(options.pop("n_trees"), n_features, **options)
    forest = OrderFreeLabelForest(options.pop("n_trees"), n_features, **options)
    forest.set_labels(case.hashes, case.declared)
    return forest


def learn_at_once(forest, case):
    forest.learn(case.X, case.y, 1, case.weights)


def learn_one_by_one(forest, case):
    for i in case.rng.permutation(len(case.X)):
        weight = [] if case.weights is None else [case.weights[i].item()]
        forest.learn_one(case.X[i], case.y[i].item(), *weight)
        if case.rng.random() < 0.3:
            forest.predict(case.queries[:40])


def learn_in_batches(forest, case):
    for batch in batches_of(case.rng.permutation(len(case.X)), case.rng):
        forest.learn(case.X[batch], case.y[batch], 2, case.weights_of(batch))
        if case.rng.random() < 0.5:
            forest.predict(case.queries[:2])


def learn_and_forget(forest, case):
    """Learns batches of the set and batches of other samples in any order; forgets the others."""
    rng, todo, others = case.rng, batches_of(case.rng.permutation(len(case.X)), case.rng), []
    while todo or others:
        act = rng.random()
        if todo and act < 0.5:
            batch = todo.pop()
            forest.learn(case.X[batch], case.y[batch], 1, case.weights_of(batch))
        elif todo and act < 0.7:
            rows = case.X[rng.integers(0, len(case.X), rng.integers(1, 30))]
            rows = np.where(rng.random(rows.shape) < 0.3, np.float32(1), rows)
            labels = other_values(case, len(rows))
            serials = np.arange(forest.n_seen, forest.n_seen + len(rows))
            weights = None if case.weights is None else WEIGHTS["any"](rng, len(rows))
            forest.learn(rows, labels, 1, weights)
            others.append((rows, labels, serials))
        elif others:
            rows, labels, serials = others.pop(rng.integers(len(others)))
            # By rows, the oldest of equal ones are forgotten, with weights of their own.
            how = rng.integers(3) if case.weights is None else 3
            if how == 0:
                forget_rows(forest, rows, labels)
            elif how == 1:
                for i in range(len(rows)):
                    forget_rows(forest, rows[i : i + 1], labels[i : i + 1])
            elif (
                how == 3 or forest.are_stored(serials).all()
            ):  # else an equal older sample left in their place
                forest.forget(serials)
            else:
                forget_rows(forest, rows, labels)
        if rng.random() < 0.4:
            forest.predict(case.queries)


def other_values(case, n):
    """Values for samples that are forgotten again."""
    if case.hashes is None:
        return case.rng.choice([*case.y[:5], *case.rng.normal(size=5)], n)
    return case.rng.integers(0, len(case.hashes), n).astype(np.int32)


def batches_of(order, rng):
    """An order in batches of 1 to 39."""
    batches = []
    while len(order):
        size = rng.integers(1, 40)
        batches.append(order[:size])
        order = order[size:]
    return batches


def forget_rows(forest, rows, labels):
    assert len(forest.forget_rows(rows, labels)) == 0


WAYS = {
    "at once": learn_at_once,
    "one by one": learn_one_by_one,
    "in batches": learn_in_batches,
    "with others that are forgotten": learn_and_forget,
}


def check_equal(forest, case):
    """Check that a core forest has the predictions and the trees that its definition demands.

    Predictions come first: what earlier ones have computed is still there.
    """
    expected = reference_forest(case)
    assert forest.n_samples == len(case.X)
    if case.hashes is None:
        check_equal_numbers(forest, case, expected)
    else:
        check_equal_labels(forest, case, expected)
    for i, root in enumerate(expected.trees):
        assert describe_core(forest.tree(i), case) == describe_reference(root, case)


def check_equal_numbers(forest, case, expected):
    if any(expected.trees):
        moments = np.array([expected.predict(case.plain(x)) for x in case.queries])
        # The variance of a large leaf is exact in the definition.
        large = any(len(block) > 64 for root in expected.trees for block in leaves_below(root))
        for n_threads in (1, 3):
            got = forest.predict(case.queries, n_threads)
            assert got[:, 0].tolist() == moments[:, 0].tolist()
            if large:
                np.testing.assert_allclose(got, moments, rtol=1e-12)
            else:
                assert got.tolist() == moments.tolist()
        assert list(forest.predict_one(case.queries[0])) == got[0].tolist()
        check_stop_weights(forest, case, expected)


def leaves_below(root):
    """The blocks of the leaves of a tree."""
    stack = [] if root is None else [root]
    while stack:
        node = stack.pop()
        if node.left is None:
            yield node.block
        else:
            stack += [node.left, node.right]


def check_equal_labels(forest, case, expected):
    of_samples = None if case.weights is None else case.weights / WEIGHT_OF_ONE
    weights = np.bincount(case.y, weights=of_samples, minlength=len(case.hashes))
    assert forest.label_weights.tolist() == weights.tolist()
    known = case.hashes[sorted(expected.known)].tolist()
    assert forest.known_labels.tolist() == known
    for n_threads in (1, 3):
        answer = forest.predict(case.queries, n_threads)
        assert answer[0].tolist() == known
        if known:
            probabilities = [expected.predict_proba(case.plain(x)) for x in case.queries]
            assert by_code(answer, case.hashes).tolist() == probabilities
        else:
            assert answer[1].shape == (len(case.queries), 0)
    one = forest.predict_one(case.queries[0])
    assert one[0].tolist() == known
    assert by_code(one, case.hashes).tolist() == by_code(answer, case.hashes)[0].tolist()
    check_stop_weights(forest, case, expected)


def check_stop_weights(forest, case, expected):
    """Check what the trees say that enter no node lighter than a stop weight."""
    total = forest.weights.sum()
    for stop in case.rng.permutation([0, 2.5, 10, 40, 80, total / 8, total / 3]):
        units = round(stop * WEIGHT_OF_ONE)
        queries = case.queries[: case.rng.integers(1, len(case.queries))]
        if case.hashes is None:
            check_answers(forest, case, expected, queries, units)
        else:
            want = [expected.masses(case.plain(x), stop=units / WEIGHT_OF_ONE) for x in queries]
            got = forest.masses(queries, 2, units)
            assert got.tolist() == [[*masses, rest] for masses, rest in want]
        weights = [forest.tree(i)["weight"] * WEIGHT_OF_ONE for i in range(len(expected.trees))]
        leaves = forest.apply(queries, 1, units)
        for i, root in enumerate(expected.trees):
            nodes = describe_reference(root, case)
            ends = [walk(nodes, case.plain(x), weights[i], units) for x in queries]
            assert leaves[:, i].tolist() == ends


def check_answers(forest, case, expected, queries, units):
    """Check the answer of each tree: its bits, except of variances of many samples."""
    for x, got in zip(queries, forest.leaves(queries, 2, units)):
        want = np.array(expected.leaves(case.plain(x), units / WEIGHT_OF_ONE)).reshape(-1, 2)
        got = got[[root is not None for root in expected.trees]]
        assert got[:, 0].tolist() == want[:, 0].tolist()
        np.testing.assert_allclose(got[:, 1], want[:, 1], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_core_equals_its_definition(world, way, kind):
    for number in range(N_SETS):
        case = make_case(world, 100 * list(WAYS).index(way) + number, kind)
        forest = empty_core(case)
        WAYS[way](forest, case)
        check_equal(forest, case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calibrates", [False, True])
@pytest.mark.parametrize("n_asked", [20, 680])
def test_lists_in_the_order_of_ranks_learn_samples(n_asked, calibrates, kind):
    """Few rows at one place leave large lists that are not cut, and ordered by rank."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3)).astype(np.float32)
    is_high = X[:, 0] + rng.normal(size=700) > 0
    y = is_high.astype(np.int32) if kind == "labels" else is_high.astype(float)
    hashes, declared = np.array([1, 2], dtype=np.uint64), np.ones(2, dtype=np.uint8)
    of_labels = (hashes, declared) if kind == "labels" else (None, None)
    options = {"n_trees": 10, "seed": 0, "calibrates": calibrates}
    case = Case(X, y, *of_labels, options, X, rng)
    forest, expected = empty_core(case), empty_core(case)
    forest.learn(X[:680], y[:680])
    forest.predict(np.repeat(X[:1], n_asked, axis=0))
    for i in range(680, 700):
        forest.learn_one(X[i], y[i].item())
    learn_at_once(expected, case)
    for i in range(10):
        assert describe_core(forest.tree(i), case) == describe_core(expected.tree(i), case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_core_equals_its_definition_with_weights(weights, way, kind):
    """Other samples, which are forgotten, have weights of their own."""
    for number, world in enumerate(WORLDS):
        case = weighted(make_case(world, 1000 + number, kind), weights)
        forest = empty_core(case)
        WAYS[way](forest, case)
        check_equal(forest, case)


@pytest.mark.heavy_under_sanitizers(reason="most of the time is the plain definition's")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("levels", LEVELS)
def test_the_core_equals_its_definition_with_categorical_features(levels, way, kind):
    """Beside numbers of all kinds, missing ones too, or alone. Some samples have weights."""
    for number in range(N_SETS):
        world = list(WORLDS)[number % len(WORLDS)]
        case = make_case(world, 2000 + 100 * list(WAYS).index(way) + number, kind)
        case = with_levels(case, levels)
        if number % 3 == 0:
            case = weighted(case, list(WEIGHTS)[number // 3 % len(WEIGHTS)])
        forest = empty_core(case)
        WAYS[way](forest, case)
        check_equal(forest, case)


@pytest.mark.heavy_under_sanitizers(reason="most of the time is the plain definition's")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", thorough_but(16, 65, of=[15, 16, 63, 64, 65, 66, 130]))
@pytest.mark.parametrize(
    ("world", "levels"),
    [
        ("real", None),
        ("three values", None),
        ("nine in ten equal", None),
        ("half missing", None),
        ("three values", "a dozen"),
        ("half missing", "few"),
    ],
)
def test_the_core_equals_its_definition_where_the_law_changes(world, levels, n, kind):
    """16 samples make more proposals; up to 64 samples all decide. Some weights are 2, then 1."""
    case = make_case(world, n, kind, min_samples_split=2, max_samples=1.0, key_bits=64)
    case.X = WORLDS[world](case.rng, n, 4).astype(np.float32)
    case.X[:, 3] = np.arange(n)  # distinct
    case.y = case.rng.normal(size=n) if kind == "numbers" else other_values(case, n)
    case.queries = case.X[:9]
    if levels is not None:
        case = with_levels(case, levels, n_categorical=2)
    forest = empty_core(case)
    learn_one_by_one(forest, case)
    check_equal(forest, case)
    forest.learn(case.X[: n // 2], case.y[: n // 2])
    forest.predict(case.queries)
    once, case.X, case.y = (case.X, case.y), *held_samples(forest)
    check_equal(forest, case)
    forest.forget(case.rng.permutation(forest.serials)[: n // 2])
    forest.predict(case.queries)
    case.X, case.y = held_samples(forest)
    assert len(case.X) == n
    check_equal(forest, case)
    forest.keep_latest(0)
    forest.learn(*once)
    case.X, case.y = once
    check_equal(forest, case)


@pytest.mark.heavy_under_sanitizers(reason="most of the time is the plain definition's")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_features", [1, 4, 12, 18])
@pytest.mark.parametrize("world", ["real", "half missing", "extreme"])
def test_lines_equal_their_definition(world, n_features, way):
    """Numbers rise along some features, of which a line takes eight. Rows of 18 are wide."""
    case = make_case(world, n_features, "numbers", min_samples_split=2, max_samples=1.0)
    rng, n = case.rng, int(case.rng.integers(70, 200))
    case.X = WORLDS[world](rng, n, n_features).astype(np.float32)
    case.queries = np.vstack([2.0 * np.clip(case.X[:4], -1e38, 1e38), case.X[4:60]])
    known = np.nan_to_num(case.X.astype(float))
    if n_features == 4:
        case = weighted(with_levels(case, "few", n_categorical=1), "any")
    slopes = rng.normal(size=n_features) / np.abs(known).max()
    case.y = known @ slopes + 0.1 * rng.normal(size=n)
    case.y *= rng.choice([1.0, 1e-300, 1e140])
    forest = empty_core(case)
    WAYS[way](forest, case)
    check_equal(forest, case)
    assert sum(len(forest.tree(i)["line_base"]) for i in range(N_TREES)) >= N_TREES


@pytest.mark.parametrize("stop", [0, 20, 50])
@pytest.mark.parametrize("number", range(4))
def test_leaves_and_splits_follow_a_line_that_changes(number, stop):
    """Single predictions keep what they compute, also at and below a node whose line changes."""
    options = {"min_samples_split": 2, "max_samples": 1.0, "key_bits": 64, "calibrates": False}
    case = make_case("real", number, "numbers", n_trees=10, **options)
    rng = case.rng
    X = rng.normal(size=(130, 3)).astype(np.float32)
    y = number * np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=len(X))
    case.X = X
    forest = empty_core(case)
    forest.learn(X[:100], y[:100])
    stop *= WEIGHT_OF_ONE
    for i in range(100, len(X)):
        for x in X:
            forest.predict_one(x, stop)
        forest.learn_one(X[i], y[i].item())
        if i % 3 == 0:
            forest.forget(np.array([i - 100]))
        fresh = empty_core(case)
        fresh.learn(*held_samples(forest))
        expected = list(map(tuple, fresh.predict(X, 1, stop).tolist()))
        assert [forest.predict_one(x, stop) for x in X] == expected


@pytest.mark.heavy_under_sanitizers(reason="most of the time is the plain definition's")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key_bits", thorough_but(3, of=[0, 3, 6]))
def test_ties_of_ranks_are_broken_by_content(key_bits, way, kind):
    """All keys are equal, or many are. Some values are missing. Low bits of levels come first."""
    for n, levels in [(20, None), (60, None), (110, None), (60, "many"), (110, "equal low bits")]:
        case = make_case("real", n, kind, min_samples_split=2, key_bits=key_bits, max_samples=1.0)
        case.X = with_gaps(case.rng, case.rng.integers(0, 9, (n, 3))).astype(np.float32)
        n_codes = 3 if kind == "numbers" else min(3, len(case.hashes))
        case.y = case.rng.integers(0, n_codes, n).astype(case.y.dtype)
        case.queries = case.X[:5]
        if levels is not None:
            case.X[:, 1:] = 0
            case = with_levels(case, levels, n_categorical=2)
        forest = empty_core(case)
        WAYS[way](forest, case)
        check_equal(forest, case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [70, 150])
@pytest.mark.parametrize("levels", [None, "few"])
def test_a_cut_follows_the_weights_of_the_deciding_samples(levels, n, kind):
    """Samples that are held come again one by one, then leave."""
    case = make_case("real", 3, kind, min_samples_split=2, max_samples=1.0)
    X = case.rng.integers(0, 9, (n, 3)) + np.arange(n)[:, None] / 1024  # distinct
    X = X.astype(np.float32)
    y = case.rng.normal(size=n) if kind == "numbers" else other_values(case, n)
    case.X, case.y, case.queries = X, y, X
    if levels is not None:
        case = with_levels(case, levels, n_categorical=2)
        X, y = case.X, case.y
    forest = empty_core(case)
    forest.learn(X, y)
    for _ in range(2):
        forest.grow_all()
        for i in case.rng.choice(case.rng.integers(0, n, 12), 200):
            forest.learn_one(X[i], y[i].item())
        case.X, case.y = held_samples(forest)
        check_equal(forest, case)
        for serial in case.rng.permutation(forest.serials[forest.serials >= n])[:150]:
            forest.forget(np.array([serial]))
        case.X, case.y = held_samples(forest)
        check_equal(forest, case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", LEVELS)
def test_cuts_on_levels_follow_samples_that_come_and_leave(levels, kind):
    """Samples pass one by one, so that many take the seats of those that decide."""
    options = {"min_samples_split": 2, "max_samples": 1.0, "key_bits": 64, "calibrates": False}
    case = make_case("real", 5, kind, n_trees=4, **options)
    n_held, n = 120, 150 if kind == "numbers" else 210  # only labels keep proposals
    case.X = case.rng.normal(size=(n, 1)).astype(np.float32)  # distinct
    case.y = case.rng.normal(size=n) if kind == "numbers" else other_values(case, n)
    case.queries = case.X[:9]
    X, y = with_levels(case, levels, n_categorical=3).X, case.y
    forest = empty_core(case)
    forest.learn(X[:n_held], y[:n_held])
    for end in range(n_held + 1, n + 1):
        forest.grow_all()
        forest.learn_one(X[end - 1], y[end - 1].item())
        forest.forget(np.array([end - 1 - n_held]))
        case.X, case.y = X[end - n_held : end], y[end - n_held : end]
        fresh = empty_core(case)
        fresh.learn(case.X, case.y)
        for i in range(case.options["n_trees"]):
            kept, grown = forest.tree(i), fresh.tree(i)
            for name in ("parent", "feature", "threshold", "weight"):
                assert kept[name].tobytes() == grown[name].tobytes()
    check_equal(forest, case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_among_samples_of_one_row_the_others_decide(way, kind):
    """The 64 samples of least rank have one row, so one of another row takes the place of one."""
    for number, n in enumerate([80, 150, 300, 300, 300, 300, 300]):
        options = {"min_samples_split": 2, "max_samples": 1.0, "key_bits": 64}
        case = make_case("one row of many labels", number, kind, **options)
        case.X = np.zeros((n, 3), dtype=np.float32)
        case.X[:4] = case.rng.normal(size=(4, 3))
        n_values = n if kind == "numbers" else len(case.hashes)
        case.y = case.rng.permutation(n_values)[:n].astype(case.y.dtype)
        case.queries = case.X[:6]
        forest = empty_core(case)
        WAYS[way](forest, case)
        check_equal(forest, case)


def held_samples(forest):
    """Rows and codes of the samples that a core forest holds, by arrival."""
    state = forest.get_state()
    n_cells = forest.n_features + state["options.n_categorical"].item()
    rows = state["rows"].reshape(-1, n_cells)
    return rows[state["sample_of"]], state["values"][state["sample_of"]]


@pytest.mark.parametrize("world", WORLDS)
def test_leaves_and_left_out_predictions_equal_their_definition(world):
    """A left-out prediction is that of the trees that have not learned the sample."""
    for number in range(N_SETS):
        case = make_case(world, 500 + number, max_samples=0.5)
        if number % 3 == 2:
            case = with_levels(case, list(LEVELS)[number // 3 % len(LEVELS)])
        forest, expected = empty_core(case), reference_forest(case)
        learn_in_batches(forest, case)
        check_leaves(forest, case, expected)
        rows, codes = held_samples(forest)
        probabilities, n_trees = forest.left_out()
        probabilities = by_code((forest.known_labels, probabilities), case.hashes)
        known = sorted(expected.known)
        for x, code, p, n in list(zip(rows, codes, probabilities, n_trees))[:50]:
            sample = reference.as_point(case.plain(x)), int(case.hashes[code])
            without = copy.copy(expected)
            without.trees = [
                t for t, others in zip(expected.trees, expected.left_out) if sample in others
            ]
            assert n == len(without.trees)
            if n:
                assert p.tolist() == without.predict_proba(case.plain(x))
            else:
                assert np.isnan(p[known]).all()


@pytest.mark.parametrize("world", WORLDS)
def test_left_out_numbers_equal_their_definition(world):
    for number in range(N_SETS):
        case = make_case(world, 700 + number, "numbers", n_trees=6, calibrates=True)
        if number % 3 == 2:
            case = with_levels(case, list(LEVELS)[number // 3 % len(LEVELS)])
        forest, expected = empty_core(case), reference_forest(case)
        learn_and_forget(forest, case)
        check_leaves(forest, case, expected)
        moments, n_trees = forest.left_out()
        rows, values = held_samples(forest)
        assert forest.values.tolist() == values.tolist()
        for x, y, got, n in list(zip(rows, values.tolist(), moments, n_trees))[:50]:
            *wanted, n_wanted = expected.predict_left_out(case.plain(x), y)
            assert n == n_wanted
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
            assert got[0] == wanted[0] or n == 0


def check_leaves(forest, case, expected):
    for i, root in enumerate(expected.trees):
        leaves = [walk(describe_reference(root, case), case.plain(x)) for x in case.queries]
        assert forest.apply(case.queries)[:, i].tolist() == leaves


def walk(nodes, x, weights=None, stop=0):
    """Index of the node where a row ends; -1 in a tree without nodes."""
    index = 0 if nodes else -1
    while nodes and nodes[index][3] >= 0:
        _, left, right, feature, bits, missing_left, others, _ = nodes[index]
        goes_left = missing_left
        for d, of_threshold, is_reversed in [(feature, bits, 0), *others]:
            if not np.isnan(x[d]):
                is_level = isinstance(x[d], int)
                threshold = of_threshold if is_level else np.uint32(of_threshold).view(np.float32)
                goes_left = is_left(x[d], threshold) != is_reversed
                break
        child = left if goes_left else right
        if weights is not None and weights[child] < stop:
            break
        index = child
    return index
