"""What lies in the folder of an LMDB store is looked at before LMDB opens any of it."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.files import (
    DATA,
    LOCK,
    SENTINEL,
    WRITER_LOCK,
    WRITER_TURN,
    complete_lock,
    is_free,
)
from herdbook.adapters.lmdb.headers import check_headers, is_unfinished
from herdbook.adapters.stores.probe import is_missing, probe
from herdbook.domain.errors import StoreDamaged, StoreUnavailable
from herdbook.domain.location.resolve import NO_STORE
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run

FILES = (DATA, LOCK, SENTINEL, WRITER_LOCK, WRITER_TURN)
LENGTHS = (0, 1, 10, 11, 15, 16, 23, 24, 100, 151, 152, 4_095, 4_096, 4_097, 8_191, 8_192)


def fill(url: str) -> None:
    """Put something into a store, made if it is not there."""
    with open_store(url) as store:
        run(store, "work/here", lambda uow: uow.tasks.add(Task(name="kept")))


@pytest.fixture
def fresh(tmp_path: Path) -> bytes:
    """A data file as LMDB makes it."""
    with lmdb.open(str(tmp_path / "fresh")):
        pass
    return (tmp_path / "fresh" / DATA).read_bytes()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("zeros", [False, True], ids=["written", "zeros"])
def test_a_store_that_was_cut_off_while_it_was_made_is_made_again(
    length: int, zeros: bool, fresh: bytes, tmp_path: Path
) -> None:
    """At every place: nothing was ever in it."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / DATA).write_bytes(bytes(length) if zeros else fresh[:length])
    assert is_unfinished(folder / DATA)
    url = f"lmdb://{folder}"
    assert probe(url) == NO_STORE
    assert is_missing(url)
    with pytest.raises(StoreUnavailable, match="there is no store here"):
        open_store(url, create=False)
    fill(url)
    assert not is_missing(url)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_store_that_was_cut_off_later_is_not_made_again(length: int, tmp_path: Path) -> None:
    """Its mark says that there was one."""
    folder = tmp_path / "store"
    fill(f"lmdb://{folder}")
    os.truncate(folder / DATA, length)
    assert not is_missing(f"lmdb://{folder}")
    for create in (True, False):
        with pytest.raises(StoreDamaged):
            open_store(f"lmdb://{folder}", create=create)
    assert (folder / DATA).stat().st_size == length


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"\0" * 9 + b"x",
        b"somebody's notes" * 10,
        b"\0" * 5_000 + b"x",
        struct.pack("<QHHHHII", 0, 0, 8, 0, 0, 0xBEEFC0DE, 999),
    ],
    ids=["a letter", "a few bytes", "text", "zeros and a letter", "another format"],
)
def test_what_is_somebodys_is_not_taken_for_unfinished(content: bytes, tmp_path: Path) -> None:
    """A short file that LMDB has not begun is left as it is."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / DATA).write_bytes(content)
    with pytest.raises(StoreDamaged):
        open_store(f"lmdb://{folder}")
    assert (folder / DATA).read_bytes() == content


def test_a_store_with_something_in_it_is_not_unfinished(tmp_path: Path) -> None:
    """Also without its mark: the mark may be lost, what is kept may not."""
    folder = tmp_path / "store"
    fill(f"lmdb://{folder}")
    (folder / SENTINEL).unlink()
    assert not is_unfinished(folder / DATA)
    with open_store(f"lmdb://{folder}") as store:
        assert store.spaces() == ["work/here"]


@pytest.mark.parametrize(
    ("at", "bits"),
    [(44, 0x04), (44, 0x01), (92, 0x04), (92, 0x08), (4_096 + 92, 0x02), (4_096 + 40, 0x20)],
)
def test_headers_that_lmdb_would_believe_are_refused(at: int, bits: int, tmp_path: Path) -> None:
    """Databases of another kind, or pages of another size, would end the process."""
    folder = tmp_path / "store"
    fill(f"lmdb://{folder}")
    data = bytearray((folder / DATA).read_bytes())
    data[at] ^= bits
    (folder / DATA).write_bytes(data)
    with pytest.raises(StoreDamaged):
        check_headers(folder / DATA)
    with pytest.raises(StoreDamaged):
        open_store(f"lmdb://{folder}")


def as_link(path: Path, victim: Path) -> None:
    path.unlink()
    path.symlink_to(victim)


def as_hard_link(path: Path, victim: Path) -> None:
    path.unlink()
    path.hardlink_to(victim)


def as_pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_folder(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [as_link, as_hard_link, as_pipe, as_folder])
def test_what_is_no_file_of_its_own_is_refused(
    name: str, make: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """By opening and by looking; the file that a link leads to is neither read nor written."""
    folder, victim = tmp_path / "store", tmp_path / "victim"
    fill(f"lmdb://{folder}")
    victim.write_bytes((folder / name).read_bytes())
    before = victim.read_bytes(), victim.stat().st_mtime_ns
    make(folder / name, victim)
    for create in (True, False):
        with pytest.raises(StoreUnavailable) as refusal:
            open_store(f"lmdb://{folder}", create=create)
        assert name in str(refusal.value)
        assert str(refusal.value).endswith("Nothing was opened")
    sight = probe(f"lmdb://{folder}")
    assert sight.problem is not None
    assert name in sight.problem
    assert (victim.read_bytes(), victim.stat().st_mtime_ns) == before


@pytest.mark.parametrize("name", FILES)
def test_a_link_that_leads_nowhere_makes_nothing(name: str, tmp_path: Path) -> None:
    """In a folder where a new store could be, too."""
    folder, victim = tmp_path / "store", tmp_path / "victim"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(StoreUnavailable):
        open_store(f"lmdb://{folder}")
    probe(f"lmdb://{folder}")
    assert not victim.exists()
    assert [each.name for each in folder.iterdir()] == [name]


def test_a_lock_file_with_holes_is_completed_where_room_is_scarce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB itself makes such; its content stays."""
    folder = tmp_path / "store"
    fill(f"lmdb://{folder}")
    size = (folder / LOCK).stat().st_size
    (folder / LOCK).write_bytes(b"kept")
    os.truncate(folder / LOCK, size)
    complete_lock(folder)
    assert (folder / LOCK).stat().st_blocks * 512 < size
    monkeypatch.setattr(files, "_LITTLE_ROOM", 1 << 60)
    complete_lock(folder)
    assert (folder / LOCK).stat().st_blocks * 512 >= size
    assert (folder / LOCK).read_bytes() == b"kept" + bytes(size - 4)


