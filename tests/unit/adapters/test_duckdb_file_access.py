"""What holds for a DuckDB file that many processes and threads share."""

import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from herdbook.adapters.duckdb.errors import translate_error, translate_errors
from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.adapters.duckdb.file_lock import DuckDBFileLock
from herdbook.adapters.locks.lock_file import holder_of
from herdbook.domain.errors import (
    HerdbookError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)

PROGRAM = Path(__file__).with_name("duckdb_process.py")
FOR_EVER = 3_600.0
Process = subprocess.Popen[str]


def tables(attachment: Attachment) -> duckdb.DuckDBPyConnection:
    """The cursor, with the file's tables at hand by their bare names."""
    return attachment.cursor.execute(f"USE {attachment.catalog}")


def make(attachment: Attachment) -> None:
    """The tables of these tests."""
    cursor = tables(attachment)
    cursor.execute("CREATE TABLE counter (n BIGINT)")
    cursor.execute("INSERT INTO counter VALUES (0)")
    cursor.execute("CREATE TABLE rows (i BIGINT)")


def rows(attachment: Attachment) -> list[int]:
    """The rows that are there."""
    found = tables(attachment).execute("SELECT i FROM rows ORDER BY i")
    return [row for (row,) in found.fetchall()]


def add(attachment: Attachment, row: int) -> None:
    """Commit a row and acknowledge it."""
    tables(attachment).execute("INSERT INTO rows VALUES (?)", [row])
    attachment.acknowledge(str(row))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SharedFile]:
    """A shared file with its tables."""
    shared = SharedFile(tmp_path / "herd.duckdb")
    assert shared.create(make)
    yield shared
    shared.close()


