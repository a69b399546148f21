"""An open LMDB folder, for reading or for reading and writing, with handles of its databases.

Handles of databases last only if LMDB created them in a committed transaction, and py-lmdb commits
a read transaction only in a read-only environment. So a process that has not written yet has the
folder open for reading: its handles last, and it has not taken LMDB's writer lock to get them.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb.errors import translate_error
from herdbook.adapters.lmdb.files import DATA, MAX_READERS
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.domain.errors import StoreDamaged


class OpenDatabases:
    """The folder as LMDB has it open, or not; one thread at a time changes that."""

    def __init__(self, folder: Path, size_limit: int) -> None:
        self._folder = folder
        self._place = str(folder)
        self._size_limit = size_limit
        self.env: Any = None
        self.writable = False
        self.page_size = 0
        self.names: tuple[str, ...] = ()
        self.databases: dict[str, Any] = {}

    def load(self, *, writable: bool) -> None:
        """Open the folder. Of the pages only the headers are read."""
        with translate_os_errors(self._place):
            try:
                self.env = lmdb.open(
                    self._place,
                    map_size=self._size_limit,
                    max_dbs=8,
                    max_readers=MAX_READERS,
                    mode=0o600,
                    create=writable,
                    readonly=not writable,
                )
                self.writable = writable
                self.databases = {}
                self.page_size = self.env.stat()["psize"]
            except lmdb.Error as error:
                raise translate_error(error, self._place) from error

    def unload(self) -> None:
        """Close the folder, if it is open."""
        if self.env is not None:
            self.env.close()
        self.env, self.writable = None, False

    def find(self) -> None:
        """Get lasting handles of the databases that exist.

        In a folder that is open for writing this takes LMDB's writer lock for a moment.
        """
        try:
            for name in self.names:
                if name not in self.databases:
                    with suppress(lmdb.NotFoundError):
                        found = self.env.open_db(name.encode(), create=False)
                        self._require_plain_database(found)
                        self.databases[name] = found
        except lmdb.Error as error:
            raise translate_error(error, self._place) from error

    def create(self, txn: Any) -> dict[str, Any]:
        """Open all databases, creating missing ones; they last if the transaction is committed."""
        made = {name: self.env.open_db(name.encode(), txn=txn) for name in self.names}
        for each in made.values():
            self._require_plain_database(each)
        return made

    def _require_plain_database(self, database: Any) -> None:
        """Refuse a database with other flags than ours: LMDB would use it differently."""
        if any(database.flags().values()):
            reason = "a database in it is of a kind that Herdbook never makes"
            raise StoreDamaged(str(self._folder / DATA), reason)
