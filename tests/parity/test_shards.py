"""Shards hold some of a forest's trees each: together they equal the forest to the last bit."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest

from onlineforest import _core
from support.bits import assert_same
from support.core import core_forest, gaussian_forest

N_CLASSES = 4
LEVELS = np.array([0.05, 0.5, 0.9])

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


class Parts:
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
        self.parts = [build(self.n_trees, 4, held=held, **options) for held in self.held]
        self.n_calibrated = 0

    def change(self, name, *arguments, **options):
        """Call a method that learns or forgets; all return the same."""
        result = getattr(self.whole, name)(*arguments, **options)
        for part in self.parts:
            of_part = getattr(part, name)(*arguments, **options)
            assert np.array_equal(result, of_part) if result is not None else of_part is None
        self.calibrate()
        return result

    def learn(self, X, y, **options):
        self.change("learn", X, y, *([N_CLASSES] if self.kind == "label" else []), **options)

    def calibrate(self):
        if self.kind == "label":
            return
        left_out = [part.take_left_out() for part in self.parts]
        if left_out[0] is None:
            assert not any(left_out)
            return
        residuals = {each["residuals"].tobytes() for each in left_out}
        assert len(residuals) == 1
        laws = {**joined(left_out), "residuals": left_out[0]["residuals"]}
        calibration = _core.calibration_of(laws)
        assert calibration[0] != 1.0
        for part in self.parts:
            part.set_calibration(*calibration)
        self.n_calibrated += 1

    def sums(self, name, X, n_threads=1):
        terms = [getattr(part, f"{name}_terms")(X, n_threads) for part in self.parts]
        parts = [(*held, numbers) for held, (numbers, _) in zip(self.held, terms)]
        return _core.add_terms(self.n_trees, parts), sum(n for _, n in terms)

    def check(self, n=90, n_threads=1):
        """Check that one shard, given the terms of all, answers as the whole forest does."""
        X, y = data(self.kind, n, seed=99)
        for name in ("predict", "novelty"):
            expected, sums = getattr(self.whole, name)(X), self.sums(name, X, n_threads)
            for part in (self.parts[0], self.parts[-1]):
                check_same(expected, getattr(part, f"{name}_from")(X, *sums))
        if self.kind == "gaussian":
            laws, part = joined([each.laws(X, n_threads) for each in self.parts]), self.parts[-1]
            check_same(self.whole.quantiles(X, LEVELS), part.quantiles_from(X, LEVELS, laws))
            check_same(self.whole.log_density(X, y), part.log_density_from(X, y, laws))
        states = [part.get_state() for part in self.parts]
        assert_same(self.whole.get_state(), joined_states(states))


def check_same(expected, answer):
    assert expected.shape == answer.shape
    assert expected.dtype == answer.dtype
    assert expected.tobytes() == answer.tobytes(), np.abs(expected - answer).max()


def joined(laws):
    """The mixtures of shards, row by row in the order of the shards."""
    counts = [np.diff(each["ends"], prepend=np.uint64(0)).astype(np.int64) for each in laws]
    rows = np.concatenate([np.repeat(np.arange(len(n)), n) for n in counts])
    order = np.argsort(rows, kind="stable")
    names = ("completion_of", "masses", "means", "variances")
    result = {name: np.concatenate([each[name] for each in laws])[order] for name in names}
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
    parts = Parts(kind, sizes)
    for seed, n in enumerate([1, 40, 200, 60]):
        parts.learn(*data(kind, n, seed))
    parts.check()
    assert parts.n_calibrated == (2 if kind == "gaussian" and len(sizes) > 1 else 0)
    for (begin, end), part in zip(parts.held, parts.parts):
        assert part.n_trees == end - begin
        part.check_invariants()
        X, _ = data(kind, 20, 7)
        assert np.array_equal(part.apply(X), parts.whole.apply(X)[:, begin:end])


@each_kind
def test_shards_learn_the_same_weights_and_options(kind):
    """Weights and options come from trials, which do not depend on shards."""
    parts = Parts(kind, (1, 4, 2), **learned(kind))
    for seed in range(3):
        parts.learn(*data(kind, 250, seed))
    assert len(set(parts.whole.feature_weights.tolist())) == 4, "nothing was learned"
    parts.check()


@each_kind
def test_another_order_of_additions_changes_the_sums(kind):
    """Otherwise the equalities in this file would prove little."""
    parts = Parts(kind, (1, 5, 4))
    parts.learn(*data(kind, 300, 0))
    X, _ = data(kind, 90, 99)
    sums, _ = parts.sums("predict", X)
    terms = [part.predict_terms(X)[0].reshape(-1, len(sums)) for part in parts.parts]
    plain = np.sum([each.sum(axis=0) for each in terms], axis=0)
    assert np.allclose(plain, sums)
    assert not np.array_equal(plain, sums)


@pytest.mark.parametrize("n_threads", [2, 5])
@each_kind
def test_threads_do_not_matter(kind, n_threads):
    parts = Parts(kind, (1, 9, 3))
    parts.learn(*data(kind, 300, 0), n_threads=n_threads)
    parts.check(n=300, n_threads=n_threads)


@pytest.mark.heavy_under_sanitizers(reason="predicts thousands of completions")
@each_kind
def test_shards_agree_on_many_rows_with_missing_values(kind):
    parts = Parts(kind, (2, 1))
    parts.learn(*data(kind, 60, 0))
    parts.check(n=2100)


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
    parts = Parts(kind, (1, 3, 5), **keep)
    for seed in range(4):
        parts.learn(*data(kind, 70, seed), one_by_one=one_by_one)
    assert parts.whole.n_points == 150 and parts.whole.n_seen == 280
    parts.check()


@each_kind
def test_shards_agree_after_forgetting(kind):
    parts = Parts(kind, (4, 1, 4))
    first, second = data(kind, 200, 0), data(kind, 100, 1)
    parts.learn(*first)
    parts.learn(*second)
    parts.change("forget", np.arange(3, 60, 2))
    parts.check()
    few = slice(150, 170)  # some of them have missing values
    assert len(parts.change("forget_rows", first[0][few], first[1][few])) == 0
    assert parts.whole.n_points == 300 - 29 - 20
    parts.check()
    assert len(parts.change("forget_rows", first[0][few], first[1][few])) == 20
    parts.change("refresh")
    parts.check()
    parts.change("keep_latest", 80)
    assert parts.whole.n_points == 80
    parts.check()
    parts.learn(*data(kind, 30, 2))
    parts.check()
    parts.change("keep_latest", 0)
    parts.learn(*data(kind, 90, 3))
    parts.check()


@each_kind
def test_a_shard_restored_from_a_state_learns_on(kind):
    parts = Parts(kind, (4, 1, 4), window=250)
    parts.learn(*data(kind, 200, 0))
    for i, ((begin, _), part) in enumerate(zip(parts.held, parts.parts)):
        restored = type(part).from_state(part.get_state(), n_trees=9, first_tree=begin)
        assert restored.n_trees == part.n_trees
        assert_same(restored.get_state(), part.get_state())
        parts.parts[i] = restored
    parts.check()
    parts.learn(*data(kind, 100, 1))
    parts.check()
    parts.change("refresh")
    parts.check()


@each_kind
def test_shards_agree_on_no_rows(kind):
    parts = Parts(kind, (1, 3, 5))
    parts.learn(*data(kind, 90, 0))
    parts.check(n=0)
    parts.learn(*data(kind, 0, 0))
    parts.check()


def test_shards_without_samples():
    parts = Parts("label", (1, 3, 5))
    parts.check()
    X, _ = data("gaussian", 5, 0)
    parts = Parts("gaussian", (1, 3, 5))
    for call in (parts.parts[0].predict_terms, parts.parts[0].laws):
        with pytest.raises(ValueError, match="holds no samples: learn some first"):
            call(X)


@pytest.mark.parametrize("held", [(0, 0), (3, 3), (3, 2), (5, 11), (10, 11), (0, 11)], ids=str)
@each_kind
def test_a_shard_must_hold_trees_of_its_forest(kind, held):
    build = core_forest if kind == "label" else gaussian_forest
    with pytest.raises(ValueError, match="at least one tree, and none beyond those of the whole"):
        build(10, 4, held=held)


@each_kind
def test_a_state_with_trees_beyond_the_forest_is_refused(kind):
    parts = Parts(kind, (4, 6))
    parts.learn(*data(kind, 30, 0))
    part = parts.parts[1]
    for options in ({"n_trees": 9, "first_tree": 4}, {"n_trees": 10, "first_tree": 5}):
        with pytest.raises(ValueError, match="trees beyond those of the whole"):
            type(part).from_state(part.get_state(), **options)
    for first_tree in (10, 11, 2**64 - 1):
        with pytest.raises(ValueError, match="trees beyond those of the whole"):
            type(part).from_state(part.get_state(), n_trees=10, first_tree=first_tree)


def test_terms_must_cover_each_tree_once_and_in_order():
    parts = Parts("label", (4, 1, 5))
    parts.learn(*data("label", 90, 0))
    X, _ = data("label", 20, 1)
    first, second, third = (
        (*held, part.predict_terms(X)[0]) for held, part in zip(parts.held, parts.parts)
    )
    _core.add_terms(10, [first, second, third])
    for some in ([], [first], [first, second]):
        with pytest.raises(
            ValueError, match=r"a part is missing: there are terms of . trees of 10"
        ):
            _core.add_terms(10, some)
    for some in ([second, third], [first, third], [second, first, third], [first, first, third]):
        with pytest.raises(ValueError, match=r"do not follow one another: wanted .* got \[., "):
            _core.add_terms(10, some)
    for n_trees in (0, 9):
        with pytest.raises(ValueError, match="do not follow one another"):
            _core.add_terms(n_trees, [first, second, third])
    with pytest.raises(ValueError, match="do not follow one another"):
        _core.add_terms(10, [first, (4, 4, second[2]), second, third])
    other = (*parts.held[1], parts.parts[1].predict_terms(X[1:])[0])
    for some in ([first, other, third], [(*first[:2], first[2][:-1]), second, third]):
        with pytest.raises(
            ValueError, match=r"not asked the same: that of the trees from . on has"
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
    parts = Parts(kind, (4, 1, 4))
    parts.learn(*data(kind, 90, 0))
    X, _ = data(kind, 30, 1)
    for name in ("predict", "novelty"):
        sums, n_grown = parts.sums(name, X)
        finish = getattr(parts.parts[0], f"{name}_from")
        wrong = [(X[:-1], sums), (X, sums[:-1]), (X, sums[:0]), (X[:0], sums)]
        wrong.append((np.nan_to_num(X), sums))  # no row has several completions
        for rows, numbers in wrong:
            with pytest.raises(ValueError, match="the sums are not those of these rows"):
                finish(rows, numbers, n_grown)
        with pytest.raises(ValueError, match="X has 3 features, but this forest has 4"):
            finish(np.ascontiguousarray(X[:, :3]), sums, n_grown)


def test_mixtures_of_other_rows_are_refused():
    parts = Parts("gaussian", (4, 1, 4))
    parts.learn(*data("gaussian", 90, 0))
    X, y = data("gaussian", 30, 1)
    laws = joined([part.laws(X) for part in parts.parts])

    def check(message, X=X, y=y, **changed):
        changed = {**laws, **changed}
        changed = {name: array for name, array in changed.items() if array is not None}
        with pytest.raises(ValueError, match=message):
            parts.parts[0].quantiles_from(X, LEVELS, changed)
        with pytest.raises(ValueError, match=message):
            parts.parts[0].log_density_from(X, y, changed)

    other = "the laws are not those of these rows"
    check(other, X[1:], y[1:])
    check(other, X[:0], y[:0])
    check(other, np.nan_to_num(X))  # no row has several completions
    check(other, ends=laws["ends"][::-1].copy())
    for name in ("ends", "completion_of", "masses", "means", "variances"):
        check(other, **{name: laws[name][:-1]})
        check(f"'{name}' is missing or of another type", **{name: None})
        check(f"'{name}' is missing or of another type", **{name: laws[name].astype(np.int16)})
    for name, bad in (("masses", np.nan), ("masses", -1.0), ("means", np.inf), ("variances", 0.0)):
        check("the laws are no mixtures of normals", **{name: np.full_like(laws[name], bad)})


def test_left_out_predictions_without_a_calibration_are_refused():
    parts = Parts("gaussian", (4, 5))
    X, y = data("gaussian", 300, 0)
    for part in parts.parts:
        part.learn(X, y)
    left_out = [part.take_left_out() for part in parts.parts]
    laws = {**joined(left_out), "residuals": left_out[0]["residuals"]}
    scale, noise, levels = _core.calibration_of(laws)
    assert len(levels) == len(laws["residuals"])
    with pytest.raises(ValueError, match="a calibration needs points left out"):
        _core.calibration_of({name: array[:0] for name, array in laws.items()})
    with pytest.raises(ValueError, match="the laws are not those of these rows"):
        _core.calibration_of({**laws, "residuals": laws["residuals"][1:]})
    with pytest.raises(ValueError, match="'residuals' is missing or of another type"):
        _core.calibration_of(joined(left_out))
    with pytest.raises(ValueError, match="the laws of the points left out are none"):
        _core.calibration_of({**laws, "masses": np.zeros_like(laws["masses"])})
    part = parts.parts[0]
    for bad in ((0.0, noise, levels), (scale, np.nan, levels), (scale, noise, levels[::-1].copy())):
        with pytest.raises(ValueError, match="of the calibration"):
            part.set_calibration(*bad)
    part.set_calibration(scale, noise, levels)
    assert part.calibration_scale == scale
