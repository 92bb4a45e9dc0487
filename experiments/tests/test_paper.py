"""The reproduction of the paper: its data, its store, its curves, its claims and its command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import ttest_ind

ROOT = Path(__file__).resolve().parents[2]

from experiments.paper import data as paper_data
from experiments.paper import tasks
from experiments.paper.__main__ import command_of, main, parse
from experiments.paper.claims import Race, chance_of_difference, judge
from experiments.paper.curves import (
    calibration_error,
    curve,
    depth_fit,
    exponent,
    fit_n_log_n,
    reliability,
    retrained_seconds,
)
from experiments.paper.data import SOURCES, DataError, Source
from experiments.paper.methods import METHODS, SHARED
from experiments.paper.names import (
    AMF_10,
    ARF_10,
    AT_ONCE,
    BREIMAN,
    DENIL,
    DYNAMIC_TREES,
    ERT_1,
    ERT_K,
    LEARNED,
    LEARNED_10,
    MF,
    MF_10,
    RETRAINED,
    SAFFARI,
    SAFFARI_TUNED,
)
from experiments.paper.records import Record, Store
from experiments.paper.report import (
    About,
    Picture,
    Report,
    Section,
    Table,
    Text,
    setting_section,
    to_html,
    to_markdown,
)
from experiments.paper.runner import TaskError, run_all
from experiments.paper.tasks import QUICK, Task, batch_edges, measure, run, tasks_of

BINS = ((0, 0.0, 0),) * 5 + ((10, 5.5, 5),) + ((0, 0.0, 0),) * 3 + ((30, 28.5, 30),)


def record(data="digits", method=MF, seed=0, fraction=1.0, **fields):
    values = {
        "n_passes": 1,
        "n_samples": round(1000 * fraction),
        "seconds": fraction,
        "accuracy": 0.9,
        "log_loss": 0.3,
        "reliability": BINS,
        "depth": None,
    }
    return Record(data, method, seed, fraction, **{**values, **fields})


class TestStore:
    def test_gives_back_what_it_was_given(self, tmp_path):
        records = [record(depth=3.5), record(seed=1, accuracy=1 / 3)]
        store = Store(tmp_path / "new")
        store.save({"method": MF, "fractions": (0.1, 1.0)}, records, {"wall_seconds": 2.5})
        found = store.load({"method": MF, "fractions": (0.1, 1.0)})
        assert found == (records, {"wall_seconds": 2.5})

    def test_knows_nothing_of_another_key(self, tmp_path):
        store = Store(tmp_path)
        store.save({"code": "a"}, [record()], {})
        assert store.load({"code": "b"}) is None

    @pytest.mark.parametrize("damage", [b"", b"{", b'{"key": {"code": "a"}}', b"\xff\xfe", b"[1]"])
    def test_a_damaged_file_counts_as_not_there(self, tmp_path, damage):
        store = Store(tmp_path)
        store.save({"code": "a"}, [record()], {})
        store.path({"code": "a"}).write_bytes(damage)
        assert store.load({"code": "a"}) is None

    def test_leaves_no_half_files(self, tmp_path):
        Store(tmp_path).save({"code": "a"}, [record()], {})
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


class TestData:
    def rows(self, n_rows=40, seed=0):
        rng = np.random.default_rng(seed)
        return rng.integers(0, 16, size=(n_rows, 5)), rng.integers(0, 3, size=n_rows)

    def prepare(self, monkeypatch, tmp_path, X, y, n_train=30, **options):
        """A known data set of which OpenML has (X, y)."""
        monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
        wanted, labels = self.rows()
        source = Source(openml_id=17, **options)
        hashes = paper_data.row_hashes(wanted, source)
        np.savez(
            tmp_path / "hashes.npz",
            letter_train=hashes[:n_train],
            letter_test=hashes[n_train:],
            letter_class_counts=np.sort(np.bincount(labels[:n_train])),
        )
        monkeypatch.setattr(paper_data, "ROW_HASHES", tmp_path / "hashes.npz")
        monkeypatch.setitem(SOURCES, "letter", source)

        def fetch(data_id, **_options):
            assert data_id == 17
            return SimpleNamespace(data=X.astype(str), target=y, feature_names=list("abcde"))

        monkeypatch.setattr(paper_data, "fetch_openml", fetch)

    def test_rows_of_openml_are_found_in_any_order(self, monkeypatch, tmp_path):
        X, y = self.rows()
        more, others = self.rows(10, seed=1)
        shuffle = np.random.default_rng(2).permutation(50)
        everything = np.vstack([X, more])[shuffle]
        names = np.array(["c", "a", "b"])[np.concatenate([y, others])][shuffle]
        self.prepare(monkeypatch, tmp_path, everything, names)
        X_train, y_train, X_test, y_test = paper_data.raw("letter")
        assert np.array_equal(X_train, X[:30])
        assert np.array_equal(X_test, X[30:])
        # Classes are renamed, one to one: c, a, b by their order.
        assert np.array_equal([*y_train, *y_test], np.array([2, 0, 1])[y])

    def test_values_that_come_as_places_in_a_list(self):
        bunch = SimpleNamespace(
            data=np.array([[0.0, 7.0], [1.0, 8.0]]),
            feature_names=["a", "b"],
            categories={"a": ["1", "0"], "class": ["x", "y"]},
        )
        assert paper_data.plain_values(bunch).tolist() == [[1, 7], [0, 8]]
        bunch.data = csr_matrix(bunch.data)
        assert paper_data.plain_values(bunch).tolist() == [[1, 7], [0, 8]]

    def test_numbers_as_labels_keep_their_order(self, monkeypatch, tmp_path):
        X, y = self.rows()
        labels = np.array(["9", "10", "11"])[y]
        self.prepare(monkeypatch, tmp_path, X, labels)
        assert np.array_equal(paper_data.raw("letter")[1], y[:30])

    def test_a_row_that_is_not_there_is_told(self, monkeypatch, tmp_path):
        X, y = self.rows()
        X[[3, 35]] += 1
        self.prepare(monkeypatch, tmp_path, X, y)
        with pytest.raises(DataError, match=r"2 of 40 rows of letter.*ONLINEFOREST_DATA"):
            paper_data.raw("letter")

    def test_a_row_is_not_taken_twice(self, monkeypatch, tmp_path):
        X, y = self.rows()
        X[35] = X[3]  # the row that stood here is missing, row 3 is there twice
        self.prepare(monkeypatch, tmp_path, X, y)
        with pytest.raises(DataError, match="1 of 40 rows"):
            paper_data.raw("letter")

    def test_other_labels_are_told(self, monkeypatch, tmp_path):
        X, y = self.rows()
        self.prepare(monkeypatch, tmp_path, X, np.where(np.arange(40) < 20, 0, y))
        with pytest.raises(DataError, match="other labels"):
            paper_data.raw("letter")

    def test_rows_in_a_known_order_may_differ_in_few(self, monkeypatch, tmp_path):
        X, y = self.rows()
        self.prepare(monkeypatch, tmp_path, X, y, ordered=True)
        assert np.array_equal(paper_data.raw("letter")[0], X[:30])
        self.prepare(monkeypatch, tmp_path, X[::-1], y[::-1], ordered=True)
        with pytest.raises(DataError, match="in their order"):
            paper_data.raw("letter")

    def test_no_network_and_no_folder(self, monkeypatch):
        def fail(**_options):
            raise OSError("no route to host")

        monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)
        monkeypatch.setattr(paper_data, "fetch_openml", fail)
        with pytest.raises(DataError, match=r"no route.*Either connect.*or set ONLINEFOREST_DATA"):
            paper_data.raw("dna")

    def test_a_folder_without_the_file(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
        with pytest.raises(DataError, match=r"no dna\.npz.*unset ONLINEFOREST_DATA"):
            paper_data.raw("dna")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"not at all"])
    def test_a_broken_file_is_named(self, monkeypatch, tmp_path, content):
        (tmp_path / "dna.npz").write_bytes(content)
        monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
        with pytest.raises(
            DataError, match=r"dna\.npz must be an npz file with the arrays X_train"
        ):
            paper_data.raw("dna")

    def test_a_file_that_lacks_an_array(self, monkeypatch, tmp_path):
        np.savez(tmp_path / "dna.npz", X_train=np.zeros((2, 2)))
        monkeypatch.setenv("ONLINEFOREST_DATA", str(tmp_path))
        with pytest.raises(DataError, match="y_train is not a file"):
            paper_data.raw("dna")

    @pytest.mark.skipif("ONLINEFOREST_DATA" not in os.environ, reason="needs the data sets")
    @pytest.mark.parametrize("name", SOURCES)
    def test_stored_hashes_are_those_of_the_folder(self, name):
        X, y, X_test, _ = paper_data.raw(name)
        with np.load(paper_data.ROW_HASHES) as stored:
            for rows, part in ((X, "train"), (X_test, "test")):
                hashes = paper_data.row_hashes(rows, SOURCES[name])
                assert np.array_equal(stored[f"{name}_{part}"], hashes)
            assert np.array_equal(stored[f"{name}_class_counts"], np.sort(np.bincount(y)))

    def test_grey_levels_bear_small_errors(self):
        rng = np.random.default_rng(0)
        X = np.clip(rng.normal(-1, 1, size=(500, 256)), -1, 1)
        near = X + rng.uniform(-1e-6, 1e-6, size=X.shape)
        hashes = [paper_data.row_hashes(rows, SOURCES["usps"]) for rows in (X, near)]
        assert np.mean(hashes[0] == hashes[1]) > 0.99

    def test_rescaled_over_train_and_test_together(self):
        X, X_test = np.array([[0.0, 5, 1], [2, 5, 2]]), np.array([[4.0, 5, 0]])
        found = paper_data.rescaled("x", X, np.array([0, 1]), X_test, np.array([1]))
        assert np.array_equal(found.X, [[0, 0, 0.5], [0.5, 0, 1]])
        assert np.array_equal(found.X_test, [[1, 0, 0]])


class Spies:
    """Stand-ins for methods that remember what they were given."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.seen, self.n_calls = monkeypatch, {}, {}
        monkeypatch.setattr(tasks, "warm_up", lambda _name: None)

    def __call__(self, *names):
        for name in names:
            self.seen[name], self.n_calls[name] = [], 0
            spied = replace(METHODS[name], new=lambda *_, name=name: Spy(self, name))
            self.monkeypatch.setitem(METHODS, name, spied)


