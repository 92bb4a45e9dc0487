"""Shards hold some of a forest's trees each: together they equal the forest to the last bit."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest

from onlineforest import _core
from onlineforest._core import Quantity
from support.bits import assert_same
from support.core import core_forest, gaussian_forest

N_CLASSES = 4
LEVELS = np.array([0.05, 0.5, 0.9])
# Each quantity that is a sum over trees, and how the whole forest computes it.
QUANTITIES = {
    Quantity.PREDICTION: lambda forest, X: forest.predict(X),
    Quantity.NOVELTY: lambda forest, X: forest.novelty(X),
}

# Number of trees of each shard.
SIZES = [
    (1,),
    (3,),
    (1, 2),
    (1, 1, 1),
    (10,),
    (5, 5),
    (1, 1, 8),
    (2, 2, 2, 2, 2),
    (19, 18),
    (35, 1, 1),
    (12, 12, 13),
    (50, 50),
    (1, 1, 98),
    (1, 33, 1, 64, 1),
    (20, 20, 20, 20, 20),
]
each_kind = pytest.mark.parametrize("kind", ["label", "gaussian"])


def data(kind, n, seed, missing=0.1):
    """Rows with missing values, and their targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-1.0, 0.0, 1.0]).astype(np.int32)
    number = y + X[:, 1] * X[:, 2].astype(np.float64)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y if kind == "label" else number


def learned(kind):
    """Options with which a forest learns all it can about the data as a whole."""
    if kind == "label":
        return {"weights": "learned", "leaf_discount": None}
    return {"weights": "learned", "discount": None, "noise": None}


class Shards:
    """A forest, and the same forest in shards."""

    def __init__(self, kind, sizes, **options):
        build = core_forest if kind == "label" else gaussian_forest
        options = {"weights": "range", "seed": 5, **options}
        if kind == "gaussian":
            options = {"trend": True, "calibrate": True, **options}
        self.kind = kind
        self.n_trees = sum(sizes)
        self.held = list(pairwise([0, *accumulate(sizes)]))
        self.whole = build(self.n_trees, 4, **options)
        self.each = [build(self.n_trees, 4, held=held, **options) for held in self.held]
        self.n_calibrated = 0

    def change(self, name, *arguments, **options):
        """Call a method that learns or forgets; all return the same."""
        result = getattr(self.whole, name)(*arguments, **options)
        for shard in self.each:
            of_part = getattr(shard, name)(*arguments, **options)
            assert np.array_equal(result, of_part) if result is not None else of_part is None
        self.calibrate()
        return result

    def learn(self, X, y, **options):
        self.change("learn", X, y, *([N_CLASSES] if self.kind == "label" else []), **options)

    def calibrate(self):
        if self.kind == "label":
            return
        left_out = [shard.take_left_out() for shard in self.each]
        if left_out[0] is None:
            assert not any(left_out)
            return
        agreed = {name: left_out[0][name] for name in ("residuals", "weights")}
        for each in left_out:
            assert all(np.array_equal(each[name], agreed[name]) for name in agreed)
        mixtures = {**joined(left_out), **agreed}
        calibration = _core.calibration_from(mixtures)
        assert calibration[0] != 1.0
        for shard in self.each:
            shard.set_calibration(*calibration)
        self.n_calibrated += 1

    def sums(self, quantity, X, n_threads=1):
        terms = [shard.terms(quantity, X, n_threads) for shard in self.each]
        shards = [(*held, numbers) for held, (numbers, _) in zip(self.held, terms)]
        return _core.add_terms(self.n_trees, shards), sum(n for _, n in terms)

    def check(self, n=90, n_threads=1):
        """Check that one shard, given the terms of all, answers as the whole forest does."""
        X, y = data(self.kind, n, seed=99)
        for quantity, predict in QUANTITIES.items():
            expected, sums = predict(self.whole, X), self.sums(quantity, X, n_threads)
            for shard in (self.each[0], self.each[-1]):
                check_same(expected, shard.finish(quantity, X, *sums))
        if self.kind == "gaussian":
            mixtures, shard = (
                joined([each.mixtures(X, n_threads) for each in self.each]),
                self.each[-1],
            )
            check_same(
                self.whole.quantiles(X, LEVELS), shard.quantiles(X, LEVELS, mixtures=mixtures)
            )
            check_same(self.whole.log_density(X, y), shard.log_density(X, y, mixtures=mixtures))
        states = [shard.get_state() for shard in self.each]
        assert_same(self.whole.get_state(), joined_states(states))


