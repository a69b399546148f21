"""The transactions of a broker's clients: one writes at a time, any number read.

A writer reads through the broker and sends what it changed with its commit. Several commits that
follow one another closely are made durable together, and none is answered before that.
"""

import logging
from collections import deque
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Any, Protocol

import duckdb
from attrs import define

from herdbook.adapters.duckdb.broker import wire
from herdbook.adapters.duckdb.broker.commit_group import CommitGroup, KindChange
from herdbook.adapters.duckdb.broker.open_file import OpenFile, SharedSnapshot, fetch
from herdbook.adapters.duckdb.broker.row_cache import CachedTable, RowCache
from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.duckdb.errors import translate_error
from herdbook.adapters.duckdb.store import WITHIN, DuckDBStore
from herdbook.adapters.locks.lock_file import Holder
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import (
    AlreadyExists,
    HerdbookError,
    StoreBusy,
    StoreTooNew,
    StoreUnavailable,
)
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import TryAgain

_LOG = logging.getLogger(__name__)

GROUP_SECONDS = 0.02
"""How long a commit waits for others to be made durable with it, while somebody writes."""
GROUP_MOST = 32
IDLE_SECONDS = 0.02
"""How long the file stays in use after the last transaction."""
WRITER_SILENCE = 30.0
"""After so many seconds without a message a writer gives way to those who wait."""
READER_SILENCE = 2.0
"""The same for a reader, when the file is to be released."""
FAILED_TOGETHER = "another transaction failed that was to be written with it"
CHECK_SECONDS = 0.05
"""How often to look whether somebody waits for the file, while transactions run."""


class BrokerPeer(Protocol):
    """Somebody at the other end of a connection."""

    pid: int
    command: str

    def answer(self, message: list[Any]) -> None:
        """Send an answer; never raises and never waits."""


Commits = dict[BrokerPeer, tuple[str, list[KindChange]]]
"""What clients have sent that is not durable yet, in its order."""


@define(eq=False)
class Turn:
    """A transaction that waits, or that runs since it got its cursor."""

    client: BrokerPeer
    space: str
    write: bool
    begun: float
    deadline: float
    last_seen: float
    snapshot: SharedSnapshot | None = None
    version: int = 0
    since: datetime | None = None


