"""The journal as it grows, told to a client that asked to be told.

Nothing is kept for a slow client: whoever follows the journal for it writes a page to the client
before it reads the next one, and the journal itself keeps the rest. So writers never wait, and
memory does not grow. A client that falls far behind is told from where to ask again.
"""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.rpc import codes, internal_errors
from herdbook.entrypoints.rpc.messages import TOO_MANY, RpcError
from herdbook.entrypoints.rpc.writer import Outlet

if TYPE_CHECKING:
    from herdbook.domain.journal import JournalEntry
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

PAGE = 100
SLOW, FAR_BEHIND = 1.0, 1_000
"""A client that takes so many seconds for a page, and has so many entries to come, is behind."""
MOST = 64
SHORTEST, LONGEST = 0.01, 0.25


class Subscriptions:
    """Who is told of the journal, each by a thread of its own."""

    def __init__(self, here: Callable[[], AppContext], outlet: Outlet) -> None:
        self._here = here
        self._outlet = outlet
        self._numbers = count(1)
        self._mutex = threading.Lock()
        self._running: dict[str, _Follower] = {}

    def subscribe(self, since: int | None) -> dict[str, Any]:
        """Begin to tell what comes after a number, or from now on; under which name."""
        last = _last(self._here())
        follower = _Follower(f"journal-{next(self._numbers)}", last if since is None else since)
        with self._mutex:
            if len(self._running) >= MOST:
                raise RpcError(TOO_MANY, f"there are {MOST} subscriptions already, and no more")
            self._running[follower.name] = follower
        follower.allowed = max(FAR_BEHIND, last - follower.since)
        return {"subscription": follower.name, "seq": follower.since}

    def start(self, name: str) -> None:
        """Begin to tell; called when the client knows the subscription's name."""
        with self._mutex:
            follower = self._running.get(name)
        if follower is not None:
            follower.thread = threading.Thread(
                target=self._follow, args=(follower,), name=name, daemon=True
            )
            follower.thread.start()

    def unsubscribe(self, name: str) -> bool:
        """Tell no more; whether that was told until now."""
        with self._mutex:
            follower = self._running.pop(name, None)
        if follower is not None:
            follower.stop.set()
        return follower is not None

    def close(self) -> None:
        """Tell nobody any more."""
        with self._mutex:
            followers, self._running = list(self._running.values()), {}
        for each in followers:
            each.stop.set()
        for each in followers:
            if each.thread is not None and not self._outlet.gone:
                each.thread.join()

    def _follow(self, follower: "_Follower") -> None:
        try:
            self._tell(follower)
        except HerdbookError as error:
            self._end(follower, codes.told(error).as_data())
        except Exception as error:  # noqa: BLE001 - a thread of its own has nobody to raise to
            self._end(follower, internal_errors.noted(error).as_data())
        finally:
            with self._mutex:
                self._running.pop(follower.name, None)

    def _tell(self, follower: "_Follower") -> None:
        pause, is_slow = SHORTEST, False
        while not (follower.stop.is_set() or self._outlet.gone):
            page, last = _news(self._here(), follower.since)
            if is_slow and last - follower.since > follower.allowed:
                self._end(follower, None)
                return
            if page:
                begun = time.monotonic()
                self._send(follower, page)
                is_slow = time.monotonic() - begun > SLOW
                follower.since = page[-1].seq
                pause = SHORTEST
            elif follower.stop.wait(pause):
                return
            else:
                pause = min(2 * pause, LONGEST)

    def _send(self, follower: "_Follower", page: "list[JournalEntry]") -> None:
        from herdbook.entrypoints.operations.serialize import plain  # noqa: PLC0415

        entries = [plain(entry) for entry in page]
        said = {"subscription": follower.name, "entries": entries, "seq": page[-1].seq}
        if not follower.stop.is_set():
            self._outlet.notify("journal.changed", said)

    def _end(self, follower: "_Follower", error: dict[str, Any] | None) -> None:
        """Say that this subscription is over, and from which number to ask again."""
        said = {"subscription": follower.name, "seq": follower.since, "error": error}
        if not follower.stop.is_set():
            self._outlet.notify("journal.behind", said)


class _Follower:
    def __init__(self, name: str, since: int) -> None:
        self.name = name
        self.since = since
        self.allowed = FAR_BEHIND
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None


def _last(here: AppContext) -> int:
    def question(uow: "UnitOfWork") -> int:
        return uow.journal.last()

    return here.read(Area.WORK, question)


def _news(here: AppContext, since: int) -> "tuple[list[JournalEntry], int]":
    """What came after a number, a page of it, and the number of the last there is."""

    def question(uow: "UnitOfWork") -> "tuple[list[JournalEntry], int]":
        return uow.journal.since(since, limit=PAGE), uow.journal.last()

    return here.read(Area.WORK, question)