@contextmanager
def playing(role: str, path: Path, *arguments: object) -> Iterator[Process]:
    """Another process, ended with the block if it has not ended before."""
    command = [sys.executable, str(PROGRAM), role, str(path), *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def hear(process: Process) -> str:
    """The next thing that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def outcome(role: str, path: Path, *arguments: object) -> list[str]:
    """All that a process says, once it has ended well."""
    with playing(role, path, *arguments) as process:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return said.splitlines()


def stored(file: SharedFile) -> list[int]:
    """The rows of a file."""
    with file.attach(write=False) as attachment:
        return rows(attachment)


def test_no_count_is_lost_between_processes_and_threads(file: SharedFile) -> None:
    """Reading a number and writing the next one is safe from 4 processes with 2 threads each."""
    with (
        playing("count", file.real_path, 2, 4) as a,
        playing("count", file.real_path, 2, 4) as b,
        playing("count", file.real_path, 2, 4) as c,
        playing("count", file.real_path, 2, 4) as d,
    ):
        assert [each.wait(60) for each in (a, b, c, d)] == [0] * 4
    with file.attach(write=False) as attachment:
        assert tables(attachment).execute("SELECT n FROM counter").fetchall() == [(32,)]


def test_what_was_acknowledged_outlives_every_kill(file: SharedFile) -> None:
    """Writers killed at any moment lose nothing they spoke of, and leave the file usable."""
    chance = random.Random(7)
    acknowledged: set[int] = set()
    for turn in range(3):
        with (
            playing("add_for_ever", file.real_path, 1_000 * turn) as a,
            playing("add_for_ever", file.real_path, 1_000 * turn + 500) as b,
        ):
            for process in (a, b):
                for _ in range(chance.randrange(1, 6)):
                    acknowledged.add(int(hear(process)))
            for process in (a, b):
                process.kill()
                said, _ = process.communicate()
                acknowledged.update(int(line) for line in re.findall(r"(\d+)\n", said))
    there = stored(file)
    assert acknowledged <= set(there)
    assert len(there) == len(set(there))


def test_a_killed_holder_frees_the_lock(file: SharedFile) -> None:
    """The lock dies with its process, and so does what it had not committed."""
    with playing("hold", file.real_path, "write") as process:
        assert hear(process) == "holding"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert stored(file) == []


def test_readers_do_not_keep_a_writer_out(file: SharedFile) -> None:
    """Whoever waits to write comes before readers that come later."""
    path = file.real_path
    with (
        playing("read_for_ever", path) as a,
        playing("read_for_ever", path) as b,
        playing("read_for_ever", path) as c,
    ):
        assert [hear(each) for each in (a, b, c)] == ["reading"] * 3
        for row in range(10):
            with file.attach(write=True) as attachment:
                add(attachment, row)
        assert [each.poll() for each in (a, b, c)] == [None] * 3
    assert stored(file) == list(range(10))


def test_readers_read_at_the_same_time(file: SharedFile) -> None:
    """A reader in another process keeps no reader waiting."""
    file.patience = 0.0
    with playing("hold", file.real_path, "read") as process:
        assert hear(process) == "holding"
        assert stored(file) == []


@pytest.mark.parametrize("mode", ["read", "write"])
def test_an_impatient_waiter_hears_who_holds_the_file(file: SharedFile, mode: str) -> None:
    """StoreBusy names the process, its program and since when, and the file is free after it."""
    file.patience = 0.2
    with playing("hold", file.real_path, mode) as process:
        assert hear(process) == "holding"
        with pytest.raises(StoreBusy) as caught, file.attach(write=True):
            pytest.fail("two had the file at once")
        busy = caught.value
        assert busy.place == str(file.real_path)
        assert busy.holder == f"process {process.pid} (duckdb_process.py)"
        assert busy.since is not None
        assert abs(datetime.now(UTC) - busy.since) < timedelta(minutes=1)
        assert busy.waited == pytest.approx(0.2, abs=0.15)
        process.communicate("\n")
    file.patience = 30.0
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    assert stored(file) == [1]


def test_waiting_again_and_again_does_not_pile_up(file: SharedFile) -> None:
    """A place in the queue that was given up is taken up again, and not left behind."""
    file.patience = 0.02
    with playing("hold", file.real_path, "write") as process:
        assert hear(process) == "holding"
        for _ in range(10):
            with pytest.raises(StoreBusy), file.attach(write=True):
                pytest.fail("two had the file at once")
        waiting = [each for each in threading.enumerate() if each.name == "herdbook-lock"]
        assert len(waiting) == 1
        process.communicate("\n")
        waiting[0].join()
    file.patience = 30.0
    assert stored(file) == []


def test_a_link_leads_to_the_same_lock(file: SharedFile, tmp_path: Path) -> None:
    """A path through symbolic links is the same file to all."""
    folder = tmp_path / "elsewhere"
    folder.symlink_to(tmp_path, target_is_directory=True)
    link = folder / "linked.duckdb"
    link.symlink_to(file.real_path)
    other = SharedFile(link, patience=0.1)
    assert other.real_path == file.real_path
    with playing("hold", file.real_path, "write") as process:
        assert hear(process) == "holding"
        with pytest.raises(StoreBusy), other.attach(write=True):
            pytest.fail("two had the file at once")
    other.close()
    assert not list(tmp_path.glob("linked.duckdb.*"))


@pytest.mark.parametrize("mode", ["read", "write"])
def test_who_lingers_lets_go_when_somebody_waits(file: SharedFile, mode: str) -> None:
    """A process that would keep the file for an hour gives it up when it is rung."""
    with playing("linger", file.real_path, mode) as process:
        assert hear(process) == "lingering"
        with file.attach(write=True) as attachment:
            add(attachment, 1)
        assert process.poll() is None


def test_all_who_linger_let_go_when_somebody_waits(file: SharedFile) -> None:
    """One ring is heard by every reader that keeps the file."""
    path = file.real_path
    with playing("linger", path, "read") as a, playing("linger", path, "read") as b:
        assert [hear(each) for each in (a, b)] == ["lingering"] * 2
        with file.attach(write=True) as attachment:
            add(attachment, 1)


def test_a_busy_process_does_not_keep_others_out(file: SharedFile) -> None:
    """One that uses the file without a pause passes it on after its use."""
    with playing("be_busy", file.real_path) as process:
        assert hear(process) == "busy"
        for row in range(5):
            with file.attach(write=True) as attachment:
                add(attachment, row)
        assert process.poll() is None


def test_the_file_is_kept_for_the_next_use(file: SharedFile) -> None:
    """A use within the linger finds the file still attached; a read may use what a write left."""
    file.linger = FOR_EVER
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    hold = file._file._hold
    assert hold is not None
    with file.attach(write=False) as attachment:
        assert rows(attachment) == [1]
        assert file._file._hold is hold


def test_the_file_is_put_down_when_the_linger_has_passed(file: SharedFile) -> None:
    """Then its log is written into it, and the lock is free."""
    put_down = threading.Event()
    share = file._file
    original = share._detach

    def noticed() -> None:
        original()
        put_down.set()

    share._detach = noticed  # type: ignore[method-assign]
    with file.attach(write=True) as attachment:
        put_down.clear()
        add(attachment, 1)
        assert Path(f"{file.real_path}.wal").exists()
    assert put_down.wait(30)
    assert not Path(f"{file.real_path}.wal").exists()
    assert holder_of(Path(f"{file.real_path}.lock")) is None


def test_threads_write_one_after_the_other(file: SharedFile) -> None:
    """A thread waits for another one's transaction, and loses patience like a process."""
    impatient = SharedFile(file.real_path, patience=0.1)
    caught: list[HerdbookError] = []

    def intrude() -> None:
        try:
            with impatient.attach(write=False):
                pytest.fail("a reader came in while another thread wrote")
        except StoreBusy as error:
            caught.append(error)

    with file.attach(write=True):
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} " in str(caught[0])
    impatient.close()


