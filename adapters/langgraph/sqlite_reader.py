"""Reader of the databases of LangGraph's `SqliteSaver`, from a copy taken while they are in use.

The copy is what SQLite would see: the database file first, then its write-ahead log. Pages that a
writer moves from the log into the file meanwhile are still in the log, unless that was restarted;
if it was, the copy is taken again. Nothing is opened, locked or created next to the source.
"""

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from herdbook.adapters.langgraph.split_checkpoint import split
from herdbook.adapters.msgpack_reader import UnreadableValue
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import StoreBusy, StoreUnavailable
from herdbook.ports.repositories.checkpoints import TaskWrite
from herdbook.ports.world.foreign_checkpoints import ForeignCheckpoint, ReadFailure

HEADER = 32
"""The size of the header of a log, which changes when the log is restarted."""
ATTEMPTS, PAUSE = 20, 0.1
_IDS = ("thread_id", "checkpoint_ns", "checkpoint_id")
COLUMNS = {
    "checkpoints": (*_IDS, "parent_checkpoint_id", "type", "checkpoint", "metadata"),
    "writes": (*_IDS, "task_id", "idx", "channel", "type", "value"),
}
_CHECKPOINTS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, "
    "metadata FROM checkpoints"
)
_IN_ORDER = "ORDER BY thread_id, checkpoint_ns, checkpoint_id"


def read_thread_ids(file: Path) -> frozenset[str]:
    """The ids of the threads of a database; none if no saver has written to it yet.

    Raises what `open_database` raises.
    """
    with _open_copy(file) as (connection, size):
        if not _has_tables(connection):
            return frozenset()
        return SqliteCheckpoints(file, connection, size).thread_ids()


@contextmanager
def open_database(file: Path) -> Iterator["SqliteCheckpoints"]:
    """Open a copy of a database as it is now.

    Raises StoreUnavailable if there is no file, or if it is another kind of database, and StoreBusy
    if no consistent copy could be taken.
    """
    with _open_copy(file) as (connection, size):
        yield SqliteCheckpoints(file, connection, size)


