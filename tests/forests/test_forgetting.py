"""Forgetting, windows and reservoirs, as users see them."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from enum import StrEnum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from onlineforest import MondrianForestClassifier, OnlineForestRegressor
from support.bits import assert_same, assert_same_forest
from support.estimators import ALL_KINDS, each_of_all_kinds

X, Y = load_digits(return_X_y=True)
X, Y = X[:600], Y[:600]
# An order-free classifier notes when its calibration is due, even if a call is then refused.
each_with_equal_pickles = pytest.mark.parametrize(
    "kind", [ALL_KINDS["classifier"], ALL_KINDS["online regressor"]], ids=["labels", "numbers"]
)


def rows_of(forest):
    """The stored rows in the order in which they came."""
    state = forest._forest.get_state()
    rows = state["rows"].reshape(-1, forest.n_features_in_)
    return rows[state.get("sample_of", np.arange(len(rows)))][np.argsort(state["serials"])]


def small(kind, **parameters):
    return kind.estimator(n_estimators=5, random_state=0, **parameters)


@each_of_all_kinds
def test_rows_are_forgotten_and_the_others_stay(kind):
    forest = small(kind).fit(X, Y)
    gone = np.array([3, 599, 0, 77])
    assert forest.forget(X[gone], Y[gone]) is forest
    forest._check_trees()
    assert forest.n_samples_stored_ == 596
    assert forest.n_samples_seen_ == 600
    assert np.array_equal(rows_of(forest), np.delete(X, gone, axis=0))
    forest.partial_fit(X[gone], Y[gone])
    forest._check_trees()
    assert forest.n_samples_stored_ == 600


@each_of_all_kinds
def test_a_row_is_forgotten_as_often_as_it_is_given(kind):
    forest = small(kind).fit([[1.0], [2.0], [1.0], [1.0], [1.0]], [0, 0, 0, 0, 1])
    forest.forget([[1.0], [1.0]], [0, 0])
    assert rows_of(forest).ravel().tolist() == [2.0, 1.0, 1.0]
    before = forest._forest.get_state()
    with pytest.raises(ValueError, match="1 of 2 samples are not stored, or not as often"):
        forest.forget([[1.0], [1.0]], [0, 0])
    assert_same(forest._forest.get_state(), before)


@each_of_all_kinds
def test_samples_that_are_not_stored_are_named_and_nothing_changes(kind):
    forest = small(kind).fit(X, Y)
    rows, target = X[:9].copy(), Y[:9].copy()
    rows[4, 3] += 0.5
    target[7] += 1
    before = forest._forest.get_state()
    with pytest.raises(ValueError, match=r"2 of 9 samples are not stored.*: rows 4, 7. Nothing"):
        forest.forget(rows, target)
    assert_same(forest._forest.get_state(), before)


def test_a_class_that_is_not_known_is_not_stored():
    forest = MondrianForestClassifier(n_estimators=2).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=r"1 of 2 samples are not stored.*: rows 1"):
        forest.forget([[0.0], [1.0]], ["a", "c"])
    assert forest.classes_.tolist() == ["a", "b"]
    assert forest.n_samples_stored_ == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "forget needs X and y, or ids"),
        ({"X": [[1.0]]}, ValueError, "forget needs X and y, or ids"),
        ({"X": [[1.0]], "y": [0], "ids": [1]}, ValueError, "but not both"),
        ({"X": [[1.0, 2.0]], "y": [0]}, ValueError, "X has 2 features"),
        ({"X": [[np.inf]], "y": [0]}, ValueError, "contains infinity"),
        ({"X": [[np.nan]], "y": [0]}, ValueError, "1 of 1 samples are not stored|contains NaN"),
        ({"ids": "one"}, TypeError, "ids must be a list or array of ids"),
        ({"ids": 7}, TypeError, "ids must be a list or array of ids"),
        ({"ids": [1.5]}, TypeError, "ids must be whole numbers or strings. Got 1.5"),
        ({"ids": [True]}, TypeError, "ids must be whole numbers or strings. Got True"),
        ({"ids": [None]}, TypeError, "ids must be whole numbers or strings. Got None"),
        ({"ids": [1, "b", 1, "b"]}, ValueError, "distinct, but more than one is 1 or 'b'"),
        ({"ids": [1, 9, "x"]}, ValueError, "2 of 3 ids are not those of stored.*9 and 'x'"),
    ],
    ids=str,
)
@each_with_equal_pickles
def test_bad_requests_change_nothing(kind, arguments, error, message):
    forest = small(kind).fit([[0.0], [1.0], [2.0]], [0, 1, 0], ids=[1, "b", 3])
    before = pickle.dumps(forest)
    with pytest.raises(error, match=message):
        forest.forget(**arguments)
    assert pickle.dumps(forest) == before


@each_of_all_kinds
def test_a_forest_must_have_been_fitted(kind):
    for method in (lambda f: f.forget(ids=[1]), lambda f: f.keep_latest(3), lambda f: f.ids_):
        with pytest.raises(NotFittedError):
            method(kind.estimator())


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a"], ValueError, "There are 1 ids for 2 samples"),
        (["a", "b"], ValueError, "ids must be new, but samples are stored with 'b'"),
        (["a", "a"], ValueError, "distinct"),
        (["a", 1.0], TypeError, "whole numbers or strings"),
        ("ab", TypeError, "list or array"),
    ],
)
@each_of_all_kinds
def test_bad_ids_are_not_learned(kind, ids, error, message):
    forest = small(kind).partial_fit([[0.0], [1.0], [2.0]], [0, 1, 0], ids=[1, "b", 3])
    before = pickle.dumps(forest)
    with pytest.raises(error, match=message):
        forest.partial_fit([[4.0], [5.0]], [0, 1], ids=ids)
    assert pickle.dumps(forest) == before


@each_of_all_kinds
def test_ids_find_their_samples(kind):
    forest = small(kind)
    names = np.array([f"person {i}" for i in range(600)])
    forest.partial_fit(X[:200], Y[:200], ids=names[:200])
    forest.partial_fit(X[200:400], Y[200:400])
    forest.partial_fit(X[400:], Y[400:], ids=np.arange(400, 600, dtype=np.uint16))
    forest.learn_one(X[0], Y[0], id="last")
    gone = [5, 150, 420, 599]
    forest.forget(ids=["person 5", "person 150", 420, np.int64(599), "last"])
    forest._check_trees()
    assert np.array_equal(rows_of(forest), np.delete(X, gone, axis=0))
    assert forest.ids_ == {*names[:200], *range(400, 600)} - {"person 5", "person 150", 420, 599}
    forest.partial_fit(X[:1], Y[:1], ids=["person 5"])  # free again
    resumed = pickle.loads(pickle.dumps(forest))
    for each in (forest, resumed):
        each.forget(ids=["person 5", "person 0"])
    assert np.array_equal(rows_of(resumed), np.delete(X, [0, *gone], axis=0))
    assert_same_forest(forest, resumed)


def test_labels_of_another_kind_are_refused():
    """A label "9" is not the class 90, nor 9."""
    forest = MondrianForestClassifier(n_estimators=2).fit(np.zeros((100, 1)), np.arange(100))
    with pytest.raises(ValueError, match=r"labels that are strings, but .* fitted with numbers"):
        forest.forget([[0.0]], np.array(["9"]))
    assert forest.n_samples_stored_ == 100


def test_a_copy_has_ids_of_its_own():
    forest = MondrianForestClassifier(n_estimators=2).fit(X[:10], Y[:10], ids=range(10))
    other = copy.copy(forest)
    other.partial_fit(X[10:11], Y[10:11], ids=["new"])
    forest.partial_fit(X[11:12], Y[11:12])
    with pytest.raises(ValueError, match="1 of 1 ids"):
        forest.forget(ids=["new"])
    assert other.forget(ids=["new", 3]).ids_ == set(range(10)) - {3}


def test_ids_from_tables_and_enumerations():
    class Colour(StrEnum):
        RED = "red"

    forest = MondrianForestClassifier(n_estimators=2).fit(X[:3], Y[:3])
    table = pd.DataFrame({"id": ["a", "b"]})
    forest.partial_fit(X[:2], Y[:2], ids=table["id"])
    forest.partial_fit(X[:1], Y[:1], ids=(each for each in [Colour.RED]))
    arrow = pa.chunked_array([["c"], ["d"]])
    assert forest.partial_fit(X[:2], Y[:2], ids=arrow).ids_ == {"a", "b", "red", "c", "d"}
    forest.forget(ids=arrow)
    assert forest.ids_ == {"a", "b", "red"}
    for wrong in (table[["id"]], {"c", "d"}, {"c": 1, "d": 2}, np.array([["c"], ["d"]])):
        with pytest.raises(TypeError, match="list or array of ids in one dimension"):
            forest.partial_fit(X[:2], Y[:2], ids=wrong)
    forest.forget(ids=table["id"])
    assert forest.n_samples_stored_ == 4


def test_a_reservoir_starts_again_after_keep_latest():
    forest = MondrianForestClassifier(n_estimators=2, reservoir=50, random_state=0)
    forest.fit(np.tile(X, (10, 1)), np.tile(Y, 10)).keep_latest(10)
    assert forest.partial_fit(X[:40], Y[:40]).n_samples_stored_ == 50


def test_keep_latest_of_no_fewer_changes_nothing():
    forest = MondrianForestClassifier(n_estimators=2, reservoir=50, random_state=0)
    forest.fit(np.tile(X, (10, 1)), np.tile(Y, 10))
    before = forest._forest.get_state()
    assert_same(forest.keep_latest(50)._forest.get_state(), before)


def test_samples_forgotten_by_row_lose_their_ids():
    forest = MondrianForestClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1], ids=["a", "b"])
    forest.forget([[1.0]], [1])
    assert forest.ids_ == {"a"}
    with pytest.raises(ValueError, match="1 of 1 ids"):
        forest.forget(ids=["b"])


@pytest.mark.slow
def test_ids_of_samples_that_a_window_dropped():
    forest = MondrianForestClassifier(n_estimators=2, window=50, random_state=0)
    for i in range(2000):
        forest.learn_one(X[i % 600], Y[i % 600], id=i)
        assert len(forest._ids) < 300
    assert forest.ids_ == set(range(1950, 2000))
    with pytest.raises(ValueError, match="1 of 2 ids are not those of stored samples: 1949"):
        forest.forget(ids=[1950, 1949])
    forest.partial_fit(X[:1], Y[:1], ids=[1949])  # gone, so it is free
    assert forest.ids_ == {*range(1951, 2000), 1949}


def test_ids_are_not_lost_when_threads_look_and_forget():
    forest = MondrianForestClassifier(n_estimators=1, random_state=0)
    forest.fit(X[:300], Y[:300], ids=[f"old {i}" for i in range(300)])
    is_over = threading.Event()

    def look():
        while not is_over.is_set():
            assert len(forest.ids_) > 0
            pickle.dumps(forest)

    def forget(first):
        for i in range(first, first + 100):
            with contextlib.suppress(ValueError):  # the other was quicker
                forest.forget(ids=[f"old {i}"])

    others = [threading.Thread(target=forget, args=(first,)) for first in (0, 50)]
    looker = threading.Thread(target=look)
    for thread in (looker, *others):
        thread.start()
    for i in range(300):
        forest.partial_fit(X[i : i + 1], [int(Y[i]) + 10 * (i % 3)], ids=[i])
    for thread in others:
        thread.join()
    is_over.set()
    looker.join()
    assert forest.ids_ == {*range(300), *(f"old {i}" for i in range(150, 300))}
    assert forest.n_samples_stored_ == 450


def test_ids_are_right_when_threads_learn_at_once():
    forest = OnlineForestRegressor(n_estimators=2, random_state=0)
    forest.partial_fit([[-1.0]], [-1.0])
    start = threading.Barrier(4)

    def bring(first):
        start.wait()
        for i in range(first, first + 100):
            with_id = {"ids": [i]} if i % 2 else {}
            forest.partial_fit(np.array([[float(i)]]), np.array([float(i)]), **with_id)

    threads = [threading.Thread(target=bring, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gone = [1000 * k + i for k in range(4) for i in (1, 51, 99)]
    forest.forget(ids=gone)
    left = {float(1000 * k + i) for k in range(4) for i in range(100)} - set(map(float, gone))
    assert set(rows_of(forest).ravel().tolist()) == left | {-1.0}


@each_of_all_kinds
def test_nothing_of_a_forgotten_sample_is_saved(kind):
    rng = np.random.default_rng(0)
    rows, target = rng.random((300, 3)).astype(np.float32), rng.integers(0, 4, 300) / 2
    rows[17] = [1234.567, -7654.321, 0.00123456]
    if kind.estimator is OnlineForestRegressor:
        target[17] = 98.7654321
    else:
        target = target.astype(str)
        target[17] = target[16]
    names = [f"patient {i}." for i in range(300)]
    forest = small(kind).fit(rows, target, ids=names)
    patterns = [value.tobytes() for value in rows[17]] + [b"patient 17."]
    if kind.estimator is OnlineForestRegressor:
        patterns.append(np.float64(98.7654321).tobytes())
    assert all(pattern in pickle.dumps(forest) for pattern in patterns)
    forest.forget(ids=["patient 17."])
    saved = pickle.dumps(forest)
    assert patterns[3] not in saved
    state = forest._forest.get_state()
    for array in (state["rows"], state["values"]):
        assert not any(pattern in array.tobytes() for pattern in patterns)
    if kind.estimator is MondrianForestClassifier:
        # The weights of features may hold numbers of a sample until they are computed anew.
        saved = pickle.dumps(forest.refresh_weights())
    assert not any(pattern in saved for pattern in patterns)


def test_a_refresh_after_forgetting_is_that_of_the_others_alone():
    """The measure is that of a forest that learned the remaining samples only."""
    kind, parameters = ALL_KINDS["classifier"], {"feature_weights": "range"}
    forest = small(kind, **parameters).fit(X, Y).keep_latest(550).refresh_weights()
    other = small(kind, **parameters).fit(X[50:], Y[50:])
    assert np.array_equal(forest.feature_weights_, other.feature_weights_)
    stretched = X[:50] * 1.02  # so little that a refresh in due time would keep the weights
    forest = small(kind, **parameters).fit(np.vstack([stretched, X[50:]]), Y)
    forest.keep_latest(550).refresh_weights()
    assert np.array_equal(forest.feature_weights_, other.feature_weights_)


@each_of_all_kinds
def test_a_forest_that_forgot_everything_can_learn_again(kind):
    forest = small(kind).fit(X, Y, ids=range(600))
    forest.forget(X, Y)
    assert forest.n_samples_stored_ == 0
    assert forest.ids_ == frozenset()
    forest = pickle.loads(pickle.dumps(forest))
    if kind.estimator is MondrianForestClassifier:
        for name in ("feature_weights_", "discount_rate_", "feature_importances_"):
            with pytest.raises(ValueError, match="has forgotten all its samples"):
                getattr(forest, name)
        assert np.array_equal(forest.predict_proba(X[:3]), np.full((3, 10), 0.1))
        assert forest.classes_.tolist() == list(range(10))
        forest.refresh_weights()
    else:
        for ask in (lambda: forest.predict(X), lambda: forest.predict_one(X[0])):
            with pytest.raises(ValueError, match="has forgotten all its samples"):
                ask()
    assert (forest.apply(X[:3]) == -1).all()
    assert len(forest.trees_[0].left) == 0
    forest.partial_fit(X[:300], Y[:300], ids=range(300))
    forest._check_trees()
    assert forest.n_samples_stored_ == 300
    assert np.isfinite(kind.predict(forest, X)).all()


def test_a_class_without_samples_stays_known():
    forest = MondrianForestClassifier(n_estimators=20, random_state=0).fit(X, Y)
    forest.forget(X[Y == 3], Y[Y == 3])
    assert forest.classes_.tolist() == list(range(10))
    probabilities = forest.predict_proba(X)
    assert probabilities.shape == (600, 10)
    assert not (forest.predict(X) == 3).any()
    # Only its share of the prior is left, which is equal for all classes where nothing is known.
    far = forest.predict_proba(np.full((1, 64), 1e30))
    assert far == pytest.approx(0.1, abs=0.02)


@each_of_all_kinds
def test_a_window_keeps_the_latest(kind):
    forest = small(kind, window=100)
    n_seen = 0
    for n in (30, 1, 80, 1, 1, 250, 101, 7):
        batch = slice(n_seen, n_seen + n)
        forest.partial_fit(X[batch], Y[batch])
        n_seen += n
        forest._check_trees()
        assert forest.n_samples_seen_ == n_seen
        assert np.array_equal(rows_of(forest), X[max(n_seen - 100, 0) : n_seen])


@each_of_all_kinds
def test_a_fit_with_a_window_is_a_fit_of_the_latest(kind):
    forest = small(kind, window=100).fit(X, Y)
    other = small(kind).fit(X[500:], Y[500:])
    assert np.array_equal(kind.predict(forest, X), kind.predict(other, X))
    assert forest.n_samples_seen_ == 600


@each_of_all_kinds
def test_a_window_may_hold_one_sample(kind):
    forest = small(kind, window=1)
    for x, y in zip(X[:50], Y[:50], strict=True):
        forest.learn_one(x, float(y) if kind.estimator is OnlineForestRegressor else y)
        forest._check_trees()
    assert np.array_equal(rows_of(forest), X[49:50])


@pytest.mark.parametrize("parameters", [{"window": 120}, {"reservoir": 120, "half_life": 200}])
@each_of_all_kinds
def test_streams_with_forgetting_agree_to_the_last_bit(kind, parameters):
    """One by one or not, with any number of threads, saved in between or not."""
    if kind.estimator is MondrianForestClassifier:
        parameters = {"feature_weights": "range", **parameters}
    label = float if kind.estimator is OnlineForestRegressor else int

    def stream(forest, resume=False):
        for i in range(400):
            forest = forest.learn_one(X[i], label(Y[i]))
            if i % 50 == 49:
                serial = np.sort(forest._forest.serials)[7]
                forest.forget(X[[serial]], Y[[serial]])
            if resume and i % 90 == 89:
                forest = pickle.loads(pickle.dumps(forest))
        return forest

    one = stream(small(kind, **parameters))
    one._check_trees()
    assert one.n_samples_stored_ <= 120
    for other in (
        stream(small(kind, n_jobs=3, **parameters)),
        stream(small(kind, **parameters), resume=True),
    ):
        assert_same_forest(one, other)
        assert np.array_equal(kind.predict(one, X), kind.predict(other, X))


@each_of_all_kinds
def test_a_reservoir_keeps_a_sample_of_all(kind):
    parameters = {"reservoir": 100}
    if kind.estimator is MondrianForestClassifier:
        parameters |= {"feature_weights": None}
    forest = small(kind, **parameters)
    rng = np.random.default_rng(0)
    for start in range(0, 4000, 40):
        forest.partial_fit(np.arange(start, start + 40.0)[:, None], rng.integers(0, 3, 40))
    forest._check_trees()
    kept = rows_of(forest).ravel()
    assert len(kept) == len(np.unique(kept)) == 100
    assert 1600 < kept.mean() < 2400  # three and a half standard errors
    recent = small(kind, **parameters, half_life=500)
    recent.fit(np.arange(4000.0)[:, None], rng.integers(0, 3, 4000))
    assert rows_of(recent).mean() > 3000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": 10, "reservoir": 10}, "window and reservoir exclude each other"),
        ({"half_life": 10}, "half_life needs a reservoir"),
        ({"window": 10, "half_life": 10}, "half_life needs a reservoir"),
        ({"window": 0}, "The 'window' parameter"),
        ({"window": 2**70}, "The 'window' parameter"),
        ({"window": 2.5}, "The 'window' parameter"),
        ({"reservoir": -1}, "The 'reservoir' parameter"),
        ({"reservoir": 5, "half_life": 0.5}, "The 'half_life' parameter"),
        ({"reservoir": 5, "half_life": np.nan}, "The 'half_life' parameter"),
    ],
    ids=str,
)
@each_of_all_kinds
def test_bad_limits_are_refused(kind, parameters, message):
    forest = small(kind, **parameters)
    for learn in (forest.fit, forest.partial_fit):
        with pytest.raises(ValueError, match=message):
            learn(X, Y)
    assert clone(forest).get_params() == forest.get_params()


@each_of_all_kinds
def test_a_limit_cannot_change_after_the_start(kind):
    forest = small(kind, window=100).fit(X, Y).set_params(window=50)
    for change in (
        lambda: forest.partial_fit(X, Y),
        lambda: forest.keep_latest(10),
        lambda: forest.forget(X[-1:], Y[-1:]),
    ):
        with pytest.raises(ValueError, match="window was 100 when this forest was started"):
            change()


@pytest.mark.parametrize("n_samples", [-1, 1.5, None, True, "3"])
def test_keep_latest_needs_a_whole_number(n_samples):
    forest = MondrianForestClassifier(n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match="n_samples must be a whole number"):
        forest.keep_latest(n_samples)
    assert forest.n_samples_stored_ == 600


@each_of_all_kinds
def test_keep_latest(kind):
    forest = small(kind).fit(X, Y, ids=range(600))
    assert np.array_equal(rows_of(forest.keep_latest(10**30)), X)
    assert np.array_equal(rows_of(forest.keep_latest(580)), X[20:])
    assert np.array_equal(rows_of(forest.keep_latest(40)), X[560:])
    assert forest.ids_ == set(range(560, 600))
    forest._check_trees()


@pytest.mark.heavy_under_sanitizers(reason="learns large forests for a score")
def test_forgetting_wrong_labels_restores_accuracy():
    """Wrong labels that were forgotten do not reduce accuracy."""
    wrong = (Y + 1) % 10
    clean = MondrianForestClassifier(n_estimators=50, random_state=0).fit(X[:400], Y[:400])
    forest = clone(clean).fit(X[:400], Y[:400])
    for _ in range(2):
        forest.partial_fit(X[:400], wrong[:400])
    spoiled = forest.score(X[400:], Y[400:])
    for _ in range(2):
        forest.forget(X[:400], wrong[:400])
    assert spoiled < 0.5 < clean.score(X[400:], Y[400:]) - 0.03 < forest.score(X[400:], Y[400:])