def test_a_thread_may_read_while_it_reads_and_nothing_else(file: SharedFile) -> None:
    """What would wait for itself is refused at once."""
    with file.attach(write=False) as outer, file.attach(write=False) as inner:
        assert rows(outer) == rows(inner) == []
        with pytest.raises(RuntimeError, match="do not nest"), file.attach(write=True):
            pytest.fail("wrote while reading")
    with file.attach(write=True):
        for write in (True, False):
            with pytest.raises(RuntimeError, match="do not nest"), file.attach(write=write):
                pytest.fail("nested")


def test_what_is_not_committed_is_rolled_back(file: SharedFile) -> None:
    """The end of a use ends its transaction, and a use that ended cannot be used."""
    with file.attach(write=True) as attachment:
        tables(attachment).execute("BEGIN")
        attachment.cursor.execute("INSERT INTO rows VALUES (1)")
    assert stored(file) == []
    with pytest.raises(RuntimeError, match="has ended"):
        _ = attachment.cursor


def test_no_transaction_keeps_the_file_open_behind_the_lock(file: SharedFile) -> None:
    """DuckDB would detach a file from under a transaction, and keep it open until that ends."""
    with file.attach(write=True) as attachment:
        tables(attachment).execute("BEGIN")
        attachment.cursor.execute("INSERT INTO rows SELECT * FROM range(10000)")
        left_open = attachment.cursor.execute("SELECT * FROM rows")
        left_open.fetchone()
    with file.hold_lock(write=True):
        assert not is_open(file.real_path)
    assert stored(file) == []


def is_open(path: Path) -> bool:
    """Whether this process has a file open."""
    for descriptor in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 - numbers, not files
        try:
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return True
        except OSError:  # that of the listing itself
            continue
    return False


def test_only_a_running_writer_acknowledges(file: SharedFile) -> None:
    """A note is taken from whoever holds the file to write; an overlong one fails no commit."""
    with file.attach(write=False) as attachment, pytest.raises(RuntimeError, match="a reader"):
        attachment.acknowledge("1")
    with file.attach(write=True) as attachment:
        attachment.acknowledge("x" * 10_000)
    with pytest.raises(RuntimeError, match="has ended"):
        attachment.acknowledge("1")


