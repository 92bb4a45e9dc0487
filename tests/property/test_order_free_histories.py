"""After any history, an order-free forest equals one that learned the held samples in one call.

The other forest learns them in another order and gives the labels other codes. The worlds are
degenerate: ties, duplicates, few values, neighbouring floats, sizes where the law changes.
"""

from __future__ import annotations

import math
import signal

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onlineforest._core import WEIGHT_OF_ONE, OrderFreeLabelForest, OrderFreeNumberForest
from support.bits import assert_same
from support.core import assert_same_answer, by_code
from support.examples import examples, thorough_but

ORDERED = (
    "parent",
    "left",
    "right",
    "feature",
    "threshold",
    "missing_left",
    "weight",
    "surrogates_end",
    "surrogate_feature",
    "surrogate_threshold",
    "surrogate_reversed",
)
OF_LINES = ("feature", "low", "high", "centre", "slope", "base", "least", "most")
OF_NUMBERS = ("mean", "variance", "rest", "line", *(f"line_{name}" for name in OF_LINES))
NAN_BITS = 0x7F800001  # the least of a NaN


def neighbours(value, n):
    """The next `n` floats from a value on."""
    return (np.float32(value).view(np.uint32) + np.arange(n, dtype=np.uint32)).view(np.float32)


# Values of the features, and how many features.
WORLDS = {
    "three values": ([0, 1, 2], 3),
    "binary": ([0, 1], 4),
    "one point": ([5], 2),
    "mostly one value": ([0] * 12 + [1, 2], 2),
    "nearly one point": ([0] * 90 + [1], 2),
    "neighbouring floats": (neighbours(1, 12), 2),
    "denormals": (np.concatenate([neighbours(0, 5), -neighbours(0, 5)]), 2),
    "extremes": ([3.4e38, -3.4e38, 1e-45, 0, -0.0, 1], 2),
    "line": (np.arange(300), 1),
    "plane": (np.arange(40), 2),
    "wide": ([0] * 50 + [1, 2], 70),
}
SIZES = [0, 1, 15, 16, 17, 60, 63, 64, 65, 66, 70, 130, 300]
N_TREES = 2

options = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**64 - 1),
        "min_samples_split": st.sampled_from([2, 2, 2, 5, 70]),
        "max_samples": st.sampled_from([1.0, 1.0, 0.6]),
        "calibrates": st.booleans(),
        "discount": st.sampled_from([0.2, 0.0, 1.0]),
        "key_bits": st.sampled_from([64, 64, 6, 3, 0]),
    }
)
keeping = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(lambda n: {"window": n}, st.sampled_from([1, 16, 64, 65, 90])),
    st.builds(
        lambda n, half_life: {"reservoir": n, "half_life": half_life},
        st.sampled_from([1, 16, 64, 65, 90]),
        st.sampled_from([math.inf, 20.0]),
    ),
)
seeds = st.integers(0, 2**32 - 1)


def trees_by_label(forest, hashes, numbers=range(N_TREES)):
    """Some trees of a forest with the hashes of labels instead of their codes."""
    trees = {}
    for i in numbers:
        tree = forest.tree(i)
        node = np.repeat(np.arange(len(tree["weight"])), np.diff(tree["counts_end"], prepend=0))
        label = hashes[tree["label"]]
        order = np.lexsort((label, node))
        trees |= {f"{name} of tree {i}": tree[name] for name in (*ORDERED, "counts_end")}
        trees |= {f"label of tree {i}": label[order], f"count of tree {i}": tree["count"][order]}
    return trees