def test_a_lock_file_is_made_as_lmdb_makes_it(tmp_path: Path) -> None:
    """As large as it needs for the readers that we allow, so that it changes nothing of it."""
    fill(f"lmdb://{tmp_path / 'ours'}")
    with lmdb.open(str(tmp_path / "theirs"), max_readers=files.MAX_READERS):
        pass
    ours, theirs = (tmp_path / each / LOCK for each in ("ours", "theirs"))
    assert ours.stat().st_size == theirs.stat().st_size
    assert ours.stat().st_blocks * 512 >= ours.stat().st_size


def test_the_files_of_a_store_are_its_owners_alone(tmp_path: Path) -> None:
    """Whatever the mask says."""
    before = os.umask(0)
    try:
        fill(f"lmdb://{tmp_path / 'store'}")
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "store").iterdir()}
    assert modes == dict.fromkeys(FILES, 0o600)


def test_a_look_makes_no_file(tmp_path: Path) -> None:
    """Neither where there is nothing nor where the locks are missing."""
    folder = tmp_path / "store"
    fill(f"lmdb://{folder}")
    for name in (LOCK, WRITER_LOCK, WRITER_TURN):
        (folder / name).unlink()
    assert probe(f"lmdb://{folder}").exists
    assert sorted(each.name for each in folder.iterdir()) == [DATA, SENTINEL]
    assert not is_free(folder)
    fill(f"lmdb://{folder}")
