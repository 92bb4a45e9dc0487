"""Handle Ctrl-C and SIGTERM so that a batch in progress can finish. Knows nothing of forests."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

GRACE_SECONDS = 0.3


class Interrupts:
    """Context in which the first signal raises `KeyboardInterrupt` after a grace period.

    A batch that is almost learned can finish; a long one is interrupted. Between batches, `check`
    raises immediately. A second signal raises immediately.
    """

    def __init__(self) -> None:
        self._n_signals = 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others receive no signals
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) == signal.SIG_IGN:  # in a shell's background job
                    continue
                self._old[number] = signal.signal(number, self._on_signal)
            if hasattr(signal, "SIGALRM"):
                self._old[signal.SIGALRM] = signal.signal(signal.SIGALRM, _on_alarm)
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal has arrived."""
        if self._n_signals:
            raise KeyboardInterrupt

    def settle(self) -> None:
        """Cancel the grace period: the interrupt is being handled, only a new signal raises."""
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._n_signals += 1
        if self._n_signals > 1 or not hasattr(signal, "SIGALRM"):
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
