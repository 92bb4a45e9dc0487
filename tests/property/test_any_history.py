"""Any history of learning, predicting and saving keeps every invariant, on any finite data."""

from __future__ import annotations

import math
import pickle

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onlineforest import MondrianForestClassifier, MondrianForestRegressor
from support.core import core_forest, gaussian_forest, learn

N_FEATURES = 3

# Values that have hurt others: repeated, neighbouring, tiny, huge, denormal, signed zeros.
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
EXTREME = [3.4e38, -3.4e38, 1e-45, 1.0000001, 16777216.0, 16777218.0]
values = st.one_of(
    st.sampled_from(TRICKY + EXTREME),
    st.integers(-3, 3).map(float),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)


def rows(min_size=1, max_size=12):
    return st.integers(min_size, max_size).flatmap(
        lambda n: npst.arrays(np.float32, (n, N_FEATURES), elements=values)
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


class ForestHistory(RuleBasedStateMachine):
    """Learn, predict, save and load a core forest in any order."""

    @initialize(options=parameters, n_classes=st.sampled_from([1, 2, 63, 64]))
    def start(self, options, n_classes):
        self.forest = core_forest(3, N_FEATURES, **options)
        self.n_classes = n_classes
        self.n_points = 0

    @rule(X=rows(), data=st.data())
    def learn_some(self, X, data):
        y = data.draw(
            st.lists(st.integers(0, self.n_classes - 1), min_size=len(X), max_size=len(X)),
            label="y",
        )
        learn(self.forest, X, y, self.n_classes)
        self.n_points += len(X)

    @precondition(lambda self: self.n_points > 0)
    @rule(more=st.sampled_from([1, 2, 70]))
    def hear_of_more_classes(self, more):
        self.n_classes += more

    @precondition(lambda self: self.n_points > 0)
    @rule(X=rows())
    def predict_some(self, X):
        probabilities = self.forest.predict(X, 2)
        assert np.isfinite(probabilities).all()
        assert (probabilities >= 0).all()
        assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-9)

    @rule()
    def save_and_load(self):
        self.forest = type(self.forest).from_state(self.forest.get_state())

    @invariant()
    def all_is_well(self):
        if hasattr(self, "forest"):
            self.forest.check_invariants()
            assert self.forest.n_points == self.n_points


ForestHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
test_any_history = ForestHistory.TestCase


numbers = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0, -5e-324, 1e150, -1e150, 1e9, 1e9 + 1]),
    st.integers(-2, 2).map(float),
    st.floats(-1e150, 1e150),
)


class NumbersHistory(RuleBasedStateMachine):
    """The same for a forest over numbers."""

    @initialize(
        options=parameters,
        noise=st.sampled_from([None, 1e-6, 0.1, 1.0]),
        trend=st.booleans(),
        calibrate=st.booleans(),
    )
    def start(self, options, noise, trend, calibrate):
        options = {**options, "noise": noise, "trend": trend, "calibrate": calibrate}
        options["discount"] = options["discount"] or None  # 0 would tie all means to the trend
        self.forest = gaussian_forest(3, N_FEATURES, **options)
        self.values = []

    @rule(X=rows(max_size=30), data=st.data(), one_by_one=st.booleans())
    def learn_some(self, X, data, one_by_one):
        y = data.draw(st.lists(numbers, min_size=len(X), max_size=len(X)), label="y")
        self.forest.learn(X, np.array(y), 2, one_by_one=one_by_one)
        self.values += y

    @precondition(lambda self: self.values)
    @rule(X=rows(), y=numbers)
    def predict_some(self, X, y):
        moments = self.forest.predict(X, 2)
        assert np.isfinite(moments).all()
        assert (moments[:, 1] >= 0).all()
        quantiles = self.forest.quantiles(X, np.array([0.01, 0.5, 0.99]))
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()
        assert not np.isnan(self.forest.log_density(X, np.full(len(X), y))).any()

    @precondition(lambda self: self.values)
    @rule(n=st.integers(1, 10))
    def leave_some_out(self, n):
        slots = np.arange(min(n, len(self.values)), dtype=np.int32)
        assert np.isfinite(self.forest.predict_left_out(slots)).all()

    @rule()
    def save_and_load(self):
        self.forest = type(self.forest).from_state(self.forest.get_state())

    @invariant()
    def all_is_well(self):
        if hasattr(self, "forest"):
            self.forest.check_invariants()
            assert self.forest.n_points == len(self.values)


NumbersHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=10, deadline=None)
test_any_history_of_numbers = NumbersHistory.TestCase


@settings(max_examples=150, deadline=None)
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
            # A training point lies in the box of its leaf: queries are rounded as rows are.
            assert (tree["lower"][leaves[:, t]] <= X).all()
            assert (tree["upper"][leaves[:, t]] >= X).all()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


@settings(max_examples=40, deadline=None)
@given(X=rows(min_size=3, max_size=15), seed=st.integers(0, 2**31 - 1))
def test_estimator_survives_anything_finite(X, seed):
    y = np.where(np.arange(len(X)) % 2, "even", "odd")
    forest = MondrianForestClassifier(n_estimators=3, random_state=seed).partial_fit(X[:1], y[:1])
    forest.partial_fit(X[1:], y[1:])
    forest = pickle.loads(pickle.dumps(forest))
    assert forest.predict_proba(X).shape == (len(X), len(forest.classes_))
    assert set(forest.predict(X)) <= {"even", "odd"}


@settings(max_examples=40, deadline=None)
@given(X=rows(min_size=3, max_size=60), seed=st.integers(0, 2**31 - 1))
def test_regressor_survives_anything_finite(X, seed):
    y = X[:, 0].astype(float) + np.arange(len(X)) % 3
    forest = MondrianForestRegressor(n_estimators=3, random_state=seed).partial_fit(X[:1], y[:1])
    forest.partial_fit(X[1:], y[1:])
    forest = pickle.loads(pickle.dumps(forest))
    assert np.isfinite(forest.predict(X, return_std=True)).all()
    assert np.isfinite(forest.predict_interval(X)).all()