@pytest.mark.parametrize("name", ['it\'s a "herd".duckdb', "Kühe; DROP TABLE.duckdb", "%s?*.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    """The path is quoted where it stands in a statement."""
    file = SharedFile(tmp_path / name)
    assert file.create(make)
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    assert stored(file) == [1]
    file.close()
    assert (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("_file_lock", "_pair"),
        ("_database", "attach"),
        ("_database", "cursor"),
        ("_idle_releaser", "watch"),
        ("_database", "detach"),
    ],
)
def test_an_interrupt_leaves_nothing_behind(
    file: SharedFile, monkeypatch: pytest.MonkeyPatch, part: str, step: str
) -> None:
    """Ctrl-C at any step of a use ends that use, and the next one finds everything in order."""
    share = file._file
    with file.hold_lock(write=True):
        pass
    original = getattr(getattr(share, part), step)

    def interrupted(*arguments: object, **named: object) -> object:
        monkeypatch.undo()
        original(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(getattr(share, part), step, interrupted)
    file.linger = 0.0 if step == "detach" else FOR_EVER
    with pytest.raises(KeyboardInterrupt), file.attach(write=True) as attachment:
        add(attachment, 1)
    assert share._hold is None
    assert not share._uses
    assert share._changer is None
    other = DuckDBFileLock(file.real_path).take(write=True, patience=30.0)
    other.release()
    assert stored(file) in ([], [1])


def test_the_lock_can_be_had_alone(file: SharedFile, tmp_path: Path) -> None:
    """Under the lock alone the file is closed and whole: its copy is a database."""
    file.linger = FOR_EVER
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    with file.hold_lock(write=True):
        assert not Path(f"{file.real_path}.wal").exists()
        shutil.copy(file.real_path, tmp_path / "copy.duckdb")
        with pytest.raises(RuntimeError, match="do not nest"), file.attach(write=False):
            pytest.fail("nested")
    copy = SharedFile(tmp_path / "copy.duckdb")
    assert stored(copy) == stored(file) == [1]
    copy.close()


def test_a_closed_file_is_refused(file: SharedFile) -> None:
    """Closing one of two leaves the other; closing twice does nothing."""
    other = SharedFile(file.real_path)
    other.close()
    other.close()
    with pytest.raises(StoreUnavailable, match="closed here"), other.attach(write=False):
        pytest.fail("used after close")
    assert stored(file) == []


def test_a_replaced_lock_file_is_noticed(file: SharedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited for a lock file that is no longer there takes the new one instead."""
    assert stored(file) == []
    path = Path(f"{file.real_path}.lock")
    sidecar = DuckDBFileLock(file.real_path)
    open_files = sidecar._pair

    def open_and_lose_it() -> object:
        monkeypatch.undo()
        opened = open_files()
        path.rename(path.with_suffix(".gone"))
        return opened

    with file.hold_lock(write=True):
        pass
    monkeypatch.setattr(sidecar, "_pair", open_and_lose_it)
    hold = sidecar.take(write=True, patience=30.0)
    assert hold.is_at(path)
    assert path.with_suffix(".gone").exists()
    hold.release()


def test_the_files_beside_it_are_the_owners_alone(file: SharedFile) -> None:
    """They tell who uses the file, and letting others lock it would let them stop it."""
    for suffix in ("lock", "turn"):
        mode = Path(f"{file.real_path}.{suffix}").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_an_unreadable_lock_file_names_nobody(file: SharedFile) -> None:
    """Half-written lines, or somebody else's, count as empty."""
    path = Path(f"{file.real_path}.lock")
    assert stored(file) == []
    path.write_bytes(random.Random(1).randbytes(100))
    assert holder_of(path) is None
    assert stored(file) == []


def test_one_of_many_creates_the_file(tmp_path: Path) -> None:
    """Of two processes that create it at once one does, and the other finds it."""
    path = tmp_path / "new.duckdb"
    with playing("create", path, 1) as a, playing("create", path, 2) as b:
        assert [hear(each) for each in (a, b)] == ["ready"] * 2
        for each in (a, b):
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        said = [hear(each) for each in (a, b)]
    file = SharedFile(path)
    assert sorted(said) == ["False", "True"]
    assert stored(file) == [1 + said.index("True")]
    file.close()


def test_a_file_is_created_whole_or_not_at_all(tmp_path: Path) -> None:
    """Who dies over creating it leaves nothing behind that the next one could stumble over."""
    path = tmp_path / "new.duckdb"
    with playing("die_creating", path) as process:
        assert process.wait(60) == -signal.SIGKILL
    assert not path.exists()
    file = SharedFile(path)

    def fail(_: Attachment) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        file.create(fail)
    assert not path.exists()
    assert file.create(make)
    assert stored(file) == []
    assert not list(tmp_path.glob("*.new*"))
    file.close()


@pytest.mark.parametrize("where", ["inside", "lingering"])
def test_forked_children_that_end_do_no_harm(file: SharedFile, where: str) -> None:
    """However they end, the parent goes on as if nothing had been."""
    assert outcome("fork", file.real_path, where) == ["1 2 3"]
    assert stored(file) == [1, 2, 3]


def test_parent_and_child_both_write_after_a_fork(file: SharedFile) -> None:
    """Each opens the file for itself."""
    assert outcome("fork_and_both_write", file.real_path) == ["1 2 3"]


def test_a_child_cannot_use_the_transaction_it_was_forked_in(file: SharedFile) -> None:
    """It is the parent's, and so is the lock until it ends."""
    mine, own, there = outcome("fork_inside_and_use", file.real_path)
    assert mine.startswith("StoreUnavailable")
    assert "belongs to the process that was forked" in mine
    assert own.startswith("StoreBusy")
    assert there == "1"


def test_a_fork_waits_for_the_transactions_of_other_threads(file: SharedFile) -> None:
    """The child never inherits a file that is open."""
    assert outcome("fork_beside_a_thread", file.real_path) == ["forked after", "1"]


def test_a_child_does_not_keep_the_lock_of_a_parent_that_died(file: SharedFile) -> None:
    """The child closed its copy of the lock, so it went with the parent."""
    with playing("fork_and_die", file.real_path) as process:
        child = int(hear(process))
        process.wait()
        assert stored(file) == [1]
        os.kill(child, signal.SIGKILL)


def refused(path: Path) -> HerdbookError:
    """The error of whoever uses what lies at a path."""
    file = SharedFile(path)
    try:
        with pytest.raises(HerdbookError) as caught, file.attach(write=True):
            pytest.fail("it was accepted")
        return caught.value
    finally:
        file.close()


def flip(path: Path, offset: int) -> None:
    """Turn over the bits of one byte."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)


def turn_into_sqlite(path: Path) -> None:
    """Put another application's database there."""
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def leave_only_a_log(path: Path) -> None:
    """Take the database away from beside its log."""
    path.rename(f"{path}.wal")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: path.write_text("a letter\n" * 9_000), "not a DuckDB database"),
        (
            lambda path: path.write_bytes(random.Random(1).randbytes(50_000)),
            "not a DuckDB database",
        ),
        (turn_into_sqlite, "not a DuckDB database"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "its end is missing"),
        (lambda path: os.truncate(path, path.stat().st_size - 1), "its end is missing"),
        (lambda path: os.truncate(path, 12_288), "its end is missing"),
        (lambda path: os.truncate(path, 100), "its end is missing"),
        (lambda path: flip(path, 9), "not a DuckDB database"),
        (lambda path: flip(path, 100), "checksum"),
        (lambda path: flip(path, 4_096 + 20), "checksum"),
        (leave_only_a_log, "write-ahead log is there"),
    ],
    ids=[
        "0 bytes",
        "text",
        "random bytes",
        "SQLite",
        "half of it",
        "a byte short",
        "headers only",
        "100 bytes",
        "magic flipped",
        "main header flipped",
        "database header flipped",
        "log without database",
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(
    file: SharedFile, spoil: Callable[[Path], object], reason: str
) -> None:
    """It is never taken for an empty one, and no byte of it changes."""
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    file.close()
    spoil(file.real_path)
    before = file.real_path.read_bytes() if file.real_path.exists() else None
    error = refused(file.real_path)
    assert isinstance(error, StoreDamaged)
    assert error.place == str(file.real_path)
    assert reason in error.reason
    assert (file.real_path.read_bytes() if file.real_path.exists() else None) == before


def test_a_damaged_block_is_noticed_when_it_is_read(file: SharedFile) -> None:
    """DuckDB attaches such a file; what reads the block is told that the store is damaged."""
    with file.attach(write=True) as attachment:
        tables(attachment).execute("INSERT INTO rows SELECT hash(i) // 2 FROM range(200000) r(i)")
    with file.attach(write=True) as attachment:
        found = attachment.cursor.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info(?) WHERE block_id >= 0",
            [f"{attachment.catalog}.rows"],
        )
        block = max(number for (number,) in found.fetchall())
    with file.hold_lock(write=True):
        flip(file.real_path, 12_288 + 262_144 * block + 5_000)
    with (
        pytest.raises(StoreDamaged, match="checksum"),
        file.attach(write=False) as attachment,
        translate_errors(str(file.real_path)),
    ):
        rows(attachment)