def check_same(expected, answer):
    assert expected.shape == answer.shape
    assert expected.dtype == answer.dtype
    assert expected.tobytes() == answer.tobytes(), np.abs(expected - answer).max()


def joined(mixtures):
    """The mixtures of shards, row by row in the order of the shards."""
    counts = [np.diff(each["ends"], prepend=np.uint64(0)).astype(np.int64) for each in mixtures]
    rows = np.concatenate([np.repeat(np.arange(len(n)), n) for n in counts])
    order = np.argsort(rows, kind="stable")
    names = ("completion_of", "masses", "means", "variances")
    result = {name: np.concatenate([each[name] for each in mixtures])[order] for name in names}
    return {**result, "ends": np.cumsum(np.sum(counts, axis=0)).astype(np.uint64)}


def joined_states(states):
    for state in states:
        shared = {name: state[name] for name in state if not name.startswith("trees.")}
        assert_same({name: states[0][name] for name in shared}, shared)
    trees = {name for name in states[0] if name.startswith("trees.")}
    return {
        name: np.concatenate([state[name] for state in states])
        if name in trees
        else states[0][name]
        for name in states[0]
    }


@pytest.mark.heavy_under_sanitizers(
    reason="learns 60 forests; smaller tests of this file take the same paths"
)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@each_kind
def test_shards_together_predict_as_the_whole_forest(kind, sizes):
    shards = Shards(kind, sizes)
    for seed, n in enumerate([1, 40, 200, 60]):
        shards.learn(*data(kind, n, seed))
    shards.check()
    assert shards.n_calibrated == (2 if kind == "gaussian" and len(sizes) > 1 else 0)
    for (begin, end), shard in zip(shards.held, shards.each):
        assert shard.n_trees == end - begin
        shard.check_invariants()
        X, _ = data(kind, 20, 7)
        assert np.array_equal(shard.apply(X), shards.whole.apply(X)[:, begin:end])


@each_kind
def test_shards_learn_the_same_weights_and_options(kind):
    """Weights and options come from trials, which do not depend on shards."""
    shards = Shards(kind, (1, 4, 2), **learned(kind))
    for seed in range(3):
        shards.learn(*data(kind, 250, seed))
    assert len(set(shards.whole.feature_weights.tolist())) == 4, "nothing was learned"
    shards.check()


@each_kind
def test_another_order_of_additions_changes_the_sums(kind):
    """Otherwise the equalities in this file would prove little."""
    shards = Shards(kind, (1, 5, 4))
    shards.learn(*data(kind, 300, 0))
    X, _ = data(kind, 90, 99)
    sums, _ = shards.sums(Quantity.PREDICTION, X)
    terms = [shard.terms(Quantity.PREDICTION, X)[0].reshape(-1, len(sums)) for shard in shards.each]
    plain = np.sum([each.sum(axis=0) for each in terms], axis=0)
    assert np.allclose(plain, sums)
    assert not np.array_equal(plain, sums)


@pytest.mark.parametrize("n_threads", [2, 5])
@each_kind
def test_threads_do_not_matter(kind, n_threads):
    shards = Shards(kind, (1, 9, 3))
    shards.learn(*data(kind, 300, 0), n_threads=n_threads)
    shards.check(n=300, n_threads=n_threads)


@pytest.mark.heavy_under_sanitizers(reason="predicts thousands of completions")
@each_kind
def test_shards_agree_on_many_rows_with_missing_values(kind):
    shards = Shards(kind, (2, 1))
    shards.learn(*data(kind, 60, 0))
    shards.check(n=2100)


HISTORIES = {
    "window": {"window": 150},
    "reservoir": {"reservoir": 150},
    "fading reservoir": {"reservoir": 150, "half_life": 100.0},
}


@pytest.mark.heavy_under_sanitizers(reason="learns 48 forests one by one")
@pytest.mark.parametrize("keep", HISTORIES.values(), ids=HISTORIES.keys())
@pytest.mark.parametrize("one_by_one", [False, True], ids=["sets", "one_by_one"])
@each_kind
def test_shards_agree_with_windows_and_reservoirs(kind, one_by_one, keep):
    shards = Shards(kind, (1, 3, 5), **keep)
    for seed in range(4):
        shards.learn(*data(kind, 70, seed), one_by_one=one_by_one)
    assert shards.whole.n_points == 150 and shards.whole.n_seen == 280
    shards.check()


