"""The folder of the sockets is in `/tmp`, where everybody may have been before."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.wakeups import socket_folder
from herdbook.adapters.wakeups.socket_folder import socket_folder as folder_of
from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Task
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.journal.feed import MOST_CARRIED, Feed
from tests.contract.children import NOBODY

SPACE = "work/x"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What is used in place of `/tmp`; the address of a socket has to be short."""
    with TemporaryDirectory(dir=socket_folder.ROOT) as folder:
        monkeypatch.setattr(socket_folder, "ROOT", folder)
        yield Path(folder)


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with open_store("memory://") as opened:
        assert root.exists()
        yield opened


@pytest.fixture
def own(root: Path) -> Path:
    """The folder of the user, which does not exist yet."""
    return root / f"herdbook-{os.getuid()}"


def _commit(store: Store) -> None:
    run(store, SPACE, lambda uow: uow.tasks.add(Task(name="x")))


def _is_refused(store: Store) -> bool:
    """Whether nobody listens there, and commits succeed all the same."""
    with store.wakeups.listen(SPACE, look=1.0) as listener:
        _commit(store)
        return not listener.wait()


def test_a_folder_of_ones_own_is_used(store: Store, own: Path) -> None:
    """As it is in all other tests; what follows differs in one thing each."""
    assert not _is_refused(store)
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_folder_is_not_followed(
    store: Store, own: Path, tmp_path: Path
) -> None:
    """Who rings removes dead sockets; behind a link these would be other files."""
    theirs = tmp_path / "theirs"
    inner = theirs / f"wakeups-{store.uuid}"
    inner.mkdir(parents=True, mode=0o700)
    theirs.chmod(0o700)
    (inner / "1-2-all").write_text("precious")
    own.symlink_to(theirs)
    assert _is_refused(store)
    assert [each.name for each in inner.iterdir()] == ["1-2-all"]


def test_a_link_in_the_place_of_a_stores_folder_is_not_followed(
    store: Store, own: Path, tmp_path: Path
) -> None:
    """The same one step further."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    (theirs / "1-2-all").write_text("precious")
    own.mkdir(mode=0o700)
    (own / f"wakeups-{store.uuid}").symlink_to(theirs)
    assert _is_refused(store)
    assert [each.name for each in theirs.iterdir()] == ["1-2-all"]


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_folder_that_others_may_enter_is_refused(store: Store, own: Path, mode: int) -> None:
    """They could listen, or put sockets in the way."""
    own.mkdir()
    own.chmod(mode)
    assert _is_refused(store)
    assert list(own.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(
    store: Store, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was quicker learns nothing; changes only show a little later."""
    if os.getuid() == 0:
        own.mkdir(mode=0o700)
        os.chown(own, NOBODY, NOBODY)
    else:
        own.mkdir(mode=0o700)
        (own / f"wakeups-{store.uuid}").mkdir(mode=0o700)
        uid = os.getuid()
        monkeypatch.setattr(socket_folder, "socket_folder", lambda _: str(own))
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert _is_refused(store)


def test_only_sockets_are_removed(store: Store, own: Path) -> None:
    """A file with the name of a socket stays, whatever it is."""
    with store.wakeups.listen(SPACE, look=3_600.0) as listener:
        folder = own / f"wakeups-{store.uuid}"
        (folder / "1-2-all").write_text("a file")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
            dead.bind(str(folder / "3-4-all"))
        _commit(store)
        assert listener.wait()
        assert (folder / "1-2-all").read_text() == "a file"
        assert not (folder / "3-4-all").exists()


def test_what_a_killed_listener_has_left_is_tidied_up(store: Store, own: Path) -> None:
    """First its socket, then the folder: writers see at a glance that nobody listens."""
    folder = own / f"wakeups-{store.uuid}"
    folder.mkdir(parents=True, mode=0o700)
    own.chmod(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(folder / "3-4-all"))
    for _ in range(2):
        assert folder.exists()
        _commit(store)
        store.wakeups.close()  # rings what was put off
    assert not folder.exists()


@pytest.mark.parametrize("uuid", ["../../home", "a/b", "", "x" * 200, "ü", "\0", "."])
def test_a_store_cannot_choose_the_folder(uuid: str) -> None:
    """What a store says of itself may be anything."""
    assert folder_of(uuid) is None


def test_no_secret_is_in_a_ring(store: Store) -> None:
    """It carries what the journal has, and that has no secrets."""
    space = "record/x"
    account = Account(email="ann@example.org", credentials=Secret("hunter2"))
    with store.wakeups.listen(space, look=3_600.0) as listener:
        run(store, space, lambda uow: uow.accounts.add(account))
        with socket.socket(fileno=os.dup(listener.fileno())) as theirs:
            message = theirs.recv(65_536)
        assert b"ann@example.org" in message
        assert b"hunter2" not in message


def test_a_flood_of_entries_is_forgotten(store: Store) -> None:
    """Somebody rings and rings with entries that do not follow on any: memory does not grow."""
    with Feed(store, SPACE, 0, look=3_600.0) as feed:
        feed.fileno()
        _commit(store)
        assert [each.seq for each in feed.take()] == [1]
        entry = read(store, SPACE, lambda uow: uow.journal.find(1))
        for first in range(1_000, 100_000, 1_000):
            many = [evolve(entry, seq=first + each) for each in range(20)]
            store.wakeups.ring(SPACE, first + 19, many)
            store.wakeups.close()
            feed.wait(0)
        assert len(feed._carried) <= MOST_CARRIED
        assert feed.take() == []
        assert feed.last == 1
        assert feed._carried == {}