class Spy:
    def __init__(self, spies, name):
        self.spies, self.name, self.classes_ = spies, name, np.arange(10)

    def fit(self, X, y, classes=None):
        self.spies.seen[self.name].extend(map(bytes, X))
        self.spies.n_calls[self.name] += 1

    partial_fit = fit

    def predict_proba(self, X):
        return np.full((len(X), 10), 0.1)


@pytest.fixture
def spies(monkeypatch):
    return Spies(monkeypatch)


class TestTasks:
    def test_online_methods_run_once_and_batch_methods_per_fraction(self):
        every = list(tasks_of(replace(QUICK, n_seeds=1)))
        count = {name: sum(task.method == name for task in every) for name in METHODS}
        assert count[MF] == count[SAFFARI] == count[AMF_10] == count[AT_ONCE] == 1
        assert count[BREIMAN] == len(QUICK.fractions)

    def test_the_dagger_is_for_cuts_that_ignore_labels(self, monkeypatch):
        monkeypatch.setattr(tasks, "load", lambda _name: SimpleNamespace(y=np.zeros(1400)))
        found = {t.method for t in tasks_of(replace(QUICK, data=("dna†",)))}
        assert found == {MF, LEARNED, ERT_1}

    def test_equal_seeds_see_equal_rows(self, spies):
        spies(MF, BREIMAN)
        online = run(Task("digits", MF, 3, 5, (0.5, 1.0)))
        half = run(Task("digits", BREIMAN, 3, 5, (0.5,)))
        assert [r.n_samples for r in online] == [600, 1200]
        assert half[0].n_samples == 600
        assert spies.seen[BREIMAN] == spies.seen[MF][:600]
        assert len(set(spies.seen[MF])) > 1000

    def test_further_passes_see_the_rows_again_in_another_order(self, spies):
        spies(SAFFARI)
        found = run(Task("digits", SAFFARI, 0, 2, (0.5, 1.0), n_passes=3))
        assert [(r.fraction, r.n_passes) for r in found] == [(0.5, 1), (1.0, 1), (1.0, 2), (1.0, 3)]
        seen = spies.seen[SAFFARI]
        passes = [seen[i : i + 1200] for i in (0, 1200, 2400)]
        assert len(seen) == 3600
        assert sorted(passes[0]) == sorted(passes[1]) == sorted(passes[2])
        assert passes[0] != passes[1] != passes[2]

    def test_batches_where_they_matter_and_one_call_per_test_where_not(self, spies):
        spies(MF, SAFFARI)
        for name in (MF, SAFFARI):
            run(Task("digits", name, 0, 2, (0.5, 1.0)))
        assert spies.n_calls == {MF: 100, SAFFARI: 2}

    def test_the_small_race(self):
        task = Task("digits", MF_10, 0, 100, (), few_rows=(20, 50), n_test_rows=30)
        found = run(task)
        assert [r.n_samples for r in found] == [20, 50]
        assert sum(n for n, *_ in found[0].reliability) == 30

    def test_one_row_at_a_time_is_one_row_at_a_time(self):
        X, y = np.random.default_rng(0).random((40, 3)), np.arange(40) % 3
        new = METHODS[MF_10].new
        one, other = new(5, 0, 40), new(5, 0, 40)
        one.partial_fit(X, y, classes=np.arange(3))
        for i in range(40):
            other.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(3))
        assert one.classes_.tolist() == [0, 1, 2]
        assert one.forest.n_estimators == 10
        assert np.array_equal(one.predict_proba(X), other.predict_proba(X))

    def test_a_result_is_kept_by_all_it_depends_on(self):
        task = Task("digits", SAFFARI, 0, 2, (1.0,))
        assert {"code", "numba", "numpy", "data_fingerprint", "seed"} <= set(task.key())
        names = {path.name for path in (*SHARED, *METHODS[SAFFARI].code)}
        assert {"methods.py", "names.py", "tasks.py", "saffari.py", "online_forest.py"} <= names

    def test_mini_batches(self):
        assert batch_edges(7, 3) == [0, 2, 4, 7]
        assert batch_edges(2, 100) == [0, 1, 2]

    def test_scores_by_hand(self):
        class Model:
            classes_ = np.array([0, 2])  # class 1 was never seen

            def predict_proba(self, X):
                return np.array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])

        data = SimpleNamespace(
            X_test=np.zeros((4, 1)), y_test=np.array([0, 2, 1, 2]), classes=np.arange(3)
        )
        found = measure(Model(), data, np.arange(4), np.random.default_rng(0))
        assert found["accuracy"] == 0.5
        assert found["log_loss"] == pytest.approx(-(np.log(0.75) + 2 * np.log(1e-15)) / 4)
        assert found["reliability"][5] == (1, 0.5, 0)
        assert found["reliability"][7] == (1, 0.75, 1)
        assert found["reliability"][9] == (2, 2.0, 1)
        assert found["depth"] is None

    def test_ties_are_broken_at_random(self):
        class Model:
            classes_ = np.arange(2)

            def predict_proba(self, X):
                return np.full((len(X), 2), 0.5)

        data = SimpleNamespace(
            X_test=np.zeros((2000, 1)), y_test=np.zeros(2000, int), classes=np.arange(2)
        )
        found = measure(Model(), data, np.arange(2000), np.random.default_rng(0))
        # Six standard deviations: fails once in 5e8 seeds.
        assert abs(found["accuracy"] - 0.5) < 6 * 0.5 / np.sqrt(2000)