@each_kind
def test_shards_agree_after_forgetting(kind):
    shards = Shards(kind, (4, 1, 4))
    first, second = data(kind, 200, 0), data(kind, 100, 1)
    shards.learn(*first)
    shards.learn(*second)
    shards.change("forget", np.arange(3, 60, 2))
    shards.check()
    few = slice(150, 170)  # some of them have missing values
    assert len(shards.change("forget_rows", first[0][few], first[1][few])) == 0
    assert shards.whole.n_points == 300 - 29 - 20
    shards.check()
    assert len(shards.change("forget_rows", first[0][few], first[1][few])) == 20
    shards.change("refresh")
    shards.check()
    shards.change("keep_latest", 80)
    assert shards.whole.n_points == 80
    shards.check()
    shards.learn(*data(kind, 30, 2))
    shards.check()
    shards.change("keep_latest", 0)
    shards.learn(*data(kind, 90, 3))
    shards.check()


@each_kind
def test_a_shard_restored_from_a_state_learns_on(kind):
    shards = Shards(kind, (4, 1, 4), window=250)
    shards.learn(*data(kind, 200, 0))
    for i, ((begin, _), shard) in enumerate(zip(shards.held, shards.each)):
        restored = type(shard).from_state(shard.get_state(), n_trees=9, first_tree=begin)
        assert restored.n_trees == shard.n_trees
        assert_same(restored.get_state(), shard.get_state())
        shards.each[i] = restored
    shards.check()
    shards.learn(*data(kind, 100, 1))
    shards.check()
    shards.change("refresh")
    shards.check()


@each_kind
def test_shards_agree_on_no_rows(kind):
    shards = Shards(kind, (1, 3, 5))
    shards.learn(*data(kind, 90, 0))
    shards.check(n=0)
    shards.learn(*data(kind, 0, 0))
    shards.check()


def test_shards_without_samples():
    shards = Shards("label", (1, 3, 5))
    shards.check()
    X, _ = data("gaussian", 5, 0)
    shards = Shards("gaussian", (1, 3, 5))
    with pytest.raises(ValueError, match="holds no samples: learn some first"):
        shards.each[0].terms(Quantity.PREDICTION, X)
    with pytest.raises(ValueError, match="holds no samples: learn some first"):
        shards.each[0].mixtures(X)


@pytest.mark.parametrize("held", [(0, 0), (3, 3), (3, 2), (5, 11), (10, 11), (0, 11)], ids=str)
@each_kind
def test_a_shard_must_hold_trees_of_its_forest(kind, held):
    build = core_forest if kind == "label" else gaussian_forest
    with pytest.raises(ValueError, match="must hold at least one of the 10 trees, got the trees"):
        build(10, 4, held=held)


@each_kind
def test_a_state_with_trees_beyond_the_forest_is_refused(kind):
    shards = Shards(kind, (4, 6))
    shards.learn(*data(kind, 30, 0))
    shard = shards.each[1]
    for options in ({"n_trees": 9, "first_tree": 4}, {"n_trees": 10, "first_tree": 5}):
        with pytest.raises(ValueError, match="but the forest has"):
            type(shard).from_state(shard.get_state(), **options)
    for first_tree in (10, 11, 2**64 - 1):
        with pytest.raises(ValueError, match="but the forest has"):
            type(shard).from_state(shard.get_state(), n_trees=10, first_tree=first_tree)


def test_terms_must_cover_each_tree_once_and_in_order():
    shards = Shards("label", (4, 1, 5))
    shards.learn(*data("label", 90, 0))
    X, _ = data("label", 20, 1)
    first, second, third = (
        (*held, shard.terms(Quantity.PREDICTION, X)[0])
        for held, shard in zip(shards.held, shards.each)
    )
    _core.add_terms(10, [first, second, third])
    for some in ([], [first], [first, second]):
        with pytest.raises(
            ValueError, match=r"a shard is missing: there are terms of . trees of 10"
        ):
            _core.add_terms(10, some)
    for some in ([second, third], [first, third], [second, first, third], [first, first, third]):
        with pytest.raises(ValueError, match=r"are not in order: expected .* got \[., "):
            _core.add_terms(10, some)
    for n_trees in (0, 9):
        with pytest.raises(ValueError, match="are not in order"):
            _core.add_terms(n_trees, [first, second, third])
    with pytest.raises(ValueError, match="are not in order"):
        _core.add_terms(10, [first, (4, 4, second[2]), second, third])
    other = (*shards.held[1], shards.each[1].terms(Quantity.PREDICTION, X[1:])[0])
    for some in ([first, other, third], [(*first[:2], first[2][:-1]), second, third]):
        with pytest.raises(
            ValueError, match=r"different lengths: the shard with trees from . on has"
        ):
            _core.add_terms(10, some)
    for some in (
        [first, None, third],
        [first[:2]],
        [(0, 10, first[2].astype(np.float32))],
        [(-1, 10, first[2])],
    ):
        with pytest.raises(TypeError):
            _core.add_terms(10, some)


