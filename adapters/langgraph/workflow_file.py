"""The threads of a SqliteSaver's database, as they are while its own program may go on writing."""

import os
from contextlib import suppress
from pathlib import Path
from threading import RLock

from herdbook.adapters import open_store
from herdbook.adapters.langgraph.sqlite_reader import open_database, read_thread_ids
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.foreign_import import is_thread_here, take_over
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.ports.world.foreign_checkpoints import ForeignCheckpoint, ReadFailure

_FileState = tuple[tuple[int, int, int], ...]


class WorkflowFile:
    """A database that another program may write to; it is copied anew whenever it has changed.

    A thread is read from here as long as the space that it is to go on in has none of it.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = RLock()
        self._state: _FileState | None = None
        self._thread_ids: frozenset[str] = frozenset()
        self._threads: dict[str, list[ForeignCheckpoint]] = {}
        self._snapshots: dict[str, Store] = {}

    def thread_ids(self) -> frozenset[str]:
        """The ids of its threads; raises StoreBusy and StoreUnavailable as `open_database` does."""
        with self._lock:
            return self._current_ids()

    def find(self, thread_id: str) -> list[ForeignCheckpoint]:
        """The checkpoints of a thread, none if the file has no such thread.

        Raises StoreUnavailable if one of them cannot be read: a graph would go on from an earlier
        step, and do again what it has done.
        """
        with self._lock:
            if thread_id not in self._current_ids():
                return []
            found = self._threads.get(thread_id)
            if found is None:
                found = self._threads[thread_id] = self._read(thread_id)
            return found

    def snapshot(self, thread_id: str, space: str) -> Store | None:
        """A store in memory whose space has the thread; None if the file has no such thread."""
        with self._lock:
            found = self.find(thread_id)
            store = self._snapshots.get(thread_id)
            if found and store is None:
                store = self._snapshots[thread_id] = open_store("memory://")
                with unit_of_work(store, space) as uow:
                    take_over(CheckpointWriter(uow), thread_id, found)
                    uow.commit()
            return store

    def bring(self, kept: CheckpointWriter, thread_id: str) -> None:
        """Take over a thread into a space that has none of it."""
        if not is_thread_here(kept.uow, thread_id):
            found = self.find(thread_id)
            if found:
                take_over(kept, thread_id, found)

    def _current_ids(self) -> frozenset[str]:
        state = _file_state(self.file)
        if state != self._state:
            self._thread_ids = read_thread_ids(self.file)
            self._threads, self._snapshots, self._state = {}, {}, state
        return self._thread_ids

    def _read(self, thread_id: str) -> list[ForeignCheckpoint]:
        with open_database(self.file) as source:
            read = list(source.thread(thread_id))
        failed = [each for each in read if isinstance(each, ReadFailure)]
        if failed:
            reason = (
                f"{len(failed)} parts of its thread {thread_id!r} cannot be read ({failed[0].key}: "
                f"{failed[0].reason}); nothing was changed. `herdbook import langgraph-sqlite` "
                "brings what can be read"
            )
            raise StoreUnavailable(str(self.file), reason)
        return [each for each in read if isinstance(each, ForeignCheckpoint)]


def _file_state(file: Path) -> _FileState:
    """What changes whenever something is written to a database."""
    found = []
    for end in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            status = os.stat(f"{file}{end}")  # noqa: PTH116 - the same call for all three
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
