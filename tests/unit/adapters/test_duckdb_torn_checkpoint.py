"""A checkpoint that is cut off anywhere loses nothing that was acknowledged.

A loss of power leaves any part of what was written since the last sync. DuckDB can be told to stop
a checkpoint after its last write; together with the file from before it, that gives every state in
which a checkpoint can leave it, byte by byte: pages of the one among pages of the other.
"""

import logging
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import duckdb
import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.adapters.duckdb import file_checks, instance, rollback_journal
from herdbook.adapters.duckdb.file_access import SharedFile
from herdbook.adapters.duckdb.spec import SPEC
from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan.claims import claim
from herdbook.services.stores.store_check import check

SPACE = "work/here"
PAGE = 4_096
NAMES = "SELECT name, status FROM herdbook.main.tasks ORDER BY id"
ENTRIES = "SELECT count(*), max(seq) FROM herdbook.main.journal"


def add(uow: UnitOfWork) -> None:
    """Add a task."""
    uow.tasks.add(Task(name="the last"))


def take(uow: UnitOfWork) -> None:
    """Claim a task."""
    agent = uow.agents.by_name("brisk-otter")
    assert agent is not None
    assert claim(uow, agent.id, halts=NO_HALTS) is not None


def add_many(uow: UnitOfWork) -> None:
    """Add a thousand tasks."""
    uow.tasks.add_all([Task(name=f"one of many {number}") for number in range(1_000)])


def remove_some(uow: UnitOfWork) -> None:
    """Remove a few tasks."""
    for task in uow.select(find(TASKS, limit=40)):
        uow.tasks.remove(task.id)


WORKS = (add, take, add_many)


@frozen
class Cut:
    """A checkpoint, taken apart: the file before it, after its last write, and what is beside."""

    before: bytes
    after: bytes
    log: bytes
    copy: bytes
    rows: list[tuple[object, ...]]

    @property
    def pages(self) -> list[int]:
        """Where the checkpoint has changed what was there, in the order of the file."""
        ends = range(0, len(self.before), PAGE)
        return [at for at in ends if self.before[at : at + PAGE] != self.after[at : at + PAGE]]

    @property
    def metadata(self) -> list[int]:
        """Those of its pages that lie in blocks which both states need."""
        kept = read_copy(self.copy).blocks
        return [at for at in self.pages if any(b <= at < b + rollback_journal.BLOCK for b in kept)]

    @property
    def header(self) -> int:
        """The header that it writes last, after a sync."""
        (at,) = (at for at in self.pages if at < rollback_journal.HEADERS)
        return at

    @property
    def data(self) -> bytes:
        """The file before the header is written, with nothing of the metadata in it yet."""
        found = bytearray(self.after)
        for at in (self.header, *self.metadata):
            found[at : at + PAGE] = self.before[at : at + PAGE]
        return bytes(found)

    @property
    def complete(self) -> bytes:
        """The file before the header is written, with everything else in it."""
        return self.file(self.metadata)

    def file(self, written: Sequence[int], half: int | None = None, *, data: bool = True) -> bytes:
        """The file with these pages of its metadata written, and one half of a page more."""
        found = bytearray(self.data if data else self.before)
        for at in written:
            found[at : at + PAGE] = self.after[at : at + PAGE]
        if half is not None:
            found[half : half + PAGE // 2] = self.after[half : half + PAGE // 2]
        return bytes(found)


def read_copy(content: bytes) -> rollback_journal.BlockCopy:
    """The copy that a file holds."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        copy = rollback_journal.BlockCopy.read(file.fileno())
    assert copy is not None
    return copy


def seen(store: Store) -> list[tuple[object, ...]]:
    """What the store's file holds."""
    with store._file.attach(write=False) as attachment:  # type: ignore[attr-defined]
        return everything(attachment.cursor)


def everything(cursor: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """The rows by which a lost or doubled commit would be noticed."""
    return cursor.execute(NAMES).fetchall() + cursor.execute(ENTRIES).fetchall()


@pytest.fixture(scope="module", params=WORKS)
def cut(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    """A checkpoint after each kind of work, on a file that has seen some."""
    path = tmp_path_factory.mktemp("cut") / "store.duckdb"
    return take_apart(path, request.param)


def take_apart(path: Path, work: Callable[[UnitOfWork], None]) -> Cut:
    """A checkpoint after some work in a new store."""
    with open_store(f"duckdb://{path}") as store:
        run(store, SPACE, lambda uow: uow.agents.add(Agent(name="brisk-otter")))
        for number in range(5):
            run(store, SPACE, lambda uow, n=number: uow.tasks.add(Task(name=f"task {n}")))
    return stop_checkpoint(path, work)


def stop_checkpoint(path: Path, work: Callable[[UnitOfWork], object]) -> Cut:
    """Let the checkpoint after some work stop after its last write."""
    before = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        stops = {**SPEC.safe_configuration, "debug_checkpoint_abort": "before_truncate"}
        patch.setattr(instance, "SPEC", SPEC._replace(safe_configuration=stops))
        with open_store(f"duckdb://{path}") as store:
            run(store, SPACE, work)
            rows = seen(store)
    found = [
        each.read_bytes()
        for each in (path, file_checks.wal_path(path), file_checks.rollback_path(path))
    ]
    return Cut(before, *found, rows)


def leave(cut: Cut, path: Path, file: bytes, copy: bytes | None = None) -> None:
    """Leave a file as a crash would have, with its log and the copy of its blocks beside it."""
    for at, content in (
        (path, file),
        (file_checks.wal_path(path), cut.log),
        (file_checks.rollback_path(path), cut.copy if copy is None else copy),
    ):
        at.write_bytes(content)


def found_in(path: Path, *, write: bool = False) -> list[tuple[object, ...]]:
    """What whoever comes next finds in a file that was left, and after the log has gone into it."""
    file = SharedFile(path, linger=0.0)
    try:
        with file.attach(write=write) as attachment:
            rows = everything(attachment.cursor)
        with file.attach(write=True):
            pass
        assert not file_checks.wal_path(path).exists()
        with file.attach(write=False) as attachment:
            assert everything(attachment.cursor) == rows
    finally:
        file.close()
    return rows


def kept_aside(path: Path) -> list[Path]:
    """The damaged databases beside a repaired one."""
    return [each for each in path.parent.glob(f"{path.name}.damaged-*") if each.suffix != ".wal"]


def torn(cut: Cut) -> bytes:
    """The file with a block that was written to its middle: the one that is read first."""
    return cut.file(cut.metadata[:1], half=cut.metadata[1])


def test_a_checkpoint_copies_what_it_rewrites(cut: Cut) -> None:
    """What the old header leads to is in the copy, or stays where it is."""
    copy = read_copy(cut.copy)
    assert copy.headers == cut.before[: rollback_journal.HEADERS]
    assert cut.metadata
    for start, block in copy.blocks.items():
        assert block == cut.before[start : start + rollback_journal.BLOCK]
        assert rollback_journal.has_valid_checksum(block)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SharedFile]:
    """A file that is put down at once."""
    shared = SharedFile(tmp_path / "store.duckdb", linger=0.0)
    yield shared
    shared.close()


def test_a_write_torn_at_any_page_loses_nothing(
    cut: Cut, file: SharedFile, caplog: pytest.LogCaptureFixture
) -> None:
    """The file is repaired before it is used, says so, and stays as it was found beside it."""
    path = file.real_path
    for number, at in enumerate(cut.metadata):
        damaged = cut.file(cut.metadata[:number], half=at, data=bool(number % 2))
        leave(cut, path, damaged)
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING),
            file.attach(write=bool(number % 3)) as attachment,
        ):
            assert everything(attachment.cursor) == cut.rows
        (aside,) = kept_aside(path)
        assert aside.read_bytes() == damaged
        assert aside.stat().st_mode & 0o777 == 0o600
        assert Path(f"{aside}.wal").read_bytes() == cut.log
        assert str(aside) in caplog.text
        aside.unlink()
        Path(f"{aside}.wal").unlink()