class History(RuleBasedStateMachine):
    """Changes two forests alike. One is cut completely after every step, the other when it must.

    `held` has the row and the value of every sample that must be held, by its serial. A subclass
    says what values are.
    """

    core = None  # class of the forests
    dtype = None  # type of the values
    ways_to_predict = ((),)  # arguments of `predict` after the number of threads

    def __init__(self):
        super().__init__()
        self.forest = None

    @initialize(
        world=st.sampled_from(sorted(WORLDS)),
        options=options,
        keep=keeping,
        n_values=st.sampled_from([1, 2, 2, 3, 70, 300]),
        missing=st.sampled_from([0.0, 0.0, 0.02, 0.3, 0.9]),
        size=st.sampled_from(SIZES),
        seed=seeds,
    )
    def start(self, world, options, keep, n_values, missing, size, seed):
        values, self.n_features = WORLDS[world]
        self.values = np.asarray(values, dtype=np.float32)
        self.options, self.keep, self.missing = options, keep, missing
        self.forest, self.lazy = (
            self.core(N_TREES, self.n_features, **options, **keep) for _ in range(2)
        )
        self.held, self.n_seen = {}, 0
        self.start_values(n_values, seed)
        self.learn(*self.draw(np.random.default_rng(seed), size), 1)

    def both(self):
        return self.forest, self.lazy

    def draw(self, rng, n):
        """Rows, of which some lack cells, and values in use."""
        X = rng.choice(self.values, (n, self.n_features))
        are_gone = rng.random(X.shape) < self.missing
        # Any NaN, of either sign.
        nans = rng.integers(NAN_BITS, 2**31, X.shape) | rng.integers(0, 2, X.shape) << 31
        X.view(np.uint32)[are_gone] = nans[are_gone]
        return X, self.draw_values(rng, n)

    def learn(self, X, y, n_threads):
        for forest in self.both():
            forest.learn(X, y, n_threads)
        self.note(X, y)

    def note(self, X, y):
        """Samples were learned."""
        for row, value in zip(X, y.tolist()):
            self.held[self.n_seen] = (row, value)
            self.n_seen += 1
        if "window" in self.keep:
            self.held = {s: self.held[s] for s in sorted(self.held)[-self.keep["window"] :]}
        elif "reservoir" in self.keep:  # its choice is random
            self.held = {s: self.held[s] for s in self.forest.serials.tolist()}

    def samples(self, serials):
        """Rows and values of held samples."""
        rows = [self.held[s][0] for s in serials]
        X = np.array(rows, dtype=np.float32).reshape(len(rows), self.n_features)
        return X, np.array([self.held[s][1] for s in serials], dtype=self.dtype)

    def some_held(self, seed, most):
        """Some serials, in any order."""
        serials = np.random.default_rng(seed).permutation(sorted(self.held))
        return serials[: min(most, len(serials))]

    @rule(missing=st.sampled_from([0.0, 0.1, 1.0]))
    def lack_cells(self, missing):
        """None, some or all, for a while."""
        self.missing = missing

    @rule(n=st.sampled_from([0, 1, 2, 3, 6, 40]), seed=seeds, n_threads=st.sampled_from([1, 2]))
    def learn_batch(self, n, seed, n_threads):
        self.learn(*self.draw(np.random.default_rng(seed), n), n_threads)

    @rule(n=st.sampled_from([1, 1, 2, 5]), seed=seeds)
    def learn_one_by_one(self, n, seed):
        X, y = self.draw(np.random.default_rng(seed), n)
        for i in range(n):
            for forest in self.both():
                forest.learn_one(X[i], y[i].item())
            self.note(X[i : i + 1], y[i : i + 1])

    @precondition(lambda self: self.held)
    @rule(n=st.sampled_from([1, 3, 70]), seed=seeds, other_value=st.booleans())
    def learn_held_rows_again(self, n, seed, other_value):
        X, y = self.samples(self.some_held(seed, n))
        if other_value:
            y = self.draw_values(np.random.default_rng(seed), len(y))
        self.learn(X, y, 1)

    @precondition(lambda self: self.held)
    @rule(n=st.sampled_from([1, 1, 2, 5, 40, 300]), seed=seeds)
    def forget_by_serial(self, n, seed):
        serials = self.some_held(seed, n)
        for forest in self.both():
            forest.forget(serials)
        for serial in serials.tolist():
            del self.held[serial]

    @precondition(lambda self: self.held)
    @rule(n=st.sampled_from([1, 1, 2, 5, 40]), seed=seeds)
    def forget_by_row(self, n, seed):
        """The oldest of equal samples leaves first."""
        X, y = self.samples(self.some_held(seed, n))
        for forest in self.both():
            assert len(forest.forget_rows(X, y)) == 0
        serials = self.forest.serials.tolist()
        before = self.samples(sorted(self.held))
        self.held = {s: self.held[s] for s in serials}
        after = self.samples(serials)
        together = [np.vstack([after[0], X]), np.concatenate([after[1], y])]
        assert contents(*together) == contents(*before)

    @rule(seed=seeds)
    def forgetting_what_is_not_held_changes_nothing(self, seed):
        """Among rows of which one was never learned."""
        X, y = self.samples(self.some_held(seed, 3))
        X = np.vstack([X, np.full((1, self.n_features), 77.5, dtype=np.float32)])
        y = np.append(y, self.dtype(0))
        for forest in self.both():
            assert forest.forget_rows(X, y).tolist() == [len(X) - 1]

    @rule(n=st.sampled_from([0, 1, 16, 63, 64, 65, 1000]))
    def keep_latest(self, n):
        for forest in self.both():
            forest.keep_latest(n)
        self.held = {s: self.held[s] for s in sorted(self.held)[max(len(self.held) - n, 0) :]}

    @rule(n=st.sampled_from([1, 2, 5]), seed=seeds, n_threads=st.sampled_from([1, 2]))
    def predict(self, n, seed, n_threads):
        """Cuts some blocks of the lazy forest."""
        X, _ = self.draw(np.random.default_rng(seed), n)
        expected = self.forest.predict(X)
        assert_same_answer(self.lazy.predict(X, n_threads), expected)
        self.check_predictions(expected)

    @rule()
    def grow_all(self):
        self.lazy.grow_all()

    @rule(lazy_too=st.booleans())
    def save_and_load(self, lazy_too):
        self.forest = self.core.from_state(self.forest.get_state())
        if lazy_too:
            self.lazy = self.core.from_state(self.lazy.get_state())

    def check(self, forest):
        """Check that a forest equals a fresh one."""
        fresh = self.core(N_TREES, self.n_features, **self.options)
        serials = np.random.default_rng(len(self.held)).permutation(sorted(self.held))
        self.teach(fresh, *self.samples(serials))
        queries, _ = self.draw(np.random.default_rng(0), 5)
        (left_out, n_trees) = fresh.left_out()
        for how in self.ways_to_predict:
            expected = fresh.predict(queries, 1, *how)
            assert_same_answer(forest.predict(queries, 1, *how), self.as_ours(expected))
        self.check_trees(forest, fresh)
        ours, theirs = np.argsort(forest.serials), np.argsort(serials)
        got, got_trees = forest.left_out()
        assert np.array_equal(got_trees[ours], n_trees[theirs])
        assert_same_answer(*self.left_out_answers(forest, got[ours], fresh, left_out[theirs]))
        may_be_left_out = self.options["calibrates"] or self.options["max_samples"] < 1
        assert may_be_left_out or not n_trees.any()

    @invariant()
    def equals_a_fresh_forest(self):
        if self.forest is None:
            return
        for forest in self.both():
            assert forest.n_seen == self.n_seen
            assert sorted(forest.serials.tolist()) == sorted(self.held)
            assert forest.n_samples == len(self.held)
            assert forest.values.tolist() == self.samples(forest.serials.tolist())[1].tolist()
            self.check_values(forest)
        self.check(self.forest)

    def teardown(self):
        if self.forest is not None:
            self.check(self.lazy)


