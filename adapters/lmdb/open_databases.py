"""An LMDB folder, loaded: for reading, or for reading and writing, with its databases at hand.

Handles of databases last only if LMDB got them in a transaction that was committed, and py-lmdb
commits a reading one only where nothing else is allowed. So a process that has not written yet has
the folder loaded for reading: its handles last, and it has not taken the writer's place to get
them.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb.errors import translate_error
from herdbook.adapters.lmdb.files import DATA, MAX_READERS
from herdbook.adapters.system.os_errors import translate_os_error
from herdbook.domain.errors import HerdbookError, StoreDamaged


class LoadedFolder:
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
        """Open the folder. No page is read but the headers."""
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
        except HerdbookError:
            raise
        except OSError as error:
            raise translate_os_error(error, self._place) from error

    def unload(self) -> None:
        """Close it, if it is open."""
        if self.env is not None:
            self.env.close()
        self.env, self.writable = None, False

    def find(self) -> None:
        """Get lasting handles of the databases that are there.

        In a folder that is open for writing this takes the writer's place for a moment.
        """
        try:
            for name in self.names:
                if name not in self.databases:
                    with suppress(lmdb.NotFoundError):
                        found = self.env.open_db(name.encode(), create=False)
                        self._require_plain(found)
                        self.databases[name] = found
        except lmdb.Error as error:
            raise translate_error(error, self._place) from error

    def make(self, txn: Any) -> dict[str, Any]:
        """All databases, those that are missing made in a transaction; they last if that does."""
        made = {name: self.env.open_db(name.encode(), txn=txn) for name in self.names}
        for each in made.values():
            self._require_plain(each)
        return made

    def _require_plain(self, database: Any) -> None:
        """Refuse a database of another kind than ours: LMDB would read and write it differently."""
        if any(database.flags().values()):
            reason = "a database in it is of a kind that Herdbook never makes"
            raise StoreDamaged(str(self._folder / DATA), reason)
