"""The lock beside a database file: nobody attaches the file without it.

`.turn` is the turn file and `.lock` the lock file. Besides its holders, the lock file records the
last commit and how the database was left. It also says where to wake the holders, so that one which
only keeps the file for its next use releases it at once.
"""

import os
from pathlib import Path
from typing import ClassVar

from attrs import frozen

from herdbook.adapters.duckdb.wakeup_socket import wake
from herdbook.adapters.locks import file_lock
from herdbook.adapters.locks.lock_file import Line, LockFile


@frozen
class FileState:
    """The state of a database file: a digest of its headers, and its size."""

    head: str
    size: int


class DuckDBLockFile(LockFile):
    """The lines of the lock file beside a database."""

    left: ClassVar = Line(512, 512)
    note: ClassVar = Line(1024, 3072)

    def acknowledge(self, note: str, database: os.stat_result) -> None:
        """Record the last commit until the database file has been closed whole."""
        self.write(self.note, {"file": [database.st_dev, database.st_ino], "note": note})

    def last_acknowledged(self, database: os.stat_result) -> str | None:
        """The last commit of a process that then died; None if the file was closed whole."""
        fields = self.read(self.note)
        if fields is None or fields.get("file") != [database.st_dev, database.st_ino]:
            return None
        note = fields.get("note")
        return note if isinstance(note, str) else None

    def record_clean(self, seal: FileState) -> None:
        """Record that the database file is whole by itself; no commit is owed any more.

        The smaller size is kept if the headers did not change: what a rolled back change appended
        to the file may disappear again unnoticed.
        """
        before = self.clean_state()
        size = min(seal.size, before.size) if before and before.head == seal.head else seal.size
        self.write(self.left, {"head": seal.head, "size": size})
        if self.read_bytes(self.note).strip():
            self.blank(self.note)

    def clean_state(self) -> FileState | None:
        """The state in which the database was last closed whole."""
        match self.read(self.left):
            case {"head": str(head), "size": int(size)}:
                return FileState(head, size)
        return None


Hold = file_lock.Hold[DuckDBLockFile]


class DuckDBFileLock(file_lock.FileLock[DuckDBLockFile]):
    """The lock of one database file in this process. One thread at a time may take it."""

    def __init__(self, database: Path) -> None:
        super().__init__(
            database,
            turn=database.with_name(f"{database.name}.turn"),
            lock=database.with_name(f"{database.name}.lock"),
            kind=DuckDBLockFile,
            wake=wake,
        )
