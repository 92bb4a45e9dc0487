"""Levels of categorical features: which values they are, and the numbers that core forests see.

Equal values have equal numbers whatever their type, the order of their arrival and the processor.
Must not know forests.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._inputs.canonical import canonical_bytes
from onlineforest._inputs.cells import is_missing
from onlineforest._inputs.memory import nbytes_of_dict

Level = str | int | None
"""The value of a level. None is that of missing values."""
Words = NDArray[np.uint64]
"""The numbers of levels, 60 bits each."""

_BITS = 60
_CELL_BITS = 30
_CELL = np.uint64(2**_CELL_BITS - 1)
_LEAST_NORMAL = np.uint32(0x00800000)  # the bits of the least normal float32
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = 2**64


def plain_level(value: Any) -> Level:
    """The level of a value: text, a whole number, or None for a missing value.

    A bool is a whole number, as is a float without a fraction.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if is_missing(value):
        return None
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, int | float):
        if abs(value) < _LARGEST and int(value) == value:
            return int(value)
        raise ValueError(
            f"A level must be text, a bool or a whole number within ±2^64. Got {value!r}."
        )
    shown = repr(value)
    raise ValueError(
        "A level must be text, a bool or a whole number. Got "
        f"{shown if len(shown) <= 100 else shown[:100] + '…'}, which is of type "
        f"{type(value).__name__}. Turn such values into text, or dates into numbers."
    )


def in_order(levels: Iterable[Level]) -> list[Level]:
    """Levels sorted: numbers, then text, then the missing value."""
    return sorted(levels, key=_place)


def _place(level: Level) -> tuple[int, Any]:
    return (2, 0) if level is None else (int(isinstance(level, str)), level)


def word_of(level: Level) -> int:
    """60 bits of the SHA-256 of the canonical bytes of a level."""
    content = b"missing" if level is None else canonical_bytes(level)
    digest = hashlib.sha256(b"level " + content).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - _BITS)


def cells_of(words: Words) -> NDArray[np.float32]:
    """The two cells of each level, shape (n, 2), as bits of positive, finite, normal floats."""
    halves = np.stack([words & _CELL, words >> np.uint64(_CELL_BITS)], axis=1)
    return (halves.astype(np.uint32) + _LEAST_NORMAL).view(np.float32)


def words_in(cells: NDArray[np.float32]) -> Words:
    """The numbers of levels in their cells, shape (n, 2)."""
    halves = (np.ascontiguousarray(cells).view(np.uint32) - _LEAST_NORMAL).astype(np.uint64)
    words: Words = halves[:, 0] | halves[:, 1] << np.uint64(_CELL_BITS)
    return words


def go_left(words: Words, threshold: np.float32) -> NDArray[np.bool_]:
    """Which levels a split with this threshold, which holds its salt, sends left."""
    salt = (np.asarray(threshold, dtype=np.float32).view(np.uint32) - _LEAST_NORMAL).astype(
        np.uint64
    )
    with np.errstate(over="ignore"):
        state = words + _GOLDEN * salt
        state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    left: NDArray[np.bool_] = (state ^ state >> np.uint64(31)) >> np.uint64(63) != 0
    return left


class LevelNames:
    """The levels of one feature that stored samples have, by number and by value. Immutable."""

    def __init__(self, names: Iterable[Level] = ()) -> None:
        self._word_of: dict[Any, int] = {}
        self._name_of: dict[int, Level] = {}
        for name in names:
            self._add(name)

    def _add(self, level: Level) -> int:
        word = word_of(level)
        other = self._name_of.setdefault(word, level)
        if other != level:
            raise ValueError(
                f"The levels {other!r} and {level!r} have the same hash of {_BITS} bits: one "
                "forest cannot learn both. Rename one of them."
            )
        self._word_of[level] = word
        return word

    def __len__(self) -> int:
        return len(self._name_of)

    @cached_property
    def nbytes(self) -> int:
        """Memory of the names in bytes. Both dicts hold the same names and numbers."""
        return nbytes_of_dict(self._word_of) + sys.getsizeof(self._name_of)

    @property
    def words(self) -> Words:
        """The numbers of all levels, sorted."""
        return np.array(sorted(self._name_of), dtype=np.uint64)

    def names(self) -> list[Level]:
        """The values of all levels, in the order of their numbers."""
        return [self._name_of[word] for word in sorted(self._name_of)]

    def encode(self, values: Sequence[Any]) -> tuple[Words, LevelNames]:
        """The number of each value, and the names with those that are new."""
        known = self._word_of
        try:
            words = [known.get(value) for value in values]
        except TypeError:  # not hashable: the value is refused below
            words = [None] * len(values)
        if None not in words:
            return np.array(words, dtype=np.uint64), self
        grown = LevelNames()
        grown._word_of, grown._name_of = dict(self._word_of), dict(self._name_of)
        for place, word in enumerate(words):
            if word is None:
                level = plain_level(values[place])
                found = grown._word_of.get(level)
                words[place] = grown._add(level) if found is None else found
        return np.array(words, dtype=np.uint64), grown if len(grown) > len(self) else self

    def only(self, words: Words) -> LevelNames:
        """The names of these levels alone."""
        return LevelNames(self._name_of[word] for word in words.tolist())
