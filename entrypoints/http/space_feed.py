"""The journal of one space, followed by one thread for all readers of the feed."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from herdbook.domain.errors import HerdbookError, JournalPruned, StoreUnavailable
from herdbook.entrypoints.context import AppContext, describe_process
from herdbook.entrypoints.http.served_folders import ServedFolders, ServedSpace
from herdbook.entrypoints.operations.error_table import describe_error
from herdbook.entrypoints.operations.wire_converter import unstructure
from herdbook.entrypoints.rpc import internal_errors
from herdbook.ports.engine.store import Store
from herdbook.ports.engine.wakeups import LOOK, StopEvent
from herdbook.services.journal.feed import Feed
from herdbook.services.journal.follower_cursor import FollowerCursor

if TYPE_CHECKING:
    from herdbook.domain.clock import Stamp
    from herdbook.domain.journal import JournalEntry
    from herdbook.entrypoints.http.feed_reader import FeedReader
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

PAGE = 100
RETRY = 5.0
"""Seconds after which a journal that could not be read is tried again."""
Page = list["JournalEntry"]
Publish = Callable[["SpaceFeed", Callable[[], bool], int, str, Any], None]
"""Called with the space, whether it is still meant, the last entry that was read, the kind of the
event, and its data."""


class SpaceFeed:
    """A space, those who read it, and the last entry that they were told of."""

    def __init__(self, folders: ServedFolders, space: ServedSpace, publish: Publish) -> None:
        self.space = space
        self.key = space.key
        self.seq = 0
        self.readers: set[FeedReader] = set()
        self._folders = folders
        self._publish = publish
        self._follower: _FollowThread | None = None

    def start(self, since: int) -> None:
        """Follow the journal after an entry, unless that is done already."""
        if self._follower is None:
            self.seq = since
            self._follower = _FollowThread(self, since)

    @property
    def is_running(self) -> bool:
        """Whether the journal is being followed."""
        return self._follower is not None

    def stop(self) -> None:
        """Follow the journal no longer."""
        if self._follower is not None:
            self._follower.stop()
            self._follower = None

    def read(self, since: int) -> tuple[Page, int]:
        """A page of the entries after a number, and the number of the last entry."""

        def question(uow: "UnitOfWork") -> tuple[Page, int]:
            return uow.journal.since(since, limit=PAGE), uow.journal.last()

        return self.context().read(self.space.area, question)

    def last(self) -> int:
        """The number of the last entry."""
        return self._folders.last_entry(self.space)

    def describe(self, page: Page) -> dict[str, Any]:
        """What an event says about a page of entries."""
        place = {"space": self.space.space, "folder": self.space.folder}
        return {**place, "entries": unstructure(page), "seq": page[-1].seq}

    def reset(self, reason: str, seq: int, first: int | None = None) -> dict[str, Any]:
        """What a reader is told whose position is of no use: to read again what it shows."""
        return {"reason": reason, "spaces": [self.space.space], "seq": seq, "first": first}

    def publish(self, follower: "_FollowThread", seq: int, kind: str, data: Any) -> None:
        """Tell the readers something, from the thread that follows; one that was stopped may not.

        Its position is not that of those who read now, who would miss what lies between.
        """

        def is_current() -> bool:
            return self._follower is follower

        self._publish(self, is_current, seq, kind, data)

    def context(self) -> AppContext:
        """The context in which it is read."""
        return self._folders.context(self.space).call()


class _FollowThread:
    """The thread that follows a journal, until it is told to stop."""

    def __init__(self, space: SpaceFeed, since: int) -> None:
        self._space = space
        self._since = since
        self._mark: Stamp | None = None
        self._over = StopEvent()
        self._cursor = FollowerCursor(
            lambda: space.context().open(space.space.area),
            space.space.space,
            describe_process(space.context(), "serve"),
        )
        threading.Thread(target=self._run, name="herdbook-feed", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._follow_or_start_over()
            except HerdbookError as error:
                self._publish("trouble", describe_error(error))
                self._over.wait(RETRY)
            except Exception as error:  # noqa: BLE001 - nobody catches what a thread raises
                self._publish("trouble", internal_errors.report_defect(error).to_data())
                self._over.wait(RETRY)
        self._cursor.release()

    def _follow_or_start_over(self) -> None:
        """Follow; after entries that were folded, go on from the end of the journal."""
        try:
            self._follow()
        except JournalPruned as error:
            self._start_over(self._space.reset("pruned", self._space.last(), error.first))

    def _start_over(self, reset: dict[str, Any]) -> None:
        """Tell the readers to read again what they show, and go on from there."""
        self._since, self._mark = reset["seq"], None
        self._publish("reset", reset)

    def _follow(self) -> None:
        """Publish what is new, until it is over or another store has taken its place."""
        app, (area, space, _) = self._space.context(), self._space.space
        if not app.workspace.store_exists(app.workspace.locate(area)):
            self._over.wait(LOOK)  # nobody can ring for a store that is not there yet
            return
        with (
            app.open(area) as store,
            Feed(
                store, space, self._since, limit=PAGE, cursor=self._cursor, mark=self._mark
            ) as feed,
        ):
            self._over.waiter = feed
            try:
                self._publish_from(feed)
            except StoreUnavailable:
                if self._is_current(store):
                    raise

    def _publish_from(self, feed: Feed) -> None:
        while not self._over.is_set():
            page = feed.take()
            self._mark = feed.mark
            if feed.is_lost:
                self._start_over(self._space.reset("unknown", feed.last))
                return
            if page:
                self._since = feed.since
                self._publish("journal", self._space.describe(page))
            elif not feed.wait() and not self._is_current(feed.store):
                return

    def _is_current(self, store: Store) -> bool:
        with self._space.context().open(self._space.space.area) as current:
            return current is store

    def _publish(self, kind: str, data: Any) -> None:
        self._space.publish(self, self._since, kind, data)
