"""A transaction on a Postgres server, and how its statements get there."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import psycopg

from herdbook.adapters.postgres.begin import (
    Mode,
    begin,
    begin_statements,
    epoch_microseconds,
    from_epoch_microseconds,
)
from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.adapters.postgres.connect import is_near
from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.errors import translate_commit_error
from herdbook.adapters.sql.dialect import quote_name
from herdbook.adapters.sql.session import SqlSession, Tables
from herdbook.domain.errors import AlreadyExists, HerdbookError, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import EdgeMapping, Node

E = TypeVar("E")
Statement = tuple[str, list[Any] | None]

COMMIT = "COMMIT"
TOGETHER = 4
"""How many changes are combined into one statement."""


class StatementRunner:
    """Runs the statements of one transaction, each batch in one round trip to the server.

    A server of this machine answers faster than the driver's pipeline works (0.1 ms): it gets the
    statements of a batch one by one.
    """

    def __init__(self, connection: BoundedConnection, connections: ConnectionPool) -> None:
        self._connection = connection
        self._connections = connections
        self._is_near = is_near(connection)
        self._cursor = connection.cursor(binary=True)
        self._pid = os.getpid()

    def begin(self, mode: Mode, question: str = "", argument: str = "") -> list[tuple[Any, ...]]:
        """Begin the transaction; returns the rows of a first question about `$1`."""
        return begin(self._connection, mode, self._connections.patience, question, argument)

    def begin_reading_with(self, statements: Sequence[Statement]) -> list[tuple[Any, ...]]:
        """Begin a read transaction with its first statements; returns the rows of the last one."""
        if self._is_near or self._connection.is_direct is None:
            self.begin(Mode.READ)
            return self(statements)
        first = begin_statements(Mode.READ, self._connections.patience)
        return self([*((each, None) for each in first), *statements])

    def __call__(self, statements: Sequence[Statement]) -> list[tuple[Any, ...]]:
        """Run statements and return the rows of the last one; an error of any of them is raised."""
        self._check_usable()
        *earlier, (sql, parameters) = statements
        if self._is_near:
            for before, given in earlier:
                self._cursor.execute(before.encode(), given)
            earlier = []
        try:
            if not earlier:
                self._cursor.execute(sql.encode(), parameters)
            else:
                # If a COMMIT were refused because the session is shared, it would seem lost.
                prepare = False if sql == COMMIT else None
                with self._connection.pipeline():
                    for before, given in earlier:
                        self._connection.execute(before.encode(), given)
                    self._cursor.execute(sql.encode(), parameters, prepare=prepare)
        except psycopg.Error:
            if earlier:
                # The driver takes statements for prepared that the server skipped after the error.
                self._connection.close()
            raise
        # Reading the cursor's description would take longer than fetching a row.
        result = self._cursor.pgresult
        return self._cursor.fetchall() if result is not None and result.nfields else []

    def commit(self, statements: Sequence[Statement]) -> None:
        """Run the last statements and commit; raises StoreUnavailable if a statement had failed."""
        if statements and not self._is_near:
            self([*statements, (COMMIT, None)])
            status = self._cursor.statusmessage
        else:
            if statements:
                self(statements)
            self._check_usable()
            result = self._connection.run_script(COMMIT.encode())[-1]
            status = (result.command_status or b"").decode()
        if status != COMMIT:
            # The server reports a rollback here as a success.
            reason = "a statement of this transaction had failed, so nothing was written"
            raise StoreUnavailable(self._connections.place, reason)

    def _check_usable(self) -> None:
        place = self._connections.place
        if os.getpid() != self._pid:
            raise StoreUnavailable(place, "this transaction belongs to the process that was forked")
        if self._connection.closed:
            raise StoreUnavailable(place, "the connection of this transaction broke")

    def translate_error(self, error: psycopg.Error) -> HerdbookError:
        """The Herdbook error for an error of a statement."""
        return self._connections.translate_error(error)

    def translate_commit_error(self, error: psycopg.Error) -> HerdbookError:
        """The Herdbook error for an error of the commit."""
        return translate_commit_error(error, self._connections.place, self._connections.patience)


def moment_sql(tables: Tables) -> str:
    """The query for the time and the head of the space `$1`, also if it has none."""
    heads = tables[HEADS]
    return (
        f"SELECT {epoch_microseconds('clock_timestamp()')}, {heads.column_list} "
        f"FROM (SELECT) AS one LEFT JOIN {heads.name} ON space = $1"
    )


def lock_sql(tables: Tables) -> str:
    """The query that locks the head of the space `$1`, with the time at which it was locked."""
    heads = tables[HEADS]
    # The time is selected outside, so that it is read while the lock is held.
    return (
        f"SELECT {epoch_microseconds('clock_timestamp()')}, {heads.column_list} FROM (SELECT "
        f"{heads.column_list} FROM {heads.name} WHERE space = $1 FOR UPDATE) AS locked"
    )


def read_moment_row(tables: Tables, row: Sequence[Any]) -> tuple[datetime, Head | None]:
    """The time and the head in the answer to either query."""
    now, *head = row
    return from_epoch_microseconds(now), tables[HEADS].row(head) if head[0] is not None else None


def _combine(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Combine several changes into one statement, in which none sees what the others do."""
    for start in range(0, len(statements), TOGETHER):
        *before, (sql, parameters) = statements[start : start + TOGETHER]
        if before:
            parts = ", ".join(f"part_{at} AS ({each})" for at, (each, _) in enumerate(before))
            sql = f"WITH {parts} {sql}"
        given = [value for _, values in before for value in values or ()]
        yield sql, [*given, *(parameters or ())]


