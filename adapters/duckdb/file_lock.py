"""The lock beside a database file: nobody attaches the file without it.

`.turn` is the turn file and `.lock` the lock file, in which `lock_contents` writes: among other
things where to wake the holders, so that one which only keeps the file for its next use releases it
at once.
"""

from pathlib import Path

from herdbook.adapters.duckdb.lock_contents import DuckDBLockFile
from herdbook.adapters.duckdb.wakeup_socket import wake
from herdbook.adapters.locks import file_lock
from herdbook.adapters.locks.wait_queue import forget_inherited

__all__ = ["DuckDBFileLock", "Hold", "forget_inherited"]

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