def lost(attachment: Attachment) -> None:
    """What a session does after a crash: look for the commit that was last acknowledged."""
    if int(attachment.recovered or 0) not in rows(attachment):
        raise StoreDamaged("the file", f"commit {attachment.recovered} is not there")


def crash(file: SharedFile, *commits: int) -> Path:
    """Let a process commit and die each time, and give the log that the last one left."""
    for commit in commits:
        with playing("die", file.real_path, commit) as process:
            assert process.wait(60) == -signal.SIGKILL
    return Path(f"{file.real_path}.wal")


def test_after_a_crash_the_last_commit_is_asked_for(file: SharedFile) -> None:
    """The log is replayed, the note of the last commit is given, and forgotten when all is well."""
    crash(file, 5)
    for write in (False, True):
        with file.attach(write=write) as attachment:
            assert attachment.recovered == "5"
            assert rows(attachment) == [5]
        with file.attach(write=write) as attachment:
            assert attachment.recovered is None
        with file.hold_lock(write=True):
            pass
    with file.attach(write=False) as attachment:
        assert attachment.recovered is None


def test_without_a_crash_nothing_is_asked(file: SharedFile) -> None:
    """A file that was put down whole owes nothing."""
    checked = SharedFile(file.real_path, check=lambda _: pytest.fail("asked without a crash"))
    for row in range(3):
        with checked.attach(write=True) as attachment:
            add(attachment, row)
        with checked.hold_lock(write=True):
            pass
    assert stored(checked) == [0, 1, 2]
    checked.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda log: os.truncate(log, log.stat().st_size - 1),
        lambda log: os.truncate(log, 10),
        lambda log: log.write_bytes(b""),
        lambda log: log.write_bytes(random.Random(1).randbytes(500)),
        lambda log: log.unlink(),
    ],
    ids=["a byte short", "10 bytes", "empty", "random bytes", "gone"],
)
def test_a_log_that_lost_its_end_is_noticed(
    file: SharedFile, spoil: Callable[[Path], object]
) -> None:
    """DuckDB drops the tail of such a log without a word; the note of the last commit tells."""
    log = crash(file, 5)
    spoil(log)
    before = log.read_bytes() if log.exists() else None
    checked = SharedFile(file.real_path, check=lost)
    for write in (True, False, True):
        with pytest.raises(StoreDamaged, match="commit 5"), checked.attach(write=write):
            pytest.fail("the lost commit was not missed")
    assert (log.read_bytes() if log.exists() else None) == before
    checked.close()


