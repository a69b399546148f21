"""Releases idle files: one thread per process closes what is only kept for its next use.

A process that has just used a file probably uses it again at once, and attaching it again would
cost more than the work. So it keeps the lock for a few milliseconds, unless a waiting process wakes
it.
"""

import logging
import os
import select
import threading
from math import ceil
from time import monotonic
from typing import Protocol

from attrs import frozen

from herdbook.adapters.duckdb.file_lock import Hold
from herdbook.adapters.duckdb.wakeup_socket import WakeupSocket, open_wakeup_socket

_LOG = logging.getLogger(__name__)


class IdleHolder(Protocol):
    """Something that keeps a hold for a while after its last use."""

    def release_if_idle(self, hold: Hold) -> None:
        """Release that hold if it is still idle, and somebody waits or its time is over."""


@frozen
class _Watch:
    hold: Hold
    until: float


class IdleReleaser:
    """Watches the idle holds of this process; its thread starts with the first of them."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._watched: dict[IdleHolder, _Watch] = {}
        self._thread: threading.Thread | None = None
        self._nudge: tuple[int, int] | None = None
        self._wakeup_socket: WakeupSocket | None = None
        self._ended = False

    def wakeup_address(self) -> str | None:
        """Where others can wake this process; None where that is not possible."""
        with self._mutex:
            if self._nudge is None:
                self._nudge = os.pipe()
                self._wakeup_socket = open_wakeup_socket()
            return self._wakeup_socket.address if self._wakeup_socket else None

    def watch(self, who: IdleHolder, hold: Hold, until: float) -> None:
        """Call `who.release_if_idle` at that time, or earlier if a waiting process wakes us.

        A hold that is already watched keeps its old time: when called too early, it asks to be
        watched again. So a busy process wakes this thread once per linger, not once per use.
        """
        with self._mutex:
            watch = self._watched.get(who)
            if (watch is not None and watch.hold is hold) or self._nudge is None:
                return
            self._watched[who] = _Watch(hold, until)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=self._nudge, name="herdbook-linger", daemon=True
                )
                self._thread.start()
            elif self._thread is not threading.current_thread():
                os.write(self._nudge[1], b".")

    def end(self) -> None:
        """Stop, with the process: a thread left running would keep DuckDB's objects alive."""
        with self._mutex:
            self._ended = True
        if self._thread is not None and self._nudge is not None:
            os.write(self._nudge[1], b".")
            self._thread.join()
        if self._wakeup_socket is not None:
            self._wakeup_socket.close()

    def forget_inherited(self) -> None:
        """In a forked child: close what the parent's thread listens on."""
        for descriptor in self._nudge or ():
            os.close(descriptor)
        if self._wakeup_socket is not None:
            self._wakeup_socket.forget_inherited()

    def _run(self, nudge: int, _nudging: int) -> None:
        poll = select.poll()
        poll.register(nudge, select.POLLIN)
        if self._wakeup_socket is not None:
            poll.register(self._wakeup_socket.fileno(), select.POLLIN)
        while not self._ended:
            with self._mutex:
                watched = dict(self._watched)
            soonest = min((watch.until for watch in watched.values()), default=None)
            ready = {descriptor for descriptor, _ in poll.poll(_milliseconds(soonest))}
            if nudge in ready:
                os.read(nudge, 4096)
            if self._wakeup_socket is not None and self._wakeup_socket.fileno() in ready:
                self._wakeup_socket.drain()
            for who, watch in watched.items():
                if ready - {nudge} or monotonic() >= watch.until:
                    self._call(who, watch)

    def _call(self, who: IdleHolder, watch: _Watch) -> None:
        with self._mutex:
            if self._watched.get(who) is not watch:
                return
            del self._watched[who]
        try:
            who.release_if_idle(watch.hold)
        except Exception:  # noqa: BLE001 - this thread serves other files too, and must not end
            _LOG.exception("could not release a DuckDB file")


def _milliseconds(until: float | None) -> int | None:
    return None if until is None else max(ceil((until - monotonic()) * 1000), 0)
