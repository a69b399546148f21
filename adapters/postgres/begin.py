"""Begins a transaction with all settings that it relies on, in one round trip to the server.

Behind a pooler the session is somebody else's a moment later, and a role, a database or a server
may set what it likes. So each transaction sets what it needs, for itself only:

- names are looked up in `pg_catalog` and nowhere else, so that nobody's function, operator or type
  is taken for the server's; tables are always called by schema and name;
- a lock is waited for as long as our patience;
- it reads at one moment, or writes with each statement seeing what was committed before it.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from secrets import token_hex
from typing import Any

import psycopg
from psycopg import sql

from herdbook.adapters.postgres.bounded_connection import BoundedConnection

PREPARED_AFTER = 5
"""How often a statement is sent before it is prepared by the server."""
LONGEST = 2**31 - 1
"""The longest time limit that the server takes, in milliseconds."""
PINNED = "pg_catalog, pg_temp"
"""Where names are looked up. `pg_temp` is named so that it comes last: otherwise it is first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Mode(Enum):
    """What a transaction is for."""

    READ = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
    WRITE = "ISOLATION LEVEL READ COMMITTED READ WRITE"


def begin_script(mode: Mode, patience: float) -> str:
    """The statements that begin a transaction, as one message."""
    return (
        f"BEGIN {mode.value}; SET LOCAL search_path TO {PINNED}; "
        f"SET LOCAL lock_timeout TO {milliseconds(patience)}"
    )


def begin_statements(mode: Mode, patience: float) -> tuple[str, str]:
    """The same as single statements, for a pipeline, which takes no message of several."""
    settings = (
        f"SELECT pg_catalog.set_config('search_path', '{PINNED}', true), "
        f"pg_catalog.set_config('lock_timeout', '{milliseconds(patience)}', true)"
    )
    return f"BEGIN {mode.value}", settings


def milliseconds(seconds: float) -> int:
    """A time limit as the server takes it; 0 would mean none."""
    return min(max(1, int(seconds * 1_000)), LONGEST)


def epoch_microseconds(moment: str) -> str:
    """SQL for a time of the server as a number, which no time zone and no date style changes."""
    return f"(EXTRACT(epoch FROM {moment}) * 1000000)::bigint"


def from_epoch_microseconds(number: int) -> datetime:
    """The time that such a number represents."""
    return _EPOCH + timedelta(microseconds=number)


def begin(
    connection: BoundedConnection,
    mode: Mode,
    patience: float,
    question: str = "",
    argument: str | None = None,
) -> list[tuple[Any, ...]]:
    """Begin a transaction; returns the rows of a question in which `$1` is the argument, if given.

    The first time, the server is asked for the process that serves us. If that is not the process
    it named when we connected, a pooler is between us, which gives each client a key of its own:
    cancelling would not work otherwise. Only without a pooler are statements prepared.
    """
    parts = [begin_script(mode, patience)]
    if not connection.is_direct:
        parts.append("SELECT pg_catalog.pg_backend_pid()")
    prepares = False
    if question and argument is not None:
        value = _literal(connection, argument)
        if not connection.is_direct:
            question = question.replace("$1", value)
        else:
            name = connection.sql_statements.get(question)
            if name is None:
                prepares = True
                name = f"herdbook_{token_hex(8)}"
                parts.append(f"PREPARE {name}(text) AS {question}")
                connection.sql_statements[question] = name
            question = f"EXECUTE {name}({value})"
    if question:
        parts.append(question)
    try:
        results = connection.run_script("; ".join(parts).encode())
    except psycopg.Error:
        if prepares:
            # It is not known whether the statement exists now.
            connection.close()
        raise
    answers = [each for each in results if each.nfields]
    if not connection.is_direct:
        _note_server(connection, *connection.rows_of(answers[0])[0])
    return connection.rows_of(answers[-1]) if question else []


def _literal(connection: BoundedConnection, text: str) -> str:
    if "'" in text or "\\" in text:
        return sql.Literal(text).as_string(connection)
    return f"'{text}'"


def is_direct(connection: BoundedConnection) -> bool:
    """Whether the process that serves us is the one that accepted the connection."""
    return connection.server_pid == connection.info.backend_pid


def _note_server(connection: BoundedConnection, pid: int) -> None:
    connection.server_pid = pid
    if connection.is_direct is None:
        connection.is_direct = is_direct(connection)
        connection.prepare_threshold = PREPARED_AFTER if connection.is_direct else None
