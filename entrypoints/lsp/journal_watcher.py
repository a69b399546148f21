"""Watches the journal for an editor and reports changes of what the editor shows."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import describe_process
from herdbook.entrypoints.lsp.editor_worktree import ContextFactory
from herdbook.ports.engine.store import Store
from herdbook.ports.engine.wakeups import StopEvent
from herdbook.services.journal.feed import Feed
from herdbook.services.journal.follower_cursor import FollowerCursor

COMMENT_KINDS = frozenset({"review_comments", "phases", "initiatives", "agents"})
"""The kinds of rows that decide which comments are shown."""
LENS_KINDS = frozenset({"agents", "tasks", "worktrees", "initiatives"})
"""The kinds of rows that decide which agents are shown at a file."""
LENS_INTERVAL = 1.0
"""The least time in seconds between two reports of changed code lenses."""
MISSING_WAIT, ERROR_WAIT, REOPEN_AFTER = 0.5, 2.0, 60.0
"""Seconds until a missing store, or one with an error, is tried again, or a store is reopened."""


class OnChange(Protocol):
    """Called with what has to be shown again."""

    def __call__(self, *, comments: bool, lenses: bool) -> None:
        """Show the comments, the code lenses, or both again."""


class JournalWatcher:
    """A thread that watches the journal of a worktree's work store until it is closed.

    Changed comments are reported at once. Which agents work changes all the time if there are many,
    and each report costs git and the editor some work, so reports of that have a least interval.
    """

    def __init__(
        self, get_context: ContextFactory, on_change: OnChange, warn: Callable[[str], None]
    ) -> None:
        self._get_context = get_context
        self._on_change = on_change
        self._warn = warn
        self._last_warning = ""
        self._lenses_pending = False
        self._lenses_sent_at = -LENS_INTERVAL
        self._cursor: FollowerCursor | None = None
        self._over = StopEvent()
        self._thread = threading.Thread(target=self._run, name="herdbook-journal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        last: int | None = None
        while not self._over.is_set():
            try:
                last = self._watch_once(last)
                self._last_warning = ""
            except HerdbookError as error:
                self._warn_and_wait(f"the journal cannot be followed for now: {error}")
            except Exception as error:  # noqa: BLE001 - the editor goes on after any error
                self._warn_and_wait(
                    f"the journal cannot be followed for now ({type(error).__name__})"
                )
        if self._cursor is not None:
            self._cursor.release()

    def _watch_once(self, last: int | None) -> int | None:
        """Watch for a while; returns the number of the last entry, None if there is no store."""
        app = self._get_context()
        if not app.workspace.store_exists(app.workspace.locate(Area.WORK)):
            self._over.wait(MISSING_WAIT)
            return None
        space, ends = app.workspace.space(Area.WORK), time.monotonic() + REOPEN_AFTER
        if self._cursor is None:
            self._cursor = FollowerCursor(
                lambda: self._get_context().open(Area.WORK),
                space,
                describe_process(app, "an editor"),
            )
        with app.open(Area.WORK) as store:
            now = _last_seq(store, space)
            if now != last:
                # Entries before the store was opened, or of another store, may be about anything.
                self._on_change(comments=True, lenses=True)
            with Feed(store, space, now, cursor=self._cursor) as feed:
                self._over.waiter = feed
                while not self._over.is_set() and time.monotonic() < ends:
                    page = feed.take()
                    if feed.is_lost:
                        return None
                    for entry in page:
                        self._lenses_pending = self._lenses_pending or entry.entity in LENS_KINDS
                        if entry.entity in COMMENT_KINDS:
                            self._on_change(comments=True, lenses=False)
                    if not page:
                        feed.wait(self._send_pending())
                return feed.since

    def _send_pending(self) -> float | None:
        """Send a postponed report if it is due; in how many seconds one is, if at all."""
        if not self._lenses_pending:
            return None
        due = self._lenses_sent_at + LENS_INTERVAL - time.monotonic()
        if due > 0:
            return due
        self._lenses_pending, self._lenses_sent_at = False, time.monotonic()
        self._on_change(comments=False, lenses=True)
        return None

    def _warn_and_wait(self, sentence: str) -> None:
        if sentence != self._last_warning:
            self._warn(sentence)
        self._last_warning = sentence
        self._over.wait(ERROR_WAIT)


def _last_seq(store: Store, space: str) -> int:
    from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415 - only once there is a store

    last: int = read(store, space, lambda uow: uow.journal.last())
    return last
