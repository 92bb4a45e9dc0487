"""The streams of the league change as described, and are those of their seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from experiments.league.streams import CONCEPTS, GENERATED, NOISE, STREAMS, generate, schedule


@pytest.mark.parametrize(
    ("kind", "concepts"),
    [("steady", [0]), ("abrupt", [0, 1, 2]), ("recurring", [0, 1, 0, 1])],
)
def test_concepts_switch_after_equal_segments(kind, concepts):
    n = 1200
    found = schedule(kind, n, np.random.default_rng(0))
    assert np.array_equal(found, np.repeat(concepts, n // len(concepts)))


def test_gradual_drift_mixes_two_concepts_around_each_switch():
    n = 30_000
    found = schedule("gradual", n, np.random.default_rng(0))
    for switch, old in ((n // 3, 0), (2 * n // 3, 1)):
        half = n // 10  # a fifth of the stream in all
        assert (found[switch - half - 500 : switch - half] == old).all()
        assert (found[switch + half : switch + half + 500] == old + 1).all()
        for at, share in ((-half // 2, 0.25), (0, 0.5), (half // 2, 0.75)):
            middle = found[switch + at - 500 : switch + at + 500]
            assert set(middle) == {old, old + 1}
            assert (middle == old + 1).mean() == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_streams_are_the_same_by_seed(name):
    draw = GENERATED[name].draw
    (X, y), (X_again, y_again), (X_other, _) = (draw(300, s) for s in (3, 3, 4))
    assert X.shape[0] == len(y) == 300 and X.dtype == np.float32
    assert len(set(y.tolist())) == 300 if GENERATED[name].numbers else len(set(y.tolist())) < 11
    assert np.array_equal(X, X_again) and np.array_equal(y, y_again)
    assert not np.array_equal(X, X_other)


def test_labels_follow_the_current_concept():
    n = 6000
    X, y = generate("abrupt", n, seed=0, noise=0.0)
    for k, (begin, end) in enumerate(pairwise([0, n // 3, 2 * n // 3, n])):
        part, labels = X[begin:end], y[begin:end]
        agreement = [(concept(part) == labels).mean() for concept in CONCEPTS]
        assert agreement[k] == 1.0
        others = [share for j, share in enumerate(agreement) if j != k]
        assert others == pytest.approx([0.5, 0.5], abs=0.05)
    noisy = generate("abrupt", n, seed=0)[1]
    assert (noisy != y).mean() == pytest.approx(NOISE, abs=0.015)


def test_streams_of_river_have_three_segments():
    from river.datasets import synth

    X, y = STREAMS["sea"].draw(301, 2)
    begin = 0
    for k, variant in enumerate((0, 2, 3)):
        end = (k + 1) * 301 // 3
        part = list(synth.SEA(variant=variant, noise=NOISE, seed=6 + k).take(end - begin))
        assert np.allclose(X[begin:end], [list(x.values()) for x, _ in part])
        assert y[begin:end].tolist() == [label for _, label in part]
        begin = end
    assert begin == len(y) == 301


def test_digits_are_permuted_in_each_third():
    from river.datasets import synth

    n = 3000
    X, y = STREAMS["led"].draw(n, 5)
    plain = list(synth.LED(5, NOISE, irrelevant_features=True).take(n))
    assert y.tolist() == [label for _, label in plain]
    rows = np.array([list(x.values()) for x, _ in plain])
    orders = []
    for part in np.array_split(np.arange(n), 3):
        # Each column is one of the plain ones, elsewhere.
        columns = {tuple(column): j for j, column in enumerate(rows[part].T.tolist())}
        orders.append([columns[tuple(column)] for column in X[part].T.astype(int).tolist()])
        assert sorted(orders[-1]) == list(range(rows.shape[1]))
    assert orders[0] != orders[1] != orders[2]


def test_the_prior_moves_and_the_classes_stay():
    X, y = STREAMS["prior"].draw(20_000, 0)
    eighths = y.reshape(8, -1).mean(axis=1)
    # The mean of .5 + .45 sin over a quarter of a wave; twice up, then down. Deviation: .008.
    expected = 0.5 + 0.9 / np.pi * np.array([1, 1, -1, -1, 1, 1, -1, -1])
    assert eighths == pytest.approx(expected, abs=0.05)
    for part in np.array_split(np.arange(len(y)), 4):
        centre = X[part][y[part] == 1].mean(axis=0)
        assert centre == pytest.approx([1.2, 1.2, 0, 0, 0, 0], abs=0.15)


def test_the_plane_of_numbers_makes_one_turn():
    X, y = STREAMS["plane"].draw(8000, 0)
    for part, slope in zip(np.split(np.arange(8000), 4), [(1, 1), (-1, 1), (-1, -1), (1, -1)]):
        found = np.linalg.lstsq(X[part], y[part], rcond=None)[0]
        assert found[:2] == pytest.approx(np.array(slope) * 2 / np.pi, abs=0.06)
        assert found[2:] == pytest.approx(0, abs=0.06)


def test_streams_from_files_keep_their_order(tmp_path, monkeypatch):
    X = np.arange(12).reshape(4, 3)
    for name in ("elec2", "covtype"):
        np.savez(tmp_path / f"{name}.npz", X=X, y=[0, 1, 1, 0])
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    for name, column in (("elec2", 0), ("elec2-no-date", 1), ("covtype", 0)):
        found, y = STREAMS[name].draw(3, 0)
        assert np.array_equal(found, X[:3, column:]) and y.tolist() == [0, 1, 1]
        assert found.dtype == np.float32


def test_shuffled_streams_have_the_order_of_their_seed(tmp_path, monkeypatch):
    X = np.arange(40.0).reshape(20, 2)
    np.savez(tmp_path / "letter.npz", X_train=X, y_train=np.arange(20))
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    (found, y), (_, again), (_, other) = (STREAMS["letter"].draw(15, seed) for seed in (0, 0, 1))
    assert np.array_equal(found[:, 0], 2 * y) and len(set(y.tolist())) == 15
    assert np.array_equal(y, again) and not np.array_equal(y, other)


def test_flights_have_text_and_say_who_was_late(tmp_path, monkeypatch):
    table = {"carrier": ["UA", "B6", "UA"], "distance": [1, 2, 3]}
    delays = {"dep_delay": [0.0, 1.0, 2.0], "arr_delay": [16.0, np.nan, 15.0]}
    pd.DataFrame({**table, **delays}).to_parquet(tmp_path / "flights.parquet")
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    X, y = STREAMS["flights"].draw(5, 0)
    assert X.to_dict("list") == {"carrier": ["UA", "UA"], "distance": [1, 3]}
    assert y.tolist() == [1, 0]


@pytest.mark.parametrize(("name", "n"), [("phishing", 1250), ("bananas", 5300)])
def test_streams_of_rivers_package_are_whole(name, n):
    X, y = STREAMS[name].draw(10_000, 0)
    assert len(X) == len(y) == n == STREAMS[name].n_samples
    assert len(set(y.tolist())) == 2


def test_a_stream_says_which_file_it_needs(tmp_path, monkeypatch):
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
    assert all(stream.missing() is None for stream in GENERATED.values())
    assert STREAMS["phishing"].missing() is None
    assert "elec2.npz" in STREAMS["elec2"].missing() and "DATA" in STREAMS["elec2"].missing()
    monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
    assert STREAMS["elec2"].missing() == f"elec2.npz is not in {tmp_path}"
    (tmp_path / "elec2.npz").touch()
    assert STREAMS["elec2"].missing() is None
