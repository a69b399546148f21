"""After damage to a live store, everything up to the last segment comes back on any engine."""

import os
import random
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.user_state.backup_files import BackupFolder
from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import HerdbookError, StoreFull, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import CHAT_MESSAGES
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.backups.chains import newest_chain
from herdbook.services.backups.restore import assemble, deliver
from herdbook.services.backups.write_backup import write_automatic, write_copy, write_segment
from herdbook.services.stores.store_check import check
from tests.contract.children import Died, apart
from tests.contract.conftest import ENGINES, SHARED
from tests.contract.rows import make
from tests.contract.space import HERE

NewUrl = Callable[[str], str]
MARK = "a text that can be found in the file"


@pytest.fixture
def files(tmp_path: Path) -> BackupFolder:
    """Where the backups of a space are kept."""
    return BackupFolder(tmp_path / "backups")


def acknowledge(store: Store, number: int) -> str:
    """Make changes of all sorts; what tells that they were acknowledged."""

    def change(uow: UnitOfWork) -> str:
        before = uow.tasks.page()
        if len(before) > 3:
            uow.tasks.remove(before[0].id)
        uow.tasks.add(Task(name=f"task {number}", description=f"{MARK} {number:04}" * 40))
        make(uow, CHAT_MESSAGES, full=True)
        uow.log_chunks.add(
            LogChunk(agent_id="x", agent_name="x", session_number=1, content=f"log {number}")
        )
        return f"task {number}"

    return run(store, HERE, change)


def everything(store: Store) -> dict[str, list[Any]]:
    """The rows of a space that do not follow from others."""
    with store.transaction(HERE, write=False) as session:
        kinds = [kind for kind in store.dictionary if kind.area and not kind.derived]
        return {kind.name: session.select(find(kind)) for kind in kinds}


def backed_up(store: Store, files: BackupFolder) -> dict[str, list[Any]]:
    """Write a copy and segments as days of work would; what is in the last of them."""
    for number in range(12):
        acknowledge(store, number)
        if number % 4 == 3:
            write_automatic(store, HERE, files, keep=7, most_bytes=2**30, now=datetime.now(UTC))
    assert len(files.names()) == 3
    return everything(store)


def damage(url: str, chance: random.Random) -> None:
    """Flip bytes of a live store's file all over, or take rows from a server's tables."""
    if url.startswith("postgres"):
        server, _, schema = url.partition("schema=")
        with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
            connection.execute(f"""DELETE FROM "{schema}".tasks WHERE ctid IN
                (SELECT ctid FROM "{schema}".tasks LIMIT 2)""")
            connection.execute(f"""UPDATE "{schema}".chat_messages SET content = 'x'""")
            connection.execute(f"""DROP TABLE "{schema}".phases CASCADE""")
        return
    path = Path(url.partition("://")[2])
    file = path / "data.mdb" if path.is_dir() else path
    with file.open("r+b") as opened:
        size = file.stat().st_size
        for _ in range(200):
            at = chance.randrange(size)
            opened.seek(at)
            opened.write(bytes([chance.randrange(256)]))


def try_again(url: str, folder: str) -> str:
    """Let a backup of a damaged store be tried, in a process of its own; what came of it."""
    try:
        with open_store(url, create=False, patience=5) as store:
            told = write_automatic(
                store,
                HERE,
                BackupFolder(Path(folder)),
                keep=7,
                most_bytes=2**30,
                now=datetime.now(UTC),
            )
            return "nothing" if told is None else told.header.type
    except HerdbookError as error:
        return type(error).__name__


@pytest.mark.parametrize("origin", SHARED)
def test_what_was_acknowledged_before_the_last_segment_comes_back(
    origin: str, files: BackupFolder, new_url: NewUrl
) -> None:
    """Random bytes of the live store are flipped; every other engine has all of it again."""
    url = new_url(origin)
    with open_store(url) as store:
        expected = backed_up(store, files)
        damage(url, random.Random(11))
    names = files.names()
    with suppress(Died):  # an engine may end the process that reads its file, and no file of ours
        apart(try_again, url, str(files.folder))
    assert files.names()[: len(names)] == names
    chain = newest_chain(files)
    assert chain is not None
    chain = chain.through(names[-1]) if names[-1] in chain.names else chain
    for engine in ENGINES:
        with open_store("memory://") as scratch, open_store(new_url(engine)) as target:
            result = deliver(assemble(chain, files, scratch), scratch, target)
            assert everything(target) == expected
            assert (result.flaws, check(target)) == (0, [])
            acknowledge(target, 99)


@pytest.mark.parametrize("origin", ENGINES)
def test_what_a_damaged_store_still_tells_is_salvaged(
    origin: str, files: BackupFolder, new_url: NewUrl
) -> None:
    """Changes after the last segment, in whole transactions, with the rows that go with them."""
    with open_store(new_url(origin)) as store:
        backed_up(store, files)
        for number in range(20, 23):
            acknowledge(store, number)
        chain = newest_chain(files)
        assert chain is not None
        with open_store("memory://") as scratch, open_store("memory://") as target:
            assembled = assemble(chain, files, scratch, damaged=store)
            deliver(assembled, scratch, target)
            assert everything(target) == everything(store)
            assert assembled.salvaged > 0
            assert check(target) == []