class TestCurves:
    def test_means_over_seeds(self):
        records = [
            record(seed=s, fraction=f, accuracy=a, depth=d)
            for s, f, a, d in [
                (0, 1.0, 0.9, 4),
                (1, 1.0, 0.7, 6),
                (0, 0.5, 0.5, 2),
                (1, 0.5, 0.6, 2),
            ]
        ]
        found = curve([*records, record(method=BREIMAN)], "digits", MF)
        assert found.fraction.tolist() == [0.5, 1.0]
        assert found.accuracy == pytest.approx([0.55, 0.8])
        assert found.deviation == pytest.approx([0.05, 0.1])
        assert found.depth.tolist() == [2, 5]
        assert found.n_seeds == 2
        assert curve(records, "usps", MF) is None

    def test_further_passes_come_last(self):
        records = [record(n_passes=2, accuracy=0.95), record(fraction=0.5), record()]
        found = curve(records, "digits", MF)
        assert found.n_passes.tolist() == [1, 1, 2]
        assert found.at(1.0) == 1
        assert found.at(1.0, n_passes=2) == found.last == 2
        with pytest.raises(KeyError, match=r"no point at 0\.1"):
            found.at(0.1)

    def test_retraining_is_the_sum_over_all_mini_batches(self):
        # A training takes n²: interpolated exactly where every fraction is there.
        every = [record(method=BREIMAN, fraction=k / 10, seconds=k**2) for k in range(1, 11)]
        found = retrained_seconds(curve(every, "digits", BREIMAN), n_batches=10)
        assert found == pytest.approx(np.cumsum(np.arange(1, 11) ** 2))
        # A training takes n: a straight line, exact from any fractions.
        some = [record(method=BREIMAN, fraction=f, seconds=100 * f) for f in (0.2, 0.5, 1.0)]
        found = retrained_seconds(curve(some, "digits", BREIMAN))
        assert found == pytest.approx([20 * 21 / 2, 50 * 51 / 2, 100 * 101 / 2])

    def test_exponent(self):
        n = np.array([1.0, 10, 100, 200, 1000])
        seconds = np.where(n < 100, 1.0, n**1.5)
        assert exponent(n, seconds) == pytest.approx(1.5)

    def test_n_log_n_fit(self):
        n = np.array([100.0, 200, 500, 1000])
        fixed, r2 = fit_n_log_n(n, 0.3 + 2e-3 * n * np.log(n))
        assert fixed == pytest.approx(0.3)
        assert r2 == pytest.approx(1)
        assert fit_n_log_n(n, n**3)[1] < 0.99

    def test_depth_fit(self):
        n = [100, 200, 400, 800]
        records = [record(fraction=k / 800, n_samples=k, depth=2 * np.log2(k) + 1) for k in n]
        slope, intercept, r2 = depth_fit(curve(records, "digits", MF))
        assert slope == pytest.approx(2)
        assert intercept == pytest.approx(1)
        assert r2 == pytest.approx(1)


