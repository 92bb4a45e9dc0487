"""Any history of learning, forgetting, predicting and saving keeps every invariant, on any finite
data, some of it repeated."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onlineforest import MondrianForestClassifier
from support.bits import assert_same
from support.core import core_forest, forget, learn
from support.examples import examples

N_FEATURES = 3


# Values that often reveal defects: repeated, neighbouring, tiny, huge, denormal, signed zeros.
TRICKY = [
    0.0,
    -0.0,
    1.0,
    float(np.nextafter(np.float32(1), np.float32(2))),
    -1.0,
    1e-30,
    -1e-30,
    1e30,
    -1e30,
]
LARGEST = float(np.finfo(np.float32).max)
EXTREME = [3.4e38, -3.4e38, 1e-45, 1.0000001, 16777216.0, 16777218.0]
values = st.one_of(
    st.sampled_from(TRICKY + EXTREME).map(lambda value: float(np.float32(value))),
    st.integers(-3, 3).map(float),
    st.floats(-LARGEST, LARGEST, width=32),
)


def rows(min_size=1, max_size=12, elements=values):
    return st.integers(min_size, max_size).flatmap(
        lambda n: npst.arrays(np.float32, (n, N_FEATURES), elements=elements)
    )


parameters = st.fixed_dictionaries(
    {
        "lifetime": st.sampled_from([math.inf, 1.0, 0.0, 1e-30, 1e30]),
        "discount": st.sampled_from([10.0, 0.0, 1e-6, 1e6]),
        "min_samples_split": st.integers(2, 5),
        "weights": st.sampled_from(
            [
                None,
                "range",
                [1.0, 0.0, 2.0],
                [1e-30, 1e30, 1.0],
                [1e200, 1.0, 1e-200],
                [1e200, 1e-110, 0.0],
            ]
        ),
        "seed": st.integers(0, 2**64 - 1),
    }
)


# Which points a forest keeps.
keeping = st.one_of(
    st.just({}),
    st.builds(lambda n: {"window": n}, st.integers(1, 25)),
    st.builds(
        lambda n, half_life: {"reservoir": n, "half_life": half_life},
        st.integers(1, 25),
        st.sampled_from([math.inf, 5.0, 1.0]),
    ),
)


class ForestHistory(RuleBasedStateMachine):
    """Learns, forgets, saves and loads a core forest in any order, and tracks what it must hold.

    `stored` has the row and the label of every sample that must be there, by its serial.
    """

    @initialize(
        options=parameters,
        keep=keeping,
        n_classes=st.sampled_from([1, 2, 63, 64]),
        n_calls=st.integers(0, 3),
        data=st.data(),
    )
    def start(self, options, keep, n_classes, n_calls, data):
        """Start with `n_calls` calls to learn: some histories have no others."""
        self.n_classes = n_classes
        self.forest = core_forest(3, N_FEATURES, **options, **keep)
        self.keep = keep
        self.stored = {}
        self.n_seen = self.n_seen_before = 0
        self.has_forgotten = False
        for _ in range(n_calls):
            self.learn_more(data)

    @rule(data=st.data())
    def learn_more(self, data):
        X = data.draw(rows(), label="X")
        y = data.draw(
            st.lists(st.integers(0, self.n_classes - 1), min_size=len(X), max_size=len(X)),
            label="y",
        )
        learn(self.forest, X, y, self.n_classes)
        self.note(X, y)

    @precondition(lambda self: self.n_seen > 0)
    @rule(more=st.sampled_from([1, 2, 70]))
    def add_classes(self, more):
        self.n_classes += more

    @precondition(lambda self: self.stored)
    @rule(X=rows())
    def predict_some(self, X):
        probabilities = self.forest.predict(X, 2)
        assert np.isfinite(probabilities).all()
        assert (probabilities >= 0).all()
        assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-9)

    def note(self, X, y):
        """Samples were learned."""
        came = {self.n_seen + i: (row, value) for i, (row, value) in enumerate(zip(X, y))}
        self.n_seen += len(came)
        known = {**self.stored, **came}
        numbers = sorted(known)
        if "window" in self.keep:
            numbers = numbers[-self.keep["window"] :]
        elif "reservoir" in self.keep:  # its choice is random
            numbers = self.forest.serials.tolist()
            assert known.keys() >= set(numbers)
            most = min(self.n_seen - self.n_seen_before, self.keep["reservoir"])
            assert len(numbers) <= most if self.has_forgotten else len(numbers) == most
        self.stored = {number: known[number] for number in numbers}

    def drop(self, numbers):
        """Points were forgotten."""
        for number in numbers:
            del self.stored[number]
        self.has_forgotten |= len(numbers) > 0
        if not self.stored:  # an empty forest starts again
            self.has_forgotten, self.n_seen_before = False, self.n_seen

    def some_stored(self, data, **sizes):
        return data.draw(
            st.lists(st.sampled_from(sorted(self.stored)), unique=True, **sizes), label="points"
        )

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), how=st.sampled_from(["one by one", "at once", "by their rows"]))
    def forget_some(self, data, how):
        numbers = self.some_stored(data, min_size=how != "at once")
        if how == "one by one":
            for number in numbers:
                forget(self.forest, [number])
        elif how == "at once":
            forget(self.forest, numbers, 2)
        else:
            missing, numbers = self.forget_rows([self.stored[i] for i in numbers])
            assert not missing
        self.drop(numbers)

    def forget_rows(self, points):
        """Forget rows and values; check the answer against `look_up`, and return that."""
        missing, numbers = self.look_up(points)
        assert self.forest.forget_rows(*self.arrays(points), 2).tolist() == missing
        return missing, numbers

    def look_up(self, points):
        """Positions of points that are not stored, and serials of the others, oldest first."""
        left, missing, numbers = dict(sorted(self.stored.items())), [], []
        for place, (row, value) in enumerate(points):
            for number, (stored_row, stored_value) in left.items():
                if stored_value == value and np.array_equal(stored_row, row):
                    del left[number]
                    numbers.append(number)
                    break
            else:
                missing.append(place)
        return missing, numbers

    def arrays(self, points):
        """Rows and values as arrays of the types that the core takes."""
        X = np.array([row for row, _ in points], dtype=np.float32).reshape(-1, N_FEATURES)
        return X, np.array([value for _, value in points], dtype=np.int32)

    @rule(data=st.data(), X=rows(max_size=3), value=st.integers(0, 3))
    def ask_for_rows_that_are_not_stored(self, data, X, value):
        points = [(row, value) for row in X]
        if self.stored:
            points += [self.stored[i] for i in self.some_stored(data, max_size=3) * 2]
        before = self.forest.get_state()
        missing, numbers = self.forget_rows(data.draw(st.permutations(points), label="order"))
        if missing:
            assert_same(self.forest.get_state(), before)
        else:
            self.drop(numbers)

    @rule(data=st.data())
    def ask_for_numbers_that_are_not_stored(self, data):
        numbers = self.some_stored(data, max_size=3) if self.stored else []
        gone = sorted({-1, *range(self.n_seen + 1), self.n_seen + 10} - self.stored.keys())
        numbers += [data.draw(st.sampled_from(numbers + gone), label="wrong")]
        before = self.forest.get_state()
        with pytest.raises(ValueError, match=r"is not stored|more than once"):
            forget(self.forest, data.draw(st.permutations(numbers), label="order"), 2)
        assert_same(self.forest.get_state(), before)

    @rule(n=st.integers(3, 40))
    def keep_the_latest(self, n):
        self.forest.keep_latest(n, 2)
        self.drop(sorted(self.stored)[: max(len(self.stored) - n, 0)])

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), how=st.sampled_from(["numbers", "rows", "latest"]))
    def forget_all_and_learn_again(self, data, how):
        if how == "numbers":
            forget(self.forest, data.draw(st.permutations(sorted(self.stored)), label="order"))
        elif how == "rows":
            self.forget_rows(list(self.stored.values()))
        else:
            self.forest.keep_latest(0)
        self.drop(list(self.stored))
        self.check_everything()
        self.learn_more(data)

    @rule()
    def save_and_load(self):
        self.forest = type(self.forest).from_state(self.forest.get_state())

    @invariant()
    def check_everything(self):
        if not hasattr(self, "forest"):
            return
        self.forest.check_invariants()
        assert self.forest.n_samples == len(self.stored)
        assert self.forest.n_seen == self.n_seen
        is_stored = self.forest.are_stored(np.arange(self.n_seen + 1))
        assert np.flatnonzero(is_stored).tolist() == sorted(self.stored)
        state = self.forest.get_state()
        serials = state["serials"].tolist()
        assert sorted(serials) == sorted(self.stored)
        X, y = self.arrays([self.stored[i] for i in serials])
        rows = state["rows"].reshape(-1, N_FEATURES)
        assert np.isfinite(rows).all()
        # Equal samples are one point.
        points = state.get("sample_of", np.arange(len(X)))
        assert len(np.unique(points)) == len(rows) == len(distinct(X, y))
        assert np.array_equal(X, rows[points])
        assert np.array_equal(state["values"][points], y)
        counts = np.bincount(points, minlength=len(rows))
        for t in range(self.forest.n_trees):
            recount(self.forest.tree(t), rows, state["values"], counts)


def distinct(X, y):
    """The distinct samples; -0 is 0."""
    return {(*row.tolist(), value) for row, value in zip(X, y)}


def recount(tree, X, y, n_copies):
    """Check counts and boxes of all nodes against the points that the cuts lead to them."""
    waiting = [(0, np.arange(len(X)))] if len(X) else []
    n_nodes = 0
    while waiting:
        j, here = waiting.pop()
        n_nodes += 1
        assert tree["n_points"][j] == len(here)
        assert np.array_equal(tree["lower"][j], X[here].min(axis=0))
        assert np.array_equal(tree["upper"][j], X[here].max(axis=0))
        if tree["split_dimension"][j] == -1:
            counts = np.bincount(y[here], n_copies[here], tree["count"].shape[1])
            assert np.array_equal(tree["count"][j], counts)
        else:
            is_left = X[here, tree["split_dimension"][j]] <= tree["split_location"][j]
            waiting += [(tree["left"][j], here[is_left]), (tree["right"][j], here[~is_left])]
    assert n_nodes == len(tree["left"])


ForestHistory.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=20)
test_any_history = ForestHistory.TestCase


@settings(max_examples=examples(150))
@given(X=rows(max_size=25), data=st.data(), options=parameters)
def test_batch_and_one_by_one_hold_the_same_points(X, data, options):
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    batch = learn(core_forest(3, N_FEATURES, **options), X, y, 3)
    online = core_forest(3, N_FEATURES, **options)
    for i in range(len(y)):
        learn(online, X[i : i + 1], y[i : i + 1], 3)
        online.check_invariants()
    batch.check_invariants()
    for forest in (batch, online):
        leaves = forest.apply(X)
        for t in range(forest.n_trees):
            tree = forest.tree(t)
            assert tree["count"][tree["split_dimension"] == -1].sum() == len(y)
            # A stored point lies in the box of its leaf: queries are rounded like stored rows.
            assert (tree["lower"][leaves[:, t]] <= X).all()
            assert (tree["upper"][leaves[:, t]] >= X).all()


@settings(max_examples=examples(60))
@given(X=rows(min_size=2, max_size=20), scale=st.sampled_from([1e-30, 1e-3, 1.0, 1e3, 1e30]))
def test_range_weights_make_scales_irrelevant(X, scale):
    """Powers of two scale float32 exactly, and weights by the range undo them exactly."""
    X = np.round(np.clip(X, -100, 100))
    y = np.arange(len(X)) % 3
    factor = np.float32(2.0 ** round(math.log2(scale)))
    plain = MondrianForestClassifier(n_estimators=3, random_state=1).fit(X, y)
    scaled = MondrianForestClassifier(n_estimators=3, random_state=1).fit(X * factor, y)
    for first, second in zip(plain.trees_, scaled.trees_):
        assert np.array_equal(first.split_dimension, second.split_dimension)
        assert np.array_equal(first.count, second.count)
        assert np.allclose(first.split_time, second.split_time, rtol=1e-12)
    queries = X + np.float32(0.5)
    assert np.allclose(
        plain.predict_proba(queries), scaled.predict_proba(queries * factor), atol=1e-9
    )


@settings(max_examples=examples(40))
@given(X=rows(min_size=3, max_size=15), seed=st.integers(0, 2**31 - 1))
def test_the_classifier_takes_any_finite_rows(X, seed):
    y = np.where(np.arange(len(X)) % 2, "even", "odd")
    forest = MondrianForestClassifier(n_estimators=3, random_state=seed).partial_fit(X[:1], y[:1])
    forest.partial_fit(X[1:], y[1:])
    forest = pickle.loads(pickle.dumps(forest))
    assert forest.predict_proba(X).shape == (len(X), len(forest.classes_))
    assert set(forest.predict(X)) <= {"even", "odd"}
