"""The stop weight of a regressor: left-out samples choose it by the squared errors of trees."""

import io
import math
import pickle

import numpy as np
import pytest

from onlineforest import OnlineForestRegressor, load
from onlineforest._core import WEIGHT_OF_ONE, OrderFreeNumberForest, moments_of_leaves
from onlineforest._forests.orderfree import calibrated as calibrated_forest
from onlineforest._forests.orderfree.calibration import most_calibrators, pieces_to_vote
from onlineforest._forests.orderfree.number_calibration import NumberCalibration
from reference.order_free_forest import best_stop, stop_weights
from reference.order_free_numbers import OrderFreeNumbers, loss_of_stop
from support.model_files import saved

RNG = np.random.default_rng(7)
N = 1200  # stop weights 0 10 20 40 80
X = RNG.normal(size=(N, 3)).round(2).astype(np.float32)
WEAK = 0.4 * np.sign(X[:, 0] * X[:, 1]) + RNG.normal(size=N)  # weak effects
CLEAN = np.sin(3 * X[:, 0].astype(float)) * X[:, 1]
QUERIES = RNG.normal(size=(100, 3)).astype(np.float32)
WEIGHTS = RNG.integers(1, 4, N) / 2


def forest_of(y, n_trees=8, n=N, **parameters):
    return OnlineForestRegressor(n_trees, random_state=5, **parameters).fit(X[:n], y[:n])


def stop_of(forest):
    """The stop weight as a number of samples."""
    return forest._stop_weight() / WEIGHT_OF_ONE


@pytest.fixture(scope="module")
def weak():
    forest = forest_of(WEAK)
    assert stop_of(forest) >= 10
    return forest


@pytest.mark.parametrize("y", [WEAK, CLEAN], ids=["weak", "clean"])
@pytest.mark.parametrize("n", [76, 400])
def test_the_choice_is_that_of_the_definition(y, n):
    """The calibrators of 76 samples are 19, too few."""
    weights = WEIGHTS[:n] + 1
    forest = OnlineForestRegressor(8, random_state=5).fit(X[:n], y[:n], weights)
    core, total = forest._forest, weights.sum()
    plain = OrderFreeNumbers(
        list(zip(X[:n].tolist(), y[:n].tolist())), n_trees=8, seed=core.seed, min_samples_split=3,
        calibrates=True, weights=weights.tolist())  # fmt: skip
    votes = core.votes()
    stops = stop_weights(total)
    assert (votes[2] / WEIGHT_OF_ONE).tolist() == stops and len(votes[0]) == n // 4
    calibrators = {(x, word) for others in plain.left_out for x, word in others}
    held = {(x, number): w for x, number, w in zip(map(tuple, X[:n].tolist()), y, weights)}
    own = [(x, number, w) for (x, number), w in held.items() if x in {x for x, _ in calibrators}]
    losses = NumberCalibration.losses(votes).tolist()
    for k, stop in enumerate(stops):
        rows, expected = [], []
        for x, number, w in own:
            mean, _, _, n_trees = plain.predict_left_out(x, number, stop)
            assert n_trees == 2
            rows.append((number, mean, w))
            expected.append((number, w * WEIGHT_OF_ONE, mean))
        means = moments_of_leaves(votes[3][k])[0][:, 0]
        assert sorted(zip(votes[0].tolist(), votes[1].tolist(), means)) == sorted(expected)
        assert losses[k] == pytest.approx(loss_of_stop(stop, rows), rel=1e-12)
    assert stop_of(forest) == best_stop(stops, losses)
    assert (stop_of(forest) > 0) == (n == 400 and y is WEAK)


@pytest.mark.parametrize("size", [1e-100, 1e150])
def test_the_choice_does_not_depend_on_the_unit(size, weak):
    votes = weak._forest.votes()
    losses = NumberCalibration.losses(votes) * size
    scaled = votes[0] * size, *votes[1:3], votes[3] * [size, size], *votes[4:]
    assert NumberCalibration.losses(scaled) == pytest.approx(losses, rel=1e-9)