def good_records():
    """Records by which every claim holds."""
    accuracy = {MF: 0.93, AT_ONCE: 0.93, LEARNED: 0.94, BREIMAN: 0.93, ERT_K: 0.94, ERT_1: 0.92}
    accuracy |= {SAFFARI: 0.8, SAFFARI_TUNED: 0.8, DENIL: 0.79, DYNAMIC_TREES: 0.85}
    on_dna = accuracy | {MF: 0.67, AT_ONCE: 0.67, ERT_1: 0.69, SAFFARI: 0.6, DENIL: 0.6}
    on_dna |= {SAFFARI_TUNED: 0.6}
    on_dna |= {DYNAMIC_TREES: 0.68}
    for seed in (0, 1):
        for data in ("letter", "dna", "dna†"):
            scores = on_dna if data == "dna" else accuracy
            for name, value in scores.items():
                if data == "dna†" and name not in (MF, ERT_1):
                    continue
                for fraction in (0.1, 0.2, 0.5, 1.0):
                    n = 15000 * fraction
                    depth = {"letter": 23.2, "dna": 12.0, "dna†": 11.0}[data] + 2 * np.log2(
                        fraction
                    )
                    seconds = n / 15000
                    if name in RETRAINED or name == AT_ONCE:
                        seconds *= 1 if name == ERT_K else 2
                    yield record(
                        data, name, seed, fraction,
                        n_samples=int(n),
                        seconds=seconds,
                        accuracy=value + 0.001 * seed - 0.05 * (1 - fraction),
                        log_loss={LEARNED: 0.1}.get(name, 0.3),
                        depth=depth + 0.01 * seed if name in (MF, AT_ONCE) else None,
                        reliability=((100, 90.0, 90 if name == LEARNED else 95),),
                    )  # fmt: skip
                if name in (SAFFARI, SAFFARI_TUNED, DENIL):
                    slower = 2 if name == DENIL else 1
                    yield record(
                        data, name, seed, 1.0, n_passes=20, n_samples=15000, seconds=20.0 * slower,
                        accuracy=0.85,
                    )  # fmt: skip
        for name, seconds, value in (
            (MF_10, 1, 0.8),
            (LEARNED_10, 1, 0.9),
            (AMF_10, 50, 0.9),
            (ARF_10, 90, 0.8),
        ):
            yield record("letter", name, seed, 0.1, seconds=float(seconds), accuracy=value)


