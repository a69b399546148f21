"""Journal subscriptions: new entries are sent to clients that subscribed.

Nothing is buffered for a slow client: its thread writes a page to the client before it reads the
next one, and the journal itself keeps the rest. So writers never wait, and memory does not grow. A
client that falls far behind gets the number from which to subscribe again. One that falls behind
the beginning of a journal that was folded is told where that begins.
"""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypedDict

from herdbook.domain.errors import HerdbookError, StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext, describe_process
from herdbook.entrypoints.rpc import internal_errors
from herdbook.entrypoints.rpc.errors import to_rpc_error
from herdbook.entrypoints.rpc.messages import TOO_MANY, RpcError
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.ports.engine.wakeups import LOOK, StopEvent

if TYPE_CHECKING:
    from herdbook.domain.clock import Stamp
    from herdbook.domain.journal import JournalEntry
    from herdbook.ports.engine.store import Store
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
    from herdbook.services.journal.feed import Feed
    from herdbook.services.journal.follower_cursor import FollowerCursor

PAGE = 100
SLOW, FAR_BEHIND = 1.0, 1_000
"""A client that takes this many seconds for a page and lags by this many entries is behind."""
MOST = 64


class Subscription(TypedDict):
    """The name of a subscription, and the number of the entry after which it begins."""

    subscription: str
    seq: int


class Subscriptions:
    """The subscriptions of a client, each with its own thread."""

    def __init__(self, get_context: Callable[[], AppContext], writer: MessageWriter) -> None:
        self._get_context = get_context
        self._writer = writer
        self._numbers = count(1)
        self._mutex = threading.Lock()
        self._running: dict[str, _Follower] = {}

    def subscribe(self, since: int | None) -> Subscription:
        """Subscribe to the entries after a number, or from now on."""
        last = _last_seq(self._get_context(), since)
        follower = _Follower(f"journal-{next(self._numbers)}", last if since is None else since)
        with self._mutex:
            if len(self._running) >= MOST:
                raise RpcError(TOO_MANY, f"there are {MOST} subscriptions already, and no more")
            self._running[follower.name] = follower
        follower.allowed = max(FAR_BEHIND, last - follower.since)
        return {"subscription": follower.name, "seq": follower.since}

    def start(self, name: str) -> None:
        """Start to send; called when the client knows the subscription's name."""
        with self._mutex:
            follower = self._running.get(name)
        if follower is not None:
            follower.thread = threading.Thread(
                target=self._follow, args=(follower,), name=name, daemon=True
            )
            follower.thread.start()

    def unsubscribe(self, name: str) -> bool:
        """End a subscription; whether there was one."""
        with self._mutex:
            follower = self._running.pop(name, None)
        if follower is not None:
            follower.stop.set()
        return follower is not None

    def close(self) -> None:
        """End all subscriptions."""
        with self._mutex:
            followers, self._running = list(self._running.values()), {}
        for each in followers:
            each.stop.set()
        for each in followers:
            if each.thread is not None and not self._writer.gone:
                each.thread.join()

    def _follow(self, follower: "_Follower") -> None:
        from herdbook.services.journal.follower_cursor import FollowerCursor  # noqa: PLC0415

        app = self._get_context()
        cursor = FollowerCursor(
            lambda: self._get_context().open(Area.WORK),
            app.workspace.space(Area.WORK),
            describe_process(app, f"a subscription ({follower.name})"),
        )
        try:
            self._send_pages(follower, cursor)
        except HerdbookError as error:
            self._end(follower, to_rpc_error(error).to_data())
        except Exception as error:  # noqa: BLE001 - nobody catches what a thread raises
            self._end(follower, internal_errors.report_defect(error).to_data())
        finally:
            cursor.release()
            with self._mutex:
                self._running.pop(follower.name, None)

    def _send_pages(self, follower: "_Follower", cursor: "FollowerCursor") -> None:
        from herdbook.services.journal.feed import Feed  # noqa: PLC0415 - a client may want none

        while not self._is_over(follower):
            app = self._get_context()
            if not app.workspace.store_exists(app.workspace.locate(Area.WORK)):
                follower.stop.wait(LOOK)
                continue
            space = app.workspace.space(Area.WORK)
            with (
                app.open(Area.WORK) as store,
                Feed(
                    store, space, follower.since, limit=PAGE, cursor=cursor, mark=follower.mark
                ) as feed,
            ):
                follower.stop.waiter = feed
                try:
                    self._send_from(feed, follower)
                except StoreUnavailable:
                    if self._is_current(store):
                        raise

    def _send_from(self, feed: "Feed", follower: "_Follower") -> None:
        """Send what comes, until it is over or another store has taken the place of this one."""
        is_slow = False
        while not self._is_over(follower):
            page = feed.take()
            follower.mark = feed.mark
            if feed.is_lost:
                self._end_at_replaced(follower, feed.last)
            elif is_slow and feed.last - follower.since > follower.allowed:
                self._end(follower, None)
                follower.stop.set()
            elif page:
                begun = time.monotonic()
                self._send(follower, page)
                is_slow = time.monotonic() - begun > SLOW
                follower.since = feed.since
            elif not feed.wait() and not self._is_current(feed.store):
                return

    def _end_at_replaced(self, follower: "_Follower", last: int) -> None:
        """End a subscription whose entries are those of another store now."""
        from herdbook.services.journal.watch import replaced_error  # noqa: PLC0415 - as above

        error, follower.since = replaced_error(follower.since, last), last
        self._end(follower, to_rpc_error(error).to_data())
        follower.stop.set()

    def _is_over(self, follower: "_Follower") -> bool:
        return follower.stop.is_set() or self._writer.gone

    def _is_current(self, store: "Store") -> bool:
        app = self._get_context()
        with app.open(Area.WORK) as current:
            return current is store

    def _send(self, follower: "_Follower", page: "list[JournalEntry]") -> None:
        from herdbook.entrypoints.operations.wire_converter import unstructure  # noqa: PLC0415

        params = {"subscription": follower.name, "entries": unstructure(page), "seq": page[-1].seq}
        if not follower.stop.is_set():
            self._writer.notify("journal.changed", params)

    def _end(self, follower: "_Follower", error: dict[str, Any] | None) -> None:
        """Send the end of a subscription, with the number from which to subscribe again."""
        params = {"subscription": follower.name, "seq": follower.since, "error": error}
        if not follower.stop.is_set():
            self._writer.notify("journal.behind", params)


class _Follower:
    def __init__(self, name: str, since: int) -> None:
        self.name = name
        self.since = since
        self.mark: Stamp | None = None
        self.allowed = FAR_BEHIND
        self.stop = StopEvent()
        self.thread: threading.Thread | None = None


def _last_seq(app: AppContext, since: int | None) -> int:
    """The number of the last entry.

    Raises JournalPruned if entries after `since` were folded, and InvalidValue if it is behind all.
    """

    def question(uow: "UnitOfWork") -> int:
        if since is not None:
            uow.journal.require(since)
        return uow.journal.last()

    last = app.read(Area.WORK, question)
    if since is not None and since > last:
        from herdbook.services.journal.watch import replaced_error  # noqa: PLC0415 - seldom needed

        raise replaced_error(since, last)
    return last