def test_doubt_about_a_crash_is_not_forgotten(file: SharedFile) -> None:
    """Also where the session itself finds the loss, the next one is told of the note again."""
    log = crash(file, 5)
    log.unlink()
    for _ in range(2):
        with pytest.raises(StoreDamaged), file.attach(write=True) as attachment:
            lost(attachment)


def test_a_flipped_log_is_refused(file: SharedFile) -> None:
    """Where DuckDB itself notices, its error is translated."""
    log = crash(file, 5)
    flip(log, log.stat().st_size - 1)
    error = refused(file.real_path)
    assert isinstance(error, StoreDamaged)
    assert "write-ahead log" in error.reason


@pytest.mark.parametrize("which", ["older", "newer", "another's"])
def test_a_log_of_another_copy_is_refused(file: SharedFile, which: str, tmp_path: Path) -> None:
    """A log beside a database that it was not written for is never mixed into it."""
    path, log = file.real_path, Path(f"{file.real_path}.wal")
    kept = tmp_path / "kept"
    if which == "older":
        shutil.move(crash(file, 1), kept)
        with file.attach(write=True) as attachment:
            add(attachment, 2)
        with file.hold_lock(write=True):
            shutil.move(kept, log)
    elif which == "newer":
        shutil.copy(path, kept)
        with file.attach(write=True) as attachment:
            add(attachment, 1)
        with file.hold_lock(write=True):
            pass
        crash(file, 2)
        shutil.copy(kept, path)
    else:
        other = SharedFile(tmp_path / "other.duckdb")
        other.create(make)
        shutil.move(crash(other, 1), log)
        other.close()
    before = path.read_bytes(), log.read_bytes()
    error = refused(path)
    assert isinstance(error, StoreDamaged)
    assert "belongs to another copy" in error.reason
    assert (path.read_bytes(), log.read_bytes()) == before


