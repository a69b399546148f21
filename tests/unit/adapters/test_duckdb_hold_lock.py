"""What holds while a DuckDB file is lent: our lock on it, and nothing of ours in it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.adapters.duckdb.file_lock import DuckDBFileLock
from herdbook.domain.errors import StoreBusy

COUNT = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read") as file:
    if sys.argv[2] == "write":
        file.execute("INSERT INTO rows VALUES (1)")
    print(file.execute("SELECT count(*) FROM rows").fetchall()[0][0])
"""


def make(attachment: Attachment) -> None:
    """One table, empty."""
    attachment.cursor.execute(f"CREATE TABLE {attachment.catalog}.rows (i BIGINT)")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SharedFile]:
    shared = SharedFile(tmp_path / "herd.duckdb", linger=3_600.0)
    assert shared.create(make)
    yield shared
    shared.close()


def rows(file: SharedFile) -> int:
    """How many rows we see."""
    with file.attach(write=False) as attachment:
        counted = attachment.cursor.execute(f"SELECT count(*) FROM {attachment.catalog}.rows")
        return int(counted.fetchall()[0][0])


def opened_by_another_program(path: Path, mode: str) -> str:
    """Open the file as a program that knows nothing of our lock; how many rows it saw."""
    return subprocess.run(
        [sys.executable, "-c", COUNT, str(path), mode],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_another_program_may_write_a_file_that_is_lent(file: SharedFile) -> None:
    """What we kept for the next use is put down first, and what it writes is there afterwards."""
    with file.attach(write=True) as attachment:
        attachment.cursor.execute(f"INSERT INTO {attachment.catalog}.rows VALUES (0)")
    with file.hold_lock(write=True):
        assert opened_by_another_program(file.real_path, "write") == "2"
    assert rows(file) == 2


def test_a_file_lent_to_read_is_read_by_others_and_written_by_none(file: SharedFile) -> None:
    """Other processes get the lock to read, and StoreBusy with our number to write."""
    with file.hold_lock(write=False):
        assert opened_by_another_program(file.real_path, "read") == "0"
        with pytest.raises(StoreBusy, match=f"is held by process {os.getpid()} "):
            DuckDBFileLock(file.real_path).take(write=True, patience=0.1)
    with file.hold_lock(write=False):
        DuckDBFileLock(file.real_path).take(write=False, patience=60).release()


def test_a_file_lent_to_write_is_nobody_elses(file: SharedFile) -> None:
    """Nobody else gets the lock, not even to read."""
    with file.hold_lock(write=True), pytest.raises(StoreBusy):
        DuckDBFileLock(file.real_path).take(write=False, patience=0.1)
    DuckDBFileLock(file.real_path).take(write=True, patience=60).release()


@pytest.mark.parametrize("write", [False, True])
def test_other_threads_wait_for_a_file_that_is_lent(file: SharedFile, write: bool) -> None:
    """A thread of the same process that wants the file gets it when it has come back."""
    seen: list[int] = []
    other = SharedFile(file.real_path, patience=600)
    thread = threading.Thread(target=lambda: seen.append(rows(other)))
    impatient = SharedFile(file.real_path, patience=0.1)
    refused: list[StoreBusy] = []

    def try_briefly() -> None:
        try:
            rows(impatient)
        except StoreBusy as busy:
            refused.append(busy)

    with file.hold_lock(write=write):
        brief = threading.Thread(target=try_briefly)
        brief.start()
        brief.join()
        thread.start()
        assert seen == []
    thread.join()
    assert seen == [0]
    assert len(refused) == 1
    other.close()
    impatient.close()
