"""Calibrated probabilities of the order-free classifier."""

import json
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from onlineforest import OnlineForestClassifier, load
from onlineforest._core import WEIGHT_OF_ONE, calibration_by
from onlineforest._forests import forgetting
from onlineforest._forests.orderfree import calibrated as calibrated_forest
from onlineforest._forests.orderfree.calibration import (
    N_AHEAD,
    most_calibrators,
    pieces_ahead,
    pieces_to_vote,
)
from onlineforest._forests.orderfree.classes import Classes
from onlineforest._forests.orderfree.copies import relabelled, with_columns
from onlineforest._forests.orderfree.label_calibration import LabelCalibration
from reference.order_free_forest import (
    OrderFreeForest,
    best_power,
    calibrated,
    is_left_out_voter,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 4)).round(2).astype(np.float32)
P = 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1] - X[:, 2]))
Y = np.where(RNG.random(900) < P, "yes", np.where(X[:, 3] > 1.2, "rare", "no"))
QUERIES = RNG.normal(size=(200, 4)).astype(np.float32)


def forest_of(n_trees=12, **parameters):
    return OnlineForestClassifier(n_trees, random_state=5, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return forest_of().fit(X, Y)


def same(forest, other):
    return np.array_equal(forest.predict_proba(QUERIES), other.predict_proba(QUERIES))


def test_the_calibration_is_that_of_the_definition():
    """Votes to the bit; the power as near as a search among many shows it."""
    n_trees = 12
    rows = np.concatenate([X[:300], X[:30]])  # some samples twice
    labels = np.concatenate([Y[:300], Y[:30]])
    forest = forest_of(n_trees, min_samples_split=2).fit(rows, labels)
    core = forest._forest
    table: Classes = forest._targets
    codes = table.codes.encode(labels)
    hashes = table.hashes.tolist()
    samples = [(row, hashes[code], int(code)) for row, code in zip(rows, codes)]
    plain = OrderFreeForest(
        samples, n_trees=n_trees, seed=core.seed, n_codes=3, calibrates=True
    )  # fmt: skip
    voters = [i for i in range(n_trees) if is_left_out_voter(i)]
    assert voters == [0, 2, 4, 6, 8]
    assert len(plain.left_out[0]) == len({(*x, y) for x, y in zip(rows.tolist(), labels)}) // 8
    of_one = core.votes(1, 0, 1)
    held_codes, true, units, _, (votes,), (half,), evidence = of_one
    assert evidence.shape == (len(true), 0)  # no feature is categorical
    assert sorted(held_codes) == [0, 1, 2]
    weights = units / WEIGHT_OF_ONE
    held = {(point, word): code for point, word, code in map(as_key, samples)}
    for got, asked in ((votes, voters), (half, [0, 4, 8])):
        expected = []
        for point, word in plain.left_out[0]:
            masses, rest = plain.masses(point, [plain.trees[i] for i in asked])
            expected.append((held[point, word], *masses, rest))
        assert sorted(map(tuple, np.column_stack([true, got]).tolist())) == sorted(expected)
    assert weights.sum() == sum(
        np.sum((rows == np.float32(point)).all(axis=1) & (codes == held[point, word]))
        for point, word in plain.left_out[0]
    )
    spread = 1 / (len(true) + 2)
    powers = [
        best_power(list(zip(core.finish(sums)[1].tolist(), true, weights)), spread)
        for sums in (votes, half)
    ]
    ratio = (1 / 5 - 1 / n_trees) / (1 / 3 - 1 / 5)
    power = powers[0] * (powers[0] / powers[1]) ** ratio
    of_all, of_voters, found_spread, level_power = calibration_by(*of_one, core.n_trees)
    assert level_power == 0.0
    assert of_voters == pytest.approx(powers[0], rel=0.02)
    found = of_all, found_spread
    assert found[0] == pytest.approx(power, rel=0.04)  # the search among many has steps of 1 %
    assert found[1] == spread
    _, raw = core.predict(QUERIES)
    want = [calibrated(row, *found) for row in raw.tolist()]
    _, got = core.predict(QUERIES, 1, *found)
    assert np.allclose(got, want, rtol=1e-12, atol=1e-12)


def as_key(sample):
    row, word, code = sample
    return tuple(float(value) for value in row), word, code


def test_probabilities_get_sharper_and_better():
    images, digits = load_digits(return_X_y=True)
    plain = OnlineForestClassifier(40, calibrate=False, random_state=0)
    plain.fit(images[:1000], digits[:1000])
    forest = OnlineForestClassifier(40, random_state=0).fit(images[:1000], digits[:1000])
    loss = log_loss(digits[1000:], forest.predict_proba(images[1000:]))
    assert loss < 0.6 * log_loss(digits[1000:], plain.predict_proba(images[1000:]))
    scores = [each.score(images[1000:], digits[1000:]) for each in (forest, plain)]
    assert abs(scores[0] - scores[1]) < 0.02


def test_noise_makes_probabilities_less_sure():
    labels = RNG.integers(2, size=900)
    forest, plain = forest_of(30).fit(X, labels), forest_of(30, calibrate=False).fit(X, labels)
    new = RNG.integers(2, size=200)
    assert log_loss(new, forest.predict_proba(QUERIES)) < log_loss(
        new, plain.predict_proba(QUERIES)
    )


def test_the_best_class_stays(fitted):
    probabilities = fitted.predict_proba(QUERIES)
    assert np.array_equal(fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(QUERIES))
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    one = [fitted.predict_proba_one(x) for x in QUERIES]
    assert np.array_equal(one, probabilities)


def test_without_calibration_probabilities_are_the_mean_of_trees():
    forest = forest_of(calibrate=False).fit(X, Y)
    _, raw = forest._forest.predict(QUERIES)  # in the order of codes
    raw = raw[:, forest._targets.codes.codes]
    assert np.array_equal(forest.predict_proba(QUERIES), raw)
    with pytest.raises(AttributeError, match="calibrate=True"):
        _ = forest.oob_score_


@pytest.mark.parametrize("n_samples", [1, 7, 159])
def test_few_samples_calibrate_nothing(n_samples):
    forest = forest_of().fit(X[:n_samples], Y[:n_samples])
    assert forest._how(calibrated=True) == (1.0, 0.0, 0, 0.0)


def test_few_trees_calibrate_nothing():
    few, plain = forest_of(9).fit(X, Y), forest_of(9, calibrate=False).fit(X, Y)
    assert same(few, plain)


def test_one_class():
    forest = forest_of().fit(X, np.full(900, "yes"))
    assert np.array_equal(forest.predict_proba(QUERIES), np.ones((200, 1)))


def test_it_does_not_depend_on_order_threads_or_codes(fitted):
    by_label = np.argsort(Y)[::-1]  # "yes" comes first and has the code 0
    for n_jobs, size, order in [
        (1, 900, RNG.permutation(900)),
        (3, 250, RNG.permutation(900)),
        (2, 33, by_label),
    ]:
        forest = forest_of(n_jobs=n_jobs)
        for start in range(0, 900, size):
            chosen = order[start : start + size]
            forest.partial_fit(X[chosen], Y[chosen])
        assert same(forest.recalibrate(), fitted)
    assert forest._targets.codes.code_of("yes") == 0 != fitted._targets.codes.code_of("yes")


def test_it_lags_in_a_stream_until_an_eighth_of_the_samples_are_new():
    forest = forest_of().fit(X[:700], Y[:700])
    before = forest._how(calibrated=True)
    forest.partial_fit(X[700:799], Y[700:799])
    assert forest._how(calibrated=True) == before  # 99 are less than an eighth of 799
    assert not same(forest, forest_of().fit(X[:799], Y[:799]))
    assert same(forest.learn_one(X[799], Y[799]), forest_of().fit(X[:800], Y[:800]))
    forest.partial_fit(X[800:850], Y[800:850])
    assert not same(forest, forest_of().fit(X[:850], Y[:850]))
    assert same(forest.recalibrate(), forest_of().fit(X[:850], Y[:850]))


def test_a_batch_counts_as_cut_where_the_calibration_is_due():
    forest = forest_of().fit(X[:700], Y[:700])
    forest.partial_fit(X[700:], Y[700:])
    due = forest_of().fit(X[:800], Y[:800]).partial_fit(X[800:], Y[800:])
    assert forest._how(calibrated=True) == due._how(calibrated=True)
    assert same(forest, due)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_work_that_a_stream_does_ahead_changes_nothing(seconds, monkeypatch):
    """Trees are asked when the calibration is due, or the next call asks about the rest."""
    monkeypatch.setattr(calibrated_forest, "_SECONDS_TO_VOTE", seconds)
    forest, are_done = forest_of().fit(X[:700], Y[:700]), []
    for i in range(700, 900):
        forest.predict_proba_one(X[i])
        forest.learn_one(X[i], Y[i])
        if forest._demand.ahead is not None:
            are_done.append(forest._demand.ahead[1].is_done)
    assert are_done == [seconds > 0]  # 700 + 100 samples: the next ones are due at 915
    assert same(forest, forest_of().fit(X[:800], Y[:800]).partial_fit(X[800:], Y[800:]))


def test_votes_that_a_stream_has_asked_ahead_leave_with_forgotten_samples(monkeypatch):
    monkeypatch.setattr(calibrated_forest, "_SECONDS_TO_VOTE", 1e9)
    forest = forest_of().fit(X[:700], Y[:700])
    for i in range(700, 800):
        forest.predict_proba_one(X[i])
        forest.learn_one(X[i], Y[i])
    assert forest._demand.ahead is not None
    forest.forget(X[:1], Y[:1])
    assert forest._demand.ahead is None


@pytest.mark.parametrize("n_samples", [0, 8, 255, 256, 900, 16_376, 16_384, 10**6])
def test_pieces_hold_all_calibrators(n_samples):
    n = min(n_samples // 8, 256 + n_samples // 32, 2048)
    most = most_calibrators(n_samples, LabelCalibration)
    pieces, ahead = pieces_to_vote(most), pieces_ahead(most)
    assert [begin for begin, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] >= n and len(ahead) <= N_AHEAD
    for size in (32, 128):
        places = [i for begin, end in ahead for i in range(begin, end) if end - begin == size]
        assert sorted(places) == list(range(len(places))) and len(places) >= n


def test_votes_of_pieces_are_those_of_all(fitted):
    core = fitted._forest
    pieces = pieces_to_vote(most_calibrators(core.n_samples, LabelCalibration))
    joined = LabelCalibration.joined([core.votes(1, 0, 2**52, *piece) for piece in pieces])
    assert joined[3].tolist() == [0, *(n * WEIGHT_OF_ONE for n in (10, 20, 40, 80))]

    def ask(*what):
        return core.votes(1, *what)

    polls = LabelCalibration.poll(core), LabelCalibration.poll(core, pieces)
    of_all, of_pieces = (poll.votes(ask) for poll in polls)
    for pair in (joined, core.votes()), (of_all, of_pieces):
        for one, other in zip(*pair, strict=True):
            assert one.dtype == other.dtype and np.array_equal(one, other)


def test_a_forest_without_samples_is_calibrated_too():
    forest = forest_of().fit(X[:200], Y[:200]).keep_latest(0).recalibrate()
    assert forest._how(calibrated=True) == (1.0, 0.0, 0, 0.0)
    assert same(forest.learn_one(X[0], "yes"), forest_of().partial_fit(X[:1], ["yes"]))
    declared = forest_of().partial_fit(X[:1], ["no"], classes=["no", "yes"]).keep_latest(0)
    assert np.array_equal(declared.predict_proba(QUERIES), np.full((200, 2), 0.5))


@pytest.mark.parametrize("name", ["predict", "predict_one"])
def test_classes_need_the_stop_weight(name):
    forest = forest_of().partial_fit(X, Y)
    assert forest._fitted.found is None
    getattr(forest, name)(QUERIES if name == "predict" else QUERIES[0])
    assert forest._fitted.found is not None


def test_declared_classes_do_not_change_what_was_fitted(fitted):
    forest = forest_of().fit(X, Y)
    forest.partial_fit(X[:1], Y[:1], classes=["other", *Y], sample_weight=[0.0])
    assert forest._how(calibrated=True) == fitted._how(calibrated=True)
    assert same(pickle.loads(pickle.dumps(forest)), forest)
    assert forest.recalibrate()._how(calibrated=True) == fitted._how(calibrated=True)
    assert forest.predict_proba(QUERIES).shape == (200, 4)


def test_a_window_is_calibrated_by_what_it_holds():
    forest = forest_of(window=300)
    for start in range(0, 900, 20):
        forest.partial_fit(X[start : start + 20], Y[start : start + 20])
        forest.predict_proba(QUERIES[:2])
    assert same(forest.recalibrate(), forest_of().fit(X[600:], Y[600:]))


@pytest.mark.parametrize("how", ["rows", "ids", "latest"])
def test_what_is_forgotten_leaves_the_calibration_at_once(how):
    forest = forest_of().fit(X, Y, ids=range(900))
    forest.predict_proba(QUERIES)
    if how == "rows":
        forest.forget(X[:1], Y[:1])
    elif how == "ids":
        forest.forget(ids=[0])
    else:
        forest.keep_latest(899)
    assert same(forest, forest_of().fit(X[1:], Y[1:]))


def test_a_refused_call_leaves_the_calibration():
    forest = forest_of().fit(X[:800], Y[:800]).partial_fit(X[800:820], Y[800:820])
    before = forest._fitted
    for refused in (
        lambda: forest.forget([[9.0, 9.0, 9.0, 9.0]], ["yes"]),
        lambda: forest.forget(ids=["nobody"]),
        lambda: forest.forget(ids=[1.5]),
        lambda: forest.forget(ids=7),
        lambda: forest.partial_fit(X[:2], [None, "yes"]),
    ):
        with pytest.raises((TypeError, ValueError)):
            refused()
        assert forest._fitted is before is not None


def test_an_interrupt_before_anything_is_forgotten_leaves_the_calibration(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    forest = forest_of().fit(X[:800], Y[:800], ids=range(800)).partial_fit(X[800:820], Y[800:820])
    before = forest._fitted
    monkeypatch.setattr(forgetting, "_forget_ids", interrupt)
    with pytest.raises(KeyboardInterrupt):
        forest.forget(ids=[0])
    assert forest._fitted is before is not None


def test_uniting_forests_calibrates_by_all_samples(fitted):
    one, other = forest_of().fit(X[:850], Y[:850]), forest_of().fit(X[850:], Y[850:])
    assert same(one.learn_from(other), fitted)


def test_a_copy_with_other_columns_or_labels_is_calibrated_anew(fitted):
    order = [1, 0, 3, 2]
    copy, other = with_columns(fitted, order), forest_of().fit(X[:, order], Y)
    assert same(copy, other)
    copy, other = relabelled(fitted, str.upper), forest_of().fit(X, np.char.upper(Y))
    assert same(copy, other)


def test_files_and_pickles_keep_a_calibration_that_lags(tmp_path):
    forest = forest_of().fit(X[:800], Y[:800]).partial_fit(X[800:820], Y[800:820])
    assert forest._fitted.arrival == 800
    forest.save(tmp_path / "forest")
    for copy in (load(tmp_path / "forest"), pickle.loads(pickle.dumps(forest))):
        assert copy._fitted.found.plain() == forest._fitted.found.plain()
        sets = [each.predict_set(QUERIES, 0.8, per_class=True) for each in (copy, forest)]
        assert np.array_equal(*sets)
        assert same(copy, forest)
        forest_too = pickle.loads(pickle.dumps(forest))
        assert same(copy.partial_fit(X[820:], Y[820:]), forest_too.partial_fit(X[820:], Y[820:]))


def test_equal_forests_have_equal_files(tmp_path, fitted):
    other = forest_of().partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:]).recalibrate()
    fitted.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


LAGGING = {"arrival": 850, "held": 850, "power": 2.0, "spread": 0.1, "stop_weight": 655360} | {
    "labels": [7, 2**64 - 1], "scores": [0.0, 0.5], "units": [65536, 1]
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"arrival": 901}, {"arrival": -1, "held": 0}, {"arrival": 700}, {"arrival": True},
     {"arrival": 850.0}, {"held": 851}, {"held": -1}, {"held": "850"}, {"power": 0.0},
     {"power": 1e9}, {"power": 2}, {"spread": 1.5}, {"spread": float("nan")}, {"labels": [7]},
     {"stop_weight": -1}, {"stop_weight": 2**53}, {"stop_weight": 10.0}, {"stop_weight": True},
     {"labels": [7, 2**64]}, {"labels": [7, -1]}, {"labels": [7.0, 8]}, {"labels": "ab"},
     {"scores": [0.5, 0.0]}, {"scores": [0.0, float("nan")]}, {"scores": [0, 0.5]},
     {"scores": [0.0, 7.0]}, {"units": [0, 1]}, {"units": [1, True]}, {"units": [1, 2**60]},
     {"other": 1}, {"labels": 2049 * [1], "scores": 2049 * [0.0], "units": 2049 * [1]}],
    ids=str,
)  # fmt: skip
def test_an_impossible_calibration_in_a_file_is_refused(change, fitted):
    copy = pickle.loads(pickle.dumps(fitted))

    def take(calibration):
        metadata = fitted._own_metadata() | {"calibration": calibration}
        copy._take_own_metadata({key: json.dumps(value) for key, value in metadata.items()})

    take(LAGGING)
    assert copy._fitted.found.plain() == {
        name: LAGGING[name]
        for name in ("power", "spread", "stop_weight", "labels", "scores", "units")
    }
    with pytest.raises(ValueError, match=r"calibration|fitted"):
        take(LAGGING | change)
    for other in ([900, 2.0, 0.1], [], 7, "x", {}, {"power": 2.0}):
        with pytest.raises(ValueError, match="its calibration cannot be read"):
            take(other)


def test_a_forest_that_calibrates_nothing_has_no_calibration_in_its_file():
    plain = forest_of(9).fit(X, Y)
    metadata = plain._own_metadata()
    assert metadata["calibration"] is None
    texts = {key: json.dumps(value) for key, value in metadata.items()}
    with pytest.raises(ValueError, match="although its parameters allow none"):
        plain._take_own_metadata(texts | {"calibration": json.dumps(LAGGING)})


def test_left_out_samples_give_a_score(fitted):
    probabilities = fitted.oob_decision_function_
    are_left_out = ~np.isnan(probabilities).any(axis=1)
    assert 100 < are_left_out.sum() < 130
    best = fitted.classes_[probabilities[are_left_out].argmax(axis=1)]
    assert fitted.oob_score_ == np.mean(best == Y[are_left_out])
    assert 0.5 < fitted.oob_score_ < 0.95