@contextmanager
def _open_copy(file: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """Open a copy of a file as a database; yields it and the number of bytes."""
    path = file.resolve()
    if not path.is_file():
        what = "it is no file" if path.exists() else "there is no such file"
        raise StoreUnavailable(str(file), what)
    try:
        with TemporaryDirectory(prefix="herdbook-") as folder:
            size = _copy(path, Path(folder))
            connection = _connect(Path(folder, path.name))
        # The copy is open and its file is unlinked: it disappears with this process in any case.
        with closing(connection):
            yield connection, size
    except OSError as error:
        if isinstance(error, StoreBusy | StoreUnavailable):
            raise
        reason = f"{error.strerror or error} (a copy is taken into a temporary folder)"
        raise StoreUnavailable(str(file), reason) from error
    except sqlite3.Error as error:
        reason = f"SQLite cannot read it ({error}); nothing in it was changed"
        raise StoreUnavailable(str(file), reason) from error


def _copy(path: Path, folder: Path) -> int:
    """Copy a database with its log or journal; returns the number of bytes."""
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-journal")]
    start = time.monotonic()
    for _ in range(ATTEMPTS):
        before = _state(path)
        size = 0
        for each in beside:
            copy = folder / each.name
            copy.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(each, copy)
                size += copy.stat().st_size
        if _state(path) == before:
            return size
        time.sleep(PAUSE)
    raise StoreBusy(str(path), round(time.monotonic() - start, 1), "a program that writes to it")


def _state(path: Path) -> Any:
    """What must be equal before and after a copy if the copy is consistent."""
    log, journal = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")
    header = b""
    with suppress(FileNotFoundError), log.open("rb") as opened_log:
        header = opened_log.read(HEADER)
    if len(header) == HEADER:
        return header
    found = []
    for each in (path, journal):
        with suppress(FileNotFoundError):
            status = each.stat()
            found.append((each.name, status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def _connect(copy: Path) -> sqlite3.Connection:
    """Open a copy after merging its log into it, so that it needs no other file."""
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    connection = sqlite3.connect(f"{copy.as_uri()}?immutable=1&mode=ro", uri=True)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return connection


def _has_tables(connection: sqlite3.Connection) -> bool:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return not {(name,) for name in COLUMNS}.isdisjoint(names)


class SqliteCheckpoints:
    """All checkpoints of a database."""

    def __init__(self, file: Path, connection: sqlite3.Connection, size: int) -> None:
        self.size = size
        self._connection = connection
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        for table, columns in COLUMNS.items():
            there = self._columns(table)
            lacking = [column for column in columns if column not in there]
            if not there:
                reason = f"it has no table {table!r}, so LangGraph's SqliteSaver has not made it"
                raise StoreUnavailable(str(file), reason)
            if lacking:
                reason = f"its table {table!r} has no column {', '.join(lacking)}: it is of a kind "
                raise StoreUnavailable(str(file), reason + "of SqliteSaver that is not understood")
        path = "task_path" if "task_path" in self._columns("writes") else "''"
        self._writes_query = (
            f"SELECT task_id, {path}, idx, channel, type, value FROM writes "
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx"
        )

    def _columns(self, table: str) -> list[str]:
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return [name for (name,) in rows]

    @cached_property
    def total(self) -> int:
        """How many checkpoints there are."""
        ((count,),) = self._connection.execute("SELECT count(*) FROM checkpoints")
        return int(count)

    @cached_property
    def left_out(self) -> int:
        """How many writes belong to checkpoints that are not there."""
        ((count,),) = self._connection.execute(
            "SELECT count(*) FROM writes AS w WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS c "
            "WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns "
            "AND c.checkpoint_id = w.checkpoint_id)"
        )
        return int(count)

    def thread_ids(self) -> frozenset[str]:
        """The ids of all threads."""
        rows = self._connection.execute("SELECT DISTINCT thread_id FROM checkpoints")
        return frozenset(name for (name,) in rows if isinstance(name, str))

    def checkpoints(self) -> Iterator[ForeignCheckpoint | ReadFailure]:
        """All checkpoints, by thread and namespace, in the order of their ids."""
        yield from self._read(self._connection.execute(f"{_CHECKPOINTS} {_IN_ORDER}"))

    def thread(self, thread_id: str) -> Iterator[ForeignCheckpoint | ReadFailure]:
        """The checkpoints of a thread, by namespace, in the order of their ids."""
        query = f"{_CHECKPOINTS} WHERE thread_id = ? {_IN_ORDER}"
        yield from self._read(self._connection.execute(query, [thread_id]))

    def _read(self, rows: sqlite3.Cursor) -> Iterator[ForeignCheckpoint | ReadFailure]:
        for row in rows:
            key = "checkpoint " + " ".join(repr(each) for each in row[:3])
            untold: list[ReadFailure] = []
            try:
                found = self._foreign(row, key, untold)
            except UnreadableValue as error:
                yield ReadFailure(key, str(error))
                continue
            yield found
            yield from untold

    def _foreign(
        self, row: tuple[Any, ...], key: str, untold: list[ReadFailure]
    ) -> ForeignCheckpoint:
        *ids, parent, tag, data, metadata = row
        thread_id, namespace, checkpoint_id = (_text(each, "an id of it") for each in ids)
        state, values = split(_text(tag, "the word for how it is written"), _bytes(data))
        found = _metadata(metadata)
        run_id = json.loads(found.data).get("run_id")
        writes = list(self._writes((thread_id, namespace, checkpoint_id), key, untold))
        return ForeignCheckpoint(
            thread_id,
            namespace,
            checkpoint_id,
            _text(parent, "its parent's id") if parent else None,
            None if run_id is None else str(run_id),
            found,
            state,
            values,
            writes,
            len(data) + sum(len(done.value.data) for done in writes),
        )

    def _writes(
        self, ids: tuple[str, str, str], key: str, untold: list[ReadFailure]
    ) -> Iterator[TaskWrite]:
        for task_id, path, number, channel, tag, data in self._connection.execute(
            self._writes_query, ids
        ):
            try:
                yield TaskWrite(
                    _text(task_id, "its task"),
                    _text(path, "its path"),
                    _whole(number),
                    _text(channel, "its channel"),
                    TaggedBytes(_text(tag, "the word for how it is written"), _bytes(data)),
                )
            except UnreadableValue as error:
                untold.append(ReadFailure(f"write {task_id!r} {number!r} of {key}", str(error)))


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise UnreadableValue(f"{what} is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnreadableValue(f"{what} is no Unicode") from error
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if value is None:
        return b""
    if not isinstance(value, bytes):
        raise UnreadableValue("what it holds are no bytes")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise UnreadableValue("its number is none")
    return value


def _metadata(value: Any) -> TaggedBytes:
    """The metadata of a checkpoint, which SqliteSaver always writes as JSON."""
    data = _bytes(value) or b"{}"
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableValue("what is said of it is no JSON") from error
    if not isinstance(found, dict):
        raise UnreadableValue("what is said of it is no JSON object")
    return TaggedBytes("json", data)
