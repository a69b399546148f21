"""The end of lingering: the one thread that lets go of what nobody uses any more.

A process that has just used a file probably uses it again at once, and attaching anew would cost it
more than the work. So it keeps the lock for a few milliseconds, unless somebody rings.
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
from herdbook.adapters.duckdb.wakeup_socket import Bell, hang_up_bell

_LOG = logging.getLogger(__name__)


class Lingering(Protocol):
    """Something that keeps a hold for a while after its last use."""

    def linger_over(self, hold: Hold) -> None:
        """Let go of that hold if it is still kept idly, and somebody waits or it is time."""


@frozen
class _Watch:
    hold: Hold
    until: float


class Keeper:
    """Watches the lingering holds of this process; its thread starts with the first of them."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._watched: dict[Lingering, _Watch] = {}
        self._thread: threading.Thread | None = None
        self._nudge: tuple[int, int] | None = None
        self._bell: Bell | None = None
        self._ended = False

    def bell(self) -> str | None:
        """Where others can ring this process; None where that is not possible."""
        with self._mutex:
            if self._nudge is None:
                self._nudge = os.pipe()
                self._bell = hang_up_bell()
            return self._bell.address if self._bell else None

    def watch(self, who: Lingering, hold: Hold, until: float) -> None:
        """Call `who.linger_over` when that time has come, or when somebody rings before.

        A hold that is watched already stays so with its old time: when called too early, it asks
        to be watched anew. So a busy process wakes this thread once per linger, not once per use.
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
        if self._bell is not None:
            self._bell.close()

    def forget_inherited(self) -> None:
        """In a forked child: the thread is gone, what it listened on is still open."""
        for descriptor in self._nudge or ():
            os.close(descriptor)
        if self._bell is not None:
            self._bell.forget_inherited()

    def _run(self, nudge: int, _nudging: int) -> None:
        poll = select.poll()
        poll.register(nudge, select.POLLIN)
        if self._bell is not None:
            poll.register(self._bell.fileno(), select.POLLIN)
        while not self._ended:
            with self._mutex:
                watched = dict(self._watched)
            soonest = min((watch.until for watch in watched.values()), default=None)
            rung = {descriptor for descriptor, _ in poll.poll(_milliseconds(soonest))}
            if nudge in rung:
                os.read(nudge, 4096)
            if self._bell is not None and self._bell.fileno() in rung:
                self._bell.still()
            for who, watch in watched.items():
                if rung - {nudge} or monotonic() >= watch.until:
                    self._call(who, watch)

    def _call(self, who: Lingering, watch: _Watch) -> None:
        with self._mutex:
            if self._watched.get(who) is not watch:
                return
            del self._watched[who]
        try:
            who.linger_over(watch.hold)
        except Exception:  # noqa: BLE001 - this thread serves other files too, and must not end
            _LOG.exception("could not let go of a DuckDB file")


def _milliseconds(until: float | None) -> int | None:
    return None if until is None else max(ceil((until - monotonic()) * 1000), 0)
