"""An LMDB file that nobody knows to be whole is verified before LMDB reads it, and no other is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.lmdb import data_file_guard, page_check, writer_lock
from herdbook.adapters.lmdb.files import DATA, LOCK, SENTINEL, WRITER_LOCK, WRITER_TURN
from herdbook.adapters.lmdb.page_check import VerificationTimedOut, verify_pages
from herdbook.adapters.lmdb.writer_lock import FileCondition, WriterLockFile, judge_file
from herdbook.adapters.stores.probe import probe
from herdbook.domain.errors import StoreDamaged, StoreUnavailable
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.engine.store import Store, SupportsVerify
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.stores import store_check

SPACE = "work/here"
DIES_INSIDE = """
import os, signal, sys
from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

with open_store(sys.argv[1]) as store, unit_of_work(store, "work/here") as uow:
    uow.tasks.add(Task(name="committed"))
    if sys.argv[2] == "after":
        uow.commit()
    os.kill(os.getpid(), signal.SIGKILL)
"""
TEXT = "a text to be found in the file"
A_STEP = 0.012
"""The times of files go in steps; a change in the step of the last write is not seen as one."""


def add(store: Store, name: str = "kept") -> None:
    """Add a task."""
    run(store, SPACE, lambda uow: uow.tasks.add(Task(name=name, description=TEXT)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a store with something in it."""
    place = tmp_path / "store"
    with open_store(f"lmdb://{place}") as store:
        add(store)
    time.sleep(A_STEP)
    return place


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are verified from now on, which they really are."""
    files: list[Path] = []

    def verify(data: Path, seconds: float) -> None:
        files.append(data)
        verify_pages(data, seconds)

    monkeypatch.setattr(data_file_guard, "verify_pages", verify)
    return files


def visit(folder: Path, *, write: bool = False) -> None:
    """Open a store and read, or write, in it."""
    with open_store(f"lmdb://{folder}", create=False) as store:
        store.spaces()
        if write:
            add(store, "more")


def damage(folder: Path) -> None:
    """Make a page say that it is of another kind, so that LMDB would end the process."""
    data = bytearray((folder / DATA).read_bytes())
    data[at_root(data) * 4_096 + 10] ^= 0x05
    (folder / DATA).write_bytes(data)


def at_root(data: bytes) -> int:
    """Which page LMDB's list of databases begins with."""
    newest = max((0, 4_096), key=lambda at: int.from_bytes(data[at + 144 : at + 152], "little"))
    return int.from_bytes(data[newest + 128 : newest + 136], "little")


def leave_as(folder: Path) -> None:
    """Make the lock file say that the data file was left as it is now, as if a disk had rotted."""
    descriptor = os.open(folder / WRITER_LOCK, os.O_RDWR)
    status = (folder / DATA).stat()
    WriterLockFile(descriptor).record_left((status.st_dev, status.st_ino), time.time_ns())
    os.close(descriptor)


def test_what_was_left_as_it_is_is_not_verified(folder: Path, verified: list[Path]) -> None:
    """Neither reading nor writing costs more then, in this process or another."""
    for write in (False, True, False, True):
        visit(folder, write=write)
    assert verified == []
    assert probe(f"lmdb://{folder}").schema_version is not None


def touch(folder: Path) -> None:
    os.utime(folder / DATA)


def copy_over(folder: Path) -> None:
    shutil.copy(folder / DATA, folder / "copy")
    (folder / "copy").replace(folder / DATA)


def lose_locks(folder: Path) -> None:
    for name in (LOCK, WRITER_LOCK, WRITER_TURN):
        (folder / name).unlink()


def spoil_lock(folder: Path) -> None:
    (folder / WRITER_LOCK).write_bytes(b"\xff" * 1_024)


@pytest.mark.parametrize("change", [touch, copy_over, lose_locks, spoil_lock])
@pytest.mark.parametrize("write", [False, True])
def test_what_was_changed_is_verified_once(
    change: Callable[[Path], None], write: bool, folder: Path, verified: list[Path]
) -> None:
    """By whoever comes first; the next one finds that it was."""
    change(folder)
    assert probe(f"lmdb://{folder}").schema_version is None
    for _ in range(3):
        visit(folder, write=write)
    assert verified == [folder / DATA]


