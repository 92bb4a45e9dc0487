"""The classes of an order-free classifier: names, hashes and codes of labels, and which are known.

A core forest knows a label by its hash, which is the same whatever the label's type, the order of
arrival and the processor. Must not know estimators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.encoding import encode_labels, from_json
from onlineforest._forests.core import Floats, Hashes, OrderFreeLabelCore, State
from onlineforest._forests.orderfree.digests import LabelDigest
from onlineforest._forests.targets import AreStorable, Targets, codes_in, facts_of
from onlineforest._inputs.canonical import canonical_bytes
from onlineforest._inputs.class_codes import ClassCodes, codes_with
from onlineforest._inputs.targets import LABELS


def label_hash(label: Any) -> int:
    """64 bits of the SHA-256 of the canonical bytes of a label."""
    return int.from_bytes(hashlib.sha256(canonical_bytes(label)).digest()[:8], "little")


def hashes_of(labels: Iterable[Any]) -> Hashes:
    """The hash of each label."""
    return np.array([label_hash(label) for label in labels], dtype=np.uint64)


@dataclass
class Names:
    """The labels that have a code in a core forest, with their hashes, at one time.

    Attributes
    ----------
    codes : ClassCodes
        The labels and their codes.
    hashes : ndarray of shape (n_codes,), uint64
        The hashes in the order of codes; those of codes without a label belong to no label.
    later : Names or None
        The names that replaced these. An answer of the core forest is about labels of these or of
        later ones, if it was asked after these were read.
    """

    codes: ClassCodes
    hashes: Hashes
    later: Names | None = None

    def only(self, hashes: Hashes) -> ClassCodes | None:
        """The labels of these hashes with their codes; None if one is lacking."""
        are_chosen = np.isin(self.hashes, hashes)
        found = self.codes.only(are_chosen)
        return found if found.n_classes == len(hashes) else None


@dataclass(frozen=True)
class Columns:
    """The known labels of an answer, which has a column for each, in the order of codes.

    Attributes
    ----------
    hashes : ndarray of shape (n_classes,), uint64
        The hashes of the labels in the order of the columns.
    codes : ClassCodes
        The labels, sorted, and their codes.
    order : ndarray of shape (n_classes,) or None
        The column of each label; None if they are in order.
    """

    hashes: Hashes
    codes: ClassCodes
    order: NDArray[np.intp] | None

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self.codes.classes

    def in_class_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values with an entry per column along the last axis, in the order of the labels."""
        return values if self.order is None else values[..., self.order]


