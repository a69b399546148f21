"""The store and the space a saver works in, found and opened when they are first needed."""

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import TypeVar

from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.ports.checkpoint_storage.byte_lru import Shelf
from herdbook.ports.checkpoint_storage.checkpoint_writer import Keeping
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import Recent
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import Checkpoints
from herdbook.ports.unit_of_work.run import insist
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

R = TypeVar("R")

_log = logging.getLogger("herdbook")

Found = tuple[Store, str]


class Home:
    """Where checkpoints are kept; copies of a saver share one."""

    def __init__(self, find: Callable[[ExitStack], Found], room: int) -> None:
        self.shelf = Shelf(room)
        self._recent = Recent()
        self._find = find
        self._lock = Lock()
        self._stack = ExitStack()
        self._found: Found | None = None
        self._closed = False

    @property
    def found(self) -> Found:
        """The store and the space."""
        if self._found is None:
            with self._lock:
                if self._closed:
                    raise StoreUnavailable("the checkpoint saver", "it has been closed here")
                if self._found is None:
                    self._found = self._find(self._stack)
        return self._found

    def write(self, work: Callable[[Keeping], R]) -> R:
        """Do something in a transaction of its own, again if the connection breaks.

        It may be repeated even when nobody knows whether it had happened: done twice is done once.
        """
        store, space = self.found

        def attempt() -> R:
            with unit_of_work(store, space) as uow:
                head = uow.session.head
                known = self._recent.at(head.clock if head else None)
                result = work(Keeping(uow, self.shelf, known))
                if uow.changes:
                    uow.commit()
                    self._recent.note(uow, known)
                return result

        return insist(attempt, store.patience)

    def read(self, question: Callable[[Checkpoints], R]) -> R:
        """Ask something in a read transaction of its own."""
        store, space = self.found
        asking = getattr(store, "asking", None)

        def attempt() -> R:
            with asking(space) if asking else store.transaction(space, write=False) as session:
                return question(Checkpoints(session, self.shelf, store.url))

        return insist(attempt, store.patience)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        with self._lock:
            self._closed, self._found = True, None
            self._stack.close()


def home(place: str | Store | None, space: str | None, room: int) -> Home:
    """The home that a place and a space stand for; what is not said is that of this folder."""
    folder = Path.cwd()

    def find(stack: ExitStack) -> Found:
        from herdbook.adapters.workspace import Workspace  # noqa: PLC0415 - if needed at all

        here = Workspace(folder, os.environ)
        if isinstance(place, str):
            from herdbook.adapters import open_store  # noqa: PLC0415

            store = stack.enter_context(open_store(place, area=Area.CHECKPOINTS))
        elif place is None:
            found = here.place(Area.CHECKPOINTS)
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

    return Home(find, room)
