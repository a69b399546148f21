"""The store and the space of a saver, found and opened on first use."""

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import TypeVar

from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import LatestCheckpointCache
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import Checkpoints
from herdbook.ports.unit_of_work.run import retry
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

R = TypeVar("R")

_log = logging.getLogger("herdbook")

StoreAndSpace = tuple[Store, str]


class SaverStore:
    """The store and space of a saver, with its caches; copies of a saver share one."""

    def __init__(self, find: Callable[[ExitStack], StoreAndSpace], room: int) -> None:
        self.shelf = ByteLru(room)
        self._recent = LatestCheckpointCache()
        self._find = find
        self._lock = Lock()
        self._stack = ExitStack()
        self._found: StoreAndSpace | None = None
        self._closed = False

    @property
    def store_and_space(self) -> StoreAndSpace:
        """The store and the space; raises StoreUnavailable after `close`."""
        if self._found is None:
            with self._lock:
                if self._closed:
                    raise StoreUnavailable("the checkpoint saver", "it has been closed here")
                if self._found is None:
                    self._found = self._find(self._stack)
        return self._found

    def write(self, work: Callable[[CheckpointWriter], R]) -> R:
        """Run work in a transaction of its own, and again if the connection breaks.

        All work must be idempotent: it is repeated even if it is unknown whether it was committed.
        """
        store, space = self.store_and_space

        def attempt() -> R:
            with unit_of_work(store, space) as uow:
                head = uow.session.head
                known = self._recent.at(head.clock if head else None)
                result = work(CheckpointWriter(uow, self.shelf, known))
                if uow.changes:
                    uow.commit()
                    self._recent.remember(uow, known)
                return result

        return retry(attempt, store.patience)

    def read(self, question: Callable[[Checkpoints], R]) -> R:
        """Run a query in a read transaction of its own."""
        store, space = self.store_and_space
        immediate_read = getattr(store, "immediate_read", None)

        def attempt() -> R:
            with (
                immediate_read(space)
                if immediate_read
                else store.transaction(space, write=False) as session
            ):
                return question(Checkpoints(session, self.shelf, store.url))

        return retry(attempt, store.patience)

    def close(self) -> None:
        """Close the store if it was opened here."""
        with self._lock:
            self._closed, self._found = True, None
            self._stack.close()


def saver_store(place: str | Store | None, space: str | None, room: int) -> SaverStore:
    """The saver store for a URL or store and a space; by default those of the current folder."""
    folder = Path.cwd()

    def find(stack: ExitStack) -> StoreAndSpace:
        from herdbook.adapters.workspace import Workspace  # noqa: PLC0415 - if needed at all

        here = Workspace(folder, os.environ)
        if isinstance(place, str):
            from herdbook.adapters import open_store  # noqa: PLC0415

            store = stack.enter_context(open_store(place, area=Area.CHECKPOINTS))
        elif place is None:
            found = here.locate(Area.CHECKPOINTS)
            for note in found.notes:
                _log.warning(note)
            here.pin()
            store = stack.enter_context(here.open_store(found, create=True))
            here.note_use(found)
        else:
            store = place
        if space is None:
            here.pin()
        return store, space or here.space(Area.CHECKPOINTS)

    return SaverStore(find, room)