def test_salvage_goes_around_rows_that_are_damaged(files: BackupFolder, new_url: NewUrl) -> None:
    """Where a value in the file is flipped, what came before and after it is still read."""
    url = new_url("lmdb")
    with open_store(url) as store:
        backed_up(store, files)
        there = {task.name for task in everything(store)["tasks"]}
        # One that is gone: the entry that removes another later tells all of it once more.
        number = next(each for each in range(5, 12) if f"task {each}" not in there)
        for each in range(20, 23):
            acknowledge(store, each)
        expected = everything(store)
    data = Path(url.removeprefix("lmdb://")) / "data.mdb"
    whole = data.read_bytes()
    old = f"{MARK} {number:04}".encode() * 40
    assert old in whole
    data.write_bytes(whole.replace(old, old.replace(b"found", b"foumd")))
    chain = newest_chain(files)
    assert chain is not None
    with (
        open_store(url, create=False) as harmed,
        open_store("memory://") as scratch,
        open_store("memory://") as target,
    ):
        assembled = assemble(chain, files, scratch, damaged=harmed)
        deliver(assembled, scratch, target)
        assert everything(target) == expected
        assert assembled.salvaged > 0


def write_and_die(url: str, folder: str) -> None:
    """Write a copy, and be killed in the middle of it."""

    def die(_space: str, done: int, _total: int) -> None:
        if done > 20:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(url) as store:
        write_copy(store, HERE, BackupFolder(Path(folder)), progress=die)


def test_a_backup_that_was_killed_leaves_the_others_as_they_were(
    files: BackupFolder, new_url: NewUrl
) -> None:
    """What it has left is no backup, and the next one takes it away."""
    url = new_url("lmdb")
    with open_store(url) as store:
        expected = backed_up(store, files)
    names = files.names()
    with pytest.raises(Died):
        apart(write_and_die, url, str(files.folder))
    left = [each.name for each in files.folder.iterdir() if each.name.startswith(".2")]
    assert len(left) == 1
    assert files.names() == names
    with files.lock() as is_ours:
        assert is_ours
    assert not (files.folder / left[0]).exists()
    chain = newest_chain(files)
    assert chain is not None
    with open_store("memory://") as scratch:
        assemble(chain, files, scratch)
        assert everything(scratch) == expected


def test_files_are_private_and_one_process_writes_them(files: BackupFolder) -> None:
    """Mode 0600 in a folder of mode 0700; who comes second is told, and waits for nobody."""
    with open_store("memory://") as store:
        acknowledge(store, 1)
        write_copy(store, HERE, files)
    for each in files.folder.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    with files.lock() as first, files.lock() as second:
        assert (first, second) == (True, False)
    with files.lock() as third:
        assert third


def test_a_copy_beyond_its_room_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    """The older backups stay, and no part of the new one does."""
    files = BackupFolder(tmp_path / "backups")
    with open_store("memory://") as store:
        acknowledge(store, 1)
        write_copy(store, HERE, files)
        before = sorted(files.folder.iterdir())
        narrow = BackupFolder(files.folder, most_bytes=100)
        with pytest.raises(StoreFull, match="larger than 100 bytes"):
            write_copy(store, HERE, narrow)
    assert sorted(files.folder.iterdir()) == before


def test_a_copy_that_keeps_writers_waiting_is_given_up(files: BackupFolder) -> None:
    """Where they wait for readers, half of their patience is all that a backup takes."""
    with open_store("memory://") as store:
        acknowledge(store, 1)
        hasty = BackupFolder(files.folder, most_seconds=0)
        with pytest.raises(StoreUnavailable, match="writers wait meanwhile"):
            write_copy(store, HERE, hasty)
        assert files.names() == []
        assert write_copy(store, HERE, BackupFolder(files.folder, most_seconds=600)) is not None


def test_files_are_in_order_where_a_clock_is_set_back(files: BackupFolder) -> None:
    """A segment that was taken at an earlier time than its copy still follows it."""
    now = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    with open_store("memory://", clock=lambda: now[0]) as store:
        acknowledge(store, 1)
        write_copy(store, HERE, files)
        now[0] -= timedelta(hours=3)
        for number in (2, 3):
            acknowledge(store, number)
            assert write_segment(store, HERE, files) is not None
        expected = everything(store)
    chain = newest_chain(files)
    assert chain is not None
    assert len(chain.names) == 3
    with open_store("memory://") as scratch:
        assemble(chain, files, scratch)
        assert everything(scratch) == expected


def test_a_segment_is_not_added_to_files_that_are_damaged(files: BackupFolder) -> None:
    """A new copy is made instead, and what cannot be read is left as it is."""
    with open_store("memory://") as store:
        acknowledge(store, 1)
        first = write_copy(store, HERE, files)
        assert first is not None
        path = Path(files.place(first.name))
        harmed = bytearray(path.read_bytes())
        harmed[len(harmed) // 2] ^= 0xFF
        path.write_bytes(bytes(harmed))
        acknowledge(store, 2)
        told = write_automatic(store, HERE, files, keep=7, most_bytes=2**30, now=datetime.now(UTC))
        assert told is not None
        assert told.header.type == "copy"
        assert path.read_bytes() == bytes(harmed)
        acknowledge(store, 3)
        assert write_segment(store, HERE, files) is not None
