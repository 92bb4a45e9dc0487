"""The lock of an estimator, and the batch that its core forest is learning.

Must not know what a batch contains. A core forest has a lock of its own for its own data; the lock
here keeps ids and class codes consistent with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_NAME = "_guard"


class HasSerial(Protocol):
    """A batch that knows the core forest that learns it, and the serial of its first sample."""

    @property
    def core(self) -> HasCount: ...

    @property
    def first_serial(self) -> int: ...


class HasCount(Protocol):
    """A core forest, as far as this file is concerned."""

    @property
    def n_seen(self) -> int: ...


Batch = TypeVar("Batch", bound=HasSerial)


class Guard(Generic[Batch]):
    """Lets one thread at a time change an estimator, and survives interrupts.

    A core forest stores a batch, and afterwards the estimator records the batch: its ids,
    and new names of classes and levels. An interrupt (Ctrl-C) may separate the two. So a batch is
    announced by `begin` before the core forest gets it, and `settle` records it if the core forest
    has stored it, in the same call or in the next one. The states are:

    ========  ==========================  ===================================================
    state     `pending`                   meaning
    ========  ==========================  ===================================================
    settled   None                        the estimator matches its core forest
    learning  a batch; the lock is held   the core forest may have stored the batch
    left      a batch; the lock is free   an interrupt came before `settle` was finished
    ========  ==========================  ===================================================

    A thread that takes the lock calls `settle` first. ``with guard:`` holds the lock, which is
    reentrant.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.pending: Batch | None = None

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def begin(self, batch: Batch) -> None:
        """Announce a batch that is given to its core forest next."""
        self.pending = batch

    def settle(self, core: HasCount | None, record: Callable[[Batch], None]) -> None:
        """Call `record` with the pending batch if `core` has stored it; nothing is pending then.

        A batch of another core forest, or one that was not stored, is dropped. An interrupt within
        `record` leaves the batch pending: recording it twice must do no harm.
        """
        batch = self.pending
        if batch is None:
            return
        if core is not None and batch.core is core and core.n_seen > batch.first_serial:
            record(batch)
        self.pending = None


def guard_of(owner: object) -> Guard[Batch]:
    """The guard of an object, made when it is first needed.

    Not made by `__init__`: scikit-learn's `clone` and `pickle` know parameters only. A copy of
    `vars` must not contain it: see `without_guard`.
    """
    attributes = vars(owner)
    guard: Guard[Batch] | None = attributes.get(_NAME)
    if guard is None:  # `setdefault` is atomic: two threads get one guard
        guard = attributes.setdefault(_NAME, Guard())
    return guard


def without_guard(attributes: dict[str, object]) -> dict[str, object]:
    """Attributes that may be copied or pickled."""
    return {name: value for name, value in attributes.items() if name != _NAME}
