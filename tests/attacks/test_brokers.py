"""What others put where a broker's socket should be, and what they send to a broker."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.duckdb.broker import address, wire
from herdbook.adapters.duckdb.broker.start import start_broker
from herdbook.domain.errors import HerdbookError
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.plan.claims import ready
from tests.contract.brokers import hello

SPACE = "work/attacked"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A DuckDB store with one task."""
    with open_store(f"duckdb://{tmp_path / 'store.duckdb'}") as opened:
        run(opened, SPACE, lambda uow: uow.tasks.add(Task(name="mine")))
        yield opened


def names(store: Store) -> list[str]:
    """The tasks of the store."""
    return [task.name for task in read(store, SPACE, ready)]


class Liar:
    """A process that pretends to be the broker of a file, and counts who believes it."""

    def __init__(self, at: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(at))
        self._socket.listen()
        self._socket.settimeout(0.0)

    def has_visitors(self) -> bool:
        """Whether anybody has connected."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """End it."""
        self._socket.close()


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_folder_that_is_open_to_others_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    """Whoever can write there could be anybody: the file is used directly."""
    folder = tmp_path / "sockets"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setattr(address, "user_folder", lambda: str(folder))
    at = Path(address.broker_address((tmp_path / "store.duckdb").stat()))
    liar = Liar(at)
    assert names(store) == ["mine"]
    assert not liar.has_visitors()
    liar.close()
    at.unlink()
    with pytest.raises(HerdbookError), start_broker(store):
        raise AssertionError("a broker listens in a folder that is open to others")


def test_a_link_in_the_place_of_the_folder_is_not_followed(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even to a folder of the user's own."""
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "sockets").symlink_to(tmp_path / "own")
    monkeypatch.setattr(address, "user_folder", lambda: str(tmp_path / "sockets"))
    with pytest.raises(HerdbookError), start_broker(store):
        raise AssertionError("a broker follows a link")
    assert names(store) == ["mine"]


def test_a_peer_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides ask the system who is at the other end."""
    ours, theirs = socket.socketpair()
    assert address.require_same_user(ours) > 0
    user = address.os.getuid() + 1
    monkeypatch.setattr(address.os, "getuid", lambda: user)
    with pytest.raises(PermissionError):
        address.require_same_user(theirs)
    ours.close()
    theirs.close()


def test_a_broker_that_answers_nonsense_is_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that never answers, too: the file is used directly."""
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(address, "user_folder", lambda: str(folder))
    liar = Liar(Path(address.broker_address((tmp_path / "store.duckdb").stat())))
    assert names(store) == ["mine"]
    assert liar.has_visitors()
    liar.close()


WIDTH = len(TASKS.columns)
ROW = ["x"] * WIDTH


def committed(*change: object) -> list[object]:
    """The messages of a transaction that changes one kind."""
    return [["begin", SPACE, True, 1], ["commit", [list(change)]]]


MESSAGES: dict[str, list[object]] = {
    "no transaction": [["get", "tasks", ["x"]]],
    "no such kind": [["begin", SPACE, False, 1], ["get", "tasks; DROP TABLE tasks", ["x"]]],
    "another table": [["begin", SPACE, False, 1], ["get", "store", ["x"]]],
    "two at once": [["begin", SPACE, True, 1], ["begin", SPACE, True, 1]],
    "a space that is none": [["begin", "nowhere", True, 1]],
    "a reader that commits": [["begin", SPACE, False, 1], ["commit", []]],
    "rows of another width": committed("tasks", [["x"]], [], [], []),
    "no rows at all": committed("tasks", 7, 7, 7, 7),
    "a change without columns": committed("tasks", [], [], []),
    "columns that are none": committed("tasks", [], [ROW], [], ["name", "space"]),
    "a key to change": committed("tasks", [], [ROW], [], ["id"]),
    "SQL as a column": committed("tasks", [], [ROW], [], ['name" = 1; DROP TABLE tasks; --']),
    "columns as text": committed("tasks", [], [ROW], [], "name"),
    "a row in no column": committed("tasks", [], [ROW], [], []),
    "columns as SQL": [
        ["begin", SPACE, False, 1],
        ["select", ["tasks", [], [], None, None, ['id" FROM x; --'], False, None, None]],
    ],
    "a limit as SQL": [
        ["begin", SPACE, False, 1],
        ["select", ["tasks", [], [], None, None, ["id"], False, "1; DROP TABLE tasks", None]],
    ],
    "an unknown word": [["attach", "/etc/passwd"]],
    "a word that is none": [[{"begin": 1}]],
}


