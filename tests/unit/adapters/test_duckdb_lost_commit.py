"""The regression that the sidecar lock exists for: DuckDB alone loses commits between processes.

DuckDB 2.0 reads a file's headers before it takes its own lock and does not read them again. A
process that is held between the two works on from what it read, over whatever another process has
committed meanwhile. The first test shows that this is still so: should it ever fail, DuckDB has
been mended and our lock may be thought over. The second shows that nothing is lost under ours.

To hold a process at that very place, its DuckDB module is made to call a `fcntl` of ours: the
address in the module's table of imported functions is replaced, which takes no compiler. This file
is also the program that does so, in a process of its own. The table is that of Linux; elsewhere
there is nothing to run here, and what the lock does is in test_duckdb_file_access.py.
"""

import ctypes
import fcntl
import mmap
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.domain.errors import StoreBusy

COMMITTED_MEANWHILE = list(range(20))
BY_THE_HELD_ONE = 1_000


def address_of_import(module: Path, name: str) -> int:
    """Where a loaded ELF module keeps the address of a function that it imports."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = min(int(line.partition("-")[0], 16) for line in maps if line.endswith(str(module)))
    (headers,) = struct.unpack("<Q", ctypes.string_at(base + 32, 8))
    size, count = struct.unpack("<HH", ctypes.string_at(base + 54, 4))
    segments = [
        struct.unpack("<IIQQQQ", ctypes.string_at(base + headers + number * size, 40))
        for number in range(count)
    ]
    ((start, length),) = [(where, room) for kind, _, where, _, _, room in segments if kind == 2]
    with module.open("rb") as file:
        file.seek(start)
        dynamic = dict(struct.iter_unpack("<qQ", file.read(length)))
    names, symbols = base + dynamic[5], base + dynamic[6]
    for table, room in ((dynamic[23], dynamic[2]), (dynamic[7], dynamic[8])):  # functions, data
        for place, info, _ in struct.iter_unpack("<QQq", ctypes.string_at(base + table, room)):
            (symbol,) = struct.unpack("<I", ctypes.string_at(symbols + 24 * (info >> 32), 4))
            if ctypes.string_at(names + symbol) == name.encode():
                return base + int(place)
    raise LookupError(f"{module} imports no {name}")


def hold_before_the_lock() -> object:
    """Make DuckDB, before it locks a file for the first time, say so and wait for a line."""
    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    libc = ctypes.CDLL(None)
    real = signature(("fcntl", libc))
    held: list[int] = []

    def ours(descriptor: int, command: int, argument: int | None) -> int:
        if command == fcntl.F_SETLK and not held:
            held.append(descriptor)
            tell("held")
            sys.stdin.readline()
        return int(real(descriptor, command, argument))

    replacement = signature(ours)
    module = Path(sys.modules["_duckdb"].__file__ or "").resolve()
    slot = address_of_import(module, "fcntl")
    page = ctypes.c_void_p(slot - slot % mmap.PAGESIZE)
    if libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
        raise OSError("the table of imported functions cannot be written to")
    ctypes.c_void_p.from_address(slot).value = ctypes.cast(replacement, ctypes.c_void_p).value
    return replacement


def tell(word: str) -> None:
    """Say something to the test that started this process."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def write_by_duckdb_alone(path: Path, rows: list[int]) -> None:
    """What anybody would write who trusts DuckDB's lock."""
    with duckdb.connect(path) as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [[row] for row in rows])


def write_shared(path: Path, rows: list[int], patience: float = 30.0) -> None:
    """The same through our lock."""
    file = SharedFile(path, patience=patience)
    try:
        with file.attach(write=True) as attachment:
            cursor = attachment.cursor.execute(f"USE {attachment.catalog}")
            cursor.executemany("INSERT INTO t VALUES (?)", [[row] for row in rows])
    finally:
        file.close()


def rows_of(path: Path) -> list[int]:
    """What is in the file."""
    with duckdb.connect(path, read_only=True) as connection:
        return [row for (row,) in connection.execute("SELECT i FROM t ORDER BY i").fetchall()]


def be_held(how: str, path: Path) -> None:
    """The other process: held before its lock, then writes a row, and believes all is well."""
    kept = hold_before_the_lock()
    write = {"alone": write_by_duckdb_alone, "shared": write_shared}[how]
    write(path, [BY_THE_HELD_ONE])
    tell("committed")
    del kept


@contextmanager
def held(how: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has read the headers and not yet taken DuckDB's lock."""
    command = [sys.executable, __file__, how, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def let_go(process: subprocess.Popen[str]) -> None:
    """Let the held process go on to its end."""
    said, _ = process.communicate("\n", timeout=30)
    assert said == "committed\n"
    assert process.returncode == 0


if sys.platform == "linux":

    @pytest.fixture
    def path(tmp_path: Path) -> Path:
        """A database with an empty table."""

        def fill(attachment: Attachment) -> None:
            attachment.cursor.execute(f"CREATE TABLE {attachment.catalog}.t (i BIGINT)")

        file = SharedFile(tmp_path / "herd.duckdb")
        assert file.create(fill)
        file.close()
        return file.real_path

    def test_duckdb_alone_loses_what_was_committed_meanwhile(path: Path) -> None:
        """The hazard is real: all exit codes are 0, and 20 committed rows are gone."""
        with held("alone", path) as process:
            write_by_duckdb_alone(path, COMMITTED_MEANWHILE)
            assert rows_of(path) == COMMITTED_MEANWHILE
            let_go(process)
        assert rows_of(path) == [BY_THE_HELD_ONE]

    def test_nothing_is_lost_under_our_lock(path: Path) -> None:
        """Held at the same place, a process keeps the others out, and nobody's rows are lost."""
        with held("shared", path) as process:
            with pytest.raises(StoreBusy) as caught:
                write_shared(path, [-1], patience=0.2)
            assert f"process {process.pid} " in str(caught.value)
            let_go(process)
        write_shared(path, COMMITTED_MEANWHILE)
        assert rows_of(path) == [*COMMITTED_MEANWHILE, BY_THE_HELD_ONE]


if __name__ == "__main__":
    be_held(sys.argv[1], Path(sys.argv[2]))
