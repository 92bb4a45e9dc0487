"""The order and the text of keys and labels of any hashable type. Must not know forests.

Both follow from the values alone: equal values of different types, such as 1, True and 1.0, have
the same place and the same text. Of objects that are not strings, numbers, tuples or frozen sets,
`repr` must tell different ones apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

Number = int | float | Fraction

_INTEGERS = (int, np.integer, np.bool_)
_OTHER_NUMBERS = (float, np.floating, Fraction, Decimal)
_NUMBERS, _STRINGS, _OTHERS = range(3)
_LEAST, _MOST = -(2**63), 2**63 - 1


def sorted_keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Distinct keys in an order that does not depend on their order of arrival.

    First numbers by value, then strings by code points, then all others by their text.
    """
    places = {key: _place_of(key) for key in dict.fromkeys(keys)}
    found = tuple(sorted(places, key=places.__getitem__))
    for one, other in pairwise(found):
        if places[one] == places[other]:
            raise ValueError(
                f"The keys {one!r} and {other!r} are different, but have the same text: they have "
                "no order. Use strings as keys."
            )
    return found


def plain_labels(labels: Iterable[Hashable]) -> dict[Hashable, Any]:
    """For each label one that an estimator of labels of a single kind can learn.

    Whole numbers and strings stay what they are if there are no others beside them. In any other
    case all labels become texts. So the result follows from the set of labels.
    """
    found = list(dict.fromkeys(labels))
    kinds = {_kind_of(label) for label in found}
    if kinds <= {_STRINGS}:
        return {label: str.__str__(label) for label in found}
    if kinds == {_NUMBERS}:
        return {label: _whole_number(label) for label in found}
    labels_of: dict[str, Hashable] = {}
    for label in found:
        other = labels_of.setdefault(text_of(label), label)
        if other != label:
            raise ValueError(
                f"The labels {other!r} and {label!r} are different, but have the same text: one "
                "model cannot learn both. Use strings as labels."
            )
    return {label: text for text, label in labels_of.items()}


def text_of(value: Hashable) -> str:
    """A text of a value: equal values have equal texts, whatever their types."""
    if isinstance(value, str):
        return repr(str.__str__(value))
    number = _number_in(value)
    if number is not None:
        return repr(number)
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(text_of, value)))}}}"
    return f"{type(value).__name__} {value!r}"


def _place_of(key: Hashable) -> tuple[int, Number, str]:
    if isinstance(key, str):
        return _STRINGS, 0, str.__str__(key)
    number = _number_in(key)
    return (_OTHERS, 0, text_of(key)) if number is None else (_NUMBERS, number, "")


def _number_in(value: object) -> Number | None:
    """A finite number as a plain one, the same for equal numbers of all types; else None."""
    if isinstance(value, _INTEGERS):
        return int(value)
    if not isinstance(value, _OTHER_NUMBERS):
        return None
    try:
        exact = Fraction(*value.as_integer_ratio())
        if exact.denominator == 1:
            return exact.numerator
        return float(exact) if float(exact) == exact else exact
    except (ValueError, OverflowError):  # NaN, or infinite
        return None


def _kind_of(label: Hashable) -> int:
    """The kind of a label, `_OTHERS` if no array of numbers or strings can hold it unchanged."""
    if isinstance(label, str):
        return _OTHERS if label.endswith("\0") else _STRINGS  # numpy drops it
    number = _number_in(label)
    return _NUMBERS if isinstance(number, int) and _LEAST <= number <= _MOST else _OTHERS


def _whole_number(label: Any) -> int:
    """The label as an int or a bool."""
    return bool(label) if isinstance(label, bool | np.bool_) else int(label)