# Changes that break a claim: words of the claim, whose records, and the change.
BREAKS = [
    (
        "same distribution",
        (AT_ONCE,),
        {"accuracy": lambda r: 0.5 + 1e-5 * r.seed, "depth": lambda r: 9 + 1e-5 * r.seed},
    ),
    ("very close to the batch", (MF,), {"accuracy": lambda r: r.accuracy - 0.03}),
    ("outperforms ORF-Saffari trained", (SAFFARI,), {"accuracy": lambda r: 0.92}),
    ("outperforms ORF-Saffari, tuned", (SAFFARI_TUNED,), {"accuracy": lambda r: 0.92}),
    ("faster than re-trained", (MF,), {"seconds": lambda r: 10 * r.seconds}),
    ("faster than ORF-Saffari (ratio", (SAFFARI,), {"seconds": lambda r: r.seconds / 30}),
    ("faster than ORF-Saffari, tuned", (SAFFARI_TUNED,), {"seconds": lambda r: r.seconds / 30}),
    ("very similar to ORF-Saffari", (DENIL,), {"accuracy": lambda r: 0.95}),
    ("very similar to ORF-Saffari", (DENIL,), {"seconds": lambda r: r.seconds / 3}),
    ("do worse than", (ERT_1,), {"accuracy": lambda r: 0.9}),
    ("still better than ORF-Saffari on dna", (SAFFARI,), {"accuracy": lambda r: 0.9}),
    ("filtering out", (MF,), {"accuracy": lambda r: 0.9}),
    ("higher accuracy than dynamic", (DYNAMIC_TREES,), {"accuracy": lambda r: 0.92}),
    ("dynamic trees outperform MF", (DYNAMIC_TREES,), {"accuracy": lambda r: 0.6}),
    ("superior to dynamic trees", (DYNAMIC_TREES,), {"accuracy": lambda r: 0.93}),
    ("depths of the forests", (MF,), {"depth": lambda r: r.depth + 3}),
    ("grows like log N", (MF,), {"depth": lambda r: 20 if r.fraction == 0.2 else 5}),
    ("O(N log N)", (MF,), {"seconds": lambda r: r.fraction**2}),
    ("O(N² log N)", (ERT_1,), {"seconds": lambda r: 1.0}),
    ("still better than ORF-Saffari, tuned", (SAFFARI_TUNED,), {"accuracy": lambda r: 0.9}),
    ("as good as columns", (LEARNED,), {"accuracy": lambda r: 0.8}),
    ("never cost accuracy", (LEARNED,), {"accuracy": lambda r: 0.5}),
    ("lower the log loss", (LEARNED,), {"log_loss": lambda r: 0.35}),
    ("calibration error", (LEARNED,), {"reliability": lambda r: ((100, 90.0, 70),)}),
    ("no more than twice", (MF,), {"seconds": lambda r: 3 * r.seconds}),
    ("River's forests", (AMF_10,), {"seconds": lambda r: 2.0}),
    ("River's forests", (ARF_10,), {"accuracy": lambda r: 1.0}),
]