def test_votes_of_pieces_and_of_ranges_are_those_of_all(weak):
    core = weak._forest
    pieces = pieces_to_vote(most_calibrators(N, NumberCalibration))
    assert len(pieces) > 2
    of_all = core.votes(3)
    joined = NumberCalibration.joined([core.votes(1, 0, 2**52, *piece) for piece in pieces])
    for one, other in zip(joined, of_all, strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    for k, stop in enumerate(of_all[2].tolist()):
        assert np.array_equal(core.votes(1, stop, stop + 1)[3][0], of_all[3][k])


def test_trees_predict_without_light_nodes(weak):
    stop = stop_of(weak)
    nodes = weak.apply(QUERIES)
    means = np.zeros((len(QUERIES), 8))
    for i, tree in enumerate(weak.trees_):
        for k, (x, end) in enumerate(zip(QUERIES, nodes[:, i].tolist())):
            at = 0
            while tree.left[at] >= 0:
                goes_left = x[tree.split_dimension[at]] <= tree.split_location[at]
                child = tree.left[at] if goes_left else tree.right[at]
                if tree.weight[child] < stop:
                    break
                at = child
            assert at == end
            means[k, i] = tree.mean[at]
    assert any(tree.left[end] >= 0 for tree, end in zip(weak.trees_, nodes[0]))
    found = weak.predict(QUERIES)
    assert np.corrcoef(found, means.mean(axis=1))[0, 1] > 0.9  # lines make the difference
    assert found.tolist() == [weak.predict_one(x) for x in QUERIES]
    assert found.tolist() == weak._forest.predict(QUERIES, 2, weak._stop_weight())[:, 0].tolist()
    assert not np.array_equal(found, weak._forest.predict(QUERIES)[:, 0])


def test_weak_effects_are_predicted_better_and_intervals_hold():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 3))
    y = 0.4 * np.sign(x[:, 0] * x[:, 1]) + rng.normal(size=4000)
    forest = OnlineForestRegressor(30, random_state=0).fit(x[:2000], y[:2000])
    whole = OnlineForestRegressor(30, calibrate=False, random_state=0).fit(x[:2000], y[:2000])
    assert stop_of(forest) >= 10 and stop_of(whole) == 0
    error, of_whole = (np.mean((f.predict(x[2000:]) - y[2000:]) ** 2) for f in (forest, whole))
    assert error < 0.95 * of_whole
    low, high = forest.predict_interval(x[2000:]).T
    # One standard error of the share, with 500 calibrators, is sqrt(0.09 / 2000 + 0.09 / 312).
    assert abs(np.mean((low <= y[2000:]) & (y[2000:] <= high)) - 0.9) < 0.09
    assert forest.oob_score_ > OnlineForestRegressor(4, max_samples=0.5).fit(x, y).oob_score_
    assert forest.nbytes_ < whole.nbytes_


def test_clear_effects_are_predicted_by_whole_trees():
    forest = forest_of(CLEAN)
    assert stop_of(forest) == 0
    assert np.array_equal(forest.predict(QUERIES), forest._forest.predict(QUERIES)[:, 0])


def test_digest_and_trees_are_those_of_whole_trees():
    forest = forest_of(WEAK)
    whole = OrderFreeNumberForest.from_state(forest._forest.get_state())
    whole.grow_all()
    for i, tree in enumerate(forest.trees_):
        assert np.array_equal(tree.weight, whole.tree(i)["weight"])
        assert np.array_equal(tree.mean, whole.tree(i)["mean"])
    n_bytes, digest = forest.nbytes_, forest.digest_
    assert forest.verify()
    assert forest.nbytes_ <= n_bytes < whole.nbytes
    assert forest_of(WEAK).partial_fit(X[:1], WEAK[:1]).forget(X[:1], WEAK[:1]).digest_ == digest


