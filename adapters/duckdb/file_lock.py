"""The lock beside a database file: nobody attaches the file without it.

`.turn` is the turnstile and `.lock` the lock itself, which holds what `lockfile` writes: among it,
where to ring the holders, so that one which only keeps the file for its next use lets go at once.
"""

from pathlib import Path

from herdbook.adapters.duckdb.lock_contents import DuckDBLockFile
from herdbook.adapters.duckdb.wakeup_socket import ring
from herdbook.adapters.locks import file_lock
from herdbook.adapters.locks.wait_queue import forget_inherited

__all__ = ["Hold", "Sidecar", "forget_inherited"]

Hold = file_lock.Hold[DuckDBLockFile]


class Sidecar(file_lock.FileLock[DuckDBLockFile]):
    """The lock of one database file, as this process sees it. One thread at a time may take it."""

    def __init__(self, database: Path) -> None:
        super().__init__(
            database,
            turn=database.with_name(f"{database.name}.turn"),
            lock=database.with_name(f"{database.name}.lock"),
            kind=DuckDBLockFile,
            ring=ring,
        )
