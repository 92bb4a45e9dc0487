"""Options, markers and fixtures of all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

# One of scikit-learn's estimator checks runs only if this is set before scipy is imported.
os.environ["SCIPY_ARRAY_API"] = "1"
# Each test process starts a Ray of its own and sends no usage statistics.
os.environ["RAY_ADDRESS"] = "local"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

# A shell starts background jobs with Ctrl-C ignored. Tests of interrupts would then run forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import HealthCheck, settings

# Hypothesis does not judge speed: a machine may be busy. With CI set, it draws the same examples
# every time; otherwise new ones.
settings.register_profile(
    "onlineforest",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("onlineforest")

ROOT = Path(__file__).resolve().parent
FULL_SIZE = 50_000
ORDINARY_SIZE = 3_000
MARKER_OF_FOLDER = {
    "tests/statistical": "statistical",
    "tests/property": "random",
    "tests/ray": "ray",
    "docs/tests": "docs",
    "experiments/tests": "experiments",
    "benchmarks/tests": "benchmarks",
}


def pytest_addoption(parser):
    parser.addoption(
        "--full-size",
        action="store_true",
        help=f"statistical tests with {FULL_SIZE} trees per case instead of {ORDINARY_SIZE}",
    )
    parser.addoption(
        "--statistics-only",
        action="store_true",
        help="statistical tests without the invariant checker",
    )


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        folder = item.path.parent.relative_to(ROOT).as_posix()
        if folder in MARKER_OF_FOLDER:
            item.add_marker(MARKER_OF_FOLDER[folder])
        if any(mark.args[:1] == ("ray",) for mark in item.iter_markers("xdist_group")):
            item.add_marker("ray")
        for mark in item.iter_markers("heavy_under_sanitizers"):
            if not mark.kwargs.get("reason"):
                raise pytest.UsageError(f"{item.nodeid}: heavy_under_sanitizers needs a reason")


@pytest.fixture(scope="session")
def check_invariants(request):
    """The invariant checker of a core forest; does nothing with --statistics-only."""
    if request.config.getoption("--statistics-only"):
        return lambda forest: None
    return lambda forest: forest.check_invariants()


@pytest.fixture(scope="session")
def n_trees(request):
    """Trees per case of a statistical test."""
    return FULL_SIZE if request.config.getoption("--full-size") else ORDINARY_SIZE


@pytest.fixture(autouse=True)
def close_figures():
    """Pyplot keeps all figures open and warns once there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