def test_importances_are_those_of_the_nodes_that_predict(weak):
    core = pickle.loads(pickle.dumps(weak))._forest
    fresh = OrderFreeNumberForest.from_state(core.get_state())
    stop = 100 * WEIGHT_OF_ONE
    core.grow_all(1, stop)
    core.votes()  # splits lighter nodes
    pruned = core.importances(1, stop)
    assert np.array_equal(pruned, fresh.importances(1, stop))
    assert not np.array_equal(pruned, core.importances())
    assert not core.importances(1, N * WEIGHT_OF_ONE).any()  # no node but the root predicts


def test_it_lags_in_a_stream_until_an_eighth_of_the_samples_are_new():
    forest = forest_of(WEAK, n=700)
    before = forest._calibration()
    forest.partial_fit(X[700:799], 9 * CLEAN[700:799])
    assert forest._calibration() is before  # 99 are less than an eighth of 799
    forest.learn_one(X[799], 9 * CLEAN[799])
    y = np.concatenate([WEAK[:700], 9 * CLEAN[700:]])

    def same(fresh):
        answers = [each.predict_interval(QUERIES) for each in (forest, fresh)]
        return np.array_equal(*answers) and stop_of(forest) == stop_of(fresh)

    assert same(forest_of(y, n=800))
    forest.partial_fit(X[800:850], y[800:850])
    fresh = forest_of(y, n=850)
    assert forest.digest_ == fresh.digest_ and not same(fresh)
    assert np.array_equal(forest.recalibrate().predict(QUERIES), fresh.predict(QUERIES))
    assert same(fresh)


def test_an_interval_and_a_prediction_have_the_same_mean(weak):
    mean, std = weak.predict(QUERIES, return_std=True)
    assert np.array_equal(mean, weak.predict(QUERIES)) and (std > 0).all()
    one, deviation = weak.predict_one(QUERIES[0], return_std=True)
    assert (one, deviation) == (mean[0], std[0])
    found = weak._calibration()
    middle = found.quantile(0.5)
    moments = weak._forest.predict(QUERIES, 1, found.stop_weight)
    expected = mean + middle * found.deviations(moments, 8)
    assert np.array_equal(weak.predict_quantiles(QUERIES, 0.5), expected)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_work_that_a_stream_does_ahead_changes_nothing(seconds, monkeypatch):
    monkeypatch.setattr(calibrated_forest, "_SECONDS_TO_VOTE", seconds)
    forest, are_done = forest_of(WEAK, n=700), []
    for i in range(700, 900):
        forest.predict_one(X[i])
        forest.learn_one(X[i], WEAK[i])
        if forest._demand.ahead is not None:
            are_done.append(forest._demand.ahead[1].is_done)
    assert are_done == [seconds > 0]
    other = forest_of(WEAK, n=800).partial_fit(X[800:900], WEAK[800:900])
    assert np.array_equal(forest.predict_interval(QUERIES), other.predict_interval(QUERIES))


def test_a_window_is_calibrated_before_its_samples_leave():
    forest = OnlineForestRegressor(8, window=400, random_state=5)
    forest.partial_fit(X[:500], WEAK[:500])
    by_one = OnlineForestRegressor(8, window=400, random_state=5)
    for i in range(500):
        by_one.learn_one(X[i], WEAK[i])
        if i % 3 == 0:
            by_one.predict_one(X[i])
    assert np.array_equal(forest.predict_interval(QUERIES), by_one.predict_interval(QUERIES))
    assert saved(forest) == saved(by_one)


