"""What DuckDB's lock file says besides its holders: the last commit, and how the file was left."""

import os
from typing import ClassVar

from attrs import frozen

from herdbook.adapters.locks.lock_file import Line, LockFile


@frozen
class Seal:
    """How the database was left: a digest of its headers, and how long the file was."""

    head: str
    size: int


class DuckDBLockFile(LockFile):
    """The lines of the lock file beside a database."""

    left: ClassVar = Line(512, 512)
    note: ClassVar = Line(1024, 3072)

    def acknowledge(self, note: str, database: os.stat_result) -> None:
        """Keep word of the last commit until the database file has been put down whole."""
        self.write(self.note, {"file": [database.st_dev, database.st_ino], "note": note})

    def acknowledged(self, database: os.stat_result) -> str | None:
        """The last commit a process spoke of that then died; None when all was put down whole."""
        fields = self.read(self.note)
        if fields is None or fields.get("file") != [database.st_dev, database.st_ino]:
            return None
        note = fields.get("note")
        return note if isinstance(note, str) else None

    def put_down(self, seal: Seal) -> None:
        """Say that the database file is whole by itself, as sealed; no commit is owed any more.

        What a rolled back change added to the file behind its headers may go again unasked.
        """
        before = self.seal()
        size = min(seal.size, before.size) if before and before.head == seal.head else seal.size
        self.write(self.left, {"head": seal.head, "size": size})
        if self.read_bytes(self.note).strip():
            self.blank(self.note)

    def seal(self) -> Seal | None:
        """How the database was left when it was last put down whole."""
        match self.read(self.left):
            case {"head": str(head), "size": int(size)}:
                return Seal(head, size)
        return None