def test_a_copied_store_is_verified(folder: Path, tmp_path: Path, verified: list[Path]) -> None:
    """Its lock file speaks of another file."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    visit(copy)
    visit(folder)
    assert verified == [copy / DATA]


def test_a_store_is_verified_after_its_writer_was_killed(
    folder: Path, verified: list[Path]
) -> None:
    """By the next process that opens it, and by one that has it open and writes next."""
    url = f"lmdb://{folder}"
    for opened_before in (False, True):
        with open_store(url) as store:
            if opened_before:
                add(store)
            assert die(url, "after") is FileCondition.UNCLEAN
            verified.clear()
            add(store, "more")
            assert verified == [folder / DATA]
            tasks = read(store, SPACE, lambda uow: uow.tasks.by_status(TaskStatus.PENDING))
            assert "committed" in [task.name for task in tasks]


def test_a_writer_that_was_killed_before_it_wrote_costs_nothing(
    folder: Path, verified: list[Path]
) -> None:
    """The file is as it was left before."""
    visit(folder, write=True)  # there is room in the file for the next one
    assert die(f"lmdb://{folder}", "before") is FileCondition.AS_LEFT
    visit(folder, write=True)
    assert verified == []


def die(url: str, when: str) -> FileCondition:
    """Let a process write and be killed, before or after it committed; what is known then."""
    ended = subprocess.run([sys.executable, "-c", DIES_INSIDE, url, when], check=False)
    assert ended.returncode == -signal.SIGKILL
    folder = Path(url.removeprefix("lmdb://"))
    return judge_file(folder / DATA, writer_lock.writer_lock(folder))


@pytest.mark.parametrize("write", [False, True])
def test_damage_is_told_and_not_read(folder: Path, write: bool) -> None:
    """Whoever opens it is refused, again and again, and the file is left as it is."""
    damage(folder)
    before = (folder / DATA).read_bytes()
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="its pages do not fit together") as refusal:
            visit(folder, write=write)
        assert str(refusal.value).startswith(str(folder / DATA))
    assert (folder / DATA).read_bytes() == before


def test_damage_done_to_an_open_store_is_told_to_its_writer(folder: Path) -> None:
    """A process that has it open does not write into it."""
    with open_store(f"lmdb://{folder}") as store:
        store.spaces()
        whole = (folder / DATA).read_bytes()
        damage(folder)
        with pytest.raises(StoreDamaged):
            add(store)
        (folder / DATA).write_bytes(whole)
        add(store, "after")


def test_a_disk_that_rots_is_noticed_by_check(folder: Path) -> None:
    """Nothing says that the file has changed; a check, and who asks for it, read it all."""
    damage(folder)
    leave_as(folder)
    url = f"lmdb://{folder}"
    assert judge_file(folder / DATA, writer_lock.writer_lock(folder)) is FileCondition.AS_LEFT
    with pytest.raises(StoreDamaged, match="its pages do not fit together"):
        open_store(url, create=False, verify=True)


def test_a_check_verifies_a_store_that_is_open(folder: Path, verified: list[Path]) -> None:
    """And nothing twice that has not changed."""
    with open_store(f"lmdb://{folder}") as store:
        assert isinstance(store, SupportsVerify)
        assert store_check.check(store) == []
        assert store_check.check(store) == []
        assert verified == [folder / DATA]
        add(store)
        assert store_check.check(store) == []
        assert len(verified) == 2


def test_a_check_is_not_misled_by_others_who_write(folder: Path) -> None:
    """Commits come and go while the pages are verified."""
    over = threading.Event()
    url = f"lmdb://{folder}"

    def write() -> None:
        with open_store(url) as store:
            while not over.is_set():
                run(store, SPACE, lambda uow: uow.tasks.add_all([Task(name="x")] * 1))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with open_store(url) as store:
            for _ in range(15):
                store.verify()  # type: ignore[attr-defined]
    finally:
        over.set()
        thread.join()


def test_a_machine_that_was_started_again_has_its_stores_verified(
    folder: Path, verified: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have lost its power in the midst of a write."""
    monkeypatch.setattr(writer_lock, "_boot_id", lambda: b"another-start")
    visit(folder)
    visit(folder)
    assert verified == [folder / DATA]


def run_out(_: Path, seconds: float) -> None:
    raise VerificationTimedOut("it", f"not within {seconds:g} s")


def test_a_large_store_is_not_kept_back_by_a_writer_that_died(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB's pages survive that; to verify them all is a precaution with a limit."""
    monkeypatch.setattr(data_file_guard, "verify_pages", run_out)
    os.utime(folder / DATA)
    visit(folder, write=True)


def test_a_store_from_elsewhere_is_refused_if_it_cannot_be_verified(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be made to take for ever."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    monkeypatch.setattr(data_file_guard, "verify_pages", run_out)
    with pytest.raises(StoreUnavailable, match="not within"):
        visit(copy)


def test_verifying_takes_no_longer_than_it_may(folder: Path) -> None:
    """The program that does it is ended."""
    with pytest.raises(VerificationTimedOut, match=r"within 1e-05 s\. Nothing was changed"):
        verify_pages(folder / DATA, 0.00001)


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_without_a_program_to_verify_with_nothing_is_opened(
    program: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is told."""
    monkeypatch.setattr(sys, "executable", program)
    os.utime(folder / DATA)
    with pytest.raises(StoreUnavailable, match="its pages could not be verified: "):
        visit(folder)


def test_an_lmdb_without_a_verifier_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 had none."""
    monkeypatch.setattr(lmdb, "__file__", "/nowhere/lmdb/__init__.py")
    with pytest.raises(StoreUnavailable, match="version 3 brings one"):
        verify_pages(folder / DATA, 60.0)


def test_a_time_limit_follows_what_is_on_the_disk(tmp_path: Path) -> None:
    """A file of holes, which says that it is huge, gets no more time than a small one."""
    sparse = tmp_path / "sparse"
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    assert page_check.time_limit(sparse.stat()) < page_check.LEAST_SECONDS + 1


def change_meta(folder: Path, key: bytes, old: bytes, new: bytes) -> None:
    """Change the bytes of a value as a flipped bit would, and leave the file so."""
    assert len(old) == len(new)
    data = (folder / DATA).read_bytes()
    assert key in data
    assert old in data
    (folder / DATA).write_bytes(data.replace(old, new))


def test_a_space_whose_name_was_damaged_is_not_taken_for_a_new_one(folder: Path) -> None:
    """Nothing is silently empty."""
    change_meta(folder, b"spaces", b"work/here", b"work/hero")
    with pytest.raises(StoreDamaged, match="space"):
        visit(folder)
    with (
        pytest.raises(StoreDamaged, match="space"),
        open_store(f"lmdb://{folder}") as store,
    ):
        add(store)


def test_what_a_store_says_of_itself_has_a_checksum(folder: Path) -> None:
    """Its name is not misread."""
    uuid = json.loads((folder / SENTINEL).read_text())["uuid"]
    other = uuid[:-1] + ("0" if uuid[-1] != "0" else "1")
    change_meta(folder, b"store", uuid.encode(), other.encode())
    with pytest.raises(StoreDamaged, match="does not match its checksum"):
        visit(folder)
