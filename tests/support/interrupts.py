"""Ctrl-C in the middle of a long call of the core, and how long the answer takes.

A busy machine stretches the clock on the wall. A signal that is sent by that clock may come before
the call begins, and an answer that takes a millisecond may look late.
"""

from __future__ import annotations

import signal
import sys
import threading
import time

import pytest


class NapClock:
    """Measures seconds by the naps of a thread, which a busy machine stretches, too."""

    nap = 0.01

    def __init__(self):
        self._n_naps = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()

    def _count(self):
        while not self._is_over.wait(self.nap):
            self._n_naps += 1

    def stop(self):
        """Return the seconds since the start."""
        self._is_over.set()
        self._thread.join()
        return self.nap * self._n_naps


class CtrlC:
    """Sends SIGINT once this thread has been in one call of native code for some processor time.

    `seconds_to_return` is the time from the signal to the end of the block: that of a `NapClock`,
    or the processor time of each of `n_threads`, whichever is longer. Naps alone would not count
    while the call holds the lock of the interpreter.
    """

    def __init__(self, seconds, n_threads=1):
        self.seconds = seconds
        self.n_threads = n_threads
        self.seconds_to_return = None
        self._caller = threading.get_ident()
        self._sent = self._clock = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def _send(self):
        place, since = None, 0.0
        while not self._is_over.wait(0.002):
            frame = sys._current_frames()[self._caller]
            now = time.process_time()
            if (id(frame), frame.f_lasti) != place:
                place, since = (id(frame), frame.f_lasti), now
            elif now - since >= self.seconds:
                self._sent, self._clock = now, NapClock()
                # Goes to the calling thread; Python runs the handler in the main thread.
                signal.raise_signal(signal.SIGINT)
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        end = time.process_time()
        self._is_over.set()
        self._thread.join()
        assert self._sent is not None, "the call was too short: no signal was sent"
        self.seconds_to_return = max(self._clock.stop(), (end - self._sent) / self.n_threads)


class Signal:
    """Interrupts this process once, after a delay, unless the block has ended before."""

    def __init__(self, seconds):
        self._seconds, self._is_over = seconds, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def _send(self):
        if not self._is_over.wait(self._seconds):
            signal.raise_signal(signal.SIGINT)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        time.sleep(0)  # Python handles a signal that has come here, not behind the block


def seconds_of(call, *arguments):
    start = time.monotonic()
    call(*arguments)
    return time.monotonic() - start


def interrupted_in_the_middle(start, call, is_stored):
    """A forest whose call was interrupted after its change was stored.

    Searches for the moment by halves: it comes later if the change was not stored, and earlier if
    the call had ended. Begins anew some times, since a busy machine may lead it astray.
    """
    for _ in range(5):
        low, high = 0.0, seconds_of(call, start())
        for _ in range(8):
            forest, delay = start(), max((low + high) / 2, 0.001)
            try:
                with Signal(delay):
                    call(forest)
                high = delay
            except KeyboardInterrupt:
                if is_stored(forest):
                    return forest
                low = delay
    pytest.fail("no call was interrupted in the middle: nothing tested")
