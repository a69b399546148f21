"""Turns many calls in a row into a few, and never leaves the last one out."""

import os
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import NamedTuple

Rings = dict[str, "PendingRing"]
"""What is to be rung, by space."""


class PendingRing(NamedTuple):
    """The last number of a space, and encoded entries that were committed."""

    seq: int
    entries: tuple[str, ...] = ()

    def join(self, other: "PendingRing") -> "PendingRing":
        """One ring for both."""
        return PendingRing(max(self.seq, other.seq), self.entries + other.entries)


class Coalescer:
    """Calls `send` at once, but for what comes within `interval` seconds later, once for all.

    Sending never takes more than half of the time, however many listen.
    """

    def __init__(self, send: Callable[[Rings], None], interval: float) -> None:
        self._send = send
        self._interval = interval
        self._forget_inherited()

    def _forget_inherited(self) -> None:
        """Begin anew, also in a forked child: what is pending there is the parent's to send."""
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._sending = threading.Lock()
        self._pending: Rings = {}
        self._is_busy = False
        self._due = 0.0

    def __call__(self, space: str, ring: PendingRing) -> None:
        """Send now, or leave it to the thread that sends next."""
        if self._pid != os.getpid():
            self._forget_inherited()
        with self._mutex:
            before = self._pending.get(space)
            self._pending[space] = ring if before is None else before.join(ring)
            if self._is_busy:
                return
            self._is_busy = True
        if monotonic() < self._due:
            self._send_later()
        else:
            self._send_pending()

    def flush(self) -> None:
        """Send what is pending without waiting until it is due, after what is being sent.

        A thread that sends dies with its process, so the last call of a process waits for it.
        """
        if self._pid == os.getpid():
            self._send_once()

    def _send_pending(self) -> None:
        """Send; what came meanwhile is left to a thread."""
        try:
            self._send_once()
        finally:
            with self._mutex:
                self._is_busy = bool(self._pending)
            if self._is_busy:
                self._send_later()

    def _send_once(self) -> None:
        with self._sending:
            with self._mutex:
                pending, self._pending = self._pending, {}
            if pending:
                begun = monotonic()
                self._send(pending)
                now = monotonic()
                self._due = now + max(self._interval, now - begun)

    def _send_later(self) -> None:
        thread = threading.Thread(target=self._run, name="herdbook-wakeups", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, or there are too many
            self._run()

    def _run(self) -> None:
        while True:
            sleep(max(0.0, self._due - monotonic()))
            self._send_once()
            with self._mutex:
                self._is_busy = bool(self._pending)
                if not self._is_busy:
                    return
