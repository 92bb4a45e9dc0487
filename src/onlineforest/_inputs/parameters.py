"""Check the parameters of estimators. Must not know estimators.

The messages have scikit-learn's form. scikit-learn keeps its own checks in private modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np


class InvalidParameterError(ValueError, TypeError):
    """A parameter has a value that it must not have. Like scikit-learn's, of both kinds."""


@dataclass(frozen=True)
class Constraint:
    """Values that a parameter may have, and what an error calls them."""

    text: str
    accepts: Callable[[Any], bool]


# A string and None stand for themselves.
Constraints: TypeAlias = Mapping[str, Sequence[Constraint | str | None]]


def interval(kind: type, lower: float, upper: float, brackets: str = "[]") -> Constraint:
    """Numbers of a kind between two bounds; a round bracket excludes its bound. Never NaN."""
    left, right = brackets[0], brackets[1]
    name = "an int" if kind is Integral else "a number"

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, kind)
            and bool(lower <= value <= upper)  # type: ignore[operator]
            and not (left == "(" and value == lower)
            and not (right == ")" and value == upper)
        )

    return Constraint(f"{name} in the range {left}{lower}, {upper}{right}", accepts)


def instance_of(kind: type, text: str) -> Constraint:
    """All values of a type."""
    return Constraint(text, lambda value: isinstance(value, kind))


def _is_array_like(value: Any) -> bool:
    return not np.isscalar(value) and (hasattr(value, "__len__") or hasattr(value, "__array__"))


ARRAY_LIKE = Constraint("an array-like", _is_array_like)
BOOLEAN = Constraint("True or False", lambda value: isinstance(value, bool | np.bool_))
RANDOM_STATE = (
    interval(Integral, 0, 2**32 - 1),
    instance_of(np.random.RandomState, "a numpy.random.RandomState"),
    None,
)


def check_parameters(owner: str, values: Mapping[str, Any], constraints: Constraints) -> None:
    """Raise unless each value meets one of its constraints.

    Parameters without constraints are those of a user's subclass.
    """
    for name, value in values.items():
        allowed = constraints.get(name)
        if allowed is None or any(_accepts(each, value) for each in allowed):
            continue
        *others, last = (
            each.text if isinstance(each, Constraint) else repr(each) for each in allowed
        )
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InvalidParameterError(
            f"The {name!r} parameter of {owner} must be {wanted}. Got {value!r} instead."
        )


def _accepts(constraint: Constraint | str | None, value: Any) -> bool:
    if isinstance(constraint, Constraint):
        return constraint.accepts(value)
    return value is None if constraint is None else isinstance(value, str) and value == constraint
