"""The store and the space of a saver, found and opened on first use."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from herdbook.adapters.langgraph.workflow_file import WorkflowFile
from herdbook.adapters.user_state.backup_schedule import BackupTimer
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.foreign_import import is_thread_here
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import LatestCheckpointCache
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import Checkpoints
from herdbook.ports.unit_of_work.run import retry
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

R = TypeVar("R")

_log = logging.getLogger("herdbook")


class SaverPlace(NamedTuple):
    """Where a saver keeps checkpoints, and the file that it reads those threads from it lacks.

    `after_write` is called after each write, if the store is that of the current folder.
    """

    store: Store
    space: str
    workflow_file: WorkflowFile | None = None
    after_write: Callable[[], None] | None = None


class SaverStore:
    """The store and space of a saver, with its caches; copies of a saver share one."""

    def __init__(self, find: Callable[[ExitStack], SaverPlace], room: int) -> None:
        self.shelf = ByteLru(room)
        self._recent = LatestCheckpointCache()
        self._find = find
        self._lock = Lock()
        self._stack = ExitStack()
        self._found: SaverPlace | None = None
        self._closed = False
        self._here: set[str] = set()

    @property
    def place(self) -> SaverPlace:
        """The store and the space, opened on first use; raises StoreUnavailable after `close`."""
        if self._found is None:
            with self._lock:
                if self._closed:
                    raise StoreUnavailable("the checkpoint saver", "it has been closed here")
                if self._found is None:
                    self._found = self._find(self._stack)
        return self._found

    def write(self, work: Callable[[CheckpointWriter], R], thread_ids: Sequence[str] = ()) -> R:
        """Run work in a transaction of its own, and again if the connection breaks.

        All work must be idempotent: it is repeated even if it is unknown whether it was committed.
        The threads it writes to are taken over before, if they are in a workflow file only.
        """
        for thread_id in thread_ids:
            self._bring(thread_id)
        return self._write(work)

    def _write(self, work: Callable[[CheckpointWriter], R]) -> R:
        store, space, _, after_write = self.place

        def attempt() -> R:
            with unit_of_work(store, space) as uow:
                head = uow.session.head
                known = self._recent.at(head.clock if head else None)
                result = work(CheckpointWriter(uow, self.shelf, known))
                if uow.changes:
                    uow.commit()
                    self._recent.remember(uow, known)
                return result

        result = retry(attempt, store.patience)
        if after_write is not None:
            after_write()
        return result

    def _bring(self, thread_id: str) -> None:
        file = self.place.workflow_file
        if file is not None and not self._is_here(thread_id) and file.find(thread_id):
            self._write(lambda kept: file.bring(kept, thread_id))

    def _is_here(self, thread_id: str) -> bool:
        """Whether the store has a thread, and not only the workflow file may have it."""
        if thread_id not in self._here and self._read(
            lambda kept: is_thread_here(kept.reader, thread_id)
        ):
            self._here.add(thread_id)
        return thread_id in self._here

    def read(self, question: Callable[[Checkpoints], R], thread_id: str | None = None) -> R:
        """Run a query in a read transaction of its own.

        A thread that the store does not have is read from the workflow file, if there is one.
        """
        file = self.place.workflow_file
        if file is not None and thread_id is not None and not self._is_here(thread_id):
            copy = file.snapshot(thread_id, self.place.space)
            if copy is not None:
                with copy.transaction(self.place.space, write=False) as session:
                    return question(Checkpoints(session, self.shelf, str(file.file)))
        return self._read(question)

    def _read(self, question: Callable[[Checkpoints], R]) -> R:
        store, space = self.place[:2]
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

    def find(stack: ExitStack) -> SaverPlace:
        from herdbook.adapters.workspace import Workspace  # noqa: PLC0415 - if needed at all

        here = Workspace(folder, os.environ)
        file: WorkflowFile | None = None
        after_write: Callable[[], None] | None = None
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
            if here.workflow_file is not None:
                file = WorkflowFile(here.workflow_file)
            timer = BackupTimer()
            stack.callback(timer.close)
            after_write = partial(timer.after_write, here, Area.CHECKPOINTS)
        else:
            store = place
        if space is None:
            here.pin()
        own = here.space(Area.CHECKPOINTS)
        return SaverPlace(store, space or own, file, after_write if space in (None, own) else None)

    return SaverStore(find, room)
