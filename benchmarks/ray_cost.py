"""Cost model of a forest on Ray: seconds, network bytes and memory, from measured constants.

Plain arithmetic: measures nothing and does not know Ray. `python -m benchmarks.ray_cost` prints the
constants and the costs on many nodes; `benchmarks.shards` measures them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.formats import duration, number
from benchmarks.report import markdown_table

GROWTH = 1.5  # weights are refreshed each time the number of samples has grown by this factor
GIGABIT = 1e9 / 8  # bytes per second
ROWS = "Mondrian: Ray, "  # the names of rows about Ray begin so
MOST_GROUPS, FEWEST_TREES = (
    8,
    4,
)  # number of groups of trees that the core sums, and their minimum size


@dataclass(frozen=True)
class Growth:
    """A cost per row and tree that grows with the depth: (base + by D) + (slope + by D) log2 N."""

    base: float = 0.0
    base_by_feature: float = 0.0
    slope: float = 0.0
    slope_by_feature: float = 0.0

    def at(self, n_stored: float, n_features: int) -> float:
        """Cost of one row in one tree of a forest that stores `n_stored` rows."""
        return max(self._line(n_features)[0] + self._line(n_features)[1] * _log2(n_stored), 0.0)

    def between(self, begin: float, end: float, n_features: int) -> float:
        """Total cost of the rows from one number of stored rows to another."""
        base, slope = self._line(n_features)
        whole = base * (end - begin) + slope * (_integral(end) - _integral(begin))
        return max(whole, 0.0)

    def _line(self, n_features: int) -> tuple[float, float]:
        return (
            self.base + self.base_by_feature * n_features,
            self.slope + self.slope_by_feature * n_features,
        )

    @classmethod
    def fitted(cls, points: Sequence[tuple[float, int, float]]) -> Growth:
        """Least-squares fit to (rows stored, features, cost), with relative errors."""
        table = np.array([(1, d, _log2(n), d * _log2(n)) for n, d, _ in points], dtype=float)
        costs = np.array([cost for _, _, cost in points])
        if len({d for _, d, _ in points}) == 1:
            table[:, [1, 3]] = 0.0  # one number of features: its effect is unknown
        found = np.linalg.lstsq(table / costs[:, None], np.ones(len(points)), rcond=None)[0]
        return cls(*map(float, found))


def _log2(n: float) -> float:
    return math.log2(max(n, 1.0))


def _integral(n: float) -> float:
    """Integral of log2 from 1 to n."""
    n = max(n, 1.0)
    return n * math.log2(n) - (n - 1.0) / math.log(2.0)


@dataclass(frozen=True)
class Line:
    """A linear cost: a constant part and a part per unit."""

    always: float = 0.0
    each: float = 0.0

    def at(self, n: float) -> float:
        """The cost of a number of units."""
        return self.always + self.each * n

    @classmethod
    def fitted(cls, points: Sequence[tuple[float, float]]) -> Line:
        """Least-squares fit to (units, cost), with relative errors; negative values become 0."""
        table = np.array([(1.0, n) for n, _ in points])
        amounts = np.array([amount for _, amount in points])
        found = np.linalg.lstsq(table / amounts[:, None], np.ones(len(points)), rcond=None)[0]
        return cls(*(max(float(each), 0.0) for each in found))


@dataclass(frozen=True)
class Constants:
    """The measured constants, in seconds and bytes."""

    learn: Growth  # learning, per row and tree
    grow: Growth  # growing a tree again, per row and tree
    predict: Growth  # predicting, per row and tree
    window: float  # a row through a full window, relative to a row learned
    measure: float  # one refresh of the weights: equal in each shard, whatever its number of trees
    front: Line  # time of the driver for a batch of a stream, by rows
    per_shard: float  # the driver's time for each further shard, per batch
    call: Line  # a prediction without the trees, by rows
    samples: Line  # bytes of a stored row, by features
    nodes: Line  # bytes of a stored row in a tree, by features
    snapshot: Line  # seconds of a snapshot, by bytes of the shard
    recovery: Line  # seconds to restore a lost shard, by bytes of its snapshot

    @classmethod
    def of_dict(cls, found: dict[str, Any]) -> Constants:
        """Constants from the result of `asdict`, or from JSON."""
        kinds = {"learn": Growth, "grow": Growth, "predict": Growth}
        return cls(
            **{
                name: kinds.get(name, Line)(**value) if isinstance(value, dict) else value
                for name, value in found.items()
            }
        )


@dataclass(frozen=True)
class Run:
    """A stream, a forest and a cluster."""

    n_rows: int
    batch: int
    n_trees: int
    n_features: int
    n_shards: int = 1
    n_nodes: int = 0  # besides the node of the driver: batches go there over the network
    n_threads: int = 1  # of a shard
    bandwidth: float = math.inf  # bytes per second out of the driver's node
    n_cores: float = math.inf  # shared by the driver and all shards, if they are on one machine
    n_before: int = 0  # rows learned before the stream begins
    window: int | None = None
    reservoir: int | None = None
    learned_weights: bool = False
    regrown: float = (
        1.0  # share of refreshes that change the weights, so that trees are grown again
    )

    @property
    def n_batches(self) -> int:
        """Number of batches of the stream."""
        return math.ceil(self.n_rows / self.batch)

    @property
    def n_stored(self) -> int:
        """Rows that each shard has learned at the end."""
        end = self.n_before + self.n_rows
        return end if self.bound is None else min(end, self.bound)

    @property
    def bound(self) -> int | None:
        """Maximum number of rows that a shard stores."""
        return self.window or self.reservoir

    @property
    def trees_of_a_shard(self) -> int:
        """Trees of the largest shard, which determines the time."""
        return math.ceil(self.n_trees / min(self.n_shards, self.n_trees))

    @property
    def rounds(self) -> int:
        """Trees that a thread of the largest shard processes one after the other."""
        return math.ceil(self.trees_of_a_shard / self.n_threads)


@dataclass(frozen=True)
class Seconds:
    """Seconds of learning a stream. All parts run at once: the slowest determines the time."""

    front: float
    network: float
    trees: float
    refreshes: float
    shared: float = 0.0  # total CPU time divided by the shared cores

    @property
    def parts(self) -> dict[str, float]:
        """The parts that run at once, by name."""
        shards = "trees" if self.trees >= self.refreshes else "refreshes"
        return {
            "driver": self.front,
            "network": self.network,
            shards: self.trees + self.refreshes,
            "cores": self.shared,
        }

    @property
    def total(self) -> float:
        """Total seconds."""
        return max(self.parts.values())

    @property
    def dominated_by(self) -> str:
        """Name of the slowest part."""
        return max(self.parts, key=self.parts.__getitem__)


def batch_bytes(n_rows: int, n_features: int) -> int:
    """Bytes of a batch: features as float32, a class as int32."""
    return n_rows * (4 * n_features + 4)


def network_bytes(run: Run) -> int:
    """Bytes that leave the driver's node: each other node gets each batch once."""
    return run.n_nodes * batch_bytes(run.n_rows, run.n_features)