class TestClaims:
    def find(self, records, words):
        [claim] = [claim for claim in judge(records) if words in claim.says]
        return claim

    def changed(self, methods, changes):
        for found in good_records():
            if found.method in methods:
                found = replace(found, **{f: c(found) for f, c in changes.items()})
            yield found

    def test_good_records_hold(self):
        records = list(good_records())
        doubtful = [c for c in judge(records) if c.holds is not True]
        # dynamic trees at 0.68 on dna lie below MF† by far: the one claim these records break
        assert [c.says for c in doubtful] == [
            "on dna dynamic trees outperform MF, and MF† is similar to them (within 0.03)"
        ]
        mended = list(self.changed([DYNAMIC_TREES], {"accuracy": lambda r: 0.91}))
        assert self.find(mended, "MF† is similar").holds

    @pytest.mark.parametrize(("words", "methods", "changes"), BREAKS)
    def test_each_can_fail(self, words, methods, changes):
        assert self.find(list(self.changed(methods, changes)), words).holds is False

    def test_of_nothing(self):
        assert judge([]) == []
        assert judge([record(method=BREIMAN)]) == []

    def test_time_is_compared_at_equal_accuracy(self):
        ours = [record(fraction=f, seconds=f, accuracy=f) for f in (0.1, 0.5, 1.0)]
        # They come to 0.4 at time 6 and stay there; we pass it at 0.5.
        theirs = [
            record(method=SAFFARI, fraction=0.5, accuracy=0.4, seconds=6.0),
            record(method=SAFFARI, accuracy=0.4, seconds=10.0),
        ]
        assert Race([*ours, *theirs]).times_slower("digits", SAFFARI) == (12, 10)
        # They come to 1.0, as far as we do, at time 8.
        better = [
            record(method=SAFFARI, fraction=0.5, accuracy=1.0, seconds=8.0),
            record(method=SAFFARI, accuracy=1.5, seconds=10.0),
        ]
        assert Race([*ours, *better]).times_slower("digits", SAFFARI) == (8, 10)

    def test_why_is_said_only_where_a_claim_fails(self):
        assert all(bool(claim.why) <= (not claim.holds) for claim in judge(list(good_records())))
        broken = self.changed([DENIL], {"accuracy": lambda r: 0.5})
        assert "half of the samples" in self.find(list(broken), "very similar").why

    def test_chance_of_difference(self):
        a, b = [0.1, 0.2, 0.4], [0.3, 0.5, 0.7, 0.9]
        expected = ttest_ind(a, b, equal_var=False).pvalue
        assert chance_of_difference(a, b) == pytest.approx(expected)
        assert chance_of_difference([0.5, 0.5], [0.5, 0.5]) == 1
        assert chance_of_difference([0.5, 0.5], [0.6, 0.6]) == 0

    def test_calibration_error_by_hand(self):
        # 10 rows: confidence 0.55, half right; 30 rows: confidence 0.95, all right.
        expected = (10 * 0.05 + 30 * 0.05) / 40
        bins = reliability([record(), record(fraction=0.5, reliability=())], "digits", MF)
        assert calibration_error(bins) == pytest.approx(expected)
        assert Race([record()]).final("digits", MF) == 0.9