class LabelHistory(History):
    """Values are codes of labels; the fresh forest gives them other codes."""

    core, dtype = OrderFreeLabelForest, np.int32
    ways_to_predict = ((), (1.0, 0.0, 10 * WEIGHT_OF_ONE), (1.0, 0.0, 70 * WEIGHT_OF_ONE), ())

    def start_values(self, n_values, seed):
        self.hashes, self.declared = np.empty(0, np.uint64), np.empty(0, np.uint8)
        self.add_labels(n_values, False, seed)

    def draw_values(self, rng, n):
        return rng.choice(self.labels_in_use, n).astype(np.int32)

    @rule(more=st.sampled_from([1, 2, 70]), declare=st.booleans(), seed=seeds)
    def add_labels(self, more, declare, seed):
        rng = np.random.default_rng([seed, len(self.hashes)])
        new = rng.integers(0, 2**64, more, dtype=np.uint64)
        self.hashes = np.concatenate([self.hashes, new])
        self.declared = np.concatenate([self.declared, np.full(more, declare, dtype=np.uint8)])
        for forest in self.both():
            forest.set_labels(self.hashes, self.declared)
        self.labels_in_use = np.arange(len(self.hashes))

    @rule(
        n=st.sampled_from([1, 2, 5]), seed=seeds, stop=st.sampled_from([0, 1, 2, 10, 40, 70, 200])
    )
    def predict_with_a_stop_weight(self, n, seed, stop):
        """Each forest splits other blocks, and drops other ones."""
        X, _ = self.draw(np.random.default_rng(seed), n)
        stop *= WEIGHT_OF_ONE
        assert np.array_equal(self.lazy.masses(X, 1, stop), self.forest.masses(X, 2, stop))

    @rule(stop=st.sampled_from([0, 2, 10, 70]))
    def grow_above_a_stop_weight(self, stop):
        self.lazy.grow_all(1, stop * WEIGHT_OF_ONE)

    @rule(least=st.sampled_from([0, 5, 64]), limit=st.sampled_from([1, 64, 2**30]))
    def vote(self, least, limit):
        """Changes neither the stop weight of the trees nor what they say."""
        stops = least * WEIGHT_OF_ONE, limit * WEIGHT_OF_ONE
        votes = self.lazy.votes(2, *stops)
        for own, theirs in zip(votes, self.forest.votes(1, *stops), strict=True):
            assert np.array_equal(own, theirs)

    @rule(index=st.sampled_from(range(N_TREES)))
    def take_a_tree(self, index):
        """Grows it as a whole, for a moment."""
        self.lazy.tree(index)

    @rule(n=st.sampled_from([1, 1, 2]), seed=seeds)
    def use_few_labels(self, n, seed):
        """One class, or two, for a while."""
        self.labels_in_use = np.random.default_rng(seed).choice(len(self.hashes), n)

    def check_predictions(self, answer):
        labels, probabilities = answer
        assert np.array_equal(labels, self.known_labels())
        assert np.allclose(probabilities.sum(axis=1), len(labels) > 0, rtol=1e-12)

    def known_labels(self):
        """Hashes of the labels that are declared or held, in the order of codes."""
        are_known = self.declared.astype(bool)
        are_known[[label for _, label in self.held.values()]] = True
        return self.hashes[are_known]

    def check_values(self, forest):
        labels = [label for _, label in self.held.values()]
        weights = np.bincount(np.array(labels, dtype=int), minlength=len(self.hashes))
        assert np.array_equal(forest.label_weights, weights)
        assert np.array_equal(forest.known_labels, self.known_labels())

    def teach(self, fresh, X, y):
        # The new code of each old one.
        self.code_of = np.random.default_rng(len(self.held)).permutation(len(self.hashes))
        self.new_hashes, declared = np.empty_like(self.hashes), np.empty_like(self.declared)
        self.new_hashes[self.code_of], declared[self.code_of] = self.hashes, self.declared
        fresh.set_labels(self.new_hashes, declared)
        fresh.learn(X, self.code_of[y].astype(np.int32))

    def as_ours(self, answer):
        """An answer of the fresh forest, with its labels in the order of the codes of ours."""
        known = self.known_labels()
        are_known = np.isin(self.hashes, known)
        return known, by_code(answer, self.new_hashes)[:, self.code_of][:, are_known]

    def left_out_answers(self, forest, ours, fresh, theirs):
        """Left-out predictions of both forests, as answers that are equal if these are."""
        return (forest.known_labels, ours), self.as_ours((fresh.known_labels, theirs))

    def check_trees(self, forest, fresh):
        assert_same(trees_by_label(forest, self.hashes), trees_by_label(fresh, self.new_hashes))


