"""Counts how much the classes of the estimators lean on each other: hooks and climbs.

A reader of a class has to look elsewhere for each name that another class of the hierarchy defines,
too (a hook or an override), and for each call on `self` that ends in a subclass (a climb).

    PYTHONPATH=src:tests python -m support.shape

prints both for all estimators. Must not know names of private classes: they are found from the
public ones.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import onlineforest
from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)

ESTIMATORS = (OnlineForestClassifier, OnlineForestRegressor, MondrianForestClassifier)
# Names that Python, `abc`, `typing` and `dataclasses` set on a class; nobody wrote them there.
GENERATED = {
    "__abstractmethods__",
    "__annotate__",
    "__annotate_func__",
    "__annotations__",
    "__annotations_cache__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__match_args__",
    "__module__",
    "__non_callable_proto_members__",
    "__orig_bases__",
    "__parameters__",
    "__protocol_attrs__",
    "__qualname__",
    "__slots__",
    "__static_attributes__",
    "__subclasshook__",
    "__weakref__",
    "_abc_impl",
    "_is_protocol",
    "_is_runtime_protocol",
}


class Climb(NamedTuple):
    """A call on `self` from the code of a class to a method that a subclass of it defines."""

    caller: str
    callee: str

    def __str__(self) -> str:
        return f"{self.caller} -> {self.callee}"


def is_ours(cls: type, package: str = "onlineforest") -> bool:
    """Whether a class is one of a package."""
    return f"{cls.__module__}.".startswith(f"{package}.")


def hierarchy(estimators: Iterable[type] = ESTIMATORS) -> list[type]:
    """All classes that estimators inherit from and that are ours, and their subclasses."""
    bases = {base for estimator in estimators for base in estimator.__mro__ if is_ours(base)}
    return [cls for cls in all_classes() if any(issubclass(cls, base) for base in bases)]


def all_classes() -> list[type]:
    """All classes of the package, bases before their subclasses."""
    import_all()
    found = {
        value
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "onlineforest"
        for value in list(vars(module).values())
        if isinstance(value, type) and is_ours(value)
    }
    return sorted(found, key=lambda cls: (len(cls.__mro__), cls.__module__, cls.__qualname__))


def import_all() -> None:
    """Import all modules of the package, so that each subclass is known."""
    for module in pkgutil.walk_packages(onlineforest.__path__, "onlineforest."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an optional package is not installed
                continue


def defined_in(cls: type) -> set[str]:
    """The methods, properties and attributes that the source of a class gives a value."""
    return {name for name, value in vars(cls).items() if not is_generated(name, value)}


def is_generated(name: str, value: Any) -> bool:
    """Whether an attribute of a class is not in its source, but of scikit-learn or dataclasses."""
    code = getattr(value, "__code__", None)
    is_compiled_from_text = code is not None and code.co_filename == "<string>"
    is_request = type(value).__name__ == "RequestMethod"
    return name in GENERATED or is_compiled_from_text or is_request


def declared_in(cls: type) -> set[str]:
    """Names that a class defines, or annotates without a value for subclasses to define."""
    return defined_in(cls) | set(inspect.get_annotations(cls))


def hooks_and_overrides(cls: type, classes: Iterable[type]) -> list[str]:
    """The names that a class defines and another class defines for the same objects.

    That is a base, a subclass, or a class beside it under a common subclass.
    """
    ours = set(classes)
    others = {
        other for each in ours if cls in each.__mro__ for other in each.__mro__ if other in ours
    } - {cls}
    own, declared = defined_in(cls), declared_in(cls)
    names = {
        name
        for other in others
        for name in (own & declared_in(other)) | (declared & defined_in(other))
    }
    return sorted(names)


def climbs(call: Callable[[], Any], package: str = "onlineforest") -> list[Climb]:
    """The climbs of a call between classes of a package, one for each time, in order.

    A method that is called through other code, such as a context manager, counts for the nearest
    caller that is a method of the same object.
    """
    found: list[Climb] = []
    seen: list[FrameType] = []  # a generator is entered again after each `yield`
    classes_of: dict[type, dict[int, type]] = {}

    def method_of(frame: FrameType) -> tuple[object, type] | None:
        """The object and the class of the method that a frame runs, if it is one of ours."""
        this = self_of(frame)
        if type(this) not in classes_of:
            classes_of[type(this)] = classes_by_code(type(this), package)
        cls = classes_of[type(this)].get(id(frame.f_code))
        return None if cls is None else (this, cls)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (callee := method_of(frame)) is None or frame in seen:
            return
        seen.append(frame)
        back = frame.f_back
        while back is not None:
            caller = method_of(back)
            if caller is not None and caller[0] is callee[0]:
                if caller[1] is not callee[1] and issubclass(callee[1], caller[1]):
                    found.append(
                        Climb(
                            f"{caller[1].__name__}.{back.f_code.co_name}",
                            f"{callee[1].__name__}.{frame.f_code.co_name}",
                        )
                    )
                return
            back = back.f_back

    with profiling(profile):
        call()
    return found


@contextmanager
def profiling(profile: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Have each call reported, as to `sys.setprofile`."""
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


