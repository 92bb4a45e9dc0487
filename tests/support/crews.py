"""A crew in this process, whose members can be lost at any moment."""

from __future__ import annotations

import pickle

from onlineforest._forests.core import ORDER_FREE_LABELS, ORDER_FREE_NUMBERS, CoreSource, CoreSpec
from onlineforest._shards.crew import Crew
from onlineforest._shards.errors import MemberLostError
from onlineforest._shards.keeper import Settings, ShardKeeper
from onlineforest._shards.shard import Shard, Start, hello_from_here, plans_of
from onlineforest._shards.sharded import SHARDED_FORESTS


class Lost:
    """The reply of a lost member."""


class LocalCrew(Crew):
    """Keeps shards in this process; `loses(number, method)` says when one is lost in a call."""

    def __init__(self, loses=lambda number, method: None):
        self.shards = {}
        self.loses = loses
        self.n_started = 0
        self.n_lost = 0
        self.can_start = True

    def put(self, message):
        return pickle.loads(pickle.dumps(message))

    def start(self, plan, start):
        self.n_started += 1
        self.shards.pop(plan.number, None)
        if self.can_start:
            # Another process gets a copy.
            self.shards[plan.number] = Shard(*pickle.loads(pickle.dumps((plan, start))))

    def call(self, number, method, *arguments):
        if number not in self.shards:
            return TimeoutError() if method == "hello" else Lost()
        fate = self.loses(number, method)
        if fate == "before":
            self._lose(number)
            return Lost()
        try:
            answer = getattr(self.shards[number], method)(*arguments)
        except Exception as error:
            return error
        if fate == "after":  # it was done, but no one will know
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


class LocalShards(CoreSource):
    """A source of core forests with three shards in this process."""

    def __init__(self, loses):
        self.loses = loses

    def new(self, spec):
        return sharded(LocalCrew(self.loses), plans_of(spec, 3, 1))

    def restore(self, spec, state):
        return sharded(LocalCrew(self.loses), plans_of(spec, 3, 1), Start(state=state))

    def are_trees_of_samples(self, core):
        return core.are_trees_of_samples()


OPTIONS = {"min_samples_split": 2, "max_samples": 0.8, "calibrates": True, "seed": 7}
KINDS = {kind.name: kind for kind in (ORDER_FREE_LABELS, ORDER_FREE_NUMBERS)}


def some_plans(core, n_trees, options, n_shards):
    """The shards of a forest of three features."""
    return plans_of(CoreSpec(KINDS[core], n_trees, 3, options), n_shards, 1)


def sharded(crew, plans, start=None, **settings):
    """A forest whose shards this crew keeps."""
    settings = Settings(**{"max_in_flight": 4, "recovery_timeout": 5.0} | settings)
    keeper = ShardKeeper(crew, plans, start or Start(), hello_from_here(), settings)
    return SHARDED_FORESTS[plans[0].spec.kind.name](keeper)
