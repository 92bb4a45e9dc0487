"""Estimates of the memory that objects of Python take. Must not know estimators."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 16  # Python allocates multiples of it


def nbytes_of_objects(objects: Iterable[Any]) -> int:
    """Bytes of texts, numbers and the like. Of an object that is there twice, twice."""
    sizes = np.fromiter(map(sys.getsizeof, objects), np.int64)
    return int((-(-sizes // _ALIGNMENT)).sum()) * _ALIGNMENT


def nbytes_of_dict(table: Mapping[Any, int]) -> int:
    """Bytes of a dict, its keys and its values, which are ints."""
    of_objects = nbytes_of_objects(table) + nbytes_of_objects(table.values())
    return sys.getsizeof(table) + of_objects


def nbytes_of_array(array: NDArray[Any]) -> int:
    """Bytes of an array, with its objects if it holds some."""
    return array.nbytes + (nbytes_of_objects(array.flat) if array.dtype == np.object_ else 0)
