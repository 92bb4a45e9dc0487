"""How much the classes of the estimators lean on each other, and that this is counted rightly."""

from __future__ import annotations

from contextlib import contextmanager
from typing import ClassVar

import pytest

from support.shape import (
    ESTIMATORS,
    all_classes,
    climbs,
    first_lessons,
    hierarchy,
    hooks_and_overrides,
)


class Base:
    """A base with hooks: `size`, `name`, `steps`, `limit` and `kind`."""

    kind: ClassVar[str]
    limit = 3
    alone = 1

    def __init__(self):
        self.entered = []

    @property
    def size(self):
        return 0

    def name(self):
        return "base"

    def call_name(self):
        return self.name()

    def call_within_a_function(self):
        def inner():
            return [self.name() for _ in range(2)]

        return inner()

    def call_size_and_steps(self):
        with self.steps():
            return self.size

    @contextmanager
    def steps(self):
        yield

    def call_another(self):
        return type(self)().name()


class Beside:
    def name(self):
        return "beside"


class Sub(Base):
    kind = "sub"
    limit = 4

    @property
    def size(self):
        return super().size + 1

    def name(self):
        return super().name() + self.own()

    def own(self):
        return "own"

    @contextmanager
    def steps(self):
        with super().steps():
            yield


class Joined(Sub, Beside):
    def own(self):
        return "joined"


TOYS = (Base, Beside, Sub, Joined)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Base, ["kind", "limit", "name", "size", "steps"]),
        (Beside, ["name"]),
        (Sub, ["kind", "limit", "name", "own", "size", "steps"]),
        (Joined, ["own"]),
    ],
)
def test_names_of_several_classes_are_counted(cls, names):
    assert hooks_and_overrides(cls, TOYS) == names


@pytest.mark.parametrize(
    ("method", "found"),
    [
        ("call_name", ["Base.call_name -> Sub.name", "Sub.name -> Joined.own"]),
        ("name", ["Sub.name -> Joined.own"]),
        ("own", []),
        (
            "call_size_and_steps",
            ["call_size_and_steps -> Sub.steps", "call_size_and_steps -> Sub."],
        ),
        ("call_another", ["Sub.name -> Joined.own"]),
    ],
)
def test_calls_that_end_in_a_subclass_are_counted(method, found):
    joined = Joined()
    shown = [str(climb) for climb in climbs(getattr(joined, method), __name__)]
    assert len(shown) == len(found)
    assert all(part in climb for part, climb in zip(found, shown, strict=True))


def test_calls_of_functions_inside_a_method_are_those_of_its_class():
    shown = [climb.callee for climb in climbs(Joined().call_within_a_function, __name__)]
    assert shown == ["Sub.name", "Joined.own"] * 2


def test_the_classes_are_those_of_the_package():
    classes = hierarchy()
    assert set(ESTIMATORS) < set(classes) < set(all_classes())


def test_no_class_has_more_than_15_hooks_and_overrides():
    classes = all_classes()
    names = {cls.__qualname__: hooks_and_overrides(cls, classes) for cls in classes}
    assert {cls: found for cls, found in names.items() if len(found) > 15} == {}


@pytest.mark.parametrize("name", first_lessons())
def test_the_first_batch_climbs_at_most_twice(name):
    found = climbs(first_lessons()[name])
    assert len(found) <= 2, "\n".join(map(str, found))
