"""Parts of a core forest: which trees each holds, and their states and laws split and joined.

A part holds some of the trees and all of the samples. Knows nothing of who holds the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]
Laws = dict[str, NDArray[Any]]

_TREES = "trees."  # what arrays of a state begin with that belong to trees
_SIZES = ".sizes"
_PER_COMPONENT = ("completion_of", "masses", "means", "variances")


def split_trees(n_trees: int, n_parts: int) -> list[tuple[int, int]]:
    """The first tree of each part and the one after its last; sizes differ by one at most."""
    return [(i * n_trees // n_parts, (i + 1) * n_trees // n_parts) for i in range(n_parts)]


def part_of_state(state: State, begin: int, end: int) -> State:
    """The state of the part that holds the trees [begin, end)."""
    n_trees = len(state[f"{_TREES}measure"])
    part = {}
    for name, array in state.items():
        if not name.startswith(_TREES):
            part[name] = array
        elif f"{name}{_SIZES}" in state:  # trees have a different number of them
            ends = np.concatenate([[0], np.cumsum(state[f"{name}{_SIZES}"])]).astype(np.int64)
            part[name] = array[ends[begin] : ends[end]]
        else:
            width = len(array) // n_trees
            part[name] = array[begin * width : end * width]
    return part


def join_states(states: Sequence[State]) -> State:
    """The state of the forest whose parts have these states, in the order of the trees."""
    first = states[0]
    joined = {}
    for name, array in first.items():
        if name.startswith(_TREES):
            joined[name] = np.concatenate([state[name] for state in states])
            continue
        joined[name] = array
        for i, state in enumerate(states):
            if state[name].tobytes() != array.tobytes():
                raise RuntimeError(f"Parts 0 and {i} of a forest do not agree on {name!r}.")
    return joined


def are_trees_up_to_date(state: State) -> bool:
    """Whether all trees hold all samples, as they do unless a call was interrupted."""
    n_points = state[f"{_TREES}next_point{_SIZES}"]
    measures = state[f"{_TREES}measure"]
    return bool(np.all(n_points == len(state["values"])) and np.all(measures == state["measure"]))


def join_laws(parts: Sequence[Laws]) -> Laws:
    """The laws of the forest: row by row the components of all parts, in the order of the trees."""
    ends = [np.concatenate([[0], laws["ends"]]).astype(np.int64) for laws in parts]
    counts: list[NDArray[np.int64]] = [end[1:] - end[:-1] for end in ends]
    n_rows = len(counts[0])
    rows = np.concatenate([np.repeat(np.arange(n_rows), count) for count in counts])
    order = np.argsort(rows, kind="stable")
    joined = {
        name: np.concatenate([laws[name] for laws in parts])[order] for name in _PER_COMPONENT
    }
    return joined | {"ends": np.cumsum(np.sum(counts, axis=0)).astype(np.uint64)}


def join_left_out(parts: Sequence[Laws]) -> Laws:
    """The same for laws of points left out, on whose residuals all parts agree."""
    return join_laws(parts) | {"residuals": parts[0]["residuals"]}