def self_of(frame: FrameType) -> object | None:
    """The object of the method that a frame runs, also in a function inside the method."""
    code = frame.f_code
    local = frame.f_locals
    if "self" in local:
        return local["self"]
    return local.get(code.co_varnames[0]) if code.co_argcount else None


def classes_by_code(kind: type, package: str) -> dict[int, type]:
    """The class of a package that defines each method of an object, by the id of its code."""
    return {
        id(code): cls
        for cls in kind.__mro__
        if is_ours(cls, package)
        for value in vars(cls).values()
        for function in functions_in(value)
        for code in codes_in(function.__code__)
    }


def functions_in(value: Any) -> Iterator[Any]:
    """The functions behind an attribute of a class, if it is a method or a property."""
    if isinstance(value, property):
        parts = (value.fget, value.fset, value.fdel)
    elif isinstance(value, cached_property):
        parts = (value.func,)
    else:
        parts = (getattr(value, "__func__", value),)
    for part in parts:
        while part is not None:
            inner = getattr(part, "__wrapped__", None)
            if inspect.isfunction(part) and inner is None:  # other methods share a wrapper's code
                yield part
            part = inner


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def first_lessons() -> dict[str, Callable[[], Any]]:
    """The first `partial_fit` of each estimator, by a name for it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    labels = np.where(X[:, 0] > 0, "yes", "no")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "colour": np.tile(["red", "blue"], 30)})
    options = {"n_estimators": 3, "random_state": 0}
    classifier = OnlineForestClassifier(**options)
    mixed = OnlineForestClassifier(**options)
    regressor = OnlineForestRegressor(**options)
    mondrian = MondrianForestClassifier(**options)
    return {
        "OnlineForestClassifier, array": lambda: classifier.partial_fit(X, labels),
        "OnlineForestClassifier, data frame": lambda: mixed.partial_fit(frame, labels),
        "OnlineForestRegressor, array": lambda: regressor.partial_fit(X, X[:, 1]),
        "MondrianForestClassifier, array": lambda: mondrian.partial_fit(X, labels),
    }


def main() -> None:
    """Print hooks and overrides of all classes, and the climbs of each first `partial_fit`."""
    estimators = hierarchy()
    others = [cls for cls in all_classes() if cls not in estimators]
    for title, classes in (
        ("hooks and overrides of the estimators", estimators),
        ("of all other classes that have some", others),
    ):
        print(title)
        for cls in classes:
            names = hooks_and_overrides(cls, all_classes())
            if names:
                print(f"{len(names):4}  {cls.__module__}.{cls.__qualname__}: {', '.join(names)}")
    print("\nclimbs of the first partial_fit")
    for name, lesson in first_lessons().items():
        found = climbs(lesson)
        print(f"{len(found):4}  {name}")
        print(*(f"          {climb}" for climb in found), sep="\n", end="\n" if found else "")


if __name__ == "__main__":
    main()