NUMBERS = {
    "whole": lambda rng, n: np.arange(n) - 1.0,
    "close": lambda rng, n: 1e9 + np.arange(n) * 2.0**-20,
    "any": lambda rng, n: rng.normal(size=n),
    "denormal": lambda rng, n: np.arange(n) * 5e-324,
    "extreme": lambda rng, n: np.resize([1e150, -1e150, 5e-324, -5e-324, 1.0, 0.0, -0.0], n),
}


class NumberHistory(History):
    """Values are numbers."""

    core, dtype = OrderFreeNumberForest, np.float64

    def start_values(self, n_values, seed):
        rng = np.random.default_rng(seed)
        self.use_numbers(rng.choice(sorted(NUMBERS)), n_values, seed)

    @rule(kind=st.sampled_from(sorted(NUMBERS)), n=st.sampled_from([1, 2, 7, 90]), seed=seeds)
    def use_numbers(self, kind, n, seed):
        """These, for a while."""
        self.numbers_in_use = NUMBERS[kind](np.random.default_rng(seed), n)

    def draw_values(self, rng, n):
        return rng.choice(self.numbers_in_use, n)

    def check_predictions(self, predictions):
        assert np.isfinite(predictions).all() and (predictions[:, 1:] >= 0).all()
        numbers = np.array([0.0, *(number for _, number in self.held.values())])  # 0 of empty trees
        margin = 1e-12 * np.abs(numbers).max()
        assert (predictions[:, 0] >= numbers.min() - margin).all()
        assert (predictions[:, 0] <= numbers.max() + margin).all()

    def check_values(self, forest):
        pass

    def teach(self, fresh, X, y):
        fresh.learn(X, y)

    def as_ours(self, predictions):
        return predictions

    def left_out_answers(self, _forest, ours, _fresh, theirs):
        return ours, theirs

    def check_trees(self, forest, fresh):
        for i in range(N_TREES):
            assert forest.tree(i).keys() == {*ORDERED, *OF_NUMBERS}
            assert_same(forest.tree(i), fresh.tree(i))


