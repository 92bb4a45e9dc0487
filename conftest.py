"""Options and fixtures for all tests."""

from __future__ import annotations

import os
import sys

# One of scikit-learn's estimator checks runs only where this is set before scipy is imported.
os.environ["SCIPY_ARRAY_API"] = "1"
# A Ray of each process's own, and no word of it to anybody.
os.environ["RAY_ADDRESS"] = "local"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import pytest
from hypothesis import settings

# Where CI is set, the same examples come every time; elsewhere, new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

FULL_SIZE = 50_000
ORDINARY_SIZE = 3_000


def pytest_addoption(parser):
    parser.addoption(
        "--full-size",
        action="store_true",
        help=f"statistical tests with {FULL_SIZE} trees a case instead of {ORDINARY_SIZE}",
    )

    parser.addoption(
        "--statistics-only",
        action="store_true",
        help="statistical tests without the invariant checker",
    )


@pytest.fixture(scope="session")
def check_invariants(request):
    """The invariant checker, for a core forest; left out with --statistics-only."""
    if request.config.getoption("--statistics-only"):
        return lambda forest: None
    return lambda forest: forest.check_invariants()


@pytest.fixture(scope="session")
def n_trees(request):
    """Trees per case of a statistical test."""
    return FULL_SIZE if request.config.getoption("--full-size") else ORDINARY_SIZE


@pytest.fixture(autouse=True)
def close_figures():
    """Pyplot keeps its figures, and warns once they are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
