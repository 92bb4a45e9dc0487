"""Splits core forests into shards, and joins the states and mixtures of shards.

A shard holds some of the trees and all of the samples. Must not know where shards live.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]
Mixtures = dict[str, NDArray[Any]]

_TREES = "trees."  # prefix of the arrays of a state that belong to trees
_SIZES = ".sizes"
_PER_COMPONENT = ("completion_of", "masses", "means", "variances")


def split_trees(n_trees: int, n_shards: int) -> list[tuple[int, int]]:
    """The range [begin, end) of trees of each shard; sizes differ by one at most."""
    return [(i * n_trees // n_shards, (i + 1) * n_trees // n_shards) for i in range(n_shards)]


def state_of_shard(state: State, begin: int, end: int) -> State:
    """The state of the shard that holds the trees [begin, end)."""
    n_trees = len(state[f"{_TREES}measure"])
    shard = {}
    for name, array in state.items():
        if not name.startswith(_TREES):
            shard[name] = array
        elif f"{name}{_SIZES}" in state:  # each tree has a number of entries of its own
            ends = np.concatenate([[0], np.cumsum(state[f"{name}{_SIZES}"])]).astype(np.int64)
            shard[name] = array[ends[begin] : ends[end]]
        else:
            width = len(array) // n_trees
            shard[name] = array[begin * width : end * width]
    return shard


def join_states(states: Sequence[State]) -> State:
    """The state of the forest whose shards have these states, in the order of the trees."""
    first = states[0]
    joined = {}
    for name, array in first.items():
        if name.startswith(_TREES):
            joined[name] = np.concatenate([state[name] for state in states])
            continue
        joined[name] = array
        for i, state in enumerate(states):
            if state[name].tobytes() != array.tobytes():
                raise RuntimeError(f"Shards 0 and {i} of a forest do not agree on {name!r}.")
    return joined


def are_trees_up_to_date(state: State) -> bool:
    """Whether all trees hold all samples; False if a call was interrupted."""
    n_points = state[f"{_TREES}next_point{_SIZES}"]
    measures = state[f"{_TREES}measure"]
    return bool(np.all(n_points == len(state["values"])) and np.all(measures == state["measure"]))


def join_mixtures(shards: Sequence[Mixtures]) -> Mixtures:
    """The mixtures of the forest: for each row the components of all shards, in tree order."""
    ends = [np.concatenate([[0], mixtures["ends"]]).astype(np.int64) for mixtures in shards]
    counts: list[NDArray[np.int64]] = [end[1:] - end[:-1] for end in ends]
    n_rows = len(counts[0])
    rows = np.concatenate([np.repeat(np.arange(n_rows), count) for count in counts])
    order = np.argsort(rows, kind="stable")
    joined = {
        name: np.concatenate([mixtures[name] for mixtures in shards])[order]
        for name in _PER_COMPONENT
    }
    return joined | {"ends": np.cumsum(np.sum(counts, axis=0)).astype(np.uint64)}


def join_left_out(shards: Sequence[Mixtures]) -> Mixtures:
    """The mixtures of left-out points, with what all shards agree on."""
    return join_mixtures(shards) | {name: shards[0][name] for name in ("residuals", "weights")}
