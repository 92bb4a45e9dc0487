"""A crew in this process, whose members can be lost at any moment."""

from __future__ import annotations

import pickle

import numpy as np

from onlineforest._distributed.errors import MemberLostError
from onlineforest._distributed.keeper import Settings, ShardKeeper
from onlineforest._distributed.shard import Shard, ShardPlan, Start, hello_from_here
from onlineforest._distributed.sharded import SHARDED_FORESTS
from onlineforest._distributed.splitting import split_trees
from onlineforest._models.core import GUIDED_LABELS, GUIDED_NUMBERS, LABELS, NUMBERS, CoreSpec


class Lost:
    """What a call to a lost member returns."""


class LocalCrew:
    """Keeps shards in this process; `loses(number, method)` says when one is lost in a call."""

    def __init__(self, loses=lambda number, method: False):
        self.shards = {}
        self.loses = loses
        self.n_started = 0
        self.n_lost = 0
        self.can_start = True
        self.n_under_way = 0

    def start(self, plan, start):
        self.n_started += 1
        self.shards.pop(plan.number, None)
        if self.can_start:
            # What another process gets is a copy.
            self.shards[plan.number] = Shard(*pickle.loads(pickle.dumps((plan, start))))

    def put(self, message):
        return pickle.loads(pickle.dumps(message))

    def hello(self, number):
        return self._call(number, "hello")

    def carry_out(self, number, *arguments):
        return self._call(number, "carry_out", *arguments)

    def ask(self, number, *arguments):
        return self._call(number, "ask", *arguments)

    def snapshot(self, number, *arguments):
        return self._call(number, "snapshot", *arguments)

    def _call(self, number, method, *arguments):
        if number not in self.shards:
            return TimeoutError() if method == "hello" else Lost()
        before = self.loses(number, method)
        if before == "before":
            self._lose(number)
            return Lost()
        try:
            answer = getattr(self.shards[number], method)(*arguments)
        except Exception as error:
            return error
        if before == "after":  # it was done, but no one will know
            self._lose(number)
            return Lost()
        return answer

    def get(self, pending, timeout=None):
        if isinstance(pending, Lost):
            raise MemberLostError("It was lost.")
        if isinstance(pending, TimeoutError):
            raise pending
        if isinstance(pending, Exception):
            raise MemberLostError(f"{type(pending).__name__}: {pending}")
        return pending

    def resources(self, n_shards):
        return f"{n_shards} shards need {n_shards}."

    def close(self):
        self.shards.clear()

    def _lose(self, number):
        self.n_lost += 1
        del self.shards[number]


LABEL_OPTIONS = {
    "lifetime": np.inf,
    "discount": 10.0,
    "leaf_discount": None,
    "min_samples_split": 2,
    "weight_rule": "learned",
    "seed": 7,
}
GAUSSIAN_OPTIONS = {
    "lifetime": np.inf,
    "discount": None,
    "noise": None,
    "trend": True,
    "calibrate": True,
    "min_samples_split": 2,
    "weight_rule": "learned",
    "seed": 7,
}


GUIDED_OPTIONS = {"min_samples_split": 2, "max_samples": 0.8, "seed": 7}
KINDS = {kind.name: kind for kind in (LABELS, NUMBERS, GUIDED_LABELS, GUIDED_NUMBERS)}


def plans_of(core, n_trees, n_features, options, n_shards, run="a run"):
    spec = CoreSpec(KINDS[core], n_trees, n_features, options)
    held = split_trees(n_trees, n_shards)
    return [ShardPlan(spec, i, n_shards, held[i], 1, run) for i in range(n_shards)]


def sharded(crew, plans, snapshots=None, starts=None, n_seen=0, **settings):
    """A forest whose shards this crew keeps."""
    settings = {"max_in_flight": 4, "recovery_timeout": 5.0, "max_log": 1000} | settings
    keeper = ShardKeeper(
        crew,
        plans,
        starts or [Start()] * len(plans),
        hello_from_here(),
        Settings(snapshots=snapshots, **settings),
        n_seen,
    )
    return SHARDED_FORESTS[plans[0].spec.kind.name](keeper)
