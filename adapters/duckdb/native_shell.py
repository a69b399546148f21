"""DuckDB's own program as the SQL shell of a store."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from herdbook.adapters.duckdb import file_checks
from herdbook.adapters.duckdb.file_access import SharedFile
from herdbook.adapters.duckdb.spec import OLDEST_PROGRAM
from herdbook.adapters.sql_query.native_shell import Program
from herdbook.adapters.stores.urls import path_of


@contextmanager
def open_shell(url: str, *, write: bool, patience: float) -> Iterator[Program | None]:
    """Give DuckDB's program; inside the block this process holds the file's lock.

    The file is not open in this process meanwhile. Gives None where there is no such program, or
    one that is too old for our files. Raises what `SharedFile.hold_lock` raises.
    """
    found = shutil.which("duckdb")
    if found is None or not _reads_our_files(found):
        yield None
        return
    file = SharedFile(path_of(url), patience=patience)
    try:
        with file.hold_lock(write=write) as lock:
            file_checks.require_database(file.real_path)
            mode = () if write else ("-readonly",)
            yield Program((found, *mode, str(file.real_path)), inherits=(lock,))
    finally:
        file.close()


def _reads_our_files(duckdb: str) -> bool:
    command = [duckdb, "--version"]
    try:
        version_run = subprocess.run(  # noqa: S603 - found on PATH under the name people call it by
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return False  # it is there and cannot be run, which is as good as not there
    version = re.match(r"v?(\d+)\.", version_run.stdout)
    return version is not None and int(version[1]) >= OLDEST_PROGRAM
