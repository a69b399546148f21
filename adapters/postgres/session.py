"""A transaction on a Postgres server, and how its statements get there."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import psycopg

from herdbook.adapters.postgres.connections import is_near
from herdbook.adapters.sql.dialect import quoted
from herdbook.adapters.sql.session import SqlSession, Tables
from herdbook.domain.errors import AlreadyExists, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.ports.dictionary import HEADS
from herdbook.ports.kinds import Kind
from herdbook.ports.store import Node, Step
from herdbook.ports.wire import utc

E = TypeVar("E")
Statement = tuple[str, list[Any] | None]

READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
TOGETHER = 4
"""How many changes go into one statement."""


class Talk:
    """One transaction's statements, each batch on one way to the server and back.

    A server of this machine is nearer than the driver's pipeline is quick (0.1 ms): it gets the
    statements of a batch one by one.
    """

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self._connection = connection
        self._is_near = is_near(connection)
        self._cursor = connection.cursor(binary=True)
        self._place = place
        self._pid = os.getpid()

    def __call__(self, statements: Sequence[Statement]) -> list[tuple[Any, ...]]:
        """Run statements and give the rows of the last one; an error of any of them is raised."""
        if os.getpid() != self._pid:
            raise StoreUnavailable(
                self._place, "this transaction belongs to the process that was forked"
            )
        *earlier, (sql, parameters) = statements
        if self._is_near:
            for before, given in earlier:
                self._cursor.execute(before.encode(), given)
            earlier = []
        try:
            if not earlier:
                self._cursor.execute(sql.encode(), parameters)
            else:
                with self._connection.pipeline():
                    for before, given in earlier:
                        self._connection.execute(before.encode(), given)
                    self._cursor.execute(sql.encode(), parameters)
        except psycopg.Error:
            if earlier:
                # The driver takes for prepared what the server has skipped behind the error.
                self._connection.close()
            raise
        return self._cursor.fetchall() if self._cursor.description else []


def _combined(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Several changes in one statement, in which none sees what the others do."""
    for start in range(0, len(statements), TOGETHER):
        *before, (sql, parameters) = statements[start : start + TOGETHER]
        if before:
            parts = ", ".join(f"part_{at} AS ({each})" for at, (each, _) in enumerate(before))
            sql = f"WITH {parts} {sql}"
        given = [value for _, values in before for value in values or ()]
        yield sql, [*given, *(parameters or ())]


class PostgresSession(SqlSession):
    """A transaction on a Postgres server.

    What nobody waits for an answer to is held back and goes to the server with what comes next, at
    the latest with the commit: every answer costs a way there and back.
    """

    def __init__(self, talk: Talk, tables: Tables, space: str) -> None:
        super().__init__(self._run, tables, space)
        self._talk = talk
        self._opening: list[Statement] = [(READING, None)]
        self._held_back: list[Statement] = []

    @classmethod
    def begun(
        cls, talk: Talk, tables: Tables, space: str, now: datetime, head: Head
    ) -> "PostgresSession":
        """A transaction for writing that has begun and locked the head."""
        session = cls(talk, tables, space)
        session._opening = []
        session._moment = utc(now), head
        return session

    @cached_property
    def _moment(self) -> tuple[datetime, Head | None]:
        heads = self._tables[HEADS]
        sql = (
            f"SELECT clock_timestamp(), {heads.column_list} FROM (SELECT) AS one "
            f"LEFT JOIN {heads.name} ON space = %s"
        )
        now, *head = self._run(sql, [self._space])[0]
        return utc(now), heads.row(head) if head[0] is not None else None

    @property
    def now(self) -> datetime:
        return self._moment[0]

    @property
    def head(self) -> Head | None:
        return self._moment[1]

    def _run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        opening, self._opening = self._opening, []
        held_back, self._held_back = self._held_back, []
        try:
            return self._talk([*opening, *_combined(held_back), (sql, parameters)])
        except psycopg.errors.UniqueViolation as error:
            raise AlreadyExists(error.diag.table_name or "row", self._space) from error

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        table = self._tables[kind]
        self._held_back += [(table.append_one, [self._space, *table.values(row)]) for row in rows]

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        if kind is not HEADS:
            super().replace(kind, rows)
            return
        # It is there: we hold its lock.
        table = self._tables[kind]
        self._held_back += [
            (table.replace_one, table.replace_one_parameters(self._space, row)) for row in rows
        ]

    def commit(self) -> None:
        self._run("COMMIT")

    def walk(self, steps: Sequence[Step], starts: Sequence[Node]) -> list[tuple[Node, Node]]:
        """Follow edges with one recursive statement."""
        branches = []
        for step in steps:
            table = self._tables[step.kind].name
            source, target = f"e.{quoted(step.source)}", f"e.{quoted(step.target)}"
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