def test_a_broker_survives_what_is_sent_to_it(store: Store, tmp_path: Path) -> None:
    """It closes that connection, and everybody else goes on."""
    path = tmp_path / "store.duckdb"
    at = address.broker_address(path.stat())

    def send(messages: list[object]) -> None:
        with address.connect(at, 10.0) as sent:
            for message in [hello(path), *messages]:
                sent.sendall(wire.encode_frame(message))  # type: ignore[arg-type]
            while sent.recv(65_536):
                continue
        assert names(store) == ["mine"]

    with start_broker(store):
        for messages in MESSAGES.values():
            send(messages)


POISON: dict[str, list[object]] = {
    "objects": [["tasks", [[{"a": 1}] * WIDTH], [], [], []]],
    "lists as keys": [["tasks", [], [], [["x"]], []]],
    "texts": [["tasks", [["\ud800"] * WIDTH], [], [], []]],
    "nothing": [["tasks", [[None] * WIDTH], [], [], []]],
    "a row that is not there": [["tasks", [], [ROW], [], ["name"]]],
}


@pytest.mark.parametrize("poison", POISON)
def test_a_commit_that_cannot_be_written_harms_nobody(
    store: Store, tmp_path: Path, poison: str
) -> None:
    """It leaves no trace, and the broker goes on with the others."""
    path = tmp_path / "store.duckdb"
    with start_broker(store) as broker:
        assert [names(store) for _ in range(5)] == [["mine"]] * 5  # so that rows are kept
        with address.connect(address.broker_address(path.stat()), 10.0) as sent:
            for message in (hello(path), ["begin", SPACE, True, 9.0], ["commit", POISON[poison]]):
                sent.sendall(wire.encode_frame(message))
                answer = sent.recv(65_536)
        assert b'["ok"' not in answer
        assert names(store) == ["mine"]
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="after")))
        assert broker.is_running()
    assert sorted(names(store)) == ["after", "mine"]


def test_a_broker_survives_bytes_that_are_no_messages(store: Store, tmp_path: Path) -> None:
    """Neither noise nor a length of four gigabytes is waited for."""
    at = address.broker_address((tmp_path / "store.duckdb").stat())
    noises = {
        "noise": b"\x00\x00\x00\x05{{{{{",
        "a huge length": b"\xff\xff\xff\xff[1]",
        "not a list": b"\x00\x00\x00\x022 ",
        "deep": wire.LENGTH.pack(200_000) + b"[" * 200_000,
        "another protocol": wire.encode_frame(["hello", 99]),
        "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }

    def send(noise: bytes) -> None:
        with address.connect(at, 10.0) as sent:
            sent.sendall(noise)
            while sent.recv(65_536):
                continue
        assert names(store) == ["mine"]

    with start_broker(store):
        for noise in noises.values():
            send(noise)


def test_a_client_of_another_version_or_file_is_refused(store: Store, tmp_path: Path) -> None:
    """It is told why, and works directly; no path that it names is opened."""
    path = tmp_path / "store.duckdb"
    good = hello(path)
    with start_broker(store):
        for at, value in ((1, 99), (2, "/etc/passwd"), (3, [0, 0]), (4, "0" * 32)):
            with address.connect(address.broker_address(path.stat()), 10.0) as sent:
                message = [value if number == at else each for number, each in enumerate(good)]
                sent.sendall(wire.encode_frame(message))
                assert b"refused" in sent.recv(1_000)
