"""The transactions of a broker's clients: one writes at a time, any number read.

A writer reads through the broker (`query_answers`) and sends what it changed with its commit.
Several commits that follow one another closely are made durable together (`pending_commits`), and
none is answered before that.
"""

import logging
from collections import deque
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import duckdb

from herdbook.adapters.duckdb.broker import wire
from herdbook.adapters.duckdb.broker.commit_group import KindChange
from herdbook.adapters.duckdb.broker.open_file import OpenFile, fetch
from herdbook.adapters.duckdb.broker.pending_commits import GroupFailed, PendingCommits
from herdbook.adapters.duckdb.broker.query_answers import QueryAnswers
from herdbook.adapters.duckdb.broker.turn import BrokerPeer, Turn
from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.duckdb.errors import translate_error
from herdbook.adapters.duckdb.store import WITHIN, DuckDBStore
from herdbook.adapters.locks.lock_file import Holder
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreTooNew
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import TryAgain

_LOG = logging.getLogger(__name__)

IDLE_SECONDS = 0.02
"""How long the file stays in use after the last transaction."""
WRITER_SILENCE = 30.0
"""After so many seconds without a message a writer gives way to those who wait."""
READER_SILENCE = 2.0
"""The same for a reader, when the file is to be released."""
FAILED_TOGETHER = "another transaction failed that was to be written with it"
CHECK_SECONDS = 0.05
"""How often to look whether somebody waits for the file, while transactions run."""


class Turns:
    """Admits transactions and runs their statements; called by one thread only."""

    def __init__(self, store: DuckDBStore, file: OpenFile) -> None:
        self._dictionary = store.dictionary
        self._schema_version = store.schema_version
        self._place = str(store.file_path)
        self._tables = Tables(DUCKDB, WITHIN)
        self._file = file
        self._queries = QueryAnswers(store.dictionary, self._tables, self._cursor)
        self._commits = PendingCommits(file, self._tables, self._place)
        self._turns: dict[BrokerPeer, Turn] = {}
        self._waiting: deque[Turn] = deque()
        self._readers: set[Turn] = set()
        self._writer: Turn | None = None
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
        self._finish_writing()
        error = self._file.finish_opening()
        if error is not None:
            self._refuse_all(error)
        if self._file.is_open and not self._file.was_kept:
            self._queries.forget_rows()
            self._file.was_kept = True
        self._expire(now)
        if not self._file.is_open:
            if self._waiting:
                self._file.start_opening()
        else:
            self._look(now)
            if not self._is_wanted:
                self._admit(now)
            self._start_writing(now)
            self._release_if_idle(now)
        return self._next_time(now)

    def end_all(self) -> None:
        """Make durable what was sent, and end every transaction."""
        if self._file.is_open:
            self._write_all()

    def _begin(self, client: BrokerPeer, space: str, *, write: bool, patience: float) -> None:
        if client in self._turns or client in self._commits:
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
            self._commit(turn, [self._queries.unpack_change(each) for each in message[1]])
            return
        if turn is not self._writer and turn not in self._readers:
            raise ValueError("this transaction has not begun")
        try:
            client.answer(["ok", self._queries.answer(turn, message)])
        except TryAgain as error:
            client.answer(wire.encode_error(error))
        except duckdb.Error as error:
            self._fail(translate_error(error, self._place), client)

    def _cursor(self, turn: Turn, kind: Kind[Any]) -> duckdb.DuckDBPyConnection:
        """The cursor of a transaction: a reader's moment, or all that was committed before."""
        if turn is self._writer:
            if self._commits.touches(turn.space, kind):
                self._write_all()
                if turn is not self._writer:
                    raise TryAgain(self._place, FAILED_TOGETHER)
            return self._file.current_cursor()
        if turn.snapshot is None:
            turn.snapshot = self._file.snapshot()
        return turn.snapshot.cursor

    def _commit(self, turn: Turn, changes: list[KindChange]) -> None:
        """Take what a client has sent; it is answered when that is durable."""
        if not self._commits.admits(turn.space, changes):
            self._write_all()
            if turn is not self._writer:  # the group failed, and with it what this one has seen
                self._answer_turn(turn.client, ["commit"])
                return
        try:
            for reader in self._readers:  # what they see is about to change in memory
                if reader.snapshot is None:
                    reader.snapshot = self._file.snapshot()
            self._queries.advance()
            self._commits.add(turn.client, turn.space, changes)
            self._queries.apply(turn.space, changes)
        except Exception as error:  # noqa: BLE001 - nothing of it may stay behind
            self._fail(self._commits.translate(error), turn.client)
        else:
            self._end(turn.client)

    def _write_all(self) -> None:
        """Wait until everything that was sent is durable."""
        try:
            self._commits.write_all()
        except GroupFailed as failure:
            self._fail(failure.error, *failure.clients)

    def _start_writing(self, now: float) -> None:
        """Begin to make durable what was sent, if it is due, while others go on."""
        try:
            self._commits.start_if_due(now, others_write=self._writer is not None)
        except GroupFailed as failure:
            self._fail(failure.error, *failure.clients)

    def _finish_writing(self) -> None:
        """Answer those whose commits are durable now, or tell them why they are not."""
        try:
            if self._commits.finish(wait=False):
                self._shorten_log()
        except GroupFailed as failure:
            self._fail(failure.error, *failure.clients)

    def _shorten_log(self) -> None:
        """Write a log into the file that would take long to read after a crash."""
        if self._commits.is_writing or any(each.snapshot for each in self._readers):
            return
        try:
            self._file.shorten_log()
        except OSError as error:
            _LOG.debug("the log of %s gets longer for now: %s", self._place, error)
        except duckdb.Error as error:
            self._fail(translate_error(error, self._place))

    def _fail(self, error: HerdbookError, *clients: BrokerPeer) -> None:
        """Undo what is not durable: tell these clients the error, and the others to try again."""
        dropped = self._commits.drop()
        for client in clients:
            self._end(client)
            client.answer(wire.encode_error(error))
        self._queries.forget_rows()
        for client, own in dropped.items():
            if client not in clients:
                problem = own or TryAgain(self._place, FAILED_TOGETHER)
                client.answer(wire.encode_error(problem))
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
        self._file.require_same_file()
        if not turn.write:
            if not turn.space:
                self._answer_spaces(turn)
                return
            is_ahead = bool(self._commits)
            if is_ahead:  # what is in memory is not committed yet
                turn.snapshot = self._file.snapshot()
            self._queries.begin(turn, is_ahead=is_ahead)
            self._readers.add(turn)
            turn.client.answer(["ok", None])
            return
        self._writer = turn
        heads = self._queries.answer(turn, ["get", HEADS.name, ["head"]])
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
        return self._writer is not None or bool(self._readers) or bool(self._commits)

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
        if (due := self._commits.next_time()) is not None:
            times.append(due)
        if self._file.is_open:
            times.append(self._check_at if self._is_busy() else self._idle_until)
        return max(min(times) - now, 0.0) if times else None
