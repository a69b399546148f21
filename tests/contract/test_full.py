"""Where there is no more room nothing is lost: not what was there, not what was acknowledged."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import InvalidValue, StoreFull
from herdbook.domain.location.areas import MIB
from herdbook.domain.plan.model import Task
from herdbook.domain.values import LONGEST_TEXT
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.children import apart
from tests.contract.space import HERE, everything_in
from tests.contract.visitors import (
    add,
    add_many,
    fill,
    fill_with_little_room,
    make_with_little_room,
)

NewUrl = Callable[[str], str]

SYS_ADMIN = 1 << 21
"""The right to mount, as Linux numbers it."""


def is_whole(store: Store, acknowledged: list[str]) -> None:
    """What is there is what was acknowledged, and the books agree with it."""

    def look(uow: UnitOfWork) -> None:
        entries = list(uow.journal.all_entries())
        assert [entry.seq for entry in entries] == list(range(1, uow.journal.last() + 1))
        assert [entry.key for entry in entries] == acknowledged
        assert find_differences(uow) == []

    tasks = everything_in(store).get("tasks", [])
    assert sorted(task.id for task in tasks) == sorted(acknowledged)
    read(store, HERE, look)


def test_a_store_at_its_size_limit_keeps_what_it_has(new_url: NewUrl) -> None:
    """What no longer fits is refused as a whole; everything acknowledged before is there."""
    url = new_url("lmdb")
    with open_store(url, size_limit=MIB) as store:
        acknowledged, full = fill(store)
        assert isinstance(full, StoreFull)
        assert str(full) == (
            f"{url.removeprefix('lmdb://')} is full: it has reached its size limit; a larger one "
            "can be configured. Nothing was written; what it held is safe"
        )
        assert acknowledged
        is_whole(store, acknowledged)
    with open_store(url, size_limit=MIB) as store:
        is_whole(store, acknowledged)


def test_a_full_store_goes_on_with_a_larger_limit(new_url: NewUrl) -> None:
    """Opened again with more room it takes what it refused."""
    url = new_url("lmdb")
    with open_store(url, size_limit=MIB) as store:
        acknowledged, _ = fill(store)
    with open_store(url, size_limit=4 * MIB) as store:
        acknowledged.append(run(store, HERE, add, "one more"))
        is_whole(store, acknowledged)
    with open_store(url, size_limit=MIB) as store:
        is_whole(store, acknowledged)


def test_who_has_less_room_reads_what_others_wrote_with_more(new_url: NewUrl) -> None:
    """A store that another process grew goes on in this one, in all its threads at once."""
    url = new_url("lmdb")
    with open_store(url, size_limit=MIB) as store:
        acknowledged = [run(store, HERE, add, "first")]
        acknowledged += apart(add_many, url, 32 * MIB, 40)
        begin = threading.Barrier(4)
        found: list[int] = []

        def look() -> None:
            begin.wait()
            found.append(len(everything_in(store)["tasks"]))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [len(acknowledged)] * 4
        acknowledged.append(run(store, HERE, add, "last"))
        is_whole(store, acknowledged)


def may_mount() -> bool:
    """Whether this process may put a small disk somewhere."""
    status = Path("/proc/self/status")
    if not status.exists() or os.geteuid() != 0:
        return False
    rights = dict(line.split(":\t") for line in status.read_text().splitlines() if ":\t" in line)
    return bool(int(rights["CapEff"], 16) & SYS_ADMIN)


@pytest.fixture(params=["no file may grow", *(["a small disk"] if may_mount() else [])])
def little_room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder, and how many bytes a file may still grow in it, where the disk does not say so."""
    if request.param == "no file may grow":
        yield tmp_path, 128 * 1024
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)],  # noqa: S607
        check=False,
    )
    if mounted.returncode:  # a right that something else takes away again
        yield tmp_path, 128 * 1024
        return
    yield tmp_path, 0
    subprocess.run(["umount", str(tmp_path)], check=True)  # noqa: S607


