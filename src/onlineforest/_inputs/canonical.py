"""Canonical bytes of labels and levels: equal values have equal bytes, distinct ones do not.

They depend neither on types nor on the processor. Must not know forests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Attoseconds, the smallest unit of numpy, per unit of time.
_ATTOSECONDS = {
    "W": 604_800 * 10**18,
    "D": 86_400 * 10**18,
    "h": 3_600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}
_MONTHS = {"Y": 12, "M": 1}


def canonical_bytes(label: Any) -> bytes:
    """The canonical bytes of a label: equal labels have equal bytes, distinct ones do not.

    1, True, 1.0 and np.int8(1) are the same label, "1" is another one.
    """
    if isinstance(label, str):
        return b"text " + str.__str__(label).encode("utf-8", "surrogatepass")
    if isinstance(label, np.datetime64 | np.timedelta64):
        return _time_bytes(label)
    if isinstance(label, int | float | np.integer | np.floating | np.bool_):
        number = int(label)
        if number == label:
            return b"number %d" % number
    raise ValueError(f"A label must be a string, a whole number, a bool or a time. Got {label!r}.")


def _time_bytes(label: Any) -> bytes:
    if np.isnat(label):
        raise ValueError("Input y contains NaT: a label is missing.")
    kind = "date" if isinstance(label, np.datetime64) else "duration"
    unit, step = np.datetime_data(label.dtype)
    if unit in _MONTHS and kind == "date":
        label, unit, step = label.astype("M8[D]"), "D", 1
    number, steps = int(label.astype(np.int64)), _MONTHS if unit in _MONTHS else _ATTOSECONDS
    name = "months" if unit in _MONTHS else kind
    # A duration without a unit is a plain number.
    return f"{name} {number * step * steps.get(unit, 1)}".encode()