class PostgresSession(SqlSession):
    """A transaction on a Postgres server.

    Statements whose answer nobody waits for are held back and sent with the next one, at the latest
    with the commit: every answer costs a round trip.
    """

    def __init__(
        self,
        runner: StatementRunner,
        tables: Tables,
        space: str,
        moment: tuple[datetime, Head | None] | None = None,
    ) -> None:
        """Use a transaction that has begun at a moment, or that begins with its first statement."""
        super().__init__(self._run, tables, space)
        self._runner = runner
        self._has_begun = moment is not None
        self._held_back: list[Statement] = []
        if moment is not None:
            self._moment = moment

    @cached_property
    def _moment(self) -> tuple[datetime, Head | None]:
        question = moment_sql(self._tables).replace("$1", "%s")
        return read_moment_row(self._tables, self._run(question, [self._space])[0])

    @property
    def now(self) -> datetime:
        return self._moment[0]

    @property
    def head(self) -> Head | None:
        return self._moment[1]

    def _run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        held_back, self._held_back = self._held_back, []
        statements = [*_combine(held_back), (sql, parameters)]
        has_begun, self._has_begun = self._has_begun, True
        try:
            return (
                self._runner(statements)
                if has_begun
                else self._runner.begin_reading_with(statements)
            )
        except psycopg.errors.UniqueViolation as error:
            raise AlreadyExists(error.diag.table_name or "row", self._space) from error
        except psycopg.Error as error:
            raise self._runner.translate_error(error) from error

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        table = self._tables[kind]
        self._held_back += [(table.append_one, [self._space, *table.values(row)]) for row in rows]

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        if kind is not HEADS:
            super().replace(kind, rows)
            return
        # The row exists: we hold its lock.
        table, names = self._tables[kind], self._tables[kind].changeable
        self._held_back += [
            (
                table.replace_one(names),
                table.replace_one_parameters(self._space, table.values(row), names),
            )
            for row in rows
        ]

    def commit(self) -> None:
        held_back, self._held_back = self._held_back, []
        try:
            self._runner.commit(list(_combine(held_back)))
        except psycopg.errors.UniqueViolation as error:
            raise AlreadyExists(error.diag.table_name or "row", self._space) from error
        except psycopg.Error as error:
            raise self._runner.translate_commit_error(error) from error

    def walk(self, steps: Sequence[EdgeMapping], starts: Sequence[Node]) -> list[tuple[Node, Node]]:
        """Follow edges with one recursive statement."""
        branches = []
        for step in steps:
            table = self._tables[step.kind].name
            source, target = f"e.{quote_name(step.source)}", f"e.{quote_name(step.target)}"
            branches.append(
                f"SELECT '{step.target_role}' COLLATE \"C\" AS role, {target} AS node "
                f"FROM {table} e WHERE reached.role = '{step.source_role}' AND e.space = %s "
                f"AND {source} = reached.node AND {target} IS NOT NULL"
            )
        sql = (
            "WITH RECURSIVE reached(from_role, from_node, role, node) AS ("
            'SELECT NULL COLLATE "C", NULL COLLATE "C", role COLLATE "C", node COLLATE "C" '
            "FROM unnest(%s::text[], %s::text[]) AS start(role, node) "
            "UNION SELECT reached.role, reached.node, further.role, further.node "
            f"FROM reached CROSS JOIN LATERAL ({' UNION ALL '.join(branches)}) further) "
            "SELECT from_role, from_node, role, node FROM reached WHERE from_node IS NOT NULL"
        )
        roles, nodes = [role for role, _ in starts], [node for _, node in starts]
        rows = self._execute(sql, [roles, nodes, *[self._space] * len(steps)])
        return [((a, b), (c, d)) for a, b, c, d in rows]
