"""Watches the journal for an editor and reports changes of what the editor shows."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.lsp.editor_worktree import ContextFactory
from herdbook.ports.engine.store import Store
from herdbook.services.journal import watch

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
        self._over = threading.Event()
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

    def _watch_once(self, last: int | None) -> int | None:
        """Watch for a while; returns the number of the last entry, None if there is no store."""
        app = self._get_context()
        if not app.workspace.store_exists(app.workspace.locate(Area.WORK)):
            self._over.wait(MISSING_WAIT)
            return None
        space, ends = app.workspace.space(Area.WORK), time.monotonic() + REOPEN_AFTER
        with app.open(Area.WORK) as store:
            now = _last_seq(store, space)
            if now != last:
                # Entries before the store was opened, or of another store, may be about anything.
                self._on_change(comments=True, lenses=True)
            for entry in watch.follow_journal(
                store,
                space,
                now,
                stop=lambda: self._over.is_set() or time.monotonic() > ends,
                sleep=self._send_pending,
            ):
                now = entry.seq
                self._lenses_pending = self._lenses_pending or entry.entity in LENS_KINDS
                if entry.entity in COMMENT_KINDS:
                    self._on_change(comments=True, lenses=False)
        return now

    def _send_pending(self, seconds: float) -> None:
        """Send a postponed report if it is due, and wait for entries."""
        now = time.monotonic()
        if self._lenses_pending and now - self._lenses_sent_at >= LENS_INTERVAL:
            self._lenses_pending, self._lenses_sent_at = False, now
            self._on_change(comments=False, lenses=True)
        self._over.wait(seconds)

    def _warn_and_wait(self, sentence: str) -> None:
        if sentence != self._last_warning:
            self._warn(sentence)
        self._last_warning = sentence
        self._over.wait(ERROR_WAIT)


def _last_seq(store: Store, space: str) -> int:
    from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415 - only once there is a store

    last: int = read(store, space, lambda uow: uow.journal.last())
    return last