class TestReport:
    sections = (
        Section("One & two", (Text("a < b & `c`"), Table(("x", "y"), (("holds", "1 | 2"),)))),
    )

    def test_html_is_well_formed_and_alone(self, tmp_path):
        page = to_html(self.sections, tmp_path)
        tree = ElementTree.fromstring(
            page.replace("<!doctype html>", "").replace('<meta charset="utf-8">', "")
        )
        assert "a < b & c" in "".join(tree.itertext())
        assert "<code>c</code>" in page
        assert 'class="holds"' in page

    def test_markdown(self):
        picture = Section("Seen", (Picture("figure_1", "Two trees."),))
        page = to_markdown([*self.sections, picture], "paper")
        assert r"| holds | 1 \| 2 |" in page
        assert "![figure_1](paper/figure_1.svg)" in page
        assert Report([*self.sections, picture], []).pictures == ["figure_1"]

    def test_how_it_was_run(self):
        runs = [{"machine": {"python": "3", "load": None}, "wall_seconds": 90.0}] * 2
        command = command_of(parse(["--quick", "--trees", "9", "--data", "dna†", "--jobs", "7"]))
        [*_, section] = setting_section(About(QUICK, command, runs)).parts[:1]
        assert "`python -m experiments.paper --quick --trees 9 --data 'dna†'`" in section.text
        assert "2 tasks of 3 minutes" in section.text
        assert "Machine: python 3." in section.text


