"""A folder for checkpoints, a clock that tests set, and model files to change."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onlineforest import MondrianForestClassifier, OnlineForestClassifier
from onlineforest._store import checkpoints as _checkpoints
from support.model_files import saved


@pytest.fixture
def folder(tmp_path):
    """A folder that does not exist yet."""
    return tmp_path / "checkpoints"


class Clock:
    """Stands in for the module `time`."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_checkpoints, "time", clock)
    return clock


@pytest.fixture(scope="module")
def classifier():
    rows = load_digits().data[:60].astype(np.float32)
    forest = MondrianForestClassifier(3, window=50, random_state=0)
    return saved(forest.fit(rows, np.resize(["a", "b", "c"], 60), ids=range(60)))


@pytest.fixture(scope="module")
def order_free():
    """A window of 50 samples, 49 of them distinct, and a class that is only declared."""
    rows = load_digits().data[:60].astype(np.float32)
    labels = np.resize(["a", "b", "c"], 60)
    rows[59], labels[59] = rows[58], labels[58]
    forest = OnlineForestClassifier(3, window=50, random_state=0)
    return saved(forest.partial_fit(rows, labels, classes=["a", "b", "c", "d"], ids=range(60)))