def test_pages_written_in_any_order_lose_nothing(cut: Cut, file: SharedFile) -> None:
    """Before the sync a disk writes what it likes first, and forgets what it likes."""
    for at in cut.metadata[::3]:
        for written in ([at], [each for each in cut.metadata if each != at]):
            leave(cut, file.real_path, cut.file(written))
            with file.attach(write=False) as attachment:
                assert everything(attachment.cursor) == cut.rows


def test_what_was_written_to_its_end_is_not_undone(cut: Cut, tmp_path: Path) -> None:
    """A process that is killed leaves whole blocks: DuckDB reads them, and nothing is set aside."""
    for file in (cut.before, cut.data, cut.complete, cut.after):
        path = tmp_path / "store.duckdb"
        leave(cut, path, file)
        assert not rollback_journal.is_needed(path)
        assert found_in(path) == cut.rows
        assert kept_aside(path) == []


@pytest.mark.parametrize("size", [0, 4, 8, 12, 16, 24, 40, 64, 512, 2_048, PAGE])
def test_a_torn_header_loses_nothing(cut: Cut, tmp_path: Path, size: int) -> None:
    """It is the old one, the new one, or put back; then the log is replayed, once."""
    path = tmp_path / "store.duckdb"
    file = bytearray(cut.complete)
    file[cut.header : cut.header + size] = cut.after[cut.header : cut.header + size]
    leave(cut, path, bytes(file))
    assert found_in(path) == cut.rows
    assert len(kept_aside(path)) == (bytes(file) not in (cut.complete, cut.after))


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.99])
def test_a_copy_that_was_cut_off_itself_is_no_copy(cut: Cut, tmp_path: Path, share: float) -> None:
    """The checkpoint had not begun then, and the file is as it was."""
    path = tmp_path / "store.duckdb"
    leave(cut, path, cut.before, cut.copy[: int(len(cut.copy) * share)])
    assert not rollback_journal.is_needed(path)
    assert found_in(path) == cut.rows
    assert kept_aside(path) == []


