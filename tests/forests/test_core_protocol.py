"""The compiled core forests are what the protocols of `_forests.core` promise.

mypy checks this file: annotations prove it for the stub, the tests for the extension.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)
from onlineforest._core import MondrianForest, OrderFreeLabelForest, OrderFreeNumberForest
from onlineforest._forests.core import (
    LOCAL,
    ORDER_FREE_LABELS,
    ORDER_FREE_NUMBERS,
    CoreKind,
    CoreSource,
    CoreSpec,
    OrderFreeCore,
    OrderFreeLabelCore,
    OrderFreeNumberCore,
    State,
)


def of_labels() -> OrderFreeLabelCore:
    return OrderFreeLabelForest(2, 3, seed=7)


def of_numbers() -> OrderFreeNumberCore:
    return OrderFreeNumberForest(2, 3, seed=7)


def members_of(protocol: type) -> set[str]:
    """The names that a protocol asks for, those of its bases included."""
    names = {name for base in protocol.__mro__ for name in vars(base)}
    return {name for name in names if not name.startswith("_")}


def test_the_core_of_labels_has_every_member_of_its_protocol() -> None:
    core = of_labels()
    assert isinstance(core, OrderFreeLabelCore)
    assert members_of(OrderFreeLabelCore) <= set(dir(OrderFreeLabelForest))


def test_the_core_of_numbers_has_every_member_of_its_protocol() -> None:
    core = of_numbers()
    assert isinstance(core, OrderFreeNumberCore) and not isinstance(core, OrderFreeLabelCore)
    assert members_of(OrderFreeNumberCore) <= set(dir(OrderFreeNumberForest))


def test_both_share_the_members_of_the_common_protocol() -> None:
    assert {"apply", "get_state", "n_seen"} <= members_of(OrderFreeCore)
    for protocol in (OrderFreeLabelCore, OrderFreeNumberCore):
        assert members_of(OrderFreeCore) <= members_of(protocol)


def test_a_mondrian_forest_is_no_order_free_core() -> None:
    core: object = MondrianForestClassifier(1, random_state=0).fit([[0.0]], [0])._forest
    assert isinstance(core, MondrianForest) and not isinstance(core, OrderFreeCore)


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [(ORDER_FREE_LABELS, OrderFreeLabelCore), (ORDER_FREE_NUMBERS, OrderFreeNumberCore)],
)
def test_the_extension_takes_the_parameters_of_the_protocol(
    kind: CoreKind[Any], protocol: type
) -> None:
    compiled: Any = kind.make
    for name in members_of(protocol):
        wanted = getattr(protocol, name)
        if isinstance(wanted, property):
            assert not callable(getattr(compiled, name)), name
            continue
        n_wanted = len(inspect.signature(wanted).parameters) - 1  # without `self`, as below
        signature = str(getattr(compiled, name).__nb_signature__[0][0])
        given = signature.split(" -> ")[0].split(": ")[1:]  # types and defaults of parameters
        assert len(given) >= n_wanted, f"{name}: {signature}"
        assert all(" = " in each for each in given[n_wanted:]), f"{name}: {signature}"


@pytest.mark.parametrize(
    "kind",
    [MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor],
)
def test_an_injected_source_makes_and_restores_the_core_forests(kind: type[Any]) -> None:
    class NotedCores(CoreSource):
        def __init__(self) -> None:
            self.made: list[CoreSpec[Any]] = []

        def new(self, spec: CoreSpec[Any]) -> Any:
            self.made.append(spec)
            return LOCAL.new(spec)

        def restore(self, spec: CoreSpec[Any], state: State) -> Any:
            self.made.append(spec)
            return LOCAL.restore(spec, state)

    source = NotedCores()
    forest = kind(3, random_state=0)
    forest._core_source = source
    X, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 3
    forest.fit(X, y)
    (spec,) = source.made
    assert (spec.kind, spec.n_trees, spec.n_features) == (kind._core_kind, 3, 4)
    copy = forest._copy_with_core(source.restore)
    assert source.made == [spec, spec]
    assert copy._core_source is LOCAL and copy._forest is not forest._forest
    assert np.array_equal(copy.predict(X), forest.predict(X))


def test_the_spec_of_a_copy_is_that_of_the_forest_when_it_was_built() -> None:
    forest = MondrianForestClassifier(3, random_state=0).fit([[0.0], [1.0]], [0, 1])
    specs: list[CoreSpec[MondrianForest]] = []

    def note(spec: CoreSpec[MondrianForest], state: State) -> MondrianForest:
        specs.append(spec)
        return LOCAL.restore(spec, state)

    forest._copy_with_core(note)
    forest.n_estimators, forest.window, forest.reservoir = 5, 2, 2  # which no forest can have
    forest._copy_with_core(note)
    assert specs[0] == specs[1] and specs[0].n_trees == 3