def small_task(seed, n_rows=20):
    return Task("digits", MF_10, seed, 1, (), few_rows=(n_rows,), n_test_rows=5)


@pytest.fixture
def in_this_process(monkeypatch):
    """Tasks run in a thread; new processes would import everything first."""
    monkeypatch.setattr("experiments.paper.runner.processes", ThreadPoolExecutor)


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch, in_this_process):
    store, tasks = Store(tmp_path), [small_task(0), small_task(1)]
    first = run_all(tasks, store, n_jobs=1)
    assert [outcome.records[0].seed for outcome in first] == [0, 1]
    assert all(outcome.about["wall_seconds"] > 0 for outcome in first)
    monkeypatch.setattr("experiments.paper.runner.processes", None)  # nothing may be started
    assert run_all(tasks, store, n_jobs=1) == first


def test_a_failure_is_named_and_keeps_the_others(tmp_path, in_this_process):
    bad = Task("digits", MF, 7, 1, (3.0,))  # there is no such fraction
    store, good = Store(tmp_path), [small_task(0), small_task(1)]
    with pytest.raises(TaskError, match=r"1 of 3 tasks failed.* MF on digits, seed 7: IndexError"):
        run_all([bad, *good], store, n_jobs=1)
    assert all(store.load(task.key()) for task in good)
    assert store.load(bad.key()) is None


def quick(folder):
    environment = {k: v for k, v in os.environ.items() if k != "ONLINEFOREST_DATA"}
    command = [sys.executable, "-m", "experiments.paper", "--quick", "--trees", "10"]
    return subprocess.Popen(
        [*command, "--output", str(folder)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.xdist_group("compiled competitors")  # compiled once
@pytest.mark.thorough
def test_the_quick_run_survives_an_interrupt(tmp_path):
    started = quick(tmp_path)
    deadline = time.monotonic() + 200
    while len(list(tmp_path.glob("cache/*.json"))) < 3 and time.monotonic() < deadline:
        assert started.poll() is None, started.stderr.read()
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 130, errors
    assert "goes on from here" in errors
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cache/*.json")}
    assert kept

    again = quick(tmp_path)
    output, errors = again.communicate(timeout=400)
    assert again.returncode == 0, errors
    for path, time_written in kept.items():
        assert path.stat().st_mtime_ns == time_written

    page = (tmp_path / "report.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#)', page)  # self-contained
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    for name in ("figure_1", "figure_2", "figure_3_top", "figure_3_bottom", "figure_4"):
        assert {f"{name}.svg", f"{name}.png"} <= figures
    # Digits are rich in features that matter: these must hold on any machine.
    for words in ("same distribution", "very close to the batch", "higher accuracy than dynamic"):
        line = next(line for line in output.splitlines() if words in line)
        assert line.startswith("[holds]"), output


@pytest.mark.parametrize("option", ["--jobs", "--seeds", "--trees"])
def test_what_is_wrong_with_the_command_is_said(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--quick", option, "0"])
    assert f"{option} must be at least 1. Got 0 instead." in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys, in_this_process):
    (tmp_path / "taken").write_text("a file")
    options = ["--quick", "--methods", MF_10, "--seeds", "1", "--jobs", "1"]
    assert main([*options, "--output", str(tmp_path / "taken")]) == 1
    assert "The results cannot be written" in capsys.readouterr().err


def test_a_killed_process_is_told(monkeypatch, capsys):
    def broken(*_):
        raise BrokenProcessPool

    monkeypatch.setattr("experiments.paper.__main__.run_all", broken)
    assert main(["--quick"]) == 1
    assert "try fewer --jobs" in capsys.readouterr().err


def test_only_a_whole_run_goes_into_the_docs(capsys, tmp_path):
    with pytest.raises(SystemExit, match="2"):
        main(["--quick", "--docs", str(tmp_path)])
    assert "--docs is for a whole run" in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert main(["--quick"]) == 2
    assert "pip install 'onlineforest[experiments]'" in capsys.readouterr().err