def test_a_flipped_copy_is_not_put_back(cut: Cut, tmp_path: Path) -> None:
    """What cannot be repaired is refused as before, and left alone."""
    path = tmp_path / "store.duckdb"
    damaged, end = torn(cut), len(read_copy(cut.copy).to_bytes())
    for at in (3, 20, 50, 5_000, end - 1):
        copy = bytearray(cut.copy)
        copy[at] ^= 0xFF
        leave(cut, path, damaged, bytes(copy))
        with pytest.raises(StoreDamaged):
            found_in(path)
        assert path.read_bytes() == damaged
    assert kept_aside(path) == []


def test_a_copy_is_not_put_into_another_database(cut: Cut, tmp_path: Path) -> None:
    """One that was made in the place of a torn one begins without a copy."""
    path = tmp_path / "store.duckdb"
    leave(cut, path, torn(cut))
    path.unlink()
    file_checks.wal_path(path).unlink()
    with open_store(f"duckdb://{path}") as store:
        run(store, SPACE, add)
        assert len(seen(store)) == 2
    assert kept_aside(path) == []


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_is_lent_is_repaired_first(cut: Cut, tmp_path: Path, write: bool) -> None:
    """Other programs know nothing of the copy."""
    path = tmp_path / "store.duckdb"
    leave(cut, path, torn(cut))
    file = SharedFile(path)
    with file.hold_lock(write=write):
        assert path.read_bytes() == cut.data
    file.close()
    assert len(kept_aside(path)) == 1


def test_a_repaired_store_is_whole(cut: Cut, tmp_path: Path) -> None:
    """All that Herdbook checks holds, and work goes on."""
    path = tmp_path / "store.duckdb"
    leave(cut, path, torn(cut))
    with open_store(f"duckdb://{path}") as store:
        assert not check(store)
        run(store, SPACE, add)
        assert not check(store)


def test_without_room_for_the_copy_the_log_stays(tmp_path: Path) -> None:
    """No checkpoint begins that could not be undone; nothing is lost, and later there is one."""
    path = tmp_path / "store.duckdb"
    with open_store(f"duckdb://{path}") as store:
        run(store, SPACE, add)
    file_checks.rollback_path(path).unlink()
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with open_store(f"duckdb://{path}") as store:
            run(store, SPACE, add)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, heard)
    assert file_checks.wal_path(path).stat().st_size > 0
    assert len(found_in(path, write=True)) == 3


def test_no_commit_is_checkpointed_without_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large it is and however many come: a checkpoint begins where the copy is made."""
    path = tmp_path / "store.duckdb"
    with open_store(f"duckdb://{path}") as store:
        before = path.read_bytes()[: rollback_journal.HEADERS]
        monkeypatch.setattr(rollback_journal, "save_blocks", _refuse)
        store._file.linger = 60.0  # type: ignore[attr-defined]
        for _ in range(3):
            run(store, SPACE, add_many)
            assert path.read_bytes()[: rollback_journal.HEADERS] == before
        rows = seen(store)
    assert path.read_bytes()[: rollback_journal.HEADERS] == before
    monkeypatch.undo()
    assert found_in(path, write=True) == rows


def _refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_long_log_is_written_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy process that never lets go for itself does not let it grow for ever."""
    monkeypatch.setattr("herdbook.adapters.duckdb.process_file._LONG_LOG", 50_000)
    path = tmp_path / "store.duckdb"
    with open_store(f"duckdb://{path}") as store:
        store._file.linger = 60.0  # type: ignore[attr-defined]
        run(store, SPACE, add)
        assert file_checks.wal_path(path).exists()
        run(store, SPACE, add_many)
        assert not file_checks.wal_path(path).exists()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_no_state_of_a_long_history_loses_anything(tmp_path: Path, seed: int) -> None:
    """Whatever was written between two syncs of any of many checkpoints, and whatever was not."""
    random, path = Random(seed), tmp_path / "store.duckdb"
    with open_store(f"duckdb://{path}") as store:
        run(store, SPACE, lambda uow: uow.agents.add(Agent(name="brisk-otter")))
        run(store, SPACE, add_many)
    left = SharedFile(tmp_path / "left.duckdb", linger=0.0)
    for _ in range(30):
        work = random.choice([add, add, take, add_many, remove_some])
        cut = stop_checkpoint(path, work)
        new = range(len(cut.before), len(cut.after), PAGE)
        free = [at for at in cut.pages if at not in {cut.header, *cut.metadata}]
        for _ in range(8):
            file = bytearray(
                cut.before.ljust(random.choice([len(cut.before), len(cut.after)]), b"\0")
            )
            for at in (*cut.metadata, *free, *new):
                if random.random() < 0.5 and at < len(file):
                    size = random.choice([PAGE, PAGE, PAGE // 2])
                    file[at : at + size] = cut.after[at : at + size]
            leave(cut, left.real_path, bytes(file))
            with left.attach(write=bool(random.getrandbits(1))) as attachment:
                assert everything(attachment.cursor) == cut.rows
    left.close()
