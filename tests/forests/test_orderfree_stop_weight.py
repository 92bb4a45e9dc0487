"""The stop weight: trees predict without lighter nodes, and left-out samples choose it."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import log_loss

from onlineforest import OnlineForestClassifier, load
from onlineforest._core import (
    WEIGHT_OF_ONE,
    OrderFreeLabelForest,
    calibration_by,
    losses_of_stops,
)
from onlineforest._forests.orderfree.calibration import ALL_CALIBRATORS, Poll, pieces_to_vote
from onlineforest._forests.orderfree.label_calibration import LabelCalibration
from reference.order_free_forest import (
    OrderFreeForest,
    best_stop,
    is_left_out_voter,
    loss_of_stop,
    stop_weights,
)

RNG = np.random.default_rng(7)
N = 3000  # stop weights 0 10 20 40 80 160
X = RNG.normal(size=(N, 3)).round(2).astype(np.float32)
WEAK = (RNG.random(N) < 0.5 + 0.1 * np.sign(X[:, 0] + X[:, 1])).astype(int)  # weak effects
CLEAN = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0.3)
RARE = (np.arange(N) % 40 == 7).astype(int)
QUERIES = RNG.normal(size=(200, 3)).astype(np.float32)


def forest_of(y, n_trees=12, n=N, **parameters):
    return OnlineForestClassifier(n_trees, random_state=5, **parameters).fit(X[:n], y[:n])


def stop_of(forest):
    """The stop weight as a number of samples."""
    return forest._how(calibrated=False)[2] / WEIGHT_OF_ONE


@pytest.fixture(scope="module")
def weak():
    forest = forest_of(WEAK)
    assert stop_of(forest) >= 10
    return forest


def losses_by_definition(n, y):
    """The stop weights and their losses, by the plain forest."""
    samples = [(row, int(label), int(label)) for row, label in zip(X[:n], y[:n])]
    core = forest_of(y, n=n)._forest
    codes = {code: core.known_labels[code] for code in range(core.n_labels)}
    samples = [(row, int(codes[label]), label) for row, _, label in samples]
    plain = OrderFreeForest(
        samples, n_trees=12, seed=core.seed, n_codes=core.n_labels, calibrates=True
    )
    held = {(tuple(map(float, x)), word): code for x, word, code in samples}
    return core, plain, held


def test_the_choice_is_that_of_the_definition():
    n = 900
    for y in (WEAK, CLEAN, RARE):
        core, plain, held = losses_by_definition(n, y)
        voters = [plain.trees[i] for i in range(12) if is_left_out_voter(i)]
        _, true, units, stops, votes, *_ = whole = core.votes()
        assert (stops / WEIGHT_OF_ONE).tolist() == stop_weights(n) == [0, 10, 20, 40, 80]
        found = losses_of_stops(*whole).tolist()
        if y is RARE:
            assert 1 <= true[::2].sum() < 4 and not any(found[:1])
        for k, stop in enumerate(stop_weights(n)):
            expected = sorted(
                (held[x, word], *masses, rest)
                for x, word in plain.left_out[0]
                for masses, rest in [plain.masses(x, voters, stop)]
            )
            assert sorted(map(tuple, np.column_stack([true, votes[k]]).tolist())) == expected
            shares = core.finish(np.ascontiguousarray(votes[k]))[1].tolist()
            rows = list(zip(shares, true.tolist(), (units / WEIGHT_OF_ONE).tolist()))
            assert found[k] == pytest.approx(loss_of_stop(stop, rows), abs=0.05)
        assert stop_of(forest_of(y, n=n)) == best_stop(stop_weights(n), found)
    assert best_stop([0, 10, 20, 40, 80, 160], [1, 2, 3, 4, 6, 5]) == 160
    assert best_stop([0, 10, 20, 40, 80, 160], [1, 2, 3, 4, 5, 5]) == 0
    assert best_stop([0, 10], [2, 1]) == 10


@pytest.mark.parametrize("total", [0, 99, 100, 799, 800, 1600, 10**6])
def test_stop_weights_are_a_function_of_the_total_weight(total):
    core = OrderFreeLabelForest(10, 1, seed=0, calibrates=True)
    core.set_labels(np.zeros(1, np.uint64), np.zeros(1, np.uint8))
    if total:
        core.learn(np.zeros((1, 1), np.float32), np.zeros(1, np.int32), 1, np.array([total << 16]))
    stops = core.votes()[3] / WEIGHT_OF_ONE
    assert stops.tolist() == stop_weights(total)
    assert stops[-1] <= total / 10 < max(2 * stops[-1], 10)


class Recorded:
    """Votes of a forest about stop weights with given losses, and which were asked about."""

    def __init__(self, losses, monkeypatch):
        self.losses, self.asked = losses, []
        module = "onlineforest._forests.orderfree.label_calibration.losses_of_stops"
        monkeypatch.setattr(module, lambda *votes: np.array([losses[s] for s in votes[3] >> 16]))

    def __call__(self, least, limit, begin, end):
        stops = [s for s in self.losses if least <= s << 16 < limit]
        self.asked.append(stops)
        masses = np.zeros((len(stops), 1, 3), np.uint64)
        one = np.zeros(1, np.int32)
        stops = np.array(stops, np.int64) << 16
        return one, one, one.astype(np.int64), stops, masses, masses, np.empty((1, 0))


@pytest.mark.parametrize("n_labels", [2, 600])
def test_small_stop_weights_are_asked_about_only_if_the_least_large_one_is_best(
    n_labels, monkeypatch
):
    stops, small, large = [0, 10, 20, 40, 80, 160, 320], [0, 10, 20, 40], [80, 160, 320]
    for losses, best, asked in [
        ([0, 0, 0, 0, 3, 2, 4], 160, large),
        ([0, 0, 0, 0, 3, 3, 2], 320, large),
        ([5, 4, 6, 4, 3, 3, 4], 80, large + small),
        ([5, 4, 6, 4, 4, 5, 5], 10, large + small),
        ([5, 4, 6, 3], 40, small),
        ([5], 0, [0]),
    ]:
        ask = Recorded(dict(zip(stops, losses)), monkeypatch)
        votes = Poll(LabelCalibration, is_stepwise=n_labels > 500).votes(ask)
        assert votes[3].tolist() == [best << 16] and len(votes[4]) == len(votes[5]) == 1
        assert [stop for some in ask.asked for stop in some] == asked
        groups = (
            [[stop] for stop in asked]
            if n_labels > 500
            else [[stop for stop in asked if stop in some] for some in (large, small)]
        )
        assert [some for some in ask.asked if some] == [some for some in groups if some]


def test_a_poll_of_one_stop_weight_at_a_time_finds_the_same(weak):
    core = weak._forest

    def ask(least, limit, begin, end):
        return core.votes(1, least, limit, begin, end)

    ways = [
        (pieces, {"is_stepwise": is_stepwise})
        for is_stepwise in (False, True)
        for pieces in ([ALL_CALIBRATORS], pieces_to_vote(N // 8))
    ]
    polls = [Poll(LabelCalibration, pieces, **how) for pieces, how in ways]
    expected, *others = (poll.votes(ask) for poll in polls)
    for votes in others:
        for one, other in zip(votes, expected, strict=True):
            assert np.array_equal(one, other)


def test_votes_are_what_trees_say_that_stop_there(weak):
    """One descent for all stop weights gives what each of them alone gives."""
    core = weak._forest
    of_all = core.votes()
    for k, stop in enumerate(of_all[3].tolist()):
        of_one = core.votes(2, stop, stop + 1)
        for i in (4, 5):
            assert np.array_equal(of_one[i], of_all[i][k : k + 1])


def test_trees_predict_without_light_nodes(weak):
    stop = stop_of(weak)
    nodes = weak.apply(QUERIES)
    for i, tree in enumerate(weak.trees_):
        for x, end in zip(QUERIES, nodes[:, i].tolist()):
            at = 0
            while tree.left[at] >= 0:
                goes_left = x[tree.split_dimension[at]] <= tree.split_location[at]
                child = tree.left[at] if goes_left else tree.right[at]
                if tree.weight[child] < stop:
                    break
                at = child
            assert at == end
    assert any(tree.left[end] >= 0 for tree, end in zip(weak.trees_, nodes[0]))
    how = weak._how(calibrated=False)
    _, raw = weak._forest.predict(QUERIES, 1, *how)
    raw = raw[:, weak._targets.codes.codes]
    assert np.array_equal(weak.predict(QUERIES), weak.classes_[raw.argmax(axis=1)])
    assert not np.array_equal(raw, weak._forest.predict(QUERIES)[1])


def test_weak_effects_are_predicted_better():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(2, 6000, 3))
    y, labels = ((rng.random(6000) < 0.5 + 0.15 * np.sign(z[:, 0] + z[:, 1])) for z in (x, new))
    forest = OnlineForestClassifier(30, random_state=0).fit(x, y)
    whole = OnlineForestClassifier(30, calibrate=False, random_state=0).fit(x, y)
    assert stop_of(forest) >= 10 and stop_of(whole) == 0
    assert forest.score(new, labels) > whole.score(new, labels) + 0.01
    assert log_loss(labels, forest.predict_proba(new)) < 0.68
    assert forest.oob_score_ > 0.6
    assert forest.nbytes_ < 0.8 * whole.nbytes_


def test_clear_classes_are_predicted_by_whole_trees():
    assert stop_of(forest_of(CLEAN)) <= 10


def test_digest_and_trees_are_those_of_whole_trees_and_leave_no_memory():
    forest = forest_of(WEAK)
    n_bytes = forest.nbytes_
    whole = OrderFreeLabelForest.from_state(forest._forest.get_state())
    whole.grow_all()
    for i, tree in enumerate(forest.trees_):
        assert np.array_equal(tree.weight, whole.tree(i)["weight"])
    digest = forest.digest_
    assert forest.verify()
    assert forest.nbytes_ <= n_bytes < 0.85 * whole.nbytes
    assert forest_of(WEAK).partial_fit(X[:1], WEAK[:1]).forget(X[:1], WEAK[:1]).digest_ == digest


def test_trees_grow_as_far_as_they_are_asked(weak):
    core = pickle.loads(pickle.dumps(weak))._forest
    sizes = []
    for stop in (0, 100, 20, 100):
        core.grow_all(1, stop * WEIGHT_OF_ONE)
        sizes.append(core.nbytes)
    assert sizes[1] == pytest.approx(sizes[3], rel=0.01)
    assert sizes[1] < 0.9 * sizes[2] < 0.8 * sizes[0]


def test_importances_are_those_of_the_nodes_that_predict(weak):
    core = weak._forest
    whole, pruned = core.importances(), core.importances(1, 100 * WEIGHT_OF_ONE)
    assert not np.array_equal(whole, pruned)
    root = core.importances(1, N * WEIGHT_OF_ONE)
    assert not root.any()  # no node but the root predicts
    mean = core.importances(1, weak._how(calibrated=False)[2])
    total = np.zeros(3)
    for tree in mean:
        total += tree / len(mean)
    total = np.maximum(total, 0)
    assert np.allclose(weak.feature_importances_, total / total.sum())


def test_classes_lag_as_the_stop_weight_does():
    forest = forest_of(CLEAN, n=800)
    before = stop_of(forest)
    noise = np.random.default_rng(0).integers(4, size=N)
    forest.partial_fit(X[800:900], noise[800:900])
    assert stop_of(forest) == before
    forest.partial_fit(X[900:], noise[900:])
    labels = np.concatenate([CLEAN[:800], noise[800:]])
    other = OnlineForestClassifier(12, random_state=5).fit(X, labels)
    assert stop_of(forest.recalibrate()) == stop_of(other)
    assert np.array_equal(forest.predict(QUERIES), other.predict(QUERIES))


def test_files_and_pickles_keep_a_stop_weight_that_lags(tmp_path, weak):
    forest = pickle.loads(pickle.dumps(weak)).partial_fit(X[:100] + 9, CLEAN[:100])
    forest._fitted = forest._fitted.with_found(forest._fitted.found)
    forest.save(tmp_path / "forest")
    for copy in (load(tmp_path / "forest"), pickle.loads(pickle.dumps(forest))):
        assert stop_of(copy) == stop_of(forest) == stop_of(weak)
        assert np.array_equal(copy.predict(QUERIES), forest.predict(QUERIES))


def test_sets_are_as_wide_as_the_other_calibrators_need(weak):
    _, labels, *_ = weak._forest.votes()
    assert len(weak._fitted.found.scores.scores) == len(labels) // 2


@pytest.mark.parametrize("parameters", [{"calibrate": False}, {"n_estimators": 9}])
def test_without_calibration_trees_predict_as_a_whole(parameters):
    forest = OnlineForestClassifier(**({"n_estimators": 12} | parameters)).fit(X, WEAK)
    assert forest._how(calibrated=True) == (1.0, 0.0, 0, 0.0)


def test_the_first_batch_of_a_stream_grows_nothing_before_it_is_calibrated():
    forest = OnlineForestClassifier(12, random_state=5).partial_fit(X, WEAK)
    n_bytes = forest.nbytes_
    forest.predict(QUERIES)
    assert n_bytes < forest.nbytes_ < forest_of(WEAK, calibrate=False).nbytes_


@pytest.mark.parametrize("stop", [-1, 2**52 + 1])
def test_an_impossible_stop_weight_is_refused(stop, weak):
    core, how = weak._forest, rf"stop_weight must be in \[0, .*\], got {stop}"
    for call in (
        lambda: core.predict(QUERIES, 1, 1.0, 0.0, stop),
        lambda: core.masses(QUERIES, 1, stop),
        lambda: core.apply(QUERIES, 1, stop),
        lambda: core.grow_all(1, stop),
        lambda: core.importances(1, stop),
        lambda: core.left_out(1, stop),
    ):
        with pytest.raises(ValueError, match="stop_weight must be in"):
            call()
    with pytest.raises(ValueError, match=how):
        core.grow_all(1, stop)


def test_votes_with_several_stop_weights_cannot_be_fitted(weak):
    with pytest.raises(ValueError, match="the votes have 6 stop weights; exactly 1 is needed"):
        calibration_by(*weak._forest.votes(), 12)
