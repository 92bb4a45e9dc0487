"""Runs commands in this process, and makes tables for them."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from onlineforest import _cli
from onlineforest._cli.forests import FORESTS

COMMAND = [sys.executable, "-m", "onlineforest"]
each_kind = pytest.mark.parametrize("kind", FORESTS)


def run(*arguments, **options):
    return CliRunner().invoke(_cli.build_command(), [str(a) for a in arguments], **options)


def fine(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def stream(n, seed=0, kind="order-free"):
    """Data frame of samples with a class of three and a number.

    For kinds of forests that learn missing values, it has some.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    colour = np.array(["red", "green", "blue"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    if kind != "mondrian":
        X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, "id", [f"s{i}" for i in range(n)])
    return frame.assign(kind=colour, value=3.0 * X[:, 0] + X[:, 1].astype(float) ** 2)


CLASSIFY = ["--target", "kind", "--task", "classify", "--drop", "id", "--drop", "value"]
REGRESS = ["--target", "value", "--task", "regress", "--drop", "id", "--drop", "kind"]
SMALL = ["--trees", "5", "--batch-size", "50"]


def of(kind):
    """Options for a kind of forest: none for the default."""
    return [] if kind == "order-free" else ["--forest", kind]