class Turns:
    """Admits transactions and runs their statements; called by one thread only."""

    def __init__(self, store: DuckDBStore, file: OpenFile) -> None:
        self._dictionary = store.dictionary
        self._schema_version = store.schema_version
        self._place = str(store.file_path)
        self._tables = Tables(DUCKDB, WITHIN)
        self._file = file
        self._cache = RowCache(self._tables)
        self._turns: dict[BrokerPeer, Turn] = {}
        self._waiting: deque[Turn] = deque()
        self._readers: set[Turn] = set()
        self._writer: Turn | None = None
        self._group = CommitGroup()
        self._committing: Commits = {}
        self._written_group = CommitGroup()
        self._being_written: Commits = {}
        self._writing: Future[None] | None = None
        self._group_until = 0.0
        self._version = 0  # counts the transactions that the cache has followed
        self._lost: dict[BrokerPeer, str] = {}
        self._idle_until = 0.0
        self._check_at = 0.0
        self._is_wanted = False

    def handle(self, client: BrokerPeer, message: list[Any]) -> None:
        """Answer a message of a client.

        Raises LookupError, TypeError and ValueError for a message that no client of ours sends.
        """
        match message:
            case ["begin", str(space), bool(write), int() | float() as patience]:
                self._begin(client, space, write=write, patience=min(float(patience), 86_400.0))
            case ["end"]:
                self._lost.pop(client, None)
                self._end(client)
            case ["spaces"]:
                self._begin(client, "", write=False, patience=WRITER_SILENCE)
            case _:
                self._answer_turn(client, message)

    def forget(self, client: BrokerPeer) -> None:
        """A client is gone: its transaction ends; a commit that it has sent goes on."""
        self._lost.pop(client, None)
        self._end(client)

    def advance(self) -> float | None:
        """Do what is due: open the file, admit, make durable, release it; when to call it again."""
        now = monotonic()
        self._finish_writing(wait=False)
        error = self._file.finish_opening()
        if error is not None:
            self._refuse_all(error)
        if self._file.is_open and not self._file.was_kept:
            self._cache.clear()
            self._file.was_kept = True
        self._expire(now)
        if not self._file.is_open:
            if self._waiting:
                self._file.start_opening()
        else:
            self._look(now)
            if not self._is_wanted:
                self._admit(now)
            is_due = (
                self._writer is None
                or now >= self._group_until
                or len(self._committing) >= GROUP_MOST
            )
            if self._committing and self._writing is None and is_due:
                self._start_writing()
            self._release_if_idle(now)
        return self._next_time(now)

    def end_all(self) -> None:
        """Make durable what was sent, and end every transaction."""
        if self._file.is_open:
            self._commit_group()

    def _begin(self, client: BrokerPeer, space: str, *, write: bool, patience: float) -> None:
        if client in self._turns or client in {**self._committing, **self._being_written}:
            raise ValueError("a connection has one transaction at a time")
        if space:
            area_of(space)
        self._lost.pop(client, None)
        now = monotonic()
        turn = Turn(client, space, write, now, now + patience, now)
        self._turns[client] = turn
        self._waiting.append(turn)

    def _end(self, client: BrokerPeer) -> None:
        turn = self._turns.pop(client, None)
        if turn is None:
            return
        if turn is self._writer:
            self._writer = None
        elif turn in self._readers:
            self._readers.discard(turn)
            if turn.snapshot is not None:
                self._file.release(turn.snapshot)
        elif turn in self._waiting:
            self._waiting.remove(turn)
        self._check_at = 0.0

    def _answer_turn(self, client: BrokerPeer, message: list[Any]) -> None:
        if client in self._lost:
            client.answer(wire.encode_error(TryAgain(self._place, self._lost[client])))
            return
        turn = self._turns[client]
        turn.last_seen = monotonic()
        if turn is self._writer and message[0] == "commit":
            self._commit(turn, [self._change_of(each) for each in message[1]])
            return
        if turn is not self._writer and turn not in self._readers:
            raise ValueError("this transaction has not begun")
        try:
            client.answer(["ok", self._read(turn, message)])
        except TryAgain as error:
            client.answer(wire.encode_error(error))
        except duckdb.Error as error:
            self._fail(translate_error(error, self._place), client)

    def _read(self, turn: Turn, message: list[Any]) -> Any:
        """The answer to a query, from memory if the rows are kept there."""
        match message:
            case ["get" | "has" as what, str(name), list(keys)]:
                kind = self._dictionary.kinds[name]
                kept = self._kept_rows(turn, kind)
                if kept is not None:
                    return kept.get(keys) if what == "get" else kept.find_keys(keys)
                return self._fetch_by_keys(turn, what, kind, keys)
            case ["select" | "count" as what, packed]:
                query = wire.unpack_query(self._dictionary, DUCKDB, packed)
                kept = self._kept_rows(turn, query.kind)
                if kept is not None:
                    return kept.select(query) if what == "select" else kept.count(query)
                table = self._tables[query.kind]
                build = table.select if what == "select" else table.count
                rows = self._fetch(turn, query.kind, *build(turn.space, query))
                return rows if what == "select" else rows[0][0]
        raise ValueError(f"no such message: {str(message[0])[:20]!r}")

    def _fetch_by_keys(self, turn: Turn, what: str, kind: Kind[Any], keys: list[Any]) -> Any:
        table = self._tables[kind]
        if what == "get":
            statement = table.get_one if len(keys) == 1 else table.get_many
        elif turn is self._writer and self._cache.is_behind_all(
            turn.space, kind, keys, partial(self._fetch, turn, kind)
        ):
            return []
        else:
            statement = table.find_key if len(keys) == 1 else table.find_keys
        given = [turn.space, keys[0] if len(keys) == 1 else keys]
        rows = self._fetch(turn, kind, statement, given)
        return rows if what == "get" else [key for (key,) in rows]

    def _kept_rows(self, turn: Turn, kind: Kind[Any]) -> CachedTable | None:
        """The rows of a kind as this transaction sees them, if they are in memory."""
        if turn is not self._writer and turn.version != self._version:
            return None
        kept = self._cache.find(turn.space, kind)
        if kept is None and self._cache.is_due(turn.space, kind):
            kept = self._cache.load(turn.space, kind, partial(self._fetch, turn, kind))
        return kept

    def _fetch(
        self, turn: Turn, kind: Kind[Any], sql: str, parameters: list[Any]
    ) -> list[tuple[Any, ...]]:
        return fetch(self._cursor(turn, kind), sql, parameters)

    def _cursor(self, turn: Turn, kind: Kind[Any]) -> duckdb.DuckDBPyConnection:
        """The cursor of a transaction: a reader's moment, or all that was committed before."""
        if turn is self._writer:
            if any(group.touches(turn.space, kind) for group in (self._group, self._written_group)):
                self._commit_group()
                if turn is not self._writer:
                    raise TryAgain(self._place, FAILED_TOGETHER)
            return self._file.current_cursor()
        if turn.snapshot is None:
            turn.snapshot = self._file.snapshot()
        return turn.snapshot.cursor

    def _change_of(self, packed: Any) -> KindChange:
        name, inserts, replaces, deletes = packed
        kind = self._dictionary.kinds[name]
        if not isinstance(deletes, list):
            raise TypeError("keys are a list")
        return KindChange(
            kind, wire.unpack_rows(kind, inserts), wire.unpack_rows(kind, replaces), deletes
        )

    def _commit(self, turn: Turn, changes: list[KindChange]) -> None:
        """Take what a client has sent; it is answered when that is durable."""
        if not self._group.admits(turn.space, changes):
            self._commit_group()
            if turn is not self._writer:  # the group failed, and with it what this one has seen
                self._answer_turn(turn.client, ["commit"])
                return
        for reader in self._readers:  # what they see is about to change in memory
            if reader.snapshot is None:
                reader.snapshot = self._file.snapshot()
        self._version += 1
        try:
            self._group.add(turn.space, changes)
            for change in changes:
                written = [*change.inserts, *change.replaces]
                self._cache.change(turn.space, change.kind, written, change.deletes)
        except Exception as error:  # noqa: BLE001 - nothing of it may stay behind
            self._fail(self._write_error(error), turn.client)
            return
        self._end(turn.client)
        if not self._committing:
            self._group_until = monotonic() + GROUP_SECONDS
        self._committing[turn.client] = (turn.space, changes)

    def _start_writing(self) -> None:
        """Write the group while others go on; `_finish_writing` says so to those who sent it."""
        self._being_written, self._committing = self._committing, {}
        self._written_group, self._group = self._group, CommitGroup()
        statements = self._written_group.statements(self._tables)
        self._writing = self._file.start_writing(statements, self._written_group.note)

    def _finish_writing(self, *, wait: bool) -> None:
        """Answer those whose commits are durable now, or tell them why they are not."""
        writing = self._writing
        if writing is None or not (wait or writing.done()):
            return
        self._writing = None
        try:
            writing.result()
        except (duckdb.IntegrityError, duckdb.DataError, duckdb.ProgrammingError) as error:
            self._commit_each(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was written
            self._fail(self._write_error(error), *self._being_written)
        else:
            self._answer_written()

    def _answer_written(self) -> None:
        self._file.outdate_snapshot()
        written, self._being_written = self._being_written, {}
        self._written_group = CommitGroup()
        for client in written:
            client.answer(["ok"])

    def _commit_group(self) -> None:
        """Wait until everything that was sent is durable."""
        self._finish_writing(wait=True)
        if self._committing:
            self._start_writing()
            self._finish_writing(wait=True)

    def _commit_each(self, error: duckdb.Error) -> None:
        """Find the transaction that a key refuses: write each alone, until one fails."""
        committing = self._being_written
        for client, (space, changes) in list(committing.items()):
            group = CommitGroup()
            group.add(space, changes)
            try:
                self._file.undo()
                self._file.write(group.statements(self._tables), group.note)
            except Exception as problem:  # noqa: BLE001 - as above
                self._fail(self._write_error(problem), client)
                return
            self._file.outdate_snapshot()
            del committing[client]
            client.answer(["ok"])
        self._answer_written()
        _LOG.warning("transactions failed together that succeed one by one: %s", error)

    def _write_error(self, error: Exception) -> HerdbookError:
        if isinstance(error, duckdb.ConstraintException):
            return AlreadyExists("row", str(error).partition("\n")[0])
        if isinstance(error, duckdb.Error | OSError | HerdbookError):
            return translate_error(error, self._place)
        _LOG.warning("a commit could not be written", exc_info=error)
        return StoreUnavailable(self._place, f"its broker cannot write this ({error})")

    def _fail(self, error: HerdbookError, *clients: BrokerPeer) -> None:
        """Undo what is not durable: tell these clients the error, and the others to try again."""
        self._finish_writing(wait=True)
        for client in clients:
            self._end(client)
            client.answer(wire.encode_error(error))
        unwritten = [*self._being_written, *self._committing]
        others = [client for client in unwritten if client not in clients]
        self._committing, self._group = {}, CommitGroup()
        self._being_written, self._written_group = {}, CommitGroup()
        self._cache.clear()
        for client in others:
            client.answer(wire.encode_error(TryAgain(self._place, FAILED_TOGETHER)))
        for turn in [self._writer, *self._readers]:
            if turn is not None:
                self._lost[turn.client] = FAILED_TOGETHER
                self._end(turn.client)
        self._file.close(error)

    def _admit(self, now: float) -> None:
        for turn in list(self._waiting):
            if turn.write and self._writer is not None:
                continue
            self._waiting.remove(turn)
            turn.last_seen, turn.since = now, datetime.now(UTC)
            try:
                self._start(turn)
            except (duckdb.Error, HerdbookError) as error:
                failure = translate_error(error, self._place)
                if not isinstance(failure, StoreTooNew):
                    self._fail(failure, turn.client)
                    return
                self._end(turn.client)
                turn.client.answer(wire.encode_error(failure))

    def _start(self, turn: Turn) -> None:
        """Begin a transaction: a writer is told the head of its space, or that it has none."""
        if not turn.write:
            if not turn.space:
                self._answer_spaces(turn)
                return
            is_ahead = bool(self._committing or self._being_written)
            if is_ahead:  # what is in memory is not committed yet
                turn.snapshot = self._file.snapshot()
            turn.version = -1 if is_ahead else self._version
            self._readers.add(turn)
            turn.client.answer(["ok", None])
            return
        self._writer = turn
        self._file.require_same_file()
        heads = self._read(turn, ["get", HEADS.name, ["head"]])
        if not heads:
            sql = f"SELECT schema_version FROM {WITHIN}.store"
            ((version,),) = fetch(self._file.current_cursor(), sql, [])
            if version > self._dictionary.version:
                raise StoreTooNew(self._place, version, self._dictionary.version)
        turn.client.answer(["ok", heads[0] if heads else None])

    def _answer_spaces(self, turn: Turn) -> None:
        snapshot = self._file.snapshot()
        sql = f"SELECT space FROM {self._tables[HEADS].name} ORDER BY space"
        rows = fetch(snapshot.cursor, sql, [])
        self._file.release(snapshot)
        del self._turns[turn.client]
        turn.client.answer(["ok", [space for (space,) in rows]])

    def _look(self, now: float) -> None:
        """Look whether the file is wanted, and end transactions that then stand in the way."""
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            self._is_wanted = self._file.is_wanted()
        writer = self._writer
        is_awaited = self._is_wanted or any(turn.write for turn in self._waiting)
        if writer is not None and is_awaited and now - writer.last_seen > WRITER_SILENCE:
            self._lose(writer)
        if self._is_wanted:
            for turn in list(self._readers):
                if now - turn.last_seen > READER_SILENCE:
                    self._lose(turn)

    def _lose(self, turn: Turn) -> None:
        self._lost[turn.client] = "it was silent for too long while others waited for it"
        self._end(turn.client)

    def _release_if_idle(self, now: float) -> None:
        if self._is_busy():
            self._idle_until = now + IDLE_SECONDS
        elif self._is_wanted or (now >= self._idle_until and not self._waiting):
            self._file.close()
            self._is_wanted, self._check_at = False, 0.0
            if self._waiting:
                self._file.start_opening()

    def _is_busy(self) -> bool:
        """Whether a transaction runs or is being made durable."""
        unwritten = bool(self._committing or self._being_written)
        return self._writer is not None or bool(self._readers) or unwritten

    def _expire(self, now: float) -> None:
        for turn in [each for each in self._waiting if now >= each.deadline]:
            self._waiting.remove(turn)
            del self._turns[turn.client]
            turn.client.answer(wire.encode_error(self._busy(now - turn.begun)))

    def _busy(self, waited: float) -> StoreBusy:
        writer = self._writer
        if writer is None or writer.since is None:
            return self._file.busy(waited)
        holder = Holder(writer.client.pid, writer.client.command, writer.since, None, "")
        return StoreBusy(self._place, round(waited, 1), holder.describe(), writer.since)

    def _refuse_all(self, error: HerdbookError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            del self._turns[turn.client]
            turn.client.answer(wire.encode_error(error))

    def _next_time(self, now: float) -> float | None:
        times = [turn.deadline for turn in self._waiting]
        if self._committing and self._writing is None:
            times.append(self._group_until)
        if self._file.is_open:
            times.append(self._check_at if self._is_busy() else self._idle_until)
        return max(min(times) - now, 0.0) if times else None