def test_a_second_name_is_refused(file: SharedFile, tmp_path: Path) -> None:
    """By a hard link the file could be opened past its lock."""
    (tmp_path / "second.duckdb").hardlink_to(file.real_path)
    error = refused(file.real_path)
    assert isinstance(error, StoreUnavailable)
    assert "hard link" in error.reason


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """The reason says what is there instead, and nothing is created."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    before = sorted(tmp_path.rglob("*"))
    reasons = {
        ".": "it is a folder, not a file",
        "pipe": "it is not a plain file",
        "none.duckdb": "there is no such file",
        "none/herd.duckdb": f"the folder {tmp_path / 'none'} does not exist",
        "file/herd.duckdb": f"{tmp_path / 'file'} is not a folder",
        "nul\0": "this is no name of a file",
        "half \udcff": "this is no name of a file",
    }
    for name, reason in reasons.items():
        error = refused_by_name(tmp_path / name)
        assert isinstance(error, StoreUnavailable)
        assert error.reason == reason
    assert isinstance(refused_by_name(tmp_path / "round"), StoreUnavailable)
    assert sorted(tmp_path.rglob("*")) == before


def refused_by_name(path: Path) -> HerdbookError:
    """The error of whoever names a path, or uses what lies there."""
    try:
        return refused(path)
    except StoreUnavailable as error:
        return error


def test_a_folder_cannot_be_created_in_either(tmp_path: Path) -> None:
    """Creating a file needs its folder as using it does."""
    file = SharedFile(tmp_path / "none" / "herd.duckdb")
    with pytest.raises(StoreUnavailable, match="does not exist"):
        file.create(make)
    file.close()


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "about"),
    [(0o555, 0o666, "needs herd.duckdb.turn beside it"), (0o777, 0o444, "Cannot open file")],
    ids=["folder", "file"],
)
def test_missing_rights_are_told(folder_mode: int, file_mode: int, about: str) -> None:
    """A folder in which no lock can stand, or a file that cannot be written, is unavailable."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        file = SharedFile(folder / "herd.duckdb")
        file.create(make)
        file.close()
        for each in folder.glob("*.duckdb.*"):
            each.unlink()
        file.real_path.chmod(file_mode)
        if os.geteuid() == 0:
            os.chown(file.real_path, 65_534, -1)  # another's file is refused before it is opened
        folder.chmod(folder_mode)
        (said,) = outcome("try_as_nobody", file.real_path)
        folder.chmod(0o700)
    assert said.startswith("StoreUnavailable")
    assert "Permission denied" in said
    assert about in said


