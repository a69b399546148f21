"""Databases of SqliteSaver are read while others write to them, and left as they are."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from herdbook.adapters.langgraph.sqlite_reader import open_database
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.world.foreign_checkpoints import ForeignCheckpoint

WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.executescript('''
PRAGMA journal_mode=WAL;
PRAGMA wal_autocheckpoint=20;
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB,
    metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
''')
number = 0
def more():
    global number
    state = b'{"channel_values": {"n": %d, "text": "%s"}}' % (number, b"x" * 3000)
    key = ("t", "", "%08d" % number)
    with db:
        db.execute("INSERT INTO checkpoints VALUES (?, ?, ?, NULL, 'json', ?, '{}')", (*key, state))
        db.execute("INSERT INTO writes VALUES (?, ?, ?, 'task', '', 0, 'n', 'json', '1')", key)
    number += 1
for _ in range(10):
    more()
print("ready", flush=True)
if sys.argv[2] == "busy":
    while True:
        more()
        time.sleep(0.002)  # a workflow does something between its steps
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source" / "issue workflow?.db"


@pytest.fixture
def writer(file: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that has the database open, and writes to it if it is `busy`."""
    words = [sys.executable, "-c", WRITER, str(file), request.param]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        yield running
        running.kill()


def _numbers(file: Path) -> list[int]:
    """The numbers of the checkpoints that are read, each of which has its write."""
    with open_database(file) as source:
        found = list(source.checkpoints())
        assert source.total == len(found)
        assert source.left_out == 0
    assert all(isinstance(each, ForeignCheckpoint) and len(each.writes) == 1 for each in found)
    return [int(each.checkpoint_id) for each in found if isinstance(each, ForeignCheckpoint)]


def _content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("writer", ["still"], indirect=True)
def test_what_is_only_in_the_log_is_read_and_nothing_is_touched(
    file: Path, writer: subprocess.Popen[str]
) -> None:
    """While a writer has it open, after that was killed, and when it was closed well."""
    for state in ("open", "killed"):
        before = _content(file.parent)
        assert any(name.endswith("-wal") and data for name, data in before.items())
        assert _numbers(file) == list(range(10)), state
        assert _content(file.parent) == before
        writer.kill()
        writer.wait()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    before = _content(file.parent)
    assert list(before) == [file.name]
    assert _numbers(file) == list(range(10))
    assert _content(file.parent) == before


@pytest.mark.parametrize("writer", ["busy"], indirect=True)
@pytest.mark.usefixtures("writer")
def test_what_is_read_while_somebody_writes_is_whole(file: Path) -> None:
    """Every copy holds all transactions up to one, and no part of another."""
    seen = 0
    for _ in range(15):
        numbers = _numbers(file)
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= seen
        seen = len(numbers)
    assert seen > 10


@pytest.mark.parametrize("writer", ["still"], indirect=True)
@pytest.mark.usefixtures("writer")
def test_no_copy_is_left_behind(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while it is read, so that a reader that is killed leaves none either."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with open_database(file) as source:
        assert list(folder.iterdir()) == []
        assert source.total == 10
        assert len(list(source.checkpoints())) == 10


@pytest.mark.parametrize("writer", ["still"], indirect=True)
@pytest.mark.usefixtures("writer")
def test_a_link_leads_to_the_database_and_its_log(file: Path, tmp_path: Path) -> None:
    """The log lies beside the file itself."""
    link = tmp_path / "link.db"
    link.symlink_to(file)
    assert _numbers(link) == list(range(10))


def test_what_is_no_database_of_the_saver_is_refused(tmp_path: Path) -> None:
    """With what it is instead, and nothing is made of it."""
    text, other, part = (tmp_path / name for name in ("text", "other.db", "part.db"))
    text.write_text("no database, and long enough to be taken for one" * 50)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    with closing(sqlite3.connect(part)) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, thread_ts, checkpoint)")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {
        "none.db": "there is no such file",
        ".": "it is no file",
        "pipe": "it is no file",
        "text": "file is not a database",
        "other.db": "it has no table 'checkpoints'",
        "part.db": "no column checkpoint_ns, checkpoint_id",
    }.items():
        with pytest.raises(StoreUnavailable, match=reason), open_database(tmp_path / name):
            pytest.fail("it was opened")


@pytest.mark.parametrize("writer", ["still"], indirect=True)
def test_a_damaged_database_is_told_in_one_sentence(
    file: Path, tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    """The driver's error stays inside."""
    writer.kill()
    writer.wait()
    whole = tmp_path / "whole.db"
    shutil.copyfile(file, whole)
    shutil.copyfile(f"{file}-wal", f"{whole}-wal")
    with closing(sqlite3.connect(whole)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    data = bytearray(whole.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    whole.write_bytes(data)
    with (
        pytest.raises(StoreUnavailable, match="SQLite cannot read it"),
        open_database(whole) as source,
    ):
        list(source.checkpoints())