class Classes(Targets):
    """The labels of one forest. A label is known if it is declared or if samples of it are stored.

    New names come before the core forest learns their labels: a name without samples does no harm.

    Parameters
    ----------
    codes : ClassCodes or None, default=None
        The labels that have a code; None for a new forest.
    declared : frozenset of int, default=frozenset()
        The codes of the labels that users have declared.

    Attributes
    ----------
    has_reused : bool
        Whether the core forest may not know yet that a code belongs to another label now.
    """

    kind = LABELS

    def __init__(
        self, codes: ClassCodes | None = None, declared: frozenset[int] = frozenset()
    ) -> None:
        self.has_reused = False
        self.declared = declared
        self._names = None if codes is None else Names(codes, _in_order_of_codes(codes))
        self._last: Columns | None = None

    @property
    def names(self) -> Names:
        """The labels that have a code now."""
        assert self._names is not None
        return self._names

    @property
    def codes(self) -> ClassCodes:
        """The labels and their codes."""
        return self.names.codes

    @property
    def hashes(self) -> Hashes:
        """The hashes in the order of codes."""
        return self.names.hashes

    @property
    def nbytes(self) -> int:
        last = self._last
        return self.codes.nbytes + self.hashes.nbytes + (0 if last is None else last.codes.nbytes)

    def columns(self, hashes: Hashes, since: Names | None = None) -> Columns:
        """The columns of an answer of the core forest, which was asked after `since` was read."""
        last = self._last
        if last is not None and (last.hashes is hashes or np.array_equal(last.hashes, hashes)):
            return last
        names = self.names if since is None else since
        codes = names.only(hashes)
        while codes is None:  # another thread has learned new labels since
            assert names.later is not None
            names = names.later
            codes = names.only(hashes)
        order: NDArray[np.intp] = np.argsort(np.argsort(codes.codes))
        in_order = bool((order[1:] > order[:-1]).all())
        found = Columns(hashes, codes, None if in_order else order)
        if names is self._names:  # others may hold a name that is dropped
            self._last = found
        return found

    def answer(
        self, answers: Sequence[tuple[Hashes, Floats]], since: Names
    ) -> tuple[Floats, Columns]:
        """Probabilities of the blocks of a query in the order of the labels, and the labels.

        A label that another thread has learned between two blocks has probability 0 before.
        """
        found = [self.columns(hashes, since) for hashes, _ in answers]
        ordered = [
            columns.in_class_order(of_block)
            for columns, (_, of_block) in zip(found, answers, strict=True)
        ]
        if len(ordered) == 1:
            return ordered[0], found[0]
        if any(columns is not found[0] for columns in found):
            return _joined(ordered, found)
        return np.concatenate(ordered), found[0]

    def known(self, core: OrderFreeLabelCore) -> Columns:
        """The labels that a core forest knows now."""
        since = self.names
        return self.columns(core.known_labels, since)

    def known_classes(self, core: OrderFreeLabelCore) -> NDArray[Any]:
        """The classes that a core forest knows now, sorted."""
        return self.known(core).classes

    def check_kind(self, labels: NDArray[Any], name: str) -> None:
        """Raise if labels are of another kind than these."""
        if self._names is not None:
            self.codes.check_kind(labels, name)

    def extend(self, labels: NDArray[Any], declared: NDArray[Any] | None = None) -> None:
        """Give a code to each label that has none."""
        before = self._names
        old = None if before is None else before.codes
        codes = old if declared is None else codes_with(old, declared, "classes")
        codes = codes_with(codes, labels)
        if codes is old:
            return
        hashes = self._hashes_with(codes)
        _check_distinct(codes, hashes)
        # A common type may change values: int64 and uint64 become float64.
        for new in (labels,) if declared is None else (labels, declared):
            distinct = np.unique(new)
            if not np.array_equal(hashes[codes.encode(distinct)], hashes_of(distinct)):
                _refuse_conversion(codes, new)
        if before is not None:
            if not np.array_equal(hashes[before.codes.codes], before.hashes[before.codes.codes]):
                _refuse_conversion(codes, before.codes.classes)
            n_before, are_new = len(before.hashes), ~np.isin(codes.codes, before.codes.codes)
            self.has_reused |= bool((codes.codes[are_new] < n_before).any())
        self._replace_names(Names(codes, hashes))

    def _replace_names(self, names: Names) -> None:
        before, self._names = self._names, names
        if before is not None:
            before.later = names

    def _hashes_with(self, codes: ClassCodes) -> Hashes:
        """The hashes of all labels in the order of codes; known ones are not computed again."""
        kind = codes.classes.dtype.kind
        if self._names is None or kind not in "iufbU" or kind != self.codes.classes.dtype.kind:
            return _in_order_of_codes(codes)  # another type may change the values
        are_new = ~np.isin(codes.codes, self.codes.codes)
        hashes = np.empty(codes.n_codes, dtype=np.uint64)
        hashes[: len(self.hashes)] = self.hashes
        hashes[codes.codes[are_new]] = hashes_of(codes.classes[are_new])
        return hashes

    def set_labels(self, core: OrderFreeLabelCore, declared: Iterable[int]) -> None:
        """Give the core forest the hashes of all codes, and which of them are declared."""
        flags = np.zeros(len(self.hashes), dtype=np.uint8)
        flags[list(declared)] = 1
        core.set_labels(self.hashes, flags)

    def prepare(self, core: OrderFreeLabelCore) -> None:
        """Tell a new core forest what it must know before it learns the stored samples."""
        fresh = Classes(self.codes, self.declared)  # hashes of the labels themselves
        fresh.set_labels(core, self.declared)

    def drop_unused(self, core: OrderFreeLabelCore) -> None:
        known, codes = self.known(core), self.codes
        if known.codes.n_classes == codes.n_classes:
            return
        hashes = self.hashes.copy()
        kept = codes.only(np.isin(hashes, known.hashes))
        stale = np.setdiff1d(codes.codes, kept.codes).tolist()
        hashes[stale] = [_hash_of_free(code) for code in stale]
        self._replace_names(Names(kept, hashes))
        self._last = None  # it holds old names
        self.known(core)
        self.set_labels(core, self.declared)

    def value_of(self, y: Any, core: OrderFreeLabelCore) -> int | None:
        code = self.codes.code_of(y)
        return None if code is None or code >= core.n_labels else code

    def values_of(self, target: NDArray[Any]) -> tuple[NDArray[np.int32], AreStorable]:
        return self.codes.encode_known(target)

    def named(self, values: NDArray[np.int32]) -> NDArray[Any]:
        """The labels of codes."""
        labels: NDArray[Any] = self.codes.classes[self.codes.places()[values]]
        return labels

    @property
    def declared_labels(self) -> NDArray[Any]:
        """The labels that users have declared."""
        return self.named(np.array(sorted(self.declared), dtype=np.int32))

    def digest(self, core: OrderFreeLabelCore) -> LabelDigest:
        """How labels enter the digest of the forest."""
        return LabelDigest(self.known(core).codes)

    def facts(self, core: OrderFreeLabelCore) -> dict[str, str]:
        return facts_of(self.known(core).classes)

    def metadata(self) -> dict[str, Any]:
        return {
            "classes": encode_labels(self.codes.classes),
            "class_codes": self.codes.codes.tolist(),
            "declared_codes": sorted(self.declared),
        }

    def in_file_order(self, state: State) -> tuple[State, dict[str, Any]]:
        codes = self.codes.codes  # sorted labels get the codes 0, 1, …
        new_code = np.full(len(state["label_hashes"]), -1, dtype=np.int32)
        new_code[codes] = np.arange(len(codes), dtype=np.int32)
        arrays = {
            "values": new_code[state["values"]],
            "label_hashes": state["label_hashes"][codes],
            "are_declared": state["are_declared"][codes],
        }
        declared = sorted(new_code[list(self.declared)].tolist())
        metadata = {"class_codes": list(range(len(codes))), "declared_codes": declared}
        return {**state, **arrays}, metadata

    @classmethod
    def of_file(cls, metadata: Mapping[str, str], core: OrderFreeLabelCore) -> Classes:
        codes = codes_in(metadata, core.n_labels)
        declared = from_json(metadata, "declared_codes", list)
        n_codes = codes.n_codes
        if any(type(code) is not int or not 0 <= code < n_codes for code in declared):
            raise ValueError(f"its declared_codes are not all in [0, {n_codes}).")
        classes = cls(codes, frozenset(declared))
        # Raises unless the hashes of the core forest, which are those of the file, are equal.
        classes.set_labels(core, classes.declared)
        return classes

    def plain(self) -> tuple[Any, ...]:
        return self.codes.classes, self.codes.codes, self.codes.n_codes, sorted(self.declared)

    @classmethod
    def of_plain(cls, *plain: Any) -> Classes:
        classes, codes, n_codes, declared = plain
        return cls(ClassCodes(classes, codes, n_codes), frozenset(declared))


def _joined(blocks: Sequence[Floats], columns: Sequence[Columns]) -> tuple[Floats, Columns]:
    """Blocks whose columns differ, with a column for each label of any block."""
    code_of = {
        label: code
        for each in columns
        for label, code in zip(each.classes.tolist(), each.codes.codes.tolist(), strict=True)
    }
    classes = np.unique(np.concatenate([each.classes for each in columns]))
    codes = np.array([code_of[label] for label in classes.tolist()], dtype=np.int32)
    joined = np.zeros((sum(map(len, blocks)), len(classes)))
    start = 0
    for block, each in zip(blocks, columns, strict=True):
        joined[start : start + len(block), np.searchsorted(classes, each.classes)] = block
        start += len(block)
    hashes = hashes_of(classes)
    return joined, Columns(hashes, ClassCodes(classes, codes, int(codes.max()) + 1), None)


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