def test_a_full_disk_loses_nothing(file: SharedFile) -> None:
    """The change that finds no room is refused whole, and smaller ones still go in."""
    with file.attach(write=True) as attachment:
        add(attachment, 1)
    with file.hold_lock(write=True):
        pass
    assert outcome("run_out_of_room", file.real_path) == ["StoreFull"]
    assert stored(file) == [1, 7]


def test_somebody_who_opened_it_without_us_is_named(file: SharedFile) -> None:
    """A person with DuckDB's own shell holds DuckDB's own lock."""
    code = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(file.real_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        hear(process)
        error = refused(file.real_path)
        process.kill()
    assert isinstance(error, StoreBusy)
    assert f"process {process.pid} " in str(error)
    assert stored(file) == []


def test_what_a_user_wrote_is_not_taken_for_a_symptom() -> None:
    """Only errors about the file are read for signs of damage; a constraint quotes the user."""
    quoting = duckdb.ConstraintException("Duplicate key: Corrupt, No space left on device")
    assert isinstance(translate_error(quoting, "here"), StoreUnavailable)
    assert isinstance(translate_error(OSError(28, "No space left on device"), "here"), StoreFull)
    told = StoreBusy("here", 1.0)
    assert translate_error(told, "there") is told


def test_the_optimizer_that_loses_rows_is_off(file: SharedFile) -> None:
    """DuckDB 2.0.0 lost committed rows of ORDER BY … LIMIT in transactions with it."""
    with file.attach(write=False) as attachment:
        (off,) = attachment.cursor.execute(
            "SELECT current_setting('disabled_optimizers')"
        ).fetchone() or ("",)
    assert "late_materialization" in off


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[tuple[SharedFile, Path]]:
    """A file that lingers in a folder which was moved, and an earlier copy in its place."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    shared = SharedFile(here / "herd.duckdb", linger=FOR_EVER)
    assert shared.create(make)
    shutil.copytree(here, tmp_path / "early")
    with shared.attach(write=True) as attachment:
        attachment.make_log()
        add(attachment, 1)
    here.rename(there)
    (tmp_path / "early").rename(here)
    yield shared, there
    shared.close()


def test_closing_a_file_that_was_moved_leaves_the_log_of_another_alone(
    moved: tuple[SharedFile, Path],
) -> None:
    """DuckDB would remove it by its path, and with it what others have committed there."""
    file, there = moved
    log = file.real_path.with_name(f"{file.real_path.name}.wal")
    log.write_bytes(b"of a process that uses the other file")
    file.close()
    assert log.read_bytes() == b"of a process that uses the other file"
    assert not log.with_suffix(".rollback").exists()
    theirs = SharedFile(there / file.real_path.name)
    with theirs.attach(write=False) as attachment:
        assert rows(attachment) == [1]
    theirs.close()


def test_a_file_that_only_lingers_gives_way_to_the_one_that_took_its_place(
    moved: tuple[SharedFile, Path],
) -> None:
    """Nobody reads from a file that is not at its path any more, or writes to it."""
    file, _ = moved
    with file.attach(write=False) as attachment:
        assert rows(attachment) == []
    with file.attach(write=True) as attachment:
        add(attachment, 2)
        assert rows(attachment) == [2]
