"""Labels by their values: hashes, and the codes of labels that have a hash.

Equal labels have equal bytes whatever their type, the order of their arrival and the processor.
Must not know estimators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._inputs.canonical import canonical_bytes
from onlineforest._inputs.class_codes import ClassCodes, codes_with

Hashes = NDArray[np.uint64]


def label_hash(label: Any) -> int:
    """64 bits of the SHA-256 of the canonical bytes of a label."""
    return int.from_bytes(hashlib.sha256(canonical_bytes(label)).digest()[:8], "little")


def hashes_of(labels: Iterable[Any]) -> Hashes:
    """The hash of each label."""
    return np.array([label_hash(label) for label in labels], dtype=np.uint64)


class LabelTable:
    """The labels that have a code in a core forest, with their hashes.

    Changes in place, and is not part of what a rejected call takes back: a label that no sample has
    does no harm, until it is dropped. Which of the labels are known is not decided here.

    Attributes
    ----------
    has_reused : bool
        Whether the core forest may not know yet that a code belongs to another label now.
    """

    def __init__(self, codes: ClassCodes | None = None) -> None:
        self.has_reused = False
        # Replaced as a whole, so that other threads see codes with their hashes.
        self._entries: tuple[ClassCodes, Hashes] | None = None
        self._noted: tuple[object, ClassCodes] | None = None
        if codes is not None:
            self._entries = codes, _in_order_of_codes(codes)

    @property
    def codes(self) -> ClassCodes:
        """The labels and their codes."""
        assert self._entries is not None
        return self._entries[0]

    @property
    def hashes(self) -> Hashes:
        """The hashes in the order of codes."""
        assert self._entries is not None
        return self._entries[1]

    @property
    def nbytes(self) -> int:
        """Memory of the table in bytes."""
        noted = self._noted
        return self.codes.nbytes + self.hashes.nbytes + (0 if noted is None else noted[1].nbytes)

    def check_kind(self, labels: NDArray[Any], name: str) -> None:
        """Raise if labels are of another kind than those of the table."""
        if self._entries is not None:
            self.codes.check_kind(labels, name)

    def extend(self, labels: NDArray[Any], declared: NDArray[Any] | None) -> None:
        """Give a code to each label that has none."""
        before = None if self._entries is None else self.codes
        codes = before if declared is None else codes_with(before, declared, "classes")
        codes = codes_with(codes, labels)
        if codes is before:
            return
        hashes = self._hashes_with(codes)
        _check_distinct(codes, hashes)
        # A common type may change values: int64 and uint64 become float64.
        for new in (labels,) if declared is None else (labels, declared):
            distinct = np.unique(new)
            if not np.array_equal(hashes[codes.encode(distinct)], hashes_of(distinct)):
                _refuse_conversion(codes, new)
        if before is not None:
            if not np.array_equal(hashes[before.codes], self.hashes[before.codes]):
                _refuse_conversion(codes, before.classes)
            n_before, are_new = len(self.hashes), ~np.isin(codes.codes, before.codes)
            self.has_reused |= bool((codes.codes[are_new] < n_before).any())
        self._entries = codes, hashes

    def drop(self, are_known: NDArray[np.bool_]) -> bool:
        """Drop the names of labels that are not known; whether there were any.

        `are_known` has an entry for each code of the core forest, which gets new codes later.
        """
        codes, hashes = self.codes, self.hashes.copy()
        kept = codes.only(are_known)
        stale = np.setdiff1d(codes.codes, kept.codes).tolist()
        if not stale:
            return False
        hashes[stale] = [_hash_of_free(code) for code in stale]
        self._entries = ClassCodes(kept.classes, kept.codes, len(hashes)), hashes
        return True

    def _hashes_with(self, codes: ClassCodes) -> Hashes:
        """The hashes of all labels in the order of codes; known ones are not computed again."""
        kind = codes.classes.dtype.kind
        if self._entries is None or kind not in "iufbU" or kind != self.codes.classes.dtype.kind:
            return _in_order_of_codes(codes)  # another type may change the values
        are_new = ~np.isin(codes.codes, self.codes.codes)
        hashes = np.empty(codes.n_codes, dtype=np.uint64)
        hashes[: len(self.hashes)] = self.hashes
        hashes[codes.codes[are_new]] = hashes_of(codes.classes[are_new])
        return hashes

    def known_at(self, version: object) -> ClassCodes | None:
        """What `note_known` returned last, if the version is still the same."""
        noted = self._noted
        return noted[1] if noted is not None and noted[0] == version else None

    def note_known(self, version: object, are_known: NDArray[np.bool_]) -> ClassCodes:
        """The labels whose codes are known in a version of a core forest.

        `are_known` may be shorter than the table: a core forest gets new codes later.
        """
        known = self.codes.only(are_known)
        self._noted = version, known
        return known


def are_declared(declared: Collection[int], n_codes: int) -> NDArray[np.uint8]:
    """1 for each code that is declared, else 0."""
    flags = np.zeros(n_codes, dtype=np.uint8)
    flags[list(declared)] = 1
    return flags


def _hash_of_free(code: int) -> int:
    """A hash for a code that belongs to no label."""
    return int.from_bytes(hashlib.sha256(b"no label %d" % code).digest()[:8], "little")


def _in_order_of_codes(codes: ClassCodes) -> Hashes:
    hashes = np.array([_hash_of_free(code) for code in range(codes.n_codes)], dtype=np.uint64)
    hashes[codes.codes] = hashes_of(codes.classes)
    return hashes


def _check_distinct(codes: ClassCodes, hashes: Hashes) -> None:
    if len(np.unique(hashes)) == len(hashes):  # with those of codes without a label
        return
    first: dict[int, Any] = {}
    for label, code in zip(codes.classes.tolist(), codes.codes.tolist(), strict=True):
        other = first.setdefault(int(hashes[code]), label)
        if other != label:
            raise ValueError(
                f"The labels {other!r} and {label!r} have the same 64-bit hash: one forest cannot "
                "learn both. Rename one of them."
            )


def _refuse_conversion(codes: ClassCodes, labels: NDArray[Any]) -> None:
    raise ValueError(
        f"Labels of type {labels.dtype} change their values if they are converted to "
        f"{codes.classes.dtype}, the common type of all labels."
    )
