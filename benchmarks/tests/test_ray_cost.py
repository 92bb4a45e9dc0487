"""The model of what a forest on Ray costs, and that its constants can be measured."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

from benchmarks import ray_cost
from benchmarks.__main__ import main
from benchmarks.machine import describe_machine
from benchmarks.ray_cost import (
    Constants,
    Growth,
    Line,
    Run,
    batch_bytes,
    cluster_runs,
    learning_seconds,
    n_terms,
    network_bytes,
    prediction_bytes,
    prediction_seconds,
    refresh_seconds,
    rows_into_trees,
    shard_bytes,
)
from onlineforest._core import LabelForest, Quantity
from onlineforest._distributed.splitting import split_trees

# Round numbers: a row costs 1 µs in a tree, whatever it is.
FLAT = Constants(
    learn=Growth(base=1e-6),
    grow=Growth(base=5e-7),
    predict=Growth(base=2e-6),
    window=2.0,
    measure=0.5,
    front=Line(1e-3, 1e-7),
    per_shard=2e-4,
    call=Line(2e-3, 1e-6),
    samples=Line(10.0, 4.0),
    nodes=Line(60.0, 4.0),
    snapshot=Line(0.05, 1e-9),
    recovery=Line(2.0, 5e-9),
)
RUN = Run(100_000, 1_000, 100, 16)


def test_a_cost_that_grows_with_depth_adds_up():
    growth = Growth(1e-6, 2e-8, 3e-7, 1e-8)
    one_by_one = sum(growth.at(n, 16) for n in range(1_000, 3_000))
    assert growth.between(1_000, 3_000, 16) == pytest.approx(one_by_one, rel=1e-3)
    assert growth.between(0, 1, 16) == pytest.approx(1e-6 + 2e-8 * 16)


def test_fitted_constants_equal_those_that_made_the_data():
    growth = Growth(1e-6, 2e-8, 3e-7, 1e-8)
    points = [(n, d, growth.at(n, d)) for n in (1e3, 1e4, 1e5) for d in (16, 100)]
    found = Growth.fitted(points)
    assert found.at(1e9, 40) == pytest.approx(growth.at(1e9, 40))
    line = Line.fitted([(n, 3.0 + 0.5 * n) for n in (1, 10, 100)])
    assert (line.always, line.each) == (pytest.approx(3.0), pytest.approx(0.5))
    assert Line.fitted([(10, 1.0), (20, 1.0), (40, 0.9)]).each == 0.0  # nothing below 0


def test_one_number_of_features_fits_no_effect_of_features():
    found = Growth.fitted([(n, 16, 1e-6 + 2e-7 * math.log2(n)) for n in (1e3, 1e4, 1e5)])
    assert found.at(1e4, 100) == pytest.approx(found.at(1e4, 16))
    assert found.at(2**20, 16) == pytest.approx(5e-6)


def test_bytes_of_batches_and_of_the_network():
    assert batch_bytes(1_000, 16) == 68_000
    assert network_bytes(RUN) == 0  # all on the driver's node
    assert network_bytes(replace(RUN, n_shards=8, n_nodes=4)) == 4 * 100 * 68_000


def test_the_slowest_part_determines_the_time():
    seconds = learning_seconds(RUN, FLAT)
    assert seconds.trees == pytest.approx(100 * 100_000 * 1e-6, rel=1e-3)
    assert seconds.front == pytest.approx(100 * (1e-3 + 1e-4))
    assert (seconds.total, seconds.dominated_by) == (seconds.trees, "trees")
    spread = replace(RUN, n_shards=50, n_nodes=50)
    assert learning_seconds(spread, FLAT).trees == pytest.approx(seconds.trees / 50)
    # Each shard costs the driver something: with small batches that decides.
    small = learning_seconds(replace(spread, batch=100), FLAT)
    assert small.dominated_by == "driver"
    assert small.front == pytest.approx(1000 * (1e-3 + 1e-5 + 49 * 2e-4))
    slow = learning_seconds(replace(spread, bandwidth=1e7), FLAT)
    assert slow.dominated_by == "network"
    assert slow.total == pytest.approx(50 * 100 * 68_000 / 1e7)


def test_the_largest_shard_counts_and_more_shards_than_trees_do_not_help():
    def trees(n_shards, n_threads=1):
        run = replace(RUN, n_shards=n_shards, n_threads=n_threads)
        return round(learning_seconds(run, FLAT).trees / learning_seconds(RUN, FLAT).trees * 100)

    assert [trees(n) for n in (1, 2, 3, 64, 100, 200)] == [100, 50, 34, 2, 1, 1]
    assert [trees(2, n) for n in (1, 16, 50, 64)] == [50, 4, 1, 1]


def test_shared_cores_bound_the_time():
    two = learning_seconds(replace(RUN, n_shards=2, n_cores=2), FLAT)
    assert two.dominated_by == "cores"
    assert two.total == pytest.approx(two.trees + two.front / 2)
    assert learning_seconds(replace(RUN, n_shards=2, n_cores=3), FLAT).dominated_by == "trees"


def test_memory_of_a_shard_is_all_samples_and_its_trees():
    assert shard_bytes(RUN, FLAT) == 100_000 * (74 + 100 * 124)
    assert shard_bytes(replace(RUN, n_shards=100), FLAT) == 100_000 * (74 + 124)
    assert shard_bytes(replace(RUN, window=1_000), FLAT) == 1_000 * (74 + 100 * 124)
    assert shard_bytes(replace(RUN, window=10**6), FLAT) == shard_bytes(RUN, FLAT)


@pytest.mark.parametrize("n_before", [0, 500, 5_000])
def test_rows_stored_in_a_window_and_in_a_reservoir(n_before):
    run = replace(RUN, n_rows=20_000, n_before=n_before)
    assert rows_into_trees(run) == (20_000, 0.0)
    grown = max(1_000 - n_before, 0)
    assert rows_into_trees(replace(run, window=1_000)) == (grown, 20_000 - grown)
    rng = np.random.default_rng(0)
    numbers = np.arange(max(n_before, 1_000), n_before + 20_000) + 1  # the n-th row
    entered = [(rng.random(len(numbers)) < 1_000 / numbers).sum() for _ in range(200)]
    kept, displacing = rows_into_trees(replace(run, reservoir=1_000))
    assert kept == grown
    # About 2,000 each, so a mean of 200 has a standard error of about 3.
    assert displacing == pytest.approx(np.mean(entered), abs=20)
    assert rows_into_trees(replace(run, reservoir=10**6)) == (20_000, 0.0)


def test_a_window_costs_forgetting_and_a_reservoir_rejects_most_rows():
    everything = learning_seconds(RUN, FLAT).trees
    window = learning_seconds(replace(RUN, window=1_000), FLAT).trees
    reservoir = learning_seconds(replace(RUN, reservoir=1_000), FLAT).trees
    assert window == pytest.approx(2 * everything, rel=0.02)
    assert reservoir == pytest.approx(
        everything * (1_000 + 2 * 1_000 * math.log(100)) / 1e5, rel=0.01
    )


def test_the_measure_does_not_shrink_with_the_shards():
    run = replace(RUN, n_rows=10**6, learned_weights=True, regrown=0.0)
    alone = refresh_seconds(run, FLAT)
    assert alone == pytest.approx(0.5 * math.floor(math.log(10**6, 1.5)))
    assert refresh_seconds(replace(run, n_shards=100), FLAT) == alone
    assert refresh_seconds(replace(run, learned_weights=False), FLAT) == 0.0
    # Trees grown again at every refresh: at most 1 + 2/3 + 4/9 + ... = 3 times all rows.
    moving = replace(run, regrown=1.0)
    again = refresh_seconds(moving, FLAT) - alone
    all_rows = 100 * 10**6 * 5e-7
    assert 2 * all_rows < again <= 3 * all_rows
    assert refresh_seconds(replace(moving, n_shards=100), FLAT) - alone == pytest.approx(
        again / 100
    )
    # A full window is due each time half of it is new.
    window = refresh_seconds(replace(run, window=10**5), FLAT)
    assert window == pytest.approx(0.5 * (math.floor(math.log(10**5, 1.5)) + 18))
    assert learning_seconds(moving, FLAT).refreshes == refresh_seconds(moving, FLAT)


@pytest.mark.parametrize(("n_trees", "n_shards"), [(3, 2), (10, 4), (40, 2), (100, 2), (100, 64)])
def test_the_number_of_sums_is_that_of_the_core(n_trees, n_shards):
    rows, labels = np.zeros((5, 2), dtype=np.float32), np.zeros(5, dtype=np.int32)
    options = {
        "lifetime": math.inf, "min_samples_split": 2, "weight_rule": "range", "seed": 0,
        "discount": 10.0, "leaf_discount": 0.0,
    }  # fmt: skip
    total = 0
    for held in split_trees(n_trees, n_shards):
        forest = LabelForest(n_trees, 2, held=held, **options)
        forest.learn(rows, labels, 2)
        total += np.asarray(forest.terms(Quantity.PREDICTION, rows)[0]).nbytes
    run = replace(RUN, n_trees=n_trees, n_shards=n_shards, batch=5)
    assert prediction_bytes(run, n_classes=2) == total
    assert n_terms(n_trees, n_shards) == total // (5 * 3 * 8)


def test_the_time_of_a_prediction_is_the_sum_of_its_steps():
    alone = prediction_seconds(RUN, FLAT, 10)
    assert alone == pytest.approx(1_000 * 100 * 2e-6 + 2e-3 + 1e-3)
    cluster = replace(RUN, n_shards=50, n_nodes=50, bandwidth=1e9)
    sent, back = 50 * 68_000, prediction_bytes(cluster, 10)
    assert prediction_seconds(cluster, FLAT, 10) == pytest.approx(
        (sent + back) / 1e9 + 1_000 * 2 * 2e-6 + 3e-3 + 49 * 2e-4
    )
    shared = replace(RUN, n_shards=4, n_cores=2)
    assert prediction_seconds(shared, FLAT, 10) == pytest.approx(alone / 2 + 1.5e-3 + 3 * 2e-4)


def test_the_tables_are_printed_from_saved_figures(tmp_path, capsys):
    path = tmp_path / "benchmarks.json"
    plain = {"ours": "4 ms", "peer": "local 2 ms", "unit": "%", "details": {}}
    rows = [
        {**plain, "case": "fit", "values": [1.0], "median": 1.0},
        {**plain, "case": "Mondrian: Ray, learn", "values": [80.0, 100.0, 150.0], "median": 100.0},
        {
            **plain,
            "case": "Mondrian: Ray, bytes",
            "values": [68_000.0],
            "median": 68_000.0,
            "unit": "bytes",
        },
    ]
    rows[2]["details"] = {"constants": ray_cost.saved(FLAT)}
    figures = {"machine": describe_machine(), "rows": rows}
    path.write_text(json.dumps(figures))
    assert ray_cost.constants_in(json.loads(path.read_text())) == FLAT
    assert ray_cost.main([str(path)]) == 0
    text = capsys.readouterr().out
    tables = [part for part in text.split("\n\n") if part.startswith("| ")]
    assert [len(table.splitlines()) - 2 for table in tables] == [2, 12, *4 * [len(cluster_runs())]]
    cells = [cell.strip() for cell in tables[0].splitlines()[2].split("|")[1:-1]]
    assert cells == ["learn", "4 ms", "local 2 ms", "100 %", "80 – 150"]
    assert "60 + 4 D" in tables[1]
    # 100 trees of 16 features in batches of 1,000: a million batches of 1.1 ms and 63 times 0.2 ms.
    cells = [cell.strip() for cell in tables[2].splitlines()[2].split("|")[1:-1]]
    assert cells[:6] == ["100", "16", "1,000", "3.81 h", "9.67 h, 0.967 h", "0.278 h"]
    assert cells[6:9] == ["9.67 h network, 3.81 h driver", "1.94 h, 12.5 TB", "0.201, 0.511"]
    assert cells[9] == "322 GB"
    path.write_text(json.dumps({**figures, "rows": rows[:2]}))
    assert ray_cost.main([str(path)]) == 2
    assert "--only Ray" in capsys.readouterr().err
    assert ray_cost.main([str(tmp_path / "none.json")]) == 2


def test_without_ray_its_row_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("onlineforest._extras.find_spec", lambda _: None)
    monkeypatch.delenv("ONLINEFOREST_DATA", raising=False)  # not needed
    assert main(["--only", "Ray", "--scale", "0.01", "--out", str(tmp_path)]) == 0
    (row,) = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))["rows"]
    assert row["note"].startswith("not measured: This needs ray")
    assert "pip install 'onlineforest[ray]'" in row["note"]


@pytest.mark.xdist_group("ray")
def test_all_costs_are_measured(tmp_path):
    scale = ["--scale", "0.01", "--repeats", "1", "--out", str(tmp_path)]
    assert main(["--only", "Ray", *scale]) == 0
    content = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert content["complete"]
    assert all(row["values"] and row["case"].startswith(ray_cost.ROWS) for row in content["rows"])
    cases = " ".join(row["case"] for row in content["rows"])
    for part in ("overhead of one shard, learn", "two shards by one, stream", "killed", "model /"):
        assert part in cases
    constants = ray_cost.constants_in(content)
    assert constants.front.at(1_000) > 0 and constants.recovery.at(0) > 0.01
    assert 10 < constants.nodes.at(16) < 1_000