def test_files_and_pickles_keep_a_calibration_that_lags(weak):
    forest = pickle.loads(pickle.dumps(weak)).partial_fit(X[:100] + 9, CLEAN[:100])
    fresh = pickle.loads(pickle.dumps(forest)).recalibrate()
    for copy in (load(io.BytesIO(saved(forest))), pickle.loads(pickle.dumps(forest))):
        assert stop_of(copy) == stop_of(forest) == stop_of(weak)
        for name in ("predict", "predict_quantiles", "predict_interval"):
            answers = [getattr(each, name)(QUERIES) for each in (forest, copy)]
            assert np.array_equal(*answers)
        assert not np.array_equal(fresh.predict_interval(QUERIES), copy.predict_interval(QUERIES))


def test_a_calibration_as_values_of_json(weak):
    found = weak._calibration()
    again = NumberCalibration.from_plain(found.plain())
    assert again.plain() == found.plain() and again.spread == found.spread
    assert np.array_equal(again.errors, found.errors) and np.array_equal(again.ends, found.ends)
    none = NumberCalibration(stop_weight=0)
    assert NumberCalibration.from_plain(none.plain()) == none


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stop_weight": -1}, "stop weight"),
        ({"stop_weight": 2**52 + 1}, "stop weight"),
        ({"stop_weight": 1.0}, "cannot be read"),
        ({"scale": 0.0}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"share": 1.5}, "share"),
        ({"means": [1.0, -1.0]}, "means"),
        ({"means": [1.0]}, "cannot be read"),
        ({"errors": [1.0]}, "must have as many of each"),
        ({"errors": [2.0, 1.0]}, "do not increase"),
        ({"errors": [1.0, math.inf]}, "errors"),
        ({"units": [0, 1]}, "units"),
        ({"errors": [0.0] * 2049, "units": [1] * 2049}, "at most 2048"),
        ({"more": 1}, "cannot be read"),
        ({"level_share": 2.5}, "level share"),
        ({"strengths": [-1.0]}, "strengths"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused(change, message):
    plain = {"stop_weight": 0, "scale": 1.0, "share": 0.5, "means": [1.0, 1.0],
             "errors": [-1.0, 2.0], "units": [5, 5],
             "level_share": 0.5, "strengths": [3.0]}  # fmt: skip
    assert NumberCalibration.from_plain(plain).errors is not None
    with pytest.raises(ValueError, match=message):
        NumberCalibration.from_plain(plain | change)


@pytest.mark.parametrize("parameters", [{"calibrate": False}, {"n_estimators": 4}])
def test_without_calibration_trees_predict_as_a_whole(parameters):
    forest = OnlineForestRegressor(**({"n_estimators": 8} | parameters)).fit(X, WEAK)
    assert stop_of(forest) == 0 and forest._found() == NumberCalibration()
    assert forest.recalibrate()._fitted is None


def test_the_first_batch_of_a_stream_grows_nothing_before_it_is_calibrated():
    forest = OnlineForestRegressor(8, random_state=5).partial_fit(X, WEAK)
    n_bytes = forest.nbytes_
    forest.predict(QUERIES)
    assert n_bytes < forest.nbytes_ < forest_of(WEAK, calibrate=False).nbytes_


def test_a_forest_without_samples_is_calibrated_too():
    forest = forest_of(WEAK, n=200).keep_latest(0).recalibrate()
    assert stop_of(forest) == 0
    assert forest.learn_one(X[0], 3.0).predict(QUERIES[:1]).tolist() == [3.0]


@pytest.mark.parametrize("stop", [-1, 2**52 + 1])
def test_an_impossible_stop_weight_is_refused(stop, weak):
    core = weak._forest
    for call in (
        lambda: core.predict(QUERIES, 1, stop),
        lambda: core.predict_one(QUERIES[0], stop),
        lambda: core.leaves(QUERIES, 1, stop),
        lambda: core.left_out_leaves(0, 9, 1, stop),
        lambda: core.apply(QUERIES, 1, stop),
        lambda: core.grow_all(1, stop),
        lambda: core.importances(1, stop),
        lambda: core.left_out(1, stop),
    ):
        with pytest.raises(ValueError, match=rf"stop_weight must be in \[0, .*\], got {stop}"):
            call()
