"""Checkpoints of small forests: saved, listed, and intact after a save that fails."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from onlineforest import MondrianForestClassifier
from onlineforest._store.checkpoints import Checkpointer
from support.bits import assert_same_forest


def learned(n_samples=3, forest=None):
    """A forest that has learned this number of (further) samples."""
    forest = forest or MondrianForestClassifier(n_estimators=2, random_state=0)
    rng = np.random.default_rng(n_samples)
    return forest.partial_fit(rng.random((n_samples, 2)), rng.integers(2, size=n_samples))


def name(number):
    return f"checkpoint-{number:012d}.safetensors"


def names(folder):
    return sorted(os.listdir(folder))


def numbers(folder):
    """The numbers of the checkpoints in a folder, which must hold nothing else."""
    pattern = r"checkpoint-(\d{12})\.safetensors"
    return [int(re.fullmatch(pattern, each)[1]) for each in names(folder)]


def save_several(folder, n):
    """Save checkpoints 1 to n, of forests that have seen a growing number of samples."""
    for i in range(1, n + 1):
        Checkpointer(folder, keep=100).save(learned(i))


def assert_fails(checkpointer, forest, number):
    """A save fails and leaves no file; earlier checkpoints and the forest are unchanged."""
    before = {path.name: path.read_bytes() for path in checkpointer.folder.iterdir()}
    state = forest._forest.get_state()
    with pytest.raises(OSError, match="checkpoint not written") as caught:
        checkpointer.save(forest)
    error = caught.value
    assert error.errno == number
    assert type(error) is type(OSError(number, ""))
    ones = "1 earlier one is" if len(before) == 1 else f"{len(before)} earlier ones are"
    assert error.strerror == f"{os.strerror(number)}; checkpoint not written, {ones} intact"
    assert error.filename == str(checkpointer.folder / name(len(before) + 1))
    assert {path.name: path.read_bytes() for path in checkpointer.folder.iterdir()} == before
    assert all(
        np.array_equal(array, state[key]) for key, array in forest._forest.get_state().items()
    )


def assert_goes_on(checkpointer, forest, last_saved):
    """The last checkpoint opens, and the forest continues to learn and can be saved."""
    assert checkpointer.open().position == last_saved
    checkpointer.save(learned(5, forest))
    checkpoint = checkpointer.open()
    assert checkpoint.position == forest.n_samples_seen_
    assert_same_forest(checkpoint.forest, forest)
