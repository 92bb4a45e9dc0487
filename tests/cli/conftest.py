"""Folders with data and models for the commands."""

from __future__ import annotations

import shutil

import pytest

from onlineforest._cli.forests import FORESTS
from support.commands import CLASSIFY, REGRESS, SMALL, fine, of, stream


@pytest.fixture
def kind():
    """Kind of the forests of a test that is not marked with `each_kind`."""
    return "order-free"


@pytest.fixture
def folder(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    stream(500, kind=kind).to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Folder with a model of each kind and task, trained once for all tests."""
    path = tmp_path_factory.mktemp("models")
    for kind, tasks in FORESTS.items():
        (path / kind).mkdir()
        data, options = path / kind / "data.csv", [*SMALL, *of(kind), "-o"]
        stream(500, kind=kind).to_csv(data, index=False)
        fine("train", data, *CLASSIFY, *options, path / kind / "kinds.st")
        if "regress" in tasks:
            fine("train", data, *REGRESS, *options, path / kind / "values.st")
    return path


@pytest.fixture
def models(trained, folder, kind):
    shutil.copytree(trained / kind, folder, dirs_exist_ok=True)
    return folder
