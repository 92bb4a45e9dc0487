"""Compares depth and accuracy of the Mondrian forest on the paper's data sets with the paper.

    ONLINEFOREST_DATA=/path/to/data python -m experiments.paper_table

The paper's protocol: features rescaled to [0, 1] over train and test together, 100 trees, infinite
lifetime, gamma = 10 D, one pass in 100 mini-batches over shuffled rows, several seeds. dna† is dna
reduced to columns 60 to 119. Exits with 1 if a number is out of bounds. Without the folder the data
are fetched from OpenML. `python -m experiments.paper` reproduces the rest of the paper.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from experiments.common import mean_and_deviation, print_header, print_row, show_progress
from experiments.paper.data import DataError
from experiments.paper.expected import EXPECTED
from experiments.paper.names import MF
from experiments.paper.tasks import Task, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="default: 5, and 20 for dna")
    parser.add_argument("--data", nargs="*", choices=EXPECTED, default=list(EXPECTED))
    arguments = parser.parse_args()

    print("100 trees, one pass in 100 mini-batches\n")
    print_header("data", "depth", "paper", "accuracy", "expected", "seconds", "ok")
    all_ok = True
    for name in arguments.data:
        expected = EXPECTED[name]
        results = []
        n_seeds = arguments.seeds or expected.seeds
        for seed in range(n_seeds):
            show_progress(f"{name}, seed {seed + 1} of {n_seeds} …")
            try:
                [record] = run(Task(name, MF, seed, n_trees=100, fractions=(1.0,)))
            except DataError as error:
                print(error, file=sys.stderr)
                return 2
            results.append((record.accuracy, record.depth, record.seconds))
        accuracies, depths, seconds = np.array(results).T
        low, high = expected.accuracy
        ok = low - expected.tolerance <= accuracies.mean() <= high + expected.tolerance
        paper = "-"
        if expected.depth:
            paper = f"{expected.depth[0]} ± {expected.depth[1]}"
            ok &= abs(depths.mean() - expected.depth[0]) <= expected.depth[1]
        all_ok &= ok
        print_row(
            name,
            f"{depths.mean():.2f}",
            paper,
            mean_and_deviation(accuracies),
            f"{low:.3f}–{high:.3f} ± {expected.tolerance}",
            f"{seconds.mean():.1f}",
            "yes" if ok else "NO",
        )
    return 0 if all_ok else 1


if __name__ == "__main__":
    sys.exit(main())
