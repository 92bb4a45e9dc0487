"""Ids: the names that users give to samples, and the serial of each.

Must not know estimators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._inputs.memory import nbytes_of_dict

Id = int | str
Serials = NDArray[np.int64]
# For each serial 1 if its sample is stored, else 0.
AreStored = Callable[[Serials], NDArray[np.uint8]]


def check_ids(ids: Any, n_samples: int | None = None) -> list[Id]:
    """A list of distinct ids, integers or strings, one per sample."""
    has_order = isinstance(ids, Iterable) and not isinstance(ids, str | bytes | Set | Mapping)
    if not has_order or getattr(ids, "ndim", 1) != 1:  # iterating over a table gives its columns
        raise TypeError(
            "ids must be a list or array of ids in one dimension, one per sample. "
            f"Got {ids!r} instead."
        )
    values = ids.to_pylist() if hasattr(ids, "to_pylist") else ids  # a column of pyarrow
    checked = [_check_id(each) for each in values]
    if n_samples is not None and len(checked) != n_samples:
        raise ValueError(f"There are {len(checked)} ids for {n_samples} samples.")
    if len(set(checked)) != len(checked):
        twice = [each for each, n in Counter(checked).items() if n > 1]
        raise ValueError(f"ids must be distinct, but more than one is {some_of(twice, ' or ')}.")
    return checked


def _check_id(each: Any) -> Id:
    if isinstance(each, str):
        return str.__str__(each)  # also of a string enumeration
    if isinstance(each, Integral) and not isinstance(each, bool):
        return int(each)
    raise TypeError(f"ids must be whole numbers or strings. Got {each!r} instead.")


def some_of(ids: list[Id], last: str = " and ") -> str:
    """A few ids for a message."""
    names = [repr(each) for each in ids[:5]]
    if len(ids) > 5:
        names.append(f"{len(ids) - 5} more")
    return last.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


class Ids:
    """The serial of the sample of each id.

    A window or a reservoir drops samples without notice. Their ids are removed lazily: when one of
    them is looked up, and when there are far more ids than samples.
    """

    def __init__(self) -> None:
        self._serials: dict[Id, int] = {}
        self._nbytes: int | None = None  # once it was asked for

    @property
    def nbytes(self) -> int:
        """Memory of the ids in bytes. No other thread may change them meanwhile."""
        if self._nbytes is None:
            self._nbytes = nbytes_of_dict(self._serials)
        return self._nbytes

    def __len__(self) -> int:
        return len(self._serials)

    def check_new(self, ids: list[Id], are_stored: AreStored) -> None:
        """Raise if a stored sample already has one of the ids."""
        used = self._stored_of(ids, are_stored)
        if used:
            raise ValueError(f"ids must be new, but samples are stored with {some_of(list(used))}.")

    def serials_of(self, ids: list[Id], are_stored: AreStored) -> Serials:
        """The serials of these ids; raise if one of their samples is not stored."""
        stored = self._stored_of(ids, are_stored)
        unknown = [each for each in ids if each not in stored]
        if unknown:
            raise ValueError(
                f"{len(unknown)} of {len(ids)} ids are not those of stored samples: "
                f"{some_of(unknown)}. Nothing was forgotten."
            )
        return np.array([stored[each] for each in ids], dtype=np.int64)

    def add(self, ids: Sequence[Id | None], first_serial: int) -> None:
        """Add the ids of samples with consecutive serials; None for a sample without an id."""
        self._nbytes = None
        self._serials.update(
            (each, first_serial + i) for i, each in enumerate(ids) if each is not None
        )

    def drop(self, ids: list[Id]) -> None:
        """Remove these ids."""
        self._nbytes = None
        for each in ids:
            del self._serials[each]

    def only_of(self, stored: Serials) -> Ids:
        """The ids of stored samples, given their serials."""
        kept, some = set(stored.tolist()), Ids()
        some._serials = {each: s for each, s in self._serials.items() if s in kept}
        return some

    @classmethod
    def of(cls, names: list[Id], serials: Serials) -> Ids:
        """Ids with these names and serials."""
        some = cls()
        some._serials = dict(zip(names, serials.tolist(), strict=True))
        return some

    def serials(self) -> Serials:
        """The serial of each id, in the order of `names`."""
        return np.fromiter(self._serials.values(), np.int64, len(self._serials))

    def names(self) -> list[Id]:
        """All ids."""
        return list(self._serials)

    def _stored_of(self, ids: list[Id], are_stored: AreStored) -> dict[Id, int]:
        known = {each: self._serials[each] for each in ids if each in self._serials}
        if not known:
            return known
        there = are_stored(np.fromiter(known.values(), np.int64, len(known)))
        return {
            each: s for (each, s), is_there in zip(known.items(), there, strict=True) if is_there
        }