def shard_bytes(run: Run, constants: Constants) -> float:
    """Memory of the largest shard: all stored samples, and its trees."""
    samples, nodes = (line.at(run.n_features) for line in (constants.samples, constants.nodes))
    return run.n_stored * (samples + run.trees_of_a_shard * nodes)


def rows_into_trees(run: Run) -> tuple[float, float]:
    """Rows learned while the forest grows, and expected rows that displace others later."""
    begin, end = run.n_before, run.n_before + run.n_rows
    if run.bound is None:
        return run.n_rows, 0.0
    grown = max(min(end, run.bound) - begin, 0)
    full_at = max(begin, run.bound)
    if end <= full_at:
        return grown, 0.0
    if run.window is not None:
        return grown, end - full_at
    return grown, run.bound * math.log(end / full_at)  # the n-th row stays with probability bound/n


def tree_seconds(run: Run, constants: Constants) -> float:
    """Time of the largest shard to let its trees learn the stream."""
    grown, displacing = rows_into_trees(run)
    begin = min(run.n_before, run.n_stored)
    one = constants.learn.between(begin, begin + grown, run.n_features)
    if displacing:
        at_bound = constants.learn.at(run.n_stored, run.n_features)
        one += displacing * constants.window * at_bound
    return run.rounds * one


def refresh_seconds(run: Run, constants: Constants) -> float:
    """Time of refreshes: the measure, which each shard computes, and trees grown again."""
    if not run.learned_weights:
        return 0.0
    total, n = 0.0, max(run.n_before, 1) * GROWTH
    end = run.n_before + run.n_rows

    def refresh(n_stored: float) -> float:
        again = n_stored * constants.grow.at(n_stored, run.n_features) * run.rounds
        return constants.measure + run.regrown * again

    while n <= min(end, run.n_stored):
        total += refresh(n)
        n *= GROWTH
    if run.bound is not None:  # a full window or reservoir is due after half of it is replaced
        total += rows_into_trees(run)[1] / (run.bound * (GROWTH - 1)) * refresh(run.bound)
    return total


