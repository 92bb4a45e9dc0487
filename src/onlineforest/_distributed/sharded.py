"""Which sharded forest each kind of core forest has, and how a state is split among shards."""

from __future__ import annotations

import numpy as np

from onlineforest._distributed.shard import ShardPlan
from onlineforest._distributed.sharded_base import ShardedForest
from onlineforest._distributed.sharded_guided import (
    ShardedGuidedLabelForest,
    ShardedGuidedNumberForest,
)
from onlineforest._distributed.sharded_mondrian import ShardedGaussianForest, ShardedLabelForest
from onlineforest._distributed.splitting import State, are_trees_up_to_date, state_of_shard
from onlineforest._models.core import GUIDED_LABELS, GUIDED_NUMBERS, LABELS, NUMBERS

SHARDED_FORESTS: dict[str, type[ShardedForest]] = {
    LABELS.name: ShardedLabelForest,
    NUMBERS.name: ShardedGaussianForest,
    GUIDED_LABELS.name: ShardedGuidedLabelForest,
    GUIDED_NUMBERS.name: ShardedGuidedNumberForest,
}
"""The class of sharded forests for each kind of core forest, by name."""


def split_state(state: State, plans: list[ShardPlan]) -> list[State]:
    """The states of shards of a forest of this state."""
    kind = plans[0].spec.kind
    if not kind.has_trees_in_state:  # a shard grows its own trees from the samples
        return [state] * len(plans)
    if not are_trees_up_to_date(state):  # an interrupted call left work that must be finished
        whole = kind.from_state(state)
        whole.forget(np.empty(0, dtype=np.int64))
        state = whole.get_state()
    return [state_of_shard(state, *plan.held) for plan in plans]
