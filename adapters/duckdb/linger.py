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

from herdbook.adapters.duckdb.lock import Hold

_LOG = logging.getLogger(__name__)


class Lingering(Protocol):
    """Something that keeps a hold for a while after its last use."""

    def linger_over(self, hold: Hold, *, rung: bool) -> None:
        """Let go of that hold if it is still kept idly and rung for, or kept long enough."""


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
        self._bell: tuple[int, int] | None = None
        self._ended = False

    def watch(self, who: Lingering, hold: Hold, until: float) -> None:
        """Call `who.linger_over` when that time has come, or when somebody rings before.

        A hold that is watched already stays so with its old time: when called too early, it asks
        to be watched anew. So a busy process wakes this thread once per linger, not once per use.
        """
        with self._mutex:
            watch = self._watched.get(who)
            if watch is not None and watch.hold is hold:
                return
            self._watched[who] = _Watch(hold, until)
            if self._bell is None:
                self._bell = os.pipe()
                os.set_blocking(self._bell[1], False)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=self._bell, name="herdbook-linger", daemon=True
                )
                self._thread.start()
            elif self._thread is not threading.current_thread():
                os.write(self._bell[1], b".")

    def end(self) -> None:
        """Stop watching, at the end of the process: a thread left running would pin DuckDB."""
        with self._mutex:
            thread, bell = self._thread, self._bell
            self._ended = True
        if thread is not None and bell is not None:
            os.write(bell[1], b".")
            thread.join()

    def forget_inherited(self) -> None:
        """In a forked child: the thread is gone, its pipe is still here."""
        for descriptor in self._bell or ():
            os.close(descriptor)
        self._bell = None

    def _run(self, bell: int, _ringer: int) -> None:
        while not self._ended:
            with self._mutex:
                watched = dict(self._watched)
            poll = select.poll()
            poll.register(bell, select.POLLIN)
            for watch in watched.values():
                if watch.hold.wake is not None:
                    poll.register(watch.hold.wake, select.POLLIN)
            soonest = min((watch.until for watch in watched.values()), default=None)
            rung = {descriptor for descriptor, _ in poll.poll(_milliseconds(soonest))}
            if bell in rung:
                os.read(bell, 4096)
            for who, watch in watched.items():
                if watch.hold.wake in rung or monotonic() >= watch.until:
                    self._call(who, watch, rung=watch.hold.wake in rung)

    def _call(self, who: Lingering, watch: _Watch, *, rung: bool) -> None:
        with self._mutex:
            if self._watched.get(who) is not watch:
                return
            del self._watched[who]
        try:
            who.linger_over(watch.hold, rung=rung)
        except Exception:  # noqa: BLE001 - this thread serves other files too, and must not end
            _LOG.exception("could not let go of a DuckDB file")


def _milliseconds(until: float | None) -> int | None:
    return None if until is None else max(ceil((until - monotonic()) * 1000), 0)
