"""One row as users give it: an array, a mapping from names of features, or a frame of one row.

Must not know forests.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe, is_pandas_like_series
from numpy.typing import ArrayLike

from onlineforest._inputs.cells import TIMES, is_missing

RowLike = ArrayLike | Mapping[str, Any]

# Rows of these types have neither names nor masks.
PLAIN_ROWS = frozenset({np.ndarray, array, list, tuple})


def mapping_in(x: Any) -> Mapping[Any, Any] | None:
    """The values by name if x is a mapping, or a pandas Series whose index holds names."""
    if isinstance(x, Mapping):
        return x
    if not is_pandas_like_series(x):
        return None
    names = list(x.index)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"x has more than one value of {twice!r}.")
    return dict(zip(names, x.tolist(), strict=True))


def is_frame(x: Any) -> bool:
    """Whether x is a data frame; an error unless it has exactly one row."""
    if isinstance(x, Mapping | Sequence | np.ndarray) or not is_into_dataframe(x):
        return False
    n_rows = len(nw.from_native(x))
    if n_rows != 1:
        raise ValueError(f"x must be one sample, but is a data frame with {n_rows:,} rows.")
    return True


def values_by_name(
    x: Mapping[Any, Any], names: Sequence[str] | None, categorical: Container[int] = ()
) -> list[Any]:
    """The values in the order of names; those of features that are not categorical as floats."""
    if names is None:
        raise ValueError(
            f"x is one sample as a {type(x).__name__}, but this forest has no feature names: give "
            "the values as an array, or start the forest with a data frame or a dict."
        )
    if len(x) != len(names) or not all(name in x for name in names):
        _refuse_names(x, names)
    return [
        x[name] if place in categorical else number_of(x[name], name)
        for place, name in enumerate(names)
    ]


def _refuse_names(x: Mapping[Any, Any], names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in x]
    known = set(names)
    unknown = [name for name in x if name not in known]
    problems = []
    if lacking:
        problems.append(
            f"x lacks {_some(lacking)} of the {len(names)} features of this forest (give None or "
            "NaN for a missing value)"
        )
    if unknown:
        problems.append(f"x has {_some(unknown)}, which this forest does not know")
    raise ValueError("; ".join(problems) + ".")


def _some(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def check_first_names(x: Mapping[Any, Any]) -> list[str]:
    """The names that the first row of a forest gives to its features."""
    names = list(x)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ValueError(
            "x is the first sample of this forest, so its keys become the names of the features. "
            f"These must be strings. Got {_some(wrong)}."
        )
    if not names:
        raise ValueError("x is one sample without features, but must have at least one.")
    return names


def number_of(value: Any, name: Any) -> float:
    """The value of a numeric feature, NaN if it is missing."""
    if type(value) is float:
        return value
    if is_missing(value):
        return math.nan
    try:
        if not isinstance(value, (str, bytes, *TIMES)):
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:  # an integer that no float can hold
        return math.inf if value > 0 else -math.inf
    shown = repr(value)
    raise ValueError(
        f"Feature {name!r} is numeric, but its value is "
        f"{shown if len(shown) <= 100 else shown[:100] + '…'}."
    )
