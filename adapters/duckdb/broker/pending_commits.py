"""What clients have committed and is not durable yet: written together, and then answered."""

import logging
from concurrent.futures import Future
from time import monotonic

import duckdb

from herdbook.adapters.duckdb.broker.commit_group import CommitGroup, KindChange
from herdbook.adapters.duckdb.broker.open_file import OpenFile
from herdbook.adapters.duckdb.broker.turn import BrokerPeer
from herdbook.adapters.duckdb.errors import translate_error
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import AlreadyExists, HerdbookError, StoreUnavailable
from herdbook.ports.engine.kinds import Kind

_LOG = logging.getLogger(__name__)

GROUP_SECONDS = 0.02
"""How long a commit waits for others to be made durable with it, while somebody writes."""
GROUP_MOST = 32

Commits = dict[BrokerPeer, tuple[str, list[KindChange]]]
"""What clients have sent, in its order."""


class GroupFailed(Exception):
    """A group could not be written: the error for these clients; the others may try again."""

    def __init__(self, error: HerdbookError, *clients: BrokerPeer) -> None:
        super().__init__(str(error))
        self.error = error
        self.clients = clients


class PendingCommits:
    """Gathers commits into a group while another is being written. Called by one thread only.

    When a method has raised GroupFailed, nothing of what was pending is durable; `drop` it.
    """

    def __init__(self, file: OpenFile, tables: Tables, place: str) -> None:
        self._file = file
        self._tables = tables
        self._place = place
        self._group = CommitGroup()
        self._committing: Commits = {}
        self._written_group = CommitGroup()
        self._being_written: Commits = {}
        self._writing: Future[None] | None = None
        self._group_until = 0.0

    def __contains__(self, client: object) -> bool:
        return client in self._committing or client in self._being_written

    def __bool__(self) -> bool:
        return bool(self._committing or self._being_written)

    @property
    def is_writing(self) -> bool:
        """Whether a group is being written."""
        return self._writing is not None

    def touches(self, space: str, kind: Kind[object]) -> bool:
        """Whether rows of a kind in a space are changed by what is pending."""
        return any(group.touches(space, kind) for group in (self._group, self._written_group))

    def admits(self, space: str, changes: list[KindChange]) -> bool:
        """Whether a commit can be written together with those that are gathered."""
        return self._group.admits(space, changes)

    def add(self, client: BrokerPeer, space: str, changes: list[KindChange]) -> None:
        """Gather a commit, which `admits` has admitted; its client is answered when it is durable.

        Raises any error for changes that cannot be understood.
        """
        self._group.add(space, changes)
        if not self._committing:
            self._group_until = monotonic() + GROUP_SECONDS
        self._committing[client] = (space, changes)

    def start_if_due(self, now: float, *, others_write: bool) -> None:
        """Begin to write what is gathered, if it is time to and nothing else is being written.

        Raises GroupFailed.
        """
        is_due = not others_write or now >= self._group_until or len(self._committing) >= GROUP_MOST
        if self._committing and self._writing is None and is_due:
            self._start()

    def next_time(self) -> float | None:
        """When to call `start_if_due` at the latest; None if nothing waits for that."""
        return self._group_until if self._committing and self._writing is None else None

    def _start(self) -> None:
        self._being_written, self._committing = self._committing, {}
        self._written_group, self._group = self._group, CommitGroup()
        try:
            statements = self._written_group.statements(self._tables)
        except Exception as error:
            raise GroupFailed(self.translate(error), *self._being_written) from error
        self._writing = self._file.start_writing(statements, self._written_group.note)

    def finish(self, *, wait: bool) -> bool:
        """Answer those whose commits are durable now; whether a group has become so.

        Raises GroupFailed.
        """
        writing = self._writing
        if writing is None or not (wait or writing.done()):
            return False
        self._writing = None
        try:
            writing.result()
        except (duckdb.IntegrityError, duckdb.DataError, duckdb.ProgrammingError) as error:
            self._write_each(error)
        except Exception as error:
            raise GroupFailed(self.translate(error), *self._being_written) from error
        self._answer_written()
        return True

    def write_all(self) -> None:
        """Wait until everything that was sent is durable. Raises GroupFailed."""
        self.finish(wait=True)
        if self._committing:
            self._start()
            self.finish(wait=True)

    def drop(self) -> dict[BrokerPeer, HerdbookError | None]:
        """Forget what is not durable, after waiting for a writing to end.

        Returns whose it was, and the error of those who had one of their own.
        """
        errors: dict[BrokerPeer, HerdbookError] = {}
        try:
            self.finish(wait=True)
        except GroupFailed as failure:
            errors = dict.fromkeys(failure.clients, failure.error)
        clients = [*self._being_written, *self._committing]
        self._committing, self._group = {}, CommitGroup()
        self._being_written, self._written_group = {}, CommitGroup()
        return {client: errors.get(client) for client in clients}

    def _answer_written(self) -> None:
        self._file.outdate_snapshot()
        written, self._being_written = self._being_written, {}
        self._written_group = CommitGroup()
        for client in written:
            client.answer(["ok"])

    def _write_each(self, error: duckdb.Error) -> None:
        """Find the transaction that a key refuses: write each alone, until one fails."""
        committing = self._being_written
        for client, (space, changes) in list(committing.items()):
            group = CommitGroup()
            group.add(space, changes)
            try:
                self._file.undo()
                self._file.write(group.statements(self._tables), group.note)
            except Exception as problem:
                raise GroupFailed(self.translate(problem), client) from problem
            self._file.outdate_snapshot()
            del committing[client]
            client.answer(["ok"])
        _LOG.warning("transactions failed together that succeed one by one: %s", error)

    def translate(self, error: Exception) -> HerdbookError:
        """The error that a client is told whose commit cannot be written."""
        if isinstance(error, duckdb.ConstraintException):
            return AlreadyExists("row", str(error).partition("\n")[0])
        if isinstance(error, duckdb.Error | OSError | HerdbookError):
            return translate_error(error, self._place)
        _LOG.warning("a commit could not be written", exc_info=error)
        return StoreUnavailable(self._place, f"its broker cannot write this ({error})")