@each_kind
def test_sums_of_other_rows_are_refused(kind):
    shards = Shards(kind, (4, 1, 4))
    shards.learn(*data(kind, 90, 0))
    X, _ = data(kind, 30, 1)
    for quantity in QUANTITIES:
        sums, n_grown = shards.sums(quantity, X)
        wrong = [(X[:-1], sums), (X, sums[:-1]), (X, sums[:0]), (X[:0], sums)]
        wrong.append((np.nan_to_num(X), sums))  # no row has several completions
        for rows, numbers in wrong:
            with pytest.raises(ValueError, match=f"the sums hold {len(numbers)} numbers"):
                shards.each[0].finish(quantity, rows, numbers, n_grown)
        with pytest.raises(ValueError, match="X has 3 features, but this forest has 4"):
            shards.each[0].finish(quantity, np.ascontiguousarray(X[:, :3]), sums, n_grown)


def test_mixtures_of_other_rows_are_refused():
    shards = Shards("gaussian", (4, 1, 4))
    shards.learn(*data("gaussian", 90, 0))
    X, y = data("gaussian", 30, 1)
    mixtures = joined([shard.mixtures(X) for shard in shards.each])

    def check(message, X=X, y=y, **changed):
        changed = {**mixtures, **changed}
        changed = {name: array for name, array in changed.items() if array is not None}
        with pytest.raises(ValueError, match=message):
            shards.each[0].quantiles(X, LEVELS, mixtures=changed)
        with pytest.raises(ValueError, match=message):
            shards.each[0].log_density(X, y, mixtures=changed)

    other = "inconsistent lengths, or are not those of"
    check(other, X[1:], y[1:])
    check(other, X[:0], y[:0])
    check("belongs to completion 1 of a row that has 1", np.nan_to_num(X))  # each row is complete
    check(other, ends=mixtures["ends"][::-1].copy())
    for name in ("ends", "completion_of", "masses", "means", "variances"):
        check(other, **{name: mixtures[name][:-1]})
        check(f"array '{name}' is missing", **{name: None})
        check(f"array '{name}' has the wrong type", **{name: mixtures[name].astype(np.int16)})
    for name, bad in (("masses", np.nan), ("masses", -1.0), ("means", np.inf), ("variances", 0.0)):
        check("component 0 of the mixtures", **{name: np.full_like(mixtures[name], bad)})


def test_left_out_predictions_without_a_calibration_are_refused():
    shards = Shards("gaussian", (4, 5))
    X, y = data("gaussian", 300, 0)
    for shard in shards.each:
        shard.learn(X, y)
    left_out = [shard.take_left_out() for shard in shards.each]
    agreed = {name: left_out[0][name] for name in ("residuals", "weights")}
    mixtures = {**joined(left_out), **agreed}
    scale, noise, levels = _core.calibration_from(mixtures)
    assert len(levels) == len(mixtures["residuals"])
    with pytest.raises(ValueError, match="needs at least one left-out point, got 0"):
        _core.calibration_from({name: array[:0] for name, array in mixtures.items()})
    with pytest.raises(ValueError, match="are not those of"):
        _core.calibration_from({**mixtures, "residuals": mixtures["residuals"][1:]})
    with pytest.raises(ValueError, match="array 'residuals' is missing"):
        _core.calibration_from(joined(left_out))
    some = np.full(len(levels) - 1, 2**16)
    with pytest.raises(ValueError, match=f"{len(some)} weights for {len(levels)} left-out points"):
        _core.calibration_from({**mixtures, "weights": some})
    with pytest.raises(ValueError, match="weights must be positive"):
        _core.calibration_from({**mixtures, "weights": np.zeros(len(levels), dtype=np.int64)})
    with pytest.raises(ValueError, match=r"of left-out point 0 is -?nan"):
        _core.calibration_from({**mixtures, "masses": np.zeros_like(mixtures["masses"])})
    shard = shards.each[0]
    for bad in ((0.0, noise, levels), (scale, np.nan, levels), (scale, noise, levels[::-1].copy())):
        with pytest.raises(ValueError, match="of the calibration"):
            shard.set_calibration(*bad)
    shard.set_calibration(scale, noise, levels)
    assert shard.calibration_scale == scale
