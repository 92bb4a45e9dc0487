"""The C library, built once per session. ONLINEFOREST_C_BUILD names a folder where it is built."""

from __future__ import annotations

import os

import pytest

from support.c_library import Library, build


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = os.environ.get("ONLINEFOREST_C_BUILD")
    if folder is None:
        folder = tmp_path_factory.mktemp("c")
        build(folder)
    return Library(folder)


def pytest_collection_modifyitems(items):
    """All tests of this folder share one build: they run in one process."""
    for item in items:
        if "/tests/c/" in item.path.as_posix():
            item.add_marker("slow")
            item.add_marker(pytest.mark.xdist_group("c"))
