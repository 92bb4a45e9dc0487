"""Ctrl-C in the middle of a long call of the core, however slow the machine is."""

from __future__ import annotations

import signal
import sys
import threading
import time


class CtrlC:
    """Sends SIGINT once this thread has been in one call of native code for some processor time.

    Processor time, because a busy machine stretches the clock on the wall: a signal that is sent
    by that clock may come before the call begins. `seconds_to_return` is the processor time, of
    all threads, from the signal to the end of the block.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self.seconds_to_return = None
        self.caller = threading.get_ident()
        self.sent = None
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.send, daemon=True)

    def send(self):
        place, since = None, 0.0
        while not self.is_over.wait(0.002):
            frame = sys._current_frames()[self.caller]
            now = time.process_time()
            if (id(frame), frame.f_lasti) != place:
                place, since = (id(frame), frame.f_lasti), now
            elif now - since >= self.seconds:
                self.sent = now
                # Goes to the calling thread; Python runs the handler in the main thread.
                signal.raise_signal(signal.SIGINT)
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        end = time.process_time()
        self.is_over.set()
        self.thread.join()
        assert self.sent is not None, "the call was too short: no signal was sent"
        self.seconds_to_return = end - self.sent
