"""The journal, followed for an editor: it is told when something changes that it shows."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.lsp.workspace import Look
from herdbook.ports.engine.store import Store
from herdbook.services.journal import watch

REMARKED = frozenset({"review_comments", "phases", "initiatives", "agents"})
"""The rows that decide which remarks are shown."""
AT_WORK = frozenset({"agents", "tasks", "worktrees", "initiatives"})
"""The rows that decide who is shown to be at a file."""
SELDOM = 1.0
"""Who is at work is told of again after so many seconds at the earliest."""
MISSING, TROUBLED, ROUND = 0.5, 2.0, 60.0
"""Seconds until a store that is missing, or in trouble, is looked for again, or one is reopened."""


class Changed(Protocol):
    """Is told what to show again."""

    def __call__(self, *, remarks: bool, lenses: bool) -> None:
        """Show again the remarks, or who is at work, or both."""


class Follower:
    """A thread that follows the journal of a worktree's work store until it is closed.

    Remarks are told of at once. Who is at work changes all the time where many are, and to find out
    more takes git and the editor some work, so that is told of once in a while.
    """

    def __init__(self, see: Look, changed: Changed, said: Callable[[str], None]) -> None:
        self._see = see
        self._changed = changed
        self._said = said
        self._trouble = ""
        self._untold = False
        self._told_at = -SELDOM
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herdbook-journal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow no longer."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        last: int | None = None
        while not self._over.is_set():
            try:
                last = self._round(last)
                self._trouble = ""
            except HerdbookError as error:
                self._tell(f"the journal cannot be followed for now: {error}")
            except Exception as error:  # noqa: BLE001 - an editor outlives whatever it is
                self._tell(f"the journal cannot be followed for now ({type(error).__name__})")

    def _round(self, last: int | None) -> int | None:
        """Follow for a while; the number of the last entry, None where there is no store."""
        here = self._see()
        if not here.workspace.is_there(here.workspace.place(Area.WORK)):
            self._over.wait(MISSING)
            return None
        space, ends = here.workspace.space(Area.WORK), time.monotonic() + ROUND
        with here.open(Area.WORK) as store:
            now = _last(store, space)
            if now != last:
                # What came before we looked, or is another store's, may be anything.
                self._changed(remarks=True, lenses=True)
            for entry in watch.follow_journal(
                store,
                space,
                now,
                stop=lambda: self._over.is_set() or time.monotonic() > ends,
                sleep=self._rest,
            ):
                now = entry.seq
                self._untold = self._untold or entry.entity in AT_WORK
                if entry.entity in REMARKED:
                    self._changed(remarks=True, lenses=False)
        return now

    def _rest(self, seconds: float) -> None:
        """Tell what was put off, and wait for more."""
        now = time.monotonic()
        if self._untold and now - self._told_at >= SELDOM:
            self._untold, self._told_at = False, now
            self._changed(remarks=False, lenses=True)
        self._over.wait(seconds)

    def _tell(self, sentence: str) -> None:
        if sentence != self._trouble:
            self._said(sentence)
        self._trouble = sentence
        self._over.wait(TROUBLED)


def _last(store: Store, space: str) -> int:
    from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415 - with the store, when it is there

    last: int = read(store, space, lambda uow: uow.journal.last())
    return last