def learning_seconds(run: Run, constants: Constants) -> Seconds:
    """Time to learn the stream, by parts."""
    per_batch = constants.front.at(run.batch) + constants.per_shard * (run.n_shards - 1)
    front = run.n_batches * per_batch
    trees, refreshes = tree_seconds(run, constants), refresh_seconds(run, constants)
    of_all = front + min(run.n_shards, run.n_trees) * (trees + refreshes)
    return Seconds(
        front, network_bytes(run) / run.bandwidth, trees, refreshes, of_all / run.n_cores
    )


def n_terms(n_trees: int, n_shards: int) -> int:
    """Number of partial sums that the shards send per row of a prediction.

    The core sums trees in groups, one after the other. A shard that holds the first trees of a
    group sends their partial sum, otherwise one term per tree, so that the result does not depend
    on the number of shards, bit for bit.
    """
    n_groups = min(max(n_trees // FEWEST_TREES, 1), MOST_GROUPS)
    n_shards = min(n_shards, n_trees)
    ends = [(i + 1) * n_trees // n_shards for i in range(n_shards)]
    total = 0
    for group in range(n_groups):
        begin, end = group * n_trees // n_groups, (group + 1) * n_trees // n_groups
        first_ends = next(each for each in ends if each > begin)
        total += 1 + max(end - first_ends, 0)
    return total


def prediction_bytes(run: Run, n_classes: int) -> int:
    """Bytes that the driver receives for one prediction of a batch."""
    width = n_classes + 1  # the core keeps one more number per row
    return n_terms(run.n_trees, run.n_shards) * run.batch * width * 8


def prediction_seconds(run: Run, constants: Constants, n_classes: int) -> float:
    """Time of a prediction of a batch: send, walk the trees, receive, one after the other."""
    out = run.n_nodes * batch_bytes(run.batch, run.n_features) / run.bandwidth
    back = (prediction_bytes(run, n_classes) if run.n_nodes else 0) / run.bandwidth
    trees = run.batch * run.rounds * constants.predict.at(run.n_stored, run.n_features)
    sharing = max(run.n_shards / run.n_cores, 1.0)
    around = constants.call.at(run.batch) + constants.per_shard * (run.n_shards - 1)
    return out + back + trees * sharing + around


# Tables for a cluster.

N_NODES, N_CORES, BILLION, BOUND = 64, 16, 10**9, 10**6


def cluster_runs() -> list[Run]:
    """Runs of a billion rows on 64 nodes of 16 cores each."""
    return [
        Run(
            BILLION,
            batch,
            n_trees,
            n_features,
            n_shards=N_NODES,
            n_nodes=N_NODES,
            n_threads=N_CORES,
        )
        for n_trees in (100, 1000)
        for n_features in (16, 100)
        for batch in (1_000, 10_000)
    ]


def on_one_machine(run: Run) -> Run:
    """The run on one node, without a network."""
    return replace(run, n_shards=1, n_nodes=0, bandwidth=math.inf)


def cluster_table(constants: Constants, **changes: Any) -> str:
    """Markdown table: time for a billion rows on the cluster and on one machine."""
    head = (
        *("trees", "features", "rows per batch", "driver", "network, 1 and 10 Gbit/s", "shards"),
        *("in all, and what decides", "one machine", "times as fast", "memory per node"),
    )
    lines = [head]
    for run in cluster_runs():
        run = replace(run, **changes)
        slow, quick = (
            learning_seconds(replace(run, bandwidth=n * GIGABIT), constants) for n in (1, 10)
        )
        alone = on_one_machine(run)
        by_one = learning_seconds(alone, constants).total
        lines.append(
            (
                f"{run.n_trees:,}",
                f"{run.n_features}",
                f"{run.batch:,}",
                hours(slow.front),
                f"{hours(slow.network)}, {hours(quick.network)}",
                hours(slow.trees + slow.refreshes),
                ", ".join(f"{hours(s.total)} {s.dominated_by}" for s in (slow, quick)),
                f"{hours(by_one)}, {gigabytes(shard_bytes(alone, constants))}",
                ", ".join(number(by_one / s.total) for s in (slow, quick)),
                gigabytes(shard_bytes(run, constants)),
            )
        )
    return markdown_table(lines)


def measured_table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown table: the measured rows about Ray."""
    lines = [("measured", "Ray", "beside", "median", "spread")]
    for row in rows:
        values = row["values"]
        unit = row["unit"]
        figure = (
            f"{number(row['median'])}{unit}" if unit == "×" else f"{number(row['median'])} {unit}"
        )
        spread = f"{number(min(values))} – {number(max(values))}" if len(values) > 1 else ""
        name = row["case"].removeprefix(ROWS)
        lines.append((name, row["ours"], row["peer"], figure.strip(), spread))
    return markdown_table(lines)


def constants_table(constants: Constants) -> str:
    """Markdown table: the constants."""
    c = constants
    lines = [("constant", "value")]
    for name, growth in (("learn", c.learn), ("grow afresh", c.grow), ("predict", c.predict)):
        at = [duration(growth.at(n, d)) for n, d in ((20_000, 16), (20_000, 100), (10**9, 16))]
        what = f"{name} a row in a tree: 20,000 rows of 16 features, of 100, 10⁹ rows of 16"
        lines.append((what, ", ".join(at)))
    lines += [
        ("a row through a full window, by a row learned", number(c.window)),
        ("weights learned anew, in each shard", duration(c.measure)),
        ("driver, a batch of a stream", f"{duration(c.front.always)} + {_each(c.front)} per row"),
        ("driver, each further shard, per batch", duration(c.per_shard)),
        ("predict, beside the trees", f"{duration(c.call.always)} + {_each(c.call)} per row"),
        ("bytes of a stored row", f"{number(c.samples.always)} + {c.samples.each:.2g} D"),
        ("bytes of a stored row in a tree", f"{number(c.nodes.always)} + {c.nodes.each:.2g} D"),
        ("snapshot", f"{duration(c.snapshot.always)} + {_per_gigabyte(c.snapshot)}"),
        ("a lost shard is back after", f"{duration(c.recovery.always)} + "
         f"{_per_gigabyte(c.recovery)}, and what it has to learn again"),
    ]  # fmt: skip
    return markdown_table(lines)


def _each(line: Line) -> str:
    return duration(line.each)


def _per_gigabyte(line: Line) -> str:
    return f"{duration(line.each * 1e9)} per GB"


def hours(seconds: float) -> str:
    """Seconds as hours."""
    return f"{number(seconds / 3600)} h"


def gigabytes(n_bytes: float) -> str:
    """Bytes in billions, or in thousands of them."""
    return f"{number(n_bytes / 1e12)} TB" if n_bytes >= 1e12 else f"{number(n_bytes / 1e9)} GB"


def rows_about_ray(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows about Ray in the figures saved by `python -m benchmarks`."""
    return [row for row in figures["rows"] if row["case"].startswith(ROWS)]


def constants_in(figures: dict[str, Any]) -> Constants:
    """The constants in these rows."""
    for row in rows_about_ray(figures):
        if "constants" in row["details"]:
            return Constants.of_dict(row["details"]["constants"])
    raise ValueError("There are no constants of Ray: run python -m benchmarks --only Ray first.")


def saved(constants: Constants) -> dict[str, Any]:
    """The constants as JSON values."""
    return asdict(constants)


def tables(figures: dict[str, Any], constants: Constants) -> str:
    """All tables, as shown in the documentation."""
    machine = figures["machine"]
    where = f"{machine['cores']} cores, {machine['processor'] or machine['architecture']}"
    versions = f"onlineforest {machine['onlineforest']}, Ray {machine['ray']}"
    kept = f"{BOUND:,}"
    cluster = f"{BILLION:,} rows, {N_NODES} nodes of {N_CORES} cores, one shard each"
    parts = [
        f"{where}, load {machine['load']} at the start, {versions}.",
        measured_table(rows_about_ray(figures)),
        "The constants of the model:",
        constants_table(constants),
        f"{cluster}. All rows are kept:",
        cluster_table(constants),
        "All rows are kept, and learned weights move at each refresh:",
        cluster_table(constants, learned_weights=True),
        f"A window of {kept} rows:",
        cluster_table(constants, window=BOUND),
        f"A reservoir of {kept} rows:",
        cluster_table(constants, reservoir=BOUND),
    ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ray_cost",
        description="What 64 nodes and a billion rows would take, from constants measured here.",
    )
    parser.add_argument(
        "figures",
        type=Path,
        nargs="?",
        default=Path("benchmarks/results/benchmarks.json"),
        help="what python -m benchmarks --only Ray has saved (default: %(default)s)",
    )
    try:
        figures = json.loads(parser.parse_args(argv).figures.read_text(encoding="utf-8"))
        constants = constants_in(figures)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(tables(figures, constants))
    return 0


if __name__ == "__main__":
    sys.exit(main())