def contents(X, y):
    """Samples in an order of their own."""
    return sorted(zip((np.nan_to_num(X, nan=np.inf) + 0.0).tolist(), y.tolist()))


LabelHistory.TestCase.pytestmark = [pytest.mark.slow]
LabelHistory.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=20)
test_any_history_of_labels_equals_one_call = LabelHistory.TestCase

NumberHistory.TestCase.pytestmark = [pytest.mark.slow]
NumberHistory.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=20)
test_any_history_of_numbers_equals_one_call = NumberHistory.TestCase


# Calls that take long enough to be interrupted, and whether the forest is cut before. It holds 4000
# samples and is given 10,000 others.
CALLS = {
    "learn many": (lambda forest, X, y: forest.learn(X, y), False),
    "learn some": (lambda forest, X, y: forest.learn(X[:380], y[:380]), True),
    "forget some": (lambda forest, X, y: forest.forget(forest.serials[:380]), True),
    "forget many": (lambda forest, X, y: forest.keep_latest(forest.n_samples - 500), True),
    "predict": (lambda forest, X, y: forest.predict(X), False),
    "grow_all": (lambda forest, X, y: forest.grow_all(), False),
}


@pytest.fixture
def alarm():
    """A function that makes Ctrl-C of a timer."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def call_forever(call, *arguments):
    while True:
        call(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but("learn some", "predict", of=CALLS))
def test_an_interrupted_call_leaves_the_forest_of_the_held_samples(name, alarm):
    """Predictions follow at once, and the next call goes on from where this one was stopped."""
    call, is_cut = CALLS[name]
    rng = np.random.default_rng(1)
    X = rng.integers(0, 60, (14_000, 3)).astype(np.float32)
    y = ((X.sum(axis=1) + rng.integers(0, 9, len(X))) // 9 % 3).astype(np.int32)
    hashes, declared = np.arange(3, dtype=np.uint64), np.zeros(3, dtype=np.uint8)
    forest, fresh = (OrderFreeLabelForest(400, 3, seed=5) for _ in range(2))
    for each in (forest, fresh):
        each.set_labels(hashes, declared)
    forest.learn(X[:4000], y[:4000])
    if is_cut:
        forest.grow_all()
    alarm(0.01)  # the core polls after 50 ms; a call that is faster is interrupted when it returns
    with pytest.raises(KeyboardInterrupt):
        call_forever(call, forest, X[4000:], y[4000:])
    state = forest.get_state()
    rows = state["rows"].reshape(-1, forest.n_features)
    fresh.learn(rows[state["sample_of"]], state["values"][state["sample_of"]])
    assert_same_answer(forest.predict(X[:9]), fresh.predict(X[:9]))
    for each in (forest, fresh):
        each.learn(X[:50] + 0.5, y[:50])
    some = range(0, 400, 20)
    assert_same(trees_by_label(forest, hashes, some), trees_by_label(fresh, hashes, some))