KIB = 1_024
TOO_LITTLE = (0, 1, 4, 8, 12, 40, 100, 131, 132, 136, 140, 200, 300)
"""So many kibibytes are left: too little for a store, each for another part of it."""


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)
@pytest.mark.parametrize("left", TOO_LITTLE)
def test_a_store_that_found_no_room_is_made_when_there_is(
    engine: str, left: int, tmp_path: Path
) -> None:
    """Who makes one where no file may grow is told so, and is alive; then there is a whole one."""
    url = f"{engine}://{tmp_path / 'store'}"
    refused = apart(make_with_little_room, url, left * KIB)
    assert refused is None or refused[0] is StoreFull, refused
    assert (refused is None) <= (left > 100)
    with open_store(url) as store:
        is_whole(store, [run(store, HERE, add, "after all")])


def on_a_small_disk(folder: Path, left: int) -> tuple[type, str] | None:
    """Try to make a store on a disk with so many bytes left, and what was said to that."""
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)],  # noqa: S607
        check=False,
    ).returncode:  # a right that something else takes away again
        return None
    try:
        room = os.statvfs(folder)
        with (folder / "filler").open("wb") as filler:
            filler.write(bytes(room.f_bavail * room.f_frsize - left))
        refused: tuple[type, str] | None = apart(make_with_little_room, f"lmdb://{folder}/s", None)
        (folder / "filler").unlink()
        with open_store(f"lmdb://{folder}/s") as store:
            is_whole(store, [run(store, HERE, add, "after all")])
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607
    return refused


def test_a_store_that_is_made_on_a_full_disk_ends_no_process(tmp_path: Path) -> None:
    """LMDB maps its lock file: a page of it that the disk has no room for would be a signal."""
    if not may_mount():  # what a disk would do is then said by the system instead
        assert apart(make_with_little_room, f"lmdb://{tmp_path}/s", 0) is not None
        return
    for left in TOO_LITTLE:
        refused = on_a_small_disk(tmp_path, left * KIB)
        assert refused is None or refused[0] is StoreFull, (left, refused)


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)
def test_a_full_disk_takes_nothing_away(engine: str, little_room: tuple[Path, int]) -> None:
    """The unit of work that did not fit is refused; all before it are there for who comes next."""
    folder, room = little_room
    url = f"{engine}://{folder / 'store'}"
    with open_store(url) as store:
        acknowledged = [run(store, HERE, add, "before")]
    more, full = apart(fill_with_little_room, url, room)
    assert isinstance(full, StoreFull)
    assert str(full).startswith(f"{folder / 'store'} is full: ")
    assert more
    acknowledged += more
    with open_store(url) as store:
        is_whole(store, acknowledged)
        if room:
            acknowledged.append(run(store, HERE, add, "after"))
            is_whole(store, acknowledged)


def test_ten_megabytes_of_text_come_back(store: Store, space: str) -> None:
    """A long text of many scripts is kept whole, and so is what the journal tells of it."""
    text = "ünï→\U0001f404 'quoted\" \\ \n%s\t" * 400_000
    assert 10_000_000 < len(text.encode()) < LONGEST_TEXT
    task = run(store, space, lambda uow: uow.tasks.add(Task(name="long", description=text)))
    found, entry = read(
        store, space, lambda uow: (uow.tasks.get(task.id), uow.journal.since(0)[-1])
    )
    assert found == task
    assert entry.after["description"] == text


def test_a_longer_text_is_refused(store: Store, space: str) -> None:
    """One byte too many is told before any store sees it."""
    before = everything_in(store, space)
    with pytest.raises(InvalidValue) as refusal:
        run(
            store,
            space,
            lambda uow: uow.tasks.add(Task(name="long", description="é" * (LONGEST_TEXT // 2 + 1))),
        )
    assert str(refusal.value) == "description: may have at most 16777216 bytes"
    assert everything_in(store, space) == before
